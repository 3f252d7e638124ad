"""`speculate=True`: calls without effects begin before it is known that the plan comes to them; nothing else does."""

from __future__ import annotations

import json
import types
from random import Random
from typing import Any

import pytest

from toolplan.known import NOTHING_KNOWN
from toolplan.parse import parse
from toolplan.schedule import AskUserNow, CallSucceeded, Machine, Program, StartCall, StartRun
from toolplan.testing import Simulation, simulate
from toolplan.tools import ToolSet, tool

LOG: list[str] = []


@tool(reads="weather")
def look(city: str) -> int:
    return len(city)


@tool(writes="mailbox:{to}")
def send(to: str) -> str:
    LOG.append(to)
    return to


@tool(pure=True)
def slow(value: int) -> int:
    return value


@tool(pure=True)
def fail(value: int) -> int:
    raise ValueError(f"no {value}")


TOOLS = ToolSet.of([look, send, slow, fail])


def took(name: str, _: Random) -> float:
    return {"slow": 10.0}.get(name, 1.0)


def run(*steps: dict[str, Any], speculate: bool = True, **options: Any) -> Simulation:
    LOG.clear()
    plan = parse(json.dumps(list(steps)), tools=TOOLS)
    checked: Any = types.SimpleNamespace(plan=plan, tools=TOOLS, known=NOTHING_KNOWN, programs={})
    return simulate(checked, durations=took, speculate=speculate, **options)


def call(tool_name: str, result: str | None = None, **arguments: Any) -> dict[str, Any]:
    step: dict[str, Any] = {"tool_name": tool_name, "arguments": arguments}
    return step | ({"result_variable": result} if result else {})


def leaving(test: str, how: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    return [call("slow", result="n", value=3), {"if": test, "then": [how or {"answer": "enough"}]}]


def started(simulation: Simulation, name: str) -> list[float]:
    return [start for tool_name, _, start, _ in simulation.spans if tool_name == name]


def outcomes(simulation: Simulation) -> dict[str, str]:
    return {record.id: record.outcome for record in simulation.records}


def test_a_read_behind_an_answer_that_may_still_happen_begins_at_once() -> None:
    steps = [*leaving("n > 5"), call("look", result="a", city="oslo"), {"answer": "{a}"}]
    assert started(run(*steps, speculate=False), "look") == [10.0]
    simulation = run(*steps)
    assert started(simulation, "look") == [0.0]
    assert simulation.finish is not None
    assert simulation.finish.text == "4"
    assert simulation.seconds == 10.0


def test_a_chain_behind_it_goes_on_as_far_as_it_can() -> None:
    steps = [
        *leaving("n > 5"),
        call("look", result="a", city="oslo"),
        {"if": "a > 1", "then": [call("look", result="b", city="{'x' * a}")], "else": [{"let": {"b": "0"}}]},
        {"for_each": "range(b)", "as": "i", "do": [call("look", result="c", city="{'y' * i}")], "collect": "c"},
    ]
    assert started(run(*steps), "look") == [0.0, 1.0, 2.0, 2.0, 2.0, 2.0]


def test_what_was_not_needed_is_dropped_and_says_so() -> None:
    simulation = run(*leaving("n > 2"), call("look", city="oslo"), call("slow", value="{n}"), call("send", to="ann"))
    assert simulation.finish is not None
    assert simulation.finish.text == "enough"
    assert LOG == []
    dropped = next(record for record in simulation.records if record.tool == "look")
    assert (dropped.outcome, dropped.result) == ("cancelled", None)
    assert "not needed" in (dropped.error or "")
    assert "send" not in {record.tool for record in simulation.records}


def test_a_running_call_that_is_not_needed_is_cancelled() -> None:
    simulation = run(
        call("look", result="n", city="oslo"),
        {"if": "n > 2", "then": [{"answer": "enough"}]},
        call("slow", value=1),
    )
    assert simulation.seconds == 1.0
    assert outcomes(simulation) == {"s1": "succeeded", "s4": "cancelled"}


def test_a_failure_there_counts_only_when_the_plan_comes_to_it() -> None:
    spared = run(*leaving("n > 2"), call("fail", value=1))
    assert spared.finish is not None
    assert (spared.finish.outcome, spared.finish.text) == ("succeeded", "enough")
    reached = run(*leaving("n > 5"), call("fail", value=1))
    assert started(reached, "fail") == [0.0]
    assert reached.finish is not None
    assert (reached.finish.outcome, reached.finish.error) == ("failed", "no 1")


def test_an_expression_that_fails_there_counts_only_when_the_plan_comes_to_it() -> None:
    simulation = run(*leaving("n > 2"), {"let": {"x": "1 / 0"}})
    assert simulation.finish is not None
    assert simulation.finish.outcome == "succeeded"


@pytest.mark.parametrize(
    "step",
    [
        call("send", to="ann"),
        {"note": "seen"},
        {"ask_user": "really?", "result_variable": "u"},
        {"ask_model": "what?", "data": "1", "returns": {"type": "string"}, "result_variable": "m"},
        {"cannot": "no"},
    ],
)
def test_nothing_but_calls_without_effects_happens_early(step: dict[str, Any]) -> None:
    asked: list[str] = []

    def ask(question: str) -> str:
        asked.append(question)
        return "yes"

    simulation = run(*leaving("n > 2"), step, ask=ask)
    assert simulation.finish is not None
    assert simulation.finish.text == "enough"
    assert (LOG, simulation.notes, asked) == ([], [], [])


def test_reads_begin_while_a_person_thinks() -> None:
    steps = [{"ask_user": "go on?", "result_variable": "u"}, call("slow", result="n", value=1), {"answer": "{n}"}]
    assert [start for _, _, start, _ in run(*steps, ask=str).spans] == [0.0]
    waiting = run(*steps)
    assert waiting.finish is None
    assert started(waiting, "slow") == [0.0]


def test_a_run_that_waits_holds_nothing_that_began_early() -> None:
    steps = [{"let": {"n": "0"}}, {"ask_user": "go on?", "result_variable": "u"}, call("look", result="n", city="x")]
    plan: Any = parse(json.dumps([*steps, {"answer": "{n}"}]), tools=TOOLS)
    machine = Machine(Program(plan, TOOLS), speculate=True)
    question, look = machine.on(StartRun("2026-01-01T00:00:00"))
    assert isinstance(question, AskUserNow)
    assert isinstance(look, StartCall)
    machine.on(CallSucceeded(look.key, 7))
    assert machine.variables() == {"n": 7}
    machine.note_not_run()
    assert machine.variables() == {"n": 0}
    assert {record.tool: record.outcome for record in machine.records} == {"ask_user": "waiting", "look": "cancelled"}


def test_rounds_behind_a_break_begin_at_once() -> None:
    body = [call("slow", result="n", value="{i}"), {"if": "n == 2", "then": [{"break": True}]}, call("send", to="ann")]
    steps = [{"for_each": "range(5)", "as": "i", "do": body}, {"answer": "done"}]
    simulation = run(*steps)
    assert started(simulation, "slow") == [0.0] * 5
    assert LOG == ["ann", "ann"]
    assert [record.outcome for record in simulation.records if record.tool == "slow"] == ["succeeded"] * 3 + [
        "cancelled"
    ] * 2


def test_collected_values_are_those_before_the_break() -> None:
    body = [call("slow", result="n", value="{i}"), {"if": "n == 2", "then": [{"break": True}]}]
    loop = {"for_each": "range(5)", "as": "i", "do": body, "collect": "n * 10", "result_variable": "all"}
    for speculate in (False, True):
        simulation = run(loop, {"answer": "{json(all)}"}, speculate=speculate)
        assert simulation.finish is not None
        assert simulation.finish.text == "[0, 10]"


def test_names_are_as_they_were_where_the_round_was_left() -> None:
    body = [
        {"let": {"seen": "seen + [i]"}},
        call("slow", result="n", value="{i}"),
        {"if": "n % 2 == 0", "then": [{"continue": True}]},
        {"let": {"seen": "seen + ['odd']"}},
    ]
    loop = {"for_each": "range(4)", "as": "i", "do": body}
    for speculate in (False, True):
        simulation = run({"let": {"seen": "[]"}}, loop, {"answer": "{json(seen)}"}, speculate=speculate)
        assert simulation.finish is not None
        assert simulation.finish.text == '[0, 1, "odd", 2, 3, "odd"]'


def test_what_may_not_be_needed_takes_the_last_places() -> None:
    steps = [call("look", result="n", city="x"), {"if": "n > 5", "then": [{"answer": "no"}]}]
    steps += [call("slow", value=1), call("slow", value=2)]
    before = {"parallel": [call("look", city="y"), call("look", city="z")]}
    simulation = run(before, *steps, max_concurrency=2)
    assert started(simulation, "look")[:2] == [0.0, 0.0]


@pytest.mark.parametrize("speculate", [False, True])
def test_an_end_that_an_equal_has_come_to_does_not_outlive_its_failing_group(speculate: bool) -> None:
    body = [
        {"if": "i == 1", "then": [call("slow", value=1), call("fail", value=1)], "else": [{"answer": "never"}]},
    ]
    trial = {"try": [{"for_each": [1, 2], "as": "i", "do": body}], "except": [call("send", to="ann")]}
    simulation = run(trial, call("send", to="bob"), speculate=speculate)
    assert simulation.finish is not None
    assert (simulation.finish.outcome, simulation.finish.text) == ("succeeded", None)
    assert LOG == ["ann", "bob"]


def test_a_note_waits_for_what_could_fail_before_it() -> None:
    for speculate in (False, True):
        simulation = run(call("fail", value=1), {"note": "it is paid"}, speculate=speculate)
        assert simulation.notes == []


def decided_late_at(number: int) -> Any:
    """Return durations: the call of `slow` with this value takes longest, so that it is decided after all others."""

    def seconds(command: Any) -> float:
        return 10.0 if command.tool == "slow" and command.arguments["value"] == number else 1.0

    return seconds


def test_effects_of_later_rounds_wait_for_a_break_that_may_still_happen() -> None:
    body = [
        call("slow", result="n", value="{i}"),
        {"if": "n == 1", "then": [{"break": True}]},
        call("send", to="{'u' + str(i)}"),
    ]
    run({"for_each": "range(4)", "as": "i", "do": body}, seconds=decided_late_at(1))
    assert LOG == ["u0"]


def test_a_failure_behind_a_continue_counts_only_when_the_round_comes_to_it() -> None:
    body = [call("slow", result="n", value="{i}"), {"if": "n == 1", "then": [{"continue": True}]}]
    loop = {"for_each": [1], "as": "i", "do": [*body, call("fail", value=1)]}
    simulation = run(loop, {"answer": "done"}, seconds=decided_late_at(1))
    assert simulation.finish is not None
    assert simulation.finish.text == "done"
    assert started(simulation, "fail") == [0.0]


@pytest.mark.parametrize("how", [{"break": True}, {"continue": True}])
def test_what_was_collected_early_counts_only_when_the_loop_comes_to_it(how: dict[str, Any]) -> None:
    body = [call("slow", result="n", value="{i}"), {"if": "n == 1", "then": [how]}]
    loop = {"for_each": "range(4)", "as": "i", "do": body, "collect": "i * 10", "result_variable": "all"}
    simulation = run(loop, {"answer": "{json(all)}"}, seconds=decided_late_at(1))
    assert simulation.finish is not None
    assert simulation.finish.text == ("[0]" if "break" in how else "[0, 20, 30]")


def test_the_test_of_a_while_that_fails_there_counts_only_when_the_plan_comes_to_it() -> None:
    loop = {"while": "1 / zero > 0", "max_iterations": 3, "do": [{"let": {"zero": "0"}}]}
    spared = run({"let": {"zero": "0"}}, *leaving("n > 2"), loop)
    assert spared.finish is not None
    assert spared.finish.text == "enough"
    reached = run({"let": {"zero": "0"}}, *leaving("n > 5"), loop)
    assert reached.finish is not None
    assert reached.finish.outcome == "failed"
