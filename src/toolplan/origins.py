"""Where everything in a request comes from, over all its plans and turns: what the rules of a policy go by.

The sources of a plan's values are worked out from the plan (`policy/trace.py`); here they are kept for the plan that
goes on after it, together with what the user has said and whether the model has had other people's text before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from toolplan.known import Known
from toolplan.policy import CallSources, Review, Situation, Sources
from toolplan.policy.sources import NO_SOURCES, join
from toolplan.schedule import StepRecord
from toolplan.values import Json

__all__ = ["Origins"]

ROOM = 100_000
"""Characters of what trusted results say that are searched for a word."""


class Origins:
    """What is known of one request about the origins of values."""

    def __init__(self, request: str) -> None:
        self.said = [request] if request else []
        """What the user has said: requests, answers, arguments changed on a card."""
        self.is_callers_plan = False
        """Whether the plan was given by whoever asked for the run, so that its words are theirs."""
        self._has_read_untrusted = False
        self._results: dict[str, Sources] = {}
        self._names: dict[str, Sources] = {}
        self._calls: dict[str, CallSources] = {}
        self._trusted: list[Json] = []
        self._ran: list[tuple[Review, Sequence[StepRecord]]] = []  # not yet taken in: mostly nobody asks

    @property
    def has_read_untrusted(self) -> bool:
        """Whether the model that writes what comes next has had other people's text before it."""
        self._take_in()
        return self._has_read_untrusted

    def begin(
        self, said: Sequence[str], sources: Mapping[str, Sources], has_read_untrusted: bool, known: Known
    ) -> None:
        """Take over what went before the request in a conversation, and the results that are known from it."""
        self.said[:0] = said
        self._names = dict(sources)
        self._has_read_untrusted = has_read_untrusted
        for name, value in known.values.items():
            found = self._names.get(name)
            if found is not None and not found.is_untrusted and not found.written:
                self._trusted.append(value.data)

    def situation(self, user: str, mode: str, now: str = "") -> Situation:
        """Return what the rules go by for a request that was made at `now`.

        What trusted results say counts as said: the model has seen it, and it can be trusted. Not so once it has seen
        other people's text too, which may have told it what to choose.
        """
        said = list(self.said)
        has_read_untrusted = self.has_read_untrusted
        if self._trusted and not has_read_untrusted:
            room = ROOM
            for text in (text for value in self._trusted for text in _texts(value)):
                said.append(text)
                room -= len(text)
                if room < 0:
                    break
        return Situation("\n".join(said), user, mode, self.is_callers_plan, has_read_untrusted, now)

    def of_known(self, known: Known) -> dict[str, Sources]:
        """Return the sources of the names that earlier plans have left."""
        self._take_in()
        return {name: self._of_name(name, value.origins) for name, value in known.values.items()}

    def of_steps(self) -> dict[str, CallSources]:
        """Return where the arguments of calls came from, by step."""
        return self._calls

    def ran(self, review: Review, steps: Sequence[StepRecord]) -> None:
        """Note what a plan has left."""
        self._calls |= {call.step: call.sources for call in review.calls if call.sources.arguments}
        self._ran.append((review, steps))

    def _take_in(self) -> None:
        for review, steps in self._ran:
            self._take_in_plan(review, steps)
        self._ran.clear()

    def _take_in_plan(self, review: Review, steps: Sequence[StepRecord]) -> None:
        found = review.trace
        self._results |= found.results
        for name, sources in found.names.items():
            self._names[name] = join((self._names.get(name, NO_SOURCES), sources))
        for record in steps:
            if record.outcome != "succeeded":
                self._take_in_failure(review, record)
                continue
            sources = self._results.get(record.id.partition("[")[0], NO_SOURCES)
            if sources.is_untrusted:
                self._has_read_untrusted = True
            elif not sources.written:
                self._trusted.append(record.result)

    def _take_in_failure(self, review: Review, record: StepRecord) -> None:
        """Note that an error came from where other people's text comes from: a page that says 404 says what it likes.

        The error of a call holds what its tool says, and may hold what it was given.
        """
        if record.error is None or not record.attempts:
            return
        step = record.id.partition("[")[0]
        tool = review.tools.get(record.tool)
        given = review.trace.calls.get(step)
        if (tool is not None and tool.untrusted) or (given is not None and given.untrusted):
            self._has_read_untrusted = True

    def _of_name(self, name: str, origins: frozenset[str]) -> Sources:
        known = self._names.get(name)
        if known is not None:
            return known
        found = [self._results.get(step) for step in origins]
        if not found or None in found:  # nobody knows where it is from
            return Sources(untrusted=frozenset(("before",)))
        return join(sources for sources in found if sources is not None)


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif value is not None and not isinstance(value, bool):
        yield str(value)
