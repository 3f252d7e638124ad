"""Limits of a tool hold for all runs of the process, and the runs share what there is."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from toolplan import Agent, Tool, ToolSet, UsageError, run_plan, tool
from toolplan.models import ModelRequest, Reply
from toolplan.run import EarlyStarted, StepStarted, limits, set_process_limits
from toolplan.run.limits import gates_of
from unit.run.runs import call, checked, each, engine, run


@pytest.fixture(autouse=True)
def _usual_limits() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    yield
    set_process_limits()


class Service:
    """Notes who calls it and how many calls it has at once."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.now = self.most = 0
        self.calls: list[str] = []
        self.starts: list[float] = []
        self.third = asyncio.Event()
        self._lock = threading.Lock()

    def enter(self, who: str) -> None:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
            self.calls.append(who)
            self.starts.append(time.monotonic())
            if len(self.starts) == 3:
                self.third.set()

    def leave(self) -> None:
        with self._lock:
            self.now -= 1

    async def fetch(self, who: str) -> str:
        self.enter(who)
        await asyncio.sleep(self.seconds)
        self.leave()
        return who

    def fetch_in_thread(self, who: str) -> str:
        self.enter(who)
        time.sleep(self.seconds)
        self.leave()
        return who


async def test_a_limit_of_a_tool_holds_for_all_runs() -> None:
    service = Service(0.002)
    fetches = [Tool.of(service.fetch, pure=True, max_concurrency=2) for _ in range(5)]  # an agent a request
    plans = [[each([f"r{n}"] * 6, call("fetch", who="{n}"))] for n in range(5)]
    results = await asyncio.gather(*(run(plan, [fetch]) for plan, fetch in zip(plans, fetches, strict=True)))
    assert [result.outcome for result in results] == ["succeeded"] * 5
    assert service.most == 2
    assert gates_of(fetches[0])[0] is gates_of(fetches[4])[0]
    assert gates_of(fetches[0])[0].taken == 0


async def test_a_rate_holds_for_all_runs_and_the_next_ones() -> None:
    service = Service()
    fetch = Tool.of(service.fetch, pure=True, rate_limit=(5, 0.2))
    plan = [each(["a"] * 4, call("fetch", who="{n}"))]
    begun = time.monotonic()
    await asyncio.gather(run(plan, [fetch]), run(plan, [fetch]))
    await run(plan, [fetch])
    starts = [start - begun for start in sorted(service.starts)]
    assert len(starts) == 12
    assert starts[5] >= 0.2
    assert starts[10] >= 0.4


async def test_runs_take_turns_at_a_limited_tool() -> None:
    service = Service(0.001)
    fetch = Tool.of(service.fetch, pure=True, max_concurrency=1)
    long, short = [each(["long"] * 30, call("fetch", who="{n}"))], [each(["short"] * 5, call("fetch", who="{n}"))]
    first = asyncio.create_task(run(long, [fetch]))
    await service.third.wait()
    await run(short, [fetch])
    assert service.calls.count("long") <= 3 + 5 + 2  # one of its calls for each of the other's
    await first


async def test_a_call_that_waits_for_its_turn_takes_no_place_of_its_run() -> None:
    release = asyncio.Event()
    done: list[int] = []

    @tool(pure=True, max_concurrency=1)
    async def scarce(n: int) -> int:
        await release.wait()
        return n

    @tool(pure=True)
    async def plenty(n: int) -> int:
        done.append(n)
        if len(done) == 10:
            release.set()
        return n

    steps = [each(list(range(6)), call("scarce", n="{n}")), each(list(range(10)), call("plenty", n="{n}"))]
    result = await asyncio.wait_for(run(steps, [scarce, plenty], max_concurrency=2), 5)
    assert result.outcome == "succeeded"


async def test_waiting_for_a_turn_is_not_part_of_the_time_of_a_call() -> None:
    service = Service(0.05)
    fetch = Tool.of(service.fetch, pure=True, max_concurrency=1, timeout_seconds=0.2)
    result = await run([each(["a"] * 8, call("fetch", who="{n}"))], [fetch])
    assert result.outcome == "succeeded"
    assert all((s.finished_seconds or 9) - (s.started_seconds or 0) < 0.2 for s in result.steps)


async def test_the_most_urgent_call_goes_first_when_a_turn_comes() -> None:
    order: list[str] = []

    @tool(pure=True, max_concurrency=1)
    async def work(name: str) -> str:
        order.append(name)
        await asyncio.sleep(0.001)
        return name

    chain = [call("work", result="a", name="1"), call("work", result="b", name="{a} 2"), call("work", name="{b} 3")]
    alone = [call("work", name=f"alone {n}") for n in range(3)]
    await run([*alone, *chain], [work])
    assert order[:2] == ["1", "1 2"]


async def test_a_cancelled_run_leaves_the_queue_and_gives_back_its_place() -> None:
    service = Service(0.02)
    fetch = Tool.of(service.fetch, pure=True, max_concurrency=1)
    plan = [each(["a"] * 10, call("fetch", who="{n}"))]
    first, second = engine(plan, [fetch]), engine(plan, [fetch])
    running = [asyncio.create_task(first.run()), asyncio.create_task(second.run())]
    await asyncio.sleep(0.01)
    running[1].cancel()
    first.cancel()
    assert (await running[0]).outcome == "cancelled"
    with pytest.raises(asyncio.CancelledError):
        await running[1]
    gate = gates_of(fetch)[0]
    assert (gate.taken, gate.waiting) == (0, 0)
    assert (await run([call("fetch", who="b")], [fetch])).outcome == "succeeded"


async def test_a_thread_that_goes_on_after_its_time_keeps_its_place() -> None:
    release = threading.Event()
    log: list[int] = []

    @tool(pure=True, max_concurrency=1, timeout_seconds=0.05)
    def slow(n: int) -> int:
        log.append(n)
        if n == 1:
            release.wait(5)
        return n

    first = await run([call("slow", n=1)], [slow])
    assert first.outcome == "failed"
    second = asyncio.create_task(run([call("slow", n=2)], [slow]))
    await asyncio.sleep(0.05)
    assert log == [1]
    release.set()
    assert (await second).outcome == "succeeded"


async def test_a_tool_whose_places_are_all_lost_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolplan.run.gate.PATIENCE_SECONDS", 0.05)
    release = threading.Event()

    @tool(pure=True, max_concurrency=1, timeout_seconds=0.02)
    def slow(n: int) -> int:
        release.wait(5)
        return n

    steps = [call("slow", n=1) | {"on_error": "skip"}, call("slow", n=2), call("slow", n=3)]
    result = await run(steps, [slow])
    release.set()
    assert result.outcome == "failed"
    assert result.error is not None
    assert "the only place for `slow` is taken by a call that was given up" in result.error
    assert [step.outcome for step in result.steps] == ["failed", "failed", "not_run"]


async def test_every_attempt_counts_for_the_rate() -> None:
    starts: list[float] = []
    begun = time.monotonic()

    @tool(pure=True, retry=4, rate_limit=(1, 0.05))
    async def flaky() -> int:
        starts.append(time.monotonic())
        if len(starts) < 4:
            raise ConnectionError("again")
        return 1

    steps = [call("flaky") | {"retry": {"attempts": 4, "wait_seconds": 0.001}}]
    assert (await run(steps, [flaky])).outcome == "succeeded"
    assert starts[3] - begun >= 0.15


async def test_a_tool_that_runs_plans_may_use_itself() -> None:
    @tool(pure=True, max_concurrency=1)
    async def down(n: int) -> int:
        if n == 0:
            return 0
        inner = await run([call("down", result="x", n=n - 1), {"answer": "{x}"}], [down])
        return int(inner.text or 0) + 1

    result = await asyncio.wait_for(run([call("down", n=3)], [down]), 5)
    assert result.steps[0].result == 3


async def test_runs_in_several_event_loops_share_a_tool() -> None:
    service = Service(0.002)
    fetch = Tool.of(service.fetch, pure=True, max_concurrency=2)
    plan = [each(["a"] * 10, call("fetch", who="{n}"))]
    outcomes: list[str] = []
    threads = [
        threading.Thread(target=lambda: outcomes.append(asyncio.run(run(plan, [fetch])).outcome)) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join, 10)
    assert outcomes == ["succeeded"] * 4
    assert service.most == 2


async def test_threads_are_bounded_for_the_whole_process() -> None:
    set_process_limits(threads=3)
    service = Service(0.005)
    fetch = Tool.of(service.fetch_in_thread, pure=True)
    plan = [each(["a"] * 8, call("fetch_in_thread", who="{n}"))]
    results = await asyncio.gather(*(run(plan, [fetch]) for _ in range(3)))
    assert {result.outcome for result in results} == {"succeeded"}
    assert service.most == 3


async def test_calls_in_flight_can_be_bounded_for_the_whole_process() -> None:
    set_process_limits(calls=2)
    service = Service(0.002)
    fetch = Tool.of(service.fetch, pure=True)
    plan = [each(["a"] * 8, call("fetch", who="{n}"))]
    results = await asyncio.gather(*(run(plan, [fetch]) for _ in range(3)))
    assert {result.outcome for result in results} == {"succeeded"}
    assert service.most == 2


@pytest.mark.parametrize("wrong", [{"calls": 0}, {"threads": -1}, {"processes": 1.5}, {"calls": True}])
def test_a_limit_is_a_number_above_zero(wrong: Any) -> None:
    with pytest.raises(UsageError, match=f"`{next(iter(wrong))}` is"):
        set_process_limits(**wrong)


async def test_a_step_is_told_to_have_started_when_it_has() -> None:
    events: list[StepStarted] = []
    service = Service(0.03)
    fetch = Tool.of(service.fetch, pure=True, max_concurrency=1)
    steps = [call("fetch", who="a"), call("fetch", who="b")]
    await run(steps, [fetch], watch=lambda event: events.append(event) if isinstance(event, StepStarted) else None)
    assert events[1].at_seconds - events[0].at_seconds >= 0.029


def test_the_same_function_is_one_service_whatever_makes_a_tool_of_it() -> None:
    class Client:
        def find(self, query: str) -> str:
            return query

    client, other = Client(), Client()
    limits: Any = {"max_concurrency": 2}
    one = gates_of(Tool.of(client.find, **limits))[0]
    assert gates_of(Tool.of(client.find, **limits))[0] is one
    assert gates_of(ToolSet.of([Tool.of(client.find, **limits)])["find"])[0] is one
    assert gates_of(Tool.of(other.find, **limits))[0] is not one
    assert gates_of(Tool.of(client.find, max_concurrency=3))[0] is not one


def test_a_gate_does_not_outlive_its_function() -> None:
    def make() -> Tool:
        def find(query: str) -> str:
            return query

        return Tool.of(find, max_concurrency=2)

    gc.collect()
    before = len(limits._own)
    made = [make() for _ in range(10)]
    assert all(gates_of(tool) for tool in made)
    assert len(limits._own) == before + 10
    del made
    gc.collect()
    assert len(limits._own) == before


def test_a_checked_plan_runs_in_one_loop_after_the_other() -> None:
    service = Service()
    plan = checked([call("fetch", who="a")], [Tool.of(service.fetch, pure=True, rate_limit=(1, 0.05))])
    begun = time.monotonic()
    for _ in range(3):
        assert asyncio.run(run_plan(plan)).outcome == "succeeded"
    assert service.starts[2] - begun >= 0.1


@pytest.mark.parametrize("places", [1, 3])
async def test_calls_that_start_while_the_plan_arrives_keep_to_the_limits_and_to_nobodys_way(places: int) -> None:
    service = Service(0.005)
    scarce = Tool.of(service.fetch, pure=True, max_concurrency=1)
    plan = json.dumps(
        [call("fetch", result=f"r{n}", who=f"w{n}") for n in range(6)] + [call("fetch", who="{r0} again")]
    )
    events: list[Any] = []

    class Writer:
        """A model whose reply arrives piece by piece."""

        name = "writer"

        async def ask(self, request: ModelRequest, on_text: Callable[[str], None] | None = None) -> Reply:
            for start in range(0, len(plan), 40):
                if on_text is not None:
                    on_text(plan[start : start + 40])
                await asyncio.sleep(0.002)
            return Reply(plan)

    agent = Agent(Writer(), [scarce], max_concurrency=places, answer="none")
    result = await asyncio.wait_for(agent.run("fetch", watch=events.append), 10)
    assert result.outcome == "succeeded"
    assert any(isinstance(event, EarlyStarted) for event in events)
    assert service.most == 1
    assert sorted(service.calls) == ["w0", "w0 again", "w1", "w2", "w3", "w4", "w5"]
    gate = gates_of(scarce)[0]
    assert (gate.taken, gate.waiting) == (0, 0)


async def test_a_plain_function_that_runs_a_plan_of_plain_functions_needs_one_thread_only() -> None:
    set_process_limits(threads=1)

    @tool(pure=True)
    def inner(n: int) -> int:
        return n + 1

    @tool(pure=True)
    def outer(n: int) -> int:
        steps = [call("inner", result="x", n=n), call("inner", n="{x}")]
        return asyncio.run(run(steps, [inner])).steps[1].result  # type: ignore[return-value]

    result = await asyncio.wait_for(run([each([1, 5], call("outer", n="{n}"))], [outer]), 10)
    assert [step.result for step in result.steps] == [3, 7]
