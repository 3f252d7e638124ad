"""Can every step run, and do steps wait only for earlier ones?"""

from __future__ import annotations

import itertools

from toolplan.check.spots import part_place
from toolplan.diagnostics import Diagnostic
from toolplan.diagnostics import names as say
from toolplan.diagnostics import reading as say_reading
from toolplan.diagnostics.source import Place
from toolplan.expressions import Expression, Template
from toolplan.expressions.templates import names_of
from toolplan.plan import (
    Answer,
    AskModel,
    AskUser,
    Block,
    Break,
    Call,
    Cannot,
    Continue,
    ForEach,
    If,
    Let,
    Parallel,
    Plan,
    Replan,
    Step,
    Try,
    While,
    blocks_of,
    walk,
)

__all__ = ["gets_to_end", "order"]


def order(plan: Plan) -> list[Diagnostic]:
    """Return the steps that never run, `break` and `continue` without a loop, and what waits for later steps."""
    if not plan.steps and plan.answer is None:
        return [say_reading.empty_plan(Place())]
    found: list[Diagnostic] = []
    _reach(plan.steps, False, found)
    if any(isinstance(step, Call) and step.depends_on for step in walk(plan.steps)):
        found += _waiting(plan)
    return found


def gets_to_end(steps: Block) -> bool:
    """Return whether some path gets through these steps, so that what follows them can run."""
    return _reach(steps, True, [])


def _reach(steps: Block, in_loop: bool, found: list[Diagnostic]) -> bool:
    """Note what cannot run; return whether some path gets to the end of the block."""
    for index, step in enumerate(steps):
        if isinstance(step, Break | Continue) and not in_loop:
            found.append(say_reading.outside_loop(step.place, type(step).__name__.lower()))
        if not _passes(step, in_loop, found):
            if index + 1 < len(steps):
                found.append(say.unreachable(steps[index + 1].place, step.place))
            return False
    return True


def _passes(step: Step, in_loop: bool, found: list[Diagnostic]) -> bool:
    if isinstance(step, Call) and not step.on_error.do:  # by far the commonest, so the first to be asked for
        return True
    if isinstance(step, Answer | Cannot | Replan | Break | Continue):
        return False
    if isinstance(step, If | Try):
        passing = [_reach(block, in_loop, found) for block in blocks_of(step)]
        return any(passing)
    if isinstance(step, Parallel):
        return _reach(step.members, in_loop, found)
    if isinstance(step, ForEach | While):
        _reach(step.body, True, found)
    elif isinstance(step, Call | AskModel) and step.on_error.do:
        _reach(step.on_error.do, in_loop, found)
    return True


# --- waiting --------------------------------------------------------------------------------------------------------


def _waiting(plan: Plan) -> list[Diagnostic]:
    """Return the `depends_on` that lead to later steps: circles as circles, each once, the others one by one."""
    steps = list(walk(plan.steps))
    position = {id(step): index for index, step in enumerate(steps)}
    known = {name: step for step in reversed(steps) for name in (step.id, *_names(step))}
    waits = {id(step): _waits_for(step, known) for step in steps}
    found: list[Diagnostic] = []
    in_circle: set[int] = set()
    for step in steps:
        if not isinstance(step, Call) or id(step) in in_circle:
            continue
        for index, name in enumerate(step.depends_on):
            later = known.get(name)
            if later is None or position[id(later)] < position[id(step)]:
                continue
            path = _path(later, step, waits)
            place = part_place(step, "depends_on", index)
            if path is None:
                found.append(say.forward_dependency(place, _called(step), _called(later), later.place))
            else:
                circle = [step, *path[:-1]]
                in_circle.update(id(each) for each in circle)
                uses = [place, *(waits[id(a)][id(b)][1] for a, b in itertools.pairwise(path))]
                found.append(say.circle([_called(each) for each in circle], uses[: len(circle)]))
                break
    return found


def _waits_for(step: Step, known: dict[str, Step]) -> dict[int, tuple[Step, Place]]:
    """Return the steps that `step` waits for, each with the place that says so."""
    waits: dict[int, tuple[Step, Place]] = {}
    if isinstance(step, Call):
        for index, name in enumerate(step.depends_on):
            if name in known:
                waits.setdefault(id(known[name]), (known[name], part_place(step, "depends_on", index)))
    for part in _parts(step):
        names = part.names if isinstance(part, Expression) else names_of(part)
        for name in sorted(names & known.keys()):
            waits.setdefault(id(known[name]), (known[name], part.place))
    for block in blocks_of(step):
        for inner in block:
            waits.setdefault(id(inner), (inner, inner.place))
    return waits


def _parts(step: Step) -> list[Template | Expression]:
    if isinstance(step, Call):
        return [template for _, template in step.arguments.fields]
    if isinstance(step, If | While):
        return [step.test]
    if isinstance(step, ForEach):
        return [step.items]
    if isinstance(step, AskModel):
        return [step.question, step.data]
    return [step.question] if isinstance(step, AskUser) else []


def _path(start: Step, goal: Step, waits: dict[int, dict[int, tuple[Step, Place]]]) -> list[Step] | None:
    """Return the shortest way from `start` to `goal` along what steps wait for, both ends included, or None."""
    before: dict[int, Step | None] = {id(start): None}
    queue = [start]
    for step in queue:
        if step is goal:
            path: list[Step] = []
            at: Step | None = step
            while at is not None:
                path.append(at)
                at = before[id(at)]
            return path[::-1]
        for following, _ in waits[id(step)].values():
            if id(following) not in before:
                before[id(following)] = step
                queue.append(following)
    return None


def _names(step: Step) -> tuple[str, ...]:
    if isinstance(step, Let):
        return tuple(name for name, _ in step.values)
    return step.defines if isinstance(step, Call | ForEach | AskUser | AskModel) else ()


def _called(step: Step) -> str:
    """Return what the plan calls a step, its id where it calls it nothing."""
    if isinstance(step, Let):
        return step.values[0][0] if step.values else step.id
    return getattr(step, "result", None) or step.id
