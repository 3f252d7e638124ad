"""Running one demo on its recorded reply, and looking at what it really left behind."""

from __future__ import annotations

import asyncio
import contextlib
import email
import email.policy
import json
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from email.message import EmailMessage
from pathlib import Path
from typing import Any, TypeAlias

from toolplan.agent import Agent, AgentEvent, Result
from toolplan.demo.scenarios import CALENDAR, OUTBOX, Scenario, Tongue
from toolplan.models import ScriptedModel

__all__ = ["Demo", "See", "play"]

See: TypeAlias = Callable[[AgentEvent], None]
Row: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Demo:
    """A demo that has run: its result, and what is on disk afterwards."""

    scenario: Scenario
    language: Tongue
    folder: Path
    result: Result
    mails: tuple[EmailMessage, ...]
    events_before: tuple[Row, ...]
    events_after: tuple[Row, ...]

    @property
    def is_as_expected(self) -> bool:
        """Whether the outcome and what is on disk are those that the scenario is about. None changes the calendar."""
        outcome, mails = self.result.outcome, len(self.mails)
        return (outcome, mails) == (self.scenario.expected, self.scenario.mails) and self.is_calendar_unchanged

    @property
    def is_calendar_unchanged(self) -> bool:
        """Whether the calendar holds exactly the events from before."""
        return self.events_before == self.events_after

    @property
    def seconds_together(self) -> float:
        """How long it took from the start of the first call to the end of the last."""
        spans = self._spans()
        return max(end for _, end in spans) - min(start for start, _ in spans) if spans else 0.0

    @property
    def seconds_one_by_one(self) -> float:
        """How long the same calls would have taken one after the other."""
        return sum(end - start for start, end in self._spans())

    def _spans(self) -> list[tuple[float, float]]:
        times = [(step.started_seconds, step.finished_seconds) for step in self.result.steps]
        return [(start, end) for start, end in times if start is not None and end is not None]

    def to_dict(self) -> dict[str, Any]:
        """Return the demo as JSON: the result's document, and what the demo adds to it."""
        return {
            "demo": self.scenario.name,
            "language": self.language,
            "request": self.scenario.requests[self.language],
            "reply_is_recorded": True,
            **self.result.to_dict(),
            "mails": [{"to": m["To"], "subject": m["Subject"], "body": m.get_content()} for m in self.mails],
            "calendar_unchanged": self.is_calendar_unchanged,
            "seconds_together": round(self.seconds_together, 6),
            "seconds_one_by_one": round(self.seconds_one_by_one, 6),
            "folder": str(self.folder),
            "as_expected": self.is_as_expected,
        }


def play(
    scenario: Scenario, language: Tongue, folder: Path, see: See | None = None, *, reply_seconds: float = 0.0
) -> Demo:
    """Run one scenario in an empty folder, on its recorded reply, which takes `reply_seconds` to come in.

    The reply goes the way of any other: it answers the prompt, and is parsed, checked and run.
    """
    file = scenario.replies(language)
    lines = [line for line in file.read_text(encoding="utf-8").split("\n") if line.startswith("{")]
    replies = [{**json.loads(line), "delay_seconds": reply_seconds} for line in lines]
    model = ScriptedModel(replies, name=f"recorded:{file.stem}")
    agent = Agent(model, scenario.prepare(folder, language), language=language, now=scenario.now)
    before = _events(folder)
    result = asyncio.run(agent.run(scenario.requests[language], watch=see))
    return Demo(scenario, language, folder, result, _mails(folder), before, _events(folder))


def _events(folder: Path) -> tuple[Row, ...]:
    """Return the rows of the calendar, if there is one."""
    file = folder / CALENDAR
    if not file.exists():
        return ()
    with contextlib.closing(sqlite3.connect(file)) as database:
        return tuple(database.execute("select * from events order by id"))


def _mails(folder: Path) -> tuple[EmailMessage, ...]:
    """Return the messages in the outbox, decoded as a mail program would."""
    files = sorted((folder / OUTBOX).glob("*.eml"))
    return tuple(email.message_from_bytes(file.read_bytes(), policy=email.policy.default) for file in files)
