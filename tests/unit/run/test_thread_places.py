"""Threads are shared by all runs of a process; who finds none waits by itself, which is no event of the run."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from toolplan import Agent, tool
from toolplan.journal import Journal
from toolplan.run import limits, set_process_limits
from unit.run.runs import call, each, run


@tool(reads="x")
def quick(n: int = 0) -> int:
    return n


@pytest.fixture
async def taken() -> AsyncIterator[threading.Event]:
    """The only thread of the process is in a call until this is set."""
    release, began = threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def hold() -> int:
        loop.call_soon_threadsafe(began.set)
        release.wait(10)
        return 1

    set_process_limits(threads=1)
    holding = asyncio.create_task(run([call("hold")], [hold]))
    await began.wait()
    yield release
    release.set()
    await holding
    set_process_limits()


async def waiting(work: asyncio.Task[Any]) -> None:
    """Return when a call of this work waits for a thread."""
    while not limits._THREADS.waiting:  # pyright: ignore[reportPrivateUsage]
        assert not work.done(), work.result()
        await asyncio.sleep(0)


async def test_a_call_waits_for_a_thread(taken: threading.Event) -> None:
    work = asyncio.create_task(run([call("quick"), {"answer": "done"}], [quick]))
    await waiting(work)
    taken.set()
    assert (await work).outcome == "succeeded"


async def test_a_call_that_waits_for_a_thread_can_be_cancelled(taken: threading.Event) -> None:
    stream = Agent(tools=[quick], policy="declared").stream_plan([call("quick")])
    work = asyncio.create_task(stream.result())
    await waiting(work)
    stream.cancel()
    result = await work
    assert (result.outcome, [step.outcome for step in result.steps]) == ("cancelled", ["cancelled"])
    assert limits._THREADS.waiting == 0  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("approval", ["allow", "ask"])
async def test_a_call_that_will_get_no_thread_fails_and_says_so(monkeypatch: pytest.MonkeyPatch, approval: Any) -> None:
    """Also one that a person has just allowed."""
    monkeypatch.setattr("toolplan.run.gate.PATIENCE_SECONDS", 0.05)
    set_process_limits(threads=1)
    release, has_thread, loop = threading.Event(), asyncio.Event(), asyncio.get_running_loop()

    @tool(reads="y", timeout_seconds=0.02)
    def stuck() -> int:
        loop.call_soon_threadsafe(has_thread.set)
        release.wait(10)
        return 1

    @tool(writes="x", approval=approval)
    def change(text: str) -> str:
        return text

    @tool(reads="z")
    async def word() -> str:
        await has_thread.wait()
        return "a"

    plan = [call("stuck") | {"on_error": "skip"}, call("word", "w"), call("change", text="{w}")]
    agent = Agent(tools=[stuck, change, word], policy="declared", approve=lambda calls, card: True)
    result = await agent.run_plan(plan)
    release.set()
    set_process_limits()
    assert [step.outcome for step in result.steps] == ["failed", "succeeded", "failed"], result.error
    assert "the only place for calls in threads is taken" in str(result.error)


@pytest.mark.parametrize("made", ["in a row", "at once"])
async def test_a_journal_has_no_row_for_the_thread_of_a_call(tmp_path: Path, made: str) -> None:
    steps: list[Any] = (
        [call("quick", n=1)] * 5 if made == "in a row" else [each([1, 2, 3, 4, 5], call("quick", n="{n}"))]
    )
    agent = Agent(tools=[quick], policy="declared", journal=tmp_path / "runs.db")
    result = await agent.run_plan([*steps, {"answer": "done"}])
    await agent.close()
    assert result.outcome == "succeeded"
    with Journal(tmp_path / "runs.db", readonly=True) as journal:
        kinds = [type(entry).__name__ for entry in journal.read(result.run_id)]
    assert kinds == ["RunBegun", "PlanBegun", "StartRun", *["CallSucceeded"] * 5, "RunEnded"]
