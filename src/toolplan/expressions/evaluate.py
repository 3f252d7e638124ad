"""Tree -> value: each node becomes a Python closure once, and evaluating calls the closures.

`Program.run` is the compiled tree. Nothing is handed to Python's compiler; a closure does one node's work on JSON
values and nothing else, so there is no way to an attribute of a Python object: `a.b` looks up a key, a call finds its
function or method in the tables of `functions` and `methods`. A closure takes the `Budget`, which holds the scope, the
loop variables and what is left to spend (see `limits`).

Where Python and this language differ is listed in `docs/reference/expressions.md`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from toolplan.errors import EvaluationError
from toolplan.expressions import calls, closures, loops
from toolplan.expressions.closures import Compiler, Rule, constant_index
from toolplan.expressions.faults import Fault
from toolplan.expressions.limits import Budget, check_size
from toolplan.expressions.positions import span_of
from toolplan.values import Json

__all__ = ["Program"]

Run: TypeAlias = "Callable[[Mapping[str, Json]], Json]"

_RULES: dict[type[ast.AST], Rule] = {**closures.RULES, **loops.RULES, **calls.RULES}
_MAKERS = frozenset({"dict", "enumerate", "items", "set_item", "sum", "union", "zip"})
"""Calls that can put one value several times into another."""


class Program:
    """A tree with its compiled form; `run(scope)` evaluates it. Compiled when first run, shared by equal texts."""

    __slots__ = ("column", "line", "run", "text", "tree")

    def __init__(self, tree: ast.expr, text: str, line: int = 1, column: int = 0) -> None:
        self.tree = tree
        self.text = text
        self.line = line
        self.column = column
        self.run: Run = self._first_run

    def _first_run(self, scope: Mapping[str, Json]) -> Json:
        self.run = self._path() or self._general()
        return self.run(scope)

    def _path(self) -> Run | None:
        """Return a direct look-up for `name.field[index]...`, the commonest expression by far."""
        steps = _path_of(self.tree)
        if steps is None:
            return None
        name, keys = steps
        general: Run | None = None

        def carefully(scope: Mapping[str, Json]) -> Json:
            nonlocal general
            if general is None:
                general = self._general()
            return general(scope)

        def path(scope: Mapping[str, Json]) -> Json:
            try:
                value: Any = scope[name]
                for key in keys:
                    value = value[key]
                return value
            except (KeyError, IndexError, TypeError):
                return carefully(scope)

        return path

    def _general(self) -> Run:
        compiler = Compiler(self._source, _RULES)
        compute = compiler.compile(self.tree)
        slots = compiler.slots
        makes = _makes_containers(self.tree)

        def evaluate(scope: Mapping[str, Json]) -> Json:
            try:
                value = compute(Budget(scope, slots))
                if makes:
                    check_size(value)
                return value
            except Fault as fault:
                start, end = span_of(fault.node or self.tree, self.text, self.line, self.column)
                raise EvaluationError(fault.message, start=start, end=end, help=fault.help) from None
            except RecursionError:
                raise self._beyond("a value is nested too deeply to compute with") from None
            except (ValueError, OverflowError):
                raise self._beyond("a value is beyond what can be computed with") from None

        return evaluate

    def _beyond(self, message: str) -> EvaluationError:
        """Return the error of values that are no JSON or beyond its usual limits, such as NaN from a caller's scope."""
        return EvaluationError(message, start=0, end=len(self.text))

    def _source(self, node: ast.AST) -> str:
        """Return the text of a node on one line, shortened for messages."""
        start, end = span_of(node, self.text, self.line, self.column)
        line = " ".join(self.text[start:end].split())
        return line if len(line) <= 60 else line[:59] + "…"


def _path_of(tree: ast.expr) -> tuple[str, list[str | int]] | None:
    keys: list[str | int] = []
    while isinstance(tree, ast.Attribute | ast.Subscript):
        key = tree.attr if isinstance(tree, ast.Attribute) else constant_index(tree.slice)
        if key is None:
            return None
        keys.append(key)
        tree = tree.value
    return (tree.id, keys[::-1]) if isinstance(tree, ast.Name) else None


def _makes_containers(tree: ast.expr) -> bool:
    """Return whether the expression can put values together into something heavier than its parts."""
    return any(_makes_container(node) for node in ast.walk(tree))


def _makes_container(node: ast.AST) -> bool:
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return bool(node.elts)
    if isinstance(node, ast.Dict):
        return bool(node.keys)
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Add | ast.Mult | ast.BitOr)
    if isinstance(node, ast.Call):
        name = (
            node.func.id
            if isinstance(node.func, ast.Name)
            else node.func.attr
            if isinstance(node.func, ast.Attribute)
            else ""
        )
        return name in _MAKERS
    return isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp)
