"""Runs on the command line: listed, shown, answered, approved, resolved, resumed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from journals import read, written
from toolplan.cli.main import main as command
from toolplan.journal import EffectStarted

TOOLS = """
from toolplan import tool

@tool(writes="shop", approval="ask")
def buy(thing: str) -> str:
    return f"bought {thing}"
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOOLPLAN_JOURNAL", str(tmp_path / "state" / "journal.db"))
    (tmp_path / "shop.py").write_text(TOOLS)
    plan = [{"tool_name": "buy", "arguments": {"thing": "a hat"}, "result_variable": "b"}, {"answer": "{b}"}]
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    return tmp_path


def main(arguments: list[str]) -> int:
    with pytest.raises(SystemExit) as end:
        command(arguments)
    return int(str(end.value.code or 0))


def toolplan(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any]:
    code = main([*arguments, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_a_run_is_approved_and_resumed(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert toolplan(capsys, "runs") == (0, [])
    tools = ("--tools", str(shop / "shop.py"))
    code, waiting = toolplan(capsys, "run", str(shop / "plan.json"), *tools)
    run = waiting["run_id"]
    assert (code, waiting["outcome"]) == (3, "waiting")
    assert [(row["run"], row["outcome"]) for row in toolplan(capsys, "runs")[1]] == [(run, "waiting")]
    assert main(["runs", run[:8]]) == 0
    assert f"toolplan approve {run[:12]}" in capsys.readouterr().out
    code, said = toolplan(capsys, "approve", run[:8], "--step", "s1")
    assert (code, said["answered"], said["waits_for"]) == (0, ["s1"], [])
    assert toolplan(capsys, "resume", run[:8], *tools)[1]["answer"] == "bought a hat"
    assert toolplan(capsys, "runs", run)[1]["outcome"] == "succeeded"
    assert toolplan(capsys, "approve", run)[0] == 2


LOOP = [
    {"text": "First the hat.", "tool_calls": [{"name": "buy", "arguments": {"thing": "a hat"}}]},
    {"tool_calls": [{"name": "ask_user", "arguments": {"question": "Which colour?"}}], "expect": "bought a hat"},
    {"text": "There is a hat.", "expect": "red"},
]


def test_a_loop_is_approved_answered_and_resumed(shop: Path) -> None:
    """Each command in a process of its own, with nobody at the terminal."""

    def process(*arguments: str) -> tuple[int, str, str]:
        done = subprocess.run(
            [sys.executable, "-m", "toolplan", *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
        return done.returncode, done.stdout, done.stderr

    for number in range(3):
        (shop / f"{number}.jsonl").write_text("\n".join(map(json.dumps, LOOP[number:])))
    tools = ("--tools", str(shop / "shop.py"), "--quiet", "--model")
    code, _, told = process("ask", "buy a hat", "--mode", "loop", *tools, f"scripted:{shop / '0.jsonl'}")
    assert (code, "s1 (buy)" in told, "toolplan approve " in told) == (3, True, True)
    [row] = json.loads(process("runs", "--json")[1])
    run = row["run"]
    assert (row["outcome"], row["request"]) == ("waiting", "buy a hat")
    shown = process("runs", run)[1]
    assert 'the model asks for buy({"thing": "a hat"})' in shown
    assert f"s1 buy {json.dumps({'thing': 'a hat'})} needs approval" in shown
    assert f"toolplan approve {run[:12]}" in shown
    assert process("approve", run)[0] == 0
    code, answer, told = process("resume", run, *tools, f"scripted:{shop / '1.jsonl'}")
    assert (code, answer) == (3, "Which colour?\n")
    assert f"toolplan answer {run[:12]}" in told
    assert process("answer", run, "red")[0] == 0
    code, answer, _ = process("resume", run, *tools, f"scripted:{shop / '2.jsonl'}")
    assert (code, answer) == (0, "There is a hat.\n")
    shown = process("runs", run)[1]
    for line in (
        "a loop",
        "s1 (buy) was allowed",
        "resumed by",
        "the model says 'There is a hat.'",
        "ended: succeeded",
    ):
        assert line in shown


def test_an_answer_of_the_wrong_kind_says_which_is_asked_for(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = toolplan(capsys, "run", str(shop / "plan.json"), "--tools", str(shop / "shop.py"))[1]["run_id"]
    for words in (["answer", run, "yes"], ["resolve", run, "s1", "happened"]):
        assert main(words) == 2
        said = capsys.readouterr().err
        assert f"toolplan approve {run[:12]}" in said
        assert "has been answered" not in said


def test_a_run_whose_process_was_killed_is_interrupted_at_once(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = (
        "import sys, os; from toolplan.journal import Journal, RunBegun\n"
        "w = Journal(sys.argv[1]).begin(RunBegun('r1')); w.flush(); os.kill(os.getpid(), 9)"
    )
    path = str(shop / "j.db")
    assert subprocess.run([sys.executable, "-c", script, path], check=False).returncode == -9
    assert toolplan(capsys, "runs", "--journal", path)[1][0]["outcome"] == "interrupted"
    assert toolplan(capsys, "runs", "r1", "--journal", path)[1]["outcome"] == "interrupted"


def test_what_to_do_is_said_where_a_run_waits(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(shop / "plan.json"), "--tools", str(shop / "shop.py"), "-q"]) == 3
    said = capsys.readouterr().err
    assert "toolplan approve" in said
    assert "toolplan resume" in said


def test_an_effect_that_nobody_knows_of_is_resolved(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tools = ("--tools", str(shop / "shop.py"))
    _, result = toolplan(capsys, "run", str(shop / "plan.json"), *tools, "--yes")
    run = result["run_id"]
    entries = read(shop / "state" / "journal.db")
    left = entries[: next(i for i, entry in enumerate(entries) if isinstance(entry, EffectStarted)) + 1]
    cut = shop / "cut.db"
    written(cut, left)
    there = ("--journal", str(cut))
    assert toolplan(capsys, "runs", *there)[1][0]["outcome"] == "interrupted"
    code, waiting = toolplan(capsys, "resume", run, *tools, *there)
    assert (code, waiting["steps"][0]["outcome"]) == (3, "unknown")
    assert toolplan(capsys, "resolve", run, "s1", "happened", "--result", "bought", *there)[0] == 2
    assert toolplan(capsys, "resolve", run, "s1", "happened", "--result", '"bought it"', *there)[0] == 0
    assert toolplan(capsys, "resume", run, *tools, *there)[1]["answer"] == "bought it"


def test_a_run_that_cannot_be_resumed_gives_a_whole_document(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tools = ("--tools", str(shop / "shop.py"))
    whole = toolplan(capsys, "run", str(shop / "plan.json"), *tools)[1]
    code, document = toolplan(capsys, "resume", "nothing", *tools, "--journal", str(shop / "none.db"))
    assert (code, document["outcome"], document["steps"]) == (1, "failed", [])
    assert document.keys() == whole.keys()


def test_a_journal_that_nobody_named_is_done_without(
    shop: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (shop / "file").write_text("")
    run = ["run", str(shop / "plan.json"), "--tools", str(shop / "shop.py"), "--yes", "-q"]
    monkeypatch.setenv("TOOLPLAN_JOURNAL", str(shop / "file" / "j.db"))
    assert main(run) == 0
    assert "has no journal" in capsys.readouterr().err
    assert main([*run, "--journal", str(shop / "file" / "j.db")]) != 0
    monkeypatch.setenv("TOOLPLAN_JOURNAL", str(shop / "none" / "j.db"))
    assert main([*run, "--no-journal"]) == 0
    assert not (shop / "none").exists()


def test_where_a_journal_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from toolplan.journal import where

    monkeypatch.delenv("TOOLPLAN_JOURNAL", raising=False)
    monkeypatch.setattr(where.sys, "platform", "linux")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert where.default_path() == tmp_path / "toolplan" / "journal.db"
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert where.default_path().parts[-5:-2] == (*Path.home().parts[-1:], ".local", "state")
