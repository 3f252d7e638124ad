"""The loop and conversations over real HTTP: what the providers' servers get is in the shape that they demand."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from integration.servers import AnthropicServer, Gate, LoopbackServer, OpenAIServer, Says
from toolplan import Agent, ToolFailed, tool
from toolplan.agent import ReplyStreamed
from toolplan.journal import Journal
from toolplan.journal.waiting import approve
from toolplan.policy import policy_from_toml

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


IN_TEXT = [
    "I look.\n",
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>\n',
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Rome"}}\n</tool_call>\n',
    '<tool_call>\n{"name": "send_email", "argum',
    'ents": {"to": "a@example.com", "body": "cold"}}\n</tool_call>',
]


@pytest.mark.parametrize("model", SERVERS)
@pytest.mark.parametrize("is_text", [False, True], ids=["calls", "in text"])
def test_a_call_is_made_while_others_arrive(model: str, is_text: bool) -> None:
    """The server goes on with the last call only when the first one has been made."""
    gate = Gate()

    @tool(name="get_weather", reads="weather")
    def look(city: str) -> dict[str, float]:
        """Gets the temperature in a city."""
        gate.open()
        return {"temperature": 3.0}

    mail = ['{"to": "a@exam', 'ple.com", "body": "cold"}']
    calls = [*(("get_weather", f'{{"city": "{city}"}}') for city in ("Oslo", "Rome")), ("send_email", mail)]
    answer = Says(IN_TEXT) if is_text else Says("I look.", calls=calls, finish="tool_calls")
    passed = [_open()] * (5 if model.startswith("openai") and not is_text else 3)  # up to the beginning of the mail
    SENT.clear()
    with SERVERS[model](replace(answer, gates=[*passed, gate]), Says("Sent.")) as server:
        settings: dict[str, Any] = {"api_key": "sk-test-0123456789", "mode": "loop", "policy": "declared"}
        result = Agent(model, [look, send_email], base_url=server.url, **settings).run_sync("Send Oslo's weather.")
        told = [text for _, text in results(model, server.requests[-1].body)]
    assert (result.outcome, result.answer, result.discarded) == ("succeeded", "Sent.", ())
    assert told == ['{"temperature": 3.0}'] * 2 + ["sent"]
    assert (SENT, (result.steps[0].started_seconds or 0) < 0) == (["a@example.com"], True)


@pytest.mark.parametrize("model", SERVERS)
def test_a_stream_that_breaks_off_behind_a_call_is_asked_for_again(model: str) -> None:
    """Nothing but calls was heard of it; what was read for them is not read again."""
    looked: list[str] = []

    @tool(name="get_weather", reads="weather")
    async def look(city: str) -> str:
        """Gets the temperature in a city."""
        looked.append(city)
        return "cold"

    calls = [("get_weather", '{"city": "Oslo"}'), ("get_weather", '{"city": "Rome"}')]
    whole = Says(calls=calls, finish="tool_calls")
    lost = replace(whole, breaks_after=3 if model.startswith("openai") else 2)
    with SERVERS[model](lost, whole, Says("Cold.")) as server:
        settings: dict[str, Any] = {"api_key": "sk-test-0123456789", "mode": "loop", "policy": "declared"}
        result = Agent(model, [look], base_url=server.url, **settings).run_sync("How cold is it?")
        told = [text for _, text in results(model, server.requests[-1].body)]
    assert (result.answer, told, looked, result.discarded) == ("Cold.", ["cold", "cold"], ["Oslo", "Rome"], ())


def _open() -> Gate:
    gate = Gate()
    gate.open()
    return gate


@pytest.mark.parametrize("model", SERVERS)
@pytest.mark.parametrize("name", ["查天气", "get weather", "x" * 200, "天 气?"])
def test_a_call_by_a_name_that_no_provider_takes_ends_no_conversation(model: str, name: str) -> None:
    written = Says(f'<tool_call>\n{{"name": "{name}", "arguments": {{"city": "Oslo"}}}}\n</tool_call>')
    with SERVERS[model](written, Says("I cannot.")) as server:
        result = agent(model, server).run_sync("How cold is Oslo?")
        told = results(model, server.requests[-1].body)
    assert (result.outcome, result.answer) == ("succeeded", "I cannot.")
    assert f"no tool is named `{name}`" in told[0][1]


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


WRITTEN = Says('I look.\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>')
THINKS = Says("I look.", calls=[("get_weather", '{"city": "Oslo"}')], finish="tool_calls", thinking="hm, Oslo")


@pytest.mark.parametrize("model", SERVERS)
@pytest.mark.parametrize("look", [LOOK, WRITTEN, THINKS], ids=["calls", "in text", "thinking"])
def test_a_loop_that_is_resumed_sends_what_it_would_have_sent(model: str, look: Says, tmp_path: Path) -> None:
    """Thinking with its signature, calls in the provider's shape or as text: byte for byte."""

    def play(server: LoopbackServer, person: Any) -> Agent:
        options: dict[str, Any] = {"now": "2026-03-01", "journal": tmp_path / "j.db", "approve": person}
        made = agent(model, server, **options)
        made.policy = policy_from_toml('[[rule]]\nname = "asks"\ntool = "send_email"\nthen = "ask"\n', "asks")
        return made

    SENT.clear()
    with SERVERS[model](look, SEND, Says("Sent.")) as server:
        assert play(server, lambda *_: True).run_sync("Send Oslo's weather.").answer == "Sent."
        at_once = [request.body for request in server.requests]
    with SERVERS[model](look, SEND, Says("Sent.")) as server:
        first = play(server, None).run_sync("Send Oslo's weather.")
        assert (first.outcome, len(server.requests), SENT) == ("waiting", 2, ["a@example.com"])
        with Journal(tmp_path / "j.db") as journal:
            approve(journal, first.run_id)
        result = play(server, None).resume_sync(first.run_id)
        in_two = [request.body for request in server.requests]
    assert (result.outcome, result.answer, SENT) == ("succeeded", "Sent.", ["a@example.com"] * 2)
    assert (result.inferences, result.usage.requests) == (3, 3)
    assert in_two == at_once
    assert not [file for file in tmp_path.iterdir() if b"sk-test" in file.read_bytes()]
