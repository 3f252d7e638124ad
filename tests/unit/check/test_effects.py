"""Effects: members of `parallel` that are not independent."""

from __future__ import annotations

from typing import Any

from plan_tools import codes, only
from toolplan.check import check
from toolplan.parse import parse
from toolplan.tools import Tool, ToolSet


def note(title: str, text: str = "x") -> dict[str, Any]:
    return {"tool_name": "write_note", "arguments": {"title": title, "text": text}}


def pay(account: str, amount: int = 1) -> dict[str, Any]:
    return {"tool_name": "pay", "arguments": {"account": account, "amount": amount}}


def test_two_writes_of_one_resource() -> None:
    found = only([{"parallel": [note("a"), note("b"), note("a", "more")]}])
    assert (found.code, found.severity) == ("TP401", "warning")
    assert found.message == "`write_note` and `write_note` both touch `notes:a`, so they cannot run in parallel"
    assert found.place.json_path() == "$[0].parallel[2].tool_name"


def test_a_conflict_inside_of_members() -> None:
    members = [{"if": "true", "then": [pay("a")]}, {"for_each": [1], "as": "n", "do": [pay("a", 2)]}]
    assert codes([{"parallel": members}]) == ["TP401"]


def test_a_resource_that_is_not_known_yet_is_no_conflict() -> None:
    assert codes([{"let": {"x": "now"}}, {"parallel": [pay("{x}"), pay("a")]}]) == []


def test_different_resources_and_one_after_the_other() -> None:
    assert codes([{"parallel": [pay("a"), pay("b"), note("a")]}, pay("c"), note("b")]) == []


def test_one_member_may_do_what_it_likes() -> None:
    assert codes([{"parallel": [{"if": "true", "then": [pay("a"), pay("b")]}]}]) == []


def test_members_that_bring_about_what_others_need() -> None:
    tools = ToolSet.of(
        [
            Tool.from_schema("open_page", "", {}, lambda: None, reads="web", ensures="page:open"),
            Tool.from_schema("click", "", {}, lambda: None, reads="screen", requires="page:open"),
        ]
    )
    plan: Any = parse('[{"parallel": [{"tool_name": "open_page"}, {"tool_name": "click"}]}]', tools=tools)
    (warning,) = check(plan, tools).warnings
    assert warning.code == "TP401"
    assert "`page:open`" in warning.message
