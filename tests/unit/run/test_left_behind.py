"""An effect in a thread that nobody can stop: whatever is started later keeps out of its way, or is told."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from toolplan import Agent, Tool, tool
from toolplan.journal import Journal
from toolplan.journal.waiting import answer
from toolplan.models import ScriptedModel
from toolplan.run.calls import Calls, Stop
from unit.run.runs import call

SLOW: list[Any] = [call("slow"), {"answer": "done"}]
PUT: list[Any] = [call("put", v=2), {"answer": "done"}]
LOOK: list[Any] = [call("look"), {"answer": "done"}]
OTHER: list[Any] = [call("other", v=3), {"answer": "done"}]


class Box:
    """A box, and a thread that is in it until it is let go."""

    def __init__(self) -> None:
        self.go, self.began = threading.Event(), threading.Event()
        self.done: list[str] = []

    def tools(self, *, seconds: float | None = None, declared: bool = True) -> list[Tool]:
        def slow() -> int:
            self.began.set()
            self.go.wait(20)
            self.done.append("slow")
            return 1

        @tool(writes="box")
        async def put(v: int) -> int:
            self.done.append("put")
            return v

        @tool(writes="shelf")
        async def other(v: int) -> int:
            self.done.append("other")
            return v

        @tool(reads="box")
        async def look() -> list[str]:
            return list(self.done)

        limits: dict[str, Any] = {} if seconds is None else {"timeout_seconds": seconds}
        return [Tool.of(slow, **({"writes": "box"} if declared else {}), **limits), put, other, look]

    async def has_left(self) -> None:
        """Let the thread go, and return when it has."""
        self.go.set()
        threads = [thread for thread in threading.enumerate() if thread.name == "toolplan"]
        await asyncio.to_thread(lambda: [thread.join(10) for thread in threads])


@pytest.fixture
def box() -> Iterator[Box]:
    made = Box()
    yield made
    made.go.set()


def agent_with(box: Box, *replies: Any, **options: Any) -> Agent:
    tools = box.tools(seconds=options.pop("seconds", None), declared=options.pop("declared", True))
    texts = [reply if isinstance(reply, str) else json.dumps(reply) for reply in replies]
    return Agent(ScriptedModel(texts) if texts else None, tools=tools, policy="declared", **options)


async def cancelled(agent: Agent, box: Box) -> None:
    """Make a run with the slow call and cancel it there."""
    stream = agent.stream_plan(SLOW)
    work = asyncio.create_task(stream.result())
    await asyncio.to_thread(box.began.wait, 10)
    stream.cancel()
    result = await work
    assert [step.outcome for step in result.steps] == ["unknown"]


async def keeps_out_of_its_way(agent: Agent, box: Box) -> None:
    """Hold that a conflicting call is refused as long as the slow one goes on, and no other is, and none afterwards."""
    refused = await agent.run_plan(PUT)
    assert [(step.outcome, box.done) for step in refused.steps] == [("failed", [])]
    assert "`s1` of the run" in str(refused.error)
    assert "may still be going on and touches the same; this call was not made" in str(refused.error)
    assert (await agent.run_plan(LOOK)).outcome == "failed"
    assert (await agent.run_plan(OTHER)).outcome == "succeeded"
    await box.has_left()
    assert (await agent.run_plan(PUT)).outcome == "succeeded"
    assert box.done == ["other", "slow", "put"]


async def test_after_a_run_that_was_cancelled(box: Box) -> None:
    agent = agent_with(box)
    await cancelled(agent, box)
    await keeps_out_of_its_way(agent, box)


async def test_after_a_run_whose_task_was_cancelled_and_cancelled_again(box: Box) -> None:
    agent = agent_with(box)
    work = asyncio.create_task(agent.run_plan(SLOW))
    await asyncio.to_thread(box.began.wait, 10)
    work.cancel()
    await asyncio.sleep(0)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    await keeps_out_of_its_way(agent, box)


@pytest.mark.parametrize("limits", [{"seconds": 0.02}, {"max_seconds": 0.05}])
async def test_after_a_run_whose_time_was_over(box: Box, limits: dict[str, Any]) -> None:
    agent = agent_with(box, **limits)
    assert [step.outcome for step in (await agent.run_plan(SLOW)).steps] == ["unknown"]
    agent.max_seconds = None
    await keeps_out_of_its_way(agent, box)


async def test_in_the_next_turn_of_a_conversation(box: Box) -> None:
    agent = agent_with(box, SLOW, [call("put", v=2), {"answer": "done"}], seconds=0.02, max_replans=0)
    talk = agent.conversation()
    await talk.send("do it slowly")
    result = await talk.send("and now the other")
    assert (result.outcome, box.done) == ("failed", [])
    assert "may still be going on" in str(result.error)


async def test_another_attempt_may_come_when_it_is_over(box: Box) -> None:
    agent = agent_with(box)
    await cancelled(agent, box)
    stream = agent.stream_plan([call("put", v=2) | {"retry": {"attempts": 50, "wait_seconds": 0.01}}])
    work = asyncio.create_task(stream.result())
    await asyncio.sleep(0)
    await box.has_left()
    assert ((await work).outcome, box.done) == ("succeeded", ["slow", "put"])


async def test_what_an_undeclared_call_touches_is_anything_that_may_be_changed(box: Box) -> None:
    agent = agent_with(box, declared=False)
    await cancelled(agent, box)
    assert (await agent.run_plan(OTHER)).outcome == "failed"
    assert (await agent.run_plan(LOOK)).outcome == "succeeded"
    await box.has_left()
    assert (await agent.run_plan(OTHER)).outcome == "succeeded"


async def test_an_async_call_that_cannot_be_cancelled_is_ended_with_its_run(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("calls", "in_flight"):
        monkeypatch.setattr(f"toolplan.run.{module}.GRACE_SECONDS", 0.02)
    began = asyncio.Event()

    @tool(writes="box")
    async def stubborn() -> int:
        began.set()
        while True:
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                continue

    @tool(writes="box")
    async def put() -> int:
        return 1

    agent = Agent(tools=[stubborn, put], policy="declared")
    stream = agent.stream_plan([call("stubborn")])
    work = asyncio.create_task(stream.result())
    await began.wait()
    stream.cancel()
    assert [step.outcome for step in (await work).steps] == ["unknown"]
    assert (await agent.run_plan([call("put")])).outcome == "succeeded"


@pytest.mark.parametrize("same_agent", [True, False])
async def test_in_a_run_that_is_resumed_where_it_was_left(box: Box, tmp_path: Path, same_agent: bool) -> None:
    """In the process in which the thread is; another process knows nothing of it."""
    plan: list[Any] = [
        call("slow") | {"on_error": "skip"},
        {"ask_user": "go on?", "result_variable": "said"},
        {"note": "{said}"},
        call("put", v=2),
        {"answer": "done"},
    ]
    first = agent_with(box, seconds=0.02, journal=tmp_path / "runs.db")
    waiting = await first.run_plan(plan)
    assert waiting.outcome == "waiting"
    await first.close()
    with Journal(tmp_path / "runs.db") as journal:
        answer(journal, waiting.run_id, "yes")
    second = first if same_agent else Agent(tools=first.tools, policy="declared", journal=tmp_path / "runs.db")
    result = await second.resume(waiting.run_id)
    await second.close()
    assert (result.outcome, box.done) == ("failed", [])
    assert "may still be going on" in str(result.error)


async def test_a_run_that_is_resumed_when_it_is_over_goes_on(box: Box, tmp_path: Path) -> None:
    plan: list[Any] = [
        call("slow") | {"on_error": "skip"},
        {"ask_user": "go on?", "result_variable": "said"},
        call("put", v=2),
        {"answer": "{said}"},
    ]
    agent = agent_with(box, seconds=0.02, journal=tmp_path / "runs.db")
    waiting = await agent.run_plan(plan)
    await box.has_left()
    with Journal(tmp_path / "runs.db") as journal:
        answer(journal, waiting.run_id, "yes")
    result = await agent.resume(waiting.run_id)
    await agent.close()
    assert (result.outcome, box.done) == ("succeeded", ["slow", "put"])


async def test_a_call_that_was_given_up_before_its_thread_began_is_not_made() -> None:
    made: list[int] = []
    one = Tool.of(lambda: made.append(1), name="one", writes="box")
    stop = Stop()
    stop.now = True
    await Calls().value(one, one.bind({}), (), stop)
    assert (made, stop.has_ended()) == ([], True)
