"""The import contracts of `pyproject.toml` hold, and they would notice a breach.

"A request flows one way": a module imports only what is below it. "The pure core does no I/O": what decides never
reads a clock, draws a number, waits or opens anything.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "toolplan"
LINT = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
BANNED_NAMES = {"utils", "util", "common", "misc", "helpers", "manager", "managers", "handler", "handlers", "processor"}


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    """Check the contracts on the package in `folder`/src."""
    return subprocess.run(
        [sys.executable, "-c", LINT],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder / "src"), "NO_COLOR": "1", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_import_contracts_hold() -> None:
    done = lint_imports(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        ("check/__init__.py", "import toolplan.parse", "a request flows one way BROKEN"),
        ("errors.py", "import toolplan.plan", "a request flows one way BROKEN"),
        ("schedule/machine.py", "import time", "the pure core does no I/O BROKEN"),
        ("utils.py", "", "utils"),
    ],
)
def test_a_breach_is_noticed(module: str, line: str, contract: str, tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "src" / "toolplan", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    breached = tmp_path / "src" / "toolplan" / module
    text = breached.read_text(encoding="utf-8") if breached.exists() else ""
    breached.write_text(f"{text}\n{line}\n", encoding="utf-8")
    done = lint_imports(tmp_path)
    assert done.returncode != 0
    assert contract in done.stdout + done.stderr


def test_every_file_is_named_after_what_it_holds() -> None:
    assert [path for path in PACKAGE.rglob("*.py") if path.stem.lower() in BANNED_NAMES] == []


def test_importing_toolplan_imports_nothing_heavy() -> None:
    code = "import sys; from toolplan import Agent, tool; print(*sys.modules, sep='\\n')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"pydantic", "griffe", "jsonschema_rs", "json_repair", "rich", "cyclopts", "pydantic_ai", "openai", "httpx"}
    assert heavy & {name.split(".")[0] for name in done.stdout.split()} == set()
    needed_by_some = {"email", "tomllib", "difflib", "toolplan.models.providers", "toolplan.models.scripted"}
    needed_by_some |= {"toolplan.parse.python_notation.program", "toolplan.models.local"}
    assert needed_by_some & set(done.stdout.split()) == set()
