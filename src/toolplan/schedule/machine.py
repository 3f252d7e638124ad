"""The state machine: unfolds a checked plan and decides what may start.

It works like a processor that executes out of order (Tomasulo 1967). A *frame* is one run of a body (the plan, a
branch, a round of a loop). It *issues* its statements in written order, without waiting for them: each becomes an
*instance* that holds the *cells* of the values it needs, defines new cells for the names it assigns (so a name has one
cell a version), and takes its ticket in the written order of effects (`order.py`). An instance runs when its cells are
filled and no earlier ticket is in its way. Only control stops the issuing: behind a statement that may still leave the
plan or the loop, nothing is issued until that is known.

Failure is part of the written order. When a step fails, what comes after it in its frame is abandoned, and so on up to
the nearest `try`; what comes before it finishes, for written-order execution would have run it; rounds of the same
`for_each` and members of the same `parallel` go on, for they are of equal standing. The failure that counts is the
first in written order.

`flow.py` has the dataflow, `bodies.py` the statements with bodies; here are calls, questions and ends. `on(event)` is
the only way in; it returns the commands that follow. See `docs/design/scheduler.md` for the states.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import cast

from toolplan.effects import conflict
from toolplan.errors import EvaluationError
from toolplan.expressions import fill, render_text
from toolplan.plan import (
    Answer,
    AskModel,
    AskUser,
    Break,
    Call,
    Cannot,
    Continue,
    ForEach,
    If,
    Let,
    Note,
    Parallel,
    Replan,
    Try,
    While,
)
from toolplan.schedule.bodies import Bodies
from toolplan.schedule.events import (
    AskModelNow,
    AskUserNow,
    CallEnded,
    CallFailed,
    CallSucceeded,
    CancelCall,
    CancelRun,
    Command,
    Event,
    FinishRun,
    RetryDue,
    RetryLater,
    RunOutcome,
    ShowNote,
    StartCall,
    StartRun,
    StepOutcome,
)
from toolplan.schedule.order import Path
from toolplan.schedule.program import Collect, Program
from toolplan.schedule.retry import wait_before
from toolplan.schedule.state import Cell, Ending, Frame, Instance
from toolplan.values import Json, Value

__all__ = ["Machine"]

WINDOW = 512
"""How many rounds of a loop, or statements of a body, may be unfolded and unfinished at once. Bounds memory."""


class Machine(Bodies):
    """One run of one program.

    `max_concurrency` bounds the calls in flight; a tool's own `max_concurrency` bounds its share.
    `failure="independent"` lets everything run that does not use a failed step's value.
    """

    def __init__(
        self,
        program: Program,
        *,
        max_concurrency: int | None = None,
        failure: str = "written-order",
        window: int = WINDOW,
    ) -> None:
        super().__init__(program, window=window, independent=failure == "independent")
        self.program = program
        self.finished: FinishRun | None = None
        self._root.on_finished = self._finish
        self._limit = max_concurrency or 1 << 60
        self._ready: list[tuple[int, Path, Instance]] = []
        self._held: dict[str, list[tuple[int, Path, Instance]]] = {}  # ready, but their tool is at its limit
        self._running: dict[int, Instance] = {}
        self._resting: dict[int, Instance] = {}  # waiting for their next attempt
        self._left_behind: dict[int, Instance] = {}  # effects that timed out and may still be going on
        self._busy: dict[str, int] = {}  # running calls of the tools that have a limit
        self._keys = 0
        self._ending: Ending | None = None
        self._cancelled: str | None = None

    # The way in ---------------------------------------------------------------------------------------------------

    def on(self, event: Event) -> list[Command]:
        """Take in what happened; return what is to be done now, in order."""
        if self.finished is not None:
            return []
        match event:
            case CallSucceeded():
                self._call_succeeded(event)
            case CallFailed():
                self._call_failed(event)
            case CallEnded():
                self._left_behind.pop(event.key, None)
            case RetryDue():
                self._retry_due(event)
            case StartRun():
                self._root.env["now"] = Cell(Value(event.now))
                for name, value in self.program.plan.inputs.items():
                    self._root.env[name] = Cell(Value(value))
                self._advance(self._root)
            case CancelRun():
                self._cancel(event.reason)
        self._work()
        commands, self._commands = self._commands, []
        return commands

    @property
    def running(self) -> Mapping[int, Instance]:
        """The attempts in flight, by key."""
        return self._running

    def note_not_run(self) -> None:
        """Add a record for every call that has not been made. For a run that stops here, waiting for a person."""
        self._record_frame_not_run(self._root)

    def variables(self) -> dict[str, Json]:
        """Return the values of the plan's top-level names as far as they are known."""
        return {
            name: cell.value.data for name, cell in self._root.env.items() if cell.value is not None and name != "now"
        }

    # The agenda ---------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        agenda = self._agenda
        while agenda:
            inst = agenda.popleft()
            if not inst.gone:
                self._step(inst)
        self._start_ready()

    def _step(self, inst: Instance) -> None:
        """Carry one instance on: its values are there, or what was in its way is gone."""
        if inst.loop is None and inst.arguments is None and self._is_absent(inst):
            self._skip(inst)
            return
        step = inst.node.step
        try:
            match step:
                case Call():
                    self._prepare_call(inst, step)
                case Let():
                    scope, origins = self._scope(inst)
                    self._succeed(inst, Value(fill(step.values[0][1], scope), origins))
                case If():
                    self._branch(inst, step)
                case ForEach() | While():
                    self._carry_on(inst, step)
                case Collect():
                    self._collect(inst, step)
                case Parallel():
                    self._open_group(inst)
                case Try():
                    self._open_try(inst)
                case AskModel():
                    self._prepare_reading(inst, step)
                case AskUser():
                    self._prepare_question(inst, step)
                case Answer() | Cannot() | Replan():
                    self._end_plan(inst, step)
                case Break() | Continue():
                    self._leave_round(inst, "break" if isinstance(step, Break) else "continue")
                case Note():
                    scope, _ = self._scope(inst)
                    self._commands.append(ShowNote(inst.label, render_text(fill(step.text, scope))))
                    self._succeed(inst, None)
        except EvaluationError as error:
            self._fail(inst, f"{error.message}; {error.help}" if error.help else error.message)

    # Calls and questions ------------------------------------------------------------------------------------------

    def _prepare_call(self, inst: Instance, step: Call) -> None:
        if inst.arguments is None:
            node = inst.node
            tool = node.tool
            assert tool is not None
            if node.constant is not None:
                arguments = node.constant
            else:
                scope, inst.origins = self._scope(inst)
                arguments = cast("dict[str, Json]", fill(step.arguments, scope))
            arguments = dict(tool.normalise(arguments))
            if not tool.accepts(arguments):
                inst.arguments = arguments
                faults = "; ".join(fault.message for fault in tool.faults(arguments))
                self._fail(inst, f"the arguments do not fit `{tool.name}`: {faults}")
                return
            inst.arguments = arguments
            if node.placeholders:
                self._narrow(inst.ticket, tool.effects.accesses(arguments))
        if self._left_behind and (other := self._still_touched(inst)) is not None:
            left = f"`{other.label}`, which timed out, may still be going on"
            self._fail(inst, f"{left} and touches the same; this call was not made")
            return
        self._queue(inst)

    def _still_touched(self, inst: Instance) -> Instance | None:
        """Return an effect that was left behind, may still be going on, and gets in the way of this call."""
        tool = inst.node.tool
        assert tool is not None
        for other in self._left_behind.values():
            theirs = other.node.tool
            assert theirs is not None
            mine = tool.effects.accesses(inst.arguments)
            if any(conflict(a, b) for a in mine for b in theirs.effects.accesses(other.arguments)):
                return other
        return None

    def _prepare_reading(self, inst: Instance, step: AskModel) -> None:
        if inst.arguments is None:
            scope, inst.origins = self._scope(inst)
            question = render_text(fill(step.question, scope))
            inst.arguments = {"question": question, "data": fill(step.data, scope)}
        self._queue(inst)

    def _prepare_question(self, inst: Instance, step: AskUser) -> None:
        if inst.arguments is None:
            scope, inst.origins = self._scope(inst)
            inst.arguments = {"question": render_text(fill(step.question, scope))}
        self._queue(inst)

    def _queue(self, inst: Instance) -> None:
        if not self._is_blocked(inst) and self._cancelled is None:
            heapq.heappush(self._ready, (-inst.node.rank, inst.path, inst))

    def _start_ready(self) -> None:
        """Start what the limits allow, the longest chains first."""
        ready = self._ready
        while ready and len(self._running) < self._limit:
            entry = heapq.heappop(ready)
            inst = entry[2]
            if inst.gone:
                continue
            tool = inst.node.tool
            if tool is not None and tool.max_concurrency is not None:
                busy = self._busy.get(tool.name, 0)
                if busy >= tool.max_concurrency:
                    heapq.heappush(self._held.setdefault(tool.name, []), entry)
                    continue
                self._busy[tool.name] = busy + 1
            self._start(inst)

    def _start(self, inst: Instance) -> None:
        self._keys += 1
        key = inst.key = self._keys
        self._running[key] = inst
        inst.attempt += 1
        arguments = inst.arguments
        assert arguments is not None
        record = self._record(inst, "running")
        assert record is not None
        record.attempts = inst.attempt
        step = inst.node.step
        if isinstance(step, Call):
            tool = inst.node.tool
            timeout = step.timeout_seconds
            if timeout is None and tool is not None:
                timeout = tool.timeout_seconds
            self._commands.append(StartCall(key, record.id, step.tool, arguments, inst.origins, inst.attempt, timeout))
        elif isinstance(step, AskModel):
            question = cast(str, arguments["question"])
            self._commands.append(AskModelNow(key, record.id, question, arguments["data"], step.returns, inst.origins))
        else:
            record.outcome = "waiting"
            self._commands.append(AskUserNow(key, record.id, cast(str, arguments["question"])))

    def _release(self, inst: Instance) -> None:
        """Take an attempt out of those in flight, and let the next call of a limited tool come forward."""
        del self._running[inst.key]
        tool = inst.node.tool
        if tool is not None and tool.max_concurrency is not None:
            self._busy[tool.name] -= 1
            if held := self._held.get(tool.name):
                heapq.heappush(self._ready, heapq.heappop(held))

    def _drop_call(self, inst: Instance) -> bool:
        self._resting.pop(inst.key, None)
        if self._running.get(inst.key) is not inst:
            return False
        self._release(inst)
        self._commands.append(CancelCall(inst.key))
        return True

    def _call_succeeded(self, event: CallSucceeded) -> None:
        inst = self._running.get(event.key)
        if inst is None:
            return
        self._release(inst)
        record = inst.record
        assert record is not None
        record.outcome = "succeeded"
        record.result = event.value
        record.started_seconds = event.started_seconds
        record.finished_seconds = event.at_seconds
        if self._cancelled is not None:
            self._end_cancelled()
            return
        self._succeed(inst, Value(event.value, frozenset((inst.node.id,))))

    def _call_failed(self, event: CallFailed) -> None:
        inst = self._running.get(event.key)
        if inst is None:
            return
        self._release(inst)
        record = inst.record
        assert record is not None
        record.started_seconds = event.started_seconds
        record.finished_seconds = event.at_seconds
        outcome: StepOutcome = "failed"
        if event.effect == "unknown" and inst.node.effect and inst.node.kind is Call:
            outcome = "unknown"
        if self._cancelled is not None:
            self._record(inst, outcome if outcome == "unknown" else "cancelled", error=event.error)
            self._end_cancelled()
            return
        if event.still_running and inst.node.effect:
            self._left_behind[event.key] = inst
        wait = self._wait_before_retry(inst, event)
        if wait is None:
            self._fail(inst, event.error, outcome)
            return
        record.error = event.error
        self._resting[inst.key] = inst
        self._commands.append(RetryLater(inst.key, record.id, wait))

    def _wait_before_retry(self, inst: Instance, event: CallFailed) -> float | None:
        step, tool = inst.node.step, inst.node.tool
        if not isinstance(step, Call) or tool is None or not event.retryable:
            return None
        if event.still_running and tool.effects.has_effects:
            return None  # two attempts at once would be two calls
        retry = step.retry or tool.retry
        is_safe = not tool.effects.has_effects or tool.idempotent or event.effect == "none"
        if retry is None or not is_safe:
            return None
        return wait_before(retry, inst.attempt + 1, event.retry_after_seconds)

    def _retry_due(self, event: RetryDue) -> None:
        inst = self._resting.pop(event.key, None)
        if inst is not None and not inst.gone:
            heapq.heappush(self._ready, (-inst.node.rank, inst.path, inst))

    # Ends ---------------------------------------------------------------------------------------------------------

    def _end_plan(self, inst: Instance, step: Answer | Cannot | Replan) -> None:
        if self._is_blocked(inst):
            return
        scope, _ = self._scope(inst)
        match step:
            case Answer():
                ending = Ending("succeeded", render_text(fill(step.text, scope)))
            case Cannot():
                missing = tuple(render_text(fill(template, scope)) for template in step.missing)
                ending = Ending("cannot", render_text(fill(step.reason, scope)), missing)
            case Replan():
                ending = Ending("replan", render_text(fill(step.reason, scope)))
        self._ending = ending
        inst.frame.ended = "exit"
        self._succeed(inst, None)

    def _leave_round(self, inst: Instance, how: str) -> None:
        if self._is_blocked(inst):
            return
        inst.frame.ended = how
        self._succeed(inst, None)

    def _finish(self, root: Frame) -> None:
        failure = root.failure or min(self._failures, key=lambda f: f.path, default=None)
        if failure is not None:
            outcome: RunOutcome = "replan" if failure.replan else "failed"
            self.finished = FinishRun(outcome, None, failure.message, failure.step)
        elif self._ending is not None:
            ending = self._ending
            self.finished = FinishRun(ending.outcome, ending.text, missing=ending.missing)
        else:
            self.finished = FinishRun("succeeded")
        self._commands.append(self.finished)

    def _cancel(self, reason: str) -> None:
        """Start nothing more; the run ends when the calls in flight are accounted for."""
        self._cancelled = reason
        self._ready.clear()
        self._held.clear()
        self._resting.clear()
        self._agenda.clear()
        self._commands += [CancelCall(key) for key in self._running]
        self._end_cancelled()

    def _end_cancelled(self) -> None:
        if not self._running:
            self.finished = FinishRun("cancelled", None, self._cancelled)
            self._commands.append(self.finished)
