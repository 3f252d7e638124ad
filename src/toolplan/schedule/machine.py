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

`flow.py` has the dataflow, `bodies.py` the statements with bodies, `attempts.py` what becomes of calls and questions
that are ready; here is what each statement does when its values are there. `on(event)` is the only way in; it returns
the commands that follow. See `docs/design/scheduler.md` for the states.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import cast

from toolplan.effects import conflict
from toolplan.errors import EvaluationError
from toolplan.expressions import fill, render_text
from toolplan.known import NOTHING_KNOWN, Known
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
from toolplan.schedule.attempts import Attempts
from toolplan.schedule.events import (
    CallEnded,
    CallFailed,
    CallSucceeded,
    CancelRun,
    Command,
    Event,
    FinishRun,
    JournalLost,
    LeftCall,
    RetryDue,
    RunOutcome,
    ShowNote,
    StartRun,
    TimeUp,
    TurnCame,
)
from toolplan.schedule.flow import known_values, remember
from toolplan.schedule.program import Collect, Program
from toolplan.schedule.state import Cell, Ending, Frame, Instance
from toolplan.tools.sameness import call_key, effects_of
from toolplan.values import Json, Value

__all__ = ["Machine"]

WINDOW = 512
"""How many rounds of a loop, or statements of a body, may be unfolded and unfinished at once. Bounds memory."""


class Machine(Attempts):
    """One run of one program.

    `max_concurrency` bounds the calls in flight; a tool's own `max_concurrency` bounds its share. Calls of the tools
    named in `gated` are made in turns that are asked for one by one (`AskTurn`, `TurnCame`), because somebody outside
    keeps their limits for many runs; a call that waits for its turn takes no place of this run.
    `failure="independent"` lets everything run that does not use a failed step's value; `"reads-go-on"`, for a list of
    calls and nothing else, holds back only the effects after a failed one. `known` is what earlier plans
    have left: values that are there from the start, and effects that are not repeated without a reason.
    With `speculate`, calls without effects start although something before them may still leave the plan or the loop;
    not with a budget of calls, because a call that is not needed would cost what it counts.
    `max_calls` bounds the attempts at calls, of which earlier plans of the run have made `calls`; the run fails when
    one more is needed. `left_behind` are effects of earlier plans that may still be going on: no call that touches the
    same is made before their `CallEnded`, whose keys are -1, -2 and so on. `story` makes it remember what each step
    goes through, for the messages of broken invariants.
    """

    def __init__(
        self,
        program: Program,
        *,
        max_concurrency: int | None = None,
        failure: str = "written-order",
        window: int = WINDOW,
        gated: frozenset[str] = frozenset(),
        known: Known = NOTHING_KNOWN,
        speculate: bool = False,
        max_calls: int | None = None,
        calls: int = 0,
        story: bool = False,
        left_behind: Sequence[LeftCall] = (),
    ) -> None:
        super().__init__(
            program,
            max_concurrency=max_concurrency,
            window=window,
            gated=gated,
            independent=failure == "independent",
            speculate=speculate,
            max_calls=max_calls,
            calls=calls,
            story=story,
        )
        self.program = program
        self._root.on_finished = self._finish
        self._known = known
        self._made = effects_of(known, program.tools)
        self._reads_go_on = failure == "reads-go-on"
        self._left_behind.update((-number, call) for number, call in enumerate(left_behind, 1))
        self._earlier = len(left_behind)

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
                assert -self._earlier <= event.key <= self._keys, f"{event} is about an attempt that was never made"
                self._left_behind.pop(event.key, None)
            case RetryDue():
                self._retry_due(event)
            case TurnCame():
                self._turn_came(event)
            case StartRun():
                self._root.env.update((name, Cell(value)) for name, value in self._known.values.items())
                self._root.env["now"] = Cell(Value(event.now))
                for name, value in self.program.plan.inputs.items():
                    self._root.env[name] = Cell(Value(value))
                if self.program.keeps_names:
                    remember(self._root)
                self._advance(self._root)
            case CancelRun():
                self._stop_run(FinishRun("cancelled", None, event.reason), cancel=True)
            case TimeUp():
                error = f"the run took longer than the {event.max_seconds:g} seconds that it may take (max_seconds)"
                self._stop_run(FinishRun("failed", None, error, used_up="max_seconds"), cancel=True)
            case JournalLost():
                self._stop_run(FinishRun("failed", None, event.error), cancel=False)
        self._work()
        commands, self._commands = self._commands, []
        return commands

    @property
    def early(self) -> Set[Instance]:
        """The calls that have begun, and of which it is not known whether they are needed."""
        return self._early

    @property
    def root(self) -> Frame:
        """The run of the whole plan."""
        return self._root

    def variables(self) -> dict[str, Json]:
        """Return the values of the plan's top-level names as far as they are known."""
        return {
            name: cell.value.data for name, cell in self._root.env.items() if cell.value is not None and name != "now"
        }

    def names(self) -> dict[str, Value]:
        """Return the values of the names as a program that stopped here would hold them.

        After a failure these are the versions from before the statement that failed, and what it did itself. Complete
        only for a program that keeps its names.
        """
        root = self._root
        cells = root.env if root.failure is None or root.history is None else self._kept(root)
        return {name: cell.value for name, cell in cells.items() if cell.value is not None and name != "now"}

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
        if inst.deferred is not None:
            self._fail(inst, *inst.deferred)
            return
        step = inst.node.step
        if step.__class__ is not Call and inst.loop is None and inst.arguments is None and self._is_absent(inst):
            self._skip(inst)
            return
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
                    self._show(inst, step)
        except EvaluationError as error:
            self._fail(inst, f"{error.message}; {error.help}" if error.help else error.message)

    # Calls and questions ------------------------------------------------------------------------------------------

    def _prepare_call(self, inst: Instance, step: Call) -> None:
        if inst.arguments is None:
            node = inst.node
            tool = node.tool
            assert tool is not None
            if node.constant is not None:
                arguments = dict(node.constant)
            else:
                known = known_values(node.waits, inst.cells)
                if known is None:
                    self._skip(inst)
                    return
                scope, inst.origins = known
                if node.passes:
                    arguments = {argument: scope[name] for argument, name in node.passes}
                else:
                    arguments = cast("dict[str, Json]", fill(step.arguments, scope))
            if None in arguments.values():
                arguments = cast("dict[str, Json]", tool.normalise(arguments))
            if not tool.accepts(arguments):
                inst.arguments = arguments
                faults = "; ".join(fault.message for fault in tool.faults(arguments))
                self._fail(inst, f"the arguments do not fit `{tool.name}`: {faults}")
                return
            inst.arguments = arguments
            if self._made and (repeated := self._repeated(inst, step)) is not None:
                self._fail(inst, repeated)
                return
            if node.placeholders:
                self._narrow(inst.ticket, tool.accesses(arguments))
        if self._left_behind and (other := self._still_touched(inst)) is not None:
            left = f"`{other.step}`, which timed out, may still be going on"
            self._fail(inst, f"{left} and touches the same; this call was not made")
            return
        self._queue(inst)

    def _repeated(self, inst: Instance, step: Call) -> str | None:
        """Return why the call is not made: it has an effect that has happened, and the plan gives no reason."""
        tool, arguments = inst.node.tool, inst.arguments
        assert tool is not None
        assert arguments is not None
        if not tool.effects.has_effects or tool.idempotent or step.again is not None:
            return None
        made = self._made.get(call_key(tool, arguments))
        return made.not_again if made is not None else None

    def _still_touched(self, inst: Instance) -> LeftCall | None:
        """Return an effect that was left behind, may still be going on, and gets in the way of this call."""
        tool = inst.node.tool
        assert tool is not None
        mine = tool.accesses(inst.arguments or {})
        for other in self._left_behind.values():
            if any(conflict(a, b) for a in mine for b in other.accesses):
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

    def _show(self, inst: Instance, note: Note) -> None:
        if self._is_blocked(inst):
            return
        scope, _ = self._scope(inst)
        self._commands.append(ShowNote(inst.label, render_text(fill(note.text, scope))))
        self._succeed(inst, None)

    # Ends ---------------------------------------------------------------------------------------------------------

    def _end_plan(self, inst: Instance, step: Answer | Cannot | Replan) -> None:
        if self._is_blocked(inst):
            return
        scope, _ = self._scope(inst)
        match step:
            case Answer():
                ending = Ending(inst.path, "succeeded", render_text(fill(step.text, scope)))
            case Cannot():
                missing = tuple(render_text(fill(template, scope)) for template in step.missing)
                ending = Ending(inst.path, "cannot", render_text(fill(step.reason, scope)), missing)
            case Replan():
                ending = Ending(inst.path, "replan", render_text(fill(step.reason, scope)))
        self._ending = ending
        self._end_frame(inst, "exit")

    def _leave_round(self, inst: Instance, how: str) -> None:
        if self._is_blocked(inst):
            return
        self._end_frame(inst, how)

    def _end_frame(self, inst: Instance, how: str) -> None:
        self._leave(inst.frame, inst.index, how)
        if inst.ticket is not None:
            inst.ticket.gates = ()  # it stays in them, in the way of what is behind, until all that has been given up
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
