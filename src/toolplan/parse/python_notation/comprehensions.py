"""Comprehensions that hold calls: each `for` becomes a `ForEach`, whose collected values are the list.

`[f(x) for x in xs if x.ok]` is a loop over `[x for x in xs if x.ok]`; a condition with a call in it ends the round
early. `any`, `all` and `next` over a generator stop at the element that decides, as in Python.
"""

from __future__ import annotations

import ast
import copy
from typing import TypeAlias

from toolplan.diagnostics import program as wording
from toolplan.expressions import Expression, Template
from toolplan.parse.python_notation.lowering import Lowering, refuse
from toolplan.parse.python_notation.vocabulary import Meaning
from toolplan.plan import Break, Continue, ForEach, If, Let, Step

__all__ = ["Comprehension", "collected", "is_loop", "performed", "searched", "unpacked"]

Comprehension: TypeAlias = "ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp"


def is_loop(low: Lowering, node: Comprehension) -> bool:
    """Return whether anything but the first list of the comprehension holds calls."""
    first = node.generators[0]
    inside: list[ast.AST] = [first.target, *first.ifs, *node.generators[1:]]
    inside += [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
    return not low.survey.active.isdisjoint(inside)


def collected(low: Lowering, node: Comprehension, out: list[Step], result: str | None = None) -> ast.expr:
    """Append the loop that the comprehension is; return its value, which a list keeps under the name `result`."""
    if not is_loop(low, node):
        return _with_list(low, node, low.value(node.generators[0].iter, out))
    name = result or low.fresh()
    _loops(low, node, out, name)
    values = low.name(name, node)
    if isinstance(node, ast.SetComp):
        return low.built("set(values)", node, values=values)
    if isinstance(node, ast.DictComp):
        return low.built("dict(values)", node, values=values)
    return values


def performed(low: Lowering, node: Comprehension, out: list[Step]) -> None:
    """Append the loop that a comprehension is whose value nobody uses."""
    _loops(low, node, out, None)


def searched(low: Lowering, node: ast.Call, out: list[Step]) -> ast.expr | None:
    """Append the loop of an `any`, `all` or `next` over a generator with calls; return its value, None for other calls.

    Like Python, the loop ends with the first element that decides.
    """
    match node:
        case ast.Call(
            func=ast.Name(id="any" | "all" | "next" as name), args=[ast.GeneratorExp() as generator, *rest], keywords=[]
        ) if is_loop(low, generator) and low.vocabulary.meaning(name) is Meaning.FUNCTION and len(rest) <= 1:
            pass
        case _:
            return None
    result = low.fresh()
    place = low.place(node)
    start: ast.expr = ast.copy_location(ast.Constant({"any": False, "all": True}.get(name)), node)
    if name == "next":
        start = low.built("[]", node)
    low.let(result, low.stand_in(start, node) if name != "next" else start, out, place)
    found = low.name(result, node)

    def decide(element: ast.expr, body: list[Step]) -> None:
        if name == "next":
            low.let(result, low.built("[element]", element, element=element), body, place)
            body.append(Break("", place))
            return
        test = element if name == "any" else low.built("not element", element, element=element)
        inner: list[Step] = []
        low.let(result, low.built("True" if name == "any" else "False", element), inner, place)
        inner.append(Break("", place))
        body.append(If("", low.expression(test), tuple(inner), place=place))

    first = low.value(generator.generators[0].iter, out)
    decided = found if name != "all" else low.built("not found", node, found=found)
    _search(low, generator, 0, first, out, decide, decided)
    if name != "next":
        return found
    if not rest:
        return low.built("found[0]", node, found=found)
    return low.built("found[0] if found else fallback", node, found=found, fallback=low.value(rest[0], out))
