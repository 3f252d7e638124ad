"""Likeness of meaning, by the vectors of an embedding model that somebody else provides.

A request for two things has a vector between them, near to neither. So each of its parts is compared on its own as
well, and the parts take turns in naming the tools that are most like them.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Sequence
from operator import mul
from typing import Any, TypeAlias, cast

from toolplan.errors import UsageError
from toolplan.route.words import parts_of

__all__ = ["Embed", "Meaning"]

Embed: TypeAlias = "Callable[[Sequence[str]], Sequence[Sequence[float]]]"
"""Gives a vector for each text, as lists or as the rows of an array; arrays are compared at the speed of arrays."""


class Meaning:
    """Texts by their vectors. Raises `UsageError` when `embed` does not give one for each of them."""

    def __init__(self, texts: Sequence[str], embed: Embed) -> None:
        self._embed = embed
        self._rows = self._vectors(texts)

    def nearest(self, request: str, among: Sequence[int], most: int) -> tuple[list[int], dict[int, float]]:
        """Return the numbers of the texts most like the request or a part of it, best first; and how like they are.

        `among` are the numbers that are wanted, in order, and `most` is how many of them at most. The likeness is the
        cosine of the angle to the part that is nearest.
        """
        parts = list(dict.fromkeys([request, *parts_of(request)]))
        cosines = self._cosines(parts)
        orders = [heapq.nsmallest(most, among, key=lambda n, row=row: (-row[n], n)) for row in cosines]
        turns = itertools.chain.from_iterable(itertools.zip_longest(*orders[1:], orders[0]))
        best = list(dict.fromkeys(number for number in turns if number is not None))[:most]
        return best, {number: max(row[number] for row in cosines) for number in best}

    def _cosines(self, texts: Sequence[str]) -> list[list[float]]:
        vectors = self._vectors(texts)
        if hasattr(vectors, "T"):
            return (vectors @ self._rows.T).tolist()
        return [[sum(map(mul, vector, row)) for row in self._rows] for vector in vectors]

    def _vectors(self, texts: Sequence[str]) -> Any:
        """Return the vectors of the texts, each of length 1."""
        vectors = cast("Any", self._embed(list(texts)))
        if len(vectors) != len(texts):
            raise UsageError(f"`embed` got {len(texts)} texts and gave {len(vectors)} vectors; it gives one for each")
        if hasattr(vectors, "T"):  # an array, of whatever library
            return vectors / ((vectors * vectors).sum(axis=1, keepdims=True) ** 0.5 + 1e-12)
        return [[value / (math.hypot(*vector) or 1.0) for value in vector] for vector in vectors]
