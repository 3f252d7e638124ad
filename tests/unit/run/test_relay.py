"""A task that has made a call goes on with the next one: nobody can tell."""

from __future__ import annotations

import asyncio
import contextvars
import json
from typing import Any

import pytest

from toolplan import ToolSet, tool
from toolplan.check import check
from toolplan.parse import parse
from toolplan.plan import Plan
from toolplan.run import Engine, RunEvent, StepStarted
from toolplan.run.relay import IN_A_ROW, within

MARK = contextvars.ContextVar("MARK", default=0)

TASKS: list[asyncio.Task[Any] | None] = []


@tool(pure=True)
async def mark(value: int) -> int:
    """Return what an earlier call has left in the context, and leave something itself."""
    TASKS.append(asyncio.current_task())
    before = MARK.get()
    MARK.set(value)
    await asyncio.sleep(0)
    assert MARK.get() == value
    return before


@tool(pure=True)
async def pass_on(value: int) -> int:
    return value + 1


@tool(pure=True)
async def hang(value: int) -> int:
    await asyncio.Event().wait()
    return value


@tool(pure=True)
async def impatient(value: int) -> int:
    try:
        async with asyncio.timeout(0.001):
            await asyncio.Event().wait()
    except TimeoutError:
        return value
    raise AssertionError("it was not stopped")


@tool(pure=True)
async def cancels_itself(value: int) -> int:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)
    return value


TOOLS = [mark, pass_on, hang, impatient, cancels_itself]


def chain(*names: str) -> list[dict[str, Any]]:
    """Return a plan in which each call uses the result of the one before."""
    return [
        {"tool_name": name, "arguments": {"value": f"{{r{i - 1} + 1}}" if i else 1}, "result_variable": f"r{i}"}
        for i, name in enumerate(names)
    ]


def engine(steps: list[dict[str, Any]], **options: Any) -> Engine:
    tools = ToolSet.of(TOOLS)
    plan = parse(json.dumps(steps), tools=tools)
    assert isinstance(plan, Plan)
    return Engine(check(plan, tools), **options)


async def test_calls_in_one_task_have_contexts_of_their_own() -> None:
    TASKS.clear()
    result = await engine(chain("mark", "mark", "mark")).run()
    assert [step.result for step in result.steps] == [0, 0, 0]
    assert len({id(task) for task in TASKS}) == 1


async def test_calls_that_never_wait_let_others_have_their_turn() -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    result = await engine(chain(*["pass_on"] * (20 * IN_A_ROW))).run()
    beside.cancel()
    assert result.outcome == "succeeded"
    assert turns >= 20


@pytest.mark.parametrize("name", ["impatient", "cancels_itself"])
async def test_a_call_may_use_its_task(name: str) -> None:
    result = await engine([*chain("pass_on", name), {"tool_name": "pass_on", "arguments": {"value": 7}}]).run()
    expected = ("succeeded", 3) if name == "impatient" else ("failed", None)
    assert (result.steps[1].outcome, result.steps[1].result) == expected
    if name == "cancels_itself":
        assert "cancelled" in (result.steps[1].error or "")


async def test_a_call_that_is_cancelled_takes_no_other_with_it() -> None:
    steps = [*chain("pass_on", "hang"), {"tool_name": "pass_on", "arguments": {"value": 1}}]
    run = engine(steps, max_seconds=0.05)
    result = await run.run()
    assert result.outcome == "failed"
    assert [step.outcome for step in result.steps] == ["succeeded", "cancelled", "succeeded"]


async def test_a_call_that_is_cancelled_before_it_begins_is_not_made() -> None:
    TASKS.clear()
    runs: list[Engine] = []

    def cancel_second(event: RunEvent) -> None:
        if isinstance(event, StepStarted) and event.step == "s2":
            runs[0].cancel("enough")

    runs.append(engine(chain("pass_on", "mark"), watch=cancel_second))
    result = await runs[0].run()
    assert result.outcome == "cancelled"
    assert [step.outcome for step in result.steps] == ["succeeded", "cancelled"]
    assert TASKS == []


async def test_what_is_thrown_into_it_reaches_the_coroutine() -> None:
    caught: list[str] = []

    async def work() -> int:
        MARK.set(5)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            caught.append(f"cancelled at {MARK.get()}")
        await asyncio.sleep(0)
        return MARK.get()

    async def outer() -> int:
        return await within(work(), contextvars.copy_context())

    task = asyncio.create_task(outer())
    await asyncio.sleep(0)
    task.cancel()
    assert await task == 5
    assert caught == ["cancelled at 5"]
    assert MARK.get() == 0
