"""From the story of a run back to plans and machines: what `Agent.resume` goes on with, or why it cannot.

Everything that has changed is said at once, before anything runs. A plan that holds secrets has to be given again,
because they are not written down. A loop is told again from its beginning; see `retelling.py`.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, cast

from toolplan import show
from toolplan.approval import Card, Decision, decisions_of
from toolplan.check import CheckedPlan, check
from toolplan.diagnostics import render_all
from toolplan.errors import JournalError, JournalMismatch, PlanRejected, UsageError
from toolplan.journal import Decision as Decided
from toolplan.journal import LoopBegun, PlanBegun, Replayed, RunEnded, SecretLeftOut, Story, replay, tell
from toolplan.journal.known_json import known_from_json
from toolplan.known import Known
from toolplan.parse import parse
from toolplan.plan import Plan
from toolplan.planning import asked_with, refuse_forbidden
from toolplan.policy import PlannedCall, Review
from toolplan.recording import (
    edits_of,
    grant,
    held_before,
    policies_of,
    restore,
    restore_refusals,
    said_before,
    version,
    why_not_later,
)
from toolplan.result import Outcome, Result
from toolplan.retelling import Retelling, plan_as_kept, without_thoughts
from toolplan.route.offer import called_tools
from toolplan.run import RunResult
from toolplan.schedule import Setup
from toolplan.spoken import usage_from_json
from toolplan.tools import ToolSet
from toolplan.tools.fingerprint import changes_since
from toolplan.tools.seen_secrets import SeenSecrets
from toolplan.turn import Turn
from toolplan.values import Json

__all__ = ["Part", "parts_of", "take_up"]

Check = Callable[[Plan, Known], CheckedPlan]

MENDED = "mended, or unclear"
"""What is said to have been mended by an older version, which did not write down what."""


@dataclass(frozen=True, slots=True)
class Part:
    """One plan of the run. `state` is None for one that has not begun."""

    checked: CheckedPlan
    state: Replayed | None


class Run(Protocol):
    """The agent's way to run a plan, or to take one up: `Agent._run`."""

    def __call__(
        self, checked: CheckedPlan, reviewed: Review, turn: Turn, failure: str, goes_on: Replayed | None = None
    ) -> Awaitable[RunResult]:
        """Run the plan and note in the turn what came of it."""
        ...


async def take_up(
    turn: Turn, run_id: str, run: Run, *, given: Plan | None, accept_changes: bool
) -> Part | LoopBegun | Result:
    """Take a run over from whoever had it: return its last plan, for the turn to go on with, everything before noted.

    Of a loop, return how it was begun; what happened in it is then told again. Of a run that has ended, return the
    result. Raises what `Agent.resume` raises; the run is then given back as it was.
    """
    journal = turn.agent.journal
    assert journal is not None
    writer = await asyncio.to_thread(journal.take, run_id)
    try:
        story = tell(await asyncio.to_thread(journal.read, run_id))
        turn.record.go_on(writer, story)
        _restore(turn, story)
        if story.ended is not None and story.ended.outcome != "waiting":
            return await _ended(turn, story, story.ended, run, given)
        _refuse_kind(story, given)
        _refuse_changes(story, turn, given, accept_changes)
        if story.loop is not None:
            return _loop(turn, story, story.loop)
        tools = turn.agent.tools
        parts = parts_of(story, tools, lambda plan, known: check(plan, tools, turn.limits, known), given)
        if writer.secrets:
            for part in parts:
                writer.secrets.see_plan(part.checked.plan)
        await _tell(turn, parts[:-1], run)
        turn.origins.is_callers_plan = story.begun.is_callers_plan and len(parts) == 1
        turn.origins.said += edits_of(story)
        _refuse_forbidden(turn, parts[-1].checked)
    except BaseException:
        turn.record.leave()
        writer.close()
        raise
    turn.replans = len(parts) - 1
    turn.offer.show(called_tools(parts[-1].checked.plan))
    turn.asked, turn.plan_text = asked_with(turn), show.canonical(parts[-1].checked.plan)
    turn.record.resumed()
    restore(turn.approvals.grants, story)
    turn.approvals.held = held_before(story, turn.agent.tools)
    turn.approvals.approve = said_before(story, turn.agent.policy, turn.agent.approve)
    return parts[-1]


def _restore(turn: Turn, story: Story) -> None:
    """Let the turn know what the process that had the run knew of it before its plans."""
    begun, agent = story.begun, turn.agent
    turn.origins.is_callers_plan = begun.is_callers_plan
    turn.approvals.grants.policies = policies_of(story, agent.policy)
    if begun.trust_repairs is False:  # what waited for a yes still needs it
        turn.trust_repairs = False
    for inferred in story.inferred:
        turn.counted_before(usage_from_json(inferred.usage))
    if begun.policy_fingerprint:  # else an older version has not written its budgets
        if agent.limits.max_calls is None:
            turn.limits = replace(agent.limits, max_calls=begun.max_calls)
        if agent.max_seconds is None:
            turn.max_seconds = begun.max_seconds
    if story.loop is not None:
        turn.mode, turn.mode_reason = story.loop.mode, story.loop.reason


async def _tell(turn: Turn, parts: Sequence[Part], run: Run) -> None:
    """Note what came of plans that have ended."""
    for part in parts:
        if part.state is not None:
            await run(part.checked, turn.reviewed(part.checked), turn, turn.agent.failure, part.state)
        turn.origins.is_callers_plan = False


async def _ended(turn: Turn, story: Story, ended: RunEnded, run: Run, given: Plan | None) -> Result:
    """Return the result of a run that has ended. What the policy says by now does not matter any more."""
    agent, parts = turn.agent, list[Part]()
    if story.parts:
        fatal = _changes(story, agent.tools)[0] + _missing(story, agent.tools, given)
        _refuse(story, fatal, [])
        parts = parts_of(story, agent.tools, lambda plan, known: check(plan, agent.tools, turn.limits, known), given)
        await _tell(turn, parts, run)
        turn.accepted(parts[-1].checked)
    for said, _ in story.said:
        turn.counted_before(usage_from_json(said.usage))
    turn.replans = max(0, len(parts) - 1) if turn.mode_used == "plan" else 0
    turn.record.leave()
    return turn.result(cast("Outcome", ended.outcome), ended.text or "", turn.run, error=ended.error)


def _refuse_kind(story: Story, given: Plan | None) -> None:
    """Raise `JournalError` for a run with nothing to go on with, `UsageError` for a plan given to what has none."""
    begun = story.begun
    if story.loop is not None and given is not None:
        raise UsageError(f"run {begun.run_id} is a loop, which has no plan that could be given")
    if story.loop is None and begun.mode == "loop" and not begun.policy_fingerprint:
        raise JournalError(
            f"run {begun.run_id} is a loop whose model's words were not written down, by an older version; it cannot "
            "be resumed, and `toolplan runs` shows its calls"
        )
    if story.loop is None and not story.parts:
        raise JournalError(f"the process of run {begun.run_id} ended before there was a plan, so nothing was done")


def _loop(turn: Turn, story: Story, begun: LoopBegun) -> LoopBegun:
    """Return how the loop was begun, for the turn to tell it again."""
    retelling = Retelling(story, turn.record.resumed)
    turn.retelling = retelling
    if begun.shown is not None:
        turn.offer.restore(begun.shown)
    ask, decided = turn.agent.approve, turn.approvals.decided
    then = _said_then(turn, story)

    async def approve_live(calls: Sequence[PlannedCall], card: Card) -> dict[str, Decision | None]:
        if retelling.is_telling_calls:
            return {call.step: then(call) for call in calls}
        if ask is None or not retelling.is_over:
            return {}
        retelling.live()
        found = ask(calls, card)
        return decisions_of(await found if inspect.isawaitable(found) else found, calls)

    def decide(card: Card, call: PlannedCall, decision: Decision) -> None:
        if decided is not None and not retelling.is_telling_calls:  # else nobody says it now
            decided(card, call, decision)

    restore_refusals(turn.approvals.grants, story)
    turn.approvals.decided = decide
    turn.approvals.held = held_before(story, turn.agent.tools)
    turn.approvals.approve = said_before(story, turn.agent.policy, approve_live)
    return begun


def _said_then(turn: Turn, story: Story) -> Callable[[PlannedCall], Decision]:
    """Return what says of the calls of a turn that was run what became of them then, whoever would ask now.

    They were allowed, or nobody asked, or the turn could not have been run; with changes, or refused. Those that have
    not been made ask again when they are about to be, unless what asks now asked then, too.
    """
    words: dict[str, deque[Decided]] = {}
    for said in story.decisions:
        if said.planned:
            words.setdefault(said.step, deque()).append(said)

    def then(call: PlannedCall) -> Decision:
        left = words.get(call.step)
        if not left:
            return Decision.allow(each_call=True)
        said = left.popleft()
        if said.answer == "deny":
            return Decision.deny(said.reason)
        grant(turn.approvals.grants, said)
        changed = cast("dict[str, Json] | None", said.arguments)
        return Decision.allow(arguments=changed, each_call=True)

    return then


def parts_of(story: Story, tools: ToolSet, check: Check, given: Plan | None = None) -> list[Part]:
    """Return the plans of a run in the state that its story tells; `given` is the last plan as the caller has it.

    Raises `JournalMismatch` for a story that cannot have happened with these plans.
    """
    parts: list[Part] = []
    secrets = SeenSecrets()
    for number, (begun, entries) in enumerate(story.parts):
        is_last = number == len(story.parts) - 1
        checked = _checked(begun, tools, check, given if is_last else None)
        has_begun = not is_last or story.has_begun
        setup = Setup.from_json(begun.settings)
        state = replay(entries, checked.plan, tools, checked.known, setup, secrets) if has_begun else None
        parts.append(Part(checked, state))
        if not is_last and state is not None and state.machine.finished is None:
            raise JournalMismatch(f"plan {number + 1} of run {story.begun.run_id} has no end, but another one follows")
    return parts


def _refuse_changes(story: Story, turn: Turn, given: Plan | None, accept_changes: bool) -> None:
    """Raise `JournalMismatch`, with everything that has changed, for a run that cannot go on.

    With `accept_changes` only for what would make its journal mean something else.
    """
    fatal, others = _changes(story, turn.agent.tools)
    fatal += _missing(story, turn.agent.tools, given)
    _refuse(story, fatal, [] if accept_changes else [*_settings(story, turn), *others])


def _refuse(story: Story, fatal: Sequence[str], others: Sequence[str]) -> None:
    if fatal or others:
        hint = "" if fatal else "; `accept_changes=True` (`--accept-changes`) goes on all the same"
        said = "; ".join(dict.fromkeys([*fatal, *others]))
        raise JournalMismatch(f"run {story.begun.run_id} cannot go on as it is: {said}{hint}")


def _changes(story: Story, tools: ToolSet) -> tuple[list[str], list[str]]:
    """Return what of the tools has changed: what makes it impossible to go on, and what a person may accept."""
    fatal: list[str] = []
    others: list[str] = []
    for begun, _ in story.parts:
        found, more = changes_since(begun.tools, tools)
        fatal += found
        others += more
    return fatal, others


def _settings(story: Story, turn: Turn) -> list[str]:
    """Return what else has changed, and a person may accept: the version, the policy, for whom, the budgets."""
    begun, agent, now = story.begun, turn.agent, version()
    found: list[str] = []
    if begun.version != now:
        found.append(f"it was begun by toolplan {begun.version or '?'}, and this is {now or '?'}")
    if not begun.policy_fingerprint:  # an older version has not written the rest
        return found
    if begun.policy_fingerprint != agent.policy.fingerprint:
        names = f": it was `{begun.policy or '?'}`, and is `{agent.policy.name or '?'}`"
        found.append("the policy is not what it was" + ("" if begun.policy == agent.policy.name else names))
    if begun.user != agent.user:
        found.append(f"it was begun for the user {begun.user!r}, and this is {agent.user!r}")
    if turn.limits.max_calls != begun.max_calls:
        found.append(f"`max_calls` was {begun.max_calls}, and is {turn.limits.max_calls}")
    if turn.max_seconds != begun.max_seconds:
        found.append(f"`max_seconds` was {begun.max_seconds}, and is {turn.max_seconds}")
    return found


def _missing(story: Story, tools: ToolSet, given: Plan | None) -> list[str]:
    """Return what is missing because secrets are not written down."""
    lost = why_not_later(story)
    found = [lost] if lost is not None else []
    if story.loop is not None:
        return found
    begun, entries = story.parts[-1]
    is_cut = any(isinstance(entry, SecretLeftOut) and entry.what == "plan" for entry in entries)
    if given is None:
        if is_cut:
            found.append("its plan holds secrets, which were not written down; give the plan again (`plan`)")
        return found
    if without_thoughts(plan_as_kept(given, tools)) != without_thoughts(begun.plan):
        found.append("the plan that was given is not the plan of this run")
    return found


def _checked(begun: PlanBegun, tools: ToolSet, check: Check, given: Plan | None) -> CheckedPlan:
    known = known_from_json(begun.known)
    repairs = tuple(begun.repairs) or (MENDED,) * begun.mended
    try:
        plan = given
        if plan is None:
            shown = cast("dict[str, Json]", begun.plan)
            reading = parse(shown, notation="json", tools=tools, name="journal", first_step=known.steps + 1)
            assert isinstance(reading, Plan), "a journal keeps plans in their canonical form"
            plan = replace(with_ids(reading, begun.ids), notation=begun.notation)
        return check(replace(plan, repairs=repairs), known)
    except PlanRejected as rejection:
        raise _may_not_run(rejection) from None


def _refuse_forbidden(turn: Turn, checked: CheckedPlan) -> None:
    """Raise `JournalMismatch` when the policy forbids calls of the last plan, whose sources are known by now."""
    try:
        refuse_forbidden(turn.reviewed(checked))
    except PlanRejected as rejection:
        raise _may_not_run(rejection) from None


def _may_not_run(rejection: PlanRejected) -> JournalMismatch:
    why = render_all(rejection.diagnostics, rejection.source)
    return JournalMismatch(f"the plan of the run may not run with these tools and this policy:\n{why}")


def with_ids(plan: Plan, ids: Sequence[str]) -> Plan:
    """Return the plan, its steps with these ids; none are given for a plan that has them already."""
    if not ids:
        return plan
    assert len(ids) == len(plan.steps), "only the calls of a loop have ids of their own"
    return replace(plan, steps=tuple(replace(step, id=id) for step, id in zip(plan.steps, ids, strict=True)))
