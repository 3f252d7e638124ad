"""Kind F of `tests/data/field_cases`: how providers break tool calling, replayed by real servers on loopback."""

from __future__ import annotations

import json
import time
from email.utils import formatdate, parsedate_to_datetime
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from integration.servers import Fails, GeminiServer, OpenAIServer, Says, Sends
from toolplan.models import Message, ModelRequest, Reply, Retry, ToolResultPart, ToolSpec, Usage, model_from_name

FILE = Path(__file__).parents[1] / "data" / "field_cases" / "cases.jsonl"
CASES = {
    case["id"]: case for case in map(json.loads, FILE.read_text("utf-8").splitlines()) if case["kind"] == "provider"
}
REPLIES = [name for name, case in CASES.items() if "message" in case["input"] or "chunks" in case["input"]]
ASKED = (Message("user", "hi"),)


def tools_of(case: dict[str, Any]) -> tuple[ToolSpec, ...]:
    return tuple(ToolSpec(tool["name"], tool["description"], tool["parameters"]) for tool in case["tools"])


def answer_of(given: dict[str, Any]) -> Sends:
    """Return the case's reply as the bytes that its server sent."""
    base = {"id": "x", "created": 1, "model": "m"}
    if "chunks" in given:
        events = [json.dumps({**base, "object": "chat.completion.chunk", **chunk}) for chunk in given["chunks"]]
        return Sends("".join(f"data: {event}\n\n" for event in [*events, "[DONE]"]), "text/event-stream")
    choice = {"index": 0, "message": given["message"], "finish_reason": given["finish_reason"]}
    return Sends(json.dumps({**base, "object": "chat.completion", "choices": [choice]}))


async def replied(case: dict[str, Any], *more: Any) -> tuple[Reply, list[dict[str, Any]]]:
    wishes = case["input"].get("request", {})
    with OpenAIServer(answer_of(case["input"]), *more) as server:
        model = model_from_name("compatible:m", server.url, stream="chunks" in case["input"], retry=Retry(0))
        reply = await model.ask(ModelRequest(ASKED, tools=tools_of(case), **wishes))
        if more:
            results = tuple(ToolResultPart(call.id, call.name, f"of {call.name}") for call in reply.tool_calls)
            model = model_from_name("compatible:m", server.url, stream=False, retry=Retry(0))
            await model.ask(
                ModelRequest((*ASKED, reply.message, Message("tool", tool_results=results)), tools=tools_of(case))
            )
    return reply, [seen.body for seen in server.requests]


@pytest.mark.parametrize("name", [name for name in REPLIES if "calls" in CASES[name]["expect"]["detail"]])
async def test_calls(name: str) -> None:
    case = CASES[name]
    expected = case["expect"]["detail"]
    reply, _ = await replied(case)
    found = [{"id": c.id, "name": c.name, "arguments": json.loads(c.arguments_text)} for c in reply.tool_calls]
    assert [{key: call[key] for key in wanted} for call, wanted in zip(found, expected["calls"], strict=True)] == (
        expected["calls"]
    )
    assert reply.finish_reason == "tool_call"
    if "text" in expected:
        assert reply.text == expected["text"]


async def test_f04_usage_is_what_the_last_chunk_says_and_an_estimate_without_it() -> None:
    case = CASES["F04"]
    usage = case["expect"]["detail"]["usage"]
    reply, _ = await replied(case)
    assert reply.usage == Usage(1, usage["prompt_tokens"], usage["completion_tokens"])
    without = {**case, "input": {**case["input"], "chunks": case["input"]["chunks"][:-1]}}
    reply, _ = await replied(without)
    assert reply.usage.estimated
    assert reply.usage.output_tokens > 0


async def test_f05_both_calls_are_answered_in_order() -> None:
    reply, (first, second) = await replied(CASES["F05"], Says("ok"))
    assert first["parallel_tool_calls"] is False
    assert [call.id for call in reply.tool_calls] == ["c1", "c2"]
    told = [message for message in second["messages"] if message["role"] == "tool"]
    assert [(message["tool_call_id"], message["content"]) for message in told] == [
        ("c1", "of get_weather"),
        ("c2", "of get_time"),
    ]


async def test_f07_a_schema_for_gemini() -> None:
    case = CASES["F07"]
    parameters = case["input"]["parameters"]
    with GeminiServer(Says("ok")) as server:
        model = model_from_name("google:m", server.url, "key-123456")
        await model.ask(ModelRequest(ASKED, tools=(ToolSpec("save", "Save.", parameters),)))
    sent = server.requests[0].body["tools"][0]["functionDeclarations"][0]["parameters"]
    text = json.dumps(sent)
    for keyword in case["expect"]["detail"]["must_not_contain_keys"]:
        assert f'"{keyword}"' not in text
    fields = sent["properties"]
    assert all(isinstance(field["type"], str) for field in fields.values())
    assert fields["note"]["nullable"] is True
    assert fields["kind"]["enum"] == ["insert"]
    assert fields["cfg"]["required"] == ["a"]
    assert list(fields["cfg"]["properties"]) == ["a"]
    # What the subset cannot say is still checked against the full schema.
    assert not jsonschema_rs.is_valid(parameters, {"kind": "insert", "cfg": {"a": "x"}, "n": 0})


async def test_f08_a_date_in_retry_after_is_waited_for() -> None:
    case = CASES["F08"]
    first, _ = case["input"]["responses"]
    now, until = (parsedate_to_datetime(text) for text in (case["input"]["now"], first["headers"]["Retry-After"]))
    asked_seconds = (until - now).total_seconds()
    limits = case["expect"]["detail"]["waits_seconds"]
    waits = [
        Retry().wait_seconds(1, waited_seconds=0, asked_seconds=asked_seconds, draw=draw) for draw in (0.0, 0.5, 1.0)
    ]
    assert all(wait is not None and limits["at_least"] <= wait <= limits["at_most"] for wait in waits)
    # That a date is read at all, by the clock of the day, and of two requests the second is the last.
    soon = formatdate(time.time() + 2, usegmt=True)
    with OpenAIServer(Fails(429, retry_after=soon), Says("ok")) as server:
        began = time.time()
        reply = await model_from_name("compatible:m", server.url).ask(ModelRequest(ASKED))
    assert (reply.text, len(server.requests)) == ("ok", case["expect"]["detail"]["attempts"])
    assert time.time() - began >= 0.9


async def test_f11_an_open_object_is_never_sent_as_strict() -> None:
    case = CASES["F11"]
    closed = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    tools = (
        ToolSpec("fetch", "Fetch.", case["input"]["parameters"], strict=True),
        ToolSpec("other", "Other.", {**closed, "additionalProperties": False}, strict=True),
    )
    with OpenAIServer(Says("ok")) as server:
        await model_from_name("openai:gpt-5-mini", server.url, "key-123456").ask(ModelRequest(ASKED, tools=tools))
    fetch, other = (tool["function"] for tool in server.requests[0].body["tools"])
    assert fetch.get("strict") in (None, False)
    assert fetch["parameters"]["properties"]["headers"]["additionalProperties"] in ({}, True)
    assert other["strict"] is True


def test_every_case_is_tested_here() -> None:
    alone = {"F04", "F05", "F07", "F08", "F11"}
    assert {*REPLIES, *alone} == set(CASES)
