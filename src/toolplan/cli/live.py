"""What is seen while a request is answered: a live table in a terminal, plain lines elsewhere.

Everything here goes to standard error (or where it is told to), so that standard output holds the answer alone.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from toolplan.agent import AgentEvent, ModelAsked, ModelReplied, PlanAccepted, PlanRefused
from toolplan.diagnostics import render_all
from toolplan.run import NoteShown, StepFinished, StepProgress, StepStarted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from toolplan.schedule import StepRecord

__all__ = ["watching"]

ROWS = 24
"""Rows of the live table; the oldest finished steps scroll out first."""

_SIGNS = {
    "succeeded": ("✓", "green"),
    "failed": ("✗", "red"),
    "unknown": ("?", "red"),
    "skipped": ("-", "yellow"),
    "cancelled": ("-", "yellow"),
    "not_run": ("-", "dim"),
    "waiting": ("?", "cyan"),
}

_PURPOSES = {
    "plan": "asking {model} for a plan",
    "repair": "asking {model} to mend the plan",
    "answer": "asking {model} to word the answer",
    "ask_model": "asking {model} to read",
}


@contextmanager
def watching(stream: TextIO, *, quiet: bool = False) -> Iterator[Callable[[AgentEvent], None] | None]:
    """Yield the function that shows events on `stream`, or None when nothing is to be shown."""
    if quiet:
        yield None
        return
    console = Console(file=stream, highlight=False)
    if not console.is_terminal:
        yield _Lines(console).see
        return
    view = _Table()
    with Live(view.drawn(), console=console, refresh_per_second=12, transient=False) as live:

        def see(event: AgentEvent) -> None:
            view.see(event)
            live.update(view.drawn())

        yield see
        view.settle()
        live.update(view.drawn())


class _Lines:
    """One line an event, for logs and pipes."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def see(self, event: AgentEvent) -> None:
        line = _line(event)
        if line is not None:
            self._console.print(line, soft_wrap=True)


def _line(event: AgentEvent) -> Text | None:
    match event:
        case ModelAsked(purpose=purpose, model=model):
            return Text(_PURPOSES.get(purpose, purpose).format(model=model) + " ...")
        case ModelReplied(usage=usage, seconds=seconds):
            return Text(f"  {usage.input_tokens} tokens in, {usage.output_tokens} out, {seconds:.2f} s")
        case PlanAccepted(checked=checked):
            return Text(f"plan accepted: {_count(len(checked.plan.steps), 'step')}")
        case PlanRefused(rejection=rejection, attempt=attempt):
            return Text(f"plan refused (attempt {attempt}):\n{render_all(rejection.diagnostics, rejection.source)}")
        case StepStarted(step=step, tool=tool, arguments=arguments, at_seconds=at):
            return Text(f"{at:7.3f}s  start  {step} {tool}({_arguments(arguments)})")
        case StepProgress(step=step, message=message, at_seconds=at):
            return Text(f"{at:7.3f}s  ...    {step} {message}")
        case StepFinished(record=record):
            at = record.finished_seconds or 0.0
            return Text(f"{at:7.3f}s  {_ending(record)}  {record.id} {record.tool} -> {_outcome(record)}")
        case NoteShown(text=text):
            return Text(f"note: {text}")
        case _:
            return None


class _Table:
    """The state of the live view."""

    def __init__(self) -> None:
        self._model: Text | None = None
        self._notes: list[Text] = []
        self._rows: dict[str, tuple[str, StepRecord | None]] = {}
        self._settled = False

    def see(self, event: AgentEvent) -> None:
        match event:
            case ModelAsked() | ModelReplied():
                self._model = _line(event)
            case PlanRefused():
                if line := _line(event):
                    self._notes.append(line)
            case NoteShown(text=text):
                self._notes.append(Text(f"note: {text}"))
            case StepStarted(step=step, tool=tool, arguments=arguments):
                self._rows[step] = (f"{tool}({_arguments(arguments)})", None)
            case StepFinished(record=record):
                shown, _ = self._rows.get(record.id, (record.tool, None))
                self._rows[record.id] = (shown, record)
            case _:
                pass

    def settle(self) -> None:
        self._settled = True
        self._model = None

    def drawn(self) -> Group:
        table = Table.grid(padding=(0, 1))
        rows = list(self._rows.items())
        hidden = max(0, len(rows) - ROWS)
        for step, (call, record) in rows[hidden:]:
            if record is None:
                sign = Text("·") if self._settled else Spinner("dots")
                table.add_row(sign, Text(step, "dim"), Text(call, no_wrap=True, overflow="ellipsis"), Text(""))
            else:
                mark, colour = _SIGNS.get(record.outcome, ("·", ""))
                took = (record.finished_seconds or 0.0) - (record.started_seconds or 0.0)
                outcome = Text(_outcome(record), "dim", no_wrap=True, overflow="ellipsis")
                head = Text(mark, colour)
                table.add_row(
                    head,
                    Text(step, "dim"),
                    Text(call, no_wrap=True, overflow="ellipsis"),
                    Text(f"{took:.2f}s", "dim"),
                    outcome,
                )
        parts: list[Text | Table] = [*self._notes[-5:]]
        if self._model is not None:
            parts.append(self._model)
        if hidden:
            parts.append(Text(f"... {_count(hidden, 'earlier step')}", "dim"))
        if rows:
            parts.append(table)
        return Group(*parts)


def _ending(record: StepRecord) -> str:
    return {"succeeded": "done ", "failed": "FAIL ", "unknown": "?????"}.get(record.outcome, record.outcome)


def _outcome(record: StepRecord) -> str:
    if record.error is not None:
        return record.error
    return _cut(json.dumps(record.result, ensure_ascii=False), 100)


def _arguments(arguments: object) -> str:
    if not isinstance(arguments, dict):
        return ""
    shown = ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items())  # type: ignore[misc]
    return _cut(shown, 90)


def _cut(text: str, room: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= room else text[: room - 1] + "…"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")
