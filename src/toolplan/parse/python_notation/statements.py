"""Statements -> steps: one method for each kind of statement that the notation has."""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence

from toolplan.diagnostics import Place
from toolplan.diagnostics import program as wording
from toolplan.diagnostics.reading import not_a_name, outside_loop
from toolplan.expressions import Expression, Literal, Template
from toolplan.parse.naming import is_name, name_from
from toolplan.parse.python_notation import asynchronous, calls, changes, comprehensions
from toolplan.parse.python_notation.bounds import bound_of, stated_bound
from toolplan.parse.python_notation.iterating import as_list
from toolplan.parse.python_notation.lowering import Loop, Refused, ends
from toolplan.parse.python_notation.survey import COMPREHENSIONS
from toolplan.parse.python_notation.trying import tried
from toolplan.parse.python_notation.values import Values
from toolplan.parse.python_notation.vocabulary import Meaning
from toolplan.plan import Answer, Block, Break, Continue, ForEach, If, Let, Step, While

__all__ = ["Statements"]


class Statements(Values):
    """Lowers statements."""

    def block(self, statements: Sequence[ast.stmt]) -> Block:
        """Return the steps of these statements; problems are reported, and the statement left out."""
        out: list[Step] = []
        for statement in statements:
            self.statement = statement
            try:
                self._lower(statement, out)
            except Refused as refused:
                self.report_refused(refused, statement)
        return tuple(out)

    def _lower(self, node: ast.stmt, out: list[Step]) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                self._assign(node, targets, value, out)
            case ast.AnnAssign(target=target, value=value):
                if value is not None:
                    self._assign(node, [target], value, out)
            case ast.AugAssign():
                self._change(node, out)
            case ast.Expr(value=value):
                self.perform(value, out)
            case ast.Return(value=value):
                self._return(node, value, out)
            case ast.If():
                self._branch(node, out)
            case ast.For() | ast.AsyncFor():
                self._for_each(node, out)
            case ast.While():
                self._while(node, out)
            case ast.Try():
                tried(self, node, out)
            case ast.Break() | ast.Continue():
                self._leave(node, out)
            case ast.Delete(targets=targets):
                for target in targets:
                    changes.removed(self, target, out, self.place(node))
            case ast.Import() | ast.ImportFrom():
                self._import(node)
            case ast.Pass():
                pass
            case _:
                problem = wording.statement(self._head(node), type(node).__name__)
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                    self.report(problem)
                    self.refused.add(node.name)
                    return
                raise Refused(problem)

    # --- values ------------------------------------------------------------------------------------------------------

    def _assign(self, node: ast.stmt, targets: list[ast.expr], value: ast.expr, out: list[Step]) -> None:
        place = self.place(node)
        first, *others = targets
        if not others and isinstance(first, ast.Tuple | ast.List):
            self._assign_several(first, value, out, place)
        elif isinstance(first, ast.Name):
            self.assign(first.id, value, out, place)
            for other in others:  # `a = b = value`
                self._store(other, self.name(first.id, value), out, place)
        elif not others:
            self._store(first, self.value(value, out), out, place)
        else:
            name = self.fresh()
            self.assign(name, value, out, place)
            for target in targets:
                self._store(target, self.name(name, value), out, place)
        for target in targets:
            self._define(target)

    def _define(self, target: ast.expr) -> None:
        """Note the names in a target as assigned from here on."""
        for name in ast.walk(target):
            if isinstance(name, ast.Name):
                self.visible.add(name.id)
                if not is_name(name.id) and isinstance(name.ctx, ast.Store):
                    self.report(not_a_name(self.place(name), name.id, name_from(name.id)))

    def _store(self, target: ast.expr, value: ast.expr, out: list[Step], place: Place) -> None:
        """Append the steps that give `target` a value free of steps."""
        match target:
            case ast.Name(id=name):
                self.let(name, value, out, place)
            case ast.Tuple() | ast.List():
                if not isinstance(value, ast.Name):
                    name = self.fresh()
                    self.let(name, value, out, place)
                    value = self.name(name, value)
                self._unpack(target, value, out, place)
            case ast.Subscript() | ast.Attribute():
                changes.replaced(self, self.value(target, out), value, out, place)
            case _:
                raise Refused(wording.target(self.place(target)))

    def _unpack(self, target: ast.Tuple | ast.List, value: ast.expr, out: list[Step], place: Place) -> None:
        if all(isinstance(element, ast.Name | ast.Starred | ast.Tuple | ast.List) for element in target.elts):
            pairs = comprehensions.unpacked(self, target, value)
            if not pairs:
                raise Refused(wording.target(self.place(target)))
            out.append(Let("", tuple((name, self.template(part)) for name, part in pairs), place))
            return
        for number, element in enumerate(target.elts):  # `d["a"], x = pair`
            if isinstance(element, ast.Starred):
                raise Refused(wording.target(self.place(element)))
            self._store(element, self.built(f"value[{number}]", element, value=value), out, place)

    def _assign_several(self, target: ast.Tuple | ast.List, value: ast.expr, out: list[Step], place: Place) -> None:
        values = self._several(value, len(target.elts))
        if values is None or any(isinstance(element, ast.Starred) for element in target.elts):
            name = self.fresh()
            self.assign(name, value, out, place)
            self._unpack(target, self.name(name, value), out, place)
            return
        if self._in_turn(target.elts, values):
            for element, part in zip(target.elts, values, strict=True):
                if isinstance(element, ast.Name):
                    self.assign(element.id, part, out, place)
                else:
                    self._store(element, self.value(part, out), out, place)
            return
        names = [self.fresh() for _ in values]  # `a, b = b, a`
        for name, part in zip(names, values, strict=True):
            self.assign(name, part, out, place)
        for name, element in zip(names, target.elts, strict=True):
            self._store(element, self.name(name, element), out, place)

    def _several(self, value: ast.expr, count: int) -> list[ast.expr] | None:
        """Return the `count` values that are written out in `value`, or None when it is one value to take apart."""
        value = asynchronous.awaited(value)
        values: list[ast.expr] = []
        if isinstance(value, ast.Tuple | ast.List):
            values = value.elts
        elif isinstance(value, ast.Call):
            meant = asynchronous.reading(self, value)
            values = meant.values if isinstance(meant, asynchronous.Gathered) else []
        if not values or len(values) != count or any(isinstance(element, ast.Starred) for element in values):
            return None
        return values

    def _in_turn(self, targets: list[ast.expr], values: list[ast.expr]) -> bool:
        """Return whether assigning one after the other means the same as assigning all at once."""
        given: set[str] = set()
        for target, value in zip(targets, values, strict=True):
            if any(isinstance(node, ast.Name) and node.id in given for node in ast.walk(value)):
                return False
            if isinstance(target, ast.Name):
                given.add(target.id)
            else:
                given |= {node.id for node in ast.walk(target) if isinstance(node, ast.Name)}
        return True

    def _change(self, node: ast.AugAssign, out: list[Step]) -> None:
        place = self.place(node)
        target = self.value(node.target, out)
        if not isinstance(target, ast.Name | ast.Subscript | ast.Attribute):
            raise Refused(wording.target(self.place(node.target)))
        value = self.value(node.value, out)
        sign = _SIGNS.get(type(node.op))
        if sign is None:
            raise Refused(wording.statement(place, type(node.op).__name__))
        changes.replaced(self, target, self.built(f"target {sign} value", node, target=target, value=value), out, place)

    def is_mere_value(self, node: ast.expr) -> bool:
        """Return whether an expression standing alone does nothing but have a value."""
        if isinstance(node, ast.Constant):
            return isinstance(node.value, str)
        return node not in self.survey.active and not changes.is_change(node)

    # --- what a statement does -----------------------------------------------------------------------------------

    def perform(self, node: ast.expr, out: list[Step]) -> None:
        """Append the steps of an expression whose value nobody uses."""
        node = asynchronous.awaited(node)
        if isinstance(node, ast.Call):
            self._perform_call(node, out)
        elif isinstance(node, COMPREHENSIONS) and comprehensions.is_loop(self, node):
            comprehensions.performed(self, node, out)
        elif isinstance(node, ast.IfExp) and node in self.survey.active:
            self._perform_if(node, node.test, node.body, node.orelse, out)
        elif isinstance(node, ast.BoolOp) and len(node.values) == 2 and node.values[1] in self.survey.active:
            first, second = node.values
            sides = (second, None) if isinstance(node.op, ast.And) else (None, second)
            self._perform_if(node, first, *sides, out)
        elif node in self.survey.active:
            for part in node.elts if isinstance(node, ast.Tuple | ast.List) else ():
                self.perform(part, out)
            if not isinstance(node, ast.Tuple | ast.List):
                self.value(node, out)

    def _perform_call(self, node: ast.Call, out: list[Step]) -> None:
        match asynchronous.reading(self, node):
            case asynchronous.Gathered(values):
                for value in values:
                    self.perform(value.value if isinstance(value, ast.Starred) else value, out)
                return
            case asynchronous.Same(value, timeout):
                inner = asynchronous.awaited(value)
                if not (isinstance(inner, ast.Call) and calls.call(self, inner, None, out, timeout)):
                    self.perform(inner, out)
                return
            case None:
                pass
        if stated_bound(ast.Expr(node)) is not None and self.loops:
            return  # read by `bound_of`
        if calls.call(self, node, None, out):
            return
        if changes.is_change(node):
            changes.changed(self, node, out, self.place(node))
            return
        if node not in self.survey.active:
            # `sorted(xs)` alone does nothing: whoever wrote it meant something else
            raise Refused(wording.lost_value(self.place(node), ast.unparse(node.func)))
        self.value(node, out)

    def _perform_if(
        self, node: ast.expr, test: ast.expr, then: ast.expr | None, otherwise: ast.expr | None, out: list[Step]
    ) -> None:
        condition = self.value(test, out)
        sides: list[list[Step]] = [[], []]
        for side, steps in zip((then, otherwise), sides, strict=True):
            if side is not None:
                self.perform(side, steps)
        if not sides[0]:
            condition = self.built("not condition", test, condition=condition)
            sides.reverse()
        out.append(If("", self.expression(condition), tuple(sides[0]), tuple(sides[1]), self.place(node)))

    def _return(self, node: ast.Return, value: ast.expr | None, out: list[Step]) -> None:
        place = self.place(node)
        value = asynchronous.awaited(value) if value is not None else None
        if value is None or (isinstance(value, ast.Constant) and value.value is None):
            if not ends(out):  # behind `answer(...)` it says once more what that means
                out.append(Answer("", Literal("", place), place))
        elif isinstance(value, ast.Call) and calls.word_of(self, value) in ("answer", "cannot", "replan"):
            calls.call(self, value, None, out)
        elif isinstance(value, ast.IfExp) and not self.survey.active.isdisjoint((value.body, value.orelse)):
            test = self.expression(self.value(value.test, out))
            sides: list[list[Step]] = [[], []]
            for side, steps in zip((value.body, value.orelse), sides, strict=True):
                self._return(node, side, steps)
            out.append(If("", test, tuple(sides[0]), tuple(sides[1]), self.place(value)))
        else:
            out.append(Answer("", self.template(self.value(value, out)), place))

    # --- branches and loops --------------------------------------------------------------------------------------

    def _branch(self, node: ast.If, out: list[Step]) -> None:
        self.statement = node.test
        test = self._condition(node.test, out)
        before = set(self.visible)
        then = self.block(node.body)
        after_then, self.visible = self.visible, before
        otherwise = self.block(node.orelse)
        self.visible |= after_then
        if test is not None:
            out.append(If("", test, then, otherwise, self.place(node)))

    def _condition(self, node: ast.expr, out: list[Step]) -> Expression | None:
        """Return the condition, or None when there is a problem in it, which is reported."""
        try:
            return self.expression(self.value(node, out))
        except Refused as refused:
            self.report_refused(refused, node)
            return None

    def _for_each(self, node: ast.For | ast.AsyncFor, out: list[Step]) -> None:
        self.statement = node.iter
        if node.orelse:
            self.report(wording.loop_else(self.place(node.orelse[0]), "for"))
        items = self._items(node, out)
        before = set(self.visible)
        start: list[Step] = []
        name = self._loop_name(node, start)
        self.loops.append(Loop())
        body = self.block(node.body)
        self.loops.pop()
        self.visible = before
        out.append(ForEach("", items, name, (*start, *body), place=self.place(node)))

    def _items(self, node: ast.For | ast.AsyncFor, out: list[Step]) -> Template:
        """Return what the loop goes through; null after reporting a problem in it."""
        try:
            return self.template(as_list(self, self.value(node.iter, out), node.target, node.body))
        except Refused as refused:
            self.report_refused(refused, node.iter)
            return Literal(None, self.place(node.iter))

    def _loop_name(self, node: ast.For | ast.AsyncFor, start: list[Step]) -> str:
        """Return the name for the loop's element; what takes it apart is appended to `start`."""
        target = node.target
        place = self.place(target)
        is_new = isinstance(target, ast.Name) and target.id not in self.visible
        self._define(target)
        if is_new and isinstance(target, ast.Name):
            return target.id
        name = self.fresh()
        try:
            # a variable that exists before the loop keeps its last element, as in Python
            self._store(target, self.name(name, target), start, place)
        except Refused as refused:
            self.report(refused.diagnostic)
        return name

    def _while(self, node: ast.While, out: list[Step]) -> None:
        self.statement = node.test
        if node.orelse:
            self.report(wording.loop_else(self.place(node.orelse[0]), "while"))
        bound = bound_of(self, node)
        if bound is None:
            self.report(wording.unbounded_while(self.place(node.test)))
        before = set(self.visible)
        loop = Loop()
        test = self._condition(node.test, out) if node.test not in self.survey.active else None
        if node.test in self.survey.active:
            # The condition holds calls: it becomes a variable, computed before the loop and at the end of each round.
            name = self.fresh()

            def compute(steps: list[Step]) -> None:
                self.assign(name, node.test, steps, self.place(node.test))

            try:
                compute(out)
                test = self.expression(self.name(name, node.test))
                loop.before_next = compute
            except Refused as refused:
                self.report_refused(refused, node.test)
        self.loops.append(loop)
        body = self.block(node.body)
        self.loops.pop()
        self.visible = before
        if loop.before_next is not None and not ends(body):
            again: list[Step] = []
            loop.before_next(again)
            body = (*body, *again)
        if test is not None:
            out.append(While("", test, body, bound or 1, self.place(node)))

    def _leave(self, node: ast.Break | ast.Continue, out: list[Step]) -> None:
        place = self.place(node)
        is_break = isinstance(node, ast.Break)
        if not self.loops:
            raise Refused(outside_loop(place, "break" if is_break else "continue"))
        if ends(out):
            return
        if not is_break and (before_next := self.loops[-1].before_next):
            before_next(out)
        out.append(Break("", place) if is_break else Continue("", place))

    # --- imports -------------------------------------------------------------------------------------------------

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        """Report an import of something that the program uses; what it does not use does no harm."""
        module = (node.module or "") if isinstance(node, ast.ImportFrom) else None
        if module in ("__future__", "asyncio", "typing"):
            return
        used: list[str] = []
        package = module or ""
        for alias in node.names:
            name = alias.asname or (alias.name.partition(".")[0] if module is None else alias.name)
            is_own = alias.name in ("asyncio", "typing") or self._is_own(module, name)
            if name in self.survey.reads and not is_own:
                used.append(name)
                package = module or alias.name
        if used:
            places = [self.place(self.survey.reads[name][0]) for name in used]
            self.report(wording.imported(self.place(node), package.partition(".")[0], places))
            self.refused.update(used)

    def _is_own(self, module: str | None, name: str) -> bool:
        """Return whether an imported name is a tool or a word of the notation, which needs no import."""
        if module is None or module.partition(".")[0] in sys.stdlib_module_names:
            return False
        tools = self.vocabulary.tools
        return name in tools or not tools or self.vocabulary.meaning(name) is not Meaning.TOOL

    def _head(self, node: ast.stmt) -> Place:
        """Return the place of the statement's first line."""
        place = self.place(node)
        start = place.start or 0
        line_end = self.text.source.text.find("\n", start)
        return Place(start=start, end=place.end if line_end < 0 else min(place.end or start, line_end))


_SIGNS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.BitOr: "|",
    ast.BitAnd: "&",
    ast.BitXor: "^",
}
