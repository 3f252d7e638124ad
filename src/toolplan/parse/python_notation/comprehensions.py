"""Comprehensions that hold calls: each `for` becomes a `ForEach`, whose collected values are the list.

`[f(x) for x in xs if x.ok]` is a loop over `[x for x in xs if x.ok]`; a condition with a call in it ends the round
early. `any`, `all` and `next` over a generator stop at the element that decides, as in Python.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TypeAlias

from toolplan.diagnostics import program as wording
from toolplan.diagnostics.reading import not_a_name
from toolplan.expressions import Expression, Template
from toolplan.parse.naming import is_name, name_from
from toolplan.parse.python_notation.iterating import as_list
from toolplan.parse.python_notation.lowering import Lowering, Refused
from toolplan.parse.python_notation.splicing import Piece
from toolplan.parse.python_notation.survey import COMPREHENSIONS
from toolplan.parse.python_notation.vocabulary import Meaning
from toolplan.plan import Break, Continue, ForEach, If, Let, Step

__all__ = ["Comprehension", "collected", "is_loop", "performed", "searched", "unpacked"]

Comprehension: TypeAlias = "ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp"


def is_loop(low: Lowering, node: Comprehension) -> bool:
    """Return whether anything but the first list of the comprehension holds calls."""
    return not low.survey.active.isdisjoint(_after_list(node, 0))


def collected(low: Lowering, node: Comprehension, out: list[Step], result: str | None = None) -> ast.expr:
    """Append the loop that the comprehension is; return its value, which a list keeps under the name `result`."""
    items = low.value(node.generators[0].iter, out)
    if not is_loop(low, node):
        return _with_items(low, node, 0, items)
    name = result or low.fresh()
    _collect(low, node, 0, items, out, name)
    values = low.name(name, node)
    if isinstance(node, ast.SetComp):
        return low.built("set(values)", node, values=values)
    if isinstance(node, ast.DictComp):
        return low.built("dict(values)", node, values=values)
    if isinstance(node, ast.GeneratorExp):  # its brackets may be those of a call
        return low.built("(values)", node, values=values)
    return values


def performed(low: Lowering, node: Comprehension, out: list[Step]) -> None:
    """Append the loop that a comprehension is whose value nobody uses."""
    items = low.value(node.generators[0].iter, out)

    def element(body: list[Step]) -> None:
        for part in _elements(node):
            low.perform(part, body)

    _perform(low, node, 0, items, out, element, None)


def searched(low: Lowering, node: ast.Call, out: list[Step]) -> ast.expr | None:
    """Append the loop of an `any`, `all` or `next` over a generator with calls; return its value, None for other calls.

    Like Python's, the loop ends with the first element that decides.
    """
    match node:
        case ast.Call(
            func=ast.Name(id="any" | "all" | "next" as word), args=[ast.GeneratorExp() as generator, *rest], keywords=[]
        ) if is_loop(low, generator) and low.vocabulary.meaning(word) is Meaning.FUNCTION and len(rest) <= 1:
            pass
        case _:
            return None
    place = low.place(node)
    items = low.value(generator.generators[0].iter, out)
    fallback = low.value(rest[0], out) if rest else None
    result = low.fresh()
    found = low.name(result, node)
    low.let(result, low.built({"any": "False", "all": "True", "next": "[]"}[word], node), out, place)

    def decide(body: list[Step]) -> None:
        element = low.value(generator.elt, body)
        if word == "next":
            low.let(result, low.built("[element]", generator.elt, element=element), body, place)
            body.append(Break("", place))
            return
        test = element if word == "any" else low.built("not element", generator.elt, element=element)
        inner: list[Step] = []
        low.let(result, low.built("True" if word == "any" else "False", node), inner, place)
        body.append(If("", low.expression(test), (*inner, Break("", place)), place=place))

    decided = low.built("not found", node, found=found) if word == "all" else found
    _perform(low, generator, 0, items, out, decide, low.expression(decided))
    if word != "next":
        return found
    if fallback is None:
        return low.built("found[0]", node, found=found)
    return low.built("found[0] if found else fallback", node, found=found, fallback=fallback)


def unpacked(low: Lowering, target: ast.expr, value: ast.expr) -> list[tuple[str, ast.expr]]:
    """Return the names in a tuple of targets, each with the part of `value` that it gets. Raises `Refused`."""
    if isinstance(target, ast.Name):
        return [(_named(low, target), value)]
    if not isinstance(target, ast.Tuple | ast.List):
        raise Refused(wording.target(low.place(target)))
    pairs: list[tuple[str, ast.expr]] = []
    starred = next((i for i, element in enumerate(target.elts) if isinstance(element, ast.Starred)), None)
    count = len(target.elts)
    for number, element in enumerate(target.elts):
        if isinstance(element, ast.Starred):
            after = count - number - 1
            part = low.built(f"value[{number}:{-after if after else ''}]", element, value=value)
            pairs += unpacked(low, element.value, part)
        else:
            index = number if starred is None or number < starred else number - count
            pairs += unpacked(low, element, low.built(f"value[{index}]", element, value=value))
    return pairs


def _named(low: Lowering, target: ast.Name) -> str:
    if not is_name(target.id):
        raise Refused(not_a_name(low.place(target), target.id, name_from(target.id)))
    return target.id


def _elements(node: Comprehension) -> list[ast.expr]:
    return [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]


def _after_list(node: Comprehension, index: int) -> list[ast.AST]:
    """Return the parts of a comprehension that are evaluated once for each element of its list number `index`."""
    parts: list[ast.AST] = [*node.generators[index].ifs, *_elements(node)]
    return parts + [part for later in node.generators[index + 1 :] for part in (later.iter, *later.ifs)]


# --- loops that collect ----------------------------------------------------------------------------------------------


def _collect(low: Lowering, node: Comprehension, index: int, items: ast.expr, out: list[Step], result: str) -> None:
    """Append the loop over list number `index` and those inside it; its collected values are `result`."""
    generator = node.generators[index]
    items, tests = _filtered(low, node, index, items)
    name, body = _entered(low, node, index)
    is_last = index == len(node.generators) - 1
    keep: Expression | None = None
    while tests:
        test = low.value(tests.pop(0), body)
        if is_last and not tests and low.survey.active.isdisjoint(_elements(node)):
            keep = low.expression(test)
        else:
            body.append(_unless(low, test))
    collect: Template
    flatten = not is_last
    if is_last:
        parts = [low.value(part, body) for part in _elements(node)]
        element = parts[0] if len(parts) == 1 else low.built("[key, value]", node, key=parts[0], value=parts[1])
        collect = low.template(element)
    else:
        inner = low.value(node.generators[index + 1].iter, body)
        if low.survey.active.isdisjoint(_after_list(node, index + 1)):
            collect = low.template(_with_items(low, node, index + 1, inner))
        else:
            inside = low.fresh()
            _collect(low, node, index + 1, inner, body, inside)
            collect = low.template(low.name(inside, node))
    lists = low.fresh() if flatten else result
    out.append(ForEach("", low.template(items), name, tuple(body), collect, keep, lists, place=low.place(node)))
    if flatten:
        one, each = low.fresh(), low.fresh()
        joined = low.built(f"[{each} for {one} in lists for {each} in {one}]", node, lists=low.name(lists, node))
        low.let(result, joined, out, low.place(generator.target))


def _with_items(low: Lowering, node: Comprehension, index: int, items: ast.expr) -> ast.expr:
    """Return the comprehension from list number `index` on, which is `items`; nothing else in it holds calls."""
    first, *later = node.generators[index:]
    parts: dict[str, ast.expr] = {"target": first.target, "items": items}
    clauses = ["for target in items"]
    for number, generator in enumerate((first, *later)):
        if number:
            parts |= {f"target{number}": generator.target, f"items{number}": generator.iter}
            clauses.append(f"for target{number} in items{number}")
        for place, test in enumerate(generator.ifs):
            parts[f"test{number}_{place}"] = test
            clauses.append(f"if test{number}_{place}")
    if isinstance(node, ast.DictComp):
        parts |= {"key": node.key, "value": node.value}
        return low.built("{key: value " + " ".join(clauses) + "}", node, **parts)
    parts["element"] = node.elt
    inside = f"element {' '.join(clauses)}"
    if isinstance(node, ast.GeneratorExp):
        return low.built(f"({inside})", node, **parts)
    return low.built("{" + inside + "}" if isinstance(node, ast.SetComp) else f"[{inside}]", node, **parts)


# --- loops that do something -----------------------------------------------------------------------------------------


def _perform(
    low: Lowering,
    node: Comprehension,
    index: int,
    items: ast.expr,
    out: list[Step],
    element: Callable[[list[Step]], None],
    until: Expression | None,
) -> None:
    """Append the loop over list number `index`, in whose innermost round `element` adds the steps.

    Once `until` holds, the loops end.
    """
    items, tests = _filtered(low, node, index, items)
    name, body = _entered(low, node, index)
    for test in tests:
        body.append(_unless(low, low.value(test, body)))
    if index == len(node.generators) - 1:
        element(body)
    else:
        _perform(low, node, index + 1, low.value(node.generators[index + 1].iter, body), body, element, until)
        if until is not None:
            body.append(If("", until, (Break("", until.place),), place=until.place))
    out.append(ForEach("", low.template(items), name, tuple(body), place=low.place(node)))


# --- parts of a loop -------------------------------------------------------------------------------------------------


def _filtered(low: Lowering, node: Comprehension, index: int, items: ast.expr) -> tuple[ast.expr, list[ast.expr]]:
    """Return the list without what the first conditions without calls leave out; and the conditions left."""
    generator = node.generators[index]
    tests = list(generator.ifs)
    pure: dict[str, ast.expr] = {}
    while tests and tests[0] not in low.survey.active:
        pure[f"test{len(pure)}"] = tests.pop(0)
    if pure:
        clauses = " ".join(f"if {name}" for name in pure)
        target = generator.target
        items = low.built(f"[target for target in items {clauses}]", node, target=target, items=items, **pure)
    return as_list(low, items, generator.target, _after_list(node, index)), tests


def _entered(low: Lowering, node: Comprehension, index: int) -> tuple[str, list[Step]]:
    """Return the loop's name for the element, and the steps that begin a round."""
    target = node.generators[index].target
    if isinstance(target, ast.Name):
        return _named(low, target), []
    _hide(low, node, index)
    name = low.fresh()
    pairs = unpacked(low, target, low.name(name, target))
    values = tuple((part, low.template(value)) for part, value in pairs)
    return name, [Let("", values, low.place(target))]


def _unless(low: Lowering, test: ast.expr) -> Step:
    place = low.place(test)
    return If("", low.expression(low.built("not test", test, test=test)), (Continue("", place),), place=place)


def _hide(low: Lowering, node: Comprehension, index: int) -> None:
    """Rename the targets of a comprehension that would change variables of the program: its names are its own."""
    generator = node.generators[index]
    targets = {name.id for name in ast.walk(generator.target) if isinstance(name, ast.Name)}
    renamed = {name: low.fresh() for name in sorted(targets & low.visible)}
    if renamed:
        for part in (generator.target, *_after_list(node, index), *(g.target for g in node.generators[index + 1 :])):
            _rename(low, part, renamed)


def _rename(low: Lowering, node: ast.AST, renamed: Mapping[str, str]) -> bool:
    """Rename these names in `node`, where they are not bound anew; return whether there were any."""
    if isinstance(node, ast.Name):
        if node.id not in renamed:
            return False
        node.id = renamed[node.id]
        low.written[node] = (Piece(node.id, *low.text.span(node)),)
        return True
    bound: set[str] = set()
    if isinstance(node, COMPREHENSIONS):
        targets = [name for generator in node.generators for name in ast.walk(generator.target)]
        bound = {name.id for name in targets if isinstance(name, ast.Name)}
    elif isinstance(node, ast.Lambda):
        bound = {argument.arg for argument in node.args.args}
    inside = {name: new for name, new in renamed.items() if name not in bound}
    changed = False
    for child in ast.iter_child_nodes(node):
        changed = _rename(low, child, inside) or changed
    if changed and isinstance(node, ast.expr):
        low.rebuilt.add(node)
    return changed
