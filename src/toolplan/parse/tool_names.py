"""The one rule by which a misspelt tool name is mended."""

from __future__ import annotations

from collections.abc import Collection

__all__ = ["meant_tool"]


def meant_tool(written: str, tools: Collection[str]) -> str | None:
    """Return the only tool that `written` can mean: itself, or but for case or for a dotted prefix; None otherwise.

    A prefix may be missing on either side (`functions.get_weather`, or `find` for `calendar.find`), as long as exactly
    one tool fits. Anything merely similar is never taken.
    """
    if written in tools:
        return written
    last = written.rpartition(".")[2]
    fits = (
        [tool for tool in tools if tool.casefold() == written.casefold()]
        or [tool for tool in tools if tool == last]
        or [tool for tool in tools if tool.rpartition(".")[2] == written]
    )
    return fits[0] if len(fits) == 1 else None
