"""An effect that may have happened is never reported as one that has not, whatever ends its attempts."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import Any

import pytest

from toolplan import Agent, Tool, ToolFailed, tool
from toolplan.effects import Access
from toolplan.models import ScriptedModel
from toolplan.run import StepFinished, StepRetrying
from toolplan.schedule import LeftCall, Setup
from unit.run.runs import call, run

WAITS = {"retry": {"attempts": 5, "wait_seconds": 20}}
QUICK = {"retry": {"attempts": 5, "wait_seconds": 0.001}}


def charging(*outcomes: BaseException | None) -> Tool:
    """Return an idempotent effect whose first attempt takes too long; the others end as said."""
    attempts: list[int] = []

    @tool(writes="account", idempotent=True, timeout_seconds=0.02)
    async def charge() -> int:
        attempts.append(1)
        if len(attempts) == 1:
            await asyncio.sleep(30)
        outcome = outcomes[min(len(attempts) - 2, len(outcomes) - 1)]
        if outcome is not None:
            raise outcome
        return 1

    return charge


NOT_HAPPENED = ToolFailed("refused", effect_happened=False)


async def test_a_later_attempt_that_had_no_effect_says_nothing_about_the_first() -> None:
    result = await run([call("charge") | QUICK], [charging(NOT_HAPPENED)])
    assert [(step.outcome, step.attempts) for step in result.steps] == [("unknown", 5)]


async def test_an_attempt_that_succeeds_settles_it() -> None:
    result = await run([call("charge") | QUICK], [charging(NOT_HAPPENED, None)])
    assert [step.outcome for step in result.steps] == ["succeeded"]


async def test_it_stays_unknown_when_the_run_is_cancelled_during_the_wait() -> None:
    stream = Agent(tools=[charging(None)], policy="declared").stream_plan([call("charge") | WAITS])
    told: list[str] = []

    async def watch() -> None:
        async for event in stream.events():
            if isinstance(event, StepFinished):
                told.append(event.record.outcome)
            if isinstance(event, StepRetrying):
                stream.cancel("enough")

    watching = asyncio.create_task(watch())
    result = await stream.result()
    await watching
    assert (result.outcome, [step.outcome for step in result.steps]) == ("cancelled", ["unknown"])
    assert told == ["unknown"]
    assert "Nobody knows whether these took effect: s1 (charge)" in result.answer


@pytest.mark.parametrize("on_error", [{}, {"on_error": "skip"}])
@pytest.mark.parametrize(("error", "outcome"), [(None, "unknown"), (ToolFailed("no"), "failed")])
async def test_no_step_is_left_running_when_the_budget_of_calls_is_used_up(
    error: ToolFailed | None, outcome: str, on_error: dict[str, Any]
) -> None:
    @tool(writes="account", idempotent=True)
    async def refuse() -> int:
        raise ToolFailed("no")

    one = charging(ToolFailed("no")) if error is None else Tool.of(refuse, name="charge")
    result = await run([call("charge") | QUICK | on_error], [one], max_calls=2)
    (step,) = result.steps
    assert (result.outcome, result.used_up) == ("failed", "max_calls")
    assert (step.outcome, step.attempts) == (outcome, 2)
    assert step.error is not None
    assert "max_calls" in step.error


async def test_the_rows_of_a_cancelled_request_are_in_written_order() -> None:
    @tool(reads="a")
    async def look() -> int:
        await asyncio.sleep(0.05)
        return 1

    @tool(writes="b")
    async def change() -> int:
        await asyncio.sleep(30)
        return 1

    plan = [call("look"), {"parallel": [call("change"), call("look")]}, call("look")]
    stream = Agent(tools=[look, change], policy="declared").stream_plan(plan)
    asyncio.get_running_loop().call_later(0.3, stream.cancel)
    result = await stream.result()
    assert [(step.tool, step.path) for step in result.steps] == [
        ("look", (0,)),
        ("change", (1, 0)),
        ("look", (1, 1)),
        ("look", (2,)),
    ]


async def test_a_loop_over_null_says_what_it_got() -> None:
    @tool(pure=True)
    def nothing() -> list[int] | None:
        return None

    result = await run(
        [call("nothing", "found"), {"for_each": "{found}", "as": "n", "do": [call("nothing")]}], [nothing]
    )
    assert result.error is not None
    assert "null" in result.error
    assert "empty" not in result.error


class Slow:
    """An effect that takes too long in its thread, and goes on until it is let go."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.done: list[str] = []

    def tools(self) -> list[Tool]:
        @tool(writes="box", timeout_seconds=0.05)
        def slow() -> int:
            self.go.wait(10)
            self.done.append("slow")
            return 1

        @tool(writes="box")
        async def put(v: int) -> int:
            self.done.append("put")
            return v

        @tool(reads="other")
        def wait_for_it() -> int:
            self.go.set()
            for _ in range(200):
                if self.done:
                    break
                time.sleep(0.01)
            time.sleep(0.1)
            return 1

        return [slow, put, wait_for_it]


P1 = json.dumps([{**call("slow"), "on_error": "replan"}, {"answer": "x"}])


async def test_a_new_plan_keeps_out_of_the_way_of_what_the_last_one_left_behind() -> None:
    slow = Slow()
    model = ScriptedModel([P1, json.dumps([call("put", v=2), {"answer": "done"}])])
    result = await Agent(model, tools=slow.tools(), policy="declared", max_replans=1).run("do it")
    assert slow.done == []
    assert [(step.tool, step.outcome) for step in result.steps] == [("slow", "unknown"), ("put", "failed")]
    assert "may still be going on" in str(result.steps[1].error)
    slow.go.set()


async def test_a_new_plan_may_do_it_when_that_has_ended() -> None:
    slow = Slow()
    second = [call("wait_for_it", "w"), call("put", v="{w}"), {"answer": "done"}]
    model = ScriptedModel([P1, json.dumps(second)])
    result = await Agent(model, tools=slow.tools(), policy="declared").run("do it")
    assert (result.outcome, slow.done) == ("succeeded", ["slow", "put"]), result.answer


async def test_the_next_turn_of_the_loop_keeps_out_of_the_way_too() -> None:
    slow = Slow()

    def calls(name: str, **arguments: Any) -> dict[str, Any]:
        return {"text": "", "tool_calls": [{"id": name, "name": name, "arguments": arguments}]}

    model = ScriptedModel([calls("slow"), calls("put", v=3), "done"])
    result = await Agent(model, tools=slow.tools(), policy="declared", mode="loop").run("do it")
    assert slow.done == []
    assert [(step.tool, step.outcome) for step in result.steps] == [("slow", "unknown"), ("put", "failed")]
    slow.go.set()


def test_what_was_left_behind_is_written_down_with_the_settings() -> None:
    setup = Setup(left_behind=(LeftCall("s1", (Access(("box", "1"), write=True),)),))
    assert Setup.from_json(json.loads(json.dumps(setup.to_json()))) == setup
    assert "left_behind" not in Setup().to_json()
