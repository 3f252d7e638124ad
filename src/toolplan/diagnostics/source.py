"""Where something stands in a plan's text.

The hot path must not pay for line numbers that nobody will read: a JSON plan is read by the C scanner of `json`, and
a `Place` in it is just a path and offsets inside the decoded string. `Source.locate` turns that into offsets in the
text only when a message is drawn, by walking the JSON text once with a scanner that records positions.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["NOWHERE", "Path", "Place", "Source"]

Path = tuple[str | int, ...]


class Place(NamedTuple):
    """A place in a plan. A named tuple, because reading a plan makes one for every value in it.

    JSON notation: `path` leads to a value (or, with `key=True`, to the key of that value); `start`/`end` are offsets
    inside the decoded string there, `None` for the whole value. Text notations: `path` is empty and `start`/`end` are
    character offsets into the source text.
    """

    path: Path = ()
    start: int | None = None
    end: int | None = None
    key: bool = False

    def within(self, start: int, end: int) -> Place:
        """Return the part from `start` to `end`, counted in characters from the beginning of this place."""
        base = self.start or 0
        return Place(self.path, base + start, base + end, self.key)

    def child(self, *steps: str | int) -> Place:
        """Return the place of what is below this one (JSON notation)."""
        return Place(self.path + steps)

    def of_key(self) -> Place:
        """Return the place of the key of this value (JSON notation)."""
        return Place(self.path, key=True)

    def json_path(self) -> str | None:
        """Return the path in `$.steps[1].arguments` form, or None in a text notation."""
        if not self.path:
            return None
        return "$" + "".join(f"[{step}]" if isinstance(step, int) else _member(step) for step in self.path)


NOWHERE = Place()

_PLAIN = re.compile(r"[^\W\d]\w*\Z")


def _member(name: str) -> str:
    return f".{name}" if _PLAIN.match(name) else f"[{name!r}]"


@dataclass(frozen=True)
class Source:
    """A text that a plan was read from. `start` is where the plan begins in it; `json` says how to find places."""

    text: str
    name: str = "plan"
    start: int = 0
    json: bool = False

    def locate(self, place: Place) -> tuple[int, int] | None:
        """Return the character offsets of `place` in the text, or None when it cannot be found."""
        if not self.json:
            if place.start is None:
                return None
            return place.start, place.end if place.end is not None else place.start
        spot = self._root
        if spot is None:
            return None
        for step in place.path:
            inner = spot.below.get(step) if spot.below is not None else None
            if inner is None:
                return spot.key or (spot.start, spot.end)
            spot = inner
        value_span = (spot.start, spot.end)
        if place.key and spot.key:
            return spot.key
        if place.start is None or place.end is None or self.text[value_span[0]] not in "\"'":
            return value_span
        offsets = _decoded_offsets(self.text, value_span[0] + 1, value_span[1] - 1)
        last = len(offsets) - 1
        start, end = min(place.start, last), min(place.end, last)
        return offsets[start], max(offsets[end], offsets[start])

    def line_and_column(self, offset: int) -> tuple[int, int]:
        """Return the line and column of a character offset, both counted from 1, the column in characters."""
        before = self.text[:offset]
        line_start = before.rfind("\n") + 1
        return before.count("\n") + 1, offset - line_start + 1

    @functools.cached_property
    def _root(self) -> _Spot | None:
        return _scan(self.text, self.start)


class _Spot:
    """The span of a JSON value in a text, that of its key, and the spots below it."""

    __slots__ = ("below", "end", "key", "start")

    def __init__(self, key: tuple[int, int] | None, start: int, end: int, is_container: bool) -> None:
        self.key = key
        self.start = start
        self.end = end
        self.below: dict[str | int, _Spot] | None = {} if is_container else None


_TOKEN = re.compile(
    r'[\s,:]*(?:(?P<open>[\[{])|(?P<close>[\]}])|(?P<string>"(?:[^"\\]++|\\.)*+"?)|(?P<bare>[^\s,:\[\]{}"]+))',
    re.DOTALL,
)


def _scan(text: str, start: int) -> _Spot | None:
    """Return the spots of the JSON value at `start`. Tolerates damage; never raises."""
    root: _Spot | None = None
    stack: list[tuple[_Spot, bool]] = []  # open containers, and whether each is an object
    key: tuple[str, tuple[int, int]] | None = None
    offset = start
    while match := _TOKEN.match(text, offset):
        offset = match.end()
        token = match.lastgroup or ""
        begin = match.start(token)
        if token == "close":
            if stack:
                stack.pop()[0].end = offset
            key = None
            if not stack:
                break
            continue
        in_object = bool(stack) and stack[-1][1]
        if in_object and key is None and token in ("string", "bare"):
            raw = text[begin:offset]
            key = (_decode(raw) if token == "string" else raw, (begin, offset))
            continue
        if in_object and key is None:  # damaged: a container where a key should be
            break
        is_open = token == "open"
        spot = _Spot(key[1] if key else None, begin, begin + 1 if is_open else offset, is_open)
        if stack and (below := stack[-1][0].below) is not None:
            below[key[0] if key else len(below)] = spot
        root = root or spot
        key = None
        if is_open:
            stack.append((spot, text[begin] == "{"))
        elif not stack:
            break
    return root


_ESCAPE = re.compile(r"\\u[0-9a-fA-F]{4}|\\.", re.DOTALL)
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


def _decode(raw: str) -> str:
    body = raw[1:-1] if len(raw) > 1 and raw.endswith('"') else raw[1:]

    def plain(match: re.Match[str]) -> str:
        text = match.group()
        return chr(int(text[2:], 16)) if len(text) == 6 else _SIMPLE.get(text[1], text[1])

    decoded = _ESCAPE.sub(plain, body)
    return decoded.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _decoded_offsets(text: str, start: int, end: int) -> Sequence[int]:
    """Return, for each character of the decoded string in text[start:end], its offset; then the end."""
    if text.find("\\", start, end) < 0:
        return range(start, end + 1)
    offsets: list[int] = []
    at = start
    while at < end:
        offsets.append(at)
        match = _ESCAPE.match(text, at) if text[at] == "\\" else None
        at = match.end() if match else at + 1
        if match and match.group()[2:4].lower() in ("d8", "d9", "da", "db"):
            low = _ESCAPE.match(text, at)
            if low and low.group()[1] == "u":
                at = low.end()
    offsets.append(end)
    return offsets
