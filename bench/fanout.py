"""What a `for_each` costs per element, and what it keeps in memory.

10,000 independent calls out of one loop, at most 100 in flight, their results collected in order. The floor is
`asyncio.gather` over all of them under one semaphore. Beside it: as many workers as there are places, which draw from
one iterator (never more tasks than places, the least that such a program can cost); and other engines, where they are
installed (with `--full`; `bench/peers.py`).

The cost per call must not grow with the number of calls, nor memory with more than the values: a loop keeps only a
window of its rounds, and rows of the first 10,000 calls. Memory is measured in a process of its own: the peak above
what it held before the run, the million elements themselves (about 38 MiB as Python numbers in a list, once more as
collected results) included.
"""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
from pathlib import Path

from bench import peers
from bench.harness import Bench, Goal, Listing, Report, Table, at_most, interleaved
from toolplan import Agent, CheckedPlan, RunEvent, run_plan, tool
from toolplan.parse import parse
from toolplan.plan import Plan

CALLS, LIMIT = 10_000, 100
SIZES = (100, 1_000, 10_000, 100_000)
MILLION = 1_000_000
REACH, REACH_FLAT, REACH_MIB = 3.0, 1.25, 200
FLOOR = "gather + semaphore"


@tool(pure=True)
async def add_one(x: int) -> int:
    """Return the next number."""
    return x + 1


@tool(pure=True)
async def numbers(count: int) -> list[int]:
    """Return the first numbers."""
    return list(range(count))


def checked_loop(count: int, *, collect: bool = True) -> CheckedPlan:
    agent = Agent(tools=[add_one, numbers])
    call = {"tool_name": "add_one", "arguments": {"x": "{n}"}, "result_variable": "y"}
    loop = {"for_each": "ns", "as": "n", "do": [call]}
    if collect:
        loop |= {"collect": "y", "result_variable": "ys"}
    steps = [{"tool_name": "numbers", "arguments": {"count": count}, "result_variable": "ns"}, loop]
    answer = "{len(ys)} {ys[0]} {ys[-1]}" if collect else "done"
    plan = parse(json.dumps({"steps": steps, "answer": answer}), tools=agent.tools)
    assert isinstance(plan, Plan)
    return agent.check(plan)


async def gather_with_semaphore(count: int) -> list[int]:
    places = asyncio.Semaphore(LIMIT)

    async def one(x: int) -> int:
        async with places:
            return await peers.add_one(x)

    return list(await asyncio.gather(*(one(x) for x in range(count))))


async def workers(count: int) -> list[int]:
    found = [0] * count
    each = iter(range(count))

    async def worker() -> None:
        for x in each:
            found[x] = await peers.add_one(x)

    await asyncio.gather(*(worker() for _ in range(LIMIT)))
    return found


async def engine(checked: CheckedPlan, count: int) -> list[int]:
    """Return the numbers from 1 to `count` when the run has come to the right answer."""
    result = await run_plan(checked, max_concurrency=LIMIT)
    if result.text != f"{count} 1 {count}":
        raise AssertionError(f"the run came to {result.text or result.error}")
    return list(range(1, count + 1))


async def run(full: bool) -> Report:
    beside = await _beside(full)
    flat, growth = await _flat(full)
    million, mib = await _memory(full)
    goals = [
        at_most(beside.rows["toolplan"].ratio_to(beside.rows[FLOOR]), REACH, of=FLOOR),
        at_most(growth, REACH_FLAT, of=f"the cost per call from {SIZES[1]:,} to {SIZES[-1]:,}"),
        Goal(f"{mib:.0f} MiB for {MILLION:,} elements", mib, REACH_MIB, f"<= {REACH_MIB} MiB"),
    ]
    return Report("fanout", [beside, flat, million], goals)


async def _beside(full: bool) -> Table:
    checked = checked_loop(CALLS)
    found = peers.fanout(CALLS, LIMIT) if full else peers.Peers()

    async def watched() -> list[int]:
        events: list[RunEvent] = []
        result = await run_plan(checked, max_concurrency=LIMIT, watch=events.append)
        assert len(events) >= 2 * CALLS, "every call has its two events"
        assert result.text == f"{CALLS} 1 {CALLS}"
        return list(range(1, CALLS + 1))

    def expect(name: str, result: object) -> None:
        assert isinstance(result, list)
        if sorted(result) != list(range(1, CALLS + 1)):
            raise AssertionError(f"{name} did not make all the calls")

    rows = await interleaved(
        {
            FLOOR: lambda: gather_with_semaphore(CALLS),
            f"{LIMIT} workers": lambda: workers(CALLS),
            "toolplan": lambda: engine(checked, CALLS),
            "toolplan, every event kept": watched,
            **found.runners,
        },
        repeats=9 if full else 11,
        units=CALLS,
        expect=expect,
    )
    return Table(f"{CALLS:,} calls, {LIMIT} in flight", "us/call", rows, floors=(FLOOR,), notes=found.notes)


async def _flat(full: bool) -> tuple[Table, float]:
    plans = {count: checked_loop(count) for count in SIZES}
    rows = await interleaved(
        {f"{count:,} calls": lambda count=count: engine(plans[count], count) for count in SIZES},
        repeats=5 if full else 3,
        units={f"{count:,} calls": count for count in SIZES},
    )
    floor = f"{SIZES[1]:,} calls"
    growth = rows[f"{SIZES[-1]:,} calls"].ratio_to(rows[floor])
    return Table("the same loop, longer and longer", "us/call", rows, floors=(floor,)), growth


async def _memory(full: bool) -> tuple[Listing, float]:
    """Run a loop over a million elements in a process of its own."""
    kinds = (True, False) if full else (True,)
    rows: list[tuple[str, ...]] = []
    worst = 0.0
    for collect in kinds:
        work = [sys.executable, "-m", "bench.fanout", str(MILLION), "collect" if collect else "only"]
        done = await asyncio.to_thread(
            subprocess.run, work, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise AssertionError(done.stderr)
        found = json.loads(done.stdout)
        worst = max(worst, found["mib"])
        what = "collected" if collect else "not collected"
        rows.append((what, f"{found['mib']:.0f}", f"{found['rows']:,}", f"{found['omitted']:,}", found["answer"]))
    columns = ("results", "MiB above the start", "rows kept", "calls counted", "answer")
    return Listing(f"a loop over {MILLION:,} elements of an earlier result", columns, tuple(rows)), worst


def _resident(which: str) -> float:
    """Return a line of `/proc/self/status` in MiB: VmRSS (now), VmHWM (the most so far)."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(which)) / 1024


def measure_memory(count: int, *, collect: bool) -> dict[str, object]:
    """Return what one run takes beyond what this process holds after a small one."""
    asyncio.run(run_plan(checked_loop(1_000, collect=collect), max_concurrency=LIMIT))
    checked = checked_loop(count, collect=collect)
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak counts from here
    before = _resident("VmRSS")
    result = asyncio.run(run_plan(checked, max_concurrency=LIMIT))
    assert result.outcome == "succeeded", result.error
    mib = _resident("VmHWM") - before
    omitted = sum(result.omitted.values())
    return {"mib": mib, "rows": len(result.steps), "omitted": omitted, "answer": result.text}


if __name__ == "__main__":
    print(json.dumps(measure_memory(int(sys.argv[1]), collect=sys.argv[2] == "collect")))
else:
    BENCH = Bench("fanout", f"{CALLS:,} independent no-op calls out of one loop, {LIMIT} in flight; memory", run)
