"""Bodies: how branches, groups, `try` and loops unfold into frames, and what becomes of them."""

from __future__ import annotations

from typing import cast

from toolplan.errors import EvaluationError
from toolplan.expressions import fill
from toolplan.plan import ForEach, If, Try, While
from toolplan.schedule.flow import Flow, known_values, remember, values_of
from toolplan.schedule.order import FailScope, Gate
from toolplan.schedule.program import BREAK, CONTINUE, EXIT, Collect, Node
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
        if self.story is not None:
            self.story.enter(inst, "open")
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
            if name not in inst.node.whole:
                self._link(cell, None if frame.failure else frame.env.get(name))
        self._decided(inst, frame.ended)

    def _decided(self, inst: Instance, ended: str) -> None:
        """Tell the frame around `inst` that its control is decided: `ended` says whether it leaves more than itself."""
        outer = inst.frame
        if not outer.undecided or inst.index not in outer.undecided:
            return
        if ended:
            self._leave(outer, inst.index, ended)
        self._is_decided(outer, inst.index)
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
            for name in inst.node.whole:
                self._link((inst.joins or {})[name], frame.env.get(name))
            self._succeed(inst, None)

    def _body_failed(self, inst: Instance, failure: Failure) -> None:
        inst.gone = True
        if self.story is not None:
            self.story.enter(inst, "failed", failure.message)
        self._void(inst)
        if inst.frame.scope is None:
            self._failures.append(failure)
            self._return_ticket(inst.ticket)
            self._child_done(inst)
            return
        self._return_ticket(inst.ticket, failed=True)
        self._child_failed(inst, failure)

    def _open_try(self, inst: Instance) -> None:
        inst.trial = Trial()
        if self.story is not None:
            self.story.enter(inst, "open")
        frame = self._open(inst, inst.node.blocks[0], (*inst.path, 0), dict(inst.cells))
        frame.scope = FailScope(frame.scope)
        remember(frame)
        frame.on_finished = self._trial_finished
        inst.inner = frame
        # The body has tickets of its own; until they are done, the handler's share stands behind them.
        whole = inst.ticket
        accesses, undeclared, may_fail, leaves = inst.node.blocks[1].rest(0)
        outer = inst.frame.scope if may_fail and self._holds_back else None
        gates = self._left_by(leaves, frame)
        inst.ticket = self._take_ticket((*inst.path, 1), accesses, undeclared, outer, gates)
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
        self._forget_undecided(frame.path, inst.frame.gates)
        if self._ending is not None and self._ending.path[: len(frame.path)] == frame.path:
            self._ending = None  # one of several equals had come to an end of the plan when another one failed
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
            loop = inst.loop = Loop(max(MIN_WINDOW, inst.frame.window // 4))
            loop.is_plain = self._has_plain_rounds(inst, loop)
            loop.carried = {name: inst.cells[name] for name in inst.joins or {}}
            if isinstance(step, ForEach):
                scope, loop.origins = self._scope(inst)
                loop.items = _elements(fill(step.items, scope))
                loop.collected = [UNCOLLECTED] * len(loop.items)
            if self.story is not None:
                self.story.enter(inst, "open")
            if self._speculate and inst.node.blocks[0].leaves & BREAK:
                loop.gates = (Gate(BREAK),)
        loop = inst.loop
        if isinstance(step, While) and loop.testing:
            loop.testing = False
            if not loop.ended:
                self._test(inst, step, loop)
        self._unfold(inst, loop)

    def _test(self, inst: Instance, step: While, loop: Loop) -> None:
        cells = inst.cells | loop.carried
        if any(name not in cells or cells[name].value is None for name in step.test.names):
            loop.ended = "test"  # what it would go on from is missing: it goes no further, and its names end with it
            loop.carried = {}
            return
        try:
            holds = self._test_holds(inst, step, loop)
        except EvaluationError as error:
            if undecided := self._undecided_before(inst):
                loop.testing = True
                self._wait_behind(inst, undecided)
            else:
                self._fail_loop(inst, loop, error)
            return
        if holds:
            self._begin_round(inst, loop)
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
        if inst.frame.scope is None:
            return
        if not inst.frame.parallel:
            self._cut(inst.frame, inst.index)
        self._abandon_after(inst.frame)

    def _abandon_rounds_after(self, inst: Instance, frame: Frame) -> None:
        loop = inst.loop
        assert loop is not None
        if inst.has_equal_rounds:
            return
        loop.ended = loop.ended or "failed"
        number = frame.path[-1]
        for later in [n for n in loop.live if n > number]:
            self._abandon_frame(loop.live.pop(later))
            loop.undecided.discard(later)

    def _unfold(self, inst: Instance, loop: Loop) -> None:
        """Begin as many rounds as values, control and the window allow; finish the loop when it is over."""
        if loop.unfolding or inst.gone:
            return
        loop.unfolding = True
        step = inst.node.step
        rest, loop.rest = loop.rest, None
        if rest is not None:
            self._withdraw(rest)
        if isinstance(step, ForEach):
            self._begin_rounds(inst, loop, step)
        elif not (self._is_over(inst, loop) or loop.testing or loop.undecided or len(loop.live) >= inst.frame.window):
            loop.testing = True
            self._wait_for(inst, tuple(cast(While, step).test.names), inst.cells | loop.carried)
        ticket, inst.ticket = inst.ticket, None
        if not self._is_over(inst, loop):
            accesses, undeclared, may_fail = inst.node.accesses, inst.node.undeclared, inst.node.may_fail
            scope = inst.frame.scope if may_fail and self._holds_back else None
            gates = self._left_by(inst.node.leaves, inst.frame)
            loop.rest = self._take_ticket((*inst.path, loop.rounds), accesses, undeclared, scope, gates)
        self._return_ticket(ticket)
        if rest is not None:
            self._wake(rest)
        loop.unfolding = False
        if self._is_over(inst, loop) and not loop.undecided and not loop.issued:
            loop.issued = True
            for name, cell in (inst.joins or {}).items():
                if name not in inst.node.whole:
                    self._link(cell, None if loop.failure is not None else loop.carried.get(name))
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

    def _begin_rounds(self, inst: Instance, loop: Loop, step: ForEach) -> None:
        """Begin rounds up to the window: all at once, unless one hands something on to the next, or may leave."""
        if loop.is_plain:
            self._begin_plain_rounds(inst, loop, step.name)
            return
        items, live, window = loop.items, loop.live, inst.frame.window
        at_once = not inst.joins and (self._speculate or not inst.node.blocks[0].leaves & (EXIT | BREAK))
        while loop.rounds < len(items) and not loop.ended and len(live) < window and (at_once or not loop.undecided):
            self._begin_round(inst, loop, step.name, Cell(Value(items[loop.rounds], loop.origins)))

    def _begin_round(self, inst: Instance, loop: Loop, name: str = "", element: Cell | None = None) -> None:
        number = loop.rounds
        loop.rounds += 1
        cells = inst.cells | loop.carried
        if element is not None:
            cells[name] = element
        label, leaves = f"[{number}]", bool(loop.carried)
        frame = self._open(inst, inst.node.blocks[0], (*inst.path, number), cells, label, leaves=leaves)
        if self._speculate:
            gates = loop.gates + frame.gates
            frame.gates = (Gate(CONTINUE), *gates) if inst.node.blocks[0].leaves & CONTINUE else gates
        frame.window = loop.window
        if self._holds_back and frame.block.collect is not None:
            frame.tail = self._take_ticket((*frame.path, frame.end), (), False, frame.scope)
        frame.on_issued = self._round_issued
        frame.on_finished = self._round_finished
        loop.live[number] = frame
        loop.undecided.add(number)
        self._advance(frame)

    def _has_plain_rounds(self, inst: Instance, loop: Loop) -> bool:
        """Return whether each round can be issued in one go, and nothing waits for that: most loops are like this."""
        block = inst.node.blocks[0]
        is_whole = not (inst.joins or block.leaves) and 0 < len(block.nodes) <= loop.window
        return is_whole and inst.node.kind is ForEach and not inst.frame.parallel

    def _begin_plain_rounds(self, inst: Instance, loop: Loop, name: str) -> None:
        """Begin rounds as `_begin_round` does: the same, without what such rounds do not need."""
        outer, block = inst.frame, inst.node.blocks[0]
        scope, claimed, label, gates, window = outer.scope, outer.claimed, outer.label, outer.gates, loop.window
        has_tail = self._holds_back and block.collect is not None
        items, origins, live, finished = loop.items, loop.origins, loop.live, self._round_finished
        for number in range(loop.rounds, min(len(items), loop.rounds + outer.window - len(live))):
            path, cells = (*inst.path, number), {**inst.cells, name: Cell(Value(items[number], origins))}
            frame = Frame(block, path, cells, inst, scope, claimed, f"{label}[{number}]", window)
            frame.gates = gates
            if has_tail:
                frame.tail = self._take_ticket((*path, frame.end), (), False, scope)
            frame.on_finished = finished
            live[number] = frame
            loop.rounds = number + 1
            for index, node in enumerate(block.nodes):
                self._issue(frame, node, index)
            frame.next = frame.end
            frame.issued = True

    def _round_issued(self, frame: Frame) -> None:
        inst = frame.owner
        assert inst is not None
        loop = inst.loop
        assert loop is not None
        loop.undecided.discard(frame.path[-1])
        for name in loop.carried:
            loop.carried[name] = frame.env[name]
        if frame.ended in ("exit", "break"):
            loop.ended = loop.ended or frame.ended
            self._drop_rounds_after(inst, loop, frame.path[-1])
        if not loop.unfolding:
            self._unfold(inst, loop)

    def _drop_rounds_after(self, inst: Instance, loop: Loop, number: int) -> None:
        """Give up the rounds after the one that left the loop. Without `speculate` there are none."""
        for later in [n for n in loop.live if n > number]:
            self._abandon_frame(loop.live.pop(later), is_needed=False)
            loop.undecided.discard(later)
        if self._speculate:
            self._drop_early((*inst.path, number + 1), loop.gates + inst.frame.gates)

    def _round_finished(self, frame: Frame) -> None:
        inst = frame.owner
        assert inst is not None
        loop = inst.loop
        assert loop is not None
        collect = frame.block.collect
        number = frame.path[-1]
        if collect is not None and not (frame.is_collected or frame.ended or frame.failure):
            frame.is_collected = True
            if not self._collect_now(loop, frame, number, collect):
                return
        if frame.tail is not None:
            self._return_ticket(frame.tail)
        loop.live.pop(number, None)
        if loop.undecided:
            loop.undecided.discard(number)
        if frame.failure is not None and (loop.failure is None or frame.failure.path < loop.failure.path):
            loop.failure = frame.failure
            if frame.history is not None:
                loop.kept = {name: cell for name, cell in self._kept(frame).items() if name in loop.carried}
        live = len(loop.live)
        if loop.issued:
            if not live and not inst.gone:
                self._finish_loop(inst, loop)
        elif not live or live <= inst.frame.window // 2:
            self._unfold(inst, loop)

    def _finish_loop(self, inst: Instance, loop: Loop) -> None:
        self._return_ticket(loop.rest)
        loop.rest = None
        if loop.failure is not None:
            inst.kept = loop.kept
            self._body_failed(inst, loop.failure)
            return
        for name in inst.node.whole:
            if inst.joins and name in inst.joins:
                self._link(inst.joins[name], loop.carried.get(name))
        value = None
        if inst.defined is not None:
            values = [item for item in loop.collected if item is not UNCOLLECTED]
            value = Value(cast("list[Json]", values), loop.origins | loop.sources)
        self._succeed(inst, value)

    def _collect_now(self, loop: Loop, frame: Frame, number: int, node: Node) -> bool:
        """Let a round hand over its value, and return whether it has done so.

        Nearly always it can at once, because its statements have ended. Else it becomes an instance, as what waits or
        fails does.
        """
        owner, env = frame.owner, frame.env
        assert owner is not None
        step = cast(Collect, node.step)
        is_certain = len(frame.gates) == len(owner.frame.gates)
        if is_certain and step.name is not None and (cell := env.get(step.name)) is not None and cell.value is not None:
            loop.collected[number] = cell.value.data
            if not cell.value.origins <= loop.sources:
                loop.sources = loop.sources | cell.value.origins
            return True
        known = known_values(node.waits, env) if is_certain else None
        if known is not None:
            try:
                self._hand_over(loop, number, step, *known)
                return True
            except EvaluationError:
                pass
        inst = Instance(node, frame, frame.end)
        inst.cells = {name: env[name] for name in node.captures if name in env}
        inst.ticket, frame.tail = frame.tail, None
        frame.children[inst.index] = inst
        frame.finished = False
        if self.story is not None:
            self.story.enter(inst, "issued")
        self._wait_for(inst, node.waits, inst.cells)
        return False

    def _collect(self, inst: Instance, collect: Collect) -> None:
        owner = inst.frame.owner
        assert owner is not None
        loop = owner.loop
        assert loop is not None
        # Whether this round counts is known when no `break` before it, and no `continue` in it, is undecided any more.
        for gate in inst.frame.gates[: len(inst.frame.gates) - len(owner.frame.gates)]:
            if undecided := gate.pending.last_before(inst.path):
                self._wait_behind(inst, undecided)
                return
        scope, origins = self._scope(inst)
        self._hand_over(loop, inst.path[-2], collect, scope, origins)
        self._succeed(inst, None)

    def _hand_over(
        self, loop: Loop, number: int, collect: Collect, scope: dict[str, Json], origins: frozenset[str]
    ) -> None:
        if collect.value is not None and (collect.keep is None or collect.keep.evaluate(scope)):
            loop.collected[number] = fill(collect.value, scope)
        if not origins <= loop.sources:
            loop.sources = loop.sources | origins


def _elements(value: Json) -> list[Json]:
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        return list(value)
    if value is None:
        raise EvaluationError("`for_each` goes through a list, but this is null, not a list")
    raise EvaluationError(f"`for_each` goes through a list, but this is a {kind_of(value)}")
