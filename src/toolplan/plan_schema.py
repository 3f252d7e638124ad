"""The JSON Schema of the plan language for the tools at hand.

Tool names are constants and every tool's arguments are spelt out, each leaf also taking a template. Bodies recurse.
Every plan that the schema admits can be read; what a schema cannot say is left to the reader and the checker: whether
the text of an expression is one, whether a name is a Python keyword, whether names are defined.

With `strict=True` the schema keeps to what providers accept for strict structured output: every object closed, every
property required, what is optional nullable, no keyword beyond the common ones. The few open objects of the language
take another form there, which the reader knows too: `let` is a list of `{name, value}`, the schema in `returns` lists
its properties; an open object among a tool's arguments can only be an expression.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from keyword import kwlist
from typing import TypeAlias

from toolplan.tools import Tool
from toolplan.values import Json

__all__ = ["plan_schema"]

Schema: TypeAlias = "dict[str, Json]"

NAME = r"^[A-Za-z_\u4e00-\u9fff][A-Za-z0-9_\u4e00-\u9fff]*$"

_SHARED = re.compile(r"#/(?:\$defs|definitions)/([^/]+)\Z")
_PLAIN = ("description", "type", "enum", "const", "title")
"""Keywords that both forms keep as they are."""
_STRICT = (*_PLAIN, "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems")
"""Keywords that strict structured output accepts as they are."""


def plan_schema(tools: Iterable[Tool], strict: bool = False, *, goes_on: bool = False) -> Schema:
    """Return the JSON Schema of a plan over these tools; its root is an object.

    A plan that `goes_on` after others may have no steps, and its calls may say why they are made `again`.
    """
    return (_Strict(goes_on) if strict else _Open(goes_on)).plan(tools)


class _Open:
    """The schema in full."""

    def __init__(self, goes_on: bool) -> None:
        self.goes_on = goes_on
        self.definitions: dict[str, Json] = {}

    # --- the plan ----------------------------------------------------------------------------------------------------

    def plan(self, tools: Iterable[Tool]) -> Schema:
        self.define_parts()
        calls = [self.call(index, tool) for index, tool in enumerate(tools)]
        for inside in (False, True):
            self.define_steps(calls, inside)
        steps = _block(False) if self.goes_on else {**_block(False), "minItems": 1}
        root = self.object(
            {"thought": {"type": "string"}, "steps": steps, "answer": _ref("template")},
            ("steps",),
        )
        return {**root, "$defs": self.definitions}

    def define_parts(self) -> None:
        self.definitions |= {
            "expression": {
                "type": "string",
                "minLength": 1,
                "description": "a Python expression over the names of earlier results",
            },
            "template": {"type": "string", "description": "text; {expression} in it is replaced by its value"},
            "name": {"type": "string", "pattern": NAME, "not": {"enum": [*kwlist, "true", "false", "null"]}},
            "hole": {
                "anyOf": [{"type": "string", "pattern": r"\{"}, self.object({"$expr": _ref("expression")}, ("$expr",))]
            },
            "data": {
                "anyOf": [
                    {"type": ["string", "number", "boolean", "null"]},
                    {"type": "array", "items": _ref("data")},
                    {
                        "type": "object",
                        "additionalProperties": _ref("data"),
                        "propertyNames": {"not": {"pattern": r"^\$"}},
                    },
                ]
            },
            "operand": {"anyOf": [_ref("expression"), {"type": "array", "items": _ref("data")}]},
            "on_error": self.on_error(),
            "retry": self.object(
                {
                    "attempts": {"type": "integer", "minimum": 1, "maximum": 100},
                    "wait_seconds": {"type": "number", "minimum": 0, "maximum": 3600},
                },
                ("attempts",),
            ),
        }

    def on_error(self) -> Schema:
        return {
            "anyOf": [
                {"type": "string", "enum": ["fail", "skip", "replan"]},
                self.object({"value": self.stand_in()}, ("value",)),
                self.object({"do": _block(False)}, ("do",)),
            ]
        }

    def stand_in(self) -> Schema:
        return _ref("data")

    def returns(self) -> Schema:
        return {"type": "object", "description": "JSON Schema of the answer"}

    def let(self) -> Schema:
        return {
            "type": "object",
            "minProperties": 1,
            "propertyNames": _ref("name"),
            "additionalProperties": self.any_value(),
        }

    def any_value(self) -> Schema:
        """Return what a `let` may give a name."""
        return {"anyOf": [_ref("operand"), *({"type": kind} for kind in ("number", "boolean", "null"))]}

    # --- steps -------------------------------------------------------------------------------------------------------

    def call(self, index: int, tool: Tool) -> Json:
        """Define the call of a tool and return the reference to it."""
        properties: Schema = {
            "tool_name": self.constant(tool.name),
            "arguments": self.arguments(f"call{index}", tool.parameters),
            "result_variable": _ref("name"),
            "depends_on": {"type": "array", "items": _ref("name")},
            "on_error": _ref("on_error"),
            "retry": _ref("retry"),
            "timeout_seconds": {"type": "number", "exclusiveMinimum": 0, "maximum": 86400},
        }
        if self.goes_on:
            properties["again"] = {"type": "string", "description": "why a call that was made is made once more"}
        self.definitions[f"call{index}"] = self.object(properties, ("tool_name", "arguments"))
        return _ref(f"call{index}")

    def constant(self, value: str) -> Schema:
        return {"type": "string", "const": value}

    def define_steps(self, calls: list[Json], inside: bool) -> None:
        """Define what may stand in a list of steps, inside of a loop or outside."""
        block, expression, template, name = _block(inside), _ref("expression"), _ref("template"), _ref("name")
        loop: Schema = {"for_each": _ref("operand"), "as": name, "do": _block(True)}
        collecting: Schema = {**loop, "collect": _ref("operand"), "result_variable": name}
        kinds: list[Json] = [
            self.object({"if": expression, "then": block, "else": block}, ("if", "then")),
            self.object(loop, tuple(loop)),
            self.object(collecting, tuple(collecting)),
            self.object({"while": expression, "do": _block(True), "max_iterations": {"type": "integer", "minimum": 1}}),
            self.object({"parallel": {**block, "minItems": 1}}),
            self.object({"let": self.let()}),
            self.object({"try": block, "except": block, "as": name}, ("try", "except")),
            self.object({"ask_user": template, "result_variable": name}, ("ask_user",)),
            self.object(
                {
                    "ask_model": template,
                    "data": _ref("operand"),
                    "returns": self.returns(),
                    "result_variable": name,
                    "on_error": _ref("on_error"),
                },
                ("ask_model", "data", "returns"),
            ),
            self.object({"replan": template}),
            self.object({"answer": template}),
            self.object({"cannot": template, "missing": {"type": "array", "items": template}}, ("cannot",)),
        ]
        if inside:
            kinds += [self.object({word: {"type": "boolean", "enum": [True]}}) for word in ("break", "continue")]
        self.definitions["step_in_loop" if inside else "step"] = {"anyOf": [*calls, *kinds]}

    def object(self, properties: Schema, required: Iterable[str] | None = None) -> Schema:
        """Return a closed object; without `required` every property is."""
        needed: list[Json] = list(properties) if required is None else [*required]
        return {"type": "object", "properties": properties, "required": needed, "additionalProperties": False}

    # --- arguments ---------------------------------------------------------------------------------------------------

    def arguments(self, prefix: str, schema: Mapping[str, Json]) -> Schema:
        """Return a tool's parameters with templates allowed; shared definitions move to the root under `prefix`."""
        for keyword in ("$defs", "definitions"):
            shared = schema.get(keyword)
            if isinstance(shared, dict):
                for key, value in shared.items():
                    self.definitions[f"{prefix}_{key}"] = self.relaxed(value, prefix)
        return self.structure({"additionalProperties": False, **schema}, prefix)

    def relaxed(self, schema: Json, prefix: str) -> Schema:
        """Return the schema of an argument that may also be given by a template."""
        if not isinstance(schema, dict):
            return _ref("data")
        if isinstance(reference := schema.get("$ref"), str):
            shared = _SHARED.match(reference)
            return _ref(f"{prefix}_{shared[1]}" if shared else "data")
        kept = {key: schema[key] for key in ("description",) if key in schema}
        for keyword in ("anyOf", "oneOf"):
            if isinstance(choices := schema.get(keyword), list):
                return {**kept, "anyOf": [self.relaxed(choice, prefix) for choice in choices]}
        if isinstance(parts := schema.get("allOf"), list):
            return {**kept, **self.all_of(parts, prefix)}
        kind = schema.get("type")
        if isinstance(kind, list) and "enum" not in schema and "const" not in schema:
            return {**kept, "anyOf": [self.relaxed({**schema, "type": each}, prefix) for each in kind]}
        if kind == "string" and schema.keys() <= {"type", "description", "title", "default", "examples"}:
            return {**kept, "type": "string"}
        if kind == "object":
            return {**kept, "anyOf": [self.structure(schema, prefix), _ref("hole")]}
        if kind == "array" and "items" in schema:
            bounds = {key: schema[key] for key in ("minItems", "maxItems") if key in schema}
            items = self.relaxed(schema["items"], prefix)
            return {**kept, "anyOf": [{"type": "array", "items": items, **bounds}, _ref("hole")]}
        return {**kept, "anyOf": [self.leaf(schema), _ref("hole")]}

    def all_of(self, parts: list[Json], prefix: str) -> Schema:
        return {"allOf": [self.relaxed(part, prefix) for part in parts]}

    def leaf(self, schema: Schema) -> Schema:
        """Return what stands for a plain value; anything at all where the schema says nothing."""
        if not schema.keys() & {"type", "enum", "const"} or schema.get("type") == "array":
            return _ref("data") if schema.get("type") != "array" else {"type": "array", "items": _ref("data")}
        return {
            key: value for key, value in schema.items() if key not in ("description", "title", "default", "examples")
        }

    def structure(self, schema: Mapping[str, Json], prefix: str) -> Schema:
        """Return an object whose properties may each be given by a template."""
        given = schema.get("properties")
        properties: Schema = {}
        for key, value in given.items() if isinstance(given, dict) else ():
            properties[key] = self.relaxed(value, prefix)
        required = schema.get("required")
        needed = [key for key in required if key in properties] if isinstance(required, list) else []
        more = schema.get("additionalProperties", not properties)
        return {**self.object(properties, needed), "additionalProperties": self.additional(more, prefix)}

    def additional(self, more: Json, prefix: str) -> Json:
        if more is False:
            return False
        return _ref("data") if more is True else self.relaxed(more, prefix)


class _Strict(_Open):
    """The schema with nothing but what strict structured output accepts."""

    def define_parts(self) -> None:
        super().define_parts()
        hole: list[Json] = [_ref("template"), self.object({"$expr": _ref("expression")})]
        simple: list[Json] = [{"type": kind} for kind in ("number", "boolean", "null")]
        data: Schema = {"anyOf": [*hole, *simple, {"type": "array", "items": _ref("data")}]}
        self.definitions |= {
            "expression": {"type": "string", "description": "a Python expression over the names of earlier results"},
            "name": {"type": "string", "pattern": NAME},
            "hole": {"anyOf": hole},
            "data": data,
            "shape": self.object(
                {
                    "type": {"type": "string", "enum": ["string", "number", "integer", "boolean", "array", "object"]},
                    "nullable": {"type": "boolean"},
                    "description": {"type": "string"},
                    "enum": {"type": "array", "items": {"type": "string"}},
                    "items": _ref("shape"),
                    "properties": {
                        "type": "array",
                        "items": self.object({"name": {"type": "string"}, "schema": _ref("shape")}),
                    },
                },
                ("type",),
            ),
        }

    def arguments(self, prefix: str, schema: Mapping[str, Json]) -> Schema:
        return super().arguments(prefix, {**schema, "additionalProperties": False})

    def returns(self) -> Schema:
        return _ref("shape")

    def let(self) -> Schema:
        entry = self.object({"name": _ref("name"), "value": self.any_value()})
        return {"type": "array", "items": entry, "minItems": 1}

    def constant(self, value: str) -> Schema:
        return {"type": "string", "enum": [value]}

    def object(self, properties: Schema, required: Iterable[str] | None = None) -> Schema:
        needed = set(properties if required is None else required)
        closed: Schema = {
            key: value if key in needed else {"anyOf": [value, {"type": "null"}]} for key, value in properties.items()
        }
        return super().object(closed)

    def all_of(self, parts: list[Json], prefix: str) -> Schema:
        return self.relaxed(parts[0], prefix) if len(parts) == 1 else _ref("data")

    def leaf(self, schema: Schema) -> Schema:
        if schema.get("type") in ("array", None) and "enum" not in schema and "const" not in schema:
            return _ref("data")
        kept = {key: value for key, value in schema.items() if key in _STRICT and key not in ("description", "title")}
        if "const" in kept:
            kept["enum"] = [kept.pop("const")]
        return kept

    def structure(self, schema: Mapping[str, Json], prefix: str) -> Schema:
        if not schema.get("properties") and schema.get("additionalProperties", True) is not False:
            return self.object({"$expr": _ref("expression")})
        return super().structure({**schema, "additionalProperties": False}, prefix)


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _block(inside: bool) -> Schema:
    return {"type": "array", "items": _ref("step_in_loop" if inside else "step")}
