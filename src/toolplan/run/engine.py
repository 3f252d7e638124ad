"""The engine: commands become calls, what comes of them becomes events for the machine.

One asyncio task per call in flight and nothing else: a task that ends feeds its event to the machine itself and carries
out the commands that follow, so there is no queue and no loop to poll. Nothing outlives a run: when it ends, or its
caller is cancelled, every task is cancelled and awaited first.
"""

from __future__ import annotations

import asyncio
import contextvars
import datetime as dt
import functools
import inspect
import logging
import random
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from toolplan.errors import ToolFailed
from toolplan.run.events import (
    NoteShown,
    RunEvent,
    RunFinished,
    RunStarted,
    StepFinished,
    StepProgress,
    StepStarted,
)
from toolplan.run.threads import Threads, guarded
from toolplan.schedule import (
    AskModelNow,
    AskUserNow,
    CallEnded,
    CallFailed,
    CallSucceeded,
    CancelCall,
    CancelRun,
    Command,
    Effect,
    Event,
    FinishRun,
    Machine,
    Program,
    RetryDue,
    RetryLater,
    ShowNote,
    StartCall,
    StartRun,
    StepRecord,
)
from toolplan.tools import Tool, ToolContext
from toolplan.values import Json

if TYPE_CHECKING:
    from toolplan.check import CheckedPlan

__all__ = ["Engine", "RunResult", "run_plan"]

_log = logging.getLogger("toolplan.run")

MAX_CONCURRENCY = 64
"""Calls in flight at once, unless the caller says otherwise."""

GRACE_SECONDS = 1.0
"""How long a cancelled call may take to clean up before it is left behind."""

Reader = Callable[[AskModelNow], Awaitable[Json]]
Asker = Callable[[AskUserNow], "Awaitable[str | None] | str | None"]
Watcher = Callable[[RunEvent], None]


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended and everything that happened in it. `steps` are in written order."""

    outcome: Literal["succeeded", "failed", "waiting", "cannot", "replan", "cancelled"]
    text: str | None
    """The answer, the reason why it cannot be done, the question that waits, or why a new plan is needed."""
    steps: tuple[StepRecord, ...]
    error: str | None = None
    failed_step: str | None = None
    missing: tuple[str, ...] = ()
    variables: Mapping[str, Json] = field(default_factory=dict[str, Json])
    seconds: float = 0.0
    run_id: str = ""


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
) -> RunResult:
    """Run a checked plan to its end.

    `now` is the ISO time that the plan sees (default: the local time at the start); `read` carries out `ask_model`
    steps, `ask` asks a person (without it the run ends as `waiting`), `watch` is told every event, synchronously.
    A failing tool is an outcome, not an exception. Cancelling the awaiting task cancels the run and its calls.
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
    )
    return await engine.run()


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
    ) -> None:
        self.run_id = uuid.uuid4().hex
        self._machine = Machine(Program(checked.plan, checked.tools), max_concurrency=max_concurrency, failure=failure)
        self._tools = checked.tools
        self._now = now or dt.datetime.now().isoformat(timespec="seconds")
        self._dependencies = dependencies
        self._read = read
        self._ask = ask
        self._watch = watch
        self._max_concurrency = max_concurrency
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._timers: set[asyncio.TimerHandle] = set()
        self._questions: list[AskUserNow] = []
        self._threads = Threads()
        self._processes: ProcessPoolExecutor | None = None
        self._started = 0.0
        self._done: asyncio.Future[FinishRun | None]

    async def run(self) -> RunResult:
        """Run to the end and return what happened."""
        self._done = asyncio.get_running_loop().create_future()
        self._started = time.perf_counter()
        self._tell(RunStarted(self.run_id))
        self._feed(StartRun(self._now))
        try:
            finish = await asyncio.shield(self._done)
        except asyncio.CancelledError:
            self.cancel("the run was cancelled")  # so that whoever watches hears how each call in flight ended
            raise
        finally:
            await self._clean_up()
        seconds = time.perf_counter() - self._started
        result = self._result(finish, seconds)
        self._tell(RunFinished(result.outcome, result.text, result.error, seconds))
        return result

    def cancel(self, reason: str = "the run was cancelled") -> None:
        """Start nothing more and cancel the calls in flight; `run()` returns when they are accounted for."""
        self._feed(CancelRun(reason))

    # Events in, commands out --------------------------------------------------------------------------------------

    def _feed(self, event: Event, record: StepRecord | None = None) -> None:
        """Give the machine an event and carry out what follows. `record` is the step that the event ends."""
        if self._done.done():
            return
        try:
            commands = self._machine.on(event)
            if record is not None:
                self._tell(StepFinished(record))
            for command in commands:
                self._carry_out(command)
        except Exception as error:  # a bug of ours must end the run, not leave it hanging
            self._done.set_exception(error)
            return
        self._stop_if_idle()

    def _carry_out(self, command: Command) -> None:
        match command:
            case StartCall():
                tool = self._tools[command.tool]
                if self._watch is not None:
                    at = time.perf_counter() - self._started
                    self._tell(StepStarted(command.step, command.tool, command.arguments, at, command.attempt))
                self._spawn(command.key, self._call(command, tool))
            case AskModelNow():
                arguments: dict[str, Json] = {"question": command.question, "data": command.data}
                self._tell(StepStarted(command.step, "ask_model", arguments, time.perf_counter() - self._started))
                self._spawn(command.key, self._read_text(command))
            case AskUserNow():
                at = time.perf_counter() - self._started
                self._tell(StepStarted(command.step, "ask_user", {"question": command.question}, at))
                if self._ask is None:
                    self._questions.append(command)
                else:
                    self._spawn(command.key, self._ask_person(command, self._ask))
            case CancelCall():
                if task := self._tasks.get(command.key):
                    task.cancel()
            case RetryLater():
                loop = asyncio.get_running_loop()
                wait = random.uniform(0, command.wait_seconds)
                timer = loop.call_later(wait, lambda: self._wake(timer, command.key))
                self._timers.add(timer)
            case ShowNote():
                self._tell(NoteShown(command.step, command.text))
            case FinishRun():
                self._done.set_result(command)

    def _wake(self, timer: asyncio.TimerHandle, key: int) -> None:
        self._timers.discard(timer)
        self._feed(RetryDue(key))

    def _spawn(self, key: int, work: Any) -> None:
        self._tasks[key] = asyncio.create_task(work)

    def _settle(self, key: int, event: CallSucceeded | CallFailed) -> None:
        """Report how an attempt ended. The last thing a task does."""
        self._tasks.pop(key, None)
        instance = self._machine.running.get(key) if self._watch is not None else None
        self._feed(event, instance.record if instance is not None else None)

    # Calls --------------------------------------------------------------------------------------------------------

    async def _call(self, command: StartCall, tool: Tool) -> None:
        started = time.perf_counter() - self._started
        key = command.key
        event: CallSucceeded | CallFailed
        try:
            bound = tool.bind(command.arguments, self._context(command) if tool.takes_context else None)
            if command.timeout_seconds is not None:
                raw = await self._within(command.timeout_seconds, bound, tool)
            elif tool.is_async:
                raw = await bound()
            else:
                raw = await self._elsewhere(bound, tool)
            value = tool.to_value(raw)
            event = CallSucceeded(key, value, started, time.perf_counter() - self._started)
        except asyncio.CancelledError:
            event = self._failed(key, tool, "the call was cancelled", started, effect="unknown")
        except _TimedOut as error:
            call = error.call
            event = self._failed(key, tool, str(error), started, effect="unknown", still_running=call is not None)
            if call is not None:
                call.add_done_callback(lambda call: self._left_behind_ended(key, call))
        except (Exception, SystemExit) as error:  # a tool must not end the program it is part of
            nothing = isinstance(error, ToolFailed) and error.effect_happened is False
            event = self._failed(key, tool, _describe(error), started, effect="none" if nothing else "failed")
        self._settle(key, event)

    def _failed(
        self, key: int, tool: Tool, message: str, started: float, *, effect: Effect, still_running: bool = False
    ) -> CallFailed:
        known: Effect = effect if tool.effects.has_effects else "none"
        at = time.perf_counter() - self._started
        return CallFailed(key, message, known, True, started, at, still_running=still_running)

    async def _within(self, seconds: float, bound: Callable[[], Any], tool: Tool) -> Any:
        """Call with a time limit. An async call is cancelled and awaited; what still goes on then is reported so."""
        work = bound() if tool.is_async else self._elsewhere(bound, tool)
        call: asyncio.Future[Any] = asyncio.ensure_future(work)
        try:
            done, _ = await asyncio.wait({call}, timeout=seconds)
            if done:
                return call.result()
            if tool.is_async:
                call.cancel()
                done, _ = await asyncio.wait({call}, timeout=GRACE_SECONDS)
        except asyncio.CancelledError:
            call.cancel()
            raise
        if done:
            raise _TimedOut(f"the call took longer than {seconds:g} seconds and was cancelled")
        raise _TimedOut(
            f"the call took longer than {seconds:g} seconds; it cannot be stopped and may still be running", call
        )

    async def _elsewhere(self, bound: Callable[[], Any], tool: Tool) -> Any:
        """Call a sync tool where it does not hold up the others: a thread, a process, or here if it says so."""
        loop = asyncio.get_running_loop()
        if tool.runs_in == "loop":
            raw = guarded(bound)
        elif tool.runs_in == "process":
            self._processes = self._processes or ProcessPoolExecutor()
            raw = await loop.run_in_executor(self._processes, functools.partial(guarded, bound))
        else:
            context = contextvars.copy_context()
            raw = await self._threads.call(functools.partial(context.run, bound))
        return await raw if inspect.isawaitable(raw) else raw  # a plain function around an async one

    def _context(self, command: StartCall) -> ToolContext:
        step = command.step

        def progress(message: str) -> None:
            self._tell(StepProgress(step, message, time.perf_counter() - self._started))

        return ToolContext(
            run_id=self.run_id,
            step_id=step,
            idempotency_key=f"{self.run_id}:{step}",
            dependencies=self._dependencies,
            progress=progress,
        )

    def _left_behind_ended(self, key: int, call: asyncio.Future[Any]) -> None:
        """A call that timed out and could not be stopped has ended; what came of it is not asked any more."""
        if not call.cancelled():
            call.exception()
        self._feed(CallEnded(key))

    # Questions ----------------------------------------------------------------------------------------------------

    async def _read_text(self, command: AskModelNow) -> None:
        started = time.perf_counter() - self._started
        key = command.key
        event: CallSucceeded | CallFailed
        try:
            if self._read is None:
                raise ToolFailed("this run has no model to ask")
            value = await self._read(command)
            event = CallSucceeded(key, value, started, time.perf_counter() - self._started)
        except asyncio.CancelledError:
            at = time.perf_counter() - self._started
            event = CallFailed(key, "the question was cancelled", "none", False, started, at)
        except Exception as error:
            event = CallFailed(key, _describe(error), "none", False, started, time.perf_counter() - self._started)
        self._settle(key, event)

    async def _ask_person(self, command: AskUserNow, ask: Asker) -> None:
        started = time.perf_counter() - self._started
        key = command.key
        event: CallSucceeded | CallFailed
        try:
            answer = ask(command)
            if inspect.isawaitable(answer):
                answer = await answer
            if answer is None:
                self._tasks.pop(key, None)
                self._questions.append(command)
                self._stop_if_idle()
                return
            event = CallSucceeded(key, answer, started, time.perf_counter() - self._started)
        except asyncio.CancelledError:
            at = time.perf_counter() - self._started
            event = CallFailed(key, "the question was cancelled", "none", False, started, at)
        except Exception as error:
            event = CallFailed(key, _describe(error), "none", False, started, time.perf_counter() - self._started)
        self._settle(key, event)

    # The end ------------------------------------------------------------------------------------------------------

    def _stop_if_idle(self) -> None:
        if not self._tasks and not self._timers and not self._done.done():
            self._done.set_result(None)  # nothing but questions is left: the run waits for a person

    async def _clean_up(self) -> None:
        for timer in self._timers:
            timer.cancel()
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.gather(*tasks, return_exceptions=True)
        self._threads.close()
        if self._processes is not None:
            self._processes.shutdown(wait=False, cancel_futures=True)  # waiting for a stuck call would stop the loop

    def _result(self, finish: FinishRun | None, seconds: float) -> RunResult:
        if finish is None:
            self._machine.note_not_run()
        steps = tuple(sorted(self._machine.records, key=lambda record: record.path))
        variables = self._machine.variables()
        if finish is None:
            question = "\n".join(command.question for command in self._questions)
            return RunResult("waiting", question, steps, variables=variables, seconds=seconds, run_id=self.run_id)
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
        )

    def _tell(self, event: RunEvent) -> None:
        if self._watch is None:
            return
        try:
            self._watch(event)
        except Exception:
            _log.exception("a watcher of the run failed on %s", type(event).__name__)


class _TimedOut(Exception):
    """Our time limit for a call is over. `call` is still going on, if there is one."""

    def __init__(self, message: str, call: asyncio.Future[Any] | None = None) -> None:
        super().__init__(message)
        self.call = call


def _describe(error: BaseException) -> str:
    """Return the message of a tool's exception, with its type where the message alone would not say what it is."""
    if isinstance(error, ToolFailed):
        return error.message
    text = str(error)
    name = type(error).__name__
    return f"{name}: {text}" if text else name
