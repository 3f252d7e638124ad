"""ReWOO (Xu et al. 2023): a plan and, after each of its lines, a tool with its input; `#E1` is the first result.

Plan: Find out who directed the film.
#E1 = Search[director of Alien]
Plan: Find out when he was born.
#E2 = LLM[When was the person born? Given context: #E1]
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolplan.parse.formats.arguments import Refused, json_without, read_value, typed
from toolplan.parse.formats.cursor import Marks, Reader
from toolplan.parse.formats.format import Format, result_text
from toolplan.parse.formats.keywords import PLAN, keyword, notes
from toolplan.parse.formats.parts import CallPart
from toolplan.parse.formats.react import has_reference
from toolplan.parse.formats.scan import FoundValue, Scan
from toolplan.values import Json

__all__ = ["FORMAT"]

_LINE = re.compile(r"[^\n]*")
_CALL = re.compile(r"(E\d+)\s*[=:]\s*([^\W\d][\w.\-]*)\s*\[(.*)\]\s*", re.DOTALL)
_BEGUN = re.compile(r"(E\d+)\s*[=:]\s*([^\W\d][\w.\-]*)\s*\[")
_NONE = Marks(())


def _read(scan: Scan, mark: str, start: int) -> Reader[None]:
    """Read on behind `#E`, one line."""
    trial = scan.try_out()
    line = "E" + (yield from scan.cursor.while_in(_LINE))
    match = _CALL.fullmatch(line)
    begun = _BEGUN.match(line)
    if match is None and begun is None:
        scan.reject(trial, mark)
        return
    scan.format = "rewoo"
    scan.style = "rewoo"
    if match is None or (scan.is_cut and not (yield from scan.cursor.ahead()) and not line.rstrip().endswith("]")):
        assert begun is not None
        ended = not (yield from scan.cursor.ahead())
        refused = Refused("cut") if ended else Refused("broken", "expected `]` at the end of the line")
        scan.damaged(FoundValue(line, None, refused), start, _NONE, _NONE, begun[2], begun[1])
    else:
        _call(scan, start, match[1], match[2], match[3].strip())
    scan.accept(trial)


def _call(scan: Scan, start: int, label: str, name: str, text: str) -> None:
    tool = scan.tool(name)
    fits = not has_reference(text)
    if text.startswith("{"):
        try:
            read = read_value(text)
        except Refused as refused:
            if refused.kind == "cut":
                scan.damaged(FoundValue(text, None, refused), start, _NONE, _NONE, name, label)
                return
        else:
            if not text[read.end :].strip() and isinstance(read.value, dict):
                scan.call(name, read.value, start, id=label, repairs=read.repairs, fits=fits)
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
