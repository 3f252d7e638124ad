"""Providers against real HTTP servers on loopback, in OpenAI's, Anthropic's and Gemini's protocols."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
import socket
import threading
import time
import traceback
from collections.abc import Sequence
from email.utils import formatdate
from typing import Any

import pytest

from integration.servers import (
    AnthropicServer,
    Fails,
    Gate,
    GeminiServer,
    Hangs,
    LoopbackServer,
    OpenAIServer,
    Says,
    Sends,
)
from toolplan.errors import ModelError, UsageError
from toolplan.models import Message, ModelRequest, Reply, Retry, ToolResultPart, Usage, model_from_name

KEY = "sk-proj-abcDEF123456789"
QUICK = Retry(max_retries=2, base_seconds=0.001, ceiling_seconds=0.002)

OPEN = {
    "type": "object",
    "properties": {"steps": {"type": "array", "items": {"type": "object"}}},
    "required": ["steps"],
}
"""A plan whose steps are objects of any shape: what strict modes would empty."""

CLOSED = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
PLAN = '{"steps": [{"tool_name": "get_weather", "arguments": {"city": "北京"}}]}'
PIECES = ('{"steps": [{"tool_name": "get_wea', 'ther", "arguments": {"city": "北', '京"}}]}')


def asking(schema: dict[str, Any] | None = None, **options: Any) -> ModelRequest:
    messages = (
        Message("system", "You plan."),
        Message("user", "明天北京的天气"),
        Message("assistant", "[]"),
        Message("user", "again"),
    )
    return ModelRequest(messages, schema=schema, **options)


def model_at(server: LoopbackServer, provider: str | None = None, **options: Any):
    if provider is None:
        provider = {OpenAIServer: "openai", AnthropicServer: "anthropic", GeminiServer: "google"}[type(server)]
    options.setdefault("retry", QUICK)
    return model_from_name(f"{provider}:test-model", server.url, KEY, **options)


async def ask(model: Any, request: ModelRequest, *, streamed: bool) -> tuple[Reply, list[str]]:
    heard: list[str] = []
    reply = await model.ask(request, heard.append if streamed else None)
    return reply, heard


both_protocols = pytest.mark.parametrize("serve", [OpenAIServer, AnthropicServer], ids=["openai", "anthropic"])
every_protocol = pytest.mark.parametrize(
    "serve", [OpenAIServer, AnthropicServer, GeminiServer], ids=["openai", "anthropic", "gemini"]
)
both_ways = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])


# ---- what is sent


@both_ways
async def test_openai_gets_messages_limits_and_the_schema_natively(streamed: bool):
    request = asking(OPEN, max_tokens=500, temperature=0.5)
    before = copy.deepcopy(request.schema)
    with OpenAIServer(Says(PLAN)) as server:
        reply, _ = await ask(model_at(server), request, streamed=streamed)
    seen = server.requests[0]
    assert seen.body["model"] == "test-model"
    assert seen.body["messages"] == [
        {"role": "system", "content": "You plan."},
        {"role": "user", "content": "明天北京的天气"},
        {"role": "assistant", "content": "[]"},
        {"role": "user", "content": "again"},
    ]
    assert seen.body["max_completion_tokens"] == 500
    assert seen.body["temperature"] == 0.5
    assert seen.body["stream"] is streamed
    assert "tools" not in seen.body
    assert seen.headers["authorization"] == f"Bearer {KEY}"
    given = seen.body["response_format"]["json_schema"]
    assert given["name"] == "submit_plan"
    assert given["strict"] is False
    # A step may still be any object: nothing was closed on the way.
    step = given["schema"]["properties"]["steps"]["items"]
    assert step["type"] == "object"
    assert step["additionalProperties"] is True
    assert (reply.text, reply.plan_text, reply.output) == (PLAN, PLAN, "native")
    assert request.schema == before


@both_ways
@pytest.mark.parametrize(
    ("name", "choice"),
    [("claude-haiku-4-5", "any"), ("claude-sonnet-5-5", "auto")],  # a model that always thinks cannot be forced
)
async def test_anthropic_gets_messages_limits_and_the_open_schema_as_a_tool(streamed: bool, name: str, choice: str):
    with AnthropicServer(Says(calls=[("submit_plan", PLAN)])) as server:
        model = model_from_name(f"anthropic:{name}", server.url, KEY)
        reply, _ = await ask(model, asking(OPEN, max_tokens=500), streamed=streamed)
    body = server.requests[0].body
    assert body["system"] == "You plan."
    texts = [(m["role"], "".join(part["text"] for part in m["content"])) for m in body["messages"]]
    assert texts == [("user", "明天北京的天气"), ("assistant", "[]"), ("user", "again")]
    assert body["max_tokens"] == 500
    assert body["stream"] is streamed
    assert [tool["name"] for tool in body["tools"]] == ["submit_plan"]
    assert body["tools"][0]["input_schema"]["properties"]["steps"]["items"]["additionalProperties"] is True
    assert body["tool_choice"]["type"] == choice
    assert KEY in "".join(server.requests[0].headers.values())
    assert json.loads(reply.plan_text) == json.loads(PLAN)
    assert reply.text == ""
    assert reply.tool_calls[0].name == "submit_plan"
    assert reply.output == "tool"


async def test_anthropic_gets_a_spelled_out_schema_natively():
    with AnthropicServer(Says('{"city": "Paris", "days": 2}')) as server:
        reply = await model_from_name("anthropic:claude-sonnet-5-5", server.url, KEY).ask(asking(CLOSED))
    given = server.requests[0].body["output_config"]["format"]
    assert given["type"] == "json_schema"
    assert set(given["schema"]["properties"]) == {"city", "days"}
    assert reply.output == "native"


@both_ways
async def test_gemini_is_told_an_open_schema_in_words(streamed: bool):
    with GeminiServer(Says(list(PIECES))) as server:
        reply, heard = await ask(model_at(server), asking(OPEN, max_tokens=500), streamed=streamed)
    body = server.requests[0].body
    said = body["systemInstruction"]["parts"][0]["text"]
    assert said.startswith("You plan.\n\n")
    assert json.loads(said.rpartition("\n")[2]) == OPEN
    assert body["generationConfig"]["maxOutputTokens"] == 500
    assert (reply.text, reply.output, reply.finish_reason) == (PLAN, "text", "stop")
    assert heard == (list(PIECES) if streamed else [])


@both_ways
async def test_gemini_takes_a_spelled_out_schema_natively(streamed: bool):
    with GeminiServer(Says('{"city": "Paris", "days": 2}')) as server:
        reply, _ = await ask(model_at(server), asking(CLOSED), streamed=streamed)
    config = server.requests[0].body["generationConfig"]
    assert config["responseMimeType"] == "application/json"
    assert "city" in json.dumps(config)
    assert reply.output == "native"


@pytest.mark.parametrize("strict", [True, False])
async def test_strict_is_sent_only_when_asked_for(strict: bool):
    with OpenAIServer(Says('{"city": "Paris", "days": 2}')) as server:
        await model_at(server).ask(asking(CLOSED, schema_strict=strict))
    assert server.requests[0].body["response_format"]["json_schema"]["strict"] is strict


async def test_strict_is_not_sent_with_a_schema_that_it_would_empty():
    with OpenAIServer(Says(PLAN)) as server:
        await model_at(server).ask(asking(OPEN, schema_strict=True))
    assert server.requests[0].body["response_format"]["json_schema"]["strict"] is False


async def test_a_schema_that_is_not_an_object_goes_into_the_prompt():
    wanted = {"type": "array", "items": {"type": "string"}}
    with OpenAIServer(Says('["a"]')) as server:
        reply = await model_at(server).ask(asking(wanted))
    assert "response_format" not in server.requests[0].body
    assert json.dumps(wanted, separators=(",", ":")) in server.requests[0].body["messages"][0]["content"]
    assert reply.output == "text"


async def test_what_the_messages_already_say_is_not_said_again():
    with OpenAIServer(Says("[]")) as server:
        await model_at(server, output="text").ask(asking(OPEN, schema_stated=True))
    assert server.requests[0].body["messages"][0]["content"] == "You plan."


@pytest.mark.parametrize("output", ["native", "tool", "text"])
async def test_the_way_a_schema_travels_can_be_chosen(output: str):
    answer = Says(calls=[("submit_plan", PLAN)]) if output == "tool" else Says(PLAN)
    with OpenAIServer(answer) as server:
        reply = await model_at(server, output=output).ask(asking(OPEN))
    body = server.requests[0].body
    assert ("response_format" in body, "tools" in body) == (output == "native", output == "tool")
    assert reply.output == output
    assert reply.plan_text == PLAN


# ---- what comes back


@both_protocols
@both_ways
async def test_text_usage_and_reason_are_read(serve: type[LoopbackServer], streamed: bool):
    with serve(Says(["Hello, ", "world."], usage=(120, 30, 40))) as server:
        reply, heard = await ask(model_at(server), asking(), streamed=streamed)
    assert reply.text == reply.plan_text == "Hello, world."
    assert heard == (["Hello, ", "world."] if streamed else [])
    assert reply.finish_reason == "stop"
    assert reply.usage == Usage(requests=1, input_tokens=120, output_tokens=30, cached_input_tokens=40)
    assert reply.model.startswith("test-model")
    assert reply.notes == ()


@both_protocols
@both_ways
async def test_thinking_is_kept_apart(serve: type[LoopbackServer], streamed: bool):
    with serve(Says("4", thinking="two and two")) as server:
        reply, heard = await ask(model_at(server), asking(), streamed=streamed)
    assert (reply.text, reply.thinking) == ("4", "two and two")
    assert "".join(heard) in ("", "4")


@both_protocols
@both_ways
async def test_arguments_of_the_plan_tool_are_heard_and_kept_as_written(serve: type[LoopbackServer], streamed: bool):
    with serve(Says("I will plan. ", calls=[("submit_plan", list(PIECES))])) as server:
        reply, heard = await ask(model_at(server, output="tool"), asking(OPEN), streamed=streamed)
    if streamed:
        assert heard == ["I will plan. ", *PIECES]
        assert reply.plan_text == PLAN
    assert json.loads(reply.plan_text) == json.loads(PLAN)
    assert reply.text == "I will plan. "
    assert reply.finish_reason == "tool_call"


@both_ways
async def test_calls_of_other_tools_are_kept_in_order_and_read_as_a_plan(streamed: bool):
    calls = [("get_weather", '{"city": "Paris"}'), ("send_email", '{"to": "a@x.org"}')]
    with OpenAIServer(Says(calls=calls)) as server:
        reply, heard = await ask(model_at(server, output="tool"), asking(OPEN), streamed=streamed)
    assert [(call.id, call.name) for call in reply.tool_calls] == [("call_0", "get_weather"), ("call_1", "send_email")]
    assert json.loads(reply.plan_text) == [
        {"tool_name": "get_weather", "arguments": {"city": "Paris"}},
        {"tool_name": "send_email", "arguments": {"to": "a@x.org"}},
    ]
    assert heard == []


@both_ways
async def test_usage_that_is_not_reported_is_estimated_and_says_so(streamed: bool):
    with OpenAIServer(Says("Hello, world.", usage=None)) as server:
        reply, _ = await ask(model_at(server), asking(), streamed=streamed)
    assert reply.usage.estimated
    assert reply.usage.requests == 1
    assert reply.usage.input_tokens > 0
    assert reply.usage.output_tokens > 0


@both_protocols
@both_ways
async def test_a_truncated_reply_says_that_it_is(serve: type[LoopbackServer], streamed: bool):
    finish = "length" if serve is OpenAIServer else "max_tokens"
    with serve(Says('{"steps": [{"tool_na', finish=finish)) as server:
        reply, _ = await ask(model_at(server), asking(), streamed=streamed)
    assert reply.finish_reason == "length"
    assert reply.is_cut_off
    assert reply.text == '{"steps": [{"tool_na'


# ---- streaming


@both_protocols
async def test_pieces_arrive_while_the_server_still_holds_the_rest(serve: type[LoopbackServer]):
    gates = [Gate(), Gate()]
    waiting = list(gates)
    heard: list[str] = []

    def listen(piece: str) -> None:
        heard.append(piece)
        # The server sends the next piece only after this one has been heard here.
        if waiting:
            waiting.pop(0).open()

    with serve(Says(list(PIECES), gates=gates)) as server:
        reply = await model_at(server).ask(asking(), listen)
    assert heard == list(PIECES)
    assert reply.text == PLAN
    assert not waiting


@both_protocols
async def test_arguments_arrive_while_the_server_still_holds_the_rest(serve: type[LoopbackServer]):
    gates = [Gate(), Gate(), Gate()]
    heard: list[str] = []

    def listen(piece: str) -> None:
        heard.append(piece)
        gates[len(heard) if serve is OpenAIServer else len(heard) - 1].open()

    if serve is OpenAIServer:
        # Its first event names the tool and has no arguments, so nothing is heard of it.
        gates.insert(0, Gate())
        gates[0].open()
    with serve(Says(calls=[("submit_plan", list(PIECES))], gates=gates)) as server:
        reply = await model_at(server, output="tool").ask(asking(OPEN), listen)
    assert heard == list(PIECES)
    assert reply.plan_text == PLAN


@both_protocols
@pytest.mark.parametrize("pieces", [0, 1, 2])
async def test_a_dropped_stream_is_an_error_not_a_reply(serve: type[LoopbackServer], pieces: int):
    heard: list[str] = []
    answers = [Says(list(PIECES), breaks_after=pieces)] * (1 if pieces else 3)
    with serve(*answers) as server, pytest.raises(ModelError, match="broke off") as caught:
        await model_at(server).ask(asking(), heard.append)
    assert "".join(heard) == "".join(PIECES[:pieces])
    if pieces:
        assert f"after {len(''.join(heard))} characters" in str(caught.value)
    # Text that was passed on cannot be taken back, so only a stream of which nothing was heard is asked for again.
    assert len(server.requests) == len(answers)


@every_protocol
@pytest.mark.parametrize("pieces", [1, 3])
async def test_a_stream_that_just_ends_is_an_error_not_a_reply(serve: type[LoopbackServer], pieces: int):
    with serve(Says(list(PIECES), stops_after=pieces)) as server, pytest.raises(ModelError, match="without saying why"):
        await model_at(server).ask(asking(), lambda _: None)
    assert len(server.requests) == 1


@both_protocols
async def test_a_dropped_body_is_asked_for_again(serve: type[LoopbackServer]):
    with serve(Says("x", breaks_after=0), Says("whole")) as server:
        reply = await model_at(server).ask(asking())
    assert reply.text == "whole"
    assert len(server.requests) == 2
    assert "broke off" in reply.notes[0]


async def test_a_stream_nobody_heard_is_asked_for_again_and_counted():
    with OpenAIServer(Says(list(PIECES), breaks_after=2), Says(PLAN, usage=(10, 5, 0))) as server:
        reply = await model_at(server, stream=True).ask(asking())
    assert reply.text == PLAN
    # The broken inference was an inference.
    assert reply.usage.requests == 2
    assert len(server.requests) == 2


async def test_what_a_listener_raises_comes_out_unchanged_and_ends_the_request():
    class Enough(Exception):
        pass

    def listen(_: str) -> None:
        raise Enough

    gate = Gate()
    with OpenAIServer(Says(list(PIECES), gates=[gate])) as server:
        with pytest.raises(Enough):
            await model_at(server).ask(asking(), listen)
        assert await asyncio.to_thread(server.requests[0].left.wait, 5)
        gate.open()
    assert len(server.requests) == 1


# ---- failures


@pytest.mark.parametrize(
    ("serve", "streamed", "seconds"),
    [(OpenAIServer, False, 1), (OpenAIServer, True, 0), (AnthropicServer, False, 0), (AnthropicServer, True, 1)],
)
async def test_429_waits_as_long_as_it_is_told(serve: type[LoopbackServer], streamed: bool, seconds: int):
    with serve(Fails(429, "slow down", retry_after=str(seconds)), Says("ok")) as server:
        began = time.monotonic()
        reply, heard = await ask(model_at(server), asking(), streamed=streamed)
        took = time.monotonic() - began
    assert reply.text == "ok"
    assert heard == (["ok"] if streamed else [])
    assert took >= seconds
    assert len(server.requests) == 2
    assert "slow down" in reply.notes[0]
    assert reply.usage.requests == 1


@both_protocols
async def test_a_wait_that_is_too_long_is_not_begun(serve: type[LoopbackServer]):
    with (
        serve(Fails(429, "slow down", retry_after="3600")) as server,
        pytest.raises(ModelError, match="asks to wait 3600 s") as caught,
    ):
        await model_at(server).ask(asking())
    assert caught.value.status == 429
    assert len(server.requests) == 1


@both_protocols
@both_ways
@pytest.mark.parametrize("status", [500, 503, 529])
async def test_5xx_is_asked_again_and_then_given_up(serve: type[LoopbackServer], streamed: bool, status: int):
    with (
        serve(*[Fails(status, "the engine is on fire")] * 3) as server,
        pytest.raises(ModelError, match=r"after 3 attempts.*the engine is on fire") as caught,
    ):
        await ask(model_at(server), asking(), streamed=streamed)
    # Three requests in all: the SDKs' own retries are off.
    assert len(server.requests) == 3
    assert (caught.value.status, caught.value.model) == (status, "test-model")
    assert caught.value.provider in ("openai", "anthropic")


async def test_no_retry_when_none_is_wanted():
    with OpenAIServer(Fails(500)) as server, pytest.raises(ModelError):
        await model_at(server, retry=Retry(0)).ask(asking())
    assert len(server.requests) == 1


@both_protocols
@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
async def test_what_cannot_succeed_is_not_asked_again(serve: type[LoopbackServer], status: int):
    with (
        serve(Fails(status, "no such thing")) as server,
        pytest.raises(ModelError, match=rf"\(HTTP {status}\): no such thing") as caught,
    ):
        await model_at(server).ask(asking())
    assert caught.value.status == status
    assert len(server.requests) == 1


async def test_an_exhausted_quota_is_not_asked_again():
    error = {"code": "insufficient_quota", "type": "insufficient_quota"}
    with (
        OpenAIServer(Fails(429, "You exceeded your current quota", error=error)) as server,
        pytest.raises(ModelError, match="no quota or credit left"),
    ):
        await model_at(server).ask(asking())
    assert len(server.requests) == 1


async def test_an_answer_without_choices_is_asked_for_again_and_then_an_error():
    with (
        OpenAIServer(*[Says(empty=True)] * 3) as server,
        pytest.raises(ModelError, match="gave no reply after 3 attempts: its answer holds no choices") as caught,
    ):
        await model_at(server).ask(asking())
    assert caught.value.reason == "unreadable"
    with OpenAIServer(Says(empty=True), Says("ok")) as server:
        assert (await model_at(server).ask(asking())).text == "ok"


LOST = [Says(empty=True), Says("x", breaks_after=0), Sends("<html>the gateway</html>"), Sends("{}"), Hangs(), Says("")]
"""Answers, or none, to requests that the model has worked on."""


@both_protocols
@both_ways
@pytest.mark.parametrize("answer", LOST)
async def test_a_request_whose_reply_was_lost_was_an_inference(serve: Any, streamed: bool, answer: Any):
    options: dict[str, Any] = {"retry": Retry(0), "timeout_seconds": 0.5 if isinstance(answer, Hangs) else 60}
    if serve is AnthropicServer and isinstance(answer, Says) and answer.empty:
        return  # its protocol has no choices
    with serve(answer) as server, pytest.raises(ModelError) as caught:
        await ask(model_at(server, **options), asking(), streamed=streamed)
    assert (caught.value.inferences, caught.value.usage.requests) == (1, 1)


@pytest.mark.parametrize("answer", [Fails(500), Fails(429), Fails(400), Fails(401)])
async def test_a_request_that_was_turned_down_was_none(answer: Fails):
    with OpenAIServer(answer) as server, pytest.raises(ModelError) as caught:
        await model_at(server, retry=Retry(0)).ask(asking())
    assert (caught.value.inferences, caught.value.usage.requests) == (0, 0)


async def test_a_request_that_reached_nobody_was_none():
    with OpenAIServer() as server:
        url = server.url
    model = model_from_name("openai:test-model", url.replace(url.split(":")[2].split("/")[0], "9"), KEY, retry=QUICK)
    with pytest.raises(ModelError) as caught:
        await model.ask(asking())
    assert (caught.value.reason, caught.value.usage.requests) == ("unreachable", 0)


@both_ways
async def test_what_lost_replies_have_cost_is_counted_as_far_as_it_was_said(streamed: bool):
    lost = Says(empty=True, usage=(1000, 7, 0))
    with OpenAIServer(lost, Fails(500), Says("ok", usage=(3, 2, 0))) as server:
        reply, _ = await ask(model_at(server), asking(), streamed=streamed)
    assert (reply.usage.requests, reply.usage.input_tokens, reply.usage.output_tokens) == (2, 1003, 9)


async def test_a_conversation_that_cannot_be_sent_is_no_failure_of_the_model():
    stray = Message("tool", tool_results=(ToolResultPart("x", "f", "1"),))
    with OpenAIServer() as server, pytest.raises(UsageError, match="answers no open call of the message before it"):
        await model_at(server).ask(ModelRequest((Message("user", "hi"), stray)))
    assert server.requests == []


NO_REPLIES = ["<html><body>502 from the gateway</body></html>", '{"id": "x", "choi', "   \n ", "null", "{}"]


@every_protocol
@both_ways
@pytest.mark.parametrize("body", NO_REPLIES)
async def test_an_answer_that_is_no_reply_is_asked_for_again(serve: type[LoopbackServer], streamed: bool, body: str):
    if serve is GeminiServer and body in ("null", "{}"):
        return  # in its protocol every field may be missing; what is left is an empty reply
    with serve(Sends(body), Says("ok")) as server:
        reply, _ = await ask(model_at(server), asking(), streamed=streamed)
    assert reply.text == "ok"
    assert "could not be read" in reply.notes[0]
    assert "<" not in reply.notes[0]


@both_ways
async def test_broken_json_inside_a_stream_is_no_reply(streamed: bool):
    broken = Sends('data: {"id": "x", "cho\n\n', "text/event-stream")
    with OpenAIServer(broken, Says("ok")) as server:
        reply, _ = await ask(model_at(server), asking(), streamed=streamed)
    assert reply.text == "ok"


@pytest.mark.parametrize(
    ("serve", "error", "again"),
    [
        (AnthropicServer, {"type": "overloaded_error", "message": "Overloaded"}, True),
        (AnthropicServer, {"type": "invalid_request_error", "message": "bad"}, False),
        (OpenAIServer, {"message": "The server is overloaded", "type": "server_error", "code": None}, True),
        (OpenAIServer, {"message": "Provider disconnected", "code": 502}, True),
        (OpenAIServer, {"message": "bad", "type": "invalid_request_error"}, False),
    ],
)
async def test_an_error_inside_a_stream(serve: type[LoopbackServer], error: dict[str, Any], again: bool):
    with serve(Says("", stream_error=error), *([Says("ok")] if again else [])) as server:
        asked = model_at(server).ask(asking(), lambda _: None)
        if again:
            assert (await asked).text == "ok"
        else:
            with pytest.raises(ModelError, match="bad"):
                await asked
    # After text was passed on there is no second try.
    with serve(Says("some text", stream_error=error)) as server, pytest.raises(ModelError, match="broke off"):
        await model_at(server).ask(asking(), lambda _: None)


@both_protocols
async def test_a_stream_that_falls_silent_is_given_up(serve: type[LoopbackServer]):
    gate = Gate()
    heard: list[str] = []
    with serve(Says(["a", "b"], gates=[gate])) as server:
        with pytest.raises(ModelError, match=r"fell silent after 1 characters: nothing came for 0.3 s") as caught:
            await model_at(server, stall_seconds=0.3).ask(asking(), heard.append)
        assert await asyncio.to_thread(server.requests[0].left.wait, 5)
        gate.open()
    assert (heard, caught.value.reason, caught.value.inferences) == (["a"], "timeout", 1)


async def test_a_stream_nobody_heard_that_falls_silent_is_asked_for_again():
    gate = Gate()
    with OpenAIServer(Says(["a", "b"], gates=[gate]), Says("whole")) as server:
        reply = await model_at(server, stall_seconds=0.3, stream=True).ask(asking())
        gate.open()
    assert (reply.text, reply.usage.requests) == ("whole", 2)


async def test_a_slow_stream_is_not_a_silent_one():
    gates = [Gate() for _ in range(4)]
    waiting = list(gates)

    def listen(_: str) -> None:
        if waiting:
            threading.Timer(0.15, waiting.pop(0).open).start()

    with OpenAIServer(Says(list("abcde"), gates=gates)) as server:
        reply = await model_at(server, stall_seconds=0.4).ask(asking(), listen)
    assert reply.text == "abcde"


@every_protocol
async def test_retry_after_may_be_a_date(serve: type[LoopbackServer]):
    date = formatdate(time.time() + 2, usegmt=True)  # whole seconds, so that it is one to two from now
    with serve(Fails(429, "slow down", retry_after=date), Says("ok")) as server:
        began = time.time()
        reply = await model_at(server).ask(asking())
        took = time.time() - began
    assert reply.text == "ok"
    assert took >= 0.9
    assert "asks to wait" in reply.notes[0]


@every_protocol
async def test_retry_after_counts_for_a_5xx_too(serve: type[LoopbackServer]):
    with (
        serve(Fails(503, "maintenance", retry_after="900")) as server,
        pytest.raises(ModelError, match="asks to wait 900 s") as caught,
    ):
        await model_at(server).ask(asking())
    assert (len(server.requests), caught.value.reason) == (1, "failed")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Fails(400, "bad"), "refused"),
        (Fails(401, "bad key"), "key"),
        (Fails(402, "Insufficient Balance"), "no_quota"),
        (Fails(404, "no such model"), "not_found"),
        (Fails(429, "slow"), "busy"),
        (Fails(500, "oops"), "failed"),
        (Says(""), "empty"),
        (Says(refusal="no"), "declined"),
        (Says("", finish="content_filter"), "declined"),
        (Says(empty=True), "unreadable"),
        (Says("x", breaks_after=0), "broke_off"),
        (Hangs(), "timeout"),
    ],
)
async def test_an_error_says_in_one_word_what_went_wrong(answer: Any, reason: str):
    with OpenAIServer(answer) as server, pytest.raises(ModelError) as caught:
        await model_at(server, retry=Retry(0), timeout_seconds=1.0 if isinstance(answer, Hangs) else 60).ask(asking())
    assert caught.value.reason == reason


async def test_a_stream_without_choices_is_an_error():
    with OpenAIServer(*[Says(empty=True)] * 3) as server, pytest.raises(ModelError, match="without saying why"):
        await model_at(server).ask(asking(), lambda _: None)


@both_protocols
@both_ways
async def test_an_empty_reply_is_an_error(serve: type[LoopbackServer], streamed: bool):
    with serve(Says("")) as server, pytest.raises(ModelError, match="gave an empty reply"):
        await ask(model_at(server), asking(), streamed=streamed)


@both_ways
async def test_a_refusal_is_an_error_with_its_words(streamed: bool):
    with (
        OpenAIServer(Says(refusal="I cannot help with that.")) as server,
        pytest.raises(ModelError, match="declined: I cannot help with that"),
    ):
        await ask(model_at(server), asking(), streamed=streamed)


@both_ways
async def test_thinking_that_uses_up_all_tokens_says_so(streamed: bool):
    with (
        OpenAIServer(Says(thinking="hmm, hmm", finish="length")) as server,
        pytest.raises(ModelError, match="spent all its tokens on thinking; allow it more with `max_tokens`"),
    ):
        await ask(model_at(server), asking(), streamed=streamed)


async def test_a_proxy_page_is_shown_as_text():
    page = "<!doctype html><html><head><style>b{}</style></head><body><h1>502 Bad Gateway</h1></body></html>"
    with (
        OpenAIServer(*[Fails(502, body=page)] * 3) as server,
        pytest.raises(ModelError, match=r"\(HTTP 502\): 502 Bad Gateway$"),
    ):
        await model_at(server).ask(asking())


async def test_a_server_that_is_not_there():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    model = model_from_name("ollama:qwen3", f"http://127.0.0.1:{port}/v1", retry=QUICK)
    with pytest.raises(ModelError) as caught:
        await model.ask(asking())
    assert f"could not reach `ollama:qwen3` at http://127.0.0.1:{port}/v1 after 3 attempts" in str(caught.value)
    assert "start it with `ollama serve`" in str(caught.value)


@pytest.mark.parametrize(("serve", "streamed"), [(OpenAIServer, True), (AnthropicServer, False)])
async def test_an_answer_that_does_not_come_in_time(serve: type[LoopbackServer], streamed: bool):
    with serve(Hangs()) as server:
        with pytest.raises(ModelError, match="did not answer in time"):
            await ask(model_at(server, timeout_seconds=1.5), asking(), streamed=streamed)
        assert await asyncio.to_thread(server.requests[0].left.wait, 5)
    # It may still be working on the first one, so it is not asked again.
    assert len(server.requests) == 1


# ---- secrets


@every_protocol
@both_ways
@pytest.mark.parametrize("status", [400, 401, 429, 500])
async def test_no_error_ever_shows_the_key(
    serve: type[LoopbackServer], streamed: bool, status: int, caplog: pytest.LogCaptureFixture
):
    leak = f"Incorrect API key provided: {KEY}; also Bearer {KEY[:12]}xyz and https://x.org/?api_key={KEY[3:]}"
    with serve(*[Fails(status, leak)] * (1 if status in (400, 401) else 3)) as server, caplog.at_level(logging.DEBUG):
        model = model_at(server)
        with pytest.raises(ModelError) as caught:
            await ask(model, asking(), streamed=streamed)
    shown = (
        "".join(traceback.format_exception(caught.value)) + repr(caught.value) + repr(model) + str(vars(caught.value))
    )
    chain: BaseException | None = caught.value
    while chain is not None:
        shown += repr(chain)
        chain = chain.__cause__ or chain.__context__
    ours = "".join(record.getMessage() for record in caplog.records if record.name.startswith("toolplan"))
    for text in (shown, ours):
        assert KEY not in text
        assert KEY[3:] not in text
        assert KEY[:12] not in text
    assert "Incorrect API key provided: [removed]" in shown


async def test_notes_do_not_show_the_key():
    with OpenAIServer(Fails(500, f"boom {KEY}"), Says("ok")) as server:
        reply = await model_at(server).ask(asking())
    assert "boom [removed]" in reply.notes[0]
    assert KEY not in repr(reply)


# ---- what a server refuses


@both_ways
@pytest.mark.parametrize(
    ("lacks", "ways"),
    [
        (["json_schema"], ["native", "tool"]),
        (["tools"], ["native"]),
        (["json_schema", "tools"], ["native", "tool", "text"]),
    ],
)
async def test_a_refused_schema_goes_one_level_down_and_is_remembered(
    streamed: bool, lacks: Sequence[str], ways: Sequence[str]
):
    used = ways[-1]
    answer = Says(calls=[("submit_plan", PLAN)]) if used == "tool" else Says(PLAN)
    with OpenAIServer(answer, answer, lacks=lacks) as server:
        model = model_at(server)
        reply, heard = await ask(model, asking(OPEN), streamed=streamed)
        assert (reply.plan_text, reply.output) == (PLAN, used)
        assert len(reply.notes) == len(ways) - 1
        assert all("refused the request" in note for note in reply.notes)
        assert [_way(seen.body) for seen in server.requests] == list(ways)
        assert "".join(heard) == (PLAN if streamed else "")
        again, _ = await ask(model, asking(OPEN), streamed=streamed)
    assert (again.output, again.notes) == (used, ())
    assert [_way(seen.body) for seen in server.requests] == [*ways, used]


def _way(body: dict[str, Any]) -> str:
    return "native" if "response_format" in body else "tool" if "tools" in body else "text"


async def test_going_one_level_down_does_not_use_up_the_retries():
    with OpenAIServer(Fails(503), Fails(503), Says(PLAN), lacks=["json_schema", "tools"]) as server:
        reply = await model_at(server).ask(asking(OPEN))
    assert (reply.plan_text, reply.output) == (PLAN, "text")
    assert [_way(seen.body) for seen in server.requests] == ["native", "tool", "text", "text", "text"]


async def test_llamacpp_refuses_tools_with_a_500():
    with OpenAIServer(Says(PLAN), lacks=["json_schema", "tools"], status=500) as server:
        server.error_body = lambda answer: {"error": {"code": 500, "message": "tools param requires --jinja flag"}}
        reply = await model_at(server, "llamacpp").ask(asking(OPEN))
    assert reply.output == "text"
    assert [_way(seen.body) for seen in server.requests] == ["native", "tool", "text"]


async def test_a_chosen_way_is_not_changed_behind_the_callers_back():
    with (
        OpenAIServer(lacks=["json_schema"]) as server,
        pytest.raises(ModelError, match="This response_format type is unavailable now"),
    ):
        await model_at(server, output="native").ask(asking(OPEN))
    assert len(server.requests) == 1


async def test_a_prompt_that_is_too_long_is_not_taken_for_a_refused_schema():
    message = "This model's maximum context length is 8192 tokens; you requested 9000 (8000 messages, 1000 tools)"
    with OpenAIServer(Fails(400, message)) as server, pytest.raises(ModelError, match="maximum context length"):
        await model_at(server).ask(asking(OPEN))
    assert len(server.requests) == 1


async def test_deepseek_is_not_asked_for_what_it_is_known_to_refuse():
    with OpenAIServer(Says(calls=[("submit_plan", PLAN)]), lacks=["json_schema", "max_completion_tokens"]) as server:
        model = model_from_name("deepseek:deepseek-chat", server.url, KEY)
        reply = await model.ask(asking(OPEN, max_tokens=9))
    assert (reply.output, reply.notes) == ("tool", ())
    assert server.requests[0].body["max_tokens"] == 9


async def test_dashscope_is_always_streamed():
    with OpenAIServer(Says(calls=[("submit_plan", PLAN)]), lacks=["json_schema", "max_completion_tokens"]) as server:
        reply = await model_from_name("qwen:qwen-plus", server.url, KEY).ask(asking(OPEN, max_tokens=9))
    assert (reply.output, reply.notes) == ("tool", ())
    assert server.requests[0].body["stream"] is True


async def test_mistral_refuses_to_stream_and_is_asked_without():
    with OpenAIServer(Says(PLAN), Says(PLAN), lacks=["stream_options", "max_completion_tokens"]) as server:
        model = model_from_name("mistral:mistral-large-latest", server.url, KEY)
        for _ in range(2):
            heard: list[str] = []
            reply = await model.ask(asking(OPEN, max_tokens=9), heard.append)
            assert "".join(heard) == reply.text == PLAN
    assert [seen.body["stream"] for seen in server.requests] == [True, False, False]


async def test_a_local_server_needs_no_key_and_gets_one_system_message(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    request = ModelRequest((Message("system", "A."), Message("system", "B."), Message("user", "hi")), max_tokens=9)
    for provider in ("ollama", "vllm", "llamacpp", "compatible"):
        with OpenAIServer(Says("ok"), lacks=["max_completion_tokens"]) as server:
            reply = await model_from_name(f"{provider}:qwen3:8b", server.url).ask(request)
        seen = server.requests[0]
        assert reply.text == "ok"
        assert seen.body["model"] == "qwen3:8b"
        assert [message["role"] for message in seen.body["messages"]] == ["system", "user"]
        # Another provider's key stays at home.
        assert KEY not in "".join(seen.headers.values())


# ---- cancelling, loops


@both_protocols
@both_ways
async def test_cancelling_closes_the_connection(serve: type[LoopbackServer], streamed: bool):
    gate = Gate()
    heard = asyncio.Event()
    with serve(Says(list(PIECES), gates=[gate]) if streamed else Hangs()) as server:
        model = model_at(server)
        task = asyncio.create_task(model.ask(asking(), (lambda _: heard.set()) if streamed else None))
        if streamed:
            await heard.wait()
        seen = await asyncio.to_thread(server.wait_for_request, 1)
        assert not seen.left.is_set()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(seen.left.wait, 5)
        gate.open()
    assert len(server.requests) == 1


async def test_requests_do_not_wait_for_each_other():
    gates = [Gate(), Gate()]
    with OpenAIServer(*[Says(["a", "b"], gates=[gate]) for gate in gates]) as server:
        model = model_at(server)
        tasks = [asyncio.create_task(model.ask(asking(), lambda _: None)) for _ in gates]
        # Both are open at the same time; neither can end before its gate is opened.
        await asyncio.to_thread(server.wait_for_request, 2)
        for gate in gates:
            gate.open()
        replies = await asyncio.gather(*tasks)
        await model.close()
    assert [reply.text for reply in replies] == ["ab", "ab"]


@pytest.mark.filterwarnings("error::ResourceWarning", "error::pytest.PytestUnraisableExceptionWarning")
def test_one_model_serves_several_event_loops_and_leaves_no_connection_open():
    with OpenAIServer(Says("one"), Says("two"), Says("three")) as server:
        model = model_at(server)
        texts = [asyncio.run(model.ask(asking())).text for _ in range(2)]

        def elsewhere() -> None:
            texts.append(asyncio.run(model.ask(asking())).text)

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join(10)
    assert texts == ["one", "two", "three"]


async def test_connections_are_kept_and_can_be_closed():
    with OpenAIServer(Says("one"), Says("two"), Says("three")) as server:
        model = model_at(server)
        await model.ask(asking())
        await model.ask(asking())
        await model.close()
        assert (await model.ask(asking())).text == "three"
        await model.close()
