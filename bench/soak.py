"""Many runs of mixed plans at once in one process, for a while: nothing leaks, nobody starves, nothing waits for long.

200 runs are in flight all the time: when one has ended, the next of the same kind begins. There are eight kinds:
chains, fan-outs, branches, failures, retries, calls that run out of time, plain functions in threads, and runs that are
cancelled half way. Two tools are scarce: one allows eight calls at once, one 100 calls a second, for all runs together.

Measured:

- *Leaks*: after the last run, asyncio tasks, timers, threads and places at gates that are left; and how much more
  memory is resident at the end than after the warm-up (a quarter of the time).
- *Fairness*: Jain's index of the runs completed by equal plans, (sum x)^2 / (n sum x^2), for each kind; 1 is perfect,
  1/n is one run having all. The figure is that of the kind with the lowest index.
- *Scheduling delay*: the time from the moment when a step could start to the moment when its function runs. A step
  could start when the last function whose result it uses has returned, if no limit holds its tool back; so steps of the
  scarce tools are not counted, nor is another attempt. Every function returns the time at which it ends, and the next
  one compares that with the time at which it begins. All the engine's work on the result, the scheduling, the checks of
  the arguments and the turn of the event loop lie in between.

The functions take as long as services do, 50 to 150 ms, so that one processor can keep 200 runs going; in a process
that is overloaded the delays only say by how much. The lag of the event loop itself, as a task sees it that only
sleeps, is printed beside: what the scheduler makes nobody wait for, the loop may.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import random
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.harness import Bench, Goal, Listing, Report
from toolplan import CheckedPlan, Tool, ToolFailed, ToolSet, check, parse
from toolplan.plan import Plan
from toolplan.run import Engine
from toolplan.run.limits import gates_of

NAME = "soak"
RUNS = 200
SECONDS, FULL_SECONDS = 20.0, 60.0
MEMORY_MIB = 16.0
FAIRNESS = 0.95
DELAY_MS = 50.0

now = time.perf_counter


class Service:
    """What the tools call. Notes the delays of the steps that it is called for."""

    def __init__(self) -> None:
        self.delays: list[float] = []
        self.calls = 0
        self.random = random.Random(20_260_318)

    def seconds(self) -> float:
        return self.random.uniform(0.05, 0.15)

    def begin(self, since: float | None) -> None:
        self.calls += 1
        if since is not None:
            self.delays.append(now() - since)

    def tools(self) -> ToolSet:
        async def begin() -> float:
            return now()

        async def step(since: float) -> float:
            self.begin(since)
            await asyncio.sleep(self.seconds())
            return now()

        async def quick(since: float) -> float:
            self.begin(since)
            await asyncio.sleep(self.seconds() / 5)
            return now()

        def in_thread(since: float) -> float:
            self.begin(since)
            time.sleep(self.seconds())
            return now()

        async def scarce(since: float) -> float:
            self.begin(None)
            await asyncio.sleep(0.01)
            return now()

        async def rated(since: float) -> float:
            self.begin(None)
            return now()

        async def broken(since: float) -> float:
            self.begin(since)
            await asyncio.sleep(self.seconds())
            raise ToolFailed("as every time")

        async def flaky(since: float) -> float:
            self.begin(None)
            await asyncio.sleep(self.seconds())
            if self.random.random() < 0.5:
                raise ConnectionError("now and then")
            return now()

        async def endless(since: float) -> float:
            self.begin(since)
            await asyncio.sleep(60)
            return now()

        async def write(since: float) -> float:
            self.begin(since)
            await asyncio.sleep(self.seconds())
            return now()

        retry: Any = {"retry": 4}
        return ToolSet.of(
            [
                *(Tool.of(function, reads="service") for function in (begin, step, quick, in_thread, broken)),
                Tool.of(scarce, reads="service", max_concurrency=8),
                Tool.of(rated, reads="service", rate_limit=(100, 1.0)),
                Tool.of(flaky, reads="service", **retry),
                Tool.of(endless, reads="service", timeout_seconds=0.05),
                Tool.of(write, writes="store:{since}"),
            ]
        )


def call(tool: str, since: str, result: str | None = None, **options: Any) -> dict[str, Any]:
    step = {"tool_name": tool, "arguments": {"since": f"{{{since}}}"}, **options}
    return step | ({"result_variable": result} if result else {})


def chain(tool: str, steps: int, since: str = "begun") -> list[dict[str, Any]]:
    names = [since, *(f"{tool}{n}" for n in range(steps))]
    return [call(tool, before, after) for before, after in itertools.pairwise(names)]


QUICKLY = {"retry": {"attempts": 5, "wait_seconds": 0.01}}
PLANS: dict[str, list[dict[str, Any]]] = {
    "chain": [*chain("step", 8), call("write", "step7", "last")],
    "fan-out": [
        {
            "for_each": "{range(16)}",
            "as": "n",
            "do": [call("step", "begun", "t")],
            "collect": "t",
            "result_variable": "ends",
        },
        call("scarce", "max(ends)", "last"),
    ],
    "branch": [
        call("quick", "begun", "a"),
        {"if": "a > 0", "then": [call("step", "a", "b")], "else": [call("broken", "a", "b")]},
        *chain("quick", 3, "b"),
        call("rated", "b", "last"),
    ],
    "failure": [
        call("broken", "begun", "a", on_error="skip"),
        call("quick", "begun", "b"),
        {"for_each": "{range(6)}", "as": "n", "do": [call("step", "b")]},
        call("broken", "b"),
        call("write", "b"),
    ],
    "retry": [call("flaky", "begun", "a", **QUICKLY, on_error={"value": 0}), *chain("quick", 4)],
    "timeout": [call("endless", "begun", "a", on_error="skip"), *chain("step", 3), call("write", "step2")],
    "threads": [
        *chain("in_thread", 3),
        {"for_each": "{range(4)}", "as": "n", "do": [call("in_thread", "in_thread2")]},
    ],
    "cancelled": chain("step", 12),
}
CANCELLED = "cancelled"
EXPECTED = {"failure": "failed", CANCELLED: "cancelled"}


@dataclass
class Soak:
    """What was found out."""

    seconds: float
    completed: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    """How many runs each of the equal plans of a kind has completed."""
    delays: list[float] = field(default_factory=list[float])
    lags: list[float] = field(default_factory=list[float])
    calls: int = 0
    grown_mib: float = 0.0
    left: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def runs(self) -> int:
        return sum(map(sum, self.completed.values()))

    @property
    def fairness(self) -> dict[str, float]:
        return {kind: jain(counts) for kind, counts in self.completed.items()}


def jain(counts: list[int]) -> float:
    """Return Jain's fairness index (Jain, Chiu and Hawe 1984)."""
    squares = sum(count * count for count in counts)
    return sum(counts) ** 2 / (len(counts) * squares) if squares else 0.0


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


async def soak(seconds: float, runs: int = RUNS) -> Soak:
    """Keep so many runs in flight for so long. Raises `AssertionError` for a run that ends otherwise than its kind."""
    service = Service()
    tools = service.tools()
    before = set(asyncio.all_tasks())
    others = set(threading.enumerate())  # what ran in this process before is nobody's leak
    found = Soak(seconds, {kind: [] for kind in PLANS})
    kinds = list(itertools.islice(itertools.cycle(PLANS), runs))
    plans = {kind: _checked(kind, tools) for kind in PLANS}
    gc.collect()
    gc.freeze()  # what is there already belongs to no run, and need not be walked again and again
    stop = now() + seconds
    workers = [_worker(kind, plans[kind], stop, found) for kind in kinds]

    async def measure() -> None:
        await asyncio.sleep(seconds / 4)
        gc.collect()
        service.delays.clear()  # those of the warm-up, when all runs begin at once
        found.grown_mib = -resident_mib()
        while now() < stop:
            at = now()
            await asyncio.sleep(0.01)
            found.lags.append(now() - at - 0.01)

    try:
        await asyncio.gather(measure(), *(worker() for worker in workers))
    finally:
        gc.unfreeze()
    found.delays, found.calls = service.delays, service.calls
    await asyncio.sleep(0)
    gc.collect()
    found.grown_mib += resident_mib()
    loop: Any = asyncio.get_running_loop()
    for _ in range(500):  # threads are told to end, and need a moment for it
        if not _threads(others):
            break
        await asyncio.sleep(0.01)
    gates = {gate for tool in tools for gate in gates_of(tool)}
    found.left = {
        "tasks": len(set(asyncio.all_tasks()) - before - {asyncio.current_task()}),
        "timers": sum(not timer.cancelled() for timer in getattr(loop, "_scheduled", ())),
        "threads": _threads(others),
        "places": sum(gate.taken + gate.waiting for gate in gates),
    }
    return found


def _checked(kind: str, tools: ToolSet) -> CheckedPlan:
    first = {"tool_name": "begin", "arguments": {}, "result_variable": "begun"}
    plan = parse(json.dumps([first, *PLANS[kind]]), tools=tools)
    assert isinstance(plan, Plan)
    return check(plan, tools)


def _worker(kind: str, checked: CheckedPlan, stop: float, found: Soak) -> Callable[[], Awaitable[None]]:
    place = len(found.completed[kind])
    found.completed[kind].append(0)

    async def work() -> None:
        while now() < stop:
            outcome = await _run(kind, checked)
            assert outcome == EXPECTED.get(kind, "succeeded"), f"a run of {kind} ended as {outcome}"
            found.completed[kind][place] += 1

    return work


async def _run(kind: str, checked: CheckedPlan) -> str:
    """Run a plan, or a part of it; return how the run ended."""
    engine = Engine(checked)
    if kind == CANCELLED:
        timer = asyncio.get_running_loop().call_later(0.25, engine.cancel)
        try:
            return (await engine.run()).outcome
        finally:
            timer.cancel()
    return (await engine.run()).outcome


def _threads(others: set[threading.Thread]) -> int:
    return sum(thread.name == "toolplan" for thread in set(threading.enumerate()) - others)


def resident_mib() -> float:
    """Return the memory of this process in MiB, or 0 where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20
    except OSError:
        return 0.0


async def run(full: bool) -> Report:
    """Soak for 20 seconds, or 60 with `--full`."""
    found = await soak(FULL_SECONDS if full else SECONDS)
    worst = min(found.fairness, key=lambda kind: found.fairness[kind])
    rows = tuple(
        (kind, str(len(counts)), str(sum(counts)), f"{min(counts)} .. {max(counts)}", f"{found.fairness[kind]:.4f}")
        for kind, counts in found.completed.items()
    )
    delays = [percentile(found.delays, share) * 1e3 for share in (0.5, 0.99, 0.999)]
    lags = [percentile(found.lags, share) * 1e3 for share in (0.5, 0.99)]
    left, grown = sum(found.left.values()), found.grown_mib
    notes = (
        f"{found.runs} runs and {found.calls} calls in {found.seconds:g} s: {found.runs / found.seconds:.0f} runs/s, "
        f"{found.calls / found.seconds:.0f} calls/s",
        f"scheduling delay of {len(found.delays)} steps: median {delays[0]:.1f} ms, p99 {delays[1]:.1f} ms, "
        f"p99.9 {delays[2]:.1f} ms; the event loop's own lag: median {lags[0]:.1f} ms, p99 {lags[1]:.1f} ms",
        f"left at the end: {', '.join(f'{count} {what}' for what, count in found.left.items())}",
    )
    table = Listing(f"{RUNS} runs at a time", ("plan", "at a time", "runs", "each", "Jain"), rows, notes)
    return Report(
        NAME,
        [table],
        [
            Goal(f"{left} left behind", left, 0, "0"),
            Goal(f"{grown:+.1f} MiB after the warm-up", grown, MEMORY_MIB, f"<= {MEMORY_MIB:g} MiB"),
            Goal(f"fairness {found.fairness[worst]:.3f}", -found.fairness[worst], -FAIRNESS, f">= {FAIRNESS}"),
            Goal(f"p99 of scheduling delay {delays[1]:.0f} ms", delays[1], DELAY_MS, f"<= {DELAY_MS:g} ms"),
        ],
    )


BENCH = Bench(NAME, f"{RUNS} concurrent runs of mixed plans", run)
