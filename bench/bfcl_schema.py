"""The Berkeley Function Calling Leaderboard's function documents as JSON Schema."""

from __future__ import annotations

from typing import Any

__all__ = ["json_schema"]

_TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": None}
"""The words of the documents that JSON Schema does not have; None is a type that allows everything."""

_WORDS_WITH_SCHEMAS = ("properties", "$defs", "definitions")
_WORDS_WITH_DATA = ("default", "enum", "const", "example", "examples")


def json_schema(document: Any) -> Any:
    """Return the document's `parameters`, or a part of it, with its types as JSON Schema words.

    Only the word after `type` is mapped where it is a type: a property may be called `type` too, and defaults and
    enumerations are data.
    """
    if isinstance(document, list):
        return [json_schema(part) for part in document]
    if not isinstance(document, dict):
        return document
    mapped: dict[str, Any] = {}
    for word, value in document.items():
        if word in _WORDS_WITH_DATA:
            mapped[word] = value
        elif word in _WORDS_WITH_SCHEMAS and isinstance(value, dict):
            mapped[word] = {name: json_schema(inner) for name, inner in value.items()}
        elif word == "type" and isinstance(value, str):
            name = _TYPES.get(value, value)
            if name is not None:
                mapped["type"] = name
        else:
            mapped[word] = json_schema(value)
    return mapped
