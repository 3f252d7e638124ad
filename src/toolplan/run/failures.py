"""What an exception of a call means: what it says, whether anything happened, whether and when to try again."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator
from typing import Any

from toolplan.errors import ArgumentsRefused, ResultRefused, ToolFailed
from toolplan.run.processes import ProcessDied
from toolplan.schedule import Effect
from toolplan.tools import Tool

__all__ = ["asked_to_wait", "describe", "is_worth_retrying", "known_effect"]


def describe(error: BaseException) -> str:
    """Return the message of a tool's exception, with its type where the message alone would not say what it is."""
    if isinstance(error, ToolFailed | ProcessDied):
        return str(error)
    try:
        text = str(error)
    except Exception:  # an exception that cannot even say what it is
        text = ""
    name = type(error).__name__
    return f"{name}: {text}" if text else name


def known_effect(error: BaseException, tool: Tool) -> Effect:
    """Return what is known about the effect of a call that raised this.

    A tool's own failure proves nothing, unless it says so itself, or declares that such an error means that nothing
    has happened.
    """
    if isinstance(error, tool.nothing_happened) or (isinstance(error, ToolFailed) and error.effect_happened is False):
        return "none"
    if isinstance(error, ProcessDied):
        return "unknown" if error.begun else "none"
    return "failed"


def is_worth_retrying(error: BaseException) -> bool:
    """Return whether another attempt may end differently: arguments and results that do not fit will not fit then."""
    return not isinstance(error, ArgumentsRefused | ResultRefused)


def asked_to_wait(error: BaseException) -> float | None:
    """Return the seconds to wait before the next attempt, if the exception says so; never negative.

    Understood are `ToolFailed(retry_after_seconds=...)`, an attribute `retry_after`, and the header `Retry-After` of
    an attribute `response`, in seconds or as a date (RFC 9110, 10.2.3): on the exception or on the one it came from.
    """
    for one in _with_causes(error):
        if isinstance(one, ToolFailed) and one.retry_after_seconds is not None:
            return max(0.0, one.retry_after_seconds)
        for found in (getattr(one, "retry_after", None), _header(getattr(one, "response", None))):
            seconds = _seconds(found)
            if seconds is not None:
                return seconds
    return None


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    one: BaseException | None = error
    for _ in range(4):
        if one is None:
            return
        yield one
        one = one.__cause__


def _header(response: Any) -> object:
    get: Any = getattr(getattr(response, "headers", None), "get", None)
    if not callable(get):
        return None
    try:
        return get("retry-after") or get("Retry-After")
    except Exception:  # what looks like headers need not be headers
        return None


def _seconds(found: object) -> float | None:
    if isinstance(found, dt.timedelta):
        return max(0.0, found.total_seconds())
    if isinstance(found, bool) or not isinstance(found, int | float | str):
        return None
    try:
        seconds = float(found)
    except ValueError:
        return _until(str(found))
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _until(date: str) -> float | None:
    from email.utils import parsedate_to_datetime  # 3 ms to import

    try:
        when = parsedate_to_datetime(date)
    except (ValueError, TypeError):
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=dt.UTC)
    return max(0.0, (when - dt.datetime.now(dt.UTC)).total_seconds())
