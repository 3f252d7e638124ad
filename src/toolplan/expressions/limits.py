"""How much an expression may be, and how much evaluating one may cost.

Reading is bounded by length, nesting and number of nodes. Evaluation is bounded by *steps*: every round of a loop
costs one step and one for each node it evaluates (a call five), every 64 bytes that are produced cost one. Steps are
paid before the work is done, so `"a" * 10**9` is refused without allocating anything. 600,000 steps are some 30
milliseconds or 38 MB, whichever is used up first. Work that is not in a loop needs no counting: it is bounded by the
number of nodes.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from toolplan.expressions.faults import Fault
from toolplan.values import Json

__all__ = [
    "MAX_DEPTH",
    "MAX_INT",
    "MAX_LENGTH",
    "MAX_NODES",
    "MAX_STEPS",
    "Budget",
    "check_size",
    "cost_of",
    "exhausted",
    "pay_for_lines",
    "size_of",
]

MAX_LENGTH = 10_000
"""Characters in an expression's text."""
MAX_DEPTH = 100
"""Levels of nesting in an expression."""
MAX_NODES = 5_000
"""Nodes in an expression's tree."""

MAX_STEPS = 600_000
"""Steps that one evaluation may take."""
BYTES_PER_STEP = 64
MAX_INT = 1 << 10_000
"""Whole numbers stay below this; it has 3,011 digits, fewer than CPython is willing to print."""
MAX_VALUE_DEPTH = 200
MAX_WEIGHT = 4_000_000
"""Weight of a value that leaves an expression: one for each scalar, one for every 64 characters of text."""


class Budget:
    """What is left to spend in one evaluation, and the values it works on.

    `scope` holds the names from outside, `slots` the loop variables of comprehensions and lambdas by number.
    """

    __slots__ = ("scope", "slots", "steps")

    def __init__(self, scope: Mapping[str, Json], slots: int = 0, steps: int = MAX_STEPS) -> None:
        self.scope = scope
        self.slots: list[Json] = [None] * slots
        self.steps = steps

    def spend(self, steps: int) -> None:
        """Pay for work about to be done. Raises `Fault` when there is not enough left."""
        self.steps -= steps
        if self.steps < 0:
            raise exhausted()

    def spend_on(self, *values: Json) -> None:
        """Pay for going through all of the lightest of `values`: as much as it weighs, twice."""
        self.spend(2 * min([_weight(value, self.steps) for value in values]))

    def produce(self, size: int) -> None:
        """Pay for `size` bytes about to be produced. Raises `Fault` when there is not enough left."""
        steps = size // BYTES_PER_STEP
        if steps > self.steps:
            raise Fault(
                f"this would produce about {_readable(size)}, more than an expression may",
                help="work on less at a time, or let a tool do it",
            )
        self.steps -= steps


def size_of(*texts: str) -> int:
    """Return how many bytes the texts would take in one text, at most: one wide character widens them all."""
    length = sum(map(len, texts))
    return length if all(map(str.isascii, texts)) else 4 * length


_BREAKS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"


def pay_for_lines(budget: Budget, text: str) -> None:
    """Pay for the lines of `text` before it is cut."""
    count = 1 + sum(text.count(end) for end in _BREAKS)
    budget.produce(4 * len(text) + 70 * count)


_COSTS: dict[type[ast.AST], int] = {ast.Call: 5, ast.BinOp: 3, ast.JoinedStr: 3, ast.Dict: 3}


def cost_of(*nodes: ast.expr) -> int:
    """Return the steps that evaluating the expressions takes, without loops inside: one a node, more for a call."""
    return sum(_COSTS.get(type(part), 1) for node in nodes for part in ast.walk(node) if isinstance(part, ast.expr))


def exhausted() -> Fault:
    """Return the fault of an evaluation that has used up its steps."""
    return Fault(
        f"this takes more than {MAX_STEPS:,} steps, more than an expression may",
        help="work on less at a time, or let a tool do it",
    )


def _readable(size: int) -> str:
    if size >= 10**15:
        return "more than a million gigabytes"
    for unit, name in ((10**9, "gigabytes"), (10**6, "megabytes")):
        if size >= unit:
            return f"{size // unit:,} {name}"
    return f"{size:,} bytes"


def check_size(value: Json) -> None:
    """Raise `Fault` when `value` is too large or too deep to leave an expression."""
    if _weight(value, MAX_WEIGHT) > MAX_WEIGHT:
        raise Fault("the value is larger than an expression may return", help="work on less at a time")


def _weight(value: Json, limit: int) -> int:
    """Return how heavy a value is: one for each scalar, container and 64 characters of text; about `limit` when more.

    A container that occurs more than once counts each time but is looked at once, so a small value that would be huge
    when written out is recognised quickly. Raises `Fault` for nesting beyond `MAX_VALUE_DEPTH`.
    """
    if isinstance(value, str):
        return 1 + len(value) // BYTES_PER_STEP
    return _weigh(value, limit, 0, {}) if isinstance(value, list | dict) else 1


def _weigh(value: list[Json] | dict[str, Json], limit: int, depth: int, known: dict[int, int]) -> int:
    if depth > MAX_VALUE_DEPTH:
        raise Fault(f"a value is nested more than {MAX_VALUE_DEPTH} levels deep")
    total = 1
    if isinstance(value, dict):
        total += len(value)
        items = value.values()
    else:
        items = value
    for item in items:
        if isinstance(item, str):
            total += 1 + len(item) // BYTES_PER_STEP
        elif isinstance(item, list | dict):
            heavy = known.get(id(item))
            if heavy is None:
                heavy = known[id(item)] = _weigh(item, limit, depth + 1, known)
            total += heavy
        else:
            total += 1
        if total > limit:
            break
    return total
