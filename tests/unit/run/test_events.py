"""What a watcher is told: typed, in order, everything, and nothing after the end."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

import pytest

from toolplan import ToolFailed, tool
from toolplan.run import RunFinished, RunStarted, StepFinished, StepLeftOut, StepRetrying, StepStarted
from unit.run.runs import call, each, engine, run


class Watcher:
    """Keeps the events and checks what must be true of every stream of them."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def __call__(self, event: Any) -> None:
        self.events.append(event)

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def check(self) -> None:
        assert isinstance(self.events[0], RunStarted)
        assert isinstance(self.events[-1], RunFinished)
        assert len(self.of(RunStarted)) == len(self.of(RunFinished)) == 1
        running: dict[str, int] = {}
        last: dict[str, int] = {}
        for event in self.events:
            if isinstance(event, StepStarted):
                assert event.step not in running
                assert event.attempt == last.get(event.step, 0) + 1
                running[event.step] = last[event.step] = event.attempt
            elif isinstance(event, StepFinished):
                assert event.record.outcome != "running"
                assert running.pop(event.record.id) == event.record.attempts
            elif isinstance(event, StepRetrying):
                assert event.step not in running
            elif isinstance(event, StepLeftOut):
                assert event.record.id not in last
        assert running == {}


@tool(pure=True)
async def slow(seconds: float = 60) -> int:
    await asyncio.sleep(seconds)
    return 1


@tool(pure=True)
async def number(n: int) -> int:
    return n


@tool(pure=True)
async def broken() -> int:
    raise ToolFailed("broken")


@tool(writes="x")
async def effect(n: int) -> int:
    return n


async def test_a_call_that_is_not_needed_any_more_has_an_end_too() -> None:
    watch = Watcher()
    result = await run([call("broken"), call("slow")], [broken, slow], watch=watch)
    watch.check()
    assert [(event.record.tool, event.record.outcome) for event in watch.of(StepFinished)] == [
        ("broken", "failed"),
        ("slow", "cancelled"),
    ]
    assert result.outcome == "failed"


@pytest.mark.parametrize("how", ["task", "run"])
async def test_a_cancelled_run_ends_for_its_watcher(how: str) -> None:
    watch = Watcher()
    running = engine([each([1, 2, 3], call("slow")), call("effect", n=1)], [slow, effect], watch=watch)
    task = asyncio.create_task(running.run())
    await asyncio.sleep(0)
    assert len(watch.of(StepStarted)) == 3
    if how == "task":
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    else:
        running.cancel("enough")
        await task
    watch.check()
    assert [event.record.outcome for event in watch.of(StepFinished)] == ["cancelled"] * 3
    assert watch.events[-1].outcome == "cancelled"


async def test_steps_without_a_call_are_told_at_the_end() -> None:
    @tool(pure=True)
    async def anything() -> Any:
        return "text"

    watch = Watcher()
    steps = [
        call("broken", result="b") | {"on_error": "skip"},
        call("number", n="{b}"),
        call("anything", result="a"),
        call("number", n="{a}"),
        call("effect", n=1),
    ]
    result = await run(steps, [broken, number, anything, effect], watch=watch)
    watch.check()
    left_out = [(event.record.tool, event.record.outcome) for event in watch.of(StepLeftOut)]
    assert left_out == [("number", "skipped"), ("number", "failed"), ("effect", "not_run")]
    told = {event.record.id for event in watch.events if isinstance(event, StepFinished | StepLeftOut)}
    assert told == {step.id for step in result.steps}


async def test_a_question_that_waits_has_an_end_for_this_run() -> None:
    watch = Watcher()
    result = await run([{"ask_user": "Which?", "result_variable": "a"}, {"answer": "{a}"}], [number], watch=watch)
    watch.check()
    assert result.outcome == "waiting"
    assert [event.record.outcome for event in watch.of(StepFinished)] == ["waiting"]


async def test_a_watcher_that_fails_spoils_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def watch(event: Any) -> None:
        raise RuntimeError(f"cannot show {type(event).__name__}")

    with caplog.at_level(logging.ERROR):
        result = await run([call("number", n=1)], [number], watch=watch)
    assert result.outcome == "succeeded"
    assert "a watcher of the run failed on StepStarted" in caplog.text


async def test_a_slow_watcher_loses_nothing() -> None:
    watch = Watcher()

    def slowly(event: Any) -> None:
        time.sleep(0.001)
        watch(event)

    await run([each(list(range(20)), call("number", n="{n}"))], [number], watch=slowly)
    watch.check()
    assert len(watch.of(StepFinished)) == 20


async def test_results_and_records_of_events_do_not_change_afterwards() -> None:
    tries: list[int] = []

    @tool(pure=True)
    async def flaky() -> int:
        tries.append(1)
        if len(tries) < 2:
            raise ConnectionError("again")
        return 7

    seen: list[tuple[str, Any]] = []

    def watch(event: Any) -> None:
        if isinstance(event, StepFinished):
            seen.append((event.record.outcome, event.record))

    await run([call("flaky") | {"retry": {"attempts": 2, "wait_seconds": 0.001}}], [flaky], watch=watch)
    assert [(then, record.outcome) for then, record in seen] == [("failed", "failed"), ("succeeded", "succeeded")]
