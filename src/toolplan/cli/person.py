"""Asking the person at the terminal: may these calls be made, and what is the answer to a plan's question."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TypeAlias

from toolplan.approval import Card, Decision
from toolplan.cli.streams import warn
from toolplan.cli.words import WORDS, Tongue
from toolplan.expressions import Fields, Literal
from toolplan.policy import PlannedCall

__all__ = ["Person", "is_there"]

Pause: TypeAlias = Callable[[], AbstractContextManager[None]]
"""Takes a live view off the terminal while a question is asked."""

ALL = frozenset({"a", "all", "全部"})
EACH = frozenset({"e", "each", "逐次", "逐个"})
NO = frozenset({"n", "no", "否", "不", "不行", "不允许", "拒绝"})
YES = frozenset({"y", "yes", "是", "是的", "好", "好的", "允许", "可以"})


def is_there() -> bool:
    """Return whether there is a person to ask: both ends of a conversation are a terminal."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))  # pyright: ignore[reportUnnecessaryComparison] - None when closed


class Person:
    """Whoever sits at the terminal. `pause` clears it for a question."""

    def __init__(self, language: Tongue, pause: Pause) -> None:
        self._language: Tongue = language
        self._words = WORDS[language]
        self._pause = pause
        self._turn = asyncio.Lock()  # questions of steps that run side by side are asked one after the other

    async def approve(self, calls: Sequence[PlannedCall], card: Card) -> bool | Decision:
        """Show the card and ask once about all of its calls; only a clear yes allows them.

        "a" shows what the card has left out of long arguments, and asks again; "n" and some words are a refusal with a
        reason; "e" asks again before each call, with its values.
        """
        words = self._words
        values_come_later = card.about == "plan" and not all(_is_known(call.arguments) for call in calls)
        async with self._turn:
            with self._pause():
                warn(f"\n{card.to_text(self._language)}\n")
                if values_come_later:
                    warn(words["each"])
                question = words["allow_one"] if len(calls) == 1 else words["allow_all"].format(count=len(calls))
                if card.is_shortened:
                    warn(words["show_all"])
                answer = (await _line(question) or "").strip()
                if card.is_shortened and answer.casefold() in ALL:
                    warn(f"\n{card.to_text(self._language, full=True)}\n")
                    answer = (await _line(question) or "").strip()
        word, _, rest = answer.partition(" ")
        if answer.casefold() in YES:
            return True
        if values_come_later and answer.casefold() in EACH:
            return Decision.allow(each_call=True)
        return Decision.deny(rest.strip()) if word.casefold() in NO and rest.strip() else False

    async def answer(self, question: str) -> str | None:
        """Return the answer to a question of the plan, or None when there is none to be had."""
        async with self._turn:
            with self._pause():
                line = await _line(f"\n{question}\n> ")
        return None if line is None else line.strip()


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
