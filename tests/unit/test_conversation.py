"""A conversation: what was said and done before is in view, in every mode, and can be taken elsewhere."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from toolplan import Agent, ToolSet, UsageError, tool
from toolplan.conversation import Conversation, Exchange, trimmed
from toolplan.models import FunctionModel, Message, ModelRequest, Reply, ToolCallPart
from toolplan.values import Json


class Shop:
    def __init__(self) -> None:
        self.log: list[str] = []

        @tool(reads="stock")
        def find(word: str) -> list[dict[str, Any]]:
            self.log.append(f"find {word}")
            return [{"id": 7, "name": f"red {word}"}, {"id": 9, "name": f"blue {word}"}]

        @tool(writes="orders")
        def order(id: int) -> str:
            self.log.append(f"order {id}")
            return f"order of {id} placed"

        self.tools = ToolSet.of([find, order])


class Script:
    def __init__(self, *replies: Any) -> None:
        self.replies = [reply if isinstance(reply, Reply | str) else json.dumps(reply) for reply in replies]
        self.requests: list[ModelRequest] = []
        self.model = FunctionModel(self._reply)

    def _reply(self, request: ModelRequest) -> Reply | str:
        self.requests.append(request)
        return self.replies.pop(0)


def calls(*given: tuple[str, dict[str, Any]]) -> Reply:
    return Reply("", tuple(ToolCallPart(f"c{n}", *call) for n, call in enumerate(given)), "tool_call")


FIND = {
    "steps": [{"tool_name": "find", "arguments": {"word": "lamp"}, "result_variable": "lamps"}],
    "answer": "{lamps}",
}
ORDER = {"steps": [{"tool_name": "order", "arguments": {"id": "{lamps[1].id}"}}], "answer": "{order}"}


def talk(script: Script, shop: Shop, **options: Any) -> Conversation:
    return Agent(script.model, shop.tools, early_start=False).conversation(**options)


def test_a_later_plan_uses_an_earlier_result_by_its_name() -> None:
    shop, script = Shop(), Script(FIND, ORDER)
    conversation = talk(script, shop)
    assert conversation.send_sync("Find lamps.").outcome == "succeeded"
    second = conversation.send_sync("Order the blue one.")
    assert (second.outcome, second.answer) == ("succeeded", "order of 9 placed")
    assert shop.log == ["find lamp", "order 9"]
    assert [step.id for step in second.steps] == ["s2"]
    told = script.requests[1].messages[-1].content
    assert told.endswith("The request:\nOrder the blue one.")
    (line,) = [json.loads(line) for line in told.splitlines() if line.startswith("{")]
    assert line["request"] == "Find lamps."
    assert line["done"][0]["name"] == "lamps"
    assert line["done"][0]["result"][1] == {"id": 9, "name": "blue lamp"}


def test_the_first_request_stands_alone() -> None:
    script = Script(FIND)
    talk(script, Shop()).send_sync("Find lamps.")
    assert script.requests[0].messages[-1].content == "Find lamps."


def test_what_was_done_before_may_be_done_again() -> None:
    """Another request is another wish: only within one request an effect is not repeated."""
    shop = Shop()
    once = {"steps": [{"tool_name": "order", "arguments": {"id": 7}}], "answer": "ok"}
    conversation = talk(Script(once, once), shop)
    assert [conversation.send_sync(text).outcome for text in ("Order number 7.", "Once more.")] == ["succeeded"] * 2
    assert shop.log == ["order 7", "order 7"]


def test_a_loop_sees_the_conversation_in_the_providers_shape() -> None:
    shop = Shop()
    script = Script(calls(("find", {"word": "lamp"})), "Two lamps.", calls(("order", {"id": 9})), "Ordered.")
    conversation = talk(script, shop, mode="loop")
    conversation.send_sync("Find lamps.")
    assert conversation.send_sync("Order the blue one.").answer == "Ordered."
    roles = [message.role for message in script.requests[-1].messages]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user", "assistant", "tool"]
    assert [message.role for message in conversation.messages] == [*roles[1:], "assistant"]


def test_steps_of_a_plan_become_calls_for_a_loop_and_the_other_way_round() -> None:
    shop = Shop()
    script = Script(FIND, calls(("order", {"id": 9})), "Ordered.", {"steps": [], "answer": "{s2}"})
    conversation = talk(script, shop)
    conversation.send_sync("Find lamps.")
    conversation.send_sync("Order the blue one.", mode="loop")
    asked = script.requests[1].messages
    assert [message.role for message in asked] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert asked[2].tool_calls == (ToolCallPart("s1", "find", {"word": "lamp"}),)
    assert asked[3].tool_results[0].id == "s1"
    assert json.loads(asked[3].tool_results[0].content)[0]["id"] == 7
    assert conversation.send_sync("What did it say?").answer == "order of 9 placed"


def test_failures_are_remembered_too() -> None:
    @tool(reads="x")
    def fail() -> str:
        raise RuntimeError("no light")

    script = Script([{"tool_name": "fail", "arguments": {}}], {"answer": "ok"})
    conversation = Agent(script.model, [fail], max_replans=0, early_start=False).conversation()
    assert conversation.send_sync("Light!").outcome == "failed"
    conversation.send_sync("And?")
    told = script.requests[1].messages[-1].content
    assert '"outcome": "failed"' in told
    assert "no light" in told


def test_export_and_import() -> None:
    shop = Shop()
    script = Script(FIND, calls(("find", {"word": "chair"})), "Two chairs.")
    first = talk(script, shop, token_budget=5000)
    first.send_sync("Find lamps.")
    first.send_sync("Find chairs.", mode="loop")
    document = json.loads(json.dumps(first.to_json()))
    later = Script({"steps": [{"tool_name": "order", "arguments": {"id": "{lamps[0].id}"}}], "answer": "{s2[1].name}"})
    second = Conversation.from_json(Agent(later.model, shop.tools, early_start=False), document)
    assert second.messages == first.messages
    assert second.to_json() == first.to_json()
    assert second.send_sync("Order the red lamp.").answer == "blue chair"
    assert shop.log[-1] == "order 7"
    assert second.exchanges[-1].done[0]["step"] == "s3"


@pytest.mark.parametrize("document", ["{}", '{"format": 2}', '{"format": 1}', '{"format": 1, "values": [{}]}'])
def test_what_is_no_conversation_is_refused(document: str) -> None:
    with pytest.raises(UsageError, match="conversation"):
        Conversation.from_json(Agent(), json.loads(document))


def test_the_oldest_is_left_out_first_and_whole() -> None:
    def exchange(n: int) -> Exchange:
        row: dict[str, Json] = {
            "step": f"s{n}",
            "tool": "t",
            "outcome": "succeeded",
            "arguments": {},
            "result": "word " * 80,
        }
        return Exchange(f"request {n}", "answer", "succeeded", (row,))

    exchanges = [exchange(n) for n in range(5)]
    assert trimmed(exchanges, None) == exchanges
    assert trimmed(exchanges, 260) == exchanges[-2:]
    assert trimmed(exchanges, 10) == []
    for kept in (trimmed(exchanges, budget) for budget in range(0, 800, 50)):
        messages = [message for each in kept for message in each.messages()]
        assert sum(len(m.tool_calls) for m in messages) == sum(len(m.tool_results) for m in messages)
        assert not messages or messages[0].role == "user"


def test_a_budget_bounds_what_is_sent() -> None:
    script = Script(*[json.dumps({"steps": [], "answer": "word " * 100}) for _ in range(6)])
    conversation = talk(script, Shop(), token_budget=400)
    for n in range(6):
        conversation.send_sync(f"request number {n}")
    last = script.requests[-1].messages[-1].content
    assert "request number 4" in last
    assert "request number 1" not in last
    assert len(conversation.exchanges) == 6


def test_long_results_are_cut_in_view_and_whole_by_name() -> None:
    @tool(reads="x")
    def read() -> str:
        return "a" * 50_000

    plan = '{"steps": [{"tool_name": "read", "arguments": {}, "result_variable": "text"}], "answer": "read"}'
    script = Script(plan, {"steps": [], "answer": "{len(text)}"})
    conversation = Agent(script.model, [read], early_start=False).conversation()
    conversation.send_sync("Read it.")
    assert conversation.send_sync("How long is it?").answer == "50000"
    assert "characters left out" in script.requests[1].messages[-1].content
    assert len(script.requests[1].messages[-1].content) < 4_000


def test_one_request_at_a_time() -> None:
    async def both() -> None:
        script = Script(FIND, FIND)
        conversation = talk(script, Shop())
        first = asyncio.create_task(conversation.send("Find."))
        await asyncio.sleep(0)
        with pytest.raises(UsageError, match="still answering"):
            await conversation.send("Find too.")
        await first
        assert len(conversation.exchanges) == 1

    asyncio.run(both())


def test_what_fails_before_anything_leaves_no_trace() -> None:
    def gone(_: ModelRequest) -> str:
        raise UsageError("no")

    conversation = Agent(FunctionModel(gone)).conversation()
    with pytest.raises(UsageError):
        conversation.send_sync("Hello?")
    assert conversation.exchanges == []
    assert conversation.messages == ()


def test_a_replanned_request_is_one_exchange() -> None:
    shop = Shop()
    script = Script(
        [{"tool_name": "find", "arguments": {"word": "x"}}, {"replan": "look"}], {"steps": [], "answer": "{s1[0].id}"}
    )
    conversation = talk(script, shop)
    result = conversation.send_sync("Find it.")
    assert (result.answer, result.replans) == ("7", 1)
    (exchange,) = conversation.exchanges
    assert [row["step"] for row in exchange.done] == ["s1"]
    assert exchange.messages()[0] == Message("user", "Find it.")


def test_where_results_came_from_goes_along_with_a_conversation() -> None:
    sent: list[str] = []

    @tool(reads="mail", untrusted=True)
    def mail() -> dict[str, str]:
        return {"sender": "eve@x.org"}

    @tool(writes="mail", guarded="to")
    def send(to: str) -> None:
        sent.append(to)

    steps = {"steps": [{"tool_name": "mail", "arguments": {}, "result_variable": "m"}], "answer": "{m.sender}"}
    answer = {"steps": [{"tool_name": "send", "arguments": {"to": "{m.sender}"}}], "answer": "ok"}
    said = {"steps": [{"tool_name": "send", "arguments": {"to": "ann@x.org"}}], "answer": "ok"}
    agent = Agent(Script(steps, answer, said).model, [mail, send], early_start=False)
    first = agent.conversation()
    first.send_sync("Who wrote?")
    again = Conversation.from_json(agent, json.loads(json.dumps(first.to_json())))
    waiting = again.send_sync("Answer it.")
    assert (waiting.outcome, waiting.approvals[0].verdict.names) == ("waiting", ("untrusted value",))
    assert again.send_sync("Write to ann@x.org.").outcome == "succeeded"
    assert sent == ["ann@x.org"]


# ---- what happened before a request was broken off


async def _cancelled(mode: Any, *, at_second_call: bool = False) -> tuple[Shop, Conversation, list[ModelRequest]]:
    """A conversation whose first request was cancelled when its order had been placed."""
    shop, requests, waits = Shop(), list[ModelRequest](), asyncio.Event()

    @tool(writes="orders", name="wait")
    async def wait_for_it() -> str:
        waits.set()
        await asyncio.sleep(60)
        return "never"

    async def reply(request: ModelRequest) -> Reply | str:
        requests.append(request)
        if len(requests) == 1 and mode == "plan":
            return json.dumps(
                {"steps": [{"tool_name": "order", "arguments": {"id": 7}}, {"tool_name": "wait"}], "answer": "ok"}
            )
        if len(requests) == 1:
            more = [("wait", dict[str, Any]())] if at_second_call else []
            return calls(("order", {"id": 7}), *more)
        if len(requests) == 2 and mode == "loop" and not at_second_call:
            waits.set()
            await asyncio.sleep(60)
        return "fine"

    agent = Agent(FunctionModel(reply), [*shop.tools, wait_for_it], early_start=False, policy="declared")
    conversation = agent.conversation(mode=mode)
    task = asyncio.create_task(conversation.send("Order 7."))
    await asyncio.wait_for(waits.wait(), 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    return shop, conversation, requests


@pytest.mark.parametrize(("mode", "at_second_call"), [("loop", False), ("loop", True), ("plan", True)])
@pytest.mark.parametrize("next_mode", ["loop", "plan"])
def test_what_was_done_before_a_request_was_cancelled_is_remembered(
    mode: Any, at_second_call: bool, next_mode: Any
) -> None:
    async def play() -> None:
        shop, conversation, requests = await _cancelled(mode, at_second_call=at_second_call)
        assert shop.log == ["order 7"]
        (exchange,) = conversation.exchanges
        assert exchange.outcome == "cancelled"
        assert [(row["tool"], row["outcome"]) for row in exchange.done][:1] == [("order", "succeeded")]
        await conversation.send("Go on.", mode=next_mode)
        assert "order of 7 placed" in requests[-1].text
        if next_mode == "loop":
            asked = [call.id for message in requests[-1].messages for call in message.tool_calls]
            told = [result.id for message in requests[-1].messages for result in message.tool_results]
            assert asked == told
            assert asked

    asyncio.run(play())


def test_of_a_request_that_was_cancelled_before_anything_was_done_nothing_is_kept() -> None:
    async def play() -> None:
        began = asyncio.Event()

        async def reply(request: ModelRequest) -> str:
            began.set()
            await asyncio.sleep(60)
            return ""

        conversation = Agent(FunctionModel(reply), Shop().tools).conversation()
        task = asyncio.create_task(conversation.send("Order 7."))
        await began.wait()
        task.cancel()
        await asyncio.wait({task})
        assert conversation.exchanges == []

    asyncio.run(play())
