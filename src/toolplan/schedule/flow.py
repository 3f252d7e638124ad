"""The dataflow: frames issue statements, cells carry values, tickets keep order, failures cut.

See `machine.py` for the idea. This part knows nothing about particular statements.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import cast

from toolplan.effects import Access
from toolplan.errors import EvaluationError
from toolplan.expressions import fill
from toolplan.plan import FAIL, AskModel, AskUser, Call, ForEach, OnError, While
from toolplan.schedule.events import Command, StepOutcome, StepRecord
from toolplan.schedule.order import FailScope, OrderTable, Path, Ticket
from toolplan.schedule.program import Collect, Node, NodeBlock, Program
from toolplan.schedule.state import NOTHING, Cell, Failure, Frame, Instance
from toolplan.values import Json, Value

__all__ = ["Flow", "remember", "values_of"]


class Flow:
    """What all statements have in common: being issued, waiting for values and for their turn, ending."""

    def __init__(self, program: Program, *, window: int, independent: bool) -> None:
        self.records: list[StepRecord] = []
        """What happened, in the order in which it began; `path` sorts it by written order."""
        self._independent = independent
        self._holds_back = program.holds_back and not independent
        self._order = OrderTable()
        self._root = Frame(program.root, (), {}, None, FailScope(), (), (), "", window)
        self._agenda: deque[Instance] = deque()
        self._commands: list[Command] = []
        self._failures: list[Failure] = []  # with failure="independent"

    def _abandon_rounds_after(self, inst: Instance, frame: Frame) -> None:
        """Abandon the rounds after this one, if they are not of equal standing."""
        raise NotImplementedError

    def _drop_call(self, inst: Instance) -> bool:
        """Take a call that is given up out of whatever it is in; return whether it was in flight."""
        raise NotImplementedError

    # Frames: issuing statements -----------------------------------------------------------------------------------

    def _advance(self, frame: Frame) -> None:
        """Issue statements until the end, or until control or the window says stop."""
        if frame.finished:
            return
        self._drop_rest(frame)
        nodes = frame.block.nodes
        while frame.next < frame.end and frame.stalled_by is None and not frame.ended:
            if len(frame.children) >= frame.window:
                break
            frame.next += 1
            self._issue(frame, nodes[frame.next - 1], frame.next - 1)
        if frame.next < frame.end and not frame.ended:
            accesses, undeclared, may_fail = frame.block.rest(frame.next)
            scope = frame.scope if may_fail and self._holds_back else None
            frame.rest = self._take_ticket((*frame.path, frame.next), accesses, undeclared, scope)
        elif not frame.issued and frame.stalled_by is None:
            frame.issued = True
            if frame.on_issued is not None:
                frame.on_issued(frame)
        self._maybe_finish(frame)

    def _issue(self, frame: Frame, node: Node, index: int) -> None:
        inst = Instance(node, frame, index)
        frame.children[index] = inst
        env, cells, kind = frame.env, inst.cells, node.kind
        for name in node.captures:
            cell = env.get(name)
            if cell is not None:
                cells[name] = cell
        if node.assigns:
            # A name that begins in the body of a loop ends with the round, so the loop carries only known ones.
            loops = kind is ForEach or kind is While
            inst.joins = {name: Cell() for name in node.assigns if not loops or name in cells}
            env.update(inst.joins)
        if node.defines:
            cell = inst.defined = Cell()
            for name in node.defines:
                env[name] = cell
        if frame.history is not None:
            frame.history += [(index, name, env[name]) for name in (*(inst.joins or ()), *node.defines)]
        scope = frame.scope if node.may_fail and self._holds_back else None
        inst.ticket = self._take_ticket(inst.path, node.accesses, node.undeclared, scope)
        if node.leaves:
            frame.stalled_by = inst
        self._wait_for(inst, node.waits, cells)

    def _wait_for(self, inst: Instance, names: tuple[str, ...], cells: Mapping[str, Cell]) -> None:
        """Put the instance on the agenda as soon as all the cells are filled."""
        missing = 0
        for name in names:
            cell = cells.get(name)
            if cell is not None and not cell.filled:
                missing += 1
                if cell.waiters is None:
                    cell.waiters = [inst]
                else:
                    cell.waiters.append(inst)
        inst.missing = missing
        if not missing:
            self._agenda.append(inst)

    def _drop_rest(self, frame: Frame) -> None:
        if frame.rest is not None:
            self._return_ticket(frame.rest)
            frame.rest = None

    def _maybe_finish(self, frame: Frame) -> None:
        if frame.finished or frame.children or (frame.next < frame.end and not frame.ended):
            return
        frame.finished = True
        if frame.on_finished is not None:
            frame.on_finished(frame)

    def _open(self, inst: Instance, block: NodeBlock, path: Path, cells: dict[str, Cell], label: str = "") -> Frame:
        """Return a new frame for a body of `inst`, standing among the same groups as `inst` does."""
        frame = inst.frame
        label = frame.label + label
        inner = Frame(block, path, cells, inst, frame.scope, frame.equals, frame.claimed, label, frame.window)
        if frame.parallel:
            inner.equals = (*frame.equals, (frame.path, inst.index))
            inner.claimed = (*frame.claimed, (frame.path, inst.index))
        if frame.history is not None:
            remember(inner)
        return inner

    def _kept(self, frame: Frame) -> dict[str, Cell]:
        """Return the versions that names had when the frame failed: what a program that stopped there would hold.

        Only for a finished frame inside a `try`. Statements before the failing one have ended, so their versions are
        known; a failing statement with bodies has worked out its own.
        """
        failure, versions = frame.failure, frame.history or []
        assert failure is not None
        failing = failure.path[len(frame.path)]
        kept: dict[str, Cell] = {}
        for index, name, cell in versions:
            if index < failing or (frame.parallel and index != failing and cell.value is not None):
                kept[name] = cell
        return kept | (frame.inner_kept or {})

    # Tickets ------------------------------------------------------------------------------------------------------

    def _take_ticket(
        self, path: Path, accesses: tuple[Access, ...], undeclared: bool, scope: FailScope | None
    ) -> Ticket | None:
        if not accesses and not undeclared and scope is None:
            return None
        ticket = Ticket(path, accesses, undeclared, scope)
        self._order.add(ticket)
        if scope is not None:
            scope.pending.add(ticket)
        return ticket

    def _return_ticket(self, ticket: Ticket | None, *, failed: bool = False) -> None:
        """Give a ticket back. A step that failed keeps its place among those that may fail, for ever."""
        if ticket is None:
            return
        self._order.remove(ticket)
        if ticket.scope is not None and not failed:
            ticket.scope.pending.remove(ticket.path)
        self._wake(ticket)

    def _narrow(self, ticket: Ticket | None, accesses: tuple[Access, ...]) -> None:
        """Let a ticket claim only what the arguments, now known, really name."""
        if ticket is None or ticket.accesses == accesses:
            return
        self._order.remove(ticket)
        ticket.accesses = accesses
        self._order.add(ticket)
        self._wake(ticket)

    def _wake(self, ticket: Ticket) -> None:
        if ticket.waiters:
            self._agenda.extend(ticket.waiters)
            ticket.waiters = []

    def _is_blocked(self, inst: Instance) -> bool:
        """Return whether something earlier goes first; if so, the instance is told when that is over."""
        frame = inst.frame
        blocker = None
        if inst.ticket is not None:
            claimed = (*frame.claimed, (frame.path, inst.index)) if frame.parallel else frame.claimed
            blocker = self._order.blocker(inst.ticket, claimed)
        if blocker is None and inst.node.effect and self._holds_back:
            equals = (*frame.equals, (frame.path, inst.index)) if frame.parallel else frame.equals
            blocker = frame.scope.blocker(inst.path, equals)
        if blocker is None:
            return False
        blocker.waiters.append(inst)
        return True

    # Values -------------------------------------------------------------------------------------------------------

    def _is_absent(self, inst: Instance) -> bool:
        cells = inst.cells
        for name in inst.node.waits:
            cell = cells.get(name)
            if cell is None or cell.value is None:
                return True
        return False

    def _scope(self, inst: Instance) -> tuple[dict[str, Json], frozenset[str]]:
        """Return the values that the instance waited for, and the steps they came from."""
        return values_of(inst.node.waits, inst.cells)

    def _fill(self, cell: Cell | None, value: Value | None) -> None:
        """Fill a cell and everything linked to it; whoever waited for its last cell goes on the agenda."""
        if cell is None or cell.filled:
            return
        stack = [cell]
        while stack:
            cell = stack.pop()
            cell.filled = True
            cell.value = value
            for waiter in cell.waiters or ():
                if isinstance(waiter, Cell):
                    stack.append(waiter)
                else:
                    waiter.missing -= 1
                    if not waiter.missing:
                        self._agenda.append(waiter)
            cell.waiters = None

    def _link(self, outer: Cell, inner: Cell | None) -> None:
        """Let `outer` become whatever `inner` becomes."""
        if inner is None:
            self._fill(outer, None)
        elif inner.filled:
            self._fill(outer, inner.value)
        elif inner.waiters is None:
            inner.waiters = [outer]
        else:
            inner.waiters.append(outer)

    # How an instance ends -----------------------------------------------------------------------------------------

    def _succeed(self, inst: Instance, value: Value | None) -> None:
        inst.gone = True
        self._fill(inst.defined, value)
        self._return_ticket(inst.ticket)
        self._child_done(inst)

    def _skip(self, inst: Instance) -> None:
        """Leave a step out because something it uses has no value."""
        inst.gone = True
        self._void(inst)
        self._record(inst, "skipped", error="a value it uses is missing, because its step was skipped or failed")
        self._return_ticket(inst.ticket)
        self._child_done(inst)

    def _fail(self, inst: Instance, message: str, outcome: StepOutcome = "failed") -> None:
        """End a step as failed, as far as its `on_error` lets it."""
        step = inst.node.step
        on_error = step.on_error if isinstance(step, Call | AskModel) else FAIL
        record = self._record(inst, outcome, error=message)
        if on_error.action == "value" and on_error.value is not None:
            try:
                scope, origins = self._scope(inst)
                value = fill(on_error.value, scope)
            except EvaluationError as error:
                message, on_error = f"{message}; its `on_error` value failed too: {error.message}", OnError()
            else:
                if record is not None:
                    record.result = value
                self._succeed(inst, Value(value, origins | {inst.node.id}))
                return
        inst.gone = True
        self._void(inst)
        failure = Failure(inst.path, inst.label, message, on_error.action == "replan")
        if on_error.action == "skip" or self._independent:
            if on_error.action != "skip":
                self._failures.append(failure)
            self._return_ticket(inst.ticket)
            self._child_done(inst)
            return
        self._return_ticket(inst.ticket, failed=True)
        self._child_failed(inst, failure)

    def _void(self, inst: Instance) -> None:
        """Leave every name that the instance would have assigned without a value."""
        self._fill(inst.defined, None)
        for cell in (inst.joins or {}).values():
            self._fill(cell, None)

    def _child_done(self, inst: Instance) -> None:
        frame = inst.frame
        frame.children.pop(inst.index, None)
        if frame.stalled_by is inst:
            frame.stalled_by = None
            self._advance(frame)
        elif frame.next < frame.end and frame.stalled_by is None:
            if len(frame.children) <= frame.window // 2:
                self._advance(frame)
        else:
            self._maybe_finish(frame)

    def _child_failed(self, inst: Instance, failure: Failure) -> None:
        frame = inst.frame
        frame.children.pop(inst.index, None)
        if frame.stalled_by is inst:
            frame.stalled_by = None
        if frame.failure is None or failure.path < frame.failure.path:
            frame.failure = failure
            frame.inner_kept = inst.kept
        if not frame.parallel:
            self._cut(frame, inst.index)
        self._abandon_after(frame)
        self._advance(frame)

    def _abandon_after(self, frame: Frame) -> None:
        """Give up everything that written order would not have reached, up to the nearest `try`."""
        owner = frame.owner
        while owner is not None:
            if owner.trial is not None and not owner.trial.handling:
                return
            if owner.loop is not None:
                self._abandon_rounds_after(owner, frame)
            frame = owner.frame
            if not frame.parallel:
                self._cut(frame, owner.index)
            owner = frame.owner

    def _cut(self, frame: Frame, index: int) -> None:
        """Abandon everything after `index` in the frame."""
        if frame.finished:
            return
        for later in [i for i in frame.children if i > index]:
            self._abandon(frame.children.pop(later))
        if frame.end <= index + 1:
            return
        self._drop_rest(frame)
        self._record_rest_not_run(frame, max(frame.next, index + 1))
        frame.end = index + 1
        if frame.stalled_by is not None and frame.stalled_by.index > index:
            frame.stalled_by = None

    def _abandon(self, inst: Instance) -> None:
        """Drop an instance for good, with everything inside it. A call in flight is cancelled."""
        if inst.gone:
            return
        inst.gone = True
        self._return_ticket(inst.ticket)
        if self._drop_call(inst):
            self._record(inst, "cancelled", error="an earlier step failed")
        elif inst.node.kind is Call:
            self._record(inst, "not_run")
        self._void(inst)
        if inst.loop is not None:
            self._return_ticket(inst.loop.rest)
            inst.loop.rest = None
        frames = [inst.inner] if inst.inner is not None else []
        frames += inst.loop.live.values() if inst.loop is not None else ()
        for frame in frames:
            self._abandon_frame(frame)
        if not frames:
            self._record_bodies_not_run(inst.node, inst.path, inst.frame.label)

    def _abandon_frame(self, frame: Frame) -> None:
        self._drop_rest(frame)
        for child in list(frame.children.values()):
            self._abandon(child)
        frame.children.clear()
        self._record_rest_not_run(frame, frame.next)
        frame.finished = True

    # Records ------------------------------------------------------------------------------------------------------

    def _record(self, inst: Instance, outcome: StepOutcome, *, error: str | None = None) -> StepRecord | None:
        """Note how a call or a question ended; other steps leave no record unless they fail."""
        record = inst.record
        if record is None:
            step = inst.node.step
            if isinstance(step, Call):
                tool = step.tool
            elif isinstance(step, AskModel | AskUser):
                tool = "ask_model" if isinstance(step, AskModel) else "ask_user"
            elif outcome == "failed" and not isinstance(step, Collect):
                tool = _word(step)
            else:
                return None
            record = inst.record = StepRecord(inst.label, tool, inst.path, inst.arguments, origins=inst.origins)
            self.records.append(record)
        record.outcome = outcome
        record.error = error
        return record

    def _record_frame_not_run(self, frame: Frame) -> None:
        for inst in frame.children.values():
            inner = [inst.inner] if inst.inner is not None else []
            inner += inst.loop.live.values() if inst.loop is not None else ()
            for body in inner:
                self._record_frame_not_run(body)
            if not inner and inst.record is None:
                self._record_not_run(inst.node, inst.path, frame.label)
        self._record_rest_not_run(frame, frame.next)

    def _record_rest_not_run(self, frame: Frame, begin: int) -> None:
        for index in range(begin, frame.end):
            self._record_not_run(frame.block.nodes[index], (*frame.path, index), frame.label)

    def _record_not_run(self, node: Node, path: Path, label: str) -> None:
        if node.kind is Call:
            step = cast(Call, node.step)
            self.records.append(StepRecord(step.id + label, step.tool, path, outcome="not_run"))
        else:
            self._record_bodies_not_run(node, path, label)

    def _record_bodies_not_run(self, node: Node, path: Path, label: str) -> None:
        for number, block in enumerate(node.blocks):
            for index, inner in enumerate(block.nodes):
                self._record_not_run(inner, (*path, number, index), label)


def remember(frame: Frame) -> None:
    """Let a frame keep every version of every name from now on."""
    frame.history = [(-1, name, cell) for name, cell in frame.env.items()]


def values_of(names: Iterable[str], cells: Mapping[str, Cell]) -> tuple[dict[str, Json], frozenset[str]]:
    """Return the values of these names and the ids of the steps they came from. Raises `EvaluationError`."""
    scope: dict[str, Json] = {}
    origins = NOTHING
    for name in names:
        cell = cells.get(name)
        if cell is None or cell.value is None:
            raise EvaluationError(f"`{name}` has no value here")
        value = cell.value
        scope[name] = value.data
        if value.origins:
            origins = origins | value.origins if origins else value.origins
    return scope, origins


def _word(step: object) -> str:
    return {"If": "if", "ForEach": "for_each", "While": "while"}.get(type(step).__name__, type(step).__name__.lower())
