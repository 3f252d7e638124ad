"""Rounds and members that fail do not hold each other back, in plans without effects as well (R73)."""

from __future__ import annotations

from typing import Any

import pytest

from toolplan import Plan, ToolSet, check, parse, tool
from toolplan.testing import run_in_written_order, simulate


@tool(pure=True)
def halve(value: int) -> int:
    if value % 2:
        raise ValueError(f"{value} is odd")
    return value // 2


HALVE = {"tool_name": "halve", "arguments": {"value": "{n}"}}


@pytest.mark.parametrize(
    "body",
    [
        [HALVE, {"break": True}],
        [{"if": "n > 0", "then": [HALVE, {"break": True}]}],
        [HALVE, {"answer": "{n} is even"}],
        [HALVE, {"cannot": "{n} is even"}],
        [{"for_each": [1, 2], "as": "m", "do": [HALVE, {"break": True}]}],
    ],
    ids=["break", "break in a branch", "answer", "cannot", "inner loop"],
)
@pytest.mark.parametrize("values", [[5, 7, 8, 9], [5, 7], [8, 5]])
def test_a_round_that_fails_does_not_come_to_its_end_of_the_loop(body: list[Any], values: list[int]) -> None:
    tools = ToolSet.of([halve])
    plan: list[Any] = [{"for_each": values, "as": "n", "do": body}]
    read = parse(plan, tools=tools)
    assert isinstance(read, Plan)
    checked = check(read, tools)
    written, run = run_in_written_order(checked), simulate(checked)
    assert run.finish is not None
    assert run.finish.outcome == written.outcome
    assert [(each.id, each.outcome) for each in run.records] == [(each.id, each.outcome) for each in written.records]


EVEN, ODD = ({"tool_name": "halve", "arguments": {"value": value}} for value in (8, 5))


@pytest.mark.parametrize(
    "plan",
    [
        [{"parallel": [{"if": "now != ''", "then": [ODD, {"answer": "done"}]}, EVEN]}],
        [{"parallel": [{"if": "now != ''", "then": [ODD, {"cannot": "do"}]}, EVEN]}],
        [
            {
                "while": "now != ''",
                "max_iterations": 2,
                "do": [{"parallel": [{"if": "now != ''", "then": [ODD, {"break": True}]}, EVEN]}],
            }
        ],
        [
            {
                "while": "now != ''",
                "max_iterations": 2,
                "do": [{"parallel": [{"if": "now != ''", "then": [ODD, {"continue": True}]}, EVEN]}],
            }
        ],
    ],
    ids=["answer", "cannot", "break", "continue"],
)
def test_a_member_that_fails_does_not_come_to_its_end_of_the_group(plan: list[Any]) -> None:
    tools = ToolSet.of([halve])
    read = parse(plan, tools=tools)
    assert isinstance(read, Plan)
    checked = check(read, tools)
    written, run = run_in_written_order(checked), simulate(checked)
    assert [each.outcome for each in written.records] == ["failed", "succeeded"]
    assert [(each.id, each.outcome) for each in run.records] == [(each.id, each.outcome) for each in written.records]
