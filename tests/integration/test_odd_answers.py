"""Answers with status 200 that are none, and choices of another reply."""

from __future__ import annotations

import json
from typing import Any

import pytest

from integration.servers import OpenAIServer, Sends
from toolplan.errors import ModelError
from toolplan.models import Message, ModelRequest, Retry, model_from_name

REQUEST = ModelRequest((Message("user", "hello"),))


def model_at(server: OpenAIServer, *, streamed: bool) -> Any:
    return model_from_name("vllm:m", server.url, "sk-test-key", stream=streamed, retry=Retry(max_retries=0))


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        ({"message": "Rate limit exceeded", "code": 429}, "busy"),
        ({"message": "Rate limit exceeded"}, "failed"),
        ("Rate limit exceeded", "failed"),
    ],
)
async def test_an_error_in_the_place_of_a_reply_says_what_the_server_says(error: Any, reason: str) -> None:
    with (
        OpenAIServer(Sends(json.dumps({"error": error}))) as server,
        pytest.raises(ModelError, match="Rate limit exceeded") as caught,
    ):
        await model_at(server, streamed=False).ask(REQUEST)
    assert caught.value.reason == reason
    assert "validation" not in str(caught.value)


def chunk(index: int, text: str, finish: str | None = None) -> str:
    choice = {"index": index, "delta": {"content": text}, "finish_reason": finish}
    return "data: " + json.dumps(
        {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    )


@pytest.mark.parametrize(
    ("chunks", "text"),
    [
        ([chunk(1, "garbage"), chunk(0, "It is "), chunk(1, "more"), chunk(0, "cold.", "stop")], "It is cold."),
        ([chunk(1, "It is "), chunk(1, "cold.", "stop")], "It is cold."),
    ],
)
async def test_choices_of_another_reply_are_no_part_of_this_one(chunks: list[str], text: str) -> None:
    body = "\n\n".join([*chunks, "data: [DONE]"]) + "\n\n"
    with OpenAIServer(Sends(body, "text/event-stream")) as server:
        reply = await model_at(server, streamed=True).ask(REQUEST)
    assert reply.text == text


async def test_choices_of_another_reply_that_is_not_streamed() -> None:
    choices = [
        {"index": n, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        for n, text in ((1, "garbage"), (0, "It is cold."))
    ]
    body = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": choices}
    with OpenAIServer(Sends(json.dumps(body))) as server:
        assert (await model_at(server, streamed=False).ask(REQUEST)).text == "It is cold."
