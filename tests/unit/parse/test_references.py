"""References in other systems' styles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolplan.errors import PlanRejected
from toolplan.expressions import fill
from toolplan.parse import parse
from toolplan.plan import Answer, Call, ForEach, Plan
from toolplan.values import Json

DATA = Path(__file__).parents[3].parent / "shared" / "data"
RESULT: dict[str, Json] = {"name": "Kim", "total": 12, "Exchange Rate": 1.5, "items": [{"id": 7}]}


def argument(value: Any, *, first: dict[str, Any] | None = None, more: str = "x") -> Json:
    """The value that a second step's argument gets when the first step's result is RESULT."""
    first = {"tool_name": "get", "arguments": {}, **(first or {"result_variable": "u"})}
    plan = parse([first, {"tool_name": "send", "arguments": {"value": value, "more": more}}])
    assert isinstance(plan, Plan)
    get, send = plan.steps
    assert isinstance(get, Call)
    assert isinstance(send, Call)
    filled = fill(send.arguments, dict.fromkeys(get.defines, RESULT))
    assert isinstance(filled, dict)
    return filled["value"]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("${u.total}", 12),
        ("${u}", RESULT),
        ("${u.items[0].id}", 7),
        ("${u.total * 2}", 24),
        ("${1.total}", 12),
        ("${1}.total", 12),
        ("$u.total$", 12),
        ("$u$", RESULT),
        ("$u.items[0].id$", 7),
        ("$u.Exchange Rate$", 1.5),
        ("$u.total", 12),
        ("#E1.total", 12),
        ("#E1", RESULT),
        (["${u.name}", {"deep": "${u.total}"}], ["Kim", {"deep": 12}]),
        ("{u.total}", 12),
    ],
)
def test_a_whole_text_keeps_its_type(written: Any, value: Json):
    assert argument(written) == value


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("5 * $u.total$", "5 * 12"),
        ("$u.items[0].id$ of $u.total$", "7 of 12"),
        ("Dear $u.name$, {u.total}", "Dear Kim, 12"),
        ("see #E1.name", "see Kim"),
    ],
)
def test_inside_longer_text(written: str, value: str):
    first = {"result_variable": "u", "id": "E1"}
    assert argument(written, first=first) == value


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("Dear ${u.name}: ${u.total}", "Dear Kim: 12"),
        ("${stranger} and ${u.total}", "${stranger} and 12"),
        ("{u.name}: ${u.total}", "Kim: $12"),
    ],
)
def test_a_dollar_before_a_brace_belongs_to_the_hole_where_whole_texts_are_written_so(written: str, value: str):
    assert argument(written, more="${u.name}") == value


@pytest.mark.parametrize("more", ["x", "{u.name}", "${u.total} or", '{"a": 1}'])
def test_a_dollar_before_a_brace_is_money_elsewhere_whatever_other_texts_hold(more: str):
    assert argument("total: ${u.total}", more=more) == "total: $12"


@pytest.mark.parametrize(
    "written", ["costs $u.total and $5 more", "now $u.name $1 off", "$u.a, b$ x", "$u.Exchange Rate$ x"]
)
def test_prose_up_to_the_next_dollar_is_no_field(written: str):
    assert argument(written) == written


@pytest.mark.parametrize(
    "written", ["$100", "$5-$10", "costs $1", "a $ b", "$unknown", "US$", "#1", "$100$", "{$x}", "#E9x and $y$"]
)
def test_dollars_that_refer_to_nothing_are_text(written: str):
    assert argument(written) == written


def test_a_dollar_before_a_hole_is_a_dollar_in_the_languages_own_style():
    assert argument("Total: ${u.total}", more="{u.name}") == "Total: $12"
    assert argument("Total: ${ u.total}") == "Total: $12"
    get = {"tool_name": "get", "result_variable": "u"}
    plan = parse({"steps": [get], "answer": "Total: ${u.total}"})
    assert isinstance(plan, Plan)
    assert plan.answer is not None
    assert fill(plan.answer, {"u": RESULT}) == "Total: $12"
    plan = parse([get, {"answer": "Total: ${u.total}"}])
    assert isinstance(plan, Plan)
    assert fill(plan.steps[1].text, {"u": RESULT}) == "Total: $12"  # type: ignore[union-attr]


def test_numbers_refer_to_labelled_steps():
    first = {"id": 1}
    assert argument("$1", first=first) == RESULT
    assert argument("$1.total", first=first) == 12
    assert argument("$1") == "$1"


def test_undefined_references_stay_references():
    for written in ("${report.summary}", "$var9.x$", "${7}.a", "#E7"):
        plan = parse([{"tool_name": "send", "arguments": {"text": written}}])
        assert isinstance(plan, Plan)
        with pytest.raises(Exception, match=r"report|var9|s7"):
            fill(plan.steps[0].arguments, {})  # type: ignore[union-attr]


def test_loops_and_labels():
    plan = parse(
        [
            {"tool_name": "list_mail", "label": "$var_1"},
            {"for_each": "$var_1.items$", "as": "x", "do": [{"tool_name": "archive", "arguments": {"id": "$x.id$"}}]},
        ]
    )
    assert isinstance(plan, Plan)
    loop = plan.steps[1]
    assert isinstance(loop, ForEach)
    assert fill(loop.items, {"var_1": RESULT}) == [{"id": 7}]
    assert fill(loop.body[0].arguments, {"x": {"id": 7}}) == {"id": 7}  # type: ignore[union-attr]


def test_the_step_that_only_names_the_answer():
    steps = [
        {"name": "get", "arguments": {}, "label": "var1"},
        {"name": "var_result", "arguments": {"total": "$var1.total$"}},
    ]
    plan = parse(steps)
    assert isinstance(plan, Plan)
    assert isinstance(plan.steps[1], Answer)
    assert fill(plan.steps[1].text, {"var1": RESULT}) == {"total": 12}
    kept = parse(steps, tools=["get", "var_result"])
    assert isinstance(kept, Plan)
    assert isinstance(kept.steps[1], Call)


def test_wrong_references_are_told():
    with pytest.raises(PlanRejected) as caught:
        parse([{"tool_name": "a", "result_variable": "u"}, {"if": "${u.x} >", "then": []}])
    assert caught.value.diagnostics[0].code == "TP116"


def records(name: str) -> list[dict[str, Any]]:
    path = DATA / name / "plans.jsonl"
    if not path.exists():
        pytest.skip(f"not run: {path} is absent")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_every_reference_of_complexfuncbench_resolves():
    count = 0
    for record in records("complexfuncbench"):
        results: dict[str, Json] = {}
        plan = parse([{key: value for key, value in step.items() if key != "result"} for step in record["steps"]])
        assert isinstance(plan, Plan)
        for step, written in zip(plan.steps, record["steps"], strict=True):
            assert isinstance(step, Call)
            filled = fill(step.arguments, results)
            text = json.dumps(written["arguments"], ensure_ascii=False)
            assert "$var" not in json.dumps(filled, ensure_ascii=False), (record["id"], filled)
            count += text.count('"$var')
            results |= dict.fromkeys(step.defines, written["result"])
    assert count > 1500


def test_every_plan_of_nestful_reads():
    for record in records("nestful"):
        plan = parse(record["output"])
        assert isinstance(plan, Plan)
        assert len(plan.steps) == len(record["output"])
        assert isinstance(plan.steps[-1], Answer) == (record["output"][-1]["name"] == "var_result")
