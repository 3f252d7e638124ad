"""Calls as bare JSON become a plan with the arguments that the scanner of calls reads: toward the schema, and told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolplan import PlanRejected, Tool, ToolSet, check, parse
from toolplan.parse.formats import CallPart, read_calls
from toolplan.plan import Plan
from toolplan.show import to_json

STRING, INTEGER = {"type": "string"}, {"type": "integer"}
FIND = Tool.from_schema(
    "find",
    "",
    {
        "type": "object",
        "properties": {
            "query": STRING,
            "limit": INTEGER,
            "filters": {"type": "object", "properties": {"n": INTEGER}},
            "tags": {"type": "array", "items": STRING},
            "exact": {"type": "boolean"},
            "as": {"enum": ["csv", "pdf"]},
        },
        "required": ["query"],
    },
    lambda **_: None,
)
TOOLS = ToolSet([FIND])
WRITTEN = {"query": "007", "limit": "3", "filters": '{"n": "1"}', "tags": '["a", "7"]', "exact": "true", "as": "CSV"}
MEANT = {"query": "007", "limit": 3, "filters": {"n": 1}, "tags": ["a", "7"], "exact": True, "as": "csv"}
CALL = json.dumps({"name": "find", "arguments": WRITTEN})
TEXT = json.dumps({"name": "find", "arguments": json.dumps(WRITTEN)})


def planned(reply: Any, tools: Any = TOOLS) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    plan = parse(reply, tools=tools)
    assert isinstance(plan, Plan), plan
    written: Any = to_json(plan)
    return [step["arguments"] for step in written["steps"]], plan.repairs


@pytest.mark.parametrize(
    "reply",
    [
        CALL,
        TEXT,
        f"[{CALL}]",
        f"```json\n{CALL}\n```",
        f"Let me look.\n{CALL}",
        f'{{"function_call": {CALL}}}',
        f'{{"function_call": {TEXT}}}',
        f'[{{"function_call": {TEXT}}}]',
        f'{{"tool_call": {CALL}}}',
        f'{{"type": "function", "function": {TEXT}}}',
        f'{{"tool_calls": [{{"id": "a", "type": "function", "function": {TEXT}}}]}}',
        f'{{"role": "assistant", "content": null, "tool_calls": [{{"id": "a", "function": {TEXT}}}]}}',
        f'{{"role": "assistant", "content": null, "function_call": {TEXT}}}',
        CALL.replace('"name"', '"tool"').replace('"arguments"', '"args"'),
        f'Let me look.\n```json\n{{"function_call": {CALL}}}\n```',
    ],
)
def test_the_plan_has_what_the_scanner_reads(reply: str) -> None:
    (call,) = [part for part in read_calls(reply, "auto", TOOLS) if isinstance(part, CallPart)]
    assert call.arguments == MEANT
    arguments, repairs = planned(reply)
    assert arguments == [MEANT]
    for spoken in ("limit", "filters", "tags", "exact", "as"):
        assert any(f"`{spoken}`" in repair for repair in repairs), repairs


def test_it_is_checked_afterwards() -> None:
    plan = parse('{"name": "find", "arguments": {"query": "x", "limit": "3"}}', tools=TOOLS)
    assert isinstance(plan, Plan)
    check(plan, TOOLS)
    plan = parse('{"name": "find", "arguments": {"query": "x", "limit": "three"}}', tools=TOOLS)
    assert isinstance(plan, Plan)
    with pytest.raises(PlanRejected):
        check(plan, TOOLS)


def test_several_calls_and_references_between_them() -> None:
    reply = [
        {"id": "first", "name": "find", "arguments": {"query": "x", "limit": "3"}},
        {"name": "find", "arguments": {"query": "{first.title}", "limit": "{first.count}"}},
    ]
    arguments, repairs = planned(reply)
    assert arguments == [{"query": "x", "limit": 3}, {"query": "{first.title}", "limit": "{first.count}"}]
    assert len(repairs) == 1


def test_what_needs_nothing_is_read_as_before() -> None:
    sound = '{"name": "find", "arguments": {"query": "x", "limit": 3}}'
    plan = parse(sound, tools=TOOLS)
    assert isinstance(plan, Plan)
    assert plan.repairs == ()
    assert plan.source is not None
    assert plan.source.text == sound


@pytest.mark.parametrize(
    "reply",
    [
        '{"name": "find", "arguments": {"query": "x", "limit": "3"}, "limit": 5}',
        '{"function_call": {"name": "find"}, "note": 1}',
        '{"function_call": "find"}',
        '{"function_call": null}',
        '{"name": "find", "arguments": {"query": "x", "limit": "3", "limit": "4"}}',
    ],
)
def test_what_is_no_call_is_not_mended(reply: str) -> None:
    with pytest.raises(PlanRejected):
        check(parse(reply, tools=TOOLS), TOOLS)  # type: ignore[arg-type] - either of them refuses


def test_without_schemas_nothing_is_mended() -> None:
    for tools in (None, ["find"]):
        arguments, repairs = planned(f'{{"function_call": {CALL}}}', tools)
        assert arguments == [WRITTEN]
        assert repairs == ()
