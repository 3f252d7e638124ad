"""ReWOO (Xu et al. 2023): a plan and, after each of its lines, a tool with its input; `#E1` is the first result.

Plan: Find out who directed the film.
#E1 = Search[director of Alien]
Plan: Find out when he was born.
#E2 = LLM[When was the person born? Given context: #E1]

A call may also end the line of its plan, behind nothing but words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolplan.parse.formats.arguments import Refused, has_reference, json_without, read_value, typed
from toolplan.parse.formats.cursor import Marks, Reader
from toolplan.parse.formats.format import Format, result_text
from toolplan.parse.formats.keywords import PLAN, keyword, notes
from toolplan.parse.formats.named_text import named_in_text, read_as_named
from toolplan.parse.formats.parts import CallPart
from toolplan.parse.formats.pythonic import NotCalls, read_calls
from toolplan.parse.formats.react import is_open
from toolplan.parse.formats.scan import FoundValue, Scan
from toolplan.values import Json

__all__ = ["FORMAT"]

_LINE = re.compile(r"[^\n]*")
_CALL = re.compile(r"(E\d+)\s*[=:]\s*([^\W\d][\w.\-]*)\s*\[(.*)\]\s*", re.DOTALL)
_BEGUN = re.compile(r"(E\d+)\s*[=:]\s*([^\W\d][\w.\-]*)\s*([\[(])")
_JSON = re.compile(r"""\{\s*\\?["'“]""")
"""What is meant as an object. In other texts a brace may stand at the beginning too."""
_NONE = Marks(())


def _read(scan: Scan, mark: str, start: int) -> Reader[None]:
    """Read on behind `#E`, one line."""
    trial = scan.try_out()
    line = "E" + (yield from scan.cursor.while_in(_LINE))
    match = _CALL.fullmatch(line)
    begun = _BEGUN.match(line)
    is_python = begun is not None and begun[3] == "("
    if begun is None or (is_python and not scan.named and scan.style != "rewoo" and scan.tool(begun[2]) is None):
        scan.reject(trial, mark)
        return
    scan.format = "rewoo"
    scan.style = "rewoo"
    if is_python:
        _python(scan, start, begun[1], begun[2], line[begun.start(2) :])
    elif match is None or (scan.is_cut and is_open(line) and not (yield from scan.cursor.ahead())):
        ended = not (yield from scan.cursor.ahead())
        refused = Refused("cut") if ended else Refused("broken", "expected `]` at the end of the line")
        scan.damaged(FoundValue(line, None, refused), start, _NONE, _NONE, begun[2], begun[1])
    else:
        _call(scan, start, match[1], match[2], match[3].strip())
    scan.accept(trial)


def _python(scan: Scan, start: int, label: str, name: str, text: str) -> None:
    """Hand on a call that is written with its arguments in parentheses."""
    try:
        (call,) = read_calls(text)
    except NotCalls as error:
        refused = (
            Refused("cut") if scan.is_cut and not text.rstrip().endswith(")") else Refused("broken", error.problem)
        )
        scan.damaged(FoundValue(text, None, refused), start, _NONE, _NONE, name, label)
        return
    scan.call(name, call.arguments, start, id=label, values=call.values, fits=not has_reference(text))


def _call(scan: Scan, start: int, label: str, name: str, text: str) -> None:
    tool = scan.tool(name)
    fits = not has_reference(text)
    if text.startswith("{"):
        try:
            read = read_value(text)
        except Refused as refused:
            if refused.kind == "cut" or _JSON.match(text):
                scan.damaged(FoundValue(text, None, refused), start, _NONE, _NONE, name, label)
                return
        else:
            if not text[read.end :].strip() and isinstance(read.value, dict):
                scan.call(name, read.value, start, id=label, repairs=read.repairs, fits=fits)
                return
    try:
        named = named_in_text(tool, text)
    except Refused as refused:
        scan.damaged(FoundValue(text, None, refused), start, _NONE, _NONE, name, label)
        return
    if named is not None:
        scan.call(name, named, start, id=label, repairs=(read_as_named(named),), fits=fits)
        return
    names = list(tool.parameters["properties"]) if tool is not None else ["input"]
    if name == "LLM" and tool is None:  # not a tool: the model itself is asked
        scan.call(name, {"input": text}, start, id=label, fits=False, is_tool=False)
    elif not text and tool is not None and not tool.parameters["required"]:
        scan.call(name, {}, start, id=label)
    else:
        value = typed(tool, names[0], text) if names and fits else text
        scan.call(name, {}, start, id=label, values=[value], fits=fits)


def _write(calls: Sequence[CallPart]) -> str:
    lines: list[str] = []
    for number, call in enumerate(calls, 1):
        lines += [f"Plan: call {call.name}.", f"#E{number} = {call.name}[{json_without(call.arguments, ())}]"]
    return "\n".join(lines)


def _write_results(calls: Sequence[CallPart], results: Sequence[Json]) -> str:
    return "\n".join(f"#E{number} = {result_text(result)}" for number, result in enumerate(results, 1))


FORMAT = Format(
    "rewoo",
    "ReWOO",
    (keyword(("#E",), _read, is_call=True), keyword(PLAN, notes())),
    _write,
    _write_results,
)
