"""One task for calls that follow each other.

Making a task, and waiting for the event loop to come round to it, costs about as much as everything else about a call
that has little to do. So the task that has made a call goes on with one of the calls that its end lets start. Nobody
can tell, but by the time it takes: each call has a context of its own, as in a task of its own; it can be cancelled by
itself, after which the task takes no other; and after `IN_A_ROW` calls the event loop has its turn, so that calls that
never wait do not keep everybody else waiting.
"""

from __future__ import annotations

import asyncio
import contextvars
import types
from collections.abc import Coroutine, Generator
from typing import Any, TypeVar

from toolplan.schedule import StartCall
from toolplan.tools import Tool

__all__ = ["IN_A_ROW", "Relay", "within"]

IN_A_ROW = 16

T = TypeVar("T")


class Relay:
    """The task that reports the end of its call just now, and the call that it is to go on with."""

    __slots__ = ("free", "next")

    def __init__(self) -> None:
        self.free: asyncio.Task[None] | None = None
        """The task, as long as it has not been given another call."""
        self.next: tuple[StartCall, Tool] | None = None

    def take(self, command: StartCall, tool: Tool) -> asyncio.Task[None] | None:
        """Return the task that goes on with this call; None when no task is free for it."""
        task, self.free = self.free, None
        if task is not None:
            self.next = (command, tool)
        return task


@types.coroutine
def within(work: Coroutine[Any, Any, T], context: contextvars.Context) -> Generator[Any, Any, T]:
    """Await a coroutine, each of its steps in this context. A cancellation reaches it as it would without this."""
    try:
        awaited = context.run(work.send, None)
        while True:
            error: BaseException | None = None
            try:
                yield awaited
            except BaseException as thrown:
                error = thrown
            awaited = context.run(work.send, None) if error is None else context.run(work.throw, error)
    except StopIteration as stop:
        return stop.value
