"""The scheduler: a pure state machine. Events go in, commands come out; no clock, no randomness, no I/O.

`program.py` prepares a checked plan once (what each step uses, defines, touches, and whether it may fail or leave);
`order.py` keeps the written order of effects; `machine.py` unfolds the plan and decides what may start; `events.py`
has the words in which it talks to the engine; `invariants.py` says what is always true.
"""

from toolplan.schedule.events import (
    AskModelNow,
    AskUserNow,
    CallEnded,
    CallFailed,
    CallSucceeded,
    CancelCall,
    CancelRun,
    Command,
    Effect,
    Event,
    FinishRun,
    RetryDue,
    RetryLater,
    ShowNote,
    StartCall,
    StartRun,
    StepRecord,
)
from toolplan.schedule.machine import Machine
from toolplan.schedule.program import Program

__all__ = [
    "AskModelNow",
    "AskUserNow",
    "CallEnded",
    "CallFailed",
    "CallSucceeded",
    "CancelCall",
    "CancelRun",
    "Command",
    "Effect",
    "Event",
    "FinishRun",
    "Machine",
    "Program",
    "RetryDue",
    "RetryLater",
    "ShowNote",
    "StartCall",
    "StartRun",
    "StepRecord",
]
