"""Counting, adding, ordering and choosing."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, cast

from toolplan.expressions.faults import ArgumentFault, Fault, Missing, no_order, shown
from toolplan.expressions.functions.registry import MISSING, NotGiven, as_number, as_whole, elements, fitting, function
from toolplan.expressions.limits import Budget
from toolplan.values import Json

__all__: list[str] = []

Key: TypeAlias = "Callable[[Json], Json]"
NUMERIC = frozenset({int, float, bool})
Values: TypeAlias = "Json | Iterator[Json]"


@function("len")
def _len(budget: Budget, x: Json) -> int:
    """The number of characters of a text, elements of a list, or fields of an object."""
    if isinstance(x, str | list | dict):
        return len(x)
    raise ArgumentFault(0, x, "text, a list or an object")


@function("sum")
def _sum(budget: Budget, items: Values, start: Json = 0) -> Json:
    """The sum of numbers; with `start=[]` the lists in a list put one after the other."""
    values = elements(budget, items)
    budget.spend(len(values) // 2)
    if isinstance(start, list):
        return _joined(budget, values, start)
    first = as_number(start, "start")
    for index, value in enumerate(() if NUMERIC.issuperset(map(type, values)) else values):
        if not isinstance(value, int | float):
            if value is None:
                raise Missing(f"`sum` adds numbers, but element {index} is null")
            help = None
            if isinstance(value, str):
                help = "turn each into a number: `sum([number(x) for x in ...])`; texts are joined by `''.join(...)`"
            raise Fault(f"`sum` adds numbers, but element {index} is {shown(value)}", help=help)
    try:
        return fitting(sum(cast("list[int | float]", values), first))
    except OverflowError:
        raise Fault("the sum is too large") from None


def _joined(budget: Budget, values: list[Json], start: list[Json]) -> list[Json]:
    joined = list(start)
    for value in values:
        if not isinstance(value, list):
            raise Fault(f"`sum` cannot add {shown(value)} to a list")
        budget.produce(8 * len(value))
        joined += value
    return joined


# --- ordering --------------------------------------------------------------------------------------------------------


def _measure(key: object) -> Key | None:
    """Return the function that a `key` is: a lambda's or function's own, or the look-up of a field."""
    if key is None or key is MISSING:
        return None
    if callable(key):
        return cast("Key", key)
    if not isinstance(key, str):
        raise Fault(
            f"`key` is the name of a field or a lambda, not {shown(cast('Json', key))}",
            help="write `key='price'` or `key=lambda x: x.price`",
        )

    def field(value: Json) -> Json:
        try:
            return cast("Any", value)[key]
        except (KeyError, TypeError):
            return _field(value, key)

    return field


def _field(value: Json, path: str) -> Json:
    found = value
    for name in path.split("."):
        if not isinstance(found, dict) or name not in found:
            fields = f"; it has {', '.join(list(found)[:8])}" if isinstance(found, dict) and found else ""
            raise Missing(f"an element has no field `{path}` to order by{fields}")
        found = found[name]
    return found


def _keys(budget: Budget, values: list[Json], key: object) -> list[Json]:
    """Return what `values` are ordered by; `values` itself without a key."""
    measure = _measure(key)
    keys = values if measure is None else [measure(value) for value in values]
    if keys and isinstance(keys[0], list):
        # Lists in lists may be shared, and so take longer to compare than was paid for when they were made.
        for _ in range(0, len(keys).bit_length(), 4):
            budget.spend_on(keys)
    return keys


def _no_order(keys: list[Json]) -> Fault:
    """Return the fault that names two of the keys which have no order."""
    for before, after in itertools.chain(itertools.pairwise(keys), ((keys[0], other) for other in keys[1:])):
        try:
            _ = cast("Any", before) < after
        except TypeError:
            return no_order(before, after)
    return Fault("these elements cannot be ordered against each other")


@function("sorted")
def _sorted(budget: Budget, items: Values, *, key: object = MISSING, reverse: Json = False) -> list[Json]:
    """The elements in order; `key` is a field's name (`price`, `a.b`) or a lambda, `reverse=True` turns them round."""
    values = elements(budget, items)
    largest_first = bool(as_whole(reverse, "reverse"))
    budget.spend(len(values) // 2 * max(1, len(values).bit_length() // 4))
    budget.produce(16 * len(values))
    keys = cast("Any", _keys(budget, values, key))
    try:
        if keys is values:
            return sorted(keys, reverse=largest_first)
        return [values[at] for at in sorted(range(len(keys)), key=keys.__getitem__, reverse=largest_first)]
    except TypeError:
        raise _no_order(keys) from None


def _extreme(budget: Budget, name: str, values: tuple[Values, ...], key: object, default: Json | NotGiven) -> Json:
    if len(values) == 1:
        candidates = elements(budget, values[0])
        if not candidates:
            if isinstance(default, NotGiven):
                raise Missing(
                    f"`{name}` of nothing: the list is empty", help=f"give a stand-in: `{name}(..., default=0)`"
                )
            return default
    else:
        candidates = cast("list[Json]", list(values))
        if default is not MISSING:
            raise Fault(f"`default` goes with one list, as in `{name}(prices, default=0)`")
    budget.spend(len(candidates) // 4)
    keys = cast("Any", _keys(budget, candidates, key))
    choose: Any = min if name == "min" else max
    try:
        return choose(keys) if keys is candidates else candidates[choose(range(len(keys)), key=keys.__getitem__)]
    except TypeError:
        raise _no_order(keys) from None


@function("min")
def _min(budget: Budget, *values: Values, key: object = MISSING, default: Json | NotGiven = MISSING) -> Json:
    """The smallest of several values or of the elements of one list; `key` as in `sorted`, `default` if it is empty."""
    return _extreme(budget, "min", values, key, default)


@function("max")
def _max(budget: Budget, *values: Values, key: object = MISSING, default: Json | NotGiven = MISSING) -> Json:
    """The largest of several values or of the elements of one list; `key` as in `sorted`, `default` if it is empty."""
    return _extreme(budget, "max", values, key, default)


# --- choosing --------------------------------------------------------------------------------------------------------


@function("reversed")
def _reversed(budget: Budget, items: Values) -> list[Json]:
    """The elements from last to first."""
    values = elements(budget, items)
    budget.produce(8 * len(values))
    return values[::-1]


@function("any", lazy=True)
def _any(budget: Budget, items: Values) -> bool:
    """Whether at least one element is true."""
    return any(items if isinstance(items, Iterator) else elements(budget, items))


@function("all", lazy=True)
def _all(budget: Budget, items: Values) -> bool:
    """Whether every element is true."""
    return all(items if isinstance(items, Iterator) else elements(budget, items))


@function("next", lazy=True)
def _next(budget: Budget, items: Values, default: Json | NotGiven = MISSING) -> Json:
    """The first element; `default` when there is none."""
    for first in items if isinstance(items, Iterator) else elements(budget, items):
        return first
    if isinstance(default, NotGiven):
        raise Missing("`next` found no element", help="give a stand-in: `next(..., None)`")
    return default
