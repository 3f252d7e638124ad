"""What an earlier process heard and did in a loop, told again to the loop that goes on with it.

A loop is resumed by running it once more: where it would ask the model it gets the reply that the journal has, and
where it would run the calls of a turn, the run as far as it got. So everything in between - reading, checking, the
policy, what the model is told, step ids - comes about as it did then, out of the same code; nothing of it is stored.
When all is told, the loop asks the model itself. A turn that comes out otherwise than it did ends this before anything
runs.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from toolplan.check import CheckedPlan
from toolplan.errors import JournalMismatch
from toolplan.journal import Decision, Entry, PlanBegun, Replayed, Story, replay
from toolplan.journal.secrets import Secrets
from toolplan.models import Reply
from toolplan.plan import Plan
from toolplan.schedule import Setup
from toolplan.show import to_json
from toolplan.spoken import reply_of_entry
from toolplan.tools import ToolSet
from toolplan.tools.seen_secrets import SeenSecrets
from toolplan.values import Json

__all__ = ["Retelling", "ToldPart", "plan_as_kept", "without_thoughts"]


@dataclass(frozen=True, slots=True)
class ToldPart:
    """The run of a turn's calls. `state` is None when it had not begun."""

    state: Replayed | None
    decisions: tuple[Decision, ...] = ()
    """What a person said about calls while they were made."""


@dataclass
class _Turn:
    number: int
    reply: Reply
    parts: deque[tuple[PlanBegun, list[Entry]]] = field(default_factory=deque[tuple[PlanBegun, "list[Entry]"]])


class Retelling:
    """The turns of a story that are still to be told. `goes_live` is called once, when the loop goes on by itself."""

    def __init__(self, story: Story, goes_live: Callable[[], None]) -> None:
        self.run_id = story.begun.run_id
        self.is_live = False
        self._goes_live = goes_live
        self._turns = deque[_Turn]()
        for number, (said, start) in enumerate(story.said):
            end = story.said[number + 1][1] if number + 1 < len(story.said) else len(story.parts)
            self._turns.append(_Turn(number + 1, reply_of_entry(said), deque(story.parts[start:end])))
        self._now: _Turn | None = None
        self._has_begun = story.has_begun
        self._secrets = SeenSecrets()

    @property
    def is_over(self) -> bool:
        """Whether everything has been told."""
        return not self._turns and (self._now is None or not self._now.parts)

    @property
    def is_telling_calls(self) -> bool:
        """Whether calls of the turn that is told were made then, and have not been told."""
        return self._now is not None and bool(self._now.parts)

    def reply(self) -> Reply | None:
        """Return what the model said next; None when all is told. Raises `JournalMismatch`."""
        if self.is_telling_calls:
            raise self._mismatch("calls that were made then are not made now")
        if not self._turns:
            return None
        self._now = self._turns.popleft()
        return self._now.reply

    def part(self, checked: CheckedPlan) -> ToldPart | None:
        """Return how far these calls of the turn got; None when all is told. Raises `JournalMismatch`."""
        now = self._now
        if now is None or not now.parts:
            if self._turns:
                raise self._mismatch("calls are made now that were not made then")
            return None
        begun, entries = now.parts.popleft()
        if without_thoughts(plan_as_kept(checked.plan, checked.tools)) != without_thoughts(begun.plan):
            raise self._mismatch("other calls are made now than were made then")
        if self.is_over and not self._has_begun:
            return ToldPart(None)
        state = replay(
            entries, checked.plan, checked.tools, checked.known, Setup.from_json(begun.settings), self._secrets
        )
        if state.machine.finished is None and not self.is_over:
            raise self._mismatch("its calls have no end, but more follows")
        during = tuple(entry for entry in entries if isinstance(entry, Decision) and not entry.planned)
        return ToldPart(state, during)

    def live(self) -> None:
        """Note that the loop goes on by itself from here. Raises `JournalMismatch` when there is more to tell."""
        if not self.is_over:
            raise self._mismatch("it comes to an end now that did not come then")
        if not self.is_live:
            self.is_live = True
            self._goes_live()

    def _mismatch(self, what: str) -> JournalMismatch:
        at = f"turn {self._now.number}" if self._now is not None else "the first turn"
        return JournalMismatch(f"run {self.run_id} cannot go on, for {at} of its loop is not what it was: {what}")


def plan_as_kept(plan: Plan, tools: ToolSet) -> Json:
    """Return the JSON of a plan as a journal keeps it."""
    secrets = Secrets(tools)
    secrets.see_plan(plan)
    _, body = secrets.rows(PlanBegun(to_json(plan)))[0]
    return json.loads(body).get("plan")


def without_thoughts(shown: Json) -> Json:
    """Return what counts of a plan's JSON: not the thoughts of whoever wrote it."""
    return {key: value for key, value in shown.items() if key != "thought"} if isinstance(shown, dict) else shown
