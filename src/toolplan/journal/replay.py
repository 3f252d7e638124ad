"""From entries back to a machine: the same events give the same state (I7).

What was under way when the last entry was written is what is `open`: commands that were given and whose end is not
written down. An open call whose effect is in `started` may have happened; any other open command never left, or can be
carried out again without harm.
"""

from __future__ import annotations

import json
from collections.abc import Sequence, Set
from dataclasses import dataclass, field

from toolplan.errors import JournalMismatch
from toolplan.journal.entries import (
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
from toolplan.journal.secrets import LEFT_OUT
from toolplan.known import Known
from toolplan.plan import Plan
from toolplan.schedule import (
    AskModelNow,
    AskUserNow,
    CallEnded,
    CallFailed,
    CallSucceeded,
    Command,
    Machine,
    RetryDue,
    RetryLater,
    Setup,
    StartCall,
    StartRun,
)
from toolplan.tools import ToolSet
from toolplan.tools.secret_words import secret_words
from toolplan.tools.seen_secrets import SeenSecrets
from toolplan.values import Json

__all__ = ["Open", "Replayed", "Story", "replay", "tell"]

Open = StartCall | AskModelNow | AskUserNow | RetryLater


@dataclass(slots=True)
class Story:
    """The entries of a run, sorted: how it began, each plan with what followed it, and how it ended."""

    begun: RunBegun
    parts: list[tuple[PlanBegun, list[Entry]]] = field(default_factory=list[tuple[PlanBegun, "list[Entry]"]])
    """Every plan that ran, and the last one even if it did not begin."""
    decisions: list[Decision] = field(default_factory=list[Decision])
    earlier: Earlier | None = None
    loop: LoopBegun | None = None
    said: list[tuple[ModelSaid, int]] = field(default_factory=list[tuple[ModelSaid, int]])
    """What the model of a loop said, each with the number of `parts` before it."""
    inferred: list[Inferred] = field(default_factory=list[Inferred])
    left_out: list[str] = field(default_factory=list[str])
    """The kinds of entries that hold less than was there, because of secrets."""
    ended: RunEnded | None = None
    """The last written end, if nothing was written after it."""

    @property
    def has_begun(self) -> bool:
        """Whether the last plan did."""
        return bool(self.parts) and any(isinstance(entry, StartRun) for entry in self.parts[-1][1])


def tell(entries: Sequence[Entry]) -> Story:
    """Return the story of a run. Raises `JournalMismatch` for entries that do not begin like one."""
    if not entries or not isinstance(entries[0], RunBegun):
        raise JournalMismatch("the journal has no beginning of this run")
    story = Story(entries[0])
    for entry in entries[1:]:
        story.ended = entry if isinstance(entry, RunEnded) else None
        match entry:
            case Earlier():
                story.earlier = entry
            case LoopBegun():
                story.loop = entry
            case Inferred():
                story.inferred.append(entry)
            case ModelSaid():
                _drop_unbegun(story)
                story.said.append((entry, len(story.parts)))
            case PlanBegun():
                said = _drop_unbegun(story, entry)
                story.parts.append((entry, said))
            case _:
                if isinstance(entry, Decision):
                    story.decisions.append(entry)
                if isinstance(entry, SecretLeftOut):
                    story.left_out.append(entry.what)
                if story.parts:
                    story.parts[-1][1].append(entry)
    return story


def _drop_unbegun(story: Story, instead: PlanBegun | None = None) -> list[Entry]:
    """Forget a plan that did not begin, for something else came `instead`; if that is the same plan, return its words.

    They are those of a person about the plan.
    """
    if not story.parts or story.has_begun:
        return []
    dropped, after = story.parts.pop()
    is_same = instead is not None and (dropped.plan, dropped.known) == (instead.plan, instead.known)
    return [entry for entry in after if isinstance(entry, Decision)] if is_same else []


@dataclass(slots=True)
class Replayed:
    """The state of a plan's run as its entries tell it."""

    machine: Machine
    setup: Setup
    """What the machine was made of."""
    open: dict[int, Open] = field(default_factory=dict[int, Open])
    """What was under way, by key, in the order in which it began."""
    started: dict[int, EffectStarted] = field(default_factory=dict[int, EffectStarted])
    """Effects that had left and whose end is not known."""
    resolved: dict[int, StepResolved] = field(default_factory=dict[int, StepResolved])
    """What was found out about them."""
    seconds: float = 0.0
    """How long the run had taken when the last event came."""
    secrets: SeenSecrets = field(default_factory=SeenSecrets)
    """The secrets that were seen, as they were when the entries were written: no failure tells them to the plan."""


def replay(
    entries: Sequence[Entry],
    plan: Plan,
    tools: ToolSet,
    known: Known,
    setup: Setup,
    secrets: SeenSecrets | None = None,
) -> Replayed:
    """Return the state that the entries of one plan lead to. The plan has been checked against these tools.

    `secrets` are those that earlier plans of the request have seen; what this one sees is added.
    Raises `JournalMismatch` when an event does not fit what this machine does: the plan, a tool's declaration or the
    scheduler itself is not the same as when the entries were written.
    """
    state = Replayed(setup.machine(plan, tools, known), setup)
    state.secrets = secrets if secrets is not None else state.secrets
    state.secrets.see_words(secret_words(plan, tools).values)
    state.machine.clean = lambda inst, error: state.secrets.clean_error(error, inst.node.tool, inst.arguments)
    edited = {entry.step for entry in entries if isinstance(entry, Decision) and entry.arguments}
    for number, entry in enumerate(entries):
        match entry:
            case RunBegun() | Earlier() | Inferred() | LoopBegun() | ModelSaid() | PlanBegun():
                pass
            case RunResumed() | Decision() | SecretLeftOut():
                pass
            case RunEnded():  # what it had left behind is no business of the scheduler any more: `run/left_behind.py`
                for key in list(state.machine.left_behind):
                    state.machine.on(CallEnded(key))
            case EffectStarted():
                _check_started(state, entry, number, edited)
                state.started[entry.key] = entry
                state.resolved.pop(entry.key, None)
            case StepResolved():
                state.resolved[entry.key] = entry
            case _:
                _feed(state, entry, number, tools)
    return state


def _feed(state: Replayed, entry: Entry, number: int, tools: ToolSet) -> None:
    """Give the machine an event, and note what is under way after it."""
    if isinstance(entry, CallSucceeded | CallFailed | RetryDue):
        if entry.key not in state.open:
            raise JournalMismatch(
                f"entry {number} of the plan is about call {entry.key}, which this plan does not make there"
            )
        ended = state.open.pop(entry.key)
        if isinstance(entry, CallSucceeded) and isinstance(ended, StartCall):
            state.secrets.see_result(tools[ended.tool], entry.value)
    if isinstance(entry, CallSucceeded | CallFailed):
        state.started.pop(entry.key, None)
        state.resolved.pop(entry.key, None)
        state.seconds = max(state.seconds, entry.at_seconds)
    try:
        commands: list[Command] = state.machine.on(entry)  # pyright: ignore[reportArgumentType] - events are what is left
    except AssertionError as error:
        raise JournalMismatch(f"entry {number} of the plan cannot have happened with it: {error}") from error
    for command in commands:
        if isinstance(command, StartCall | AskModelNow | AskUserNow | RetryLater):
            state.open[command.key] = command
        if isinstance(command, StartCall):
            state.secrets.see(tools[command.tool], command.arguments)


def _check_started(state: Replayed, entry: EffectStarted, number: int, edited: Set[str]) -> None:
    command = state.open.get(entry.key)
    if isinstance(command, StartCall) and (command.tool, command.step) == (entry.tool, entry.step):
        if entry.step in edited and isinstance(entry.arguments, dict) and not _is_cut(entry.arguments):
            command.arguments = entry.arguments  # a person has changed them
            record = state.machine.running[entry.key].record
            if record is not None:
                record.arguments = entry.arguments
        fits = _same(entry.arguments, command.arguments)
    else:
        fits = False
    if not fits:
        raise JournalMismatch(
            f"entry {number} of the plan says that `{entry.step}` ({entry.tool}) left, but this plan does not make "
            "that call there"
        )


def _same(written: Json, made: dict[str, Json]) -> bool:
    """Return whether the arguments are the same, apart from secrets, which are not written."""
    if not isinstance(written, dict) or written.keys() != made.keys():
        return False
    return all(value == made[name] or _is_cut(value) for name, value in written.items())


def _is_cut(value: Json) -> bool:
    return LEFT_OUT in json.dumps(value, ensure_ascii=False)
