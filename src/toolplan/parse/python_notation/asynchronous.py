"""`await` and `asyncio` in a program: they are accepted and mean nothing special, for steps overlap anyway."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from toolplan.diagnostics import program as wording
from toolplan.parse.python_notation.lowering import Lowering, Refused
from toolplan.parse.python_notation.vocabulary import dotted

__all__ = ["Gathered", "Same", "awaited", "reading"]

_SAME = frozenset({"create_task", "ensure_future", "run", "shield", "wait_for"})


@dataclass(frozen=True, slots=True)
class Gathered:
    """A `gather` of these values, in order; a starred one stands for all elements of a list."""

    values: list[ast.expr]


@dataclass(frozen=True, slots=True)
class Same:
    """A call that has the value of its first argument. `timeout` is how long that may take, in seconds."""

    value: ast.expr
    timeout: float | None = None


def awaited(node: ast.expr) -> ast.expr:
    """Return what stands behind any number of `await`s."""
    while isinstance(node, ast.Await):
        node = node.value
    return node


def reading(low: Lowering, node: ast.Call) -> Gathered | Same | None:
    """Return what a call of `asyncio` means, or None for any other call. Raises `Refused`."""
    root, _, name = (dotted(node.func) or "").rpartition(".")
    if root != "asyncio" or root in low.survey.values:
        return None
    if name == "gather":
        for keyword in node.keywords:
            if keyword.arg != "return_exceptions" or _is_true(keyword.value):
                raise Refused(wording.gathered_failures(low.place(keyword)))
        return Gathered(list(node.args))
    if name in _SAME and node.args and not isinstance(node.args[0], ast.Starred):
        return Same(node.args[0], _timeout(node) if name == "wait_for" else None)
    raise Refused(wording.asyncio_call(low.place(node.func), name))


def _timeout(node: ast.Call) -> float | None:
    given = [keyword.value for keyword in node.keywords if keyword.arg == "timeout"] + node.args[1:2]
    match given:
        case [ast.Constant(value=int() | float() as seconds)] if seconds > 0:
            return seconds
        case _:
            return None


def _is_true(node: ast.expr) -> bool:
    return not (isinstance(node, ast.Constant) and node.value in (False, None))
