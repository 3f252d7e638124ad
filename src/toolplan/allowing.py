"""Before a plan runs: who has to allow it, and what becomes of it when they change it or refuse.

A plan that a person changes is checked and judged again. One that is refused with a reason goes back to the model with
it, as one that does not check does.
"""

from __future__ import annotations

from functools import partial

from toolplan.agent_events import PlanRefused
from toolplan.answer import approval_text
from toolplan.approval import Changes, with_arguments
from toolplan.check import CheckedPlan
from toolplan.diagnostics.effects import not_allowed
from toolplan.errors import PlanRejected, UsageError
from toolplan.plan import AskModel, Call, Plan, walk
from toolplan.planning import ask_for_plan, check_in
from toolplan.policy import Review
from toolplan.result import Result
from toolplan.run.approvals import Word
from toolplan.turn import Turn

__all__ = ["allowed", "need_reader"]


async def allowed(checked: CheckedPlan, turn: Turn) -> tuple[CheckedPlan, Review] | Result:
    """Return the plan that may run, and what the policy says about it, or the end of the request if none may."""
    need_reader(checked, turn)
    turn.accepted(checked)
    while True:
        reviewed = turn.approvals.minding(turn.reviewed(checked))
        if reviewed.asks and turn.begin_run() is not None:
            turn.record.asks(checked)
        word = await turn.approvals.of_plan(checked, reviewed, fits=partial(_misfit, checked, turn))
        if word is None:
            return checked, reviewed
        turn.card = word.card
        asks = word.undecided if word.allowed is None else word.card.asks or tuple(call for call, _ in word.refused)
        calls = [(call.step, call.tool) for call in asks]
        if word.allowed is None:
            text = approval_text(calls, turn.language, refused=False, rest=turn.replans > 0)
            return turn.result("waiting", text, error="the plan waits for approval", approvals=asks)
        if word.allowed and not word.edits:
            return checked, reviewed
        try:
            if word.allowed:
                checked = _edited(checked, word, turn)
                continue
            raise _refusal(word, checked.plan)
        except PlanRejected as rejection:
            if word.allowed:
                return turn.rejected(rejection)
            turn.attempts += 1
            may_repair = turn.agent.model is not None and turn.attempts <= turn.agent.max_repairs
            if not word.reasons or not turn.messages or not may_repair:
                text = approval_text(calls, turn.language, refused=True, rest=turn.replans > 0)
                outcome = "failed" if turn.replans else "rejected"  # of a replanned request, something did run
                why = "; ".join(reason for _, reason in word.reasons)
                error = f"the plan was not approved: {why}" if why else "the plan was not approved"
                return turn.result(outcome, text, error=error, approvals=asks)
            turn.tell(PlanRefused(rejection, turn.attempts))
            known, refused = checked.known, (rejection, checked.plan)
            planned = await ask_for_plan(turn, turn.messages, "repair", known, refused=refused)
            if not isinstance(planned, CheckedPlan):
                return turn.no_plan(planned)
            checked = planned
            need_reader(checked, turn)
            turn.accepted(checked)


def need_reader(checked: CheckedPlan, turn: Turn) -> None:
    """Raise `UsageError` when the plan has a question to a model, and there is none."""
    if turn.agent.reader is None and any(isinstance(step, AskModel) for step in walk(checked.plan.steps)):
        raise UsageError(
            "the plan has an `ask_model` step and this agent has no model to ask; give `Agent(model=...)`, or "
            '`reader=...`, a name such as "openai:gpt-5-mini"'
        )


def _misfit(checked: CheckedPlan, turn: Turn, edits: Changes) -> str | None:
    """Return why the plan with these arguments may not run, None when it may."""
    try:
        check_in(turn, with_arguments(checked.plan, edits), checked.known)
    except PlanRejected as rejection:
        return "; ".join(diagnostic.message for diagnostic in rejection.diagnostics)
    return None


def _edited(checked: CheckedPlan, word: Word, turn: Turn) -> CheckedPlan:
    """Return the plan with the arguments that a person has changed. Raises `PlanRejected` when they do not fit."""
    edited = check_in(turn, with_arguments(checked.plan, word.edits), checked.known)
    turn.accepted(edited)
    return edited


def _refusal(word: Word, plan: Plan) -> PlanRejected:
    """Return the refusal of a plan with a diagnostic for each call that a person has refused."""
    places = {step.id: step.tool_place for step in walk(plan.steps) if isinstance(step, Call)}
    found = [not_allowed(places[call.step], call.step, call.tool, reason) for call, reason in word.refused]
    return PlanRejected(found, plan.source)
