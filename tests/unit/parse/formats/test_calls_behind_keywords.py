"""`Thought:`, `Plan:`, `Step 1:` are words that any text may have: a call behind them counts as behind others."""

from __future__ import annotations

from typing import Any

import pytest

from toolplan.parse import parse
from toolplan.parse.formats import read_calls
from toolplan.parse.formats.parts import CallPart, TextPart, ThinkingPart, settled
from toolplan.parse.formats.scanner import CallScanner
from toolplan.parse.meant import UNCLEAR
from toolplan.parse.reading import Prose
from toolplan.plan import Plan

HERMES = '<tool_call>\n{"name": "delete_file", "arguments": {"path": "/a"}}\n</tool_call>'
MINIMAX = (
    '<minimax:tool_call>\n<invoke name="delete_file">\n<parameter name="path">/a</parameter>\n</invoke>\n'
    "</minimax:tool_call>"
)
MISTRAL = '[TOOL_CALLS] [{"name": "delete_file", "arguments": {"path": "/a"}}]'


def parts_of(reply: str) -> list[Any]:
    whole = [
        (type(part), part.name if isinstance(part, CallPart) else getattr(part, "text", None))
        for part in read_calls(reply)
    ]
    scanner = CallScanner()
    parts = [part for character in reply for part in scanner.feed(character)]
    pieces = settled([*parts, *scanner.close()])
    assert tuple(pieces) == read_calls(reply)
    return whole


@pytest.mark.parametrize("call", [HERMES, MINIMAX, MISTRAL])
@pytest.mark.parametrize(
    "before",
    ["Plan:\n", "Plan: ", "Plan: I will do it.\n", "计划：\n", "Thought: do it\n", "Step 1: go\n", "**Plan:**\n"],
)
def test_a_call_behind_a_keyword_is_one(before: str, call: str) -> None:
    parts = parts_of(before + call)
    assert (CallPart, "delete_file") in parts
    assert parts[0] == (TextPart, before)
    reading = parse(before + call)
    assert isinstance(reading, Plan)
    assert [step.tool for step in reading.steps] == ["delete_file"]  # type: ignore[union-attr]


def test_a_call_in_the_line_of_a_keyword_is_one_when_nothing_shows_that_it_was_a_thought() -> None:
    assert parts_of(f"Thought: I will do it. {HERMES}")[1] == (CallPart, "delete_file")


def test_what_follows_the_call_is_judged() -> None:
    reading = parse(f"Plan:\n{HERMES}\n\nThis plan will delete the file.")
    assert isinstance(reading, Plan)
    assert UNCLEAR in reading.repairs
    assert isinstance(parse(f"Plan: {HERMES} is what I will not run."), Prose)


def test_a_fence_behind_a_keyword_is_an_example_still() -> None:
    assert parts_of(f"Thought: calls look so:\n```xml\n{HERMES}\n```\nNow you.") == [
        (TextPart, f"Thought: calls look so:\n```xml\n{HERMES}\n```\nNow you.")
    ]


def test_a_mark_in_a_thought_before_an_action_is_a_part_of_the_thought() -> None:
    reply = 'Thought: use <tool_call> here\nAction: delete_file\nAction Input: {"path": "/a"}'
    assert parts_of(reply) == [(ThinkingPart, "use <tool_call> here"), (CallPart, "delete_file")]


def test_an_observation_of_its_own_does_not_take_the_call_along() -> None:
    reply = f"Thought: a\n{HERMES}\nThought: b\nFinal Answer: done"
    assert (CallPart, "delete_file") in parts_of(reply)


@pytest.mark.parametrize("answer", ["Answer: 42", "Final Answer: 42", "**Answer:** 42", "回答：42"])
def test_the_answer_behind_a_thought_is_the_prose(answer: str) -> None:
    assert parse(f"Thought: x\n{answer}") == Prose("42")


@pytest.mark.parametrize("text", ["Answer: 42", "Notes\nAnswer: 42", "Answer: 42\nThought: y"])
def test_other_answers_are_prose_as_they_stand(text: str) -> None:
    assert parse(text) == Prose(text)


def test_a_plan_behind_answer_is_a_plan() -> None:
    plan = '{"steps": [{"tool_name": "delete_file", "arguments": {"path": "/a"}}]}'
    for reply in (f"Thought: x\nAnswer: {plan}", f"Thought: x\nAnswer:\n```json\n{plan}\n```"):
        assert isinstance(parse(reply), Plan)
