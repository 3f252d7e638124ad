"""Calls: tools that exist and are available, names of arguments, constants against schemas."""

from __future__ import annotations

import json
from typing import Any

import pytest

from plan_tools import TOOLS, codes, diagnostics, only
from toolplan.tools import Tool, ToolSet


def call(tool: str, **arguments: Any) -> str:
    return json.dumps([{"tool_name": tool, "arguments": arguments}])


def of(parameters: dict[str, Any], *required: str) -> ToolSet:
    schema = {"type": "object", "properties": parameters, "required": list(required)}
    return ToolSet([Tool.from_schema("fit", "", schema, lambda **_: None)])


def test_an_unknown_tool_with_a_near_name() -> None:
    assert only(call("get_wether", city="Oslo")).help == "did you mean `get_weather`?"


def test_an_unknown_tool_with_no_near_name_lists_some() -> None:
    found = only(call("teleport", to="Oslo"))
    assert found.help is None
    assert "`get_weather`" in found.notes[0]


def test_an_unknown_tool_without_any_tools() -> None:
    assert only(call("teleport", to="Oslo"), ToolSet([])).notes == ("there are no tools",)


def test_what_an_unknown_tool_returns_is_not_judged() -> None:
    text = '[{"tool_name": "teleport", "arguments": {}, "result_variable": "t"}, {"answer": "{t.a.b[0]}"}]'
    assert codes(text) == ["TP201"]


def test_an_unavailable_tool_says_why_once() -> None:
    text = json.dumps([{"tool_name": "translate", "arguments": {"text": each}} for each in ("a", "b")])
    assert only(text).notes == ("the environment variable `TOOLPLAN_TESTS_NEVER_SET_THIS` is not set",)


def test_an_unknown_argument_and_the_missing_one_are_one_mistake() -> None:
    found = only(call("send_email", recipient="a@example.org", subject="s", body="b"))
    assert (found.code, found.help) == (
        "TP302",
        "did you mean `to`? it is required and missing from this call",
    )


def test_an_unknown_argument_beside_two_missing_ones() -> None:
    found = diagnostics(call("send_email", subjekt="s", to="a@example.org"))
    assert [(each.code, each.help) for each in found] == [
        ("TP303", "give `body`"),
        ("TP302", "did you mean `subject`? it is required and missing from this call"),
    ]


def test_an_unknown_argument_near_an_optional_one() -> None:
    assert only(call("get_weather", city="Oslo", dat="2026-03-18")).help == "did you mean `date`?"


def test_a_superfluous_argument() -> None:
    assert only(call("get_weather", city="Oslo", colour="red")).help == "leave it out"


def test_a_tool_that_takes_anything_takes_any_name() -> None:
    schema = {"type": "object", "properties": {}, "additionalProperties": True}
    assert codes(call("fit", anything=1), ToolSet([Tool.from_schema("fit", "", schema, lambda **_: None)])) == []


def test_missing_arguments_are_told_together() -> None:
    found = only(call("send_email", to="a@example.org"))
    assert found.message == "`send_email` needs `subject` and `body`, which this call does not give"


# --- constants ------------------------------------------------------------------------------------------------------


def test_a_value_that_is_not_allowed_names_step_argument_value_and_what_is_allowed() -> None:
    tools = ToolSet(
        [
            Tool.from_schema(
                "load", "", {"type": "object", "properties": {"path": {"type": "string"}}}, lambda **_: None
            ),
            *of({"method": {"type": "string", "enum": ["similarity", "regression"]}}, "method"),
        ]
    )
    found = only(
        """[{"tool_name": "load", "arguments": {"path": "a.csv"}, "result_variable": "d"},
        {"tool_name": "fit", "arguments": {"method": "bayes"}}]""",
        tools,
    )
    assert found.message == '`method` of `fit` must be "similarity" or "regression", but is "bayes"'
    assert found.notes[0].startswith("step `s2` calls fit(method: ")
    assert found.place.json_path() == "$[1].arguments.method"


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        ({"type": "integer"}, "5", "must be a whole number, but is '5' (text)"),
        ({"type": "integer", "minimum": 1}, 0, "must be at least 1, but is 0 (number)"),
        ({"type": "string", "pattern": "^[A-Z]+$"}, "abc", "must be text of the form `^[A-Z]+$`, but is 'abc' (text)"),
        ({"type": "array", "items": {"type": "string"}}, "a", "must be a list, but is 'a' (text)"),
        ({"type": "string"}, None, "must be text, but is null"),
        ({"type": "boolean"}, 1, "must be true or false, but is 1 (number)"),
        ({"type": ["string", "null"]}, 5, "must be text or null, but is 5 (number)"),
    ],
)
def test_a_constant_is_judged_by_the_schema(schema: dict[str, Any], value: Any, message: str) -> None:
    assert only(call("fit", x=value), of({"x": schema}, "x")).message == f"`x` of `fit` {message}"


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer"}, 5),
        ({"type": "integer"}, 5.0),
        ({"type": "number"}, 5),
        ({"type": "string", "format": "date"}, "2026-03-18"),
        ({"type": "array", "items": {"type": "string"}}, []),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "x"),
        ({}, {"anything": [1, None]}),
    ],
)
def test_a_constant_that_fits(schema: dict[str, Any], value: Any) -> None:
    assert codes(call("fit", x=value), of({"x": schema}, "x")) == []


def test_null_for_an_optional_argument_means_not_given() -> None:
    assert codes(call("fit", x=None), of({"x": {"type": "integer"}})) == []


def test_the_place_inside_a_constant_is_told() -> None:
    tools = of({"people": {"type": "array", "items": {"type": "object", "properties": {"age": {"type": "integer"}}}}})
    found = only(call("fit", people=[{"age": 1}, {"age": "two"}]), tools)
    assert found.message == "`people[1].age` of `fit` must be a whole number, but is 'two' (text)"
    assert found.place.json_path() == "$[0].arguments.people[1].age"


def test_a_missing_and_an_unknown_field_inside_a_constant() -> None:
    person = {"type": "object", "properties": {"name": {}}, "required": ["name"], "additionalProperties": False}
    found = diagnostics(call("fit", person={"nam": "Kim"}), of({"person": person}, "person"))
    assert {each.message for each in found} == {
        "`person` of `fit` has no field `nam`",
        "`person` of `fit` needs a field `name`, which is not there",
    }


def test_constants_beside_references_are_judged_too() -> None:
    text = """[{"tool_name": "find_customer", "arguments": {"name": "Kim"}, "result_variable": "c"},
    {"tool_name": "list_orders", "arguments": {"customer_id": "{c.id}", "status": "cancelled"}}]"""
    assert codes(text) == ["TP301"]


def test_all_problems_of_all_calls_come_at_once_in_source_order() -> None:
    text = json.dumps(
        [
            {"tool_name": "get_wether", "arguments": {"city": "Oslo"}},
            {"tool_name": "pay", "arguments": {"account": "a", "amount": "5"}},
            {"tool_name": "send_email", "arguments": {"to": "a", "subject": "s", "boddy": "b"}},
        ]
    )
    assert codes(text, TOOLS) == ["TP201", "TP301", "TP302"]
