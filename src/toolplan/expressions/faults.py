"""What goes wrong inside an evaluation, before it is known how the expression's author wrote it.

The vocabulary raises a `Fault`; the node that was being evaluated gives it a place; `evaluate` turns it into an
`EvaluationError` with the author's own words for what was empty, missing or of the wrong kind.
"""

from __future__ import annotations

import ast

from toolplan.values import Json, kind_of, shorten

__all__ = ["ArgumentFault", "Fault", "Missing", "shown"]


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
    return f"{shorten(value)} ({kind_of(value)})"
