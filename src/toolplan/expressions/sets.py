"""Lists as sets. JSON has no sets: a set is a list of different values, each at the place where it first occurred.

Values are the same when `==` says so, which also works for lists and objects.
"""

from __future__ import annotations

from collections.abc import Iterable

from toolplan.expressions.limits import Budget
from toolplan.values import Json

__all__ = ["both", "distinct", "either", "one_only", "within", "without"]


def distinct(budget: Budget, values: Iterable[Json]) -> list[Json]:
    """Return the different values in order of first occurrence."""
    return list(_by_identity(budget, values).values())


def either(budget: Budget, left: list[Json], right: list[Json]) -> list[Json]:
    """Return the different values of both lists (`left | right`)."""
    known = _by_identity(budget, left)
    for identity, value in _by_identity(budget, right).items():
        known.setdefault(identity, value)
    return list(known.values())


def both(budget: Budget, left: list[Json], right: list[Json]) -> list[Json]:
    """Return the different values of `left` that are in `right` (`left & right`)."""
    known = _by_identity(budget, right)
    return [value for identity, value in _by_identity(budget, left).items() if identity in known]


def without(budget: Budget, left: list[Json], right: list[Json]) -> list[Json]:
    """Return the different values of `left` that are not in `right` (`left - right`)."""
    known = _by_identity(budget, right)
    return [value for identity, value in _by_identity(budget, left).items() if identity not in known]


def one_only(budget: Budget, left: list[Json], right: list[Json]) -> list[Json]:
    """Return the different values that are in only one of the lists (`left ^ right`)."""
    return without(budget, left, right) + without(budget, right, left)


def within(budget: Budget, left: list[Json], right: list[Json]) -> bool:
    """Return whether every value of `left` is in `right`."""
    return _by_identity(budget, left).keys() <= _by_identity(budget, right).keys()


def _by_identity(budget: Budget, values: Iterable[Json]) -> dict[object, Json]:
    known: dict[object, Json] = {}
    for value in values:
        budget.spend(3)
        if isinstance(value, list | dict):
            budget.spend_on(value)
            known.setdefault(_frozen(value), value)
        else:
            known.setdefault(value, value)
    return known


def _frozen(value: Json) -> object:
    """Return something hashable that is equal exactly for equal values."""
    if isinstance(value, list):
        return (list, tuple([_frozen(item) for item in value]))
    if isinstance(value, dict):
        return (dict, frozenset([(key, _frozen(item)) for key, item in value.items()]))
    return value
