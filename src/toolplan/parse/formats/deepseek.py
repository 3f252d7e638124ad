"""DeepSeek V3, R1 and V3.1. V3 says `function` first and fences the arguments; V3.1 has just the name and JSON.

    <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather
    ```json
    {"city": "Oslo"}
    ```<｜tool▁call▁end｜><｜tool▁calls▁end｜>
    <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "Oslo"}<｜tool▁call▁end｜>...

The bars and the blocks also come as ASCII. Then the marks around a call are Kimi's, and the one behind its name tells.
Step 3 has `<steptml:invoke ...>` where the name should be.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolplan.parse.formats.arguments import json_without
from toolplan.parse.formats.cursor import Marks, Reader
from toolplan.parse.formats.format import Format, Opener, result_text
from toolplan.parse.formats.parts import CallPart
from toolplan.parse.formats.scan import Scan
from toolplan.parse.formats.wrappers import after_calls, around_calls, closing_marks
from toolplan.values import Json

__all__ = ["FORMAT", "SEPARATOR", "V3", "read_behind"]


_BARS, _GAPS = ("｜", "|", "｜｜", "||"), ("▁", "_", " ")


def _spelt(words: str) -> tuple[str, ...]:
    """Return a mark in the spellings that occur."""
    return tuple(f"<{bar}{words.replace(' ', gap)}{bar}>" for bar in _BARS for gap in _GAPS if bar + gap != "|_")


_BEGIN = Marks(_spelt("tool call begin"))
SEPARATOR = "<|tool_sep|>"
_SEP = Marks((*_spelt("tool sep"), SEPARATOR))
_END = Marks(_spelt("tool call end"))
_SECTION = _spelt("tool calls begin")
_SECTION_END = _spelt("tool calls end")
_OUTER = Marks((*_END.marks, *_SECTION_END))
_HEAD = Marks((*_SEP.marks, *_OUTER.marks))
_ASCII = ("<|tool_call_begin|>", "<|tool_call_end|>", "<|tool_calls_end|>")
_ENDS = Marks((*_BEGIN.marks, *_OUTER.marks, *_ASCII))
_CALL_ENDS = Marks((*_END.marks, _ASCII[1]))
_LINE = re.compile(r"[^\n{]*")
_FENCE = re.compile(r"[`a-z]*")


def _read(scan: Scan, mark: str, start: int) -> Reader[None]:
    scan.format = "deepseek"
    name, sep = yield from scan.cursor.until(_HEAD)
    yield from read_behind(scan, name.strip(), start, is_separated=sep in _SEP.marks)


def read_behind(scan: Scan, name: str, start: int, *, is_separated: bool = True) -> Reader[None]:
    """Read on behind the name of a call, or `function`, and the mark that separates it from what follows."""
    scan.format = "deepseek"
    if is_separated and name in ("function", "") and (yield from scan.cursor.ahead()) != "{":
        if (yield from scan.cursor.ahead()) == "<" and (yield from scan.cursor.mark(scan.call_marks, take=False)):
            scan.mark_passed()
            return
        name = (yield from scan.cursor.while_in(_LINE)).strip()
    yield from scan.cursor.space()
    fence = yield from scan.cursor.while_in(_FENCE)
    yield from scan.cursor.space()
    found = yield from scan.json_value(_ENDS)
    if found.read is None:
        scan.damaged(found, start, _BEGIN, _OUTER, name)
        yield from scan.closing(_CALL_ENDS)
        return
    if fence:
        yield from scan.cursor.space()
        yield from scan.cursor.mark(_TICKS)
    gap = yield from scan.closing(_CALL_ENDS)
    scan.call(name, found.read.value, start, repairs=found.read.repairs)
    if gap:
        scan.cursor.put_back(gap)


_TICKS = Marks(("```",))
_MARKS = (*_BEGIN.marks, *_SEP.marks, *_OUTER.marks, *_SECTION)


def _write(calls: Sequence[CallPart]) -> str:
    inner = "".join(f"{_B}{call.name}{_S}{json_without(call.arguments, _MARKS)}{_E}" for call in calls)
    return f"{_SECTION[0]}{inner}{_SECTION_END[0]}"


def _write_v3(calls: Sequence[CallPart]) -> str:
    inner = "\n".join(
        f"{_B}function{_S}{call.name}\n```json\n{json_without(call.arguments, _MARKS)}\n```{_E}" for call in calls
    )
    return f"{_SECTION[0]}{inner}{_SECTION_END[0]}"


def _write_results(calls: Sequence[CallPart], results: Sequence[Json]) -> str:
    return "".join(f"<｜tool▁output▁begin｜>{result_text(result)}<｜tool▁output▁end｜>" for result in results)


_B, _S, _E = _spelt("tool call begin")[0], _spelt("tool sep")[0], _spelt("tool call end")[0]
_OPENERS = (
    Opener(_BEGIN.marks, _read),
    around_calls(*_SECTION, inner=_BEGIN),
    after_calls(*_SECTION_END),
    closing_marks(*_END.marks),
)
FORMAT = Format("deepseek", "DeepSeek V3.1", _OPENERS, _write, _write_results, also=("deepseek_v31",))
V3 = Format(
    "deepseek_v3", "DeepSeek V3 and R1", _OPENERS, _write_v3, _write_results, also=("deepseek_r1",), alone=False
)
