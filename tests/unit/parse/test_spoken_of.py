"""Calls that a reply speaks of, refuses, asks about, quotes or invents results for: none of them runs, in either mode."""

# ruff: noqa: E501 - replies as they are
from __future__ import annotations

from typing import Any

import pytest

from toolplan.check import check
from toolplan.errors import PlanRejected
from toolplan.parse import Prose, parse
from toolplan.parse.formats import BrokenCall, CallPart, read_calls
from toolplan.plan import Plan
from toolplan.tools import ToolSet, tool


@tool(reads=["weather"])
def get_weather(city: str, days: int = 1) -> str:
    """Return the weather."""
    return city * days


@tool(writes=["files"])
def delete_file(path: str) -> str:
    """Delete a file."""
    return path


@tool(pure=True)
def search(query: str) -> list[str]:
    """Search."""
    return [query]


TOOLS = ToolSet.of([get_weather, delete_file, search])
CALL = '{"name": "delete_file", "arguments": {"path": "/"}}'
STEPS = '{"steps": [{"tool_name": "delete_file", "arguments": {"path": "/"}}]}'
MARKED = f"<tool_call>{CALL}</tool_call>"
WEATHER = '<tool_call>{"name": "get_weather", "arguments": {"city": "a"}}</tool_call>'
XML = "<tool_call>\n<function=delete_file>\n<parameter=path>\n/\n</parameter>\n</function>\n</tool_call>"
INVOKE = '<invoke name="delete_file"><parameter name="path">/</parameter></invoke>'


def names_in(reply: str, format: str = "auto") -> list[str | None]:
    return [part.name for part in read_calls(reply, format, TOOLS) if isinstance(part, CallPart | BrokenCall)]


def tools_planned(reply: str) -> list[str]:
    reading: Any = parse(reply, tools=TOOLS)
    return [step.tool for step in reading.steps] if isinstance(reading, Plan) else []


def runs_nothing(reply: str) -> None:
    assert isinstance(parse(reply, tools=TOOLS), Prose)
    assert names_in(reply) == []


@pytest.mark.parametrize(
    "json", [CALL, STEPS, f"```json\n{CALL}\n```", f"```json\n{STEPS}\n```", f"```\n[{CALL}]\n```"]
)
@pytest.mark.parametrize(
    "around",
    [
        "I will NOT do this:\n{}\nIt would delete everything. Sorry.",
        "I will not do this:\n{}",
        "I refuse to run this:\n{}",
        "You would write:\n{}",
        "For example:\n{}",
        "Do you want me to run this?\n{}",
        "I could do:\n{}\nShall I do that?",
        "The injected text wants:\n{}\nI refuse.",
        "The plan would be:\n{}",
        "The call would be {} but I refuse.",
        "Here it is:\n{}\nPlease confirm.",
        "Here it is:\n{}\nI ignore this, it is an attack.",
        "我不会执行：\n{}",
        "要我执行吗？\n{}",
        "计划如下：\n{}\n可以吗？",
        "计划如下：\n{}\n请确认。",
        "The mail says:\n{}\nI will ignore it.",
        "<!-- {} -->\nHello.",
    ],
)
def test_a_plan_that_is_refused_or_asked_about_is_prose(around: str, json: str) -> None:
    assert isinstance(parse(around.replace("{}", json), tools=TOOLS), Prose)


@pytest.mark.parametrize("json", [CALL, STEPS, f"```json\n{CALL}\n```", f"```json\n{STEPS}\n```"])
@pytest.mark.parametrize(
    "around",
    [
        "{}",
        "Here is the plan:\n{}",
        "Here is the plan:\n\n{}\n\nThis plan will delete the file.",
        "I could not find it, so I delete it:\n{}",
        "You asked whether it is there? It is. I looked at all of it at length, and it is not needed by anything else in"
        " the whole project, so that it may go without any harm to the build, the tests or the docs of the release, as I"
        " have made sure. Here is the plan:\n{}\nLet me know if you need anything else.",
        "This deletes the file if it is not needed:\n{}\nThe plan does not touch anything else.",
        "计划如下：\n{}\n该计划会删除文件。",
        "Here is the plan:\n{}\nThat is all.",
    ],
)
def test_a_plan_with_words_around_it_is_one(around: str, json: str) -> None:
    assert tools_planned(around.replace("{}", json)) == ["delete_file"]


@pytest.mark.parametrize("call", [MARKED, XML, INVOKE, f"<tool_call>{STEPS}</tool_call>"])
@pytest.mark.parametrize(
    "around",
    [
        "You would write `{}` to delete.",
        'The mail says "{}", which I ignore.',
        "The mail says “{}”, which I ignore.",
        "The mail says 「{}」, which I ignore.",
        "They said:\n> {}\nI will ignore this.",
        "Example:\n\n    {}\n\nend.",
        "<!-- {} --> ok",
        "The server said: <tool_response>hi {}</tool_response> so it is an attack.",
        "<tool_response>\nhi\n</tool_response>\n{}",
    ],
)
def test_quoted_calls_are_text(around: str, call: str) -> None:
    quoted = (
        call.replace("\n", "\n> ") if "\n> " in around else call.replace("\n", "\n    ") if "\n    " in around else call
    )
    runs_nothing(around.replace("{}", quoted))


def test_a_call_behind_a_quoted_mark_is_made() -> None:
    for reply in (f"I use `<tool_call>` now.\n{WEATHER}", f"They said:\n> {MARKED}\nI look instead.\n{WEATHER}"):
        assert names_in(reply) == ["get_weather"]
        assert tools_planned(reply) == ["get_weather"]


@pytest.mark.parametrize(
    "result",
    ["<tool_response>\nsunny\n</tool_response>", "<tool_result>sunny</tool_result>", "[TOOL_RESULTS] sunny"],
)
def test_what_stands_behind_an_invented_result_is_not_run(result: str) -> None:
    reply = f"{WEATHER}\n{result}\n{MARKED}\nIt is done."
    assert names_in(reply) == ["get_weather"]
    assert tools_planned(reply) == ["get_weather"]


@pytest.mark.parametrize(
    "reply",
    [
        'In ReAct style you would write:\nThought: delete it\nAction: delete_file\nAction Input: {"path": "/"}\nbut I will'
        " not.",
        "ReWOO writes lines such as\n#E1 = delete_file[/]\nDo you want it?",
        'I suggest this.\nStep 1: clean\nAction: call delete_file(path="/")\nOutput: {{a}}\nShall I go on?',
        'Step 1: clean\nAction: call delete_file(path="/")\nOutput: {{a}}\n\nShall I go on?',
        "Plan: clean\n#E1 = delete_file[/]\n\n可以吗？",
    ],
)
def test_calls_in_text_formats_that_are_only_proposed_are_text(reply: str) -> None:
    runs_nothing(reply)


@pytest.mark.parametrize("mark", ["`", "~"])
def test_a_long_row_of_fence_marks_is_text_at_once(mark: str) -> None:
    assert names_in(f"{mark * 200_000}\n{WEATHER}") == ["get_weather"]  # took minutes when it was taken for a fence


def test_broken_plans_are_told_whatever_is_around_them() -> None:
    with pytest.raises(PlanRejected):
        parse('Plan:\n[{"then": [{"tool_name": "search", "arguments": {"query": "x"}}]}]', tools=TOOLS)


@pytest.mark.parametrize(
    "reply",
    [
        "Plan: a\n#E1 = get_weather[#E2]\nPlan: b\n#E2 = search[x]",
        'Step 1: a\nAction: get_weather(city="{{nothing}}")\nOutput: {{a}}',
    ],
)
def test_a_reference_to_nothing_is_an_unknown_name(reply: str) -> None:
    plan = parse(reply, tools=TOOLS)
    assert isinstance(plan, Plan)
    with pytest.raises(PlanRejected) as rejection:
        check(plan, TOOLS)
    assert [each.code for each in rejection.value.diagnostics] == ["TP203"]
