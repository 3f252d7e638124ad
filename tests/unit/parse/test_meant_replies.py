"""What is meant to run, and what is only spoken of: examples in prose, broken plans, conditions without sense."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolplan.check import check
from toolplan.diagnostics import Diagnostic
from toolplan.errors import PlanRejected
from toolplan.parse import Prose, parse
from toolplan.plan import Plan
from toolplan.tools import ToolSet, tool


@tool(reads=["weather"])
def get_weather(city: str) -> dict[str, Any]:
    """Return the weather."""
    return {"city": city}


@tool(writes=["mail"])
def send_email(to: str, body: str = "") -> str:
    """Send a mail."""
    return to + body


TOOLS = ToolSet.of([get_weather, send_email])
W = {"tool_name": "get_weather", "arguments": {"city": "Oslo"}, "result_variable": "w"}
MAIL = {"tool_name": "send_email", "arguments": {"to": "a"}}
CALL = "send_email(to='a')\n"
FENCED = f"```python\n{CALL}```"


def checked(reply: Any) -> None:
    plan = parse(reply if isinstance(reply, str) else json.dumps(reply), tools=TOOLS)
    assert isinstance(plan, Plan), plan
    check(plan, TOOLS)


def rejected(reply: Any) -> tuple[Diagnostic, ...]:
    with pytest.raises(PlanRejected) as rejection:
        checked(reply)
    return tuple(rejection.value.diagnostics)


# --- programs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reply",
    [
        f"To send a mail you would write:\n{FENCED}\nShall I do it?",
        f"Shall I run this?\n{FENCED}",
        f"{'This explains at length how mails are sent. ' * 5}\n{FENCED}",
        f"{FENCED}\nThat is how mails are sent.",
        "You can write:\n```python\ndef double(x):\n    return x * 2\n```",
        "You can write:\n```python\nwith open('x') as f:\n    print(f.read())\n```\nDone.",
        "You can write:\n```python\nprint('hello')\n```",
        f"First:\n{FENCED}\nor:\n```python\nget_weather(city='x')\n```\n",
    ],
)
def test_code_in_prose_is_an_example(reply: str) -> None:
    assert isinstance(parse(reply, tools=TOOLS), Prose)


@pytest.mark.parametrize(
    "reply",
    [CALL, FENCED, f"Here is the plan:\n{FENCED}\n", f"<think>hm?</think>\nHere:\n{FENCED}\n<think>ok</think>"],
)
def test_a_program_at_the_end_is_a_plan(reply: str) -> None:
    assert isinstance(parse(reply, tools=TOOLS), Plan)


def test_where_json_was_asked_for_a_program_that_calls_a_tool_is_a_plan_too() -> None:
    assert isinstance(parse(FENCED, tools=TOOLS, asked_for="json"), Plan)
    assert isinstance(parse(CALL, tools=TOOLS, asked_for="json"), Plan)
    announced = parse(f"Here is the plan:\n{FENCED}\nI hope this helps.", tools=TOOLS, asked_for="json")
    assert isinstance(announced, Plan)
    assert announced.repairs == ()
    answer = "The program:\n```python\nreturn 1\n```"
    assert isinstance(parse(answer, tools=TOOLS, asked_for="json"), Prose)
    explained = f"You can send it in Python:\n{FENCED}"
    assert isinstance(parse(explained, tools=TOOLS, asked_for="json"), Prose)


def test_where_python_was_asked_for_any_fence_holds_it() -> None:
    assert isinstance(parse(f"First:\n{FENCED}\nThis sends it.", tools=TOOLS, asked_for="python"), Plan)


# --- broken plans ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("around", ["{}", "Plan:\n```json\n{}\n```", "I will do this: {} and then answer."])
@pytest.mark.parametrize(
    ("step", "code", "words"),
    [
        ({"if": "true"}, "TP113", "`then`"),
        ({"then": [MAIL]}, "TP113", "`if`"),
        ({"for_each": None, "do": [MAIL]}, "TP113", "`for_each`"),
        ({"tool_name": None, "arguments": {}}, "TP113", "`tool_name`"),
        ({"tool_name": ""}, "TP114", "`tool_name`"),
        ({"send_email": {"to": "a"}}, "TP110", "not a step"),
    ],
)
def test_a_broken_step_is_told_and_is_never_an_answer(around: str, step: Any, code: str, words: str) -> None:
    (found,) = rejected(around.replace("{}", json.dumps([step])))
    assert found.code == code
    assert words in found.message


@pytest.mark.parametrize("reply", ['[{"send_email": {"to": "a"}}]', '{"send_email": {"to": "a"}}'])
def test_a_tool_as_a_key_is_told_how_calls_are_written(reply: str) -> None:
    (found,) = rejected(reply)
    assert found.help == 'write {"tool_name": "send_email", "arguments": {...}}'


@pytest.mark.parametrize(
    "data",
    [
        {"city": "Oslo"},
        [{"name": "Oslo", "text": "x", "if": None}],
        [{"question": "q", "answer": "a"}],
        {"if": {"properties": {"a": {"const": 1}}}, "then": {"required": ["b"]}},
    ],
)
def test_data_in_prose_stays_prose(data: Any) -> None:
    assert isinstance(parse(f"It looks so:\n```json\n{json.dumps(data)}\n```\nAll of it.", tools=TOOLS), Prose)


# --- conditions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["if", "while", "collect_if"])
@pytest.mark.parametrize("text", ["temperature below 5", "下雨", "rain", "'it rains'", "['rain']", "{'rain': 1}"])
def test_no_condition_is_told_to_be_put_in_quotes(key: str, text: str) -> None:
    step: dict[str, Any] = {
        "if": {"if": text, "then": [MAIL]},
        "while": {"while": text, "do": [MAIL], "max_iterations": 2},
        "collect_if": {"for_each": "[1]", "do": [MAIL], "collect": "item", "collect_if": text, "result_variable": "r"},
    }[key]
    (found,) = rejected([W, step])
    assert found.help is not None
    assert "quotes" not in found.help
    assert "w.temperature < 5" in found.help


@pytest.mark.parametrize("test", [True, "True", "false", "f'{w.note}'", "[*w.notes]", "w.note"])
def test_what_may_hold_or_not_is_a_condition(test: Any) -> None:
    checked([W, {"if": test, "then": [MAIL]}])


@pytest.mark.parametrize(
    ("left", "code"), [("weather.temperature", "TP203"), ("weather", "TP203"), (5, "TP114"), ("the weather", "TP114")]
)
def test_two_constants_are_no_comparison(left: Any, code: str) -> None:
    (found,) = rejected([W, {"if": {"left": left, "op": "==", "right": "cold"}, "then": [MAIL]}])
    assert found.code == code


def test_a_constant_on_the_left_of_a_reference_stays_one() -> None:
    checked([W, {"if": {"left": "a.org", "op": "in", "right": "{w.hosts}"}, "then": [MAIL]}])
