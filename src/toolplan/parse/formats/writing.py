"""Calls as text, in any format: the history of a conversation for a model served without a template for tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolplan.errors import UsageError
from toolplan.parse.formats.parts import BrokenCall, CallPart
from toolplan.parse.formats.scanner import CallScanner, find_format
from toolplan.values import Json

__all__ = ["write_calls", "write_results"]


def write_calls(
    format: str,
    calls: Sequence[CallPart | Mapping[str, Any]],
    text: str = "",
    results: Sequence[Json] | None = None,
) -> str:
    """Return what a model that writes this format would have written to make these calls, after `text`.

    `calls` are parts, or objects with `name`, `arguments` and perhaps `id`. With `results`, one a call, the results
    follow as the format shows them to the model. Reading what was written gives the same calls: texts inside of
    arguments are written so that none of the format's marks stands in them.

    Raises `UsageError` for an unknown format, and for a name that cannot be written in it.
    """
    found = find_format(format)
    made = [_part(call, position) for position, call in enumerate(calls)]
    if results is not None and len(results) != len(made):
        raise UsageError(f"{len(made)} calls need as many results, but there are {len(results)}")
    if found.write_whole is not None:
        return found.write_whole(made, text, results)
    pieces = [_harmless(text, format)] if text else []
    if made:
        pieces.append(found.write(made))
    if results:
        pieces.append(found.write_results(made, [_shown(result, format) for result in results]))
    return "\n".join(pieces)


def write_results(format: str, calls: Sequence[CallPart | Mapping[str, Any]], results: Sequence[Json]) -> str:
    """Return the results of calls as the format shows them to the model, for formats that give them as text."""
    made = [_part(call, position) for position, call in enumerate(calls)]
    return find_format(format).write_results(made, [_shown(result, format) for result in results])


def _part(call: CallPart | Mapping[str, Any], position: int) -> CallPart:
    if isinstance(call, CallPart):
        return call
    return CallPart(position, str(call.get("id") or f"call_{position}"), call["name"], dict(call["arguments"]))


def _harmless(text: str, format: str) -> str:
    """Return a text in which no call can be read: a word joiner, which nobody sees, stands inside each mark."""
    scanner = CallScanner(format)
    parts = [*scanner.feed(text), *scanner.close()]
    if not any(isinstance(part, CallPart | BrokenCall) for part in parts):
        return text
    for opener in find_format(format).openers:
        for mark in opener.marks:
            text = text.replace(mark, f"{mark[:1]}\u2060{mark[1:]}")
    return text


def _shown(result: Json, format: str) -> Json:
    return _harmless(result, format) if isinstance(result, str) else result
