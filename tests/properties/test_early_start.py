"""Calls that start while the plan arrives change nothing but the time it takes (P2, P3)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from toolplan import Agent, Plan, ToolSet, check, parse, tool
from toolplan.agent import AgentEvent, ModelAsked, PlanAccepted, Replanning
from toolplan.agent_events import CallsRequested
from toolplan.models import ScriptedModel
from toolplan.run import EarlyStarted
from toolplan.testing import run_in_written_order

Step = dict[str, Any]
CHANGING = {"poke", "shift", "anything"}


class World:
    """Cells that tools read and change, and the order of all changes of each."""

    def __init__(self) -> None:
        self.cells = {"a": 1, "b": 2, "c": 3}
        self.log: dict[str, list[Any]] = {key: [] for key in self.cells}

    def change(self, key: str, entry: Any) -> None:
        self.cells[key] = (self.cells[key] * 31 + len(str(entry))) % 997
        self.log[key].append((entry, self.cells[key]))

    def tools(self) -> ToolSet:
        @tool(reads="cell:{key}", runs_in="loop")
        def peek(key: str) -> int:
            return self.cells[key]

        @tool(reads="cell", runs_in="loop")
        def total() -> int:
            return sum(self.cells.values())

        @tool(pure=True, runs_in="loop")
        def double(value: int) -> int:
            return (2 * value) % 1009

        @tool(pure=True, runs_in="loop")
        def check_even(value: int) -> int:
            if value % 2:
                raise ValueError(f"{value} is odd")
            return value

        @tool(writes="cell:{key}", runs_in="loop")
        def poke(key: str, value: int) -> int:
            self.change(key, value)
            return self.cells[key]

        @tool(writes="cell", runs_in="loop")
        def shift(value: int) -> int:
            for key in self.cells:
                self.change(key, value)
            return value

        @tool(runs_in="loop")
        def anything(value: int) -> int:
            self.change("b", value)
            return value

        return ToolSet.of([peek, total, double, check_even, poke, shift, anything])


@st.composite
def plans(draw: st.DrawFn, known: Sequence[str] | None = None, letter: str = "r", ends: bool = True) -> list[Step]:
    """Steps of which the first ones are mostly of the sort that may start early.

    They may use the names that are `known`, and give others that begin with the `letter`.
    """
    names: list[str] = list(known or ())

    def expression() -> str:
        name = draw(st.sampled_from([*names, ""]))
        return f"{name} + {draw(st.integers(0, 3))}" if name else f"len(now) * 0 + {draw(st.integers(0, 9))}"

    def call(kinds: list[str]) -> Step:
        kind = draw(st.sampled_from(kinds))
        arguments: dict[str, Any] = {} if kind in ("peek", "total") else {"value": f"{{{expression()}}}"}
        if kind in ("peek", "poke"):
            is_fixed = not names or draw(st.booleans())
            arguments["key"] = draw(st.sampled_from("abc" if is_fixed else [f"{{'abc'[{n} % 3]}}" for n in names]))
        again = {"again": "what was done before is no reason not to"} if known is not None and kind in CHANGING else {}
        return {"tool_name": kind, "arguments": arguments} | again

    reading = ["peek", "peek", "total", "double", "check_even"]
    every = [*reading, "poke", "poke", "shift", "anything"]
    steps: list[Step] = []
    for number in range(draw(st.integers(1, 9))):
        kind = draw(st.sampled_from(["call"] * 6 + ["parallel"] * 2 + ["let", "note", "if", "for", "end", "try"]))
        inner = [call(every) for _ in range(draw(st.integers(1, 2)))] if kind in ("if", "for", "try") else []
        this = f"{letter}{number}"
        test = f"({expression()}) % 2 == 0"
        if kind == "call":
            step = call(reading if number < 3 else every) | {"result_variable": this}
            if draw(st.integers(0, 4)) == 0:
                step["on_error"] = {"value": draw(st.integers(0, 9))}
            steps.append(step)
            names.append(this)
        elif kind == "let":
            steps.append({"let": {this: expression()}})
            names.append(this)
        elif kind == "note":
            steps.append({"note": f"seen {{{expression()}}}"})
        elif kind == "parallel":
            apart = [kind for kind in every if kind != "anything"]  # `parallel` says that it is independent; it is not
            members = [call(reading if number < 3 else apart) for _ in range(draw(st.integers(1, 3)))]
            given = [f"{this}_{member}" for member in range(len(members))]
            steps.append({"parallel": [m | {"result_variable": name} for m, name in zip(members, given, strict=True)]})
            names += given
        elif kind == "if":
            steps.append({"if": test, "then": inner, "else": [call(every)]})
        elif kind == "for":
            steps.append({"for_each": [1, 2], "as": f"i{this}", "do": inner})
        elif kind == "try":
            steps.append({"try": inner, "except": [{"note": "failed"}]})
        elif ends:
            steps.append({"if": test, "then": [{"answer": f"left with {{{expression()}}}"}]})
    steps.append({"answer": f"end {{{expression()}}}"} if ends else {"note": "so far"})
    return steps


def names_in(steps: Sequence[Step]) -> list[str]:
    """Return the names that the top-level steps give, whatever comes."""
    found: list[str] = []
    for step in steps:
        for each in step.get("parallel", (step,)):
            found += [each["result_variable"]] if "result_variable" in each else list(each.get("let", ()))
    return found


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=plans(), rehearsal=st.none() | plans(), size=st.integers(1, 60), concurrency=st.sampled_from([1, 2, 64]))
def test_an_early_start_changes_nothing(
    steps: list[Step], rehearsal: list[Step] | None, size: int, concurrency: int
) -> None:
    text = json.dumps({"steps": steps})
    if rehearsal is not None:  # thinking whose opening tag the server has kept: it looks like the plan at first
        text = f"{json.dumps(rehearsal)}\n</think>\n{text}"
    world, expected = World(), World()
    untouched = json.dumps(world.log)
    early: list[EarlyStarted] = []

    def watch(happened: AgentEvent) -> None:
        if isinstance(happened, EarlyStarted):
            early.append(happened)
        if isinstance(happened, EarlyStarted | PlanAccepted):
            assert json.dumps(world.log) == untouched, "an effect before the plan was accepted"

    model = ScriptedModel([{"text": text, "chunks": size}])
    limits: dict[str, Any] = {"max_repairs": 0, "max_replans": 0, "max_concurrency": concurrency}
    agent = Agent(model, world.tools(), answer="none", policy="declared", **limits)
    result = asyncio.run(agent.run("please", watch=watch))

    taken = len(early) - len(result.discarded)
    event(f"early calls taken: {min(taken, 3)}, discarded: {min(len(result.discarded), 3)}")
    assert not {call.tool for call in early} & CHANGING
    if result.outcome == "rejected":
        assert json.dumps(world.log) == untouched
        assert taken == 0
        return
    tools = expected.tools()
    plan = parse(steps, tools=tools)
    assert isinstance(plan, Plan)
    reference = run_in_written_order(check(plan, tools))
    assert result.outcome == reference.outcome
    assert (result.error or "").endswith(reference.error or "")
    if reference.outcome == "succeeded":
        assert result.answer == reference.text
        assert taken == sum((step.started_seconds or 0) < 0 for step in result.steps)
    assert world.cells == expected.cells
    assert world.log == expected.log


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), size=st.integers(1, 60), concurrency=st.sampled_from([1, 64]))
def test_an_early_start_changes_nothing_in_the_rest_of_a_plan(data: st.DataObject, size: int, concurrency: int) -> None:
    """The rest of a plan that wanted to see results means what it means behind the first part."""
    first = data.draw(plans(ends=False))
    rest = data.draw(plans(known=names_in(first), letter="q"))
    world, expected, trial = World(), World(), World()
    tools = trial.tools()
    alone = parse(first, tools=tools)
    assert isinstance(alone, Plan)
    assume(run_in_written_order(check(alone, tools)).outcome == "succeeded")
    told: list[AgentEvent] = []
    logs: list[str] = []

    def watch(happened: AgentEvent) -> None:
        told.append(happened)
        if isinstance(happened, Replanning):
            logs.append(json.dumps(world.log))
        if isinstance(happened, EarlyStarted | PlanAccepted) and logs:
            assert json.dumps(world.log) == logs[-1], "an effect before the rest was accepted"

    texts = [json.dumps({"steps": steps}) for steps in ([*first, {"replan": "what now"}], rest)]
    model = ScriptedModel([{"text": text, "chunks": size} for text in texts])
    limits: dict[str, Any] = {"max_repairs": 0, "max_replans": 1, "max_concurrency": concurrency}
    agent = Agent(model, world.tools(), answer="none", policy="declared", **limits)
    result = asyncio.run(agent.run("please", watch=watch))

    at = next(number for number, each in enumerate(told) if isinstance(each, Replanning))
    early = [each for each in told[at:] if isinstance(each, EarlyStarted)]
    event(f"early calls of the rest: {min(len(early), 3)}")
    assert not {call.tool for call in early} & CHANGING
    tools = expected.tools()
    plan = parse([*first, *rest], tools=tools)
    assert isinstance(plan, Plan)
    reference = run_in_written_order(check(plan, tools))
    assert result.outcome == reference.outcome
    assert (reference.error or "") in (result.error or "")
    if reference.outcome == "succeeded":
        assert result.answer == reference.text
    assert world.cells == expected.cells
    assert world.log == expected.log


@st.composite
def turns(draw: st.DrawFn) -> list[list[tuple[str, dict[str, Any]]]]:
    """The calls of some turns of a loop."""
    value, key = st.integers(0, 3), st.sampled_from("abc")

    def call() -> tuple[str, dict[str, Any]]:
        kind = draw(
            st.sampled_from(["peek"] * 4 + ["total", "double", "check_even", "poke", "poke", "shift", "anything"])
        )
        arguments: dict[str, Any] = {} if kind in ("peek", "total") else {"value": draw(value)}
        if kind in ("peek", "poke"):
            arguments["key"] = draw(key)
        if kind in CHANGING:
            arguments["again"] = "what was done before is no reason not to"
        elif draw(st.integers(0, 9)) == 0:
            arguments["nothing"] = 1  # refused
        return kind, arguments

    return [[call() for _ in range(draw(st.integers(1, 6)))] for _ in range(draw(st.integers(1, 3)))]


def reply_of(calls: Sequence[tuple[str, dict[str, Any]]], is_text: bool, size: int) -> dict[str, Any]:
    written = [{"name": name, "arguments": arguments} for name, arguments in calls]
    if not is_text:
        return {"tool_calls": written}
    return {"text": "\n".join(f"<tool_call>\n{json.dumps(call)}\n</tool_call>" for call in written), "chunks": size}


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(calls=turns(), is_text=st.booleans(), size=st.integers(1, 60), concurrency=st.sampled_from([1, 2, 64]))
def test_an_early_start_changes_nothing_in_a_loop(
    calls: list[list[tuple[str, dict[str, Any]]]], is_text: bool, size: int, concurrency: int
) -> None:
    came: list[Any] = []
    for early_start in (True, False):
        world, early = World(), list[EarlyStarted]()
        logs = [json.dumps(world.log)]

        def watch(happened: AgentEvent, world: World = world, early: Any = early, logs: list[str] = logs) -> None:
            if isinstance(happened, ModelAsked):
                logs.append(json.dumps(world.log))
            if isinstance(happened, EarlyStarted):
                early.append(happened)
            if isinstance(happened, EarlyStarted | CallsRequested):
                assert json.dumps(world.log) == logs[-1], "an effect before the turn was whole"

        model = ScriptedModel([*(reply_of(turn, is_text, size) for turn in calls), "done"])
        settings: dict[str, Any] = {"policy": "declared", "mode": "loop", "max_concurrency": concurrency}
        agent = Agent(model, world.tools(), early_start=early_start, **settings)
        result = asyncio.run(agent.run("please", watch=watch))
        assert not {call.tool for call in early} & CHANGING
        assert early_start or not early
        steps = [(s.id, s.tool, s.arguments, s.outcome, s.result, s.error, s.attempts) for s in result.steps]
        came.append((result.outcome, result.answer, result.error, steps, world.cells, world.log))
        if early_start:
            event(f"early calls taken in a loop: {min(len(early) - len(result.discarded), 3)}")
    assert came[0] == came[1]
