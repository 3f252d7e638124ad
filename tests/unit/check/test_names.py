"""Names: definition on every path, what is unknown, bare fields, doubtful braces, unused results."""

from __future__ import annotations

from typing import Any

import pytest

from plan_tools import TOOLS, codes, only, reading
from toolplan.check import check
from toolplan.expressions import Literal, Reference, Template, Text
from toolplan.plan import Answer, Call

W = {"tool_name": "get_weather", "arguments": {"city": "Oslo"}, "result_variable": "w"}
NOTE = {"note": "-"}


def say(template: str) -> dict[str, Any]:
    return {"answer": template}


def let(**values: str) -> dict[str, Any]:
    return {"let": values}


def resolved_answer(*steps: Any) -> Template:
    answer = check(reading(list(steps)), TOOLS).plan.steps[-1]
    assert isinstance(answer, Answer)
    return answer.text


def test_an_undefined_name_is_named_with_the_place_of_its_use() -> None:
    mail = {"tool_name": "send_email", "arguments": {"to": "ops@example.org", "subject": "s", "body": "start"}}
    other = {"tool_name": "send_email", "arguments": {**mail["arguments"], "body": "{report.summary}"}}
    found = only([mail, other])
    assert (found.code, found.place.json_path()) == ("TP203", "$[1].arguments.body")
    assert "`report`" in found.message


def test_one_unknown_name_is_one_diagnostic_with_a_mark_at_each_use() -> None:
    found = only([W, say("{w.city} {x.a} {x.b}")])
    assert (found.code, [mark.label for mark in found.others]) == ("TP203", ["also used here"])


def test_a_misspelt_variable_is_suggested() -> None:
    assert only([{**W, "result_variable": "weather"}, say("{wether.city}")]).help == "did you mean `weather`?"


def test_the_one_result_with_the_field_is_suggested() -> None:
    found = only([W, let(x="report.condition"), say("{x}")])
    assert found.help == "`w` has a field `condition`; write `w.condition`"
    assert only([W, say("{report.condition}")]).help == '`w` has a field `condition`; write "{w.condition}"'


def test_a_name_defined_later_says_which_step_defines_it() -> None:
    orders = {"tool_name": "list_orders", "arguments": {"customer_id": "{c.id}"}, "result_variable": "o"}
    customer = {"tool_name": "find_customer", "arguments": {"name": "Kim"}, "result_variable": "c"}
    found = only([orders, customer, say("{o}")])
    assert found.code == "TP203"
    assert "`c` is defined later, by step `s2`" in found.notes


def test_a_loop_keeps_its_names() -> None:
    found = only([{"for_each": ["a", "b"], "as": "city", "do": [W]}, say("{w.city}")])
    assert found.code == "TP203"
    assert found.notes[0] == "`w` is defined inside the loop `s1` and ends with its round"
    assert "collect" in (found.help or "")


def test_a_loop_keeps_its_variable() -> None:
    assert only([{"for_each": [1], "as": "n", "do": [NOTE]}, say("{n}")]).code == "TP203"


def test_text_without_quotes_in_a_position_for_an_expression() -> None:
    assert "\"'hello'\"" in (only([let(greeting="hello"), say("{greeting}")]).help or "")


def test_a_tool_used_as_a_value() -> None:
    assert "`find_customer` is a tool" in (only([say("{find_customer.name}")]).help or "")


# --- every path -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("then", "otherwise", "expected"),
    [
        ([let(x="1")], [let(x="2")], []),
        ([let(x="1")], None, ["TP202"]),
        ([NOTE], [let(x="2")], ["TP202"]),
        ([let(x="1")], [say("no")], []),
        ([{"cannot": "no"}], [let(x="2")], []),
        ([{"if": "true", "then": [let(x="1")]}], [let(x="2")], ["TP202"]),
    ],
)
def test_a_name_is_usable_after_a_branch_when_every_path_defines_it(
    then: list[Any], otherwise: list[Any] | None, expected: list[str]
) -> None:
    assert codes([W, {"if": "w.temperature < 5", "then": then, "else": otherwise}, say("{x}")]) == expected


def test_the_branch_that_defines_a_name_is_marked() -> None:
    found = only([W, {"if": "w.wind", "then": [let(x="1")]}, say("{x}")])
    assert found.others[0].place.json_path() == "$[1].then[0].let"


@pytest.mark.parametrize(
    ("handler", "expected"), [(let(w="{'city': '?'}"), []), (say("no weather: {e}"), []), (NOTE, ["TP202"])]
)
def test_after_a_try_a_name_needs_the_handler_too(handler: dict[str, Any], expected: list[str]) -> None:
    assert codes([{"try": [W], "except": [handler], "as": "e"}, say("{w.city}")]) == expected


@pytest.mark.parametrize(
    ("on_error", "expected"),
    [
        ("skip", []),
        ({"value": {"city": "?"}}, []),
        ({"do": [NOTE]}, ["TP202"]),
        ({"do": [{"cannot": "-"}]}, []),
        ({"do": [let(w="{'city': 1}")]}, []),
    ],
)
def test_after_a_call_with_on_error_a_name_needs_its_steps_too(on_error: Any, expected: list[str]) -> None:
    assert codes([{**W, "on_error": on_error}, say("{w.city}")]) == expected


def test_a_name_from_before_a_loop_lives_on() -> None:
    body = [{"if": "best is None or n < best", "then": [let(best="n")]}]
    assert codes([let(best="None"), {"for_each": [3, 1, 2], "as": "n", "do": body}, say("{best}")]) == []


def test_collect_sees_the_end_of_the_round() -> None:
    loop = {"for_each": ["a"], "as": "city", "do": [W], "collect": "[city, w.condition]", "result_variable": "all"}
    assert codes([loop, say("{all}")]) == []


def test_collect_needs_its_names_on_every_path_of_the_round() -> None:
    body = [{"if": "w.wind", "then": [let(x="1")]}]
    loop = {"for_each": ["a"], "as": "c", "do": body, "collect": "x", "result_variable": "all"}
    assert codes([W, loop, say("{all}")]) == ["TP202"]


def test_what_never_runs_may_name_what_it_likes() -> None:
    steps = [W, {"if": "w.wind", "then": [say("windy")], "else": [say("calm")]}]
    assert codes({"steps": steps, "answer": "{nobody}"}) == []


def test_steps_are_known_by_tool_and_number() -> None:
    step = {"tool_name": "get_weather", "arguments": {"city": "Oslo"}}
    assert codes([step, say("{get_weather_result.city} {get_weather.city} {s1.city} {now}")]) == []


def test_inputs_are_names() -> None:
    assert codes({"inputs": {"town": "Oslo"}, "steps": [], "answer": "{town}"}) == []


def test_a_plain_answer_is_checked_too() -> None:
    assert codes({"steps": [W], "answer": "{w.city} {x}"}) == ["TP203"]


# --- resolved -------------------------------------------------------------------------------------------------------


def test_a_bare_field_of_one_result_is_qualified() -> None:
    assert codes([W, say("{temperature}")]) == ["TP207"]
    text = resolved_answer(W, say("{temperature}"))
    assert isinstance(text, Reference)
    assert text.expression.evaluate({"w": {"temperature": 7}}) == 7


def test_a_bare_field_of_two_results_is_not() -> None:
    other = {**W, "result_variable": "v"}
    assert codes([W, other, say("{temperature} {w.city} {v.city}")]) == ["TP203"]


def test_doubled_braces_around_a_name_in_scope_are_a_reference() -> None:
    text = resolved_answer(W, say("{{w.city}} is not {{town}}"))
    assert isinstance(text, Text)
    assert [part if isinstance(part, str) else part.doubtful for part in text.parts] == [False, " is not {town}"]


def test_doubled_braces_around_an_unknown_name_are_text() -> None:
    text = resolved_answer(say("write {{name}} here"))
    assert isinstance(text, Literal)
    assert text.value == "write {name} here"


def test_braces_that_begin_with_a_value_and_cannot_be_read_are_warned_of() -> None:
    assert codes([W, say("{w.city}: {w.temperature degrees}")]) == ["TP211"]
    assert codes([W, say("{w.city}: {x.temperature degrees}")]) == []


def test_a_plan_without_anything_to_resolve_stays_the_same_object() -> None:
    plan = reading([W, say("{w.city}")])
    assert check(plan, TOOLS).plan is plan


# --- warnings -------------------------------------------------------------------------------------------------------


def test_an_unused_reading_is_warned_of_only_when_the_plan_words_its_answer() -> None:
    assert codes([W]) == []
    assert codes([W, say("done")]) == ["TP209"]
    assert codes([W, {"if": "w.wind", "then": [say("yes")]}]) == []


def test_a_call_with_effects_may_go_unused() -> None:
    pay = {"tool_name": "pay", "arguments": {"account": "a", "amount": 5}, "result_variable": "p"}
    assert codes([pay, say("paid")]) == []


def test_a_reading_that_is_tried_may_go_unused() -> None:
    assert codes([{"try": [W], "except": [say("no")]}, say("yes")]) == []


def test_a_mistake_keeps_unused_results_silent() -> None:
    assert codes([W, say("{weathr.city}")]) == ["TP203"]


def test_a_variable_with_the_name_of_a_tool() -> None:
    assert codes([{**W, "result_variable": "find_customer"}, say("{find_customer.city}")]) == ["TP208"]
    assert codes([{**W, "result_variable": "get_weather"}, say("{get_weather.city}")]) == []


def test_depends_on_counts_as_a_use_and_goes_to_values_only() -> None:
    pay = {"tool_name": "pay", "arguments": {"account": "a", "amount": 1}, "depends_on": ["w", "s2"]}
    call = check(reading([W, {"if": "w.wind", "then": [NOTE]}, pay]), TOOLS).plan.steps[2]
    assert isinstance(call, Call)
    assert call.depends_on == ("w",)


def test_python_names_follow_the_same_rules() -> None:
    assert codes('if True:\n    x = 1\nreturn f"{x}"') == ["TP202"]
    assert codes('for city in ["a"]:\n    w = get_weather(city=city)\nreturn w.city') == ["TP203"]


@pytest.mark.parametrize("label", ["id", "step_id"])
def test_a_loop_that_collects_nothing_has_no_value(label: str) -> None:
    loop = {"for_each": ["a", "b"], "as": "e", "do": [W], label: "L"}
    for name in ("L", "s1"):
        found = only([loop, say(f"{{{name}}}")])
        assert found.code == "TP203"
        assert found.notes[0] == f"`{name}` is a loop, and a loop's value needs `collect`"
        assert found.help == 'add `"collect": ...` to the loop: its value is then the list of what each round gives'
    assert codes([{**loop, "result_variable": "all"}, say("{all}")]) == []


@pytest.mark.parametrize("name", ["error", "e", "err", "exception"])
def test_the_error_in_on_error_needs_a_try(name: str) -> None:
    mail = {"tool_name": "send_email", "arguments": {"to": "a", "subject": "s", "body": f"{{{name}}}"}}
    found = only([{**W, "on_error": {"do": [mail]}}, say("x")])
    assert found.help == f'only a `try` gives the error a name: {{"try": [...], "except": [...], "as": "{name}"}}'
    found = only([{"try": [W], "except": [mail]}, say("x")])
    assert found.help == f'give the error a name: {{"try": [...], "except": [...], "as": "{name}"}}'
    assert codes([{"try": [W], "except": [mail], "as": name}, say("x")]) == []
    assert "try" not in (only([mail, say("x")]).help or "")


@pytest.mark.parametrize(
    ("name", "expression"),
    [
        ("today", "date(now)"),
        ("今天", "date(now)"),
        ("current_date", "date(now)"),
        ("current_time", "now"),
        ("tomorrow", "add(date(now), days=1)"),
        ("明天", "add(date(now), days=1)"),
        ("yesterday", "add(date(now), days=-1)"),
        ("后天", "add(date(now), days=2)"),
    ],
)
def test_words_for_a_time_are_written_with_now(name: str, expression: str) -> None:
    assert only([say(f"on {{{name}}}")]).help == f"`now` is the time of the run; write `{expression}`"
    assert codes([say(f"on {{{expression}}}")]) == []


@pytest.mark.parametrize("name", ["user_name", "姓名"])
def test_a_placeholder_for_what_only_the_user_knows(name: str) -> None:
    found = only([say(f"Dear {{{name}}}, hello")])
    assert found.help == f"ask for it with `ask_user`, or write `{{{{{name}}}}}` for braces that are text"
    assert codes([say(f"Dear {{{{{name}}}}}, hello")]) == []


def test_an_unused_result_follows_from_any_error() -> None:
    unused = [{**W, "result_variable": "v"}, W, say("{w.city}")]
    assert codes(unused) == ["TP209"]
    assert codes([*unused[:2], say("{w.nothing}")]) == ["TP306"]
