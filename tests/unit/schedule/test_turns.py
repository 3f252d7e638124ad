"""Calls of tools whose limits hold beyond the run are made in turns that somebody outside gives."""

from __future__ import annotations

import json
from typing import Any

from toolplan.parse import parse
from toolplan.plan import Plan
from toolplan.schedule import (
    AskTurn,
    CallFailed,
    CallSucceeded,
    CancelRun,
    DropTurn,
    FinishRun,
    Machine,
    Program,
    RetryDue,
    RetryLater,
    StartCall,
    StartRun,
    TurnCame,
)
from toolplan.schedule.invariants import check_all
from toolplan.tools import ToolSet, tool


@tool(pure=True, max_concurrency=1, retry=2)
def scarce(value: int) -> int:
    return value


@tool(pure=True)
def plenty(value: int) -> int:
    return value


TOOLS = ToolSet.of([scarce, plenty])
START = StartRun("2026-01-01T00:00:00")


def call(name: str, value: Any, result: str | None = None) -> dict[str, Any]:
    step: dict[str, Any] = {"tool_name": name, "arguments": {"value": value}}
    return step | ({"result_variable": result} if result else {})


def machine(*steps: dict[str, Any], **options: Any) -> Machine:
    plan = parse(json.dumps(list(steps)), tools=TOOLS)
    assert isinstance(plan, Plan)
    return Machine(Program(plan, TOOLS), gated=frozenset({"scarce"}), **options)


def after(run: Machine, event: Any) -> list[Any]:
    """Return the commands as one word each, with what they are about."""
    commands = run.on(event)
    check_all(run)
    words: list[Any] = []
    for command in commands:
        match command:
            case StartCall():
                words.append((command.key, command.tool, command.arguments["value"]))
            case AskTurn() | DropTurn():
                words.append((type(command).__name__, command.tool))
            case FinishRun():
                words.append(command.outcome)
            case _:
                words.append(type(command).__name__)
    return words


def test_one_turn_is_asked_for_at_a_time_and_the_longest_chain_goes_first() -> None:
    run = machine(call("scarce", 1), call("scarce", 2, "a"), call("scarce", "{a}"), call("plenty", 3))
    assert after(run, START) == [("AskTurn", "scarce"), (1, "plenty", 3)]
    assert after(run, TurnCame("scarce")) == [("AskTurn", "scarce"), (2, "scarce", 2)]
    assert after(run, TurnCame("scarce")) == [(3, "scarce", 1)]
    assert after(run, CallSucceeded(2, 5)) == [("AskTurn", "scarce")]
    assert after(run, TurnCame("scarce")) == [(4, "scarce", 5)]


def test_a_call_that_waits_takes_no_place() -> None:
    run = machine(call("scarce", 1), call("plenty", 2), call("plenty", 3), max_concurrency=1)
    assert after(run, START) == [("AskTurn", "scarce"), (1, "plenty", 2)]
    assert after(run, TurnCame("scarce")) == []  # its turn has come, but the run is full
    assert after(run, CallSucceeded(1, 2)) == [(2, "scarce", 1)]


def test_a_turn_that_nobody_needs_any_more_is_dropped() -> None:
    run = machine(call("scarce", 1), call("plenty", 2))
    after(run, START)
    assert after(run, CancelRun()) == ["CancelCall"]
    assert after(run, TurnCame("scarce")) == [("DropTurn", "scarce")]
    assert after(run, CallFailed(1, "cancelled")) == ["cancelled"]


def test_a_turn_whose_call_was_given_up_goes_to_another_one_or_back() -> None:
    run = machine(call("plenty", 0, "a"), call("plenty", "{a}"), call("scarce", 1), max_concurrency=2)
    assert after(run, START) == [(1, "plenty", 0), ("AskTurn", "scarce")]
    assert after(run, CallFailed(1, "no")) == ["failed"]
    assert after(run, TurnCame("scarce")) == []


def test_a_refused_turn_fails_what_waits_for_it() -> None:
    run = machine(call("scarce", 1) | {"on_error": "skip"}, call("scarce", 2) | {"on_error": "skip"}, call("plenty", 3))
    after(run, START)
    assert after(run, TurnCame("scarce", "no place")) == []
    assert [(record.outcome, record.error) for record in run.records if record.tool == "scarce"] == [
        ("failed", "no place"),
        ("failed", "no place"),
    ]
    assert after(run, CallSucceeded(1, 3)) == ["succeeded"]


def test_another_attempt_needs_another_turn() -> None:
    run = machine(call("scarce", 1))
    after(run, START)
    after(run, TurnCame("scarce"))
    (command,) = run.on(CallFailed(1, "no"))
    assert isinstance(command, RetryLater)
    assert (command.attempt, command.error) == (2, "no")
    assert after(run, RetryDue(1)) == [("AskTurn", "scarce")]
    assert after(run, TurnCame("scarce")) == [(2, "scarce", 1)]


def test_a_run_that_goes_on_elsewhere_asks_again() -> None:
    run = machine(call("scarce", 1), call("scarce", 2), max_concurrency=1)
    after(run, START)
    assert [(type(command).__name__, command.tool) for command in run.ask_again()] == [("AskTurn", "scarce")]
    assert after(run, TurnCame("scarce")) == [("AskTurn", "scarce"), (1, "scarce", 1)]
