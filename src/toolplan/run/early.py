"""Calls that are made while the plan is still being written, because they change nothing.

    complete steps ──> offer ──> a call runs ──> accept(plan) ──> take, when the engine comes to that step
                                      └────────────────────────> discard

Which calls these are is for `schedule/early.py` to say. A call is checked, and shown to the policy, as the last step of
the steps that its arguments come from; so it is known whose data it gets. Then it is a run of its own: of a plan with
this one call, its arguments constants, through the same checker and engine as every other call. When the engine
starts a step of the accepted plan, it takes the early call with the same tool and arguments instead of making it; one
that failed is made again, under the step's own rules. What nobody takes is discarded: cancelled where it still runs,
awaited, reported, and never part of the run.

A plan that goes on after another one begins with its values (`Known`): what is early in it is made when the one before
has ended, and behind all that it has done.
"""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from toolplan.errors import EvaluationError, PlanRejected
from toolplan.expressions import Fields, Literal, Template, fill, names_of
from toolplan.known import NOTHING_KNOWN, Known
from toolplan.plan import Call, Let, Parallel, Plan, Retry, Step, assigned_names
from toolplan.run.events import (
    EarlyDiscarded,
    EarlyEvent,
    EarlyFinished,
    EarlyStarted,
    RunEvent,
    StepProgress,
    StepStarted,
)
from toolplan.schedule import StepRecord
from toolplan.schedule.early import Beginning, in_a_row
from toolplan.tools import ToolSet
from toolplan.values import Json

if TYPE_CHECKING:
    from toolplan.run.engine import RunResult

__all__ = ["EarlyCall", "EarlyCalls", "MayStart", "RunOneCall"]

T = TypeVar("T")

_log = logging.getLogger("toolplan.run")

_NOTHING = object()
"""Stands for the value of a step that will not have one in time."""

_Key = tuple[str, str]
"""A tool and its arguments as text: calls with the same key are the same call."""

MayStart: TypeAlias = Callable[[Plan, str, Known], bool]
"""Whether the plan, which goes on from what is known, passes the checks, and its step of this id may be made without
anybody being asked."""

RunOneCall: TypeAlias = "Callable[[Plan, Callable[[RunEvent], None]], Awaitable[RunResult]]"
"""Checks and runs a plan of one call. Raises `PlanRejected`."""


@dataclass(eq=False, slots=True)
class EarlyCall:
    """One early call. Its `record` is that of a step, with times in seconds since the request was made."""

    key: _Key
    record: StepRecord
    started: float | None = None
    """When it left, by `time.perf_counter`; None: it waits for its place."""
    ended: float = 0.0
    is_taken: bool = False
    run: asyncio.Task[None] = field(init=False)

    async def result(self) -> StepRecord:
        """Return the record when the call has ended. Cancelling whoever waits for it cancels the call."""
        await self.run
        return self.record


@dataclass(frozen=True, slots=True)
class _Value:
    """What a name will stand for, and the places of the steps that it comes from; or, without a task, stands for."""

    task: asyncio.Task[object] | None = None
    steps: frozenset[int] = frozenset()
    data: Json = None


class EarlyCalls:
    """The early calls of one request, as an async context manager: when it is left, nothing is left running.

    `may_start` is asked about each, `run` makes one, `tell` hears of each. `places` are those of the calls in flight:
    whoever makes other calls for the same request takes one of them for each.
    """

    def __init__(
        self,
        tools: ToolSet,
        may_start: MayStart,
        run: RunOneCall,
        *,
        now: str,
        max_concurrency: int,
        tell: Callable[[EarlyEvent | StepProgress], None],
    ) -> None:
        self.places = asyncio.Semaphore(max_concurrency)
        self.discarded: list[StepRecord] = []
        """The calls that were made for nothing so far."""
        self._tools = tools
        self._may_start = may_start
        self._run_one_call = run
        self._now = now
        self._tell = tell
        self._zero = time.perf_counter()
        self._is_open = True
        self._calls: list[EarlyCall] = []
        self._offered: dict[_Key, list[EarlyCall]] = {}  # what steps of the accepted plan may take
        self._tasks: set[asyncio.Task[object]] = set()
        self._wanted: Collection[str] = ()
        self.begin()

    async def __aenter__(self) -> EarlyCalls:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # While a plan arrives -----------------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Whether calls may still be made early: until a plan is accepted."""
        return self._is_open

    def begin(self, known: Known = NOTHING_KNOWN) -> None:
        """Expect a new plan from its beginning, which may use what is known.

        Calls that it has in common with one that was refused are not made again.
        """
        self._beginning = Beginning(self._tools)
        self._steps: list[Step] = []
        self._members = 0  # of a `parallel` that is arriving: how many are taken in
        self._known = known
        self._values: dict[str, _Value] = {name: _Value(data=value.data) for name, value in known.values.items()}
        self._spare = _by_key(self._calls)

    def go_on(self) -> None:
        """Let calls be early again, for the plan after one that has run. It takes nothing that was read for it."""
        self._is_open = True
        self._calls.clear()
        self._offered, self._wanted = {}, ()

    def offer(self, step: Step) -> None:
        """Take in the next top-level step of the plan that arrives; start the calls in it that may be early."""
        if isinstance(step, Parallel):
            self.offer_members(step)
            self._members = 0
        else:
            self._take_in(step)

    def offer_members(self, parallel: Parallel) -> None:
        """Take in the members of a `parallel`, of which there may be more to come."""
        for member in parallel.members[self._members :]:
            self._take_in(member)
        self._members = max(self._members, len(parallel.members))

    def _take_in(self, step: Step) -> None:
        if not self._is_open:
            return
        self._steps.append(step)
        admitted = self._beginning.admits(step)
        for name in assigned_names((step,)):  # the names stand for nothing known, unless it turns out otherwise
            self._values.pop(name, None)
        if admitted:
            call = cast(Call, step)
            needed = names_of(call.arguments).union(call.depends_on)
            self._define(call.defines, needed, functools.partial(self._value_of_call, call, self._beginning), call.id)
        elif isinstance(step, Let):
            for name, template in step.values:
                self._define((name,), names_of(template), functools.partial(_value_of_template, template))

    def _define(
        self,
        names: Collection[str],
        needed: Collection[str],
        make: Callable[[Mapping[str, Json]], Awaitable[object]],
        call: str | None = None,
    ) -> None:
        """Let `names` stand for what `make` makes of the values of `needed`; `call` is the step's id, if it is one."""
        sources = {name: self._values[name] for name in needed if name in self._values}
        if len(sources) + ("now" in needed and "now" not in sources) < len(needed):
            return
        steps = frozenset((len(self._steps) - 1,)).union(*(source.steps for source in sources.values()))
        plan = Plan(tuple(self._steps[at] for at in sorted(steps)))
        if call is not None and not self._may_start(plan, call, self._known):
            return
        value = _Value(self._spawn(self._make(sources, make)), steps)
        self._values.update(dict.fromkeys(names, value))

    async def _make(
        self,
        sources: Mapping[str, _Value],
        make: Callable[[Mapping[str, Json]], Awaitable[object]],
    ) -> object:
        tasks = {source.task for source in sources.values() if source.task is not None}
        if tasks:
            await asyncio.wait(tasks)
        values = {name: _value_of(source) for name, source in sources.items()}
        if any(value is _NOTHING for value in values.values()):
            return _NOTHING
        try:
            return await make({"now": self._now, **cast("dict[str, Json]", values)})
        except EvaluationError:  # the plan will meet the same, and say so
            return _NOTHING
        except Exception:
            _log.exception("an early call could not be made")
            return _NOTHING

    async def _value_of_call(self, step: Call, beginning: Beginning, scope: Mapping[str, Json]) -> object:
        if not self._is_open or beginning is not self._beginning:
            return _NOTHING  # what was waited for has come too late: this is a step of the run, or of no plan, by now
        arguments = dict(self._tools[step.tool].normalise(cast("dict[str, Json]", fill(step.arguments, scope))))
        key = _key_of(step.tool, arguments)
        if spare := self._spare.get(key):
            call = spare.pop(0)
        else:
            call = EarlyCall(key, StepRecord(step.id, step.tool, arguments=arguments))
            call.run = self._spawn(self._run(call, step.timeout_seconds))
            self._calls.append(call)
        await asyncio.wait({call.run})  # does not cancel the call when this is cancelled
        return call.record.result if call.record.outcome == "succeeded" else _NOTHING

    async def _run(self, call: EarlyCall, timeout_seconds: float | None) -> None:
        record = call.record
        arguments = Fields(tuple((name, Literal(value)) for name, value in (record.arguments or {}).items()))
        plan = Plan((Call(record.id, record.tool, arguments, retry=Retry(), timeout_seconds=timeout_seconds),))

        def watch(event: RunEvent) -> None:
            if isinstance(event, StepStarted):
                call.started = time.perf_counter()
                at = record.started_seconds = call.started - self._zero
                self._tell(EarlyStarted(event.step, event.tool, event.arguments, at))
            elif isinstance(event, StepProgress):
                self._tell(event)

        try:
            async with self.places:
                result = await self._run_one_call(plan, watch)
        except asyncio.CancelledError:
            self._end(call, replace(record, outcome="cancelled", error="the call was not needed"))
            raise
        except PlanRejected:  # the values do not fit; the plan will meet the same, and say so
            self._end(call, replace(record, outcome="not_run"))
            return
        except Exception as error:
            _log.exception("an early call could not be made")
            self._end(call, replace(record, outcome="failed", error=str(error)))
            return
        self._end(call, result.steps[0])

    def _end(self, call: EarlyCall, ended: StepRecord) -> None:
        call.ended = time.perf_counter()
        if call.started is None:
            call.record = ended
            return
        at = call.started - self._zero
        call.record = replace(ended, started_seconds=at, finished_seconds=call.ended - self._zero)
        self._tell(EarlyFinished(call.record))

    def _spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # When the plan is there ---------------------------------------------------------------------------------------

    async def accept(self, plan: Plan) -> EarlyCalls | None:
        """Let the steps of the accepted plan take what they would call; discard what none of them can take.

        Returns None when nothing is left to take. Behind what it does nothing is early, until another plan goes on.
        """
        if not self._is_open:
            return None
        self._is_open = False
        beginning = Beginning(self._tools)
        steps = [cast(Call, step) for step in in_a_row(plan.steps) if beginning.admits(step)]
        self._wanted = {step.id for step in steps}
        keys = {self._constant_key(step) for step in steps}
        tools = {step.tool for step in steps if self._constant_key(step) is None}
        kept = [call for call in self._calls if call.started and (call.key in keys or call.record.tool in tools)]
        await self._discard([call for call in self._calls if call not in kept], "the plan does not make this call")
        self._offered = _by_key(kept)
        return self if kept else None

    def take(self, step: str, tool: str, arguments: Mapping[str, Json]) -> EarlyCall | None:
        """Return the early call that this step of the accepted plan need not make again, if there is one.

        Whoever takes it awaits `EarlyCall.result`.
        """
        offered = self._offered.get(_key_of(tool, arguments)) if step in self._wanted else None
        if not offered:
            return None
        call = offered.pop(0)
        call.is_taken = True
        return call

    async def close(self) -> None:
        """Discard every call that was not taken, and wait until nothing is left running."""
        self._is_open = False
        await self._discard([call for call in self._calls if not call.is_taken], "no plan needed this call")
        await self._discard([call for call in self._calls if call.record.outcome != "succeeded"], "it did not succeed")
        await _end_all(self._tasks)

    async def _discard(self, calls: Sequence[EarlyCall], reason: str) -> None:
        await _end_all([call.run for call in calls])
        for call in calls:
            self._calls.remove(call)
            if call.started is not None:
                self.discarded.append(call.record)
                self._tell(EarlyDiscarded(call.record, reason))

    def _constant_key(self, step: Call) -> _Key | None:
        """Return the key of a step's call, None when its arguments are not known before the run."""
        fields = step.arguments.fields
        if not all(isinstance(template, Literal) for _, template in fields):
            return None
        arguments = {name: cast(Literal, template).value for name, template in fields}
        return _key_of(step.tool, self._tools[step.tool].normalise(arguments))


async def _end_all(tasks: Collection[asyncio.Task[Any]]) -> None:
    running = [task for task in tasks if not task.done()]
    for task in running:
        task.cancel()
    if running:
        await asyncio.gather(*running, return_exceptions=True)


def _value_of(source: _Value) -> object:
    task = source.task
    if task is None:
        return source.data
    return _NOTHING if task.cancelled() else task.result()


async def _value_of_template(template: Template, scope: Mapping[str, Json]) -> Json:
    return fill(template, scope)


def _key_of(tool: str, arguments: Mapping[str, Json]) -> _Key:
    return tool, json.dumps(arguments, sort_keys=True)


def _by_key(calls: Sequence[EarlyCall]) -> dict[_Key, list[EarlyCall]]:
    found: dict[_Key, list[EarlyCall]] = {}
    for call in calls:
        found.setdefault(call.key, []).append(call)
    return found
