"""Which calls may be made before the whole plan is known."""

from __future__ import annotations

from typing import Any

import pytest

from toolplan import ToolSet, tool
from toolplan.parse import parse
from toolplan.plan import Plan
from toolplan.schedule.early import MAX_STEPS, Beginning, in_a_row


def tools() -> ToolSet:
    @tool(reads="file:{path}")
    def read(path: str) -> str: ...

    @tool(reads="files")
    def search(text: str) -> list[str]: ...

    @tool(pure=True)
    def add(a: float, b: float) -> float: ...

    @tool(writes="file:{path}")
    def write(path: str, text: str) -> str: ...

    @tool
    def anything() -> str: ...

    @tool(reads="page", requires="page:open")
    def look() -> str: ...

    @tool(reads="secret", approval="ask")
    def secret() -> str: ...

    @tool(reads="web", rate_limit="1/minute")
    def rare() -> str: ...

    return ToolSet.of([read, search, add, write, anything, look, secret, rare])


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tool_name": name, "arguments": arguments}


READ = call("read", path="a")


@pytest.mark.parametrize(
    ("steps", "early"),
    [
        pytest.param([READ, call("add", a=1, b=2), call("search", text="x")], "s1 s2 s3", id="reads and pure"),
        pytest.param([call("write", path="b", text=""), READ], "s2", id="behind another resource's change"),
        pytest.param([call("write", path="a", text=""), READ, call("add", a=1, b=2)], "s3", id="behind its own"),
        pytest.param([READ, call("write", path="a", text=""), READ], "s1", id="before and behind a change"),
        pytest.param([call("write", path="{s0}", text=""), READ], "", id="behind a change of who knows what"),
        pytest.param([call("anything"), READ, call("add", a=1, b=2)], "s3", id="behind something undeclared"),
        pytest.param([call("look"), call("secret"), call("rare")], "", id="needs a state, a person, a turn"),
        pytest.param([{"answer": "done"}, READ], "", id="behind the end"),
        pytest.param([{"ask_user": "which?"}, READ], "", id="behind a question"),
        pytest.param([{"if": "now", "then": [{"cannot": "x"}]}, READ], "", id="behind what may be the end"),
        pytest.param([{"if": "now", "then": [READ]}, READ], "s3", id="not in a branch, but behind it"),
        pytest.param([{"for_each": [1], "as": "i", "do": [READ, {"break": True}]}, READ], "s4", id="behind a loop"),
        pytest.param([{"parallel": [call("write", path="a", text="")]}, READ], "", id="behind a group's change"),
        pytest.param(
            [{"parallel": [READ, call("write", path="b", text=""), call("add", a=1, b=2)]}], "s2 s4", id="members"
        ),
        pytest.param([{"parallel": [call("write", path="a", text=""), READ]}, READ], "", id="behind another member"),
        pytest.param([{"parallel": [READ, {"if": "now", "then": [READ]}]}], "s2", id="not in a member's branch"),
        pytest.param([{"parallel": [READ, {"answer": "x"}]}, READ], "s2", id="behind a member that ends it"),
        pytest.param([READ | {"on_error": {"do": [call("anything")]}}, READ], "s1", id="behind a handler's change"),
        pytest.param([{"ask_model": "?", "data": "1"}, READ, {"let": {"x": "1"}}, READ], "s2 s4", id="behind others"),
    ],
)
def test_what_may_be_early(steps: list[Any], early: str) -> None:
    toolset = tools()
    plan = parse(steps, tools=toolset)
    assert isinstance(plan, Plan)
    beginning = Beginning(toolset)
    assert " ".join(step.id for step in in_a_row(plan.steps) if beginning.admits(step)) == early


def test_only_so_many_steps_are_looked_at() -> None:
    toolset = tools()
    plan = parse([READ] * (MAX_STEPS + 1), tools=toolset)
    assert isinstance(plan, Plan)
    beginning = Beginning(toolset)
    assert [beginning.admits(step) for step in plan.steps] == [True] * MAX_STEPS + [False]


def test_an_unknown_tool_ends_it() -> None:
    toolset = tools()
    plan = parse([call("nothing_like_it"), READ])
    assert isinstance(plan, Plan)
    beginning = Beginning(toolset)
    assert [beginning.admits(step) for step in plan.steps] == [False, False]
