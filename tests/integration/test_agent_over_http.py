"""The main job over real HTTP: a provider's protocol on one side, real tools on the other."""

from __future__ import annotations

import json
from typing import Any

import pytest

from integration.servers import AnthropicServer, Gate, LoopbackServer, OpenAIServer, Says
from toolplan import Agent, ModelError, tool
from toolplan.agent import ReplyStreamed
from toolplan.agent_events import ReplyStartsOver
from toolplan.models import model_from_name

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
    return Agent(
        model,
        [get_weather, send_email],
        base_url=server.url,
        api_key="sk-test-0123456789",
        policy="declared",
        **options,
    )


@pytest.mark.parametrize("model", SERVERS)
@pytest.mark.parametrize("streaming", [False, True])
def test_one_request_one_inference(model: str, streaming: bool) -> None:
    SENT.clear()
    events: list[Any] = []
    with SERVERS[model](Says(json.dumps(PLAN, ensure_ascii=False))) as server:
        asking = agent(model, server, early_start=streaming)
        result = asking.run_sync("北京冷不冷？", watch=events.append if streaming else None)
        assert len(server.requests) == 1
    assert (result.outcome, result.answer, result.inferences) == ("succeeded", "北京3.0度。", 1)
    assert SENT == [("me@example.com", "3.0度")]
    assert not result.usage.estimated
    assert result.usage.input_tokens > 0
    if streaming:
        streamed = "".join(event.text for event in events if isinstance(event, ReplyStreamed))
        assert json.loads(streamed) == PLAN


@pytest.mark.parametrize("model", SERVERS)
def test_a_look_up_starts_while_the_rest_of_the_plan_is_still_on_the_wire(model: str) -> None:
    gate = Gate()

    @tool(reads="weather")
    def look_up(city: str) -> float:
        """Looks up the temperature in a city; the server goes on only after that."""
        gate.open()
        return 3.0

    plan = json.dumps([{"tool_name": "look_up", "arguments": {"city": "Oslo"}}, {"answer": "{look_up}"}])
    at = plan.index(', {"answer"')
    with SERVERS[model](Says([plan[:at], plan[at:]], gates=[gate])) as server:
        asking = Agent(model, [look_up], base_url=server.url, api_key="sk-test-0123456789")
        result = asking.run_sync("How cold is it in Oslo?")
    assert (result.outcome, result.answer, result.discarded) == ("succeeded", "3.0", ())
    assert (result.steps[0].started_seconds or 0) < 0


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


# ---- a reply that breaks off begins anew

LOOK_UP = json.dumps({"steps": [{"tool_name": "look_up", "arguments": {"city": "Oslo"}}], "answer": "{look_up}"})
HALF = LOOK_UP.index(', "answer"')


def _looking(looked: list[str]) -> Any:
    @tool(reads="weather")
    def look_up(city: str) -> float:
        """Looks up the temperature in a city."""
        looked.append(city)
        return 3.0

    return look_up


@pytest.mark.parametrize("model", SERVERS)
@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize("trouble", ["breaks_after", "stops_after"])
def test_a_plan_that_breaks_off_is_asked_for_again(model: str, watched: bool, trouble: str) -> None:
    looked: list[str] = []
    events: list[Any] = []
    pieces = [LOOK_UP[:HALF], LOOK_UP[HALF:]]
    broken = Says(pieces, breaks_after=1) if trouble == "breaks_after" else Says(pieces, stops_after=1)
    with SERVERS[model](broken, Says(LOOK_UP)) as server:
        asking = Agent(model, [_looking(looked)], base_url=server.url, api_key="sk-test-0123456789")
        try:
            result = asking.run_sync("How cold is it in Oslo?", watch=events.append if watched else None)
        except ModelError as error:
            pytest.fail(f"not asked again: {error}")
        assert len(server.requests) == 2
    assert (result.outcome, result.answer, looked, result.discarded) == ("succeeded", "3.0", ["Oslo"], ())
    assert (result.inferences, result.usage.requests) == (1, 2)
    if watched:
        at = next(n for n, event in enumerate(events) if isinstance(event, ReplyStartsOver))
        told = [event.text for event in events[at:] if isinstance(event, ReplyStreamed)]
        assert json.loads("".join(told)) == json.loads(LOOK_UP)


@pytest.mark.parametrize("mode", ["plan", "loop"])
def test_a_reply_that_breaks_off_for_good_moves_on_to_the_next_model(mode: Any) -> None:
    looked: list[str] = []
    events: list[Any] = []
    said = LOOK_UP if mode == "plan" else "It is 3.0 in Oslo."
    broken = [Says([said[:HALF], said[HALF:]] if mode == "plan" else ["It", " is"], breaks_after=1)] * 3
    with OpenAIServer(*broken) as one, AnthropicServer(Says(said)) as two:
        models = [
            model_from_name("openai:first", one.url, "sk-test-0123456789"),
            model_from_name("anthropic:second", two.url, "sk-test-0123456789"),
        ]
        asking = Agent(models, [_looking(looked)], mode=mode)
        result = asking.run_sync("How cold is it in Oslo?", watch=events.append)
        assert (len(one.requests), len(two.requests)) == (3, 1)
    assert (result.outcome, "3.0" in result.answer) == ("succeeded", True)
    begins = [n for n, event in enumerate(events) if isinstance(event, ReplyStartsOver)]
    assert len(begins) == 3
    assert "".join(event.text for event in events[begins[-1] :] if isinstance(event, ReplyStreamed)) == said
    assert len(looked) == (1 if mode == "plan" else 0)
