"""The program in a reply."""

from __future__ import annotations

import json
import time

import pytest

from toolplan.diagnostics import render
from toolplan.errors import PlanRejected
from toolplan.parse import CannotPlan, Prose, parse
from toolplan.parse.python_notation.finding import find_bare_program, find_program
from toolplan.plan import Plan
from unit.parse.python_reading import REPLIES


def found(reply, tools=()):
    source = find_program(reply, tools)
    return None if source is None else source.text.strip()


@pytest.mark.parametrize(
    ("reply", "program"),
    [
        ("```python\nx = f()\nreturn x\n```", "x = f()\nreturn x"),
        ("Here it is:\n\n```py\nx = f()\n```\nIt calls f.", "x = f()"),
        ("~~~python\nx = f()\n~~~", "x = f()"),
        ("````python\nx = f()\n````", "x = f()"),
        ("```\nx = f()\n```", "x = f()"),
        ("```python\nx = f()", "x = f()"),
        ("  ```python\n  x = f()\n  if x:\n    g()\n  ```", "x = f()\n  if x:\n    g()"),
        ("x = f(a=1)\nreturn x", "x = f(a=1)\nreturn x"),
        ("# the plan\nfor c in f():\n    g(a=c)", "# the plan\nfor c in f():\n    g(a=c)"),
        ('return "Paris"', 'return "Paris"'),
        ('f(a="x")', 'f(a="x")'),
        ('await f(a="x")', 'await f(a="x")'),
        ("\ufeffx = f()\n", "x = f()"),
        ("<think>x = g()\n```python\nh()\n```</think>\nx = f()", "x = f()"),
        ("I first thought of g().\n</think>\n```python\nx = f()\n```", "x = f()"),
        ("```python\nx = f()\n```\nAgain:\n```python\nx = f()\n```", "x = f()"),
        ("```python\nx = f(\n```", "x = f("),
    ],
)
def test_a_program_is_found(reply, program):
    assert found(reply) == program


@pytest.mark.parametrize(
    "reply",
    [
        "It is 3 degrees in Oslo.",
        "好的",
        "OK",
        "answer: 5",
        "Done (see above).",
        "- one\n- two",
        '{"steps": []}',
        '[{"tool_name": "f"}]',
        '```json\n{"steps": []}\n```',
        '```python\n{"steps": [{"tool_name": "f"}]}\n```',
        '```python\n[{"tool_name": "f"}]\n```',
        "```\nSome text.\n```",
        "```bash\nls -l\n```",
        "<think>x = f()</think>\nIt is 3 degrees.",
        "<think>x = f()",
        "",
    ],
)
def test_no_program_is_found(reply):
    assert found(reply) is None


def test_a_fence_inside_a_string_ends_nothing():
    program = 'send(body="""Run this:\n```\nls\n```\nBye.""")'
    assert found(f"```python\n{program}\n```\nDone.") == program


def test_a_tag_inside_a_string_ends_nothing():
    program = 'send(body="<think>no</think>")\nsend(body="""\n</think>\n""")'
    assert found(program) == program


@pytest.mark.parametrize(
    "reply",
    ["# x" + "\n" * 5_000 + "!", "a " * 20_000, "x" * 50_000 + "\ny", '"""\n' * 500, "a, " * 5_000 + "\n(" * 5_000],
)
def test_looking_takes_no_time(reply):
    start = time.process_time()
    find_program(reply)
    assert time.process_time() - start < 1


def test_a_call_that_is_no_tool_is_no_program():
    assert find_bare_program("note(this)", {"send"}) is None
    assert find_bare_program("send(to=1)", {"send"}) is not None


DOTTED = ("math.factorial", "get_weather")


@pytest.mark.parametrize(
    ("reply", "tool"),
    [
        ("math.factorial(number=5)", "math.factorial"),
        ("await math.factorial(number=5)", "math.factorial"),
        ("functions.get_weather(city='Oslo')", "get_weather"),
        ("```\nmath.factorial(number=5)\n```", "math.factorial"),
        ("Let me compute that.\n\n```python\nmath.factorial(number=5)\n```", "math.factorial"),
    ],
)
def test_a_call_of_a_dotted_name_is_a_program(reply, tool):
    plan = parse(reply, tools=DOTTED, asked_for="python")
    assert isinstance(plan, Plan)
    assert [getattr(step, "tool", None) for step in plan.steps] == [tool]


@pytest.mark.parametrize("reply", ["text.upper()", "math.sqrt(x=5)", "Math.hypot(3, 4)"])
def test_a_method_that_is_no_tool_is_no_program(reply):
    assert isinstance(parse(reply, tools=DOTTED), Prose)
    assert isinstance(parse(reply), Prose), "where the tools are unknown, a method is more likely"


def test_several_programs_are_refused():
    reply = "```python\nx = f()\n```\nor\n```python\nx = g()\n```"
    with pytest.raises(PlanRejected) as caught:
        find_program(reply)
    (problem,) = caught.value.diagnostics
    assert problem.code == "TP103"
    assert "x = g()" in render(problem, caught.value.source)


@pytest.mark.parametrize("name", ["agentdojo_python.jsonl", "zh_python.jsonl"])
def test_real_replies_are_told_from_the_text_alone(name):
    for line in (REPLIES / name).read_text(encoding="utf-8").splitlines():
        plan = parse(json.loads(line)["reply"])
        assert isinstance(plan, CannotPlan) or (isinstance(plan, Plan) and plan.notation == "python")


def test_a_reply_without_fences_is_told_from_the_text_alone():
    plan = parse('rows = [{"name": "a", "tool": "b"}]\nfor r in rows:\n    f(a=r.name)')
    assert isinstance(plan, Plan)
    assert plan.notation == "python"
    assert parse("It is 3 degrees in Oslo.") == Prose("It is 3 degrees in Oslo.")


def test_python_demanded_where_there_is_none():
    with pytest.raises(PlanRejected) as caught:
        parse("It is 3 degrees.", notation="python")
    (problem,) = caught.value.diagnostics
    assert "no plan in Python" in problem.message


@pytest.mark.parametrize(
    "reply",
    [
        "x = f(a=1\nif x:\n    send(to=x)\nreturn x",
        'w = get_weather(city="Oslo)\nsend(text=w.condition)',
        "for r in rows():\nsend(to=r)\nreturn 1",
    ],
)
def test_a_broken_program_is_not_taken_for_an_answer(reply):
    with pytest.raises(PlanRejected) as caught:
        parse(reply)
    assert [problem.code for problem in caught.value.diagnostics] == ["TP150"]


@pytest.mark.parametrize(
    "reply",
    [
        "Temperature = 3 degrees in Oslo.\nThe wind is weak, and it will not rain.",
        "if it rains: take an umbrella.\nOtherwise take a hat.",
        "for the trip you need:\n- a passport\n- a ticket",
        "return policy: 30 days.\nContact us for details.",
    ],
)
def test_prose_that_begins_like_a_program_is_an_answer(reply):
    assert parse(reply) == Prose(reply)
