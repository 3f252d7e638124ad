"""The live view of a terminal: the reply as it comes, steps with their states and times.

Calls that are running and those that have just ended stand in a window at the bottom; when it is full, what has ended
moves up into the terminal's history, so a plan of a thousand steps is a log of a thousand lines with a short window
below. Everything of one line is cut by columns, not by characters, so wide characters stay aligned.

Events only change what is known; a thread of its own draws it ten times a second, so that the view costs a run little.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from toolplan.agent import AgentEvent, ModelAsked, ModelReplied, PlanAccepted, PlanRefused, Replanning, ReplyStreamed
from toolplan.agent_events import CallRefused, ModeChosen, ReplyStartsOver, ToolsShown
from toolplan.cli.hiding import Hiding
from toolplan.cli.progress import asking_text, call_text, cost_text, one_line, outcome_text, remark_text
from toolplan.cli.words import WORDS, Tongue
from toolplan.run import EarlyDiscarded, EarlyFinished, EarlyStarted, NoteShown, StepFinished, StepProgress, StepStarted
from toolplan.visible import visible

if TYPE_CHECKING:
    from toolplan.schedule import StepRecord

__all__ = ["on_screen"]

SECONDS_BETWEEN = 0.1
"""Between two drawings."""
MOST_ROWS = 16
"""Rows of the window; fewer on a low terminal."""
REPLY_LINES = 5
"""Lines of the reply that are shown while it comes in."""

_GONE = (OSError, ValueError)
"""What writing raises when the terminal has gone; nobody will miss the view."""

_SIGNS = {
    "succeeded": ("✓", "green"),
    "failed": ("✗", "red"),
    "unknown": ("?", "red"),
    "skipped": ("-", "yellow"),
    "cancelled": ("-", "yellow"),
    "waiting": ("?", "cyan"),
}


@contextlib.contextmanager
def on_screen(stream: TextIO, language: Tongue) -> Generator[Screen]:
    """Give a live view on a terminal; afterwards the cursor and the last state of all steps are where they belong."""
    screen = Screen(_Console(file=stream, highlight=False), language)
    with screen.live():
        yield screen


class _Console(Console):
    """A console that leaves the end of a pipe to its caller; rich would end the program."""

    def on_broken_pipe(self) -> None:
        """Raise the `BrokenPipeError` that is being handled."""
        raise


@dataclass(slots=True)
class _Row:
    step: str
    call: str
    started: float
    progress: str = ""
    record: StepRecord | None = None
    is_early: bool = False


@dataclass(slots=True)
class _Asking:
    text: str
    started: float
    reply: str = ""


class Screen:
    """The view. Events come from the loop and from tools' threads."""

    def __init__(self, console: Console, language: Tongue) -> None:
        self._console = console
        self._language: Tongue = language
        self._hiding = Hiding()
        self._words = WORDS[language]
        self._lock = threading.Lock()  # never held while something is printed, which takes rich's own lock
        self._above: list[RenderableType | _Row] = []
        self._rows: dict[str, _Row] = {}
        self._asking: _Asking | None = None
        self._done = 0
        self._width = 4
        self._live: Live | None = None
        self._drawing: threading.Thread | None = None
        self._enough = threading.Event()
        self._over = False

    @contextlib.contextmanager
    def live(self) -> Generator[None]:
        """Draw until the block ends, then leave the last state standing."""
        try:
            self._start()
            yield
        finally:
            with self._lock:
                self._asking = None
                self._over = True
            self._stop(erase=False)

    @contextlib.contextmanager
    def paused(self) -> Generator[None]:
        """Take the window off the terminal for a while."""
        self._stop(erase=True)
        try:
            yield
        finally:
            self._start()

    def see(self, event: AgentEvent) -> None:
        """Take in an event; it is shown with the next drawing."""
        with self._lock:
            self._above += self._take_in(self._hiding.shown(event))

    def _start(self) -> None:
        self._live = Live(console=self._console, get_renderable=self._window, auto_refresh=False)
        self._enough.clear()
        self._drawing = threading.Thread(target=self._draw_often, name="screen", daemon=True)
        try:
            self._live.start(refresh=True)
            self._drawing.start()
        except _GONE:
            self._live = None

    def _stop(self, *, erase: bool) -> None:
        self._enough.set()
        if self._drawing is not None and self._drawing.ident is not None:
            self._drawing.join()
        if self._live is not None:
            self._live.transient = erase
            with contextlib.suppress(*_GONE, IndexError):  # interrupted while it started, it has less to take back
                self._draw()
                self._live.stop()
            with contextlib.suppress(*_GONE):
                self._console.show_cursor()

    def _draw_often(self) -> None:
        with contextlib.suppress(*_GONE):
            while not self._enough.wait(SECONDS_BETWEEN):
                self._draw()

    def _draw(self) -> None:
        """Print what moves up into the history, then the window below it."""
        with self._lock:
            above, self._above = self._above, []
            lines = [self._line(entry) if isinstance(entry, _Row) else entry for entry in above]
        if lines:
            self._console.print(*lines, sep="\n", soft_wrap=True)
        if self._live is not None:
            self._live.refresh()

    # What is known ------------------------------------------------------------------------------------------------

    def _take_in(self, event: AgentEvent) -> list[RenderableType | _Row]:
        """Take in an event; return what moves up into the history."""
        match event:
            case ModelAsked() if event.purpose != "ask_model":  # those are steps and have a row
                self._asking = _Asking(asking_text(event, self._language), time.perf_counter())
            case ReplyStreamed(text=text) if self._asking is not None:
                self._asking.reply += text
            case ReplyStartsOver() if self._asking is not None:
                self._asking.reply = ""
            case ModelReplied() if self._asking is not None and event.purpose != "ask_model":
                asking, self._asking = self._asking, None
                head = Text.assemble(("✓ ", "green"), asking.text, ("  " + cost_text(event, self._language), "dim"))
                return [head]
            case (
                PlanAccepted()
                | PlanRefused()
                | Replanning()
                | ModeChosen()
                | CallRefused()
                | ToolsShown()
                | NoteShown()
            ):
                first, *rest = map(self._hiding.clean, remark_text(event, self._language))
                sign = ("✓ ", "green") if isinstance(event, PlanAccepted) else ("✗ ", "red")
                head = Text(visible(first)) if isinstance(event, NoteShown) else Text.assemble(sign, visible(first))
                return [head, *(Text(visible(line), "dim") for line in rest)]
            case EarlyFinished(record=record):
                if row := self._rows.get(record.id):
                    row.progress = self._words["early_done"]
            case EarlyDiscarded(record=record):
                if (row := self._rows.get(record.id)) and row.is_early:
                    del self._rows[record.id]
                    return [Text("  " + self._words["for_nothing"].format(call=row.call), "dim", no_wrap=True)]
            case EarlyStarted(step=step) | StepStarted(step=step):
                self._width = max(self._width, Text(step).cell_len)
                early = isinstance(event, EarlyStarted)
                self._rows[step] = _Row(step, call_text(event, 400), time.perf_counter(), is_early=early)
            case StepProgress(step=step, message=message):
                if row := self._rows.get(step):
                    row.progress = one_line(message, 200)
            case StepFinished(record=record):
                row = self._rows.setdefault(record.id, _Row(record.id, record.tool, time.perf_counter()))
                row.record = record
                self._done += 1
                return list(self._scrolled())
            case _:
                pass
        return []

    def _scrolled(self) -> Iterator[_Row]:
        """Take what has ended out of a full window and yield it, oldest first."""
        room = self._room()
        if len(self._rows) <= room:
            return
        for row in [row for row in self._rows.values() if row.record is not None][: len(self._rows) - room]:
            del self._rows[row.step]
            yield row

    def _room(self) -> int:
        return max(3, min(MOST_ROWS, self._console.height - 4))

    # What is drawn ------------------------------------------------------------------------------------------------

    def _window(self) -> RenderableType:
        with self._lock:
            rows = list(self._rows.values())
            asking = self._asking
            parts: list[RenderableType] = []
            if asking is not None:
                took = time.perf_counter() - asking.started
                parts.append(_Spinning(Text.assemble(asking.text, (f"  {took:.1f} s", "dim"))))
                parts += self._tail(asking.reply)
            room = self._room()
            running = sum(row.record is None for row in rows)
            for row in rows[:room]:
                line = self._line(row)
                parts.append(line if self._has_sign(row) else _Spinning(line))
            if len(rows) > room:
                parts.append(Text("  " + self._words["more_running"].format(count=len(rows) - room), "dim"))
            if self._done > room:
                parts.append(Text("  " + self._words["so_far"].format(done=self._done, running=running), "dim"))
        return Group(*parts)

    def _tail(self, reply: str) -> list[Text]:
        """Return the last lines of the reply so far."""
        width = max(20, self._console.width - 4)
        shown = Text(visible(reply[-REPLY_LINES * width :]), "dim").wrap(self._console, width)
        return [Text.assemble("  ", line) for line in list(shown)[-REPLY_LINES:]]

    def _line(self, row: _Row) -> Text:
        """Return a step's line: sign, name, time, call, and what came of it; a running one leaves out the sign."""
        record = row.record
        head = Text(no_wrap=True, overflow="ellipsis")
        if self._has_sign(row):
            sign, colour = _SIGNS.get(record.outcome if record else "", ("·", ""))
            head.append(f"{sign} ", colour)
        name = Text(visible(row.step), "bold")
        name.pad_right(max(0, self._width - name.cell_len))
        if record is None or record.finished_seconds is None or record.started_seconds is None:
            took, outcome = time.perf_counter() - row.started, Text(row.progress, "dim")
        else:
            took = record.finished_seconds - record.started_seconds
            outcome = Text(outcome_text(record, 400), "dim" if record.error is None else "red")
        head.append_text(name).append(f"  {took:6.2f} s  ", "dim")
        room = max(20, self._console.width - head.cell_len - (0 if self._has_sign(row) else 2))
        call = Text(row.call)
        if outcome:
            arrow = Text(" → " if record else "  ", "dim")
            call.truncate(max(room - outcome.cell_len - arrow.cell_len, room * 3 // 5), overflow="ellipsis")
            call.append_text(arrow).append_text(outcome)
        call.truncate(room, overflow="ellipsis")
        return head.append_text(call)

    def _has_sign(self, row: _Row) -> bool:
        """Whether the row stands still; else a spinner takes the place of its sign."""
        return row.record is not None or self._over


class _Spinning(Spinner):
    """A spinner with text behind it; all turn together."""

    def __init__(self, text: Text) -> None:
        super().__init__("dots", text=text)
        self.start_time = 0.0
