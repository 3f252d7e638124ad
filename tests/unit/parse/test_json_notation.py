"""JSON steps -> Plan: every kind of step, its spellings, and what is wrong with it."""

from __future__ import annotations

from typing import Any

import pytest

from toolplan.diagnostics import Diagnostic
from toolplan.errors import PlanRejected
from toolplan.expressions import Fields, Items, Literal, Reference, Template, Text
from toolplan.parse import CannotPlan, parse
from toolplan.plan import (
    Answer,
    AskModel,
    AskUser,
    Break,
    Call,
    Cannot,
    Continue,
    ForEach,
    If,
    Let,
    Note,
    OnError,
    Parallel,
    Plan,
    Replan,
    Retry,
    Step,
    Try,
    While,
    walk,
)
from toolplan.show import to_json


def plan_of(value: Any, **options: Any) -> Plan:
    plan = parse(value, **options)
    assert isinstance(plan, Plan), plan
    return plan


def step_of(value: Any, **options: Any) -> Step:
    plan = plan_of([value], **options)
    assert len(plan.steps) == 1
    return plan.steps[0]


def problems_of(value: Any, **options: Any) -> tuple[Diagnostic, ...]:
    with pytest.raises(PlanRejected) as caught:
        parse(value, **options)
    return caught.value.diagnostics


def problem_of(value: Any, **options: Any) -> Diagnostic:
    (only,) = problems_of(value, **options)
    return only


def plain(template: Template | None) -> Any:
    """The template as a short value: references as `<expr>`."""
    match template:
        case Literal():
            return template.value
        case Reference():
            return f"<{template.expression.text}>"
        case Text():
            return "".join(part if isinstance(part, str) else f"<{part.expression.text}>" for part in template.parts)
        case Items():
            return [plain(item) for item in template.items]
        case Fields():
            return {key: plain(item) for key, item in template.fields}
        case None:
            return None


CALL = {"tool_name": "get", "arguments": {"x": 1}}


# --- calls ---


@pytest.mark.parametrize(
    "step",
    [
        {"tool_name": "get", "arguments": {"x": 1}, "result_variable": "r"},
        {"tool": "get", "args": {"x": 1}, "output": "r"},
        {"function": "get", "parameters": {"x": 1}, "as": "r"},
        {"name": "get", "input": {"x": 1}, "id": "r"},
        {"name": "get", "arguments": '{"x": 1}', "label": "r"},
        {"action": "get", "action_input": {"x": 1}, "save_as": "r"},
        {"function": {"name": "get", "arguments": '{"x": 1}'}, "type": "function", "result_variable": "r"},
        {"tool": {"name": "get", "args": {"x": 1}}, "result": "r"},
        {"toolName": "get", "Arguments": {"x": 1}, "resultVariable": "r"},
        {"TOOL-NAME": "get", "arguments": "{'x': 1}", "result variable": "r"},
        {"type": "tool_call", "name": "get", "params": {"x": 1}, "variable": "r"},
        {"tool_name": "get", "arguments": {"x": 1}, "result_variable": "$r"},
        {"tool_name": "get", "arguments": {"x": 1}, "result_variable": "${r}", "id": "call_7"},
        {
            "step": 1,
            "description": "d",
            "reason": "w",
            "tool_name": "get",
            "arguments": {"x": 1},
            "as": "r",
            "else": None,
        },
    ],
)
def test_a_call_in_all_its_spellings(step: dict[str, Any]):
    call = step_of(step)
    assert isinstance(call, Call)
    assert (call.id, call.tool, plain(call.arguments), call.result) == ("s1", "get", {"x": 1}, "r")
    assert call.defines == ("r", "s1")


def test_the_options_of_a_call():
    step = {**CALL, "depends_on": ["a", "s1"], "retry": 2, "timeout": "30s", "on_error": "continue"}
    _, _, call = plan_of([{**CALL, "result_variable": "a"}, CALL, step]).steps
    assert isinstance(call, Call)
    assert call.depends_on == ("a", "s1")
    assert call.retry == Retry(3)
    assert call.timeout_seconds == 30
    assert call.on_error == OnError("skip")


@pytest.mark.parametrize(
    ("written", "meaning"),
    [
        (2, Retry(3)),
        (0, None),
        (False, None),
        ({"attempts": 4}, Retry(4)),
        ({"max_attempts": 4, "delay": 2}, Retry(4, 2)),
        ({"max_retries": 4, "wait_seconds": 0.1, "max_wait_seconds": 9}, Retry(5, 0.1, 9)),
        ({"attempts": 1}, None),
    ],
)
def test_retries(written: Any, meaning: Retry | None):
    assert step_of({**CALL, "retry": written}).retry == meaning  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "written", [True, -1, 1000, "often", {"attempts": 0}, {"often": 3}, {"attempts": 2, "wait": -1}]
)
def test_retries_that_say_nothing(written: Any):
    assert problem_of([{**CALL, "retry": written}]).code == "TP114"


@pytest.mark.parametrize(
    ("written", "action", "value", "steps"),
    [
        ("fail", "fail", None, 0),
        ("stop", "fail", None, 0),
        ("skip", "skip", None, 0),
        ("continue", "skip", None, 0),
        ("replan", "replan", None, 0),
        ({"action": "skip"}, "skip", None, 0),
        ({"value": []}, "value", [], 0),
        ({"default": "none"}, "value", "none", 0),
        ({"value": None}, "value", None, 0),
        ({"do": [CALL]}, "do", None, 1),
        ({"steps": CALL}, "do", None, 1),
        ([CALL, CALL], "do", None, 2),
    ],
)
def test_on_error(written: Any, action: str, value: Any, steps: int):
    on_error = step_of({**CALL, "on_error": written}).on_error  # type: ignore[union-attr]
    assert on_error.action == action
    assert plain(on_error.value) == value
    assert len(on_error.do) == steps


def test_on_error_must_be_known():
    for written in ("explode", {"explode": 1}, 7, {"action": "explode"}, {"action": "skip", "more": 1}):
        assert problem_of([{**CALL, "on_error": written}]).code == "TP114"


def test_a_guarded_call_is_a_branch_around_it():
    for key in ("if", "when", "condition"):
        step = step_of({**CALL, key: "x > 1", "result_variable": "r"})
        assert isinstance(step, If)
        assert step.test.text == "x > 1"
        (call,) = step.then
        assert isinstance(call, Call)
        assert (step.id, call.id, step.otherwise) == ("s1", "s2", ())


def test_arguments_are_templates_and_constants_one_literal():
    arguments = {
        "a": "{x.y}",
        "b": "Hi {x}!",
        "c": [1, {"d": "e"}],
        "f": [1, "{x}"],
        "g": {"$literal": "{x}"},
        "h": None,
    }
    call = step_of({"tool_name": "t", "arguments": arguments})
    assert isinstance(call, Call)
    assert plain(call.arguments) == {
        "a": "<x.y>",
        "b": "Hi <x>!",
        "c": [1, {"d": "e"}],
        "f": [1, "<x>"],
        "g": "{x}",
        "h": None,
    }
    assert isinstance(dict(call.arguments.fields)["c"], Literal)


def test_no_arguments():
    for step in ({"tool_name": "t"}, {"tool_name": "t", "arguments": None}, {"tool_name": "t", "arguments": ""}):
        assert step_of(step).arguments.fields == ()  # type: ignore[union-attr]


def test_arguments_encoded_twice_are_decoded_twice():
    assert plain(step_of({"tool_name": "t", "arguments": '"{\\"city\\": \\"Oslo\\"}"'}).arguments) == {"city": "Oslo"}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "text", ["{year: >}", '{"a": "cut', "[1, 2]", "5", "{user}", '{"a": 1} {"b": 2}', '{"a": 1, "a": 2}']
)
def test_arguments_that_cannot_be_read_name_step_and_text(text: str):
    problem = problem_of([{"tool_name": "load"}, {"tool_name": "remove_rows", "arguments": text}])
    assert problem.code == "TP118"
    assert "step 2 (`remove_rows`)" in problem.message
    assert text in problem.message
    assert problem.place.path == (1, "arguments")


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("get_weather", "get_weather"),
        ("Get_Weather", "get_weather"),
        ("functions.get_weather", "get_weather"),
        ("find", "calendar.find"),
        ("wether", "wether"),
        ("search", "search"),
        ("getweather", "getweather"),
    ],
)
def test_a_tools_name_is_mended_by_case_or_prefix_only(written: str, read: str):
    tools = ["get_weather", "calendar.find", "github.search", "gitlab.search"]
    plan = plan_of([{"tool_name": written, "arguments": {}}], tools=tools)
    assert plan.steps[0].tool == read  # type: ignore[union-attr]
    assert bool(plan.repairs) == (written != read)


# --- other kinds ---


def test_branch():
    for step in (
        {"if": "x.ok", "then": [CALL], "else": [CALL]},
        {"if": "{x.ok}", "then": CALL, "else": CALL},
        {"condition": "x.ok", "then": [CALL], "otherwise": [CALL]},
        {"type": "conditional", "condition": "x.ok", "if_true": [CALL], "if_false": [CALL]},
        {"if": "${x.ok}", "then": {"steps": [CALL]}, "else": [CALL]},
    ):
        branch = step_of(step)
        assert isinstance(branch, If)
        assert branch.test.text.strip() == "x.ok"
        assert (len(branch.then), len(branch.otherwise)) == (1, 1)
    assert step_of({"if": "x", "then": [CALL]}).otherwise == ()  # type: ignore[union-attr]


def test_a_chain_of_branches():
    for elif_ in ({"if": "b", "then": [CALL]}, [{"condition": "b", "then": [CALL]}]):
        step = step_of({"if": "a", "then": [CALL], "elif": elif_, "else": [CALL, CALL]})
        assert isinstance(step, If)
        (inner,) = step.otherwise
        assert isinstance(inner, If)
        assert (inner.test.text, len(inner.otherwise)) == ("b", 2)
        assert [s.id for s in walk([step])] == [f"s{i}" for i in range(1, 7)]


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        ({"left": "${s.quantity}", "op": ">", "right": 0}, "s.quantity > 0"),
        ({"left": "{s.quantity}", "op": ">=", "right": 0}, "(s.quantity) >= 0"),
        ({"left": "s.quantity", "operator": "gt", "right": 0}, "s.quantity > 0"),
        ({"left": "s.sky", "op": "==", "right": "sunny"}, "s.sky == 'sunny'"),
        ({"left": "s.sky", "op": "equals", "right": "s.was"}, "s.sky == s.was"),
        ({"variable": "s.tags", "operator": "contains", "value": "x"}, "'x' in s.tags"),
        ({"left": "s.ok", "op": "==", "right": True}, "s.ok == True"),
        ({"left": "s.ok", "op": "!=", "right": None}, "s.ok is not None"),
        ({"left": "s.name", "op": "starts_with", "right": "a"}, "s.name.startswith('a')"),
        ({"and": [{"left": "s.a", "op": "<", "right": 1}, "s.b"]}, "(s.a < 1) and (s.b)"),
        ({"not": {"any": ["s.a", "s.b"]}}, "not ((s.a) or (s.b))"),
        ({"$expr": "s.a < 1"}, "s.a < 1"),
        (True, "True"),
        ("{s.temp} < 5", "(s.temp) < 5"),
        ("'{x}' == s.a", "'{x}' == s.a"),
        ("${s.temp} < 5", "(s.temp) < 5"),
        ("'${s.sky}' == 'rain'", "(s.sky) == 'rain'"),
    ],
)
def test_conditions(condition: Any, text: str):
    first = {**CALL, "result_variable": "s"}
    step = plan_of([first, {"if": condition, "then": [CALL]}]).steps[1]
    assert isinstance(step, If)
    assert step.test.text == text


@pytest.mark.parametrize(
    "condition", [7, [], {}, {"left": "a"}, {"left": "a", "op": "resembles", "right": 1}, {"and": []}, {"and": "x"}]
)
def test_conditions_that_say_nothing(condition: Any):
    assert problem_of([{"if": condition, "then": [CALL]}]).code == "TP114"


def test_loop():
    for step in (
        {"for_each": "m.items", "as": "x", "do": [CALL]},
        {"for each": "x in m.items", "do": [CALL]},
        {"foreach": "for x in m.items", "steps": CALL},
        {"for": "{m.items}", "item": "x", "body": [CALL]},
        {"loop": "m.items", "var": "x", "actions": [CALL]},
        {"for_each": "${m.items}", "as": "x", "steps": [CALL]},
        {"type": "for_each", "items": "m.items", "variable": "x", "do": [CALL]},
    ):
        loop = step_of(step)
        assert isinstance(loop, ForEach)
        assert (loop.name, plain(loop.items).replace(" ", ""), len(loop.body)) == ("x", "<m.items>", 1)
        assert (loop.collect, loop.defines) == (None, ())
    assert step_of({"for_each": [1, "{a}"], "do": [CALL]}).name == "item"  # type: ignore[union-attr]
    assert plain(step_of({"for_each": "a in b", "as": "x", "do": [CALL]}).items) == "<a in b>"  # type: ignore[union-attr]


def test_what_a_loop_collects():
    body = [{**CALL, "result_variable": "r"}]
    loop = {"for_each": "xs", "as": "x", "do": body}
    cases: list[tuple[dict[str, Any], str | None, str]] = [
        ({"collect": "r.id", "result_variable": "ids"}, "ids", "<r.id>"),
        ({"collect": "r"}, None, "<r>"),
        ({"collect": "done"}, "done", "<r>"),
        ({"result_variable": "rs"}, "rs", "<r>"),
        ({"collect": True, "as_list": None, "result_variable": "rs"}, "rs", "<r>"),
        ({"collect": {"id": "{r.id}"}, "output": "rs"}, "rs", {"id": "<r.id>"}),  # type: ignore[list-item]
    ]
    for extra, result, collected in cases:
        step = step_of({**loop, **extra})
        assert isinstance(step, ForEach)
        assert (step.result, plain(step.collect)) == (result, collected)
        assert step.defines == ((result,) if result else ()) + ("s1",)
    filtered = step_of({**loop, "collect": "r", "collect_if": "r.ok", "result_variable": "rs"})
    assert isinstance(filtered, ForEach)
    assert filtered.keep is not None
    let = step_of({"for_each": "xs", "as": "x", "do": [{"let": {"y": "x + 1"}}], "result_variable": "ys"})
    assert plain(let.collect) == "<y>"  # type: ignore[union-attr]
    assert problem_of([{**loop, "do": [{"if": "x", "then": [CALL]}], "result_variable": "rs"}]).code == "TP113"


def test_bounded_while():
    step = step_of({"while": "not done", "do": [CALL, {"break": True}], "max_iterations": 5})
    assert isinstance(step, While)
    assert (step.test.text, len(step.body), step.max_iterations) == ("not done", 2, 5)
    assert problem_of([{"while": "x", "do": [CALL]}]).code == "TP119"
    for bound in (0, True, "many", 1.5):
        assert problem_of([{"while": "x", "do": [CALL], "max_iterations": bound}]).code == "TP114"


def test_break_and_continue_need_a_loop():
    loop = {"for_each": "xs", "do": [{"if": "item", "then": [{"continue": True}], "else": [{"break": True}]}]}
    (branch,) = step_of(loop).body  # type: ignore[union-attr]
    assert isinstance(branch.then[0], Continue)
    assert isinstance(branch.otherwise[0], Break)
    assert [p.code for p in problems_of([{"break": True}, {"if": "x", "then": [{"continue": True}]}])] == ["TP121"] * 2


def test_parallel_and_try():
    parallel = step_of({"parallel": [CALL, CALL]})
    assert isinstance(parallel, Parallel)
    assert len(parallel.members) == 2
    attempt = step_of({"try": [CALL], "except": [{"note": "{e}"}], "as": "e"})
    assert isinstance(attempt, Try)
    assert (len(attempt.body), len(attempt.handler), attempt.error) == (1, 1, "e")
    assert isinstance(step_of({"try": CALL, "catch": []}), Try)


def test_let():
    for step in (
        {"let": {"a": "len(xs)", "b": "'text'"}},
        {"set": [{"name": "a", "value": "len(xs)"}, {"name": "b", "value": "'text'"}]},
    ):
        let = step_of(step)
        assert isinstance(let, Let)
        assert [(name, plain(value)) for name, value in let.values] == [("a", "<len(xs)>"), ("b", "text")]
    for step in (
        {"let": "a", "value": "len(xs)"},
        {"compute": "len(xs)", "as": "a"},
        {"let": "a = len(xs)"},
        {"type": "set", "name": "a", "value": "{len(xs)}"},
    ):
        let = step_of(step)
        assert isinstance(let, Let)
        assert [(name, plain(value)) for name, value in let.values] == [("a", "<len(xs)>")]
    values = {
        "a": 1,
        "b": None,
        "c": ["{x}", "y"],
        "d": {"k": "{x}"},
        "e": {"$literal": "{x}"},
        "f": {"$text": "Hi {x}"},
    }
    let = step_of({"let": values})
    assert isinstance(let, Let)
    assert [plain(value) for _, value in let.values] == [1, None, ["<x>", "y"], {"k": "<x>"}, "{x}", "Hi <x>"]
    for wrong in ({}, [], "a", 7, [{"name": "a"}]):
        assert problem_of([{"let": wrong}]).code == "TP114"


def test_asking():
    user = step_of({"ask_user": "Which {thing}?", "result_variable": "which"})
    assert isinstance(user, AskUser)
    assert (plain(user.question), user.defines) == ("Which <thing>?", ("which", "s1"))
    model = step_of({"ask_model": "Read it", "data": "mail.body", "returns": {"type": "number"}, "as": "n"})
    assert isinstance(model, AskModel)
    assert (plain(model.data), model.returns, model.defines) == ("<mail.body>", {"type": "number"}, ("n", "s1"))
    bare = step_of({"ask_model": "Write a poem"})
    assert isinstance(bare, AskModel)
    assert (plain(bare.data), bare.returns) == (None, {"type": "string"})
    rescued = step_of({"ask_model": "Read", "data": ["{a}", "b"], "on_error": {"value": None}})
    assert isinstance(rescued, AskModel)
    assert (plain(rescued.data), rescued.on_error.action) == (["<a>", "b"], "value")


@pytest.mark.parametrize(
    ("written", "schema"),
    [
        ("string", {"type": "string"}),
        ("int", {"type": "integer"}),
        ('{"type": "array", "items": {"type": "string"}}', {"type": "array", "items": {"type": "string"}}),
        ({"enum": ["a", "b"]}, {"enum": ["a", "b"]}),
        ({}, {}),
        (
            {"iban": "string", "amount": "number"},
            {
                "type": "object",
                "properties": {"iban": {"type": "string"}, "amount": {"type": "number"}},
                "required": ["iban", "amount"],
            },
        ),
        (
            {
                "type": "object",
                "nullable": None,
                "properties": [
                    {"name": "a", "schema": {"type": "string", "nullable": True, "items": None}},
                    {"name": "b", "schema": {"type": "array", "items": {"type": "integer", "nullable": None}}},
                ],
            },
            {
                "type": "object",
                "properties": {
                    "a": {"type": ["string", "null"]},
                    "b": {"type": "array", "items": {"type": "integer"}},
                },
                "required": ["a", "b"],
            },
        ),
    ],
)
def test_what_a_model_must_return(written: Any, schema: dict[str, Any]):
    assert step_of({"ask_model": "q", "data": "d", "returns": written}).returns == schema  # type: ignore[union-attr]


def test_returns_must_be_a_schema():
    for wrong in (7, [], "a number, please", '{"type": '):
        assert problem_of([{"ask_model": "q", "data": "d", "returns": wrong}]).code == "TP114"


def test_endings():
    answer, note, replan, cannot = plan_of(
        [
            {"answer": "It is {x}"},
            {"note": "working"},
            {"replan": True, "reason": "more to see"},
            {"cannot": "no {x}", "missing": ["a {y}", "z"]},
        ]
    ).steps
    assert isinstance(answer, Answer)
    assert plain(answer.text) == "It is <x>"
    assert isinstance(note, Note)
    assert isinstance(replan, Replan)
    assert plain(replan.reason) == "more to see"
    assert isinstance(cannot, Cannot)
    assert [plain(item) for item in cannot.missing] == ["a <y>", "z"]
    assert isinstance(parse([{"cannot": "no {x}"}]), Plan)
    assert parse([{"cannot": "no x"}]) == CannotPlan("no x")


# --- around the steps ---


def test_the_whole_plan():
    plan = plan_of(
        {"reasoning": "why", "inputs": {"city": "Oslo"}, "steps": [CALL], "final_answer_template": "In {city}"}
    )
    assert (plan.thought, plan.inputs, plain(plan.answer)) == ("why", {"city": "Oslo"}, "In <city>")
    assert plan.notation == "json"
    wrapped = plan_of({"plan": {"steps": [CALL], "thought": "inner"}, "answer": "ok"})
    assert (wrapped.thought, plain(wrapped.answer), len(wrapped.steps)) == ("inner", "ok", 1)
    assert plan_of({"thought": {"a": 1}, "steps": [CALL]}).thought == '{"a": 1}'


def test_a_single_step_is_a_plan():
    assert len(plan_of(CALL).steps) == 1
    assert isinstance(plan_of({"for_each": "xs", "steps": [CALL]}).steps[0], ForEach)
    assert isinstance(plan_of({"thought": "x", **CALL}).steps[0], Call)


def test_ids_count_through_bodies_in_written_order():
    plan = plan_of(
        [
            {**CALL, "on_error": {"do": [CALL]}},
            {"if": "x", "then": [CALL, {"for_each": "xs", "do": [CALL]}], "else": [CALL]},
            {"try": [CALL], "except": [CALL]},
            CALL,
        ]
    )
    assert [step.id for step in walk(plan.steps)] == [f"s{i}" for i in range(1, 12)]


def test_names_of_results():
    plan = plan_of(
        [
            {"tool_name": "once"},
            {"tool_name": "twice"},
            {"tool_name": "twice", "result_variable": "second"},
            {"tool_name": "some-server.do"},
            {"tool_name": "taken"},
            {"let": {"taken": "1", "s2": "2"}},
        ]
    )
    assert [step.defines for step in plan.steps if isinstance(step, Call)] == [
        ("once_result", "once", "s1"),
        ("twice_result",),
        ("second", "s3"),
        ("some_server_do_result", "some_server_do", "s4"),
        ("taken_result", "s5"),
    ]


def test_labels_serve_as_names_only_when_they_can():
    steps = [
        {"id": 1, "tool_name": "a"},
        {"id": "step-2", "tool_name": "b", "depends_on": [1]},
        {"id": "third", "tool_name": "c", "depends_on": "step-2"},
        {"id": "x", "result_variable": "y", "tool_name": "d", "depends_on": ["third", "s1"]},
        {"tool_name": "e", "depends_on": ["x"]},
    ]
    plan = plan_of(steps)
    assert [step.result for step in plan.steps] == [None, None, "third", "y", None]  # type: ignore[union-attr]
    assert [step.depends_on for step in plan.steps] == [(), ("s1",), ("s2",), ("third", "s1"), ("y",)]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("weather-oslo", "weather_oslo"),
        ("1st", "r1st"),
        ("class", "class_"),
        ("null", "null_"),
        ("a b", "a_b"),
        ("__x__", "x"),
        ("…", None),
    ],
)
def test_names_must_be_usable(name: str, suggestion: str | None):
    problem = problem_of([{**CALL, "result_variable": name}])
    assert problem.code == "TP117"
    assert problem.help == (f"write `{suggestion}`" if suggestion else None)


def test_chinese_names_and_keys():
    plan = plan_of(
        [{"tool_name": "查天气", "arguments": {"城市": "北京"}, "result_variable": "天气"}, {"answer": "{天气.温度}度"}]
    )
    assert plan.steps[0].defines == ("天气", "s1")  # type: ignore[union-attr]
    assert plain(plan.steps[1].text) == "<天气.温度>度"  # type: ignore[union-attr]


# --- what is wrong ---


@pytest.mark.parametrize(
    ("step", "code", "path"),
    [
        ("do something", "TP110", (1,)),
        (None, "TP110", (1,)),
        ([CALL], "TP110", (1,)),
        ({}, "TP110", (1,)),
        ({"city": "Oslo"}, "TP110", (1,)),
        ({"for_each": "xs", "tool_name": "a"}, "TP111", (1,)),
        ({"parallel": True, "tool_name": "a"}, "TP111", (1,)),
        ({"if": "x", "then": [], "while": "y"}, "TP111", (1,)),
        ({**CALL, "argumets": {}}, "TP112", (1, "argumets")),
        ({"tool_name": "a", "city": "Oslo"}, "TP112", (1, "city")),
        ({"for_each": "xs"}, "TP113", (1,)),
        ({"if": "x"}, "TP113", (1,)),
        ({"try": [CALL]}, "TP113", (1,)),
        ({"if": "x", "then": "take an umbrella"}, "TP114", (1, "then")),
        ({"tool_name": 7}, "TP114", (1, "tool_name")),
        ({"tool_name": ""}, "TP114", (1, "tool_name")),
        ({"tool_name": "a", "arguments": [1]}, "TP114", (1, "arguments")),
        ({**CALL, "timeout_seconds": -1}, "TP114", (1, "timeout_seconds")),
        ({**CALL, "timeout_seconds": "soon"}, "TP114", (1, "timeout_seconds")),
        ({**CALL, "depends_on": [True]}, "TP114", (1, "depends_on")),
        ({**CALL, "result_variable": 7}, "TP114", (1, "result_variable")),
        ({"tool_name": "a", "arguments": {"x": 1}, "args": {"x": 2}}, "TP115", (1, "args")),
        ({"let": {"x": "good morning"}}, "TP116", (1, "let", "x")),
        ({"if": "x >", "then": []}, "TP116", (1, "if")),
        ({"for_each": "x in", "do": []}, "TP116", (1, "for_each")),
        ({"tool_name": "a", "arguments": {"x": [{"$expr": "1 +"}]}}, "TP116", (1, "arguments", "x", 0, "$expr")),
        ({"for_each": "xs", "as": "for", "do": []}, "TP117", (1, "as")),
        ({"let": {"a-b": "1"}}, "TP117", (1, "let", "a-b")),
    ],
)
def test_problems_of_a_step(step: Any, code: str, path: tuple[str | int, ...]):
    problem = problem_of([CALL, step])
    assert problem.code == code
    assert problem.place.path == path


def test_unknown_keys_are_explained():
    near = problem_of([{**CALL, "argumnets": {}}])
    assert near.help == "did you mean `arguments`?"
    assert near.place.key
    loose = problem_of([{"tool_name": "a", "city": "Oslo"}])
    assert loose.help == 'if `city` is an argument, write it inside "arguments"'
    assert problem_of({"steps": [CALL], "anwser": "x"}).help == "did you mean `answer`?"


def test_all_problems_at_once_in_source_order():
    problems = problems_of(
        {
            "answer": {"$expr": "1 +"},
            "steps": [
                {"if": "x >", "then": [{"for_each": "xs"}, {"oops": 1}]},
                CALL,
                {"let": {"a": "1 +"}},
                {**CALL, "extra": 1},
                {"if": "x", "then": [{"break": True}, "text"]},
            ],
        }
    )
    assert [p.code for p in problems] == ["TP116", "TP116", "TP116", "TP112", "TP121", "TP110"]


def test_a_thousand_problems_are_cut():
    assert len(problems_of([{**CALL, "oops": 1}] * 1000)) == 100


def test_cannot_beside_steps():
    assert problem_of({"steps": [CALL], "cannot": "no"}).code == "TP111"
    assert problem_of({"answer": "ok", "cannot": "no"}).code == "TP111"


def test_inputs_must_be_an_object():
    assert problem_of({"inputs": [1], "steps": [CALL]}).code == "TP114"
    assert problem_of({"inputs": {"a b": 1}, "steps": [CALL]}).code == "TP117"


def test_places_point_into_the_text():
    text = '[\n {"tool_name": "a", "arguments": {"x": "{b.c"}},\n {"let": {"y": "1 +* 2"}}\n]'
    with pytest.raises(PlanRejected) as caught:
        parse(text)
    (problem,) = caught.value.diagnostics
    shown = problem.to_dict(caught.value.source)
    assert (shown["line"], shown["path"]) == (3, "$[1].let.y")


def test_a_mended_plan_says_what_was_mended():
    plan = plan_of("[{'tool_name': 'a', 'arguments': {'x': True,}}]")
    assert len(plan.repairs) == 3
    assert to_json(plan)["steps"] == [{"tool_name": "a", "arguments": {"x": True}}]
