"""The beginning of a plan, in either notation, as steps."""

from __future__ import annotations

import json
from typing import Any

import pytest

from properties.strategies import shape
from toolplan import ToolSet, tool
from toolplan.parse import parse
from toolplan.parse.prefix import PlanPrefix
from toolplan.plan import Call, Let, Parallel, Plan, Step


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


@pytest.mark.parametrize("unit", ["\n", "a line\n", "<think>", "<think>\nx\n", "```\n", "x", "for x in y:\n"])
def test_what_is_passed_is_not_looked_at_again(unit: str) -> None:
    """What is kept of a reply that has not begun is the beginning of a line, so that a long one takes linear time."""
    prefix = PlanPrefix(TOOLS, "python")
    for _ in range(2_000 // len(unit)):
        prefix.feed(unit)
    assert not prefix.feed("\n")
    kept = prefix._steps._text  # type: ignore[reportPrivateUsage] - the work done for a piece is not visible outside
    assert len(kept) < 20


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_a_statement_that_never_ends_is_given_up(size: int) -> None:
    text = "x = load('a')\ny = [\n" + "'a long line of text',\n" * 300 + "]\nz = load('b')\n"
    assert [step.id for step in read(text, "python", size)] == ["s1"]


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


MEMBERS = [
    {"tool_name": "load", "arguments": {"url": "a", "more": [{"x": [{}]}]}, "result_variable": "page"},
    {"if": "now", "then": [{"note": "]}"}, {"note": "x"}]},
    {"let": {"x": "1"}},
    {"tool_name": "load", "arguments": {"url": "{page} }"}, "result_variable": "other"},
]


@pytest.mark.parametrize("size", [1, 2, 7, 50, 1000])
@pytest.mark.parametrize("wrapped", [True, False])
def test_members_of_a_parallel_come_one_by_one_and_are_those_of_the_whole(size: int, wrapped: bool) -> None:
    steps = [{"note": "first"}, {"parallel": MEMBERS}, {"parallel": MEMBERS[:2]}, {"note": "last"}]
    text = json.dumps({"thought": "x", "steps": steps} if wrapped else steps)
    whole = parse(text, tools=TOOLS)
    assert isinstance(whole, Plan)
    prefix = PlanPrefix(TOOLS)
    seen: list[Parallel] = []
    found: list[Step] = []
    for at in range(0, len(text), size):
        found += prefix.feed(text[at : at + size])
        if (members := prefix.members()) is not None:
            seen.append(members)
    assert [step.id for step in found] == [step.id for step in whole.steps]
    if size <= 2:
        assert [len(each.members) for each in seen] == [1, 2, 3, 4, 1, 2]
    for each in seen:
        (same,) = (step for step in whole.steps if step.id == each.id)
        assert isinstance(same, Parallel)
        wholes = same.members[: len(each.members)]
        assert [member.id for member in each.members] == [member.id for member in wholes]
        calls = [
            (a, b) for a, b in zip(each.members, wholes, strict=True) if isinstance(a, Call) and isinstance(b, Call)
        ]
        assert all((a.tool, shape(a.arguments)) == (b.tool, shape(b.arguments)) for a, b in calls)


def test_a_list_of_another_kind_of_step_has_no_members() -> None:
    for step in (
        {"for_each": [1], "as": "n", "do": MEMBERS[:1]},
        {"if": "now", "then": MEMBERS[:1], "else": MEMBERS[:1]},
    ):
        text = json.dumps([step])
        prefix = PlanPrefix(TOOLS)
        for letter in text:
            prefix.feed(letter)
            assert prefix.members() is None
