"""Changes that Python would show under a second name, and a plan would not: they are refused, never done otherwise.

Values of a plan are never shared. `for row in rows: row["total"] = ...` changes the elements of `rows` in Python; in a
plan it changes each round's `row` alone. That is harmless as long as nothing looks at `rows` afterwards; where
something does, the program would mean something else than it says.

The analysis goes by the order of the text. A value is shared by `b = a`, by `b = a.field` or `a[key]`, by a loop over
`a`, and by putting `b` into `a`. What it does not see (sharing around a loop, through several containers) it lets pass.
"""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from toolplan.diagnostics import Diagnostic
from toolplan.diagnostics import program_changes as wording
from toolplan.parse.python_notation.changes import root_of
from toolplan.parse.python_notation.text import ProgramText
from toolplan.parse.python_notation.vocabulary import CHANGING

__all__ = ["shared_changes"]

MAX_QUESTIONS = 100_000
"""When so many have been asked, the rest of the program passes: no program that is meant to be read asks so many."""
_RESIZING = frozenset({"append", "clear", "extend", "insert", "pop", "remove"})
"""Methods that a loop over the same list would notice."""
_PASSING_ON = frozenset({"enumerate", "list", "reversed", "sorted", "zip"})
"""Functions whose elements are those of their arguments."""


@dataclass(frozen=True, slots=True)
class _Share:
    """From `at` on the value of `name` is, or is part of, what `other` holds."""

    name: str
    other: str
    at: int
    node: ast.expr
    by_loop: bool = False


@dataclass(frozen=True, slots=True)
class _Change:
    """A change in place, at `at`, of `container`, which is `name` or a part of it."""

    name: str
    container: str
    at: int
    node: ast.expr


def shared_changes(text: ProgramText, body: Sequence[ast.stmt]) -> Iterator[Diagnostic]:
    """Yield a problem for each change that another name was meant to see."""
    seen = _Reading()
    for statement in body:
        seen.statement(statement)
    for change, list_name, node in seen.while_looping:
        yield wording.changed_while_looping(text.place(change), list_name, text.place(node))
    for change in seen.changes:
        if seen.questions > MAX_QUESTIONS:
            return
        for share, affected in seen.affected(change):
            use = seen.later_use(affected, change)
            if use is not None:
                yield wording.shared_change(
                    text.place(change.node),
                    change.name,
                    affected,
                    text.place(share.node),
                    text.place(use),
                    share.by_loop,
                )
                break


class _Reading:
    """What a program does to its names, in the order of the text."""

    def __init__(self) -> None:
        self.at = 0
        self.bound: dict[str, list[int]] = defaultdict(list)
        self.uses: dict[str, list[tuple[int, ast.Name]]] = defaultdict(list)
        self.given: dict[str, list[_Share]] = defaultdict(list)
        """What each name shares because it was given a part of another's value."""
        self.put: dict[str, list[_Share]] = defaultdict(list)
        """What each name shares because it was put into another's value."""
        self.by_path: dict[str, list[_Share]] = defaultdict(list)
        """Those of `given` by the path that was shared; loops do not count."""
        self.changes: list[_Change] = []
        self.questions = 0
        self.loops: list[ast.Name] = []
        self.while_looping: list[tuple[ast.expr, str, ast.Name]] = []

    # --- questions -----------------------------------------------------------------------------------------------

    def affected(self, change: _Change) -> Iterator[tuple[_Share, str]]:
        """Yield the names that would see the change in Python, with how they come to share the value."""
        yield from self._holders(change.name, change.at, set())
        for share in reversed(self.by_path[change.container]):  # `b = a.rows`, then a change of `a.rows`
            if self._holds(share, change.at):
                yield share, share.name

    def _holders(self, name: str, at: int, seen: set[str]) -> Iterator[tuple[_Share, str]]:
        seen.add(name)
        for shares in (self.given[name], self.put[name]):
            for share in reversed(shares):
                if self._bound_between(name, share.at, at):
                    break  # and so it was after every earlier one
                if share.other not in seen and self._holds(share, at):
                    yield share, share.other
                    yield from self._holders(share.other, share.at, seen)

    def _holds(self, share: _Share, at: int) -> bool:
        """Return whether the sharing is still so at `at`: it came before, and neither name got a new value since."""
        return share.at < at and not (
            self._bound_between(share.name, share.at, at) or self._bound_between(share.other, share.at, at)
        )

    def _bound_between(self, name: str, start: int, end: int) -> bool:
        self.questions += 1
        bound = self.bound[name]
        index = bisect_right(bound, start)
        return index < len(bound) and bound[index] < end

    def later_use(self, name: str, change: _Change) -> ast.Name | None:
        """Return the first use of `name` after the change, unless it has got a new value or the changed one by then."""
        uses, bound = self.uses[name], self.bound[name]
        index = bisect_right(uses, change.at, key=lambda use: use[0])
        if index == len(uses):
            return None
        at, use = uses[index]
        new_value = bisect_right(bound, change.at)
        if new_value < len(bound) and bound[new_value] < at:
            return None
        put_back = any(put.other == name and change.at < put.at < at for put in reversed(self.put[change.name]))
        return None if put_back else use

    # --- statements ----------------------------------------------------------------------------------------------

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                self.expression(value)
                for target in targets:
                    self.assignment(target, value)
            case ast.AnnAssign(target=target, value=value) if value is not None:
                self.expression(value)
                self.assignment(target, value)
            case ast.AugAssign(target=target, value=value):
                self.expression(value)
                if not isinstance(target, ast.Name):
                    self.part_assigned(target)
                elif isinstance(value, ast.List | ast.ListComp):  # `xs += [1]` changes the list itself
                    self.changed(target, target)
            case ast.For() | ast.AsyncFor():
                self.loop(node)
            case ast.Delete(targets=targets):
                for target in targets:
                    self.part_assigned(target)
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.stmt):
                        self.statement(child)
                    elif isinstance(child, ast.expr):
                        self.expression(child)
                    else:
                        for statement in getattr(child, "body", ()):  # of an `except` block
                            self.statement(statement)

    def loop(self, node: ast.For | ast.AsyncFor) -> None:
        self.expression(node.iter)
        self.bind(node.target)
        names = [name for name in ast.walk(node.target) if isinstance(name, ast.Name)]
        for path in _element_sources(node.iter):
            root = root_of(path)
            for name in names:
                if root is not None:
                    self.share(name.id, root.id, None, node.target, by_loop=True)
        if isinstance(node.iter, ast.Name):
            self.loops.append(node.iter)
        for statement in node.body:
            self.statement(statement)
        if isinstance(node.iter, ast.Name):
            self.loops.pop()
        for statement in node.orelse:
            self.statement(statement)

    def assignment(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self.bind(target)
            for path in _same_values(value):
                root = root_of(path)
                if root is not None and root.id != target.id:
                    self.share(target.id, root.id, ast.unparse(path), value)
            for name in _parts(value):
                self.put_into(name, target)
        elif isinstance(target, ast.Tuple | ast.List):
            self.bind(target)
        else:
            self.part_assigned(target)
            root = root_of(target)
            if root is not None:
                for name in [value] if isinstance(value, ast.Name) else _parts(value):
                    self.put_into(name, root)

    def part_assigned(self, target: ast.expr) -> None:
        """Note a change of what holds `target`, an element or a field."""
        if isinstance(target, ast.Subscript | ast.Attribute):
            root = root_of(target)
            if root is not None:
                self.changed(root, target.value)
            if isinstance(target, ast.Subscript):
                self.expression(target.slice)

    # --- expressions ---------------------------------------------------------------------------------------------

    def expression(self, node: ast.expr) -> None:
        names: list[ast.Name] = []
        changed: list[ast.Name] = []
        for child in ast.walk(node):
            if isinstance(child, ast.Name):
                names.append(child)
            elif isinstance(child, ast.Call) and isinstance(child.func, ast.Attribute) and child.func.attr in CHANGING:
                root = root_of(child.func.value)
                if root is not None:
                    changed.append(root)
                    self.change_by_method(child, child.func, root)
        self.at += 1
        for name in names:
            if isinstance(name.ctx, ast.Load) and name not in changed:
                self.uses[name.id].append((self.at, name))

    def change_by_method(self, node: ast.Call, function: ast.Attribute, root: ast.Name) -> None:
        self.changed(root, function.value, node)
        if isinstance(function.value, ast.Name) and function.attr in _RESIZING:
            loop = next((name for name in self.loops if name.id == root.id), None)
            if loop is not None:
                self.while_looping.append((node, root.id, loop))
        for argument in node.args:
            for name in [argument] if isinstance(argument, ast.Name) else _parts(argument):
                self.put_into(name, root)

    # --- notes ---------------------------------------------------------------------------------------------------

    def bind(self, target: ast.expr) -> None:
        self.at += 1
        for name in ast.walk(target):
            if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store):
                self.bound[name.id].append(self.at)

    def share(self, name: str, other: str, path: str | None, node: ast.expr, *, by_loop: bool = False) -> None:
        share = _Share(name, other, self.at, node, by_loop)
        self.given[name].append(share)
        if path is not None:
            self.by_path[path].append(share)

    def put_into(self, name: ast.Name, container: ast.Name) -> None:
        if name.id != container.id:
            self.at += 1
            self.put[name.id].append(_Share(name.id, container.id, self.at, name))

    def changed(self, root: ast.Name, container: ast.expr, node: ast.expr | None = None) -> None:
        self.at += 1
        self.changes.append(_Change(root.id, ast.unparse(container), self.at, node or container))


def _same_values(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the names and parts of values that `node` may be without making a new value."""
    match node:
        case ast.Name() | ast.Attribute():
            yield node
        case ast.Subscript(slice=index) if not isinstance(index, ast.Slice):
            yield node
        case ast.IfExp(body=body, orelse=orelse):
            yield from _same_values(body)
            yield from _same_values(orelse)
        case ast.BoolOp(values=values):
            for value in values:
                yield from _same_values(value)
        case ast.Await(value=value):
            yield from _same_values(value)
        case _:
            return


def _element_sources(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the values whose elements a loop over `node` goes through."""
    match node:
        case ast.Call(func=ast.Name(id=name), args=args) if name in _PASSING_ON:
            for argument in args:
                yield from _element_sources(argument)
        case ast.Call(func=ast.Attribute(value=value, attr="items" | "values"), args=[]):
            yield value
        case ast.Subscript(value=value, slice=ast.Slice()):
            yield value
        case _:
            yield from _same_values(node)


def _parts(node: ast.expr) -> Iterator[ast.Name]:
    """Yield the names whose values a list or object that is written out holds."""
    if isinstance(node, ast.List | ast.Tuple):
        elements: Sequence[ast.expr] = node.elts
    elif isinstance(node, ast.Dict):
        elements = node.values
    else:
        return
    for element in elements:
        if isinstance(element, ast.Name):
            yield element
        else:
            yield from _parts(element)
