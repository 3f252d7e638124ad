"""The main job over real HTTP: a provider's protocol on one side, real tools on the other."""

from __future__ import annotations

import json
from typing import Any

import pytest

from integration.servers import AnthropicServer, LoopbackServer, OpenAIServer, Says
from toolplan import Agent, ModelError, tool
from toolplan.agent import ReplyStreamed

MAIL = {"tool_name": "send_email", "arguments": {"to": "me@example.com", "body": "{w.temperature}度"}}
PLAN = {
    "steps": [
        {"tool_name": "get_weather", "arguments": {"city": "北京"}, "result_variable": "w"},
        {"if": "w.temperature < 5", "then": [MAIL]},
    ],
    "answer": "北京{w.temperature}度。",
}
SENT: list[tuple[str, str]] = []


@tool(reads="weather")
def get_weather(city: str) -> dict[str, float]:
    """Gets the temperature in a city."""
    return {"temperature": 3.0}


@tool(writes="mailbox:{to}")
def send_email(to: str, body: str) -> str:
    """Sends a mail."""
    SENT.append((to, body))
    return "sent"


SERVERS: dict[str, type[LoopbackServer]] = {
    "openai:gpt-5-mini": OpenAIServer,
    "anthropic:claude-sonnet-5": AnthropicServer,
}


def agent(model: str, server: LoopbackServer, **options: Any) -> Agent:
    return Agent(model, [get_weather, send_email], base_url=server.url, api_key="sk-test-0123456789", **options)


@pytest.mark.parametrize("model", SERVERS)
@pytest.mark.parametrize("streaming", [False, True])
def test_one_request_one_inference(model: str, streaming: bool) -> None:
    SENT.clear()
    events: list[Any] = []
    with SERVERS[model](Says(json.dumps(PLAN, ensure_ascii=False))) as server:
        result = agent(model, server).run_sync("北京冷不冷？", watch=events.append if streaming else None)
        assert len(server.requests) == 1
    assert (result.outcome, result.answer, result.inferences) == ("succeeded", "北京3.0度。", 1)
    assert SENT == [("me@example.com", "3.0度")]
    assert not result.usage.estimated
    assert result.usage.input_tokens > 0
    if streaming:
        streamed = "".join(event.text for event in events if isinstance(event, ReplyStreamed))
        assert json.loads(streamed) == PLAN


@pytest.mark.parametrize("model", SERVERS)
def test_a_rejected_plan_is_mended_over_the_wire(model: str) -> None:
    wrong = json.dumps(PLAN).replace("get_weather", "get_wether")
    with SERVERS[model](Says(wrong), Says(json.dumps(PLAN))) as server:
        result = agent(model, server).run_sync("Is it cold in Beijing?")
        assert len(server.requests) == 2
        assert "TP201" in json.dumps(server.requests[1].body)
    assert (result.outcome, result.inferences) == ("succeeded", 2)


def test_a_server_that_is_not_there_is_an_error_without_the_key() -> None:
    with OpenAIServer() as server:
        base = server.url
    broken = Agent("openai:gpt-5-mini", [get_weather], base_url=base, api_key="sk-secret-0123456789")
    with pytest.raises(ModelError) as failure:
        broken.run_sync("Is it cold in Beijing?")
    assert "sk-secret" not in str(failure.value)
