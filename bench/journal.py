"""What a durable record of every effect costs: commits a call, time beside a bare commit, bytes a step.

The chain: each effect is on disk as "started" before its call leaves, and the next one waits for it. The fan-out: a
hundred effects at once share commits. Commits are counted, so they are the same on any machine; the times depend on how
long the disk takes to be sure, and are given beside the floor, one SQLite commit a call in the same folder. DBOS, which
records every step as well, stands beside it where it is installed.
"""

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from bench.harness import Bench, Goal, Listing, Report, Table, interleaved
from bench.peers import Peers
from toolplan import Agent, tool
from toolplan.journal import Journal

CHAIN, PARALLEL = 200, 100
SIZED = 1_000


@tool(writes="ledger", name="book")
async def book(number: int) -> int:
    """Note a number."""
    return number + 1


@tool(writes="ledger:{number}", name="book_apart")
async def book_apart(number: int) -> int:
    """Note a number where it disturbs no other."""
    return number + 1


def chain(steps: int) -> list[Any]:
    first: list[Any] = [{"tool_name": "book", "arguments": {"number": 0}, "result_variable": "n0"}]
    for i in range(1, steps):
        call = {"tool_name": "book", "arguments": {"number": f"{{n{i - 1}}}"}, "result_variable": f"n{i}"}
        first.append(call)
    return [*first, {"answer": f"{{n{steps - 1}}}"}]


def fan_out(steps: int) -> list[Any]:
    return [
        {
            "for_each": f"range({steps})",
            "as": "i",
            "do": [{"tool_name": "book_apart", "arguments": {"number": "{i}"}, "result_variable": "n"}],
            "collect": "n",
            "result_variable": "all",
        },
        {"answer": "{len(all)}"},
    ]


async def run(full: bool) -> Report:
    """Measure."""
    with tempfile.TemporaryDirectory() as folder:
        return await _run(Path(folder), full)


async def _run(folder: Path, full: bool) -> Report:
    journal = Journal(folder / "journal.db")
    agent = Agent(tools=[book, book_apart], journal=journal, policy="declared", max_concurrency=PARALLEL)
    bare = Agent(tools=[book, book_apart], policy="declared", max_concurrency=PARALLEL)
    commits: dict[str, float] = {}

    def running(of: Agent, plan: list[Any], calls: int, name: str = "") -> Callable[[], Awaitable[str]]:
        async def work() -> str:
            before = journal.commits
            result = await of.run_plan(plan)
            if name:
                commits[name] = (journal.commits - before) / calls
            assert result.outcome == "succeeded", result.error
            return result.answer

        return work

    floor = sqlite3.connect(folder / "floor.db", isolation_level=None)
    floor.execute("PRAGMA journal_mode = WAL")
    floor.execute("PRAGMA synchronous = FULL")
    floor.execute("CREATE TABLE steps (body TEXT)")
    body = json.dumps({"step": "s17", "state": "done", "result": "x" * 150})

    def commit_each() -> None:
        for _ in range(CHAIN):
            floor.execute("BEGIN IMMEDIATE")
            floor.execute("INSERT INTO steps VALUES (?)", (body,))
            floor.execute("COMMIT")

    runners: dict[str, Callable[[], Any]] = {
        "one SQLite commit a call": commit_each,
        "toolplan, a chain of effects": running(agent, chain(CHAIN), CHAIN, "chain"),
        "toolplan, 100 effects at once": running(agent, fan_out(PARALLEL), PARALLEL, "at once"),
        "toolplan, the chain without a journal": running(bare, chain(CHAIN), CHAIN),
    }
    units = dict.fromkeys(runners, CHAIN) | {"toolplan, 100 effects at once": PARALLEL}
    peers = _dbos(folder)
    runners |= peers.runners
    units |= dict.fromkeys(peers.runners, CHAIN)
    times = await interleaved(runners, repeats=9 if full else 3, units=units)
    journal.close()
    size = await _size(folder / "sized.db")
    floor.close()
    notes = (*peers.notes, "times depend on the disk, and on what else it does")
    table = Table("a durable record of every effect", "us/call", times, ("one SQLite commit a call",), notes)
    counted = Listing(
        "commits that were made durable, a call",
        ("work", "commits a call", "reach"),
        (
            (f"a chain of {CHAIN} effects", f"{commits['chain']:.3f}", "<= 1.5"),
            (f"{PARALLEL} effects at once", f"{commits['at once']:.3f}", "<= 0.2"),
        ),
        (f"{SIZED:,} effects with short arguments and results take {size / 1024:.0f} KiB in the journal",),
    )
    goals = [
        Goal(f"{commits['chain']:.2f} commits a call in a chain", commits["chain"], 1.5, "<= 1.5"),
        Goal(f"{commits['at once']:.2f} at once", commits["at once"], 0.2, "<= 0.2"),
        Goal(f"{size / 1024:.0f} KiB per {SIZED:,} steps", size / 1024, 1024, "<= 1,024 KiB"),
    ]
    return Report("journal", [table, counted], goals)


async def _size(path: Path) -> int:
    """Return the bytes that a run of so many effects takes in a journal of its own."""
    agent = Agent(tools=[book_apart], journal=path, policy="declared")
    empty = _bytes(path)
    await agent.run_plan(fan_out(SIZED))
    await agent.close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return _bytes(path) - empty


def _bytes(path: Path) -> int:
    return path.stat().st_size


def _dbos(folder: Path) -> Peers:
    peers = Peers()

    @peers.add("DBOS", "dbos")
    def _made(library: Any) -> dict[str, Callable[[], Any]]:
        dbos = library.DBOS
        address = f"sqlite:///{folder / 'dbos.sqlite'}"
        config = {"name": "bench", "system_database_url": address, "log_level": "ERROR", "run_admin_server": False}
        dbos(config=config)

        async def step(number: int) -> int:
            return number + 1

        async def work(steps: int) -> int:
            number = 0
            for _ in range(steps):
                number = await noted(number)
            return number

        noted, flow = dbos.step()(step), dbos.workflow()(work)
        dbos.launch()
        return {"DBOS, a chain of steps": lambda: flow(CHAIN)}

    return peers


BENCH = Bench("journal", "a durable record of every effect, before it happens", run)
