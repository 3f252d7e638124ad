"""From one kind of value to another, and what may be absent."""

from __future__ import annotations

from collections.abc import Iterator

from toolplan.expressions.faults import Fault, shown
from toolplan.expressions.functions.registry import MISSING, NotGiven, as_text, elements, function, key_text
from toolplan.expressions.limits import Budget
from toolplan.expressions.rendering import convert, format_value, json_text, text_of
from toolplan.expressions.sets import distinct
from toolplan.values import Json

__all__: list[str] = []


@function("str")
def _str(budget: Budget, x: Json = "") -> str:
    """The value as text: text as it is, numbers as in Python, `null`, `true`, `false`, lists and objects as JSON."""
    return text_of(x, budget)


@function("repr")
def _repr(budget: Budget, x: Json) -> str:
    """The value as text, with quotes around text."""
    return convert(x, "r", budget)


@function("format")
def _format(budget: Budget, x: Json, spec: Json = "") -> str:
    """The value under a format spec: `format(3.14159, ".2f")`, `format(day, "%d.%m.%Y")`."""
    return format_value(x, as_text(spec, 1), budget)


@function("json")
def _json(budget: Budget, value: Json) -> str:
    """The value as JSON text."""
    return json_text(value, budget)


@function("bool")
def _bool(budget: Budget, x: Json = False) -> bool:
    """Whether the value is neither null, false, zero nor empty."""
    return bool(x)


@function("list")
def _list(budget: Budget, items: Json | Iterator[Json] | NotGiven = MISSING) -> list[Json]:
    """A list of the elements (characters of a text, keys of an object)."""
    if isinstance(items, NotGiven):
        return []
    values = elements(budget, items)
    budget.produce(8 * len(values))
    return list(values)


@function("tuple")
def _tuple(budget: Budget, items: Json | Iterator[Json] | NotGiven = MISSING) -> list[Json]:
    """The same as `list`: JSON has no tuples."""
    return _list(budget, items)


@function("set")
def _set(budget: Budget, items: Json | Iterator[Json] | NotGiven = MISSING) -> list[Json]:
    """A list of the different elements, each at its first place."""
    return [] if isinstance(items, NotGiven) else distinct(budget, elements(budget, items))


@function("dict")
def _dict(budget: Budget, pairs: Json | Iterator[Json] | NotGiven = MISSING) -> dict[str, Json]:
    """An object from a list of `[key, value]` pairs, or a copy of an object."""
    if isinstance(pairs, NotGiven):
        return {}
    if isinstance(pairs, dict):
        budget.produce(100 * len(pairs))
        return dict(pairs)
    values = elements(budget, pairs)
    budget.produce(100 * len(values))
    made: dict[str, Json] = {}
    for pair in values:
        if not isinstance(pair, list) or len(pair) != 2:
            raise Fault(f"`dict` takes pairs `[key, value]`, not {shown(pair)}")
        made[key_text(pair[0])] = pair[1]
    return made


@function("isinstance", special=True)
def _isinstance(budget: Budget, x: Json, kind: object) -> bool:
    """Whether the value is a `str`, `int`, `float`, `bool`, `list` or `dict`, or one of several kinds in brackets."""
    raise AssertionError("its arguments are not computed first: see `calls`")


@function("default", special=True)
def _default(budget: Budget, value: Json, fallback: Json) -> Json:
    """The value, or `fallback` when it is null or any field or element on the way to it does not exist."""
    raise AssertionError("its arguments are not computed first: see `calls`")
