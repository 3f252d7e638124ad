"""One random plan, run as written and run overlapping: what is different, in words."""

from __future__ import annotations

import json
from dataclasses import dataclass
from random import Random
from typing import Any

from order_trials.plans import random_plan
from order_trials.reduce import reduced
from order_trials.world import Kind, World, answer, random_kinds, read
from toolplan.check import check
from toolplan.diagnostics import Severity
from toolplan.errors import PlanRejected
from toolplan.parse import parse
from toolplan.plan import Plan
from toolplan.schedule import StepRecord
from toolplan.testing import Reference, Simulation, run_in_written_order, simulate
from toolplan.tools import ToolSet

ENDED = ("succeeded", "failed", "unknown", "skipped")


@dataclass(frozen=True)
class Outcome:
    """What a comparison found: `difference` is None when the runs agree."""

    plan: dict[str, Any]
    kinds: list[Kind]
    difference: str | None
    settings: dict[str, Any]
    reference: Reference
    simulation: Simulation
    expected: World

    def __str__(self) -> str:
        text = json.dumps(self.plan)
        tools = [kind for kind in self.kinds if f'"{kind.name}"' in text]
        return f"{self.difference}\nthe tools: {tools}\nthe settings: {self.settings}\nthe plan: {text}"


def smallest(outcome: Outcome) -> Outcome:
    """Return the comparison of the smallest plan that still shows a disagreement."""

    def still_bad(plan: dict[str, Any]) -> bool:
        try:
            return compare(plan, outcome.kinds, **outcome.settings).difference is not None
        except (Refused, PlanRejected):
            return False

    return compare(reduced(outcome.plan, still_bad), outcome.kinds, **outcome.settings)


class Refused(Exception):
    """The checker does not let this random plan run."""


def checked(plan: dict[str, Any], tools: ToolSet) -> Any:
    reading = parse(json.dumps(plan), tools=tools)
    assert isinstance(reading, Plan)
    try:
        return check(reading, tools)
    except PlanRejected as rejected:
        raise Refused("; ".join(d.code for d in rejected.diagnostics if d.severity is Severity.ERROR)) from None


def trial(rng: Random, *, size: int = 14, **settings: Any) -> Outcome:
    """Return how one random plan on random tools behaves. Raises `Refused` when the plan may not run."""
    kinds = random_kinds(rng)
    plan = random_plan(rng, kinds, size)
    settings.setdefault("seed", rng.randrange(1 << 16))
    settings.setdefault("max_concurrency", rng.choice([None, None, 1, 2, 5]))
    settings.setdefault("window", rng.choice([512, 512, 512, 2, 1]))
    settings.setdefault("speculate", rng.random() < 0.3)
    return compare(plan, kinds, **settings)


def compare(plan: dict[str, Any], kinds: list[Kind], *, failure: str = "written-order", **settings: Any) -> Outcome:
    """Return how the plan's overlapping run differs from its written-order run."""
    expected, actual = World(kinds), World(kinds)
    reference = run_in_written_order(
        checked(plan, expected.tools),
        ask=answer,
        read=read,
        failure=failure,
        durations=expected.takes,
        effects_at=expected.effect_at,
    )
    simulation = simulate(
        checked(plan, actual.tools),
        ask=answer,
        read=read,
        failure=failure,
        durations=actual.duration,
        effects_at=actual.effect_at,
        **settings,
    )
    return Outcome(
        plan,
        kinds,
        _difference(reference, simulation, expected, actual),
        {**settings, "failure": failure},
        reference,
        simulation,
        expected,
    )


def left_behind(rng: Random) -> str | None:
    """Return what is wrong with a run in which late calls cannot be stopped, None when nothing is.

    How such a run ends depends on when they end after all; but nothing that touches the same may run beside them.
    """
    kinds = random_kinds(rng)
    plan = random_plan(rng, kinds)
    world = World(kinds)
    simulation = simulate(
        checked(plan, world.tools),
        ask=answer,
        read=read,
        seed=rng.randrange(1 << 16),
        durations=world.duration,
        keeps_going=lambda tool: world.kinds[tool].is_late,
    )
    if simulation.finish is None:
        return f"the run never ends: {json.dumps(plan)}"
    spans = [(tool, arguments, begun, begun + world.lasts(tool, ended - begun))
             for tool, arguments, begun, ended in simulation.spans]  # fmt: skip
    for index, one in enumerate(spans):
        for other in spans[:index]:
            if one[2] < other[3] and other[2] < one[3] and world.meet(other, one):
                return f"{other} and {one} touch the same at the same time: {json.dumps(plan)}"
    return None


def cancelled(rng: Random) -> str | None:
    """Return what is wrong with a run that is cancelled at some moment, None when nothing is.

    At every moment the effects on a cell are the first of those that written order has, so they are when it ends.
    """
    kinds = random_kinds(rng)
    plan = random_plan(rng, kinds)
    seed, failure = rng.randrange(1 << 16), rng.choice(["written-order", "independent"])
    whole = compare(plan, kinds, seed=seed, failure=failure)
    world = World(kinds)
    simulation = simulate(
        checked(plan, world.tools),
        ask=answer,
        read=read,
        seed=seed,
        failure=failure,
        durations=world.duration,
        effects_at=world.effect_at,
        cancel_at=rng.random() * (whole.simulation.seconds + 0.01),
    )
    if simulation.finish is None:
        return f"the run never ends: {json.dumps(plan)}"
    open_ = [record.id for record in simulation.records if record.outcome in ("running", "waiting")]
    if open_:
        return f"the run has ended, and these have not: {open_}: {json.dumps(plan)}"
    for cell, log in world.log.items():
        if log != whole.expected.log[cell][: len(log)]:
            return f"the effects on {cell} are {log}, as written {whole.expected.log[cell]}: {json.dumps(plan)}"
    made = [(span[0], json.dumps(span[1])) for span in simulation.spans]
    told = [(r.tool, json.dumps(r.arguments)) for r in simulation.records for _ in range(r.attempts)]
    if sorted(made) != sorted(told for told in told if told[0].startswith("t")):
        return f"{sorted(made)} were made, {sorted(told)} are told: {json.dumps(plan)}"
    return None


def _difference(reference: Reference, simulation: Simulation, expected: World, actual: World) -> str | None:
    finish = simulation.finish
    if finish is None:
        return "the run never ends"
    if open_ := [record.id for record in simulation.records if record.outcome in ("running", "waiting")]:
        return f"the run has ended, and these have not: {open_}"
    ends = (finish.outcome, finish.text, finish.error, finish.failed_step)
    if ends != (reference.outcome, reference.text, reference.error, reference.failed_step):
        return f"it ends {ends}, as written {_end(reference)}"
    for cell in expected.cells:
        if actual.log[cell] != expected.log[cell]:
            return f"the effects on {cell} are {actual.log[cell]}, as written {expected.log[cell]}"
    if actual.cells != expected.cells:
        return f"the store is {actual.cells}, as written {expected.cells}"
    if sorted(actual.apart, key=repr) != sorted(expected.apart, key=repr):
        return f"the effects apart are {actual.apart}, as written {expected.apart}"
    if sorted(simulation.notes) != sorted(reference.notes):
        return f"the notes are {simulation.notes}, as written {reference.notes}"
    return _rows(reference, simulation, expected)


def _end(reference: Reference) -> Any:
    return (reference.outcome, reference.text, reference.error, reference.failed_step)


def _rows(reference: Reference, simulation: Simulation, world: World) -> str | None:
    """Compare the rows of all calls. Those of calls without effects may be more, for they may run for nothing."""
    made = {record.id: _row(record) for record in simulation.records if record.outcome in ENDED and _counts(record)}
    wanted = {record.id: _row(record) for record in reference.records}
    for step, row in wanted.items():
        if made.get(step) != row:
            return f"{step} ends {made.get(step)}, as written {row}"
    for step, row in made.items():
        kind = world.kinds.get(row[0])
        is_free = row[0] == "ask_model" if kind is None else not kind.has_effects
        is_made = row[-1] > 0
        if step not in wanted and is_made and not is_free:
            return f"{step} ends {row}, as written it is never reached"
    return None


def _counts(record: StepRecord) -> bool:
    return record.tool in ("ask_user", "ask_model") or record.tool.startswith("t")


def _row(record: StepRecord) -> tuple[Any, ...]:
    error = record.error if record.outcome != "skipped" else None
    return record.tool, record.outcome, json.dumps(record.result), error, record.attempts
