"""What is said about the order of a plan. That it is true is for `tests/properties/test_written_order.py` to show."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolplan import ToolSet, check, explain_order, parse, tool
from toolplan.explain import PlanOrder, Wait
from toolplan.plan import Plan


@tool(reads="weather")
def look(city: str) -> int: ...


@tool(writes="mailbox:{to}")
def send(to: str, text: str = "") -> str: ...


@tool(reads="mailbox")
def inbox() -> list[str]: ...


@tool
def act(name: str) -> str: ...


@tool(writes="browser", ensures="page:open")
def navigate(url: str) -> None: ...


@tool(reads="screen", requires="page:open")
def shot(name: str) -> str: ...


@tool(pure=True)
def double(value: int) -> int: ...


TOOLS = ToolSet.of([look, send, inbox, act, navigate, shot, double])


def order(*steps: dict[str, Any], **options: Any) -> PlanOrder:
    plan = parse(json.dumps(list(steps)), tools=TOOLS)
    assert isinstance(plan, Plan)
    return explain_order(check(plan, TOOLS), **options)


def call(name: str, result: str | None = None, /, **arguments: Any) -> dict[str, Any]:
    more = {key: arguments.pop(key) for key in ("depends_on", "on_error") if key in arguments}
    step: dict[str, Any] = {"tool_name": name, "arguments": arguments, **more}
    return step | ({"result_variable": result} if result else {})


def waits(found: PlanOrder, step: str) -> list[Wait]:
    return next(list(each.waits) for each in found.steps if each.id == step)


def reasons(found: PlanOrder, step: str) -> list[tuple[str, str]]:
    return [(wait.on, wait.kind) for wait in waits(found, step)]


def test_independent_reads_wait_for_nothing_and_take_one_turn() -> None:
    found = order(call("look", city="a"), call("look", city="b"))
    assert [step.waits for step in found.steps] == [(), ()]
    assert found.turns == 1
    assert found.to_text().count("starts at once") == 2


def test_a_value() -> None:
    found = order(call("look", "x", city="a"), call("double", "y", value="{x}"), {"answer": "{x} {y}"})
    assert waits(found, "s2") == [Wait("s1", "value", names=("x",))]
    assert reasons(found, "s3") == [("s2", "value")], "that it waits for s1 follows"
    everything = order(
        call("look", "x", city="a"), call("double", "y", value="{x}"), {"answer": "{x} {y}"}, everything=True
    )
    assert ("s1", "value") in reasons(everything, "s3")


def test_depends_on() -> None:
    found = order(call("look", "x", city="a"), call("look", city="b", depends_on=["x"]))
    assert reasons(found, "s2") == [("s1", "depends_on")]


def test_effects_name_what_both_touch() -> None:
    found = order(call("inbox", "mails"), call("send", to="ann"))
    assert waits(found, "s2") == [Wait("s1", "effect", ours="writes mailbox:ann", theirs="reads mailbox")]
    assert "waits for s1: s1 reads mailbox, and it writes mailbox:ann" in found.to_text()


def test_a_resource_that_is_not_known_stands_for_its_family() -> None:
    members = [call("send", to="{str(x)}", on_error="skip"), call("send", to="ann", on_error="skip")]
    found = order(call("look", "x", city="a"), *members)
    (wait,) = [wait for wait in waits(found, "s3") if wait.kind == "effect"]
    assert (wait.on, wait.certain, wait.theirs) == ("s2", False, "writes mailbox:{to}")
    assert "may wait for s2" in found.to_text()


def test_an_undeclared_tool_and_what_a_declaration_would_gain() -> None:
    found = order(call("look", city="a"), call("act", name="x"), call("look", city="b"))
    assert reasons(found, "s2") == [("s1", "effect")]
    assert reasons(found, "s3") == [("s2", "effect")]
    assert found.turns == 3
    assert [(gain.tool, gain.turns) for gain in found.gains] == [("act", 1)]
    assert "`act` declares nothing" in found.to_text()


def test_a_state() -> None:
    found = order(call("navigate", url="u"), call("shot", name="n"))
    assert waits(found, "s2") == [Wait("s1", "state", ours="needs page:open", theirs="brings about page:open")]


def test_failures() -> None:
    found = order(call("look", city="a"), call("look", city="b"), call("send", to="ann"), {"answer": "done"})
    assert reasons(found, "s3") == [("s1", "failure"), ("s2", "failure")]
    assert reasons(found, "s4") == [("s3", "failure")]
    assert "waits until s1 and s2 can no longer fail" in found.to_text()
    independent = order(call("look", city="a"), call("send", to="ann"), failure="independent")
    assert reasons(independent, "s2") == []


def test_what_cannot_fail_holds_nothing_back() -> None:
    found = order(call("look", city="a", on_error="skip"), call("send", to="ann"))
    assert reasons(found, "s2") == []


def test_control() -> None:
    found = order(call("look", "x", city="a"), {"if": "x > 3", "then": [{"answer": "many"}]}, call("look", city="b"))
    assert reasons(found, "s2") == [("s1", "value")]
    assert reasons(found, "s3") == [("s2", "inside")]
    assert reasons(found, "s4") == [("s2", "control")]
    text = found.to_text()
    assert "runs only if s2 decides so" in text
    assert "waits for s2: it may leave before this is reached" in text


def test_what_follows_a_branch_waits_for_what_it_needs_of_it() -> None:
    branch = {"if": "x > 3", "then": [{"let": {"y": "1"}}, call("send", to="ann")], "else": [{"let": {"y": "2"}}]}
    found = order(call("look", "x", city="a"), branch, call("look", city="b"), call("double", value="{y}"))
    assert reasons(found, "s6") == []
    assert {on for on, _ in reasons(found, "s7")} == {"s2", "s3", "s5"}
    assert "waits for s2, s3 and s5: `y`" in found.to_text()


def test_between_rounds() -> None:
    body = [call("send", to="ann", text="{str(n)}"), {"let": {"sum": "sum + n"}}]
    found = order({"let": {"sum": "0"}}, {"for_each": [1, 2], "as": "n", "do": body}, {"answer": "{sum}"})
    mail = "writes mailbox:ann"
    assert Wait("s3", "effect", rounds="earlier", loop="s2", ours=mail, theirs=mail) in waits(found, "s3")
    assert [(w.on, w.rounds) for w in waits(found, "s4") if w.kind == "value"] == [("s1", "first"), ("s4", "previous")]
    assert "in the round of s2 before" in found.to_text()


def test_rounds_that_may_leave_the_loop_go_one_after_the_other() -> None:
    body = [call("look", "x", city="a"), {"if": "x > n", "then": [{"break": True}]}]
    found = order({"for_each": [1, 2], "as": "n", "do": body})
    loop = found.steps[0]
    assert [(wait.on, wait.kind, wait.rounds) for wait in loop.between_rounds] == [("s3", "control", "earlier")]


def test_members_of_a_group() -> None:
    members = [call("act", name="a"), call("act", name="b"), call("send", to="ann"), call("send", to="ann")]
    found = order({"parallel": members})
    assert reasons(found, "s3") == [("s1", "inside")], "undeclared, and set apart"
    assert ("s4", "effect") in reasons(found, "s5"), "declared effects keep their order"


def test_a_handler_waits_until_its_body_has_failed() -> None:
    found = order({"try": [call("look", city="a")], "except": [call("send", to="ann")]})
    assert waits(found, "s3")[0] == Wait("s1", "inside", whole=True)
    assert "runs only if s1 fails" in found.to_text()


def test_on_error_do_is_one_step_with_steps_inside() -> None:
    found = order(call("look", city="a", on_error={"do": [call("send", to="ann")]}), call("look", city="b"))
    assert [step.id for step in found.steps] == ["s1", "s2", "s3"]
    assert found.steps[0].what == 'look(city="a")'
    assert "runs only if s1 fails" in found.to_text()


def test_the_document() -> None:
    document = order(call("look", "x", city="a"), call("double", value="{x}")).to_dict()
    assert json.loads(json.dumps(document)) == {
        "turns": 2,
        "steps": [
            {"id": "s1", "what": 'look(city="a") -> x', "inside": [], "waits": [], "between_rounds": []},
            {
                "id": "s2",
                "what": "double(value=x)",
                "inside": [],
                "waits": [{"on": "s1", "kind": "value", "certain": True, "names": ["x"]}],
                "between_rounds": [],
            },
        ],
        "gains": [],
    }


@pytest.mark.parametrize("count", [1500])
def test_a_long_plan_does_not_take_long(count: int) -> None:
    # 1,125,000 pairs of steps: looking at each of them would take minutes.
    steps = [call(("send", "act", "look")[n % 3], **_arguments(n)) for n in range(count)]
    found = order(*steps)
    assert len(found.steps) == count
    assert sum(len(step.waits) for step in found.steps) < 5 * count


def _arguments(n: int) -> dict[str, Any]:
    return [{"to": f"u{n % 7}"}, {"name": "x"}, {"city": "y"}][n % 3]
