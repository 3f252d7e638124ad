"""The whole check: all problems at once and in order, nothing changed, what comes out."""

from __future__ import annotations

import pytest

from plan_tools import TOOLS, codes, diagnostics, reading
from toolplan.check import CheckedPlan, check
from toolplan.errors import PlanRejected
from toolplan.plan import Plan

MANY = """
[{"tool_name": "click", "arguments": {"selector": "#buy"}},
 {"tool_name": "get_wether", "arguments": {"city": "Oslo"}, "result_variable": "w"},
 {"tool_name": "find_customer", "arguments": {"name": 5}, "result_variable": "c"},
 {"if": "c.nme == 'Kim'", "then": [{"let": {"x": "1"}}]},
 {"tool_name": "send_email", "arguments": {"to": "{c.email}", "subject": "{y}", "bdy": "b"}},
 {"for_each": "c", "as": "e", "do": [{"tool_name": "pay", "arguments": {"account": "{e}"}}]},
 {"answer": "{x}"}]"""


BARE = {"steps": [{"tool_name": "get_weather", "arguments": {"city": "Oslo"}}], "answer": "{temperature}"}


def test_all_problems_come_at_once_in_source_order() -> None:
    found = codes(MANY)
    assert found == ["TP402", "TP201", "TP301", "TP306", "TP305", "TP203", "TP302", "TP315", "TP303", "TP202"]


def test_each_problem_knows_its_line() -> None:
    plan = reading(MANY)
    lines = [each.to_dict(plan.source)["line"] for each in diagnostics(MANY)]
    assert lines == sorted(lines, key=int)  # type: ignore[arg-type]


def test_a_rejection_carries_its_source() -> None:
    plan = reading(MANY)
    with pytest.raises(PlanRejected) as rejected:
        check(plan, TOOLS)
    assert rejected.value.source is plan.source
    assert str(rejected.value).endswith("(and 9 more)")


def test_checking_changes_nothing_and_says_the_same_again() -> None:
    plan = reading(MANY)
    before = repr(plan)
    rejections = []
    for _ in range(2):
        with pytest.raises(PlanRejected) as rejected:
            check(plan, TOOLS)
        rejections.append(rejected.value.diagnostics)
    assert rejections[0] == rejections[1]
    assert repr(plan) == before


def test_what_comes_out() -> None:
    plan = reading(
        '{"steps": [{"tool_name": "get_weather", "arguments": {"city": "Oslo"}}], "answer": "{temperature}"}'
    )
    checked = check(plan, TOOLS)
    assert isinstance(checked, CheckedPlan)
    assert (checked.tools, checked.max_calls) == (TOOLS, 1)
    assert [each.code for each in checked.warnings] == ["TP207"]
    assert checked.plan is not plan
    assert checked.plan.source is plan.source


def test_a_checked_plan_checks_clean() -> None:
    plan = reading(
        '{"steps": [{"tool_name": "get_weather", "arguments": {"city": "Oslo"}}], "answer": "{temperature}"}'
    )
    assert check(check(plan, TOOLS).plan, TOOLS).warnings == ()


def test_a_plan_without_a_source_can_be_checked() -> None:
    plan = reading(MANY)
    with pytest.raises(PlanRejected) as rejected:
        check(Plan(plan.steps, plan.answer), TOOLS)
    assert len(rejected.value.diagnostics) == 10
