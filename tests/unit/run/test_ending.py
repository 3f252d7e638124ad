"""Calls that take too long, runs that are cancelled: everything ends, is accounted for, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from toolplan import Tool, ToolContext, tool
from toolplan.run import RunFinished, StepFinished, StepProgress, StepStarted
from unit.run.runs import call, each, engine, run


def others() -> set[asyncio.Task[Any]]:
    return {task for task in asyncio.all_tasks() if task is not asyncio.current_task()}


def threads() -> int:
    return sum(thread.name == "toolplan" for thread in threading.enumerate())


@pytest.fixture(autouse=True)
async def _nothing_is_left() -> AsyncIterator[None]:  # pyright: ignore[reportUnusedFunction]
    before = others()
    yield
    assert others() <= before
    loop: Any = asyncio.get_running_loop()
    assert [timer for timer in loop._scheduled if not timer.cancelled()] == []
    for _ in range(200):
        if not threads():
            break
        await asyncio.sleep(0.01)
    assert threads() == 0


async def test_a_tool_that_swallows_its_cancellation_holds_nothing_up() -> None:
    started = asyncio.Event()

    @tool(writes="x")
    async def stubborn() -> int:
        while True:
            started.set()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(60)

    running = engine([call("stubborn")], [stubborn])
    task = asyncio.create_task(running.run())
    await started.wait()
    begun = time.monotonic()
    running.cancel("enough")
    result = await task
    assert time.monotonic() - begun < 3
    assert (result.outcome, result.error, result.steps[0].outcome) == ("cancelled", "enough", "unknown")
    assert result.steps[0].error == "the call was cancelled; it did not end and may still be running"


@pytest.mark.parametrize("seconds", [None, 0.05])
async def test_such_a_tool_does_not_outlive_its_run(seconds: float | None) -> None:
    started = asyncio.Event()
    ended: list[str] = []

    @tool(pure=True)
    async def stubborn() -> int:
        try:
            while True:
                started.set()
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.sleep(60)
        finally:
            ended.append("closed")

    steps = [call("stubborn") | ({"timeout_seconds": seconds} if seconds else {})]
    task = asyncio.create_task(run(steps, [stubborn]))
    await started.wait()
    if seconds is None:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    else:
        assert (await task).outcome == "failed"
    assert ended == ["closed"]


def test_such_a_tool_does_not_keep_a_program_from_ending() -> None:
    @tool(pure=True, timeout_seconds=0.05)
    async def stubborn() -> int:
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(60)

    assert asyncio.run(run([call("stubborn")], [stubborn])).outcome == "failed"


async def test_cleaning_up_is_waited_for() -> None:
    started = asyncio.Event()
    log: list[str] = []

    @tool(pure=True)
    async def careful() -> int:
        try:
            started.set()
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.05)
            log.append("clean")
        return 1

    task = asyncio.create_task(run([call("careful")], [careful]))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert log == ["clean"]


async def test_what_a_tool_started_in_a_group_ends_with_it() -> None:
    started = asyncio.Event()
    ended: list[int] = []

    async def part(n: int) -> None:
        try:
            started.set()
            await asyncio.sleep(60)
        finally:
            ended.append(n)

    @tool(pure=True)
    async def many() -> int:
        async with asyncio.TaskGroup() as group:
            for n in range(3):
                group.create_task(part(n))
        return 1

    task = asyncio.create_task(run([call("many")], [many]))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sorted(ended) == [0, 1, 2]


async def test_an_async_generator_is_closed_when_its_call_is_cancelled() -> None:
    started = asyncio.Event()
    log: list[str] = []

    @tool(pure=True)
    async def pages() -> AsyncIterator[int]:
        try:
            yield 1
            started.set()
            await asyncio.sleep(60)
            yield 2
        finally:
            await asyncio.sleep(0.01)
            log.append("closed")

    task = asyncio.create_task(run([call("pages")], [pages]))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert log == ["closed"]


async def test_a_generator_in_a_thread_ends_at_its_next_item() -> None:
    log: list[str] = []

    @tool(pure=True, timeout_seconds=0.05)
    def forever() -> Iterator[int]:
        try:
            n = 0
            while True:
                time.sleep(0.01)
                yield n
                n += 1
        finally:
            log.append("closed")

    result = await run([call("forever")], [forever])
    assert result.outcome == "failed"
    for _ in range(100):
        if log:
            break
        await asyncio.sleep(0.01)
    assert log == ["closed"]


@pytest.mark.parametrize("how", ["timeout", "cancel"])
async def test_a_plain_function_can_ask_whether_it_is_still_wanted(how: str) -> None:
    started, ended = threading.Event(), threading.Event()

    @tool(writes="x")
    def slow(ctx: ToolContext) -> int:
        started.set()
        while not ctx.is_cancelled():
            time.sleep(0.005)
        ended.set()
        return 1

    running = engine([call("slow") | ({"timeout_seconds": 0.05} if how == "timeout" else {})], [slow])
    task = asyncio.create_task(running.run())
    await asyncio.to_thread(started.wait, 5)
    if how == "cancel":
        running.cancel()
    result = await task
    assert result.steps[0].outcome == "unknown"
    assert await asyncio.to_thread(ended.wait, 5)


async def test_a_call_that_never_began_has_no_unknown_effect() -> None:
    log: list[str] = []
    events: list[Any] = []

    @tool(writes="x")
    async def effect() -> int:
        log.append("effect")
        return 1

    running = engine([call("effect")], [effect], watch=lambda event: watch(event))

    def watch(event: Any) -> None:
        events.append(event)
        if isinstance(event, StepStarted):
            running.cancel("stop")  # at once, from inside of the run

    result = await asyncio.wait_for(running.run(), 5)
    assert log == []
    assert (result.outcome, result.steps[0].outcome) == ("cancelled", "cancelled")
    assert [type(event) for event in events[1:]] == [StepStarted, StepFinished, RunFinished]


async def test_a_run_can_be_cancelled_before_it_begins_and_after_it_has_ended() -> None:
    @tool(pure=True)
    async def one() -> int:
        return 1

    early = engine([call("one")], [one])
    early.cancel("not today")
    result = await early.run()
    assert (result.outcome, result.error) == ("cancelled", "not today")
    late = engine([call("one")], [one])
    assert (await late.run()).outcome == "succeeded"
    late.cancel()


async def test_a_run_can_be_cancelled_from_another_thread() -> None:
    started = asyncio.Event()

    @tool(pure=True)
    async def slow() -> int:
        started.set()
        await asyncio.sleep(60)
        return 1

    running = engine([call("slow")], [slow])
    task = asyncio.create_task(running.run())
    await started.wait()
    threading.Thread(target=running.cancel).start()
    assert (await asyncio.wait_for(task, 5)).outcome == "cancelled"


async def test_a_second_cancellation_does_not_wait_for_anybody() -> None:
    started = asyncio.Event()

    @tool(pure=True)
    async def slow_to_end() -> int:
        try:
            started.set()
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.8)
        return 1

    task = asyncio.create_task(run([call("slow_to_end")], [slow_to_end]))
    await started.wait()
    task.cancel()
    await asyncio.sleep(0.02)
    begun = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - begun < 0.5


async def test_a_retry_that_waits_is_no_timer_of_a_cancelled_run() -> None:
    tried = asyncio.Event()

    @tool(pure=True, retry=3)
    async def flaky() -> int:
        tried.set()
        raise ConnectionError("again")

    running = engine([call("flaky") | {"retry": {"attempts": 3, "wait_seconds": 30}}], [flaky])
    task = asyncio.create_task(running.run())
    await tried.wait()
    await asyncio.sleep(0)
    running.cancel()
    assert (await asyncio.wait_for(task, 2)).outcome == "cancelled"


async def test_a_tool_that_cancels_itself_only_fails() -> None:
    @tool(pure=True)
    async def odd() -> int:
        raise asyncio.CancelledError

    result = await run([call("odd")], [odd])
    assert (result.outcome, result.error) == ("failed", "CancelledError: the tool cancelled itself")


async def test_a_tool_that_ends_in_spite_of_its_cancellation_has_ended() -> None:
    started = asyncio.Event()

    @tool(writes="x")
    async def thorough() -> str:
        started.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        return "written"

    running = engine([call("thorough")], [thorough])
    task = asyncio.create_task(running.run())
    await started.wait()
    running.cancel()
    result = await task
    assert (result.outcome, result.steps[0].outcome, result.steps[0].result) == ("cancelled", "succeeded", "written")


async def test_threads_tell_their_progress_in_the_order_of_events() -> None:
    events: list[tuple[str, str]] = []
    main = threading.get_ident()

    def watch(event: Any) -> None:
        assert threading.get_ident() == main
        events.append((type(event).__name__, getattr(event, "message", "")))

    @tool(pure=True)
    def work(ctx: ToolContext, n: int) -> int:
        for k in range(3):
            ctx.progress(f"{n}.{k}")
        return n

    await run([each([1, 2, 3], call("work", n="{n}"))], [work], watch=watch)
    names = [name for name, _ in events]
    assert names[0] == "RunStarted"
    assert names[-1] == "RunFinished"
    assert sorted(message for _, message in events if message) == [f"{n}.{k}" for n in (1, 2, 3) for k in range(3)]


async def test_nothing_is_told_of_a_step_after_its_end() -> None:
    release = threading.Event()
    told = threading.Event()
    events: list[Any] = []

    @tool(pure=True, timeout_seconds=0.02)
    def slow(ctx: ToolContext) -> int:
        release.wait(5)
        ctx.progress("late")
        told.set()
        return 1

    steps = [call("slow") | {"on_error": "skip"}]
    await run(steps, [slow], watch=events.append)
    release.set()
    await asyncio.to_thread(told.wait, 5)
    await asyncio.sleep(0)
    assert not [event for event in events if isinstance(event, StepProgress)]
    assert [type(event) for event in events][-1] is RunFinished


async def test_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    @tool(pure=True, max_concurrency=1)
    def plain() -> int:
        return 1

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        result = await run([call("plain")], [plain])
    assert result.error == "RuntimeError: can't start new thread"
    assert (await run([call("plain")], [plain])).outcome == "succeeded"


@pytest.mark.parametrize("how", ["cancelled", "out of time"])
@pytest.mark.parametrize("seconds", [None, 20], ids=["", "timed"])
async def test_a_thread_that_goes_on_is_said_to(how: str, seconds: int | None) -> None:
    begun, end = threading.Event(), threading.Event()

    def blocks() -> None:
        begun.set()
        end.wait(20)

    step = call("blocks") | ({"timeout_seconds": seconds} if seconds else {})
    running = engine([step], [Tool.of(blocks, writes="x")], max_seconds=0.3 if how == "out of time" else None)
    task = asyncio.create_task(running.run())
    await asyncio.to_thread(begun.wait, 20)
    if how == "cancelled":
        running.cancel()
    try:
        result = await task
    finally:
        end.set()
    assert "it cannot be stopped and may still be running" in (result.steps[0].error or "")
