"""Tools in processes of their own: what goes there and comes back, and what happens when one of them dies."""

from __future__ import annotations

import asyncio
import functools
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from toolplan import Tool, ToolContext, UsageError, tool
from toolplan.run import end_workers, set_process_limits
from toolplan.run.processes import busy_workers
from unit.run import cpu_tools
from unit.run.runs import call, each, engine, run


@pytest.fixture(autouse=True)
def _usual_limits() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    yield
    set_process_limits()


def cpu(function: Callable[..., Any], **declared: Any) -> Tool:
    return Tool.of(function, **({"pure": True} | declared), runs_in="process")


async def result_of(function: Callable[..., Any], **arguments: Any) -> Any:
    tool = cpu(function)
    outcome = await run([call(tool.name, **arguments)], [tool])
    return outcome.steps[0].result if outcome.outcome == "succeeded" else outcome.error


async def started_processes(folder: Path, count: int = 1) -> list[int]:
    """Return the ids of the processes in which `hold` has started."""
    for _ in range(2000):
        if len(names := os.listdir(folder)) >= count:
            return [int(name) for name in names]
        await asyncio.sleep(0.01)
    raise AssertionError("the calls did not start")


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


async def test_values_go_there_and_back() -> None:
    assert await result_of(cpu_tools.square, n=12) == 144
    assert await result_of(cpu_tools.describe, job={"name": "x", "size": 1}) == {"name": "X", "size": 2}
    assert await result_of(cpu_tools.count_to, n=4) == [0, 1, 2, 3]
    assert await result_of(functools.partial(cpu_tools.square, n=5)) == 25
    assert await result_of(cpu_tools.Counter(10), n=1) == 11
    assert await result_of(cpu_tools.Counter(10).add, n=2) == 12


async def test_calls_of_several_runs_use_the_same_processes() -> None:
    end_workers()
    begun = time.perf_counter()
    first = await result_of(cpu_tools.process_id)
    cold = time.perf_counter() - begun
    begun = time.perf_counter()
    second = await result_of(cpu_tools.process_id)
    warm = time.perf_counter() - begun
    assert first == second != os.getpid()
    assert warm < cold


async def test_they_work_side_by_side(tmp_path: Path) -> None:
    set_process_limits(processes=2)
    running = engine([each([str(tmp_path)] * 2, call("hold", folder="{n}"))], [cpu(cpu_tools.hold)])
    task = asyncio.create_task(running.run())
    await started_processes(tmp_path, 2)
    running.cancel()
    await task
    assert busy_workers() == 0


async def test_no_more_of_them_than_allowed_work_at_a_time() -> None:
    set_process_limits(processes=1)
    tool = cpu(cpu_tools.process_id)
    steps = [call("process_id", result=f"p{n}") for n in range(6)]
    results = await asyncio.gather(run(steps, [tool]), run(steps, [tool]))
    assert len({step.result for result in results for step in result.steps}) == 1


async def test_what_a_tool_prints_spoils_nothing() -> None:
    assert await result_of(cpu_tools.say, text="hello\n\x80\x04.") == "hello\n\x80\x04."


async def test_exceptions_come_back() -> None:
    assert await result_of(cpu_tools.fail, text="no such thing") == "ValueError: no such thing"
    assert await result_of(cpu_tools.fail_stubbornly) == "Stubborn: code 7 at here"


async def test_an_exception_keeps_its_class_for_the_declaration() -> None:
    tool = cpu(cpu_tools.fail, pure=False, writes="x", retry=2, nothing_happened=ValueError)
    step = call("fail", text="a") | {"retry": {"attempts": 2, "wait_seconds": 0.001}}
    result = await run([step], [tool])
    assert result.steps[0].attempts == 2


async def test_what_cannot_be_sent_is_refused_by_name() -> None:
    def inside(n: int) -> int:
        return n

    refused = await result_of(inside, n=1)
    assert refused.startswith("`inside` cannot be sent to a process of its own: ")
    assert "a function at the top of a module" in refused
    refused = await result_of(cpu_tools.no_value)
    assert refused.startswith("`no_value` runs in a process of its own, and what it returned cannot be sent back: ")


def test_a_context_cannot_go_there() -> None:
    @tool(runs_in="process")
    def work(ctx: ToolContext) -> int:
        return 1

    with pytest.raises(UsageError, match="takes a ToolContext, which cannot go to another process"):
        Tool.of(work)


@pytest.mark.parametrize(
    ("function", "arguments", "said"),
    [(cpu_tools.leave, {"code": 3}, "exit code 3"), (cpu_tools.crash, {}, "SIGSEGV")],
)
async def test_a_process_that_dies_is_one_failed_call(function: Any, arguments: Any, said: str) -> None:
    deadly = cpu(function, pure=False, writes="x")
    fine = cpu(cpu_tools.square)
    steps = [call(function.__name__, **arguments) | {"on_error": "skip"}, call("square", n=3)]
    result = await run(steps, [deadly, fine])
    assert [step.outcome for step in result.steps] == ["unknown", "succeeded"]
    assert result.steps[0].error == f"the process of `{function.__name__}` ended while the call was made ({said})"


async def test_a_call_without_effects_is_made_again_when_its_process_was_killed(tmp_path: Path) -> None:
    hold = cpu(cpu_tools.hold)
    step = call("hold", folder=str(tmp_path)) | {"retry": {"attempts": 2, "wait_seconds": 0.001}}
    running = engine([step], [hold])
    task = asyncio.create_task(running.run())
    (process,) = await started_processes(tmp_path)
    os.kill(process, signal.SIGKILL)
    await started_processes(tmp_path, 2)
    running.cancel()
    assert (await task).steps[0].attempts == 2


async def test_the_end_of_the_time_is_the_end_of_the_process(tmp_path: Path) -> None:
    await result_of(cpu_tools.square, n=1)  # there is a worker
    hold = cpu(cpu_tools.hold, pure=False, writes="x", timeout_seconds=1.0)
    result = await run([call("hold", folder=str(tmp_path))], [hold])
    assert result.steps[0].outcome == "unknown"
    assert result.error == "the call took longer than 1 seconds and was ended with its process"
    (process,) = await started_processes(tmp_path)
    assert not is_alive(process)
    assert await result_of(cpu_tools.square, n=2) == 4


async def test_a_cancelled_run_ends_its_processes_and_no_other(tmp_path: Path) -> None:
    (mine := tmp_path / "mine").mkdir()
    (theirs := tmp_path / "theirs").mkdir()
    hold = cpu(cpu_tools.hold, pure=False, writes="{folder}")
    first = engine([call("hold", folder=str(mine))], [hold])
    second = engine([call("hold", folder=str(theirs))], [hold])
    tasks = [asyncio.create_task(first.run()), asyncio.create_task(second.run())]
    (a,), (b,) = await started_processes(mine), await started_processes(theirs)
    first.cancel()
    result = await tasks[0]
    assert result.steps[0].outcome == "unknown"
    assert not is_alive(a)
    assert is_alive(b)
    second.cancel()
    await tasks[1]


async def test_a_worker_that_went_away_while_it_was_idle_is_replaced() -> None:
    os.kill(await result_of(cpu_tools.process_id), signal.SIGKILL)
    assert await result_of(cpu_tools.square, n=3) == 9


def program(script: Path) -> str:
    """Run a program; return what it printed."""
    command = [sys.executable, script]
    done = subprocess.run(command, cwd=script.parent, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


def test_a_program_is_not_run_again_in_its_worker(tmp_path: Path) -> None:
    """A script without `if __name__ == "__main__":`. Its plan, with its effects, must run once."""
    script = tmp_path / "program.py"
    script.write_text(
        textwrap.dedent(
            """
            import asyncio, json, pathlib
            from toolplan import ToolSet, check, parse, run_plan, tool

            @tool(pure=True, runs_in="process")
            def square(n: int) -> int:
                return n * n

            @tool(writes="log")
            def note(n: int) -> int:
                with open("log.txt", "a") as log:
                    log.write(f"{n}\\n")
                return n

            steps = [
                {"tool_name": "note", "arguments": {"n": 1}},
                {"tool_name": "square", "arguments": {"n": 4}, "result_variable": "s", "timeout_seconds": 20},
                {"answer": "{s}"},
            ]
            GUARD
            tools = ToolSet.of([square, note])
            result = asyncio.run(run_plan(check(parse(json.dumps(steps), tools=tools), tools)))
            print(result.outcome, result.text, result.error)
            """
        )
    )
    text = script.read_text()
    script.write_text(text.replace("GUARD\n", ""))
    done = program(script)
    assert "failed None `square` cannot be loaded in a process of its own" in done
    assert 'below `if __name__ == "__main__":`' in done
    assert (tmp_path / "log.txt").read_text() == "1\n"
    head, tail = text.split("GUARD\n")
    script.write_text(head + 'if __name__ == "__main__":\n' + textwrap.indent(tail, "    "))
    done = program(script)
    assert done == "succeeded 16 None\n"


def test_tools_of_a_file_on_no_path_are_found(tmp_path: Path) -> None:
    (tmp_path / "my-tools.py").write_text(
        "from toolplan import tool\n\n"
        "@tool(pure=True, runs_in='process')\n"
        "def square(n: int) -> int:\n"
        "    return n * n\n"
    )
    plan = tmp_path / "plan.json"
    plan.write_text('[{"tool_name": "square", "arguments": {"n": 5}, "result_variable": "s"}, {"answer": "{s}"}]')
    command = [sys.executable, "-m", "toolplan", "run", str(plan), "--tools", str(tmp_path / "my-tools.py"), "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.strip() == "25", done.stderr
