"""What is seen while a request is answered: events in words, one line each, and the choice of a view.

A view is told every event and never fails: when nobody can read it any more, it falls silent.
"""

from __future__ import annotations

import json
import time
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Protocol, TextIO

from toolplan.agent import AgentEvent, ModelAsked, ModelReplied, PlanAccepted, PlanRefused, Replanning, ReplyStreamed
from toolplan.agent_events import CallRefused, ModeChosen, ReplyStartsOver, ToolsShown
from toolplan.cli.hiding import Hiding
from toolplan.cli.words import PURPOSES, WORDS, Tongue, count
from toolplan.run import EarlyDiscarded, EarlyStarted, NoteShown, RunStarted, StepFinished, StepProgress, StepStarted
from toolplan.visible import visible

if TYPE_CHECKING:
    from toolplan.diagnostics import Diagnostic
    from toolplan.schedule import StepRecord
    from toolplan.values import Json

__all__ = ["View", "asking_text", "call_text", "cost_text", "one_line", "outcome_text", "remark_text", "watching"]

ROOM = 110
"""Characters of a call, and of its result, in a line of a log."""


class View(Protocol):
    """Something that shows events."""

    def see(self, event: AgentEvent) -> None:
        """Show an event."""
        ...

    def paused(self) -> AbstractContextManager[None]:
        """Leave the terminal to somebody else for a while."""
        ...


@contextmanager
def watching(
    stream: TextIO | None, *, language: Tongue = "en", quiet: bool = False, trace: bool = False
) -> Generator[View]:
    """Give the view that fits the stream: live in a terminal, else a line an event; none of either if `quiet`.

    With `trace` every value between the stages is shown whole: reply, plan, diagnostics, arguments, results.
    """
    if stream is None or (quiet and not trace):
        yield _Silence()
    elif trace or not _is_lively(stream):
        yield _Lines(stream, language, trace=trace)
    else:
        from toolplan.cli.screen import on_screen

        with on_screen(stream, language) as view:
            yield view


def _is_lively(stream: TextIO) -> bool:
    import os

    return stream.isatty() and os.environ.get("TERM", "") not in ("dumb", "unknown")


class _Silence:
    def see(self, event: AgentEvent) -> None:
        pass

    def paused(self) -> AbstractContextManager[None]:
        return nullcontext()


class _Lines:
    """One line an event, for logs and pipes."""

    def __init__(self, stream: TextIO, language: Tongue, *, trace: bool) -> None:
        self._stream = stream
        self._language: Tongue = language
        self._trace = trace
        self._hiding = Hiding()
        self._reply: list[str] = []
        self._began = time.perf_counter()
        self._is_new = True
        self._has_early = False
        self._zero: float | None = None
        """When the times that are shown began, by the clock of the request: with the first run, or with the request,
        which is what calls before the run are told by."""
        self._run_began = 0.0
        """When the run began, by the clock that is shown; each further plan, or turn, is a run of its own."""

    def see(self, event: AgentEvent) -> None:
        try:
            for line in self._lines(self._hiding.shown(event)):
                print(visible(self._hiding.clean(line)), file=self._stream, flush=True)
        except (OSError, ValueError):  # the reader has gone; what happens matters more than that it is seen
            self._lines = lambda event: []

    def paused(self) -> AbstractContextManager[None]:
        return nullcontext()

    def _lines(self, event: AgentEvent) -> list[str]:
        self._keep_time(event)
        language, words, room = self._language, WORDS[self._language], None if self._trace else ROOM
        match event:
            case ModelAsked(messages=messages):
                self._reply = []
                shown = [f"--- {message.role} ---\n{message.content}\n" for message in messages]
                return [asking_text(event, language) + " ...", *(shown if self._trace else [])]
            case ReplyStreamed(text=text):
                self._reply.append(text)
            case ReplyStartsOver():
                self._reply = []
            case ModelReplied():
                reply = [words["reply"], "".join(self._reply)] if self._trace and self._reply else []
                return [*reply, "  " + cost_text(event, language)]
            case PlanAccepted():
                return self._accepted(event)
            case PlanRefused() | Replanning() | ModeChosen() | CallRefused() | ToolsShown():
                return remark_text(event, language, whole=self._trace)
            case StepStarted(step=step, at_seconds=at, attempt=attempt):
                start = words["start"] if attempt == 1 else words["again"]
                return [f"{self._time(at)}  {_padded(start)}  {step}  {call_text(event, room)}"]
            case EarlyStarted(step=step, at_seconds=at):
                return [f"{self._early_time(at)}  {_padded(words['early'])}  {step}  {call_text(event, room)}"]
            case EarlyDiscarded(record=record):
                at = record.finished_seconds or 0.0
                return [f"{self._early_time(at)}  {_padded(words['unused'])}  {record.id}  {record.tool}"]
            case StepProgress(step=step, message=message, at_seconds=at):
                return [f"{self._time(at)}  {_padded('...')}  {step}  {one_line(message, room)}"]
            case StepFinished(record=record):
                ending = words.get(record.outcome, words["done"])
                came = f"{record.id}  {record.tool} -> {outcome_text(record, room)}"
                return [f"{self._time(record.finished_seconds)}  {_padded(ending)}  {came}"]
            case NoteShown():
                return remark_text(event, language)
            case _:
                pass
        return []

    def _keep_time(self, event: AgentEvent) -> None:
        """Note when the request began, and its run: from a first early call on, all times are those of the request."""
        if self._is_new:
            self._began, self._is_new = time.perf_counter(), False
        if isinstance(event, EarlyStarted):
            self._has_early = True
        elif isinstance(event, RunStarted):
            now = time.perf_counter() - self._began
            if self._zero is None:
                self._zero = 0.0 if self._has_early else now
            self._run_began = now - self._zero

    def _time(self, at: float | None) -> str:
        """Return a time of the run as a column, the time now for None.

        A call that began before the run began at its beginning at least.
        """
        if at is None:
            return f"{max(0.0, time.perf_counter() - self._began - (self._zero or 0.0)):8.3f}s"
        return f"{max(0.0, self._run_began + at):8.3f}s"

    def _early_time(self, at: float) -> str:
        """Return a time of the request as a column."""
        return f"{max(0.0, at - (self._zero or 0.0)):8.3f}s"

    def _accepted(self, event: PlanAccepted) -> list[str]:
        lines = remark_text(event, self._language, whole=self._trace)
        if self._trace:
            from toolplan import show

            lines = [WORDS[self._language]["plan"], show.canonical(event.checked.plan), *lines]
        return lines


# Events in words ------------------------------------------------------------------------------------------------------


def asking_text(event: ModelAsked, language: Tongue) -> str:
    """Return which model is asked for what."""
    return PURPOSES[language].get(event.purpose, event.purpose).format(model=event.model)


def cost_text(event: ModelReplied, language: Tongue) -> str:
    """Return what a reply cost."""
    usage, words = event.usage, WORDS[language]
    text = words["tokens"].format(input=usage.input_tokens, output=usage.output_tokens, seconds=event.seconds)
    return text + (words["estimated"] if usage.estimated else "")


def remark_text(
    event: PlanAccepted | PlanRefused | Replanning | ModeChosen | CallRefused | ToolsShown | NoteShown,
    language: Tongue,
    *,
    whole: bool = False,
) -> list[str]:
    """Return the lines that say what became of a plan, or what it wants to have said.

    Diagnostics are given in a line each, unless `whole`; a rejected plan's are part of the result anyway.
    """
    words = WORDS[language]
    match event:
        case PlanAccepted(checked=checked):
            steps = count(len(checked.plan.steps), "step", language)
            found, source = checked.warnings, checked.plan.source
            lines = [words["accepted"].format(steps=steps)]
        case PlanRefused(rejection=rejection, attempt=attempt):
            found, source = rejection.diagnostics, rejection.source
            lines = [words["refused"].format(attempt=attempt)]
        case Replanning(number=number, reason=reason, step=step):
            said = words["replanning_step" if step else "replanning"]
            return [said.format(number=number, step=step, reason=one_line(reason, None if whole else ROOM))]
        case ModeChosen(reason=reason):
            return [words["looping"].format(reason=one_line(reason, None if whole else ROOM))]
        case CallRefused(tool=tool, reason=reason):
            return [words["not_made"].format(tool=tool, reason=one_line(reason, None if whole else ROOM))]
        case ToolsShown(tools=tools, reason=reason):
            return [words["shown"].format(tools=words["join"].join(tools), reason=reason)]
        case NoteShown(text=text):
            return [words["note"].format(text=text)]
    if whole and found:
        from toolplan.diagnostics import render_all

        return [*lines, render_all(found, source)]
    return [*lines, *(f"  {_head(diagnostic)}" for diagnostic in found)]


def _head(diagnostic: Diagnostic) -> str:
    return f"{diagnostic.severity}[{diagnostic.code}]: {diagnostic.message}"


def call_text(event: StepStarted | EarlyStarted, room: int | None = None) -> str:
    """Return a call as a line of text, cut to `room` characters."""
    return one_line(f"{event.tool}({_arguments(event.arguments)})", room)


def outcome_text(record: StepRecord, room: int | None = None) -> str:
    """Return a step's result or error as a line of text, cut to `room` characters."""
    if record.error is not None:
        return one_line(record.error, room)
    return _json(record.result, room)


def _arguments(arguments: dict[str, Json]) -> str:
    return ", ".join(f"{name}={_json(value, 2000)}" for name, value in arguments.items())


def _json(value: Json, room: int | None) -> str:
    # A result may have megabytes; the encoder hands it over in pieces, so that no more is written than is shown.
    if room is None:
        return json.dumps(value, ensure_ascii=False)
    text = ""
    for piece in json.JSONEncoder(ensure_ascii=False).iterencode(value):
        text += piece
        if len(text) > room:
            return one_line(text, room - 1).rstrip("…") + "…"
    return one_line(text, room)


def one_line(text: str, room: int | None = None) -> str:
    """Return text in one line, cut to `room` characters."""
    if room is not None:
        text = text[: 4 * room]
    text = " ".join(visible(text).split())
    return text if room is None or len(text) <= room else text[: room - 1] + "…"


def _padded(word: str) -> str:
    """Return a word of the log's second column, five columns wide; Chinese characters take two."""
    return word + " " * (5 - sum(1 if ch.isascii() else 2 for ch in word))
