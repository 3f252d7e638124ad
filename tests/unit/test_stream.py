"""A request as a stream: every event in order, whoever listens; ended whenever somebody leaves."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from toolplan import Agent, AgentStream, ModelError, UsageError, event_to_json, tool
from toolplan.agent import AgentEvent, ModelAsked, ModelReplied, PlanAccepted, RequestFinished
from toolplan.models import FunctionModel, ModelRequest, ScriptedModel
from toolplan.run import RunFinished, RunStarted, StepFinished, StepStarted


class Shop:
    """Tools that can be held up, and tell how they ended."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.hold = asyncio.Event()
        self.hold.set()
        self.ended: list[str] = []

        @tool(reads="stock")
        async def count(thing: str) -> int:
            """Counts things."""
            return len(thing)

        @tool(writes="orders")
        async def order(thing: str) -> str:
            """Orders a thing."""
            self.started.set()
            try:
                await self.hold.wait()
            except asyncio.CancelledError:
                await asyncio.sleep(0)
                self.ended.append(f"cancelled {thing}")
                raise
            self.ended.append(f"ordered {thing}")
            return "ordered"

        self.tools: list[Any] = [count, order]

    def agent(self, *replies: Any, **options: Any) -> Agent:
        return Agent(ScriptedModel([json.dumps(reply) for reply in replies]), self.tools, **options)


PLAN: dict[str, Any] = {
    "steps": [
        {"tool_name": "count", "arguments": {"thing": "nut"}, "result_variable": "n"},
        {"tool_name": "order", "arguments": {"thing": "bolt"}},
    ],
    "answer": "{n} nuts",
}


def names(events: list[AgentEvent]) -> list[str]:
    return [type(event).__name__ for event in events]


async def nothing_is_left() -> bool:
    for _ in range(20):
        await asyncio.sleep(0)
    return asyncio.all_tasks() == {asyncio.current_task()}


async def test_every_event_comes_in_order_and_the_result_last() -> None:
    shop = Shop()
    events = [event async for event in shop.agent(PLAN, early_start=False).stream("please")]
    assert isinstance(events[0], ModelAsked)
    streamed = [name for name in names(events) if name != "ReplyStreamed"]
    assert streamed == [
        *("ModelAsked", "ModelReplied", "PlanAccepted", "RunStarted"),
        *("StepStarted", "StepFinished", "StepStarted", "StepFinished", "RunFinished", "RequestFinished"),
    ]
    last = events[-1]
    assert isinstance(last, RequestFinished)
    assert (last.result.outcome, last.result.answer) == ("succeeded", "3 nuts")


async def test_a_stream_hears_what_a_watcher_hears() -> None:
    heard: list[AgentEvent] = []
    result = await Shop().agent(PLAN).run("please", watch=heard.append)
    async with Shop().agent(PLAN).stream("please") as run:
        events = [event async for event in run]
        assert names(events) == [*names(heard), "RequestFinished"]
        again = await run.result()
    assert (again.outcome, again.answer) == (result.outcome, result.answer)


async def test_a_given_plan_streams_too() -> None:
    events = [event async for event in Shop().agent().stream_plan(PLAN)]
    assert names(events)[0] == "PlanAccepted"
    assert isinstance(events[-1], RequestFinished)
    assert events[-1].result.inferences == 0


async def test_a_slow_consumer_loses_nothing_and_holds_nobody_up() -> None:
    shop = Shop()
    steps = [{"tool_name": "count", "arguments": {"thing": "x" * i}} for i in range(50)]
    async with shop.agent({"steps": steps}, answer="none").stream("please") as run:
        events: list[AgentEvent] = []
        async for event in run:
            events.append(event)
            if len(events) == 1:
                await run.result()  # the run comes to its end while nothing is taken from the stream
    assert sum(isinstance(event, StepFinished) for event in events) == 50
    assert isinstance(events[-1], RequestFinished)


async def test_several_consumers_and_late_ones_hear_everything() -> None:
    shop = Shop()

    async def listen(run: AgentStream, after: int = 0) -> list[AgentEvent]:
        return [event async for event in run.events(after)]

    async with shop.agent(PLAN).stream("please") as run:
        first, second = await asyncio.gather(listen(run), listen(run))
        third, rest = await listen(run), await listen(run, after=4)
    assert first == second == third
    assert rest == first[4:]


async def test_the_result_alone() -> None:
    result = await Shop().agent(PLAN).stream("please").result()
    assert result.answer == "3 nuts"


@pytest.mark.parametrize("how", ["break", "aclose", "block", "error"])
async def test_leaving_early_cancels_and_awaits_the_run(how: str) -> None:
    shop = Shop()
    shop.hold.clear()
    stream = shop.agent(PLAN).stream("please")
    if how == "break":
        async for event in stream:
            if isinstance(event, StepStarted) and event.tool == "order":
                await shop.started.wait()
                break
    elif how == "aclose":
        events = stream.events()
        await anext(events)
        await shop.started.wait()
        await events.aclose()
        assert shop.ended == ["cancelled bolt"]
    elif how == "block":
        async with stream as run:
            async for event in run:
                if isinstance(event, StepStarted) and event.tool == "order":
                    await shop.started.wait()
                    break
            assert shop.ended == []  # the block owns the run, not the loop
        assert shop.ended == ["cancelled bolt"]
    else:

        async def fails() -> None:
            async with stream as run:
                await anext(run.events())
                await shop.started.wait()
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await fails()
        assert shop.ended == ["cancelled bolt"]
    assert await nothing_is_left()
    assert shop.ended == ["cancelled bolt"]


async def test_a_consumer_that_is_cancelled_takes_the_run_along() -> None:
    shop = Shop()
    shop.hold.clear()

    async def client() -> None:
        async for _ in shop.agent(PLAN).stream("please"):
            pass

    task = asyncio.create_task(client())
    await shop.started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert shop.ended == ["cancelled bolt"]
    assert await nothing_is_left()


async def test_cancel_says_how_every_step_ended() -> None:
    shop = Shop()
    shop.hold.clear()
    async with shop.agent(PLAN).stream("please") as run:
        events: list[AgentEvent] = []
        async for event in run:
            events.append(event)
            if isinstance(event, StepStarted) and event.tool == "order":
                await shop.started.wait()
                run.cancel("the client went away")
                run.cancel()
        result = await run.result()
    assert names(events)[-3:] == ["StepFinished", "RunFinished", "RequestFinished"]
    assert (result.outcome, result.error) == ("cancelled", "the client went away")
    assert [(step.tool, step.outcome) for step in result.steps] == [("count", "succeeded"), ("order", "unknown")]
    assert "order" in result.answer
    assert (result.inferences, result.plan is not None) == (1, True)
    assert shop.ended == ["cancelled bolt"]


async def test_cancel_before_the_beginning_and_after_the_end() -> None:
    shop = Shop()
    run = shop.agent(PLAN).stream("please")
    run.cancel()
    assert names([event async for event in run]) == ["RequestFinished"]
    assert (await run.result()).outcome == "cancelled"
    run = shop.agent(PLAN).stream("please")
    result = await run.result()
    run.cancel()
    assert await run.result() is result
    assert shop.ended == ["ordered bolt"]


async def test_cancel_while_the_model_writes() -> None:
    asked = asyncio.Event()

    async def never(request: ModelRequest) -> str:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    run = Agent(FunctionModel(never), Shop().tools).stream("please")
    async with run:
        await asked.wait()
        run.cancel()
        result = await run.result()
    assert (result.outcome, result.steps, result.inferences) == ("cancelled", (), 1)


async def test_what_the_model_raises_comes_out_of_the_iterator_and_the_result() -> None:
    def broken(request: ModelRequest) -> str:
        raise ModelError("no connection")

    run = Agent(FunctionModel(broken), Shop().tools).stream("please")
    events: list[AgentEvent] = []

    async def listen() -> None:
        async for event in run:
            events.append(event)

    with pytest.raises(ModelError, match="no connection"):
        await listen()
    assert names(events) == ["ModelAsked"]
    with pytest.raises(ModelError, match="no connection"):
        await run.result()
    assert run.so_far("failed", "no connection").inferences == 1


async def test_a_wrong_call_is_told_at_once() -> None:
    with pytest.raises(UsageError, match="a request is text"):
        Shop().agent().stream(7)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="a plan is text"):
        Shop().agent().stream_plan(7)  # type: ignore[arg-type]


def test_a_stream_belongs_to_one_event_loop() -> None:
    run = Agent(ScriptedModel(['{"answer": "hello"}']), []).stream("please")
    assert asyncio.run(run.result()).answer == "hello"
    with pytest.raises(UsageError, match="event loop"):
        asyncio.run(run.result())


def test_the_events_are_those_of_the_public_names() -> None:
    assert RunStarted.__module__ == RunFinished.__module__ == "toolplan.run.events"
    assert ModelReplied.__module__ == PlanAccepted.__module__ == "toolplan.agent_events"


async def test_every_event_has_a_json_form() -> None:
    shop = Shop()
    wrong = [{"tool_name": "count", "arguments": {"thing": "x"}}, {"tool_name": "cuont", "arguments": {}}]
    async with shop.agent(wrong, PLAN).stream("please") as run:
        documents = [json.loads(json.dumps(event_to_json(event))) async for event in run]
    kinds = [document["event"] for document in documents]
    assert {"model_asked", "early_started", "early_discarded", "plan_refused", "plan_accepted"} < set(kinds)
    by_kind = {document["event"]: document for document in documents}
    assert by_kind["plan_refused"]["rejection"][0]["code"] == "TP201"
    assert by_kind["plan_accepted"]["checked"]["plan"]["steps"][1]["tool_name"] == "order"
    assert by_kind["step_finished"]["record"]["result"] == "ordered"
    assert by_kind["model_replied"]["usage"]["output_tokens"] > 0
    assert kinds[-1] == "request_finished"
    assert documents[-1]["result"] == (await run.result()).to_dict()
