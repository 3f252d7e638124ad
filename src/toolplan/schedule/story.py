"""What each step went through: for the message of an illegal transition or of a broken invariant (a habit of dask).

`NEXT` is the table of an instance's life, the one of `docs/design/scheduler.md`. A `Story` is told every state that an
instance enters; it raises `AssertionError` for one that may not follow, with what the step has been through so far. It
costs time, so a machine keeps one only where it is asked to (`Machine(story=True)`), as in simulations.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from toolplan.schedule.order import Path
    from toolplan.schedule.state import Instance

__all__ = ["LENGTH", "NEXT", "State", "Story", "described"]

State: TypeAlias = Literal[
    "issued",
    "blocked",
    "ready",
    "held",
    "running",
    "resting",
    "open",
    "deferred",
    "succeeded",
    "failed",
    "skipped",
    "dropped",
]

LENGTH = 20
"""How many of the last states of a step its story tells."""

STEPS = 10_000
"""Of how many steps the stories are kept, the newest."""

NEXT: Mapping[State, frozenset[State]] = {
    "issued": frozenset({"blocked", "ready", "open", "deferred", "succeeded", "failed", "skipped", "dropped"}),
    "blocked": frozenset({"blocked", "ready", "deferred", "succeeded", "failed", "skipped", "dropped"}),
    "ready": frozenset({"held", "running", "dropped"}),
    "held": frozenset({"ready", "deferred", "succeeded", "failed", "dropped"}),
    "running": frozenset({"resting", "deferred", "succeeded", "failed", "dropped"}),
    "resting": frozenset({"ready", "dropped"}),
    "open": frozenset({"open", "deferred", "succeeded", "failed", "dropped"}),
    "deferred": frozenset({"deferred", "failed", "dropped"}),
    "succeeded": frozenset(),
    "failed": frozenset(),
    "skipped": frozenset(),
    "dropped": frozenset(),
}
"""Which states may follow which. The last four end an instance's life (I6)."""


class Story:
    """The last states of each step, oldest first, with a word about each."""

    def __init__(self) -> None:
        self._of: dict[Path, deque[tuple[State, str]]] = {}
        self._attempts: dict[int, Instance] = {}

    def enter(self, inst: Instance, state: State, what: str = "") -> None:
        """Note that the instance enters a state. Raises `AssertionError` when it may not."""
        past = self._of.get(inst.path)
        if past is None or state == "issued":
            if len(self._of) >= STEPS:
                del self._of[next(iter(self._of))]
            past = self._of[inst.path] = deque(maxlen=LENGTH)
        before = past[-1][0] if past else None
        past.append((state, what))
        if before is not None and state not in NEXT[before]:
            raise AssertionError(f"a step that is {before} cannot become {state}: {self.tell(inst)}")

    def begin_attempt(self, inst: Instance) -> None:
        """Note that the instance enters `running`, and that events with its key are about it."""
        if len(self._attempts) >= STEPS:
            del self._attempts[next(iter(self._attempts))]
        self._attempts[inst.key] = inst
        self.enter(inst, "running", f"attempt {inst.attempt}, key {inst.key}")

    def tell_attempt(self, key: int) -> str:
        """Return the story of the step that made the attempt with this key, as far as it is still known."""
        inst = self._attempts.get(key)
        return self.tell(inst) if inst is not None else "nothing is known about it"

    def tell(self, inst: Instance) -> str:
        """Return the story of a step, a line a state."""
        past = self._of.get(inst.path, ())
        return "\n".join([described(inst), *(f"  {state}{': ' if what else ''}{what}" for state, what in past)])


def described(inst: Instance) -> str:
    """Return what the machine knows about a step, on one line."""
    record = inst.record
    tool = inst.node.tool.name if inst.node.tool is not None else inst.node.kind.__name__
    outcome = record.outcome if record is not None else "not begun"
    return f"{inst.label} ({tool}, {outcome}, attempt {inst.attempt}, path {inst.path})"
