"""The calls of a turn as its reply arrives, for those that may start before it is whole (P2, P3).

    reply ──> a complete call ──> read as the turn will read it ──> EarlyCalls.offer ──> taken when the turn is made

What may start is decided as for a plan, in `run/early.py` and by the same policy; a turn is simpler than a plan, for
its arguments are values, and the turns before it have ended. Only the whole reply tells what the turn is: calls are
dropped that were not meant, or stood in a reply that was cut off, was answered in words or began anew.
"""

from __future__ import annotations

import logging
from collections.abc import Collection

from toolplan.loop.calls import MAX_CALLS, TurnCaller
from toolplan.loop.heard import as_offered, as_written
from toolplan.loop.offered import Offered
from toolplan.models import ToolCallPart
from toolplan.run import EarlyCalls

__all__ = ["Arriving"]

_log = logging.getLogger("toolplan.agent")


class Arriving:
    """The calls of one reply so far. `not_shown` are tools whose calls will be refused as guesses."""

    def __init__(
        self, early: EarlyCalls, caller: TurnCaller, offered: Offered, not_shown: Collection[str] = ()
    ) -> None:
        self._early = early
        self._caller = caller
        self._offered = offered
        self._not_shown = frozenset(not_shown)
        self.begin()

    def begin(self) -> None:
        """Expect the reply from its beginning."""
        self._heard: list[ToolCallPart] = []
        self._before = 0
        self._early.begin(self._caller.known)

    def hear(self, call: ToolCallPart) -> None:
        """Take in the next call."""
        if len(self._heard) >= MAX_CALLS:
            return
        self._heard.append(call)
        try:
            self._offer(as_offered(self._heard, self._offered)[-1])
        except Exception:  # a bug of ours costs the head start, not the request
            _log.exception("a call could not be followed while the reply arrived")

    def _offer(self, call: ToolCallPart) -> None:
        if call.name == self._offered.finder:
            return
        step = self._caller.expects(as_written(call, self._offered), self._before, self._not_shown)
        self._before += 1
        if step is not None:
            self._early.offer(step)
