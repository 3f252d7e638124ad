"""How a request ends: from what became of its last plan to the result, in words (`answer.py` has the wording)."""

from __future__ import annotations

from dataclasses import replace

from toolplan.answer import cannot_text, failure_text, plain_results
from toolplan.errors import ModelError, PlanRejected
from toolplan.parse import CannotPlan, Prose
from toolplan.prompt import StepReport, answer_messages
from toolplan.replan import asks_for_another
from toolplan.result import Result
from toolplan.run import RunResult
from toolplan.schedule import StepRecord
from toolplan.turn import Turn

__all__ = ["answered", "failed", "without_rest"]


async def answered(run: RunResult, turn: Turn) -> Result:
    """Return the result of a request whose last plan ended like this."""
    if run.outcome == "waiting":
        return turn.waits_for_people(run)
    if run.outcome == "cannot":
        return turn.result("failed", cannot_text(run.text or "", run.missing, turn.language), run)
    if run.outcome == "replan":
        if run.error is not None:
            return failed(run, turn)
        return failed(replace(run, error=f"the plan asks to plan again: {run.text}"), turn, turn.spent)
    if run.outcome != "succeeded":
        return failed(run, turn, turn.spent if asks_for_another(run) and turn.replans else None)
    agent = turn.agent
    if agent.answer != "model" and run.text is not None:
        return turn.result("succeeded", run.text, run)
    if agent.answer == "none" or agent.model is None or not turn.request:
        return turn.result("succeeded", run.text or plain_results(turn.reached, turn.language), run)
    messages = answer_messages(
        turn.request,
        [_report(step) for step in turn.reached],
        language=agent.language,
        now=turn.now,
        context=agent.context,
        room=turn.room,
    )
    try:
        reply = await turn.infer(messages, "answer")
    except ModelError as error:  # what was done is done; the user must hear of it all the same
        text = run.text or plain_results(turn.reached, turn.language)
        return turn.result("succeeded", text, run, error=f"the answer could not be worded: {error}")
    return turn.result("succeeded", reply.text.strip(), run)


def failed(run: RunResult, turn: Turn, also: str | None = None) -> Result:
    """Return the result of a request whose last plan stopped; `also` is what went wrong after that."""
    changes = frozenset(tool.name for tool in turn.agent.tools if tool.effects.has_effects)
    why = run.error or run.text or ""
    text = failure_text(why, run.failed_step, turn.reached, changes, turn.language)
    return turn.result("failed", text, run, error=f"{why}; {also}" if also else why)


def without_rest(said: Prose | CannotPlan | PlanRejected, run: RunResult, turn: Turn) -> Result:
    """Return the result of a request whose plan stopped, when something else came instead of the rest of it.

    Words are the answer to what a plan wanted to see. After a failed step they are what the user gets to read, but what
    the plan was made for has not been done.
    """
    if isinstance(said, CannotPlan):
        text = cannot_text(said.reason, said.missing, turn.language)
        return turn.result("failed", text, error=said.reason, missing=tuple(said.missing))
    if isinstance(said, PlanRejected):
        return failed(run, turn, f"planning again gave no plan that may run: {said}")
    if run.outcome == "replan" and run.error is None:
        return turn.result("succeeded", said.text)
    why = "the model answered in words instead of planning the rest"
    return turn.result("failed", said.text, run, error=f"{run.error or run.text}; {why}")


def _report(step: StepRecord) -> StepReport:
    return StepReport(step.id, step.tool, step.outcome, step.arguments or {}, step.result, step.error)
