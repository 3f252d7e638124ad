"""What a test says about the names in it: `x is not None` leaves no null in `x` where it holds.

Knowledge is kept in the environment itself. Beside the names it may hold *paths*, written as expressions write them
(`order.customer.email`, `rows[0].id`, also for `order["customer"]` and `order.get("customer")`), with the narrower type
that the value is known to have there. Whoever defines a name anew forgets its paths.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from toolplan.expressions.operands import kinds_of
from toolplan.expressions.shapes import (
    NEVER,
    UNKNOWN,
    ListType,
    ObjectType,
    Scalar,
    Type,
    Union,
    join,
    members,
    without,
)

__all__ = ["Env", "as_tested", "define", "join_env", "may_equal", "narrow", "path_of", "root_of"]

Env: TypeAlias = Mapping[str, Type]
"""The types of the names in scope, and of the paths of which more is known."""

MAX_NESTED_TESTS = 6

TypeOf: TypeAlias = "Callable[[ast.expr, Env], Type]"


def path_of(node: ast.expr) -> str | None:
    """Return the path that an expression is (`a.b[0]`, `prices[city]`), or None for anything computed."""
    steps: list[str] = []
    while True:
        if isinstance(node, ast.Name):
            return node.id + "".join(reversed(steps))
        if isinstance(node, ast.Attribute):
            steps.append("." + node.attr)
            node = node.value
        elif isinstance(node, ast.Subscript) and (step := _index_step(node.slice)) is not None:
            steps.append(step)
            node = node.value
        elif isinstance(node, ast.Call) and (key := _read_by_get(node)) is not None:
            assert isinstance(node.func, ast.Attribute)
            steps.append(_field(key))
            node = node.func.value
        else:
            return None


def root_of(path: str) -> str:
    """Return the name that a path begins with."""
    return _NAMES.findall(path)[0]


def _index_step(index: ast.expr) -> str | None:
    if isinstance(index, ast.Constant):
        return _field(index.value) if isinstance(index.value, str) else f"[{index.value}]"
    if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub) and isinstance(index.operand, ast.Constant):
        return f"[-{index.operand.value}]"
    return f"[{index.id}]" if isinstance(index, ast.Name) else None


def _field(name: str) -> str:
    return f".{name}" if name.isidentifier() else f"[{name!r}]"


def _read_by_get(node: ast.Call) -> str | None:
    """Return the key of `x.get("key")` without a default."""
    if isinstance(node.func, ast.Attribute) and node.func.attr == "get" and len(node.args) == 1 and not node.keywords:
        key = node.args[0]
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            return key.value
    return None


def _with_path(env: Env, path: str, found: Type) -> dict[str, Type]:
    """Return `env` with what is known about `path`.

    `name.` stands beside the paths that depend on `name`, so that it is quickly known whether there are any.
    """
    result = {**env, path: found}
    names = _NAMES.findall(path)
    if names != [path]:
        result.update((f"{name}.", UNKNOWN) for name in names)
    return result


_NAMES = re.compile(r"(?:^|(?<=\[))[^\W\d]\w*")
"""The names that a path depends on: its root, and those in brackets."""


def as_tested(name: str, env: Env) -> Type:
    """Return the type of the value `name`, its fields as tests have shown them to be."""
    found = env.get(name, UNKNOWN)
    if name + "." not in env or not isinstance(found, ObjectType):
        return found
    shown = {field: known for field in found.names if (known := env.get(name + _field(field))) is not None}
    return found.with_fields(shown) if shown else found


def define(env: dict[str, Type], name: str, found: Type) -> None:
    """Give `name` a new value of type `found`; what was known about paths that depend on it is forgotten."""
    if name + "." in env:
        for path in [path for path in env if path != name and name in _NAMES.findall(path)]:
            del env[path]
    env[name] = found


def join_env(a: dict[str, Type], b: dict[str, Type]) -> dict[str, Type]:
    """Return what is known where two paths of a plan meet: the names of both, each of either type."""
    if a is b:
        return a
    # Nearly all names are of one and the same type on both paths.
    return {
        name: found if (other := b[name]) is found else join(found, other) for name, found in a.items() if name in b
    }


def narrow(test: ast.expr, env: Env, holds: bool, type_of: TypeOf, depth: int = 0) -> Env:
    """Return the environment for the case that `test` holds (or does not). `type_of` types a part without findings.

    Tests nested deeper than `MAX_NESTED_TESTS` say nothing: each level may be looked at twice.
    """
    if depth > MAX_NESTED_TESTS:
        return env
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return narrow(test.operand, env, not holds, type_of, depth + 1)
    if isinstance(test, ast.BoolOp):
        return _narrow_chain(test, env, holds, type_of, depth + 1)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _narrow_comparison(test, env, holds, type_of)
    if isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and len(test.args) == 1 and not test.keywords:
        if test.func.id in ("len", "bool"):
            return narrow(test.args[0], env, holds, type_of, depth + 1)
        if test.func.id == "all" and holds and isinstance(test.args[0], ast.List | ast.Tuple):
            return _in_turn(test.args[0].elts, env, True, type_of, depth + 1)
    if isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.func.id == "isinstance":
        return _narrow_kind(test, env, holds, type_of)
    if path_of(test) is None:
        return _worked(test, env, type_of)
    return _refine(test, env, _is_falsy if holds else _is_truthy, type_of)


def _narrow_kind(test: ast.Call, env: Env, holds: bool, type_of: TypeOf) -> Env:
    """`isinstance(x, str)`, or `(str, int)`; Python takes true and false for whole numbers too."""
    if len(test.args) != 2:
        return env
    given = test.args[1].elts if isinstance(test.args[1], ast.Tuple) else [test.args[1]]
    names = [each.id for each in given if isinstance(each, ast.Name) and each.id in _MAY_BE]
    if len(names) < len(given):  # written in a way that is not looked into
        return env
    if holds:
        possible = {kind for name in names for kind in _MAY_BE[name]}
        return _refine(test.args[0], env, lambda found: kinds_of(found).isdisjoint(possible), type_of)
    certain = {kind for name in names for kind in _SURELY[name]}
    return _refine(test.args[0], env, lambda found: kinds_of(found) <= certain, type_of)


_SURELY = {
    "str": ("text",),
    "int": ("boolean",),
    "float": (),
    "bool": ("boolean",),
    "list": ("list",),
    "dict": ("object",),
}
_MAY_BE = {**_SURELY, "int": ("integer", "number", "boolean"), "float": ("integer", "number")}
"""A number that JSON calls an integer may be written 3.0, and any number may be whole."""


def _narrow_chain(test: ast.BoolOp, env: Env, holds: bool, type_of: TypeOf, depth: int) -> Env:
    """`a and b` holds when both do; it does not when one does not, the ones before it holding."""
    every = isinstance(test.op, ast.And)
    if every == holds:
        return _in_turn(test.values, env, holds, type_of, depth)
    result: dict[str, Type] | None = None
    before = env
    for part in test.values[:20]:
        here = dict(narrow(part, before, holds, type_of, depth))
        result = here if result is None else join_env(result, here)
        before = narrow(part, before, not holds, type_of, depth)
    return env if result is None or len(test.values) > 20 else result


def _in_turn(parts: list[ast.expr], env: Env, holds: bool, type_of: TypeOf, depth: int) -> Env:
    for part in parts:
        env = narrow(part, env, holds, type_of, depth)
    return env


def _narrow_comparison(test: ast.Compare, env: Env, holds: bool, type_of: TypeOf) -> Env:
    operator, left, right = test.ops[0], test.left, test.comparators[0]
    if isinstance(operator, ast.NotEq | ast.IsNot):
        return _narrow_equality(left, right, env, not holds, type_of)
    if isinstance(operator, ast.Eq | ast.Is):
        return _narrow_equality(left, right, env, holds, type_of)
    if isinstance(operator, ast.In | ast.NotIn):
        env = _refine(right, env, _is_null, type_of)
        return _narrow_membership(left, right, env, holds == isinstance(operator, ast.In), type_of)
    for side in (left, right):  # ordering null fails, so whichever way it went, there was none
        env = _refine(side, env, _is_null, type_of) if path_of(side) else _worked(side, env, type_of)
    return env


def _narrow_equality(left: ast.expr, right: ast.expr, env: Env, equal: bool, type_of: TypeOf) -> Env:
    for side, other in ((left, right), (right, left)):
        if path_of(side) is None:
            env = _worked(side, env, type_of)
            continue
        value = type_of(other, env)
        if equal:
            env = _refine(side, env, lambda found, value=value: not may_equal(found, value), type_of)
        elif isinstance(value, Scalar) and (value.kind == "null" or value.values is not None):
            env = _refine(side, env, lambda found, value=value: _is_only(found, value), type_of)
    return env


def _narrow_membership(item: ast.expr, group: ast.expr, env: Env, inside: bool, type_of: TypeOf) -> Env:
    if not inside:
        if isinstance(group, ast.List | ast.Tuple):
            for each in group.elts:
                env = _narrow_equality(item, each, env, False, type_of)
        return env
    if path_of(item) is not None:
        within = type_of(group, env)
        if isinstance(within, ListType):
            element = within.element
            env = _refine(item, env, lambda found: not may_equal(found, element), type_of)
        elif isinstance(within, Scalar) and within.kind == "text":
            env = _refine(item, env, _is_null, type_of)
    if isinstance(item, ast.Constant) and isinstance(item.value, str) and (path := path_of(group)):
        env = _with_field(path, item.value, env, type_of(group, env))
    return env


def _with_field(path: str, name: str, env: Env, found: Type) -> Env:
    """`"name" in x`: of several kinds of objects those that have the field; an undeclared field is there after all."""
    fitting = without(found, lambda member: isinstance(member, ObjectType) and _cannot_have(member, name))
    if fitting is not NEVER:
        return _with_path(env, path, fitting) if fitting is not found else env
    return _with_path(env, path + _field(name), UNKNOWN)


def _cannot_have(found: ObjectType, name: str) -> bool:
    return found.knows_all_fields and found.field(name) is None


def _worked(node: ast.expr, env: Env, type_of: TypeOf) -> Env:
    """A method of `x` has been called, a field of it read: had `x` been null, the step would have failed."""
    base = node.func if isinstance(node, ast.Call) else node
    if isinstance(base, ast.Attribute | ast.Subscript) and path_of(base.value) is not None:
        return _refine(base.value, env, _is_null, type_of)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("len", "number"):
        return _refine(node.args[0], env, _is_null, type_of) if len(node.args) == 1 else env
    return env


def _refine(node: ast.expr, env: Env, excluded: Callable[[Type], bool], type_of: TypeOf) -> Env:
    """Return `env` in which the path `node` has no member for which `excluded` holds."""
    path = path_of(node)
    if path is None:
        return env
    found = type_of(node, env)
    if found is UNKNOWN:
        return env
    kept = _split(found, excluded)
    if kept is found:
        return env
    result = _with_path(env, path, kept)
    parent = node.value if isinstance(node, ast.Attribute | ast.Subscript) else None
    if parent is not None and (above := path_of(parent)) is not None:
        whole = type_of(parent, env)
        if isinstance(whole, Union):  # objects told apart by this field
            name = node.attr if isinstance(node, ast.Attribute) else _constant_key(node)
            fitting = without(whole, lambda member: _told_out(member, name, excluded))
            result = _with_path(result, above, fitting)
    return result


def _constant_key(node: ast.expr) -> str:
    key = node.slice.value if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) else None
    return key if isinstance(key, str) else ""


def _told_out(member: Type, name: str, excluded: Callable[[Type], bool]) -> bool:
    if not isinstance(member, ObjectType):
        return False
    own = member.field(name)
    return own is not None and own is not UNKNOWN and _split(own, excluded) is NEVER


def _split(found: Type, excluded: Callable[[Type], bool]) -> Type:
    """Return `found` less what is excluded; known values are looked at one by one."""
    result: Type = NEVER
    changed = False
    for member in members(found):
        if isinstance(member, Scalar) and member.values is not None and member.kind != "null":
            kept = frozenset(value for value in member.values if not excluded(Scalar(member.kind, frozenset((value,)))))
            if len(kept) == len(member.values):
                result = join(result, member)
            else:
                changed = True
                result = join(result, Scalar(member.kind, kept)) if kept else result
        elif excluded(member):
            changed = True
        else:
            result = join(result, member)
    return result if changed else found


def _is_null(found: Type) -> bool:
    return isinstance(found, Scalar) and found.kind == "null"


def _is_falsy(found: Type) -> bool:
    """Return whether every value of this type is false."""
    if not isinstance(found, Scalar):
        return False
    return found.kind == "null" or (found.values is not None and not any(found.values))


def _is_truthy(found: Type) -> bool:
    """Return whether every value of this type is true."""
    if isinstance(found, ObjectType):
        return bool(found.required)
    return isinstance(found, Scalar) and found.values is not None and all(found.values)


def _is_only(found: Type, value: Scalar) -> bool:
    """Return whether every value of type `found` is the one value of `value`."""
    if not isinstance(found, Scalar) or found.kind != value.kind:
        return False
    if value.kind == "null":
        return True
    return (
        found.values is not None
        and value.values is not None
        and len(value.values) == 1
        and found.values <= value.values
    )


_NUMERIC = ("integer", "number", "boolean")


def may_equal(a: Type, b: Type) -> bool:
    """Return whether some value of type `a` equals some value of type `b`, as far as is known."""
    if a is UNKNOWN or b is UNKNOWN or a is NEVER or b is NEVER:
        return True
    return any(_members_may_equal(x, y) for x in members(a) for y in members(b))


def _members_may_equal(a: Type, b: Type) -> bool:
    if isinstance(a, Scalar) and isinstance(b, Scalar):
        if a.kind != b.kind and not (a.kind in _NUMERIC and b.kind in _NUMERIC):
            return False
        if a.values is not None and b.values is not None:
            return not a.values.isdisjoint(b.values)
        return True
    return type(a) is type(b)
