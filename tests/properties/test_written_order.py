"""Whatever overlaps, a run leaves the same world as running the steps one after the other (P3).

Each example is a number from which random tools and a random plan are made (`order_trials`). A disagreement is shown
with the smallest plan that still has it. `TOOLPLAN_ORDER_PLANS=20000` makes the run a long one; `python -m bench order`
does the same and counts.
"""

from __future__ import annotations

import os
from random import Random
from typing import Any

from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from order_trials.agreement import Outcome, Refused, cancelled, left_behind, smallest, trial
from order_trials.claims import disagreement, random_trial

PLANS = int(os.environ.get("TOOLPLAN_ORDER_PLANS", "0"))

seeds = st.integers(0, 2**63)


def times(usual: int) -> Any:
    """Run a test so many times, or as often as the environment says. The reducing is our own."""
    return settings(
        max_examples=PLANS or usual,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.reuse, Phase.generate],
    )


def agree(seed: int, **how: Any) -> None:
    try:
        outcome: Outcome = trial(Random(seed), **how)
    except Refused:
        return
    assert outcome.difference is None, f"seed {seed}: {smallest(outcome)}"


@times(400)
@given(seed=seeds)
def test_overlap_changes_nothing(seed: int) -> None:
    agree(seed)


@times(100)
@given(seed=seeds)
def test_a_small_window_changes_nothing(seed: int) -> None:
    agree(seed, window=2, size=20)


@times(150)
@given(seed=seeds)
def test_what_begins_early_changes_nothing(seed: int) -> None:
    agree(seed, speculate=True)


@times(200)
@given(seed=seeds)
def test_independent_failures_leave_out_only_what_uses_them(seed: int) -> None:
    agree(seed, failure="independent")


@times(150)
@given(seed=seeds)
def test_nothing_is_made_beside_a_call_that_could_not_be_stopped(seed: int) -> None:
    try:
        fault = left_behind(Random(seed))
    except Refused:
        return
    assert fault is None, f"seed {seed}: {fault}"


@times(150)
@given(seed=seeds)
def test_a_cancelled_run_has_done_the_first_effects_of_the_written_order(seed: int) -> None:
    try:
        fault = cancelled(Random(seed))
    except Refused:
        return
    assert fault is None, f"seed {seed}: {fault}"


@times(60)
@given(seed=seeds)
@example(seed=2782)  # a name that only the handler of a failure assigns anew
def test_a_step_waits_for_what_the_explanation_says_and_for_nothing_else(seed: int) -> None:
    try:
        fault = disagreement(*random_trial(Random(seed)))
    except Refused:
        return
    assert fault is None, f"seed {seed}: {fault}"


@times(30)
@given(seed=seeds)
def test_explanations_of_independent_failures(seed: int) -> None:
    try:
        fault = disagreement(*random_trial(Random(seed)), failure="independent")
    except Refused:
        return
    assert fault is None, f"seed {seed}: {fault}"
