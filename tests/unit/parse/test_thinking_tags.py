"""Whoever reads a reply knows the same tags around thinking: what is rehearsed in any of them is no plan."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolplan import PlanRejected, ToolSet, tool
from toolplan.parse import parse
from toolplan.parse.formats import CallPart, read_calls
from toolplan.parse.prefix import PlanPrefix
from toolplan.parse.reading import Prose
from toolplan.parse.thinking_tags import LONGEST, OTHERS, WORDS
from toolplan.plan import Call, Plan, Step


@tool(reads="web")
def find(city: str) -> str:
    """Finds a city."""
    raise NotImplementedError


@tool(reads="web")
def rehearsed(city: str) -> str:
    """Is never called."""
    raise NotImplementedError


TOOLS = ToolSet.of([find, rehearsed])
TAGS = [*((f"<{word}>", f"</{word}>") for word in (*WORDS, "THINK", "Thought")), *OTHERS.items()]
JSON, REHEARSED = (json.dumps([{"tool_name": name, "arguments": {"city": "Oslo"}}]) for name in ("find", "rehearsed"))
PROGRAM, OTHER_PROGRAM = (f'x = {name}(city="Oslo")\nanswer(x)\n' for name in ("find", "rehearsed"))
FENCED = f"```python\n{OTHER_PROGRAM}```"


def called(steps: list[Step] | tuple[Step, ...]) -> list[str]:
    return [step.tool for step in steps if isinstance(step, Call)]


def early(reply: str, notation: Any, size: int) -> list[str]:
    prefix = PlanPrefix(TOOLS, notation)
    return called([step for at in range(0, len(reply), size) for step in prefix.feed(reply[at : at + size])])


@pytest.mark.parametrize(("begin", "end"), TAGS)
@pytest.mark.parametrize(
    ("notation", "other", "plan"), [("json", REHEARSED, JSON), ("python", FENCED, PROGRAM), ("python", FENCED, FENCED)]
)
def test_a_plan_rehearsed_in_thinking_is_none(begin: str, end: str, notation: Any, other: str, plan: str) -> None:
    plan = plan.replace("rehearsed", "find")
    thinking = f"{begin}Maybe\n{other}\nor not.{end}\n"
    for reply in (thinking + plan, f"{thinking}{begin}Again:\n{other}{end}\n{plan}"):
        reading = parse(reply, tools=TOOLS, asked_for=notation)
        assert isinstance(reading, Plan)
        assert (called(reading.steps), reading.repairs) == (["find"], ())
        assert [early(reply, notation, size) for size in (1, 7, len(reply))] == [["find"]] * 3


@pytest.mark.parametrize(("begin", "end"), TAGS)
@pytest.mark.parametrize(("notation", "other", "plan"), [("json", REHEARSED, JSON), ("python", FENCED, PROGRAM)])
def test_so_is_one_before_the_end_of_thinking_whose_beginning_the_server_kept(
    begin: str, end: str, notation: Any, other: str, plan: str
) -> None:
    reading = parse(f"Maybe\n{other}\nor not.\n{end}\n{plan}", tools=TOOLS, asked_for=notation)
    assert isinstance(reading, Plan)
    assert (called(reading.steps), reading.repairs) == (["find"], ())


@pytest.mark.parametrize(("begin", "end"), TAGS)
@pytest.mark.parametrize(("notation", "other"), [("json", REHEARSED), ("python", FENCED)])
def test_thinking_alone_and_thinking_before_an_answer_hold_no_plan(
    begin: str, end: str, notation: Any, other: str
) -> None:
    assert parse(f"{begin}Maybe\n{other}\n{end}\nIt is warm.", tools=TOOLS, asked_for=notation) == Prose("It is warm.")
    with pytest.raises(PlanRejected) as caught:
        parse(f"{begin}Maybe\n{other}\n", tools=TOOLS, asked_for=notation)
    assert [problem.code for problem in caught.value.diagnostics] == ["TP106"]
    assert early(f"{begin}Maybe\n{other}\n", notation, 5) == []


@pytest.mark.parametrize(("begin", "end"), TAGS)
def test_the_readers_of_formats_know_them_too(begin: str, end: str) -> None:
    call = '<tool_call>\n{"name": "%s", "arguments": {"city": "Oslo"}}\n</tool_call>'
    parts = read_calls(f"{begin}{call % 'rehearsed'}{end}\n{call % 'find'}", tools=TOOLS)
    assert [part.name for part in parts if isinstance(part, CallPart)] == ["find"]
    assert max(len(begin), len(end)) <= LONGEST


@pytest.mark.parametrize("text", ["[think]", "[Think]", "<|start_thinking|>"])
def test_what_has_brackets_as_data_has_them_counts_in_its_own_letters_only(text: str) -> None:
    assert early(f"{text}\n{JSON}", "json", 3) == ["find"]
    assert called(parse(f"{JSON}\n{text}", tools=TOOLS).steps) == ["find"]  # type: ignore[union-attr] - it is a plan
