"""The calls that a JSON value without any mark is: one, a list of them, or a message of an API that holds some.

One rule for the scanner and for the reading of plans, so that both take the same values for calls.
"""

from __future__ import annotations

from toolplan.parse.formats.native import Native, native_calls
from toolplan.parse.formats.scan import call_in, says_arguments
from toolplan.values import Json

__all__ = ["bare_calls", "listed"]

_LISTS = ("tool_calls", "calls")


def bare_calls(value: Json) -> list[Native]:
    """Return the calls that the whole value is, in order; none when there is anything else in it."""
    values = listed(value)
    found = [call for item in values if (call := call_in(item)) is not None and says_arguments(item)]
    if len(found) < len(values):
        return (native_calls(value) or []) if isinstance(value, dict) else []
    return found


def listed(value: Json) -> list[Json]:
    """Return the values that may each be a call: those of a list, or of the list in an object around it."""
    if isinstance(value, dict):
        for key in _LISTS:
            inner = value.get(key)
            if isinstance(inner, list) and not value.keys() - {key, "content", "role"}:
                return inner
    return value if isinstance(value, list) else [value]
