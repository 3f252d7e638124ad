"""Making the calls of a run: as they are allowed, in turn, beside early ones, written down before an effect leaves.

The ways to a call differ; all of them end in `_call`, which makes it once and says how it ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any, cast

from toolplan.errors import JournalError, ToolFailed
from toolplan.journal import EffectStarted, RunWriter
from toolplan.policy import PlannedCall
from toolplan.run.approvals import Guard, Ruling
from toolplan.run.calls import Stop, TimedOut, as_value
from toolplan.run.early import EarlyCall, EarlyCalls
from toolplan.run.events import StepProgress, StepStarted
from toolplan.run.failures import asked_to_wait, describe, is_worth_retrying, known_effect
from toolplan.run.in_flight import InFlight
from toolplan.run.left_behind import LeftBehind
from toolplan.run.relay import IN_A_ROW, Relay, within
from toolplan.run.result import StillRunning
from toolplan.run.telling import Watcher
from toolplan.run.turns import Places, drop_unused
from toolplan.schedule import (
    CallEnded,
    CallFailed,
    CallSucceeded,
    Effect,
    JournalLost,
    Machine,
    StartCall,
    StepRecord,
)
from toolplan.tools import Tool, ToolContext, ToolSet
from toolplan.tools.secrets import shown
from toolplan.tools.seen_secrets import SeenSecrets

__all__ = ["Making"]


class Making(InFlight):
    """The calls of one run, from the command that starts one to the event that ends it."""

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
        gated: frozenset[str],
        guard: Guard | None,
        early: EarlyCalls | None,
        dependencies: Any,
    ) -> None:
        super().__init__(
            machine,
            tools,
            journal,
            watch,
            run_id=run_id,
            earlier=earlier,
            left_behind=left_behind,
            secrets=secrets,
        )
        self._gated = gated
        self._guard = guard
        self._early = early
        self._dependencies = dependencies
        self._relay = Relay()
        self._unallowed: list[PlannedCall] = []  # calls that wait for a person's word

    def _start_call(self, command: StartCall, tool: Tool) -> None:
        places = self._turns.take(tool.name) if tool.name in self._gated else ()
        early = self._early
        made = early.take(command.step, command.tool, command.arguments) if early is not None else None
        if self._is_watched:
            at = ((made and made.started) or time.perf_counter()) - self._started
            event = StepStarted(command.step, command.tool, shown(command.arguments, tool), at, command.attempt)
            self._note_started(command.key, event)
        if self._guard is not None and self._guard.watches(command.step):
            self._spawn(command.key, self._call_if_allowed(self._guard, command, tool, places))
        elif early is None:
            task = self._relay.take(command, tool) if not places else None
            if task is None:
                self._spawn(command.key, self._calls_in_turn(command, tool, places))
            else:
                self._tasks[command.key] = task
                self._fresh.add(command.key)
        else:
            self._spawn(command.key, self._call_beside(early, command, tool, made, places))
        if places:
            self._places[command.key] = places

    async def _calls_in_turn(self, command: StartCall, tool: Tool, places: Places) -> None:
        """Make a call and report its end; then, in the same task, one of the calls that this lets start, and so on."""
        task = cast("asyncio.Task[None]", asyncio.current_task())
        event = await self._call(command, tool, places)
        relay, made = self._relay, 1
        while True:
            relay.free = None if task.cancelling() else task  # one that was cancelled is to end
            self._settle(event.key, event)
            following, relay.next, relay.free = relay.next, None, None
            if following is None:
                return
            if made % IN_A_ROW == 0:
                await asyncio.sleep(0)
            made += 1
            command, tool = following
            if command.key not in self._tasks:
                return  # it was cancelled before it began
            event = await within(self._call(command, tool), self._surroundings.copy())

    async def _call_if_allowed(self, guard: Guard, command: StartCall, tool: Tool, places: Places) -> None:
        """Make the call if the policy, or a person, allows it with these values. No place is kept while it is asked."""
        key, early = command.key, self._early
        self._begin(key)
        try:
            ruling = guard.judge(command.step, command.arguments)
            if not isinstance(ruling, Ruling):
                drop_unused(places)
                asked, places = ruling, ()
                ruling = await guard.ask(asked)
                if ruling.allowed is None:
                    self._wait_for_word(key, asked)
                    return
        except asyncio.CancelledError:
            self._settle(key, self._failed(key, tool, "the call was cancelled", "none", self._seconds()))
            return
        except BaseException as error:  # of whoever approves: the caller must hear of it
            drop_unused(places)
            self._tasks.pop(key, None)
            if not self._done.done():
                self._done.set_exception(error)
            if isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit):
                raise
            return
        if not ruling.allowed:
            drop_unused(places)
            at = self._seconds()
            self._take_back(key)
            self._settle(key, CallFailed(key, ruling.reason, "none", False, at, at))
            return
        if ruling.arguments is not None:
            command.arguments = dict(ruling.arguments)
            instance = self._machine.running.get(key)
            if instance is not None and instance.record is not None:
                instance.record.arguments = command.arguments
        if early is None:
            self._settle(key, await self._call(command, tool, places))
        else:
            await self._call_beside(early, command, tool, None, places)

    def _wait_for_word(self, key: int, call: PlannedCall) -> None:
        """Leave a call unmade until a person has allowed it; the run may go on with what does not wait for it."""
        self._tasks.pop(key, None)
        if (record := self._take_back(key)) is not None:
            record.outcome = "waiting"
        self._unallowed.append(call)
        self._stop_if_idle()

    def _take_back(self, key: int) -> StepRecord | None:
        """Return the record of a call that was not made after all; the attempt does not count."""
        instance = self._machine.running.get(key)
        record = instance.record if instance is not None else None
        if record is not None:
            record.attempts -= 1
        return record

    async def _call(self, command: StartCall, tool: Tool, places: Places = ()) -> CallSucceeded | CallFailed:
        """Make a call and return how it ended. One that has no place yet, and needs one, waits for it."""
        key = command.key
        self._begin(key)
        if not places and (tool.runs_in == "thread" or tool.name in self._gated):
            try:
                places = await self._turns.wait(tool)
            except (asyncio.CancelledError, ToolFailed) as error:
                text = str(error) or "the call was cancelled"
                return self._failed(key, tool, text, "none", self._seconds())
        started = time.perf_counter() - self._started
        event: CallSucceeded | CallFailed
        stop = Stop()
        if self._left_behind and (why := self._left_behind.why_not(tool, command.arguments, self.run_id)) is not None:
            drop_unused(places)
            return self._failed(key, tool, why, "none", started)
        if tool.effects.has_effects:
            self._stops[key] = stop
            failed = await self._write_down(self._journal, command, tool) if self._journal is not None else None
            if failed is not None:
                drop_unused(places)
                return failed
        if tool.has_secrets:
            self._secrets.see(tool, command.arguments)
        try:
            bound = tool.bind(command.arguments, self._context(command, stop) if tool.takes_context else None)
            if tool.is_async and command.timeout_seconds is None and not places:  # spares every usual call a detour
                raw = await bound()
                value = await as_value(tool, raw) if hasattr(raw, "__aiter__") else tool.to_value(raw)
            else:
                value = await self._calls.value(tool, bound, places, stop, command.timeout_seconds)
            if tool.has_secrets:
                self._secrets.see_result(tool, value)
            event = CallSucceeded(key, value, started, time.perf_counter() - self._started)
        except asyncio.CancelledError:
            stop.now = True
            task = asyncio.current_task()
            asked = task is None or task.cancelling() > 0
            text = "the call was cancelled" if asked else "CancelledError: the tool cancelled itself"
            if stop.goes_on:
                text += "; it cannot be stopped and may still be running"
                self._leave(key, stop.has_ended)
            event = self._failed(key, tool, text, "unknown", started)
        except TimedOut as error:
            left = error.left
            event = self._failed(key, tool, str(error), "unknown", started, still_running=left is not None)
            if left is not None:
                left.add_done_callback(lambda _: self._feed(CallEnded(key)))
                self._leave(key, stop.has_ended)
        except BaseException as error:  # a tool must not end the program it is part of
            if isinstance(error, KeyboardInterrupt) or (isinstance(error, GeneratorExit) and key not in self._tasks):
                raise  # the person at the keyboard, or `end_by_force`
            event = self._failed(key, tool, describe(error), known_effect(error, tool), started, error)
        return event

    async def _write_down(self, journal: RunWriter, command: StartCall, tool: Tool) -> CallFailed | None:
        """Write down, durably, that an effect leaves now (I4); return how the call ended if that cannot be."""
        key, at = command.key, self._seconds()
        own_key = self._idempotency_key(command.step)
        if journal.secrets:
            journal.secrets.see(tool.name, key, command.arguments)
        arguments = dict(command.arguments)
        journal.add(EffectStarted(key, command.step, tool.name, command.attempt, own_key, arguments, at))
        try:
            await journal.durable()
        except asyncio.CancelledError:
            return CallFailed(key, "the call was cancelled before it left", "none", False, at, self._seconds())
        except JournalError as error:
            self._feed(JournalLost(str(error)))
            return CallFailed(key, f"the call was not made: {error}", "none", False, at, self._seconds())
        return None

    async def _call_beside(
        self, early: EarlyCalls, command: StartCall, tool: Tool, made: EarlyCall | None, places: Places
    ) -> None:
        """Take what was made early; else call, within the places that the early calls leave."""
        key = command.key
        self._begin(key)
        try:
            record = None
            if made is not None or early.places.locked():  # while it waits for early calls, they may need its places
                drop_unused(places)
                places = ()
                record = await made.result() if made is not None else None
            if record is None or record.outcome != "succeeded":
                await early.places.acquire()
        except asyncio.CancelledError:
            drop_unused(places)
            self._settle(key, self._failed(key, tool, "the call was cancelled", "none", self._seconds()))
            return
        if made is not None and record is not None and record.outcome == "succeeded":
            began = (made.started or made.ended) - self._started
            self._settle(key, CallSucceeded(key, record.result, began, made.ended - self._started))
            return
        try:
            self._settle(key, await self._call(command, tool, places))
        finally:
            early.places.release()

    def _failed(
        self,
        key: int,
        tool: Tool,
        message: str,
        effect: Effect,
        started: float,
        error: BaseException | None = None,
        *,
        still_running: bool = False,
    ) -> CallFailed:
        known: Effect = effect if tool.effects.has_effects else "none"
        retryable = error is None or is_worth_retrying(error)
        wait = asked_to_wait(error) if error is not None and retryable else None
        if wait:
            message += f"; it asks not to be called again for {wait:g} seconds"
        return CallFailed(key, message, known, retryable, started, self._seconds(), wait, still_running)

    def _context(self, command: StartCall, stop: Stop) -> ToolContext:
        step, key, loop = command.step, command.key, asyncio.get_running_loop()

        def show(message: str) -> None:
            if key in self._tasks:
                message = self._secrets.clean(message) if self._secrets else message
                self._telling.tell(StepProgress(step, message, self._seconds()))

        def progress(message: str) -> None:
            try:
                is_here = asyncio.get_running_loop() is loop
            except RuntimeError:
                is_here = False
            if is_here:
                show(message)
                return
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody watches any more
                loop.call_soon_threadsafe(show, message)

        return ToolContext(
            run_id=self.run_id,
            step_id=step,
            idempotency_key=self._idempotency_key(step),
            dependencies=self._dependencies,
            progress=progress,
            is_cancelled=stop,
        )

    def _idempotency_key(self, step: str) -> str:
        """Return the key of an effect: the same for every attempt at it, in whatever process, and for no other."""
        return f"{self.run_id}:{step}"
