"""Python's words for what this language has under another name: `map`, `filter`, `list(dict.fromkeys(xs))`.

They are given the usual spelling in place, before anything looks at the tree: the first two become comprehensions, the
third `list(set(xs))`, for a set keeps the order of its elements here. Only what has one reading is touched; the rest is
refused where it stands.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable

__all__ = ["respelt"]

_LOAD = ast.Load()
_KINDS = frozenset(("str", "list", "dict"))
_ELEMENT = "each"
"""What the elements are called; nothing else in such a comprehension has a name of its own."""


def respelt(node: ast.Call, name: str, is_function: Callable[[str], bool]) -> bool:
    """Give the call of the function `name` its usual spelling; return whether it had another.

    `is_function` says whether a name is a function of one argument here.
    """
    if node.keywords or any(isinstance(argument, ast.Starred) for argument in node.args):
        return False
    match name, node.args:
        case (("map" | "filter"), [function, items]):
            return _as_comprehension(node, name, function, items, is_function)
        case "list", [ast.Call(func=ast.Attribute(ast.Name("dict"), "fromkeys"), args=[_], keywords=[]) as keys]:
            keys.func = ast.copy_location(ast.Name("set", _LOAD), keys.func)
            return False  # `list(...)` itself stays
        case _:
            return False


def _as_comprehension(
    node: ast.Call, name: str, function: ast.expr, items: ast.expr, is_function: Callable[[str], bool]
) -> bool:
    element = ast.copy_location(ast.Name(_ELEMENT, _LOAD), items)
    match function:
        case ast.Lambda(
            args=ast.arguments(vararg=None, kwonlyargs=[], kwarg=None, defaults=[]) as given, body=applied
        ) if len(parameters := list(itertools.chain(given.posonlyargs, given.args))) == 1:
            element = ast.copy_location(ast.Name(parameters[0].arg, _LOAD), parameters[0])
        case ast.Name(id=called) if is_function(called):
            applied = ast.copy_location(ast.Call(function, [element], []), function)
        case ast.Attribute(value=ast.Name(id=kind), attr=method) if kind in _KINDS:
            on = ast.copy_location(ast.Attribute(element, method, _LOAD), function)
            applied = ast.copy_location(ast.Call(on, [], []), function)
        case ast.Constant(value=None) if name == "filter":
            applied = element
        case _:
            return False
    target = ast.copy_location(ast.Name(element.id, ast.Store()), element)
    kept = ast.copy_location(ast.Name(element.id, _LOAD), element)
    rounds = ast.comprehension(target, items, [] if name == "map" else [applied], 0)
    node.__class__ = ast.ListComp  # type: ignore[assignment]
    plain: ast.ListComp = node  # type: ignore[assignment]
    plain.elt = applied if name == "map" else kept
    plain.generators = [rounds]
    return True
