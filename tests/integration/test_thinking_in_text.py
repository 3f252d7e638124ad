"""Thinking between tags in the text of replies: read alike, however a server cuts its stream, and unstreamed."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from integration.servers import OpenAIServer, Says
from toolplan import Agent, tool
from toolplan.models import Retry, model_from_name

PROVIDERS = ["openai", "ollama", "vllm", "deepseek", "dashscope", "llamacpp"]
PLAN = json.dumps(
    {
        "steps": [{"tool_name": "get_weather", "arguments": {"city": "Oslo"}, "result_variable": "w"}],
        "answer": "It is {w}.",
    }
)
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
THOUGHT = "\nlet me see {a} <b>\n"
BEGINNINGS = [f"<think>{THOUGHT}</think>\n\n", f"<think>{THOUGHT}</think>", "<think>\n\n</think>\n\n"]
TOKENS = re.compile(r"</?think>|\s+|\w+|.", re.DOTALL)


@tool(reads="weather")
def get_weather(city: str) -> str:
    """The weather of a city."""
    return f"cold in {city}"


def agent_at(server: OpenAIServer, provider: str, *, streamed: bool, **options: object) -> Agent:
    model = model_from_name(
        f"{provider}:test-model", server.url, "sk-test-key", stream=streamed, retry=Retry(max_retries=0)
    )
    return Agent(model, tools=[get_weather], max_repairs=0, **options)  # pyright: ignore[reportArgumentType]


def planned(pieces: list[str], provider: str, *, streamed: bool = True) -> tuple[str, str, int]:
    with OpenAIServer(Says(pieces)) as server:
        result = agent_at(server, provider, streamed=streamed).run_sync("How cold is it in Oslo?")
    return result.outcome, result.answer, result.inferences


def looped(first: list[str], last: list[str], provider: str, *, streamed: bool = True) -> tuple[str, str, int]:
    with OpenAIServer(Says(first), Says(last)) as server:
        result = agent_at(server, provider, streamed=streamed, mode="loop").run_sync("How cold is it in Oslo?")
    return result.outcome, result.answer, len(result.steps)


@st.composite
def cut(draw: st.DrawFn, text: str) -> list[str]:
    """Give the text in pieces: tokens as servers have them, some of them sent together."""
    pieces: list[str] = []
    for token in TOKENS.findall(text):
        if pieces and draw(st.booleans()):
            pieces[-1] += token
        else:
            pieces.append(token)
    return pieces


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param(["<think>", "\n", "let", " me\n", "</think>", "\n\n", PLAN], id="a tag alone"),
        pytest.param(["<think>", "\n", "let me", "\n</think>", "\n\n", PLAN], id="a line before the end"),
        pytest.param(["<think>", "\n", "let me\n", "</think>\n\n", PLAN], id="lines behind the end"),
        pytest.param(["<think>\n", "let me\n", "</think>\n\n", PLAN], id="a line behind the beginning"),
        pytest.param(["<think>", "\nlet me\n", f"</think>\n\n{PLAN}"], id="the end with the plan"),
        pytest.param(["let me\n", "</think>", "\n\n", PLAN], id="no beginning"),
    ],
)
def test_a_plan_behind_thinking(provider: str, pieces: list[str]) -> None:
    expected = ("succeeded", "It is cold in Oslo.", 1)
    assert planned(pieces, provider) == expected
    assert planned(pieces, provider, streamed=False) == expected


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("streamed", [True, False])
def test_calls_and_an_answer_behind_thinking(provider: str, streamed: bool) -> None:
    first = ["<think>", "\nlet me\n", f"</think>\n\n{CALL}"]
    last = ["<think>", "\nso\n", "</think>\n\nIt is cold."]
    assert looped(first, last, provider, streamed=streamed) == ("succeeded", "It is cold.", 1)


@pytest.mark.parametrize("streamed", [True, False])
def test_thinking_before_calls_that_the_server_has_read_goes_back_as_it_came(streamed: bool) -> None:
    text = ["<think>", "\nlet me", "\n</think>\n\n", "I look."]
    with OpenAIServer(Says(text, [("get_weather", '{"city": "Oslo"}')]), Says("It is cold.")) as server:
        result = agent_at(server, "openai", streamed=streamed, mode="loop").run_sync("How cold is it in Oslo?")
    assert (result.outcome, result.answer) == ("succeeded", "It is cold.")
    (said,) = [message for message in server.requests[1].body["messages"] if message["role"] == "assistant"]
    assert said["content"].split() == ["<think>", "let", "me", "</think>", "I", "look."]


@pytest.mark.parametrize("streamed", [True, False])
def test_thinking_is_no_part_of_an_answer_that_the_model_words(streamed: bool) -> None:
    worded = ["<think>", "\nhm", "\n</think>\n\n", "It is cold."]
    with OpenAIServer(Says(PLAN), Says(worded)) as server:
        result = agent_at(server, "vllm", streamed=streamed, answer="model").run_sync("How cold is it in Oslo?")
    assert (result.outcome, result.answer) == ("succeeded", "It is cold.")


@pytest.mark.parametrize("beginning", BEGINNINGS)
@settings(max_examples=10, phases=[Phase.generate], deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), provider=st.sampled_from(PROVIDERS))
def test_however_the_stream_is_cut(beginning: str, data: st.DataObject, provider: str) -> None:
    assert planned(data.draw(cut(beginning + PLAN)), provider) == ("succeeded", "It is cold in Oslo.", 1)
    first, last = data.draw(cut(beginning + CALL)), data.draw(cut(f"{beginning}It is cold."))
    assert looped(first, last, provider) == ("succeeded", "It is cold.", 1)
