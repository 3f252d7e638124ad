"""Kimi K2: an id that holds the name, then JSON. The id has to be sent back with the result.

    <|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{"city": "Oslo"}
    <|tool_call_end|><|tool_calls_section_end|>

The marks of the section occur in the singular too. DeepSeek's marks, written in ASCII, are the same around a call.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolplan.parse.formats import deepseek
from toolplan.parse.formats.arguments import json_without
from toolplan.parse.formats.cursor import Marks, Reader
from toolplan.parse.formats.format import Format, Opener, result_text
from toolplan.parse.formats.parts import CallPart
from toolplan.parse.formats.scan import Scan
from toolplan.parse.formats.wrappers import after_calls, around_calls, closing_marks
from toolplan.values import Json

__all__ = ["FORMAT"]

_BEGIN = Marks(("<|tool_call_begin|>",))
_ARGUMENTS = Marks(("<|tool_call_argument_begin|>",))
_END = Marks(("<|tool_call_end|>",))
_SECTION = ("<|tool_calls_section_begin|>", "<|tool_call_section_begin|>", "<|tool_calls_begin|>")
_SECTION_END = ("<|tool_calls_section_end|>", "<|tool_call_section_end|>", "<|tool_calls_end|>")
_OUTER = Marks((*_END.marks, *_SECTION_END))
_HEAD = Marks((*_ARGUMENTS.marks, *_OUTER.marks, deepseek.SEPARATOR))
_NATIVE = re.compile(r"(?:functions\.)?(?P<name>.+?)(?P<number>:\d+)?", re.DOTALL)


def _read(scan: Scan, mark: str, start: int) -> Reader[None]:
    scan.format = "kimi"
    written, mark = yield from scan.cursor.until(_HEAD)
    id = written.strip()
    if mark == deepseek.SEPARATOR:
        yield from deepseek.read_behind(scan, id, start)
        return
    match = _NATIVE.fullmatch(id)
    name = match["name"] if match else ""
    native = id if match and match["number"] else None
    yield from scan.cursor.space()
    found = yield from scan.json_body(start, _BEGIN, _OUTER, name=name, id=native)
    if found is not None:
        scan.call(name, found.value, start, id=native, repairs=found.repairs)


_MARKS = (*_BEGIN.marks, *_ARGUMENTS.marks, *_OUTER.marks, *_SECTION)


def _id(call: CallPart) -> str:
    return call.id if call.id.startswith("functions.") else f"functions.{call.name}:{call.position}"


def _write(calls: Sequence[CallPart]) -> str:
    inner = "".join(
        f"{_BEGIN.marks[0]}{_id(call)}{_ARGUMENTS.marks[0]}{json_without(call.arguments, _MARKS)}{_END.marks[0]}"
        for call in calls
    )
    return f"{_SECTION[0]}{inner}{_SECTION_END[0]}"


def _write_results(calls: Sequence[CallPart], results: Sequence[Json]) -> str:
    pairs = zip(calls, results, strict=False)
    return "\n".join(f"## Return of {_id(call)}\n{result_text(result)}" for call, result in pairs)


FORMAT = Format(
    "kimi",
    "Kimi K2",
    (
        Opener(_BEGIN.marks, _read),
        around_calls(*_SECTION, inner=_BEGIN),
        after_calls(*_SECTION_END),
        closing_marks(*_END.marks),
    ),
    _write,
    _write_results,
    also=("kimi_k2",),
)
