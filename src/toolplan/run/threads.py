"""Threads for sync tools: one call starts at once, whatever the others do, and none keeps the program from ending.

The standard pool does neither: its queue makes a call wait behind one that hangs, and its threads are joined when the
interpreter exits. How many calls are in flight is the scheduler's business, so the number of threads needs no bound.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Any

from toolplan.errors import ToolFailed

__all__ = ["Threads", "as_failure", "guarded"]

_Work = tuple[Callable[[], Any], "asyncio.Future[Any]", asyncio.AbstractEventLoop]


class Threads:
    """Daemon threads, kept for the next call when they are idle. Belongs to one event loop."""

    def __init__(self) -> None:
        self._idle: list[queue.SimpleQueue[_Work | None]] = []
        self._closed = False

    def call(self, function: Callable[[], Any]) -> asyncio.Future[Any]:
        """Return a future of what the function returns or raises. Cancelling it does not stop the function."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        if self._idle:
            self._idle.pop().put((function, future, loop))
            return future
        inbox: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        inbox.put((function, future, loop))
        threading.Thread(target=self._serve, args=(inbox,), name="toolplan", daemon=True).start()
        return future

    def close(self) -> None:
        """Let idle threads end now, and busy ones when their call does."""
        self._closed = True
        while self._idle:
            self._idle.pop().put(None)

    def _serve(self, inbox: queue.SimpleQueue[_Work | None]) -> None:
        while (work := inbox.get()) is not None:
            function, future, loop = work
            try:
                value = guarded(function)
            except BaseException as error:
                outcome, failure = None, as_failure(error)
            else:
                outcome, failure = value, None
            if self._closed:
                inbox.put(None)
            else:
                self._idle.append(inbox)
            try:
                loop.call_soon_threadsafe(_settle, future, outcome, failure)
            except RuntimeError:  # the loop is closed: the run is over, nobody waits for this any more
                return
            del work, function, future, outcome, failure


def guarded(function: Callable[[], Any]) -> Any:
    """Call the function. A `StopIteration` of its own would end whoever awaits it, so it becomes a `RuntimeError`."""
    try:
        return function()
    except StopIteration as error:
        raise RuntimeError("the tool raised StopIteration: `next()` found nothing") from error


def as_failure(error: BaseException) -> BaseException:
    """Return what a call raised, such that it ends nothing but this call.

    `SystemExit` and `KeyboardInterrupt` would end the event loop, and what else is no `Exception` (`GeneratorExit`, the
    panic of an extension) whoever awaits the call: they become a `ToolFailed` that names them.
    """
    if isinstance(error, Exception | asyncio.CancelledError):
        return error
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    failed = ToolFailed(text)
    failed.__cause__ = error
    return failed


def _settle(future: asyncio.Future[Any], value: Any, failure: BaseException | None) -> None:
    if future.done():
        return
    if failure is None:
        future.set_result(value)
    else:
        future.set_exception(failure)
