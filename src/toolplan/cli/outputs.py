"""What a command ends with: a text or one JSON document, and an exit code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolplan.cli.streams import say, say_json, warn
from toolplan.cli.words import WORDS, Tongue, count

if TYPE_CHECKING:
    from toolplan.agent import Result
    from toolplan.errors import PlanRejected
    from toolplan.parse import CannotPlan, Prose
    from toolplan.plan import Plan
    from toolplan.values import Json

__all__ = [
    "EXIT_CODES",
    "FAILED",
    "INTERRUPTED",
    "OK",
    "USAGE",
    "WAITING",
    "complain",
    "print_no_plan",
    "print_rejection",
    "print_result",
    "to_json",
    "why_no_plan",
]

OK, FAILED, USAGE, WAITING, INTERRUPTED = 0, 1, 2, 3, 130

EXIT_CODES = {
    OK: "success",
    FAILED: "refused or failed",
    USAGE: "wrong usage",
    WAITING: "waiting for a person",
    128 + 1: "ended by SIGHUP",
    INTERRUPTED: "interrupted",
    128 + 15: "ended by SIGTERM",
}
"""Every exit code, and what it means."""


def complain(message: str, code: int, *, as_json: bool, whole: bool = False, in_one_line: bool = False) -> int:
    """Print why a command could not do its work; return `code`.

    With `whole` the document has every key that the command's documents have.
    """
    if not as_json:
        warn(f"toolplan: {message}")
    elif code == USAGE:
        say_json({"outcome": "usage", "error": message}, in_one_line=in_one_line)
    elif whole:
        from toolplan.agent import Result

        say_json(Result("failed", "", error=message).to_dict())
    else:
        say_json({"outcome": "failed", "error": message})
    return code


def print_result(result: Result, language: Tongue, *, as_json: bool) -> int:
    """Print what became of a request; return the exit code."""
    code = {"succeeded": OK, "waiting": WAITING}.get(result.outcome, FAILED)
    if as_json:
        say_json(result.to_dict())
        return code
    words = WORDS[language]
    if result.answer and not result.approvals:  # what stands there then is said below, for people at a terminal
        say(result.answer)
    if result.outcome == "waiting" and result.approvals:
        steps = words["join"].join(f"{call.step} ({call.tool})" for call in result.approvals)
        has_run = any(step.outcome == "succeeded" for step in result.steps)
        warn(words["needs_approval_rest" if has_run else "needs_approval"].format(steps=steps))
        for call in result.approvals:
            warn(f"  {call.step}  {call.tool}: {call.reason_in(language)}")
        warn(words["how_to_approve"])
    elif result.outcome == "waiting" and not all(_is_unknown(question) for question in result.waits_for or ({},)):
        warn(words["needs_answer"])
    elif result.outcome == "rejected" and result.approvals:
        warn(words["not_approved"])
    elif result.error and (result.outcome == "succeeded" or not result.answer):
        warn(result.error)
    if result.waits_for:
        from toolplan.cli.runs import how_to_go_on

        warn(how_to_go_on(result.run_id, result.waits_for, words))
    return code


def _is_unknown(question: Json) -> bool:
    return isinstance(question, dict) and question.get("kind") == "unknown"


def print_rejection(rejection: PlanRejected, *, as_json: bool, in_one_line: bool = False) -> int:
    """Print everything that is wrong with a plan; return the exit code."""
    from toolplan.diagnostics import render_all

    found = rejection.diagnostics
    if as_json:
        shown = [diagnostic.to_dict(rejection.source) for diagnostic in found]
        document = {"outcome": "rejected", "error": str(rejection), "diagnostics": shown, "plan": None}
        say_json(document, in_one_line=in_one_line)
    else:
        say(render_all(found, rejection.source))
        say(f"\n{count(len(found), 'problem', 'en')}")
    return FAILED


def print_no_plan(reading: Prose | CannotPlan, *, as_json: bool, in_one_line: bool = False) -> int:
    """Say that a text is an answer or a refusal where a plan was expected; return the exit code."""
    from toolplan.parse import Prose

    error = why_no_plan(reading)
    missing = () if isinstance(reading, Prose) else reading.missing
    if as_json:
        document = {"outcome": "rejected", "error": error, "missing": list(missing), "diagnostics": [], "plan": None}
        say_json(document, in_one_line=in_one_line)
        return FAILED
    say(error)
    for thing in missing:
        say(f"missing: {thing}")
    return FAILED


def why_no_plan(reading: Prose | CannotPlan) -> str:
    """Return why what was read is no plan."""
    from toolplan.parse import Prose

    if isinstance(reading, Prose):
        return "this text is prose, not a plan; as a model's reply it would be the answer itself"
    return f"this text says that there is no plan: {reading.reason}"


def to_json(plan: Plan) -> Any:
    """Return the plan as the JSON value that documents show."""
    from toolplan import show

    return show.to_json(plan)
