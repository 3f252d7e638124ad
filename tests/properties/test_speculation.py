"""`speculate=True` changes nothing but the time: random plans full of ends that are decided late, run both ways.

The general trials (`test_written_order.py`) speculate as well, but few of their plans have much behind an undecided
end. Here every branch, `break`, `continue` and `answer` depends on a call, and calls take random times.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolplan.check import CheckedPlan
from toolplan.parse import parse
from toolplan.plan import Plan
from toolplan.testing import Reference, Simulation, run_in_written_order, simulate
from toolplan.tools import ToolSet, tool

Step = dict[str, Any]


class World:
    """A store of three cells, and tools that read and change them."""

    def __init__(self) -> None:
        self.cells = {"a": 1, "b": 2, "c": 3}
        self.log: list[tuple[str, str, int]] = []

    def tools(self) -> ToolSet:
        @tool(pure=True)
        def double(value: int) -> int:
            return (2 * value + 1) % 101

        @tool(pure=True)
        def odd(value: int) -> int:
            if value % 3 == 0:
                raise ValueError(f"{value} is divided by three")
            return value

        @tool(reads="cell:{key}")
        def peek(key: str) -> int:
            return self.cells[key]

        @tool(writes="cell:{key}")
        def poke(key: str, value: int) -> int:
            if value % 5 == 0:
                raise ValueError(f"no {value}")
            self.cells[key] = (self.cells[key] * 31 + value) % 997
            self.log.append(("poke", key, value))
            return self.cells[key]

        return ToolSet.of([double, odd, peek, poke])


@st.composite
def plans(draw: st.DrawFn) -> list[Step]:
    counter = iter(range(10_000))

    def name() -> str:
        return f"r{next(counter)}"

    def value(names: tuple[str, ...]) -> str:
        number = draw(st.integers(0, 9))
        return f"{draw(st.sampled_from(names))} + {number}" if names and draw(st.booleans()) else str(number)

    def call(names: tuple[str, ...], kinds: tuple[str, ...] = ("double", "odd", "peek", "peek", "poke")) -> Step:
        kind = draw(st.sampled_from(kinds))
        arguments: dict[str, Any] = {}
        if kind in ("peek", "poke"):
            some = names[-1] if names and draw(st.booleans()) else value(names)  # the last may be a loop's element
            arguments["key"] = draw(st.sampled_from(["a", "b", {"$expr": f"['a', 'b', 'c'][({some}) % 3]"}]))
        if kind != "peek":
            arguments["value"] = {"$expr": value(names)}
        step: Step = {"tool_name": kind, "arguments": arguments, "result_variable": name()}
        on_error = draw(st.sampled_from(["fail", "fail", "skip", "value", "do"]))
        if on_error == "do":
            step["on_error"] = {"do": [*block(names, 0, False), {"let": {step["result_variable"]: "7"}}]}
        elif on_error != "fail":
            step["on_error"] = "skip" if on_error == "skip" else {"value": 4}
        return step

    def leave(names: tuple[str, ...], in_loop: bool) -> list[Step]:
        tested = call(names, ("double", "peek"))
        tested.pop("on_error", None)
        how: list[Step] = [{"answer": f"left with {{{tested['result_variable']}}}"}]
        if in_loop:
            how += [{"break": True}, {"break": True}, {"continue": True}, {"continue": True}]
        test = f"{tested['result_variable']} % {draw(st.integers(2, 5))} == 0"
        return [tested, {"if": test, "then": [*block(names, 0, False, 1), draw(st.sampled_from(how))]}]

    def steps(names: tuple[str, ...], depth: int, in_loop: bool) -> tuple[list[Step], tuple[str, ...]]:
        kinds = ["call", "call", "call", "let", "again", "note", "leave", "leave", "leave"]
        if depth:
            kinds += ["if", "for", "for", "while", "try", "parallel"]
        kind = draw(st.sampled_from(kinds))
        if kind == "call":
            step = call(names)
            return [step], (*names, step["result_variable"])
        if kind == "let" or (kind == "again" and not names):
            new = name()
            return [{"let": {new: value(names)}}], (*names, new)
        if kind == "again":
            return [{"let": {draw(st.sampled_from(names)): value(names)}}], names
        if kind == "note":
            return [{"note": f"seen {{{value(names)}}}"}], names
        if kind == "leave":
            return leave(names, in_loop), names
        if kind == "if":
            test = call(names, ("double",))
            branch = {"if": f"default({test['result_variable']}, 0) % 2 == 0", "then": block(names, depth - 1, in_loop)}
            return [test, branch | {"else": block(names, depth - 1, in_loop)}], names
        if kind == "for":
            item = name()
            loop: Step = {"for_each": draw(st.lists(st.integers(0, 9), max_size=4)), "as": item}
            loop["do"] = block((*names, item), depth - 1, True)
            if draw(st.booleans()):
                new = name()
                return [loop | {"collect": value((*names, item)), "result_variable": new}], names
            return [loop], names
        if kind == "while":
            counted = name()
            body = [{"let": {counted: f"{counted} + 1"}}, *block((*names, counted), depth - 1, True)]
            loop = {"while": f"{counted} < {draw(st.integers(1, 3))}", "max_iterations": 4, "do": body}
            return [{"let": {counted: "0"}}, loop], names
        if kind == "try":
            return [{"try": block(names, depth - 1, in_loop), "except": block(names, depth - 1, in_loop)}], names
        return [{"parallel": [call(names) for _ in range(draw(st.integers(1, 3)))]}], names

    def block(names: tuple[str, ...], depth: int, in_loop: bool, size: int = 3) -> list[Step]:
        found: list[Step] = []
        for _ in range(draw(st.integers(1, size))):
            more, names = steps(names, depth, in_loop) if depth else ([call_only(names)], names)
            found += more
        return found

    def call_only(names: tuple[str, ...]) -> Step:
        step = call(names, ("double", "peek", "poke"))
        step["on_error"] = "skip"
        return step

    names = tuple(name() for _ in range(2))
    begin = [{"tool_name": "double", "arguments": {"value": i}, "result_variable": n} for i, n in enumerate(names)]
    return [*begin, *leave(names, False), *block(names, 3, False, 5)]


def needed(simulation: Simulation) -> list[tuple[Any, ...]]:
    """Return the rows of the calls that the plan came to, which are the same with and without `speculate`."""
    rows = [record for record in simulation.records if record.outcome in ("succeeded", "failed", "skipped")]
    return sorted((r.path, r.id, json.dumps(r.arguments), r.outcome, json.dumps(r.result), r.error) for r in rows)


def both(plan: list[Step], seed: int, concurrency: int | None, window: int) -> tuple[Reference, list[Simulation]]:
    simulations: list[Simulation] = []
    worlds = [World(), World(), World()]
    plans_of: list[CheckedPlan] = []
    for world in worlds:
        tools = world.tools()
        reading = parse(json.dumps(plan), tools=tools)
        assert isinstance(reading, Plan)
        plans_of.append(CheckedPlan(reading, tools))
    reference = run_in_written_order(plans_of[0])
    for checked, speculate in zip(plans_of[1:], (False, True), strict=True):
        settings: dict[str, Any] = {"seed": seed, "max_concurrency": concurrency, "window": window}
        simulations.append(simulate(checked, speculate=speculate, **settings))
    assert worlds[1].cells == worlds[2].cells == worlds[0].cells
    by_cell = [{key: [e for e in world.log if e[1] == key] for key in "abc"} for world in worlds]
    assert by_cell[1] == by_cell[2] == by_cell[0]
    return reference, simulations


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    plan=plans(),
    seed=st.integers(0, 2**16),
    concurrency=st.sampled_from([None, None, 4, 1]),
    window=st.sampled_from([512, 512, 3, 1]),
)
def test_what_begins_early_changes_nothing(plan: list[Step], seed: int, concurrency: int | None, window: int) -> None:
    reference, (patient, eager) = both(plan, seed, concurrency, window)
    for simulation in (patient, eager):
        assert simulation.finish is not None, "the run hangs"
        assert (simulation.finish.outcome, simulation.finish.text) == (reference.outcome, reference.text)
    assert Counter(eager.notes) == Counter(patient.notes)
    if not any(record.outcome == "failed" for record in patient.records):  # else calls may have run for nothing
        assert needed(eager) == needed(patient)
