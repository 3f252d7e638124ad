"""What goes wrong in reading an expression, and inside an evaluation before it is known how its author wrote it.

The vocabulary raises a `Fault`; the node that was being evaluated gives it a place; `evaluate` turns it into an
`EvaluationError` with the author's own words for what was empty, missing or of the wrong kind.
"""

from __future__ import annotations

import ast

from toolplan.diagnostics import NOWHERE, Place
from toolplan.values import Json, kind_of, shorten

__all__ = ["ArgumentFault", "ExpressionError", "Fault", "Missing", "no_order", "shown"]


class ExpressionError(ValueError):
    """Text that is not an expression of the language. Offsets are characters in the text; `help` says what to write.

    `place` is the same spot in the plan, where the text's place was known.
    """

    def __init__(
        self, message: str, start: int = 0, end: int = 0, help: str | None = None, place: Place = NOWHERE
    ) -> None:
        super().__init__(message)
        self.message = message
        self.start = start
        self.end = end
        self.help = help
        self.place = place


class Fault(Exception):
    """Something an expression cannot do. `node` is the part of the expression that it happened in, once known."""

    def __init__(self, message: str, *, help: str | None = None, node: ast.AST | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.help = help
        self.node = node


class Missing(Fault):
    """Something that is not there: null, a missing field, an element beyond the end. `default(...)` covers it."""


class ArgumentFault(Fault):
    """A value that a function or method cannot take; `position` says which argument, -1 the value before the dot.

    `wanted` is what it would take ("text", "a list"). The one who knows the call's nodes words the message.
    """

    def __init__(self, position: int | str, value: Json, wanted: str, *, help: str | None = None) -> None:
        super().__init__(f"expected {wanted}, found {shown(value)}", help=help)
        self.position = position
        self.value = value
        self.wanted = wanted


def shown(value: Json) -> str:
    """Return a value with its kind for a message: `'3°C' (text)`, `5 (number)`, `null`, `list of 3`."""
    if value is None:
        return "null"
    if isinstance(value, list | dict):
        return shorten(value)
    try:
        return f"{shorten(value)} ({kind_of(value)})"
    except ValueError:  # CPython does not print whole numbers beyond some 4,300 digits
        return "a very large number"


def no_order(left: Json, right: Json) -> Fault:
    """Return the fault of two values that have no order, with what to write instead."""
    if isinstance(left, list) and isinstance(right, list):
        for one, other in zip(left, right, strict=False):
            if one != other:
                return no_order(one, other)
    if left is None or right is None:
        return Missing(
            f"{shown(left)} cannot be ordered against {shown(right)}",
            help="test it first (`x is not None`), or give a stand-in: `default(x, 0)`",
        )
    help = None
    if isinstance(left, str) != isinstance(right, str) and isinstance(left, str | int | float):
        text = left if isinstance(left, str) else right
        help = f"turn the text into a number: `number({shown(text).split(' (')[0]})`" if isinstance(text, str) else None
    elif isinstance(left, dict):
        help = "order them by a field: `key='name'`"
    return Fault(f"{shown(left)} cannot be ordered against {shown(right)}", help=help)
