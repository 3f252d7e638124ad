"""What is always true of the machine, as checkable functions. The numbers are those of `docs/design/scheduler.md`.

Tests call `check_all` after every event. A broken invariant is a bug, so it is an `AssertionError` that tells the
story of the steps involved.
"""

from __future__ import annotations

from collections.abc import Iterator

from toolplan.effects import conflict
from toolplan.schedule.machine import Machine
from toolplan.schedule.order import Exempt
from toolplan.schedule.state import Frame, Instance
from toolplan.schedule.story import described
from toolplan.schedule.tickets import MAX_EARLY

__all__ = ["check_all"]


def check_all(machine: Machine) -> None:
    """Raise `AssertionError` if an invariant that can be seen in the machine's present state does not hold."""
    _Check(machine).all()


class _Check:
    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.running = [inst for inst in machine.running.values() if inst.node.tool is not None]

    def all(self) -> None:
        self.i1_inputs_have_values()
        self.i2_one_attempt()
        self.i8_no_conflict()
        self.i9_nothing_can_fail_before_an_effect()
        self.i10_nothing_can_leave_before_what_counts()
        self.i11_nothing_is_forgotten()

    def story(self, inst: Instance) -> str:
        """Return what is known about a step, for the message of a broken invariant."""
        return self.machine.story.tell(inst) if self.machine.story is not None else described(inst)

    def i1_inputs_have_values(self) -> None:
        for inst in self.running:
            assert inst.missing == 0, f"I1: {inst.missing} values of a running step are missing: {self.story(inst)}"
            assert inst.arguments is not None, f"I1: a step runs without arguments: {self.story(inst)}"
            assert not inst.gone, f"I6: a step runs, but it has ended: {self.story(inst)}"

    def i2_one_attempt(self) -> None:
        assert len({id(inst) for inst in self.running}) == len(self.running), "I2: a step has two running attempts"

    def i8_no_conflict(self) -> None:
        for position, first in enumerate(self.running):
            for second in self.running[position + 1 :]:
                if _conflict(first, second) and not _claimed_independent(first, second):
                    stories = f"{self.story(first)}\n{self.story(second)}"
                    raise AssertionError(f"I8: two steps run together, but their effects conflict: {stories}")

    def i9_nothing_can_fail_before_an_effect(self) -> None:
        for inst in self.running:
            frame = inst.frame
            if inst.node.effect and frame.scope is not None:
                earlier = frame.scope.blocker(inst.path, inst.equals())
                assert earlier is None, (
                    f"I9: an effect happens, but what stands at {earlier and earlier.path} can still fail: "
                    f"{self.story(inst)}"
                )

    def i10_nothing_can_leave_before_what_counts(self) -> None:
        for inst in self.machine.running.values():
            if not inst.node.early:
                for gate in inst.frame.gates:
                    earlier = gate.pending.last_before(inst.path)
                    assert earlier is None, (
                        f"I10: a step runs, but what stands at {earlier and earlier.path} may still leave before it: "
                        f"{self.story(inst)}"
                    )
        assert len(self.machine.early) <= MAX_EARLY, "I10: too much has begun that may not be needed"

    def i11_nothing_is_forgotten(self) -> None:
        if self.machine.finished is not None or self.machine.is_stopping:
            return
        waiting = {id(inst) for inst in self.machine.waiting()}
        for inst in _unfinished(self.machine.root):
            at_work = inst.inner is not None or inst.loop is not None or inst.missing > 0 or id(inst) in waiting
            blocked = inst.blocker is not None and inst in inst.blocker.waiters
            assert at_work or blocked, f"I11: a step waits for nothing: {self.story(inst)}"


def _unfinished(frame: Frame) -> Iterator[Instance]:
    for inst in frame.children.values():
        yield inst
        inner = [inst.inner] if inst.inner is not None and not inst.inner.finished else []
        for body in [*inner, *(inst.loop.live.values() if inst.loop is not None else ())]:
            yield from _unfinished(body)


def _conflict(a: Instance, b: Instance) -> bool:
    assert a.node.tool is not None
    assert b.node.tool is not None
    return any(
        conflict(one, other)
        for one in a.node.tool.accesses(a.arguments or {})
        for other in b.node.tool.accesses(b.arguments or {})
    )


def _claimed_independent(a: Instance, b: Instance) -> bool:
    if not (a.node.undeclared or b.node.undeclared):
        return False
    mine, theirs = dict(_groups(a)), dict(_groups(b))
    return any(group in theirs and theirs[group] != member for group, member in mine.items())


def _groups(inst: Instance) -> Exempt:
    frame = inst.frame
    return (*frame.claimed, (frame.path, inst.index)) if frame.parallel else frame.claimed
