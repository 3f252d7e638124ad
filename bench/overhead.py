"""What the engine itself costs per step, when the tools cost nothing.

A chain: each call uses the result of the one before, so nothing can overlap and every cost is on the critical path.
Arguments are validated against the schema, results converted, every event goes to a watcher that keeps it. The plan is
checked beforehand; what reading and checking cost is the bench `compile`.

The floor is one `asyncio` task per step, made when the values it depends on are there and awaited: about the least that
starting each step on its own can cost, and the floor that other engines' figures are given against (LangGraph 37x,
Monty 24x, CaMeL 17x, pydantic-graph 12x). Beside it: all tasks made beforehand, each awaiting the one before it, which
spares the event loop half the way; a plain loop of `await`s, which is what a program costs that is not a plan; and
with `--full` other engines, where they are installed (`bench/peers.py`).
"""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack

from bench import peers
from bench.harness import Bench, Report, Table, at_most, interleaved
from toolplan import Agent, CheckedPlan, RunEvent, run_plan, tool
from toolplan.parse import parse
from toolplan.plan import Plan

STEPS = 1_000
REACH = 5.0
TASKS = "asyncio task"
LOOP = "await loop"


async def add_one(x: int) -> int:
    return x + 1


@tool(name="add_one", pure=True)
async def add_one_tool(x: int) -> int:
    """Return the next number."""
    return x + 1


async def await_loop(steps: int) -> int:
    x = 0
    for _ in range(steps):
        x = await add_one(x)
    return x


async def task_per_step(steps: int) -> int:
    x = 0
    for _ in range(steps):
        x = await asyncio.create_task(add_one(x))
    return x


async def tasks_beforehand(steps: int) -> int:

    async def step(before: asyncio.Task[int] | None) -> int:
        return await add_one(await before if before is not None else 0)

    last: asyncio.Task[int] | None = None
    for _ in range(steps):
        last = asyncio.create_task(step(last))
    assert last is not None
    return await last


def chain(steps: int) -> str:
    """Return a plan of dependent calls as text."""
    calls = [
        {"tool_name": "add_one", "arguments": {"x": f"{{x{i}}}" if i else 0}, "result_variable": f"x{i + 1}"}
        for i in range(steps)
    ]
    return json.dumps({"steps": calls, "answer": f"{{x{steps}}}"})


def checked_chain(agent: Agent, steps: int) -> CheckedPlan:
    plan = parse(chain(steps), tools=agent.tools)
    assert isinstance(plan, Plan)
    return agent.check(plan)


async def run(full: bool) -> Report:
    agent = Agent(tools=[add_one_tool])
    async with AsyncExitStack() as stack:
        beside = await peers.chain(STEPS, stack) if full else peers.Peers()
        tables = [await _table(agent, STEPS, 15, beside)]
    if full:
        tables += [await _table(agent, steps, repeats, peers.Peers()) for steps, repeats in ((100, 41), (5_000, 7))]
    first = tables[0]
    ratio = first.rows["toolplan"].ratio_to(first.rows[TASKS])
    return Report("overhead", tables, [at_most(ratio, REACH, of=f"an {TASKS}")])


async def _table(agent: Agent, steps: int, repeats: int, beside: peers.Peers) -> Table:
    checked = checked_chain(agent, steps)
    text = chain(steps)
    events: list[RunEvent] = []

    async def engine() -> str | None:
        events.clear()
        result = await run_plan(checked, watch=events.append)
        assert len(result.steps) == steps
        assert len(events) >= 2 * steps, "every step has its two events"
        return result.text

    async def everything() -> str:
        return (await agent.run_plan(text)).answer

    def expect(name: str, result: object) -> None:
        if str(result) != str(steps):
            raise AssertionError(f"{name} came to {result}, not {steps}")

    rows = await interleaved(
        {
            LOOP: lambda: await_loop(steps),
            TASKS: lambda: task_per_step(steps),
            "asyncio tasks, all made beforehand": lambda: tasks_beforehand(steps),
            "toolplan": engine,
            "toolplan, reading and checking included": everything,
            **beside.runners,
        },
        repeats=repeats,
        units=steps,
        expect=expect,
    )
    return Table(f"{steps:,} dependent calls", "us/step", rows, floors=(TASKS, LOOP), notes=beside.notes)


BENCH = Bench("overhead", f"{STEPS:,} dependent no-op calls, arguments validated, events kept", run)
