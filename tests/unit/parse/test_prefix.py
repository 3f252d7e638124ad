"""The beginning of a plan, in either notation, as steps."""

from __future__ import annotations

import json
from typing import Any

import pytest

from properties.strategies import shape
from toolplan import ToolSet, tool
from toolplan.parse import parse
from toolplan.parse.prefix import PlanPrefix
from toolplan.plan import Call, Let, Plan, Step


@tool(reads="web")
def load(url: str, times: int = 1) -> str:
    """Loads a page."""
    raise NotImplementedError


@tool(writes="outbox")
def send(text: str) -> str:
    """Sends a text."""
    raise NotImplementedError


TOOLS = ToolSet.of([load, send])


def read(text: str, notation: Any, size: int = 5) -> list[Step]:
    prefix = PlanPrefix(TOOLS, notation)
    return [step for at in range(0, len(text), size) for step in prefix.feed(text[at : at + size])]


def told(steps: list[Step]) -> list[tuple[Any, ...]]:
    return [(type(step).__name__, step.id, getattr(step, "tool", ""), getattr(step, "defines", ())) for step in steps]


def test_json_steps_are_those_of_the_whole_plan() -> None:
    plan = [
        {"tool_name": "load", "arguments": {"url": "a"}},
        {"let": {"load": "len(load_result)"}},
        {"if": "load > 3", "then": [{"tool_name": "send", "arguments": {"text": "{s1}"}}]},
        {"tool_name": "LOAD", "arguments": {"url": "$4"}, "id": 5, "result_variable": "page"},
        {"tool_name": "send", "args": {"text": "{page} and {{page}}"}},
    ]
    text = json.dumps(plan)
    whole = parse(text, tools=TOOLS)
    assert isinstance(whole, Plan)
    found = read(text, "json")
    assert [step.id for step in found] == ["s1", "s2", "s3", "s5", "s6"]
    assert isinstance(found[3], Call)
    assert found[3].tool == "load"
    assert shape(found[3]) == shape(whole.steps[3])


def test_a_wrong_step_ends_the_reading() -> None:
    text = json.dumps([{"tool_name": "load"}, {"tool_name": "load", "arguments": 3}, {"tool_name": "load"}])
    assert told(read(text, "json")) == [("Call", "s1", "load", ("load_result", "load", "s1"))]


PROGRAM = '''
page = load(url="https://example.org")
# a remark
other = await load(
    url=f"https://example.org/{page}",
    times=2,
)
print(other)
text = """
x = load("no")
"""
size: int = len(text) + 1
load("z", size)
if size > 3:
    load("w")
load("v")
'''


@pytest.mark.parametrize("size", [1, 4, 1000])
@pytest.mark.parametrize("before", ["", "```python\n", "Sure.\n```py\n", "<think>\nx = load('no')\n</think>\n\n"])
def test_a_program_is_followed_to_its_first_branch(before: str, size: int) -> None:
    found = read(before + PROGRAM, "python", size)
    assert [(type(step).__name__, step.id) for step in found] == [
        ("Call", "s1"),
        ("Call", "s2"),
        ("Note", "s3"),
        ("Let", "s4"),
        ("Let", "s5"),
        ("Call", "s6"),
    ]
    assert isinstance(found[4], Let)


def test_a_statement_comes_with_its_last_line() -> None:
    prefix = PlanPrefix(TOOLS, "python")
    assert not prefix.feed("a = load(\n")
    assert not prefix.feed("  'x',\n")
    assert [step.id for step in prefix.feed(")\n")] == ["s1"]


@pytest.mark.parametrize(
    "text",
    [
        "There is nothing to do.\nfor you\n",
        'The weather is fine, so load("x") is not needed.\n\n- one\n- two\n',
        "```json\n[]\n```\n",
        "```python\nx = load('a'\n```\n",
        "def f():\n    return load('a')\n",
        "a = nothing_like_it(1)\nb = eval('x')\n",
    ],
)
def test_what_is_no_program_gives_nothing(text: str) -> None:
    assert not [step for step in read(text, "python") if isinstance(step, Call) and step.tool == "load"]


@pytest.mark.parametrize(
    ("text", "notation"), [('[{"tool_name": "load", "arguments": {}}]', "json"), ("load()\n", "python")]
)
def test_a_plan_that_goes_on_counts_on(text: str, notation: Any) -> None:
    assert [step.id for step in PlanPrefix(TOOLS, notation, 7).feed(text)] == ["s7"]
