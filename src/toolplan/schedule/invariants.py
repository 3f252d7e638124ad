"""What is always true of the machine, as checkable functions. The numbers are those of `docs/design/scheduler.md`.

Tests call `check_all` after every event. A broken invariant is a bug, so it is an `AssertionError` that tells the
story of the steps involved.
"""

from __future__ import annotations

from collections.abc import Sequence

from toolplan.effects import conflict
from toolplan.schedule.machine import Machine
from toolplan.schedule.order import Exempt
from toolplan.schedule.state import Instance

__all__ = ["check_all"]


def check_all(machine: Machine) -> None:
    """Raise `AssertionError` if an invariant that can be seen in the machine's present state does not hold."""
    running = [inst for inst in machine.running.values() if inst.node.tool is not None]
    _i1_inputs_have_values(running)
    _i2_one_attempt(running)
    _i8_no_conflict(running)
    _i9_nothing_can_fail_before_an_effect(running)


def _i1_inputs_have_values(running: Sequence[Instance]) -> None:
    for inst in running:
        assert inst.missing == 0, f"I1: {story(inst)} runs, but {inst.missing} of its values are missing"
        assert inst.arguments is not None, f"I1: {story(inst)} runs without arguments"
        assert not inst.gone, f"I6: {story(inst)} runs, but it has ended"


def _i2_one_attempt(running: Sequence[Instance]) -> None:
    assert len({id(inst) for inst in running}) == len(running), "I2: a step has two running attempts"


def _i8_no_conflict(running: Sequence[Instance]) -> None:
    for position, first in enumerate(running):
        for second in running[position + 1 :]:
            if _conflict(first, second) and not _claimed_independent(first, second):
                raise AssertionError(f"I8: {story(first)} and {story(second)} run together, but their effects conflict")


def _i9_nothing_can_fail_before_an_effect(running: Sequence[Instance]) -> None:
    for inst in running:
        if inst.node.effect:
            frame = inst.frame
            equals = (*frame.equals, (frame.path, inst.index)) if frame.parallel else frame.equals
            earlier = frame.scope.blocker(inst.path, equals)
            assert earlier is None, (
                f"I9: {story(inst)} runs, but what stands at {earlier and earlier.path} can still fail"
            )


def _conflict(a: Instance, b: Instance) -> bool:
    assert a.node.tool is not None
    assert b.node.tool is not None
    return any(
        conflict(one, other)
        for one in a.node.tool.effects.accesses(a.arguments)
        for other in b.node.tool.effects.accesses(b.arguments)
    )


def _claimed_independent(a: Instance, b: Instance) -> bool:
    if not (a.node.undeclared or b.node.undeclared):
        return False
    mine, theirs = dict(_groups(a)), dict(_groups(b))
    return any(group in theirs and theirs[group] != member for group, member in mine.items())


def _groups(inst: Instance) -> Exempt:
    frame = inst.frame
    return (*frame.claimed, (frame.path, inst.index)) if frame.parallel else frame.claimed


def story(inst: Instance) -> str:
    """Return what is known about a step, for the message of a broken invariant."""
    record = inst.record
    tool = inst.node.tool.name if inst.node.tool is not None else inst.node.kind.__name__
    outcome = record.outcome if record is not None else "issued"
    return f"{inst.label} ({tool}, {outcome}, attempt {inst.attempt}, path {inst.path})"
