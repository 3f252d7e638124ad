"""Calls in a model's own format as plans, and plans in the notations of other systems."""

from __future__ import annotations

from typing import Any

import pytest

from toolplan import Agent, PlanRejected, Prose, Tool, ToolSet, parse, tool
from toolplan.parse.formats import FORMATS, CallPart, TextPart, read_calls, write_calls
from toolplan.plan import AskModel, Plan
from toolplan.show import to_json
from toolplan.testing import ScriptedModel

TOOLS = ToolSet(
    Tool.from_schema(name, "", {"type": "object", "properties": properties, "required": []}, lambda **_: None)
    for name, properties in {
        "search": {"query": {"type": "string"}},
        "math": {"question": {"type": "string"}, "digits": {"type": "integer"}},
        "book": {"flight": {}, "note": {}},
    }.items()
)


def steps_of(reply: str, tools: Any = TOOLS) -> list[dict[str, Any]]:
    plan = parse(reply, tools=tools)
    assert isinstance(plan, Plan), plan
    written: Any = to_json(plan)
    return written["steps"]


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_a_reply_in_every_format_is_a_plan_of_its_calls(format: str) -> None:
    calls = [
        {"name": "search", "arguments": {"query": "a < b, 北京"}},
        {"name": "math", "arguments": {"question": "2", "digits": 3}},
    ]
    written = steps_of(write_calls(format, calls))
    assert [(step["tool_name"], step["arguments"]) for step in written] == [
        (call["name"], call["arguments"]) for call in calls
    ]


def test_a_plan_has_steps_in_written_order_and_repairs() -> None:
    plan = parse('<tool_call>{"name": "Search", "arguments": {"query": "x"}}</tool_call>', tools=TOOLS)
    assert isinstance(plan, Plan)
    assert plan.repairs == ("read the tool name `Search` as `search`",)
    assert plan.notation == "calls"


def test_holes_count_where_a_format_has_no_references_of_its_own() -> None:
    reply = (
        '<tool_call>{"name": "search", "arguments": {"query": "x"}}</tool_call>\n'
        '<tool_call>{"name": "math", "arguments": {"question": "{s1.total}", "digits": "{s1.n}"}}</tool_call>'
    )
    assert steps_of(reply)[1]["arguments"] == {"question": "{s1.total}", "digits": "{s1.n}"}


# --- LLMCompiler ------------------------------------------------------------------------------------------------------


def test_llm_compiler() -> None:
    reply = (
        '1. search("Ron\'s age")\n2. search(query=\'x $1 {y}\')\n3. math("$1 / ${2.total}", 2)\n'
        "Thought: I can answer.\n4. join()<END_OF_PLAN>"
    )
    first, second, third = steps_of(reply)
    assert first["arguments"] == {"query": "Ron's age"}
    assert second["arguments"] == {"query": {"$text": ["x ", {"$expr": "s1"}, " {y}"]}} or "s1" in str(second)
    assert third["arguments"] == {"question": "{s1} / {s2.total}", "digits": 2}
    assert parse("1. search(1)\nis the first", tools=TOOLS) == Prose("1. search(1)\nis the first")


def test_llm_compiler_values_and_prices() -> None:
    _, math = steps_of('1. search("x")\n2. math($1, 2)\n3. join()')
    assert math["arguments"]["question"] == "{s1}"
    (only,) = steps_of('1. search("it costs $5")\n2. join()')
    assert only["arguments"] == {"query": "it costs $5"} or only["arguments"] == {"query": {"$literal": "it costs $5"}}


# --- ReWOO ------------------------------------------------------------------------------------------------------------


def test_rewoo() -> None:
    reply = (
        "Plan: Find out who.\n#E1 = search[director of Alien]\nPlan: Ask.\n#E2 = LLM[Who is it? Given: #E1]\n"
        'Plan: Count.\n#E3 = math[{"question": "#E2", "digits": 2}]\n'
    )
    plan = parse(reply, tools=TOOLS)
    assert isinstance(plan, Plan)
    asked = plan.steps[1]
    assert isinstance(asked, AskModel)
    written: Any = to_json(plan)
    assert written["steps"][0]["arguments"] == {"query": "director of Alien"}
    assert written["steps"][1]["data"] == {"#E1": "{s1}"}
    assert written["steps"][2]["arguments"] == {"question": "{s2}", "digits": 2}


# --- thoughts, steps, actions -----------------------------------------------------------------------------------------

STEPS = """\
Thought: I need flights.
Plan: find them, book the first
Step 1: find
Action: call search(query="Oslo - Rome")
Output: {{flights}}
Step 2: book
Action: call book(flight={{flights[0].id}}, note="for {{flights.0.name}}, {x}")
Output: {{booking}}
"""


def test_steps() -> None:
    search, book = steps_of(STEPS)
    assert search["result_variable"] == "flights"
    assert book["arguments"]["flight"] == "{flights[0].id}"
    assert book["arguments"]["note"] == {"$text": ["for ", {"$expr": "flights[0].name"}, ", {x}"]}
    assert book["result_variable"] == "booking"


async def test_steps_run() -> None:
    @tool(pure=True)
    def search(query: str) -> list[dict[str, Any]]:
        return [{"id": 7, "name": query}]

    @tool(pure=True)
    def book(flight: int, note: str) -> str:
        return f"{flight} {note}"

    result = await Agent(ScriptedModel([{"text": STEPS}]), [search, book], answer="none").run("book it")
    assert result.outcome == "succeeded"
    assert [step.result for step in result.steps][1] == "7 for Oslo - Rome, {x}"


def test_a_plan_with_a_call_that_cannot_be_read_does_not_run_at_all() -> None:
    with pytest.raises(PlanRejected) as rejected:
        parse(STEPS.replace('{{flights[0].id}}, note="', '{{flights[0].id}, note="'), tools=TOOLS)
    assert rejected.value.diagnostics[0].code == "TP131"


def test_marks_around_a_plan_in_json_do_not_hide_it() -> None:
    reply = '<tool_call>\n{"steps": [{"tool_name": "search", "arguments": {"query": "x"}}]}\n</tool_call>'
    assert steps_of(reply)[0]["tool_name"] == "search"


async def test_a_list_of_calls_that_was_cut_off_is_not_a_plan() -> None:
    call = '<tool_call>{"name": "search", "arguments": {"query": "x"}}</tool_call>'
    reply = {"text": call, "finish_reason": "length"}

    @tool(pure=True)
    def search(query: str) -> str:
        return query

    result = await Agent(ScriptedModel([reply]), [search], answer="none", max_repairs=0).run("go")
    assert (result.outcome, result.steps) == ("rejected", ())


# --- ReAct ------------------------------------------------------------------------------------------------------------


def calls_of(reply: str, tools: ToolSet | None = TOOLS) -> list[tuple[str, dict[str, Any]]]:
    return [(part.name, part.arguments) for part in read_calls(reply, "react", tools) if isinstance(part, CallPart)]


@pytest.mark.parametrize(
    ("reply", "call"),
    [
        ('Thought: x\nAction: search\nAction Input: {"query": "y"}', ("search", {"query": "y"})),
        ("Action: search\nAction Input: who is it?\nObservation: me", ("search", {"query": "who is it?"})),
        ('Action: `search`\nAction Input: "y"', ("search", {"query": "y"})),
        ("Action: math\nAction Input: 5", ("math", {"question": "5"})),
        ("Action: search[who is it?]", ("search", {"query": "who is it?"})),
        ('Action: search(query="y")', ("search", {"query": "y"})),
        ('**Action:** search\n**Action Input:** {"query": "y"}', ("search", {"query": "y"})),
        ('思考：查一下\n行动：search\n行动输入：{"query": "北京"}', ("search", {"query": "北京"})),
        ('Action:\n```json\n{"action": "search", "action_input": {"query": "y"}}\n```', ("search", {"query": "y"})),
        ("Action: search\nAction Input:\n```\nmany\nlines\n```", ("search", {"query": "many\nlines"})),
        ("Action: search\nAction Input: Is it?\nAnswer: no", ("search", {"query": "Is it?\nAnswer: no"})),
    ],
)
def test_react(reply: str, call: tuple[str, dict[str, Any]]) -> None:
    assert calls_of(reply) == [call]


def test_what_follows_an_invented_observation_is_not_done() -> None:
    reply = (
        'Action: search\nAction Input: {"query": "a"}\nObservation: 42\nThought: so\n'
        'Action: math\nAction Input: {"question": "b"}\nObservation: 1\nFinal Answer: 43'
    )
    assert calls_of(reply) == [("search", {"query": "a"})]
    assert not [part for part in read_calls(reply, "react") if isinstance(part, TextPart) and part.text.strip()]


def test_several_actions_at_once() -> None:
    reply = 'Action: search\nAction Input: {"query": "a"}\nAction: search\nAction Input: {"query": "b"}\n'
    assert calls_of(reply) == [("search", {"query": "a"}), ("search", {"query": "b"})]


@pytest.mark.parametrize(
    "cut", ["Action: math", "Action: math\nAction Inp", "Action: math\nAction Input: 5", "Action: call ma"]
)
def test_an_action_that_was_cut_off_is_none(cut: str) -> None:
    parts = read_calls(cut, "react", None, "length")
    assert not [part for part in parts if isinstance(part, CallPart)]
