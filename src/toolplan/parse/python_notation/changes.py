"""Changes of values in place: `xs.append(e)`, `d[k] = e` and their like become a `Let` with a new value.

Values of a plan are never shared, so a change of one name leaves every other name alone.
"""

from __future__ import annotations

import ast

from toolplan.diagnostics import Place
from toolplan.diagnostics import program as of_programs
from toolplan.diagnostics import program_changes as wording
from toolplan.parse.python_notation.lowering import Lowering, Refused
from toolplan.parse.python_notation.vocabulary import CHANGING, TAKING
from toolplan.plan import Step

__all__ = ["changed", "is_change", "removed", "replaced", "root_of", "taken"]


def is_change(node: ast.expr) -> bool:
    """Return whether `node` is a call of a method that changes what it is called on."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGING


def root_of(node: ast.expr) -> ast.Name | None:
    """Return the name that `node` is, or is a part of: `d` for `d[k].rows`. None when it is neither."""
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node if isinstance(node, ast.Name) else None


def replaced(low: Lowering, target: ast.expr, value: ast.expr, out: list[Step], place: Place) -> None:
    """Append the step that gives `target`, a name or a part of one's value, the new value. Both are free of steps."""
    whole = target
    while not isinstance(target, ast.Name):
        match target:
            case ast.Subscript(value=container, slice=ast.Slice()):
                raise Refused(wording.slice_target(low.place(target)))
            case ast.Subscript(value=container, slice=key):
                pass
            case ast.Attribute(value=container, attr=field):
                key = low.built(repr(field), target)
            case _:
                raise Refused(of_programs.target(low.place(target)))
        value = low.built("set_item(container, key, value)", target, container=container, key=key, value=value)
        target = container
    if target.id in low.temporaries:
        raise Refused(of_programs.target(low.place(whole)))
    low.let(target.id, value, out, place)


def removed(low: Lowering, target: ast.expr, out: list[Step], place: Place) -> None:
    """Append the step of `del target`, an element of a list or a field of an object."""
    target = low.value(target, out)
    match target:
        case ast.Subscript(value=container, slice=ast.Slice()):
            raise Refused(wording.slice_target(low.place(target)))
        case ast.Subscript(value=container, slice=key):
            replaced(low, container, _without(low, target, container, key), out, place)
        case ast.Attribute(value=container, attr=field):
            replaced(low, container, _without(low, target, container, low.built(repr(field), target)), out, place)
        case _:
            raise Refused(wording.deleted_name(low.place(target)))


def changed(low: Lowering, node: ast.Call, out: list[Step], place: Place) -> None:
    """Append the step of a statement such as `xs.append(e)`. Raises `Refused` when it changes no variable."""
    assert isinstance(node.func, ast.Attribute)
    method = node.func.attr
    target = low.value(node.func.value, out)
    root = root_of(target)
    if root is None or root.id in low.temporaries:
        raise Refused(wording.lost_change(low.place(node), method))
    replaced(low, target, _new_value(low, node, method, target, out), out, place)


def taken(low: Lowering, node: ast.Call, out: list[Step]) -> ast.expr | None:
    """Append the step of a `pop` or `setdefault` whose value is used; return that value, None for other calls."""
    if not (isinstance(node.func, ast.Attribute) and node.func.attr in TAKING):
        return None
    method = node.func.attr
    target = low.value(node.func.value, out)
    root = root_of(target)
    if root is None:
        return None
    if low.statement is not None and _reads(low.statement, root.id) > _reads(node, root.id):
        raise Refused(wording.changed_within(low.place(node), root.id, method))
    arguments = _arguments(low, node, out, {"pop": (0, 2), "setdefault": (1, 2)}[method])
    place = low.place(node)
    if method == "setdefault":
        key = arguments[0]
        replaced(low, target, _with_default(low, node, target, arguments), out, place)
        return low.built("target[key]", node, target=target, key=key)
    result = low.fresh()
    key = arguments[0] if arguments else low.built("-1", node)
    pattern = "target.get(key, default)" if len(arguments) == 2 else "target[key]"
    low.let(
        result,
        low.built(pattern, node, target=target, key=key, default=arguments[-1] if arguments else key),
        out,
        place,
    )
    replaced(low, target, _without(low, node, target, key), out, place)
    return low.name(result, node)


def _new_value(low: Lowering, node: ast.Call, method: str, target: ast.expr, out: list[Step]) -> ast.expr:
    """Return what `target` is after the method has changed it."""

    def built(pattern: str, **parts: ast.expr) -> ast.expr:
        return low.built(pattern, node, target=target, **parts)

    if method == "sort":
        return _sorted(low, node, target, out)
    if method == "update" and node.keywords:
        return _updated(low, node, target, out)
    count = {
        "insert": (2, 2),
        "pop": (0, 2),
        "setdefault": (1, 2),
        "popitem": (0, 0),
        "clear": (0, 0),
        "reverse": (0, 0),
    }
    arguments = _arguments(low, node, out, count.get(method, (1, 1)))
    match method:
        case "append":
            return built("target + [element]", element=arguments[0])
        case "extend":
            return built("target + list(elements)", elements=arguments[0])
        case "insert":
            index, element = arguments
            return built("target[:index] + [element] + target[index:]", index=index, element=element)
        case "reverse":
            return built("target[::-1]")
        case "remove":
            return built("target[:target.index(element)] + target[target.index(element) + 1:]", element=arguments[0])
        case "add":
            return built("target | [element]", element=arguments[0])
        case "discard":
            return built("target - [element]", element=arguments[0])
        case "update":
            return built("target | other", other=arguments[0])
        case "pop":
            return _without(low, node, target, arguments[0] if arguments else low.built("-1", node))
        case "setdefault":
            return _with_default(low, node, target, arguments)
        case "clear":
            empty = _emptied(low, target)
            if empty is None:
                raise Refused(wording.lost_change(low.place(node), method))
            return low.built(empty, node)
        case _:
            raise Refused(wording.lost_change(low.place(node), method))


def _sorted(low: Lowering, node: ast.Call, target: ast.expr, out: list[Step]) -> ast.expr:
    given = {
        keyword.arg: low.value(keyword.value, out) for keyword in node.keywords if keyword.arg in ("key", "reverse")
    }
    if node.args or len(given) != len(node.keywords):
        raise Refused(wording.change_arguments(low.place(node), "sort", (0, 0)))
    shown = "".join(f", {name}={name}_value" for name in given)
    return low.built(f"sorted(target{shown})", node, target=target, **{f"{name}_value": v for name, v in given.items()})


def _updated(low: Lowering, node: ast.Call, target: ast.expr, out: list[Step]) -> ast.expr:
    """Return `target` after `update(other, name=value)`."""
    result = target
    if node.args:
        plain = ast.copy_location(ast.Call(node.func, node.args, []), node)
        result = low.built("target | other", node, target=target, other=_arguments(low, plain, out, (1, 1))[0])
    for keyword in node.keywords:
        value = low.value(keyword.value, out)
        if keyword.arg is None:
            result = low.built("result | other", node, result=result, other=value)
        else:
            result = low.built(f"result | {{{keyword.arg!r}: value}}", node, result=result, value=value)
    return result


def _with_default(low: Lowering, node: ast.Call, target: ast.expr, arguments: list[ast.expr]) -> ast.expr:
    default = arguments[1] if len(arguments) == 2 else low.built("None", node)
    pattern = "target if key in target else set_item(target, key, default)"
    return low.built(pattern, node, target=target, key=arguments[0], default=default)


def _without(low: Lowering, at: ast.expr, container: ast.expr, key: ast.expr) -> ast.expr:
    """Return `container` without its element or field at `key`."""
    match key:
        case ast.Constant(value=str()):
            name, value = low.fresh(), low.fresh()
            pattern = f"{{{name}: {value} for {name}, {value} in container.items() if {name} != key}}"
        case ast.Constant(value=int(index)) if not isinstance(index, bool):
            pattern = f"container[:{index}] + container[{index + 1}:]" if index else "container[1:]"
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(index))) if index:
            pattern = f"container[:-{index}] + container[{1 - index}:]" if index > 1 else "container[:-1]"
        case _:
            name, value = low.fresh(), low.fresh()
            pattern = (
                f"{{{name}: {value} for {name}, {value} in container.items() if {name} != key}}"
                " if isinstance(container, dict) else "
                f"[{value} for {name}, {value} in enumerate(container) if {name} != key % len(container)]"
            )
    return low.built(pattern, at, container=container, key=key)


def _arguments(low: Lowering, node: ast.Call, out: list[Step], count: tuple[int, int]) -> list[ast.expr]:
    starred = any(isinstance(argument, ast.Starred) for argument in node.args)
    if starred or node.keywords or not count[0] <= len(node.args) <= count[1]:
        assert isinstance(node.func, ast.Attribute)
        raise Refused(wording.change_arguments(low.place(node), node.func.attr, count))
    return [low.value(argument, out) for argument in node.args]


def _emptied(low: Lowering, target: ast.expr) -> str | None:
    """Return the empty value of the kind that `target` was given in the program, if that can be told."""
    if not isinstance(target, ast.Name):
        return None
    empty: set[str | None] = set()
    for assignment in low.survey.values.get(target.id, []):
        match assignment.value if assignment is not None else None:
            case ast.List() | ast.ListComp() | ast.Set() | ast.SetComp():
                empty.add("[]")
            case ast.Dict() | ast.DictComp():
                empty.add("{}")
            case ast.Call(func=ast.Name(id="list" | "set" | "sorted")):
                empty.add("[]")
            case ast.Call(func=ast.Name(id="dict")):
                empty.add("{}")
            case _:
                empty.add(None)
    return empty.pop() if len(empty) == 1 else None


def _reads(node: ast.AST, name: str) -> int:
    return sum(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load) for n in ast.walk(node))
