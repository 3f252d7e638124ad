"""The JSON Schema of short plans, for models so small that in the whole language they would never come to an end.

Calls and an answer, nothing else: no bodies, no expressions of their own, every list and text bounded, nothing that
recurses. Whatever a model writes under a grammar made from it ends, and can be read as a plan; what it is worth is for
the checker to say. Results are still used, by `{name}` or `{name.field}` in texts and in place of other values.

It keeps to what llama.cpp's grammars can say: patterns are anchored at both ends, a text with a pattern has no length
of its own, an object has either fields or none. Names hold an underscore, so that none is a keyword of Python.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from toolplan.tools import Tool
from toolplan.values import Json

__all__ = ["small_plan_schema"]

Schema: TypeAlias = "dict[str, Json]"

MOST_STEPS = 4
MOST_ITEMS = 4
LONGEST_TEXT = 80

NAME = r"^[a-z]{1,12}_[a-z0-9]{1,6}$"
HOLE = r"^\{[a-z]{1,12}_[a-z0-9]{1,6}(\.[a-z_]{1,16}){0,1}\}$"

_SHARED = re.compile(r"#/(?:\$defs|definitions)/([^/]+)\Z")
_HOLE: Json = {"$ref": "#/$defs/hole"}
_BOUNDS = ("minimum", "maximum")


def small_plan_schema(tools: Iterable[Tool], *, goes_on: bool = False) -> Schema:
    """Return the JSON Schema of a short plan over these tools; one that `goes_on` after others may have no steps."""
    calls: list[Json] = [_call(tool) for tool in tools]
    steps: Schema = {"type": "array", "items": {"anyOf": calls}, "maxItems": MOST_STEPS}
    if not goes_on:
        steps["minItems"] = 1
    definitions: Schema = {
        "name": {"type": "string", "pattern": NAME},
        "hole": {"type": "string", "pattern": HOLE, "description": "an earlier result, or a field of it"},
    }
    return {**_closed({"steps": steps, "answer": _text(LONGEST_TEXT)}), "$defs": definitions}


def _call(tool: Tool) -> Schema:
    shared: dict[str, Json] = {}
    for keyword in ("$defs", "definitions"):
        given = tool.parameters.get(keyword)
        if isinstance(given, dict):
            shared |= given
    return _closed(
        {
            "tool_name": {"type": "string", "const": tool.name},
            "arguments": _object(tool.parameters, shared, ()),
            "result_variable": {"$ref": "#/$defs/name"},
        }
    )


def _object(schema: Mapping[str, Json], shared: Mapping[str, Json], inside: tuple[str, ...]) -> Schema:
    given = schema.get("properties")
    fields = given if isinstance(given, dict) else {}
    required = schema.get("required")
    needed: list[Json] = [name for name in required if name in fields] if isinstance(required, list) else []
    return {**_closed({name: _value(field, shared, inside) for name, field in fields.items()}), "required": needed}


def _value(schema: Json, shared: Mapping[str, Json], inside: tuple[str, ...]) -> Schema:
    """Return the schema of an argument: bounded, and anything but a text also as an earlier result."""
    if not isinstance(schema, dict):
        return _anything()
    if isinstance(reference := schema.get("$ref"), str):
        name = found[1] if (found := _SHARED.match(reference)) else ""
        if name in inside or name not in shared:
            return {"anyOf": [_HOLE]}
        return _value(shared[name], shared, (*inside, name))
    if isinstance(parts := schema.get("allOf"), list):
        return _value(parts[0], shared, inside) if len(parts) == 1 else {"anyOf": [_HOLE]}
    for keyword in ("anyOf", "oneOf"):
        if isinstance(choices := schema.get(keyword), list):
            return {"anyOf": [_value(choice, shared, inside) for choice in choices]}
    kind = schema.get("type")
    if "enum" in schema or "const" in schema:
        exact: Schema = {key: schema[key] for key in ("enum", "const") if key in schema}
        return {"anyOf": [exact, _HOLE]}
    if isinstance(kind, list):
        return {"anyOf": [_value({**schema, "type": each}, shared, inside) for each in kind]}
    if kind == "string":
        longest = schema.get("maxLength")
        return _text(min(longest, LONGEST_TEXT) if isinstance(longest, int) else LONGEST_TEXT)
    if kind == "array":
        return {"anyOf": [_array(schema, shared, inside), _HOLE]}
    if kind == "object":
        # The members of an open object have no bound, so that it can only be an earlier result.
        return {"anyOf": [_object(schema, shared, inside), _HOLE]} if schema.get("properties") else {"anyOf": [_HOLE]}
    if kind in ("integer", "number"):
        return {"anyOf": [{"type": kind, **{key: schema[key] for key in _BOUNDS if key in schema}}, _HOLE]}
    return {"anyOf": [{"type": kind}, _HOLE]} if kind in ("boolean", "null") else _anything()


def _array(schema: Mapping[str, Json], shared: Mapping[str, Json], inside: tuple[str, ...]) -> Schema:
    least, most = schema.get("minItems"), schema.get("maxItems")
    fewest = least if isinstance(least, int) else 0
    limit = min(most, MOST_ITEMS) if isinstance(most, int) else MOST_ITEMS
    items = _value(schema.get("items", True), shared, inside)
    return {"type": "array", "items": items, "minItems": fewest, "maxItems": max(fewest, limit)}


def _closed(fields: Schema) -> Schema:
    return {"type": "object", "properties": fields, "required": [*fields], "additionalProperties": False}


def _text(longest: int) -> Schema:
    return {"type": "string", "maxLength": longest}


def _anything() -> Schema:
    return {"anyOf": [_text(LONGEST_TEXT), *({"type": kind} for kind in ("number", "boolean", "null"))]}
