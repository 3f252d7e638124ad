"""What is in flight in one run: events go to the machine one after the other, and every attempt ends exactly once.

One asyncio task per call or question and nothing else: a task that ends feeds its event to the machine itself, so there
is no queue and no loop to poll. A call that is cancelled gets `GRACE_SECONDS` to end; then it is accounted for and left
behind, for whoever reports an end first is believed. Nothing outlives a run: its tasks are cancelled and awaited.
"""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from toolplan.journal import EffectStarted, RunWriter
from toolplan.run.calls import GRACE_SECONDS, Calls, Stop, end_by_force
from toolplan.run.events import StepStarted
from toolplan.run.failures import describe
from toolplan.run.left_behind import LeftBehind
from toolplan.run.result import StillRunning
from toolplan.run.telling import Telling, Watcher
from toolplan.run.turns import Places, Turns, drop_unused
from toolplan.schedule import (
    CallEnded,
    CallFailed,
    CallSucceeded,
    Command,
    Event,
    FinishRun,
    JournalLost,
    LeftCall,
    Machine,
    RetryDue,
    StepRecord,
    TurnCame,
)
from toolplan.schedule.state import Instance
from toolplan.tools import ToolSet
from toolplan.tools.seen_secrets import SeenSecrets

__all__ = ["InFlight"]


class InFlight:
    """The calls and questions of one run that have begun and not ended, and the way of events to its machine."""

    def __init__(
        self,
        machine: Machine,
        tools: ToolSet,
        journal: RunWriter | None,
        watch: Watcher | None,
        *,
        run_id: str,
        earlier: dict[int, StillRunning],
        left_behind: LeftBehind,
        secrets: SeenSecrets,
    ) -> None:
        self.run_id = run_id
        self._secrets = secrets
        machine.clean = self._without_secrets
        self._machine = machine
        self._tools = tools
        self._journal = journal
        self._telling = Telling(watch)
        self._is_watched = watch is not None
        self._due: deque[tuple[Event, StepRecord | None]] = deque()
        self._is_feeding = False
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._fresh: set[int] = set()  # tasks that have not begun
        self._places: dict[int, Places] = {}  # places of calls that have not begun
        self._grace: dict[int, asyncio.TimerHandle] = {}  # how long calls that were cancelled may take to end
        self._strays: list[asyncio.Task[None]] = []  # calls that took longer
        self._timers: dict[int, asyncio.TimerHandle] = {}  # waits before another attempt
        self._time_up: asyncio.TimerHandle | None = None
        self._unsettled: dict[int, EffectStarted] = {}  # effects of an earlier process of which nobody knows
        self._calls = Calls()
        self._earlier = earlier  # effects of earlier plans that may still be going on: nobody else reports their end
        self._left = dict(earlier)  # the same, and those of this one
        self._left_behind = left_behind
        self._stops: dict[int, Stop] = {}  # of effects in flight
        self._turns = Turns(self._turn_came)
        self._started = 0.0
        self._is_hurried = False
        self._surroundings: contextvars.Context
        self._done: asyncio.Future[FinishRun | None]

    def _carry_out(self, command: Command) -> None:
        """Do what the machine wants done."""
        raise NotImplementedError

    # Events in ----------------------------------------------------------------------------------------------------

    def _feed(self, event: Event, record: StepRecord | None = None) -> None:
        """Give the machine an event and carry out what follows. `record` is the step that the event ends.

        What happens meanwhile (a turn comes at once, a watcher cancels the run) waits until that is done.
        """
        if self._earlier:
            self._note_ended()
        self._due.append((event, record))
        if not self._is_feeding:
            self._work_off()

    def _note_ended(self) -> None:
        """Report the effects of earlier plans that are over by now: their runs, which would have, have ended."""
        for key in [key for key, left in self._earlier.items() if left.has_ended()]:
            del self._earlier[key]
            self._due.append((CallEnded(key), None))

    def _work_off(self) -> None:
        """Give the machine everything that is due."""
        self._is_feeding = True
        try:
            while self._due:
                event, record = self._due.popleft()
                if self._done.done():
                    commands = ()
                else:
                    if self._journal is not None and not isinstance(event, JournalLost):
                        self._journal.add(event)
                    commands = self._machine.on(event)
                if record is not None:
                    self._telling.finished(record)
                for command in commands:
                    self._carry_out(command)
        except BaseException as error:  # a bug of ours, or of whoever watches, must end the run, not leave it hanging
            if not self._done.done():
                self._done.set_exception(error)
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            return
        finally:
            self._is_feeding = False
        if not self._tasks or self._unsettled:
            self._stop_if_idle()

    def _wake(self, key: int) -> None:
        del self._timers[key]
        self._feed(RetryDue(key))

    def _turn_came(self, tool: str, refused: str | None) -> None:
        self._feed(TurnCame(tool, refused))

    def _spawn(self, key: int, work: Coroutine[Any, Any, None]) -> None:
        # Not in the context of the call whose end is being reported: what that one has set is its own business.
        task = self._tasks[key] = asyncio.create_task(work, context=self._surroundings.copy())
        task.add_done_callback(self._task_ended)
        self._fresh.add(key)

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        """See to it that no call waits for the report of a task that has ended without one."""
        error = None if task.cancelled() else task.exception()
        if (error is None and not task.cancelled()) or task not in self._tasks.values():
            return
        for key in [key for key, other in self._tasks.items() if other is task]:
            if key in self._fresh:
                drop_unused(self._places.pop(key, ()))
                self._account_for(key)
                continue
            instance, at = self._machine.running.get(key), self._seconds()
            tool = instance.record.tool if instance is not None and instance.record is not None else ""
            has_effects = tool in self._tools and self._tools[tool].effects.has_effects
            text = "the call was cancelled" if error is None else describe(error)
            self._settle(key, CallFailed(key, text, "unknown" if has_effects else "none", False, at, at))

    def _settle(self, key: int, event: CallSucceeded | CallFailed) -> None:
        """Report how an attempt ended. The last thing a task does; nothing if it had been given up."""
        if self._tasks.pop(key, None) is None:
            return
        if self._secrets and isinstance(event, CallFailed):
            event = replace(event, error=self._secrets.clean(event.error))
        if self._stops:
            self._stops.pop(key, None)
        if self._grace and (timer := self._grace.pop(key, None)) is not None:
            timer.cancel()
        self._feed(event, self._telling.take(key) if self._is_watched else None)

    def _without_secrets(self, inst: Instance, error: str) -> str:
        """Return why a step fails, as it may be told."""
        return self._secrets.clean_error(error, inst.node.tool, inst.arguments)

    def _seconds(self) -> float:
        return time.perf_counter() - self._started

    def _note_started(self, key: int, event: StepStarted) -> None:
        if self._is_watched:
            instance = self._machine.running.get(key)
            self._telling.begin(key, instance.record if instance is not None else None, event)

    # Ending calls -------------------------------------------------------------------------------------------------

    def _begin(self, key: int) -> None:
        """Note that a task has begun. One that is cancelled before that never runs, and cannot report its end."""
        self._fresh.discard(key)
        if self._places:
            self._places.pop(key, None)

    def _cancel_call(self, key: int) -> None:
        """Cancel a call; see to it that its end is reported, whatever it does."""
        task = self._tasks.get(key)
        if task is None:
            return
        task.cancel()
        if key in self._fresh:
            drop_unused(self._places.pop(key, ()))
            self._account_for(key)
        else:
            loop = asyncio.get_running_loop()
            self._grace[key] = loop.call_later(GRACE_SECONDS, self._give_up, key, task)

    def _give_up(self, key: int, task: asyncio.Task[None]) -> None:
        """Leave a call behind that goes on although it was cancelled."""
        if self._tasks.get(key) is task:
            self._strays.append(task)
            task.add_done_callback(lambda _: self._feed(CallEnded(key)))
            self._account_for(key)

    def _leave(self, key: int, has_ended: Callable[[], bool]) -> None:
        """Note that the effect of this attempt may be going on, until `has_ended`, although it is given up."""
        instance = self._machine.running.get(key)
        tool = instance.node.tool if instance is not None else None
        if instance is None or tool is None or not tool.effects.has_effects or key in self._left:
            return
        touched = LeftCall(instance.label, tool.accesses(instance.arguments or {}))
        left = self._left[key] = StillRunning(touched, has_ended, self.run_id)
        self._left_behind.add(left)

    def _account_for(self, key: int) -> None:
        """Report a call as cancelled that cannot report its end itself: it never began, or does not end."""
        at = self._seconds()
        if key in self._fresh:
            event = CallFailed(key, "the call was cancelled before it began", "none", False, at, at)
        else:
            task, stop = self._tasks[key], self._stops.get(key)
            self._leave(key, lambda: task.done() and (stop is None or stop.has_ended()))
            text = "the call was cancelled; it did not end and may still be running"
            event = CallFailed(key, text, "unknown", True, at, at, still_running=True)
        self._settle(key, event)

    # The end ------------------------------------------------------------------------------------------------------

    def _stop_if_idle(self) -> None:
        if self._unsettled and self._machine.is_stopping:  # nobody will say any more whether they have happened
            at = self._seconds()
            error = "it had begun in a process that is no more, and nobody has found out whether it happened"
            self._due.extend((CallFailed(key, error, "unknown", False, at, at), None) for key in self._unsettled)
            self._unsettled.clear()
            self._work_off()
        if self._tasks or self._timers or self._done.done() or self._turns.are_awaited:
            return
        self._done.set_result(None)  # nothing but questions is left: the run waits for a person

    async def _clean_up(self) -> None:
        """End everything that the run has begun. A call gets `GRACE_SECONDS` once; what goes on is ended by force."""
        for timer in (*self._timers.values(), *self._grace.values()):
            timer.cancel()
        if self._time_up is not None:
            self._time_up.cancel()
        self._turns.close()
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        try:
            if tasks and not self._is_hurried:
                await asyncio.wait(tasks, timeout=GRACE_SECONDS)
        finally:
            for key in list(self._tasks):
                self._account_for(key)
            for places in self._places.values():  # of tasks that were cancelled before they began
                drop_unused(places)
            left = self._calls.close()
            if left:
                await asyncio.sleep(0)  # what only waits for a thread ends now
            stubborn = [task for task in (*tasks, *self._strays, *left) if not task.done()]
            for task in stubborn:
                end_by_force(task)
            if stubborn:
                await asyncio.wait(stubborn, timeout=GRACE_SECONDS / 10)
