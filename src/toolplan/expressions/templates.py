"""Templates: JSON structures whose strings may hold expressions in braces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from toolplan.diagnostics import NOWHERE, Place
from toolplan.expressions.read import Expression
from toolplan.values import Json

__all__ = ["Fields", "Hole", "Items", "Literal", "Reference", "Template", "Text"]


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant value."""

    value: Json
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class Reference:
    """The value of an expression, type and all: a whole-string "{expr}", or {"$expr": "..."}."""

    expression: Expression
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class Hole:
    """An expression inside longer text. `raw` is the brace group as written, `spec` a format spec such as ".2f".

    `doubtful` marks a group that is literal text unless its names are in scope (`{{name}}`, or code-like text); the
    names pass settles it.
    """

    expression: Expression
    raw: str
    spec: str | None = None
    doubtful: bool = False


@dataclass(frozen=True, slots=True)
class Text:
    """Text with holes; rendered once, never expanded again."""

    parts: tuple[str | Hole, ...]
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class Items:
    """A list of templates."""

    items: tuple[Template, ...]
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class Fields:
    """An object of templates."""

    fields: tuple[tuple[str, Template], ...]
    place: Place = NOWHERE


Template: TypeAlias = "Literal | Reference | Text | Items | Fields"


def names_of(template: Template) -> frozenset[str]:
    """Return the names that the template needs from outside (doubtful holes included)."""
    raise NotImplementedError


def fill(template: Template, scope: Mapping[str, Json]) -> Json:
    """Return the template's value with the names taken from `scope`. Raises `EvaluationError`."""
    raise NotImplementedError


def parse_template(value: Json, place: Place = NOWHERE) -> Template:
    """Return the template that a JSON value is. Raises `ExpressionError` only for `{"$expr": ...}` that is wrong."""
    raise NotImplementedError
