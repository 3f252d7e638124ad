"""What an explanation of order claims, held against runs of the same plan.

In a run where one call takes long and everything else no time at all, a call begins before the long one has ended
exactly if it does not wait for it, be it over others. So one such run for each call shows all that is said of it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from random import Random
from typing import Any

from order_trials.agreement import checked
from order_trials.plans import random_plan
from order_trials.world import TOO_LONG, Kind, World, answer, random_kinds, read
from toolplan.explain import Row, Wait, rows_of
from toolplan.plan import Call, ForEach, Try, While
from toolplan.schedule import Program, StepRecord
from toolplan.testing import Simulation, simulate

LONG = 1000.0
Place = tuple[str, tuple[int, ...]]
"""A step and the rounds it stands in."""


class Claims:
    """The waits of a plan's steps, by place."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows: dict[str, Row] = {}
        self.waits: dict[str, list[Wait]] = defaultdict(list)
        self.between: dict[str, list[Wait]] = defaultdict(list)
        self.loops: dict[str, tuple[str, ...]] = {}
        self.inside: dict[str, list[str]] = defaultdict(list)
        self.body: dict[str, list[str]] = defaultdict(list)
        for row in rows:
            around = [rows[index] for index, _ in row.inside]
            if row.id not in self.rows or row.node.kind is not Call:
                self.rows.setdefault(row.id, row)
            self.waits[row.id] += row.waits
            self.between[row.id] += row.between
            self.loops[row.id] = tuple(each.id for each in around if each.node.kind in (ForEach, While))
            for each, (_, number) in zip(around, row.inside, strict=True):
                if row.id != each.id:
                    self.inside[each.id].append(row.id)
                    if each.node.kind is not Try or number == 0:
                        self.body[each.id].append(row.id)

    def related(self) -> dict[str, set[str]]:
        """Return, for each step, all that it may wait for, directly or over others, in whatever round."""
        direct: dict[str, set[str]] = {}
        for step in self.rows:
            found = set[str]()
            for wait in (*self.waits[step], *self.between[step]):
                found.add(wait.on)
                if wait.whole or wait.kind in ("control", "failure", "value"):
                    found |= set(self.inside[wait.on]) if wait.whole or self.decides(wait) else set()
            direct[step] = found
        closed: dict[str, set[str]] = {}
        for step in self.rows:
            seen, stack = set[str](), [step]
            while stack:
                for other in direct[stack.pop()] - seen:
                    seen.add(other)
                    stack.append(other)
            closed[step] = seen
        return closed

    def decides(self, wait: Wait) -> bool:
        """Whether the wait is for a statement that has to be decided, with what may leave inside of it."""
        return bool(self.rows[wait.on].node.leaves) or self.rows[wait.on].node.kind in (ForEach, While)


def random_trial(rng: Random) -> tuple[dict[str, Any], list[Kind]]:
    """Return a plan and its tools. None of these has a limit of its own, for that is no matter of order."""
    kinds = [replace(kind, max_concurrency=None) for kind in random_kinds(rng)]
    return random_plan(rng, kinds, 10), kinds


def disagreement(plan: dict[str, Any], kinds: list[Kind], *, failure: str = "written-order") -> str | None:
    """Return where the explanation of a plan and its runs differ, None when they agree.

    Makes each of the first twelve calls the long one. A certain wait must hold; and what begins after the long call
    must wait for it, directly or over others, as far as the explanation says.
    """
    claims = claims_of(plan, kinds, failure=failure)
    related = claims.related()
    for place in list(spans(run(plan, kinds, (), failure)))[:12]:
        simulation = run(plan, kinds, [shown(place)], failure)
        if simulation.finish is None:
            return f"the run never ends: {json.dumps(plan)}"
        ran = spans(simulation)
        for wrong in wrong_claims(claims, ran):
            return f"{wrong}: {json.dumps(plan)}"
        long = ran.get(place)
        if long is None or seconds_of(long) < LONG:
            continue
        for other, record in ran.items():
            is_after = (record.started_seconds or 0.0) >= (long.finished_seconds or 0.0)
            if other != place and is_after and place[0] not in related[other[0]]:
                return f"{record.id} waits for {long.id}, and nothing says why: {json.dumps(plan)}"
    return None


def shown(place: Place) -> str:
    return place[0] + "".join(f"[{number}]" for number in place[1])


def seconds_of(record: StepRecord) -> float:
    return (record.finished_seconds or 0.0) - (record.started_seconds or 0.0)


def split(label: str) -> Place:
    step, *rounds = label.split("[")
    return step, tuple(int(each.rstrip("]")) for each in rounds)


def run(plan: dict[str, Any], kinds: list[Kind], long: Iterable[str], failure: str) -> Simulation:
    """Return a run in which only these calls take any time, and late ones as long as it takes to be late."""
    world = World(kinds)
    slow = set(long)

    def seconds(command: Any) -> float:
        kind = world.kinds.get(getattr(command, "tool", ""))
        if kind is not None and kind.is_late:
            return TOO_LONG
        return LONG if command.step in slow else 0.0

    return simulate(
        checked(plan, world.tools),
        ask=answer,
        read=read,
        seconds=seconds,
        effects_at=world.effect_at,
        failure=failure,
    )


def spans(simulation: Simulation) -> dict[Place, StepRecord]:
    return {
        split(record.id): record
        for record in simulation.records
        if record.started_seconds is not None and record.finished_seconds is not None
    }


def claims_of(plan: dict[str, Any], kinds: list[Kind], **settings: Any) -> Claims:
    ready = checked(plan, World(kinds).tools)
    return Claims(rows_of(Program(ready.plan, ready.tools), **settings))


def wrong_claims(claims: Claims, ran: dict[Place, StepRecord]) -> Iterator[str]:
    """Yield each certain wait between two calls that the run did not keep to."""
    for (step, rounds), record in ran.items():
        begun = record.started_seconds or 0.0
        for wait in claims.waits[step]:
            if not wait.certain or (wait.kind == "inside" and not wait.whole):
                continue
            others = claims.body[wait.on] if wait.whole else [wait.on]
            for other in others:
                for (on, its_rounds), earlier in ran.items():
                    if on != other or earlier is record or (earlier.finished_seconds or 0) <= begun:
                        continue
                    if applies(claims, wait, on, its_rounds, step, rounds, ran):
                        yield f"{record.id} begins before {earlier.id} ends, though {step} has {wait}"


def applies(
    claims: Claims,
    wait: Wait,
    on: str,
    its_rounds: tuple[int, ...],
    step: str,
    rounds: tuple[int, ...],
    ran: dict[Place, StepRecord],
) -> bool:
    """Whether a wait is about these two places."""
    ours, theirs = claims.loops[step], claims.loops[on]
    common = 0
    while common < min(len(ours), len(theirs)) and ours[common] == theirs[common]:
        common += 1
    if wait.loop is None:
        return rounds[:common] == its_rounds[:common]
    if wait.rounds == "first":
        depth = ours.index(wait.loop)
        return rounds[:common] == its_rounds[:common] and rounds[depth] == 0
    if wait.rounds == "last":
        depth = theirs.index(wait.loop)
        last = max(r[depth] for (s, r) in ran if s == on and r[:depth] == its_rounds[:depth])
        return rounds[:common] == its_rounds[:common] and its_rounds[depth] == last
    depth = ours.index(wait.loop)
    if rounds[:depth] != its_rounds[:depth]:
        return False
    if wait.rounds == "previous":
        return its_rounds[depth] == rounds[depth] - 1
    return its_rounds[depth] < rounds[depth]
