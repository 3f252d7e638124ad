"""The command line as a user meets it: real processes, pipes that close, a terminal, Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

PATIENCE_SECONDS = 60.0
"""How long anything may take on a busy machine; it takes a second."""

TOOLS = '''
import asyncio, os, subprocess, sys, time
from pathlib import Path

from toolplan import ToolContext, tool

print("a tools file prints")
HERE = Path(__file__).parent


def started(name):
    (HERE / name).write_text("started")


@tool(pure=True)
def noisy(n: int) -> dict[str, str]:
    """Prints in every way there is."""
    print("from print", flush=True)
    os.write(1, b"from the descriptor\\n")
    subprocess.run([sys.executable, "-c", "print('from a program')"])
    return {"城市": "北京", "n": str(n)}


@tool(writes="mailbox:{to}", approval="ask")
def send_email(to: str, subject: str) -> str:
    started("sent")
    return "sent"


@tool(reads="weather")
def slow_thread() -> str:
    started("running")
    time.sleep(600)
    return ""


@tool(writes="ledger")
async def slow_async() -> str:
    started("running")
    await asyncio.sleep(600)
    return ""


@tool(writes="ledger")
async def stubborn() -> str:
    while True:
        try:
            started("running")
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            pass


@tool(writes="ledger")
async def unstoppable() -> str:
    while True:
        try:
            started("running")
            await asyncio.sleep(600)
        except BaseException:
            started("asked")


@tool(reads="weather", runs_in="process")
def slow_process() -> int:
    started("running")
    time.sleep(600)
    return 1


@tool(reads="weather", timeout_seconds=0.2)
def timed_out() -> str:
    time.sleep(600)
    return ""


@tool(pure=True)
async def quick(n: int) -> str:
    await asyncio.sleep(0.002)
    return "很长的结果" * 20


@tool(pure=True)
def wait_for(ctx: ToolContext, file: str) -> str:
    started("running")
    while not (HERE / file).exists():
        ctx.progress("等待中")
        time.sleep(0.02)
    return file
'''


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


class Shell:
    """Runs `toolplan` in a folder with tools."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("TOOLPLAN_", "PYTHONPATH"))
        }
        self.environment |= {"TMPDIR": str(folder), "TERM": "xterm-256color", "COLUMNS": "100"}
        self.environment["TOOLPLAN_JOURNAL"] = str(folder / "journal.db")
        (folder / "tools.py").write_text(TOOLS, encoding="utf-8")

    def plan(self, *calls: str, answer: str = "done", **arguments: Any) -> str:
        """Write a plan that calls these tools with these arguments, and return its name."""
        steps = [
            {"tool_name": name, "arguments": {k: v for k, v in arguments.items() if k in NEEDS.get(name, ())}}
            for name in calls
        ]
        return self.write({"steps": steps, "answer": answer})

    def write(self, plan: Any) -> str:
        (self.folder / "plan.json").write_text(json.dumps(plan, ensure_ascii=False), encoding="utf-8")
        return "plan.json"

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "toolplan", *arguments]

    def __call__(self, *arguments: str, **options: Any) -> Done:
        done = subprocess.run(
            self.command(*arguments),
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            timeout=PATIENCE_SECONDS,
            check=False,
            **{"stdin": subprocess.DEVNULL, **options} if "input" not in options else options,
        )
        assert b"Traceback" not in done.stdout + done.stderr
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self.command(*arguments),
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def wait_until(self, file: str) -> None:
        """Wait until a tool has written the file."""
        until((self.folder / file).exists)


NEEDS = {"noisy": ("n",), "send_email": ("to", "subject"), "quick": ("n",), "wait_for": ("file",)}


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.02)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


# Standard output ------------------------------------------------------------------------------------------------------


def test_json_is_alone_on_standard_output_whatever_the_tools_print(shell) -> None:
    done = shell("run", shell.plan("noisy", n=1), "--tools", "tools.py", "--json")
    assert done.code == 0
    assert done.document["steps"][0]["result"] == {"城市": "北京", "n": "1"}
    for text in ("a tools file prints", "from print", "from the descriptor", "from a program"):
        assert text in done.err
    done = shell("run", shell.plan("noisy", n=1), "--tools", "tools.py", "-q")
    assert done.out == "done\n"


def test_the_output_is_utf8_in_a_locale_that_is_not(shell) -> None:
    shell.environment |= {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    done = shell("demo", "weather-cold", "--language", "zh")
    assert done.code == 0
    assert "低温预警" in done.out


@pytest.mark.parametrize("repeated", [True, False])
def test_models_are_asked_in_turn_until_one_answers(shell, repeated) -> None:
    (shell.folder / "replies.jsonl").write_text('{"text": "{\\"steps\\": [], \\"answer\\": \\"here\\"}"}\n')
    shell.environment["OLLAMA_BASE_URL"] = "http://127.0.0.1:9/v1"  # nobody listens there
    names = ["ollama:nobody", "vllm:nobody", "scripted:replies.jsonl"]
    shell.environment["VLLM_BASE_URL"] = "http://127.0.0.1:9/v1"
    given = [word for name in names for word in ("--model", name)] if repeated else ["--model", ",".join(names)]
    done = shell("ask", "Hello?", "--tools", "tools.py", *given, "--json")
    assert (done.code, done.document["answer"], done.document["inferences"]) == (0, "here", 1)
    assert shell("ask", "Hello?", "--tools", "tools.py", "--model", "nobody:x", "--model", names[2]).code == 2


def test_a_plan_is_piped_in(shell) -> None:
    plan = b'[{"tool_name": "quick", "arguments": {"n": 1}}]'
    assert shell("check", "-", "--tools", "tools.py", input=plan).out == "the plan may run: 1 step\n"


def pipeline(shell: Shell, command: str) -> Done:
    line = command.replace("toolplan", f"'{sys.executable}' -m toolplan")
    return shell_run(shell, ["bash", "-c", line])


def shell_run(shell: Shell, command: Sequence[str]) -> Done:
    done = subprocess.run(
        command, cwd=shell.folder, env=shell.environment, capture_output=True, timeout=PATIENCE_SECONDS, check=False
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.mark.parametrize(
    "command",
    [
        "toolplan explain | head -n 1",
        "toolplan explain --json | head -c 5",
        "toolplan --help | true",
        "toolplan demo kickoff | head -n 2",
        "toolplan demo kickoff --json | true",
        "toolplan run plan.json --tools tools.py 2>&1 >/dev/null | true",
    ],
)
def test_a_reader_that_stops_reading_is_no_error(shell, command) -> None:
    shell.plan("quick", n=1)
    done = pipeline(shell, command)
    assert (done.code, done.err) == (0, "")


@pytest.mark.parametrize("closed", ["2>&-", ">&-", "<&-", ">&- 2>&-"])
def test_closed_streams_are_no_error(shell, closed) -> None:
    command = f"toolplan run {shell.plan('noisy', n=1)} --tools tools.py {closed}"
    done = pipeline(shell, f'{{ {command}; echo "code $?" >&3; }} 3>codes')
    assert "Traceback" not in done.out + done.err
    assert (shell.folder / "codes").read_text() == "code 0\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="not run: /dev/full is absent")
@pytest.mark.parametrize("command", ["explain", "explain --json", "--help", "demo kickoff --json"])
def test_a_full_disk_is_one_line(shell, command) -> None:
    done = pipeline(shell, f"toolplan {command} > /dev/full")
    assert done.code == 1
    assert re.fullmatch(r"toolplan: the (output|help) cannot be written: No space left on device\n", done.err)


# Ctrl-C ---------------------------------------------------------------------------------------------------------------


def interrupted(shell: Shell, process: subprocess.Popen[bytes]) -> tuple[Done, float]:
    """Press Ctrl-C, as a terminal does it: for the whole process group."""
    pressed = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert b"Traceback" not in out + err
    return Done(process.returncode, out.decode(), err.decode()), time.monotonic() - pressed


@pytest.mark.parametrize(
    ("tool", "outcome"), [("slow_thread", "cancelled"), ("slow_async", "unknown"), ("slow_process", "cancelled")]
)
def test_ctrl_c_ends_a_call_and_says_what_is_known(shell, tool, outcome) -> None:
    process = shell.start("run", shell.plan("quick", tool, n=1), "--tools", "tools.py", "--json")
    shell.wait_until("running")
    done, seconds = interrupted(shell, process)
    assert done.code == 130
    assert seconds < 30  # not the ten minutes of the call
    assert (done.document["outcome"], done.document["error"]) == ("cancelled", "interrupted")
    assert [step["outcome"] for step in done.document["steps"] if step["tool"] == tool] == [outcome]


@pytest.mark.skipif(os.name == "nt", reason="not run: signals of POSIX")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
@pytest.mark.parametrize("tool", ["slow_thread", "slow_process"])
def test_a_signal_to_end_is_like_ctrl_c(shell, tool, name) -> None:
    number = getattr(signal, name)
    process = shell.start("run", shell.plan("quick", tool, n=1), "--tools", "tools.py", "--json")
    shell.wait_until("running")
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    done = Done(process.returncode, out.decode(), err.decode())
    assert "Traceback" not in done.err
    assert done.code == 128 + number
    assert done.document["outcome"] == "cancelled"


def test_ctrl_c_ends_a_call_that_swallows_it(shell) -> None:
    process = shell.start("run", shell.plan("quick", "stubborn", n=1), "--tools", "tools.py", "--json")
    shell.wait_until("running")
    done, seconds = interrupted(shell, process)
    assert (done.code, done.document["outcome"]) == (130, "cancelled")
    assert done.document["steps"][1]["outcome"] == "unknown"
    assert seconds < 30


def test_ctrl_c_pressed_again_ends_what_nothing_else_can_end(shell) -> None:
    process = shell.start("run", shell.plan("unstoppable"), "--tools", "tools.py", "--json")
    shell.wait_until("running")
    os.killpg(process.pid, signal.SIGINT)
    shell.wait_until("asked")
    os.killpg(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=PATIENCE_SECONDS)  # Python itself complains on standard error
    assert process.returncode == 130
    assert json.loads(out)["steps"][0]["outcome"] == "unknown"


def test_ctrl_c_in_words(shell) -> None:
    process = shell.start("run", shell.plan("slow_async"), "--tools", "tools.py")
    shell.wait_until("running")
    done, _ = interrupted(shell, process)
    assert done.code == 130
    assert done.out.endswith(
        "This did not work: interrupted\nNobody knows whether these took effect: s1 (slow_async).\n"
    )


def test_ctrl_c_while_tools_are_imported(shell) -> None:
    (shell.folder / "sleepy.py").write_text(
        "import pathlib, time\npathlib.Path(__file__).with_name('running').touch()\ntime.sleep(600)\n"
    )
    process = shell.start("tools", "--tools", "sleepy.py", "--json")
    shell.wait_until("running")
    done, _ = interrupted(shell, process)
    assert (done.code, done.document) == (130, {"outcome": "failed", "error": "interrupted"})


def test_a_call_that_timed_out_does_not_keep_the_program(shell) -> None:
    done = shell("run", shell.plan("timed_out"), "--tools", "tools.py", "--json")
    assert (done.code, done.document["steps"][0]["outcome"]) == (1, "failed")
    assert "a call was still running; it was ended with the program" in done.err


# Checking on each save ------------------------------------------------------------------------------------------------

CHECKED = '[{"tool_name": "quick", "arguments": {"n": 1}}]'


def next_line(process: subprocess.Popen[bytes]) -> Any:
    """Return the next document of a process that prints one a line."""
    assert process.stdout is not None
    line = b""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not line.endswith(b"\n"):
        readable, _, _ = select.select([process.stdout], [], [], 1)
        assert readable or time.monotonic() < deadline, "nothing was printed"
        if readable:
            more = os.read(process.stdout.fileno(), 1)
            assert more, "it has ended"
            line += more
    return json.loads(line)


@pytest.mark.parametrize("shape", ["json", "sarif"])
def test_a_watched_plan_is_checked_again_on_each_save(shell, shape) -> None:
    plan = shell.folder / "plan.json"
    plan.write_text(CHECKED)
    process = shell.start("check", "plan.json", "--tools", "tools.py", "--watch", "--format", shape)

    def codes() -> list[str]:
        document = next_line(process)
        if shape == "json":
            return [found["code"] for found in document["diagnostics"]]
        return [result["ruleId"] for result in document["runs"][0]["results"]]

    assert codes() == []
    plan.write_text(CHECKED.replace("quick", "quack"))
    assert codes() == ["TP201"]
    plan.unlink()
    other = shell.folder / "plan.new"
    other.write_text(CHECKED)
    other.replace(plan)
    assert codes() == []
    done, seconds = interrupted(shell, process)
    assert (done.code, done.out) == (0, "")
    assert "interrupted" not in done.err
    assert seconds < 30


def test_a_watched_file_that_cannot_be_read_is_told_and_watched_on(shell) -> None:
    plan = shell.folder / "plan.json"
    plan.write_text(CHECKED)
    process = shell.start("check", "plan.json", "--tools", "tools.py", "--watch", "--json")
    assert next_line(process)["outcome"] == "accepted"
    plan.write_bytes(b"\xff")
    assert "not UTF-8" in next_line(process)["error"]
    plan.write_text(CHECKED)
    assert next_line(process)["outcome"] == "accepted"
    assert interrupted(shell, process)[0].code == 0


# A terminal -----------------------------------------------------------------------------------------------------------


class Terminal:
    """A terminal of a certain size with a program in it, and what one sees there.

    Understands what a live view uses: line ends, colours, the cursor up, erasing a line, hiding the cursor.
    """

    def __init__(self, shell: Shell, *arguments: str, rows: int = 24, columns: int = 80, **environment: str) -> None:
        import fcntl
        import pty
        import termios

        self.columns = columns
        self.raw = ""
        self._bytes = b""
        self.pid, self._end = pty.fork()
        if self.pid == 0:
            os.chdir(shell.folder)
            settings = {name: value for name, value in shell.environment.items() if name != "COLUMNS"}
            os.execve(sys.executable, shell.command(*arguments), {**settings, **environment})
        fcntl.ioctl(self._end, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self) -> bool:
        """Take in what has been written; return whether there may be more."""
        readable, _, _ = select.select([self._end], [], [], 0.05)
        if readable:
            try:
                data = os.read(self._end, 65536)
            except OSError:
                return False
            if not data:
                return False
            self._bytes += data
            self.raw = self._bytes.decode(errors="ignore")
        return True

    def wait_for(self, text: str) -> None:
        until(lambda: text in self.raw or not self.read() or None)
        assert text in self.raw

    def type(self, keys: str) -> None:
        os.write(self._end, keys.encode())

    def end(self) -> int:
        """Wait for the program's end; return its exit code."""
        until(lambda: not self.read())
        _, status = os.waitpid(self.pid, 0)
        os.close(self._end)
        assert "Traceback" not in self.raw
        assert self.raw.rfind("\x1b[?25l") <= self.raw.rfind("\x1b[?25h"), "the cursor is hidden"
        return os.waitstatus_to_exitcode(status)

    @property
    def lines(self) -> list[str]:
        """Everything that is on the terminal and above it."""
        lines, row, column = [""], 0, 0
        for token in re.finditer(r"\x1b\[([0-9;?]*)([A-Za-z])|[\r\n]|[^\x1b\r\n]+", self.raw):
            text, argument, letter = token[0], token[1], token[2]
            if text == "\n":
                row += 1
                lines += [""] * (row + 1 - len(lines))
            elif text == "\r":
                column = 0
            elif letter == "A":
                row = max(0, row - int(argument or 1))
            elif letter == "K":
                lines[row] = ""
            elif letter is None:
                lines[row] = lines[row][:column].ljust(column) + text
                column = len(lines[row])
        return [line.rstrip() for line in lines]


def test_a_run_is_seen_live(shell) -> None:
    terminal = Terminal(shell, "run", shell.plan("wait_for", file="go"), "--tools", "tools.py")
    terminal.wait_for("等待中")
    assert re.search(r"[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] .{0,8}s1", terminal.raw)
    (shell.folder / "go").touch()
    assert terminal.end() == 0
    lines = terminal.lines
    assert lines[0] == "a tools file prints"
    assert lines[1] == "This plan makes 1 call. None of them changes anything."
    assert any(re.fullmatch(r'✓ s1     +\d+\.\d\d s  wait_for\(file="go"\) → "go"', line) for line in lines)
    assert not any(re.match("[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]", line) for line in lines)
    assert "\x1b[32m" in terminal.raw
    assert [line for line in lines if line][-1] == "done"


def test_a_watched_plan_on_a_terminal_that_is_cleared(shell) -> None:
    plan = shell.folder / "plan.json"
    plan.write_text(CHECKED)
    terminal = Terminal(shell, "check", "plan.json", "--tools", "tools.py", "--watch")
    terminal.wait_for("watching plan.json; Ctrl-C ends it")
    plan.write_text(CHECKED.replace("quick", "quack"))
    terminal.wait_for("1 problem")
    assert terminal.raw.count("\x1b[2J\x1b[H") == 2
    assert "the plan may run: 1 step" in terminal.raw.partition("\x1b[2J\x1b[H")[2]
    terminal.type("\x03")
    assert terminal.end() == 0


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_terminal_without_colours(shell, environment) -> None:
    terminal = Terminal(shell, "run", shell.plan("quick", n=1), "--tools", "tools.py", **environment)
    assert terminal.end() == 0
    assert not re.search(r"\x1b\[[0-9;]*(3[0-7]|9[0-7])[;m]", terminal.raw)
    if environment.get("TERM") == "dumb":
        assert "\x1b" not in terminal.raw


def test_a_thousand_steps_in_a_terminal(shell) -> None:
    plan = {
        "steps": [{"for_each": "range(1000)", "as": "i", "do": [{"tool_name": "quick", "arguments": {"n": "{i}"}}]}]
    }
    terminal = Terminal(shell, "run", shell.write({**plan, "answer": "fertig"}), "--tools", "tools.py", rows=20)
    assert terminal.end() == 0
    rows = [line for line in terminal.lines if line.startswith("✓ s2[")]
    assert {row.split()[1] for row in rows} == {f"s2[{number}]" for number in range(1000)}
    assert len(rows) == 1000
    assert all(row.endswith("…") for row in rows)
    width = max(sum(2 if ch > "\u2e80" else 1 for ch in row) for row in rows)
    assert width <= terminal.columns


MAIL = {"to": "me@example.com", "subject": "低温预警"}


@pytest.mark.parametrize(("keys", "code"), [("y\r", 0), ("n\r", 1), ("\r", 1), ("\x04", 1), ("\x03", 130)])
def test_approval_is_asked_for_before_anything_runs(shell, keys, code) -> None:
    terminal = Terminal(shell, "run", shell.plan("send_email", **MAIL), "--tools", "tools.py")
    terminal.wait_for("Allow it? [y/N] ")
    assert 'to: "me@example.com"' in terminal.raw
    assert 'subject: "低温预警"' in terminal.raw
    assert not (shell.folder / "sent").exists()
    terminal.type(keys)
    assert terminal.end() == code
    assert (shell.folder / "sent").exists() is (code == 0)


def test_a_question_of_the_plan_is_asked(shell) -> None:
    ask = {"ask_user": "哪一天？", "result_variable": "day"}
    plan = shell.write({"steps": [ask], "answer": "好的，{day}"})
    terminal = Terminal(shell, "run", plan, "--tools", "tools.py")
    terminal.wait_for("哪一天？\r\n> ")
    terminal.type("星期一\r")
    assert terminal.end() == 0
    assert "好的，星期一" in terminal.lines


def test_ctrl_c_in_a_terminal_gives_it_back(shell) -> None:
    terminal = Terminal(shell, "run", shell.plan("slow_thread"), "--tools", "tools.py")
    shell.wait_until("running")
    terminal.type("\x03")
    assert terminal.end() == 130
    assert any(line.startswith("- s1 ") for line in terminal.lines), terminal.lines


def test_a_demo_shows_the_recorded_reply_as_it_comes(shell) -> None:
    terminal = Terminal(shell, "demo", "weather-cold", "--language", "zh")
    terminal.wait_for("请 recorded:weather-cold.zh 制定计划")
    assert terminal.end() == 0
    assert "模型的回复是事先录制的" in terminal.raw
    assert '"tool_name": "get_weather"' in terminal.raw
    assert not any('"tool_name"' in line for line in terminal.lines)


# Starting -------------------------------------------------------------------------------------------------------------

BLOCKED = ("pydantic_ai", "openai", "anthropic", "google", "httpx", "starlette", "uvicorn", "tiktoken", "pytest")


def test_the_demo_needs_the_core_packages_only(shell) -> None:
    code = f"""
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {BLOCKED!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
from toolplan.cli import main
main(["demo", "--json"])
"""
    done = shell_run(shell, [sys.executable, "-c", code])
    assert (done.code, done.err) == (0, "")
    assert [demo["as_expected"] for demo in done.document["demos"]] == [True] * 6


def test_the_command_line_starts_without_what_only_commands_need(shell) -> None:
    code = "import sys, toolplan.cli; print('\\n'.join(sys.modules))"
    loaded = set(shell_run(shell, [sys.executable, "-c", code]).out.split())
    heavy = {"pydantic", "pydantic_ai", "jsonschema_rs", "json_repair", "asyncio", "griffe", "rich", "sqlite3", "httpx"}
    assert not heavy & loaded
    assert not {name for name in loaded if name.startswith(("toolplan.agent", "toolplan.parse", "toolplan.tools"))}


def test_the_script_is_installed() -> None:
    from importlib.metadata import entry_points

    [script] = [entry for entry in entry_points(group="console_scripts") if entry.name == "toolplan"]
    assert script.value == "toolplan.cli:main"
