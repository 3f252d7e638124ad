"""What has not been unfolded yet keeps its place: the rounds to come of a loop that waits for a value or a decision."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolplan.check import check
from toolplan.parse import parse
from toolplan.plan import Plan
from toolplan.testing import Simulation, simulate
from toolplan.tools import ToolSet, tool

SENT: list[str] = []


@tool(writes="mailbox")
def send(text: str) -> str:
    SENT.append(text)
    return text


@tool(reads="mailbox")
def inbox() -> int:
    return len(SENT)


@tool(pure=True)
def slow(n: int) -> int:
    return n


@tool
def anything(text: str) -> str:
    SENT.append(text)
    return text


TOOLS = ToolSet.of([send, inbox, slow, anything])
SEND = {"tool_name": "send", "arguments": {"text": "x"}, "on_error": "skip"}
NEXT = {"tool_name": "slow", "arguments": {"n": "{n + 1}"}, "result_variable": "n", "on_error": {"value": 9}}
LOOK = {"tool_name": "inbox", "result_variable": "seen"}


def run(*steps: dict[str, Any], **options: Any) -> Simulation:
    SENT.clear()
    plan = parse(json.dumps([*steps]), tools=TOOLS)
    assert isinstance(plan, Plan)
    took = {"slow": 10.0, "send": 1.0, "inbox": 1.0, "anything": 1.0}
    return simulate(check(plan, TOOLS), durations=lambda name, rng: took[name], **options)


@pytest.mark.parametrize("name", ["send", "anything"])
def test_a_branch_that_is_not_decided(name: str) -> None:
    branch = {"if": "n > 0", "then": [{"tool_name": name, "arguments": {"text": "x"}, "on_error": "skip"}]}
    simulation = run({"let": {"n": 0}}, NEXT, branch, LOOK, {"answer": "{seen}"})
    assert simulation.finish is not None
    assert simulation.finish.text == "1"


@pytest.mark.parametrize("speculate", [False, True])
def test_the_rounds_of_a_while_whose_test_is_not_known(speculate: bool) -> None:
    loop = {"while": "n < 3", "max_iterations": 5, "do": [SEND, NEXT]}
    simulation = run({"let": {"n": 0}}, loop, LOOK, {"answer": "{seen}"}, speculate=speculate)
    assert simulation.finish is not None
    assert simulation.finish.text == "3"


@pytest.mark.parametrize("speculate", [False, True])
def test_the_rounds_behind_a_break_that_is_not_decided(speculate: bool) -> None:
    body = [SEND, {**NEXT, "result_variable": "m"}, {"if": "m > 2", "then": [{"break": True}]}]
    simulation = run({"for_each": [0, 1, 2, 3], "as": "n", "do": body}, LOOK, {"answer": "{seen}"}, speculate=speculate)
    assert simulation.finish is not None
    assert simulation.finish.text == "3"


@pytest.mark.parametrize("speculate", [False, True])
def test_the_rounds_that_wait_for_a_value_handed_on(speculate: bool) -> None:
    body = [SEND, {"if": "n < 5", "then": [NEXT, {"if": "n > 4", "then": [{"continue": True}]}]}]
    steps = [{"let": {"n": 0}}, {"for_each": [1, 2, 3], "as": "i", "do": body}, LOOK, {"answer": "{seen}"}]
    simulation = run(*steps, speculate=speculate)
    assert simulation.finish is not None
    assert simulation.finish.text == "3"


def test_the_rounds_of_a_while_are_not_of_equal_standing() -> None:
    SENT.clear()
    body = [{"tool_name": "slow", "arguments": {"n": 1}, "timeout_seconds": 5}, {**SEND}]
    plan = parse(json.dumps([{"while": "true", "max_iterations": 2, "do": body}]), tools=TOOLS)
    assert isinstance(plan, Plan)
    # The call of the first round takes too long, that of the second does not: still, nothing is sent.
    simulation = simulate(check(plan, TOOLS), seconds=lambda command: 10.0 if command.step == "s2[0]" else 1.0)
    assert simulation.finish is not None
    assert simulation.finish.failed_step == "s2[0]"
    assert SENT == []
