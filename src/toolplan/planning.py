"""Asking a model for a plan: once, again with what is wrong with it, and for the rest of one that has stopped.

messages -> (model) -> read -> check -> a plan that may run
^                    | rejected |
+---- diagnostics ---+----------+
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from toolplan.check import CheckedPlan, check
from toolplan.diagnostics import Place, render_all
from toolplan.diagnostics.reading import cut_off
from toolplan.errors import PlanRejected
from toolplan.known import NOTHING_KNOWN, Known
from toolplan.models import Reply
from toolplan.parse import CannotPlan, Prose, parse
from toolplan.plan import Plan
from toolplan.policy import Review
from toolplan.prompt import (
    PromptMessage,
    concerned_tools,
    plan_messages,
    repair_messages,
    replan_messages,
    replan_repair_messages,
)
from toolplan.replan import known_after, reports, stopped
from toolplan.route.offer import called_tools
from toolplan.run import RunResult
from toolplan.turn import Turn
from toolplan.values import Json

__all__ = ["ask_for_plan", "ask_for_rest", "asked_with", "check_in", "read_plan", "refuse_forbidden"]

CUT_BEHIND = "took it as meant to run, although the reply was cut off behind the plan (finish reason: {reason})"
"""The repair of a plan that is whole where its reply is not."""

Planned = CheckedPlan | Prose | CannotPlan | PlanRejected


def asked_with(turn: Turn) -> tuple[PromptMessage, ...]:
    """Return the messages that ask for a plan, with what was said before and what there is besides a plan."""
    agent = turn.agent
    return plan_messages(
        turn.request,
        turn.offer.tools,
        language=agent.language,
        notation=turn.form,
        now=turn.now,
        context=agent.context,
        extra_rules=agent.extra_rules,
        may_loop=turn.mode == "auto",
        earlier=turn.past.told,
        others=turn.offer.others_told,
    )


def read_plan(
    turn: Turn, text: str | list[Json] | dict[str, Json], known: Known = NOTHING_KNOWN
) -> Plan | Prose | CannotPlan:
    """Return what a text says: a plan, words, or that there can be no plan. Raises `PlanRejected`."""
    agent = turn.agent
    return parse(
        text,
        notation="auto",
        tools=agent.tools,
        asked_for=agent.notation,
        first_step=known.steps + 1,
        request=turn.request,
    )


def check_in(turn: Turn, plan: Plan, known: Known = NOTHING_KNOWN) -> CheckedPlan:
    """Return a plan of this request checked, the policy included. Raises `PlanRejected`."""
    checked = check(plan, turn.agent.tools, turn.limits, known)
    refuse_forbidden(turn.reviewed(checked))
    return checked


def refuse_forbidden(reviewed: Review) -> None:
    """Raise `PlanRejected` when the policy forbids calls of the plan, whatever comes."""
    if reviewed.forbidden:
        raise PlanRejected(reviewed.forbidden, reviewed.plan.source)


async def ask_for_plan(
    turn: Turn,
    messages: Sequence[PromptMessage],
    purpose: str = "plan",
    known: Known = NOTHING_KNOWN,
    *,
    refused: tuple[PlanRejected, Plan] | None = None,
) -> Planned:
    """Ask for a plan, and again with the diagnostics when it is refused; return what came of it in the end.

    With `refused`, a plan that `messages` had asked for was refused later on, for these reasons.
    """
    turn.messages, asked, first_purpose = messages, messages, purpose
    if refused is not None:
        purpose, asked = "repair", _repair_prompt(turn, messages, turn.plan_text, *refused, known)
    while True:
        reply = await turn.infer(asked, purpose, known=known)
        reading = None
        try:
            reading = read_plan(turn, reply.plan_text, known)
            if refused is None and (needed := turn.offer.needed(reading)):
                turn.shows(needed, "the plan needs tools that had not been shown")
                purpose, messages = first_purpose, _with_offer(turn)
                asked = messages
                continue
            if isinstance(reading, Prose | CannotPlan):
                return reading
            reading = _as_far_as_it_came(reading, reply)
            checked = check_in(turn, reading, known)
            turn.offer.show(called_tools(checked.plan))
            await turn.review(checked, messages)
            turn.plan_text = reply.plan_text
            return checked
        except PlanRejected as rejection:
            read = reading if isinstance(reading, Plan) else None
            told = turn.refused(rejection, read)
            if turn.attempts > turn.agent.max_repairs:
                return told
            purpose = "repair"
            asked = _repair_prompt(turn, messages, reply.plan_text, rejection, read, known)


async def ask_for_rest(turn: Turn, checked: CheckedPlan, run: RunResult) -> Planned:
    """Ask for the rest of a plan that stopped; return what came of it. Raises `ModelError`."""
    known = turn.known or known_after(checked, run)
    done, others = reports(turn.steps, known)
    turn.replanning(run)
    turn.early.go_on()
    messages = replan_messages(
        turn.asked,
        turn.request,
        turn.plan_text,
        stopped(run),
        done,
        others,
        f"s{known.steps + 1}",
        language=turn.agent.language,
        notation=turn.form,
        room=turn.room,
    )
    return await ask_for_plan(turn, messages, "replan", known)


def _with_offer(turn: Turn) -> tuple[PromptMessage, ...]:
    """Return the messages that the turn asks with, where they show all that is offered by now."""
    turn.asked = asked_with(turn)
    turn.messages = (turn.asked[0], *turn.messages[1:])  # the tools stand in the system message
    return tuple(turn.messages)


def _repair_prompt(
    turn: Turn,
    messages: Sequence[PromptMessage],
    text: str,
    rejection: PlanRejected,
    plan: Plan | None,
    known: Known,
) -> tuple[PromptMessage, ...]:
    agent = turn.agent
    diagnostics = render_all(rejection.diagnostics, rejection.source)
    if known is not NOTHING_KNOWN:  # without what has run nobody could mend it
        return replan_repair_messages(messages, turn.request, text, diagnostics, language=agent.language)
    if turn.offer.is_partial:
        turn.offer.show(concerned_tools(agent.tools, text, diagnostics, plan).names)
    return repair_messages(
        turn.request,
        text,
        diagnostics,
        turn.offer.tools,
        plan=plan,
        language=agent.language,
        notation=turn.form,
        now=turn.now,
        context=agent.context,
        extra_rules=agent.extra_rules,
    )


def _as_far_as_it_came(plan: Plan, reply: Reply) -> Plan:
    """Return a plan out of a reply, with the doubt whether it is meant where the reply was, or may be, cut off.

    What would have followed might have asked for leave, or taken the plan back. Raises `PlanRejected` unless the plan
    itself is certainly whole. A JSON value that needed no mending is. A program may have lost lines without a trace.
    """
    if not reply.may_be_cut_off:
        return plan
    if reply.is_cut_off and (plan.notation != "json" or plan.repairs):
        end = len(plan.source.text)
        raise PlanRejected([cut_off(Place(start=max(0, end - 1), end=end), [])], plan.source)
    return replace(plan, repairs=(CUT_BEHIND.format(reason=reply.finish_reason), *plan.repairs))
