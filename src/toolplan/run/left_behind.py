"""Effects that go on although their run has given them up, and who has to keep out of their way.

A thread cannot be ended. So an effect whose time is over, or whose run was cancelled, may still be taking place when
nobody waits for it any more. Within its plan the scheduler keeps others out of its way. For whatever comes after - the
next plan, the next turn, another request of the same agent, the same run when it is resumed - that is done here: a call
that touches the same is refused before it leaves, and says why. Of what another process has left behind nothing is
known but what the journal says: `unknown`.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

from toolplan.effects import WORLD, conflict
from toolplan.run.result import StillRunning
from toolplan.tools import Tool
from toolplan.values import Json

__all__ = ["LeftBehind"]

_LOCK = threading.Lock()
_in_process: list[StillRunning] = []
"""Everything that runs of this process have left behind and that has not ended, for runs that somebody resumes."""


class LeftBehind:
    """What the runs of one agent have left behind. Empty, as it nearly always is, it is false."""

    __slots__ = ("_calls",)

    def __init__(self) -> None:
        self._calls: list[StillRunning] = []

    def __bool__(self) -> bool:
        return bool(self._calls)

    def add(self, left: StillRunning) -> None:
        """Note an effect that goes on."""
        with _LOCK:
            self._calls.append(left)
            _in_process[:] = [each for each in _in_process if not each.has_ended()]
            _in_process.append(left)

    def take_up(self, run_id: str) -> None:
        """Note what this run has left behind in this process, whichever agent had begun it here."""
        with _LOCK:
            found = [each for each in _in_process if each.run_id == run_id and not each.has_ended()]
            self._calls += [each for each in found if each not in self._calls]

    def why_not(self, tool: Tool, arguments: Mapping[str, Json], run_id: str) -> str | None:
        """Return why a call of this run is not to be made now, None if nothing is in its way.

        What an undeclared call touches is not known: it is in the way of everything that may change something.
        """
        with _LOCK:  # the runs of an agent may be in several event loops
            self._calls[:] = [each for each in self._calls if not each.has_ended()]
            going_on = list(self._calls)
        mine = tool.accesses(arguments) if going_on else ()
        for left in going_on:
            theirs = left.call.accesses
            if any(each.resource == WORLD for each in theirs) and not tool.effects.has_effects:
                continue
            if any(conflict(a, b) for a in mine for b in theirs):
                whose = "" if left.run_id == run_id else f" of the run {left.run_id}"
                what = f"`{left.call.step}`{whose}, which was given up, may still be going on"
                return f"{what} and touches the same; this call was not made"
        return None
