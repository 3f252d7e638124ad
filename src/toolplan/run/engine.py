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
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from toolplan.errors import ToolFailed, UsageError
from toolplan.journal import Replayed, RunWriter
from toolplan.run.approvals import Guard, guard_by_declarations
from toolplan.run.events import (
    NoteShown,
    RunFinished,
    RunStarted,
    StepRetrying,
    StepStarted,
)
from toolplan.run.failures import describe
from toolplan.run.left_behind import LeftBehind
from toolplan.run.limits import is_gated
from toolplan.run.recovery import plan_begun
from toolplan.run.result import RunResult
from toolplan.run.taking_up import TakingUp
from toolplan.run.telling import Watcher
from toolplan.run.worker import why_nothing_may_run
from toolplan.schedule import (
    AskModelNow,
    AskTurn,
    AskUserNow,
    CallFailed,
    CallSucceeded,
    CancelCall,
    CancelRun,
    Command,
    DropTurn,
    FinishRun,
    RetryLater,
    Setup,
    ShowNote,
    StartCall,
    StartRun,
    TimeUp,
)
from toolplan.tools.seen_secrets import SeenSecrets
from toolplan.values import Json

if TYPE_CHECKING:
    from toolplan.check import CheckedPlan
    from toolplan.run.early import EarlyCalls

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
    left_behind: LeftBehind | None = None,
    secrets: SeenSecrets | None = None,
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
    `left_behind` has the effects of other runs that could not be stopped: calls that touch the same are refused.
    `secrets` are those that other runs of the same request have seen, and that no error may repeat.
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
        left_behind=left_behind,
        secrets=secrets,
    )
    return await engine.run()


Question = TypeVar("Question", AskModelNow, AskUserNow)


class Engine(TakingUp):
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
        left_behind: LeftBehind | None = None,
        secrets: SeenSecrets | None = None,
    ) -> None:
        self._checked = checked
        earlier = [left for left in after.still_running if not left.has_ended()] if after is not None else []
        setup = Setup(
            max_concurrency=max_concurrency,
            failure=failure,
            gated=frozenset(tool.name for tool in checked.tools if is_gated(tool)),
            speculate=speculate,
            max_calls=max_calls,
            calls=after.calls if after is not None else 0,
            keep_names=keep_names,
            left_behind=tuple(left.call for left in earlier),
        )
        self._goes_on = goes_on
        self._setup = setup if goes_on is None else goes_on.setup
        run_id = after.run_id if after is not None else uuid.uuid4().hex
        super().__init__(
            setup.machine_for(checked) if goes_on is None else goes_on.machine,
            checked.tools,
            journal,
            watch,
            run_id=run_id if journal is None else journal.run_id,
            earlier={-number: left for number, left in enumerate(earlier, 1)} if goes_on is None else {},
            left_behind=left_behind if left_behind is not None else LeftBehind(),
            secrets=secrets if secrets is not None else SeenSecrets(),
            gated=self._setup.gated,
            guard=guard,
            early=early,
            dependencies=dependencies,
        )
        self._max_seconds = max_seconds
        self._now = now or dt.datetime.now().isoformat(timespec="seconds")
        self._read = read
        self._ask = ask
        self._questions: list[AskModelNow | AskUserNow] = []
        self._started = after.started if after is not None else 0.0
        self._loop: asyncio.AbstractEventLoop | None = None

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

    # Commands out -------------------------------------------------------------------------------------------------

    def _carry_out(self, command: Command) -> None:
        match command:
            case StartCall():
                if self._journal is not None and self._journal.secrets:
                    self._journal.secrets.see(command.tool, command.key, command.arguments)
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
            still_running=tuple(left for left in self._left.values() if not left.has_ended()),
        )


class _Unanswered(Exception):
    """A person has not answered: the run waits."""
