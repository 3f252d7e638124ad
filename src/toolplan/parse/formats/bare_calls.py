"""The calls that a JSON value without any mark is: one, a list of them, or a message of an API that holds some.

One rule for the scanner and for the reading of plans, so that both take the same values for calls.
"""

from __future__ import annotations

from collections.abc import Collection

from toolplan.parse.formats.format import result_text
from toolplan.parse.formats.keywords import ANSWERING
from toolplan.parse.formats.native import Native, native_calls
from toolplan.parse.formats.scan import call_in, says_arguments
from toolplan.parse.tool_names import meant_tool
from toolplan.values import Json

__all__ = ["bare_calls", "final_answer", "listed"]

_LISTS = ("tool_calls", "calls")


def bare_calls(value: Json) -> list[Native]:
    """Return the calls that the whole value is, in order; none when there is anything else in it."""
    values = listed(value)
    found = [call for item in values if (call := call_in(item)) is not None and says_arguments(item)]
    if len(found) < len(values):
        return (native_calls(value) or []) if isinstance(value, dict) else []
    return found


def final_answer(value: Json, tools: Collection[str]) -> str | None:
    """Return the answer that a value is in the words of ReAct, `{"action": "Final Answer", ...}`; None for others."""
    call = call_in(value) if isinstance(value, dict) and "action" in value else None
    if call is None or call[0].casefold() not in ANSWERING or meant_tool(call[0], tools) is not None:
        return None
    return result_text(call[1])


def listed(value: Json) -> list[Json]:
    """Return the values that may each be a call: those of a list, or of the list in an object around it."""
    if isinstance(value, dict):
        for key in _LISTS:
            inner = value.get(key)
            if isinstance(inner, list) and not value.keys() - {key, "content", "role"}:
                return inner
    return value if isinstance(value, list) else [value]
