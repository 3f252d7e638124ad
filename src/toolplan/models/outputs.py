"""How the wanted shape of a reply, or the tools that it may call, travel: natively, as a tool, or in words.

    native   the provider's own JSON-schema output; may be constrained decoding
    tool     a tool named `schema_name` that the model has to call with the shape as its arguments
    text     a sentence and the schema in the system prompt; works everywhere

`ways` lists what can work for a request at a provider, best first. The list is what is expected; whether a server
takes it shows only when it is asked, so `providers` walks down the list on a refusal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from toolplan.models.base import Message, ModelRequest, Output
from toolplan.models.facts import ProviderFacts
from toolplan.models.openapi_schema import openapi_schema
from toolplan.values import Json

if TYPE_CHECKING:
    from pydantic_ai.models import ModelRequestParameters

__all__ = ["is_spelled_out", "parameters", "state_schema", "ways"]

_ORDER: tuple[Output, ...] = ("native", "tool", "text")


def ways(request: ModelRequest, facts: ProviderFacts, profile: Mapping[str, Any]) -> tuple[Output, ...]:
    """Return the ways the request's schema, or its tools, can travel to a model with this profile, best first.

    The last is always "text".
    """
    native_tools = facts.tools == "native" and profile.get("supports_tools", True)
    if request.tools:
        return ("tool", "text") if native_tools else ("text",)
    schema = request.schema or {}
    if schema.get("type") != "object":
        return ("text",)
    best: Output = "native" if is_spelled_out(schema) else facts.open_schema
    possible = {
        "native": profile.get("supports_json_schema_output", False),
        "tool": native_tools,
        "text": True,
    }
    return tuple(way for way in _ORDER[_ORDER.index(best) :] if possible[way])


def is_spelled_out(schema: Json) -> bool:
    """Whether every object in `schema` names all its fields, requires them and allows no others.

    Only such a schema keeps its meaning in a provider's strict mode.
    """
    if isinstance(schema, list):
        return all(is_spelled_out(item) for item in schema)
    if not isinstance(schema, dict):
        return True
    if _allows_objects(schema):
        properties = schema.get("properties")
        required = schema.get("required", [])
        if schema.get("additionalProperties") is not False or not isinstance(properties, dict):
            return False
        if not isinstance(required, list) or set(properties) - {name for name in required if isinstance(name, str)}:
            return False
    for keyword, value in schema.items():
        if keyword in _MAPS_OF_SCHEMAS and isinstance(value, dict):
            if not all(is_spelled_out(item) for item in value.values()):
                return False
        elif keyword in _SCHEMAS and not is_spelled_out(value):
            return False
    return True


_MAPS_OF_SCHEMAS = frozenset({"properties", "$defs", "definitions", "patternProperties"})
_SCHEMAS = frozenset({"items", "prefixItems", "anyOf", "oneOf", "allOf", "not", "if", "then", "else"})
_SAYS_WHAT = frozenset({"type", "anyOf", "oneOf", "allOf", "$ref", "enum", "const"})


def _allows_objects(schema: dict[str, Json]) -> bool:
    kind = schema.get("type")
    if kind == "object" or (isinstance(kind, list) and "object" in kind):
        return True
    # A schema that says nothing about its kind allows anything, objects included.
    return "properties" in schema or not _SAYS_WHAT & set(schema)


def state_schema(request: ModelRequest) -> tuple[Message, ...]:
    """Return the request's messages with the wanted shape said in the system prompt, unless they say it already."""
    if request.schema is None or request.schema_stated:
        return request.messages
    messages = list(request.messages)
    last = max((index for index, message in enumerate(messages) if message.role == "system"), default=None)
    if last is None:
        last = 0
        messages.insert(0, Message("system", ""))
    before = messages[last].content
    sentence = _IN_CHINESE if _CHINESE.search(before or request.text) else _IN_ENGLISH
    said = sentence + json.dumps(request.schema, ensure_ascii=False, separators=(",", ":"))
    messages[last] = Message("system", f"{before}\n\n{said}" if before else said)
    return tuple(messages)


_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_IN_ENGLISH = "Reply with one JSON value that fits this JSON Schema, and with nothing else:\n"
_IN_CHINESE = "只回复一个符合以下 JSON Schema 的 JSON 值，不要有其他内容：\n"


def _say_what_is_free(schema: Json) -> Json:
    """Return `schema` with `additionalProperties: true` in each object that names no fields.

    It means the same, but grammar builders (llama.cpp, xgrammar) take an object without it for one that is always
    empty, and the OpenAI translation drives them there by adding an empty `properties`.
    """
    if isinstance(schema, list):
        return [_say_what_is_free(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    said: dict[str, Json] = {}
    for keyword, value in schema.items():
        if keyword in _MAPS_OF_SCHEMAS and isinstance(value, dict):
            said[keyword] = {name: _say_what_is_free(item) for name, item in value.items()}
        else:
            said[keyword] = _say_what_is_free(value) if keyword in _SCHEMAS else value
    kind = said.get("type")
    if (kind == "object" or (isinstance(kind, list) and "object" in kind)) and not (_NAMES_FIELDS & set(said)):
        said["additionalProperties"] = True
    return said


_NAMES_FIELDS = frozenset(
    {"properties", "patternProperties", "additionalProperties", "anyOf", "oneOf", "allOf", "$ref", "enum", "const"}
)


def _written(schema: dict[str, Json], facts: ProviderFacts) -> dict[str, Any]:
    """Return the schema as the provider reads schemas."""
    if facts.schema_dialect == "openapi":
        return openapi_schema(schema)
    return cast("dict[str, Any]", _say_what_is_free(schema))


def parameters(
    request: ModelRequest, way: Output, facts: ProviderFacts, *, forced: bool = True
) -> ModelRequestParameters:
    """Return what of the library's request carries the request's schema or tools in the given way.

    With `forced` False the model is left the choice whether it calls a tool that it should have to.
    """
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.output import OutputObjectDefinition
    from pydantic_ai.tools import ToolDefinition

    if way == "text":
        return ModelRequestParameters()
    if request.tools:
        offered = [
            ToolDefinition(
                name=spec.name,
                description=spec.description,
                parameters_json_schema=_written(spec.parameters, facts),
                # A provider that holds calls to their schemas anyway is not told to stop.
                strict=None if facts.validates_calls else spec.strict and is_spelled_out(spec.parameters),
            )
            for spec in request.tools
        ]
        text = request.tool_choice != "required" or not forced
        return ModelRequestParameters(function_tools=offered, allow_text_output=text)
    if request.schema is None:
        return ModelRequestParameters()
    # Only functions are declared in a dialect of their own.
    schema = (
        cast("dict[str, Any]", _say_what_is_free(request.schema))
        if way == "native"
        else (_written(request.schema, facts))
    )
    # Always said, never left open: the library takes None as leave to turn strictness on.
    strict = request.schema_strict and is_spelled_out(request.schema)
    if way == "native":
        return ModelRequestParameters(
            output_mode="native",
            output_object=OutputObjectDefinition(
                schema, name=request.schema_name, strict=strict or facts.native_is_strict
            ),
            # Some profiles repeat the schema in the prompt, which is waste where the prompt says it already.
            prompted_output_template=False if request.schema_stated else None,
        )
    tool = ToolDefinition(
        name=request.schema_name,
        description=str(request.schema.get("description") or "Submit the reply."),
        parameters_json_schema=schema,
        strict=strict,
        kind="output",
    )
    return ModelRequestParameters(output_mode="tool", output_tools=[tool], allow_text_output=not forced)
