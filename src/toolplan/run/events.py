"""What somebody who watches a run is told, in order. Times are seconds since the run started."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from toolplan.schedule import StepRecord
from toolplan.values import Json

__all__ = [
    "EarlyDiscarded",
    "EarlyEvent",
    "EarlyFinished",
    "EarlyStarted",
    "NoteShown",
    "RunEvent",
    "RunFinished",
    "RunStarted",
    "StepFinished",
    "StepLeftOut",
    "StepProgress",
    "StepRetrying",
    "StepStarted",
]


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
    """An attempt has ended; `record.outcome` says how. Every `StepStarted` has exactly one of these.

    When a `StepRetrying` follows, the record is that of the attempt, not of the step.
    """

    record: StepRecord


@dataclass(frozen=True, slots=True)
class StepRetrying:
    """An attempt has failed and another one, number `attempt`, is made after `wait_seconds`."""

    step: str
    attempt: int
    wait_seconds: float
    error: str
    at_seconds: float


@dataclass(frozen=True, slots=True)
class StepLeftOut:
    """A step ended without a call: it was skipped or never reached, or its arguments could not be worked out.

    Told at the end of the run, in written order, so that whoever has heard everything knows every row of the result.
    """

    record: StepRecord


@dataclass(frozen=True, slots=True)
class NoteShown:
    """The plan says something to whoever watches."""

    step: str
    text: str


@dataclass(frozen=True, slots=True)
class RunFinished:
    """Nothing more will happen. Every run that has begun tells this, and nothing after it."""

    outcome: str
    text: str | None
    error: str | None
    at_seconds: float


@dataclass(frozen=True, slots=True)
class EarlyStarted:
    """A call that changes nothing leaves while the plan is still being written. Seconds count from the request."""

    step: str
    tool: str
    arguments: dict[str, Json]
    at_seconds: float


@dataclass(frozen=True, slots=True)
class EarlyFinished:
    """An early call has ended; the times of `record` count from the request, too.

    When the plan that is accepted makes this call, a `StepStarted` and a `StepFinished` follow in the run.
    """

    record: StepRecord


@dataclass(frozen=True, slots=True)
class EarlyDiscarded:
    """An early call was made for nothing; `reason` says why."""

    record: StepRecord
    reason: str


EarlyEvent: TypeAlias = EarlyStarted | EarlyFinished | EarlyDiscarded
"""What is told of calls that are made before there is a run; see `run/early.py`."""

RunEvent: TypeAlias = (
    RunStarted | StepStarted | StepProgress | StepFinished | StepRetrying | StepLeftOut | NoteShown | RunFinished
)
