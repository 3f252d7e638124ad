"""What a run may cost: calls, seconds, and the memory that its rows take. What may start early: `speculate`."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from toolplan import Agent, Limits, Result, UsageError, run_plan, tool
from toolplan.parse import parse
from toolplan.plan import Plan
from toolplan.schedule.records import KEPT


def run(tools: list[Any], *steps: dict[str, Any], **options: Any) -> Result:
    return Agent(tools=tools, **options).run_plan_sync(json.dumps(list(steps)))


def plan_of(*steps: dict[str, Any]) -> Plan:
    plan = parse(json.dumps(list(steps)))
    assert isinstance(plan, Plan)
    return plan


def call(tool_name: str, value: Any, result: str | None = None) -> dict[str, Any]:
    step: dict[str, Any] = {"tool_name": tool_name, "arguments": {"value": value}}
    return step | ({"result_variable": result} if result else {})


@tool(pure=True)
async def echo(value: int) -> int:
    return value


@tool(pure=True)
async def numbers(value: int) -> list[int]:
    return list(range(value))


@tool(writes="box")
async def hang(value: int) -> int:
    await asyncio.Event().wait()
    return value


LOOP = [
    call("numbers", 20, "ns"),
    {"for_each": "ns", "as": "n", "do": [call("echo", "{n}", "e")], "collect": "e", "result_variable": "es"},
    {"answer": "{len(es)} of {len(ns)}"},
]


def test_a_budget_of_calls_ends_a_loop_whose_length_nobody_knew() -> None:
    result = run([echo, numbers], *LOOP, max_calls=10)
    assert result.outcome == "failed"
    assert result.error == "the run has made the 10 calls that it may make (max_calls), and needs one more"
    assert [step.outcome for step in result.steps].count("succeeded") == 10


def test_a_budget_of_calls_is_also_the_one_of_the_check() -> None:
    each: list[dict[str, Any]] = [{"max_calls": 1}, {"limits": Limits(max_calls=1)}]
    for options in each:
        result = run([echo], call("echo", 1), call("echo", 2), **options)
        assert result.outcome == "rejected"
        assert [diagnostic.code for diagnostic in result.diagnostics] == ["TP503"]


def test_the_budget_of_the_check_is_also_the_one_of_the_run() -> None:
    assert run([echo, numbers], *LOOP, limits=Limits(max_calls=10)).outcome == "failed"


def test_two_different_budgets_are_refused() -> None:
    with pytest.raises(UsageError, match="give one of them"):
        Agent(max_calls=3, limits=Limits(max_calls=4))
    with pytest.raises(UsageError, match="max_seconds"):
        Agent(max_seconds=0)


def test_a_run_that_takes_too_long_fails_and_accounts_for_its_calls() -> None:
    result = run([echo, hang], call("hang", 1, "h"), call("echo", "{h}"), max_seconds=0.05)
    assert result.outcome == "failed"
    assert result.error == "the run took longer than the 0.05 seconds that it may take (max_seconds)"
    assert [step.outcome for step in result.steps] == ["unknown", "not_run"]
    assert result.seconds < 5


def test_a_budget_that_is_used_up_is_not_mended_by_another_plan() -> None:
    from toolplan.testing import ScriptedModel

    model = ScriptedModel([json.dumps(LOOP)])
    result = Agent(model, [echo, numbers], max_calls=10).run_sync("count")
    assert (result.outcome, result.inferences, result.replans) == ("failed", 1, 0)


def test_calls_begin_while_an_end_is_undecided() -> None:
    begun: list[int] = []
    may_go = asyncio.Event()

    @tool(pure=True)
    async def slow(value: int) -> int:
        await may_go.wait()
        return value

    @tool(pure=True)
    async def begin(value: int) -> int:
        begun.append(value)
        may_go.set()
        return value

    steps = [
        call("slow", 1, "s"),
        {"if": "s > 1", "then": [{"answer": "no"}]},
        call("begin", 7, "b"),
        {"answer": "{b}"},
    ]
    result = run([slow, begin], *steps, speculate=True)
    assert (result.outcome, result.answer, begun) == ("succeeded", "7", [7])


def test_rows_of_a_long_loop_are_bounded_and_the_rest_is_counted() -> None:
    count = KEPT + 500
    told: list[str] = []
    steps = [
        {
            "for_each": f"range({count})",
            "as": "n",
            "do": [call("echo", "{n}", "e")],
            "collect": "e",
            "result_variable": "es",
        },
        {"answer": "{len(es)}"},
    ]
    agent = Agent(tools=[echo])
    result = agent.run_plan_sync(json.dumps(steps), watch=lambda event: told.append(type(event).__name__))
    assert result.answer == str(count)
    assert len(result.steps) == KEPT
    assert result.omitted == {"s2": 500}
    assert told.count("StepFinished") == count, "whoever watches hears of every call"


def test_failures_and_effects_of_a_long_loop_keep_their_rows() -> None:
    @tool(pure=True)
    async def odd(value: int) -> int:
        if value % 100 == 0:
            raise ValueError(f"{value} is even")
        return value

    body = [call("odd", "{n}", "e") | {"on_error": "skip"}]
    result = run([odd], {"for_each": f"range({KEPT + 2_000})", "as": "n", "do": body})
    assert [step.outcome for step in result.steps].count("failed") == (KEPT + 2_000) // 100
    assert len(result.steps) + sum(result.omitted.values()) == KEPT + 2_000


def test_a_result_is_shown_in_one_short_line_however_large_its_values_are() -> None:
    result = run([numbers], call("numbers", 50_000, "ns"), {"answer": "{ns}"})
    assert len(repr(result)) < 200
    assert repr(result).startswith("<Result succeeded: '[0, 1, ")
    ran = asyncio.run(run_plan(Agent(tools=[numbers]).check(plan_of(call("numbers", 50_000, "ns")))))
    assert repr(ran).startswith("<RunResult succeeded: null, 1 steps, ")
