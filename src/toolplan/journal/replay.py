"""From entries back to a machine: the same events give the same state (I7).

What was under way when the last entry was written is what is `open`: commands that were given and whose end is not
written down. An open call whose effect is in `started` may have happened; any other open command never left, or can be
carried out again without harm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from toolplan.errors import JournalMismatch
from toolplan.journal.entries import Decision, EffectStarted, Entry, RunBegun, RunEnded, RunResumed, StepResolved
from toolplan.schedule import (
    AskModelNow,
    AskUserNow,
    CallFailed,
    CallSucceeded,
    CancelCall,
    Command,
    FinishRun,
    Machine,
    RetryDue,
    RetryLater,
    StartCall,
)

__all__ = ["Replayed", "replay"]

Open = StartCall | AskModelNow | AskUserNow | RetryLater


@dataclass(slots=True)
class Replayed:
    """The state of a run as its entries tell it."""

    machine: Machine
    open: dict[int, Open] = field(default_factory=dict[int, Open])
    """What was under way, by key, in the order in which it began."""
    started: dict[int, EffectStarted] = field(default_factory=dict[int, EffectStarted])
    """Effects that had left and whose end is not known."""
    decisions: list[Decision] = field(default_factory=list[Decision])
    finish: FinishRun | None = None
    ended: RunEnded | None = None
    """The last written end, if nothing was written after it."""


def replay(entries: Sequence[Entry], machine: Machine) -> Replayed:
    """Return the state that the entries lead to. `machine` is new, made of the plan and settings in the first entry.

    Raises `JournalMismatch` when an event does not fit what this machine does: the plan, a tool's declaration or the
    scheduler itself is not the same as when the entries were written.
    """
    state = Replayed(machine)
    for number, entry in enumerate(entries):
        state.ended = None
        match entry:
            case RunBegun() | RunResumed():
                pass
            case RunEnded():
                state.ended = entry
            case EffectStarted():
                _check_started(state, entry, number)
                state.started[entry.key] = entry
            case Decision():
                state.decisions.append(entry)
            case StepResolved():
                pass  # the event that it led to is an entry of its own
            case _:
                if isinstance(entry, CallSucceeded | CallFailed | RetryDue) and entry.key not in state.open:
                    raise JournalMismatch(
                        f"entry {number} of the journal is about call {entry.key}, which this plan does not make there"
                    )
                if isinstance(entry, CallSucceeded | CallFailed):
                    state.started.pop(entry.key, None)
                for command in machine.on(entry):
                    _note(state, command)
                if isinstance(entry, CallSucceeded | CallFailed | RetryDue):
                    still_resting = isinstance(state.open.get(entry.key), RetryLater) and isinstance(entry, CallFailed)
                    if not still_resting:
                        state.open.pop(entry.key, None)
    return state


def _note(state: Replayed, command: Command) -> None:
    match command:
        case StartCall() | AskModelNow() | AskUserNow() | RetryLater():
            state.open[command.key] = command
        case CancelCall():
            pass  # its end is an event of its own, or it was lost with the process
        case FinishRun():
            state.finish = command
        case _:
            pass


def _check_started(state: Replayed, entry: EffectStarted, number: int) -> None:
    command = state.open.get(entry.key)
    if not isinstance(command, StartCall) or (command.tool, command.step) != (entry.tool, entry.step):
        raise JournalMismatch(
            f"entry {number} of the journal says that `{entry.step}` ({entry.tool}) left, but this plan does not call "
            "it there"
        )
