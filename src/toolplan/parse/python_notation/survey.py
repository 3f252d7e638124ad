"""One walk over a program before it is lowered: what its names are, and which of its expressions become steps.

The walk also puts the f-strings in place (see `text.py`) and refuses what is nested too deeply, so that everything
after it may recurse over the tree.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from toolplan.parse.python_notation.fstrings import Unreadable
from toolplan.parse.python_notation.text import ProgramText
from toolplan.parse.python_notation.vocabulary import CHANGING, TAKING, Meaning, Vocabulary

__all__ = ["COMPREHENSIONS", "MAX_DEPTH", "Survey", "survey"]

COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)

MAX_DEPTH = 100
"""Deeper nesting is refused. The expression language has the same limit."""


@dataclass(slots=True)
class Survey:
    """What a program's text says about its names."""

    names: set[str] = field(default_factory=set[str])
    """Every name that stands anywhere in the program, fields and keywords included."""
    values: dict[str, list[ast.Assign | ast.AnnAssign | None]] = field(
        default_factory=dict[str, "list[ast.Assign | ast.AnnAssign | None]"]
    )
    """For each name that gets a value, the assignments to it; None for a loop, a tuple of targets and so on."""
    reads: dict[str, list[ast.Name]] = field(default_factory=dict[str, list[ast.Name]])
    """For each name the places that use its value, in the order of the walk."""
    changes: bool = False
    """Whether the program changes a value in place anywhere."""
    active: set[ast.AST] = field(default_factory=set[ast.AST])
    """The expressions that hold something which must become a step of its own, such as a call of a tool."""


def survey(text: ProgramText, body: Sequence[ast.stmt], vocabulary: Vocabulary) -> Survey:
    """Return the survey of these statements; puts f-strings in place. Raises `Unreadable`."""
    surveyor = _Surveyor(text, vocabulary)
    for statement in body:
        surveyor.visit(statement, 0)
    return surveyor.found


class _Surveyor:
    def __init__(self, text: ProgramText, vocabulary: Vocabulary) -> None:
        self.text = text
        self.found = Survey()
        self.vocabulary = vocabulary
        self.masked = any(token.parts is not None for token in text.strings.tokens)
        self.assignments: dict[ast.AST, ast.Assign | ast.AnnAssign] = {}
        self.errors: set[str] = set()

    def visit(self, node: ast.AST, depth: int) -> bool:
        """Note what is in `node`; return whether it is an expression that becomes a step, or holds one."""
        kind = type(node)
        if kind is ast.Constant:
            return False
        note = _NOTES.get(kind)
        active = note is not None and note(self, node)
        if kind is ast.Name:
            return False
        if depth > MAX_DEPTH:
            self._too_deep(node)
        unmask = self.masked and kind is not ast.JoinedStr
        for name in _parts(kind):
            child: object = getattr(node, name)
            if isinstance(child, list):
                items = cast("list[object]", child)
                for index, item in enumerate(items):
                    if unmask and isinstance(item, ast.Constant):
                        item = items[index] = self._unmasked(item)
                    if isinstance(item, ast.AST) and self.visit(item, depth + 1):
                        active = True
            elif isinstance(child, ast.AST):
                if unmask and isinstance(child, ast.Constant):
                    child = self._unmasked(child)
                    setattr(node, name, child)
                if self.visit(child, depth + 1):
                    active = True
        if active:
            self.found.active.add(node)
        return active

    # --- what each kind of node says; whether it is a step ---------------------------------------------------------

    def name(self, node: ast.Name) -> bool:
        found = self.found
        found.names.add(node.id)
        if type(node.ctx) is ast.Load:
            found.reads.setdefault(node.id, []).append(node)
        else:
            found.values.setdefault(node.id, []).append(self.assignments.get(node))
        return False

    def call(self, node: ast.Call) -> bool:
        function = node.func
        if isinstance(function, ast.Name):
            return self.vocabulary.meaning(function.id) is not Meaning.FUNCTION
        if not isinstance(function, ast.Attribute):
            return False
        root = function.value
        while isinstance(root, ast.Attribute):
            root = root.value
        return function.attr in TAKING or (isinstance(root, ast.Name) and root.id not in self.found.values)

    def attribute(self, node: ast.Attribute) -> bool:
        found = self.found
        found.names.add(node.attr)
        found.changes = found.changes or node.attr in CHANGING or type(node.ctx) is not ast.Load
        return isinstance(node.value, ast.Name) and node.value.id in self.errors

    def subscript(self, node: ast.Subscript) -> bool:
        self.found.changes = self.found.changes or type(node.ctx) is not ast.Load
        return False

    def augmented(self, node: ast.AugAssign) -> bool:
        self.found.changes = True
        return False

    def keyword(self, node: ast.keyword) -> bool:
        self.found.names.add(node.arg or "")
        return False

    def argument(self, node: ast.arg) -> bool:
        self.found.names.add(node.arg)
        self.found.values.setdefault(node.arg, []).append(None)
        return False

    def assignment(self, node: ast.Assign) -> bool:
        self.assignments.update(dict.fromkeys(node.targets, node))
        return False

    def annotated(self, node: ast.AnnAssign) -> bool:
        self.assignments[node.target] = node
        return False

    def handler(self, node: ast.ExceptHandler) -> bool:
        if node.name:
            self.errors.add(node.name)
            self.found.names.add(node.name)
            self.found.values.setdefault(node.name, []).append(None)
        return False

    def step(self, node: ast.AST) -> bool:
        return True

    def _unmasked(self, node: ast.Constant) -> ast.expr:
        return self.text.unmasked(node) or node

    def _too_deep(self, node: ast.AST) -> None:
        start = self.text.source.start
        if isinstance(node, ast.expr | ast.stmt):
            start = self.text.place(node).start or start
        raise Unreadable("nested too deeply", start, start + 1, too_large=True)


_NOTES: dict[type[ast.AST], Callable[[_Surveyor, Any], bool]] = {
    ast.AnnAssign: _Surveyor.annotated,
    ast.Assign: _Surveyor.assignment,
    ast.Attribute: _Surveyor.attribute,
    ast.AugAssign: _Surveyor.augmented,
    ast.Await: _Surveyor.step,
    ast.Call: _Surveyor.call,
    ast.ExceptHandler: _Surveyor.handler,
    ast.Name: _Surveyor.name,
    ast.NamedExpr: _Surveyor.step,
    ast.Subscript: _Surveyor.subscript,
    ast.arg: _Surveyor.argument,
    ast.keyword: _Surveyor.keyword,
}


@functools.cache
def _parts(kind: type[ast.AST]) -> tuple[str, ...]:
    """Return the fields of a kind of node that may hold nodes, in the order of the walk."""
    fields = tuple(name for name in kind._fields if name not in _MARKERS)
    # a comprehension's loops come first, so that its loop variables are known in the rest
    return fields[::-1] if kind in COMPREHENSIONS else fields


_MARKERS = frozenset(
    {"arg", "attr", "conversion", "ctx", "id", "is_async", "level", "module", "n", "name", "op", "ops", "type_comment"}
)
