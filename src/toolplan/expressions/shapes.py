"""The static types themselves: what is known about a value before it exists, in the shape of JSON Schema.

    Type = UNKNOWN                    anything at all; never the reason for a finding
         | NEVER                      no value: the elements of `[]`, a branch that cannot be taken
         | Scalar                     null | boolean | integer | number | text, perhaps one of a few known values
         | ListType                   element, perhaps the types of the first positions
         | ObjectType                 declared fields, which of them are required, what other fields may hold
         | Union                      two or more of Scalar, ListType, ObjectType

A type says what a value *may* be. Only what can never be right is reported, so whatever is not understood (an unusual
schema, a join of too much) is UNKNOWN, and the plan is checked at run time instead.

Schemas may be recursive. The inside of lists and objects is therefore found when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from toolplan.values import Json

__all__ = [
    "BOOLEAN",
    "INTEGER",
    "NEVER",
    "NULL",
    "NUMBER",
    "TEXT",
    "UNKNOWN",
    "Deferred",
    "ListType",
    "ObjectType",
    "Scalar",
    "Type",
    "Union",
    "accepts_null",
    "is_same",
    "join",
    "join_all",
    "joined_lists",
    "kind_word",
    "list_of",
    "may_be_null",
    "members",
    "object_of",
    "type_of",
    "without",
    "without_null",
]

MAX_KNOWN_VALUES = 24
MAX_POSITIONS = 16
MAX_OBJECTS = 8
MAX_FIELDS = 500
MAX_VALUE_DEPTH = 20


class Type:
    """The base of all static types. `str(type)` is the type in Python's words: `list[Weather] | None`."""

    __slots__ = ()

    def __str__(self) -> str:
        return _text(self, 0)

    def __repr__(self) -> str:
        return f"<Type {self}>"


Deferred: TypeAlias = "Type | Callable[[], Type]"
"""A type, or how to find it when somebody asks."""


class _Unknown(Type):
    __slots__ = ()


class _Never(Type):
    __slots__ = ()


UNKNOWN = _Unknown()
NEVER = _Never()


class Scalar(Type):
    """One kind of plain value; `values` lists the only ones it can be, if that is known.

    `exact` says that every value of this type satisfies the schema it was read from: nothing else is left to check.
    """

    __slots__ = ("exact", "kind", "values")

    def __init__(self, kind: str, values: frozenset[Any] | None = None, exact: bool = True) -> None:
        self.kind = kind
        self.values = values
        self.exact = exact

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scalar) and self.kind == other.kind and self.values == other.values

    def __hash__(self) -> int:
        return hash((self.kind, self.values))


NULL = Scalar("null")
BOOLEAN = Scalar("boolean")
INTEGER = Scalar("integer")
NUMBER = Scalar("number")
TEXT = Scalar("text")


class ListType(Type):
    """A list. `positions` are the types of its first elements, `element` covers all of them."""

    __slots__ = ("_element", "exact", "positions")

    def __init__(self, element: Deferred, positions: tuple[Type, ...] = (), exact: bool = False) -> None:
        self._element = element
        self.positions = positions
        self.exact = exact

    @property
    def element(self) -> Type:
        """The type of any element."""
        found = self._element
        if not isinstance(found, Type):
            found = self._element = found()
        return found


class ObjectType(Type):
    """An object. `additional` is the type of undeclared fields, None when the schema does not speak of them.

    `sealed` says that there can be no undeclared field: the schema forbids them, or the object is built by the plan.
    """

    __slots__ = ("_additional", "_fields", "exact", "name", "required", "sealed")

    def __init__(
        self,
        fields: Mapping[str, Deferred],
        required: frozenset[str] = frozenset(),
        additional: Deferred | None = None,
        *,
        sealed: bool = False,
        name: str | None = None,
        exact: bool = False,
    ) -> None:
        self._fields = dict(fields)
        self._additional = additional
        self.required = required
        self.sealed = sealed
        self.name = name
        self.exact = exact

    @property
    def names(self) -> Iterable[str]:
        """The declared fields, in declared order."""
        return self._fields.keys()

    @property
    def additional(self) -> Type | None:
        """The type of undeclared fields, or None."""
        found = self._additional
        if found is not None and not isinstance(found, Type):
            found = self._additional = found()
        return found

    @property
    def knows_all_fields(self) -> bool:
        """Whether reading an undeclared field is a mistake.

        A schema made from a class does not say `additionalProperties: false`, and still there is nothing else in the
        result: declared properties are taken to be all there are unless the schema invites others.
        """
        return self._additional is None and (self.sealed or bool(self._fields))

    def with_fields(self, fields: Mapping[str, Type]) -> ObjectType:
        """Return the same type, of whose declared fields more is known."""
        return ObjectType(
            {**self._fields, **fields},
            self.required,
            self._additional,
            sealed=self.sealed,
            name=self.name,
            exact=self.exact,
        )

    def field(self, name: str) -> Type | None:
        """Return the type of a declared field, or None."""
        found = self._fields.get(name)
        if found is not None and not isinstance(found, Type):
            found = self._fields[name] = found()
        return found


class Union(Type):
    """One of several. Made by `join`, which keeps the members apart from each other and flat."""

    __slots__ = ("members",)

    def __init__(self, members: tuple[Type, ...]) -> None:
        self.members = members


# --- making types ---------------------------------------------------------------------------------------------------


def list_of(element: Type, positions: Iterable[Type] = ()) -> ListType:
    """Return the type of a list with such elements."""
    known = tuple(positions)
    return ListType(element, known if len(known) <= MAX_POSITIONS else ())


def object_of(
    fields: Mapping[str, Type], required: frozenset[str] | None = None, additional: Type | None = None
) -> ObjectType:
    """Return the type of an object that a plan builds with these fields, and perhaps others.

    All are `required` when nothing is said. Of objects with very many fields only that is known.
    """
    if len(fields) > MAX_FIELDS:
        return ObjectType({}, frozenset(), UNKNOWN)
    return ObjectType(
        fields, frozenset(fields) if required is None else required, additional, sealed=additional is None
    )


def type_of(value: Json, depth: int = 0) -> Type:
    """Return the type of one known value."""
    if value is None:
        return NULL
    kind = type(value)
    if kind is str:
        return Scalar("text", frozenset((value,)))
    if kind is bool:
        return Scalar("boolean", frozenset((value,)))
    if kind is int:
        return Scalar("integer", frozenset((value,)))
    if kind is float:
        return Scalar("number", frozenset((value,)))
    if depth > MAX_VALUE_DEPTH:
        return UNKNOWN
    if isinstance(value, list):
        elements = [type_of(item, depth + 1) for item in value[: 4 * MAX_POSITIONS]]
        rest = UNKNOWN if len(value) > len(elements) else NEVER
        return list_of(join(join_all(elements), rest), () if len(value) > MAX_POSITIONS else elements)
    if isinstance(value, dict):
        return object_of({name: type_of(item, depth + 1) for name, item in value.items()})
    return UNKNOWN


def members(found: Type) -> tuple[Type, ...]:
    """Return the members of a union; any other type is its own only member, NEVER has none."""
    if isinstance(found, Union):
        return found.members
    return () if found is NEVER else (found,)


def join_all(types: Iterable[Type]) -> Type:
    """Return the type of a value that is of one of `types`; NEVER for none."""
    result: Type = NEVER
    for found in types:
        result = join(result, found)
    return result


def join(a: Type, b: Type) -> Type:
    """Return the type of a value that is of type `a` or of type `b`."""
    if a is b or b is NEVER:
        return a
    if a is NEVER:
        return b
    if a is UNKNOWN or b is UNKNOWN:
        return UNKNOWN
    result = list(members(a))
    for new in members(b):
        for index, old in enumerate(result):
            merged = _merge(old, new)
            if merged is not None:
                result[index] = merged
                break
        else:
            result.append(new)
    return _union(result)


def _union(found: list[Type]) -> Type:
    if sum(isinstance(member, ObjectType) for member in found) > MAX_OBJECTS:
        return UNKNOWN
    if not found:
        return NEVER
    return found[0] if len(found) == 1 else Union(tuple(found))


def _merge(a: Type, b: Type) -> Type | None:
    """Return one type for both, or None when they are better kept apart."""
    if a is b:
        return a
    if isinstance(a, Scalar) and isinstance(b, Scalar):
        if a.kind == b.kind or (a.kind in _NUMERIC and b.kind in _NUMERIC):
            values = a.values | b.values if a.values is not None and b.values is not None else None
            if values is not None and len(values) > MAX_KNOWN_VALUES:
                values = None
            return Scalar(a.kind if a.kind == b.kind else "number", values)
        return None
    if isinstance(a, ListType) and isinstance(b, ListType):
        positions: tuple[Type, ...] = ()
        if len(a.positions) == len(b.positions):
            positions = tuple(join(x, y) for x, y in zip(a.positions, b.positions, strict=True))
        return joined_lists(a, b, positions)
    if isinstance(a, ObjectType) and isinstance(b, ObjectType):
        return _merge_objects(a, b)
    return None


def joined_lists(a: ListType, b: ListType, positions: tuple[Type, ...] = ()) -> ListType:
    """Return the type of a list with elements of both.

    Its own element is found later, those of `a` and `b` now: a list that a plan grows element by element would be a
    chain of open questions otherwise, as long as the plan.
    """
    first, second = a.element, b.element
    if first is second:
        return ListType(first, positions)
    return ListType(lambda: join(first, second), positions)


_NUMERIC = ("integer", "number")


def _merge_objects(a: ObjectType, b: ObjectType) -> Type | None:
    if list(a.names) != list(b.names) or a.required != b.required or a.name != b.name:
        return None
    if (a.additional is None) != (b.additional is None) or _are_told_apart(a, b):
        return None
    fields: dict[str, Deferred] = {name: _joined_field(a, b, name) for name in a.names}
    more, others = a.additional, b.additional
    extra = (lambda: join(more, others)) if more is not None and others is not None else None
    return ObjectType(fields, a.required, extra, sealed=a.sealed and b.sealed, name=a.name)


def _joined_field(a: ObjectType, b: ObjectType, name: str) -> Callable[[], Type]:
    return lambda: join(a.field(name) or UNKNOWN, b.field(name) or UNKNOWN)


def _are_told_apart(a: ObjectType, b: ObjectType) -> bool:
    """Return whether some field has known, different values in the two: `{"ok": true, ...}` and `{"ok": false, ...}`.

    Long texts tell nothing apart; they are contents, and objects built in a loop would pile up.
    """
    for name in a.names:
        left, right = a.field(name), b.field(name)
        if isinstance(left, Scalar) and isinstance(right, Scalar) and left.values and right.values:
            short = all(not isinstance(value, str) or len(value) <= 20 for value in left.values | right.values)
            if short and left.kind in ("text", "boolean") and left.values.isdisjoint(right.values):
                return True
    return False


def without(found: Type, unwanted: Callable[[Type], bool]) -> Type:
    """Return `found` less the members for which `unwanted` holds; NEVER when none is left."""
    kept = [member for member in members(found) if not unwanted(member)]
    if len(kept) == len(members(found)):
        return found
    return _union(kept)


def without_null(found: Type) -> Type:
    """Return `found` for the case that it is not null."""
    return without(found, _is_null)


def _is_null(found: Type) -> bool:
    return isinstance(found, Scalar) and found.kind == "null"


def may_be_null(found: Type) -> bool:
    """Return whether null is one of the known possibilities. UNKNOWN is not known to be null."""
    return any(_is_null(member) for member in members(found))


def accepts_null(target: Type) -> bool:
    """Return whether a schema of this type may accept null."""
    return target is UNKNOWN or may_be_null(target)


def is_same(a: Type, b: Type, depth: int = 0) -> bool:
    """Return whether two types say the same. Far inside (and in recursive types) they are taken to."""
    if a is b or depth > 6:
        return True
    if isinstance(a, Scalar):
        return a == b
    if isinstance(a, ListType) and isinstance(b, ListType):
        if len(a.positions) != len(b.positions):
            return False
        return is_same(a.element, b.element, depth + 1) and all(
            is_same(x, y, depth + 1) for x, y in zip(a.positions, b.positions, strict=True)
        )
    if isinstance(a, ObjectType) and isinstance(b, ObjectType):
        if list(a.names) != list(b.names) or a.required != b.required or a.sealed != b.sealed:
            return False
        return is_same(a.additional or UNKNOWN, b.additional or UNKNOWN, depth + 1) and all(
            is_same(a.field(name) or UNKNOWN, b.field(name) or UNKNOWN, depth + 1) for name in a.names
        )
    if isinstance(a, Union) and isinstance(b, Union) and len(a.members) == len(b.members):
        return all(is_same(x, y, depth + 1) for x, y in zip(a.members, b.members, strict=True))
    return False


# --- words ----------------------------------------------------------------------------------------------------------

_PYTHON = {"null": "None", "boolean": "bool", "integer": "int", "number": "float", "text": "str"}
_WORDS = {
    "null": "null",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "text": "text",
}


def _text(found: Type, depth: int) -> str:
    if isinstance(found, Scalar):
        return _PYTHON[found.kind]
    if isinstance(found, ListType):
        if found.element is NEVER or found.element is UNKNOWN or depth > 3:
            return "list"
        return f"list[{_text(found.element, depth + 1)}]"
    if isinstance(found, ObjectType):
        if found.name:
            return found.name
        if found.additional is not None and not found.names and depth <= 3:
            return f"dict[str, {_text(found.additional, depth + 1)}]"
        return "dict"
    if isinstance(found, Union):
        ordered = sorted(found.members, key=lambda member: _is_null(member))
        return " | ".join(dict.fromkeys(_text(member, depth + 1) for member in ordered))
    return "Any"


def kind_word(found: Type, *, named: int = 2) -> str:
    """Return the everyday words for a type: `text`, `a number`, `a list`, `text or null`.

    Texts of which few are possible are named, when they are at least `named`: one alone is a text that somebody wrote.
    """
    words: list[str] = []
    for member in sorted(members(found), key=_is_null):
        if isinstance(member, Scalar):
            few = member.values is not None and member.kind == "text" and named <= len(member.values) <= 6
            words += sorted(repr(value) for value in member.values or ()) if few else [_WORDS[member.kind]]
        elif isinstance(member, ListType):
            words.append("a list")
        elif isinstance(member, ObjectType):
            words.append("an object")
        else:
            words.append("anything")
    words = list(dict.fromkeys(words))
    if len(words) < 2:
        return words[0] if words else "nothing"
    return ", ".join(words[:-1]) + " or " + words[-1]
