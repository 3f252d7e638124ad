"""Which fields a schema describes, and which of them hold others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from toolplan.diagnostics import nearest

__all__ = ["field_names", "fields_around", "is_closed", "names_its_fields", "unknown_field"]


def field_names(schema: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of all fields that a schema describes, at any depth."""
    return frozenset(name for inside in _graph(schema).values() for name in inside if not name.startswith("#"))


def fields_around(schema: Mapping[str, Any] | None, names: frozenset[str]) -> frozenset[str]:
    """Return the names of all fields that have one of these fields in them, at any depth of the schema.

    What a schema leaves open is not among them. Fields of one name are taken to be alike.
    """
    graph = _graph(schema or {})
    holding = set(names)
    grown = True
    while grown:
        more = {name for name, inside in graph.items() if not holding.isdisjoint(inside)} - holding
        grown = bool(more)
        holding |= more
    return frozenset(name for name in holding - names if not name.startswith("#"))


def is_closed(schema: Mapping[str, Any]) -> bool:
    """Return whether a schema names every field that a value may have, at any depth.

    An object that lists its properties and says nothing about others is taken to be closed.
    """
    return not any(_is_open(each) for each in _schemas(schema))


def names_its_fields(schema: Mapping[str, Any]) -> bool:
    """Return whether a schema names every field of a value, or of its elements; what is in those may be open."""
    seen: set[str] = set()
    waiting: list[Any] = [schema]
    while waiting:
        for part in _parts(waiting.pop()):
            if _is_open(part) or isinstance(part.get("additionalProperties"), Mapping):
                return False
            reference = part.get("$ref")
            if isinstance(reference, str) and reference not in seen:
                seen.add(reference)
                waiting.append(_target(schema, reference))
    return True


def unknown_field(schema: Mapping[str, Any] | None, names: Iterable[str]) -> str | None:
    """Return what is wrong with the first of these names that cannot be a field of such a value, or None."""
    if schema is None or not is_closed(schema):
        return None
    known = sorted(field_names(schema))
    for name in names:
        if name not in known:
            near = nearest(name, known)
            hint = f"; did you mean `{near}`?" if near else ""
            fields = ", ".join(f"`{each}`" for each in known) or "none"
            return f"names `{name}`, but the fields of the result are: {fields}{hint}"
    return None


def _graph(schema: Mapping[str, Any]) -> dict[str, set[str]]:
    """Return what is directly in each field and in each definition (`#/$defs/...`); `#` is the whole schema."""
    graph: dict[str, set[str]] = {}
    waiting: list[tuple[str, Any]] = [("#", schema)]
    while waiting:
        owner, node = waiting.pop()
        inside = graph.setdefault(owner, set())
        for part in _parts(node):
            properties, reference = part.get("properties"), part.get("$ref")
            if isinstance(properties, Mapping):
                fields = cast("Mapping[str, Any]", properties)
                inside.update(fields)
                waiting += fields.items()
            if isinstance(reference, str) and reference.startswith("#"):
                inside.add(reference)
                if reference not in graph:
                    graph[reference] = set()
                    waiting.append((reference, _target(schema, reference)))
    return graph


def _parts(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Yield a schema and those of its elements and alternatives: whatever is no field of its own."""
    if not isinstance(schema, Mapping):
        return
    known = cast("Mapping[str, Any]", schema)
    yield known
    for key in ("items", "additionalProperties", "anyOf", "oneOf", "allOf", "prefixItems"):
        inner: Any = known.get(key)
        for each in cast("list[Any]", inner) if isinstance(inner, list) else [inner]:
            yield from _parts(each)


def _schemas(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the schema and everything in it, each definition once."""
    seen: set[str] = set()
    waiting: list[Any] = [schema]
    while waiting:
        for part in _parts(waiting.pop()):
            yield part
            waiting += cast("Mapping[str, Any]", part.get("properties") or {}).values()
            reference = part.get("$ref")
            if isinstance(reference, str) and reference not in seen:
                seen.add(reference)
                waiting.append(_target(schema, reference))


_CLOSING = ("$ref", "anyOf", "oneOf", "allOf", "enum", "const")


def _is_open(schema: Mapping[str, Any]) -> bool:
    """Return whether a schema by itself, without what is in it, lets fields in that it does not name."""
    kind = schema.get("type")
    if kind is None:
        return not any(key in schema for key in (*_CLOSING, "properties"))
    if kind == "object":
        return schema.get("additionalProperties") is True or not any(key in schema for key in (*_CLOSING, "properties"))
    return isinstance(kind, list) or (kind == "array" and not any(key in schema for key in ("items", "prefixItems")))


def _target(root: Mapping[str, Any], reference: str) -> Any:
    found: Any = root
    for part in reference.lstrip("#/").split("/") if reference != "#" else ():
        found = cast("Mapping[str, Any]", found).get(part) if isinstance(found, Mapping) else None
    return found
