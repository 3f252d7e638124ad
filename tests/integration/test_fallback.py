"""Several models as one, over real HTTP on loopback: what moves on to the next one, and what does not."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from integration.servers import AnthropicServer, Fails, Hangs, OpenAIServer, Says, Sends
from toolplan import Agent
from toolplan.errors import ModelError, UsageError
from toolplan.models import (
    FallbackModel,
    Message,
    ModelRequest,
    Retry,
    fallback,
    model_from,
    model_from_environment,
    model_from_name,
)

KEY = "sk-proj-abcDEF123456789"
ASKED = ModelRequest((Message("user", "hi"),))
ONCE = Retry(0)


def first(server: OpenAIServer, *, retry: Retry = ONCE, **options: Any):
    return model_from_name("openai:first", server.url, KEY, retry=retry, **options)


def second(server: AnthropicServer):
    return model_from_name("anthropic:second", server.url, KEY, retry=ONCE)


@pytest.mark.parametrize(
    "answer",
    [
        Fails(429, "slow down"),
        Fails(500, "on fire"),
        Fails(503, "maintenance", retry_after="3600"),
        Fails(402, "Insufficient Balance"),
        Says(""),
        Says("x", breaks_after=0),
        Says(empty=True),
        Sends("<html>gateway</html>"),
        Hangs(),
    ],
    ids=lambda answer: f"{type(answer).__name__}-{getattr(answer, 'status', '')}",
)
async def test_trouble_of_one_provider_moves_on(answer: Any):
    with OpenAIServer(answer) as one, AnthropicServer(Says("from the second", usage=(10, 5, 0))) as two:
        reply = await fallback(first(one, timeout_seconds=1.0), second(two)).ask(ASKED)
    assert reply.text == "from the second"
    assert reply.model.startswith("second")
    assert "`openai:first`" in reply.notes[0]
    assert reply.notes[-1] == "`anthropic:second` answered instead"


async def test_nobody_there_moves_on():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    gone = model_from_name("ollama:qwen3", f"http://127.0.0.1:{port}/v1", retry=ONCE)
    with AnthropicServer(Says("here")) as two:
        reply = await fallback(gone, second(two)).ask(ASKED)
    assert reply.text == "here"
    assert "could not reach" in reply.notes[0]


@pytest.mark.parametrize(
    "answer",
    [
        Fails(400, "bad request"),
        Fails(401, "bad key"),
        Fails(404, "no model"),
        Says(refusal="No."),
        Says("", finish="content_filter"),
    ],
    ids=["400", "401", "404", "refusal", "filter"],
)
async def test_what_somebody_should_hear_of_does_not(answer: Any):
    with OpenAIServer(answer) as one, AnthropicServer() as two, pytest.raises(ModelError) as caught:
        await fallback(first(one), second(two)).ask(ASKED)
    assert caught.value.provider == "openai"
    assert two.requests == []


async def test_what_moves_on_can_be_chosen():
    with OpenAIServer(Says(refusal="No.")) as one, AnthropicServer(Says("Yes.")) as two:
        reply = await fallback(first(one), second(two), on={"declined"}).ask(ASKED)
    assert reply.text == "Yes."
    with OpenAIServer(Fails(500)) as one, AnthropicServer() as two, pytest.raises(ModelError):
        await fallback(first(one), second(two), on={"declined"}).ask(ASKED)


async def test_the_first_that_answers_is_all_that_is_asked():
    with OpenAIServer(Says("fine")) as one, AnthropicServer() as two:
        reply = await fallback(first(one), second(two)).ask(ASKED)
    assert (reply.text, reply.notes, two.requests) == ("fine", (), [])


async def test_text_that_was_passed_on_is_not_followed_by_another_models():
    heard: list[str] = []
    with (
        OpenAIServer(Says(["a", "b"], breaks_after=1)) as one,
        AnthropicServer() as two,
        pytest.raises(ModelError, match="broke off after 1 characters"),
    ):
        await fallback(first(one), second(two)).ask(ASKED, heard.append)
    assert (heard, two.requests) == (["a"], [])


async def test_an_inference_that_was_lost_is_counted():
    broken = Says(["a", "b"], breaks_after=1)
    with OpenAIServer(broken) as one, AnthropicServer(Says("ok", usage=(3, 2, 0))) as two:
        reply = await fallback(first(one, stream=True), second(two)).ask(ASKED)
    assert (reply.usage.requests, reply.usage.input_tokens) == (2, 3)


async def test_when_none_can_answer_all_is_said():
    with (
        OpenAIServer(Fails(500, f"oops {KEY}")) as one,
        AnthropicServer(Fails(529, "overloaded")) as two,
        pytest.raises(ModelError) as caught,
    ):
        await fallback(first(one), second(two)).ask(ASKED)
    assert "`openai:first` failed" in str(caught.value)
    assert "; then `anthropic:second` failed" in str(caught.value)
    assert (caught.value.provider, caught.value.status, caught.value.reason) == ("anthropic", 529, "failed")
    assert KEY not in str(caught.value)
    assert caught.value.__context__ is None


async def test_a_model_that_failed_rests_for_a_while():
    with OpenAIServer(Fails(500), Says("back")) as one, AnthropicServer(Says("1"), Says("2"), Fails(500)) as two:
        model = fallback(first(one), second(two), rest_seconds=60)
        assert [(await model.ask(ASKED)).text for _ in range(3)] == ["1", "2", "back"]
    assert (len(one.requests), len(two.requests)) == (2, 3)
    with OpenAIServer(Fails(500), Says("back")) as one, AnthropicServer(Says("1")) as two:
        model = fallback(first(one), second(two), rest_seconds=0)
        assert [(await model.ask(ASKED)).text for _ in range(2)] == ["1", "back"]


def test_names_in_a_row_are_a_list(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    names = ["openai:gpt-5-mini", "anthropic:claude-haiku-4-5", "ollama:qwen3:8b"]
    for model in (
        model_from_name(", ".join(names)),
        model_from(names),
        model_from(",".join(names)),
        fallback(*names),
        model_from_environment(environment={"TOOLPLAN_MODEL": ",".join(names)}),
        model_from_environment(names, environment={}),
        model_from_environment([f"{names[0]},{names[1]}", names[2]], environment={}),
    ):
        assert isinstance(model, FallbackModel)
        assert model.name == ",".join(names)
        assert KEY not in repr(vars(model))
    assert model_from([names[0]]).name == names[0]
    given = model_from_name(names[0])
    assert model_from(given) is given
    assert model_from([given, names[1]]).name == ",".join(names[:2])


def test_a_list_of_models_is_checked():
    with pytest.raises(UsageError, match="at least one"):
        fallback()
    with pytest.raises(UsageError, match="no provider is named"):
        model_from_name("ollama:a,opnai:b")
    for wrong in (
        lambda: model_from_name("ollama:a,ollama:b", "http://localhost:1/v1"),
        lambda: model_from(["ollama:a", "ollama:b"], api_key="k"),
    ):
        with pytest.raises(UsageError, match="belongs to one model"):
            wrong()


async def test_an_agent_takes_a_list_of_models():
    with (
        OpenAIServer(Fails(500)) as one,
        AnthropicServer(Says(calls=[("submit_plan", '{"cannot": "no tools"}')])) as two,
    ):
        agent = Agent(fallback(first(one), second(two)), tools=[])
        result = await agent.run("hi")
    assert result.inferences == 1
    assert "no tools" in result.answer


@pytest.mark.parametrize("streamed", [False, True])
async def test_what_an_empty_reply_has_cost_is_counted(streamed: bool):
    with OpenAIServer(Says("", usage=(1000, 500, 0))) as one, AnthropicServer(Says("ok", usage=(3, 2, 0))) as two:
        models = fallback(first(one), second(two))
        reply = await models.ask(ASKED, (lambda _: None) if streamed else None)
    assert (reply.usage.requests, reply.usage.input_tokens, reply.usage.output_tokens) == (2, 1003, 502)


async def test_an_agent_counts_the_replies_that_were_lost():
    plan = Says('{"steps": [], "answer": "hello"}', usage=(3, 2, 0))
    with OpenAIServer(Says(empty=True, usage=(100, 0, 0)), Fails(500), plan) as one:
        result = await Agent(first(one, retry=Retry(2, 0.001)), tools=[]).run("hi")
    assert (result.inferences, result.usage.requests, result.usage.input_tokens) == (1, 2, 103)


async def test_a_request_that_ends_with_an_error_says_what_it_has_cost():
    no_plan = Says('{"steps": [{"tool_name": "none"}]}', usage=(100, 9, 0))
    with OpenAIServer(no_plan, Fails(401)) as one, pytest.raises(ModelError) as caught:
        await Agent(first(one), tools=[]).run("hi")
    assert (caught.value.usage.requests, caught.value.usage.input_tokens) == (1, 100)


@pytest.mark.parametrize("mode", ["plan", "loop"])
async def test_an_agent_counts_what_empty_replies_have_cost(mode: Any):
    empty = Says("", usage=(1000, 500, 0))
    with OpenAIServer(empty, Says('{"cannot": "no", "missing": ["all"]}', usage=(3, 2, 0))) as one:
        result = await Agent(first(one), tools=[], mode=mode).run("hi")
    assert (result.inferences, result.usage.input_tokens, result.usage.output_tokens) == (2, 1003, 502)
