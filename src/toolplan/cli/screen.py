"""The live view of a terminal: the reply as it comes, steps with their states and times.

Calls that are running and those that have just ended stand in a window at the bottom; when it is full, what has ended
moves up into the terminal's history, so a plan of a thousand steps is a log of a thousand lines with a short window
below. Everything of one line is cut by columns, not by characters, so wide characters stay aligned.
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

from toolplan.agent import AgentEvent, ModelAsked, ModelReplied, PlanAccepted, PlanRefused, ReplyStreamed
from toolplan.cli.progress import asking_text, call_text, cost_text, one_line, outcome_text, remark_text
from toolplan.cli.streams import printable
from toolplan.cli.words import WORDS, Tongue
from toolplan.run import NoteShown, StepFinished, StepProgress, StepStarted

if TYPE_CHECKING:
    from toolplan.schedule import StepRecord

__all__ = ["on_screen"]

MOST_ROWS = 16
"""Rows of the window; fewer on a low terminal."""
REPLY_LINES = 5
"""Lines of the reply that are shown while it comes in."""

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
    screen = Screen(Console(file=stream, highlight=False, soft_wrap=False), language)
    with screen.live():
        yield screen


@dataclass(slots=True)
class _Row:
    step: str
    call: str
    started: float
    progress: str = ""
    record: StepRecord | None = None


@dataclass(slots=True)
class _Asking:
    text: str
    started: float
    reply: str = ""


class Screen:
    """The view. Events come from the loop and from tools' threads; a thread of rich draws ten times a second."""

    def __init__(self, console: Console, language: Tongue) -> None:
        self._console = console
        self._language: Tongue = language
        self._words = WORDS[language]
        self._lock = threading.Lock()  # never held while something is printed, which takes rich's own lock
        self._rows: dict[str, _Row] = {}
        self._asking: _Asking | None = None
        self._done = 0
        self._width = 4
        self._live: Live | None = None
        self._gone = False

    @contextlib.contextmanager
    def live(self) -> Generator[None]:
        """Draw until the block ends, then leave the last state standing."""
        self._start()
        try:
            yield
        finally:
            with self._lock:
                self._asking = None
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
        """Show an event."""
        if self._gone:
            return
        with self._lock:
            above = self._take_in(event)
        try:
            for line in above:
                self._console.print(line, soft_wrap=True)
        except (OSError, ValueError):  # the terminal has gone
            self._gone = True

    def _start(self) -> None:
        self._live = Live(console=self._console, get_renderable=self._drawn, refresh_per_second=10)
        with contextlib.suppress(OSError, ValueError):
            self._live.start()

    def _stop(self, *, erase: bool) -> None:
        live, self._live = self._live, None
        if live is not None:
            live.transient = erase
            with contextlib.suppress(OSError, ValueError):
                live.stop()

    # What is known ------------------------------------------------------------------------------------------------

    def _take_in(self, event: AgentEvent) -> list[RenderableType]:
        """Take in an event; return the lines that move up into the history."""
        match event:
            case ModelAsked() if event.purpose != "ask_model":  # those are steps and have a row
                self._asking = _Asking(asking_text(event, self._language), time.perf_counter())
            case ReplyStreamed(text=text) if self._asking is not None:
                self._asking.reply += text
            case ModelReplied() if self._asking is not None and event.purpose != "ask_model":
                asking, self._asking = self._asking, None
                head = Text.assemble(("✓ ", "green"), asking.text, ("  " + cost_text(event, self._language), "dim"))
                return [head]
            case PlanAccepted() | PlanRefused() | NoteShown():
                first, *rest = remark_text(event, self._language)
                sign = ("✗ ", "red") if isinstance(event, PlanRefused) else ("✓ ", "green")
                head = Text(printable(first)) if isinstance(event, NoteShown) else Text.assemble(sign, printable(first))
                return [head, *(Text(printable(line), "dim") for line in rest)]
            case StepStarted(step=step):
                self._width = max(self._width, Text(step).cell_len)
                self._rows[step] = _Row(step, call_text(event, 400), time.perf_counter())
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

    def _scrolled(self) -> Iterator[Text]:
        """Take what has ended out of a full window, oldest first, and yield its lines."""
        room = self._room()
        if len(self._rows) <= room:
            return
        for row in [row for row in self._rows.values() if row.record is not None][: len(self._rows) - room]:
            del self._rows[row.step]
            yield self._line(row)

    def _room(self) -> int:
        return max(3, min(MOST_ROWS, self._console.height - 4))

    # What is drawn ------------------------------------------------------------------------------------------------

    def _drawn(self) -> RenderableType:
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
                parts.append(line if row.record is not None else _Spinning(line))
            if len(rows) > room:
                parts.append(Text("  " + self._words["more_running"].format(count=len(rows) - room), "dim"))
            if self._done > room:
                parts.append(Text("  " + self._words["so_far"].format(done=self._done, running=running), "dim"))
        return Group(*parts)

    def _tail(self, reply: str) -> list[Text]:
        """Return the last lines of the reply so far."""
        width = max(20, self._console.width - 4)
        shown = Text(printable(reply[-REPLY_LINES * width :]), "dim").wrap(self._console, width)
        return [Text.assemble("  ", line) for line in list(shown)[-REPLY_LINES:]]

    def _line(self, row: _Row) -> Text:
        """Return a step's line: sign, name, time, call, and what came of it; a running one leaves out the sign."""
        record = row.record
        head = Text(no_wrap=True, overflow="ellipsis")
        name = Text(printable(row.step), "bold")
        name.pad_right(max(0, self._width - name.cell_len))
        if record is None:
            took, outcome = time.perf_counter() - row.started, Text(row.progress, "dim")
        else:
            sign, colour = _SIGNS.get(record.outcome, ("·", ""))
            head.append(f"{sign} ", colour)
            took = (record.finished_seconds or 0.0) - (record.started_seconds or 0.0)
            outcome = Text(outcome_text(record, 400), "dim" if record.error is None else "red")
        head.append_text(name).append(f"  {took:6.2f} s  ", "dim")
        room = max(20, self._console.width - head.cell_len - (0 if record else 2))
        call = Text(row.call)
        if outcome:
            arrow = Text(" → " if record else "  ", "dim")
            call.truncate(max(room - outcome.cell_len - arrow.cell_len, room * 3 // 5), overflow="ellipsis")
            call.append_text(arrow).append_text(outcome)
        call.truncate(room, overflow="ellipsis")
        return head.append_text(call)


class _Spinning(Spinner):
    """A spinner with text behind it; all turn together."""

    def __init__(self, text: Text) -> None:
        super().__init__("dots", text=text)
        self.start_time = 0.0
