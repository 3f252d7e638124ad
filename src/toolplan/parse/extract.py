"""Find the plan in a reply.

One walk over the text from left to right. Thinking is skipped; wherever a bracket could begin a JSON value, the value
is decoded (by a scanner that knows JSON strings, so that a fence or a tag inside a string ends nothing) and the walk
goes on behind it. Among the values found, those that look like a plan count:

- one of them, or several that are the same: that is the plan;
- several single steps with nothing but white space, commas or semicolons between them: one plan of these steps;
- several different ones: an error, because nothing says which is meant;
- none: the reply is text (an answer, or a program in another notation), unless it is JSON and nothing else.

A bracket glued to something else (`call(payload={...`) is data of that, not a plan, and neither is what the words
around it refuse, ask about or give as an example (see `meant.py`); where the words leave that open, the plan says so in
its repairs. Text that begins like a plan and then breaks is never passed over: nothing runs beside a plan that could
not be read.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection
from dataclasses import dataclass, field

from toolplan.diagnostics import Diagnostic, Place, Source
from toolplan.diagnostics import reading as say
from toolplan.diagnostics.formats import broken_call
from toolplan.errors import PlanRejected
from toolplan.parse.announcing import Matter
from toolplan.parse.formats.bare_values import VALUE_BEGINS, VALUE_ENDS
from toolplan.parse.formats.invented import RESULT_MARKS
from toolplan.parse.formats.scan import call_in
from toolplan.parse.formats.scanner import QUOTES, call_marks
from toolplan.parse.json_text import Decoded, Unacceptable, Unreadable, decode, describe
from toolplan.parse.meant import UNCLEAR, Meaning, how_meant
from toolplan.parse.mend import Damage, mend
from toolplan.parse.plan_like import is_broken_plan, is_plan
from toolplan.parse.spellings import PLAN, find_kind
from toolplan.parse.thinking_tags import CLOSING, OPENING, end_of_thinking
from toolplan.values import Json

__all__ = ["MAX_CHARACTERS", "MAX_DATA_CHARACTERS", "JsonPlan", "Text", "extract", "whole_plan"]

MAX_CHARACTERS = 2_000_000
"""Longer replies are refused. A plan of 10,000 steps has about as many."""
MAX_DATA_CHARACTERS = 50_000_000
"""A plan that a program gives as data may carry more, and has to be read only once."""


MAX_FAILURES = 5_000
"""After so many brackets that began nothing, the rest of a reply is taken for text."""


@dataclass(frozen=True, slots=True)
class JsonPlan:
    """A JSON value that looks like a plan. `faults` are problems of the JSON itself, found on the way."""

    value: Json
    source: Source
    faults: tuple[Diagnostic, ...] = ()
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Text:
    """A reply without a JSON plan: what is outside its thinking."""

    text: str


def whole_plan(
    reply: str, tools: Collection[str] = (), name: str = "plan", limit: int = MAX_CHARACTERS
) -> JsonPlan | None:
    """Return the plan that the whole reply is, as it should be; None when there is anything else in it.

    None as well for a reply of more than `limit` characters.
    """
    start = len(reply) - len(reply.lstrip())
    opening = reply[start : start + 1]
    if opening not in ("{", "[", '"') or len(reply) > limit:
        return None
    try:
        decoded = decode(reply, start)
    except (Unreadable, Unacceptable):
        return None
    value = decoded.value
    if reply[decoded.end :].strip():
        return None
    if isinstance(value, str):  # JSON text of JSON
        inner = whole_plan(value, tools, name)
        repair = "read the plan out of a JSON text"
        return inner and JsonPlan(inner.value, inner.source, inner.faults, (repair, *inner.repairs))
    if not is_plan(value, tools, alone=True) and not is_broken_plan(value, tools, fenced=True):
        return None
    return JsonPlan(value, Source(reply, name, start, json=True), decoded.faults, decoded.repairs)


def extract(
    reply: str, tools: Collection[str] = (), name: str = "plan", matter: Matter | None = None
) -> JsonPlan | Text:
    """Return the JSON plan somewhere in `reply`, or its text when there is none.

    `tools` are the names of the tools, if they are known: they help to tell a call from any other object with a name.
    `matter` is what else is known of what the plan is about. Raises `PlanRejected` for a plan that is cut off, damaged
    or not the only one, for JSON that is no plan, and for an empty reply.
    """
    if len(reply) > MAX_CHARACTERS:
        place = Place(start=0, end=1)
        raise _rejected(say.too_large(place, "characters", MAX_CHARACTERS, len(reply)), reply, name)
    return _Walk(reply, tools, name, matter or Matter(tools)).run()


def _rejected(diagnostic: Diagnostic, text: str, name: str) -> PlanRejected:
    return PlanRejected([diagnostic], Source(text, name))


_LANDMARK = re.compile(
    rf"(?P<opening>{OPENING})|(?P<closing>{CLOSING})"
    r"|(?P<fence>```+|~~~+)[ \t]*(?P<language>[\w+#.-]*)"
    r"|(?P<bracket>[\[{])",
    re.IGNORECASE,
)
_SPACE = re.compile(r"\s*")
_JSON_LANGUAGES = frozenset(("", "json", "json5", "jsonc", "jsonl", "plan", "text", "txt"))
_PYTHON_LANGUAGES = frozenset(("python", "py", "python3", "tool_code"))
_GLUE = re.compile(r"[=(\[{$'\"\\%@&`]|[^\W\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\U0010ffff]")
"""Directly behind one of these a bracket belongs to something else: a program, a template, a path, quoted code.

Not behind letters of scripts that put no spaces between words, such as Chinese: a plan may stand there.
"""
_LIKE_JSON = re.compile(r"""[\[{]\s*(?:["'“‘\[{\]}\w#-]|//|/\*)""")
_LIKE_PLAN = re.compile(
    r"""(?:\btool_name|\btool_calls_sequence|["'“](?:tool_name|tool|function|name|steps|plan|tool_calls_sequence"""
    r"""|tool_calls|arguments|args|parameters|for[_ ]?each|ask_model|ask_user|cannot|final_answer\w*|let|if|answer))"""
    r"""["'”]?\s*[:：]"""
)
_JSON_FENCE = re.compile(r"(?:```+|~~~+)[ \t]*(?:json[5cl]?|plan)[ \t]*\r?\n\s*\Z", re.IGNORECASE)
_MORE_JSON = re.compile(r'\s*([}\]]|[,:](?=\s*["{\[]))')
"""Behind a plan, the rest of something larger: a bracket too many closed it early."""
_BRACKETS = re.compile(r'"(?:[^"\\]++|\\.)*+"|([\[{])|([\]}])', re.DOTALL)
_BETWEEN_STEPS = re.compile(r"[\s,;]*\Z")
_FENCE_AROUND = re.compile(r"(?<![`~])(?:```++|~~~++)[ \t]*[\w+#.-]*[ \t]*\n?\s*\Z|\A\s*(?:```+|~~~+)[ \t]*(?:\n|\Z)")
_INDENTED = re.compile(r"\n[ \t]*\n(?: {4}|\t)[ \t]*\Z")
"""A blank line and then one of indented code."""
_CLOSING_MARK = re.compile(r"\A\s*</[\w:|]+>")
_KEY_BEFORE = re.compile(r"""([\w.\-]+)["'”][ \t]*[:：]\s*\Z""")
_KEY_REACH, _TAG_REACH = 60, 160
_MARK_REACH = 80
"""So far before a value a mark for calls, with white space behind it, is looked for."""
_INVISIBLE = "\ufeff \t\r\n"


@dataclass(frozen=True, slots=True)
class _Value:
    """A JSON value found in the reply. `mended` is its text, where that had to be rewritten."""

    decoded: Decoded
    start: int
    end: int
    mended: str | None = None
    repairs: tuple[str, ...] = ()
    glued: bool = False
    fenced: bool = False
    """Whether it stands at the beginning of a fence for JSON."""


@dataclass
class _Walk:
    """The walk over one reply, and what was found on it."""

    reply: str
    tools: Collection[str]
    name: str
    matter: Matter
    values: list[_Value] = field(default_factory=list[_Value])
    has_program: bool = False
    """Whether there is a fenced program in another notation."""
    prose: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """What is neither thinking nor a value nor a fence."""
    thoughts: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    damage: Damage | None = None
    gap: Damage | None = None
    """A value that looks like a plan with something left out: perhaps a word about what plans look like."""
    thinking: str = ""
    """`closed` or `open` when there was any."""
    invented: int = 0
    """Where the first result stands that the model has invented. Known when the walk is over."""
    meaning: Meaning = "meant"
    """What the words around the plan leave of it."""
    failures: int = 0
    """How often a bracket was taken for the beginning of a value in vain."""

    def run(self) -> JsonPlan | Text:
        at = seen = 0
        while match := _LANDMARK.search(self.reply, at):
            self.prose.append((seen, match.start()))
            at = seen = self._pass(match)
            if match.group("bracket") and at == match.start() + 1:
                seen -= 1
        self.prose.append((seen, len(self.reply)))
        return self._decide()

    def _pass(self, match: re.Match[str]) -> int:
        """Note what is at the landmark and return where the walk goes on."""
        if match.group("opening") or match.group("closing"):
            return self._thinking(match)
        if match.group("fence"):
            return self._fence(match)
        return self._bracket(match.start())

    def _thinking(self, match: re.Match[str]) -> int:
        self.thinking = "closed"
        if match.group("closing"):  # the server kept the opening tag for itself: all so far was thinking
            self.values.clear()
            self.has_program = False
            self.prose.clear()
            self.damage = self.gap = None
            self.thoughts = [(0, match.end())]
            return match.end()
        end = end_of_thinking(match.group("opening")).search(self.reply, match.end())
        if end is None:
            self.thinking = "open"
        stop = end.end() if end else len(self.reply)
        self.thoughts.append((match.start(), stop))
        return stop

    def _fence(self, match: re.Match[str]) -> int:
        language = match.group("language").lower()
        inside = _SPACE.match(self.reply, match.end())
        is_markup = inside is not None and call_marks().match(self.reply, inside.end()) is not None
        if language in _JSON_LANGUAGES and not is_markup:
            return match.end()
        end = re.compile(rf"^[ \t]*{match.group('fence')}[ \t]*$", re.MULTILINE).search(self.reply, match.end())
        if is_markup:  # a call in a model's own format, in a fence: an example
            return end.end() if end else len(self.reply)
        start, stop = match.end(), end.start() if end else len(self.reply)
        if self.reply[start:stop].lstrip().startswith(("[", "{")):
            return match.end()
        if language in _PYTHON_LANGUAGES:
            self.has_program = True
        return end.end() if end else len(self.reply)

    def _bracket(self, start: int) -> int:
        if not _LIKE_JSON.match(self.reply, start):
            return start + 1
        if self.failures > MAX_FAILURES:
            return len(self.reply)
        glued = bool(start and _GLUE.match(self.reply[start - 1])) and not self.reply.startswith("```", start - 3)
        try:
            decoded = decode(self.reply, start)
        except Unreadable as error:
            return self._damaged(start, error.at, glued)
        except Unacceptable as error:
            if _LIKE_PLAN.search(self.reply, start) or not self._has_prose():
                raise _rejected(error.diagnostic, self.reply, self.name) from None
            return len(self.reply)
        fenced = bool(_JSON_FENCE.search(self.reply, max(0, start - 80), start))
        self.values.append(_Value(decoded, start, decoded.end, None, (), glued, fenced))
        return decoded.end

    def _damaged(self, start: int, at: int, glued: bool) -> int:
        """Note the value if it can be mended, the damage if it looks like a plan; return where the walk goes on.

        Whatever was passed before the reading failed was inside this value, so the walk goes on behind it.
        """
        mended = mend(self.reply, start)
        if isinstance(mended, Damage):
            self.failures += 1
            if mended.kind == "gap" and (end := self._end_of(start)) is not None:
                self.gap = self.gap or (mended if not glued and _LIKE_PLAN.search(self.reply, start, end) else None)
                return end
            if self.damage is None and not glued and _LIKE_PLAN.search(self.reply, start, mended.at + 200):
                self.damage = mended
            return max(at, mended.at, start + 1)
        text = self.reply[:start] + mended.text + self.reply[mended.end :]
        try:
            decoded = decode(text, start)
        except Unacceptable as error:
            raise _rejected(error.diagnostic, text, self.name) from None
        fenced = bool(_JSON_FENCE.search(self.reply, max(0, start - 80), start))
        self.values.append(_Value(decoded, start, mended.end, mended.text, mended.repairs, glued, fenced))
        return mended.end

    def _end_of(self, start: int) -> int | None:
        """Return where the bracket at `start` is closed, whatever stands between."""
        depth = 0
        for match in _BRACKETS.finditer(self.reply, start):
            depth += 1 if match[1] else -1 if match[2] else 0
            if not depth:
                return match.end()
        self.failures += MAX_FAILURES // 20  # the rest of the text was looked through, which may happen only so often
        return None

    def _has_prose(self) -> bool:
        return any(self.reply[start:end].strip(_INVISIBLE + "`") for start, end in self.prose)

    def _decide(self) -> JsonPlan | Text:
        alone = (
            len(self.values) == 1
            and self.damage is None
            and self.gap is None
            and not self.has_program
            and not self._has_prose()
        )
        self.invented = self._invented()
        plans = [v for v in self.values if (alone or not v.glued) and self._is_plan(v, alone)]
        if not alone and (data := next((plan for plan in plans if self._in_tags(plan)), None)) is not None:
            problem = "a value between tags stands outside of any call"
            place = Place(start=data.start, end=data.start + 1)
            raise _rejected(broken_call(place, None, problem), self.reply, self.name)
        damage = self.damage or (self.gap if not plans else None)
        if damage is not None:
            raise _rejected(_worded(damage, self.reply), self.reply, self.name)
        if not plans:
            return self._text(self.values[0] if alone else None)
        self.meaning = self._how_meant(plans) if self._has_prose() else "meant"
        if self.meaning == "spoken of":
            return self._text(None)
        if len(plans) > 1:
            if self._are_lines(plans):
                return self._joined(plans)
            if any(plan.decoded.value != plans[0].decoded.value for plan in plans):
                places = [Place(start=plan.start, end=plan.start + 1) for plan in plans]
                raise _rejected(say.several_plans(places), self.reply, self.name)
        behind = _MORE_JSON.match(self.reply, plans[-1].end)
        if behind:
            place = Place(start=behind.start(1), end=behind.end(1))
            problem = say.broken_json(place, f"found `{behind[1]}` after its end", "check the brackets before it")
            raise _rejected(problem, self.reply, self.name)
        return self._plan(plans[-1])

    def _how_meant(self, plans: list[_Value]) -> Meaning:
        """Return what the words around the plans leave of them. That something cannot be done needs no leave."""
        if all(isinstance(plan.decoded.value, dict) and "cannot" in plan.decoded.value for plan in plans):
            return "meant"
        start = max((value.end for value in self.values if value.end <= plans[0].start), default=0)
        before, behind = self._said(start, plans[0].start), self._said(plans[-1].end, None)
        mark = next((mark for mark in call_marks().marks if before.rstrip().endswith(mark)), None)
        if mark is not None:  # marks of a format around a whole plan
            before, behind = before.rstrip().removesuffix(mark), _CLOSING_MARK.sub("", behind)
        meaning = how_meant(before, behind, self.matter.also(self.reply[plans[0].start : plans[0].end]))
        gaps = [self._said(left.end, right.start) for left, right in itertools.pairwise(plans)]
        is_more = start > 0 or any(_BETWEEN_STEPS.match(gap) is None for gap in gaps)
        return "unclear" if meaning == "meant" and is_more else meaning

    def _said(self, start: int, end: int | None) -> str:
        """Return what the reply says between two places: no thinking, and not the fence around a plan."""
        end = len(self.reply) if end is None else end
        kept: list[str] = []
        for thought_start, thought_end in self.thoughts:
            if start < thought_end <= end:
                kept.append(self.reply[start : max(thought_start, start)])
                start = thought_end
        return _FENCE_AROUND.sub("", "".join([*kept, self.reply[start:end]]))

    def _is_plan(self, found: _Value, alone: bool) -> bool:
        value = found.decoded.value
        if not alone and (found.start > self.invented or self._is_quoted(found) or self._has_key(found)):
            return False
        return is_plan(value, self.tools, alone=alone) or is_broken_plan(value, self.tools, found.fenced or alone)

    def _has_key(self, found: _Value) -> bool:
        """Whether a key that no list of steps has stands before the value: it is data of something damaged."""
        key = _KEY_BEFORE.search(self.reply, max(0, found.start - _KEY_REACH), found.start)
        return key is not None and PLAN.canonical(key[1]) != "steps"

    def _in_tags(self, found: _Value) -> bool:
        """Whether the value stands in the tags that some format has around a bare value."""
        before = max(0, found.start - _TAG_REACH)
        return bool(VALUE_BEGINS.search(self.reply, before, found.start) or VALUE_ENDS.match(self.reply, found.end))

    def _invented(self) -> int:
        """Return where the first result of a tool begins that the model has written itself, outside of any value."""
        at, values = 0, iter(self.values)
        value = next(values, None)
        while mark := RESULT_MARKS.search(self.reply, at):
            while value is not None and value.end <= mark.start():
                value = next(values, None)
            if value is None or mark.start() < value.start:
                return mark.start()
            at = value.end
        return len(self.reply)

    def _is_quoted(self, found: _Value) -> bool:
        """Whether the value stands behind a mark for calls that a format's reader has taken for text."""
        before = self.reply[max(0, found.start - _MARK_REACH) : found.start].rstrip()
        marks = call_marks().marks
        if not before.endswith(marks):
            return False
        before = before.removesuffix(next(mark for mark in marks if before.endswith(mark)))
        is_code = _INDENTED.search(before) is not None
        return call_in(found.decoded.value) is not None or before[-1:] in QUOTES or is_code

    def _text(self, alone: _Value | None) -> Text:
        if alone is not None:
            place = Place(start=alone.start, end=alone.end)
            value = alone.decoded.value
            problem = say.not_a_plan(place, describe(value)) if value else say.empty_plan(place)
            raise _rejected(problem, self.reply, self.name)
        kept: list[str] = []
        at = 0
        for start, end in self.thoughts:
            kept.append(self.reply[at:start])
            at = end
        text = "".join([*kept, self.reply[at:]])
        if not text.strip(_INVISIBLE):
            raise _rejected(say.empty_reply(thinking=self.thinking), self.reply, self.name)
        return Text(text)

    def _are_lines(self, plans: list[_Value]) -> bool:
        """Whether the plans are single steps, one behind the other: a list whose brackets were left out."""
        if not all(isinstance(plan.decoded.value, dict) and find_kind(plan.decoded.value)[0] for plan in plans):
            return False
        gaps = itertools.pairwise(plans)
        return all(_BETWEEN_STEPS.match(self.reply[left.end : right.start]) for left, right in gaps)

    def _joined(self, plans: list[_Value]) -> JsonPlan:
        text = "[" + ",\n".join(plan.mended or self.reply[plan.start : plan.end] for plan in plans) + "]"
        decoded = decode(text)
        repairs = [
            *self._doubts(),
            "read steps that stood one behind the other as one list",
            *(r for plan in plans for r in plan.repairs),
        ]
        source = Source(text, self.name, 0, json=True)
        return JsonPlan(decoded.value, source, decoded.faults, (*dict.fromkeys(repairs), *decoded.repairs))

    def _plan(self, value: _Value) -> JsonPlan:
        text = self.reply
        repairs = (*self._doubts(), *value.repairs, *value.decoded.repairs)
        if value.mended is not None:
            text = text[: value.start] + value.mended + text[value.end :]
        if "\ufeff" in text[: value.start]:
            repairs = ("left out a byte order mark", *repairs)
        source = Source(text, self.name, value.start, json=True)
        return JsonPlan(value.decoded.value, source, value.decoded.faults, repairs)

    def _doubts(self) -> tuple[str, ...]:
        return (UNCLEAR,) if self.meaning == "unclear" else ()


def _worded(damage: Damage, text: str) -> Diagnostic:
    place = Place(start=damage.at, end=min(damage.at + 1, len(text)))
    if damage.kind != "cut":
        return say.broken_json(place, damage.problem, damage.help)
    opened = Place(start=damage.open[0][1], end=damage.open[0][1] + 1)
    return say.cut_off(place, ["text" if mark == '"' else mark for mark, _ in damage.open], opened)
