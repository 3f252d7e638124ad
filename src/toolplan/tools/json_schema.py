"""Questions about a JSON Schema: does it admit null, can a strict mode express it, does it lead out of itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias, TypeGuard

__all__ = [
    "Schema",
    "admits_null",
    "definitions_of",
    "has_open_part",
    "is_array",
    "is_object",
    "is_strict",
    "references",
    "remote_reference",
]

Schema: TypeAlias = "dict[str, Any]"


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """Return whether a JSON value is an object."""
    return isinstance(value, dict)


def is_array(value: Any) -> TypeGuard[list[Any]]:
    """Return whether a JSON value is a list."""
    return isinstance(value, list)


def definitions_of(schema: Mapping[str, Any]) -> Schema:
    """Return the definitions that the references in a schema document name, under the newer keyword or the older."""
    return {**schema.get("definitions", {}), **schema.get("$defs", {})}


def admits_null(schema: Any, definitions: Mapping[str, Any], depth: int = 0) -> bool:
    """Return whether `null` may fit the schema; true where that is not plain to see."""
    schema = _resolved(schema, definitions)
    if not is_object(schema) or depth > 20:
        return schema is not False
    if "type" in schema and "null" not in _kinds(schema):
        return False
    if "enum" in schema and None not in schema["enum"]:
        return False
    if "const" in schema and schema["const"] is not None:
        return False
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema and not any(admits_null(part, definitions, depth + 1) for part in schema[keyword]):
            return False
    return all(admits_null(part, definitions, depth + 1) for part in schema.get("allOf", ()))


_UNSTRICT = frozenset(
    ["patternProperties", "prefixItems", "not", "if", "allOf", "propertyNames", "dependentRequired", "dependentSchemas"]
)


def is_strict(schema: Any) -> bool:
    """Return whether providers' strict modes can express the schema, once its objects are closed and all required.

    They cannot say "anything", "an object with whatever fields" or "a list with a type for each place".
    """
    if not is_object(schema) or not _UNSTRICT.isdisjoint(schema):
        return False
    kinds = _kinds(schema)
    if "object" in kinds:
        extra = schema.get("additionalProperties")
        if extra not in (None, False) or (not schema.get("properties") and extra is not False):
            return False
    if "array" in kinds and not is_strict(schema.get("items")):
        return False
    if not kinds and not any(keyword in schema for keyword in ("$ref", "enum", "const", "anyOf", "oneOf")):
        return False
    return all(map(is_strict, _inner(schema)))


def has_open_part(schema: Any) -> bool:
    """Return whether some part of the schema admits everything."""
    if not is_object(schema):
        return schema is not False
    kinds = _kinds(schema)
    if not kinds and not any(word in schema for word in ("$ref", "enum", "const", "anyOf", "oneOf", "allOf")):
        return True
    if "object" in kinds and has_open_part(schema.get("additionalProperties", "properties" not in schema)):
        return True
    if "array" in kinds and has_open_part(schema.get("items", "prefixItems" not in schema)):
        return True
    return any(map(has_open_part, _inner(schema)))


def references(schema: Any) -> set[str]:
    """Return every `$ref` in the schema."""
    return set(_references(schema))


def remote_reference(schema: Any) -> str | None:
    """Return a `$ref` that leads out of the schema, or None."""
    return next((found for found in _references(schema) if not found.startswith("#")), None)


def _references(schema: Any) -> Iterator[str]:
    if is_object(schema):
        for keyword in ("$ref", "$dynamicRef"):
            if isinstance(schema.get(keyword), str):
                yield schema[keyword]
        for value in schema.values():
            yield from _references(value)
    elif is_array(schema):
        for item in schema:
            yield from _references(item)


def _resolved(schema: Any, definitions: Mapping[str, Any]) -> Any:
    for _ in range(20):  # longer chains of references, or circles, are nobody's honest schema
        reference: Any = schema.get("$ref") if is_object(schema) else None
        if not isinstance(reference, str):
            return schema
        schema = definitions.get(reference.rpartition("/")[2], {})
    return schema


def _kinds(schema: Schema) -> list[str]:
    kinds = schema.get("type", ())
    return [kinds] if isinstance(kinds, str) else list(kinds)


def _inner(schema: Schema) -> Iterator[Any]:
    yield from schema.get("properties", {}).values()
    yield from definitions_of(schema).values()
    yield from schema.get("prefixItems", ())
    for keyword in ("anyOf", "oneOf", "allOf"):
        yield from schema.get(keyword, ())
