"""Runs that are killed anywhere and resumed: nothing twice, nothing lost."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from toolplan.testing.kill import Witness, fight_over, kill_at_random, kill_everywhere

sys.path.insert(0, __file__.rpartition("/")[0])
from kill_tools import LOOP, PLAN, make_agent


@pytest.fixture(scope="module")
def witness() -> Iterator[Witness]:
    with Witness() as found:
        yield found


def test_a_run_may_be_killed_at_any_boundary(witness: Witness) -> None:
    """A few of the boundaries; `python -m bench kill` takes them all."""
    report = kill_everywhere(make_agent, PLAN, witness, every=3)
    assert report.problems == []
    assert report.kills >= 12
    assert report.happened + report.did_not_happen


def test_a_run_may_be_killed_at_any_instant(witness: Witness) -> None:
    report = kill_at_random(make_agent, PLAN, witness, times=10, seed=1, longest=0.05)
    assert report.problems == []
    assert report.kills >= 10


def test_two_processes_do_not_work_on_one_run(witness: Witness) -> None:
    report = fight_over(make_agent, PLAN, witness, takeovers=6)
    assert report.problems == []
    assert report.held


def test_a_loop_may_be_killed_at_any_boundary(witness: Witness) -> None:
    """A few of the boundaries; `python -m bench kill` takes them all."""
    report = kill_everywhere(make_agent, LOOP, witness, every=6)
    assert report.problems == []
    assert report.kills >= 12
    assert report.happened + report.did_not_happen


def test_a_loop_may_be_killed_at_any_instant(witness: Witness) -> None:
    report = kill_at_random(make_agent, LOOP, witness, times=10, seed=2, longest=0.05)
    assert report.problems == []
    assert report.kills >= 10


def test_two_processes_do_not_work_on_one_loop(witness: Witness) -> None:
    report = fight_over(make_agent, LOOP, witness, takeovers=6)
    assert report.problems == []
    assert report.held
