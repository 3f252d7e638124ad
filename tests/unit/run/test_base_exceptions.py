"""Tools that raise what is no `Exception`: the step fails and says so, whatever it is; a run never waits for ever."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolplan import Tool
from unit.run import cpu_tools
from unit.run.cpu_tools import Panic
from unit.run.runs import call, run

KINDS: list[Callable[[], BaseException]] = [
    lambda: GeneratorExit("out"),
    lambda: Panic("out"),
    lambda: SystemExit("out"),
    lambda: pytest.fail.Exception("out"),
]


def raising(make: Callable[[], BaseException], where: Any) -> Tool:
    def sync() -> None:
        raise make()

    async def coroutine() -> None:
        await asyncio.sleep(0)
        raise make()

    if where == "async":
        return Tool.of(coroutine, name="raises", reads="x")
    return Tool.of(sync, name="raises", reads="x", runs_in=where)


@pytest.mark.parametrize("seconds", [None, 5], ids=["", "timed"])
@pytest.mark.parametrize("where", ["async", "thread", "loop"])
@pytest.mark.parametrize("make", KINDS, ids=["GeneratorExit", "Panic", "SystemExit", "Failed"])
async def test_the_step_fails_with_a_message(
    make: Callable[[], BaseException], where: str, seconds: int | None
) -> None:
    step = call("raises") | ({"timeout_seconds": seconds} if seconds else {})
    outcome = await asyncio.wait_for(run([step], [raising(make, where)]), 10)
    assert outcome.outcome == "failed"
    assert f"{type(make()).__name__}: out" in (outcome.steps[0].error or "")


async def test_what_comes_from_a_process_fails_as_well() -> None:
    tool = Tool.of(cpu_tools.panic, pure=True, runs_in="process")
    outcome = await asyncio.wait_for(run([call("panic")], [tool]), 30)
    assert "Panic: out" in (outcome.steps[0].error or "")


@pytest.mark.parametrize("seconds", [None, 5], ids=["", "timed"])
async def test_an_interrupt_in_a_thread_is_the_tools_own(seconds: int | None) -> None:
    step = call("raises") | ({"timeout_seconds": seconds} if seconds else {})
    tool = raising(lambda: KeyboardInterrupt("out"), "thread")
    outcome = await asyncio.wait_for(run([step], [tool]), 10)
    assert outcome.steps[0].error == "KeyboardInterrupt: out"


PROGRAM = """
from toolplan import Agent, tool

@tool(reads="x")
async def interrupts():
    raise KeyboardInterrupt("out")

@tool(reads="x", timeout_seconds=5)
async def interrupts_timed():
    raise KeyboardInterrupt("out")

import sys
one = globals()[sys.argv[1]]
try:
    Agent(tools=[one]).run_plan_sync([{"tool_name": one.__name__, "arguments": {}}])
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize("name", ["interrupts", "interrupts_timed"])
def test_an_interrupt_in_the_event_loop_ends_the_program_as_ever(tmp_path: Path, name: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run([sys.executable, str(program), name], capture_output=True, text=True, timeout=20)
    assert done.stdout.strip() == "interrupted", done.stderr


async def test_a_watcher_that_raises_one_ends_the_run() -> None:
    async def quick() -> int:
        return 1

    def watch(event: Any) -> None:
        if type(event).__name__ == "StepFinished":
            raise Panic("out")

    with pytest.raises(Panic):
        await asyncio.wait_for(run([call("quick")], [Tool.of(quick, pure=True)], watch=watch), 10)
