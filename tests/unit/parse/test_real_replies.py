"""What real models wrote, and what went wrong in practice, read as it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolplan.errors import PlanRejected
from toolplan.parse import parse
from toolplan.plan import Plan
from toolplan.show import canonical, mermaid

TESTS = Path(__file__).parents[2] / "data"
REPLIES = [
    json.loads(line)
    for line in (TESTS / "model_replies" / "agentdojo_json.jsonl").read_text(encoding="utf-8").splitlines()
]
CASES = [json.loads(line) for line in (TESTS / "field_cases" / "cases.jsonl").read_text(encoding="utf-8").splitlines()]
PLANS = [case for case in CASES if case["kind"] == "plan"]


@pytest.mark.parametrize("record", REPLIES, ids=[record["id"] for record in REPLIES])
def test_every_reply_of_a_model_reads(record: dict[str, Any]):
    plan = parse(record["reply"])
    assert isinstance(plan, Plan)
    assert plan.steps
    assert plan.repairs == ()
    text = canonical(plan)
    again = parse(text)
    assert isinstance(again, Plan)
    assert again.repairs == ()
    assert canonical(again) == text
    assert mermaid(plan).startswith("flowchart TD\n")


@pytest.mark.parametrize("case", PLANS, ids=[case["id"] for case in PLANS])
def test_every_plan_of_the_field_cases_reads_or_is_explained(case: dict[str, Any]):
    given = case["input"].get("plan") or case["input"]["plan_text"]
    tools = [tool["name"] for tool in case.get("tools", ())]
    if case["id"] == "D18":
        with pytest.raises(PlanRejected) as caught:
            parse(given)
        (problem,) = caught.value.diagnostics
        assert "step 2" in problem.message
        assert "{year: >}" in problem.message
        return
    plan = parse(given, tools=tools)
    assert isinstance(plan, Plan)
    assert len(plan.steps) == len(given)
    assert plan.repairs == ()


def test_a_fenced_request_naming_a_declared_tool():
    (case,) = [case for case in CASES if case["id"] == "A31"]
    plan = parse(case["input"]["text"], tools=[tool["name"] for tool in case["tools"]])
    assert isinstance(plan, Plan)
    assert [(step.tool, [name for name, _ in step.arguments.fields]) for step in plan.steps] == [
        ("get_weather", ["city"])
    ]  # type: ignore[union-attr]
