"""A JSON list of calls behind one mark: Granite 3 and Phi-4-mini.

<|tool_call|>[{"name": "get_weather", "arguments": {"city": "Oslo"}}]
functools[{"name": "get_weather", "arguments": {"city": "Oslo"}}]

Granite 20B begins each call with `<function_call>` and closes none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolplan.parse.formats import dialects
from toolplan.parse.formats.arguments import json_without
from toolplan.parse.formats.cursor import Marks, Reader
from toolplan.parse.formats.format import Format, Opener, no_results
from toolplan.parse.formats.hermes import read as read_hermes
from toolplan.parse.formats.parts import CallPart
from toolplan.parse.formats.scan import Scan
from toolplan.parse.formats.wrappers import after_calls
from toolplan.values import Json

__all__ = ["GRANITE", "PHI4", "read_marked"]

_OPENERS = Marks(("<|tool_call|>",))
_CLOSERS = Marks(("<|/tool_call|>", "</|tool_call|>"))
_ENDS = Marks((*_OPENERS.marks, *_CLOSERS.marks, "<|end_of_text|>", "<|end|>"))
_LIST_ENDS = Marks(("<|end|>",))
_NONE = Marks(())
_BRACKETS = re.compile(r"[\[{\s]*")


def read_marked(scan: Scan, mark: str, start: int) -> Reader[None]:
    """Read on behind `<|tool_call|>`."""
    scan.format = "granite"
    yield from scan.cursor.space()
    found = yield from scan.json_value(_ENDS)
    if found.read is None:
        scan.damaged(found, start, _OPENERS, _NONE)
    else:
        scan.json_calls(found.read, start)


def _functools(scan: Scan, mark: str, start: int) -> Reader[None]:
    """Read on behind `functools`; anything but a list of calls is text."""
    trial = scan.try_out()
    if (yield from scan.cursor.ahead()) != "[":
        scan.reject(trial, mark)
        return
    head = yield from scan.cursor.while_in(_BRACKETS)
    if not head.startswith("[") or (yield from scan.cursor.ahead()) not in ('"', "'"):
        scan.reject(trial, mark)
        return
    scan.cursor.put_back(head)
    scan.format = "phi4_mini"
    found = yield from scan.json_value(_LIST_ENDS)
    if found.read is None:
        scan.damaged(found, start, _NONE, _NONE)
    else:
        scan.json_calls(found.read, start)
    scan.accept(trial)


def _list(calls: Sequence[CallPart]) -> str:
    listed: list[Json] = [{"name": call.name, "arguments": call.arguments} for call in calls]
    return json_without(listed, _ENDS.marks)


GRANITE = Format(
    "granite",
    "Granite 3",
    (
        Opener(_OPENERS.marks, read_marked),
        after_calls(*_CLOSERS.marks),
        Opener(("<tool_call>",), read_hermes),
        *dialects.FUNCTION_CALL,
    ),
    lambda calls: f"<|tool_call|>{_list(calls)}",
    no_results,
    also=("granite3",),
)
PHI4 = Format(
    "phi4_mini",
    "Phi-4-mini",
    (
        Opener(("functools",), _functools),
        Opener(_OPENERS.marks, read_marked),
        after_calls(*_CLOSERS.marks),
        *dialects.TOOL_CALLS,
    ),
    lambda calls: f"functools{_list(calls)}",
    no_results,
    also=("phi4",),
)
