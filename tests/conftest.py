"""What happens around the tests: markers, and no test that silently does not run.

A test that lacks something on this machine skips with a reason that begins with `not run:`. A developer sees the list
at the end. With TOOLPLAN_RUN_EVERY_TEST=1, as CI sets it, a skipped test fails the run instead: CI has everything.
Only a reason that begins with `not yet supported:` is let through; it names work that is still to be done.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

NOT_YET = "not yet supported:"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the files of tests/golden that differ")


def pytest_configure(config: pytest.Config) -> None:
    # Commands write their runs down; those of the tests are nobody's.
    os.environ["TOOLPLAN_JOURNAL"] = os.path.join(tempfile.mkdtemp(prefix="toolplan-tests-"), "journal.db")
    config.addinivalue_line(
        "markers", "slow: takes many seconds; `make check` leaves it out, `bootstrap.py test` runs it"
    )


@pytest.fixture
def remark(request: pytest.FixtureRequest) -> Iterator[list[str]]:
    """Lines that the test wants to be read after a run that passed, too."""
    lines: list[str] = []
    yield lines
    request.node.user_properties.extend(("remark", line) for line in lines)  # these come back from worker processes


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """A function that compares text with a file below tests/golden; `--update-golden` rewrites the file instead."""

    def compare(name: str, text: str) -> None:
        file = Path(__file__).parent / "golden" / name
        if request.config.getoption("--update-golden"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8", newline="")
        assert file.exists(), f"{file} is absent; --update-golden writes it"
        assert text == file.read_text(encoding="utf-8")

    return compare


def skipped(reporter: object) -> dict[str, str]:
    """Return what was skipped and why; a skipped module counts as one test."""
    reports = getattr(reporter, "stats", {}).get("skipped", [])
    return {report.nodeid: _reason(report) for report in reports}


def _reason(report: pytest.TestReport) -> str:
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    unexcused = [test for test, reason in skipped(reporter).items() if not reason.startswith(NOT_YET)]
    if unexcused and exitstatus == pytest.ExitCode.OK and os.environ.get("TOOLPLAN_RUN_EVERY_TEST"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [report for kind in terminalreporter.stats.values() for report in kind]
    ends = [report for report in reports if getattr(report, "when", None) == "teardown"]
    if remarks := [line for report in ends for name, line in report.user_properties if name == "remark"]:
        terminalreporter.section("remarks")
        for line in remarks:
            terminalreporter.write_line(line)
    tests = skipped(terminalreporter)
    if not tests:
        return
    must_run = bool(os.environ.get("TOOLPLAN_RUN_EVERY_TEST"))
    terminalreporter.section("not run, though every test must run here" if must_run else "not run")
    for test, reason in tests.items():
        terminalreporter.write_line(f"{test}: {reason}")
