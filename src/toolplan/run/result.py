"""How a run ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from toolplan.journal import EffectStarted
from toolplan.policy import PlannedCall
from toolplan.schedule import AskUserNow, LeftCall, StepRecord
from toolplan.values import Json, Value, shorten

__all__ = ["RunResult", "StillRunning"]


@dataclass(frozen=True, slots=True)
class StillRunning:
    """An effect that its run has given up, and that goes on: its time was over, or the run was cancelled."""

    call: LeftCall
    has_ended: Callable[[], bool]
    """Whether it is over by now."""
    run_id: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class RunResult:
    """How a run ended and everything that happened in it. `steps` are in written order."""

    outcome: Literal["succeeded", "failed", "waiting", "cannot", "replan", "cancelled"]
    text: str | None
    """The answer, the reason why it cannot be done, the question that waits, or why a new plan is needed."""
    steps: tuple[StepRecord, ...]
    error: str | None = None
    failed_step: str | None = None
    missing: tuple[str, ...] = ()
    variables: Mapping[str, Json] = field(default_factory=dict[str, Json])
    seconds: float = 0.0
    run_id: str = ""
    names: Mapping[str, Value] = field(default_factory=dict[str, Value])
    """The values of the plan's names where it stopped, with the steps they came from; see `keep_names`."""
    started: float = 0.0
    """The clock (`time.perf_counter`) at the start of the run."""
    omitted: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many calls that succeeded have no row in `steps`, by the step that made them; see `schedule/records.py`."""
    calls: int = 0
    """The attempts at calls that were started, those of the runs before this one included."""
    used_up: Literal["max_calls", "max_seconds"] | None = None
    """The budget that was used up when the run failed."""
    approvals: tuple[PlannedCall, ...] = ()
    """The calls that a person has to allow, when that is what the run waits for."""
    questions: tuple[AskUserNow, ...] = ()
    """What a person has to answer, when the run waits for that."""
    unsettled: tuple[EffectStarted, ...] = ()
    """Effects that an earlier process had begun, and of which a person has to find out whether they happened."""
    still_running: tuple[StillRunning, ...] = ()
    """Effects that could not be stopped and may be going on even now; what goes on `after` it keeps out of the way."""

    def __repr__(self) -> str:
        """Return one short line, however large the values are: `asyncio.run` writes out what its task returned."""
        text = shorten(self.text or self.error)
        return f"<RunResult {self.outcome}: {text}, {len(self.steps)} steps, {self.seconds:.3f} s>"
