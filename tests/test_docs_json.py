"""The page about JSON documents names what the documents hold: no more, no less."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest

from toolplan.schedule.events import StepOutcome

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "json-interface.md"

TOOLS = """
from toolplan import tool

@tool(reads="stock")
def check_stock(item: str) -> int:
    "How many pieces are left."
    return 3
"""
PLAN = '[{"tool_name": "check_stock", "arguments": {"item": "tea"}, "result_variable": "n"}, {"answer": "{n}"}]'
WRONG = '[{"tool_name": "chek_stock", "arguments": {"item": "tea"}}]'


def tables() -> list[tuple[str, dict[str, str]]]:
    """Return the page's tables under the heading that each stands below: what is named, and what is said about it."""
    found: list[tuple[str, dict[str, str]]] = []
    heading = ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            heading = line.strip("# ")
        elif line.startswith("| ---"):
            found.append((heading, {}))
        elif line.startswith("| ") and found and found[-1][0] == heading:
            left, right = (cell.strip() for cell in line.strip("| ").split(" | ")[:2])
            found[-1][1].update(dict.fromkeys(re.findall(r"`([^`]+)`", left), right))
    return found


def named(heading: str, number: int = 0) -> set[str]:
    return set([table for above, table in tables() if above == heading][number])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("documents")
    for name, text in (("tools.py", TOOLS), ("plan.json", PLAN), ("wrong.json", WRONG)):
        (path / name).write_text(text, encoding="utf-8")
    return path


def document(folder: Path, *arguments: str) -> Any:
    command = [sys.executable, "-m", "toolplan", *arguments, "--json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, encoding="utf-8", check=False)
    return json.loads(done.stdout)


def test_a_result(folder: Path) -> None:
    result = document(folder, "run", "plan.json", "--tools", "tools.py")
    assert set(result) == named("`ask`, `run`")
    assert set(result["steps"][0]) == named("A step")
    assert set(result["usage"]) == named("Usage")
    assert {"succeeded", "failed", "rejected", "waiting", "cancelled"} == named("`ask`, `run`", 1)
    assert set(get_args(StepOutcome)) == named("A step", 1) - {"outcome"}


def test_a_diagnostic(folder: Path) -> None:
    result = document(folder, "run", "wrong.json", "--tools", "tools.py")
    everything = named("A diagnostic")
    assert set(result["diagnostics"][0]) <= everything
    assert everything - set(result["diagnostics"][0]) == {"notes"}


def test_a_demo(folder: Path) -> None:
    found = document(folder, "demo", "weather-cold")
    assert named("`demo`") | named("`ask`, `run`") == set(found)


def test_checks(folder: Path) -> None:
    good = document(folder, "check", "plan.json", "--tools", "tools.py")
    bad = document(folder, "check", "wrong.json", "--tools", "tools.py")
    assert set(good) | set(bad) | {"missing"} == named("`check`")
    assert set(bad) - set(good) == {"error"}


def test_the_other_commands(folder: Path) -> None:
    said = dict(next(table for above, table in tables() if above == "The others"))

    def mentioned(command: str) -> set[str]:
        return set(re.findall(r"`([a-z_]+)`", said[command]))

    assert set(document(folder, "show", "plan.json", "--mermaid")) <= mentioned("show")
    assert set(document(folder, "fmt", "plan.json")) == mentioned("fmt") - {"check"}
    assert set(document(folder, "explain", "TP201")) == mentioned("explain")
    prompt = document(folder, "prompt", "How much tea is left?", "--tools", "tools.py")
    assert set(prompt) | set(prompt["messages"][0]) | set(prompt["tokens"]) == mentioned("prompt")
    tool = document(folder, "tools", "--tools", "tools.py")[0]
    assert mentioned("tools") <= set(tool) | set(tool["effects"])


def test_a_command_that_cannot_work(folder: Path) -> None:
    found = document(folder, "run", "nowhere.json", "--tools", "tools.py")
    assert set(found) == named("When the command could not do its work")
    assert found["outcome"] == "usage"
