"""The gates before tools: places, rate, fair turns, and nobody who leaves takes anything with him."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable

import pytest

from toolplan.run import gate as gates
from toolplan.run.gate import Ask, Gate, Pace, Place
from toolplan.tools import RateLimit


class Visitor:
    """A run at a gate: asks, and notes what it is given."""

    def __init__(self, gate: Gate, log: list[str], name: str) -> None:
        self.gate, self.log, self.name = gate, log, name
        self.places: list[Place] = []
        self.refused: list[str] = []

    def ask(self, *, counts: bool = True) -> Place | Ask:
        got = self.gate.ask(self.name, self.given, counts=counts)
        if isinstance(got, Place):
            self.given(got)
        return got

    def given(self, answer: Place | str) -> None:
        if isinstance(answer, str):
            self.refused.append(answer)
            return
        self.log.append(self.name)
        self.places.append(answer)

    def leave(self) -> None:
        self.gate.drop(self.places.pop(0))


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_the_pace_is_never_more_than_allowed_in_any_window() -> None:
    pace = Pace(RateLimit(3, 1.0))
    starts: list[float] = []
    now = 0.0
    for wish in [0.0, 0.0, 0.5, 0.6, 0.9, 1.0, 1.4, 1.5, 2.9, 2.9, 2.9, 3.0]:
        now = max(now, wish, pace.free_at())
        pace.take(now)
        starts.append(now)
    for start in starts:
        assert sum(start <= other < start + 1.0 for other in starts) <= 3
    assert starts[:4] == [0.0, 0.0, 0.5, 1.0]


def test_a_start_that_was_none_does_not_count() -> None:
    pace = Pace(RateLimit(1, 10.0))
    pace.take(5.0)
    assert pace.free_at() == 15.0
    pace.give_back(5.0)
    assert pace.free_at() < 5.0


async def test_runs_take_turns_and_keep_their_own_order() -> None:
    gate, log = Gate("x", 1), list[str]()
    a, b, c = (Visitor(gate, log, name) for name in "abc")
    for visitor in [a, a, a, a, b, b, c]:
        visitor.ask()
    assert (gate.taken, gate.waiting) == (1, 6)
    while len(log) < 7 or any(visitor.places for visitor in (a, b, c)):
        holder = next(visitor for visitor in (a, b, c) if visitor.places)
        holder.leave()
        await settle()
    assert log == ["a", "a", "b", "c", "a", "b", "a"]
    assert (gate.taken, gate.waiting) == (0, 0)


async def test_who_comes_late_does_not_overtake_who_waits() -> None:
    gate, log = Gate("x", 1), list[str]()
    a, b = Visitor(gate, log, "a"), Visitor(gate, log, "b")
    a.ask()
    b.ask()
    a.leave()  # the place is b's, although b has not heard of it yet
    assert isinstance(a.ask(), Ask)
    await settle()
    assert log == ["a", "b"]


async def test_who_leaves_the_queue_leaves_nothing_behind() -> None:
    gate, log = Gate("x", 1), list[str]()
    a, b, c = (Visitor(gate, log, name) for name in "abc")
    a.ask()
    asked = [b.ask(), c.ask()]
    assert all(isinstance(ask, Ask) for ask in asked)
    gate.withdraw(asked[0])  # type: ignore[arg-type]
    a.leave()
    await settle()
    assert log == ["a", "c"]


async def test_a_place_on_its_way_to_somebody_who_leaves_goes_to_the_next() -> None:
    gate, log = Gate("x", 1, RateLimit(2, 60.0)), list[str]()
    a, b, c = (Visitor(gate, log, name) for name in "abc")
    a.ask()
    ask = b.ask()
    c.ask()
    a.leave()
    assert isinstance(ask, Ask)
    gate.withdraw(ask)  # before the event loop came to hand it over
    await settle()
    assert log == ["a", "c"]  # and it did not count for the rate


async def test_a_rate_limit_lets_through_as_many_as_it_says() -> None:
    gate, places = Gate("x", None, RateLimit(3, 0.1)), list[Place]()
    for _ in range(8):
        answered: asyncio.Future[Place | str] = asyncio.get_running_loop().create_future()
        got = gate.ask("a", answered.set_result)
        place = await answered if isinstance(got, Ask) else got
        assert isinstance(place, Place)
        places.append(place)
    starts = [place.at for place in places]
    assert starts[2] - starts[0] < 0.1
    assert all(later - earlier >= 0.1 for earlier, later in zip(starts, starts[3:], strict=False))


async def test_no_timer_stays_when_nobody_waits() -> None:
    gate = Gate("x", None, RateLimit(1, 60.0))
    gate.ask("a", lambda _: None)
    ask = gate.ask("b", lambda _: None)
    await settle()
    assert isinstance(ask, Ask)
    loop = asyncio.get_running_loop()
    waits: Callable[[], list[object]] = lambda: [t for t in loop._scheduled if not t.cancelled()]  # type: ignore[attr-defined]  # noqa: E731
    assert waits()
    gate.withdraw(ask)
    assert not waits()


async def test_an_earlier_timer_replaces_a_later_one() -> None:
    gate, log = Gate("x", 1, RateLimit(100, 0.05)), list[str]()
    a, b = Visitor(gate, log, "a"), Visitor(gate, log, "b")
    a.ask()
    gate.give_up(a.places[0])  # b would be refused after the patience is over
    b.ask()
    await settle()
    a.leave()
    await asyncio.sleep(0.1)
    assert log == ["a", "b"]


async def test_a_call_inside_of_another_needs_no_place() -> None:
    gate, log = Gate("x", 1), list[str]()
    outer, other = Visitor(gate, log, "outer"), Visitor(gate, log, "other")
    outer.ask()
    other.ask()
    outer.ask(counts=False)
    assert log == ["outer", "outer"]


async def test_a_call_inside_of_another_waits_for_the_rate_but_for_nobody_else() -> None:
    gate, log = Gate("x", 1, RateLimit(2, 0.05)), list[str]()
    outer, other = Visitor(gate, log, "outer"), Visitor(gate, log, "other")
    outer.ask()
    other.ask()  # waits for the place
    outer.ask(counts=False)
    outer.ask(counts=False)  # waits for the rate, and the outer call for it
    await asyncio.sleep(0.15)
    assert log == ["outer"] * 3


async def test_a_thread_keeps_its_place_until_it_ends() -> None:
    gate, log = Gate("x", 1), list[str]()
    a, b = Visitor(gate, log, "a"), Visitor(gate, log, "b")
    a.ask()
    (place,) = a.places
    gate.enter_thread(place)
    gate.drop(place)  # timed out
    b.ask()
    await settle()
    assert log == ["a"]
    thread = threading.Thread(target=gate.leave_thread, args=(place,))
    thread.start()
    thread.join()
    await settle()
    assert log == ["a", "b"]


async def test_who_waits_behind_calls_that_never_end_is_refused_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "PATIENCE_SECONDS", 0.05)
    gate, log = Gate("`fetch`", 2), list[str]()
    a, b = Visitor(gate, log, "a"), Visitor(gate, log, "b")
    a.ask()
    a.ask()
    gate.give_up(a.places[0])
    b.ask()
    await asyncio.sleep(0.1)
    assert b.refused == []  # the other call may still end
    gate.give_up(a.places[1])
    await asyncio.sleep(0.1)
    assert b.refused == [
        "each of the 2 places for `fetch` is taken by a call that was given up and is still running; "
        "this call was not made"
    ]
    a.leave()
    b.ask()
    assert log == ["a", "a", "b"]


def test_event_loops_share_a_gate() -> None:
    gate = Gate("x", 2, RateLimit(1000, 1.0))
    most, inside, lock = [0], [0], threading.Lock()

    async def visit(name: str) -> None:
        for _ in range(20):
            answered: asyncio.Future[Place | str] = asyncio.get_running_loop().create_future()
            got = gate.ask(name, answered.set_result)
            place = await answered if isinstance(got, Ask) else got
            assert isinstance(place, Place)
            with lock:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
            await asyncio.sleep(0)
            with lock:
                inside[0] -= 1
            gate.drop(place)

    threads = [threading.Thread(target=lambda n=n: asyncio.run(visit(f"r{n}"))) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert not any(thread.is_alive() for thread in threads)
    assert most[0] <= 2
    assert (gate.taken, gate.waiting) == (0, 0)


def test_an_event_loop_that_ends_takes_its_places_and_its_turn_with_it() -> None:
    gate = Gate("x", 1)

    async def come_and_go() -> None:
        gate.ask("gone", lambda _: None)
        gate.ask("gone", lambda _: None)

    loop = asyncio.new_event_loop()
    loop.run_until_complete(come_and_go())
    loop.close()
    gc.collect()
    log: list[str] = []

    async def come_later() -> None:
        Visitor(gate, log, "b").ask()
        await settle()

    asyncio.run(come_later())
    assert log == ["b"]


async def test_more_places_let_more_in() -> None:
    gate, log = Gate("x", 1), list[str]()
    a = Visitor(gate, log, "a")
    for _ in range(4):
        a.ask()
    gate.resize(3)
    await settle()
    assert len(log) == 3
    gate.resize(None)
    await settle()
    assert len(log) == 4
