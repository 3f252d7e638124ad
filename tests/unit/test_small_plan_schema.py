"""The schema of short plans: bounded in every direction, and whatever it admits can be read."""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import jsonschema_rs
import pytest
from pydantic import BaseModel, Field

from toolplan.parse import parse
from toolplan.plan import Plan
from toolplan.small_plan_schema import LONGEST_TEXT, small_plan_schema
from toolplan.tools import Tool, ToolSet, tool


@dataclass
class Place:
    city: str
    country: Annotated[str, Field(min_length=2, max_length=2)]


class Node(BaseModel):
    name: str
    children: list[Node] = []


@tool
def search(place: Place, cabin: Literal["eco", "biz"], n: Annotated[int, Field(ge=1, le=9)] = 1, note: str = "") -> int:
    """Search."""
    return 1


@tool
def send(to: Annotated[list[str], Field(min_length=1)], body: str | None = None, urgent: bool = False) -> None:
    """Send."""


@tool
def store(tree: Node, data: dict[str, float], anything: Any = None, either: int | list[str] = 0) -> None:
    """Store."""


@tool
def ping() -> bool:
    """Ping."""
    return True


TOOLS = ToolSet.of([search, send, store, ping])
SCHEMA = small_plan_schema(TOOLS)
VALIDATOR = jsonschema_rs.Draft202012Validator(SCHEMA)


def parts_of(schema: Any) -> list[dict[str, Any]]:
    if isinstance(schema, list):
        return [part for each in schema for part in parts_of(each)]
    if not isinstance(schema, dict):
        return []
    inner = [part for key, value in schema.items() if key not in ("enum", "const") for part in parts_of(value)]
    return [schema, *inner]


def test_everything_in_it_is_bounded():
    for part in parts_of(SCHEMA):
        if part.get("type") == "array":
            assert part["maxItems"] <= 4
        if part.get("type") == "object" and "required" in part:
            assert part["additionalProperties"] is False
        if part.get("type") == "string" and "const" not in part:
            assert part.get("maxLength", 0) <= LONGEST_TEXT
            assert "maxLength" in part or re.fullmatch(r"\^.*\$", part["pattern"])
            assert "maxLength" not in part or "pattern" not in part


def test_it_keeps_to_what_grammars_can_say():
    keywords = {key for part in parts_of(SCHEMA) for key in part if "type" in part or "anyOf" in part or "$ref" in part}
    names = {
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "anyOf",
        "enum",
        "const",
        "$ref",
        "$defs",
    }
    bounds = {"minItems", "maxItems", "maxLength", "pattern", "minimum", "maximum", "description"}
    assert keywords <= names | bounds
    for part in parts_of(SCHEMA):
        if "$ref" in part:
            assert part["$ref"].removeprefix("#/$defs/") in SCHEMA["$defs"]


def test_nothing_in_it_refers_to_itself():
    assert set(SCHEMA["$defs"]) == {"name", "hole"}
    assert not any("$ref" in part for part in parts_of(SCHEMA["$defs"]))


@pytest.mark.parametrize(
    "plan",
    [
        {"steps": [], "answer": ""},
        {"steps": [{"tool_name": "ping", "arguments": {}}], "answer": ""},
        {"steps": [{"tool_name": "nothing", "arguments": {}, "result_variable": "a_1"}], "answer": ""},
        {"steps": [{"tool_name": "ping", "arguments": {}, "result_variable": "class"}], "answer": ""},
        {"steps": [{"tool_name": "ping", "arguments": {}, "result_variable": "a_1"}] * 9, "answer": ""},
        {"steps": [{"answer": "x"}], "answer": ""},
    ],
)
def test_what_is_no_short_plan_is_refused(plan: dict[str, Any]):
    assert not VALIDATOR.is_valid(plan)


def test_results_may_be_used_in_later_calls():
    plan = {
        "steps": [
            {"tool_name": "ping", "arguments": {}, "result_variable": "pong_1"},
            {
                "tool_name": "store",
                "arguments": {"tree": "{pong_1.tree}", "data": "{pong_1}", "anything": "x {pong_1}"},
                "result_variable": "kept_2",
            },
        ],
        "answer": "{kept_2}",
    }
    assert VALIDATOR.is_valid(plan)
    assert isinstance(parse(plan, tools=TOOLS), Plan)


def test_what_goes_on_after_another_plan_may_have_no_steps():
    schema = small_plan_schema(TOOLS, goes_on=True)
    assert jsonschema_rs.is_valid(schema, {"steps": [], "answer": "done"})


def test_schemas_from_elsewhere_are_bounded_too():
    given = {
        "type": "object",
        "properties": {
            "a": {"$ref": "#/$defs/A"},
            "b": {"allOf": [{"type": "string"}, {"minLength": 2}]},
            "c": {"type": ["integer", "null"]},
            "d": {"type": "object", "additionalProperties": True},
            "e": True,
            "f": {"type": "string", "pattern": "[a-z]"},
            "g": {"oneOf": [{"const": 1}, {"enum": ["x", None]}]},
            "h": {"type": "array"},
            "i": {"$ref": "#/$defs/missing"},
        },
        "required": ["a"],
        "$defs": {"A": {"type": "array", "items": {"$ref": "#/$defs/A"}, "maxItems": 99}},
    }
    given["properties"].pop("i")
    odd = Tool.from_schema("odd", "Odd.", given, lambda **_: None)
    schema = small_plan_schema([odd])
    for part in parts_of(schema):
        if part.get("type") == "array":
            assert part["maxItems"] <= 4
    arguments = {"a": ["{x_1}"], "b": "{x_1}", "c": None, "d": "{x_1.y}", "e": 5, "g": 1, "h": [1, "x"]}
    step = {"tool_name": "odd", "arguments": arguments, "result_variable": "r_1"}
    assert jsonschema_rs.is_valid(schema, {"steps": [step], "answer": ""})


class Writer:
    """Writes what a model under the grammar might: any text within the bounds, any choice."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def value(self, schema: Any) -> Any:
        pick = self.random
        if "$ref" in schema:
            return self.value(SCHEMA["$defs"][schema["$ref"].removeprefix("#/$defs/")])
        if "anyOf" in schema:
            return self.value(pick.choice(schema["anyOf"]))
        for keyword in ("const", "enum"):
            if keyword in schema:
                return schema["const"] if keyword == "const" else pick.choice(schema["enum"])
        kind = schema["type"]
        if kind == "object":
            wanted = [key for key in schema["properties"] if key in schema["required"] or pick.random() < 0.5]
            return {key: self.value(schema["properties"][key]) for key in wanted}
        if kind == "array":
            return [
                self.value(schema["items"]) for _ in range(pick.randint(schema.get("minItems", 0), schema["maxItems"]))
            ]
        if kind == "string":
            return self.text(schema)
        numbers = {"integer": pick.randint(1, 9), "number": pick.choice([0, -1.5, 1e300])}
        return {**numbers, "boolean": pick.random() < 0.5, "null": None}[kind]

    def text(self, schema: Any) -> str:
        pick = self.random
        if "pattern" in schema:
            texts = ["a_1", "result_x9", "and_or", "{a_1}", "{a_1.if}", "{is_not.x_y}"]
            return pick.choice([text for text in texts if re.search(schema["pattern"], text)])
        pieces = [
            "{",
            "}",
            "{{",
            "a_1",
            "if",
            ".",
            "[",
            "]",
            '"',
            "'",
            "\\",
            "\n",
            "$",
            "#E1",
            "<tool_call>",
            "北京",
            "\u2028",
        ]
        return "".join(pick.choice([*pieces, chr(pick.randint(32, 0x2FFF))]) for _ in range(pick.randint(0, 12)))


def test_every_plan_it_admits_can_be_read():
    admitted = 0
    for seed in range(2000):
        plan = Writer(seed).value(SCHEMA)
        if VALIDATOR.is_valid(plan):
            admitted += 1
            text = json.dumps(plan, ensure_ascii=seed % 2 == 0)
            read = parse(text, tools=TOOLS)
            assert isinstance(read, Plan), seed
            assert len(read.steps) >= len(plan["steps"])
    assert admitted > 500
