"""The machine by itself: budgets, the end of a run, events that cannot come, the story that a step has to tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolplan.parse import parse
from toolplan.plan import Plan
from toolplan.schedule import (
    AskUserNow,
    CallEnded,
    CallFailed,
    CallSucceeded,
    CancelCall,
    CancelRun,
    Command,
    FinishRun,
    Machine,
    Program,
    RetryDue,
    RetryLater,
    StartCall,
    StartRun,
    TimeUp,
)
from toolplan.schedule.invariants import check_all
from toolplan.schedule.story import LENGTH, NEXT
from toolplan.tools import ToolSet, tool


@tool(pure=True, retry=3)
def look(value: int) -> int:
    return value


@tool(writes="box", timeout_seconds=5)
def send(value: int) -> int:
    return value


TOOLS = ToolSet.of([look, send])
START = StartRun("2026-01-01T00:00:00")


def call(tool_name: str, value: Any, result: str | None = None) -> dict[str, Any]:
    step: dict[str, Any] = {"tool_name": tool_name, "arguments": {"value": value}}
    return step | ({"result_variable": result} if result else {})


def machine(*steps: dict[str, Any], **options: Any) -> Machine:
    plan = parse(json.dumps(list(steps)), tools=TOOLS)
    assert isinstance(plan, Plan)
    return Machine(Program(plan, TOOLS), story=True, **options)


def started(commands: list[Command]) -> list[int]:
    return [command.key for command in commands if isinstance(command, StartCall)]


def outcomes(run: Machine) -> dict[str, str]:
    return {record.id: record.outcome for record in run.records}


# --- budgets -------------------------------------------------------------------------------------------------------


def test_a_run_that_needs_one_call_too_many_fails_and_says_which_budget() -> None:
    run = machine(call("look", 1, "a"), call("look", "{a}", "b"), call("look", "{b}"), max_calls=2)
    (key,) = started(run.on(START))
    (key,) = started(run.on(CallSucceeded(key, 1)))
    commands = run.on(CallSucceeded(key, 1))
    error = "the run has made the 2 calls that it may make (max_calls), and needs one more"
    assert commands == [FinishRun("failed", None, error, "s3", used_up="max_calls")]
    assert outcomes(run) == {"s1": "succeeded", "s2": "succeeded", "s3": "not_run"}


def test_what_is_in_flight_when_the_calls_are_used_up_is_awaited_not_cancelled() -> None:
    run = machine({"parallel": [call("look", 1), call("send", 2), call("look", 3)]}, max_calls=2)
    commands = run.on(START)
    assert [type(command) for command in commands] == [StartCall, StartCall]
    first, second = started(commands)
    assert run.on(CallFailed(first, "busy", "none")) == []
    (finish,) = run.on(CallSucceeded(second, 2))
    assert isinstance(finish, FinishRun)
    assert outcomes(run) == {"s2": "failed", "s3": "succeeded", "s4": "not_run"}


def test_a_retry_counts_as_a_call() -> None:
    run = machine(call("look", 1), max_calls=2)
    (key,) = started(run.on(START))
    (later,) = run.on(CallFailed(key, "busy", "none"))
    assert isinstance(later, RetryLater)
    (key,) = started(run.on(RetryDue(key)))
    run.on(CallFailed(key, "busy", "none"))
    (finish,) = run.on(RetryDue(key))
    assert isinstance(finish, FinishRun)
    assert "max_calls" in (finish.error or "")


def test_calls_of_earlier_plans_of_the_run_count() -> None:
    run = machine(call("look", 1), max_calls=2, calls=2)
    assert isinstance(run.on(START)[-1], FinishRun)


def test_a_call_that_may_not_be_needed_does_not_break_the_budget() -> None:
    leave = {"if": "a > 0", "then": [{"answer": "enough"}]}
    run = machine(call("look", 1, "a"), leave, call("look", 2), max_calls=1, speculate=True)
    (key,) = started(run.on(START))
    assert run.on(CallSucceeded(key, 1)) == [FinishRun("succeeded", "enough")]


def test_time_that_is_up_ends_the_run_when_the_calls_in_flight_are_accounted_for() -> None:
    run = machine({"parallel": [call("look", 1), call("send", 2)]}, call("look", "{look_result}"))
    keys = started(run.on(START))
    assert run.on(TimeUp(1.5)) == [CancelCall(key) for key in keys]
    assert run.on(CallFailed(keys[0], "the call was cancelled", "none")) == []
    (finish,) = run.on(CallFailed(keys[1], "the call was cancelled", "unknown"))
    error = "the run took longer than the 1.5 seconds that it may take (max_seconds)"
    assert finish == FinishRun("failed", None, error, used_up="max_seconds")
    assert list(outcomes(run).values()) == ["cancelled", "unknown", "not_run"]


def test_time_that_is_up_does_not_wait_for_a_person() -> None:
    run = machine({"ask_user": "go on?", "result_variable": "u"}, call("look", 1))
    (question,) = run.on(START)
    assert isinstance(question, AskUserNow)
    assert [type(command) for command in run.on(TimeUp(1.0))] == [CancelCall, FinishRun]
    assert run.on(CallSucceeded(question.key, "yes")) == []
    assert outcomes(run) == {"s1": "cancelled", "s2": "not_run"}


def test_a_cancelled_run_says_what_was_not_run() -> None:
    run = machine(call("look", 1, "a"), call("look", "{a}"))
    (key,) = started(run.on(START))
    run.on(CancelRun("enough"))
    assert run.on(CallFailed(key, "the call was cancelled", "none")) == [FinishRun("cancelled", None, "enough")]
    assert outcomes(run) == {"s1": "cancelled", "s2": "not_run"}


# --- events that cannot come, stories --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "event", [CallSucceeded(7, 1), CallFailed(7, "no"), RetryDue(7), CallEnded(7), CallSucceeded(0, 1)]
)
def test_an_event_about_an_attempt_that_was_never_made_is_a_bug(event: Any) -> None:
    run = machine(call("look", 1))
    run.on(START)
    with pytest.raises(AssertionError, match="never made"):
        run.on(event)


def test_an_event_about_an_attempt_that_has_ended_tells_the_story() -> None:
    run = machine(call("look", 1, "a"), call("look", "{a}"))
    (key,) = started(run.on(START))
    run.on(CallFailed(key, "busy", "none"))
    (again,) = started(run.on(RetryDue(key)))
    run.on(CallSucceeded(again, 1))
    with pytest.raises(AssertionError) as caught:
        run.on(CallSucceeded(again, 1))
    told = str(caught.value).splitlines()
    assert told[0].endswith("is about an attempt that has ended: s1 (look, succeeded, attempt 2, path (0,))")
    assert [line.strip() for line in told[1:]] == [
        "issued",
        "ready",
        "running: attempt 1, key 1",
        "resting: busy",
        "ready",
        "running: attempt 2, key 2",
        "succeeded",
    ]


def test_a_late_event_about_a_call_that_was_given_up_is_fine() -> None:
    run = machine(call("look", 1), call("look", 2), call("look", 3))
    first, second, third = started(run.on(START))
    assert run.on(CallFailed(second, "no", "none", retryable=False)) == [CancelCall(third)]
    assert run.on(CallSucceeded(third, 1)) == []
    assert outcomes(run) == {"s1": "running", "s2": "failed", "s3": "cancelled"}
    assert isinstance(run.on(CallSucceeded(first, 1))[-1], FinishRun)


def test_a_state_that_may_not_follow_tells_the_story() -> None:
    run = machine(call("look", 1))
    run.on(START)
    (inst,) = run.running.values()
    assert run.story is not None
    with pytest.raises(AssertionError, match=r"(?s)a step that is running cannot become ready: s1 .*issued.*running"):
        run.story.enter(inst, "ready")


def test_a_story_tells_the_last_states_only() -> None:
    run = machine(call("look", 1))
    run.on(START)
    (inst,) = run.running.values()
    assert run.story is not None
    for _ in range(LENGTH):
        run.story.enter(inst, "resting")
        run.story.enter(inst, "ready")
        run.story.enter(inst, "running")
    assert len(run.story.tell(inst).splitlines()) == 1 + LENGTH


def test_a_broken_invariant_tells_the_story() -> None:
    run = machine(call("send", 1), call("send", 2))
    run.on(START)
    (inst,) = run.running.values()
    inst.missing = 1
    with pytest.raises(AssertionError, match=r"(?s)I1: 1 values of a running step .*: s1 \(send.*issued.*key 1"):
        check_all(run)


def test_the_table_of_the_documentation_is_the_one_of_the_code() -> None:
    page = (Path(__file__).parents[3] / "docs" / "design" / "scheduler.md").read_text(encoding="utf-8")
    table = page.split("| state | what it waits for | may become |")[1].split("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in table.splitlines() if line[:3] != "| -"]
    said = {row[0]: set(row[2].split(", ")) if len(row) > 2 and row[2] else set[str]() for row in rows if len(row) > 1}
    assert said == {state: set(following) for state, following in NEXT.items()}


def test_every_state_can_be_reached_and_left_or_is_an_end() -> None:
    reached = {state for states in NEXT.values() for state in states}
    assert reached | {"issued"} == set(NEXT)
    assert {state for state, states in NEXT.items() if not states} == {"succeeded", "failed", "skipped", "dropped"}
