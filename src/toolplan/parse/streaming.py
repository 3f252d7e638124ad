"""The steps of a JSON plan, each as soon as its closing brace has arrived.

One scanner walks over the text once; between two pieces of it, it remembers how deep it is in brackets and whether it
is inside a string. A step can only be complete when a `}` arrives, so pieces without one are only put aside. Nothing is
ever scanned again: the work is linear in the length of the text, however small the pieces are.

    looking  outside of a plan: prose, fences, thinking       ── `[{` or `{"` ──>  inside
    inside   a bracket is open, until the list of steps ends  ── its end ──>  done, or looking when it held no step

This is a first reading of an unfinished text, so that work which changes nothing can begin early. What the plan means,
and whether it is one, is for `parse` to say when the whole text is there: what is given back here may turn out to have
been something else.
"""

from __future__ import annotations

import json
import re

from toolplan.parse.spellings import PLAN, find_kind
from toolplan.parse.thinking_tags import LONGEST, OPENING, end_of_thinking
from toolplan.values import Json

__all__ = ["PlanStream"]

_START = re.compile(
    rf"(?P<thinking>{OPENING})"
    r"""|(?<![A-Za-z0-9_=(\[{$'"\\%@&])(?P<bracket>\[\s*\{|\{\s*")""",
    re.IGNORECASE,
)
"""Thinking, or a bracket that may begin a plan: directly behind a letter or a quote it belongs to something else."""
_MAY_START = re.compile(rf".?(?:[\[{{]\s*|[<\[◁][\w:|]{{0,{LONGEST}}})\Z", re.DOTALL)
"""What may become one of these when more text arrives, and the character before it."""
_MARK = re.compile(r'("(?:[^"\\]++|\\.)*+)("?)|([\[{])|([\]}])', re.DOTALL)
_REST_OF_STRING = re.compile(r'(?:[^"\\]++|\\.)*+', re.DOTALL)
_STRING, _OPEN = 2, 3
"""The group that was matched last, by what was found."""
_PARALLEL = re.compile(r'\{\s*"parallel"\s*:\s*\[')
_LONGEST_KEY = 40
_NOTHING = -1


class PlanStream:
    """Takes in the text of a reply piece by piece and gives back its complete top-level steps, as JSON values.

    The steps of a plan are the objects in its list, which is the whole plan or stands under a key such as `steps`; or
    the plan is a step, or several, without a list around them. A plan ends with its list, whatever follows.
    """

    def __init__(self) -> None:
        self.is_done = False
        """Nothing more will come: the plan has ended, or it cannot be followed any further."""
        self._waiting: list[str] = []  # pieces that have arrived and were not scanned
        self._carry = ""  # looking: the end of the text so far, which may belong to a beginning
        self._thinking: re.Pattern[str] | None = None  # looking: what ends the thinking that is open
        self._found_steps = False
        self._begin(inside=False)

    def feed(self, text: str) -> list[Json]:
        """Take in the next piece of the reply and return the steps that it completes, in order."""
        self._waiting.append(text)
        if "}" not in text or self.is_done:
            return []
        text = "".join(self._waiting)
        self._waiting = []
        steps: list[Json] = []
        at = 0
        while at < len(text) and not self.is_done:
            if not self._inside:
                text, at = self._carry + text[at:], 0
                at = self._look(text)
            else:
                at = self._walk(text, at, steps)
        return steps

    def members(self) -> Json:
        """Return the `parallel` that is open with those of its members that are complete, if these are more by now."""
        if not self._list or self._step == _NOTHING or self._end_of_member == self._told_member:
            return None
        self._told_member = self._end_of_member
        text = "".join(self._step_text)[: self._end_of_member]
        if not _PARALLEL.match(text):
            return None
        try:
            return json.loads(f"{text}]}}")
        except (ValueError, RecursionError):
            return None

    def _begin(self, *, inside: bool) -> None:
        self._inside = inside
        self._in_string = self._in_escape = False
        self._key = ""  # the last string outside of any step: before a bracket, its key
        self._depth: int = 0
        self._wrappers: int = 0  # how many of the open brackets are objects around the list of steps
        self._list = 0  # the depth inside the list of steps; 0: not found
        self._step: int = _NOTHING  # the depth around the step that is open
        self._step_text: list[str] = []
        self._length = 0  # of these texts
        self._end_of_member = 0  # how much of them is there when the last object in a list of the step has ended
        self._told_member = 0  # the same for the last one that was told

    def _look(self, text: str) -> int:
        """Return where the next plan may begin, or the end of the text."""
        self._carry = ""
        at = 0
        while True:
            if self._thinking is not None:
                end = self._thinking.search(text, at)
                if end is None:
                    self._carry = text[max(at, len(text) - LONGEST) :]
                    return len(text)
                at = end.end()
                self._thinking = None
            match = _START.search(text, at)
            if match is None:
                may = _MAY_START.search(text, max(at, len(text) - 100))
                self._carry = text[may.start() :] if may else text[-1:]
                return len(text)
            if not match["thinking"]:
                self._begin(inside=True)
                return match.start("bracket")
            self._thinking = end_of_thinking(match["thinking"])
            at = match.end()

    def _walk(self, text: str, at: int, steps: list[Json]) -> int:
        """Follow the brackets from `at` until the text or the outermost bracket ends; return where that is."""
        start = at  # where the step that is open begins, or goes on
        if self._in_escape:
            at += 1
            self._in_escape = False
        if self._in_string:
            at = _REST_OF_STRING.match(text, at).end()  # type: ignore[union-attr] - it matches any text
            self._in_string = not text.startswith('"', at)
            self._in_escape = text.startswith("\\", at)
            at += not self._in_string
        if not self._in_string:
            for match in _MARK.finditer(text, at):
                found = match.lastindex
                if found == _STRING:
                    if not match[2]:
                        self._in_string = True
                        self._in_escape = match.end() < len(text)
                    elif self._list == 0 and self._depth == self._wrappers:
                        self._key = match[1][1 : _LONGEST_KEY + 1]
                elif found == _OPEN:
                    if self._opens_step(match[3]):
                        start = match.start()
                    self._depth += 1
                else:
                    self._depth -= 1
                    if self._depth < self._wrappers:
                        self._wrappers = self._depth
                    if self._depth == self._step:
                        self._step_text.append(text[start : match.end()])
                        self._finish_step(steps)
                    elif self._step != _NOTHING and self._depth == self._step + 2:
                        self._end_of_member = self._length + match.end() - start
                    if self.is_done or self._depth < max(1, self._list):
                        return self._leave(match.end())
        if self._step != _NOTHING:
            self._step_text.append(text[start:])
            self._length += len(text) - start
        return len(text)

    def _opens_step(self, bracket: str) -> bool:
        """Note what the bracket opens; return whether a step begins with it."""
        if self._list:
            if self._step != _NOTHING or self._depth != self._list or bracket != "{":
                return False
            self._step = self._depth
            self._length = self._end_of_member = self._told_member = 0
            return True
        if self._depth != self._wrappers or (self._depth and PLAN.canonical(self._key) != "steps"):
            return False
        if bracket == "[":
            self._list = self._depth + 1
            self._step = _NOTHING
            self._step_text = []
            return False
        self._wrappers += 1
        if self._depth:
            return False
        self._step = 0  # a step without a list around it, unless a list is found in it
        return True

    def _finish_step(self, steps: list[Json]) -> None:
        text = "".join(self._step_text)
        self._step = _NOTHING
        self._step_text = []
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            self.is_done = True  # the text has to be mended, which is not for here
            return
        kinds, sure = find_kind(value)
        if kinds and (sure or self._list):
            steps.append(value)
            self._found_steps = True
        elif self._list and self._found_steps:
            self.is_done = True

    def _leave(self, at: int) -> int:
        """The list of steps has ended, or a step without one."""
        if self._list and self._found_steps:
            self.is_done = True
        self._begin(inside=False)
        return at
