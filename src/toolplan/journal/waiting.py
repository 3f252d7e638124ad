"""What a run waits for, and a person's answer to it, from whatever process: they are entries of the run.

A run that waits has ended its process's work with `RunEnded("waiting")` and its questions. Each function here takes the
run (so that nobody works on it meanwhile), adds the answer and gives the run back; `resume` goes on from there.
"""

from __future__ import annotations

import datetime as dt
import getpass
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any, Literal, cast

from toolplan.errors import UsageError
from toolplan.journal.entries import Decision, Entry, RunEnded, StepResolved
from toolplan.journal.replay import tell
from toolplan.journal.store import Journal
from toolplan.schedule import CallSucceeded
from toolplan.values import Json

__all__ = ["answer", "approve", "questions", "resolve"]

Question = dict[str, Any]


def questions(entries: Sequence[Entry]) -> list[Question]:
    """Return what the run still waits for: `kind` is `approval`, `question` or `unknown`, `step` says where."""
    found: list[Question] = []
    for entry in entries:
        match entry:
            case RunEnded():
                found = cast("list[Question]", list(entry.questions)) if entry.outcome == "waiting" else []
            case Decision():
                said = ("approval", entry.step, entry.bound)
                found = [q for q in found if (q["kind"], q["step"], q.get("bound")) != said]
            case StepResolved() | CallSucceeded():
                found = [q for q in found if q["kind"] == "approval" or q["key"] != entry.key]
            case _:
                pass
    return found


def approve(
    journal: Journal,
    run_id: str,
    *,
    steps: Sequence[str] = (),
    deny: str | None = None,
    scope: Literal["once", "run"] = "once",
) -> list[Question]:
    """Allow what the run asks for, or refuse it with a reason; all of it, or only the calls of these steps.

    Returns what it was about. Raises `UsageError` when nothing of the kind is asked.
    """

    def decided(question: Question) -> Decision:
        return Decision(
            "allow" if deny is None else "deny",
            question["step"],
            question["bound"],
            question["tool"],
            question["rules"],
            question["planned"],
            scope,
            reason=deny or "",
            by=_who(),
            at=_now(),
            call=question.get("call", ""),
            policy=question.get("policy", ""),
        )

    return _say(journal, run_id, "approval", steps, decided, "for nobody's approval")


def answer(journal: Journal, run_id: str, text: str, *, step: str | None = None) -> list[Question]:
    """Answer the question of the plan that the run waits for. Raises `UsageError` when there is none, or several."""
    steps = [step] if step is not None else []
    return _say(
        journal,
        run_id,
        "question",
        steps,
        lambda question: CallSucceeded(question["key"], text),
        "for no answer",
        one=True,
    )


def resolve(
    journal: Journal,
    run_id: str,
    step: str,
    how: Literal["happened", "did_not_happen", "fail"],
    *,
    result: Json = None,
    reason: str = "",
) -> list[Question]:
    """Say whether an effect has happened of which nobody knows. Raises `UsageError` when the run asks no such thing."""

    def said(question: Question) -> StepResolved:
        if how == "happened" and question.get("is_secret"):
            raise UsageError(
                f"the result of {step} ({question['tool']}) is secret, and secrets are not written down, so the run "
                "cannot go on with it: if it has happened, say `fail`"
            )
        return StepResolved(question["key"], step, how, result, reason, _who(), _now())

    return _say(journal, run_id, "unknown", [step], said, "for nobody to find out what has happened")


def _say(
    journal: Journal,
    run_id: str,
    kind: str,
    steps: Sequence[str],
    make: Callable[[Question], Entry],
    nothing: str,
    *,
    one: bool = False,
) -> list[Question]:
    """Add the answers to those questions of a kind that the steps name, or to all of them."""
    with closing(journal.take(run_id)) as writer:
        entries = journal.read(writer.run_id)
        if (story := tell(entries)).begun.mode == "loop" and story.loop is None:
            raise UsageError(
                f"run {writer.run_id} is a loop of an older version, which cannot be resumed: run it again"
            )
        everything = questions(entries)
        asked = [question for question in everything if question["kind"] == kind]
        chosen = [question for question in asked if not steps or question["step"] in steps]
        if missing := [step for step in steps if all(question["step"] != step for question in chosen)]:
            known = ", ".join(question["step"] for question in asked)
            hint = f"it asks about {known}" if known else _hint(journal, writer.run_id, everything)
            raise UsageError(f"run {writer.run_id} waits {nothing} at {', '.join(missing)}; {hint}")
        if not chosen:
            raise UsageError(f"run {writer.run_id} waits {nothing}; {_hint(journal, writer.run_id, everything)}")
        if one and len(chosen) > 1:
            known = ", ".join(question["step"] for question in chosen)
            raise UsageError(f"run {writer.run_id} waits for several answers; say which step's: {known}")
        for question in chosen:
            writer.add(make(question))
        writer.flush()
    return chosen


_COMMANDS = {
    "approval": "for approval: `toolplan approve {run}`",
    "question": 'for an answer: `toolplan answer {run} "..."`',
    "unknown": "to hear whether an effect happened: `toolplan resolve {run} STEP ...`",
}


def _hint(journal: Journal, run_id: str, asked: Sequence[Question]) -> str:
    kinds = dict.fromkeys(question["kind"] for question in asked)
    if kinds:
        return "it waits " + ", and ".join(_COMMANDS[kind].format(run=run_id[:12]) for kind in kinds)
    outcome = journal.row(run_id).outcome
    if outcome == "running":
        return "its process is gone; `resume` it first, which says what has to be known"
    return "what it waited for has been answered; `resume` it" if outcome == "waiting" else f"it has ended: {outcome}"


def _who() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # nobody has a name here
        return ""


def _now() -> str:
    return dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
