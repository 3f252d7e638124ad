"""What a format is: the marks that begin something in it, who reads on from there, and how calls are written."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from toolplan.parse.formats.cursor import Reader
from toolplan.parse.formats.parts import CallPart
from toolplan.parse.formats.scan import Scan
from toolplan.values import Json

__all__ = ["Format", "Opener", "ReadOn", "no_results", "result_text"]

ReadOn: TypeAlias = "Callable[[Scan, str, int], Reader[None]]"
"""Reads on behind a mark: the scan, the mark, and where it began in the reply."""


@dataclass(frozen=True, slots=True)
class Opener:
    """Marks that begin something, and who reads it. `at`: whether they count anywhere or only where a line begins.

    `is_call`: a call begins there, or what goes around calls.
    """

    marks: tuple[str, ...]
    read: ReadOn
    at: Literal["anywhere", "line"] = "anywhere"
    is_call: bool = True


@dataclass(frozen=True)
class Format:
    """A published way to write tool calls as text. `write` gives the text of calls, `write_results` that of results."""

    name: str
    title: str
    """Whose format it is, in a few words."""
    openers: tuple[Opener, ...]
    write: Callable[[Sequence[CallPart]], str]
    write_results: Callable[[Sequence[CallPart], Sequence[Json]], str]
    write_whole: Callable[[Sequence[CallPart], str, Sequence[Json] | None], str] | None = None
    """Writes text, calls and results in one, where they cannot stand one behind the other."""
    also: tuple[str, ...] = ()
    """Other names of the format."""
    loose: frozenset[str] = frozenset()
    """What of it may stand without any marks: `json`, `python`."""
    alone: bool = True
    """Whether `auto` looks for it. Formats that only vary the writing of another are found under that one's name."""


def result_text(result: Json) -> str:
    """Return a result as it is shown to a model: text as it is, everything else as JSON."""
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)


def no_results(calls: Sequence[CallPart], results: Sequence[Json]) -> str:
    """Return results as plain lines, for formats that have a role of its own for them."""
    return "\n".join(result_text(result) for result in results)
