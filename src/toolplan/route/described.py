"""What of a tool is compared with a request: its words, each with a weight, and one line for embeddings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from toolplan.route.words import words_of
from toolplan.tools import Tool

__all__ = ["line_of", "weighted_words"]

NAME = 2.0
DESCRIPTION = 1.0
DETAIL = 0.5
"""What a word is worth in a tool's name, in its description, and in what it takes and returns."""


def weighted_words(tool: Tool) -> Mapping[str, float]:
    """Return the words of a tool and what each is worth: the sum of its weights wherever it stands."""
    weights: Counter[str] = Counter()
    for text, weight in _texts(tool):
        for word, _ in words_of(text):
            weights[word] += weight  # pyright: ignore[reportArgumentType] - a counter of fractions
    return weights


def line_of(tool: Tool, keywords: Iterable[str]) -> str:
    """Return the name, the first paragraph of the description and the keywords, as one line of plain words."""
    name = " ".join(shown for _, shown in words_of(tool.name)) or tool.name
    return ": ".join(text for text in (name, tool.summary, ", ".join(keywords)) if text)


def _texts(tool: Tool) -> Iterator[tuple[str, float]]:
    yield tool.name, NAME
    yield tool.description, DESCRIPTION
    for text in _details(tool.parameters):
        yield text, DETAIL
    yield tool.result_description, DETAIL
    if tool.returns is not None:
        for text in _details(tool.returns):
            yield text, DETAIL


def _details(schema: Mapping[str, Any]) -> Iterator[str]:
    """Give the names of fields, the descriptions and the choices anywhere in a schema."""
    waiting: list[Any] = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting.extend(cast("list[Any]", part))
        elif isinstance(part, Mapping):
            yield from _said(cast("Mapping[str, Any]", part))
            waiting.extend(cast("Mapping[str, Any]", part).values())


def _said(part: Mapping[str, Any]) -> Iterator[str]:
    properties, description = part.get("properties"), part.get("description")
    if isinstance(properties, Mapping):
        yield from cast("Mapping[str, Any]", properties)
    if isinstance(description, str):
        yield description
    choices = part.get("enum", [part.get("const")])
    if isinstance(choices, list):
        yield from (choice for choice in cast("list[Any]", choices) if isinstance(choice, str))
