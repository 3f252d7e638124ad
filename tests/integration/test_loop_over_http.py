"""The loop and conversations over real HTTP: what the providers' servers get is in the shape that they demand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from integration.servers import AnthropicServer, LoopbackServer, OpenAIServer, Says
from toolplan import Agent, ToolFailed, tool
from toolplan.agent import ReplyStreamed

SENT: list[str] = []


@tool(reads="weather")
def get_weather(city: str) -> dict[str, float]:
    """Gets the temperature in a city."""
    if city == "Atlantis":
        raise ToolFailed("there is no such city")
    return {"temperature": 3.0}


@tool(writes="mailbox:{to}")
def send_email(to: str, body: str) -> str:
    """Sends a mail."""
    SENT.append(to)
    return "sent"


SERVERS: dict[str, type[LoopbackServer]] = {
    "openai:gpt-5-mini": OpenAIServer,
    "anthropic:claude-sonnet-5": AnthropicServer,
}
LOOK = Says(
    "I look.", calls=[("get_weather", '{"city": "Oslo"}'), ("get_weather", '{"city": "Atlantis"}')], finish="tool_calls"
)
SEND = Says(calls=[("send_email", '{"to": "a@example.com", "body": "3"}')], finish="tool_calls")


def agent(model: str, server: LoopbackServer, **options: Any) -> Agent:
    tools = [get_weather, send_email]
    return Agent(
        model, tools, base_url=server.url, api_key="sk-test-0123456789", mode="loop", policy="declared", **options
    )


def results(model: str, body: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the ids and texts of all results in a request, after making sure that each answers a call before it."""
    found: list[tuple[str, str]] = []
    asked: list[str] = []
    for message in body["messages"]:
        if model.startswith("openai"):
            asked += [call["id"] for call in message.get("tool_calls") or ()]
            if message["role"] == "tool":
                found.append((message["tool_call_id"], message["content"]))
        elif not isinstance(message["content"], str):
            asked += [part["id"] for part in message["content"] if part["type"] == "tool_use"]
            for part in message["content"]:
                if part["type"] == "tool_result":
                    content = part["content"]
                    found.append((part["tool_use_id"], content if isinstance(content, str) else content[0]["text"]))
    assert [id for id, _ in found] == asked
    assert len(set(asked)) == len(asked)
    return found


@pytest.mark.parametrize("model", SERVERS)
@pytest.mark.parametrize("streaming", [False, True])
def test_turns(model: str, streaming: bool) -> None:
    SENT.clear()
    events: list[Any] = []
    with SERVERS[model](LOOK, SEND, Says("Oslo has 3 degrees; I sent it.")) as server:
        result = agent(model, server).run_sync("Send Oslo's weather.", watch=events.append if streaming else None)
        bodies = [request.body for request in server.requests]
    assert (result.outcome, result.answer) == ("succeeded", "Oslo has 3 degrees; I sent it.")
    assert (result.inferences, result.usage.requests, SENT) == (3, 3, ["a@example.com"])
    assert len(bodies[0]["tools"]) == 2
    told = [text for _, text in results(model, bodies[2])]
    assert told[0] == '{"temperature": 3.0}'
    assert "there is no such city" in told[1]
    assert told[2] == "sent"
    if streaming:
        assert "".join(event.text for event in events if isinstance(event, ReplyStreamed)).endswith("I sent it.")


@pytest.mark.parametrize("model", SERVERS)
def test_a_conversation(model: str) -> None:
    plan = {"steps": [{"tool_name": "get_weather", "arguments": {"city": "Oslo"}}], "answer": "3 degrees."}
    SENT.clear()
    with SERVERS[model](Says(json.dumps(plan)), SEND, Says("Sent."), Says("You are welcome.")) as server:
        talk = agent(model, server, early_start=False).conversation()
        assert talk.send_sync("How cold is Oslo?", mode="plan").answer == "3 degrees."
        assert talk.send_sync("Send it to a@example.com.").answer == "Sent."
        assert talk.send_sync("Thanks.").answer == "You are welcome."
        last = server.requests[-1].body
    assert [text for _, text in results(model, last)] == ['{"temperature": 3.0}', "sent"]
    assert SENT == ["a@example.com"]


@pytest.mark.parametrize("model", SERVERS)
def test_a_replan(model: str) -> None:
    first = {"steps": [{"tool_name": "get_weather", "arguments": {"city": "Atlantis"}}], "answer": "cold"}
    with SERVERS[model](Says(json.dumps(first)), Says('{"steps": [], "answer": "There is no Atlantis."}')) as server:
        result = agent(model, server).run_sync("How cold is Atlantis?", mode="plan")
        assert len(server.requests) == 2
    assert (result.outcome, result.answer, result.replans) == ("succeeded", "There is no Atlantis.", 1)
