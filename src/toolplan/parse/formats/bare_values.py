"""Calls whose values stand bare between tags, as in Qwen's, GLM's and MiniMax's formats.

They are not XML: nothing is escaped, so `a < b && c` is a value. A value ends at its closing tag where something
follows that can follow a value; a closing tag inside of a text is followed by more text. Tags of the same kind inside a
value are counted, so that a text about calls stays whole. What does not add up is a damaged call.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from toolplan.diagnostics import formats as say
from toolplan.errors import UsageError
from toolplan.parse.formats.arguments import Refused, json_in, typed, untyped
from toolplan.parse.formats.cursor import Marks, Reader
from toolplan.parse.formats.scan import FoundValue, Scan
from toolplan.values import Json

__all__ = ["VALUE_BEGINS", "VALUE_ENDS", "BareCall", "fits", "without_line_ends"]


@dataclass
class BareCall:
    """The tags of a call with bare values.

    `begin` begins an argument, `key` reads its name up to the value and says whether that is certainly text (None when
    it cannot be read), `value_end` ends the value, `end` the call. `openers` and `closers` are the tags around calls.
    """

    begin: Marks
    key: Callable[[Scan], Reader[tuple[str, bool | None] | None]]
    value_end: Marks
    end: Marks
    openers: Marks
    closers: Marks
    nested: Marks | None = None
    """What begins another value inside of one, where that is not `begin`."""
    trim: Callable[[str], str] = str
    marks: tuple[str, ...] = field(init=False)
    """What must not stand in a bare value."""

    def __post_init__(self) -> None:
        nested = self.nested or self.begin
        self._tags = Marks((*nested.marks, *self.value_end.marks))
        self._opening = frozenset(nested.marks)
        self._after = Marks((*self.begin.marks, *self.end.marks))
        every = (self.begin, nested, self.value_end, self.end, self.openers, self.closers)
        self.marks = tuple(dict.fromkeys(mark for marks in every for mark in marks.marks))

    def read(self, scan: Scan, start: int, name: str) -> Reader[None]:
        """Pass the arguments and the end of the call of `name`, and hand it on."""
        scan.cursor.record()
        arguments: dict[str, Json] = {}
        tool = scan.tool(name)
        repairs: list[str] = []
        problem = ""
        is_doubtful = False
        while True:
            yield from scan.cursor.space()
            mark = yield from scan.cursor.mark(self._after)
            if mark not in self.begin.marks:
                break
            key = yield from self.key(scan)
            found = (yield from self._value(scan)) if key is not None else None
            if key is None or found is None:
                mark = ""
                break
            text, is_doubled = found
            if is_doubled:
                repairs.append(f"left out a closing tag that stood twice behind `{key[0]}`")
            name_of, is_text = key
            if name_of in arguments:
                problem = f"the argument `{name_of}` is given twice"
            is_doubtful = is_doubtful or any(each in text for each in self.marks)
            text = self.trim(text)
            if is_text is None:
                arguments[name_of] = typed(tool, name_of, text, self.marks)
            else:
                arguments[name_of] = text if is_text else json_in(text)
        if not mark:
            expected = " or ".join(f"`{marks.marks[-1]}`" for marks in (self.begin, self.end))
            yield from self._broken(scan, start, name, f"expected {expected}")
            return
        raw = scan.cursor.recorded()
        if problem:
            scan.damaged(
                FoundValue(raw, None, Refused("broken", problem, _HELP)), start, self.openers, self.closers, name
            )
        elif is_doubtful and scan.is_behind_damage:
            scan.broken(say.doubtful_call(scan.place(start), name), name)
        else:
            scan.call(name, arguments, start, repairs=repairs)

    def _broken(self, scan: Scan, start: int, name: str, problem: str) -> Reader[None]:
        raw = scan.cursor.recorded()
        refused = Refused("cut")
        if any(mark in raw for mark in (*self.end.marks, *self.closers.marks)):
            endings = " or ".join(f"`{marks.marks[-1]}`" for marks in (self.value_end, self.end))
            refused = Refused("broken", f"{endings} is missing", _HELP)
        elif (yield from scan.cursor.ahead()):
            refused = Refused("broken", problem, _HELP)
            rest, _ = yield from scan.cursor.until(self.closers)
            raw += rest
        scan.damaged(FoundValue(raw, None, refused), start, self.openers, self.closers, name)

    def _value(self, scan: Scan) -> Reader[tuple[str, bool] | None]:
        """Pass a bare value and its closing tag; return it, and whether the tag stood there twice.

        None when the reply ends before it does.
        """
        pieces: list[str] = []
        depth = 0
        end: int | None = None
        """How many pieces stand before a closing tag that nothing but white space has followed so far."""
        while True:
            text, mark = yield from scan.cursor.until(self._tags)
            pieces.append(text)
            if text or mark in self._opening:
                end = None
            if not mark:
                return None
            if mark in self._opening:
                depth += 1
            elif depth:
                depth -= 1
            else:
                gap = yield from scan.cursor.space()
                if (yield from scan.cursor.mark(self._after, take=False)) or not (yield from scan.cursor.ahead()):
                    scan.cursor.put_back(gap)
                    return "".join(pieces[:end]), end is not None
                end = len(pieces) if end is None else end
                pieces += [mark, gap]
                continue
            pieces.append(mark)

    def bare(self, value: Json) -> str:
        """Return an argument's value as it is written."""
        return untyped(value, self.marks)


VALUE_BEGINS = re.compile(r"(?:<[^<>\s]{0,20}parameter\b[^<>\n]{0,100}>|<arg_value>|<escape>|<\|\"\|>)\s*\Z")
"""The end of a text behind which a bare value begins, in any format."""
VALUE_ENDS = re.compile(r"\s*(?:</[^<>\s]{0,20}parameter>|</arg_value>|<escape>|<\|\"\|>)")
"""What stands behind a bare value."""
_HELP = "make the call again, with the tags of the format around each argument"


def fits(name: str) -> str:
    """Return a name that can stand in a tag. Raises `UsageError` for any other."""
    if not name or name != name.strip() or any(ch in name for ch in "<>\"'\n\r="):
        raise UsageError(f"the name {name!r} cannot be written in a tag")
    return name


def without_line_ends(text: str) -> str:
    """Return a value without the line end that some templates put at its beginning and at its end."""
    text = text[2:] if text.startswith("\r\n") else text[1:] if text.startswith("\n") else text
    return text[:-2] if text.endswith("\r\n") else text[:-1] if text.endswith("\n") else text
