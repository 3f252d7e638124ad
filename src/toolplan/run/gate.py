"""Limits that hold for all runs of a process: calls of a tool at once, calls in a time, and whose turn it is.

The service behind a tool does not care which run calls it, so `max_concurrency` and `rate_limit` of a tool are kept by
one `Gate` for everybody. A call needs a *place*. When there is none, its run waits in a queue: the runs take turns
(round robin), and what one run asks for comes in the order in which it asked. Runs may live in several event loops in
several threads; a gate belongs to none of them.

A place is free again when its call has really ended. A thread that cannot be stopped keeps its place after its call
has timed out, as in trio and anyio, because the service is still busy with it. When all places have been kept in this
way for `PATIENCE_SECONDS`, whoever waits is refused instead of waiting for ever.

A call that is made from inside a call of the same gate needs no place: the outer one has one, and waits for it.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable

from toolplan.tools import RateLimit

__all__ = ["Ask", "Gate", "Pace", "Place"]

PATIENCE_SECONDS = 10.0
"""How long a call waits for a place while all places are kept by calls that were given up but have not ended."""

_NEVER = float("inf")
_NOW = float("-inf")


class Pace:
    """At most `calls` starts in any `seconds` seconds: a log of the last starts. Has no clock of its own."""

    def __init__(self, limit: RateLimit) -> None:
        self._limit = limit
        self._starts: deque[float] = deque()

    def free_at(self) -> float:
        """Return the earliest time of the next start."""
        return self._starts[0] + self._limit.seconds if len(self._starts) >= self._limit.calls else _NOW

    def take(self, now: float) -> None:
        """Note a start."""
        if len(self._starts) >= self._limit.calls:
            self._starts.popleft()
        self._starts.append(now)

    def give_back(self, at: float) -> None:
        """Forget the start that was noted at this time, because nothing was started."""
        if at in self._starts:
            self._starts.remove(at)


class Place:
    """What a call holds while it is made. Free again when its run has dropped it and no thread is in the call."""

    __slots__ = ("at", "counts", "gate", "held", "loop", "stuck_since", "threads")

    def __init__(self, gate: Gate, loop: asyncio.AbstractEventLoop, at: float, counts: bool) -> None:
        self.gate = gate
        self.loop = loop
        self.at = at
        """When it was given; the start that the rate counts."""
        self.counts = counts
        self.held = True
        self.threads = 0
        self.stuck_since: float | None = None


class Ask:
    """A call of `run` that waits for a place; `answer` is called in `loop` with the place, or why there is none."""

    __slots__ = ("answer", "counts", "gate", "loop", "outcome", "run", "withdrawn")

    def __init__(self, gate: Gate, run: Hashable, answer: Callable[[Place | str], None], counts: bool) -> None:
        self.gate = gate
        self.run = run
        self.loop = asyncio.get_running_loop()
        self.answer = answer
        self.counts = counts
        self.outcome: Place | str | None = None
        self.withdrawn = False

    def deliver(self) -> None:
        """Hand over the outcome, unless nobody wants it any more."""
        if not self.withdrawn and self.outcome is not None:
            self.answer(self.outcome)


class Gate:
    """The places of one tool, or of all threads, and the queue before them. Its methods may be called in any thread."""

    def __init__(self, what: str, places: int | None = None, rate: RateLimit | None = None) -> None:
        self.what = what
        """What the places are for, as messages say it."""
        self._lock = threading.Lock()
        self._places = places
        self._pace = Pace(rate) if rate is not None else None
        self._taken: set[Place] = set()
        self._loops: Counter[asyncio.AbstractEventLoop] = Counter()
        self._queues: OrderedDict[Hashable, deque[Ask]] = OrderedDict()
        self._timers: dict[asyncio.AbstractEventLoop, tuple[float, asyncio.TimerHandle | None]] = {}

    def __repr__(self) -> str:
        return f"<Gate {self.what}: {self.taken} of {self._places} places taken, {self.waiting} waiting>"

    @property
    def taken(self) -> int:
        """How many places are taken."""
        return len(self._taken)

    @property
    def waiting(self) -> int:
        """How many calls wait for one."""
        return sum(map(len, self._queues.values()))

    # Coming in ----------------------------------------------------------------------------------------------------

    def ask(self, run: Hashable, answer: Callable[[Place | str], None], *, counts: bool = True) -> Place | Ask:
        """Return a place if there is one now; else the ask that waits for one, in the name of `run`.

        Its answer comes later, in the running event loop. Without `counts` a call needs no place (it is made inside
        of another one that has one), but the rate holds for it as well.
        """
        with self._lock:
            now = time.monotonic()
            if (not self._queues or not counts) and self._due(counts) <= now:
                return self._take(asyncio.get_running_loop(), now, counts)
            ask = Ask(self, run, answer, counts)
            self._queues.setdefault(run, deque()).append(ask)
            if not counts:
                self._queues.move_to_end(run, last=False)  # who waits for a place may be waiting for this call
            self._serve()
            return ask

    def withdraw(self, ask: Ask) -> None:
        """Wait no more. A place that is on its way is given back."""
        with self._lock:
            ask.withdrawn = True
            queue = self._queues.get(ask.run)
            if queue is not None and ask in queue:
                queue.remove(ask)
                if not queue:
                    del self._queues[ask.run]
            if isinstance(ask.outcome, Place):
                self._free(ask.outcome, unused=True)
            if ask.loop not in self._waiting_loops() and ask.loop in self._timers:
                _, timer = self._timers.pop(ask.loop)
                if timer is not None:
                    timer.cancel()
            self._serve()

    def resize(self, places: int | None) -> None:
        """Change the number of places. Calls in flight go on."""
        with self._lock:
            self._places = places
            self._serve()

    # Going out ----------------------------------------------------------------------------------------------------

    def drop(self, place: Place, *, unused: bool = False) -> None:
        """Let go of a place. With `unused` no call was made, so that it does not count for the rate either."""
        with self._lock:
            place.held = False
            if place.threads:
                place.stuck_since = place.stuck_since or time.monotonic()
            else:
                self._free(place, unused=unused)
            self._serve()

    def give_up(self, place: Place) -> None:
        """Note that nobody waits for the call any more, although it has not ended."""
        with self._lock:
            place.stuck_since = place.stuck_since or time.monotonic()
            self._serve()

    def enter_thread(self, place: Place) -> None:
        """Note that a thread is going to make the call; it keeps the place until `leave_thread`."""
        with self._lock:
            place.threads += 1

    def leave_thread(self, place: Place) -> None:
        """Note that the thread has ended the call."""
        with self._lock:
            place.threads -= 1
            if not place.held and not place.threads:
                self._free(place)
                self._serve()

    # Under the lock -----------------------------------------------------------------------------------------------

    def _due(self, counts: bool) -> float:
        """Return when the next call may start; never, as long as no place comes free."""
        if counts and self._places is not None and len(self._taken) >= self._places:
            if any(loop.is_closed() for loop in self._loops):  # an event loop that ended without its runs
                for place in [p for p in self._taken if p.loop.is_closed() and not p.threads]:
                    self._free(place)
            if len(self._taken) >= self._places:
                return _NEVER
        return self._pace.free_at() if self._pace is not None else _NOW

    def _take(self, loop: asyncio.AbstractEventLoop, now: float, counts: bool) -> Place:
        if self._pace is not None:
            self._pace.take(now)
        place = Place(self, loop, now, counts)
        if counts:
            self._taken.add(place)
            self._loops[loop] += 1
        return place

    def _free(self, place: Place, *, unused: bool = False) -> None:
        if place in self._taken:
            self._taken.remove(place)
            self._loops[place.loop] -= 1
            if not self._loops[place.loop]:
                del self._loops[place.loop]
        if unused and self._pace is not None:
            self._pace.give_back(place.at)

    def _serve(self) -> None:
        """Give what there is to whoever is next, and see to it that somebody looks again when there may be more."""
        while self._queues:
            run, queue = next(iter(self._queues.items()))
            ask = queue[0]
            now = time.monotonic()
            due = self._due(ask.counts)
            refused = due == _NEVER and (due := self._patient_until()) <= now
            if due > now:
                self._look_again(due)
                return
            queue.popleft()
            if not queue:
                del self._queues[run]
            elif ask.counts:
                self._queues.move_to_end(run)
            ask.outcome = self._refusal() if refused else self._take(ask.loop, now, ask.counts)
            try:
                ask.loop.call_soon_threadsafe(ask.deliver)
            except RuntimeError:  # its event loop is closed: nobody is there any more
                if isinstance(ask.outcome, Place):
                    self._free(ask.outcome, unused=True)

    def _patient_until(self) -> float:
        """Return when whoever waits is refused: never, unless every place is kept by a call that was given up."""
        latest = 0.0
        for place in self._taken:
            if place.stuck_since is None:
                return _NEVER
            latest = max(latest, place.stuck_since)
        return latest + PATIENCE_SECONDS

    def _refusal(self) -> str:
        places = "the only place" if self._places == 1 else f"each of the {self._places} places"
        taken = "is taken by a call that was given up and is still running"
        return f"{places} for {self.what} {taken}; this call was not made"

    def _waiting_loops(self) -> set[asyncio.AbstractEventLoop]:
        return {ask.loop for queue in self._queues.values() for ask in queue}

    def _look_again(self, due: float) -> None:
        """Let every event loop in which somebody waits look again at this time."""
        if due == _NEVER:
            return
        for loop in self._waiting_loops():
            if loop in self._timers and self._timers[loop][0] <= due:
                continue
            _, timer = self._timers.get(loop, (due, None))
            try:
                loop.call_soon_threadsafe(self._set_timer, loop, due, timer)
            except RuntimeError:
                self._timers.pop(loop, None)
            else:
                self._timers[loop] = due, None

    def _set_timer(self, loop: asyncio.AbstractEventLoop, due: float, former: asyncio.TimerHandle | None) -> None:
        with self._lock:
            if former is not None:
                former.cancel()
            known = self._timers.get(loop)
            if known is not None and known[0] == due:
                self._timers[loop] = due, loop.call_later(max(0.0, due - time.monotonic()), self._ring, loop, due)

    def _ring(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        with self._lock:
            if loop in self._timers and self._timers[loop][0] == due:
                del self._timers[loop]
            self._serve()
