"""Whatever overlaps, a run leaves the same world as running the steps one after the other (P3)."""

from __future__ import annotations

import json
import types
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolplan.parse import parse
from toolplan.plan import Plan
from toolplan.testing import run_in_written_order, simulate
from toolplan.tools import ToolSet, tool

Step = dict[str, Any]


class World:
    """A shared store that remembers the order of the effects on each of its cells."""

    def __init__(self) -> None:
        self.cells: dict[str, int] = {"a": 1, "b": 2, "c": 3}
        self.log: dict[str, list[Any]] = {"a": [], "b": [], "c": [], "marks": []}

    def change(self, key: str, entry: Any, value: int) -> None:
        self.cells[key] = value
        self.log[key].append(entry)

    def tools(self) -> ToolSet:
        @tool(reads="cell:{key}")
        def peek(key: str) -> int:
            return self.cells[key]

        @tool(writes="cell:{key}")
        def poke(key: str, value: int) -> int:
            self.change(key, ("poke", value), (self.cells[key] * 31 + value) % 997)
            return self.cells[key]

        @tool(writes="cell:{key}")
        def poke_or_fail(key: str, value: int) -> int:
            if value % 3 == 0:
                raise ValueError(f"no {value}")
            self.change(key, ("poke_or_fail", value), (self.cells[key] * 17 + value) % 997)
            return self.cells[key]

        @tool(reads="cell")
        def total() -> int:
            return sum(self.cells.values())

        @tool(writes="cell")
        def shift(value: int) -> int:
            for key in self.cells:
                self.change(key, ("shift", value), (self.cells[key] + value) % 997)
            return value

        @tool
        def anything(value: int) -> int:
            for key in self.cells:
                self.change(key, ("anything", value), (self.cells[key] * 7 + value) % 997)
            return sum(self.cells.values())

        @tool(pure=True)
        def double(value: int) -> int:
            return (2 * value) % 1009

        @tool(pure=True)
        def check_even(value: int) -> int:
            if value % 2:
                raise ValueError(f"{value} is odd")
            return value

        @tool
        def mark(name: str) -> str:
            self.log.setdefault(f"mark:{name}", []).append(name)
            return name

        return ToolSet.of([peek, poke, poke_or_fail, total, shift, anything, double, check_even, mark])


@st.composite
def plans(draw: st.DrawFn) -> dict[str, Any]:
    counter = iter(range(10_000))
    budget = draw(st.integers(3, 14))
    spent = 0

    def expression(names: frozenset[str]) -> str:
        if not names or draw(st.integers(0, 3)) == 0:
            return str(draw(st.integers(0, 9)))
        name = draw(st.sampled_from(sorted(names)))
        return draw(st.sampled_from([name, f"{name} + {draw(st.integers(0, 5))}", f"({name} * 3) % 11"]))

    def call(names: frozenset[str]) -> tuple[Step, frozenset[str]]:
        kind = draw(
            st.sampled_from(["peek", "poke", "poke_or_fail", "total", "shift", "anything", "double", "check_even"])
        )
        arguments: dict[str, Any] = {}
        if kind in ("peek", "poke", "poke_or_fail"):
            known = draw(st.booleans())
            arguments["key"] = (
                draw(st.sampled_from("abc")) if known else f"{{['a', 'b', 'c'][({expression(names)}) % 3]}}"
            )
        if kind not in ("peek", "total"):
            arguments["value"] = f"{{{expression(names)} + 0}}" if names else draw(st.integers(0, 9))
        variable = f"r{next(counter)}"
        step: Step = {"tool_name": kind, "arguments": arguments, "result_variable": variable}
        on_error = draw(st.sampled_from(["fail", "fail", "fail", "skip", "value", "do"]))
        if on_error == "skip":
            step["on_error"] = "skip"
        elif on_error == "value":
            step["on_error"] = {"value": draw(st.integers(0, 9))}
        elif on_error == "do":
            inner, _ = block(names, 1, False)
            step["on_error"] = {"do": [*inner, {"let": {variable: str(draw(st.integers(0, 9)))}}]}
        return step, names | {variable}

    def statement(names: frozenset[str], depth: int, in_loop: bool) -> tuple[Step, frozenset[str]]:
        nonlocal spent
        spent += 1
        kinds = ["call"] * 6 + ["let"]
        if depth and spent < budget:
            kinds += ["if", "if", "for", "for", "while", "parallel", "try"]
        if in_loop:
            kinds += ["leave"]
        kinds += ["answer_if"]
        kind = draw(st.sampled_from(kinds))
        if kind == "call":
            return call(names)
        if kind == "let":
            assigned = sorted(n for n in names if n.startswith("r"))
            name = draw(st.sampled_from(assigned)) if assigned and draw(st.booleans()) else f"r{next(counter)}"
            return {"let": {name: expression(names)}}, names | {name}
        test = f"({expression(names)}) % 2 == 0"
        if kind == "answer_if":
            return {"if": test, "then": [{"answer": f"left with {{{expression(names)}}}"}]}, names
        if kind == "leave":
            how = draw(st.sampled_from([{"break": True}, {"continue": True}]))
            return {"if": test, "then": [how]}, names
        if kind == "if":
            then, in_then = block(names, depth - 1, in_loop)
            other, in_other = block(names, depth - 1, in_loop)
            return {"if": test, "then": then, "else": other}, names | (in_then & in_other)
        if kind == "try":
            body, in_body = block(names, depth - 1, in_loop)
            handler, in_handler = block(names, depth - 1, in_loop)
            return {"try": body, "except": handler}, names | (in_body & in_handler)
        if kind == "parallel":
            members = [call(names)[0] for _ in range(draw(st.integers(1, 3)))]
            members = [m for m in members if m["tool_name"] != "anything"]
            members += [{"tool_name": "mark", "arguments": {"name": f"m{next(counter)}"}} for _ in range(2)]
            return {"parallel": members}, names
        if kind == "while":
            variable = f"n{next(counter)}"
            body, _ = block(names | {variable}, depth - 1, True)
            bound = draw(st.integers(1, 3))
            loop = {
                "while": f"{variable} < {bound}",
                "max_iterations": 4,
                "do": [{"let": {variable: f"{variable} + 1"}}, *body],
            }
            return {"if": "True", "then": [{"let": {variable: "0"}}, loop]}, names
        item = f"i{next(counter)}"
        body, in_body = block(names | {item}, depth - 1, True)
        variable = f"r{next(counter)}"
        items = draw(st.lists(st.integers(0, 9), max_size=4))
        step = {"for_each": items, "as": item, "do": body}
        if draw(st.booleans()):
            step |= {"collect": expression(in_body), "result_variable": variable}
            return step, names
        return step, names

    def block(names: frozenset[str], depth: int, in_loop: bool) -> tuple[list[Step], frozenset[str]]:
        steps: list[Step] = []
        for _ in range(draw(st.integers(1, 4 if depth > 1 else 3))):
            step, names = statement(names, depth, in_loop)
            steps.append(step)
        return steps, names

    steps, names = block(frozenset(), 3, False)
    plan: dict[str, Any] = {"steps": steps}
    if draw(st.booleans()):
        plan["answer"] = f"end {{{expression(names)}}}"
    return plan


def read(plan: dict[str, Any], tools: ToolSet) -> Plan:
    reading = parse(json.dumps(plan), tools=tools)
    assert isinstance(reading, Plan)
    return reading


def compare(plan: dict[str, Any], seed: int, concurrency: int | None, window: int = 512) -> None:
    expected, actual = World(), World()
    reference_tools, tools = expected.tools(), actual.tools()
    checked: Any = types.SimpleNamespace(plan=read(plan, reference_tools), tools=reference_tools)
    reference = run_in_written_order(checked)
    checked = types.SimpleNamespace(plan=read(plan, tools), tools=tools)
    simulation = simulate(checked, seed=seed, max_concurrency=concurrency, window=window)
    assert simulation.finish is not None, "the run hangs"
    assert (simulation.finish.outcome, simulation.finish.text) == (reference.outcome, reference.text), (
        simulation.finish,
        reference.error,
    )
    assert actual.cells == expected.cells
    assert actual.log == expected.log
    effects = {"poke", "poke_or_fail", "shift", "anything", "mark"}
    made = [c for c in reference.calls if c[0] in effects]
    ran = [r for r in simulation.records if r.tool in effects and r.outcome in ("succeeded", "failed")]
    assert sorted((r.tool, json.dumps(r.arguments), r.outcome) for r in ran if r.attempts) == sorted(
        (name, json.dumps(arguments), outcome) for name, arguments, outcome in made
    )


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(plan=plans(), seed=st.integers(0, 2**16), concurrency=st.sampled_from([None, 1, 2, 5]))
def test_overlap_changes_nothing(plan: dict[str, Any], seed: int, concurrency: int | None) -> None:
    compare(plan, seed, concurrency)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(plan=plans(), seed=st.integers(0, 2**16))
def test_a_small_window_changes_nothing(plan: dict[str, Any], seed: int) -> None:
    compare(plan, seed, None, window=2)
