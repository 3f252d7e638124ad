"""Replacing names in a tree by paths."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping

__all__ = ["renamed"]

_LOAD = ast.Load()


def renamed(tree: ast.expr, paths: Mapping[str, str]) -> ast.expr:
    """Return a copy of `tree` with names from outside replaced by paths (`temperature` by `weather.temperature`).

    New nodes stand where the name stood. Names that comprehensions and lambdas bind are left alone.
    """
    return _Renamer(paths).visit(copy.deepcopy(tree))


class _Renamer(ast.NodeTransformer):
    """Replaces names from outside, in place."""

    def __init__(self, paths: Mapping[str, str]) -> None:
        self.paths = paths
        self.bound: list[str] = []

    def visit_Name(self, node: ast.Name) -> ast.expr:
        path = self.paths.get(node.id)
        if path is None or node.id in self.bound or not isinstance(node.ctx, ast.Load):
            return node
        head, *fields = path.split(".")
        tree: ast.expr = ast.copy_location(ast.Name(id=head, ctx=_LOAD), node)
        for name in fields:
            tree = ast.copy_location(ast.Attribute(value=tree, attr=name, ctx=_LOAD), node)
        return tree

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if not isinstance(node.func, ast.Name):
            node.func = self.visit(node.func)
        node.args = [self.visit(argument) for argument in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        names = [argument.arg for argument in node.args.posonlyargs + node.args.args]
        self.bound += names
        node.body = self.visit(node.body)
        del self.bound[len(self.bound) - len(names) :]
        return node

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> ast.expr:
        before = len(self.bound)
        for clause in node.generators:
            clause.iter = self.visit(clause.iter)
            self.bound += [found.id for found in ast.walk(clause.target) if isinstance(found, ast.Name)]
            clause.ifs = [self.visit(test) for test in clause.ifs]
        if isinstance(node, ast.DictComp):
            node.key = self.visit(node.key)
            node.value = self.visit(node.value)
        else:
            node.elt = self.visit(node.elt)
        del self.bound[before:]
        return node

    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = _comprehension  # noqa: N815
