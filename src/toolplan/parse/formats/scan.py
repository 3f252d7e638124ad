"""The reading of one reply: what its readers share.

A reader of a format knows its marks and what stands between them. What is the same for all formats is here: values in
JSON, ids, names and arguments mended by the tools, and what happens after a damaged call. There reading goes on at the
next mark that begins a line, or that directly follows the end of a call, so that one damaged call does not swallow the
next; see `output` for what that means for the calls behind it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from toolplan.diagnostics import Diagnostic, Place
from toolplan.diagnostics import formats as say
from toolplan.diagnostics.names import unknown_tool
from toolplan.parse.formats.arguments import (
    ReadValue,
    Refused,
    as_arguments,
    by_position,
    fitted,
    misfit,
    object_of,
    read_value,
)
from toolplan.parse.formats.cursor import Marks, Reader
from toolplan.parse.formats.output import Output
from toolplan.parse.formats.parts import BrokenCall, CallPart
from toolplan.parse.json_text import Unacceptable, Unreadable, decode, describe
from toolplan.parse.spellings import CALL
from toolplan.parse.tool_names import meant_tool
from toolplan.tools import Tool, ToolSet
from toolplan.values import Json

__all__ = ["MAX_DAMAGES", "FoundValue", "Scan", "call_in", "named_in", "says_arguments"]

MAX_DAMAGES = 32
"""After so many damaged calls the rest of a reply is not searched for further ones."""


@dataclass(frozen=True, slots=True)
class FoundValue:
    """What stands where a JSON value is expected: the value, or why there is none. `raw` is its text."""

    raw: str
    read: ReadValue | None
    refused: Refused | None = None


class Scan(Output):
    """The state of reading one reply: what was read so far, and where to look for what."""

    def __init__(self, tools: ToolSet | None, *, named: bool) -> None:
        super().__init__()
        self.tools = tools
        self.named = named
        """Whether the format was named; else the text alone has to tell."""
        self.openers: dict[str, Any] = {}
        """Who reads on behind each mark of the format, or of all formats."""
        self.marks = Marks(())
        self.inner_marks = Marks(())
        """Those of the marks that stand for themselves, wherever they are: tags and special tokens."""
        self.line_marks = Marks(())
        """The same where they begin a line."""
        self.call_marks = Marks(())
        """Those of the inner marks that begin a call, or what goes around calls."""
        self.loose: frozenset[str] = frozenset()
        """What may be a call without any marks: `json`, `python`."""
        self.in_plan = False
        """Whether the calls are the steps of a plan, whose arguments may have holes that are filled later."""
        self.damages = 0

    # --- calls -------------------------------------------------------------------------------------------------------

    def place(self, start: int) -> Place:
        """Return the place from `start`, counted from the beginning of the reply, up to the cursor."""
        return Place(start=start, end=self.cursor.offset)

    def tool(self, name: str) -> Tool | None:
        """Return the tool that a name means, if it is known."""
        meant = meant_tool(name, self.tools.names) if self.tools is not None else None
        return self.tools.get(meant) if self.tools is not None and meant is not None else None

    def call(
        self,
        name: str,
        arguments: Json,
        start: int,
        *,
        id: str | None = None,
        repairs: Sequence[str] = (),
        values: Sequence[Json] = (),
        as_text: bool = False,
        fits: bool = True,
        is_tool: bool = True,
    ) -> None:
        """Hand on a call, or why it is none.

        `values` are arguments without names. `as_text`: the format writes arguments as JSON text. Without `fits` they
        are not compared with the schema, because references to results stand in them. Without `is_tool` it is a
        call of something else than a tool.
        """
        name = name.strip()
        if not name:
            self.broken(say.no_tool_named(self.place(start), "no name"), None, id=id)
            return
        mended = list(repairs)
        tool = None
        if self.tools is not None and is_tool:
            meant = meant_tool(name, self.tools.names)
            if meant is None:
                self.broken(unknown_tool(self.place(start), name, self.tools.names), name, id=id)
                return
            if meant != name:
                mended.append(f"read the tool name `{name}` as `{meant}`")
            tool, name = self.tools[meant], meant
        label, relabelled = self._label(id)
        try:
            given, more = object_of(arguments, as_text=as_text)
            if tool is not None and not given and (held := as_arguments(tool, values)) is not None:
                given, values = held, ()
                mended.append("read the object as the call's arguments, because it names them")
            given = by_position(tool, values, given)
        except Refused as refused:
            self.hand_on(BrokenCall(self.calls, label, name, refused.diagnostic(self.place(start), name)))
            return
        if more and self.is_cut and as_text:
            refused = Refused("cut")
            self.hand_on(BrokenCall(self.calls, label, name, refused.diagnostic(self.place(start), name)))
            return
        mended += more
        if tool is not None and fits:
            given, more, faults = fitted(tool, given)
            mended += more
            if faults and not self.in_plan:  # in a plan, holes are filled before the tool sees them
                self.hand_on(BrokenCall(self.calls, label, name, misfit(tool, given, faults, self.place(start), label)))
                return
        if relabelled:
            mended.append(f"gave the call the id `{label}`, because {relabelled}")
        self.hand_on(CallPart(self.calls, label, name, given, tuple(dict.fromkeys(mended))))

    def broken(self, diagnostic: Diagnostic, name: str | None, *, id: str | None = None) -> None:
        """Hand on a call that cannot be made."""
        self.hand_on(BrokenCall(self.calls, self._label(id)[0], name or None, diagnostic))

    def _label(self, given: str | None) -> tuple[str, str]:
        """Return the call's id, and why it is not the one that was given."""
        if given and given not in self.ids:
            return given, ""
        label = f"call_{self.calls}"
        number = 1
        while label in self.ids:
            label = f"call_{self.calls}_{number}"
            number += 1
        why = "" if given is None else f"`{given}` is taken" if given else "it had none"
        return label, why

    # --- JSON and what it says ---------------------------------------------------------------------------------------

    def json_value(self, ends: Marks) -> Reader[FoundValue]:
        """Pass the JSON value that begins here and return what it is. `ends` are marks that cannot stand inside.

        Where no JSON begins, everything up to such a mark is passed. A value with more brackets behind it, or with what
        only stands inside of JSON, may be a part of a larger one whose beginning is damaged, so it is none.
        """
        found = yield from self._value(ends)
        if found.read is None:
            return found
        gap = yield from self.cursor.space()
        if (yield from self.cursor.ahead()) not in _STRUCTURE:
            self.cursor.put_back(gap)
            return found
        rest, _ = yield from self.cursor.until(ends, take=False)
        refused = Refused("broken", "there is more behind its end", "check the brackets before it")
        return FoundValue(found.raw + gap + rest, None, refused)

    def _value(self, ends: Marks) -> Reader[FoundValue]:
        first = yield from self.cursor.ahead()
        if first not in ("{", "["):
            raw, _ = yield from self.cursor.until(ends, take=False)
            return FoundValue(raw, None, _no_json(raw))
        if (at_once := self._sound_value()) is not None:
            return at_once
        extent = yield from self.cursor.value(ends)
        raw = extent.text
        try:
            read = read_value(raw)
        except Refused as refused:
            return FoundValue(raw, None, refused)
        if read.end < len(raw):
            if self.damages >= MAX_DAMAGES:
                return FoundValue(raw, None, Refused("cut"))
            self.damages += 1
            self.cursor.put_back(raw[read.end :])
            raw = raw[: read.end]
        if read.repairs and not (yield from self.cursor.ahead()) and self.is_cut:
            return FoundValue(raw, None, Refused("cut"))
        return FoundValue(raw, read)

    def _sound_value(self) -> FoundValue | None:
        """Pass the value here and return it, if all of it is there and it is sound: the quick way of a whole text."""
        cursor = self.cursor
        if len(cursor.text) - cursor.at < _WORTH_TRYING:
            return None
        cursor.forget()  # an error of JSON counts the lines before it
        try:
            decoded = decode(cursor.text, cursor.at)
        except (Unreadable, Unacceptable):
            return None
        if decoded.faults or decoded.repairs:
            return None
        raw = cursor.take(decoded.end)
        return FoundValue(raw, ReadValue(decoded.value, len(raw), ()))

    def json_body(
        self, start: int, openers: Marks, closers: Marks, *, name: str | None = None, id: str | None = None
    ) -> Reader[ReadValue | None]:
        """Pass the JSON of a call and the mark that closes it, if there is one; return the value.

        None after handing on why there is no value; what comes next is read as usual.
        """
        found = yield from self.json_value(_both(openers, closers))
        if found.read is None:
            self.damaged(found, start, openers, closers, name, id)
        gap = yield from self.closing(closers)
        if gap:
            self.cursor.put_back(gap)
        return found.read

    def closing(self, closers: Marks) -> Reader[str | None]:
        """Pass white space and a closing mark and return None; without a mark return the white space."""
        gap = yield from self.cursor.space()
        if (yield from self.cursor.mark(closers)):
            return None
        return gap

    def json_calls(self, read: ReadValue, start: int) -> None:
        """Hand on the calls that a JSON value in marks is: one, or a list of them."""
        value = read.value
        for item in value if isinstance(value, list) and value else [value]:
            found = call_in(item)
            if found is None:
                named = item.get("name") if isinstance(item, dict) else None
                name = named if isinstance(named, str) else None
                self.broken(say.no_tool_named(self.place(start), describe(item)), name)
            else:
                name, arguments, id = found
                self.call(name, arguments, start, id=id, repairs=read.repairs)

    # --- damage ------------------------------------------------------------------------------------------------------

    def damaged(
        self,
        found: FoundValue,
        start: int,
        openers: Marks,
        closers: Marks,
        name: str | None = None,
        id: str | None = None,
    ) -> None:
        """Hand on a damaged call, and go back to the next mark in its text that may begin another one."""
        assert found.refused is not None
        name = name or named_in(found.raw)
        self.broken(found.refused.diagnostic(self.place(start), name), name, id=id)
        self.go_back(found.raw, openers, closers)

    def go_back(self, raw: str, openers: Marks, closers: Marks) -> None:
        """Read on at the next mark in `raw`, the text of a damaged call, and let everything after it wait."""
        self.damages += 1
        self.wait()
        if self.damages > MAX_DAMAGES:
            return
        at = 0
        while match := openers.search(raw, at):
            if _may_begin(raw, match.start(), closers):
                self.cursor.put_back(raw[match.start() :])
                return
            at = match.end()


_WORTH_TRYING = 100


def _may_begin(text: str, at: int, closers: Marks) -> bool:
    """Whether a call may begin at `at`: it is the beginning of a line, or directly behind the end of another one."""
    while at and text[at - 1] in " \t":
        at -= 1
    if text.endswith("\n", 0, at):
        return True
    while at and text[at - 1].isspace():
        at -= 1
    return bool(closers.marks) and text.endswith(closers.marks, 0, at)


_STRUCTURE = frozenset(':}])"')
"""Behind the end of a JSON value, these show that a bracket is wrong somewhere: perhaps it was not the whole value."""


@functools.lru_cache(maxsize=256)
def _both(some: Marks, others: Marks) -> Marks:
    return Marks((*some.marks, *others.marks))


def _no_json(found: str) -> Refused:
    found = " ".join(found.split())
    if not found:
        return Refused("cut")
    shown = found if len(found) <= 30 else found[:29] + "…"
    return Refused("broken", f"expected a JSON object, found `{shown}`")


_NAMED = re.compile(r'[\[{]\s*["\'“]?(?:name|function|tool|tool_name)["\'”]?\s*[:：]\s*["\'“]([^"\'”\n]{1,100})["\'”]')


def named_in(raw: str) -> str | None:
    """Return the name that damaged JSON gives a call, for the message about it."""
    match = _NAMED.search(raw, 0, 300)
    return match[1] if match else None


def says_arguments(value: Json) -> bool:
    """Whether an object has a key for arguments: without one, `{"name": ...}` may be anything."""
    if not isinstance(value, dict):
        return False
    if any(CALL.canonical(key) == "arguments" for key in value):
        return True
    return any(says_arguments(item) for item in value.values())


_WRAPPERS = ("function", "tool_call", "function_call")
_LABELS = frozenset(("id", "call_id", "tool_call_id", "type", "index"))


def call_in(value: Json) -> tuple[str, Json, str | None] | None:
    """Return the name, the arguments and the id of the call that a JSON value is; None when it is anything else.

    The spellings are those of a call in the JSON notation, and the wrapping is OpenAI's. A key that a call does not
    have may be an argument in the wrong place, so nothing is a call with one.
    """
    if not isinstance(value, dict):
        return None
    for wrapper in _WRAPPERS:
        inner = value.get(wrapper)
        if isinstance(inner, dict):
            if value.keys() - _LABELS - {wrapper}:
                return None
            found = call_in(inner)
            id = value.get("id")
            return found and (found[0], found[1], id if isinstance(id, str) and id else found[2])
    name: Json = None
    arguments: Json = {}
    seen: set[str] = set()
    id = None
    for key, item in value.items():
        canonical = CALL.canonical(key)
        if canonical in ("tool_name", "arguments"):
            if canonical in seen:
                return None
            seen.add(canonical)
            if canonical == "tool_name":
                name = item
            else:
                arguments = item
        elif key in _LABELS:
            id = item if key != "type" and isinstance(item, str) and item else id
        else:
            return None
    return (name, arguments, id) if isinstance(name, str) and name.strip() else None
