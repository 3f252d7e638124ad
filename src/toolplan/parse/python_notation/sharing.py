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
from toolplan.diagnostics import program as wording
from toolplan.parse.python_notation.changes import root_of
from toolplan.parse.python_notation.text import ProgramText
from toolplan.parse.python_notation.vocabulary import CHANGING

__all__ = ["shared_changes"]

_RESIZING = frozenset({"append", "clear", "extend", "insert", "pop", "remove"})
"""Methods that a loop over the same list would notice."""
_PASSING_ON = frozenset({"enumerate", "list", "reversed", "sorted", "zip"})
"""Functions whose elements are those of their arguments."""


@dataclass(frozen=True, slots=True)
class _Share:
    """From `at` on the value of `name` is, or is part of, what `other` holds. `path` is where, for `name = path`."""

    name: str
    other: str
    path: str | None
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
        for share, affected in seen.affected(change):
            use = seen.later_use(affected, share, change)
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
        self.changes: list[_Change] = []
        self.loops: list[ast.Name] = []
        self.while_looping: list[tuple[ast.expr, str, ast.Name]] = []

    # --- questions -----------------------------------------------------------------------------------------------

    def affected(self, change: _Change) -> Iterator[tuple[_Share, str]]:
        """Yield the names that would see the change in Python, with how they come to share the value."""
        yield from self._holders(change.name, change.at, set())
        for shares in self.given.values():
            for share in shares:  # `b = a.rows`, then a change of `a.rows`
                if share.path == change.container and not share.by_loop and self._holds(share, share.name, change.at):
                    yield share, share.name

    def _holders(self, name: str, at: int, seen: set[str]) -> Iterator[tuple[_Share, str]]:
        seen.add(name)
        for share in (*self.given[name], *self.put[name]):
            if share.other not in seen and self._holds(share, name, at):
                yield share, share.other
                yield from self._holders(share.other, share.at, seen)

    def _holds(self, share: _Share, name: str, at: int) -> bool:
        """Return whether the sharing is still so at `at`: it came before, and neither name got a new value since."""
        return share.at < at and not any(
            share.at < bound < at for one in {name, share.other} for bound in self.bound[one]
        )

    def later_use(self, name: str, share: _Share, change: _Change) -> ast.Name | None:
        """Return the first use of `name` after the change, unless it has got a new value or the changed one by then."""
        ends = [at for at in self.bound[name] if at > change.at]
        ends += [put.at for put in self.put[change.name] if put.other == name and put.at > change.at]
        end = min(ends, default=self.at + 1)
        uses = self.uses[name]
        index = bisect_right(uses, change.at, key=lambda use: use[0])
        return uses[index][1] if index < len(uses) and uses[index][0] < end else None

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
        for child in ast.walk(node):
            if isinstance(child, ast.Call) and isinstance(child.func, ast.Attribute) and child.func.attr in CHANGING:
                root = root_of(child.func.value)
                if root is not None:
                    self.change_by_method(child, child.func, root)
        changed = {
            id(root_of(child.func.value))
            for child in ast.walk(node)
            if isinstance(child, ast.Call) and isinstance(child.func, ast.Attribute) and child.func.attr in CHANGING
        }
        self.at += 1
        for child in ast.walk(node):
            if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Load) and id(child) not in changed:
                self.uses[child.id].append((self.at, child))

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
        self.given[name].append(_Share(name, other, path, self.at, node, by_loop))

    def put_into(self, name: ast.Name, container: ast.Name) -> None:
        if name.id != container.id:
            self.at += 1
            self.put[name.id].append(_Share(name.id, container.id, None, self.at, name))

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
