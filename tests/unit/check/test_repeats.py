"""The same effect twice in one plan, and calls that an earlier plan has made."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolplan import Agent, Plan, PlanRejected, ToolSet, parse, tool
from toolplan.check import check
from toolplan.known import Known, MadeCall
from toolplan.models import ScriptedModel
from toolplan.values import Value


@tool(writes="mailbox:{to}")
def send(to: str, text: str = "hi") -> str:
    """Sends a mail."""
    return "sent"


@tool(writes="file:{path}", idempotent=True)
def write(path: str) -> str:
    """Writes a file."""
    return "written"


@tool(reads="people")
def find(name: str) -> str:
    """Finds an address."""
    return name


TOOLS = ToolSet.of([send, write, find])


def call(name: str, result: str | None = None, /, **arguments: Any) -> dict[str, Any]:
    return {"tool_name": name, "arguments": arguments, **({"result_variable": result} if result else {})}


def found(*steps: dict[str, Any], known: Known | None = None) -> list[str]:
    plan = parse(json.dumps(list(steps)), tools=TOOLS)
    assert isinstance(plan, Plan)
    try:
        return [each.code for each in check(plan, TOOLS, known=known or Known()).warnings]
    except PlanRejected as rejected:
        return [each.code for each in rejected.diagnostics]


MAIL = call("send", to="a")
OTHER = call("find", "x", name="x")


@pytest.mark.parametrize(
    "steps",
    [
        [MAIL, MAIL],
        [MAIL, OTHER, call("send", to="a", text="hi")],
        [MAIL, {"if": "true", "then": [MAIL]}],
        [OTHER, call("send", to="{x}"), call("send", to="{x}")],
        [OTHER, call("send", to="Dear {x}"), call("send", to="Dear {x}")],
        [{"for_each": "[1, 2]", "as": "n", "do": [MAIL, MAIL]}],
    ],
)
def test_the_same_effect_twice_is_told(steps: list[dict[str, Any]]) -> None:
    assert found(*steps) == ["TP410"]


@pytest.mark.parametrize(
    "steps",
    [
        [MAIL, call("send", to="b")],
        [MAIL, {**MAIL, "again": "twice"}],
        [OTHER, call("find", "y", name="x"), call("write", path="p"), call("write", path="p")],
        [OTHER, {"if": "x == 'a'", "then": [MAIL], "else": [MAIL]}],
        [OTHER, {"if": "x == 'a'", "then": [MAIL, {"answer": "done"}]}, MAIL],
        [{**MAIL, "on_error": {"do": [MAIL]}}],
        [OTHER, call("send", to="{x}"), call("find", "x", name="y"), call("send", to="{x}")],
        [{"for_each": "[1, 2]", "as": "n", "do": [MAIL]}],
        [
            {"for_each": "['a', 'b']", "as": "n", "do": [call("send", to="{n}")]},
            {"for_each": "['c', 'd']", "as": "n", "do": [call("send", to="{n}")]},
        ],
    ],
)
def test_what_is_not_the_same_effect_twice(steps: list[dict[str, Any]]) -> None:
    assert "TP410" not in found(*steps)


def test_a_call_is_known_by_values_that_an_earlier_plan_has_left() -> None:
    known = Known(values={"ann": Value("ann@x.de")}, made=(MadeCall("s1", "send", {"to": "ann@x.de"}),), steps=1)
    assert found(call("send", to="{ann}"), known=known) == ["TP409"]
    assert found(call("send", to="{ann.upper()}"), known=known) == []
    assert found(call("find", "ann", name="b"), call("send", to="{ann}"), known=known) == []


@pytest.mark.parametrize(("language", "words"), [("en", "the same call as s1"), ("zh", "与 s1 是同样的调用")])
def test_the_card_shows_it(language: Any, words: str) -> None:
    @tool(name="send", writes="mailbox:{to}", approval="ask")
    def careful(to: str) -> str:
        return "sent"

    result = Agent(ScriptedModel([json.dumps([MAIL, MAIL])]), [careful]).run_sync("Mail a twice")
    assert (result.outcome, [each.code for each in result.diagnostics]) == ("waiting", ["TP410"])
    assert result.card is not None
    assert result.card.to_text(language).count(words) == 1
    assert [line.same_as for line in result.card.lines] == [None, "s1"]
