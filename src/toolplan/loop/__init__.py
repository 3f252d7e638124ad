"""The classic loop over the same gate and engine as a plan (`mode="loop"`).

    turns.py      the conversation, turn by turn, and its ends
    heard.py      a reply: words and calls, native or as text
    calls.py      the calls of one turn at the gate: read, checked, allowed, run, each answered once
    early.py      the calls of a reply that start while it arrives, because they change nothing
    repeats.py    a model that goes round in circles is noticed
    offered.py    the tools as a model gets them
    trim.py       what of a long loop is sent
    mode.py       when a request that was to be planned goes on as a loop

Only `turns.py` waits for a model, through the turn that counts it; only `calls.py` reaches the engine.
"""

from toolplan.loop.calls import Gate
from toolplan.loop.mode import reason_for_no_plan, reason_to_loop
from toolplan.loop.turns import Loop

__all__ = ["Gate", "Loop", "reason_for_no_plan", "reason_to_loop"]
