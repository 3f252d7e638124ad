"""A short soak: runs of every kind at once leave nothing behind. How fast and how fair is for `bench soak` to say."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from bench import soak


async def test_many_runs_of_mixed_plans_leave_nothing_behind() -> None:
    found = await soak.soak(seconds=2, runs=3 * len(soak.PLANS))
    assert found.left == {"tasks": 0, "timers": 0, "threads": 0, "places": 0}
    assert set(found.completed) == set(soak.PLANS)
    assert found.runs >= len(soak.PLANS)


def test_fairness_is_one_when_all_get_the_same_and_a_share_when_one_gets_all() -> None:
    assert soak.jain([3, 3, 3, 3]) == 1.0
    assert soak.jain([12, 0, 0, 0]) == 0.25
