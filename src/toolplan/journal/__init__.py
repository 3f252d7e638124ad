"""The journal: a durable list of what happened in each run, from which its state can be rebuilt.

`entries.py` has what is written down, without what `secrets.py` leaves out; `store.py` appends it to the SQLite file
of `database.py`, whose runs `listing.py` lists; `chain.py` finds what is missing of a run, `lease.py` says who works on
it, `waiting.py` what it waits for; `replay.py` turns entries back into a machine.
"""

from toolplan.journal.entries import (
    FORMAT,
    Decision,
    Earlier,
    EffectStarted,
    Entry,
    Inferred,
    LoopBegun,
    ModelSaid,
    PlanBegun,
    RunBegun,
    RunEnded,
    RunResumed,
    SecretLeftOut,
    StepResolved,
)
from toolplan.journal.listing import RunRow
from toolplan.journal.replay import Open, Replayed, Story, replay, tell
from toolplan.journal.store import Journal, RunWriter

__all__ = [
    "FORMAT",
    "Decision",
    "Earlier",
    "EffectStarted",
    "Entry",
    "Inferred",
    "Journal",
    "LoopBegun",
    "ModelSaid",
    "Open",
    "PlanBegun",
    "Replayed",
    "RunBegun",
    "RunEnded",
    "RunResumed",
    "RunRow",
    "RunWriter",
    "SecretLeftOut",
    "StepResolved",
    "Story",
    "replay",
    "tell",
]
