"""Events that go into the machine, commands that come out, and the record of what happened to a step.

`key` names one running attempt; it is a number that the machine gave out with the command. Times are seconds since
the run started; the engine measures them. All of these are values and never change; the two of which every call makes
one are not frozen only because that takes three times as long.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from toolplan.effects import Access
from toolplan.values import Json

__all__ = [
    "AskModelNow",
    "AskTurn",
    "AskUserNow",
    "CallEnded",
    "CallFailed",
    "CallSucceeded",
    "CancelCall",
    "CancelRun",
    "Command",
    "DropTurn",
    "Effect",
    "Event",
    "FinishRun",
    "JournalLost",
    "LeftCall",
    "RetryDue",
    "RetryLater",
    "RunOutcome",
    "ShowNote",
    "StartCall",
    "StartRun",
    "StepOutcome",
    "StepRecord",
    "TimeUp",
    "TurnCame",
]

Effect: TypeAlias = Literal["none", "failed", "unknown"]
"""What is known about the effect of a call that did not succeed: that nothing happened; that the tool itself reported
a failure, which does not prove that; or nothing at all (it timed out or was cancelled)."""

StepOutcome: TypeAlias = Literal[
    "running", "succeeded", "failed", "unknown", "skipped", "cancelled", "waiting", "not_run"
]

RunOutcome: TypeAlias = Literal["succeeded", "failed", "cannot", "replan", "cancelled"]


# Events ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StartRun:
    """The run begins. `now` is its ISO time, the value of the name `now` in the plan."""

    now: str


@dataclass(slots=True)
class CallSucceeded:
    """A call, an `ask_model` or an `ask_user` has its value."""

    key: int
    value: Json
    started_seconds: float = 0.0
    at_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class CallFailed:
    """A call went wrong, was refused or timed out; `effect` says what is known about its effect."""

    key: int
    error: str
    effect: Effect = "failed"
    retryable: bool = True
    started_seconds: float = 0.0
    at_seconds: float = 0.0
    retry_after_seconds: float | None = None
    still_running: bool = False
    """It timed out, but could not be stopped; a `CallEnded` follows when it ends after all."""


@dataclass(frozen=True, slots=True)
class CallEnded:
    """A call that had timed out and could not be stopped is over now."""

    key: int


@dataclass(frozen=True, slots=True)
class RetryDue:
    """The waiting time of a `RetryLater` is over."""

    key: int


@dataclass(frozen=True, slots=True)
class TurnCame:
    """The run may make one call of this tool now, or, when the turn was `refused`, none at all, for that reason."""

    tool: str
    refused: str | None = None


@dataclass(frozen=True, slots=True)
class CancelRun:
    """Somebody wants the run to end now."""

    reason: str = "the run was cancelled"


@dataclass(frozen=True, slots=True)
class TimeUp:
    """The run has used up the time that it may take, `max_seconds`."""

    max_seconds: float


@dataclass(frozen=True, slots=True)
class JournalLost:
    """Nothing more can be written down, so nothing more may start; what is in flight is awaited. Never in a journal."""

    error: str


Event: TypeAlias = (
    StartRun | CallSucceeded | CallFailed | CallEnded | RetryDue | TurnCame | CancelRun | TimeUp | JournalLost
)


# Commands -------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class StartCall:
    """Call this tool with these arguments. `origins` are the ids of the steps the arguments came from."""

    key: int
    step: str
    tool: str
    arguments: dict[str, Json]
    origins: frozenset[str] = frozenset()
    attempt: int = 1
    timeout_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class AskModelNow:
    """Ask a model this question about this data; the reply must fit the schema `returns`."""

    key: int
    step: str
    question: str
    data: Json
    returns: dict[str, Json]
    origins: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class AskUserNow:
    """Ask a person. When nobody can be asked, the run waits."""

    key: int
    step: str
    question: str


@dataclass(frozen=True, slots=True)
class CancelCall:
    """Nobody needs this running call any more."""

    key: int


@dataclass(frozen=True, slots=True)
class RetryLater:
    """Report `RetryDue` after `least_seconds` and at most `wait_seconds` more; the engine draws how many."""

    key: int
    step: str
    wait_seconds: float
    least_seconds: float = 0.0
    attempt: int = 0
    """The number of the attempt to come."""
    error: str = ""
    """Why the last one failed."""


@dataclass(frozen=True, slots=True)
class AskTurn:
    """A call of this tool is ready, and its limits hold beyond this run: report `TurnCame` when it may be made."""

    tool: str


@dataclass(frozen=True, slots=True)
class DropTurn:
    """A turn that came is not used."""

    tool: str


@dataclass(frozen=True, slots=True)
class ShowNote:
    """Show this to whoever watches."""

    step: str
    text: str


@dataclass(frozen=True, slots=True)
class FinishRun:
    """The run is over. `text` is the answer, the reason why it cannot be done, or why a replan is needed."""

    outcome: RunOutcome
    text: str | None = None
    error: str | None = None
    failed_step: str | None = None
    missing: tuple[str, ...] = ()
    used_up: Literal["max_calls", "max_seconds"] | None = None
    """The budget that the run had used up when it failed."""


Command: TypeAlias = (
    StartCall | AskModelNow | AskUserNow | CancelCall | RetryLater | AskTurn | DropTurn | ShowNote | FinishRun
)


@dataclass(frozen=True, slots=True)
class LeftCall:
    """An effect that timed out, could not be stopped, and may still be going on."""

    step: str
    accesses: tuple[Access, ...]
    """What it touches."""


# Records --------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class StepRecord:
    """What happened to one call (or question): the row that a result shows. Times are seconds since the run started."""

    id: str
    tool: str
    path: tuple[int, ...] = ()
    arguments: dict[str, Json] | None = None
    outcome: StepOutcome = "running"
    result: Json = None
    error: str | None = None
    attempts: int = 0
    started_seconds: float | None = None
    finished_seconds: float | None = None
    origins: frozenset[str] = field(default_factory=frozenset[str])
    is_doubtful: bool = False
    """Whether an attempt failed, and it is not certain that nothing had happened by then."""

    def to_dict(self) -> dict[str, Json]:
        """Return the row of the JSON interface."""
        return {
            "id": self.id,
            "tool": self.tool,
            "arguments": self.arguments,
            "outcome": self.outcome,
            "result": self.result,
            "error": self.error,
            "started_seconds": self.started_seconds,
            "finished_seconds": self.finished_seconds,
        }
