"""Programs whose tools run in processes: their own classes and arguments there, and no worker that outlives them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROGRAM = """
import dataclasses, os, sys, time
from toolplan import Agent, tool

class Down(ConnectionError): pass

class Odd(Exception):
    def __init__(self, code, place):
        super().__init__(f"code {code} at {place}")

@dataclasses.dataclass
class Size:
    a: int

WORD = sys.argv[1]

@tool(writes="x", runs_in="process", retry=2, nothing_happened=Down)
def down(): raise Down("no line")

@tool(writes="x", runs_in="process", retry=2, nothing_happened=Odd)
def odd(): raise Odd(7, "here")

@tool(pure=True, runs_in="process")
def sized() -> Size: return Size(1)

@tool(pure=True, runs_in="process")
def word() -> str: return WORD

@tool(pure=True, runs_in="process")
def spin() -> int:
    open("pid.new", "w").write(str(os.getpid()))
    os.rename("pid.new", "pid")
    end = time.time() + 60
    while time.time() < end: pass

if __name__ == "__main__":
    one = globals()[WORD]
    step = Agent(tools=[one], policy="declared").run_plan_sync([{"tool_name": WORD, "arguments": {}}]).steps[0]
    print(step.outcome, step.attempts, step.result if step.outcome == "succeeded" else step.error)
"""


@pytest.fixture
def program(tmp_path: Path) -> list[str]:
    (tmp_path / "program.py").write_text(PROGRAM)
    return [sys.executable, str(tmp_path / "program.py")]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("down", "failed 2 Down: no line"),
        ("odd", "failed 2 Odd: code 7 at here"),
        ("sized", "succeeded 1 {'a': 1}"),
        ("word", "succeeded 1 word"),
    ],
)
def test_the_classes_and_arguments_of_the_program_are_known(program: list[str], name: str, said: str) -> None:
    done = subprocess.run([*program, name], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == said, done.stderr


@pytest.mark.skipif(os.name == "nt", reason="not run: signals of POSIX")
@pytest.mark.parametrize("how", ["SIGTERM", "SIGHUP", "SIGKILL"])
def test_a_busy_worker_ends_with_the_program(program: list[str], tmp_path: Path, how: str) -> None:
    parent = subprocess.Popen([*program, "spin"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    until = time.monotonic() + 30
    while not (tmp_path / "pid").exists():
        assert time.monotonic() < until, parent.poll()
        time.sleep(0.02)
    worker = int((tmp_path / "pid").read_text())
    parent.send_signal(getattr(signal, how))
    try:
        parent.communicate(timeout=20)  # which waits for whoever has its streams
    finally:
        if parent.returncode is None or _is_alive(worker):
            time.sleep(1)
    try:
        assert not _is_alive(worker)
    finally:
        if _is_alive(worker):
            os.kill(worker, signal.SIGKILL)


def _is_alive(process: int) -> bool:
    """Whether it runs; one that has ended, but of whom nobody has taken note, does not."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return Path("/proc/self").exists() is False
