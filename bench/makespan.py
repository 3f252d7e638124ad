"""How near a plan's run comes to the shortest time that its calls allow.

A seeded random graph of 200 calls that take 5 to 20 ms, in ten layers; each uses up to three earlier ones, mostly of
the layer before. Nothing can be faster than its critical path, nor, with 16 calls in flight, than all the work divided
by 16: the lower bound. Waiting for whole layers, as engines with level barriers do, costs 1.35 to 1.7 times that path.
With a limit it matters which call goes first; the scheduler takes the one with the longest chain behind it, counted in
calls, for nobody knows durations beforehand.

Beside it: the simplest program that does as well as can be done without a limit, a task a call that awaits the tasks
it uses (under a semaphore, in written order, with a limit).
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Sequence

from bench import peers
from bench.harness import Bench, Report, Table, Times, at_most, interleaved
from toolplan import Agent, CheckedPlan, Tool, run_plan, tool
from toolplan.parse import parse
from toolplan.plan import Plan
from toolplan.schedule import StartCall
from toolplan.testing import simulate

CALLS, LAYERS, SEED, LIMIT = 200, 10, 7, 16
REACH_UNLIMITED, REACH_LIMITED = 1.06, 1.12
BOUND = "lower bound"
VIRTUAL = "toolplan on a virtual clock"


def random_graph(seed: int) -> tuple[list[list[int]], list[float]]:
    """Return which earlier calls each call uses, and how many seconds it takes."""
    rng = random.Random(seed)
    width = CALLS // LAYERS
    uses: list[list[int]] = []
    for number in range(CALLS):
        begin = number // width * width
        earlier = [
            rng.randrange(begin - width if rng.random() < 0.75 else 0, begin)
            for _ in range(rng.randint(0, 3) if begin else 0)
        ]
        uses.append(sorted(set(earlier)))
    return uses, [rng.uniform(0.005, 0.020) for _ in range(CALLS)]


def critical_path(uses: Sequence[Sequence[int]], seconds: Sequence[float]) -> float:
    ends: list[float] = []
    for earlier, took in zip(uses, seconds, strict=True):
        ends.append(max((ends[each] for each in earlier), default=0.0) + took)
    return max(ends)


def level_barriers(uses: Sequence[Sequence[int]], seconds: Sequence[float]) -> float:
    """Return the time of an engine that waits for each level before it begins the next: arithmetic, no run."""
    levels: list[int] = []
    for earlier in uses:
        levels.append(1 + max((levels[each] for each in earlier), default=-1))
    return sum(
        max(took for took, at in zip(seconds, levels, strict=True) if at == level) for level in range(max(levels) + 1)
    )


async def task_a_call(uses: Sequence[Sequence[int]], seconds: Sequence[float], limit: int | None) -> list[int]:
    places = asyncio.Semaphore(limit or len(uses))
    tasks: list[asyncio.Task[int]] = []

    async def call(number: int) -> int:
        for each in uses[number]:
            await tasks[each]
        async with places:
            await asyncio.sleep(seconds[number])
        return number

    for number in range(len(uses)):
        tasks.append(asyncio.create_task(call(number)))
    return list(await asyncio.gather(*tasks))


def checked_graph(uses: Sequence[Sequence[int]], work: Tool) -> CheckedPlan:
    """Return the graph as a plan: a call of `work` each, with the results that it uses as an argument."""
    agent = Agent(tools=[work])
    steps = [
        {
            "tool_name": "work",
            "arguments": {"number": number, "after": [f"{{r{each}}}" for each in earlier]},
            "result_variable": f"r{number}",
        }
        for number, earlier in enumerate(uses)
    ]
    plan = parse(json.dumps(steps), tools=agent.tools)
    assert isinstance(plan, Plan)
    return agent.check(plan)


async def run(full: bool) -> Report:
    seeds = (SEED, 8, 9) if full else (SEED,)
    tables: list[Table] = []
    for seed in seeds:
        for limit in (None, LIMIT):
            tables.append(await _table(seed, limit, repeats=15 if full else 9))
    unlimited, limited = (table.rows["toolplan"].ratio_to(table.rows[BOUND]) for table in tables[:2])
    goals = [
        at_most(unlimited, REACH_UNLIMITED, of="the lower bound", digits=3),
        at_most(limited, REACH_LIMITED, of=f"it with {LIMIT} in flight", digits=3),
    ]
    return Report("makespan", tables, goals)


async def _table(seed: int, limit: int | None, repeats: int) -> Table:
    uses, seconds = random_graph(seed)

    @tool(pure=True)
    async def work(number: int, after: list[int]) -> int:
        await asyncio.sleep(seconds[number])
        return number

    checked = checked_graph(uses, work)
    bound = max(critical_path(uses, seconds), sum(seconds) / limit if limit else 0.0)
    found = peers.graph(uses, seconds, limit)

    async def engine() -> list[object]:
        result = await run_plan(checked, max_concurrency=limit or CALLS)
        return [step.result for step in result.steps]

    def expect(name: str, result: object) -> None:
        if result != list(range(CALLS)):
            raise AssertionError(f"{name} did not make all the calls")

    on_paper = _on_a_virtual_clock(uses, seconds, limit)
    runners = {"a task a call": lambda: task_a_call(uses, seconds, limit), "toolplan": engine, **found.runners}
    rows = await interleaved(runners, repeats=repeats, expect=expect)
    rows = {BOUND: Times((bound,) * repeats), VIRTUAL: Times((on_paper,) * repeats), **rows}
    barriers = level_barriers(uses, seconds) / critical_path(uses, seconds)
    return Table(
        f"{CALLS} calls of 5 to 20 ms (seed {seed}), {f'at most {limit}' if limit else 'any number'} in flight",
        "ms/run",
        rows,
        floors=(BOUND,),
        notes=(f"waiting for whole levels: {barriers:.2f} x the critical path, by arithmetic", *found.notes),
    )


def _on_a_virtual_clock(uses: Sequence[Sequence[int]], seconds: Sequence[float], limit: int | None) -> float:
    """Return how long the run takes when nothing but the calls takes time: what the order of starting alone costs."""

    @tool(pure=True)
    def work(number: int, after: list[int]) -> int:
        return number

    def lasting(command: object) -> float:
        assert isinstance(command, StartCall)
        number = command.arguments["number"]
        assert isinstance(number, int)
        return seconds[number]

    return simulate(checked_graph(uses, work), seconds=lasting, max_concurrency=limit).seconds


BENCH = Bench("makespan", f"{CALLS} calls in a random graph, against the shortest time that it allows", run)
