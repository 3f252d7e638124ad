"""What a command ends with: a text or one JSON document, and an exit code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolplan.cli.streams import say, say_json, warn
from toolplan.cli.words import WORDS, Tongue, count

if TYPE_CHECKING:
    from toolplan.agent import Result
    from toolplan.errors import PlanRejected
    from toolplan.plan import Plan

__all__ = ["FAILED", "INTERRUPTED", "OK", "USAGE", "WAITING", "complain", "print_rejection", "print_result", "to_json"]

OK, FAILED, USAGE, WAITING, INTERRUPTED = 0, 1, 2, 3, 130


def complain(message: str, code: int, *, as_json: bool, whole: bool = False) -> int:
    """Print why a command could not do its work; return `code`.

    With `whole` the document has every key that the command's documents have.
    """
    if not as_json:
        warn(f"toolplan: {message}")
    elif code == USAGE:
        say_json({"outcome": "usage", "error": message})
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
    if result.answer:
        say(result.answer)
    if result.outcome == "waiting" and result.approvals:
        steps = words["join"].join(f"{call.step} ({call.tool})" for call in result.approvals)
        warn(words["needs_approval"].format(steps=steps))
        warn(words["how_to_approve"])
    elif result.outcome == "waiting":
        warn(words["needs_answer"])
    elif result.outcome == "rejected" and result.approvals:
        warn(words["not_approved"])
    elif result.error and (result.outcome == "succeeded" or not result.answer):
        warn(result.error)
    return code


def print_rejection(rejection: PlanRejected, *, as_json: bool) -> int:
    """Print everything that is wrong with a plan; return the exit code."""
    from toolplan.diagnostics import render_all

    found = rejection.diagnostics
    if as_json:
        shown = [diagnostic.to_dict(rejection.source) for diagnostic in found]
        say_json({"outcome": "rejected", "error": str(rejection), "diagnostics": shown, "plan": None})
    else:
        say(render_all(found, rejection.source))
        say(f"\n{count(len(found), 'problem', 'en')}")
    return FAILED


def to_json(plan: Plan) -> Any:
    """Return the plan as the JSON value that documents show."""
    from toolplan import show

    return show.to_json(plan)
