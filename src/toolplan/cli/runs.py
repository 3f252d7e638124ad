"""Runs in the journal: listing them, going on with them, and a person's answers to what they wait for."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

from toolplan.cli.outputs import OK
from toolplan.cli.streams import say, say_json, warn
from toolplan.errors import JournalError, UsageError
from toolplan.journal import (
    Decision,
    EffectStarted,
    Entry,
    Journal,
    LoopBegun,
    ModelSaid,
    PlanBegun,
    RunEnded,
    RunResumed,
    RunRow,
    StepResolved,
    tell,
    waiting,
)
from toolplan.journal.where import default_path
from toolplan.schedule import CallFailed, CallSucceeded
from toolplan.values import Json, shorten

__all__ = [
    "answer",
    "approve",
    "begun_of",
    "how_to_go_on",
    "journal_at",
    "journal_for",
    "list_runs",
    "resolve",
    "show_run",
]

ROOM = 200
"""Characters of the arguments of a call that are shown in a line."""
_DECIDED = {"allow": "allowed", "deny": "refused"}
_OUTCOMES = {True: "running", False: "interrupted"}


def journal_at(path: str | None) -> Path:
    """Return the path of the journal that a command works with."""
    return Path(path) if path is not None else default_path()


def journal_for(path: str | None, *, off: bool = False) -> Path | None:
    """Return the journal to write a run to. One that nobody named, and that cannot be written, is done without."""
    if off:
        if path is not None:
            raise UsageError("`--journal` and `--no-journal` ask for different things; give one of them")
        return None
    try:
        return Journal(journal_at(path)).path
    except JournalError as error:
        if path is not None:
            raise
        warn(f"toolplan: this run cannot be resumed, for it has no journal: {error}")
        return None


def list_runs(path: str | None, *, limit: int, as_json: bool) -> int:
    """List the newest runs."""
    file = journal_at(path)
    rows = Journal(file, readonly=True).runs(limit=limit) if file.exists() or path is not None else []
    if as_json:
        say_json([_row(row) for row in rows])
        return OK
    if not rows:
        say(f"there are no runs in {file}")
    for row in rows:
        request = shorten(row.request or "-", 80).strip("'")
        say(f"{row.run_id[:12]}  {row.begun[:19]}  {_outcome(row):<11}  {request}")
    return OK


def show_run(path: str | None, run_id: str, *, as_json: bool) -> int:
    """Show what is written of one run."""
    journal = Journal(journal_at(path), readonly=True)
    row, entries = journal.row(run_id), journal.read(run_id)
    asked = waiting.questions(entries)
    if as_json:
        told: list[Any] = [{"entry": type(entry).__name__, "text": _line(entry)} for entry in entries]
        say_json({**_row(row), "entries": told, "waits_for": asked})
        return OK
    say(f"{row.run_id}  {_outcome(row)}" + (f"\n{row.request}" if row.request else ""))
    for entry in entries:
        if line := _line(entry):
            say(f"  {line}")
    for question in asked:
        say(f"waits: {waits_in_words(row.run_id, question)}")
    return OK


def begun_of(path: str | None, run_id: str) -> str:
    """Return the request of a run. Raises `JournalError` when there is none."""
    return tell(Journal(journal_at(path), readonly=True).read(run_id)).begun.request


def approve(
    path: str | None, run_id: str, steps: Sequence[str], deny: str | None, whole: bool, *, as_json: bool
) -> int:
    """Allow what a run asks for, or refuse it."""
    scope: Literal["once", "run"] = "run" if whole else "once"
    return _say(path, lambda j: waiting.approve(j, run_id, steps=steps, deny=deny, scope=scope), run_id, as_json)


def answer(path: str | None, run_id: str, text: str, step: str | None, *, as_json: bool) -> int:
    """Answer the question that a run waits for."""
    return _say(path, lambda j: waiting.answer(j, run_id, text, step=step), run_id, as_json)


def resolve(
    path: str | None,
    run_id: str,
    step: str,
    how: Literal["happened", "did-not-happen", "fail"],
    result: str | None,
    reason: str | None,
    *,
    as_json: bool,
) -> int:
    """Say whether an effect has happened."""
    if result is not None and how != "happened":
        raise UsageError("`--result` is what a call returned that happened")
    try:
        value: Json = None if result is None else json.loads(result)
    except ValueError:
        raise UsageError(f"`--result` must be JSON, a text in quotes: --result '{json.dumps(result)}'") from None
    word: Any = how.replace("-", "_")
    return _say(
        path, lambda j: waiting.resolve(j, run_id, step, word, result=value, reason=reason or ""), run_id, as_json
    )


def _say(path: str | None, work: Callable[[Journal], list[dict[str, Any]]], run_id: str, as_json: bool) -> int:
    file = journal_at(path)
    if not file.exists():
        raise JournalError(f"there is no journal at {file}")
    with Journal(file) as journal:
        done = work(journal)
        left = waiting.questions(journal.read(run_id))
    if as_json:
        answered: list[Json] = [question["step"] for question in done]
        say_json({"run": run_id, "answered": answered, "waits_for": left})
        return OK
    for question in done:
        say(f"{question['step']}: noted")
    for question in left:
        say(f"still waits: {waits_in_words(run_id, question)}")
    if not left:
        say(f"`toolplan resume {run_id} --tools ...` goes on")
    return OK


def _outcome(row: RunRow) -> str:
    return _OUTCOMES[row.is_held] if row.outcome == "running" else row.outcome


def _row(row: RunRow) -> dict[str, Json]:
    return {
        "run": row.run_id,
        "request": row.request,
        "begun": row.begun,
        "changed": row.changed,
        "outcome": _outcome(row),
    }


def _line(entry: Entry) -> str:
    match entry:
        case PlanBegun():
            steps = entry.plan.get("steps") if isinstance(entry.plan, dict) else None
            return f"a plan of {len(steps) if isinstance(steps, list) else '?'} steps"
        case LoopBegun():
            return "a loop" + (f": {entry.reason}" if entry.mode == "auto" else "")
        case ModelSaid():
            return _said(entry)
        case Decision():
            by, why = (f" by {entry.by}" if entry.by else ""), (f": {entry.reason}" if entry.reason else "")
            return f"{entry.step} ({entry.tool}) was {_DECIDED[entry.answer]}{by}{why}"
        case StepResolved():
            by = f" (says {entry.by})" if entry.by else ""
            return f"{entry.step}: {entry.how.replace('_', ' ')}{by}"
        case EffectStarted():
            return f"{entry.step} ({entry.tool}) left: {json.dumps(entry.arguments, ensure_ascii=False)}"
        case CallSucceeded():
            return f"call {entry.key} returned {shorten(entry.value)}"
        case CallFailed():
            return f"call {entry.key} failed: {entry.error}"
        case RunResumed():
            return f"resumed by {entry.holder}"
        case RunEnded():
            return f"ended: {entry.outcome}" + (f": {entry.error}" if entry.error else "")
        case _:
            return ""


def _said(entry: ModelSaid) -> str:
    """Return what a model said in a loop, in a line: the calls that it asks for, or its words."""
    calls = [cast("dict[str, Json]", call) for call in entry.heard or entry.calls]
    if not calls:
        return f"the model says {shorten(entry.text)}"
    return "the model asks for " + ", ".join(
        f"{call.get('tool') or call['name']}({_given(call['arguments'])})" for call in calls
    )


def _given(arguments: Json) -> str:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return text if len(text) <= ROOM else f"{text[:ROOM]}..."


def how_to_go_on(run_id: str, asked: Sequence[Json], words: Mapping[str, str]) -> str:
    """Return the commands with which a person answers what a run waits for."""
    short = run_id[:12]
    commands = dict.fromkeys(_command(short, cast("dict[str, Any]", question)) for question in asked)
    return "\n".join([words["go_on"].format(run=short), *(f"  {command}" for command in commands)])


def _command(short: str, question: dict[str, Any]) -> str:
    if question["kind"] == "approval":
        return f"toolplan approve {short}"
    if question["kind"] == "question":
        return f'toolplan answer {short} "..."'
    return f"toolplan resolve {short} {question['step']} happened|did-not-happen|fail"


def waits_in_words(run_id: str, question: dict[str, Any]) -> str:
    """Return what a run waits for, and the command that answers it."""
    step, command = question["step"], _command(run_id[:12], question)
    if question["kind"] == "approval":
        arguments = json.dumps(question["arguments"], ensure_ascii=False)
        return f"{step} {question['tool']} {arguments} needs approval ({question['reason']}): {command}"
    if question["kind"] == "question":
        return f"{question['question']}: {command}"
    return f"did {step} ({question['tool']}) happen? {command}"
