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
        if self.survey.active.isdisjoint(node.values[1:]):
            return self.rebuild(node, out)
        result = self.fresh()
        self._decide(node, node.values, result, out)
        return self.name(result, node)

    def _decide(self, node: ast.BoolOp, values: Sequence[ast.expr], result: str, out: list[Step]) -> None:
        """Append the steps that give `result` the value of some operands of `node`, evaluated as far as needed."""
        late = next((i for i, value in enumerate(values) if i and value in self.survey.active), len(values))
        if late == 1:
            self.assign(result, values[0], out, self.place(node))
        else:
            parts = {f"value{i}": self.value(value, out) for i, value in enumerate(values[:late])}
            word = " and " if isinstance(node.op, ast.And) else " or "
            self.let(result, self.built(word.join(parts), node, **parts), out, self.place(node))
        if late < len(values):
            rest: list[Step] = []
            self._decide(node, values[late:], result, rest)
            so_far = self.name(result, node)
            test = so_far if isinstance(node.op, ast.And) else self.built("not value", node, value=so_far)
            out.append(If("", self.expression(test), tuple(rest), place=self.place(node)))

    def _choice(self, node: ast.IfExp, out: list[Step]) -> ast.expr:
        if self.survey.active.isdisjoint((node.body, node.orelse)):
            return self.rebuild(node, out)
        result = self.fresh()
        self.assign(result, node, out, self.place(node))
        return self.name(result, node)

    def _comparison(self, node: ast.Compare, out: list[Step]) -> ast.expr:
        if self.survey.active.isdisjoint(node.comparators[1:]):
            return self.rebuild(node, out)
        result = self.fresh()
        self._compare(node, 0, self.value(node.left, out), result, out)
        return self.name(result, node)

    def _compare(self, node: ast.Compare, index: int, left: ast.expr, result: str, out: list[Step]) -> None:
        """Append the steps of a chained comparison from operator number `index` on, evaluated as far as needed.

        `a < b < f()` is `a < b and b < f()`, with `b` computed once.
        """
        place = self.place(node)
        operators = [_COMPARISONS[type(op)] for op in node.ops[index:]]
        operands = node.comparators[index:]
        if self.survey.active.isdisjoint(operands[1:]):
            parts = {f"right{i}": self.value(operand, out) for i, operand in enumerate(operands)}
            chain = "".join(f" {operator} {name}" for operator, name in zip(operators, parts, strict=True))
            self.let(result, self.built(f"left{chain}", node, left=left, **parts), out, place)
            return
        right = self.value(operands[0], out)
        if not isinstance(right, ast.Name | ast.Constant):
            name = self.fresh()
            self.let(name, right, out, place)
            right = self.name(name, operands[0])
        self.let(result, self.built(f"left {operators[0]} right", node, left=left, right=right), out, place)
        rest: list[Step] = []
        self._compare(node, index + 1, right, result, rest)
        out.append(If("", self.expression(self.name(result, node)), tuple(rest), place=place))

    def _error_field(self, node: ast.Attribute, error: ast.Name, attribute: str) -> ast.expr:
        """Return a field of a caught error, which is only its message."""
        if attribute == "args":
            return self.built("[message]", node, message=error)
        if attribute in ("message", "msg", "detail", "reason"):
            return self.stand_in(error, node)
        return node


_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "in",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.NotEq: "!=",
    ast.NotIn: "not in",
}
