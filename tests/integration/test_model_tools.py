"""Tools offered to real HTTP servers on loopback: calls out of replies, results back into the conversation."""

from __future__ import annotations

import json
from typing import Any

import pytest

from integration.servers import AnthropicServer, GeminiServer, LoopbackServer, OpenAIServer, Says
from toolplan import Agent, tool
from toolplan.errors import ModelError, UsageError
from toolplan.models import (
    Message,
    ModelRequest,
    Reply,
    Retry,
    ToolCallPart,
    ToolResultPart,
    ToolSpec,
    Usage,
    model_from_name,
)
from toolplan.models.facts import PROVIDERS

KEY = "sk-proj-abcDEF123456789"
QUICK = Retry(max_retries=2, base_seconds=0.001, ceiling_seconds=0.002)

WEATHER = ToolSpec(
    "get_weather",
    "The weather in a city.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False},
)
CLOCK = ToolSpec("get_time", "The time.", {"type": "object", "properties": {"tz": {"type": "string"}}})
TOOLS = (WEATHER, CLOCK)
ASKED = (Message("system", "You help."), Message("user", "明天北京的天气"))
OSLO, UTC = '{"city": "Oslo"}', '{"tz": "UTC"}'
CALLS = [("get_weather", ['{"city": ', '"Oslo"}']), ("get_time", ['{"tz": "U', 'TC"}'])]

SERVERS = {"openai": OpenAIServer, "anthropic": AnthropicServer, "google": GeminiServer}
NAMES = {"openrouter": "qwen/test-model"}
both_ways = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
every_protocol = pytest.mark.parametrize("provider", SERVERS)


def asking(*messages: Message, **options: Any) -> ModelRequest:
    options.setdefault("tools", TOOLS)
    return ModelRequest(messages or ASKED, purpose="loop", **options)


def model_at(server: LoopbackServer, provider: str = "openai", **options: Any):
    options.setdefault("retry", QUICK)
    return model_from_name(f"{provider}:{NAMES.get(provider, 'test-model')}", server.url, KEY, **options)


async def ask(model: Any, request: ModelRequest, *, streamed: bool) -> tuple[Reply, list[str]]:
    heard: list[str] = []
    reply = await model.ask(request, heard.append if streamed else None)
    return reply, heard


def called(reply: Reply) -> list[tuple[str, Any]]:
    return [(call.name, json.loads(call.arguments_text or "{}")) for call in reply.tool_calls]


def answers(reply: Reply, **errors: bool) -> Message:
    return Message(
        "tool",
        tool_results=tuple(
            ToolResultPart(call.id, call.name, f"result of {call.name}", is_error=call.name in errors)
            for call in reply.tool_calls
        ),
    )


# ---- what is sent


@every_protocol
@both_ways
async def test_tools_are_offered_and_calls_come_back(provider: str, streamed: bool):
    with SERVERS[provider](Says("Let me see. ", calls=CALLS, usage=(50, 9, 10))) as server:
        reply, heard = await ask(model_at(server, provider), asking(), streamed=streamed)
    assert called(reply) == [("get_weather", {"city": "Oslo"}), ("get_time", {"tz": "UTC"})]
    assert len({call.id for call in reply.tool_calls}) == 2
    assert (reply.text, reply.finish_reason, reply.output) == ("Let me see. ", "tool_call", "tool")
    # Arguments of the application's tools are nothing to be read aloud.
    assert "".join(heard) == ("Let me see. " if streamed else "")
    assert reply.usage == Usage(1, 50, 9, 10)
    assert reply.notes == ()


async def test_openai_gets_the_tools_as_they_are_and_no_more():
    with OpenAIServer(Says("ok")) as server:
        await model_at(server).ask(asking())
    body = server.requests[0].body
    sent = [tool["function"] for tool in body["tools"]]
    assert [tool["name"] for tool in sent] == ["get_weather", "get_time"]
    assert sent[0]["parameters"] == WEATHER.parameters
    assert sent[0]["description"] == "The weather in a city."
    assert "response_format" not in body
    assert body["tool_choice"] == "auto"
    assert "parallel_tool_calls" not in body
    # The schema is not strict unless it was asked for.
    assert not any(tool.get("strict") for tool in sent)


async def test_strict_is_sent_only_for_the_tools_that_it_leaves_whole():
    headers = {"type": "object", "additionalProperties": {}}
    fetch = {"type": "object", "properties": {"headers": headers, "url": {"type": "string"}}, "required": ["url"]}
    tools = (ToolSpec("fetch", "Fetch.", fetch, strict=True), ToolSpec("w", "W.", WEATHER.parameters, strict=True))
    with OpenAIServer(Says("ok")) as server:
        await model_at(server).ask(asking(tools=tools))
    sent = {tool["function"]["name"]: tool["function"] for tool in server.requests[0].body["tools"]}
    assert "strict" not in sent["fetch"]
    assert sent["fetch"]["parameters"]["properties"]["headers"]["additionalProperties"] in ({}, True)
    assert sent["w"]["strict"] is True


@every_protocol
@pytest.mark.parametrize("choice", ["auto", "none", "required"])
async def test_whether_a_tool_must_be_called_is_said_in_each_protocols_words(provider: str, choice: Any):
    with SERVERS[provider](Says("ok")) as server:
        await model_from_name(f"{provider}:{_UNTHINKING[provider]}", server.url, KEY).ask(asking(tool_choice=choice))
    body = server.requests[0].body
    if provider == "openai":
        assert body["tool_choice"] == choice
    elif provider == "anthropic":
        assert body["tool_choice"]["type"] == {"required": "any"}.get(choice, choice)
    else:
        mode = body.get("toolConfig", {}).get("functionCallingConfig", {}).get("mode", "AUTO")
        assert mode in {"required": ["ANY"], "none": ["NONE"], "auto": ["AUTO", "VALIDATED"]}[choice]


_UNTHINKING = {"openai": "gpt-4o", "anthropic": "claude-haiku-4-5", "google": "gemini-2.0-flash"}


@pytest.mark.parametrize("lacks", ["tool_choice", "parallel_tool_calls"])
async def test_a_wish_that_a_server_refuses_is_left_out_and_remembered(lacks: str):
    request = asking(tool_choice="required", parallel_tool_calls=False)
    with OpenAIServer(Says(calls=CALLS), Says(calls=CALLS), lacks=[lacks]) as server:
        model = model_at(server)
        reply = await model.ask(request)
        again = await model.ask(request)
    assert (reply.output, len(reply.tool_calls), len(reply.notes)) == ("tool", 2, 1)
    assert f"does not take `{lacks}`" in reply.notes[0]
    assert again.notes == ()
    other = {"tool_choice": "parallel_tool_calls", "parallel_tool_calls": "tool_choice"}[lacks]
    first, second, third = (seen.body for seen in server.requests)
    assert first["tool_choice"] == "required"
    assert first["parallel_tool_calls"] is False
    for body in (second, third):
        assert body["tool_choice"] == ("auto" if lacks == "tool_choice" else "required")
        assert ("parallel_tool_calls" in body) == (other == "parallel_tool_calls")


async def test_a_request_has_a_schema_or_tools_but_not_both():
    with OpenAIServer() as server, pytest.raises(UsageError, match="a schema or tools, not both"):
        await model_at(server).ask(asking(schema={"type": "object"}))


# ---- conversations


@every_protocol
@both_ways
async def test_results_go_back_in_each_protocols_shape(provider: str, streamed: bool):
    """The servers refuse a call without its answer, an answer without its call, and answers in another order."""
    answered = Says("It rains.", usage=(90, 5, 0))
    with SERVERS[provider](Says("", calls=CALLS, thinking="hmm"), Says("", calls=CALLS[:1]), answered) as server:
        model = model_at(server, provider)
        first, _ = await ask(model, asking(), streamed=streamed)
        conversation = (*ASKED, first.message, answers(first, get_time=True))
        second, _ = await ask(model, asking(*conversation), streamed=streamed)
        conversation += (second.message, answers(second))
        third, heard = await ask(model, asking(*conversation), streamed=streamed)
    assert third.text == "It rains."
    assert "".join(heard) == ("It rains." if streamed else "")
    assert third.notes == ()
    body = json.dumps(server.requests[-1].body, ensure_ascii=False)
    assert body.count("result of get_weather") == 2
    assert body.count("result of get_time") == 1
    if provider == "anthropic":
        results = server.requests[1].body["messages"][-1]["content"]
        assert [result.get("is_error") for result in results] == [False, True]
        # Its thinking goes back with its signature, before the calls, as it must.
        turn = server.requests[-1].body["messages"][1]["content"]
        assert [block["type"] for block in turn] == ["thinking", "tool_use", "tool_use"]
        assert (turn[0]["thinking"], turn[0]["signature"]) == ("hmm", "sig")
    if provider == "google":
        calls = [part for part in server.requests[-1].body["contents"][1]["parts"] if "functionCall" in part]
        assert calls[0]["thoughtSignature"] == "c2ln"  # "sig"


async def test_deepseek_gets_its_thinking_back_in_its_field():
    with OpenAIServer(Says("", calls=CALLS, thinking="two cities"), Says("ok")) as server:
        model = model_from_name("deepseek:deepseek-v4-pro", server.url, KEY)
        first = await model.ask(asking())
        await model.ask(asking(*ASKED, first.message, answers(first)))
    turn = server.requests[1].body["messages"][2]
    assert turn["reasoning_content"] == "two cities"
    assert turn["content"] is None
    assert first.thinking == "two cities"


async def test_thinking_of_one_provider_is_not_sent_to_another():
    with AnthropicServer(Says("", calls=CALLS, thinking="private")) as anthropic:
        first = await model_at(anthropic, "anthropic").ask(asking())
    with OpenAIServer(Says("ok")) as server:
        await model_at(server).ask(asking(*ASKED, first.message, answers(first)))
    assert "private" not in json.dumps(server.requests[0].body)
    assert "sig" not in json.dumps(server.requests[0].body["messages"])


async def test_an_edited_reply_keeps_its_thinking_but_not_its_old_words():
    with AnthropicServer(Says("Old words.", calls=CALLS, thinking="hmm"), Says("ok")) as server:
        model = model_at(server, "anthropic")
        first = await model.ask(asking())
        edited = Message("assistant", "New words.", first.tool_calls[:1], kept=first.kept)
        result = ToolResultPart(first.tool_calls[0].id, "get_weather", "rain")
        await model.ask(asking(*ASKED, edited, Message("tool", tool_results=(result,))))
    turn = server.requests[1].body["messages"][1]["content"]
    assert [(block["type"], block.get("text")) for block in turn] == [
        ("thinking", None),
        ("text", "New words."),
        ("tool_use", None),
    ]


async def test_what_is_kept_survives_json():
    with AnthropicServer(Says("", calls=CALLS, thinking="hmm"), Says("ok")) as server:
        model = model_at(server, "anthropic")
        first = await model.ask(asking())
        stored = json.loads(json.dumps(first.kept))
        message = Message("assistant", first.text, first.tool_calls, kept=stored)
        await model.ask(asking(*ASKED, message, answers(first)))
    assert server.requests[1].body["messages"][1]["content"][0]["signature"] == "sig"


ODD = (
    *ASKED,
    Message("assistant", tool_calls=(ToolCallPart("", "get_weather", OSLO), ToolCallPart("", "get_time", UTC))),
    Message("tool", tool_results=(ToolResultPart("", "get_time", "noon"), ToolResultPart("", "get_weather", "rain"))),
    Message("assistant", tool_calls=(ToolCallPart("functions.get_time:0", "get_time", "{}"),)),
    Message("tool", tool_results=(ToolResultPart("functions.get_time:0", "get_time", "one"),)),
    Message(
        "assistant",
        tool_calls=(
            ToolCallPart("functions.get_time:0", "get_time", '{"tz": '),
            ToolCallPart("x", "get_weather", OSLO),
        ),
    ),
    Message("tool", tool_results=(ToolResultPart("functions.get_time:0", "get_time", "not JSON", is_error=True),)),
    Message("user", "go on"),
)
"""No ids, results out of order, an id used twice, one with odd characters, cut-off arguments, an unanswered call."""


@pytest.mark.parametrize("provider", ["openai", "mistral", "anthropic", "google", "ollama", "dashscope"])
@both_ways
async def test_odd_conversations_are_put_into_a_shape_that_is_accepted(provider: str, streamed: bool):
    protocol = PROVIDERS[provider].protocol
    given = {"call_ids": r"[a-zA-Z0-9]{9}"} if provider == "mistral" else {}
    with SERVERS[protocol](Says("ok"), Says("ok"), **given) as server:
        model = model_from_name(f"{provider}:{NAMES.get(provider, 'test-model')}", server.url, KEY, retry=QUICK)
        for _ in range(2):
            reply, _ = await ask(model, asking(*ODD), streamed=streamed)
            assert (reply.text, reply.notes) == ("ok", ())
    # The same conversation is sent in the same bytes, so that a provider's cache finds it again.
    assert server.requests[0].body == server.requests[1].body
    if protocol == "openai":
        said = [message["content"] for message in server.requests[0].body["messages"] if message["role"] == "tool"]
        assert said == ["rain", "noon", "one", "not JSON", "there is no result of this call"]


async def test_ids_that_a_provider_accepts_stay_as_they_are():
    with OpenAIServer(Says("ok")) as server:
        await model_at(server, "vllm").ask(asking(*ODD))
    ids = [call["id"] for message in server.requests[0].body["messages"] for call in message.get("tool_calls", [])]
    assert ids[2] == "functions.get_time:0"
    assert ids[4] == "x"
    assert len(set(ids)) == 5


# ---- habits of servers


def quirk_cases() -> list[Any]:
    return [
        pytest.param(facts.name, quirk, id=f"{facts.name}-{quirk}")
        for facts in PROVIDERS.values()
        for quirk in facts.quirks
        if quirk not in ("error_in_stream", "text_calls")
    ]


@pytest.mark.parametrize(("provider", "quirk"), quirk_cases())
@both_ways
async def test_calls_and_usage_come_out_right_whatever_the_habit(provider: str, quirk: str, streamed: bool):
    protocol = PROVIDERS[provider].protocol
    calls = CALLS[:1] if quirk == "function_call" else CALLS
    says = Says("Let me see.", calls=calls, thinking="hmm", usage=(50, 9, 10), quirks={quirk})
    lacks = {"lacks": ["stream_options"]} if provider == "mistral" else {}
    with SERVERS[protocol](says, **lacks) as server:
        model = model_from_name(f"{provider}:{NAMES.get(provider, 'test-model')}", server.url, KEY, retry=QUICK)
        reply, heard = await ask(model, asking(), streamed=streamed)
    assert called(reply) == [("get_weather", {"city": "Oslo"}), ("get_time", {"tz": "UTC"})][: len(calls)]
    assert len({call.id for call in reply.tool_calls}) == len(calls)
    assert all(call.id for call in reply.tool_calls)
    assert (reply.text, reply.thinking, reply.finish_reason) == ("Let me see.", "hmm", "tool_call")
    assert "".join(heard) == ("Let me see." if streamed else "")
    if quirk == "no_usage":
        assert reply.usage.estimated
        assert reply.usage.output_tokens > 0
    else:
        assert reply.usage == Usage(1, 50, 9, 10)


@pytest.mark.parametrize("provider", PROVIDERS)
@both_ways
async def test_all_habits_of_a_provider_at_once(provider: str, streamed: bool):
    facts = PROVIDERS[provider]
    if provider == "compatible":
        return  # it has all of them, and some exclude each other
    quirks = set(facts.quirks) - {"error_in_stream", "text_calls"}
    says = Says("Let me see.", calls=CALLS, usage=(50, 9, 10), quirks=quirks)
    with SERVERS[facts.protocol](says, Says("It rains.", quirks=quirks)) as server:
        model = model_from_name(f"{provider}:{NAMES.get(provider, 'test-model')}", server.url, KEY, retry=QUICK)
        reply, _ = await ask(model, asking(), streamed=streamed)
        last, _ = await ask(model, asking(*ASKED, reply.message, answers(reply)), streamed=streamed)
    assert called(reply) == [("get_weather", {"city": "Oslo"}), ("get_time", {"tz": "UTC"})]
    assert last.text == "It rains."


@pytest.mark.parametrize("quirks", [("same_index", "whole_calls"), ("no_index", "no_id"), ("same_id", "same_index")])
@both_ways
async def test_two_calls_of_one_tool_stay_two(quirks: tuple[str, ...], streamed: bool):
    calls = [("get_weather", OSLO), ("get_weather", '{"city": "Bergen"}')]
    with OpenAIServer(Says(calls=calls, quirks=quirks)) as server:
        reply, _ = await ask(model_at(server, "ollama"), asking(), streamed=streamed)
    assert called(reply) == [("get_weather", {"city": "Oslo"}), ("get_weather", {"city": "Bergen"})]


@both_ways
async def test_a_reply_cut_off_inside_a_call_says_that_it_is(streamed: bool):
    says = Says(calls=[("get_weather", '{"city": "Os')], finish="length")
    with OpenAIServer(says) as server:
        reply, _ = await ask(model_at(server), asking(), streamed=streamed)
    assert reply.is_cut_off
    assert reply.tool_calls[0].arguments == '{"city": "Os'


async def test_a_stream_that_breaks_inside_a_call_is_an_error():
    says = Says(calls=CALLS, breaks_after=2)
    with OpenAIServer(says, says, says) as server, pytest.raises(ModelError, match="broke off") as caught:
        await model_at(server).ask(asking(), lambda _: None)
    # Nothing of it was passed on, so that it was asked for again; each of them was an inference.
    assert len(server.requests) == 3
    assert caught.value.inferences == 3


# ---- calls as text


MARKED = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'


@both_ways
@pytest.mark.parametrize("provider", ["vllm", "llamacpp", "compatible"])
async def test_a_call_that_the_server_left_in_the_text_is_read(provider: str, streamed: bool):
    says = Says("Let me see. ", calls=CALLS, quirks={"text_calls"}, usage=(50, 9, 10))
    with OpenAIServer(says, Says("It rains.")) as server:
        model = model_at(server, provider)
        reply, heard = await ask(model, asking(), streamed=streamed)
        last, _ = await ask(model, asking(*ASKED, reply.message, answers(reply)), streamed=streamed)
    assert called(reply) == [("get_weather", {"city": "Oslo"}), ("get_time", {"tz": "UTC"})]
    assert (reply.text.strip(), reply.finish_reason, reply.usage) == ("Let me see.", "tool_call", Usage(1, 50, 9, 10))
    # Nobody has to listen to a call being spelt out.
    assert "".join(heard).strip() == ("Let me see." if streamed else "")
    # It goes back as the call that it was meant to be.
    turn = server.requests[1].body["messages"][2]
    assert [call["function"]["name"] for call in turn["tool_calls"]] == ["get_weather", "get_time"]
    assert last.text == "It rains."


@both_ways
async def test_calls_that_the_server_read_leave_the_text_alone(streamed: bool):
    with OpenAIServer(Says(f"As in {MARKED}?", calls=CALLS[1:])) as server:
        reply, _ = await ask(model_at(server), asking(), streamed=streamed)
    assert called(reply) == [("get_time", {"tz": "UTC"})]
    assert reply.text == f"As in {MARKED}?"


@both_ways
async def test_text_is_text_where_no_tools_are_offered(streamed: bool):
    for request in (asking(tools=()), asking(tool_choice="none")):
        with OpenAIServer(Says(MARKED)) as server:
            reply, heard = await ask(model_at(server), request, streamed=streamed)
        assert (reply.text, reply.tool_calls) == (MARKED, ())
        assert "".join(heard) == (MARKED if streamed else "")


@both_ways
@pytest.mark.parametrize(("status", "language"), [(400, "en"), (500, "zh")])
async def test_a_server_without_tool_calls_is_told_of_the_tools_in_words(streamed: bool, status: int, language: str):
    asked = (Message("system", "你是助手。" if language == "zh" else "You help."), Message("user", "Oslo?"))
    first = Says(f"Let me see.\n{MARKED}")
    with OpenAIServer(first, Says("It rains."), lacks=["tools"], status=status) as server:
        model = model_at(server, "llamacpp")
        reply, heard = await ask(model, asking(*asked, parallel_tool_calls=False), streamed=streamed)
        talk = (*asked, reply.message, answers(reply), Message("user", "thanks"))
        last, _ = await ask(model, asking(*talk), streamed=streamed)
    assert called(reply) == [("get_weather", {"city": "Oslo"})]
    assert (reply.output, reply.text.strip(), reply.finish_reason) == ("text", "Let me see.", "tool_call")
    assert "".join(heard).strip() == ("Let me see." if streamed else "")
    assert len(reply.notes) == 1
    refused, told, again = (seen.body for seen in server.requests)
    assert "tools" in refused
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & set(told)
    system = told["messages"][0]["content"]
    assert system.startswith(f"{asked[0].content}\n\n")
    assert ("你可以调用以下工具" if language == "zh" else "You may call these tools") in system
    assert ("每次只调用一个工具" if language == "zh" else "one call at a time") in system
    assert json.loads(system.split("<tools>\n")[1].split("\n")[0])["function"]["name"] == "get_weather"
    # What the model wrote goes back as it wrote it, and the result in the same notation.
    assert again["messages"][2] == {"role": "assistant", "content": f"Let me see.\n{MARKED}"}
    assert "<tool_response>\nresult of get_weather\n</tool_response>" in again["messages"][3]["content"]
    assert (last.text, last.notes) == ("It rains.", ())


WITHOUT, WITH = "{% for message in messages %}...", "{% if tools %}...{% endif %}{% for message in messages %}..."


@pytest.mark.parametrize(
    ("props", "is_native"),
    [
        ({"chat_template": WITHOUT, "chat_template_caps": {"supports_tools": False}}, False),
        ({"chat_template": WITH, "chat_template_caps": {"supports_tools": True}}, True),
        # Older servers show the template only; others, or something between, say nothing.
        ({"chat_template": WITHOUT}, False),
        ({"chat_template": WITH}, True),
        ({"chat_template": ""}, True),
        (["nothing"], True),
        (None, True),
    ],
)
@both_ways
async def test_a_llamacpp_server_that_drops_tools_is_told_of_them_in_words(props: Any, is_native: bool, streamed: bool):
    calling = Says(calls=CALLS) if is_native else Says(MARKED)
    with OpenAIServer(calling, Says("It rains.")) as server:
        server.props = props
        model = model_at(server, "llamacpp")
        reply, _ = await ask(model, asking(), streamed=streamed)
        await ask(model, asking(*ASKED, reply.message, answers(reply)), streamed=streamed)
    assert called(reply)[0] == ("get_weather", {"city": "Oslo"})
    assert (reply.output, reply.notes) == ("tool" if is_native else "text", ())
    assert [("tools" in seen.body) for seen in server.requests] == [is_native] * 2
    assert ("<tools>" in json.dumps(server.requests[0].body)) is not is_native
    # Asked once, for the model that is meant; where that was no use, again.
    known = isinstance(props, dict) and bool(props["chat_template"])
    assert server.asked_props == ["model=test-model"] * (0 if props is None else 1 if known else 2)


@both_ways
@pytest.mark.parametrize(
    "text",
    [
        MARKED,
        '[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Oslo"}}]',
        'Thought: I look it up.\nAction: get_weather\nAction Input: {"city": "Oslo"}',
        '```json\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n```',
        '[get_weather(city="Oslo")]',
    ],
)
async def test_a_model_told_in_words_may_call_in_its_own_notation(streamed: bool, text: str):
    with OpenAIServer(Says(text)) as server:
        reply, _ = await ask(model_at(server, output="text"), asking(), streamed=streamed)
    assert called(reply) == [("get_weather", {"city": "Oslo"})]


async def test_a_call_in_text_that_cannot_be_made_is_kept_with_the_reason():
    with OpenAIServer(Says('<tool_call>\n{"name": "get_weather", "arguments": {"city": "Os\n</tool_call>')) as server:
        reply = await model_at(server, output="text").ask(asking())
    (call,) = reply.tool_calls
    assert call.problem is not None
    with pytest.raises(ValueError, match="Expecting value"):
        json.loads(call.arguments_text)
    # Whoever answers it can go on: the message is the model's own text.
    with OpenAIServer(Says("ok")) as server:
        again = await model_at(server, output="text").ask(asking(*ASKED, reply.message, answers(reply)))
    assert again.text == "ok"


async def test_a_call_in_text_that_was_cut_off_is_not_made_whole():
    with OpenAIServer(
        Says('<tool_call>\n{"name": "get_weather", "arguments": {"city": "Os', finish="length")
    ) as server:
        reply = await model_at(server, output="text").ask(asking())
    assert reply.is_cut_off
    assert all(call.problem for call in reply.tool_calls)


async def test_odd_conversations_go_out_as_text_too():
    with OpenAIServer(Says("ok"), Says("ok")) as server:
        model = model_at(server, output="text")
        for _ in range(2):
            assert (await model.ask(asking(*ODD))).text == "ok"
    sent = server.requests[0].body
    assert sent == server.requests[1].body
    assert {message["role"] for message in sent["messages"]} == {"system", "user", "assistant"}
    assert json.dumps(sent).count("<tool_response>") == 5 + 1  # the system prompt names it once


# ---- real breakages


async def test_usage_at_the_end_of_a_stream_after_the_choices():
    """Field case F04: the last chunk has no choices; without it usage is estimated, and says so."""
    with OpenAIServer(Says(calls=CALLS, usage=(10, 5, 0)), Says(calls=CALLS, quirks={"no_usage"})) as server:
        model = model_at(server, stream=True)
        assert (await model.ask(asking())).usage == Usage(1, 10, 5)
        assert (await model.ask(asking())).usage.estimated


async def test_more_calls_than_were_wanted_are_all_kept_and_answered():
    """Field case F05: `parallel_tool_calls` false was ignored."""
    with OpenAIServer(Says(calls=CALLS), Says("ok")) as server:
        model = model_at(server)
        reply = await model.ask(asking(parallel_tool_calls=False))
        await model.ask(asking(*ASKED, reply.message, answers(reply), parallel_tool_calls=False))
    assert [seen.body["parallel_tool_calls"] for seen in server.requests] == [False, False]
    sent = [message for message in server.requests[1].body["messages"] if message["role"] == "tool"]
    assert [message["tool_call_id"] for message in sent] == [call.id for call in reply.tool_calls]
    assert [message["content"] for message in sent] == ["result of get_weather", "result of get_time"]


async def test_gemini_gets_schemas_in_its_own_subset():
    """Field case F07, with nested tools as they come from MCP servers."""
    with GeminiServer(Says("ok")) as server:
        await model_at(server, "google").ask(asking(tools=(ToolSpec("save", "Save.", GEMINI_SCHEMA),)))
    (declared,) = server.requests[0].body["tools"][0]["functionDeclarations"]
    schema = declared["parameters"]
    kind, note, n, cfg = (schema["properties"][name] for name in ("kind", "note", "n", "cfg"))
    assert kind == {"type": "STRING", "enum": ["insert"]}
    assert note == {"type": "STRING", "nullable": True}
    assert n == {"type": "INTEGER", "minimum": 1}
    assert cfg == {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}, "required": ["a"]}


async def test_gemini_gets_a_tool_without_parameters_and_open_objects_it_can_fill():
    open_object = {"type": "object", "properties": {"headers": {"type": "object"}}}
    tools = (ToolSpec("ping", "Ping.", {"type": "object", "properties": {}}), ToolSpec("fetch", "Fetch.", open_object))
    with GeminiServer(Says("ok")) as server:
        await model_at(server, "google").ask(asking(tools=tools))
    ping, fetch = (each for tool in server.requests[0].body["tools"] for each in tool["functionDeclarations"])
    assert "parameters" not in ping
    assert fetch["parameters"]["properties"]["headers"]["type"].lower() == "string"


GEMINI_SCHEMA = {
    "type": "object",
    "properties": {
        "kind": {"const": "insert"},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "n": {"type": "integer", "exclusiveMinimum": 0},
        "cfg": {"$ref": "#/$defs/Cfg"},
    },
    "required": ["kind", "cfg"],
    "$defs": {
        "Cfg": {
            "type": "object",
            "properties": {"a": {"type": "string"}},
            "required": ["a"],
            "additionalProperties": False,
        }
    },
}


# ---- an agent's loop


@every_protocol
@both_ways
async def test_an_agents_loop_over_each_protocol(provider: str, streamed: bool):
    """Two turns with three calls, one of them wrong; the servers refuse a conversation that is not in order."""
    made: list[str] = []

    @tool(pure=True)
    def get_weather(city: str) -> str:
        """The weather in a city."""
        made.append(city)
        return f"rain in {city}"

    wrong = ("get_weather", '{"town": "Rome"}')
    first = Says("", calls=[("get_weather", OSLO), wrong], thinking="hmm", quirks={"no_id"})
    second = Says("", calls=[("get_weather", '{"city": "Rome"}')], quirks={"no_id"})
    with SERVERS[provider](first, second, Says("Rain in both.")) as server:
        agent = Agent(model_at(server, provider), tools=[get_weather], mode="loop")
        result = await agent.run("Weather in Oslo and Rome?", watch=(lambda _: None) if streamed else None)
    assert (result.outcome, result.answer, result.inferences) == ("succeeded", "Rain in both.", 3)
    assert made == ["Oslo", "Rome"]
    assert result.usage.requests == 3
    assert not result.usage.estimated
    assert "rain in Oslo" in json.dumps(server.requests[1].body)
    assert "town" in json.dumps(server.requests[1].body)


async def test_an_agents_loop_with_a_server_that_has_no_tool_calls():
    @tool(pure=True)
    def get_weather(city: str) -> str:
        """The weather in a city."""
        return f"rain in {city}"

    with OpenAIServer(Says(f"Let me see.\n{MARKED}"), Says("It rains."), lacks=["tools"]) as server:
        result = await Agent(model_at(server, "vllm"), tools=[get_weather], mode="loop").run("Weather in Oslo?")
    assert (result.outcome, result.answer, result.inferences) == ("succeeded", "It rains.", 2)
    assert "<tool_response>\nrain in Oslo\n</tool_response>" in server.requests[-1].body["messages"][-1]["content"]
