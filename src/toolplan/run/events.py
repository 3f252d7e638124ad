"""What somebody who watches a run is told, in order. Times are seconds since the run started."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from toolplan.schedule import StepRecord
from toolplan.values import Json

__all__ = ["NoteShown", "RunEvent", "RunFinished", "RunStarted", "StepFinished", "StepProgress", "StepStarted"]


@dataclass(frozen=True, slots=True)
class RunStarted:
    """The first step is about to start."""

    run: str


@dataclass(frozen=True, slots=True)
class StepStarted:
    """A call leaves, or a question is asked."""

    step: str
    tool: str
    arguments: dict[str, Json]
    at_seconds: float
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class StepProgress:
    """A tool tells how far it has got (`ToolContext.progress`)."""

    step: str
    message: str
    at_seconds: float


@dataclass(frozen=True, slots=True)
class StepFinished:
    """An attempt has ended; `record.outcome` says how. After a retry there is another one."""

    record: StepRecord


@dataclass(frozen=True, slots=True)
class NoteShown:
    """The plan says something to whoever watches."""

    step: str
    text: str


@dataclass(frozen=True, slots=True)
class RunFinished:
    """Nothing more will happen."""

    outcome: str
    text: str | None
    error: str | None
    at_seconds: float


RunEvent: TypeAlias = RunStarted | StepStarted | StepProgress | StepFinished | NoteShown | RunFinished
