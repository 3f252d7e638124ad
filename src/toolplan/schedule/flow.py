"""The dataflow: frames issue statements, cells carry values, tickets keep order, failures cut.

See `machine.py` for the idea. This part knows nothing about particular statements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from toolplan.errors import EvaluationError
from toolplan.expressions import fill
from toolplan.plan import FAIL, AskModel, Call, ForEach, OnError, While
from toolplan.schedule.events import Command, StepOutcome
from toolplan.schedule.order import FailScope, Gate, Path
from toolplan.schedule.program import EXIT, Node, NodeBlock, Program
from toolplan.schedule.records import NOT_NEEDED
from toolplan.schedule.state import NOTHING, Cell, Ending, Failure, Frame, Instance
from toolplan.schedule.tickets import Tickets
from toolplan.values import Json, Value

__all__ = ["Flow", "known_values", "remember", "values_of"]


class Flow(Tickets):
    """What all statements have in common: being issued, waiting for values and for their turn, ending."""

    _reads_go_on = False
    """With failure="reads-go-on": a failure holds back the effects after it, and nothing else."""
    clean: Callable[[Instance, str], str] | None = None
    """Takes out of why a step fails what nobody is to read, if somebody knows of any such thing."""

    def __init__(self, program: Program, *, window: int, independent: bool, speculate: bool, story: bool) -> None:
        super().__init__(program, story=story)
        self._speculate = speculate
        scope = None if independent else FailScope()
        self._root = Frame(program.root, (), {}, None, scope, (), "", window)
        if speculate and program.root.leaves & EXIT:
            self._root.gates = (Gate(EXIT),)
        self._commands: list[Command] = []
        self._failures: list[Failure] = []  # with failure="independent"
        self._ending: Ending | None = None

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
        rest = frame.rest
        if rest is not None:
            frame.rest = None
            self._withdraw(rest)
        index, end, is_issued = frame.next, frame.end, True
        if index < end and not frame.ended:
            nodes, children, window = frame.block.nodes, frame.children, frame.window
            while index < end and len(children) < window and (frame.gates or not frame.undecided):
                self._issue(frame, nodes[index], index)
                index += 1
            frame.next = index
            is_issued = index >= end
            if not is_issued:
                accesses, undeclared, may_fail, leaves = frame.block.rest(index)
                scope = frame.scope if may_fail and self._holds_back else None
                gates = self._left_by(leaves, frame)
                frame.rest = self._take_ticket((*frame.path, index), accesses, undeclared, scope, gates)
        if rest is not None:
            self._wake(rest)
        if is_issued and not frame.issued and not frame.undecided:
            frame.issued = True
            if frame.on_issued is not None:
                frame.on_issued(frame)
        if not frame.children:
            self._maybe_finish(frame)

    def _issue(self, frame: Frame, node: Node, index: int) -> None:
        inst = Instance(node, frame, index)
        frame.children[index] = inst
        env, cells, is_filled = frame.env, inst.cells, True
        for name in node.captures:
            cell = env.get(name)
            if cell is not None:
                cells[name] = cell
                is_filled = is_filled and cell.filled
        if frame.undecided:
            _remember_overwritten(frame, node, index)
        if node.assigns:
            # A name that begins in the body of a loop ends with the round, so the loop carries only known ones.
            loops = node.kind is ForEach or node.kind is While
            inst.joins = {name: Cell() for name in node.assigns if not loops or name in cells}
            env.update(inst.joins)
        if node.defines:
            cell = inst.defined = Cell()
            for name in node.defines:
                env[name] = cell
        if frame.history is not None:
            frame.history += [(index, name, env[name]) for name in (*(inst.joins or ()), *node.defines)]
        if self._holds_back or not node.is_free:
            scope = frame.scope if node.may_fail and self._holds_back else None
            gates = self._left_by(node.leaves, frame)
            inst.ticket = self._take_ticket(inst.path, node.accesses, node.undeclared, scope, gates)
            if node.leaves:
                frame.undecided = frame.undecided or set()
                frame.undecided.add(index)
        if self.story is not None:
            self.story.enter(inst, "issued", f"uses {', '.join(node.waits)}" if node.waits else "")
        if is_filled:  # all that it waits for is among what it captures
            self._agenda.append(inst)
        else:
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

    def _open(
        self,
        inst: Instance,
        block: NodeBlock,
        path: Path,
        cells: dict[str, Cell],
        label: str = "",
        *,
        leaves: bool = True,
    ) -> Frame:
        """Return a new frame for a body of `inst`, standing among the same groups as `inst` does.

        `leaves`: it may leave names behind; a body that leaves none need not remember them.
        """
        frame = inst.frame
        label = frame.label + label
        inner = Frame(block, path, cells, inst, frame.scope, frame.claimed, label, frame.window)
        inner.gates = frame.gates
        if frame.parallel:
            inner.claimed = (*frame.claimed, (frame.path, inst.index))
        if frame.history is not None and leaves:
            remember(inner)
        return inner

    def _kept(self, frame: Frame) -> dict[str, Cell]:
        """Return the versions that names had when the frame failed: what a program that stopped there would hold.

        Only for a finished frame inside a `try`, or where the plan is to be gone on with. Statements before the failing
        one have ended, so their versions are known; a failing statement with bodies has worked out its own. Of the
        equals behind it (`parallel`), those that have not failed count too, but for the names that it assigns itself;
        among equals a version without a value counts for nothing.
        """
        failure, versions = frame.failure, frame.history or []
        assert failure is not None
        failing = failure.path[len(frame.path)]
        own = {name for index, name, _ in versions if index == failing}
        if frame.parallel:
            versions = [version for version in versions if version[2].value is not None]
        kept = {name: cell for index, name, cell in versions if index < failing}
        kept |= {name: cell for name, cell in (frame.inner_kept or {}).items() if name in own}
        if frame.parallel:
            failed = frame.failed or ()
            settled = {name for name in own if name in kept and kept[name].value is not None}
            for index, name, cell in versions:
                if index > failing and index not in failed and name not in settled:
                    kept[name] = cell
        return kept

    # Values -------------------------------------------------------------------------------------------------------

    def _is_absent(self, inst: Instance) -> bool:
        """Return whether a value that the instance waited for does not exist, because its step was skipped."""
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
        if self.story is not None:
            self.story.enter(inst, "succeeded")
        cell = inst.defined
        if cell is not None:
            if cell.waiters is None and not cell.filled:
                cell.filled = True
                cell.value = value
            else:
                self._fill(cell, value)
        if inst.ticket is not None:
            self._return_ticket(inst.ticket)
        self._child_done(inst)

    def _skip(self, inst: Instance) -> None:
        """Leave a step out because something it uses has no value."""
        inst.gone = True
        if self.story is not None:
            self.story.enter(inst, "skipped")
        self._void(inst)
        self._record(inst, "skipped", error="a value it uses is missing, because its step was skipped or failed")
        if inst.record is not None and inst.frame.gates:
            self._follow(inst)
        self._return_ticket(inst.ticket)
        self._child_done(inst)

    def _fail(self, inst: Instance, message: str, outcome: StepOutcome = "failed") -> None:
        """End a step as failed, as far as its `on_error` lets it, and as soon as written order has come to it."""
        if self.clean is not None:
            message = self.clean(inst, message)
        step = inst.node.step
        on_error = step.on_error if isinstance(step, Call | AskModel) else FAIL
        reason = message
        if on_error.action == "value" and on_error.value is not None:
            try:
                scope, origins = self._scope(inst)
                value = fill(on_error.value, scope)
            except EvaluationError as error:
                reason, on_error = f"{message}; its `on_error` value failed too: {error.message}", OnError()
            else:
                self._record_failure(inst, outcome, reason)
                if inst.record is not None:
                    inst.record.result = value
                self._succeed(inst, Value(value, origins | {inst.node.id}))
                return
        if inst.frame.gates and on_error.action != "skip" and (undecided := self._undecided_before(inst)):
            if inst.node.kind is Call:
                self._record_failure(inst, outcome, reason)
            inst.deferred = (message, outcome)
            self._wait_behind(inst, undecided)
            return
        self._record_failure(inst, outcome, reason)
        inst.gone = True
        if self.story is not None:
            self.story.enter(inst, "failed", reason)
        self._void(inst)
        failure = Failure(inst.path, inst.label, reason, on_error.action == "replan")
        if on_error.action == "skip" or inst.frame.scope is None:
            if on_error.action != "skip":
                self._failures.append(failure)
            self._return_ticket(inst.ticket)
            self._child_done(inst)
            return
        self._return_ticket(inst.ticket, failed=True)
        self._child_failed(inst, failure)

    def _record_failure(self, inst: Instance, outcome: StepOutcome, reason: str) -> None:
        began = inst.record is not None
        self._record(inst, outcome, error=reason)
        if not began and inst.frame.gates:
            self._follow(inst)

    def _void(self, inst: Instance) -> None:
        """Leave every name that the instance would have assigned without a value."""
        self._fill(inst.defined, None)
        for cell in (inst.joins or {}).values():
            self._fill(cell, None)

    def _child_done(self, inst: Instance) -> None:
        frame = inst.frame
        frame.children.pop(inst.index, None)
        if frame.undecided and inst.index in frame.undecided:
            self._is_decided(frame, inst.index)
            self._advance(frame)
        elif frame.next < frame.end and (frame.gates or not frame.undecided):
            if len(frame.children) <= frame.window // 2:
                self._advance(frame)
        else:
            self._maybe_finish(frame)

    def _is_decided(self, frame: Frame, index: int) -> None:
        """Note that the statement will not leave the frame any more, or has done so."""
        if frame.undecided:
            frame.undecided.discard(index)
            if not frame.undecided:
                frame.overwritten = None

    def _leave(self, frame: Frame, index: int, how: str) -> None:
        """Let the frame be left by the statement at `index`: nothing behind it is needed."""
        frame.ended = how
        if not frame.gates:
            return  # nothing behind it was issued
        for later in [i for i in frame.children if i > index]:
            self._abandon(frame.children.pop(later), is_needed=False)
        frame.undecided = {i for i in frame.undecided or () if i <= index}
        self._take_back_names(frame, index)
        if frame.history is not None:
            frame.history = [version for version in frame.history if version[0] <= index]
        self._drop_early((*frame.path, index + 1), frame.gates)

    def _take_back_names(self, frame: Frame, index: int) -> None:
        """Give every name the version that it had before the statements after `index` assigned it."""
        for i, name, cell in reversed(frame.overwritten or ()):
            if i > index:
                if cell is None:
                    frame.env.pop(name, None)
                else:
                    frame.env[name] = cell

    def _child_failed(self, inst: Instance, failure: Failure) -> None:
        frame = inst.frame
        frame.children.pop(inst.index, None)
        self._is_decided(frame, inst.index)
        if frame.failure is None or failure.path < frame.failure.path:
            frame.failure = failure
            frame.inner_kept = inst.kept
        if frame.parallel:
            frame.failed = frame.failed or set()
            frame.failed.add(inst.index)
        if self._reads_go_on and frame is self._root:
            self._hold_back(frame, inst.index)
        elif not frame.parallel:
            self._cut(frame, inst.index)
        self._abandon_after(frame)
        self._advance(frame)

    def _hold_back(self, frame: Frame, index: int) -> None:
        """Abandon what has effects after `index`, because of a failure; the rest goes on.

        For calls that a model makes at once and by themselves: all of them have been issued.
        """
        for later in [i for i, child in frame.children.items() if i > index and child.node.effect]:
            self._abandon(frame.children.pop(later))

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
        """Abandon everything after `index` in the frame, because of a failure."""
        if frame.finished:
            return
        for later in [i for i in frame.children if i > index]:
            self._abandon(frame.children.pop(later))
        if frame.end <= index + 1:
            return
        self._drop_rest(frame)
        self._record_rest_not_run(frame, max(frame.next, index + 1))
        frame.end = index + 1
        if frame.undecided:
            frame.undecided = {i for i in frame.undecided if i <= index}

    def _abandon(self, inst: Instance, *, is_needed: bool = True) -> None:
        """Drop an instance for good, with everything inside it. A call in flight is cancelled.

        `is_needed=False`: not because of a failure, but because the plan does not come to it.
        """
        if inst.gone:
            return
        inst.gone = True
        if self.story is not None:
            self.story.enter(inst, "dropped", "" if is_needed else "not needed")
        self._return_ticket(inst.ticket)
        is_open = self._drop_call(inst) or (inst.record is not None and inst.record.outcome == "running")
        if inst.node.kind is Call and inst.record is None:
            if is_needed:
                self._record(inst, "not_run")
        elif is_open:
            outcome: StepOutcome = "unknown" if inst.may_have_happened else "cancelled"
            self._record(inst, outcome, error="an earlier step failed" if is_needed else NOT_NEEDED)
        self._void(inst)
        if inst.loop is not None:
            self._return_ticket(inst.loop.rest)
            inst.loop.rest = None
        frames = [inst.inner] if inst.inner is not None else []
        frames += inst.loop.live.values() if inst.loop is not None else ()
        for frame in frames:
            self._abandon_frame(frame, is_needed=is_needed)
        if not frames and is_needed:
            self._record_bodies_not_run(inst.node, inst.path, inst.frame.label)

    def _abandon_frame(self, frame: Frame, *, is_needed: bool = True) -> None:
        self._drop_rest(frame)
        self._return_ticket(frame.tail)
        for child in list(frame.children.values()):
            self._abandon(child, is_needed=is_needed)
        frame.children.clear()
        if is_needed:
            self._record_rest_not_run(frame, frame.next)
        frame.finished = True


def remember(frame: Frame) -> None:
    """Let a frame keep every version of every name from now on."""
    frame.history = [(-1, name, cell) for name, cell in frame.env.items()]


def known_values(names: tuple[str, ...], cells: Mapping[str, Cell]) -> tuple[dict[str, Json], frozenset[str]] | None:
    """Return what `values_of` does, or None when one of the names has no value (yet)."""
    if len(names) == 1:  # nearly always
        cell = cells.get(names[0])
        return None if cell is None or (value := cell.value) is None else ({names[0]: value.data}, value.origins)
    scope: dict[str, Json] = {}
    origins = NOTHING
    for name in names:
        cell = cells.get(name)
        if cell is None or (value := cell.value) is None:
            return None
        scope[name] = value.data
        if value.origins and value.origins is not origins:
            origins = origins | value.origins if origins else value.origins
    return scope, origins


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


def _remember_overwritten(frame: Frame, node: Node, index: int) -> None:
    """Let a frame that may still be left keep the versions of names that a statement is going to replace."""
    frame.overwritten = frame.overwritten or []
    frame.overwritten += [(index, name, frame.env.get(name)) for name in (*node.assigns, *node.defines)]
