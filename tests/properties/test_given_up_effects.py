"""Effects that are given up and go on in their threads: nothing that touches the same is ever made beside them.

A read in a thread that is given up may go on beside anything, for nobody hears of its result. Real threads; several
runs of one agent, one after another: some come to their end, some are cancelled, some cancelled twice.
"""

from __future__ import annotations

import asyncio
import threading
import time
from random import Random
from typing import Any

import pytest

from toolplan import Agent, Tool

CELLS = ("a", "b")


class World:
    """Notes who is in which cell, and who came to a cell that somebody was changing."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside: list[tuple[str, str]] = []
        self.faults: list[str] = []

    def enter(self, kind: str, cell: str, *, counts: bool = True) -> None:
        with self.lock:
            self.faults += [f"{kind} {cell} while {other} {cell}" for other, where in self.inside
                            if counts and where == cell and other == "write"]  # fmt: skip
            self.inside.append((kind, cell))

    def leave(self, kind: str, cell: str) -> None:
        with self.lock:
            self.inside.remove((kind, cell))

    def tool(self, kind: str, cell: str, *, in_thread: bool) -> Tool:
        def wait(ms: int) -> int:
            self.enter(kind, cell, counts=kind == "write")
            try:
                time.sleep(ms / 1000)
                return ms
            finally:
                self.leave(kind, cell)

        async def wait_here(ms: int) -> int:
            self.enter(kind, cell)
            try:
                await asyncio.sleep(ms / 1000)
                return ms
            finally:
                self.leave(kind, cell)

        name = f"{kind}_{cell}_{'thread' if in_thread else 'loop'}"
        facts: dict[str, Any] = {f"{kind}s": cell, "name": name}
        return Tool.of(wait if in_thread else wait_here, **facts)


def random_step(rng: Random, tools: list[Tool]) -> dict[str, Any]:
    step: dict[str, Any] = {"tool_name": rng.choice(tools).name, "arguments": {"ms": rng.choice([0, 1, 3, 10, 30])}}
    if rng.random() < 0.35:
        step["timeout_seconds"] = rng.choice([0.001, 0.005])
    if rng.random() < 0.5:
        step["on_error"] = "skip"
    if rng.random() < 0.2:
        step["retry"] = {"attempts": 2, "wait_seconds": 0.001}
    return step


def random_plan(rng: Random, tools: list[Tool]) -> list[Any]:
    steps: list[Any] = []
    for number in range(rng.randint(1, 5)):
        kind = rng.random()
        if kind < 0.6:
            steps.append(random_step(rng, tools))
        elif kind < 0.8:
            steps.append({"parallel": [random_step(rng, tools) for _ in range(rng.randint(1, 3))]})
        else:
            steps.append({"for_each": [1, 2], "as": f"n{number}", "do": [random_step(rng, tools)]})
    return [*steps, {"answer": "done"}]


async def runs_of_one_agent(rng: Random) -> World:
    world = World()
    tools = [
        world.tool(k, cell, in_thread=there) for k in ("read", "write") for cell in CELLS for there in (True, False)
    ]
    agent = Agent(tools=tools, policy="declared", max_seconds=rng.choice([None, None, 0.02]))
    for _ in range(4):
        work = asyncio.create_task(agent.run_plan(random_plan(rng, tools)))
        for _ in range(rng.choice([0, 0, 1, 2])):
            await asyncio.sleep(rng.choice([0, 0.001, 0.005]))
            work.cancel()
        await asyncio.wait({work}, timeout=20)
        assert work.done()
    while world.inside:
        await asyncio.to_thread(time.sleep, 0.002)
    return world


@pytest.mark.parametrize("seed", [*range(20), 349])
def test_nothing_is_made_beside_an_effect_that_was_given_up(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("calls", "in_flight"):
        monkeypatch.setattr(f"toolplan.run.{module}.GRACE_SECONDS", 0.01)
    assert asyncio.run(runs_of_one_agent(Random(seed))).faults == []
