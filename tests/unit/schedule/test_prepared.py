"""What is worked out once for a plan, and the short ways that it opens: they mean the same as the long ones."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from toolplan import RunResult, ToolSet, run_plan, tool
from toolplan.check import CheckedPlan, check
from toolplan.parse import parse
from toolplan.plan import Plan
from toolplan.schedule import Setup


@tool(pure=True)
async def double(value: int = 7) -> int:
    return 2 * value


@tool(pure=True)
async def pair(left: int, right: int | None) -> list[int | None]:
    return [left, right]


@tool(pure=True)
async def even(value: int) -> int:
    if value % 2:
        raise ValueError("odd")
    return value


TOOLS = ToolSet.of([double, pair, even])


def checked(*steps: dict[str, Any], answer: str) -> CheckedPlan:
    plan = parse(json.dumps({"steps": list(steps), "answer": answer}), tools=TOOLS)
    assert isinstance(plan, Plan)
    return check(plan, TOOLS)


def loop(over: str, *calls: dict[str, Any], collect: str = "y", **more: Any) -> dict[str, Any]:
    return {"for_each": over, "as": "n", "do": list(calls), "collect": collect, "result_variable": "ys", **more}


def call(name: str, result: str = "y", **arguments: Any) -> dict[str, Any]:
    return {"tool_name": name, "arguments": arguments, "result_variable": result}


def ran(plan: CheckedPlan) -> RunResult:
    return asyncio.run(run_plan(plan))


def test_a_plan_is_prepared_once_for_each_way_of_running_it() -> None:
    plan = checked(call("double", value=1), answer="{y}")
    first, again = Setup().machine_for(plan), Setup(speculate=True).machine_for(plan)
    keeping = Setup(keep_names=True).machine_for(plan)
    assert again.program is first.program
    assert keeping.program is not first.program
    assert keeping.program.keeps_names
    assert first.root is not again.root


def test_the_same_plan_with_other_tools_is_prepared_anew() -> None:
    plan = checked(call("double", value=1), answer="{y}")
    other = replace(plan, tools=ToolSet.of([*TOOLS]))
    assert other == replace(plan, tools=other.tools)
    assert Setup().machine_for(other).program is not Setup().machine_for(plan).program
    assert Setup().machine_for(other).program.tools is other.tools


def test_runs_of_one_plan_share_no_values() -> None:
    plan = checked(loop("[1, 2, 3]", call("double", value="{n}")), answer="{ys}")

    async def twice() -> list[RunResult]:
        return list(await asyncio.gather(run_plan(plan), run_plan(plan)))

    one, other = asyncio.run(twice())
    assert one.variables["ys"] == other.variables["ys"] == [2, 4, 6]
    assert one.variables["ys"] is not other.variables["ys"]
    assert all(mine is not theirs for mine, theirs in zip(one.steps, other.steps, strict=True))


@pytest.mark.parametrize("collect", ["y", "{y}", "{y + 0}"])
@pytest.mark.parametrize("value", ["{n}", "{n + 0}"])
def test_a_name_as_it_is_gives_the_same_as_an_expression(value: str, collect: str) -> None:
    result = ran(checked(loop("[1, 2, 3]", call("double", value=value), collect=collect), answer="{ys}"))
    assert result.variables["ys"] == [2, 4, 6]
    assert [step.arguments for step in result.steps] == [{"value": 1}, {"value": 2}, {"value": 3}]


def test_null_means_not_given_in_a_loop_too() -> None:
    result = ran(checked(loop("[1, null]", call("double", value="{n}")), answer="{ys}"))
    assert result.variables["ys"] == [2, 14]
    assert [step.arguments for step in result.steps] == [{"value": 1}, {}]


def test_null_that_the_tool_takes_stays() -> None:
    result = ran(checked(loop("[null]", call("pair", left=1, right="{n}")), answer="{ys}"))
    assert result.variables["ys"] == [[1, None]]


def test_a_round_whose_call_was_skipped_hands_over_nothing() -> None:
    skips = {**call("even", "x", value="{n}"), "on_error": "skip"}
    result = ran(checked(loop("[1, 2]", skips, call("double", value="{x}")), answer="{ys}"))
    assert result.variables["ys"] == [4]
    assert [step.outcome for step in result.steps] == ["failed", "skipped", "succeeded", "succeeded"]


def test_the_values_that_a_call_in_a_loop_used_are_known_by_their_steps() -> None:
    steps = (call("double", "a", value=1), loop("[a, a]", call("pair", left="{n}", right="{a}")))
    result = ran(checked(*steps, answer="{ys}"))
    assert [step.origins for step in result.steps[1:]] == [frozenset({result.steps[0].id})] * 2
