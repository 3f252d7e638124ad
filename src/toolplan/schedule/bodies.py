"""Bodies: how branches, groups, `try` and loops unfold into frames, and what becomes of them."""

from __future__ import annotations

from typing import cast

from toolplan.errors import EvaluationError
from toolplan.expressions import fill
from toolplan.plan import ForEach, If, Try, While
from toolplan.schedule.flow import Flow, remember, values_of
from toolplan.schedule.order import FailScope
from toolplan.schedule.program import BREAK, EXIT, Collect
from toolplan.schedule.state import UNCOLLECTED, Cell, Failure, Frame, Instance, Loop, Trial
from toolplan.values import Json, Value, kind_of

__all__ = ["Bodies"]

MIN_WINDOW = 64
"""Inside a loop the window is a quarter of the one around it, but not smaller than this."""


class Bodies(Flow):
    """The statements that contain others."""

    # Branches, groups, `try` --------------------------------------------------------------------------------------

    def _branch(self, inst: Instance, step: If) -> None:
        scope, _ = self._scope(inst)
        block = inst.node.blocks[0 if step.test.evaluate(scope) else 1]
        self._enter(inst, self._open(inst, block, inst.path, dict(inst.cells)))

    def _open_group(self, inst: Instance) -> None:
        frame = self._open(inst, inst.node.blocks[0], inst.path, dict(inst.cells))
        frame.parallel = True
        self._enter(inst, frame)

    def _enter(self, inst: Instance, frame: Frame) -> None:
        """Let the only body of a branch or group begin; what it may touch is its own business from now on."""
        inst.inner = frame
        frame.on_issued = self._body_issued
        frame.on_finished = self._body_finished
        ticket, inst.ticket = inst.ticket, None
        self._advance(frame)
        self._return_ticket(ticket)

    def _body_issued(self, frame: Frame) -> None:
        """All control inside is decided: the names are known, and the statements behind may be issued."""
        inst = frame.owner
        assert inst is not None
        for name, cell in (inst.joins or {}).items():
            self._link(cell, None if frame.failure else frame.env.get(name))
        self._decided(inst, frame.ended)

    def _decided(self, inst: Instance, ended: str) -> None:
        """Tell the frame around `inst` that its control is decided: `ended` says whether it leaves more than itself."""
        outer = inst.frame
        if outer.stalled_by is not inst:
            return
        outer.stalled_by = None
        outer.ended = outer.ended or ended
        self._advance(outer)

    def _body_finished(self, frame: Frame) -> None:
        inst = frame.owner
        assert inst is not None
        if inst.gone:
            return
        if frame.failure is not None:
            if frame.history is not None:
                inst.kept = self._kept(frame)
            self._body_failed(inst, frame.failure)
        else:
            self._succeed(inst, None)

    def _body_failed(self, inst: Instance, failure: Failure) -> None:
        inst.gone = True
        self._void(inst)
        self._return_ticket(inst.ticket, failed=True)
        self._child_failed(inst, failure)

    def _open_try(self, inst: Instance) -> None:
        inst.trial = Trial()
        frame = self._open(inst, inst.node.blocks[0], (*inst.path, 0), dict(inst.cells))
        frame.scope = FailScope(frame.scope)
        remember(frame)
        frame.on_finished = self._trial_finished
        inst.inner = frame
        # The body has tickets of its own; until they are done, the handler's share stands behind them.
        whole = inst.ticket
        accesses, undeclared, may_fail = inst.node.blocks[1].rest(0)
        outer = inst.frame.scope if may_fail and self._holds_back else None
        inst.ticket = self._take_ticket((*inst.path, 1), accesses, undeclared, outer)
        self._advance(frame)
        self._return_ticket(whole)

    def _trial_finished(self, frame: Frame) -> None:
        inst = frame.owner
        assert inst is not None
        assert inst.trial is not None
        if inst.gone:
            return
        ticket, inst.ticket = inst.ticket, None
        if frame.failure is None:
            for name, cell in (inst.joins or {}).items():
                self._link(cell, frame.env.get(name))
            self._return_ticket(ticket)
            self._decided(inst, frame.ended)
            self._succeed(inst, None)
            return
        inst.trial.handling = True
        step = cast(Try, inst.node.step)
        cells = inst.cells | self._kept(frame)
        if step.error:
            cells[step.error] = Cell(Value(frame.failure.message, frozenset((frame.failure.step.split("[")[0],))))
        handler = self._open(inst, inst.node.blocks[1], (*inst.path, 1), cells)
        handler.on_issued = self._body_issued
        handler.on_finished = self._body_finished
        inst.inner = handler
        self._advance(handler)
        self._return_ticket(ticket)

    # Loops --------------------------------------------------------------------------------------------------------

    def _carry_on(self, inst: Instance, step: ForEach | While) -> None:
        if inst.loop is None:
            loop = inst.loop = Loop()
            loop.carried = {name: inst.cells[name] for name in inst.joins or {}}
            if isinstance(step, ForEach):
                scope, loop.origins = self._scope(inst)
                loop.items = _elements(fill(step.items, scope))
                loop.collected = [UNCOLLECTED] * len(loop.items)
        loop = inst.loop
        if isinstance(step, While) and loop.testing:
            loop.testing = False
            if not loop.ended:
                self._test(inst, step, loop)
        self._unfold(inst, loop)

    def _test(self, inst: Instance, step: While, loop: Loop) -> None:
        try:
            holds = self._test_holds(inst, step, loop)
        except EvaluationError as error:
            self._fail_loop(inst, loop, error)
            return
        if holds:
            self._begin_round(inst, loop, {})
        else:
            loop.ended = "test"

    def _test_holds(self, inst: Instance, step: While, loop: Loop) -> bool:
        cells = inst.cells | loop.carried
        scope, _ = values_of(step.test.names, cells)
        if not step.test.evaluate(scope):
            return False
        if loop.rounds >= step.max_iterations:
            raise EvaluationError(
                f"the loop was still going on after its {step.max_iterations} rounds (max_iterations)",
                help="raise `max_iterations`, or make the condition end earlier",
            )
        return True

    def _fail_loop(self, inst: Instance, loop: Loop, error: EvaluationError) -> None:
        """Fail a loop whose test failed. Its earlier rounds finish first; what comes after it is given up now."""
        message = f"{error.message}; {error.help}" if error.help else error.message
        self._record(inst, "failed", error=message)
        loop.kept = dict(loop.carried)
        loop.failure = loop.failure or Failure((*inst.path, loop.rounds), inst.label, message)
        loop.ended = "failed"
        if not inst.frame.parallel:
            self._cut(inst.frame, inst.index)
        self._abandon_after(inst.frame)

    def _abandon_rounds_after(self, inst: Instance, frame: Frame) -> None:
        loop = inst.loop
        assert loop is not None
        if _rounds_are_equal(inst):
            return
        loop.ended = loop.ended or "failed"
        number = frame.path[-1]
        for later in [n for n in loop.live if n > number]:
            self._abandon_frame(loop.live.pop(later))
        if loop.last is not None and loop.last.finished:
            loop.last = None

    def _unfold(self, inst: Instance, loop: Loop) -> None:
        """Begin as many rounds as values, control and the window allow; finish the loop when it is over."""
        if loop.unfolding or inst.gone:
            return
        loop.unfolding = True
        step = inst.node.step
        self._return_ticket(loop.rest)
        loop.rest = None
        while not self._is_over(inst, loop) and self._may_begin(inst, loop):
            if isinstance(step, ForEach):
                element = Value(loop.items[loop.rounds], loop.origins)
                self._begin_round(inst, loop, {step.name: Cell(element)})
            else:
                loop.testing = True
                self._wait_for(inst, tuple(cast(While, step).test.names), inst.cells | loop.carried)
                break
        ticket, inst.ticket = inst.ticket, None
        if not self._is_over(inst, loop):
            accesses, undeclared, may_fail = inst.node.accesses, inst.node.undeclared, inst.node.may_fail
            scope = inst.frame.scope if may_fail and self._holds_back else None
            loop.rest = self._take_ticket((*inst.path, loop.rounds), accesses, undeclared, scope)
        self._return_ticket(ticket)
        loop.unfolding = False
        if self._is_over(inst, loop) and loop.last is None and not loop.issued:
            loop.issued = True
            for name, cell in (inst.joins or {}).items():
                self._link(cell, loop.carried.get(name))
            self._decided(inst, "exit" if loop.ended == "exit" else "")
        if loop.issued and not loop.live and not inst.gone:
            self._finish_loop(inst, loop)

    def _is_over(self, inst: Instance, loop: Loop) -> bool:
        """Return whether no further round will begin."""
        if loop.ended:
            return True
        if inst.node.kind is ForEach:
            return loop.rounds >= len(loop.items)
        return loop.failure is not None

    def _may_begin(self, inst: Instance, loop: Loop) -> bool:
        """Return whether the next round can begin before the ones before it have finished."""
        if loop.testing or len(loop.live) >= inst.frame.window:
            return False
        if loop.last is None:
            return True
        waits = inst.node.kind is While or inst.joins or inst.node.blocks[0].leaves & (EXIT | BREAK)
        return not waits

    def _begin_round(self, inst: Instance, loop: Loop, own: dict[str, Cell]) -> None:
        number = loop.rounds
        loop.rounds += 1
        cells = {**inst.cells, **loop.carried, **own}
        frame = self._open(inst, inst.node.blocks[0], (*inst.path, number), cells, f"[{number}]")
        if _rounds_are_equal(inst):
            frame.equals = (*frame.equals, (inst.path, number))
        frame.window = max(MIN_WINDOW, inst.frame.window // 4)
        frame.on_issued = self._round_issued
        frame.on_finished = self._round_finished
        loop.live[number] = frame
        loop.last = frame
        self._advance(frame)

    def _round_issued(self, frame: Frame) -> None:
        inst = frame.owner
        assert inst is not None
        loop = inst.loop
        assert loop is not None
        if loop.last is frame:
            loop.last = None
        for name in loop.carried:
            loop.carried[name] = frame.env[name]
        if frame.ended in ("exit", "break"):
            loop.ended = loop.ended or frame.ended
        self._unfold(inst, loop)

    def _round_finished(self, frame: Frame) -> None:
        inst = frame.owner
        assert inst is not None
        loop = inst.loop
        assert loop is not None
        loop.live.pop(frame.path[-1], None)
        if loop.last is frame:
            loop.last = None
        if frame.failure is not None and (loop.failure is None or frame.failure.path < loop.failure.path):
            loop.failure = frame.failure
            if frame.history is not None:
                loop.kept = {name: cell for name, cell in self._kept(frame).items() if name in loop.carried}
        if not loop.live or len(loop.live) <= inst.frame.window // 2 or loop.issued:
            self._unfold(inst, loop)

    def _finish_loop(self, inst: Instance, loop: Loop) -> None:
        self._return_ticket(loop.rest)
        loop.rest = None
        if loop.failure is not None:
            inst.kept = loop.kept
            self._body_failed(inst, loop.failure)
            return
        value = None
        if inst.defined is not None:
            values = [item for item in loop.collected if item is not UNCOLLECTED]
            value = Value(cast("list[Json]", values), loop.origins)
        self._succeed(inst, value)

    def _collect(self, inst: Instance, collect: Collect) -> None:
        owner = inst.frame.owner
        assert owner is not None
        loop = owner.loop
        assert loop is not None
        scope, origins = self._scope(inst)
        if collect.value is not None and (collect.keep is None or collect.keep.evaluate(scope)):
            loop.collected[inst.path[-2]] = fill(collect.value, scope)
        if not origins <= loop.origins:
            loop.origins = loop.origins | origins
        self._succeed(inst, None)


def _elements(value: Json) -> list[Json]:
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        return list(value)
    if value is None:
        raise EvaluationError("there is nothing to go through: the list is empty (null)")
    raise EvaluationError(f"`for_each` goes through a list, but this is a {kind_of(value)}")


def _rounds_are_equal(inst: Instance) -> bool:
    """Return whether the rounds of a loop are of equal standing: they are a list's, and hand nothing on to the next."""
    return inst.node.kind is ForEach and not inst.joins
