"""Strict reading of one JSON value out of a text, by the C scanner of `json`, with nothing lost in silence.

`json` alone keeps the last of two equal keys, reads NaN, turns 1e999 into infinity and lets half a surrogate pair pass.
Here each of these is told, and nesting is bounded, so that whatever reads the value afterwards may recurse.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from toolplan.diagnostics import Diagnostic, Place
from toolplan.diagnostics import reading as say
from toolplan.diagnostics.source import Path
from toolplan.values import Json, is_text

__all__ = ["MAX_LEVELS", "Decoded", "Unacceptable", "Unreadable", "decode", "describe"]

MAX_LEVELS = 100
"""Deeper nesting than this is refused: no plan needs it, and every later stage may then recurse."""


class Unreadable(ValueError):
    """The text at this place is not one JSON value. `at` is the offset where that was noticed."""

    def __init__(self, at: int) -> None:
        super().__init__(f"not JSON at {at}")
        self.at = at


class Unacceptable(ValueError):
    """The text is JSON of a sort that no plan may hold. The diagnostic's place counts characters of the text."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


@dataclass(frozen=True, slots=True)
class Decoded:
    """A JSON value, where its text ends, and what is wrong with it although it could be read.

    The places of `faults` are paths into the value; `repairs` are harmless oddities, one sentence each.
    """

    value: Json
    end: int
    faults: tuple[Diagnostic, ...] = ()
    repairs: tuple[str, ...] = ()


def decode(text: str, start: int = 0) -> Decoded:
    """Return the JSON value that begins at `start`, whatever follows it.

    Raises `Unreadable` when there is none, and `Unacceptable` for numbers that JSON does not have and for nesting
    beyond `MAX_LEVELS`. Doubled keys and broken characters come back as `faults`.
    """
    doubled: list[tuple[dict[str, Json], str, bool]] = []

    def pairs(items: list[tuple[str, Json]]) -> dict[str, Json]:
        found = dict(items)
        if len(found) != len(items):
            doubled.extend(_doubled(found, items))
        return found

    decoder = json.JSONDecoder(object_pairs_hook=pairs, parse_constant=_no_constant, parse_float=_finite)
    try:
        value, end = decoder.raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise Unreadable(error.pos) from None
    except _OddNumber as error:
        raise Unacceptable(_odd_number(text, start, error.found)) from None
    except RecursionError:
        raise Unacceptable(_too_deep(text, start)) from None
    except ValueError:  # more digits than `int` reads
        raise Unacceptable(_odd_number(text, start, None)) from None
    if _is_deeper_than(value, MAX_LEVELS):
        raise Unacceptable(_too_deep(text, start))
    faults: list[Diagnostic] = []
    repairs: list[str] = []
    paths = _paths_to(value, {id(owner) for owner, _, differs in doubled if differs})
    for owner, key, differs in doubled:
        if differs:
            faults.append(say.duplicate_key(Place((*paths.get(id(owner), ()), key), key=True), key))
        else:
            repairs.append(f"read the key `{key}` once, which one object has twice with the same value")
    written = text[start:end]
    if ("\\u" in written and ("\\ud" in written or "\\uD" in written)) or not is_text(written):
        faults += _broken_characters(value)
    return Decoded(value, end, tuple(faults), tuple(dict.fromkeys(repairs)))


class _OddNumber(Exception):
    def __init__(self, found: str) -> None:
        super().__init__(found)
        self.found = found


def _no_constant(name: str) -> Json:
    raise _OddNumber(name)


def _finite(text: str) -> float:
    value = float(text)
    if value - value != 0:
        raise _OddNumber(text)
    return value


def _doubled(found: dict[str, Json], items: list[tuple[str, Json]]) -> Iterator[tuple[dict[str, Json], str, bool]]:
    values: dict[str, Json] = {}
    for key, value in items:
        if key in values:
            yield found, key, not _same(values[key], value)
        values[key] = value


def _same(a: Json, b: Json) -> bool:
    """Whether two values are the same JSON: to Python, `1`, `1.0` and `true` are equal too."""
    if not isinstance(a, (list, dict)):
        return type(a) is type(b) and a == b
    try:
        return json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True)
    except RecursionError:
        return False


_NUMBERS = re.compile(r'"(?:[^"\\]++|\\.)*+"|(-?(?:NaN|Infinity|\d[\d.eE+-]*+))', re.DOTALL)


def _odd_number(text: str, start: int, found: str | None) -> Diagnostic:
    """Return the diagnostic for the number `found` (None: one with too many digits)."""
    for match in _NUMBERS.finditer(text, start):
        number = match.group(1)
        if number and (number == found or (found is None and len(number) > 1000)):
            place = Place(start=match.start(1), end=match.end(1))
            if number[-1] in "Ny":
                return say.not_a_value(place, number, "JSON has no such number", "use null, or leave the key out")
            return say.not_a_value(place, number, "the number is too large", "write a smaller number, or text")
    return say.not_a_value(
        Place(start=start, end=start + 1), found or "…", "the number is too large", "write it as text"
    )


_BRACKETS = re.compile(r'"(?:[^"\\]++|\\.)*+"|([\[{])|([\]}])', re.DOTALL)


def _too_deep(text: str, start: int) -> Diagnostic:
    """Return the diagnostic for the first bracket beyond `MAX_LEVELS`."""
    depth = 0
    at = start
    for match in _BRACKETS.finditer(text, start):
        depth += 1 if match.group(1) else -1 if match.group(2) else 0
        at = match.start()
        if depth > MAX_LEVELS:
            break
    return say.too_large(Place(start=at, end=at + 1), "levels", MAX_LEVELS)


def _is_deeper_than(value: Json, levels: int) -> bool:
    layer = [value] if isinstance(value, (list, dict)) else []
    for _ in range(levels):
        if not layer:
            return False
        layer = [
            inner
            for outer in layer
            for inner in (outer.values() if type(outer) is dict else outer)
            if type(inner) is dict or type(inner) is list
        ]
    return bool(layer)


def _walk(value: Json) -> Iterator[tuple[Path, Json]]:
    stack: list[tuple[Path, Json]] = [((), value)]
    while stack:
        path, item = stack.pop()
        yield path, item
        if isinstance(item, dict):
            stack += [((*path, key), below) for key, below in reversed(item.items())]
        elif isinstance(item, list):
            stack += [((*path, index), below) for index, below in reversed(list(enumerate(item)))]


def _paths_to(value: Json, objects: set[int]) -> dict[int, Path]:
    """Return the paths to the objects with these identities."""
    return {id(item): path for path, item in _walk(value) if id(item) in objects} if objects else {}


def _broken_characters(value: Json) -> Iterator[Diagnostic]:
    for path, item in _walk(value):
        for text in item if isinstance(item, dict) else (item,):
            if not isinstance(text, str) or text.isascii():
                continue
            try:
                text.encode()
            except UnicodeEncodeError as error:
                place = Place(path, error.start, error.end) if isinstance(item, str) else Place(path)
                yield say.not_a_value(
                    place,
                    f"\\u{ord(text[error.start]):04x}",
                    "half of a surrogate pair is not a character",
                    "write the character itself",
                )


def describe(value: Json) -> str:
    """Return words for what a JSON value is, with its keys or its size, for messages."""
    if isinstance(value, dict):
        keys = ", ".join(f"`{key[:30]}`" for key in list(value)[:5])
        return f"an object with {keys}" + (", …" if len(value) > 5 else "") if value else "an empty object"
    if isinstance(value, list):
        return f"a list of {len(value)}" if value else "an empty list"
    if isinstance(value, str):
        return f"the text `{value[:40]}{'…' if len(value) > 40 else ''}`" if value else "an empty text"
    return f"`{json.dumps(value)}`"
