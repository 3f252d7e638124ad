"""What a schema marks as secret, with `"format": "password"` or `"writeOnly": true`, is not shown to anybody.

A mark counts wherever the schema has it: in fields, elements, values of any key, alternatives, behind references. An
argument is left out as a whole when something in it is marked, and so is a result that is no object with marked fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from toolplan.expressions import Fields, Literal
from toolplan.values import Json

if TYPE_CHECKING:
    from toolplan.tools.tool import Tool

__all__ = [
    "HIDDEN",
    "SecretNames",
    "is_secret",
    "result_shown",
    "secret_arguments",
    "secret_names",
    "secret_part",
    "shown",
    "without_secrets",
]

HIDDEN = "(secret)"

_ONE = (
    "additionalItems",
    "additionalProperties",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
)
_LISTS = ("allOf", "anyOf", "items", "oneOf", "prefixItems")
_BY_NAME = ("dependencies", "dependentSchemas", "patternProperties", "properties")
"""The keywords whose values are a schema, a list of schemas, and schemas by name."""
_OTHERS = ("additionalProperties", "unevaluatedProperties")
"""The keywords for properties that `properties` does not name."""


@dataclass(frozen=True, slots=True)
class SecretNames:
    """The arguments of a tool that are, or hold, what its schema marks as secret. Without any it is false.

    `marked` are those that the schema names, `known` all that it names. Where any is secret, what the schema does not
    name is secret too: as likely as not it is one of them misspelt. `others` says that the schema marks such values
    itself (`**passwords: SecretStr`).
    """

    marked: frozenset[str] = frozenset()
    known: frozenset[str] = frozenset()
    others: bool = False

    def __bool__(self) -> bool:
        return bool(self.marked) or self.others

    def __contains__(self, name: object) -> bool:
        return name in self.marked or (name not in self.known and bool(self))


def secret_arguments(tool: Tool) -> SecretNames:
    """Return which arguments are, or hold, what the schema marks as secret."""
    return tool.secret_arguments


def without_secrets(arguments: Fields, tool: Tool) -> Fields:
    """Return the arguments with `HIDDEN` in place of the secret ones."""
    secret = secret_arguments(tool)
    if not secret:
        return arguments
    hidden = Literal(HIDDEN)
    return Fields(tuple((name, hidden if name in secret else value) for name, value in arguments.fields))


def shown(arguments: dict[str, Json], tool: Tool) -> dict[str, Json]:
    """Return the values of a call with `HIDDEN` in place of the secret ones."""
    secret = secret_arguments(tool)
    if not secret:
        return arguments
    return {name: HIDDEN if name in secret else value for name, value in arguments.items()}


def result_shown(value: Json, tool: Tool, mark: str = HIDDEN) -> Json:
    """Return a result with `mark` in place of what is secret in it; null, which stands for no result, stays."""
    names = tool.secret_result
    if names is None or value is None:
        return value
    if not names or not isinstance(value, dict):
        return mark
    return {name: mark if name in names else inner for name, inner in value.items()}


def secret_names(schema: Mapping[str, Any] | None) -> SecretNames:
    """Return which properties a schema of an object calls secret: all of them where it is one as a whole."""
    if not schema:
        return SecretNames()
    marked, known, others, rest = _split(schema)
    return SecretNames(others=True) if rest else SecretNames(marked, known, others)


def secret_part(schema: Mapping[str, Any] | None) -> frozenset[str] | None:
    """Return the secret fields of a value; none of them for one that is secret as a whole; None for any other."""
    if schema is None:
        return None
    marked, _, others, rest = _split(schema)
    return frozenset() if others or rest else marked or None


def is_secret(schema: Any, root: Mapping[str, Any]) -> bool:
    """Return whether a value of this schema, a part of `root`, is secret or may hold something that is."""
    seen: set[int] = set()
    open_: list[Any] = [schema]
    while open_:
        found = open_.pop()
        if not isinstance(found, Mapping) or id(cast(object, found)) in seen:
            continue
        known = cast("Mapping[str, Any]", found)
        seen.add(id(known))
        if known.get("format") == "password" or known.get("writeOnly") is True:
            return True
        open_ += _inside(known, root)
    return False


def _inside(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Iterator[Any]:
    for keyword in _ONE:
        if keyword in schema:
            yield schema[keyword]
    for keyword in _LISTS:
        if isinstance(listed := schema.get(keyword), list):
            yield from cast("list[Any]", listed)
    for keyword in _BY_NAME:
        if isinstance(named := schema.get(keyword), Mapping):
            yield from cast("Mapping[str, Any]", named).values()
    for keyword in ("$ref", "$dynamicRef"):
        if keyword in schema:
            yield _at(schema[keyword], root)


def _at(reference: Any, root: Mapping[str, Any]) -> Any:
    """Return the part of the schema that a reference names; None for one that leads nowhere."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    found: Any = root
    for step in reference[1:].split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping):
            found = cast("Mapping[str, Any]", found).get(name)
        elif isinstance(found, list) and name.isdecimal() and int(name) < len(cast("list[Any]", found)):
            found = cast("list[Any]", found)[int(name)]
        else:
            return None
    return found


def _split(schema: Mapping[str, Any]) -> tuple[frozenset[str], frozenset[str], bool, bool]:
    """Return the marked properties of a schema and all of them; whether others are marked; whether anything else is."""
    properties: dict[str, Any] = {}
    others: list[Any] = []
    rest: list[Any] = []
    seen: set[int] = set()
    here: Any = schema
    while isinstance(here, Mapping) and id(cast(object, here)) not in seen:  # through references to the object itself
        known = cast("Mapping[str, Any]", here)
        seen.add(id(known))
        for name, inner in known.get("properties", {}).items():
            if name in properties:
                rest.append(inner)
            properties.setdefault(name, inner)
        others += [known.get(keyword) for keyword in _OTHERS]
        rest.append({key: part for key, part in known.items() if key not in ("properties", "$ref", *_OTHERS)})
        here = _at(known.get("$ref"), schema)
    marked = frozenset(name for name, inner in properties.items() if is_secret(inner, schema))
    are_secret = [any(is_secret(part, schema) for part in parts) for parts in (others, rest)]
    return marked, frozenset(properties), are_secret[0], are_secret[1]
