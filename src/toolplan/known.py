"""What is known before a plan starts: the values and effects that the plans before it have left.

A plan that goes on after another one (a replan, the next request of a conversation) uses finished results by their
names. They are values, frozen: the checker knows their types, the scheduler has them in its cells from the start, and
nothing computes them again. The effects that have happened are known too, so that none is repeated in silence (P4).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from toolplan.expressions.types import (
    BOOLEAN,
    INTEGER,
    NEVER,
    NULL,
    NUMBER,
    TEXT,
    UNKNOWN,
    Type,
    join,
    join_all,
    list_of,
    object_of,
)
from toolplan.values import Json, Value

__all__ = ["NOTHING_KNOWN", "Known", "MadeCall", "fingerprint", "type_of_known"]

MAX_ELEMENTS = 64
"""So many elements of a known list are looked at for its type; a longer one may hold anything."""
MAX_DEPTH = 20


@dataclass(frozen=True, slots=True)
class MadeCall:
    """A call with effects that was made: its effect has happened, or nobody knows whether it has."""

    step: str
    tool: str
    arguments: Mapping[str, Json]
    outcome: Literal["succeeded", "unknown"] = "succeeded"

    @property
    def not_again(self) -> str:
        """Why a call like it is not made, when the plan gives no reason to."""
        what = "and nobody knows whether it took effect" if self.outcome == "unknown" else "and has taken effect"
        return f"this call was made already, as `{self.step}`, {what}; it is not made again without a reason (`again`)"


@dataclass(frozen=True, slots=True)
class Known:
    """What earlier plans have left: values by name, effects, states that hold, step ids and calls that are used up."""

    values: Mapping[str, Value] = field(default_factory=lambda: MappingProxyType({}))
    made: tuple[MadeCall, ...] = ()
    states: frozenset[str] = frozenset()
    steps: int = 0
    """How many step ids are taken: the first step of the new plan is the one after."""
    calls: int = 0
    """How many calls were made; they count towards the limit of calls."""

    @property
    def types(self) -> dict[str, Type]:
        """The static types of the values."""
        return {name: type_of_known(value.data) for name, value in self.values.items()}


NOTHING_KNOWN = Known()


def fingerprint(tool: str, arguments: Mapping[str, Json]) -> tuple[str, str]:
    """Return what two calls have in common when they are the same: 20 and 20.0 are one number, order is no matter."""
    return tool, json.dumps(_plain(dict(arguments)), sort_keys=True, ensure_ascii=False)


def _plain(value: Json) -> Json:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


def type_of_known(value: Json, depth: int = 0) -> Type:
    """Return the type of a value that is there: its fields are all there are, its kinds are known.

    Which text or number it is, is left out: a plan may test what its author already knows.
    """
    if value is None:
        return NULL
    if isinstance(value, bool):
        return BOOLEAN
    if isinstance(value, int):
        return INTEGER
    if isinstance(value, float):
        return NUMBER
    if isinstance(value, str):
        return TEXT
    if depth > MAX_DEPTH:
        return UNKNOWN
    if isinstance(value, list):
        elements = join_all(type_of_known(item, depth + 1) for item in value[:MAX_ELEMENTS])
        return list_of(join(elements, UNKNOWN if len(value) > MAX_ELEMENTS else NEVER))
    return object_of({name: type_of_known(item, depth + 1) for name, item in value.items()})
