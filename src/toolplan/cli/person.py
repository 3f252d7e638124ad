"""Asking the person at the terminal: may these calls be made, and what is the answer to a plan's question."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TypeAlias

from toolplan.check import CheckedPlan
from toolplan.cli.streams import warn
from toolplan.cli.words import WORDS, Tongue
from toolplan.expressions import Fields, Literal
from toolplan.policy import PlannedCall
from toolplan.show.words import operand_text

__all__ = ["Person", "is_there"]

Pause: TypeAlias = Callable[[], AbstractContextManager[None]]
"""Takes a live view off the terminal while a question is asked."""

LONGEST = 2000
"""Characters of one argument that are shown to whoever has to approve it."""

YES = frozenset({"y", "yes", "是", "是的", "好", "好的", "允许", "可以"})


def is_there() -> bool:
    """Return whether there is a person to ask: both ends of a conversation are a terminal."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))  # pyright: ignore[reportUnnecessaryComparison] - None when closed


class Person:
    """Whoever sits at the terminal. `pause` clears it for a question."""

    def __init__(self, language: Tongue, pause: Pause) -> None:
        self._words = WORDS[language]
        self._pause = pause
        self._turn = asyncio.Lock()  # questions of steps that run side by side are asked one after the other

    async def approve(self, calls: Sequence[PlannedCall], checked: CheckedPlan) -> bool:
        """Show the calls with all their arguments and ask once about all of them; only a clear yes allows them."""
        words = self._words
        with self._pause():
            warn(f"\n{words['approve']}\n")
            for call in calls:
                warn(f"  {call.step}  {call.tool}  [{self._changes(call, checked)}]")
                for name, value in call.arguments.fields:
                    warn(f"      {name}: {operand_text(value, LONGEST)}")
            if not all(_is_known(call.arguments) for call in calls):
                warn(f"\n{words['open']}")
            question = words["allow_one"] if len(calls) == 1 else words["allow_all"].format(count=len(calls))
            answer = await _line(f"\n{question}")
        return (answer or "").strip().casefold() in YES

    async def answer(self, question: str) -> str | None:
        """Return the answer to a question of the plan, or None when there is none to be had."""
        async with self._turn:
            with self._pause():
                line = await _line(f"\n{question}\n> ")
        return None if line is None else line.strip()

    def _changes(self, call: PlannedCall, checked: CheckedPlan) -> str:
        if not checked.tools[call.tool].effects.declared:
            return self._words["anything"]
        if not call.writes:
            return self._words["nothing"]
        named = (_named(resource, call.arguments) for resource in call.writes)
        return self._words["changes"].format(what=self._words["join"].join(named))


def _named(resource: str, arguments: Fields) -> str:
    """Return the name of a resource with those arguments put in that are known already."""
    for name, value in arguments.fields:
        if isinstance(value, Literal) and isinstance(value.value, str | int):
            resource = resource.replace(f"{{{name}}}", str(value.value))
    return resource


def _is_known(arguments: Fields) -> bool:
    return all(isinstance(value, Literal) for _, value in arguments.fields)


async def _line(question: str) -> str | None:
    """Return the next line of standard input, None at its end. Other calls go on meanwhile, and Ctrl-C works."""
    warn(question, end="")
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def has_line() -> None:
        if not ready.done():
            ready.set_result(None)

    try:
        loop.add_reader(sys.stdin.fileno(), has_line)
    except NotImplementedError:  # Windows: wait in a thread, which Ctrl-C cannot end before Enter
        return await asyncio.to_thread(sys.stdin.readline) or None
    try:
        await ready
    finally:
        loop.remove_reader(sys.stdin.fileno())
    line = sys.stdin.readline()
    if not line:
        warn()
    return line or None
