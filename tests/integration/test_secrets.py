"""Keys and passwords stay where they belong: in no error, log, repr, event, note or recording."""

from __future__ import annotations

import base64
import json
import logging
import traceback
from pathlib import Path
from typing import Any

import pytest

from integration.servers import AnthropicServer, Fails, GeminiServer, LoopbackServer, OpenAIServer, Says
from toolplan import Agent, tool
from toolplan.errors import ModelError, UsageError
from toolplan.models import FallbackModel, Message, ModelRequest, RecordingModel, Retry, ToolSpec, model_from_name

KEY = "sk-proj-abcDEF123456789"
PLAIN_KEY = "0123456789abcdef0123"
"""A key that looks like none."""
PASSWORD = "p4ss%2Fw0rd"
SPELLINGS = ("p4ss%2Fw0rd", "p4ss/w0rd", base64.b64encode(b"bob:p4ss/w0rd").decode())
ASKED = ModelRequest((Message("user", "hi"),))
PROVIDERS = {"openai": OpenAIServer, "anthropic": AnthropicServer, "google": GeminiServer}
every_protocol = pytest.mark.parametrize("provider", PROVIDERS)
both_ways = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])


def with_login(url: str) -> str:
    return url.replace("http://", f"http://bob:{PASSWORD}@")


def model_at(server: LoopbackServer, provider: str, key: str = KEY, **options: Any):
    return model_from_name(f"{provider}:test-model", with_login(server.url), key, retry=Retry(0), **options)


def shown_by(error: BaseException) -> str:
    """Return everything that a program can print of an error, its causes included."""
    shown = "".join(traceback.format_exception(error))
    chain: BaseException | None = error
    while chain is not None:
        shown += repr(chain) + str(chain) + repr(vars(chain)) + repr(chain.args)
        chain = chain.__cause__ or chain.__context__
    return shown


def assert_clean(text: str, key: str = KEY) -> None:
    for secret in (key, key[3:], *SPELLINGS):
        assert secret not in text


@every_protocol
@both_ways
@pytest.mark.parametrize("status", [400, 401, 429, 500])
@pytest.mark.parametrize("key", [KEY, PLAIN_KEY], ids=["usual", "plain"])
async def test_a_provider_that_repeats_what_it_was_sent(
    provider: str, streamed: bool, status: int, key: str, caplog: pytest.LogCaptureFixture
):
    header = SPELLINGS[-1]
    leak = (
        f"bad key {key} from http://bob:{PASSWORD}@host/v1 (Authorization: Basic {header}; x-api-key={key}; p4ss/w0rd)"
    )
    with PROVIDERS[provider](Fails(status, leak)) as server, caplog.at_level(logging.DEBUG):
        model = model_at(server, provider, key)
        with pytest.raises(ModelError) as caught:
            await model.ask(ASKED, (lambda _: None) if streamed else None)
    # Keys and passwords do get there, or nothing of this is tested.
    sent = server.requests[0].headers
    assert header in sent["authorization"]
    if provider != "openai":  # whose key and login travel in one header, so that the login replaces the key
        assert key in "".join(sent.values())
    assert "bad key [removed]" in str(caught.value)
    assert_clean(shown_by(caught.value), key)
    assert_clean(repr(model) + str(model) + repr(vars(model)), key)
    # Not only our own log: the SDKs' and the HTTP library's too.
    assert_clean("\n".join(record.getMessage() + repr(record.args) for record in caplog.records), key)


@every_protocol
async def test_what_succeeds_shows_nothing_either(provider: str, caplog: pytest.LogCaptureFixture, tmp_path: Path):
    calls = [("f", '{"a": 1}')]
    with PROVIDERS[provider](Fails(500, KEY), Says("hm", calls=calls, thinking="t")) as server:
        inner = model_from_name(f"{provider}:m", with_login(server.url), KEY, retry=Retry(1, base_seconds=0.001))
        model = RecordingModel(FallbackModel([inner]), tmp_path / "replies.jsonl")
        tools = (ToolSpec("f", "F.", {"type": "object", "properties": {"a": {"type": "integer"}}}),)
        with caplog.at_level(logging.DEBUG):
            reply = await model.ask(ModelRequest((Message("user", "hi"),), tools=tools))
    assert_clean(repr(reply) + repr(reply.message) + json.dumps(reply.kept) + repr(reply.notes))
    assert_clean((tmp_path / "replies.jsonl").read_text(encoding="utf-8"))
    assert_clean("\n".join(record.getMessage() for record in caplog.records))


async def test_a_server_that_cannot_be_reached_is_named_without_its_password():
    model = model_from_name("compatible:m", f"http://bob:{PASSWORD}@127.0.0.1:1/v1?token=abcdef99", retry=Retry(0))
    with pytest.raises(ModelError, match=r"at http://127\.0\.0\.1:1/v1") as caught:
        await model.ask(ASKED)
    assert_clean(shown_by(caught.value) + repr(model))
    assert "abcdef99" not in shown_by(caught.value) + repr(model)


def test_a_wrong_address_is_shown_without_its_password():
    with pytest.raises(UsageError) as caught:
        model_from_name("compatible:m", f"ftp://bob:{PASSWORD}@host/v1")
    assert_clean(shown_by(caught.value))


@pytest.mark.parametrize("mode", ["plan", "loop"])
async def test_an_agents_events_and_result_show_nothing(mode: Any, caplog: pytest.LogCaptureFixture):
    @tool(pure=True)
    def look() -> str:
        """Look."""
        return "seen"

    plan = '{"steps": [{"tool_name": "look", "arguments": {}, "result_variable": "x"}], "answer": "{x}"}'
    answers = [Says(plan)] if mode == "plan" else [Says(calls=[("look", "{}")]), Says("seen")]
    events: list[Any] = []
    with OpenAIServer(Fails(500, f"{KEY} {PASSWORD}"), *answers) as server, caplog.at_level(logging.DEBUG):
        quick = Retry(1, base_seconds=0.001)
        agent = Agent(model_from_name("openai:m", with_login(server.url), KEY, retry=quick), tools=[look])
        result = await agent.run("look", watch=events.append, mode=mode)
    assert result.outcome == "succeeded"
    assert_clean(repr(events) + repr(result) + json.dumps(result.to_dict()) + repr(vars(agent)))
    assert_clean("\n".join(record.getMessage() for record in caplog.records))


async def test_keys_come_from_the_arguments_or_the_providers_own_variables(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "from-the-environment")
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    with OpenAIServer(Says("1"), Says("2")) as server:
        await model_from_name("openai:m", server.url).ask(ASKED)
        await model_from_name("openai:m", server.url, "given").ask(ASKED)
    assert [seen.headers["authorization"] for seen in server.requests] == [
        "Bearer from-the-environment",
        "Bearer given",
    ]
    assert all(KEY not in repr(seen.headers) for seen in server.requests)
