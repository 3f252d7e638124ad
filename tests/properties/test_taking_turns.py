"""Whatever a conversation holds, providers see user and assistant take turns."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai.messages import ModelRequest, ToolReturnPart, UserPromptPart

from integration.servers import OpenAIServer, Says
from toolplan import Agent, tool
from toolplan.models import Message, Retry, ToolCallPart, ToolResultPart, model_from_name
from toolplan.models.conversation import history
from toolplan.models.facts import PROVIDERS

WORDS = st.sampled_from(["", "a", "b c", " "])


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    messages = [Message("system", "rules"), Message("user", "request")]
    for kind in draw(st.lists(st.sampled_from(["user", "assistant", "calls"]), max_size=8)):
        if kind != "calls":
            messages.append(Message(kind, draw(WORDS)))  # pyright: ignore[reportArgumentType]
            continue
        calls = tuple(ToolCallPart(str(n), "look", {}) for n in range(draw(st.integers(1, 2))))
        messages.append(Message("assistant", draw(WORDS), calls))
        messages.append(Message("tool", tool_results=tuple(ToolResultPart(each.id, "look", "x") for each in calls)))
    return messages


@given(conversations(), st.sampled_from(["openai", "mistral", "anthropic", "google", "llamacpp"]))
def test_nobody_speaks_twice_in_a_row(messages: list[Message], provider: str) -> None:
    facts = PROVIDERS[provider]
    turns = history(messages, facts)
    assert all(type(one) is not type(other) for one, other in itertools.pairwise(turns))
    for turn in turns:
        if isinstance(turn, ModelRequest):
            asked = [part for part in turn.parts if isinstance(part, UserPromptPart)]
            results = [part for part in turn.parts if isinstance(part, ToolReturnPart)]
            assert len(asked) <= 1
            assert not (asked and results and facts.protocol == "openai")
    said = "\n\n".join(str(part.content) for turn in turns for part in turn.parts if isinstance(part, UserPromptPart))
    assert all(message.content.strip() in said for message in messages if message.role == "user")


@tool(reads="shelf")
def look() -> str:
    """Looks."""
    return "x"


CALL = Says("", [("look", "{}")])
PLAN = Says('[{"tool_name": "look", "arguments": {}, "result_variable": "x"}, {"answer": "{x}"}]')
EMPTY = Says("")


@pytest.mark.parametrize("provider", ["openai", "llamacpp", "mistral"])
@pytest.mark.parametrize(
    ("mode", "answers"),
    [
        ("loop", [EMPTY, CALL, Says("done")]),
        ("loop", [CALL, EMPTY, Says("done")]),
        ("loop", [Says("", [("look", "{}")], finish="length"), Says("done")]),
        ("plan", [EMPTY, PLAN]),
        ("plan", [Says('[{"tool_name": "nope"}]'), PLAN]),
        ("plan", [Says('[{"tool_name": "look", "argu', finish="length"), PLAN]),
        ("auto", [Says('{"cannot": "only results tell"}'), EMPTY, CALL, EMPTY, Says("done")]),
    ],
)
def test_a_reply_that_says_nothing_or_is_cut_off(provider: str, mode: str, answers: list[Says]) -> None:
    with OpenAIServer(*answers) as server:  # it refuses a conversation in which somebody speaks twice
        model = model_from_name(f"{provider}:m", server.url, "sk-test-key", retry=Retry(max_retries=0))
        result = Agent(model, tools=[look], mode=mode).run_sync("What is there?")  # pyright: ignore[reportArgumentType]
    assert result.outcome == "succeeded"
    assert len(server.requests) == len(answers)
