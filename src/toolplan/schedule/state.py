"""What the machine remembers: cells, instances, frames, loops. Data only; `machine.py` has the transitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolplan.schedule.events import RunOutcome, StepRecord
from toolplan.schedule.order import Exempt, FailScope, Path, Ticket
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

    __slots__ = ("missing", "outcome", "text")

    def __init__(self, outcome: RunOutcome, text: str, missing: tuple[str, ...] = ()) -> None:
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
        "cells",
        "defined",
        "frame",
        "gone",
        "index",
        "inner",
        "joins",
        "kept",
        "key",
        "loop",
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
        self.arguments: dict[str, Json] | None = None
        self.origins = NOTHING
        self.attempt = 0
        self.key = 0
        self.record: StepRecord | None = None
        self.inner: Frame | None = None
        self.loop: Loop | None = None
        self.trial: Trial | None = None
        self.gone = False
        """Finished or abandoned: nothing may happen to it any more (I6)."""

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
        "equals",
        "failure",
        "finished",
        "history",
        "inner_kept",
        "issued",
        "label",
        "next",
        "on_finished",
        "on_issued",
        "owner",
        "parallel",
        "path",
        "rest",
        "scope",
        "stalled_by",
        "window",
    )

    def __init__(
        self,
        block: NodeBlock,
        path: Path,
        env: dict[str, Cell],
        owner: Instance | None,
        scope: FailScope,
        equals: Exempt,
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
        self.equals = equals
        """Groups of equal standing around it: their other rounds or members do not hold it back by failing."""
        self.claimed = claimed
        """`parallel` groups around it: their other members do not exclude it by being undeclared."""
        self.label = label
        self.children: dict[int, Instance] = {}
        self.next = 0
        self.end = len(block.nodes)
        self.ended = ""
        """Left before its end: `exit` (the plan), `break` or `continue` (the loop around it)."""
        self.failure: Failure | None = None
        self.stalled_by: Instance | None = None
        self.rest: Ticket | None = None
        self.parallel = False
        self.issued = False
        self.finished = False
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
        "issued",
        "items",
        "kept",
        "last",
        "live",
        "origins",
        "rest",
        "rounds",
        "testing",
        "unfolding",
    )

    def __init__(self) -> None:
        self.items: list[Json] = []
        self.origins = NOTHING
        self.rounds = 0
        """Rounds begun so far; also the number of the next one."""
        self.live: dict[int, Frame] = {}
        """Rounds that are not finished."""
        self.last: Frame | None = None
        """The newest round, while it still issues statements."""
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
