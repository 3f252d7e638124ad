"""Hermes, and Qwen 2.5 and 3: one JSON object between `<tool_call>` and `</tool_call>` a call.

<tool_call>
{"name": "get_weather", "arguments": {"city": "Oslo"}}
</tool_call>
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolplan.parse.formats.arguments import json_without
from toolplan.parse.formats.cursor import Marks, Reader
from toolplan.parse.formats.format import Format, Opener, result_text
from toolplan.parse.formats.parts import CallPart
from toolplan.parse.formats.scan import FoundValue, Scan
from toolplan.parse.formats.wrappers import closing_marks
from toolplan.values import Json

__all__ = ["BOTH", "CLOSERS", "FORMAT", "OPENERS", "fenced_value", "read", "write_json_call"]

OPENERS = Marks(("<tool_call>", "<tool_calls>"))
CLOSERS = Marks(("</tool_call>", "</tool_calls>"))
MARKS = (*OPENERS.marks, *CLOSERS.marks)
BOTH = Marks(MARKS)
_FENCE = Marks(("```",))
_LANGUAGE = re.compile(r"\w*")
_BETWEEN = re.compile(r"[\s,;]*")
_HEAD = re.compile(r"[\[{\s]*")


def read(scan: Scan, mark: str, start: int) -> Reader[None]:
    """Read on behind `<tool_call>`."""
    scan.format = "hermes"
    yield from scan.cursor.space()
    comma = False
    while True:
        found = yield from fenced_value(scan)
        if found.read is None:
            if comma:
                scan.doubt()  # what stands before the comma was perhaps a part of the same damaged value
            scan.damaged(found, start, OPENERS, CLOSERS)
        gap = yield from scan.closing(CLOSERS)
        if found.read is not None:
            scan.json_calls(found.read, start)
        if gap is None:
            return
        passed = None if found.read is None else (yield from _to_another(scan))
        if passed is None:
            scan.cursor.put_back(gap)
            return
        comma = bool(passed.strip())
        start = scan.cursor.offset


def fenced_value(scan: Scan, ends: Marks = BOTH) -> Reader[FoundValue]:
    """Pass the JSON value that begins here, and a code fence around it, if a model has put one there."""
    fence = yield from scan.cursor.mark(_FENCE)
    if fence:
        yield from scan.cursor.while_in(_LANGUAGE)
        yield from scan.cursor.space()
    found = yield from scan.json_value(ends)
    if fence and found.read is not None:
        gap = yield from scan.cursor.space()
        if not (yield from scan.cursor.mark(_FENCE)):
            scan.cursor.put_back(gap)
    return found


def _to_another(scan: Scan) -> Reader[str | None]:
    """Pass and return what stands before one more object, or a list of them, between the same marks; None without."""
    passed = yield from scan.cursor.while_in(_BETWEEN)
    head = yield from scan.cursor.while_in(_HEAD)
    scan.cursor.put_back(head if "{" in head else passed + head)
    return passed if "{" in head else None


def write_json_call(call: CallPart, marks: Sequence[str], arguments: str = "arguments") -> str:
    """Return a call as JSON with `name` and `arguments`, in which no mark stands."""
    return json_without({"name": call.name, arguments: call.arguments}, marks)


def write(calls: Sequence[CallPart]) -> str:
    """Return the calls."""
    return "\n".join(f"<tool_call>\n{write_json_call(call, MARKS)}\n</tool_call>" for call in calls)


def write_results(calls: Sequence[CallPart], results: Sequence[Json]) -> str:
    """Return the results, one `<tool_response>` each."""
    return "\n".join(f"<tool_response>\n{result_text(result)}\n</tool_response>" for result in results)


FORMAT = Format(
    "hermes",
    "Hermes, Qwen 2.5 and 3, Granite 4",
    (Opener(("<tool_call>",), read), closing_marks(*CLOSERS.marks)),
    write,
    write_results,
    also=("qwen", "qwen25", "granite4"),
)
