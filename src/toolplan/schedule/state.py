"""What the machine remembers: cells, instances, frames, loops. Data only; `machine.py` has the transitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolplan.plan import ForEach
from toolplan.schedule.events import RunOutcome, StepOutcome, StepRecord
from toolplan.schedule.order import Exempt, FailScope, Gate, Path, Ticket
from toolplan.schedule.program import Node, NodeBlock
from toolplan.values import Json, Value

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["NOTHING", "UNCOLLECTED", "Cell", "Ending", "Failure", "Frame", "Instance", "Loop", "Trial"]

NOTHING: frozenset[str] = frozenset()

UNCOLLECTED = object()
"""Stands in for the value of a round that did not get as far as handing one over."""


class Cell:
    """One version of one name: empty, filled with a value, or filled with nothing (its step has no value)."""

    __slots__ = ("filled", "value", "waiters")

    def __init__(self, value: Value | None = None) -> None:
        self.filled = value is not None
        self.value = value
        self.waiters: list[Instance | Cell] | None = None


class Failure:
    """Why a step failed, and where it stands in the written order."""

    __slots__ = ("message", "path", "replan", "step")

    def __init__(self, path: Path, step: str, message: str, replan: bool = False) -> None:
        self.path = path
        self.step = step
        self.message = message
        self.replan = replan


class Ending:
    """How the plan ends, once everything before has finished."""

    __slots__ = ("missing", "outcome", "path", "text")

    def __init__(self, path: Path, outcome: RunOutcome, text: str, missing: tuple[str, ...] = ()) -> None:
        self.path = path
        self.outcome: RunOutcome = outcome
        self.text = text
        self.missing = missing


class Instance:
    """One statement in one round.

    `cells` are the versions that its names had when it was issued; `defined` the new version of its result's names;
    `joins` the new versions of the names that its bodies may assign.
    """

    __slots__ = (
        "arguments",
        "attempt",
        "blocker",
        "cells",
        "deferred",
        "defined",
        "frame",
        "gone",
        "index",
        "inner",
        "joins",
        "kept",
        "key",
        "loop",
        "loose",
        "may_have_happened",
        "missing",
        "node",
        "origins",
        "path",
        "record",
        "ticket",
        "trial",
    )

    def __init__(self, node: Node, frame: Frame, index: int) -> None:
        self.node = node
        self.frame = frame
        self.index = index
        self.path: Path = (*frame.path, index)
        self.cells: dict[str, Cell] = {}
        self.defined: Cell | None = None
        self.joins: dict[str, Cell] | None = None
        self.kept: dict[str, Cell] | None = None
        """Inside a `try`: the versions that its names had when something in it failed."""
        self.missing = 0
        self.ticket: Ticket | None = None
        self.blocker: Ticket | None = None
        """The ticket before its own that it waits for, or has waited for last."""
        self.arguments: dict[str, Json] | None = None
        self.origins = NOTHING
        self.attempt = 0
        self.key = 0
        self.record: StepRecord | None = None
        self.inner: Frame | None = None
        self.loop: Loop | None = None
        self.trial: Trial | None = None
        self.deferred: tuple[str, StepOutcome] | None = None
        """How it failed, as long as it is not known whether written order reaches it (`speculate`)."""
        self.loose = False
        """Its record is not among those that are kept."""
        self.may_have_happened = False
        """An attempt at its effect ended without anybody knowing whether it took place."""
        self.gone = False
        """Finished or abandoned: nothing may happen to it any more (I6)."""

    @property
    def has_equal_rounds(self) -> bool:
        """Whether it is a loop whose rounds are of equal standing: over a list, and handing nothing on to the next."""
        return self.node.kind is ForEach and not self.joins

    def equals(self) -> Exempt:
        """Return the groups of equal standing around it, outermost first: others in them do not hold it back."""
        groups: list[tuple[Path, int]] = []
        inst: Instance | None = self
        while inst is not None:
            frame: Frame = inst.frame
            if frame.parallel:
                groups.append((frame.path, inst.index))
            inst = frame.owner
            if inst is not None and inst.loop is not None and inst.has_equal_rounds:
                groups.append((inst.path, frame.path[-1]))
        groups.reverse()
        return tuple(groups)

    @property
    def label(self) -> str:
        """The step's id with the rounds around it: `s3`, `s3[0]`, `s3[0][2]`."""
        return self.node.id + self.frame.label


class Frame:
    """One run of a body: the plan, a branch, one round of a loop, the members of a group, a `try` or its handler."""

    __slots__ = (
        "block",
        "children",
        "claimed",
        "end",
        "ended",
        "env",
        "failed",
        "failure",
        "finished",
        "gates",
        "history",
        "inner_kept",
        "is_collected",
        "issued",
        "label",
        "next",
        "on_finished",
        "on_issued",
        "overwritten",
        "owner",
        "parallel",
        "path",
        "rest",
        "scope",
        "tail",
        "undecided",
        "window",
    )

    def __init__(
        self,
        block: NodeBlock,
        path: Path,
        env: dict[str, Cell],
        owner: Instance | None,
        scope: FailScope | None,
        claimed: Exempt,
        label: str,
        window: int,
    ) -> None:
        self.block = block
        self.window = window
        self.path = path
        self.env = env
        self.owner = owner
        self.scope = scope
        self.claimed = claimed
        """`parallel` groups around it: their other members do not exclude it by being undeclared."""
        self.label = label
        self.children: dict[int, Instance] = {}
        self.next = 0
        self.end = len(block.nodes)
        self.ended = ""
        """Left before its end: `exit` (the plan), `break` or `continue` (the loop around it)."""
        self.failure: Failure | None = None
        self.undecided: set[int] | None = None
        """The statements that may still leave it. Behind them nothing is issued, except with `speculate`."""
        self.gates: tuple[Gate, ...] = ()
        """With `speculate`: what is kept of the undecided statements around and in it, innermost first."""
        self.overwritten: list[tuple[int, str, Cell | None]] | None = None
        """With `speculate`: the versions of names that statements behind an undecided one have replaced."""
        self.rest: Ticket | None = None
        """The place of the statements that are not issued yet."""
        self.tail: Ticket | None = None
        """The place of what a round hands over at its end."""
        self.is_collected = False
        self.parallel = False
        self.issued = False
        self.finished = False
        self.failed: set[int] | None = None
        """The members of a group that have failed."""
        self.inner_kept: dict[str, Cell] | None = None
        """Inside a `try`: what the statement that failed has kept of its own bodies."""
        self.history: list[tuple[int, str, Cell]] | None = None
        """Inside a `try`: every version of every name, with the statement that made it (-1: it was there before)."""
        self.on_issued: Callable[[Frame], None] | None = None
        self.on_finished: Callable[[Frame], None] | None = None


class Loop:
    """The state of a `for_each` or `while`."""

    __slots__ = (
        "carried",
        "collected",
        "ended",
        "failure",
        "gates",
        "is_plain",
        "issued",
        "items",
        "kept",
        "live",
        "origins",
        "rest",
        "rounds",
        "sources",
        "testing",
        "undecided",
        "unfolding",
        "window",
    )

    def __init__(self, window: int) -> None:
        self.window = window
        """How many statements of a round may be unfinished."""
        self.is_plain = False
        """Whether each of its rounds is issued in one go, and hands nothing on."""
        self.items: list[Json] = []
        self.origins = NOTHING
        """The steps that the elements came from."""
        self.sources = NOTHING
        """The steps that the collected values came from."""
        self.rounds = 0
        """Rounds begun so far; also the number of the next one."""
        self.live: dict[int, Frame] = {}
        """Rounds that are not finished."""
        self.undecided: set[int] = set()
        """Rounds that still issue statements, or that may still be left."""
        self.gates: tuple[Gate, ...] = ()
        """With `speculate`: what may still leave this loop."""
        self.carried: dict[str, Cell] = {}
        """The names that go from round to round, as the newest issued round left them."""
        self.kept: dict[str, Cell] | None = None
        """Inside a `try`: the versions that its names had when a round failed."""
        self.collected: list[Json | object] = []
        self.rest: Ticket | None = None
        self.ended = ""
        self.failure: Failure | None = None
        self.testing = False
        self.issued = False
        self.unfolding = False


class Trial:
    """The state of a `try`."""

    __slots__ = ("handling",)

    def __init__(self) -> None:
        self.handling = False
