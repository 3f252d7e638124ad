"""Carrying out a checked plan: the only place that calls a tool, and the only loop that waits."""

from toolplan.run.early import EarlyCalls, MayStart, RunOneCall
from toolplan.run.engine import Engine, RunResult, run_plan
from toolplan.run.events import (
    EarlyDiscarded,
    EarlyEvent,
    EarlyFinished,
    EarlyStarted,
    NoteShown,
    RunEvent,
    RunFinished,
    RunStarted,
    StepFinished,
    StepLeftOut,
    StepProgress,
    StepRetrying,
    StepStarted,
)
from toolplan.run.limits import set_process_limits
from toolplan.run.processes import end_workers

__all__ = [
    "EarlyCalls",
    "EarlyDiscarded",
    "EarlyEvent",
    "EarlyFinished",
    "EarlyStarted",
    "Engine",
    "MayStart",
    "NoteShown",
    "RunEvent",
    "RunFinished",
    "RunOneCall",
    "RunResult",
    "RunStarted",
    "StepFinished",
    "StepLeftOut",
    "StepProgress",
    "StepRetrying",
    "StepStarted",
    "end_workers",
    "run_plan",
    "set_process_limits",
]
