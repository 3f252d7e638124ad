"""What a generator or another iterator yields, as a list: all of it, or an error when there is no end to it.

A tool that yields for ever must not fill the memory, so there is a bound. It holds only for what is made while it is
read: a list or a dict of any size is there already.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import AsyncIterable, Callable, Generator, Iterable
from typing import Any

from toolplan.errors import ResultRefused
from toolplan.tools.context import IS_CANCELLED
from toolplan.tools.conversion import MAX_ITEMS, MAX_TEXT

__all__ = ["listed", "listed_async", "listing", "listing_async"]


def listing(function: Callable[..., Any], name: str, /, *args: Any, **kwargs: Any) -> list[Any]:
    """Call the function and return what its iterator yields."""
    return listed(function(*args, **kwargs), name)


async def listing_async(function: Callable[..., Any], name: str, /, *args: Any, **kwargs: Any) -> list[Any]:
    """Call the function and return what its async iterator yields."""
    iterator = function(*args, **kwargs)
    return await listed_async(await iterator if inspect.isawaitable(iterator) else iterator, name)


def listed(iterator: Iterable[Any], name: str) -> list[Any]:
    """Return what the iterator yields. Ends early when the call is not wanted any more; a generator is closed.

    `name` is that of the tool. Raises `ResultRefused` when there is no end to it.
    """
    is_cancelled = IS_CANCELLED.get()
    items = _Items(name)
    try:
        for item in iterator:
            items.add(item)
            if is_cancelled():
                break
    finally:
        if isinstance(iterator, Generator):
            iterator.close()
    return items.all


async def listed_async(iterator: AsyncIterable[Any], name: str) -> list[Any]:
    """Return what the async iterator yields; a generator is closed. Raises `ResultRefused` as `listed` does."""
    items = _Items(name)
    async with contextlib.AsyncExitStack() as stack:
        if inspect.isasyncgen(iterator):
            await stack.enter_async_context(contextlib.aclosing(iterator))
        async for item in iterator:
            items.add(item)
    return items.all


class _Items:
    def __init__(self, name: str) -> None:
        self._name = name
        self.all: list[Any] = []
        self._text = 0

    def add(self, item: object) -> None:
        """Add an item. Raises `ResultRefused` when there are too many."""
        if len(self.all) >= MAX_ITEMS:
            raise ResultRefused(f"`{self._name}` yielded more than {MAX_ITEMS:,} items; yield fewer, or in pages")
        if isinstance(item, str | bytes | bytearray):
            self._text += len(item)
            if self._text > MAX_TEXT:
                raise ResultRefused(f"`{self._name}` yielded more than {MAX_TEXT:,} characters; yield fewer")
        self.all.append(item)
