"""The scheduler: a pure state machine. Events go in, commands come out; no clock, no randomness, no I/O.

`program.py` prepares a checked plan once (what each step uses, defines, touches, and whether it may fail or leave);
`order.py` keeps the written order of effects. The machine unfolds the plan and decides what may start; from the ground
up: `records.py` (what happened), `tickets.py` (who waits for whom), `flow.py` (values and failures), `bodies.py`
(branches, loops), `attempts.py` (what starts, within the limits), `machine.py` (the statements, and the way in).
`events.py` has the words in which it talks to the engine; `invariants.py` says what is always true, `story.py` what a
step went through.
"""

from toolplan.schedule.events import (
    AskModelNow,
    AskTurn,
    AskUserNow,
    CallEnded,
    CallFailed,
    CallSucceeded,
    CancelCall,
    CancelRun,
    Command,
    DropTurn,
    Effect,
    Event,
    FinishRun,
    JournalLost,
    LeftCall,
    RetryDue,
    RetryLater,
    ShowNote,
    StartCall,
    StartRun,
    StepRecord,
    TimeUp,
    TurnCame,
)
from toolplan.schedule.machine import Machine
from toolplan.schedule.program import Program
from toolplan.schedule.setup import Setup

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
    "Machine",
    "Program",
    "RetryDue",
    "RetryLater",
    "Setup",
    "ShowNote",
    "StartCall",
    "StartRun",
    "StepRecord",
    "TimeUp",
    "TurnCame",
]
