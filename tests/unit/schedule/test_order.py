"""What may overlap and what may not, seen in simulated time: recorded intervals, no clock."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from toolplan.check import CheckedPlan
from toolplan.parse import parse
from toolplan.schedule import CallSucceeded, Command, FinishRun, Machine, Program, StartRun
from toolplan.testing import Simulation, simulate
from toolplan.tools import ToolSet, tool

LOG: list[str] = []


@tool(reads="weather")
def look(city: str) -> int:
    return len(city)


@tool(reads="weather")
def look_and_fail(city: str) -> int:
    raise ValueError(f"no weather for {city}")


@tool(writes="mailbox:{to}")
def send(to: str, text: str = "") -> str:
    LOG.append(f"{to}:{text}")
    return to


@tool(reads="mailbox")
def inbox() -> int:
    return len(LOG)


@tool
def something(name: str) -> str:
    LOG.append(name)
    return name


@tool(pure=True)
def slow(value: int) -> int:
    return value


@tool(pure=True)
def quick(value: int) -> int:
    return value


@tool(pure=True)
def slow_failure(value: int) -> int:
    raise ValueError("too late")


TOOLS = ToolSet.of([look, look_and_fail, send, inbox, something, slow, quick, slow_failure])


def took(name: str, _: Random) -> float:
    return {"slow": 10.0, "slow_failure": 10.0, "quick": 0.0}.get(name, 1.0)


def run(*steps: dict[str, Any], durations: Callable[[str, Random], float] | None = took, **options: Any) -> Simulation:
    LOG.clear()
    plan: Any = parse(json.dumps(list(steps)), tools=TOOLS)
    checked: Any = CheckedPlan(plan, TOOLS)
    return simulate(checked, durations=durations, **options)


def call(tool_name: str, result: str | None = None, **arguments: Any) -> dict[str, Any]:
    step: dict[str, Any] = {"tool_name": tool_name, "arguments": arguments}
    return step | ({"result_variable": result} if result else {})


def overlap(simulation: Simulation) -> bool:
    spans = sorted((start, end) for _, _, start, end in simulation.spans)
    return any(later[0] < earlier[1] for earlier, later in itertools.pairwise(spans))


def test_independent_reads_run_at_once() -> None:
    simulation = run(*[call("look", city="x" * n) for n in range(1, 11)])
    assert {start for _, _, start, _ in simulation.spans} == {0.0}
    assert simulation.seconds == 1.0


def test_undeclared_tools_never_overlap_and_keep_their_order() -> None:
    simulation = run(*[call("something", name=n) for n in "abc"])
    assert not overlap(simulation)
    assert LOG == ["a", "b", "c"]


def test_an_undeclared_tool_overlaps_nothing_else_either() -> None:
    simulation = run(call("look", city="a"), call("something", name="x"), call("look", city="b"))
    assert [start for _, _, start, _ in simulation.spans] == [0.0, 1.0, 2.0]


@pytest.mark.parametrize(("first", "second"), [("send", "inbox"), ("inbox", "send")])
def test_a_write_and_a_read_of_one_resource_never_swap(first: str, second: str) -> None:
    arguments = {"send": {"to": "ann"}, "inbox": {}}
    simulation = run(call(first, **arguments[first]), call(second, **arguments[second]))
    assert [name for name, *_ in simulation.spans] == [first, second]
    assert not overlap(simulation)


def test_writes_of_different_resources_overlap() -> None:
    simulation = run({"parallel": [call("send", to="ann"), call("send", to="bob")]})
    assert simulation.seconds == 1.0


def test_an_effect_waits_for_an_earlier_one_that_could_fail() -> None:
    simulation = run(call("send", to="ann"), call("send", to="bob"))
    assert not overlap(simulation)


def test_a_resource_that_is_not_known_yet_stands_for_its_family() -> None:
    members = [call("send", to="{'u' + str(n)}"), call("send", to="bob")]
    simulation = run(call("slow", result="n", value=1), {"parallel": members})
    assert [(name, start) for name, _, start, _ in simulation.spans] == [("slow", 0.0), ("send", 10.0), ("send", 10.0)]


def test_what_a_loop_has_not_unfolded_yet_keeps_its_place() -> None:
    simulation = run(
        call("slow", result="n", value=3),
        {"for_each": "range(n)", "as": "i", "do": [call("send", to="ann", text="{str(i)}")]},
        call("send", to="ann", text="last"),
    )
    assert LOG == ["ann:0", "ann:1", "ann:2", "ann:last"]
    assert not overlap(simulation)


def test_what_a_stalled_round_has_not_issued_yet_keeps_its_place() -> None:
    body = [
        call("slow", result="n", value="{i}"),
        {"if": "n > 5", "then": [{"continue": True}]},
        call("send", to="ann", text="in"),
    ]
    simulation = run({"for_each": [1], "as": "i", "do": body}, call("inbox"))
    assert [name for name, *_ in simulation.spans] == ["slow", "send", "inbox"]


def test_the_rounds_behind_the_window_keep_their_place() -> None:
    body = [call("slow", result="n", value="{i}"), call("send", to="ann", text="{str(n)}")]
    simulation = run({"for_each": [1, 2, 3, 4, 5, 6], "as": "i", "do": body}, call("inbox"), window=2)
    assert [name for name, *_ in simulation.spans][-1] == "inbox"
    assert ",".join(LOG) == "ann:1,ann:2,ann:3,ann:4,ann:5,ann:6"


def test_what_a_branch_has_not_decided_yet_keeps_its_place() -> None:
    run(
        call("slow", result="n", value=3),
        {"if": "n > 2", "then": [call("send", to="ann", text="branch")]},
        call("send", to="ann", text="last"),
    )
    assert LOG == ["ann:branch", "ann:last"]


def test_steps_after_a_branch_do_not_wait_for_it_without_a_reason() -> None:
    simulation = run(
        call("slow", result="n", value=3), {"if": "n > 2", "then": [call("look", city="a")]}, call("look", city="b")
    )
    assert ("look", {"city": "b"}, 0.0, 1.0) in simulation.spans


def test_a_failure_holds_back_every_later_effect() -> None:
    simulation = run(call("look_and_fail", city="x"), call("send", to="ann"), call("look", city="y"))
    assert LOG == []
    assert simulation.finish is not None
    assert simulation.finish.outcome == "failed"
    outcomes = {record.tool: record.outcome for record in simulation.records}
    assert outcomes == {"look_and_fail": "failed", "send": "not_run", "look": "cancelled"}


def test_an_effect_in_a_try_waits_for_what_could_fail_before_the_try() -> None:
    simulation = run(call("slow_failure", value=1), {"try": [call("send", to="ann")], "except": [{"note": "x"}]})
    assert LOG == []
    assert simulation.finish is not None
    assert simulation.finish.failed_step == "s1"


def test_an_effect_before_a_late_failure_has_happened() -> None:
    run(call("send", to="ann", text="before"), call("slow_failure", value=1), call("send", to="ann", text="after"))
    assert LOG == ["ann:before"]


def test_rounds_of_equal_standing_do_not_hold_each_other_back() -> None:
    body = [{"if": "i == 1", "then": [call("look_and_fail", city="x")]}, call("send", to="{'u' + str(i)}")]
    simulation = run({"for_each": [0, 1, 2], "as": "i", "do": body}, call("send", to="after"))
    assert sorted(LOG) == ["u0:", "u2:"]
    assert simulation.finish is not None
    assert simulation.finish.failed_step == "s3[1]"


@pytest.mark.parametrize("failing", ["slow_failure", "look_and_fail"])
def test_rounds_that_hand_a_value_on_are_not_of_equal_standing(failing: str) -> None:
    argument = {"city": "x"} if failing == "look_and_fail" else {"value": 1}
    body = [
        {"if": "i == 1", "then": [call(failing, **argument)]},
        {"let": {"seen": "seen + [i]"}},
        call("send", to="{'u' + str(i)}", text="{str(len(seen))}"),
    ]
    run({"let": {"seen": "[]"}}, {"for_each": [0, 1, 2], "as": "i", "do": body}, {"answer": "{seen}"})
    assert LOG == ["u0:1"]


def test_the_first_failure_in_written_order_counts() -> None:
    simulation = run(call("slow_failure", value=1), call("look_and_fail", city="x"))
    assert simulation.finish is not None
    assert simulation.finish.failed_step == "s1"
    assert simulation.finish.error == "too late"


def test_parallel_lets_undeclared_tools_overlap() -> None:
    simulation = run({"parallel": [call("something", name="a"), call("something", name="b")]})
    assert simulation.seconds == 1.0


def test_parallel_never_reorders_declared_conflicts() -> None:
    simulation = run({"parallel": [call("send", to="ann", text="1"), call("send", to="ann", text="2")]})
    assert LOG == ["ann:1", "ann:2"]
    assert not overlap(simulation)


def test_an_early_end_holds_back_what_it_could_prevent() -> None:
    simulation = run(
        call("slow", result="n", value=3), {"if": "n > 2", "then": [{"answer": "enough"}]}, call("look", city="a")
    )
    assert [name for name, *_ in simulation.spans] == ["slow"]
    assert simulation.finish is not None
    assert simulation.finish.text == "enough"


def test_the_longest_chain_starts_first() -> None:
    steps = [call("look", city="short"), call("slow", result="a", value=1), call("slow", result="b", value="{a}")]
    simulation = run(*steps, max_concurrency=1)
    assert [name for name, *_ in simulation.spans] == ["slow", "look", "slow"] or simulation.spans[0][0] == "slow"


def test_the_same_events_give_the_same_commands() -> None:
    body = [call("look", result="n", city="{'x' * (i + 1)}"), {"if": "n > 1", "then": [call("send", to="ann")]}]
    plan: Any = parse(json.dumps([{"for_each": [0, 1, 2], "as": "i", "do": body}, {"answer": "done"}]), tools=TOOLS)

    def play() -> list[list[Command]]:
        machine = Machine(Program(plan, TOOLS))
        said = [machine.on(StartRun("2026-01-01T00:00:00"))]
        while machine.running:
            key = max(machine.running)
            said.append(machine.on(CallSucceeded(key, 2, 0.0, 1.0)))
        return said

    first, second = play(), play()
    assert first == second
    assert first[-1][-1] == FinishRun("succeeded", "done")


def test_concurrency_is_bounded() -> None:
    simulation = run(*[call("look", city="x" * n) for n in range(1, 11)], max_concurrency=3)
    starts = [start for _, _, start, _ in simulation.spans]
    assert max(starts.count(at) for at in set(starts)) == 3


def test_a_tools_own_bound_holds() -> None:
    limited = ToolSet.of(t.changed(max_concurrency=2) if t.name == "look" else t for t in TOOLS)
    plan: Any = parse(json.dumps([call("look", city="x" * n) for n in range(1, 6)]), tools=limited)
    checked: Any = CheckedPlan(plan, limited)
    simulation = simulate(checked, durations=took)
    starts = [start for _, _, start, _ in simulation.spans]
    assert starts == [0.0, 0.0, 1.0, 1.0, 2.0]


def test_a_long_loop_runs_through_a_small_window() -> None:
    plan: Any = parse(
        json.dumps([{"for_each": "range(5000)", "as": "i", "do": [call("quick", value="{i}")]}]), tools=TOOLS
    )
    checked: Any = CheckedPlan(plan, TOOLS)
    simulation = simulate(checked, durations=took, window=64, max_concurrency=8)
    assert len(simulation.spans) == 5000
