"""Making a call: in the event loop, in a thread or in a process; within its time; and ended as far as it can be.

What can be ended when its time is over, or when nobody wants it any more: an async call is cancelled and awaited for
`GRACE_SECONDS`; a process is killed; a thread cannot be ended, unless its tool looks at `ToolContext.is_cancelled` or
is a generator. What goes on in spite of that is *left behind*: reported as still running, and ended by force with the
run if it is an async call.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from toolplan.run.gate import Place
from toolplan.run.processes import Job
from toolplan.run.threads import Threads, as_failure, guarded
from toolplan.run.turns import INSIDE
from toolplan.tools import IS_CANCELLED, Tool
from toolplan.tools.listing import listed_async
from toolplan.values import Json

__all__ = ["GRACE_SECONDS", "Calls", "TimedOut", "as_value", "end_by_force"]

_log = logging.getLogger("toolplan.run")

GRACE_SECONDS = 1.0
"""How long a cancelled call may take to clean up before it is left behind."""


class TimedOut(Exception):
    """The time of a call is over. `left` is the call, if it goes on all the same."""

    def __init__(self, message: str, left: asyncio.Future[Any] | None = None) -> None:
        super().__init__(message)
        self.left = left


class Stop:
    """Whether a call is not wanted any more: what a tool in a thread can ask, because it cannot be told."""

    now = False
    goes_on = False
    """Whether the call goes on all the same: it was left behind, or is in a thread."""
    in_thread = False
    """Whether a thread is making the call just now."""
    left: asyncio.Future[Any] | None = None
    """The call, if it was left behind."""

    def has_ended(self) -> bool:
        """Return whether a call that goes on all the same is over by now."""
        return not self.in_thread and (self.left is None or self.left.done())

    def __call__(self) -> bool:
        """Return it."""
        return self.now


class Calls:
    """The calls of one run."""

    def __init__(self) -> None:
        self._threads = Threads()
        self._left: set[asyncio.Future[Any]] = set()

    async def value(
        self,
        tool: Tool,
        bound: Callable[[], Any],
        places: tuple[Place, ...],
        stop: Stop,
        timeout_seconds: float | None = None,
    ) -> Json:
        """Make the call and return the JSON value of what it returns. The places are dropped when it has ended.

        Raises what the tool raises, `ResultRefused` for a result that is no value, `TimedOut`, and `CancelledError`
        when the task is cancelled.
        """
        try:
            if places:
                INSIDE.set((*INSIDE.get(), *(place.gate for place in places)))
            if timeout_seconds is not None:
                return await self._within(timeout_seconds, tool, bound, places, stop)
            if tool.is_async:
                return await as_value(tool, await bound())
            return await self._elsewhere(tool, bound, places, stop)
        except TimedOut as error:
            if error.left is not None:
                error.left.add_done_callback(functools.partial(_drop, places))
                for place in places:
                    place.gate.give_up(place)
                places = ()
            raise
        except BaseException:
            stop.now = True
            raise
        finally:
            _drop(places)

    def close(self) -> list[asyncio.Task[Any]]:
        """Let idle threads end, cancel what was left behind, and return it."""
        self._threads.close()
        left = [call for call in self._left if isinstance(call, asyncio.Task)]
        for call in left:
            call.cancel()
        return left

    async def _within(
        self, seconds: float, tool: Tool, bound: Callable[[], Any], places: tuple[Place, ...], stop: Stop
    ) -> Json:
        """Call with a time limit."""
        make = bound if tool.is_async else functools.partial(self._elsewhere, tool, bound, places, stop)
        call: asyncio.Future[Any] = asyncio.ensure_future(_contained(make))
        try:
            done, _ = await asyncio.wait({call}, timeout=seconds)
            if done:
                return await as_value(tool, call.result()) if tool.is_async else call.result()
            stop.now = True
            if tool.runs_in != "thread":
                done = await _cancelled(call)
        except asyncio.CancelledError:
            if not await _cancelled(call):
                stop.goes_on, stop.left = True, call
                self._leave_behind(call)
            raise
        late = f"the call took longer than {seconds:g} seconds"
        if done:
            raise TimedOut(f"{late} and was {'ended with its process' if tool.runs_in == 'process' else 'cancelled'}")
        stop.left = call
        self._leave_behind(call)
        raise TimedOut(f"{late}; it cannot be stopped and may still be running", call)

    async def _elsewhere(self, tool: Tool, bound: Callable[[], Any], places: tuple[Place, ...], stop: Stop) -> Json:
        """Call a sync tool where it does not hold up the others: a thread, a process, or here if it says so."""
        if tool.runs_in == "loop":
            raw = guarded(bound)
            return await as_value(tool, await raw if inspect.isawaitable(raw) else raw)
        job = Job(tool.name, tool.function, bound, tool.nothing_happened) if tool.runs_in == "process" else None
        context = contextvars.copy_context()
        context.run(IS_CANCELLED.set, stop)
        make = job.run if job is not None else functools.partial(context.run, bound)

        def work() -> tuple[bool, Any]:
            try:
                if stop.now:  # it was given up before its thread began
                    return True, None
                raw = make()
                is_ready = not inspect.isawaitable(raw) and not hasattr(raw, "__aiter__")
                if stop.now and inspect.iscoroutine(raw):
                    raw.close()  # nobody will await it
                return is_ready, tool.to_value(raw) if is_ready else raw
            finally:
                stop.in_thread = False
                for place in places:
                    place.gate.leave_thread(place)

        for place in places:
            place.gate.enter_thread(place)
        try:
            stop.in_thread = True
            call = self._threads.call(work)
        except BaseException:  # no thread can be started
            stop.in_thread = False
            for place in places:
                place.gate.leave_thread(place)
            raise
        try:
            is_value, made = await (call if job is None else asyncio.shield(call))
        except asyncio.CancelledError:
            stop.now = True
            if job is not None:
                call.add_done_callback(_forget)
                job.kill()
                await asyncio.wait({call}, timeout=GRACE_SECONDS)
            stop.goes_on = stop.in_thread
            raise
        if is_value:
            return made
        return await as_value(tool, await made if inspect.isawaitable(made) else made)  # a function around an async one

    def _leave_behind(self, call: asyncio.Future[Any]) -> None:
        self._left.add(call)
        call.add_done_callback(self._ended)

    def _ended(self, call: asyncio.Future[Any]) -> None:
        self._left.discard(call)
        if not call.cancelled():
            call.exception()  # what came of it is not asked any more


async def _contained(make: Callable[[], Awaitable[Any]]) -> Any:
    """Make a call in a task of its own: a `SystemExit` there would end the event loop."""
    try:
        return await make()
    except SystemExit as error:
        raise as_failure(error) from error


async def as_value(tool: Tool, raw: Any) -> Json:
    """Return the JSON value of what a call returned; an async iterator is listed."""
    return tool.to_value(await listed_async(raw, tool.name) if hasattr(raw, "__aiter__") else raw)


def _forget(call: asyncio.Future[tuple[bool, Any]]) -> None:
    """Take note of what came of a call that nobody asks for any more, so that nobody complains of it."""
    if not call.cancelled():
        call.exception()


def end_by_force(task: asyncio.Task[Any]) -> None:
    """End a task that goes on after it was cancelled: close its coroutine, as Python does with one nobody needs."""
    coroutine = task.get_coro()
    try:
        if inspect.iscoroutine(coroutine):
            coroutine.close()
    except BaseException as error:
        _log.warning("a call could not be ended, and goes on: %s", type(error).__name__)
        return
    task.add_done_callback(lambda task: task.cancelled() or task.exception())
    task.cancel()  # wakes it up, to find its coroutine closed


async def _cancelled(call: asyncio.Future[Any]) -> bool:
    """Cancel a call; return whether it ended in time."""
    call.cancel()
    done, _ = await asyncio.wait({call}, timeout=GRACE_SECONDS)
    return bool(done)


def _drop(places: tuple[Place, ...], call: object = None) -> None:
    for place in places:
        place.gate.drop(place)
