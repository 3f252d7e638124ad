"""Operators on values: arithmetic, comparison, membership. Python's meaning on JSON, and sets on lists."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any, TypeAlias, cast

from toolplan.expressions.faults import Fault, Missing, no_order, shown
from toolplan.expressions.functions.numeric import power
from toolplan.expressions.functions.registry import fitting
from toolplan.expressions.limits import Budget, size_of
from toolplan.expressions.sets import both, either, one_only, within, without
from toolplan.values import Json

__all__ = ["BINARY", "COMPARE", "COMPARE_NUMBERS", "COMPARE_SETS", "NUMERIC", "SIGNS", "NoOperationError"]

NUMERIC = frozenset({int, float, bool})

Compare: TypeAlias = "Callable[[Budget, Json, Json], bool]"
Compute: TypeAlias = "Callable[[Budget, Any, Any], Json]"


class NoOperationError(Exception):
    """Two values that an operator cannot combine."""


# --- arithmetic ------------------------------------------------------------------------------------------------------


def _numbers(one: object, other: object) -> bool:
    return type(one) in NUMERIC and type(other) in NUMERIC


def _are(kind: type, one: object, other: object) -> bool:
    return type(one) is kind and type(other) is kind


def _add(budget: Budget, one: Any, other: Any) -> Json:
    if _numbers(one, other):
        return fitting(one + other)
    if _are(str, one, other):
        budget.produce(50 + size_of(one, other))
        return one + other
    if _are(list, one, other):
        budget.produce(60 + 8 * (len(one) + len(other)))
        return one + other
    raise NoOperationError


def _subtract(budget: Budget, one: Any, other: Any) -> Json:
    if _numbers(one, other):
        return fitting(one - other)
    if _are(list, one, other):
        return without(budget, one, other)
    raise NoOperationError


def _multiply(budget: Budget, one: Any, other: Any) -> Json:
    if _numbers(one, other):
        if type(one) is not float and type(other) is not float and one.bit_length() + other.bit_length() > 11_000:
            raise Fault("the result is a whole number of more than 3,000 digits")
        return fitting(one * other)
    if type(other) in (str, list):
        one, other = other, one
    if type(one) in (str, list) and isinstance(other, int):
        size = 8 * len(cast("list[Json]", one)) if type(one) is list else size_of(cast("str", one))
        budget.produce(60 + size * max(0, other))
        return cast("Any", one) * int(other)
    raise NoOperationError


def _bitwise(compute: Callable[[int, int], int], on_lists: Callable[[Budget, Any, Any], list[Json]]) -> Compute:
    """Return an operator that works on the bits of whole numbers, and on lists as sets."""

    def bitwise(budget: Budget, one: Any, other: Any) -> Json:
        if isinstance(one, int) and isinstance(other, int):
            return compute(one, other)
        if type(one) is list and type(other) is list:
            return on_lists(budget, one, other)
        raise NoOperationError

    return bitwise


_or_of_lists = _bitwise(lambda one, other: one | other, either)


def _or(budget: Budget, one: Any, other: Any) -> Json:
    if type(one) is dict and type(other) is dict:
        left, right = cast("dict[str, Json]", one), cast("dict[str, Json]", other)
        budget.produce(100 * (len(left) + len(right)))
        return left | right
    return _or_of_lists(budget, one, other)


def _on_numbers(compute: Callable[[Any, Any], Any]) -> Compute:
    def on_numbers(budget: Budget, one: Any, other: Any) -> Json:
        if _numbers(one, other):
            return fitting(compute(one, other))
        raise NoOperationError

    return on_numbers


BINARY: dict[type[ast.operator], Compute] = {
    ast.Add: _add,
    ast.Sub: _subtract,
    ast.Mult: _multiply,
    ast.Div: _on_numbers(lambda one, other: one / other),
    ast.FloorDiv: _on_numbers(lambda one, other: one // other),
    ast.Mod: _on_numbers(lambda one, other: one % other),
    ast.Pow: _on_numbers(power),
    ast.BitOr: _or,
    ast.BitAnd: _bitwise(lambda one, other: one & other, both),
    ast.BitXor: _bitwise(lambda one, other: one ^ other, one_only),
}
"""What computes each operator. Raises `Fault`, `NoOperationError`, `OverflowError` or `ZeroDivisionError`."""

SIGNS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.BitOr: "|",
    ast.BitAnd: "&",
    ast.BitXor: "^",
}


# --- comparison ------------------------------------------------------------------------------------------------------


def _pay(budget: Budget, one: Json, other: Json) -> None:
    """Pay for comparing the two values: as much as the lighter one weighs."""
    if isinstance(one, list | dict):
        if type(one) is type(other):
            budget.spend_on(one, other)
    elif isinstance(one, str) and len(one) > 1_000:
        budget.spend(len(one) // 1_000)


def _equal(budget: Budget, one: Json, other: Json) -> bool:
    _pay(budget, one, other)
    return one == other


def _ordering(compare: Callable[[Any, Any], bool]) -> Compare:
    def ordering(budget: Budget, one: Json, other: Json) -> bool:
        _pay(budget, one, other)
        try:
            return compare(one, other)
        except TypeError:
            raise no_order(one, other) from None

    return ordering


def _contains(budget: Budget, one: Json, other: Json) -> bool:
    if isinstance(other, str):
        if isinstance(one, str):
            budget.spend(len(other) // 20)
            return one in other
        if one is None:
            raise Missing("null is looked for in text")
        raise Fault(f"in text only text can be looked for, not {shown(one)}", help="turn it into text: `str(...)`")
    if isinstance(other, list):
        if isinstance(one, list | dict):
            budget.spend_on(other)
        else:
            budget.spend(len(other) // 4)
        return one in other
    if isinstance(other, dict):
        if isinstance(one, list | dict):
            raise Fault(f"the keys of an object are text, so {shown(one)} cannot be one")
        return one in other
    if other is None:
        raise Missing("nothing can be looked for in null")
    raise Fault(
        f"nothing can be looked for in {shown(other)}", help="`in` takes text, a list or an object on its right"
    )


COMPARE: dict[type[ast.cmpop], Compare] = {
    ast.Eq: _equal,
    ast.NotEq: lambda budget, one, other: not _equal(budget, one, other),
    ast.Lt: _ordering(operator.lt),
    ast.LtE: _ordering(operator.le),
    ast.Gt: _ordering(operator.gt),
    ast.GtE: _ordering(operator.ge),
    ast.In: _contains,
    ast.NotIn: lambda budget, one, other: not _contains(budget, one, other),
    ast.Is: lambda budget, one, other: one is other,
    ast.IsNot: lambda budget, one, other: one is not other,
}

COMPARE_NUMBERS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
"""The comparisons that need neither payment nor care on two numbers."""


def _on_sets(compare: Callable[[Budget, list[Json], list[Json]], bool]) -> Compare:
    def on_sets(budget: Budget, one: Json, other: Json) -> bool:
        if isinstance(one, list) and isinstance(other, list):
            return compare(budget, one, other)
        raise Fault(f"a set cannot be compared with {shown(other if isinstance(one, list) else one)}")

    return on_sets


def _same(budget: Budget, one: list[Json], other: list[Json]) -> bool:
    return within(budget, one, other) and within(budget, other, one)


COMPARE_SETS: dict[type[ast.cmpop], Compare] = {
    ast.Eq: _on_sets(_same),
    ast.NotEq: _on_sets(lambda budget, one, other: not _same(budget, one, other)),
    ast.LtE: _on_sets(within),
    ast.GtE: _on_sets(lambda budget, one, other: within(budget, other, one)),
    ast.Lt: _on_sets(lambda budget, one, other: within(budget, one, other) and not within(budget, other, one)),
    ast.Gt: _on_sets(lambda budget, one, other: within(budget, other, one) and not within(budget, one, other)),
}
"""The comparisons of lists that are written as sets."""
