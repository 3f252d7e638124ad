"""Limits: size, depth, calls in the worst case, rounds; and that nothing large takes long or goes deep."""

from __future__ import annotations

import time
from typing import Any

import pytest

from plan_tools import TOOLS, codes, only, reading
from toolplan.check import Limits, check
from toolplan.check.limits import max_calls
from toolplan.errors import PlanRejected
from toolplan.expressions import Literal, parse_expression
from toolplan.plan import If, Note, Plan, Step

PAY = {"tool_name": "pay", "arguments": {"account": "a", "amount": 1}}
W = {"tool_name": "get_weather", "arguments": {"city": "Oslo"}, "result_variable": "w"}
LIST = {"let": {"xs": "list(now)"}}


@pytest.mark.parametrize(
    ("steps", "calls"),
    [
        ([PAY, PAY], 2),
        ([{"if": "true", "then": [PAY, PAY], "else": [PAY]}], 2),
        ([{"for_each": [1, 2, 3], "as": "n", "do": [PAY, PAY]}], 6),
        ([{"for_each": "range(10)", "as": "n", "do": [PAY]}], 10),
        ([{"for_each": "range(3, 10, 2)", "as": "n", "do": [PAY]}], 4),
        ([{"for_each": "[1, now]", "as": "n", "do": [PAY]}], 2),
        ([LIST, {"for_each": "xs", "as": "n", "do": [PAY]}], None),
        ([LIST, {"for_each": "xs", "as": "n", "do": [{"note": "{n}"}]}], 0),
        ([{"while": "true", "do": [PAY], "max_iterations": 7}], 7),
        ([{"try": [PAY], "except": [PAY, PAY]}], 3),
        ([{**PAY, "on_error": {"do": [PAY]}}], 2),
        ([{"parallel": [PAY, {"for_each": [1, 2], "as": "n", "do": [PAY]}]}], 3),
    ],
)
def test_the_worst_case_of_calls(steps: list[Any], calls: int | None) -> None:
    plan = reading(steps)
    assert max_calls(plan.steps) == calls
    assert check(plan, TOOLS).max_calls == calls


def test_more_calls_than_allowed_points_at_the_largest_step() -> None:
    found = only([PAY, {"for_each": "range(50)", "as": "n", "do": [PAY]}], limits=Limits(max_calls=50))
    assert found.message == "the plan may make 51 calls, but at most 50 are allowed"
    assert found.place.json_path() == "$[1]"


def test_a_huge_range_is_counted_without_making_it() -> None:
    loop = {"for_each": f"range({10**30})", "as": "n", "do": [PAY]}
    assert codes([loop], limits=Limits(max_calls=10)) == ["TP503"]


def test_a_loop_over_unknown_values_is_left_to_the_run() -> None:
    assert codes([LIST, {"for_each": "xs", "as": "n", "do": [PAY]}], limits=Limits(max_calls=1)) == []


def test_more_steps_than_allowed() -> None:
    found = only([PAY] * 5, limits=Limits(max_steps=3))
    assert found.message == "the plan has 5 steps, but at most 3 are allowed"
    assert found.place.json_path() == "$[3]"


def nested(depth: int) -> Plan:
    step: Step = Note("s0", Literal("x"))
    for level in range(depth):
        step = If(f"s{level + 1}", parse_expression("true"), (step,))
    return Plan((step,))


def test_deep_nesting_is_refused_without_recursion() -> None:
    with pytest.raises(PlanRejected, match="steps are nested more than 50 levels deep"):
        check(nested(20_000), TOOLS)
    check(nested(49), TOOLS)


def test_a_bound_that_is_too_large() -> None:
    loop = {"while": "true", "do": [PAY], "max_iterations": 1_000_000}
    found = only([loop])
    assert found.message == "`max_iterations` is 1,000,000, but a loop may have at most 10,000 rounds"
    assert found.place.json_path() == "$[0].max_iterations"


def test_thousands_of_mistakes_take_no_time() -> None:
    steps = [{"tool_name": f"tool_{n}", "arguments": {"x": f"{{y{n}.z}}"}} for n in range(4000)]
    plan = reading(steps)
    started = time.perf_counter()
    with pytest.raises(PlanRejected) as rejected:
        check(plan, TOOLS)
    assert len(rejected.value.diagnostics) <= 250
    assert time.perf_counter() - started < 5


def test_a_list_that_grows_step_by_step() -> None:
    steps = [{"let": {"xs": "[]"}}, *({"let": {"xs": f"xs + [{n}]"}} for n in range(3000))]
    assert codes([*steps, {"answer": "{xs[0] + 1}"}]) == []


def test_long_and_deep_expressions_end() -> None:
    deep = "x"
    for _ in range(20):
        deep = f"(x if x == {deep} or not (x and x != 1) else 0)"
    long = " + ".join(["x"] * 90)
    tests = " and ".join(["(x or y is None)"] * 60)
    started = time.perf_counter()
    assert codes([{"let": {"x": "1", "y": "None", "a": deep, "b": long, "c": tests}}]) == []
    assert time.perf_counter() - started < 5
