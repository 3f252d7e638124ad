"""Expressions that hold calls: the calls become steps before the statement, in Python's order of evaluation.

What Python would not evaluate does not run: the right side of `and` and `or`, the side of `x if c else y` that is not
taken, the later operands of a chained comparison become branches.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence

from toolplan.diagnostics import Place
from toolplan.diagnostics import program as wording
from toolplan.parse.python_notation import asynchronous, calls, changes, comprehensions
from toolplan.parse.python_notation.lowering import Lowering, Refused
from toolplan.plan import If, Step

__all__ = ["Values"]


class Values(Lowering):
    """Lowers expressions."""

    def value(self, node: ast.expr, out: list[Step]) -> ast.expr:
        """Return `node` free of steps; those it needs are appended to `out`, in Python's order of evaluation."""
        if node not in self.survey.active:
            return node
        match node:
            case ast.Await():
                return self.stand_in(self.value(asynchronous.awaited(node), out), node)
            case ast.Call():
                return self._call(node, out)
            case ast.BoolOp():
                return self._logic(node, out)
            case ast.IfExp():
                return self._choice(node, out)
            case ast.Compare():
                return self._comparison(node, out)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                return comprehensions.collected(self, node, out)
            case ast.Attribute(value=ast.Name(id=name) as error, attr=attribute) if name in self.errors:
                return self._error_field(node, error, attribute)
            case ast.Lambda():
                raise Refused(wording.call_in_lambda(self.place(node)))
            case ast.NamedExpr():
                raise Refused(wording.walrus(self.place(node), ast.unparse(node.target)))
            case _:
                return self.rebuild(node, out)

    def assign(self, name: str, node: ast.expr, out: list[Step], place: Place) -> None:
        """Append the steps that give `name` the value of `node`."""
        node = asynchronous.awaited(node)
        if isinstance(node, ast.Call) and node in self.survey.active:
            meant = asynchronous.reading(self, node)
            if isinstance(meant, asynchronous.Gathered) and len(meant.values) == 1:
                only = meant.values[0]
                if isinstance(only, ast.Starred):
                    inner = only.value
                    if isinstance(inner, ast.GeneratorExp) and comprehensions.is_loop(self, inner):
                        comprehensions.collected(self, inner, out, name)
                    else:
                        self.assign(name, inner, out, place)
                    return
            if isinstance(meant, asynchronous.Same):
                inner = asynchronous.awaited(meant.value)
                if not (isinstance(inner, ast.Call) and calls.has_result(self, inner)):
                    self.assign(name, inner, out, place)
                    return
                calls.call(self, inner, name, out, meant.timeout)
                return
            if meant is None and calls.has_result(self, node):
                calls.call(self, node, name, out)
                return
        if isinstance(node, ast.IfExp) and not self.survey.active.isdisjoint((node.body, node.orelse)):
            test = self.expression(self.value(node.test, out))
            sides: list[list[Step]] = [[], []]
            self.assign(name, node.body, sides[0], place)
            self.assign(name, node.orelse, sides[1], place)
            out.append(If("", test, tuple(sides[0]), tuple(sides[1]), self.place(node)))
            return
        if isinstance(node, ast.ListComp) and comprehensions.is_loop(self, node):
            comprehensions.collected(self, node, out, name)
            return
        self.let(name, self.value(node, out), out, place)

    def rebuild(self, node: ast.expr, out: list[Step]) -> ast.expr:
        """Return a copy of `node` in which everything that must become a step is one."""
        fresh = copy.copy(node)
        if isinstance(node, ast.Dict):
            keys: list[ast.expr | None] = []
            values: list[ast.expr] = []
            for key, value in zip(node.keys, node.values, strict=True):
                keys.append(None if key is None else self.value(key, out))
                values.append(self.value(value, out))
            fresh = ast.copy_location(ast.Dict(keys, values), node)
        else:
            for name in node._fields:
                child: object = getattr(node, name)
                if isinstance(child, ast.expr):
                    setattr(fresh, name, self.value(child, out))
                elif isinstance(child, list):
                    setattr(fresh, name, [self._child(item, out) for item in child])  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        self.rebuilt.add(fresh)
        return fresh

    def _child(self, item: object, out: list[Step]) -> object:
        if isinstance(item, ast.expr):
            return self.value(item, out)
        if isinstance(item, ast.keyword):
            return ast.copy_location(ast.keyword(item.arg, self.value(item.value, out)), item)
        return item

    def _call(self, node: ast.Call, out: list[Step]) -> ast.expr:
        match asynchronous.reading(self, node):
            case asynchronous.Gathered(values):
                return self._gathered(node, values, out)
            case asynchronous.Same(value, timeout):
                inner = asynchronous.awaited(value)
                if isinstance(inner, ast.Call) and calls.has_result(self, inner):
                    result = self.fresh()
                    calls.call(self, inner, result, out, timeout)
                    return self.name(result, node)
                return self.stand_in(self.value(inner, out), node)
            case None:
                pass
        if calls.has_result(self, node):
            result = self.fresh()
            calls.call(self, node, result, out)
            return self.name(result, node)
        if calls.call(self, node, None, out):
            return self.stand_in(ast.copy_location(ast.Constant(None), node), node)
        if (found := comprehensions.searched(self, node, out)) is not None:
            return found
        if (taken := changes.taken(self, node, out)) is not None:
            return taken
        return self.rebuild(node, out)

    def _gathered(self, node: ast.Call, values: Sequence[ast.expr], out: list[Step]) -> ast.expr:
        """Return the list of the values that a `gather` waits for."""
        if len(values) == 1 and isinstance(values[0], ast.Starred):
            return self.stand_in(self.value(values[0].value, out), node)
        parts: dict[str, ast.expr] = {}
        for number, value in enumerate(values):
            starred = isinstance(value, ast.Starred)
            parts[f"{'all' if starred else 'one'}{number}"] = self.value(value.value if starred else value, out)
        shown = ", ".join(f"*{name}" if name.startswith("all") else name for name in parts)
        return self.built(f"[{shown}]", node, **parts)

    def _logic(self, node: ast.BoolOp, out: list[Step]) -> ast.expr:
        late = next((i for i, value in enumerate(node.values) if i and value in self.survey.active), None)
        if late is None:
            return self.rebuild(node, out)
        result = self.fresh()
        self.assign(result, self._part(node, 0, late), out, self.place(node))
        rest: list[Step] = []
        self.assign(result, self._part(node, late, len(node.values)), rest, self.place(node))
        so_far = self.name(result, node)
        test = so_far if isinstance(node.op, ast.And) else self.built("not value", node, value=so_far)
        out.append(If("", self.expression(test), tuple(rest), place=self.place(node)))
        return so_far

    def _part(self, node: ast.BoolOp, start: int, end: int) -> ast.expr:
        """Return some neighbouring operands of `node` as an expression of their own."""
        values = node.values[start:end]
        if len(values) == 1:
            return values[0]
        part = ast.BoolOp(node.op, values, lineno=values[0].lineno, col_offset=values[0].col_offset)
        part.end_lineno, part.end_col_offset = values[-1].end_lineno, values[-1].end_col_offset
        if not self.survey.active.isdisjoint(values):
            self.survey.active.add(part)
        return part

    def _choice(self, node: ast.IfExp, out: list[Step]) -> ast.expr:
        if self.survey.active.isdisjoint((node.body, node.orelse)):
            return self.rebuild(node, out)
        result = self.fresh()
        self.assign(result, node, out, self.place(node))
        return self.name(result, node)

    def _comparison(self, node: ast.Compare, out: list[Step]) -> ast.expr:
        if self.survey.active.isdisjoint(node.comparators[1:]):
            return self.rebuild(node, out)
        # `a < b < f()` is `a < b and b < f()`, with `b` computed once
        left = self.value(node.left, out)
        middle = self.value(node.comparators[0], out)
        if not isinstance(middle, ast.Name | ast.Constant):
            name = self.fresh()
            self.let(name, middle, out, self.place(node))
            middle = self.name(name, node.comparators[0])
        first = self._compared(left, node.ops[:1], [middle])
        second = self._compared(middle, node.ops[1:], node.comparators[1:])
        both = ast.copy_location(ast.BoolOp(ast.And(), [first, second]), node)
        self.survey.active.update((second, both))
        return self._logic(both, out)

    def _compared(self, left: ast.expr, ops: list[ast.cmpop], right: list[ast.expr]) -> ast.Compare:
        compared = ast.Compare(left, ops, right, lineno=left.lineno, col_offset=left.col_offset)
        compared.end_lineno, compared.end_col_offset = right[-1].end_lineno, right[-1].end_col_offset
        self.rebuilt.add(compared)
        return compared

    def _error_field(self, node: ast.Attribute, error: ast.Name, attribute: str) -> ast.expr:
        """Return a field of a caught error, which is only its message."""
        if attribute == "args":
            return self.built("[message]", node, message=error)
        if attribute in ("message", "msg", "detail", "reason"):
            return self.stand_in(error, node)
        return node
