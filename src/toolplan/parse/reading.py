"""What a reply turned out to be, when it is not an error: a plan, an answer, or a word that there can be no plan."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from toolplan.diagnostics import Source
from toolplan.plan import Plan

__all__ = ["CannotPlan", "Prose", "Reading"]


@dataclass(frozen=True, slots=True)
class Prose:
    """A reply in plain text: an answer that needed no tool."""

    text: str


@dataclass(frozen=True, slots=True)
class CannotPlan:
    """The model's word that the request cannot be done with these tools; `missing` names what would be needed."""

    reason: str
    missing: tuple[str, ...] = ()
    source: Source = field(default=Source(""), compare=False, repr=False)


Reading: TypeAlias = Plan | Prose | CannotPlan
