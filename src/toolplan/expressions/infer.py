"""What an expression's value will be, and what in it can never work.

`infer` walks the tree with the types of the names in scope. It answers UNKNOWN for whatever it cannot tell and reports
only what fails on every value of the known types (as an error), fails on null where the schema allows null, or can
never be true (as a warning). What follows from a finding is UNKNOWN again, so that nothing is reported twice.

The rules of the nodes are in `nodes.py`, those of functions and methods in `results.py`, those of tests in
`narrowing.py`.
"""

from __future__ import annotations

import ast
import contextlib
import re
import sys
from collections.abc import Callable, Generator, Sequence
from typing import TypeAlias

from toolplan.diagnostics import Diagnostic, Place
from toolplan.diagnostics import calls as say
from toolplan.expressions.narrowing import Env, as_tested, define, narrow
from toolplan.expressions.nodes import RULES
from toolplan.expressions.operands import NUMERIC, is_text, kinds_of
from toolplan.expressions.read import Expression
from toolplan.expressions.shapes import (
    NEVER,
    NULL,
    TEXT,
    UNKNOWN,
    ListType,
    ObjectType,
    Type,
    join_all,
    kind_word,
    list_of,
    may_be_null,
    members,
    object_of,
    type_of,
    without_null,
)
from toolplan.expressions.templates import Fields, Items, Literal, Reference, Template

__all__ = ["Inference", "Trouble", "infer", "infer_template", "narrow_by"]

MAX_DEPTH = 110
"""Deeper parts are UNKNOWN; the reader of expressions stops at 100 levels."""
MAX_WORDS = 50

Trouble: TypeAlias = "Callable[[], Diagnostic]"
"""A finding that is worded only if it is reported."""


def infer(expression: Expression, env: Env) -> tuple[Type, Sequence[Diagnostic]]:
    """Return the type of the expression's value and what is wrong in it."""
    tree = expression.tree
    if type(tree) is ast.Name:
        return as_tested(tree.id, env), ()
    if type(tree) is ast.Attribute and type(tree.value) is ast.Name:  # the commonest reference by far
        root = env.get(tree.value.id)
        if type(root) is ObjectType and (found := root.field(tree.attr)) is not None:
            return env.get(f"{tree.value.id}.{tree.attr}", found), ()
    inference = Inference(expression, env)
    return inference.of(tree), inference.findings


def infer_template(template: Template, env: Env) -> tuple[Type, Sequence[Diagnostic]]:
    """Return the type of the template's value and what is wrong in its expressions."""
    if isinstance(template, Reference):
        return infer(template.expression, env)
    if isinstance(template, Literal):
        return type_of(template.value), ()
    findings: list[Diagnostic] = []
    if isinstance(template, Items):
        elements: list[Type] = []
        for item in template.items:
            found, more = infer_template(item, env)
            elements.append(found)
            findings += more
        return list_of(join_all(elements), elements), findings
    if isinstance(template, Fields):
        fields: dict[str, Type] = {}
        for name, part in template.fields:
            fields[name], more = infer_template(part, env)
            findings += more
        return object_of(fields), findings
    for part in template.parts:
        if isinstance(part, str):
            continue
        if not part.spec:
            findings += infer(part.expression, env)[1]
            continue
        inference = Inference(part.expression, env)
        found = inference.of(part.expression.tree)
        inference.check_format(part.spec, found, part.expression.tree)
        findings += inference.findings
    return TEXT, findings


def narrow_by(expression: Expression, env: Env, holds: bool) -> Env:
    """Return what is known where `expression` holds, or where it does not."""
    inference = Inference(expression, env)
    return narrow(expression.tree, env, holds, inference.silently)


class Inference:
    """One walk over one expression."""

    def __init__(self, expression: Expression, env: Env) -> None:
        self.expression = expression
        self.env = env
        self.findings: list[Diagnostic] = []
        self._depth = 0
        self._silent = False
        self._f_string: ast.JoinedStr | None = None

    def of(self, node: ast.expr) -> Type:
        """Return the type of a part of the expression."""
        rule = RULES.get(type(node))
        if rule is None or self._depth > MAX_DEPTH:
            return UNKNOWN
        self._depth += 1
        try:
            return rule(self, node)
        finally:
            self._depth -= 1

    def within(self, env: Env, node: ast.expr) -> Type:
        """Return the type of `node` with other names in scope."""
        before, self.env = self.env, env
        try:
            return self.of(node)
        finally:
            self.env = before

    def silently(self, node: ast.expr, env: Env) -> Type:
        """Return the type of `node` without noting findings: they are noted where the node itself is walked.

        What a silent walk would have to look at silently once more is UNKNOWN, or nested tests would cost 2^depth.
        """
        if self._silent:
            return UNKNOWN
        self._silent, count = True, len(self.findings)
        found = self.within(env, node)
        self._silent = False
        del self.findings[count:]
        return found

    def bound(self, target: ast.expr, found: Type) -> Env:
        """Return the names in scope with those of a loop's target, to which an element of type `found` is bound."""
        env = dict(self.env)
        _bind(env, target, found)
        return env

    # what is wrong, and where

    def report(self, finding: Diagnostic) -> Type:
        """Note a finding. What it was found in is UNKNOWN from here on."""
        self.findings.append(finding)
        return UNKNOWN

    def place(self, node: ast.AST) -> Place:
        """Return where a part of the expression stands in the plan."""
        return self.expression.place_of(self._f_string or node)

    def last_word(self, node: ast.expr, name: str) -> Place:
        """Return the place of `b` in `a.b` and `a["b"]`."""
        if isinstance(node, ast.Subscript):
            return self.place(node.slice)
        place = self.place(node)
        if place.start is None or place.end is None or self._f_string:
            return place
        return Place(place.path, max(place.start, place.end - len(name)), place.end)

    def words(self, node: ast.expr) -> str:
        """Return a part of the expression as its author wrote it, shortened for a message."""
        text = ast.unparse(node) if self._f_string else self.expression.text_of(node)
        return text if len(text) <= MAX_WORDS else text[: MAX_WORDS - 1] + "…"

    @contextlib.contextmanager
    def inside(self, node: ast.JoinedStr) -> Generator[None]:
        """Say that the walk is inside an f-string, whose parts have no places of their own before Python 3.12."""
        outer = self._f_string
        if sys.version_info < (3, 12):
            self._f_string = outer or node
        yield
        self._f_string = outer

    def as_number(self, found: Type, node: ast.expr) -> str | None:
        """Return the help for a text where a number is needed."""
        is_written = isinstance(node, ast.Constant)
        return f"write `number({self.words(node)})`" if is_text(found) and not is_written else None

    # questions that several rules ask

    def present(self, found: Type, node: ast.expr) -> Type:
        """Return `found` for a place where null fails: without null, and with a warning if there may be some."""
        if not may_be_null(found) or found == NULL:
            return found
        self.report(say.maybe_null(self.place(node), self.words(node), str(found)))
        return without_null(found)

    def each(self, base: Type, node: ast.expr, rule: Callable[[Type], Type | Trouble]) -> Type:
        """Apply `rule` to each thing that `base` may be; a trouble is reported when there is nothing else."""
        if base is UNKNOWN or base is NEVER:
            return UNKNOWN
        results: list[Type] = []
        trouble: Trouble | None = None
        for member in members(self.present(base, node)):
            found = rule(member)
            if isinstance(found, Type):
                results.append(found)
            else:
                trouble = trouble or found
        if results or trouble is None:
            return join_all(results)
        return self.report(trouble())

    def element_of(self, found: Type, node: ast.expr, what: str) -> Type:
        """Return the type of what a loop over `found` goes through; report what no loop can go through."""

        def rule(member: Type) -> Type | Trouble:
            if isinstance(member, ListType):
                return member.element
            if isinstance(member, ObjectType) or is_text(member):
                return TEXT
            words = (what, "a list", self.words(node), kind_word(member))
            help = f"write `range({words[2]})`" if kinds_of(member) <= {"integer"} else None
            return lambda: say.unfit_operand(self.place(node), *words, help)

        return self.each(found, node, rule)

    def check_format(self, spec: str, found: Type, node: ast.expr) -> None:
        """Report a format spec that does not fit the value."""
        kinds = kinds_of(found)
        if not kinds:
            return
        there = self.present(found, node)
        is_date = "%" in spec and "text" in kinds
        if _FOR_NUMBERS.search(spec) and not (kinds & NUMERIC) and not is_date:
            words = (spec, self.words(node), kind_word(there))
            self.report(say.bad_format(self.place(node), *words, self.as_number(there, node)))


def _bind(env: dict[str, Type], target: ast.expr, found: Type) -> None:
    if isinstance(target, ast.Name):
        define(env, target.id, found)
    elif isinstance(target, ast.Tuple | ast.List):
        for part, own in zip(target.elts, _parts(found, len(target.elts)), strict=True):
            _bind(env, part, own)


def _parts(found: Type, count: int) -> list[Type]:
    """Return the types of the parts that an element is unpacked into."""
    if isinstance(found, ListType):
        if len(found.positions) == count:
            return list(found.positions)
        return [UNKNOWN if found.element is NEVER else found.element] * count
    return [UNKNOWN] * count


_FOR_NUMBERS = re.compile(r"[bcdeEfFgGoxX%]\Z")
