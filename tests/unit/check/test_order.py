"""Order: what never runs, loops that are left from outside, steps that wait for later ones."""

from __future__ import annotations

from typing import Any

import pytest

from plan_tools import TOOLS, codes, only
from toolplan.check import check
from toolplan.errors import PlanRejected
from toolplan.plan import Break, Plan

PAY = {"tool_name": "pay", "arguments": {"account": "a", "amount": 1}}
END = {"answer": "done"}


def customer(name: str, *depends_on: str) -> dict[str, Any]:
    step = {"tool_name": "find_customer", "arguments": {"name": "Kim"}, "result_variable": name}
    return {**step, "depends_on": list(depends_on)} if depends_on else step


@pytest.mark.parametrize(
    "before",
    [
        END,
        {"cannot": "no"},
        {"replan": "more is known now"},
        {"if": "true", "then": [END], "else": [{"cannot": "no"}]},
        {"try": [PAY, END], "except": [END]},
        {"parallel": [PAY, END]},
    ],
)
def test_a_step_behind_the_end_of_every_path_never_runs(before: dict[str, Any]) -> None:
    assert codes([before, PAY]) == ["TP210"]


@pytest.mark.parametrize(
    "before",
    [
        {"if": "true", "then": [END]},
        {"try": [PAY], "except": [END]},
        {"for_each": [1], "as": "n", "do": [END]},
        {**PAY, "on_error": {"do": [END]}},
    ],
)
def test_a_step_that_some_path_leads_to_runs(before: dict[str, Any]) -> None:
    assert codes([before, {**PAY, "again": "once more"}]) == []


def test_only_the_first_step_that_never_runs_is_told() -> None:
    assert codes([END, PAY, PAY]) == ["TP210"]


def test_what_follows_break_in_a_round_never_runs() -> None:
    assert codes([{"for_each": [1], "as": "n", "do": [{"break": True}, PAY]}]) == ["TP210"]


def test_break_outside_of_a_loop() -> None:
    with pytest.raises(PlanRejected, match="TP121: `break` stands outside any loop"):
        check(Plan((Break("s1"),)), TOOLS)


def test_a_plan_of_nothing() -> None:
    with pytest.raises(PlanRejected, match="the plan has no steps and no answer"):
        check(Plan(()), TOOLS)


def test_a_step_cannot_wait_for_a_later_one() -> None:
    found = only([customer("a", "b"), customer("b")])
    assert (found.code, found.message) == ("TP205", "`a` is to wait for `b`, which comes later")


def test_a_circle_names_its_whole_path_and_marks_each_use() -> None:
    found = only([customer("a", "b"), customer("b", "a")])
    assert found.message == "steps wait for each other in a circle: `a` -> `b` -> `a`"
    marked = [found.place, *(mark.place for mark in found.others)]
    assert [place.json_path() for place in marked] == ["$[0].depends_on[0]", "$[1].depends_on[0]"]


def test_a_circle_of_three_through_a_value() -> None:
    orders = {"tool_name": "list_orders", "arguments": {"customer_id": "{b.id}"}, "result_variable": "c"}
    found = only([customer("a", "c"), customer("b", "a"), orders])
    assert found.message.endswith("`a` -> `c` -> `b` -> `a`")


def test_a_step_that_waits_for_itself() -> None:
    assert only([customer("a", "a")]).message.endswith("in a circle: `a` -> `a`")


def test_depends_on_an_unknown_step() -> None:
    found = only([{**PAY, "result_variable": "paid"}, customer("a", "payd")])
    assert (found.code, found.help) == ("TP204", "did you mean `paid`?")


def test_depends_on_earlier_steps_is_fine() -> None:
    assert codes([customer("a"), {"if": "a.email", "then": [PAY]}, customer("b", "a", "s2", "s3")]) == []


def test_an_unknown_dependency_is_never_the_step_itself_or_a_later_one() -> None:
    found = only([{**PAY, "depends_on": [0]}])
    assert (found.code, found.help) == (
        "TP204",
        "steps are counted from 1; leave `depends_on` out where nothing is before",
    )
    assert found.notes == ()
    found = only([customer("abcde", "abcdf"), customer("abcdg")])
    assert (found.code, found.help, found.notes) == ("TP204", None, ())
    found = only([customer("first"), customer("abcde", "abcdf"), customer("abcdg")])
    assert (found.help, found.notes) == (None, ("steps before this one are known as `s1`, `first`",))


def test_steps_without_a_name_of_their_own_are_called_by_their_ids() -> None:
    first, second = ({**PAY, "arguments": {"account": "a", "amount": n}} for n in (1, 2))
    assert only([{**first, "depends_on": ["s2"]}, second]).message == "`s1` is to wait for `s2`, which comes later"
    assert only([{**first, "depends_on": ["s1"]}]).message.endswith("in a circle: `s1` -> `s1`")
