"""Asking whoever must allow calls: a plan once as a whole, and calls whose values bring up something new.

    of_plan(checked, review) -> Word      before anything runs: one card, one answer
    Guard.judge -> Guard.ask              in the run: every watched call just before it leaves (P7)

What was allowed is kept in `grants` for the whole request. Questions of calls that come up at the same time come
together; while one is open, those that follow wait for the next. `decided` is told each decision, for whoever keeps
them.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias, cast

from toolplan.approval import Card, Decision, Grant, Grants, call_alone, decisions_of
from toolplan.check import CheckedPlan
from toolplan.expressions import Fields, Literal
from toolplan.plan import Call, walk
from toolplan.policy import PlannedCall, Review, Situation, review, shipped_policy
from toolplan.policy.reasons import ELSEWHERE
from toolplan.tools import Tool
from toolplan.tools.seen_secrets import SeenSecrets
from toolplan.values import Json

__all__ = ["Approvals", "Approver", "Guard", "Held", "Ruling", "Word", "guard_by_declarations"]

Answer: TypeAlias = "bool | Decision | Mapping[str, bool | Decision | None] | None"
Approver: TypeAlias = Callable[[Sequence[PlannedCall], Card], "Answer | Awaitable[Answer]"]
"""Asked about calls that need a person's word, with the card they stand on; see `Agent(approve=...)`."""

Fits: TypeAlias = Callable[[Mapping[str, Mapping[str, Json]]], "str | None"]
Decided: TypeAlias = Callable[[Card, PlannedCall, Decision], None]
Held: TypeAlias = Callable[["Card | None", PlannedCall], "Decision | None"]
"""Tells what a person has refused or changed of this very call before, whether or not anything asks about it now; with
the card of a plan, or without for a call that is about to be made."""


@dataclass(frozen=True, slots=True)
class Word:
    """What was said about a plan: allowed, refused, or (None) not yet; with the changes to its arguments.

    It is refused when anything on its card was, and allowed when everything that asks was: until then nothing of it is
    made that has effects. The `undecided` are what a person has still to decide.
    """

    allowed: bool | None
    card: Card
    refused: tuple[tuple[PlannedCall, str], ...] = ()
    edits: Mapping[str, Mapping[str, Json]] = field(default_factory=dict[str, Mapping[str, Json]])
    undecided: tuple[PlannedCall, ...] = ()

    @property
    def reasons(self) -> tuple[tuple[PlannedCall, str], ...]:
        """The calls that were refused with a reason."""
        return tuple((call, reason) for call, reason in self.refused if reason)


@dataclass(frozen=True, slots=True)
class Ruling:
    """What holds for a call that is about to be made: `allowed`, refused for a `reason`, or (None) undecided."""

    allowed: bool | None
    reason: str = ""
    arguments: Mapping[str, Json] | None = None
    """The arguments as a person has changed them."""


@dataclass
class _Question:
    """A call that is asked about, until there is an answer that can be taken."""

    card: Card
    call: PlannedCall
    problem_of: Callable[[Decision], str | None]
    answer: asyncio.Future[Decision | None]
    tried: Decision | None = None
    """An answer that could not be taken."""


@dataclass
class Approvals:
    """The approver and what it has said so far, for one request."""

    approve: Approver | None = None
    decided: Decided | None = None
    said: list[str] = field(default_factory=list[str])
    """What the user has said; arguments that a person changes are added."""
    grants: Grants = field(default_factory=Grants)
    held: Held | None = None
    secrets: SeenSecrets = field(default_factory=SeenSecrets)
    """What was seen to be secret so far, and no card shows."""
    _undecided: frozenset[str] = frozenset()
    """The steps that the last answer about a plan left open: their calls wait, and are not asked about at once."""
    _open: list[_Question] = field(default_factory=list)  # pyright: ignore[reportUnknownVariableType]
    _asked: list[asyncio.Future[Decision | None]] = field(default_factory=list)  # pyright: ignore[reportUnknownVariableType]
    _asking: asyncio.Task[None] | None = None

    async def of_plan(
        self, checked: CheckedPlan, review: Review, *, keeps: bool = False, fits: Fits | None = None
    ) -> Word | None:
        """Ask about the calls of a plan that need a word and have none; return it, or None when none do.

        When some are refused, what was allowed is forgotten: another plan comes, with other steps of the same names.
        Not so with `keeps`: then the rest of the same calls comes. `fits` says why changed arguments cannot be taken;
        then the same question comes again, with that on the card, and so it does where a pattern does not fit the call
        that it is said of. The same answer once more counts as a refusal.
        """
        self._undecided = frozenset()
        review = self.minding(review)
        if self.held is not None and (word := self._held_of_plan(checked, review, self.held)) is not None:
            return word
        asks = [call for call in review.asks if not self.grants.settles(call)]
        if not asks:
            return None
        card = Card.of(checked, review)
        decisions = await self._taken(asks, card, fits, keeps)
        edits: dict[str, Mapping[str, Json]] = {}
        refused: list[tuple[PlannedCall, str]] = []
        for call in asks:
            decision = decisions[call.step]
            if decision is None:
                continue
            if decision.answer == "deny":
                refused.append((call, decision.reason))
            elif decision.arguments:
                edits[call.step] = decision.arguments
        said = [(call, decision) for call in asks if (decision := decisions[call.step]) is not None]
        for call, decision in sorted(said, key=lambda each: each[1].answer):  # of calls alike, a no is the last word
            self._note(card, call, decision, planned=not refused or keeps)
        undecided = tuple(call for call in asks if decisions[call.step] is None and not self._is_allowed(call))
        self._undecided = frozenset(call.step for call in undecided)
        return Word(False if refused else None if undecided else True, card, tuple(refused), edits, undecided)

    async def _taken(
        self, asks: Sequence[PlannedCall], card: Card, fits: Fits | None, keeps: bool
    ) -> dict[str, Decision | None]:
        """Ask about calls of a plan until the decisions can be taken, or are the same again.

        Changes that do not fit a plan as a whole are left to whoever checks it, who says where.
        """
        decisions = await self._ask(asks, card)
        before: dict[str, Decision | None] = {}
        while problems := _problems(asks, decisions, fits, keeps):
            tried = {step: decisions[step] for step in problems}
            if tried == before:
                is_open = None in decisions.values()  # nobody would check it before somebody else has answered
                for call in asks:
                    if call.step in problems and (keeps or is_open or outside(call, decisions[call.step]) is not None):
                        decisions[call.step] = Decision.deny(problems[call.step])
                break
            before = tried
            decisions = await self._ask(asks, card.with_problems(problems))
        return decisions

    def _held_of_plan(self, checked: CheckedPlan, review: Review, held: Held) -> Word | None:
        """Return what was said before of calls of the plan and holds whatever asks now, or None."""
        card = Card.of(checked, review)
        seen = {call.step: call for call in review.calls}
        refused: list[tuple[PlannedCall, str]] = []
        edits: dict[str, Mapping[str, Json]] = {}
        for step in walk(checked.plan.steps):
            if not isinstance(step, Call):
                continue
            call = seen.get(step.id) or review.seen(step, step.id, None, review.situation)
            said = held(card, call)
            if said is not None and said.answer == "deny":
                refused.append((call, said.reason))
            elif said is not None and said.arguments:
                edits[step.id] = said.arguments
        if not refused and not edits:
            return None
        self.said += [str(value) for changed in edits.values() for value in changed.values()]
        return Word(not refused, card, tuple(refused), edits)

    def _is_allowed(self, call: PlannedCall) -> bool:
        return call.verdict.instead_of is None and self.grants.settles(call)

    def minding(self, review: Review) -> Review:
        """Return what the policy says of a plan, where calls that were refused before ask, whatever it says."""
        refusals = self.grants.refusals
        if not refusals:
            return review
        seen = {call.step: call for call in review.calls}
        calls: list[PlannedCall] = []
        for step in walk(review.plan.steps):
            if not isinstance(step, Call):
                continue
            known = seen.get(step.id)
            call = refusals.marked(known or review.seen(step, step.id, None, review.situation), review.tools[step.tool])
            if known is not None or call.verdict.instead_of is not None:
                calls.append(call)
        return replace(review, calls=tuple(calls))

    def guard(self, checked: CheckedPlan, review: Review) -> Guard | None:
        """Return what looks at the calls of a run; None when whatever may come is allowed."""
        found = Guard(self, checked, review)
        return found if found.watched or self.held is not None else None

    async def of_call(
        self, card: Card, call: PlannedCall, problem_of: Callable[[Decision], str | None]
    ) -> Decision | None:
        """Ask about one call that is about to be made, together with others that ask now.

        `problem_of` says why changed arguments cannot be taken; then the question comes again, with that on the card.
        The same answer once more counts as a refusal.
        """
        if self.approve is None or call.step in self._undecided:
            return None
        answer: asyncio.Future[Decision | None] = asyncio.get_running_loop().create_future()
        self._open.append(_Question(card, call, problem_of, answer))
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask_open())
        try:
            return await answer
        except asyncio.CancelledError:
            if not self._open and all(each.done() for each in self._asked):  # nobody waits for the person any more
                self._asking.cancel()
            raise

    async def _ask_open(self) -> None:
        while self._open:
            await asyncio.sleep(0)  # what else comes up now
            asked = [question for question in self._open if not question.answer.done()]
            self._open.clear()
            if not asked:
                continue
            calls = [question.call for question in asked]
            self._asked = [question.answer for question in asked]
            card = Card.together([question.card for question in asked])
            try:
                decisions = await self._ask(calls, card)
            except BaseException as error:
                for question in asked:
                    if not question.answer.done():
                        question.answer.set_exception(error)
                if not isinstance(error, Exception):
                    raise
                continue
            for question in asked:
                decision = decisions[question.call.step]
                problem = outside(question.call, decision)
                if problem is None and decision is not None and decision.arguments:
                    problem = question.problem_of(decision)
                if problem is not None:
                    if decision != question.tried:
                        question.tried = decision
                        question.card = question.card.with_problems({question.call.step: problem})
                        self._open.append(question)
                        continue
                    decision = Decision.deny(problem)
                if decision is not None:
                    self._note(card, question.call, decision, planned=False)
                if not question.answer.done():
                    question.answer.set_result(decision)

    async def _ask(self, calls: Sequence[PlannedCall], card: Card) -> dict[str, Decision | None]:
        card.secrets.see_all(self.secrets)
        if self.approve is None:
            return dict.fromkeys(call.step for call in calls)
        answer = self.approve(calls, card)
        said = cast(object, await answer if inspect.isawaitable(answer) else answer)
        return decisions_of(said, calls)

    def _note(self, card: Card, call: PlannedCall, decision: Decision, *, planned: bool) -> None:
        self.grants.add(call, decision, planned=planned)
        tool, step = card.tools[call.tool], call.step.partition("[")[0]
        if decision.answer == "deny":
            self.grants.refusals.refuse(step, call.tool, call_alone(call, tool), decision.reason)
        elif not decision.each_call or decision.arguments:
            said = with_changes(call, decision)
            self.grants.refusals.allow(step, call_alone(said, tool), planned=planned and not decision.each_call)
        self.said += [str(value) for value in (decision.arguments or {}).values()]
        if self.decided is not None:
            self.decided(card, call, decision)


def _problems(
    asks: Sequence[PlannedCall], decisions: Mapping[str, Decision | None], fits: Fits | None, keeps: bool
) -> dict[str, str]:
    """Return why decisions cannot be taken, by step. Where something was refused, nobody minds unless it `keeps`."""
    if not keeps and any(decision is not None and decision.answer == "deny" for decision in decisions.values()):
        return {}
    found = {call.step: why for call in asks if (why := outside(call, decisions[call.step])) is not None}
    if found or fits is None:
        return found
    changes = {step: made.arguments for step, made in decisions.items() if made is not None and made.arguments}
    if changes and (problem := fits(changes)) is not None:
        return dict.fromkeys(changes, problem)
    return {}


def with_changes(call: PlannedCall, decision: Decision) -> PlannedCall:
    """Return the call with the arguments that a person has changed."""
    changed = {name: Literal(value) for name, value in (decision.arguments or {}).items()}
    fields = dict(call.arguments.fields) | changed
    return replace(call, arguments=Fields(tuple(fields.items())))


def outside(call: PlannedCall, decision: Decision | None) -> str | None:
    """Return why a decision does not allow the call that it is about: its pattern is one for others. None if it may.

    An argument that comes later is looked at then, like those of every further call.
    """
    if decision is None or decision.pattern is None:
        return None
    made = with_changes(call, decision)
    names, known = {name for name, _ in made.arguments.fields}, made.values
    for name, text in decision.pattern.items():
        if name in names and name not in known:
            continue
        if not Grant(call.tool, frozenset(call.verdict.names), None, {name: text}).covers(made):
            return f"the argument `{name}` does not match the pattern `{text}`, so this does not allow the call"
    return None


class Guard:
    """Looks at the calls of one run. `watched` are the steps whose calls need a look."""

    def __init__(self, approvals: Approvals, checked: CheckedPlan, review: Review) -> None:
        concerned = approvals.grants.refusals.tools | {
            call.tool for call in review.calls if call.step in review.watched
        }
        calls = (step for step in walk(checked.plan.steps) if concerned and isinstance(step, Call))
        self.watched = frozenset(call.id for call in calls if call.tool in concerned)
        self._approvals = approvals
        self._checked = checked
        self._review = review
        self._allowed: dict[str, tuple[Mapping[str, Json], Ruling]] = {}  # by a person; for further attempts

    def watches(self, step: str) -> bool:
        """Return whether a call of this step needs a look."""
        return self._approvals.held is not None or step.partition("[")[0] in self.watched

    def judge(self, step: str, arguments: Mapping[str, Json]) -> Ruling | PlannedCall:
        """Return what holds for a call with these values, or the call when somebody has to be asked."""
        before = self._allowed.get(step)
        if before is not None and before[0] == arguments:
            return before[1]
        call = self._judged(step, arguments)
        said = self._approvals.held(None, call) if self._approvals.held is not None else None
        if said is not None and said.answer == "deny":
            return _refused(said)
        if said is not None:
            return self._changed(call, arguments, said)
        return self._rule(call) or call

    def _judged(self, step: str, arguments: Mapping[str, Json]) -> PlannedCall:
        call = self._review.judge(step, arguments)
        return self._approvals.grants.refusals.marked(call, self._checked.tools[call.tool])

    def _rule(self, call: PlannedCall) -> Ruling | None:
        """Return what the policy, and what was allowed so far, say of a call; None when somebody has to be asked."""
        if call.verdict.action == "allow":
            return Ruling(True)
        if call.verdict.action == "deny":
            return Ruling(False, f"forbidden by the policy: {call.reason}")
        return Ruling(True) if self._approvals.grants.covers(call) else None

    def _changed(self, call: PlannedCall, arguments: Mapping[str, Json], said: Decision) -> Ruling | PlannedCall:
        """Return what holds for a call whose arguments a person has changed before."""
        edited = {**arguments, **(said.arguments or {})}
        if (problem := self._problem(call, arguments, edited)) is not None:
            return Ruling(False, f"not allowed: {problem}")
        if (ruling := self._rule(self._judged(call.step, edited))) is None:
            return call
        if ruling.allowed:
            ruling = Ruling(True, arguments=edited)
            self._allowed[call.step] = arguments, ruling
        return ruling

    async def ask(self, call: PlannedCall) -> Ruling:
        """Ask a person about a call, and return what holds then."""
        arguments = call.values

        def problem_of(decision: Decision) -> str | None:
            return self._problem(call, arguments, {**arguments, **(decision.arguments or {})})

        card = Card.of_calls(self._checked, self._review, [call])
        decision = await self._approvals.of_call(card, call, problem_of)
        if decision is None:
            return Ruling(None)
        if decision.answer == "deny":
            return _refused(decision)
        ruling = Ruling(True)
        if decision.arguments:
            ruling = Ruling(True, arguments={**arguments, **decision.arguments})
        self._allowed[call.step] = arguments, ruling
        return ruling

    def _problem(self, call: PlannedCall, arguments: Mapping[str, Json], edited: Mapping[str, Json]) -> str | None:
        """Return why a call may not be made with the arguments that a person has changed."""
        tool: Tool = self._checked.tools[call.tool]
        if faults := tool.faults(tool.normalise(edited)):
            return "the changed arguments do not fit: " + "; ".join(fault.message for fault in faults)
        if tool.accesses(edited) != tool.accesses(arguments):
            return ELSEWHERE
        judged = self._review.judge(call.step, edited)
        if judged.verdict.action == "deny":
            return f"the changed arguments are forbidden by the policy: {judged.reason}"
        return None


def _refused(decision: Decision) -> Ruling:
    return Ruling(False, f"not allowed: {decision.reason}" if decision.reason else "not allowed")


def guard_by_declarations(checked: CheckedPlan) -> Guard | None:
    """Return the guard of a run that nobody has given one: calls of tools that ask wait, forbidden ones fail."""
    if all(tool.approval in (None, "allow") for tool in checked.tools):
        return None
    by_caller = Situation(words_are_trusted=True)
    return Approvals().guard(checked, review(checked.plan, checked.tools, shipped_policy("declared"), by_caller))
