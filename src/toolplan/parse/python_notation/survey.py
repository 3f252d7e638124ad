"""One walk over a program before it is lowered: what its names are, and which of its expressions become steps.

The walk also puts the f-strings in place (see `text.py`) and refuses what is nested too deeply, so that everything
after it may recurse over the tree.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from toolplan.parse.python_notation.fstrings import Unreadable
from toolplan.parse.python_notation.text import ProgramText
from toolplan.parse.python_notation.vocabulary import TAKING, Meaning, Vocabulary

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
        found = self.found
        active = False
        if isinstance(node, ast.Name):
            found.names.add(node.id)
            if type(node.ctx) is ast.Load:
                found.reads.setdefault(node.id, []).append(node)
            else:
                found.values.setdefault(node.id, []).append(self.assignments.get(node))
            return False
        if depth > MAX_DEPTH:
            self._too_deep(node)
        if isinstance(node, ast.Call):
            active = self._is_step(node.func)
        elif isinstance(node, ast.Attribute):
            found.names.add(node.attr)
            active = isinstance(node.value, ast.Name) and node.value.id in self.errors
        elif isinstance(node, ast.keyword):
            found.names.add(node.arg or "")
        elif isinstance(node, ast.arg):
            found.names.add(node.arg)
            found.values.setdefault(node.arg, []).append(None)
        elif kind is ast.Await or kind is ast.NamedExpr:
            active = True
        elif isinstance(node, ast.Assign):
            self.assignments.update(dict.fromkeys(node.targets, node))
        elif isinstance(node, ast.AnnAssign):
            self.assignments[node.target] = node
        elif isinstance(node, ast.ExceptHandler) and node.name:
            self.errors.add(node.name)
            found.names.add(node.name)
            found.values.setdefault(node.name, []).append(None)
        unmask = self.masked and kind is not ast.JoinedStr
        # a comprehension's loops come first, so that its loop variables are known in the rest
        for name in reversed(node._fields) if isinstance(node, COMPREHENSIONS) else node._fields:
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
            found.active.add(node)
        return active

    def _unmasked(self, node: ast.Constant) -> ast.expr:
        return (self.text.unmasked(node) if isinstance(node.value, str) else None) or node

    def _is_step(self, function: ast.expr) -> bool:
        if isinstance(function, ast.Name):
            return self.vocabulary.meaning(function.id) is not Meaning.FUNCTION
        if not isinstance(function, ast.Attribute):
            return False
        root = function.value
        while isinstance(root, ast.Attribute):
            root = root.value
        return function.attr in TAKING or (isinstance(root, ast.Name) and root.id not in self.found.values)

    def _too_deep(self, node: ast.AST) -> None:
        start = self.text.source.start
        if isinstance(node, ast.expr | ast.stmt):
            start = self.text.place(node).start or start
        raise Unreadable("nested too deeply", start, start + 1, too_large=True)
