"""The engine: commands become calls, what comes of them becomes events for the machine.

One asyncio task per call in flight and nothing else: a task that ends feeds its event to the machine itself and carries
out the commands that follow, so there is no queue and no loop to poll. Nothing outlives a run: when it ends, or its
caller is cancelled, every task is cancelled and awaited first.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import datetime as dt
import inspect
import random
import time
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from toolplan.errors import JournalError, ToolFailed, UsageError
from toolplan.journal import EffectStarted, Open, Replayed, RunWriter, StepResolved
from toolplan.policy import PlannedCall
from toolplan.run.approvals import Guard, Ruling, guard_by_declarations
from toolplan.run.calls import GRACE_SECONDS, Calls, Stop, TimedOut, as_value, end_by_force
from toolplan.run.events import (
    NoteShown,
    RunFinished,
    RunStarted,
    StepProgress,
    StepRetrying,
    StepStarted,
)
from toolplan.run.failures import asked_to_wait, describe, is_worth_retrying, known_effect
from toolplan.run.limits import is_gated
from toolplan.run.recovery import misfit, plan_begun, what_happened
from toolplan.run.relay import IN_A_ROW, Relay, within
from toolplan.run.result import RunResult, StillRunning
from toolplan.run.telling import Telling, Watcher
from toolplan.run.turns import Places, Turns, drop_unused
from toolplan.run.worker import why_nothing_may_run
from toolplan.schedule import (
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
    Setup,
    ShowNote,
    StartCall,
    StartRun,
    StepRecord,
    TimeUp,
    TurnCame,
)
from toolplan.tools import Tool, ToolContext
from toolplan.values import Json

if TYPE_CHECKING:
    from toolplan.check import CheckedPlan
    from toolplan.run.early import EarlyCall, EarlyCalls

__all__ = ["Engine", "RunResult", "run_plan"]

MAX_CONCURRENCY = 64
"""Calls in flight at once, unless the caller says otherwise."""

Reader = Callable[[AskModelNow], Awaitable[Json]]
Asker = Callable[[AskUserNow], "Awaitable[str | None] | str | None"]


async def run_plan(
    checked: CheckedPlan,
    *,
    now: str | None = None,
    max_concurrency: int = MAX_CONCURRENCY,
    failure: str = "written-order",
    dependencies: Any = None,
    read: Reader | None = None,
    ask: Asker | None = None,
    watch: Watcher | None = None,
    early: EarlyCalls | None = None,
    keep_names: bool = False,
    after: RunResult | None = None,
    speculate: bool = False,
    max_calls: int | None = None,
    max_seconds: float | None = None,
    guard: Guard | None = None,
    journal: RunWriter | None = None,
    goes_on: Replayed | None = None,
) -> RunResult:
    """Run a checked plan to its end.

    `now` is the ISO time that the plan sees (default: the local time at the start); `read` carries out `ask_model`
    steps, `ask` asks a person (without it the run ends as `waiting`), `watch` is told every event, synchronously.
    `early` has the calls that were made while the plan was still being written, and has accepted this plan.
    A failing tool is an outcome, not an exception. Cancelling the awaiting task cancels the run and its calls.
    `keep_names` keeps the values of all names, for a plan that goes on; that one runs `after` this result, as a part of
    the same run: with its id, and with times and budgets that count on.
    `speculate` lets calls without effects start although something before them may still end the plan or leave their
    loop; what they did is dropped when they turn out not to be needed. `max_calls` is how many attempts at calls the
    run may make, `max_seconds` how long it may take; a run that needs more fails, and says so. `guard` looks at calls
    just before they leave: one that it refuses fails without having been made, one that nobody has allowed yet waits.
    Without it, what the tools declare with `approval` holds.
    With a `journal` everything that the scheduler depends on is written down, and no effect leaves before that is
    durable; when it cannot be written, the run fails. A run that `goes_on` takes up what its journal told.
    """
    engine = Engine(
        checked,
        now=now,
        max_concurrency=max_concurrency,
        failure=failure,
        dependencies=dependencies,
        read=read,
        ask=ask,
        watch=watch,
        early=early,
        keep_names=keep_names,
        after=after,
        speculate=speculate,
        max_calls=max_calls,
        max_seconds=max_seconds,
        guard=guard or guard_by_declarations(checked),
        journal=journal,
        goes_on=goes_on,
    )
    return await engine.run()


Question = TypeVar("Question", AskModelNow, AskUserNow)


class Engine:
    """One run. `run()` may be called once; `cancel()` ends it from outside."""

    def __init__(
        self,
        checked: CheckedPlan,
        *,
        now: str | None = None,
        max_concurrency: int = MAX_CONCURRENCY,
        failure: str = "written-order",
        dependencies: Any = None,
        read: Reader | None = None,
        ask: Asker | None = None,
        watch: Watcher | None = None,
        early: EarlyCalls | None = None,
        keep_names: bool = False,
        after: RunResult | None = None,
        speculate: bool = False,
        max_calls: int | None = None,
        max_seconds: float | None = None,
        guard: Guard | None = None,
        journal: RunWriter | None = None,
        goes_on: Replayed | None = None,
    ) -> None:
        self.run_id = after.run_id if after is not None else uuid.uuid4().hex
        if journal is not None:
            self.run_id = journal.run_id
        self._checked = checked
        self._earlier = [call for call in after.still_running if not call.has_ended()] if after is not None else []
        setup = Setup(
            max_concurrency=max_concurrency,
            failure=failure,
            gated=frozenset(tool.name for tool in checked.tools if is_gated(tool)),
            speculate=speculate,
            max_calls=max_calls,
            calls=after.calls if after is not None else 0,
            keep_names=keep_names,
            left_behind=tuple(left.call for left in self._earlier),
        )
        self._goes_on = goes_on
        self._setup = setup if goes_on is None else goes_on.setup
        self._gated = self._setup.gated
        self._machine = setup.machine_for(checked) if goes_on is None else goes_on.machine
        self._journal = journal
        self._max_seconds = max_seconds
        self._time_up: asyncio.TimerHandle | None = None
        self._tools = checked.tools
        self._now = now or dt.datetime.now().isoformat(timespec="seconds")
        self._dependencies = dependencies
        self._read = read
        self._ask = ask
        self._telling = Telling(watch)
        self._is_watched = watch is not None
        self._early = early
        self._guard = guard
        self._due: deque[tuple[Event, StepRecord | None]] = deque()
        self._is_feeding = False
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._fresh: set[int] = set()  # tasks that have not begun
        self._places: dict[int, Places] = {}  # places of calls that have not begun
        self._grace: dict[int, asyncio.TimerHandle] = {}  # how long calls that were cancelled may take to end
        self._strays: list[asyncio.Task[None]] = []  # calls that took longer
        self._timers: dict[int, asyncio.TimerHandle] = {}  # waits before another attempt
        self._questions: list[AskModelNow | AskUserNow] = []
        self._unallowed: list[PlannedCall] = []  # calls that wait for a person's word
        self._unsettled: dict[int, EffectStarted] = {}  # effects of an earlier process of which nobody knows
        self._calls = Calls()
        self._left: dict[int, StillRunning] = {}  # effects that may still be going on: of plans before it, of this one
        if goes_on is None:
            self._left.update((-number, left) for number, left in enumerate(self._earlier, 1))
        self._relay = Relay()
        self._turns = Turns(self._turn_came)
        self._cancelled: str | None = None
        self._started = after.started if after is not None else 0.0
        self._is_hurried = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._surroundings: contextvars.Context
        self._done: asyncio.Future[FinishRun | None]

    async def run(self) -> RunResult:
        """Run to the end and return what happened."""
        if (reason := why_nothing_may_run()) is not None:
            raise UsageError(reason)
        self._loop = asyncio.get_running_loop()
        self._surroundings = contextvars.copy_context()
        self._done = self._loop.create_future()
        self._started = self._started or time.perf_counter()
        if self._goes_on is not None:  # the time between two processes does not count
            self._started = time.perf_counter() - self._goes_on.seconds
        self._turns.begin()
        self._telling.tell(RunStarted(self.run_id))
        end = RunFinished("cancelled", None, "the run was cancelled", 0.0)
        try:
            if self._max_seconds is not None:
                left = self._max_seconds - self._seconds()
                self._time_up = self._loop.call_later(left, self._feed, TimeUp(self._max_seconds))
            self._begin_run()
            finish = await self._finished()
            result = self._result(finish, self._seconds())
            end = RunFinished(result.outcome, result.text, result.error, 0.0)
        finally:
            try:
                await self._clean_up()
            finally:
                self._telling.end(self._machine.records, self._tools, replace(end, at_seconds=self._seconds()))
        return replace(result, seconds=self._seconds())

    def _begin_run(self) -> None:
        if self._goes_on is not None:
            self._take_up(self._goes_on)
        else:
            if self._journal is not None:
                if self._journal.secrets:
                    self._journal.secrets.see_plan(self._checked.plan)
                self._journal.add(plan_begun(self._checked, self._setup))
            self._feed(StartRun(self._now) if self._cancelled is None else CancelRun(self._cancelled))

    def cancel(self, reason: str = "the run was cancelled") -> None:
        """Start nothing more and cancel the calls in flight; `run()` returns when they are accounted for.

        May be called from any thread, and before the run begins.
        """
        self._cancelled = reason
        loop = self._loop
        if loop is None:
            return
        try:
            is_here = asyncio.get_running_loop() is loop
        except RuntimeError:
            is_here = False
        if is_here:
            self._feed(CancelRun(reason))
        else:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the run is over
                loop.call_soon_threadsafe(self._feed, CancelRun(reason))

    async def _finished(self) -> FinishRun | None:
        """Wait for the end. When the caller is cancelled, that is when every call in flight is accounted for.

        Who cancels again does not want to wait for that either.
        """
        try:
            return await asyncio.shield(self._done)
        except asyncio.CancelledError:
            if not self._done.done():
                self._feed(CancelRun("the run was cancelled"))
                try:
                    await asyncio.shield(self._done)
                except asyncio.CancelledError:
                    self._is_hurried = True
            raise

    # Events in, commands out --------------------------------------------------------------------------------------

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
        for key in [key for key, left in self._left.items() if key < 0 and left.has_ended()]:
            self._earlier.remove(self._left.pop(key))
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

    def _carry_out(self, command: Command) -> None:
        match command:
            case StartCall():
                self._start_call(command, self._tools[command.tool])
            case AskModelNow():
                arguments: dict[str, Json] = {"question": command.question, "data": command.data}
                self._note_started(command.key, StepStarted(command.step, "ask_model", arguments, self._seconds()))
                self._spawn(command.key, self._question(command, self._answer_of_model))
            case AskUserNow():
                question: dict[str, Json] = {"question": command.question}
                self._note_started(command.key, StepStarted(command.step, "ask_user", question, self._seconds()))
                if self._ask is None:
                    self._questions.append(command)
                else:
                    self._spawn(command.key, self._question(command, self._answer_of_person))
            case CancelCall():
                self._cancel_call(command.key)
            case RetryLater():
                wait = command.least_seconds + random.uniform(0, command.wait_seconds)
                timer = asyncio.get_running_loop().call_later(wait, self._wake, command.key)
                self._timers[command.key] = timer
                self._telling.tell(StepRetrying(command.step, command.attempt, wait, command.error, self._seconds()))
            case AskTurn():
                self._turns.ask(self._tools[command.tool])
            case DropTurn():
                self._turns.drop(command.tool)
            case ShowNote():
                self._telling.tell(NoteShown(command.step, command.text))
            case FinishRun():
                self._done.set_result(command)

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
        if self._grace and (timer := self._grace.pop(key, None)) is not None:
            timer.cancel()
        self._feed(event, self._telling.take(key) if self._is_watched else None)

    def _seconds(self) -> float:
        return time.perf_counter() - self._started

    # Calls --------------------------------------------------------------------------------------------------------

    def _start_call(self, command: StartCall, tool: Tool) -> None:
        places = self._turns.take(tool.name) if tool.name in self._gated else ()
        early = self._early
        made = early.take(command.step, command.tool, command.arguments) if early is not None else None
        if self._is_watched:
            at = ((made and made.started) or time.perf_counter()) - self._started
            event = StepStarted(command.step, command.tool, command.arguments, at, command.attempt)
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
                if ruling.allowed and tool.name in self._gated:
                    places = await self._turns.wait(tool)
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
        """Make a call and return how it ended."""
        key = command.key
        self._begin(key)
        started = time.perf_counter() - self._started
        event: CallSucceeded | CallFailed
        stop = Stop()
        if self._journal is not None and tool.effects.has_effects:
            failed = await self._write_down(self._journal, command, tool)
            if failed is not None:
                drop_unused(places)
                return failed
        try:
            bound = tool.bind(command.arguments, self._context(command, stop) if tool.takes_context else None)
            if tool.is_async and command.timeout_seconds is None and not places:  # spares every usual call a detour
                raw = await bound()
                value = await as_value(tool, raw) if hasattr(raw, "__aiter__") else tool.to_value(raw)
            else:
                value = await self._calls.value(tool, bound, places, stop, command.timeout_seconds)
            event = CallSucceeded(key, value, started, time.perf_counter() - self._started)
        except asyncio.CancelledError:
            stop.now = True
            task = asyncio.current_task()
            asked = task is None or task.cancelling() > 0
            text = "the call was cancelled" if asked else "CancelledError: the tool cancelled itself"
            if stop.goes_on:
                text += "; it cannot be stopped and may still be running"
            event = self._failed(key, tool, text, "unknown", started)
        except TimedOut as error:
            left = error.left
            event = self._failed(key, tool, str(error), "unknown", started, still_running=left is not None)
            if left is not None:
                left.add_done_callback(lambda _: self._feed(CallEnded(key)))
                if tool.effects.has_effects:
                    touched = LeftCall(command.step, tool.accesses(command.arguments))
                    self._left[key] = StillRunning(touched, lambda: left.done() and not stop.in_thread)
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
        gated = tool.name in self._gated
        try:
            record = None
            if made is not None or early.places.locked():  # while it waits for early calls, they may need its places
                drop_unused(places)
                places = ()
                record = await made.result() if made is not None else None
            if record is None or record.outcome != "succeeded":
                await early.places.acquire()
                if gated and not places:
                    places = await self._turns.wait(tool)
        except asyncio.CancelledError:
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

    # Going on after another process -------------------------------------------------------------------------------

    def _take_up(self, state: Replayed) -> None:
        """Go on with what was under way when the last process ended."""
        machine = self._machine
        if machine.finished is not None:
            self._done.set_result(machine.finished)
            return
        self._is_feeding = True  # nothing is looked at before everything is there
        if self._cancelled is not None:
            self._feed(CancelRun(self._cancelled))
        for key in list(machine.left_behind):  # it went on in a process that is no more
            self._feed(CallEnded(key))
        for command in list(state.open.values()):
            if command.key in machine.running or command.key in machine.resting:
                self._take_up_one(state, command)
        for command in machine.ask_again():
            self._carry_out(command)
        self._work_off()

    def _take_up_one(self, state: Replayed, command: Open) -> None:
        key, at = command.key, self._seconds()
        started = state.started.get(key)
        if self._machine.is_stopping:
            error = "the run was ended while this was under way, and so was its process"
            self._feed(CallFailed(key, error, "none" if started is None else "unknown", False, at, at))
        elif not isinstance(command, StartCall) or (started is None and command.tool not in self._gated):
            self._carry_out(command)
        else:
            self._note_started(key, StepStarted(command.step, command.tool, command.arguments, at, command.attempt))
            if started is None:
                self._spawn(key, self._make_again(command, self._tools[command.tool]))
            else:
                self._spawn(key, self._take_up_effect(command, started, state.resolved.get(key)))

    async def _take_up_effect(self, command: StartCall, started: EffectStarted, word: StepResolved | None) -> None:
        """Find out whether an effect has happened that an earlier process has begun; if it has not, make the call."""
        key, tool = command.key, self._tools[command.tool]
        self._begin(key)
        at = self._seconds()
        event: CallSucceeded | CallFailed | None
        try:
            if self._journal is not None and self._journal.secrets:
                self._journal.secrets.see(tool.name, key, command.arguments)
            context = self._context(command, Stop())
            wrong = misfit(tool, word)
            event, found = None, None
            if wrong is None:
                event, found = await what_happened(tool, command, word, context, at, self._seconds)
        except asyncio.CancelledError:
            self._settle(key, self._failed(key, tool, "the call was cancelled", "unknown", at))
            return
        if event is not None:
            if word is None and self._journal is not None and found is not None:
                self._journal.add(found)
            self._settle(key, event)
        elif found is None:
            self._tasks.pop(key, None)
            instance = self._machine.running.get(key)
            if instance is not None and instance.record is not None:
                instance.record.outcome = "unknown"
                instance.record.error = wrong
            self._unsettled[key] = started
            self._stop_if_idle()
        else:
            await self._make_again(command, tool, was_allowed=True)

    async def _make_again(self, command: StartCall, tool: Tool, *, was_allowed: bool = False) -> None:
        """Make a call that an earlier process was about to make, and whose place is lost.

        One that had left there `was_allowed` with these values; that it is forbidden by now counts all the same.
        """
        self._begin(command.key)
        places: Places = ()
        if tool.name in self._gated:
            try:
                places = await self._turns.wait(tool)
            except (asyncio.CancelledError, ToolFailed) as error:
                text = str(error) or "the call was cancelled"
                self._settle(command.key, self._failed(command.key, tool, text, "none", self._seconds()))
                return
        guard = self._guard if self._guard is not None and self._guard.watches(command.step) else None
        if guard is not None and was_allowed:
            ruling = guard.judge(command.step, command.arguments)
            guard = guard if isinstance(ruling, Ruling) and not ruling.allowed else None
        if guard is not None:
            await self._call_if_allowed(guard, command, tool, places)
        else:
            await self._calls_in_turn(command, tool, places)

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

    def _account_for(self, key: int) -> None:
        """Report a call as cancelled that cannot report its end itself: it never began, or does not end."""
        at = self._seconds()
        if key in self._fresh:
            event = CallFailed(key, "the call was cancelled before it began", "none", False, at, at)
        else:
            text = "the call was cancelled; it did not end and may still be running"
            event = CallFailed(key, text, "unknown", True, at, at, still_running=True)
        self._settle(key, event)

    # Questions ----------------------------------------------------------------------------------------------------

    async def _question(self, command: Question, answer: Callable[[Question], Awaitable[Json]]) -> None:
        key = command.key
        self._begin(key)
        started = self._seconds()
        event: CallSucceeded | CallFailed
        try:
            event = CallSucceeded(key, await answer(command), started, self._seconds())
        except _Unanswered:
            self._tasks.pop(key, None)
            self._questions.append(command)
            self._stop_if_idle()
            return
        except asyncio.CancelledError:
            event = CallFailed(key, "the question was cancelled", "none", False, started, self._seconds())
        except Exception as error:
            event = CallFailed(key, describe(error), "none", False, started, self._seconds())
        self._settle(key, event)

    async def _answer_of_model(self, command: AskModelNow) -> Json:
        if self._read is None:
            raise ToolFailed("this run has no model to ask")
        return await self._read(command)

    async def _answer_of_person(self, command: AskUserNow) -> Json:
        answer = self._ask(command) if self._ask is not None else None
        if inspect.isawaitable(answer):
            answer = await answer
        if answer is None:
            raise _Unanswered
        return answer

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

    def _result(self, finish: FinishRun | None, seconds: float) -> RunResult:
        if finish is None:
            self._machine.note_not_run()
        steps = tuple(sorted(self._machine.records, key=lambda record: record.path))
        variables = self._machine.variables()
        if finish is None:
            question = "\n".join(command.question for command in self._questions)
            return RunResult(
                "waiting",
                question,
                steps,
                variables=variables,
                seconds=seconds,
                run_id=self.run_id,
                started=self._started,
                omitted=dict(self._machine.omitted),
                calls=self._machine.calls,
                approvals=tuple(self._unallowed),
                unsettled=tuple(self._unsettled.values()),
                questions=tuple(command for command in self._questions if isinstance(command, AskUserNow)),
            )
        return RunResult(
            finish.outcome,
            finish.text,
            steps,
            finish.error,
            finish.failed_step,
            finish.missing,
            variables,
            seconds,
            self.run_id,
            self._machine.names(),
            self._started,
            dict(self._machine.omitted),
            self._machine.calls,
            finish.used_up,
            still_running=tuple(left for key, left in self._left.items() if key in self._machine.left_behind),
        )

    def _note_started(self, key: int, event: StepStarted) -> None:
        if self._is_watched:
            instance = self._machine.running.get(key)
            self._telling.begin(key, instance.record if instance is not None else None, event)


class _Unanswered(Exception):
    """A person has not answered: the run waits."""
