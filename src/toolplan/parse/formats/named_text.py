"""Arguments given by name in plain text, where a format has a text for input: `city=Oslo, days=2`.

Models that should write JSON there, or the one text that the tool takes, often write a list of names and values
instead. It is read where it has one reading: every name in it is an argument of the tool, behind a comma, a semicolon
or a line end, and all have the same sign (`=` or `:`). A bare value goes on to the next name, so a comma in it stays.
Where some of the names are no arguments there are two readings, and none is taken. What names no argument is a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from toolplan.parse.formats.arguments import Refused, read_value, typed
from toolplan.parse.formats.pythonic import NotCalls, text_of
from toolplan.tools import Tool
from toolplan.values import Json

__all__ = ["named_in_text", "read_as_named"]

_NAME = r"""(?<![\w.\-])(?P<open>["'“`])?(?P<name>[^\W\d][\w.\-]*+)(?(open)["'”`])[ \t]*+"""
_SIGNS = {
    "=": re.compile(_NAME + r"[=＝](?![=>])[ \t]*"),
    ":": re.compile(_NAME + r"[:：](?!//)[ \t]*"),
}
"""A name with a sign behind it, by the sign."""
_BULLET = re.compile(r"[-*•][ \t]+")
_QUOTED = re.compile(r""""(?:[^"\\]++|\\.)*+"|'(?:[^'\\]++|\\.)*+'|“[^”]*+”""", re.DOTALL)
_SEPARATORS = ",，;；\n"
_SPACE = " \t\r\n"
_ENDS = re.compile(rf"[ \t\r]*+(?:[{_SEPARATORS}]|\Z)")
_HELP = "write the arguments as one JSON object"


def named_in_text(tool: Tool | None, text: str) -> dict[str, Json] | None:
    """Return the arguments that `text` names, typed by the schema as bare text is; None when it is plain text.

    Raises `Refused` for a text with more than one reading.
    """
    text = text.strip()
    names: dict[str, Json] = tool.parameters["properties"] if tool is not None else {}
    bullet = _BULLET.match(text)
    start = bullet.end() if bullet else 0
    sign = next((sign for sign, key in _SIGNS.items() if key.match(text, start)), "")
    first = _SIGNS[sign].match(text, start) if sign else None
    if tool is None or not names or first is None:
        return None
    if len(names) == 1:
        return {first["name"]: _value(tool, first["name"], text[first.end() :])} if first["name"] in names else None
    if first["name"] not in names:
        others = [match["name"] for match in _keys(text, sign, first.end()) if match["name"] in names]
        if others:
            raise _two_readings(first["name"], tool)
        return None
    found: dict[str, Json] = {}
    key: re.Match[str] | None = first
    while key is not None:
        name, at = key["name"], key.end()
        if name not in names or name in found:
            raise _two_readings(name, tool)
        end = _end_of_value(text, at)
        key = next(_keys(text, sign, at if end is None else end), None)
        stop = len(text) if key is None else key.start()
        value = _without_separator(text[at:stop], is_last=key is None)
        if end is None and any(match["name"] in names for match in _SIGNS[sign].finditer(value)):
            raise _two_readings(value, tool)
        found[name] = _value(tool, name, value)
    return found


def read_as_named(arguments: Iterable[str]) -> str:
    """Return what to say of a text that was read as arguments."""
    return f"read the text as the arguments {', '.join(f'`{name}`' for name in arguments)}, because it names them"


def _two_readings(found: str, tool: Tool) -> Refused:
    shown = found if len(found) <= 30 else found[:29] + "…"
    problem = f"it names some arguments of `{tool.name}`, and `{shown}` is not one more of them"
    return Refused("broken", problem, _HELP)


def _keys(text: str, sign: str, at: int) -> Iterator[re.Match[str]]:
    """Yield the names with this sign that stand behind a separator, from `at` on."""
    for match in _SIGNS[sign].finditer(text, at):
        before = match.start()
        while before > at and text[before - 1] in " \t\r":
            before -= 1
        if before > at and text[before - 1] in "-*•" and before < match.start():
            before -= 1
            while before > at and text[before - 1] in " \t\r":
                before -= 1
        if before > at and text[before - 1] in _SEPARATORS:
            yield match


def _end_of_value(text: str, at: int) -> int | None:
    """Return where a value in quotes or brackets ends; None for a bare one. Raises `Refused` when more follows."""
    end = None
    if quoted := _QUOTED.match(text, at):
        end = quoted.end()
    elif text[at : at + 1] in ("[", "{"):
        try:
            end = at + read_value(text[at:]).end
        except Refused:
            return None
    if end is None or _ENDS.match(text, end):
        return end
    if quoted:
        raise Refused("broken", "there is more behind the end of a quoted value", _HELP)
    return None


def _without_separator(value: str, *, is_last: bool) -> str:
    if is_last:
        return value.strip()
    value = _TRAILING_BULLET.sub("", value.rstrip(_SPACE)).rstrip(_SPACE)
    return value.removesuffix(value[-1:] if value[-1:] in _SEPARATORS else "").strip()


_TRAILING_BULLET = re.compile(r"\n[ \t]*[-*•]\Z")


def _value(tool: Tool, name: str, written: str) -> Json:
    written = written.strip()
    if _QUOTED.fullmatch(written):
        if written[0] == "“":
            return written[1:-1]
        try:
            return text_of(written)
        except NotCalls:
            return written
    return typed(tool, name, written)
