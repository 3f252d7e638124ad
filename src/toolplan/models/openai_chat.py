"""OpenAI's chat completions through the library, with what servers get wrong put right before the library reads it.

Imported with the first request to such a server: it needs `pydantic-ai-slim[openai]`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, cast

from openai.types.chat import ChatCompletion, ChatCompletionChunk
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIStreamedResponse

from toolplan.models.base import Usage
from toolplan.models.failures import NO_CHOICES, NO_REASON, UnusableReply
from toolplan.parse.formats.deltas import StreamedCalls, UsageReports, whole_message

__all__ = ["ChatModel"]


class ChatStream(OpenAIStreamedResponse):
    """A streamed reply whose chunks are put right one by one; its usage is counted once, at the end."""

    async def _validate_response(self) -> AsyncIterator[ChatCompletionChunk]:
        calls, reports = StreamedCalls(), UsageReports()
        last: dict[str, Any] = {}
        has_ended = False
        async for chunk in self._response:
            last = chunk.model_dump(warnings=False, exclude_unset=True)
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
        if isinstance(response, ChatCompletion):
            fields = response.model_dump(warnings=False, exclude_unset=True)
            if fields.get("choices") == []:  # the library would take the first all the same
                reports = UsageReports()
                reports.hear(fields.get("usage"))
                raise UnusableReply(NO_CHOICES, "unreadable", _usage(reports))
            for choice in cast("list[dict[str, Any]]", fields.get("choices") or ()):
                message = choice.get("message")
                choice["message"] = whole_message(cast("dict[str, Any]", message) if isinstance(message, dict) else {})
            response = ChatCompletion.construct(None, **fields)
        return super()._process_response(response, **options)
