"""What of a plan goes into secret places is found through names, expressions and tools, and cut out of it."""

from __future__ import annotations

import json
from typing import Annotated, Any

import pytest
from pydantic import Field, SecretStr

from toolplan import Tool
from toolplan.parse import parse
from toolplan.plan import Plan
from toolplan.show import to_json
from toolplan.tools import ToolSet
from toolplan.tools.secret_words import secret_words

KEY = "k3y!"
"""Too short to be looked for anywhere else."""
Secret = Annotated[str, Field(json_schema_extra={"format": "password"})]


def login(user: str, password: SecretStr, tags: list[str] | None = None) -> str:
    return user


def token(name: str) -> Secret:
    return name


def lookup(name: str) -> str:
    return name


def join(a: str, b: str) -> str:
    return a + b


def note(text: str) -> str:
    return text


TOOLS = ToolSet.of(
    [
        Tool.of(login, writes="login"),
        Tool.of(token, reads="vault"),
        Tool.of(lookup, reads="book"),
        Tool.of(join, pure=True),
        Tool.of(note, writes="notes"),
    ]
)


def call(tool: str, result: str | None = None, **arguments: Any) -> dict[str, Any]:
    shown = {"tool_name": tool, "arguments": arguments}
    return {**shown, "result_variable": result} if result else shown


def enter(password: Any) -> dict[str, Any]:
    return call("login", user="ann", password=password)


def plan_of(written: Any) -> Plan:
    text = written if isinstance(written, str) else json.dumps(written)
    plan = parse(text, notation="auto", tools=TOOLS)
    assert isinstance(plan, Plan)
    return plan


REACHING = {
    "a constant": [enter(KEY)],
    "an expression": [enter({"$expr": f"'{KEY}'"})],
    "a sum": [enter({"$expr": f"'{KEY}' + ''"})],
    "a choice": [enter(f"{{'{KEY}' if now else 'x'}}")],
    "a template": [enter(f"{KEY}{{now}}")],
    "a hole": [enter(f"a{{'{KEY}'}}b")],
    "a method": [enter({"$expr": f"'{KEY}'.strip()"})],
    "a default": [call("lookup", "x", name="x"), enter({"$expr": f"{{'a': 1}}.get('b', '{KEY}')"})],
    "a name": [{"let": {"p": f"'{KEY}'"}}, enter("{p}")],
    "names of names": [{"let": {"a": f"'{KEY}'"}}, {"let": {"b": "a + ''"}}, enter("{b[0:9]}")],
    "a name that is assigned later": [
        {"let": {"p": "''"}},
        {"for_each": "[1, 2]", "as": "i", "do": [enter("{p}"), {"let": {"p": f"'{KEY}'"}}]},
    ],
    "a field": [{"let": {"c": {"user": "ann", "password": KEY}}}, enter("{c.password}")],
    "an element": [{"for_each": ["a", KEY], "as": "p", "do": [enter("{p}")]}],
    "what is collected": [
        {"for_each": "[1]", "as": "i", "do": [{"note": "x"}], "collect": f"'{KEY}'", "result_variable": "ps"},
        enter("{ps[0]}"),
    ],
    "an input": {"inputs": {"p": KEY}, "steps": [enter("{p}")], "answer": "ok"},
    "a value in place of a result": [
        {**call("lookup", "p", name="x"), "on_error": {"value": KEY}},
        enter("{p}"),
    ],
    "a value in place of a secret result": [{**call("token", "p", name="x"), "on_error": {"value": KEY}}],
    "what a pure tool gets": [call("join", "p", a=KEY, b=""), enter("{p}")],
    "what a model is asked": [
        {"ask_model": f"what is in {KEY}", "data": "x", "returns": {"type": "string"}, "result_variable": "p"},
        enter("{p}"),
    ],
    "a tool that there is not": [call("logn", user="ann", password=KEY)],
    "an argument that there is not": [call("login", user="ann", passwrd=KEY)],
    "a python name": f'pw = "{KEY}"\nlogin(user="ann", password=pw)\nanswer("ok")',
    "a python dictionary": f'c = {{"password": "{KEY}"}}\nlogin(user="ann", password=c["password"])\nanswer("ok")',
}


@pytest.mark.parametrize("written", REACHING.values(), ids=REACHING)
def test_what_reaches_a_secret_place_is_found_and_cut(written: Any) -> None:
    plan = plan_of(written)
    words = secret_words(plan, TOOLS)
    assert any(KEY in str(value) for value in words.values)
    cut = json.dumps(to_json(words.cut("[secret]")), ensure_ascii=False)
    assert KEY not in cut
    assert "[secret]" in cut
    assert [step.id for step in words.cut("x").steps] == [step.id for step in plan.steps]


OTHERS = {
    "another argument": [call("login", user=KEY, password="{now}")],
    "another tool": [call("note", text=KEY), enter("{now}")],
    "how a result was found": [call("lookup", "p", name=KEY), enter("{p}")],
    "how a secret result was found": [call("token", "p", name=KEY), enter("{p}")],
    "a key": [call("lookup", "p", name="x"), enter(f"{{p['{KEY}']}}")],
    "punctuation": [call("lookup", "p", name="x"), enter("{p}:{p}")],
    "a test": [call("lookup", "p", name="x"), {"if": f"p == '{KEY}'", "then": [enter("{p}")]}],
}


@pytest.mark.parametrize("written", OTHERS.values(), ids=OTHERS)
def test_other_words_stay(written: Any) -> None:
    plan = plan_of(written)
    words = secret_words(plan, TOOLS)
    assert not words
    assert words.cut("[secret]") == plan


def test_a_plan_without_secret_tools_is_left_alone() -> None:
    plan = plan_of([call("note", text=KEY), call("nte", text=KEY)])
    assert not secret_words(plan, ToolSet.of([Tool.of(note, writes="notes")]))
