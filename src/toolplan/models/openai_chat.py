"""OpenAI's chat completions through the library, with what servers get wrong put right before the library reads it.

Thinking that a server leaves in the text, between tags, stays there. The library would look for it by whole chunks, so
that what is thinking would hang on how a server cuts its stream; the readers of a reply find it themselves.

Imported with the first request to such a server: it needs `pydantic-ai-slim[openai]`.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass, replace
from typing import Any, cast

from openai.types.chat import ChatCompletion, ChatCompletionChunk
from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError
from pydantic_ai.messages import TextPart, ThinkingPart
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIStreamedResponse
from pydantic_ai.profiles import DEFAULT_THINKING_TAGS

from toolplan.models.base import Usage
from toolplan.models.failures import NO_CHOICES, NO_REASON, UnusableReply
from toolplan.parse.formats.deltas import StreamedCalls, UsageReports, whole_message

__all__ = ["ChatModel"]


@dataclass
class ChatStream(OpenAIStreamedResponse):
    """A streamed reply whose chunks are put right one by one; its usage is counted once, at the end."""

    def __post_init__(self) -> None:
        self._model_profile = cast("Any", {**self._model_profile, "thinking_tags": None})

    async def _validate_response(self) -> AsyncIterator[ChatCompletionChunk]:
        calls, reports = StreamedCalls(), UsageReports()
        last: dict[str, Any] = {}
        has_ended = False
        async for last in _of_one_reply(self._response):
            reports.hear(last.pop("usage", None))
            for choice in cast("list[dict[str, Any]]", last.get("choices") or ()):
                has_ended = has_ended or bool(choice.get("finish_reason"))
                delta = choice.get("delta")
                if not isinstance(delta, dict):
                    continue
                fields = cast("dict[str, Any]", delta)
                legacy = fields.pop("function_call", None)
                given = fields.get("tool_calls") or ([{"function": legacy}] if legacy else [])
                pieces = cast("list[object]", given) if isinstance(given, list) else []
                fields["tool_calls"] = calls.put_right(pieces) or None
            yield _chunk(last)
        if not has_ended:  # a stream that just stops is no finished reply
            raise UnusableReply(NO_REASON, "broke_off", _usage(reports))
        if reports.total:
            yield _chunk({**last, "choices": [], "usage": reports.total})


async def _of_one_reply(chunks: AsyncIterable[ChatCompletionChunk]) -> AsyncIterator[dict[str, Any]]:
    """Give the fields of the chunks, with choices of one reply only: the first, by the number that a choice has."""
    others: list[dict[str, Any]] = []
    has_first = False
    async for chunk in chunks:
        fields = chunk.model_dump(warnings=False, exclude_unset=True)
        choices = cast("list[Any]", fields.get("choices") or [])
        first = _first(choices)
        has_first = has_first or bool(first)
        if len(first) < len(choices):
            others.append({**fields, "choices": [choice for choice in choices if choice not in first]})
        yield {**fields, "choices": first} if choices else fields
    for fields in () if has_first else others:  # a server that numbers its only choice otherwise
        yield fields


def _first(choices: list[Any]) -> list[Any]:
    return [choice for choice in choices if not isinstance(choice, dict) or not cast("Any", choice).get("index")]


def _chunk(fields: dict[str, Any]) -> ChatCompletionChunk:
    # Not checked, as the SDK does not check what it reads either: extra fields stay.
    return ChatCompletionChunk.construct(None, **fields)


def _usage(reports: UsageReports) -> Usage | None:
    """Return what a lost reply has cost, where that was said."""
    asked, written = ((reports.total or {}).get(key) or 0 for key in ("prompt_tokens", "completion_tokens"))
    return Usage(1, int(asked), int(written)) if reports.total else None


class ChatModel(OpenAIChatModel):
    """A model behind OpenAI's chat completions, whoever serves it."""

    @property
    def _streamed_response_cls(self) -> type[OpenAIStreamedResponse]:
        return ChatStream

    def _process_response(self, response: ChatCompletion | str, **options: Any) -> Any:
        if not isinstance(response, ChatCompletion):
            return super()._process_response(response, **options)
        fields = response.model_dump(warnings=False, exclude_unset=True)
        choices = cast("list[Any]", fields.get("choices") or [])
        if not choices:
            self._raise_error(fields)
        if fields.get("choices") == []:  # the library would take the first all the same
            reports = UsageReports()
            reports.hear(fields.get("usage"))
            raise UnusableReply(NO_CHOICES, "unreadable", _usage(reports))
        fields["choices"] = choices = _first(choices) or choices
        for choice in choices:
            message = choice.get("message")
            choice["message"] = whole_message(cast("dict[str, Any]", message) if isinstance(message, dict) else {})
        text = choices[0]["message"].get("content") if choices else None
        begins, _ = self.profile.get("thinking_tags", DEFAULT_THINKING_TAGS)
        if not isinstance(text, str) or begins not in text:
            return super()._process_response(ChatCompletion.construct(None, **fields), **options)
        choices[0]["message"]["content"] = None
        parsed = super()._process_response(ChatCompletion.construct(None, **fields), **options)
        before = [part for part in parsed.parts if isinstance(part, ThinkingPart)]
        return replace(parsed, parts=[*before, TextPart(text), *parsed.parts[len(before) :]])

    def _raise_error(self, fields: dict[str, Any]) -> None:
        """Raise the error that came in the place of a reply, with status 200, if one did."""
        error = fields.get("error")
        if not error:
            return
        status = cast("dict[str, object]", error).get("code") if isinstance(error, dict) else None
        if isinstance(status, int) and 400 <= status < 600:
            raise ModelHTTPError(status, self.model_name, fields)
        raise ModelAPIError(self.model_name, error if isinstance(error, str) else json.dumps(error, default=str))
