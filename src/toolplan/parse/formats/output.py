"""Handing on the parts of a reply: what can go at once, and what has to wait.

Text goes at once. A call waits for the first thing behind it, because a bracket or the end of a value there shows that
it stood inside of something, as data. A piece that may turn out to be text (`try_out`) waits until it is `accept`ed or
`reject`ed. And behind a damaged call everything waits for the end of the reply: if a closing mark is left over there,
what looked like calls was perhaps text of the damaged one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from toolplan.diagnostics import Place
from toolplan.diagnostics import formats as say
from toolplan.parse.formats.cursor import Cursor
from toolplan.parse.formats.parts import BrokenCall, CallPart, Part, TextPart, ThinkingPart

__all__ = ["QUOTES", "Output", "Trial"]

QUOTES = frozenset("\"'`“‘「『«")
"""Directly behind one of these a mark is quoted: somebody speaks of it, or it stands in a text."""


@dataclass
class Trial:
    """What a piece of the reply that may turn out to be text must be able to restore."""

    was_waiting: bool
    state: tuple[Any, ...]
    ids: int


class Output:
    """What was said and called so far. `cursor` is where the reply is being read."""

    def __init__(self) -> None:
        self.cursor = Cursor()
        self.is_cut = False
        """Whether the reply ended because its room did. Known when it has ended."""
        self.is_blank_line = True
        """Whether nothing but white space stands before the cursor on its line."""
        self.before = ""
        """The last character of the text that was said, if nothing else came after it."""
        self.line = ""
        """The beginning of the line that the cursor is in, as far as it is text."""
        self.is_comment = False
        """Whether a comment of HTML is open."""
        self.is_blank = True
        """Whether nothing but white space and thinking stands before the cursor."""
        self.said = 0
        """How many characters of text stand before the cursor, but for white space at its beginning."""
        self.asks = False
        """Whether the text so far has a question in it."""
        self.calls = 0
        """How many calls there are, broken ones included."""
        self.formats: list[str] = []
        """The format of each call."""
        self.format = ""
        """The format that is being read."""
        self.style = ""
        """`react` or the like once the reply is certainly written so."""
        self.ids: dict[str, None] = {}
        """The ids of the calls so far, in order."""
        self._out: list[Part] = []
        self._waiting: list[Part] | None = None
        self._held: list[list[Part]] = []
        self._fresh: CallPart | BrokenCall | None = None
        """The last call, as long as nothing but white space has followed it."""
        self.recent = ""
        """The end of the text so far."""
        self._gap = ""
        self._is_inline = False
        """Whether there is text in the line that the cursor is in."""
        self._tail = ""
        self._blank_above = True
        self._follows_call = False
        self._eats_space = False
        """Whether nothing but thinking came before, so that white space here is no text."""

    # --- handing on --------------------------------------------------------------------------------------------------

    def text(self, text: str) -> None:
        """Hand on text. White space between calls, and behind the last one, is dropped."""
        if text:
            self._text(text)
            self._note_line(text)

    def _text(self, text: str) -> None:
        stripped = text.strip()
        line = text.rpartition("\n")[2]
        self.is_blank_line = (self.is_blank_line or "\n" in text) and not line.strip()
        self.before = text[-1]
        if self._eats_space:
            text = text.lstrip()
            if not text:
                return
            self._eats_space = False
        if self._fresh is not None and not self._gap and text[0] in _INSIDE_JSON:
            self.doubt()
        if self._follows_call:
            if not stripped:
                self._gap += text
                return
            text = self._gap + text
            self._gap = ""
            self._follows_call = False
        self.recent = (self.recent + text)[-_RECENT:]
        self.said += len(text) if self.said else len(text.lstrip())
        if stripped:
            self.is_blank = False
            self.asks = self.asks or "?" in stripped or "？" in stripped
        self._put(TextPart(text))

    def _note_line(self, text: str) -> None:
        """Note how the last line of the text begins, and whether a comment is open."""
        head, newline, line = text.rpartition("\n")
        if newline:
            above = head.rpartition("\n")
            self._blank_above = not above[2].strip() and (bool(above[1]) or not self._is_inline)
            self.line = line[:_LINE_BEGINNING]
            self._is_inline = False
        elif len(self.line) < _LINE_BEGINNING:
            self.line = (self.line + line)[:_LINE_BEGINNING]
        self._is_inline = self._is_inline or bool(line.strip())
        seen = self._tail + text
        opened, closed = seen.rfind("<!--"), seen.rfind("-->")
        if opened != closed:
            self.is_comment = opened > closed
        self._tail = seen[-3:]

    @property
    def is_spoken_of(self) -> bool:
        """Whether a mark here is quoted: behind a quotation mark, in a quoted or indented line, in a comment."""
        if self.before in QUOTES or self.is_comment or self.line.lstrip().startswith(">"):
            return True
        is_indented = self.line.startswith(("    ", "\t")) and self.is_blank_line
        return is_indented and self._blank_above and not self.is_blank and not self.calls

    def thinking(self, text: str, *, all_before: bool = False) -> None:
        """Hand on thinking."""
        if all_before:
            self._settle()
            self._out += self._waiting or ()
            self._waiting = None
            self.ids.clear()
            self.formats.clear()
            self.calls = self.said = 0
            self.recent, self.line, self._is_inline, self._blank_above = "", "", False, True
            self._gap, self._follows_call, self.asks, self.is_blank = "", False, False, True
            self._out.append(ThinkingPart(text, True))
        elif text:
            self._put(ThinkingPart(text))

    def _settle(self) -> None:
        """Hand on the last call: nothing behind it has made it doubtful."""
        if self._fresh is not None:
            part, self._fresh = self._fresh, None
            self._put(part)

    def doubt(self) -> None:
        """Note that the last call is directly followed by what closes a value: it stood inside of that, as data."""
        if isinstance(part := self._fresh, CallPart):
            diagnostic = say.doubtful_call(Place(), part.name)
            self._fresh = BrokenCall(part.position, part.id, part.name, diagnostic)

    def _put(self, part: Part) -> None:
        self._settle()
        if self._held:
            self._held[-1].append(part)
        elif self._waiting is not None:
            self._waiting.append(part)
        else:
            self._out.append(part)

    def taken(self) -> list[Part]:
        """Return the parts that can be handed on."""
        parts = self._out
        self._out = []
        return parts

    def end(self) -> None:
        """Note that the reply has ended and everything in it is read."""
        self._settle()
        if self._waiting is not None:
            if self.is_cut:
                self.left_over()  # the mark that would have told may have been cut off
            self._out += self._waiting
            self._waiting = None

    def mark_passed(self) -> None:
        """Note that a mark of a format was passed: white space behind it is no text."""
        self._follows_call = True
        self.is_blank_line = False
        self.before = self.line = ""

    def mark_thought(self) -> None:
        """Note that thinking has ended: if nothing was said yet, white space behind it is no text."""
        self._eats_space = self.is_blank
        self.is_blank_line = True
        self.before = self.line = ""

    @property
    def follows_call(self) -> bool:
        """Whether nothing but white space stands between the cursor and a call before it."""
        return self._follows_call

    # --- a piece that may be a call ----------------------------------------------------------------------------------

    def try_out(self) -> Trial:
        """Begin a piece that may turn out to be text. Ends with `accept` or `reject`. May be nested."""
        self.cursor.record()
        self._settle()
        self._held.append([])
        state = tuple(getattr(self, name) for name in _STATE)
        return Trial(self._waiting is not None, state, len(self.ids))

    def on_trial(self) -> list[Part]:
        """Return the parts of the piece so far."""
        return [*self._held[-1], *([self._fresh] if self._fresh is not None else ())]

    def accept(self, trial: Trial) -> None:
        """Hand on the parts of the piece."""
        self.cursor.recorded()
        last, self._fresh = self._fresh, None
        for part in self._held.pop():
            self._put(part)
        self._fresh = last

    def reject(self, trial: Trial, lead: str = "") -> None:
        """Hand on the piece as text; `lead` is what was passed of it before."""
        text = lead + self.cursor.recorded()
        self._held.pop()
        self._fresh = None
        for name, value in zip(_STATE, trial.state, strict=True):
            setattr(self, name, value)
        while len(self.ids) > trial.ids:
            self.ids.popitem()
        del self.formats[self.calls :]
        if not trial.was_waiting:
            self._waiting = None
        self.text(text)

    def undo(self, trial: Trial) -> None:
        """Have the piece stand before the cursor again, as if nothing of it had been read."""
        self.cursor.put_back(self.cursor.recorded())
        self.cursor.record()
        self.reject(trial)

    # --- calls -------------------------------------------------------------------------------------------------------

    def hand_on(self, part: CallPart | BrokenCall) -> None:
        """Hand on a call."""
        self.ids[part.id] = None
        self.formats.append(self.format)
        self.calls += 1
        self._gap = ""
        self._follows_call = True
        self.is_blank = self.is_blank_line = False
        self.before = self.line = ""
        self._settle()
        self._fresh = part

    def wait(self) -> None:
        """Let everything from here on wait for the end of the reply: a damaged call came before."""
        self._waiting = [] if self._waiting is None else self._waiting

    @property
    def is_behind_damage(self) -> bool:
        """Whether a damaged call came before, so that what looks like a call may be a text of it."""
        return self._waiting is not None

    def left_over(self) -> None:
        """Note a closing mark that closes nothing: calls after a damaged one were perhaps a text in it."""
        if self._waiting is not None:
            self.doubt()
        for parts in (self._waiting or [], *self._held):
            is_behind = parts is self._waiting
            for index, part in enumerate(parts):
                if isinstance(part, CallPart) and is_behind:
                    parts[index] = BrokenCall(part.position, part.id, part.name, say.doubtful_call(Place(), part.name))
                is_behind = is_behind or isinstance(part, BrokenCall)


_LINE_BEGINNING = 20
_RECENT = 500

_INSIDE_JSON = frozenset('"}]')
_STATE = (
    "calls",
    "is_blank",
    "is_blank_line",
    "before",
    "line",
    "is_comment",
    "recent",
    "_is_inline",
    "_tail",
    "_blank_above",
    "said",
    "asks",
    "format",
    "style",
    "_gap",
    "_follows_call",
    "_eats_space",
)
"""What a piece that turns out to be text must not have changed."""
