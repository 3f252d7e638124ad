"""Another attempt is made where it is safe, as late as it was asked for, and in sight."""

from __future__ import annotations

import asyncio
import datetime as dt
import email.utils
import time
from typing import Any

import pytest

from toolplan import Tool, ToolFailed, UsageError, tool
from toolplan.plan import Retry
from toolplan.run import StepFinished, StepRetrying, StepStarted
from toolplan.run.failures import asked_to_wait
from toolplan.schedule.retry import wait_before
from unit.run.runs import call, run

QUICK = {"retry": {"attempts": 4, "wait_seconds": 0.001}}


class Refused(ConnectionError):
    """The service did not even listen."""


class Response:
    def __init__(self, **headers: str) -> None:
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class HttpError(Exception):
    def __init__(self, response: Any = None, retry_after: Any = None) -> None:
        super().__init__("429")
        self.response = response
        self.retry_after = retry_after


def failing(error: BaseException, times: int = 10, **declared: Any) -> tuple[Tool, list[float]]:
    tries: list[float] = []

    async def attempt() -> int:
        tries.append(time.monotonic())
        if len(tries) <= times:
            raise error
        return 1

    return Tool.of(attempt, **declared), tries


@pytest.mark.parametrize(
    ("declared", "error", "attempts"),
    [
        ({"pure": True}, ConnectionError("x"), 4),
        ({"reads": "x"}, ConnectionError("x"), 4),
        ({"writes": "x"}, ConnectionError("x"), 1),
        ({}, ConnectionError("x"), 1),
        ({"writes": "x", "idempotent": True}, ConnectionError("x"), 4),
        ({"writes": "x"}, ToolFailed("x", effect_happened=False), 4),
        ({"writes": "x"}, ToolFailed("x", effect_happened=True), 1),
        ({"writes": "x", "nothing_happened": Refused}, Refused("x"), 4),
        ({"writes": "x", "nothing_happened": (KeyError, ConnectionError)}, Refused("x"), 4),
        ({"writes": "x", "nothing_happened": Refused}, ConnectionError("x"), 1),
    ],
)
async def test_only_what_is_safe_is_tried_again(declared: Any, error: BaseException, attempts: int) -> None:
    attempt, tries = failing(error, **declared)
    result = await run([call("attempt") | QUICK], [attempt])
    assert len(tries) == result.steps[0].attempts == attempts


async def test_an_attempt_that_ran_out_of_time_is_not_safe_to_repeat_but_for_what_has_no_effect() -> None:
    async def slow() -> int:
        await asyncio.sleep(5)
        return 1

    step = call("slow") | QUICK | {"timeout_seconds": 0.01}
    assert (await run([step], [Tool.of(slow, writes="x")])).steps[0].attempts == 1
    assert (await run([step], [Tool.of(slow, reads="x")])).steps[0].attempts == 4


async def test_what_does_not_fit_now_will_not_fit_then() -> None:
    tries: list[int] = []

    @tool(pure=True, retry=5)
    async def wrong() -> int:
        tries.append(1)
        return "three"  # type: ignore[return-value]

    result = await run([call("wrong") | QUICK], [wrong])
    assert len(tries) == 1
    assert result.error == (
        "`wrong` returned something else than it declares: the result must be a whole number, but is 'three' (text)"
    )


async def test_arguments_that_do_not_fit_are_not_tried() -> None:
    tries: list[int] = []

    @tool(pure=True)
    async def source() -> Any:
        return "many"

    @tool(pure=True, retry=5)
    async def sink(n: int) -> int:
        tries.append(n)
        return n

    result = await run([call("source", result="n"), call("sink", n="{n}") | QUICK], [source, sink])
    assert tries == []
    assert "`n` must be a whole number" in (result.error or "")


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (ToolFailed("busy", retry_after_seconds=7), 7),
        (HttpError(Response(retry_after="3")), 3),
        (HttpError(Response(Retry_After="2.5")), 2.5),
        (HttpError(retry_after=4), 4),
        (HttpError(retry_after=dt.timedelta(seconds=5)), 5),
        (HttpError(Response(retry_after="-1")), 0),
        (HttpError(Response(retry_after="soon")), None),
        (HttpError(Response(retry_after="nan")), None),
        (HttpError(Response()), None),
        (HttpError(retry_after=True), None),
        (HttpError(object()), None),
        (ValueError("x"), None),
    ],
)
def test_what_a_server_asks_for_is_understood(error: BaseException, seconds: float | None) -> None:
    assert asked_to_wait(error) == seconds
    outer = ToolFailed("wrapped")
    outer.__cause__ = error
    assert asked_to_wait(outer) == seconds


def test_a_server_may_say_when() -> None:
    at = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=30)
    wait = asked_to_wait(HttpError(Response(retry_after=email.utils.format_datetime(at, usegmt=True))))
    assert wait is not None
    assert 27 < wait <= 30
    past = asked_to_wait(HttpError(Response(retry_after="Wed, 21 Oct 2015 07:28:00 GMT")))
    assert past == 0


async def test_nobody_comes_back_before_the_time_that_was_asked_for() -> None:
    attempt, tries = failing(ToolFailed("busy", retry_after_seconds=0.08), times=2, pure=True)
    result = await run([call("attempt") | QUICK], [attempt])
    assert result.outcome == "succeeded"
    assert tries[1] - tries[0] >= 0.08
    assert tries[2] - tries[1] >= 0.08


async def test_who_asks_for_more_than_may_be_waited_is_not_asked_again() -> None:
    attempt, tries = failing(ToolFailed("busy", retry_after_seconds=3600), pure=True, retry=5)
    result = await run([call("attempt")], [attempt])
    assert len(tries) == 1
    assert result.error == "busy; it asks not to be called again for 3600 seconds"


def test_waits_grow_and_are_bounded() -> None:
    retry = Retry(attempts=200, wait_seconds=0.5, max_wait_seconds=10)
    assert [wait_before(retry, n) for n in (2, 3, 4, 5, 6, 7)] == [0.5, 1, 2, 4, 8, 10]
    assert wait_before(retry, 199) == 10
    assert wait_before(retry, 201) is None
    assert wait_before(retry, 2, 9) == 0.5
    assert wait_before(retry, 2, 11) is None


async def test_waits_are_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[float, float]] = []

    def uniform(low: float, high: float) -> float:
        asked.append((low, high))
        return 0.001

    monkeypatch.setattr("random.uniform", uniform)
    attempt, _ = failing(ConnectionError("x"), times=3, pure=True)
    await run([call("attempt") | {"retry": {"attempts": 4, "wait_seconds": 1}}], [attempt])
    assert asked == [(0, 1), (0, 2), (0, 4)]


async def test_every_attempt_is_seen() -> None:
    events: list[Any] = []
    attempt, _ = failing(ConnectionError("no"), times=2, pure=True)
    await run([call("attempt") | QUICK], [attempt], watch=events.append)
    kinds = (StepStarted, StepFinished, StepRetrying)
    seen = [event for event in events if isinstance(event, kinds)]
    assert [type(event) for event in seen] == [
        *[StepStarted, StepFinished, StepRetrying] * 2,
        StepStarted,
        StepFinished,
    ]
    starts = [event.attempt for event in seen if isinstance(event, StepStarted)]
    assert starts == [1, 2, 3]
    ends = [event.record for event in seen if isinstance(event, StepFinished)]
    assert [(record.outcome, record.error, record.attempts) for record in ends] == [
        ("failed", "ConnectionError: no", 1),
        ("failed", "ConnectionError: no", 2),
        ("succeeded", None, 3),
    ]
    again = [event for event in seen if isinstance(event, StepRetrying)]
    assert [(event.attempt, event.error) for event in again] == [(2, "ConnectionError: no"), (3, "ConnectionError: no")]
    assert all(0 <= event.wait_seconds <= 0.002 for event in again)


@pytest.mark.parametrize("wrong", ["ConnectionError", int, (ConnectionError, 3), KeyboardInterrupt])
def test_what_means_that_nothing_happened_is_an_exception(wrong: Any) -> None:
    with pytest.raises(UsageError, match="`nothing_happened` must be exception classes"):
        tool(nothing_happened=wrong)(failing)
