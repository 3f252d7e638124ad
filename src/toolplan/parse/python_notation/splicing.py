"""Text that was put together from parts of the program, and where each of its characters comes from.

When a call inside an expression becomes a step, a name takes its place: `get(x=1).total + fee` is `_1.total + fee` in
the plan. Messages about such a text must still mark the program as its author wrote it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from toolplan.diagnostics import Place

__all__ = ["Piece", "Pieces", "joined", "place_of"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text: `text` stands for what the source has from `start` to `end`."""

    text: str
    start: int
    end: int


Pieces: TypeAlias = "tuple[Piece, ...]"


def joined(pieces: Iterable[Piece]) -> str:
    """Return the text that the pieces make."""
    return "".join(piece.text for piece in pieces)


def place_of(pieces: Pieces, start: int, end: int) -> Place:
    """Return the place, from `start` to `end` of the source, of a text made of these pieces."""
    if len(pieces) == 1 and len(pieces[0].text) == pieces[0].end - pieces[0].start:
        return Place(start=start, end=end)
    return _SplicedPlace(start, end, pieces)


class _SplicedPlace(Place):
    """The place of a spliced text: parts of the text are found where they come from."""

    pieces: Pieces

    def __new__(cls, start: int, end: int, pieces: Pieces) -> _SplicedPlace:
        place = super().__new__(cls, (), start, end)
        place.pieces = pieces
        return place

    def within(self, start: int, end: int) -> Place:
        """Return the part of the source that the text has from `start` to `end`."""
        if (start, end) == (0, sum(len(piece.text) for piece in self.pieces)):
            return self
        first = self._source(start, at_end=False)
        return Place(start=first, end=max(first, self._source(end, at_end=True)))

    def _source(self, offset: int, at_end: bool) -> int:
        for piece in self.pieces:
            size = len(piece.text)
            if offset < size or (at_end and offset == size):
                verbatim = size == piece.end - piece.start
                return piece.start + offset if verbatim else piece.end if at_end else piece.start
            offset -= size
        return self.end or 0
