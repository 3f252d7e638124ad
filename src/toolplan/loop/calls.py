"""The calls of one turn, through the same gate as a plan: read, checked, allowed, run, each answered once (P7).

The calls of a turn stand in written order, and their order means what it means in a plan (P3): a call that has effects
is made only when everything before it in the turn has succeeded, and every question before it has been answered; a call
that was refused counts as failed. What has no effects is made all the same, for the model asked for it without knowing
the rest. Nothing is refused together: each call gets its own answer. A person is asked about the whole turn before any
effect of it; where they leave calls open, those before the first open one are made, unless the turn has questions.

    a turn -> checked and allowed as one plan -> stretches: calls, and the questions after them, before the next effect
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from toolplan.agent_events import AgentEvent, CallMended, CallRefused, PlanAccepted
from toolplan.approval import Card, with_arguments
from toolplan.check import CheckedPlan
from toolplan.diagnostics import Diagnostic
from toolplan.diagnostics.effects import as_told_in_loop, doubled_effect_in_turn
from toolplan.errors import PlanRejected
from toolplan.expressions import Literal
from toolplan.known import Known, MadeCall, fingerprint
from toolplan.loop.reasons import with_reasons
from toolplan.loop.repeats import Repeats
from toolplan.parse.tool_calls import TurnCalls, WrittenCall, read_turn_calls
from toolplan.plan import AskUser, Call, Plan
from toolplan.policy import PlannedCall, Review
from toolplan.prompt import LoopWords
from toolplan.replan import made_calls, states_after
from toolplan.run import RunResult
from toolplan.run.approvals import Approvals
from toolplan.schedule import StepRecord
from toolplan.tools import ToolSet
from toolplan.tools.sameness import completed
from toolplan.values import Json

__all__ = ["MAX_CALLS", "Answer", "Answered", "Gate", "TurnCaller"]

MAX_CALLS = 128
"""Of one turn so many calls are made."""


@dataclass(frozen=True, slots=True)
class Gate:
    """The agent's ways to check and judge a plan, to have calls allowed by a person, and to run what may run."""

    check: Callable[[Plan, Known], CheckedPlan]
    review: Callable[[CheckedPlan], Review]
    approvals: Approvals
    run: Callable[[CheckedPlan, Review], Awaitable[RunResult]]


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model is told about one call."""

    text: str
    is_error: bool = False


@dataclass(slots=True)
class Answered:
    """What came of a turn: an answer for each call, in order; `asks` and `waits` when a person has to speak first."""

    answers: list[Answer]
    repeated: int = 0
    """How many calls were not made because they had been made, or refused for the same reason, too often."""
    asks: tuple[PlannedCall, ...] = ()
    """The calls that a person has to allow, when no call of the turn is made before; they are shown `card`."""
    card: Card | None = None
    waits: RunResult | None = None
    """The run that waits for a person."""
    guessed: tuple[str, ...] = ()
    """The tools that were called without having been shown."""


@dataclass
class TurnCaller:
    """Makes the calls of one turn after another."""

    gate: Gate
    tools: ToolSet
    words: LoopWords
    repeats: Repeats
    shown: Callable[[Json], str]
    """How a result is written for the model."""
    tell: Callable[[AgentEvent], None]
    can_ask: bool = False
    holds_back: bool = True
    """Whether a call that fails holds back the effects after it."""
    made: list[Call | AskUser] = field(default_factory=list["Call | AskUser"])
    """The steps of all turns that were run."""
    steps: int = 0
    """How many step ids are taken."""
    _states: frozenset[str] = frozenset()
    _calls: int = 0
    _effects: tuple[MadeCall, ...] = ()

    @property
    def known(self) -> Known:
        """What the turns so far have left."""
        return Known(made=self._effects, states=self._states, steps=self.steps, calls=self._calls)

    def expects(self, call: WrittenCall, before: int, not_shown: Collection[str] = ()) -> Call | None:
        """Return the step that a call of the next turn will be, with so many `before` it; None if it will be none.

        As far as the call alone tells, so this is about calls that change nothing: nothing before holds them back.
        """
        step = self._read([call], self.steps + 1 + before).entries[0]
        if not isinstance(step, Call) or step.tool in not_shown or self.times(step) is not None:
            return None
        return step

    def times(self, call: Call) -> int | None:
        """Return how often a call has had the same result, when that is too often; else None."""
        return self.repeats.times(call.tool, self.arguments(call))

    def arguments(self, call: Call) -> dict[str, Json]:
        """Return the arguments of a call, those included that the tool gives itself."""
        given = {name: template.value for name, template in call.arguments.fields if isinstance(template, Literal)}
        tool = self.tools.get(call.tool)
        return given if tool is None else completed(tool, given)

    def _read(self, calls: Sequence[WrittenCall], first_step: int) -> TurnCalls:
        given = read_turn_calls(calls, self.tools, first_step=first_step, can_ask=self.can_ask)
        return with_reasons(given, self.tools)

    async def make(self, calls: Sequence[WrittenCall], not_shown: Collection[str] = ()) -> Answered:
        """Make the calls that may be made and return what is to be told about each.

        `not_shown` are tools whose parameters the model has not seen, so that their calls are guesses.
        """
        known = self.known
        turn = _Turn(self, calls, self._read(calls, self.steps + 1))
        turn.refuse_guesses(not_shown)
        self.steps += len(calls)
        if (asks := await self._allow(turn, known)) == ():
            stretches = turn.stretches()
            for these, questions in stretches:
                await self._make_calls(turn, known, these if len(stretches) > 1 else None)
                if turn.waits is None:
                    await self._ask(turn, known, questions)
                if turn.waits is not None:
                    break
        answers = [turn.answers.get(position, Answer(self.words.waiting, True)) for position in range(len(calls))]
        return Answered(answers, turn.repeated, asks, turn.card, turn.waits, tuple(turn.guessed))

    async def _allow(self, turn: _Turn, known: Known) -> tuple[PlannedCall, ...]:
        """Have the calls of the turn allowed. Return those that a person has to decide about first, if there are any.

        What a person has refused is left out of the turn, and what stands behind it is judged again, as is everything
        when arguments were changed.
        """
        while (checked := turn.checked(known)) is not None:
            turn.reviewed = self.gate.review(checked)
            fits = partial(turn.misfit, known)
            word = await self.gate.approvals.of_plan(checked, turn.reviewed, keeps=True, fits=fits)
            turn.card = word.card if word is not None else turn.card
            if word is None or (word.allowed and not word.edits):
                turn.whole = checked
                break
            turn.edits |= word.edits
            if word.allowed is None:
                is_one = len(turn.stretches()) == 1
                if not is_one or word.undecided[0].step == word.card.asks[0].step:
                    return word.undecided
                turn.whole = turn.checked(known)  # what has its yes is made; the rest waits
                turn.reviewed = self.gate.review(turn.whole) if turn.whole is not None else None
                break
            turn.not_allowed(word.refused)
        return ()

    async def _make_calls(self, turn: _Turn, known: Known, positions: Collection[int] | None) -> None:
        """Make those of these calls that may be made, after what has been made of the turn; all of them for None."""
        if turn.whole is None:
            return
        known = replace(known, states=self._states, calls=self._calls)
        checked = turn.whole if positions is None else turn.checked(known, positions)
        if checked is None:
            return
        self.tell(PlanAccepted(checked))
        self.made += [step for step in checked.plan.steps if isinstance(step, Call)]
        run = await self.gate.run(checked, turn.reviewed_as(checked))
        self._note(run)
        turn.ran(run, checked)

    def _note(self, run: RunResult) -> None:
        calls = [record for record in run.steps if record.attempts]
        self._calls += len(calls)
        self._states |= states_after(calls, self.tools)
        self._effects += tuple(made_calls(calls, self.tools))
        for record in calls:
            if (tool := self.tools.get(record.tool)) is not None:
                record = replace(record, arguments=completed(tool, record.arguments or {}))
            self.repeats.note(record)

    async def _ask(self, turn: _Turn, known: Known, positions: Collection[int]) -> None:
        """Ask the person these questions of the turn, up to one that nobody answers."""
        for position, step in turn.questions():
            if position not in positions:
                continue
            checked = self.gate.check(Plan((step,), source=turn.given.source, notation="calls"), known)
            self.tell(PlanAccepted(checked))
            self.made.append(step)
            run = await self.gate.run(checked, self.gate.review(checked))
            if run.outcome == "waiting":
                turn.waits = run
                return
            turn.asked(position, run)

    def answer_of(self, record: StepRecord, failed_before: str | None = None) -> Answer:
        """Return what is told about a call that was made, or held back by an earlier one."""
        words = self.words
        if record.outcome == "succeeded":
            return Answer(self.shown(record.result))
        if record.outcome == "unknown":
            return Answer(words.unknown.format(error=self.shown(record.error)), True)
        if record.outcome == "not_run" and failed_before is not None:
            return Answer(words.held_back.format(tool=failed_before), True)
        return Answer(words.failed.format(error=self.shown(record.error or record.outcome)), True)


class _Turn:
    """One turn at the gate: which of its calls are still to be made, and the answers of the others."""

    def __init__(self, caller: TurnCaller, written: Sequence[WrittenCall], given: TurnCalls) -> None:
        self.caller = caller
        self.written = written
        self.given = given
        self.answers: dict[int, Answer] = {}
        self.repeated = 0
        self.guessed: list[str] = []
        self.card: Card | None = None
        self.waits: RunResult | None = None
        self.reviewed: Review | None = None
        """What the policy says of the turn as a whole."""
        self.whole: CheckedPlan | None = None
        """The calls that have been allowed."""
        self.failed: dict[int, str] = {}
        """The calls that were refused or have failed, by position, with the names of their tools."""
        self.edits: dict[str, Mapping[str, Json]] = {}
        self._effects: dict[tuple[str, str], str] = {}
        """The calls of this turn that must not be made twice without a reason, by what they are, with their steps."""
        for position, entry in enumerate(given.entries):
            if position >= MAX_CALLS:
                self._refuse(position, caller.words.too_many.format(limit=MAX_CALLS))
            elif isinstance(entry, Diagnostic):
                self._refuse(position, self._findings([entry]))
            elif isinstance(entry, Call):
                if position in given.repairs:
                    caller.tell(CallMended(entry.id, entry.tool, given.repairs[position]))
                self._look_back(position, entry)

    def refuse_guesses(self, not_shown: Collection[str]) -> None:
        """Refuse the calls of tools whose parameters the model has not seen."""
        for position, entry in enumerate(self.given.entries):
            name = entry.tool if isinstance(entry, Call) else self._name(position)
            if name in not_shown:
                self.guessed.append(name)
                if isinstance(entry, Call) and position not in self.answers:
                    self._refuse(position, self.caller.words.not_shown.format(tool=name))

    def questions(self) -> list[tuple[int, AskUser]]:
        """Return the questions to the person that are not answered."""
        return [
            (position, entry)
            for position, entry in enumerate(self.given.entries)
            if isinstance(entry, AskUser) and position not in self.answers
        ]

    def stretches(self) -> list[tuple[list[int], list[int]]]:
        """Return what is still to be done: calls, and the questions that come after them and before the next effect."""
        found: list[tuple[list[int], list[int]]] = [([], [])]
        for position, entry in enumerate(self.given.entries):
            calls, questions = found[-1]
            if position in self.answers:
                continue
            if isinstance(entry, AskUser):
                questions.append(position)
            elif isinstance(entry, Call) and questions and self._has_effects(entry):
                found.append(([position], []))
            elif isinstance(entry, Call):
                calls.append(position)
        return found

    def checked(self, known: Known, positions: Collection[int] | None = None) -> CheckedPlan | None:
        """Return the calls that are still to be made, or those at `positions`, as a plan that may run; None for none.

        Those that do not pass are refused.
        """
        while True:
            self._hold_back()
            steps = self._left(positions)
            if not steps:
                return None
            try:
                return self.caller.gate.check(self._plan(steps, self.edits), known)
            except PlanRejected as rejection:
                found: dict[int, list[Diagnostic]] = defaultdict(list)
                for diagnostic in rejection.diagnostics:
                    path = diagnostic.place.path
                    found[path[0] if path and isinstance(path[0], int) else -1].append(diagnostic)
                for position in [position for position in steps if position in found] or list(steps):
                    self._refuse(position, self._findings(found.get(position) or rejection.diagnostics))

    def misfit(self, known: Known, edits: Mapping[str, Mapping[str, Json]]) -> str | None:
        """Return why the calls that are left may not be made with these arguments, None when they may."""
        try:
            self.caller.gate.check(self._plan(self._left(None), {**self.edits, **edits}), known)
        except PlanRejected as rejection:
            return "; ".join(diagnostic.message for diagnostic in rejection.diagnostics)
        return None

    def _left(self, positions: Collection[int] | None) -> dict[int, Call]:
        return {
            position: step
            for position, step in self._calls()
            if position not in self.answers and (positions is None or position in positions)
        }

    def _plan(self, steps: Mapping[int, Call], edits: Mapping[str, Mapping[str, Json]]) -> Plan:
        repairs = tuple(text for position in steps for text in self.given.repairs.get(position, ()))
        plan = Plan(tuple(steps.values()), source=self.given.source, notation="calls", repairs=repairs)
        return with_arguments(plan, edits) if edits else plan

    def reviewed_as(self, checked: CheckedPlan) -> Review:
        """Return what the policy said of the turn before anything of it was made, for a part of its calls."""
        assert self.reviewed is not None
        if checked is self.whole:
            return self.reviewed
        steps = {step.id for step in checked.plan.steps}
        calls = tuple(call for call in self.reviewed.calls if call.step in steps)
        return replace(self.reviewed, plan=checked.plan, calls=calls)

    def not_allowed(self, refused: Sequence[tuple[PlannedCall, str]]) -> None:
        """Refuse the calls that a person has not allowed, with the reasons that were given."""
        reasons = {call.step: reason for call, reason in refused}
        for position, step in self._calls():
            if step.id in reasons:
                reason, words = reasons[step.id], self.caller.words.not_allowed
                self._refuse(position, f"{words}: {reason}" if reason else words)

    def ran(self, run: RunResult, checked: CheckedPlan) -> None:
        """Take in what came of the calls that were made."""
        positions = {step.id: position for position, step in self._calls()}
        failed: str | None = None
        is_waiting = run.outcome == "waiting"
        self.waits = run if is_waiting else None
        open_ = {effect.step for effect in run.unsettled}
        for record in run.steps:
            if is_waiting and (record.outcome in ("waiting", "not_run") or record.id in open_):
                continue
            self.answers[positions[record.id]] = self.caller.answer_of(record, failed)
            if record.outcome in ("failed", "unknown"):
                failed = failed or record.tool
                self.failed[positions[record.id]] = record.tool
        for step in checked.plan.steps if not is_waiting else ():  # of a run that was broken off
            text = self.caller.words.failed.format(error=run.error or "the run has ended")
            self.answers.setdefault(positions[step.id], Answer(text, True))

    def asked(self, position: int, run: RunResult) -> None:
        """Take in what came of a question."""
        self.answers[position] = self.caller.answer_of(run.steps[0])
        if self.answers[position].is_error:
            self.failed[position] = self._name(position)

    def _calls(self) -> list[tuple[int, Call]]:
        return [(position, entry) for position, entry in enumerate(self.given.entries) if isinstance(entry, Call)]

    def _look_back(self, position: int, call: Call) -> None:
        """Refuse a call that goes round in circles, or whose effect may have happened already."""
        caller, tool = self.caller, self.caller.tools.get(call.tool)
        if (times := caller.times(call)) is not None:
            self._refuse(position, caller.words.repeated.format(times=times), is_repeated=True)
            return
        needs_reason = tool is not None and tool.effects.has_effects and not tool.idempotent and call.again is None
        if needs_reason and caller.repeats.left_open(call.tool, caller.arguments(call)):
            self._refuse(position, caller.words.left_open)
        elif needs_reason:
            first = self._effects.setdefault(fingerprint(call.tool, caller.arguments(call)), call.id)
            if first != call.id:
                self._refuse(position, self._findings([doubled_effect_in_turn(call.tool_place, call.tool, first)]))

    def _hold_back(self) -> None:
        """Refuse the effects that stand behind a call that was refused."""
        if not self.caller.holds_back or not self.failed:
            return
        first = min(self.failed)
        name = self.failed[first]
        for position, step in self._calls():
            if position > first and position not in self.answers and self._has_effects(step):
                self._refuse(position, self.caller.words.held_back.format(tool=name))

    def _has_effects(self, call: Call) -> bool:
        tool = self.caller.tools.get(call.tool)
        return tool is None or tool.effects.has_effects

    def _name(self, position: int) -> str:
        return str(self.given.names[position])

    def _refuse(self, position: int, why: str, *, is_repeated: bool = False) -> None:
        self.answers[position] = Answer(why, True)
        refused_too_often = self.caller.repeats.refused(self._name(position), self.written[position].arguments)
        self.repeated += is_repeated or refused_too_often
        entry = self.given.entries[position]
        self.failed[position] = entry.tool if isinstance(entry, Call) else self._name(position)
        step = "" if isinstance(entry, Diagnostic) else entry.id
        self.caller.tell(CallRefused(step, self._name(position), why))

    def _findings(self, diagnostics: Sequence[Diagnostic]) -> str:
        """Return the findings without a drawing: the model has its call before it."""
        lines: list[str] = []
        for each in map(as_told_in_loop, diagnostics):
            lines.append(f"{each.code}: {each.message}")
            lines += [f"  {note}" for note in each.notes]
            lines += [f"  help: {each.help}"] if each.help else []
        return self.caller.words.refused.format(findings="\n".join(lines))
