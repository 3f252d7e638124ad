"""Which state a request is in, told from its events: the ten states that an interface wants to show.

    for event in events: state = watcher.see(event)        one after the other, as they happen
    state_of(events)                                        after all of them

`docs/design/run-states.md` has the diagram. A request is in one state at a time; while several calls are in flight it
is `running`. The last event of a stream (`RequestFinished`) decides how it ended.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

from toolplan.agent_events import (
    AgentEvent,
    CallsRequested,
    ModeChosen,
    ModelAsked,
    PlanAccepted,
    PlanRefused,
    Replanning,
    RequestFinished,
)
from toolplan.run import RunFinished, RunStarted, StepFinished, StepRetrying, StepStarted

__all__ = ["STATES", "TRANSITIONS", "State", "StateWatcher", "state_of"]

State: TypeAlias = Literal[
    "waiting for user",
    "reasoning",
    "tool requested",
    "validated",
    "running",
    "ask user",
    "retry",
    "returned",
    "final answer",
    "abort",
]
STATES: dict[State, str] = {
    "waiting for user": "before a request, and when only a person can carry on: an answer, an approval",
    "reasoning": "a model has been asked for a plan, its next calls, or words",
    "tool requested": "the reply asks for calls: a plan, or the calls of a turn",
    "validated": "they have passed the check and the policy",
    "running": "calls are in flight",
    "ask user": "the plan, or the model in a loop, asks the person something",
    "retry": "something goes again: an attempt at a call, a plan that was refused, the rest of one that stopped",
    "returned": "nothing is in flight any more; the results are there",
    "final answer": "the end: the request is answered",
    "abort": "the end: it failed, or no plan was accepted",
}

TRANSITIONS: dict[State, frozenset[State]] = {
    "waiting for user": frozenset({"reasoning", "tool requested"}),
    "reasoning": frozenset({"tool requested", "retry", "final answer", "abort"}),
    "tool requested": frozenset({"validated", "reasoning", "retry", "waiting for user", "abort"}),
    "validated": frozenset({"running", "waiting for user", "abort"}),
    "running": frozenset({"returned", "retry", "ask user"}),
    "ask user": frozenset({"returned"}),
    "retry": frozenset({"reasoning", "running", "abort"}),
    "returned": frozenset(
        {
            *("running", "ask user", "reasoning", "retry", "validated", "waiting for user", "final answer", "abort"),
            "tool requested",  # of a resumed loop: the model has asked for them before
        }
    ),
    "final answer": frozenset(),
    "abort": frozenset(),
}
"""From each state, those that may come next. What comes after an end is a new request."""


class StateWatcher:
    """Follows one request. `passed` has every state it was in, in order."""

    def __init__(self) -> None:
        self.passed: list[State] = ["waiting for user"]
        self._open: dict[str, str] = {}
        self._resting: set[str] = set()

    @property
    def state(self) -> State:
        """The state now."""
        return self.passed[-1]

    def see(self, event: AgentEvent) -> State:
        """Take in the next event; return the state after it."""
        for state in self._states(event):
            if state != self.state:
                self.passed.append(state)
        return self.state

    def _states(self, event: AgentEvent) -> tuple[State, ...]:
        match event:
            case ModelAsked(purpose=purpose):
                return () if purpose == "ask_model" else ("reasoning",)
            case CallsRequested():
                return ("tool requested",)
            case PlanAccepted():
                return (
                    ("validated",) if self.state in ("tool requested", "returned") else ("tool requested", "validated")
                )
            case PlanRefused():
                return ("tool requested", "retry")
            case StepRetrying(step=step):
                self._resting.add(step)
                return ("retry",)
            case Replanning() | ModeChosen():
                return ("retry",)
            case RunStarted():
                return ("running",)
            case StepStarted(step=step, tool=tool):
                self._open[step] = tool
                self._resting.discard(step)
                return ("ask user" if tool == "ask_user" else "running",)
            case StepFinished(record=record):
                self._open.pop(record.id, None)
                if not self._open:
                    return ("retry" if self._resting else "returned",)
                return ("ask user" if "ask_user" in self._open.values() else "running",)
            case RunFinished():
                self._open.clear()
                self._resting.clear()
                return ("returned",) if self.state == "running" else ()
            case RequestFinished(result=result):
                ends: dict[str, State] = {"succeeded": "final answer", "waiting": "waiting for user"}
                return (ends.get(result.outcome, "abort"),)
            case _:
                return ()


def state_of(events: Iterable[AgentEvent]) -> State:
    """Return the state of a request after these events."""
    watcher = StateWatcher()
    for event in events:
        watcher.see(event)
    return watcher.state
