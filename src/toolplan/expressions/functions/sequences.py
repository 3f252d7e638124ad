"""Making lists, and changed copies of values."""

from __future__ import annotations

from collections.abc import Iterator

from toolplan.expressions.faults import ArgumentFault, Fault, Missing
from toolplan.expressions.functions.registry import MISSING, NotGiven, as_whole, elements, function, key_text
from toolplan.expressions.limits import Budget
from toolplan.values import Json

__all__ = ["spread"]


@function("range")
def _range(budget: Budget, start: Json, stop: Json | NotGiven = MISSING, step: Json = 1) -> list[Json]:
    """The whole numbers from `start` (0 when only `stop` is given) up to, not including, `stop`."""
    return elements(budget, spread(start, stop, step))


def spread(start: Json, stop: Json | NotGiven = MISSING, step: Json = 1) -> range:
    """Return Python's range for the arguments of `range`. Raises `Fault`."""
    if isinstance(stop, NotGiven):
        first, last = 0, as_whole(start, 0)
    else:
        first, last = as_whole(start, 0), as_whole(stop, 1)
    stride = as_whole(step, 2)
    if not stride:
        raise Fault("the step of a `range` cannot be zero")
    if max(abs(first), abs(last), abs(stride)) >= 1 << 62:
        raise Fault("the numbers of this `range` are too large")
    return range(first, last, stride)


@function("enumerate")
def _enumerate(budget: Budget, items: Json | Iterator[Json], start: Json = 0) -> list[Json]:
    """Pairs `[index, element]`, counted from `start`."""
    values = elements(budget, items)
    budget.produce(130 * len(values))
    return [[index, value] for index, value in enumerate(values, as_whole(start, 1))]


@function("zip")
def _zip(budget: Budget, *lists: Json | Iterator[Json]) -> list[Json]:
    """The first elements of all lists as a list, then the second ones, up to the end of the shortest."""
    rows = [elements(budget, values, position) for position, values in enumerate(lists)]
    if not rows:
        return []
    budget.produce((60 + 8 * len(rows)) * min(len(row) for row in rows))
    return [list(together) for together in zip(*rows, strict=False)]


@function("set_item")
def _set_item(budget: Budget, container: Json, key: Json, value: Json) -> Json:
    """A copy of the list or object with the element at `key` replaced, or the field added."""
    if isinstance(container, dict):
        budget.produce(100 * len(container))
        return {**container, key_text(key): value}
    if not isinstance(container, list):
        raise ArgumentFault(0, container, "a list or an object")
    index = as_whole(key, 1)
    if not -len(container) <= index < len(container):
        raise Missing(f"the list has {len(container)} elements, so there is no element {index} to replace")
    budget.produce(8 * len(container))
    copy = list(container)
    copy[index] = value
    return copy
