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
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from toolplan.approval import Card, Decision, Grants, decisions_of
from toolplan.check import CheckedPlan
from toolplan.policy import PlannedCall, Review, Situation, review, shipped_policy
from toolplan.policy.reasons import ELSEWHERE
from toolplan.tools import Tool
from toolplan.values import Json

__all__ = ["Approvals", "Approver", "Guard", "Ruling", "Word", "guard_by_declarations"]

Answer: TypeAlias = "bool | Decision | Mapping[str, bool | Decision | None] | None"
Approver: TypeAlias = Callable[[Sequence[PlannedCall], Card], "Answer | Awaitable[Answer]"]
"""Asked about calls that need a person's word, with the card they stand on; see `Agent(approve=...)`."""

Fits: TypeAlias = Callable[[Mapping[str, Mapping[str, Json]]], "str | None"]
Decided: TypeAlias = Callable[[Card, PlannedCall, Decision], None]


@dataclass(frozen=True, slots=True)
class Word:
    """What was said about a plan: allowed, refused, or (None) nothing yet; with the changes to its arguments.

    A plan is allowed when something on its card was and nothing was refused; what was left undecided asks again.
    """

    allowed: bool | None
    card: Card
    refused: tuple[tuple[PlannedCall, str], ...] = ()
    edits: Mapping[str, Mapping[str, Json]] = field(default_factory=dict[str, Mapping[str, Json]])

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
    tried: Mapping[str, Json] | None = None
    """Changed arguments that could not be taken."""


@dataclass
class Approvals:
    """The approver and what it has said so far, for one request."""

    approve: Approver | None = None
    decided: Decided | None = None
    said: list[str] = field(default_factory=list[str])
    """What the user has said; arguments that a person changes are added."""
    grants: Grants = field(default_factory=Grants)
    _open: list[_Question] = field(default_factory=list)  # pyright: ignore[reportUnknownVariableType]
    _asked: list[asyncio.Future[Decision | None]] = field(default_factory=list)  # pyright: ignore[reportUnknownVariableType]
    _asking: asyncio.Task[None] | None = None

    async def of_plan(
        self, checked: CheckedPlan, review: Review, *, keeps: bool = False, fits: Fits | None = None
    ) -> Word | None:
        """Ask about the calls of a plan that need a word and have none; return it, or None when none do.

        When some are refused, what was allowed is forgotten: another plan comes, with other steps of the same names.
        Not so with `keeps`: then the rest of the same calls comes. `fits` says why changed arguments cannot be taken;
        then the same question comes again, with that on the card, unless the answer is the same as well.
        """
        asks = [call for call in review.asks if not self.grants.covers(call)]
        if not asks:
            return None
        card = Card.of(checked, review)
        decisions = await self._ask(asks, card)
        before: dict[str, Mapping[str, Json]] = {}
        while fits is not None and (changed := _changes(decisions)) and changed != before:
            if (problem := fits(changed)) is None:
                break
            before = changed
            decisions = await self._ask(asks, card.with_problems(dict.fromkeys(changed, problem)))
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
        for call in asks:
            decision = decisions[call.step]
            if decision is not None:
                self._note(card, call, decision, planned=not refused or keeps)
        if refused:
            return Word(False, card, tuple(refused))
        return Word(True if any(decisions.values()) else None, card, (), edits)

    def guard(self, checked: CheckedPlan, review: Review) -> Guard | None:
        """Return what looks at the calls of a run; None when whatever may come is allowed."""
        return Guard(self, checked, review) if review.watched else None

    async def of_call(
        self, card: Card, call: PlannedCall, problem_of: Callable[[Decision], str | None]
    ) -> Decision | None:
        """Ask about one call that is about to be made, together with others that ask now.

        `problem_of` says why changed arguments cannot be taken; then the question comes again, with that on the card.
        The same answer once more counts as a refusal.
        """
        if self.approve is None:
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
                if decision is not None and decision.arguments and (problem := question.problem_of(decision)):
                    if decision.arguments != question.tried:
                        question.tried = decision.arguments
                        question.card = question.card.with_problems({question.call.step: problem})
                        self._open.append(question)
                        continue
                    decision = Decision.deny(problem)
                if decision is not None:
                    self._note(card, question.call, decision, planned=False)
                if not question.answer.done():
                    question.answer.set_result(decision)

    async def _ask(self, calls: Sequence[PlannedCall], card: Card) -> dict[str, Decision | None]:
        if self.approve is None:
            return dict.fromkeys(call.step for call in calls)
        answer = self.approve(calls, card)
        said = cast(object, await answer if inspect.isawaitable(answer) else answer)
        return decisions_of(said, calls)

    def _note(self, card: Card, call: PlannedCall, decision: Decision, *, planned: bool) -> None:
        self.grants.add(call, decision, planned=planned)
        self.said += [str(value) for value in (decision.arguments or {}).values()]
        if self.decided is not None:
            self.decided(card, call, decision)


def _changes(decisions: Mapping[str, Decision | None]) -> dict[str, Mapping[str, Json]]:
    """Return the arguments that were changed, where nothing was refused."""
    found = [(step, decision) for step, decision in decisions.items() if decision is not None]
    if any(decision.answer == "deny" for _, decision in found):
        return {}
    return {step: decision.arguments for step, decision in found if decision.arguments}


class Guard:
    """Looks at the calls of one run. `watched` are the steps whose calls need a look."""

    def __init__(self, approvals: Approvals, checked: CheckedPlan, review: Review) -> None:
        self.watched = review.watched
        self._approvals = approvals
        self._checked = checked
        self._review = review
        self._allowed: dict[str, tuple[Mapping[str, Json], Ruling]] = {}  # by a person; for further attempts

    def watches(self, step: str) -> bool:
        """Return whether a call of this step needs a look."""
        return step.partition("[")[0] in self.watched

    def judge(self, step: str, arguments: Mapping[str, Json]) -> Ruling | PlannedCall:
        """Return what holds for a call with these values, or the call when somebody has to be asked."""
        before = self._allowed.get(step)
        if before is not None and before[0] == arguments:
            return before[1]
        call = self._review.judge(step, arguments)
        if call.verdict.action == "allow":
            return Ruling(True)
        if call.verdict.action == "deny":
            return Ruling(False, f"forbidden by the policy: {call.reason}")
        return Ruling(True) if self._approvals.grants.covers(call) else call

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
            return Ruling(False, f"not allowed: {decision.reason}" if decision.reason else "not allowed")
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


def guard_by_declarations(checked: CheckedPlan) -> Guard | None:
    """Return the guard of a run that nobody has given one: calls of tools that ask wait, forbidden ones fail."""
    if all(tool.approval in (None, "allow") for tool in checked.tools):
        return None
    by_caller = Situation(words_are_trusted=True)
    return Approvals().guard(checked, review(checked.plan, checked.tools, shipped_policy("declared"), by_caller))
