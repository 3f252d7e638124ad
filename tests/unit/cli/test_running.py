"""A request that does not come to its own end still says what happened."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from toolplan import Agent, tool
from toolplan.cli.running import Manner, carry_out


class Shop:
    """Tools of which one can end the run in a way of its own."""

    def __init__(self, ending: Callable[[], Any]) -> None:
        @tool(writes="ledger")
        def book(what: str) -> str:
            return what

        @tool(writes="account")
        def pay() -> str:
            return ending()

        self.agent = partial(Agent, None, [book, pay])


PLAN = '[{"tool_name": "book", "arguments": {"what": "a"}}, {"tool_name": "pay", "arguments": {}}]'


def interrupt() -> str:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(1)
    return "paid"


def leave() -> str:
    raise SystemExit(7)


def run(ending: Callable[[], Any], manner: Manner) -> int:
    return carry_out(Shop(ending).agent, lambda agent: agent.stream_plan(PLAN), manner)


def test_an_interrupted_run_says_what_is_done_and_what_is_not_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(interrupt, Manner(quiet=True)) == 130
    assert capsys.readouterr().out == (
        "This did not work: interrupted\n"
        "Done before that: s1 (book).\n"
        "Nobody knows whether these took effect: s2 (pay).\n"
    )
    assert run(interrupt, Manner("zh", quiet=True)) == 130
    assert "没有完成：已中断" in capsys.readouterr().out


def test_an_interrupted_run_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    import json

    assert run(interrupt, Manner(as_json=True)) == 130
    document = json.loads(capsys.readouterr().out)
    assert (document["outcome"], document["error"]) == ("cancelled", "interrupted")
    assert [(step["id"], step["outcome"]) for step in document["steps"]] == [("s1", "succeeded"), ("s2", "unknown")]
    assert document["plan"]["steps"][1] == {"tool_name": "pay", "arguments": {}}


def test_a_tool_that_ends_the_program_ends_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(leave, Manner(quiet=True)) == 1
    assert "SystemExit: 7" in capsys.readouterr().out


def test_yes_allows_what_nobody_is_there_to_allow(capsys: pytest.CaptureFixture[str]) -> None:
    @tool(approval="ask")
    def launch() -> str:
        return "launched"

    plan = '[{"tool_name": "launch", "arguments": {}}]'
    work = lambda agent: agent.stream_plan(plan)  # noqa: E731
    agent = partial(Agent, None, [launch])
    assert carry_out(agent, work, Manner(quiet=True)) == 3
    assert carry_out(agent, work, Manner(quiet=True, yes=True)) == 0
    assert "launched" in capsys.readouterr().out
