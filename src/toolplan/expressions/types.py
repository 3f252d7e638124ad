"""JSON Schema -> static type: the types of a plan's values, and where they come from.

This is the face of the type system: `shapes.py` says what types are, `fits.py` when one may stand for another.
Each `$ref` of a schema is read once, which keeps the graph of a recursive schema finite.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, cast

from toolplan.expressions.fits import Verdict, is_assignable, surely_fits
from toolplan.expressions.shapes import (
    BOOLEAN,
    INTEGER,
    NEVER,
    NULL,
    NUMBER,
    TEXT,
    UNKNOWN,
    Deferred,
    ListType,
    ObjectType,
    Scalar,
    Type,
    Union,
    accepts_null,
    is_same,
    join,
    join_all,
    kind_word,
    list_of,
    may_be_null,
    members,
    object_of,
    type_of,
    without,
    without_null,
)

__all__ = [
    "BOOLEAN",
    "INTEGER",
    "NEVER",
    "NULL",
    "NUMBER",
    "TEXT",
    "UNKNOWN",
    "ListType",
    "ObjectType",
    "Scalar",
    "Type",
    "Union",
    "Verdict",
    "accepts_null",
    "from_schema",
    "is_assignable",
    "is_same",
    "join",
    "join_all",
    "kind_word",
    "list_of",
    "may_be_null",
    "members",
    "object_of",
    "surely_fits",
    "type_of",
    "without",
    "without_null",
]

MAX_POSITIONS = 16
MAX_SCHEMA_DEPTH = 40

_ANNOTATIONS = frozenset(
    (
        *("title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly"),
        *("$comment", "$schema", "$defs", "definitions"),
    )
)
_EXACT = {
    "object": _ANNOTATIONS | {"type", "properties", "required", "additionalProperties"},
    "array": _ANNOTATIONS | {"type", "items"},
}
_EXACT_SCALAR = _ANNOTATIONS | {"type", "const", "enum"}
_COMBINING = frozenset(("$ref", "anyOf", "oneOf", "allOf", "nullable"))
_SCALARS = {"string": "text", "integer": "integer", "number": "number", "boolean": "boolean", "null": "null"}


def from_schema(schema: Mapping[str, Any] | bool | None) -> Type:
    """Return the type that a JSON Schema describes. What is not understood, and no schema at all, is UNKNOWN."""
    if not isinstance(schema, Mapping) or not schema:
        return UNKNOWN
    return _Reader(schema).read(schema)


class _Reader:
    """Reads the parts of one schema document; each `$ref` once."""

    __slots__ = ("refs", "root")

    def __init__(self, root: Mapping[str, Any]) -> None:
        self.root = root
        self.refs: dict[str, Type | None] = {"#": None}

    def read(self, schema: Any, name: str | None = None, depth: int = 0) -> Type:
        if not isinstance(schema, Mapping) or depth > MAX_SCHEMA_DEPTH:
            return UNKNOWN
        found = cast("Mapping[str, Any]", schema)
        result = self._own(found, name)
        combining = found.keys() & _COMBINING
        if not combining:
            return result
        reference = found.get("$ref")
        if isinstance(reference, str):
            result = _meet(self._referenced(reference, depth), result)
        for keyword in ("anyOf", "oneOf"):
            choices = found.get(keyword)
            if isinstance(choices, list):
                result = _meet(result, self._one_of(cast("list[Any]", choices), name, depth, keyword == "anyOf"))
        every = found.get("allOf")
        if isinstance(every, list):
            for part in cast("list[Any]", every):
                result = _meet(result, self.read(part, name, depth + 1))
        if found.get("nullable") is True and result is not UNKNOWN:
            result = join(result, NULL)
        says_more = every is not None or len(combining) > 1 or not found.keys() <= _ANNOTATIONS | combining
        return _inexact(result) if says_more else result

    def _one_of(self, choices: list[Any], name: str | None, depth: int, exact: bool) -> Type:
        """Return the union of the choices, objects kept apart as they are written.

        `oneOf` refuses what fits two choices, which a union cannot say, so its parts are never exact.
        """
        result: list[Type] = []
        for choice in choices:
            for member in members(self.read(choice, name, depth + 1)):
                if member is UNKNOWN:
                    return UNKNOWN
                part = member if exact else _inexact(member)
                if part not in result:
                    result.append(part)
        return result[0] if len(result) == 1 else Union(tuple(result)) if result else UNKNOWN

    def _own(self, schema: Mapping[str, Any], name: str | None) -> Type:
        """Return what the schema says by itself, its combining keywords left out."""
        if "const" in schema:
            return type_of(schema["const"])
        kinds = schema.get("type")
        if isinstance(kinds, list):
            each = [self._of_kind(kind, schema, name) for kind in cast("list[Any]", kinds)]
            result: Type = UNKNOWN if UNKNOWN in each else join_all(each)
        elif kinds is not None:
            result = self._of_kind(kinds, schema, name)
        elif "properties" in schema or "additionalProperties" in schema:
            result = self._of_kind("object", schema, name)
        elif "items" in schema or "prefixItems" in schema:
            result = self._of_kind("array", schema, name)
        else:
            result = UNKNOWN
        if isinstance(schema.get("enum"), list):
            result = _of_values(schema["enum"], result, exact=schema.keys() <= _EXACT_SCALAR)
        return result

    def _of_kind(self, kind: Any, schema: Mapping[str, Any], name: str | None) -> Type:
        if kind == "object":
            return self._object(schema, name)
        if kind == "array":
            return self._list(schema)
        if kind in _SCALARS:
            exact = schema.keys() <= _EXACT_SCALAR
            return _PLAIN[kind] if exact else Scalar(_SCALARS[kind], exact=False)
        return UNKNOWN

    def _list(self, schema: Mapping[str, Any]) -> Type:
        items, first = schema.get("items"), schema.get("prefixItems")
        if isinstance(items, list):  # the tuple form of drafts up to 7
            first, items = cast("list[Any]", items), schema.get("additionalItems")
        prefix = cast("list[Any]", first) if isinstance(first, list) else []
        positions = tuple(self.read(part, depth=1) for part in prefix[:MAX_POSITIONS])

        def element() -> Type:
            rest = NEVER if items is False else self.read(items)
            return join(join_all(self.read(part) for part in prefix), rest)

        return ListType(element, positions, exact=schema.keys() <= _EXACT["array"] and not prefix)

    def _object(self, schema: Mapping[str, Any], name: str | None) -> Type:
        declared = schema.get("properties")
        properties: Mapping[str, Any] = cast("Mapping[str, Any]", declared) if isinstance(declared, Mapping) else {}
        required = schema.get("required")
        others = schema.get("additionalProperties")
        additional: Deferred | None = None
        if "patternProperties" in schema or others is True:
            additional = UNKNOWN
        elif isinstance(others, Mapping):
            additional = self._later(others)
        title = schema.get("title")
        return ObjectType(
            {key: self._later(part) for key, part in properties.items()},
            frozenset(cast("list[str]", required)) & properties.keys() if isinstance(required, list) else frozenset(),
            additional,
            sealed=others is False and additional is None,
            name=(name or (title if isinstance(title, str) else None)) if properties else None,
            exact=schema.keys() <= _EXACT["object"],
        )

    def _later(self, schema: Any) -> Callable[[], Type]:
        return lambda: self.read(schema)

    def _referenced(self, reference: str, depth: int) -> Type:
        if reference in self.refs:
            found = self.refs[reference]
            if found is None and reference == "#":
                found = self.refs["#"] = self.read(self.root, depth=depth + 1)
            return UNKNOWN if found is None else found  # None: a reference that only leads to itself
        self.refs[reference] = None
        if not reference.startswith("#/"):
            return UNKNOWN
        part: Any = self.root
        for piece in reference[2:].split("/"):
            key = piece.replace("~1", "/").replace("~0", "~")
            if isinstance(part, Mapping) and key in part:
                part = cast("Mapping[str, Any]", part)[key]
            elif isinstance(part, list) and key.isdigit() and int(key) < len(cast("list[Any]", part)):
                part = cast("list[Any]", part)[int(key)]
            else:
                return UNKNOWN
        found = self.refs[reference] = self.read(part, reference.rsplit("/", 1)[-1], depth + 1)
        return found


_PLAIN = {"string": TEXT, "integer": INTEGER, "number": NUMBER, "boolean": BOOLEAN, "null": NULL}


def _of_values(values: list[Any], declared: Type, *, exact: bool) -> Type:
    """Return the type of an enumeration whose schema otherwise says `declared`."""
    kinds: dict[str, list[Any]] = {}
    for value in values:
        found = type_of(value)
        if not isinstance(found, Scalar):
            return declared
        if declared is UNKNOWN or is_assignable(found, declared) is not Verdict.NO:
            kinds.setdefault(found.kind, []).append(value)
    if not kinds:
        return declared
    return join_all(NULL if kind == "null" else Scalar(kind, frozenset(found), exact) for kind, found in kinds.items())


def _inexact(found: Type) -> Type:
    """Return the same type, knowing that the schema says more than it does."""
    if isinstance(found, Union):
        return Union(tuple(_inexact(member) for member in found.members))
    if isinstance(found, Scalar | ListType | ObjectType) and found.exact:
        found = copy.copy(found)
        found.exact = False
    return found


def _meet(a: Type, b: Type) -> Type:
    """Return the type of a value that is of both types, as far as it can be told; never narrower than the truth."""
    if a is UNKNOWN:
        return b
    if b is UNKNOWN or a is b:
        return a
    if isinstance(a, ObjectType) and isinstance(b, ObjectType):
        fields: dict[str, Deferred] = dict.fromkeys([*a.names, *b.names], UNKNOWN)
        for name in fields:
            fields[name] = _met_field(a, b, name)
        open_to = a.additional if b.additional is None else b.additional if a.additional is None else UNKNOWN
        return ObjectType(fields, a.required | b.required, open_to, name=a.name or b.name)
    if isinstance(a, Union):
        kept = [met for member in a.members if (met := _meet_member(member, b)) is not None]
        return join_all(kept) if kept else UNKNOWN
    if isinstance(b, Union):
        return _meet(b, a)
    if isinstance(a, ListType) and isinstance(b, ListType):
        return ListType(lambda: _meet(a.element, b.element))
    if isinstance(a, Scalar) and isinstance(b, Scalar) and _numeric_or_same(a, b):
        values = a.values if b.values is None else b.values if a.values is None else a.values & b.values
        return Scalar(a.kind if a.kind != "number" else b.kind, values, exact=False)
    return UNKNOWN  # nothing is both


def _met_field(a: ObjectType, b: ObjectType, name: str) -> Callable[[], Type]:
    return lambda: _meet(a.field(name) or UNKNOWN, b.field(name) or UNKNOWN)


def _meet_member(member: Type, other: Type) -> Type | None:
    if isinstance(other, Union):
        met = [found for each in other.members if (found := _meet_member(member, each)) is not None]
        return join_all(met) if met else None
    if isinstance(member, Scalar) and isinstance(other, Scalar):
        return _meet(member, other) if _numeric_or_same(member, other) else None
    return _meet(member, other) if type(member) is type(other) else None


def _numeric_or_same(a: Scalar, b: Scalar) -> bool:
    return a.kind == b.kind or {a.kind, b.kind} == {"integer", "number"}
