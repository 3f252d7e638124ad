"""BM25 over tools, and a choice from it that serves every part of a request.

The weights are Robertson's and Spärck Jones's: a word counts the more the fewer tools have it, with diminishing returns
within one tool, less in a long description ("Simple, proven approaches to text retrieval", 1994). A tool's fields are
put together before that, each with its weight, as Robertson, Zaragoza and Taylor do for structured documents (2004).

A request for two things has words of both, and the plain order would fill up with tools for the one that has more of
them. So tools are taken one by one, and a word that tools taken before have explained counts less for the next: greedy
maximum coverage, the idea of explicit diversification (Santos, Macdonald, Ounis 2010).
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

__all__ = ["Index", "Term", "Worth", "diverse"]

K1 = 1.2
B = 0.75
"""The customary constants: how soon a repeated word stops to count, and how much a long text is held against it."""
EXPLAINED = 0.8
"""What of its weight a word keeps each time that a tool taken has it."""


class Term(NamedTuple):
    """A word, or a keyword."""

    text: str
    is_keyword: bool = False


Worth: TypeAlias = dict[Term, float]
"""What of a request speaks for one tool, and how much."""


class Index:
    """Texts by their words. `documents` holds for each the weight of each of its words, `keywords` its keywords.

    A keyword is a word that somebody vouches for: it counts by its rarity alone, as a word does that stands in a text
    over and over.
    """

    def __init__(self, documents: Sequence[Mapping[str, float]], keywords: Sequence[Collection[str]]) -> None:
        lengths = [sum(document.values()) for document in documents]
        mean = sum(lengths) / len(lengths) if lengths else 1.0
        held_by = Counter(word for document in documents for word in document)
        self._postings: dict[str, list[tuple[int, float]]] = {}
        for number, document in enumerate(documents):
            room = K1 * (1 - B + B * lengths[number] / mean) if mean else K1
            for word, weight in document.items():
                score = _rarity(held_by[word], len(documents)) * weight * (K1 + 1) / (weight + room)
                self._postings.setdefault(word, []).append((number, score))
        claimed_by = Counter(keyword for claimed in keywords for keyword in claimed)
        self._claims: dict[str, list[tuple[int, float]]] = {}
        for number, claimed in enumerate(keywords):
            for keyword in claimed:
                score = _rarity(claimed_by[keyword], len(documents)) * (K1 + 1)
                self._claims.setdefault(keyword, []).append((number, score))

    def matches(self, words: Iterable[str], keywords: Iterable[str]) -> dict[int, Worth]:
        """Return, for each text that has any of the words or keywords, what each of these is worth in it."""
        found: dict[int, Worth] = {}
        for terms, held, is_keyword in ((words, self._postings, False), (keywords, self._claims, True)):
            for term in dict.fromkeys(terms):
                for number, score in held.get(term, ()):
                    found.setdefault(number, {})[Term(term, is_keyword)] = score
        return found


def _rarity(held_by: int, of: int) -> float:
    return math.log(1 + (of - held_by + 0.5) / (held_by + 0.5))


def diverse(matches: Mapping[int, Worth], most: int) -> list[int]:
    """Return the numbers of at most `most` texts, best first, where words count less that are explained already.

    What a text is worth only falls while others are taken, so the best of a heap is the best of all as soon as its
    worth is up to date (Minoux 1978).
    """
    weights = dict.fromkeys((term for worth in matches.values() for term in worth), 1.0)
    heap = [(-sum(worth.values()), number) for number, worth in matches.items()]
    heapq.heapify(heap)
    chosen: list[int] = []
    while heap and len(chosen) < most:
        stale, number = heap[0]
        now = -sum(score * weights[term] for term, score in matches[number].items())
        if now != stale:
            heapq.heapreplace(heap, (now, number))
            continue
        heapq.heappop(heap)
        chosen.append(number)
        for term in matches[number]:
            weights[term] *= EXPLAINED
    return chosen
