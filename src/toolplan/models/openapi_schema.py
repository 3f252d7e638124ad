"""A JSON Schema in the subset of OpenAPI's that Gemini's function declarations take.

One keyword that is not in the subset fails the whole request, and one that is left out where its meaning mattered makes
the model guess. So each is said in another way where there is one, and in the description where there is none; what
the subset cannot enforce is still checked against the full schema before anything runs.

    const                     an enum with one value               exclusiveMinimum     minimum, one more for integers
    type: [T, null], anyOf    T, nullable                          $ref                 what it refers to, in place
    oneOf                     anyOf                                allOf                merged
    an enum of no texts       the type, with the values in words   any other keyword    left out

An object without stated fields is refused, or always filled with nothing, so it is asked for as JSON text, which is
read back toward the full schema like any other argument. References that lead back to themselves end at the third level
in such an object.
"""

from __future__ import annotations

import json
from typing import cast

from toolplan.values import Json

__all__ = ["openapi_schema"]

DEPTH = 3
"""How often a definition is written out inside of itself."""

_WORDS = ("title", "description")
_KEPT = (*_WORDS, "format", "pattern", "default")
_BOUNDS = ("minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties")
_FORMATS = frozenset({"enum", "date-time", "int32", "int64", "float", "double"})


def openapi_schema(schema: dict[str, Json]) -> dict[str, Json]:
    """Return `schema` in the subset: every node has one type, no references, no keyword that Gemini does not know."""
    shared: dict[str, Json] = {}
    for keyword in ("$defs", "definitions"):
        definitions = schema.get(keyword)
        if isinstance(definitions, dict):
            shared |= {f"#/{keyword}/{name}": value for name, value in definitions.items()}
    written = _Writer(shared)
    resolved, inside = written.resolved(schema, ())
    if not resolved.get("properties"):
        return {"type": "object", "properties": {}}
    return written.node(resolved, inside)


class _Writer:
    def __init__(self, shared: dict[str, Json]) -> None:
        self._shared = shared

    def node(self, given: Json, inside: tuple[str, ...]) -> dict[str, Json]:
        schema, inside = self.resolved(given, inside)
        kinds = schema.get("type")
        if isinstance(kinds, list):
            each: list[Json] = [{**schema, "type": kind} for kind in kinds]
            return self._choice({key: schema[key] for key in _WORDS if key in schema}, each, inside)
        choices = schema.get("anyOf") or schema.get("oneOf")
        if isinstance(choices, list):
            return self._choice(_without(schema, "anyOf", "oneOf"), choices, inside)
        return self._plain(schema, inside)

    def resolved(self, given: Json, inside: tuple[str, ...]) -> tuple[dict[str, Json], tuple[str, ...]]:
        """Return a schema without references and parts at its top, and the definitions that it is now inside of."""
        schema = given if isinstance(given, dict) else {}
        while isinstance(reference := schema.get("$ref"), str):
            target = self._shared.get(reference)
            if not isinstance(target, dict) or inside.count(reference) >= DEPTH:
                return {**_without(schema, "$ref"), "type": "object"}, inside
            schema = {**target, **_without(schema, "$ref")}
            inside = (*inside, reference)
        parts = schema.get("allOf")
        if isinstance(parts, list):
            merged: dict[str, Json] = {}
            for part in (*parts, _without(schema, "allOf")):
                resolved, inside = self.resolved(part, inside)
                merged = _merged(merged, resolved)
            schema = merged
        return schema, inside

    def _choice(self, schema: dict[str, Json], choices: list[Json], inside: tuple[str, ...]) -> dict[str, Json]:
        real = [choice for choice in choices if not _is_null(choice)]
        written = [self.node(_merged(schema, choice), inside) for choice in real]
        written = [node for index, node in enumerate(written) if node not in written[:index]]
        outer = {key: schema[key] for key in _WORDS if key in schema}
        nullable: dict[str, Json] = {"nullable": True} if len(real) < len(choices) else {}
        if not written:
            return {**outer, "type": "string", "nullable": True}
        if len(written) == 1:
            return {**written[0], **outer, **nullable}
        # The subset wants a type beside the choices as well; the commonest is the best that can be said.
        types = [str(node.get("type")) for node in written]
        return {**outer, "type": max(types, key=types.count), "anyOf": cast("list[Json]", written), **nullable}

    def _plain(self, schema: dict[str, Json], inside: tuple[str, ...]) -> dict[str, Json]:
        kind = _kind(schema)
        node: dict[str, Json] = {"type": kind, **{key: schema[key] for key in _KEPT if key in schema}}
        if kind == "string" and node.get("format") not in _FORMATS and "format" in node:
            node = _said(_without(node, "format"), f"format: {node['format']}")
        values = [schema["const"]] if "const" in schema else schema.get("enum")
        if isinstance(values, list):
            node = self._values(node, values)
        for keyword in _BOUNDS:
            if keyword in schema:
                node[keyword] = schema[keyword]
        for keyword, bound, step in (("exclusiveMinimum", "minimum", 1), ("exclusiveMaximum", "maximum", -1)):
            value = schema.get(keyword)
            if not isinstance(value, int | float) or isinstance(value, bool):
                continue
            if kind == "integer":
                node[bound] = int(value) + step if float(value).is_integer() else value
            else:
                node = _said({**node, bound: value}, f"{'more' if step > 0 else 'less'} than {value}")
        if kind == "array":
            node["items"] = self.node(schema.get("items", {}), inside)
        if kind == "object":
            given = schema.get("properties")
            if not isinstance(given, dict) or not given:
                return _as_json_text(schema)
            node["properties"] = {name: self.node(value, inside) for name, value in given.items()}
            required = schema.get("required")
            if isinstance(required, list) and required:
                node["required"] = [name for name in required if name in given]
        return node

    @staticmethod
    def _values(node: dict[str, Json], values: list[Json]) -> dict[str, Json]:
        texts = [value for value in values if isinstance(value, str)]
        if None in values:
            node = {**node, "nullable": True}
        if node["type"] == "string" and texts:
            return {**node, "enum": cast("list[Json]", texts)}
        said = ", ".join(json.dumps(value, ensure_ascii=False) for value in values if value is not None)
        return _said(node, f"one of: {said}" if len(values) > 1 else f"always {said}") if said else node


def _kind(schema: dict[str, Json]) -> str:
    kind = schema.get("type")
    if isinstance(kind, str) and kind != "null":
        return kind
    if "properties" in schema or "additionalProperties" in schema:
        return "object"
    if "items" in schema:
        return "array"
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    first = next((value for value in values if value is not None), "") if isinstance(values, list) else ""
    return _KINDS.get(type(first), "string")


_KINDS: dict[type, str] = {bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}


def _as_json_text(schema: dict[str, Json]) -> dict[str, Json]:
    words = "a JSON object, written as text"
    more = schema.get("additionalProperties")
    if isinstance(more, dict) and more:
        words += f"; each of its values fits {json.dumps(more, ensure_ascii=False)}"
    return _said({"type": "string", **{key: schema[key] for key in _WORDS if key in schema}}, words)


def _is_null(schema: Json) -> bool:
    return isinstance(schema, dict) and (schema.get("type") == "null" or schema.get("enum") == [None])


def _without(schema: dict[str, Json], *keys: str) -> dict[str, Json]:
    return {key: value for key, value in schema.items() if key not in keys}


def _merged(first: dict[str, Json], second: Json) -> dict[str, Json]:
    """Return both schemas in one: properties and required names of both, of everything else the second's."""
    if not isinstance(second, dict):
        return first
    merged = {**first, **second}
    ours, theirs = first.get("properties"), second.get("properties")
    if isinstance(ours, dict) and isinstance(theirs, dict):
        merged["properties"] = {**ours, **theirs}
    ours, theirs = first.get("required"), second.get("required")
    if isinstance(ours, list) and isinstance(theirs, list):
        merged["required"] = [*ours, *(name for name in theirs if name not in ours)]
    return merged


def _said(node: dict[str, Json], words: str) -> dict[str, Json]:
    before = node.get("description")
    return {**node, "description": f"{before} ({words})" if before else words}
