"""The JSON Schema of the plan language: what it admits can be read, what it must refuse it refuses."""

from __future__ import annotations

import datetime as dt
import enum
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import jsonschema_rs
import pytest
from pydantic import BaseModel, Field

from toolplan.parse import CannotPlan, parse
from toolplan.plan import Plan
from toolplan.plan_schema import plan_schema
from toolplan.tools import ToolSet, tool


class Cabin(enum.Enum):
    ECONOMY = "economy"
    BUSINESS = "business"


@dataclass
class Place:
    city: str
    country: Annotated[str, Field(min_length=2, max_length=2)]


class Node(BaseModel):
    name: str
    children: list[Node] = []


@tool
def search_flights(
    origin: Place, cabin: Cabin, day: dt.date, adults: Annotated[int, Field(ge=1, le=9)] = 1
) -> list[str]:
    """Search flights."""
    return []


@tool
def send(to: list[str], body: str | None = None, priority: Literal["low", "high"] = "low", **extra: str) -> None:
    """Send."""


@tool
def store(tree: Node, data: dict[str, float], anything: Any = None, either: int | list[str] = 0) -> None:
    """Store."""


@tool
def ping() -> bool:
    """Ping."""
    return True


TOOLS = ToolSet.of([search_flights, send, store, ping])
SCHEMAS = {strict: plan_schema(TOOLS, strict=strict) for strict in (False, True)}


@pytest.mark.parametrize("strict", [False, True])
def test_it_is_a_schema_with_an_object_at_its_root(strict: bool):
    schema = SCHEMAS[strict]
    jsonschema_rs.Draft202012Validator(schema)
    assert schema["type"] == "object"
    for part in schemas_in(schema):
        if "$ref" in part:
            assert part["$ref"].removeprefix("#/$defs/") in schema["$defs"]


def schemas_in(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield schema
    inner = [*schema.get("properties", {}).values(), *schema.get("$defs", {}).values(), *schema.get("anyOf", [])]
    inner += [schema[key] for key in ("items", "additionalProperties") if isinstance(schema.get(key), dict)]
    for part in inner:
        yield from schemas_in(part)


def test_the_strict_form_keeps_to_what_providers_accept():
    allowed = {
        *("type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "$ref", "$defs"),
        *("description", "pattern", "minimum", "maximum", "exclusiveMinimum", "minItems", "maxItems"),
    }
    for part in schemas_in(SCHEMAS[True]):
        assert part.keys() <= allowed, part
        if part.get("type") == "object":
            assert part["additionalProperties"] is False
            assert part["required"] == list(part["properties"])


GOOD = {
    "steps": [
        {
            "tool_name": "search_flights",
            "arguments": {"origin": {"city": "{me.city}", "country": "NO"}, "cabin": "economy", "day": "{date(now)}"},
            "result_variable": "flights",
        },
        {
            "for_each": "flights",
            "as": "f",
            "do": [
                {"if": "f", "then": [{"break": True}]},
                {"tool_name": "send", "arguments": {"to": ["{f}", "b@x.org"]}},
            ],
        },
        {
            "tool_name": "store",
            "arguments": {"tree": {"name": "x", "children": [{"name": "{y}"}]}, "data": {"$expr": "d"}},
        },
        {"tool_name": "ping", "arguments": {}, "on_error": {"value": False}, "depends_on": ["flights"]},
        {"let": {"n": "len(flights)", "flag": True, "list": ["{n}", 1]}},
        {"ask_model": "Which?", "data": "flights", "returns": {"type": "integer"}, "result_variable": "which"},
    ],
    "answer": "{n} flights",
}


def test_a_plan_with_every_sort_of_argument_is_admitted():
    validator = jsonschema_rs.Draft202012Validator(SCHEMAS[False])
    assert list(validator.iter_errors(GOOD)) == []
    assert isinstance(parse(GOOD), Plan)


@pytest.mark.parametrize(
    "step",
    [
        {"tool_name": "unknown", "arguments": {}},
        {"tool_name": "ping", "arguments": {"x": 1}},
        {"tool_name": "search_flights", "arguments": {"cabin": "economy", "day": "2026-01-01"}},
        {
            "tool_name": "search_flights",
            "arguments": {"origin": {"city": "Oslo", "country": "Norway"}, "cabin": "economy", "day": "2026-01-01"},
        },
        {"tool_name": "ping"},
        {"break": True},
        {"while": "x", "do": []},
        {"if": "x"},
        {"let": {}},
        {"let": {"a-b": "1"}},
        {"let": {"class": "1"}},
        {"tool_name": "ping", "arguments": {}, "if": "x"},
    ],
)
def test_what_is_not_a_plan_for_these_tools_is_refused(step: dict[str, Any]):
    assert not jsonschema_rs.Draft202012Validator(SCHEMAS[False]).is_valid({"steps": [step]})


def test_no_plan_is_empty():
    for schema in SCHEMAS.values():
        validator = jsonschema_rs.Draft202012Validator(schema)
        assert not validator.is_valid({"thought": None, "steps": [], "answer": None})


def test_without_tools_there_is_still_a_language():
    for strict in (False, True):
        validator = jsonschema_rs.Draft202012Validator(plan_schema([], strict=strict))
        optional = {"thought": None, "answer": None} if strict else {}
        assert validator.is_valid({"steps": [{"answer": "hi"}], **optional})


class Generator:
    """Random values that a schema of ours admits; what a schema cannot say (expressions, names) is filled in."""

    def __init__(self, schema: dict[str, Any], seed: int) -> None:
        self.definitions = schema["$defs"]
        self.random = random.Random(seed)

    def value(self, schema: Any, depth: int = 0) -> Any:
        pick = self.random
        if "$ref" in schema:
            name = schema["$ref"].removeprefix("#/$defs/")
            if name == "expression":
                return pick.choice(["a", "a.b + 1", "[x for x in a]", "{'k': a}", "len(a) > 2", "'text'", "{a}"])
            if name == "name":
                return pick.choice(["a", "b_1", "天气"])
            if name == "template":
                return pick.choice(["", "text", "{a}", "{a.b} and {", "${a}", "#E1", '{"json": 1}'])
            return self.value(self.definitions[name], depth)
        if "anyOf" in schema:
            choices = schema["anyOf"]
            if depth > 12:  # prefer what does not recurse
                choices = [
                    c for c in choices if "step" not in json.dumps(c) and "array" not in json.dumps(c)
                ] or choices
            return self.value(pick.choice(choices), depth + 1)
        if "allOf" in schema:
            return self.value(schema["allOf"][0], depth + 1)
        if "enum" in schema:
            return pick.choice(schema["enum"])
        if "const" in schema:
            return schema["const"]
        kind = schema.get("type")
        if isinstance(kind, list):
            kind = pick.choice(kind)
        if kind == "object":
            return self.object(schema, depth)
        if kind == "array":
            least = schema.get("minItems", 0)
            count = least if depth > 8 else max(least, pick.randint(0, 2))
            return [self.value(schema["items"], depth + 1) for _ in range(min(count, schema.get("maxItems", 9)))]
        if kind == "string":
            return pick.choice(["xx", "{a}", "NO", "a b", "2026-01-01"])
        if kind == "integer":
            return pick.randint(max(1, schema.get("minimum", 1)), min(9, schema.get("maximum", 9)))
        if kind == "number":
            return pick.choice([1, 2.5])
        return {"boolean": pick.choice([True, False]), "null": None}[kind]

    def object(self, schema: Any, depth: int) -> dict[str, Any]:
        needed = schema.get("required", [])
        value = {
            key: self.value(inner, depth + 1)
            for key, inner in schema.get("properties", {}).items()
            if key in needed or self.random.random() < 0.5
        }
        more = schema.get("additionalProperties", False)
        names = ["a", "b_1"] if "propertyNames" in schema else ["k", "a b"]
        if isinstance(more, dict) and (schema.get("minProperties") or self.random.random() < 0.5):
            value |= {name: self.value(more, depth + 1) for name in names[: self.random.randint(1, 2)]}
        return value


@pytest.mark.parametrize("strict", [False, True])
def test_every_plan_it_admits_can_be_read(strict: bool):
    schema = SCHEMAS[strict]
    validator = jsonschema_rs.Draft202012Validator(schema)
    admitted = 0
    for seed in range(1500):
        plan = Generator(schema, seed).value(schema)
        if not validator.is_valid(plan):
            continue
        admitted += 1
        assert isinstance(parse(json.dumps(plan)), Plan | CannotPlan), seed
    assert admitted > 1000


def test_the_strict_forms_mean_the_same():
    plan = parse(
        {
            "thought": None,
            "steps": [
                {"let": [{"name": "n", "value": "1 + 1"}]},
                {
                    "ask_model": "Which?",
                    "data": "n",
                    "returns": {
                        "type": "object",
                        "nullable": None,
                        "description": None,
                        "enum": None,
                        "items": None,
                        "properties": [
                            {
                                "name": "iban",
                                "schema": {
                                    "type": "string",
                                    "nullable": True,
                                    "description": "of the payee",
                                    "enum": None,
                                    "items": None,
                                    "properties": None,
                                },
                            }
                        ],
                    },
                    "result_variable": "r",
                    "on_error": None,
                },
            ],
            "answer": None,
        }
    )
    assert isinstance(plan, Plan)
    assert plan.steps[1].returns == {  # type: ignore[union-attr]
        "type": "object",
        "properties": {"iban": {"type": ["string", "null"], "description": "of the payee"}},
        "required": ["iban"],
    }
