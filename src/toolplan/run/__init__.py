"""Carrying out a checked plan: the only place that calls a tool, and the only loop that waits."""

from toolplan.run.engine import Engine, RunResult, run_plan
from toolplan.run.events import NoteShown, RunEvent, RunFinished, RunStarted, StepFinished, StepProgress, StepStarted

__all__ = [
    "Engine",
    "NoteShown",
    "RunEvent",
    "RunFinished",
    "RunResult",
    "RunStarted",
    "StepFinished",
    "StepProgress",
    "StepStarted",
    "run_plan",
]
