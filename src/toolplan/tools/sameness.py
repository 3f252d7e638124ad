"""When two calls are the same call: what their tool would get is the same, however the arguments are written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from toolplan.known import Known, MadeCall, fingerprint
from toolplan.tools.tool import Tool
from toolplan.tools.toolset import ToolSet
from toolplan.values import Json

__all__ = ["call_key", "completed", "effects_of"]

MAX_DEPTH = 20


def call_key(tool: Tool, arguments: Mapping[str, Json]) -> tuple[str, str]:
    """Return what two calls of a tool have in common when they are the same: `fingerprint` of all it would get."""
    return fingerprint(tool.name, completed(tool, arguments))


def effects_of(known: Known, tools: ToolSet) -> dict[tuple[str, str], MadeCall]:
    """Return the effects that have happened by their `call_key`; of equal ones the last."""
    return {call_key(tools[call.tool], call.arguments): call for call in known.made if call.tool in tools}


def completed(tool: Tool, arguments: Mapping[str, Json]) -> dict[str, Json]:
    """Return the arguments in the one form in which equal ones are equal.

    The defaults of the schema are filled in, in objects inside of arguments too, and an optional field that is null
    is left out, as if it had not been given.
    """
    schema = tool.parameters
    definitions = cast("dict[str, Any]", schema.get("$defs") or schema.get("definitions") or {})
    return cast("dict[str, Json]", _complete(dict(tool.normalise(arguments)), schema, definitions, 0))


def _complete(value: Json, schema: object, definitions: Mapping[str, Any], depth: int) -> Json:
    found = _object_or_list(schema, definitions, value)
    if found is None or depth > MAX_DEPTH:
        return value
    if isinstance(value, list):
        return [_complete(item, found.get("items"), definitions, depth + 1) for item in value]
    if not isinstance(value, dict):
        return value
    properties = cast("dict[str, Any]", found.get("properties") or {})
    required = cast("list[str]", found.get("required") or [])
    defaults = {
        name: cast(Json, shape["default"])
        for name, shape in properties.items()
        if isinstance(shape, dict) and "default" in shape
    }
    return {
        name: _complete(item, properties.get(name), definitions, depth + 1)
        for name, item in {**defaults, **value}.items()
        if item is not None or name in required
    }


def _object_or_list(
    schema: object, definitions: Mapping[str, Any], value: Json, depth: int = 0
) -> dict[str, Any] | None:
    """Return the one schema, of those that may describe the value, that has fields or elements; None when not sure."""
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return None
    said = cast("dict[str, Any]", schema)
    kind, inside = ("object", "properties") if isinstance(value, dict) else ("array", "items")
    for _ in range(MAX_DEPTH):
        reference = said.get("$ref")
        if not isinstance(reference, str):
            break
        said = cast("dict[str, Any]", definitions.get(reference.rsplit("/", 1)[-1]) or {})
    if inside in said or said.get("type") == kind:
        return said
    branches = cast("list[object]", said.get("anyOf") or said.get("oneOf") or said.get("allOf") or [])
    found = [_object_or_list(branch, definitions, value, depth + 1) for branch in branches]
    fitting = [each for each in found if each is not None]
    return fitting[0] if len(fitting) == 1 else None
