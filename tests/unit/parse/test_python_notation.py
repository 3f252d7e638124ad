"""Programs in the Python notation, read as plans."""

from __future__ import annotations

import pytest

from toolplan.diagnostics import Source
from toolplan.expressions import Fields, Literal, Text
from toolplan.expressions.templates import holes
from toolplan.parse import parse
from toolplan.parse.python_notation import read_program
from toolplan.parse.reading import CannotPlan
from toolplan.plan import Answer, AskModel, Call, Cannot, ForEach, Let, Note, Plan, walk
from toolplan.show import canonical
from unit.parse.python_oracle import Outcome, run_as_plan, run_by_python
from unit.parse.python_pairs import PAIRS
from unit.parse.python_programs import PROGRAMS, TOOLS
from unit.parse.python_reading import marked, read, refused, replies

# --- meaning --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_means_what_cpython_does(name):
    text = PROGRAMS[name]
    plan = read_program(Source(text), set(TOOLS))
    expected = run_by_python(text, TOOLS)
    if isinstance(plan, CannotPlan):
        assert Outcome([], plan.reason) == expected
        return
    assert run_as_plan(plan, TOOLS) == expected
    assert run_as_plan(parse(canonical(plan), notation="json", tools=set(TOOLS)), TOOLS) == expected


@pytest.mark.parametrize("name", PAIRS)
def test_both_notations_give_the_same_plan(name):
    program, steps = PAIRS[name]
    assert canonical(read(program)) == canonical(parse(steps, notation="json"))


def test_there_are_enough_pairs():
    assert len(PAIRS) >= 40


def test_ids_count_in_written_order_through_bodies():
    plan = read("a = f()\nfor x in a:\n    if x:\n        g(y=h())\ni()")
    assert [(step.id, type(step).__name__) for step in walk(plan.steps)] == [
        ("s1", "Call"),
        ("s2", "ForEach"),
        ("s3", "If"),
        ("s4", "Call"),
        ("s5", "Call"),
        ("s6", "Call"),
    ]


def test_a_call_is_known_by_its_variable_or_its_tool_and_by_its_id():
    first, second = read("x = f()\ng()").steps
    assert first.defines == ("x", "s1")
    assert second.defines == ("g_result", "g", "s2")


def test_names_that_come_by_themselves_give_way_to_the_programs_own():
    plan = read("s2 = f()\ng()\ng_result = 1\nreturn s2")
    assert plan.steps[1].defines == ("g",)


def test_fresh_names_are_not_names_of_the_program():
    plan = read("_1 = 5\nsend(to=get(x=_1).email, _2=3)")
    assert [step.result for step in plan.steps if isinstance(step, Call)] == ["_3", None]


def test_a_loop_variable_that_exists_before_the_loop_lives_on():
    loop = read("for x in xs:\n    f(a=x)").steps[0]
    assert isinstance(loop, ForEach)
    assert loop.name == "x"
    loop = read("x = 0\nfor x in xs:\n    f(a=x)").steps[1]
    assert isinstance(loop, ForEach)
    assert loop.name != "x"
    assert isinstance(loop.body[0], Let)


def test_two_loops_may_use_one_variable():
    assert [step.name for step in read("for x in a:\n    f(y=x)\nfor x in b:\n    f(y=x)").steps] == ["x", "x"]


# --- calls ----------------------------------------------------------------------------------------------------------


def arguments(text, **given):
    call = read(text, **given).steps[-1]
    assert isinstance(call, Call)
    assert isinstance(call.arguments, Fields)
    return {name: value.value for name, value in call.arguments.fields if isinstance(value, Literal)}


def test_arguments_by_place_where_the_parameters_are_known():
    assert arguments('send("a", text="b")', parameters={"send": ["to", "text"]}) == {"to": "a", "text": "b"}


def test_arguments_by_place_need_known_parameters():
    for tools in (None, {"send"}):
        (problem,) = refused('send("a")', tools)
        assert problem.code == "TP161"


def test_a_tool_that_does_not_exist_is_left_to_the_checker_whatever_its_arguments():
    assert read('sned("a", b=1)', {"send"}).steps[0].tool == "sned"


def test_all_arguments_are_read_even_if_one_is_wrong():
    assert [d.code for d in refused("f(a=lambda: 1, b=(y := 2), c=x.__class__)")] == ["TP116", "TP170", "TP116"]


def test_a_tool_hides_a_function_of_the_same_name():
    assert isinstance(read("x = add(a=1, b=2)", {"add"}).steps[0], Call)
    assert isinstance(read('x = add("2026-01-01", days=2)', {"get"}).steps[0], Let)


def test_a_tool_hides_a_word_of_the_notation():
    (step,) = read('ask_user(text="?")', {"ask_user"}).steps
    assert isinstance(step, Call)


def test_without_known_tools_a_python_builtin_is_no_tool():
    (problem,) = refused('x = open("a.txt")')
    assert problem.code == "TP116"
    assert "`open`" in problem.message


@pytest.mark.parametrize("name", ["functions.get_weather", "tools.get_weather", "default_api.get_weather"])
def test_a_prefix_of_a_tool_is_read_and_told(name):
    plan = read(f'x = {name}(city="Oslo")', {"get_weather"})
    assert plan.steps[0].tool == "get_weather"
    assert plan.repairs == (f"`{name}` was read as the tool `get_weather`",)


def test_a_method_of_a_value_is_not_taken_for_a_tool():
    problems = refused('x = get()\ny = x.search(query="a")', {"get", "search"})
    assert [d.code for d in problems] == ["TP116"]


def test_asyncio_means_nothing_special():
    text = """
import asyncio

async def main():
    t = asyncio.create_task(f(a=1))
    a, b = await asyncio.gather(f(a=2), f(a=3))
    cs = await asyncio.gather(*[f(a=n) for n in [1, 2]])
    ds = await asyncio.gather(*(f(a=n) for n in [1, 2]))
    both = await asyncio.gather(f(a=4), *cs)
    e = await asyncio.wait_for(f(a=5), timeout=2.5)
    await asyncio.gather(g(), g())
    return [(await t).x, a, b]

if __name__ == "__main__":
    print(asyncio.run(main()))
"""
    plan = read(text)
    assert [step.tool for step in walk(plan.steps) if isinstance(step, Call)] == ["f"] * 7 + ["g", "g"]
    assert [s.timeout_seconds for s in walk(plan.steps) if isinstance(s, Call) and s.timeout_seconds] == [2.5]
    assert [s.result for s in plan.steps if isinstance(s, ForEach)] == ["cs", "ds"]


@pytest.mark.parametrize(
    "text",
    [
        "async def main():\n    x = f()\n    return x\n\nasyncio.run(main())",
        "async def main():\n    x = f()\n    return x\n\nawait main()",
        "def plan():\n    x = f()\n    return x\n\nprint(plan())",
        "def plan():\n    x = f()\n    return x\n\nresult = plan()\nprint(result)",
        "def plan():\n    x = f()\n    return x\n\nreturn plan()",
        "def plan():\n    x = f()\n    return x\n",
        'import json\ndef plan():\n    x = f()\n    return x\nif __name__ == "__main__":\n    answer(plan())',
        'if "__main__" == __name__:\n    x = f()\n    answer(x)',
    ],
)
def test_a_function_that_holds_the_plan_is_its_body(text):
    assert canonical(read(text)) == canonical(read("x = f()\nreturn x"))


@pytest.mark.parametrize(
    "text",
    [
        "def plan(a):\n    return f(x=a)\n\nplan(1)",
        "def plan():\n    return f()\n\nplan()\nplan()",
        "def plan():\n    return f()\n\nx = plan()\ng(y=x)",
        "def a():\n    f()\ndef b():\n    g()\na()",
        "def plan():\n    plan()\nplan()",
        "class Plan:\n    def run(self):\n        f()",
        "@cached\ndef plan():\n    f()\nplan()",
    ],
)
def test_other_functions_are_refused_once(text):
    assert {d.code for d in refused(text)} == {"TP151"}


# --- words of the notation ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("last", ["return", "return None", "break", "continue"])
def test_a_statement_that_only_leaves_is_no_step_behind_what_ends_the_plan(last):
    program = "for x in f():\n    if x:\n        answer('yes')\n        {}\n    g(y=x)\nanswer('no')"
    assert canonical(read(program.format(last))) == canonical(read(program.format("pass")))


def test_what_returns_something_behind_the_answer_stays_a_step():
    assert len(read("x = f()\nanswer(x)\nreturn x").steps) == 3


def returned(text):
    step = read(text).steps[-1]
    assert isinstance(step, AskModel)
    return step.returns


@pytest.mark.parametrize(
    ("written", "schema"),
    [
        ("str", {"type": "string"}),
        ("bool", {"type": "boolean"}),
        ('"number"', {"type": "number"}),
        ("list[str]", {"type": "array", "items": {"type": "string"}}),
        ("[int]", {"type": "array", "items": {"type": "integer"}}),
        ("dict[str, float]", {"type": "object", "additionalProperties": {"type": "number"}}),
        ("str | None", {"type": ["string", "null"]}),
        ("Optional[list[str]]", {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]}),
        ("Literal['a', 'b']", {"enum": ["a", "b"]}),
        ("typing.Any", {}),
        ("dict", {"type": "object"}),
        (
            '{"name": str, "type": str}',
            {
                "type": "object",
                "properties": {"name": {"type": "string"}, "type": {"type": "string"}},
                "required": ["name", "type"],
            },
        ),
        ('{"type": "array", "items": str}', {"type": "array", "items": {"type": "string"}}),
        ('{"type": ["string", None]}', {"type": ["string", "null"]}),
        ('{"enum": ["a", null], "description": "x"}', {"enum": ["a", None], "description": "x"}),
        ('{"type": "integer", "minimum": -1}', {"type": "integer", "minimum": -1}),
        (
            '{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], '
            '"additionalProperties": False}',
            {
                "type": "object",
                "properties": {"a": {"type": "string"}},
                "required": ["a"],
                "additionalProperties": False,
            },
        ),
    ],
)
def test_schemas_of_ask_model(written, schema):
    assert returned(f'x = ask_model("?", d, returns={written})') == schema


def test_a_schema_may_be_a_variable_and_be_put_together():
    text = 'one = {"type": "string"}\nmany = {"type": "array", "items": one}\nx = ask_model("?", d, many)'
    assert returned(text) == {"type": "array", "items": {"type": "string"}}
    assert returned('base = {"type": "object"}\nx = ask_model("?", d, {**base, "title": "T"})') == {
        "type": "object",
        "title": "T",
    }


def test_a_schema_that_is_not_constant_is_refused_where_it_is_used():
    text = 'kind = {"type": get()}\nx = ask_model("?", d, returns=kind)'
    (problem,) = refused(text)
    assert problem.code == "TP167"
    assert marked(text, problem) == "kind"
    assert refused('s = s2\ns2 = s\nx = ask_model("?", d, s)')[0].code == "TP167"


def test_ask_model_without_returns_gives_text():
    assert returned('x = ask_model("Summarise.", d)') == {"type": "string"}
    assert returned('x = ask_model(prompt="Summarise.", text=d, schema=str)') == {"type": "string"}


def test_cannot_alone_is_a_reading_of_its_own():
    found = read_program(Source('return cannot("no tool sells trains", missing=["a train shop"])'))
    assert found == CannotPlan("no tool sells trains", ("a train shop",))
    (step,) = read('cannot(f"no {x}")').steps
    assert isinstance(step, Cannot)


def test_a_value_in_the_last_line_is_the_answer():
    plan = read('x = f()\nf"It is {x.name}."')
    assert isinstance(plan.steps[-1].text, Text)
    assert plan.repairs == ("read the value in the last line as the answer",)
    assert [type(step) for step in read("x = f()\nx.name\ng()").steps] == [Call, Call]


def test_a_print_in_the_last_line_is_the_answer_where_there_is_no_other():
    plan = read('x = f()\nprint("It is", x.name)')
    assert isinstance(plan.steps[-1], Answer)
    assert plan.repairs == ("read the `print` in the last line as the answer",)
    assert isinstance(read('x = f()\nif not x:\n    return "none"\nprint(x)').steps[-1], Note)
    assert isinstance(read("print(f())\ng()").steps[1], Note)


def test_the_text_of_an_error_has_the_names_that_programs_use():
    handler = (
        read("try:\n    f()\nexcept Exception as e:\n    x = [e.message, e.args[0], str(e), f'{e}']").steps[0].handler
    )
    assert [hole.expression.text for hole in holes(handler[0].values[0][1])] == ["e", "[e][0]", "str(e)", "f'{e}'"]


def test_several_handlers_that_do_the_same_are_one():
    (step,) = read("try:\n    f()\nexcept ValueError:\n    g()\nexcept Exception:\n    g()").steps
    assert [type(inner) for inner in step.handler] == [Call]


# --- f-strings ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ('f"{d["k"]}"', "v"),
        ('f"{"\\n".join(xs)}"', "p\nq"),
        ('f"{", ".join([f"<{x}>" for x in xs])}"', "<p>, <q>"),
        ("f'{{{n}}}'", "{3}"),
        ("f'{n:03d}|{n!r}|{d[\"k\"]!r:>4}'", "003|3| 'v'"),
        ("f'{n:>{n}}|'", "  3|"),
        ("f'{n = }, {n=:02d}'", "n = 3, n=03"),
        ("rf'\\d{n}'", "\\d3"),
        ("f'\\x41\\N{DIGIT ONE}\\{n}\\''", "A1\\3'"),
        ('f"""a"\n{n}"""', 'a"\n3'),
        ("'a' f'{n}' r'\\b' \"c{}\"", "a3\\bc{}"),
        ("f'a\\\nb{n}'", "ab3"),
        ("f'{n if n != 3 else n >= 2}'", "true"),
        ("f'{n}' + f'{n}'", "33"),
        ('f\'{ {"a": n}["a"] }\'', "3"),
        ("f'{n:%}'", "300.000000%"),
        ("f'{xs[0:1][0]}'", "p"),
        ("F'{n}'", "3"),
    ],
)
def test_f_strings_are_read_as_in_python_3_12(written, value):
    plan = read(f"d = {{'k': 'v'}}\nxs = ['p', 'q']\nn = 3\nreturn {written}")
    assert run_as_plan(plan, {}) == Outcome([], value)


@pytest.mark.parametrize("text", ["f'{'", "f'{}'", "f'{n'", "f'}'", "f'{n!x}'", "f'{a b}'", "f'{n:{'", "f'", "f'{n)}'"])
def test_broken_f_strings_are_refused_where_they_break(text):
    (problem,) = refused(f"x = {text}\n")
    assert problem.code == "TP150"
    assert 4 <= problem.place.start <= len(text) + 4


# --- real replies ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "count"), [("agentdojo_python.jsonl", 66), ("zh_python.jsonl", 44)])
def test_the_replies_of_a_real_model_are_read(name, count):
    found = dict(replies(name))
    assert len(found) == count
    for text in found.values():
        plan = read_program(Source(text))
        if isinstance(plan, Plan):
            assert plan.repairs == ()
            assert canonical(parse(canonical(plan), notation="json")) == canonical(plan)
