"""Attempts: which calls and questions may start, how many at once, how they end, and the end of the run.

A call that is ready takes a place of the run and, if its tool has limits, one of its tool's; then it leaves as an
attempt with a key of its own. Its event brings it back: with a value, for another attempt, or with a failure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from toolplan.plan import AskModel, AskUser, Call
from toolplan.schedule.bodies import Bodies
from toolplan.schedule.events import (
    AskModelNow,
    AskTurn,
    AskUserNow,
    CallFailed,
    CallSucceeded,
    CancelCall,
    Command,
    DropTurn,
    FinishRun,
    LeftCall,
    RetryDue,
    RetryLater,
    StartCall,
    StepOutcome,
    TurnCame,
)
from toolplan.schedule.program import Program
from toolplan.schedule.ready import Ready
from toolplan.schedule.retry import wait_before
from toolplan.schedule.state import Instance
from toolplan.values import Value

__all__ = ["Attempts"]

UNBOUNDED = 1 << 60

NOT_URGENT = 1 << 40
"""Taken from the rank of a call that may not be needed, so that it stands behind all others."""


class Attempts(Bodies):
    """The calls and questions that are ready, in flight, or between two attempts."""

    def __init__(
        self,
        program: Program,
        *,
        max_concurrency: int | None,
        window: int,
        gated: frozenset[str],
        independent: bool,
        speculate: bool,
        max_calls: int | None,
        calls: int,
        story: bool,
    ) -> None:
        super().__init__(
            program, window=window, independent=independent, speculate=speculate and max_calls is None, story=story
        )
        self.finished: FinishRun | None = None
        self._limit = max_concurrency or UNBOUNDED
        self._ready = Ready()
        self._held: dict[str, Ready] = {}  # ready, but their tool is at its limit
        self._running: dict[int, Instance] = {}
        self._resting: dict[int, Instance] = {}  # waiting for their next attempt
        self._left_behind: dict[int, LeftCall] = {}  # effects that timed out and may still be going on
        self._busy: dict[str, int] = {}  # running calls of the tools that have a limit
        self._gated = gated
        self._asked: set[str] = set()  # tools of which a turn was asked for and has not come
        self._turns: dict[str, int] = {}  # turns that came and are not used yet
        self._keys = 0
        self._dropped: set[int] = set()  # attempts that were given up, and of which an event may still come
        self.calls = calls
        self._max_calls = UNBOUNDED if max_calls is None else max_calls
        self._bounded = gated | {tool.name for tool in program.tools if tool.max_concurrency is not None}
        self._stop: FinishRun | None = None  # how the run ends as soon as the calls in flight are accounted for
        self._is_cancelling = False

    @property
    def running(self) -> Mapping[int, Instance]:
        """The attempts in flight, by key."""
        return self._running

    @property
    def resting(self) -> Mapping[int, Instance]:
        """The attempts after which another one is to follow, by key."""
        return self._resting

    @property
    def left_behind(self) -> Mapping[int, LeftCall]:
        """The effects that timed out and may still be going on, by key; those of earlier plans by negative ones."""
        return self._left_behind

    @property
    def is_stopping(self) -> bool:
        """Whether nothing more starts, and the run ends when the calls in flight are accounted for."""
        return self._stop is not None

    def waiting(self) -> Iterator[Instance]:
        """Yield every instance that will be started, or looked at again, without another one's help."""
        yield from self._running.values()
        yield from self._resting.values()
        yield from self._ready
        for held in self._held.values():
            yield from held

    # Starting -----------------------------------------------------------------------------------------------------

    def _queue(self, inst: Instance) -> None:
        if inst.ticket is None and not (inst.frame.gates or inst.node.effect or self.story):
            self._ready.push(inst, inst.node.rank)  # as most are: nothing can be in its way
        elif not self._is_blocked(inst):
            self._make_ready(inst)

    def _make_ready(self, inst: Instance) -> None:
        """Let the instance start when there is a place."""
        self._ready.push(inst, self._rank(inst) if inst.frame.gates else inst.node.rank)
        if self.story is not None:
            self.story.enter(inst, "ready")

    def _rank(self, inst: Instance) -> int:
        """Return what decides who goes first: the longest chains, and what may not be needed behind everything else."""
        rank = inst.node.rank
        is_urgent = not inst.frame.gates or self._undecided_before(inst) is None
        return rank if is_urgent else rank - NOT_URGENT

    def _start_ready(self) -> None:
        """Start what the limits allow, the longest chains first."""
        ready = self._ready
        while len(self._running) < self._limit and ready:
            inst = ready.pop()
            tool = inst.node.tool
            if inst.gone:
                if tool is not None:
                    self._bring_forward(tool.name)  # it stood for whoever is held behind it
                continue
            if self.calls >= self._max_calls and tool is not None:
                self._refuse_call(inst)
                continue
            if not self._bounded or tool is None or tool.name not in self._bounded:
                pass
            elif tool.name in self._gated:
                if not self._turns.get(tool.name):
                    self._hold(tool.name, inst)
                    self._ask_turn(tool.name)
                    continue
                self._turns[tool.name] -= 1
            elif tool.max_concurrency is not None:
                busy = self._busy.get(tool.name, 0)
                if busy >= tool.max_concurrency:
                    self._hold(tool.name, inst)
                    continue
                self._busy[tool.name] = busy + 1
            self._start(inst)
        if self._turns and not ready:
            self._commands += [DropTurn(name) for name, left in self._turns.items() for _ in range(left)]
            self._turns.clear()

    def _start(self, inst: Instance) -> None:
        self._keys += 1
        key = inst.key = self._keys
        self._running[key] = inst
        inst.attempt += 1
        arguments = inst.arguments
        assert arguments is not None
        node, record = inst.node, inst.record
        if record is None:
            record = self._begin_record(inst, node.word)
            if inst.frame.gates:
                self._follow(inst)
        else:
            record.outcome = "running"
            record.error = None
        record.attempts = inst.attempt
        if self.story is not None:
            self.story.begin_attempt(inst)
        step = node.step
        if node.kind is Call:
            self.calls += 1
            made = StartCall(key, record.id, node.word, arguments, inst.origins, inst.attempt, node.timeout_seconds)
            self._commands.append(made)
        elif isinstance(step, AskModel):
            question = cast(str, arguments["question"])
            self._commands.append(AskModelNow(key, record.id, question, arguments["data"], step.returns, inst.origins))
        else:
            record.outcome = "waiting"
            self._commands.append(AskUserNow(key, record.id, cast(str, arguments["question"])))

    def _refuse_call(self, inst: Instance) -> None:
        """End the run: it needs one more call than it may make."""
        error = f"the run has made the {self._max_calls} calls that it may make (max_calls), and needs one more"
        if inst.record is not None:  # it has been tried before
            outcome: StepOutcome = "unknown" if inst.may_have_happened else "failed"
            self._record(inst, outcome, error=f"{inst.record.error}; {error}")
        self._stop_run(FinishRun("failed", None, error, inst.label, used_up="max_calls"), cancel=False)

    def _release(self, inst: Instance) -> None:
        """Take an attempt out of those in flight, and let the next call of a limited tool come forward."""
        del self._running[inst.key]
        if self._bounded:
            self._give_place_back(inst)

    def _give_place_back(self, inst: Instance) -> None:
        tool = inst.node.tool
        if tool is not None and tool.max_concurrency is not None and tool.name not in self._gated:
            self._busy[tool.name] -= 1
            self._bring_forward(tool.name)

    # The limits of tools ------------------------------------------------------------------------------------------

    def _hold(self, tool: str, inst: Instance) -> None:
        """Put a call aside that is ready, but has to wait because of the limits of its tool."""
        self._held.setdefault(tool, Ready()).push(inst, self._rank(inst))
        if self.story is not None:
            self.story.enter(inst, "held")

    def _bring_forward(self, tool: str) -> None:
        """Let the next call of a tool that is at its limit try again."""
        held = self._held.get(tool)
        while held:
            inst = held.pop()
            if not inst.gone:
                self._make_ready(inst)
                return

    def _ask_turn(self, tool: str) -> None:
        if tool not in self._asked:
            self._asked.add(tool)
            self._commands.append(AskTurn(tool))

    def _turn_came(self, event: TurnCame) -> None:
        """Bring forward the held call of the tool that goes first; without one, the turn is dropped again."""
        self._asked.discard(event.tool)
        held = self._held.get(event.tool, Ready())
        if event.refused is not None:
            refused = list(held)
            held.clear()
            for inst in refused:
                if not inst.gone:
                    self._fail(inst, event.refused)
            return
        self._turns[event.tool] = self._turns.get(event.tool, 0) + 1
        self._bring_forward(event.tool)
        if any(not inst.gone for inst in held):
            self._ask_turn(event.tool)

    def ask_again(self) -> list[Command]:
        """Return the asks for all calls that wait for a turn, for a run that goes on elsewhere: its turns are lost."""
        self._turns.clear()
        self._asked.clear()
        for tool, held in self._held.items():
            if tool in self._gated and any(not inst.gone for inst in held):
                self._ask_turn(tool)
        commands, self._commands = self._commands, []
        return commands

    # What comes of them -------------------------------------------------------------------------------------------

    def _call_succeeded(self, event: CallSucceeded) -> None:
        inst = self._running.pop(event.key, None)
        if inst is None:
            self._forget_dropped(event)
            return
        if self._bounded:
            self._give_place_back(inst)
        record = inst.record
        assert record is not None
        record.outcome = "succeeded"
        record.result = event.value
        record.started_seconds = event.started_seconds
        record.finished_seconds = event.at_seconds
        if inst.loose:
            self._record_success(inst)
        if self._stop is not None:
            self._end_stopped()
            return
        self._succeed(inst, Value(event.value, inst.node.origins))

    def _call_failed(self, event: CallFailed) -> None:
        inst = self._running.get(event.key)
        if inst is None:
            self._forget_dropped(event)
            return
        self._release(inst)
        record = inst.record
        assert record is not None
        record.started_seconds = event.started_seconds
        record.finished_seconds = event.at_seconds
        record.is_doubtful = record.is_doubtful or event.effect != "none"
        outcome: StepOutcome = "failed"
        if event.effect == "unknown" and inst.node.effect and inst.node.kind is Call:
            inst.may_have_happened = True
        if inst.may_have_happened:  # in this attempt or in one before it
            outcome = "unknown"
        if self._stop is not None:
            was_cancelled = self._is_cancelling and outcome != "unknown"
            self._record(inst, "cancelled" if was_cancelled else outcome, error=event.error)
            self._end_stopped()
            return
        if event.still_running and inst.node.effect and inst.node.kind is Call:
            assert inst.node.tool is not None
            self._left_behind[event.key] = LeftCall(record.id, inst.node.tool.accesses(inst.arguments or {}))
        wait = self._wait_before_retry(inst, event)
        if wait is None:
            self._fail(inst, event.error, outcome)
            return
        record.error = event.error
        if inst.may_have_happened:
            record.outcome = "unknown"  # and stays so if there is no other attempt
        self._resting[inst.key] = inst
        if self.story is not None:
            self.story.enter(inst, "resting", event.error)
        least = event.retry_after_seconds or 0.0
        self._commands.append(RetryLater(inst.key, record.id, wait, least, inst.attempt + 1, event.error))

    def _wait_before_retry(self, inst: Instance, event: CallFailed) -> float | None:
        step, tool = inst.node.step, inst.node.tool
        if not isinstance(step, Call) or tool is None or not event.retryable:
            return None
        if event.still_running and tool.effects.has_effects:
            return None  # two attempts at once would be two calls
        retry = step.retry or tool.retry
        is_safe = not tool.effects.has_effects or tool.idempotent or event.effect == "none"
        if retry is None or not is_safe:
            return None
        return wait_before(retry, inst.attempt + 1, event.retry_after_seconds)

    def _retry_due(self, event: RetryDue) -> None:
        inst = self._resting.pop(event.key, None)
        if inst is None:
            self._forget_dropped(event)
        elif not inst.gone:
            self._make_ready(inst)

    def _drop_call(self, inst: Instance) -> bool:
        if self._resting.pop(inst.key, None) is not None:
            self._dropped.add(inst.key)
            return True
        if self._running.get(inst.key) is not inst:
            return False
        self._release(inst)
        self._dropped.add(inst.key)
        self._commands.append(CancelCall(inst.key))
        return True

    def _forget_dropped(self, event: CallSucceeded | CallFailed | RetryDue) -> None:
        """Take note of the end of an attempt that was given up. Raises `AssertionError` if no such event can come."""
        if event.key in self._dropped:
            self._dropped.remove(event.key)
            return
        made = "has ended" if 0 < event.key <= self._keys else "was never made"
        story = f": {self.story.tell_attempt(event.key)}" if self.story is not None else ""
        raise AssertionError(f"{event} is about an attempt that {made}{story}")

    # Ending before the plan does ----------------------------------------------------------------------------------

    def _stop_run(self, finish: FinishRun, *, cancel: bool) -> None:
        """Start nothing more; the run ends like this when the calls in flight are accounted for.

        With `cancel` they are cancelled. Nobody waits for the answer of a person any more.
        """
        self._stop = self._stop or finish
        waiting = [inst for steps in (self._ready, *self._held.values()) for inst in steps]
        for inst in (*waiting, *self._resting.values()):
            if inst.record is not None and not inst.gone:  # between two attempts
                self._record(inst, "unknown" if inst.may_have_happened else "cancelled", error=self._stop.error)
        self._ready.clear()
        self._held.clear()
        self._agenda.clear()
        self._dropped.update(self._resting)
        self._resting.clear()
        for inst in [inst for inst in self._running.values() if inst.node.kind is AskUser]:
            self._drop_call(inst)
            self._record(inst, "cancelled", error=self._stop.error)
        if cancel and not self._is_cancelling:
            self._is_cancelling = True
            self._commands += [CancelCall(key) for key in self._running]
        self._end_stopped()

    def _end_stopped(self) -> None:
        if not self._running and self.finished is None:
            self.note_not_run()
            self.finished = self._stop
            assert self.finished is not None
            self._commands.append(self.finished)

    def note_not_run(self) -> None:
        """Add a record for every call that has not been made. For a run that stops here, waiting for a person.

        What began early, and has not turned out to be needed so far, is dropped.
        """
        for inst in self._early:
            self._record_unneeded(inst)
        self._early.clear()
        if self._root.undecided:
            self._take_back_names(self._root, min(self._root.undecided))
        self._record_frame_not_run(self._root)
