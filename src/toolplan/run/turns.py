"""The turns of one run: it asks at the gates for one call after the other, and hands the places to the calls."""

from __future__ import annotations

import asyncio
import functools
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar

from toolplan.errors import ToolFailed
from toolplan.run.gate import Ask, Gate, Place
from toolplan.run.limits import gates_of
from toolplan.tools import Tool

__all__ = ["INSIDE", "Places", "Turns", "drop_unused"]

INSIDE: ContextVar[tuple[Gate, ...]] = ContextVar("INSIDE", default=())
"""The gates that the call we are in has passed, and those of the calls around it."""

Places = tuple[Place, ...]


class Turns:
    """What one run has asked for, and the places that it was given for calls which have not begun.

    `came(tool, refused)` is called when a turn has come, or will not.
    """

    def __init__(self, came: Callable[[str, str | None], None]) -> None:
        self._came = came
        self._inside: tuple[Gate, ...] = ()
        self._asks: dict[str, Ask] = {}
        self._ready: dict[str, deque[Places]] = {}

    def begin(self) -> None:
        """Look where the run is made: perhaps inside a call that has passed a gate."""
        self._inside = INSIDE.get()

    @property
    def are_awaited(self) -> bool:
        """Whether a turn was asked for that has not come."""
        return bool(self._asks)

    def ask(self, tool: Tool) -> None:
        """Ask for one call of this tool. There is one such ask for a tool at a time."""
        self._pass(tool.name, gates_of(tool), ())

    def take(self, tool: str) -> Places:
        """Return the places for a call that begins now. Whoever makes the call drops them."""
        ready = self._ready.get(tool)
        return ready.popleft() if ready else ()

    def drop(self, tool: str) -> None:
        """Give a turn back that came and is not used."""
        drop_unused(self.take(tool))

    async def wait(self, tool: Tool) -> Places:
        """Return places for a call that has lost the ones it had. Beside what is asked for in turns."""
        places: Places = ()
        for gate in gates_of(tool):
            answered: asyncio.Future[Place | str] = asyncio.get_running_loop().create_future()
            got = gate.ask(self, answered.set_result, counts=gate not in self._inside)
            try:
                answer = await answered if isinstance(got, Ask) else got
            except BaseException:
                if isinstance(got, Ask):
                    gate.withdraw(got)
                drop_unused(places)
                raise
            if isinstance(answer, str):
                drop_unused(places)
                raise ToolFailed(answer, effect_happened=False)
            places = (*places, answer)
        return places

    def close(self) -> None:
        """Ask for nothing more and give back what was not used."""
        for ask in list(self._asks.values()):
            ask.gate.withdraw(ask)
        self._asks.clear()
        for tool, ready in self._ready.items():
            while ready:
                self.drop(tool)

    def _pass(self, tool: str, gates: tuple[Gate, ...], places: Places) -> None:
        """Go through the gates one by one, holding the places of those that are behind."""
        for number, gate in enumerate(gates):
            answer = functools.partial(self._answered, tool, gates[number + 1 :], places)
            got = gate.ask(self, answer, counts=gate not in self._inside)
            if isinstance(got, Ask):
                self._asks[tool] = got
                return
            places = (*places, got)
        self._ready.setdefault(tool, deque()).append(places)
        self._came(tool, None)

    def _answered(self, tool: str, further: tuple[Gate, ...], places: Places, answer: Place | str) -> None:
        self._asks.pop(tool, None)
        if isinstance(answer, Place):
            self._pass(tool, further, (*places, answer))
            return
        drop_unused(places)
        self._came(tool, answer)


def drop_unused(places: Places) -> None:
    """Give places back of a call that was not made."""
    for place in places:
        place.gate.drop(place, unused=True)
