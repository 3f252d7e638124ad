import copy
import json

import pytest

from toolplan.models import Message, ModelRequest, ToolSpec
from toolplan.models.facts import PROVIDERS
from toolplan.models.outputs import is_spelled_out, parameters, state_schema, ways

NATIVE = {"supports_json_schema_output": True, "supports_tools": True}
CLOSED = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
OPEN = {"type": "object", "properties": {"a": {"type": "object"}}, "required": ["a"], "additionalProperties": False}


def obj(**fields):
    return {**CLOSED, "properties": fields, "required": list(fields)}


@pytest.mark.parametrize(
    "schema",
    [
        CLOSED,
        obj(),
        obj(inner=CLOSED, many={"type": "array", "items": CLOSED}),
        obj(either={"anyOf": [CLOSED, {"type": "null"}]}),
        obj(word={"enum": ["a", "b"]}),
        {**obj(node={"$ref": "#/$defs/Node"}), "$defs": {"Node": CLOSED}},
        # Field names that are also keywords of JSON Schema are names here.
        obj(properties={"type": "string"}, items={"type": "string"}, required={"type": "boolean"}),
    ],
)
def test_schemas_that_survive_strict_modes(schema):
    assert is_spelled_out(schema)


@pytest.mark.parametrize(
    "schema",
    [
        OPEN,
        {**CLOSED, "additionalProperties": True},
        {key: value for key, value in CLOSED.items() if key != "additionalProperties"},
        {**CLOSED, "required": []},
        obj(anything={}),
        obj(anything={"description": "whatever"}),
        obj(many={"type": "array", "items": {"type": "object"}}),
        obj(maybe={"type": ["object", "null"]}),
        obj(either={"oneOf": [{"type": "object"}, {"type": "string"}]}),
        obj(properties={"type": "object"}),
        {**obj(node={"$ref": "#/$defs/Node"}), "$defs": {"Node": {"type": "object"}}},
    ],
)
def test_schemas_that_strict_modes_would_empty(schema):
    assert not is_spelled_out(schema)


@pytest.mark.parametrize(
    ("provider", "schema", "profile", "expected"),
    [
        ("openai", OPEN, NATIVE, ("native", "tool", "text")),
        ("anthropic", OPEN, NATIVE, ("tool", "text")),
        ("anthropic", CLOSED, NATIVE, ("native", "tool", "text")),
        ("google", OPEN, NATIVE, ("text",)),
        ("google", CLOSED, NATIVE, ("native", "tool", "text")),
        ("deepseek", OPEN, {**NATIVE, "supports_json_schema_output": False}, ("tool", "text")),
        ("openai", OPEN, {**NATIVE, "supports_tools": False}, ("native", "text")),
        ("openai", {"type": "array"}, NATIVE, ("text",)),
        ("openai", {"anyOf": [CLOSED]}, NATIVE, ("text",)),
        ("openai", OPEN, {}, ("tool", "text")),
    ],
)
def test_ways_of_a_schema(provider, schema, profile, expected):
    assert ways(request(schema), PROVIDERS[provider], profile) == expected


def request(schema, *messages, **options):
    return ModelRequest(messages or (Message("user", "hi"),), schema=schema, **options)


def test_the_schema_is_stated_at_the_end_of_the_last_system_message():
    messages = state_schema(request(OPEN, Message("system", "A."), Message("system", "B."), Message("user", "hi")))
    assert [message.role for message in messages] == ["system", "system", "user"]
    assert messages[0].content == "A."
    head, _, schema = messages[1].content.rpartition("\n")
    assert head == "B.\n\nReply with one JSON value that fits this JSON Schema, and with nothing else:"
    assert json.loads(schema) == OPEN


def test_the_schema_makes_its_own_system_message():
    messages = state_schema(request(OPEN))
    assert [message.role for message in messages] == ["system", "user"]
    assert messages[0].content.startswith("Reply with")


@pytest.mark.parametrize(
    "messages", [(Message("user", "查天气"),), (Message("system", "你是助手"), Message("user", "x"))]
)
def test_the_schema_is_stated_in_chinese_to_chinese(messages):
    assert "只回复一个符合以下 JSON Schema 的 JSON 值" in state_schema(request(OPEN, *messages))[0].content


def test_nothing_is_stated_when_it_has_been_or_there_is_nothing():
    assert state_schema(request(OPEN, schema_stated=True)) == (Message("user", "hi"),)
    assert state_schema(request(None)) == (Message("user", "hi"),)


def test_parameters_leave_the_schema_alone_and_say_what_is_free():
    before = copy.deepcopy(OPEN)
    for way in ("native", "tool"):
        sent = parameters(request(OPEN), way, PROVIDERS["openai"])
        schema = sent.output_object.json_schema if way == "native" else sent.output_tools[0].parameters_json_schema
        assert schema["properties"]["a"] == {"type": "object", "additionalProperties": True}
        assert schema["additionalProperties"] is False
    assert before == OPEN


def test_strictness_is_always_decided_here():
    def strict(schema, provider="openai", **options):
        return parameters(request(schema, **options), "native", PROVIDERS[provider]).output_object.strict

    assert strict(CLOSED) is False
    assert strict(CLOSED, schema_strict=True) is True
    assert strict(OPEN, schema_strict=True) is False
    # Anthropic knows no other native output.
    assert strict(CLOSED, provider="anthropic") is True


def test_a_tool_must_be_called_and_is_described():
    sent = parameters(request({**OPEN, "description": "Submit the plan."}), "tool", PROVIDERS["openai"])
    assert sent.allow_text_output is False
    assert (sent.output_tools[0].name, sent.output_tools[0].description) == ("submit_plan", "Submit the plan.")
    named = parameters(request(OPEN, schema_name="give_answer"), "tool", PROVIDERS["openai"])
    assert named.output_tools[0].name == "give_answer"


SPEC = ToolSpec("look", "Look.", CLOSED)


@pytest.mark.parametrize(
    ("profile", "expected"),
    [(NATIVE, ("tool", "text")), ({"supports_tools": False}, ("text",)), ({}, ("tool", "text"))],
)
def test_ways_of_tools(profile, expected):
    assert ways(request(None, tools=(SPEC,)), PROVIDERS["openai"], profile) == expected


def test_tools_travel_with_the_choice_that_was_made():
    for choice, text in (("auto", True), ("none", True), ("required", False)):
        sent = parameters(request(None, tools=(SPEC,), tool_choice=choice), "tool", PROVIDERS["openai"])
        assert [tool.name for tool in sent.function_tools] == ["look"]
        assert sent.allow_text_output is text
    free = parameters(request(None, tools=(SPEC,), tool_choice="required"), "tool", PROVIDERS["openai"], forced=False)
    assert free.allow_text_output is True
