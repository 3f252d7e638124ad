"""A call as bare JSON has the same arguments, whether the scanner of calls reads it or `parse` makes a plan of it."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from toolplan import Tool, ToolSet, parse
from toolplan.expressions import Fields, Literal
from toolplan.parse.formats import CallPart, read_calls
from toolplan.plan import Call, Plan

words = st.text(st.characters(codec="utf-8", exclude_characters="{}$", exclude_categories=["Cc"]), max_size=8)
KINDS: dict[str, st.SearchStrategy[Any]] = {
    "integer": st.integers(-(10**20), 10**20),
    "number": st.floats(-1e9, 1e9),
    "boolean": st.booleans(),
    "array": st.lists(st.integers(0, 9) | words, max_size=3),
    "object": st.dictionaries(st.sampled_from(["a", "b"]), st.integers(0, 9) | words, max_size=2),
    "string": words | st.sampled_from(["007", "3", "true", "null", "[1]"]),
}


@st.composite
def arguments(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the properties of a tool, and arguments for it, some of them inside of texts."""
    properties: dict[str, Any] = {}
    written: dict[str, Any] = {}
    for name in draw(st.lists(st.sampled_from(["a", "city", "城市", "n_1"]), unique=True, max_size=4)):
        declared, given = draw(st.sampled_from(sorted(KINDS))), draw(st.sampled_from(sorted(KINDS)))
        properties[name] = draw(st.sampled_from([{"type": declared}, {"type": given}, {}]))
        value = draw(KINDS[given])
        written[name] = json.dumps(value) if draw(st.booleans()) else value
    return properties, written


def wrapped(call: dict[str, Any], how: int) -> Any:
    as_text = {"name": call["name"], "arguments": json.dumps(call["arguments"])}
    return [
        call,
        [call],
        as_text,
        {"function_call": as_text},
        {"type": "function", "function": as_text},
        {"tool_calls": [{"id": "x", "type": "function", "function": as_text}]},
        {"tool": call["name"], "args": call["arguments"]},
        {"name": call["name"].upper(), "parameters": call["arguments"]},
    ][how]


@settings(max_examples=300, deadline=None)
@given(arguments(), st.integers(0, 7))
def test_both_read_the_same_arguments(made: tuple[dict[str, Any], dict[str, Any]], how: int) -> None:
    properties, written = made
    tool = Tool.from_schema("find", "", {"type": "object", "properties": properties, "required": []}, lambda **_: None)
    text = json.dumps(wrapped({"name": "find", "arguments": written}, how), ensure_ascii=False)
    calls = [part for part in read_calls(text, "auto", ToolSet([tool])) if isinstance(part, CallPart)]
    plan = parse(text, tools=ToolSet([tool]))
    assert isinstance(plan, Plan)
    (step,) = plan.steps
    assert isinstance(step, Call)
    assert isinstance(step.arguments, Fields)
    if calls:  # else the scanner has refused the arguments, which for a plan is up to the checker
        assert calls[0].name == step.tool
        assert {name: field_value(value) for name, value in step.arguments.fields} == calls[0].arguments


def field_value(value: Any) -> Any:
    """Return the constant that an argument of a step is."""
    if isinstance(value, Literal):
        return value.value
    if isinstance(value, Fields):
        return {name: field_value(item) for name, item in value.fields}
    return [field_value(item) for item in value.items]
