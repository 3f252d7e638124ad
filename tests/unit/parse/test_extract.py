"""Finding the plan in a reply: what counts, what does not, and what is refused."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from toolplan.errors import PlanRejected
from toolplan.parse import CannotPlan, Prose, parse
from toolplan.parse.meant import UNCLEAR
from toolplan.plan import Plan

A = '[{"tool_name": "a", "arguments": {"x": 1}}]'
B = '[{"tool_name": "b", "arguments": {"x": 1}}]'


def tools_of(reply: object, **options: object) -> list[str]:
    reading = parse(reply, **options)  # type: ignore[arg-type]
    assert isinstance(reading, Plan), reading
    return [step.tool for step in reading.steps]  # type: ignore[union-attr]


def code_of(reply: object, **options: object) -> str:
    with pytest.raises(PlanRejected) as caught:
        parse(reply, **options)  # type: ignore[arg-type]
    assert len(caught.value.diagnostics) == 1
    return caught.value.diagnostics[0].code


@pytest.mark.parametrize(
    "reply",
    [
        A,
        f"\n\n  {A}\n",
        f"```json\n{A}\n```",
        f"```\n{A}\n```",
        f"```json{A}```",
        f"~~~json\n{A}\n~~~",
        f"`{A}`",
        f"Here is the plan:\n\n```json\n{A}\n```\nThen I go on.",
        f"The plan: {A} That is all.",
        f"The plan {A}, as you wished: fine.",
        f"计划如下：{A}",
        f"<think>Maybe {B}?</think>\n{A}",
        f"<thinking>\n```json\n{B}\n```\n</thinking>{A}",
        f"I could do {B}, but no.\n</think>\n\n{A}",
        f'For example {{"city": "Oslo"}} is data.\n{A}',
        f"{A}\n\n{A}",
        f'The format is {{"tool_name": ..., "arguments": ...}}.\n{A}',
        json.dumps(A),
        f'{{"plan": {A}}}',
        f'{{"steps": {A}}}',
        f'{{"plan": {{"steps": {A}}}}}',
        f'{{"tool_calls_sequence": {A}}}',
        json.dumps({"plan": A}),
        A[1:-1],
        f"```python\n{A}\n```",
    ],
)
def test_one_plan_is_found(reply: str):
    assert tools_of(reply) == ["a"]


def test_a_value_instead_of_text():
    assert tools_of(json.loads(A)) == ["a"]
    assert tools_of({"plan": json.loads(A)}) == ["a"]
    assert tools_of({"plan": A}) == ["a"]


def test_a_fence_or_tag_inside_a_string_ends_nothing():
    text = "Use:\n```sh\nls\n```\n</think> done"
    reply = "```json\n" + json.dumps([{"tool_name": "note", "arguments": {"text": text}}]) + "\n```"
    plan = parse(reply)
    assert isinstance(plan, Plan)
    assert plan.steps[0].arguments.fields[0][1].value == text  # type: ignore[union-attr]


def test_steps_one_behind_the_other_are_one_plan():
    for gap in ("\n", " ", "; ", ",\n"):
        assert tools_of(gap.join([A[1:-1], B[1:-1], A[1:-1]])) == ["a", "b", "a"]


@pytest.mark.parametrize(
    "reply",
    [
        "It is 3 degrees in Oslo.",
        "42",
        '"quoted"',
        "See [1] and {2}, e.g. x[0] = {y}.",
        'The record is {"name": "Kim", "age": 3}.',
        'Rows: [1, 2, 3] and [{"city": "Oslo"}].',
        'The answer would be {"answer": 42}.',
        'Your settings: {"set": [1, 2], "note": "x"}',
        'runner.call(payload={"name": "delete_file", "parameters": {"path": "a.txt"}',
        f"Write it as `{A}` in one line.",
        "values [NaN, 1e999]",
        '<think>I will answer.</think>\nHello "you" [sic]',
        '```bash\ncurl -d \'{"tool_name": "x"}\' http://x\n```',
    ],
)
def test_text_that_holds_no_plan_is_an_answer(reply: str):
    reading = parse(reply)
    assert isinstance(reading, Prose)
    assert "<think>" not in reading.text


def test_thinking_is_no_part_of_the_answer():
    assert parse("<think>a plan?</think>\n\nHello.") == Prose("Hello.")
    assert parse("hm\n</think>Hello.") == Prose("Hello.")
    assert parse("Hello. <think>and now") == Prose("Hello.")


def test_words_that_it_cannot_be_done():
    expected = CannotPlan("no such tool", ("a tool that books trains",))
    cannot = {"cannot": "no such tool", "missing": ["a tool that books trains"]}
    assert parse(cannot) == expected
    assert parse({"thought": "hm", "steps": [], **cannot}) == expected
    assert parse([cannot]) == expected
    assert parse({"cannot": True, "reason": "no such tool", "missing": "a tool that books trains"}) == expected
    assert parse("Sorry: " + json.dumps(cannot)) == expected


def test_only_an_answer_is_a_plan_without_steps():
    plan = parse('{"answer": "Hello!"}')
    assert isinstance(plan, Plan)
    assert plan.steps == ()
    assert plan.answer is not None


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        ("", "TP106"),
        (" \n\ufeff", "TP106"),
        ("<think>only this</think>", "TP106"),
        (f"<think> {A}", "TP106"),
        ("[]", "TP105"),
        ("{}", "TP105"),
        ('{"steps": []}', "TP105"),
        ("```json\n[]\n```", "TP105"),
        ("[1, 2]", "TP104"),
        ('{"city": "Oslo"}', "TP104"),
        ('[["a"]]', "TP104"),
        (f"{A}\nor rather\n{B}", "TP103"),
        (f"{A}\n{B}", "TP103"),
        ("```python\nw = get(city=\n```", "TP150"),
        (A[:-1], "TP102"),
        (A[:-3], "TP102"),
        (A[:20], "TP102"),
        (f"```json\n{A[:-1]}\n```", "TP102"),
        (f"Plan:\n{A[:-4]}", "TP102"),
        ('[{"tool_name": "a"}, {"tool_name": "b", "arguments": {"x": [1, 2', "TP102"),
        ('[{"tool_name": "a", "arguments": {"x": 1, "result_variable": "r"}]', "TP101"),
        ('[{"tool_name": "a"}, {"tool_name" "b"}]', "TP101"),
        ('{"steps": [{"tool_name": "a", "arguments": {...}}]}', "TP101"),
        (f'{A}\n[{{"tool_name": "b", oops}}]', "TP101"),
        ('{"steps": [{"tool_name": "a"}]}, "answer": "ok"}', "TP101"),
        ('{"steps": [{"tool_name": "a"}]}\n ],\n "answer": "ok"}', "TP101"),
        (f"{A}]", "TP101"),
        ('[{"tool_name": "a", …}, {"tool_name": "b", "arguments": {}}', "TP101"),
        ('[{"tool_name": "a", …}, {"tool_name": "b", "arguments": {}}]', "TP101"),
        ('[{"tool_name": "a", "arguments": {"x": NaN}}]', "TP108"),
        ('[{"tool_name": "a", "arguments": {"x": -Infinity}}]', "TP108"),
        ('[{"tool_name": "a", "arguments": {"x": 1e999}}]', "TP108"),
        ('[{"tool_name": "a", "arguments": {"x": %s}}]' % ("9" * 5000), "TP108"),
        ('[{"tool_name": "a", "arguments": {"x": "\\ud800"}}]', "TP108"),
        ('[{"tool_name": "a", "arguments": {"x": "\ud800"}}]', "TP108"),
        ('[{"tool_name": "a", "tool_name": "b"}]', "TP109"),
        ('{"steps": [{"tool_name": "a"}], "steps": [{"tool_name": "b"}]}', "TP109"),
        ("[" * 10_000, "TP107"),
        ('[{"tool_name": "a", "arguments": {"x": ' + "[" * 200 + "]" * 200 + "}}]", "TP107"),
        ('{"if": "x", "then": [' * 10_000, "TP107"),
        (json.dumps([{"tool_name": "a", "arguments": {"x": "y" * 3_000_000}}]), "TP107"),
        (json.dumps([{"tool_name": "a"}] * 20_000), "TP107"),
        (json.dumps([{"tool_name": "a", "arguments": {"x": "12345678901234567890"}}] * 100_000), "TP107"),
    ],
)
def test_what_is_refused(reply: str, code: str):
    assert code_of(reply) == code


def test_a_demanded_notation_must_be_there():
    assert code_of("Hello.", notation="json") == "TP120"
    assert tools_of(A, notation="json") == ["a"]


def test_what_is_not_json_at_all():
    assert code_of({"steps": {1, 2}}) == "TP108"  # type: ignore[dict-item]
    nested: list[object] = []
    nested.append(nested)
    assert code_of(nested) == "TP108"
    assert code_of([{"tool_name": "a", "arguments": {"x": float("nan")}}]) == "TP108"


def test_equal_doubled_keys_lose_nothing():
    plan = parse('[{"tool_name": "a", "tool_name": "a"}]')
    assert isinstance(plan, Plan)
    assert "twice" in plan.repairs[0]


def test_one_and_true_are_different_values():
    assert code_of('[{"tool_name": "a", "arguments": {"x": 1, "x": true}}]') == "TP109"


@pytest.mark.parametrize(
    "reply",
    [
        "[1," * 600_000,
        "[" * 900 + "1," * 600_000,
        "['a'," * 300_000,
        '{"a":' * 300_000,
        "{'a': [" * 200_000,
        "```python\n" * 100_000,
        "<think>" * 200_000,
        "</think>" * 200_000,
        '[{"tool_name": "' * 100_000,
        '"' + "[" * 1_000_000,
        "[{" + "x" * 1_900_000,
        "[x" * 900_000,
        "[/* " * 400_000,
        "[“" * 400_000,
        "[1 'x" * 300_000,
        "[// " * 400_000,
        "[…" * 600_000,
        "[… ]" * 400_000,
        '[{"tool_name": "a", "arguments": {"x": ' + "[" * 90 + "1," * 500_000,
        "x = " + "\n" * 100_000,
        "x = " + " " * 100_000,
        "Action: f\nAction Input: " + "{{" * 400_000,
        "#E1 = f[" + "{{" * 400_000 + "]",
    ],
    ids=range(23),
)
@pytest.mark.parametrize("notation", ["auto", "python"])
def test_hostile_text_is_dealt_with_quickly(reply: str, notation: Any):
    started = time.process_time()
    try:
        parse(reply, notation)
    except PlanRejected as rejected:
        for diagnostic in rejected.diagnostics:
            diagnostic.to_dict(rejected.source)
    assert time.process_time() - started < 3


@pytest.mark.parametrize("letter", ["n", "é", "ж", "9", "_"])
def test_a_plan_glued_to_something_is_data_of_that(letter: str) -> None:
    assert parse(f"content{letter}{A}") == Prose(f"content{letter}{A}")


@pytest.mark.parametrize("before", ["content义", "义", "แผน", "계획"])
def test_a_plan_behind_a_letter_of_a_script_without_spaces_is_taken_and_asks(before: str) -> None:
    reading = parse(f"{before}{A}")
    assert isinstance(reading, Plan)
    assert reading.repairs == (UNCLEAR,)
