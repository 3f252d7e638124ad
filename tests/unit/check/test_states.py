"""States: `requires` and `ensures` along every path."""

from __future__ import annotations

from typing import Any

import pytest

from plan_tools import codes, only
from toolplan.tools import ToolSet, tool

OPEN = {"tool_name": "navigate", "arguments": {"url": "https://shop.example"}}
CLICK = {"tool_name": "click", "arguments": {"selector": "#buy"}}
W = {"tool_name": "get_weather", "arguments": {"city": "Oslo"}, "result_variable": "w"}
END = {"answer": "done"}


def test_a_missing_state_names_who_ensures_it() -> None:
    found = only([CLICK])
    assert found.message == "`click` needs `page:open`, which no earlier step ensures"
    assert found.notes == ("`navigate(url)` ensures `page:open`",)
    assert found.help == "put a `navigate` step before this one"


def test_it_is_told_once() -> None:
    assert codes([CLICK, CLICK]) == ["TP402"]


def test_a_later_step_does_not_help() -> None:
    assert codes([CLICK, OPEN]) == ["TP402"]


@pytest.mark.parametrize(
    "before",
    [
        [OPEN],
        [W, {"if": "w.wind", "then": [OPEN], "else": [OPEN]}],
        [W, {"if": "w.wind", "then": [OPEN], "else": [END]}],
        [{"for_each": ["a"], "as": "n", "do": [OPEN]}],
        [{"parallel": [OPEN, W]}],
        [{"try": [OPEN], "except": [END]}],
        [{**OPEN, "on_error": {"do": [END]}}],
    ],
)
def test_a_state_that_holds_on_every_path(before: list[dict[str, Any]]) -> None:
    assert codes([*before, CLICK]) == []


@pytest.mark.parametrize(
    "before",
    [
        [W, {"if": "w.wind", "then": [OPEN]}],
        [W, {"for_each": "list(w.city)", "as": "n", "do": [OPEN]}],
        [W, {"while": "w.wind", "do": [OPEN], "max_iterations": 2}],
        [{"try": [OPEN], "except": [{"note": "-"}]}],
        [{**OPEN, "on_error": "skip"}],
        [W, {"for_each": ["a"], "as": "n", "do": [{"if": "w.wind", "then": [{"continue": True}]}, OPEN]}],
    ],
)
def test_a_state_that_holds_on_some_paths_only(before: list[dict[str, Any]]) -> None:
    found = only([*before, CLICK])
    assert found.message == "`click` needs `page:open`, which not every path that leads here ensures"
    assert found.others[0].label == "ensures `page:open`, on some paths only"


@tool(writes="hosts:{host}", ensures="connected:{host}")
def connect(host: str) -> str: ...


@tool(reads="hosts:{host}", requires="connected:{host}")
def ask(host: str) -> str: ...


HOSTS = ToolSet.of([connect, ask])


def step(name: str, host: str) -> dict[str, Any]:
    return {"tool_name": name, "arguments": {"host": host}, "result_variable": f"{name}_{len(host)}"}


@pytest.mark.parametrize(
    ("connected", "asked", "expected"),
    [
        ("a", "a", []),
        ("a", "b", ["TP402"]),
        ("{x}", "{x}", []),
        ("{x}", "b", []),
        ("a", "{x}", []),
    ],
)
def test_states_of_one_argument(connected: str, asked: str, expected: list[str]) -> None:
    assert codes([{"let": {"x": "now"}}, step("connect", connected), step("ask", asked)], HOSTS) == expected


@tool(writes="page", ensures="page:{url}")
def open_page(url: str = "home") -> str: ...


@tool(reads="page", requires="page:{url}")
def read_page(url: str = "home") -> str: ...


@tool(writes="rows", ensures="row:{number}")
def lock(number: int) -> str: ...


@tool(writes="rows", requires="row:{number}")
def change(number: int) -> str: ...


@tool(writes="rows", ensures="row:{numbers}")
def lock_all(numbers: list[int]) -> str: ...


PAGES = ToolSet.of([open_page, read_page, lock, change, lock_all])
Made = tuple[str, dict[str, Any]]
NAMED: list[tuple[Made, Made, list[str]]] = [
    (("open_page", {}), ("read_page", {"url": "home"}), []),
    (("open_page", {"url": "home"}), ("read_page", {}), []),
    (("open_page", {}), ("read_page", {}), []),
    (("open_page", {}), ("read_page", {"url": "shop"}), ["TP402"]),
    (("open_page", {"url": "shop"}), ("read_page", {}), ["TP402"]),
    (("lock", {"number": 2.0}), ("change", {"number": 2}), []),
    (("lock_all", {"numbers": [1, 2]}), ("change", {"number": 2}), []),
    (("lock_all", {"numbers": [1, 2]}), ("change", {"number": 3}), ["TP402"]),
]


@pytest.mark.parametrize(("before", "after", "expected"), NAMED)
def test_states_are_named_by_what_the_tool_gets(before: Made, after: Made, expected: list[str]) -> None:
    plan = [{"tool_name": name, "arguments": arguments} for name, arguments in (before, after)]
    assert codes(plan, PAGES) == expected
