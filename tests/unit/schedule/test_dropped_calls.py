"""Calls that are given up between two attempts, or while they wait for a place of their tool."""

from __future__ import annotations

import json
from typing import Any

from toolplan.check import check
from toolplan.parse import parse
from toolplan.plan import Plan
from toolplan.testing import Simulation, simulate
from toolplan.tools import ToolSet, tool


@tool(reads="web", max_concurrency=1)
def look(n: int) -> int:
    if n == 2:
        raise ValueError("two is missing")
    return n


@tool(pure=True, retry=2)
def flaky(n: int) -> int:
    raise ValueError(f"{n} failed")


@tool(writes="log")
def write(n: int) -> int:
    raise ValueError("full")


TOOLS = ToolSet.of([look, flaky, write])


def run(*steps: dict[str, Any], **options: Any) -> Simulation:
    plan = parse(json.dumps(list(steps)), tools=TOOLS)
    assert isinstance(plan, Plan)
    return simulate(check(plan, TOOLS), **options)


def call(name: str, n: Any, **more: Any) -> dict[str, Any]:
    return {"tool_name": name, "arguments": {"n": n}, **more}


def test_a_call_that_is_given_up_makes_room_for_the_next_of_its_tool() -> None:
    # Each round has a second call that waits for the tool's only place when the first one fails.
    body = [call("look", "{i}"), call("look", "{i + 10}")]
    simulation = run({"for_each": [1, 2, 3, 4], "as": "i", "do": body}, durations=lambda tool, rng: 1.0)
    assert simulation.finish is not None, "the run hangs"
    assert simulation.finish.failed_step == "s2[1]"
    ended = {record.id: record.outcome for record in simulation.records}
    assert ended["s2[3]"] == ended["s3[3]"] == "succeeded"


def test_a_step_that_is_given_up_before_its_next_attempt_is_cancelled() -> None:
    # `flaky` has failed once and waits for a place in the run when `write`, which stands before it, fails.
    took = {"write": 2.0, "look": 5.0, "flaky": 0.1}
    steps = [call("write", 1), call("flaky", 2, result_variable="r"), call("look", 3), call("look", "{r}")]
    simulation = run(*steps, max_concurrency=2, durations=lambda tool, rng: took[tool])
    outcomes = [(record.tool, record.outcome) for record in simulation.records]
    assert outcomes == [("write", "failed"), ("flaky", "cancelled"), ("look", "cancelled"), ("look", "not_run")]


def test_a_cancelled_run_leaves_no_step_running() -> None:
    for seed in range(40):
        simulation = run(
            *[call("flaky", n, on_error="skip") for n in range(6)], seed=seed, max_concurrency=2, cancel_at=seed / 10
        )
        assert simulation.finish is not None
        assert "running" not in {record.outcome for record in simulation.records}


def test_nothing_begins_behind_a_body_that_has_failed_although_part_of_it_goes_on() -> None:
    took = {"look": 1.0, "flaky": 10.0}
    body = {"if": "true", "then": [call("flaky", 1, on_error="skip"), call("look", 2)]}
    after = [call("look", 5, result_variable="a"), call("look", "{a}")]
    tools = ToolSet.of(each.changed(max_concurrency=8, retry=1) for each in TOOLS)
    plan = parse(json.dumps([body, *after]), tools=tools)
    assert isinstance(plan, Plan)
    simulation = simulate(check(plan, tools), durations=lambda tool, rng: took[tool])
    outcomes = [(record.id, record.outcome) for record in simulation.records]
    assert outcomes == [("s2", "failed"), ("s3", "failed"), ("s4", "succeeded"), ("s5", "cancelled")]
