"""A test that does not run fails the run where every test must run (decision 0004), and is listed everywhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import pytest

def test_that_runs(remark):
    remark.append("worth reading")

def test_that_may_not_run():
    {body}
"""
SKIP = 'pytest.skip("{reason}")'


def run(folder: Path, body: str, *, every_test_must_run: bool) -> subprocess.CompletedProcess[str]:
    """Run two tests, the second with this body, below our own `conftest.py`."""
    shutil.copy(Path(__file__).with_name("conftest.py"), folder)
    (folder / "test_it.py").write_text(TESTS.format(body=body), encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if name != "TOOLPLAN_RUN_EVERY_TEST"}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    if every_test_must_run:
        environment["TOOLPLAN_RUN_EVERY_TEST"] = "1"
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder), str(folder)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("pass", 0),
        (SKIP.format(reason="not yet supported: replan"), 0),
        (SKIP.format(reason="not run: ../shared/data is absent"), 1),
        (SKIP.format(reason="some other reason"), 1),
        ('pytest.importorskip("no_such_module_anywhere")', 1),
        ("assert False", 1),
    ],
)
def test_where_every_test_must_run_a_skip_is_a_failure(tmp_path: Path, body: str, code: int) -> None:
    done = run(tmp_path, body, every_test_must_run=True)
    assert done.returncode == code, done.stdout
    assert done.stdout.rstrip().splitlines()[-1].startswith(("1 passed, 1 skipped", "2 passed", "1 failed, 1 passed"))


def test_elsewhere_a_skip_is_only_listed(tmp_path: Path) -> None:
    done = run(tmp_path, SKIP.format(reason="not run: no browser"), every_test_must_run=False)
    assert done.returncode == 0
    assert "test_it.py::test_that_may_not_run: not run: no browser" in done.stdout
    assert "worth reading" in done.stdout, "remarks are shown after a run that passed"
