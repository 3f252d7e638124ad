r"""Llama: JSON with `parameters`, or Python calls in a list.

Llama 3.1 and later, JSON. Several calls are joined by semicolons; without the mark the reply is nothing else.

    <|python_tag|>{"name": "get_weather", "parameters": {"city": "Oslo"}}; {"name": ...}<|eom_id|>

Llama 3.2 and 4, Python. Llama 4 may put marks around it. LFM2 writes the same between marks of its own.

    [get_weather(city="Oslo"), get_time(tz="UTC")]
    <|python_start|>[get_weather(city="Oslo")]<|python_end|>
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolplan.parse.formats import qwen_xml
from toolplan.parse.formats.arguments import Refused
from toolplan.parse.formats.cursor import Marks, Reader
from toolplan.parse.formats.format import Format, Opener, no_results
from toolplan.parse.formats.hermes import write_json_call
from toolplan.parse.formats.loose import BARE, read_bare
from toolplan.parse.formats.parts import CallPart
from toolplan.parse.formats.pythonic import NotCalls, PythonCall, read_calls, write_call
from toolplan.parse.formats.scan import FoundValue, Scan
from toolplan.parse.formats.wrappers import after_calls

__all__ = ["FORMAT", "LLAMA4", "PYTHONIC"]

_TAG = Marks(("<|python_tag|>",))
_ENDS = Marks(("<|eom_id|>", "<|eot_id|>", "<|python_tag|>", "<|python_end|>", "<|tool_call_end|>"))
_PYTHON = Marks(("<|python_start|>", "<|tool_call_start|>"))
_PYTHON_ENDS = Marks(("<|python_end|>", "<|tool_call_end|>"))
_NONE = Marks(())
_HEAD = re.compile(r"[\w.\-]*")
_SEPARATORS = re.compile(r"[\s;,]*")


def _tagged(scan: Scan, mark: str, start: int) -> Reader[None]:
    """Read on behind `<|python_tag|>`: JSON calls, or one Python call."""
    scan.format = "llama3"
    while True:
        gap = yield from scan.cursor.space()
        if (yield from scan.cursor.ahead()) not in ("{", "["):
            scan.cursor.put_back(gap)
            yield from _python(scan, mark, start)
            return
        found = yield from scan.json_value(_ENDS)
        if found.read is None:
            scan.damaged(found, start, _TAG, _NONE)
            return
        scan.json_calls(found.read, start)
        between = yield from scan.cursor.while_in(_SEPARATORS)
        start = scan.cursor.offset
        if ";" not in between or (yield from scan.cursor.ahead()) != "{":
            scan.text(between) if between.strip() else scan.cursor.put_back(between)
            return


def _python(scan: Scan, mark: str, start: int) -> Reader[None]:
    """Read on behind a mark that begins Python calls."""
    yield from scan.cursor.space()
    head = yield from scan.cursor.while_in(_HEAD)
    opening = yield from scan.cursor.ahead()
    text, whole = head, False
    if opening == "(" or (opening == "[" and not head):
        extent = yield from scan.cursor.value(_ENDS, calls=True)
        text, whole = head + extent.text, extent.whole
    else:
        text += (yield from scan.cursor.until(_ENDS, take=False))[0]
    if not whole and not (yield from scan.cursor.ahead()):
        scan.damaged(FoundValue(text, None, Refused("cut")), start, _PYTHON, _NONE, head)
        return
    try:
        calls = read_calls(text)
    except NotCalls as error:
        refused = Refused("broken", error.problem)
        scan.damaged(FoundValue(text, None, refused), start, _PYTHON, _NONE, head)
        return
    for call in calls:
        hand_on(scan, call, start)


def hand_on(scan: Scan, call: PythonCall, start: int) -> None:
    """Hand on a Python call. `NAME.call(...)` is how Llama calls its built-in tools."""
    name = call.name
    if name.endswith(".call") and scan.tool(name) is None:
        name = name.removesuffix(".call")
    scan.call(name, call.arguments, start, values=call.values)


def _marked(scan: Scan, mark: str, start: int) -> Reader[None]:
    scan.format = "llama4" if mark == "<|python_start|>" else "llama_pythonic"
    yield from _python(scan, mark, start)


def _write(calls: Sequence[CallPart]) -> str:
    joined = "; ".join(write_json_call(call, _ENDS.marks, "parameters") for call in calls)
    return f"<|python_tag|>{joined}"


def _write_pythonic(calls: Sequence[CallPart]) -> str:
    return "[" + ", ".join(write_call(call, (*_ENDS.marks, *_PYTHON.marks)) for call in calls) + "]"


FORMAT = Format(
    "llama3",
    "Llama 3.1 and later, JSON",
    (Opener(_TAG.marks, _tagged), Opener(BARE, read_bare, "line"), Opener(("<function=",), qwen_xml.read_function)),
    _write,
    no_results,
    also=("llama3_json", "llama31"),
    loose=frozenset(("json",)),
)
PYTHONIC = Format(
    "llama_pythonic",
    "Llama 3.2, Python calls; LFM2",
    (Opener(_PYTHON.marks, _marked), after_calls(*_PYTHON_ENDS.marks), Opener(("[",), read_bare, "line")),
    _write_pythonic,
    no_results,
    also=("llama3_pythonic", "pythonic", "lfm2"),
    loose=frozenset(("python",)),
)
LLAMA4 = Format(
    "llama4",
    "Llama 4, Python calls",
    PYTHONIC.openers,
    lambda calls: f"<|python_start|>{_write_pythonic(calls)}<|python_end|>",
    no_results,
    also=("llama4_pythonic",),
    loose=frozenset(("python",)),
    alone=False,
)
