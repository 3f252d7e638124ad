"""A request while it is answered: its events as they happen, and a handle to end it.

    async with agent.stream("...") as run:      the block owns the run: leaving it, however, ends it
        async for event in run: ...             every event from the beginning, in order; `RequestFinished` is the last
        result = await run.result()

    async for event in agent.stream("..."): ... the same, where the loop is all there is

Events are kept, so a slow consumer loses nothing and holds nobody up, a late one begins at the beginning, and one that
comes back goes on where it was (`events(after=...)`). They are kept until the stream is dropped; to watch a run of
millions of calls, give `Agent.run` a `watch` function, which keeps nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TYPE_CHECKING, Literal

from toolplan.agent_events import AgentEvent, RequestFinished, Watcher
from toolplan.errors import UsageError
from toolplan.run import RunStarted, StepFinished, StepLeftOut, StepStarted
from toolplan.schedule import StepRecord

if TYPE_CHECKING:
    from toolplan.result import Outcome, Result
    from toolplan.turn import Turn

__all__ = ["AgentStream"]


class AgentStream:
    """One request that is being answered. Made by `Agent.stream` and `Agent.stream_plan`; begins when it is used.

    Iterating gives every event and ends after `RequestFinished`. What the model raises (`ModelError`) comes out of the
    iterator, after the events before it, and out of `result()`. An iterator outside of `async with` owns the run: when
    it is left early (`break`, `aclose`, the consumer was cancelled), the run is cancelled and awaited. Python closes an
    iterator that a `break` has left soon after, not at once; a block is closed when it is left.
    """

    def __init__(self, turn: Turn, work: Callable[[], Awaitable[Result]]) -> None:
        self._turn = turn
        self._work = work
        self._events: list[AgentEvent] = []
        self._steps: dict[str, StepRecord] = {}
        self._parts: dict[str, int] = {}  # in which of the plans that ran each step stands
        self._part = 0
        self._news = asyncio.Event()
        self._task: asyncio.Task[Result] | None = None
        self._has_begun = self._is_owned = False
        self._cancelled: str | None = None
        turn.watch = self._hear

    async def __aenter__(self) -> AgentStream:
        self._is_owned = True
        self._start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._end()

    def __aiter__(self) -> AsyncGenerator[AgentEvent]:
        return self.events()

    async def events(self, after: int = 0) -> AsyncGenerator[AgentEvent]:
        """Yield every event, without the first `after`; the next one has the number `after + 1`."""
        task = self._start()
        try:
            while True:
                while after < len(self._events):
                    after += 1
                    yield self._events[after - 1]
                if task.done():
                    task.result()
                    return
                self._news.clear()
                await self._news.wait()
        finally:
            if not self._is_owned:
                await self._end()

    async def result(self) -> Result:
        """Return the result when it is there. Raises `ModelError` when the model cannot be reached."""
        task = self._start()
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            if not self._is_owned:
                await self._end()
            raise
        return task.result()

    async def of(self, watch: Watcher | None) -> Result:
        """Return the result; `watch` is told everything, and nothing of it is kept. Cancelling this cancels the run."""
        self._turn.watch = watch
        return await self._work()

    def cancel(self, reason: str = "the request was cancelled") -> None:
        """Start nothing more and cancel the calls in flight. Returns at once.

        The remaining events still come: how each call ended, and a result whose outcome is `cancelled`.
        """
        if self._cancelled is not None:
            return
        self._cancelled = reason
        if self._has_begun and self._task is not None:
            self._task.cancel()

    def so_far(self, outcome: Outcome, error: str, language: Literal["en", "zh"] | None = None) -> Result:
        """Return what is known now as a result: `error`, and every step as far as it got.

        Its answer is in `language`; without, in that of the request.
        """
        steps = sorted(self._steps.values(), key=lambda step: (self._parts[step.id], not step.path, step.path))
        return self._turn.broken_off(outcome, error, tuple(steps), language)

    def _start(self) -> asyncio.Task[Result]:
        if self._task is None:
            self._task = asyncio.create_task(self._run())
            self._task.add_done_callback(lambda task: self._news.set())
        elif self._task.get_loop() is not asyncio.get_running_loop():
            raise UsageError("a stream belongs to the event loop in which it began; make another one")
        return self._task

    async def _run(self) -> Result:
        self._has_begun = True
        try:
            if self._cancelled is not None:
                raise asyncio.CancelledError
            result = await self._work()
        except asyncio.CancelledError:
            if self._cancelled is None:
                raise
            result = self.so_far("cancelled", self._cancelled)
        self._hear(RequestFinished(result))
        return result

    async def _end(self) -> None:
        """Cancel the run if it goes on, and wait until nothing of it is left."""
        if self._task is None:
            return
        self.cancel()
        await asyncio.wait({self._task})
        if not self._task.cancelled():
            self._task.exception()  # whoever has left does not ask for it

    def _hear(self, event: AgentEvent) -> None:
        if isinstance(event, RunStarted):
            self._part += 1
        elif isinstance(event, StepStarted):
            at = event.at_seconds
            self._steps[event.step] = StepRecord(event.step, event.tool, (), event.arguments, started_seconds=at)
            self._parts[event.step] = self._part
        elif isinstance(event, StepFinished | StepLeftOut):
            self._steps[event.record.id] = event.record
            self._parts[event.record.id] = self._part
        self._events.append(event)
        self._news.set()
