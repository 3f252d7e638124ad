"""What a plan leaves to the one that goes on after it is what its written order would have left."""

from __future__ import annotations

from random import Random

from hypothesis import example, given
from hypothesis import strategies as st

from order_trials.agreement import Refused, trial
from order_trials.agreement import checked as check_plan
from properties.test_written_order import times
from toolplan.plan import Try, walk
from toolplan.replan import name_of
from toolplan.schedule import Program


def differing(seed: int) -> str | None:
    """Return a name that stands for something else than it should, None when all is well."""
    try:
        outcome = trial(Random(seed), size=10, keep_names=True)
    except Refused:
        return None
    assert outcome.difference is None, f"keeping names makes a difference, seed {seed}"
    simulation, expected = outcome.simulation, outcome.reference.names
    if simulation.finish is None or simulation.finish.outcome == "cancelled":
        return None
    left = {name: value.data for name, value in simulation.names.items()}
    plan = check_plan(outcome.plan, outcome.expected.tools)
    kept = Program(plan.plan, plan.tools, keep_names=True).used
    kept = kept - {step.error for step in walk(plan.plan.steps) if isinstance(step, Try)}  # they end with the handler
    for name in kept & (left.keys() | expected.keys()):
        if name in left and name in expected and left[name] != expected[name]:
            return f"{name}: {left[name]!r}, but written order leaves {expected[name]!r}"
        if name in expected and name not in left:
            return f"{name} is missing; written order leaves {expected[name]!r}"
    return None


@times(150)
@given(seed=st.integers(0, 2**63))
@example(seed=62023)  # a round that fails before its `break`
def test_names_mean_what_written_order_leaves(seed: int) -> None:
    found = differing(seed)
    assert found is None, f"seed {seed}: {found}"


def test_names_of_rounds_are_names() -> None:
    assert [name_of(label) for label in ("s1", "s3[0]", "s3[10][2]")] == ["s1", "s3_0", "s3_10_2"]
