"""Which kinds of values an operator can work on, and what comes out."""

from __future__ import annotations

import ast

from toolplan.expressions.shapes import (
    BOOLEAN,
    INTEGER,
    NEVER,
    NUMBER,
    TEXT,
    UNKNOWN,
    ListType,
    ObjectType,
    Scalar,
    Type,
    join,
    join_all,
    joined_lists,
    members,
)

__all__ = [
    "COMPARISONS",
    "NUMERIC",
    "OPERATORS",
    "any_field",
    "combined",
    "kinds_of",
    "may_be_ordered",
    "truthy_or_falsy",
]

NUMERIC = frozenset(("integer", "number", "boolean"))

OPERATORS: dict[type[ast.operator], str] = {
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
COMPARISONS: dict[type[ast.cmpop], str] = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}


def kinds_of(found: Type) -> frozenset[str]:
    """Return the kinds that a value of this type may be of; empty when nothing is known."""
    kinds: set[str] = set()
    for member in members(found):
        if isinstance(member, Scalar):
            kinds.add(member.kind)
        elif isinstance(member, ListType):
            kinds.add("list")
        elif isinstance(member, ObjectType):
            kinds.add("object")
        else:
            return frozenset()
    return frozenset(kinds)


def is_text(found: Type) -> bool:
    """Return whether a value of this type is text for certain."""
    return isinstance(found, Scalar) and found.kind == "text"


def combined(operator: ast.operator, a: Type, b: Type) -> Type | None:
    """Return the type of `a operator b` for two single kinds, or None when they do not go together."""
    left, right = _kind(a), _kind(b)
    if left in NUMERIC and right in NUMERIC:
        return _number(operator, left, right)
    if isinstance(operator, ast.Add):
        if left == right == "text":
            return TEXT
        if isinstance(a, ListType) and isinstance(b, ListType):
            return joined_lists(a, b)
    elif isinstance(operator, ast.Mult):
        repeated = a if right in NUMERIC else b if left in NUMERIC else UNKNOWN
        if isinstance(repeated, ListType):
            return ListType(lambda: repeated.element)
        if is_text(repeated):
            return TEXT
    elif isinstance(operator, ast.Mod) and left == "text":
        return TEXT
    elif isinstance(a, ListType) and isinstance(b, ListType) and isinstance(operator, _SET_OPERATORS):
        return joined_lists(a, b)
    elif isinstance(a, ObjectType) and isinstance(b, ObjectType) and isinstance(operator, ast.BitOr):
        return ObjectType({}, frozenset(), join(any_field(a), any_field(b)))
    return None


_SET_OPERATORS = (ast.Sub, ast.BitOr, ast.BitAnd, ast.BitXor)


def _kind(found: Type) -> str:
    return found.kind if isinstance(found, Scalar) else "list" if isinstance(found, ListType) else "object"


def _number(operator: ast.operator, left: str, right: str) -> Type:
    if left == right == "boolean" and isinstance(operator, ast.BitOr | ast.BitAnd | ast.BitXor):
        return BOOLEAN
    if isinstance(operator, ast.Div | ast.Pow) or "number" in (left, right):
        return NUMBER
    return INTEGER


def any_field(found: ObjectType) -> Type:
    """Return the type of a field whose name is not known: any of the declared ones, or an undeclared one."""
    if found.additional is None and not found.sealed:
        return UNKNOWN
    declared = join_all(found.field(name) or UNKNOWN for name in found.names)
    return declared if found.additional is None else join(declared, found.additional)


def may_be_ordered(a: Type, b: Type) -> bool:
    """Return whether `a < b` may make sense where neither is null."""
    if not kinds_of(a) or not kinds_of(b):
        return True
    return any(_have_order(_kind(x), _kind(y)) for x in members(a) for y in members(b))


def _have_order(left: str, right: str) -> bool:
    if left in NUMERIC:
        return right in NUMERIC
    return left == right and left in ("text", "list")


def truthy_or_falsy(found: Type, truthy: bool) -> Type:
    """Return what `found` can be where it is true (or where it is false)."""
    kept: Type = NEVER
    for member in members(found):
        if isinstance(member, Scalar):
            if member.kind == "null" and truthy:
                continue
            if member.values is not None:
                values = frozenset(value for value in member.values if bool(value) == truthy)
                kept = join(kept, Scalar(member.kind, values)) if values else kept
                continue
        elif isinstance(member, ObjectType) and member.required and not truthy:
            continue
        kept = join(kept, member)
    return kept
