"""Every hosted and local provider, through the direct model API of `pydantic-ai-slim`.

    ask ── one attempt after another, until one gives a reply or nothing is left to try
      attempt ── one HTTP request: streamed when somebody listens, and read to its end

Only the library's request translation is used: not its agent, not its retries (the SDKs' are set to 0), and it is
imported with the first `ask`. A reply counts only when it is whole: a stream that stops without saying why is an
error, whatever arrived before. A request is repeated only while nothing of its reply has been passed on.

Connections belong to an event loop, and `run_sync` opens a new loop each time, so each loop has its own client. An
async generator keeps it open: when the loop ends, `asyncio.run` closes its generators, and so the client. A model that
is thrown away earlier closes in the background, if the loop still runs long enough; `close` does it for certain.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, cast

from toolplan.models.base import (
    ModelRequest,
    OnText,
    Output,
    Reply,
    ToolCallPart,
    Usage,
    estimate_tokens,
)
from toolplan.models.failures import NO_REASON, Attempt, Failure, Target, UnusableReply, explain
from toolplan.models.outputs import history, parameters, state_schema, ways
from toolplan.models.retry import Retry

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse, ModelResponseStreamEvent
    from pydantic_ai.models import Model as LibraryModel
    from pydantic_ai.profiles import ModelProfile
    from pydantic_ai.settings import ModelSettings

__all__ = ["ProviderModel"]

_log = logging.getLogger(__name__)

NO_KEY = "no-key-needed"
"""Sent as the key to servers that need none, because the SDKs insist on one."""


class ProviderModel:
    """A model of one provider.

    `output` overrides how a wanted shape travels; "auto" takes the best way that the provider has and walks down when
    the server refuses, remembering what was refused for the life of this object. `stream` False never streams, True
    always does; None streams when `ask` is given `on_text`. `timeout_seconds` bounds one attempt from the first byte
    sent to the last one read.
    """

    def __init__(
        self,
        target: Target,
        *,
        output: Output | Literal["auto"] = "auto",
        stream: bool | None = None,
        retry: Retry | None = None,
        timeout_seconds: float = 600.0,
    ) -> None:
        self._target = target
        self._output: Output | Literal["auto"] = output
        self._stream = True if stream is None and target.facts.always_streams else stream
        self._retry = retry or Retry()
        self._timeout_seconds = timeout_seconds
        self._refused: set[Output] = set()
        self._clients: dict[asyncio.AbstractEventLoop, _Client] = {}

    @property
    def name(self) -> str:
        """The model's full name, as in `openai:gpt-5-mini`."""
        return self._target.name

    def __repr__(self) -> str:
        return f"ProviderModel({self.name} at {self._target.shown_url})"

    async def ask(self, request: ModelRequest, on_text: OnText | None = None) -> Reply:
        """Return the model's complete reply. See `Model.ask` for what it promises and raises."""
        model = await self._model()
        notes: list[str] = []
        attempts = 0
        lost = 0
        waited_seconds = 0.0
        while True:
            way = self._way(request, model)
            listener = _Listener(on_text)
            streamed = self._stream if self._stream is not None else on_text is not None
            attempts += 1
            try:
                async with asyncio.timeout(self._timeout_seconds):
                    reply = await self._attempt(model, request, way, listener, streamed)
                return replace(reply, notes=tuple(notes), usage=reply.usage + Usage(requests=lost))
            except Exception as error:
                if error is listener.error:
                    raise
                attempt = Attempt(streamed, way not in (None, "text"), listener.arrived)
                failure = explain(error, self._target, attempt, attempts=attempts)
            # Outside the handler, so that the error carries no context: the SDK's own errors hold request headers.
            wait_seconds = self._next_wait(failure, way, attempts, waited_seconds, listener)
            if wait_seconds is None:
                raise failure.error
            notes.append(failure.error.message)
            # A reply that broke off was an inference all the same.
            lost += listener.arrived > 0
            _log.info("asking again: %s", failure.error.message)
            waited_seconds += wait_seconds
            await asyncio.sleep(wait_seconds)

    async def close(self) -> None:
        """Close the connections of the running event loop. They open again when needed."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.keeper.aclose()

    # ---- what to try

    def _way(self, request: ModelRequest, model: LibraryModel[Any]) -> Output | None:
        if request.schema is None:
            return None
        if self._output != "auto":
            return self._output
        possible = ways(request.schema, self._target.facts, cast("dict[str, Any]", model.profile))
        return next(way for way in possible if way == "text" or way not in self._refused)

    def _next_wait(
        self, failure: Failure, way: Output | None, attempts: int, waited_seconds: float, listener: _Listener
    ) -> float | None:
        """Return the seconds to wait before the next attempt, or None when there is to be none."""
        if listener.passed_on or failure.kind == "final":
            return None
        if failure.kind == "refused":
            if way is None or self._output != "auto":
                return None
            self._refused.add(way)
            return 0.0
        if failure.kind == "unstreamable":
            if self._stream is False:
                return None
            self._stream = False
            return 0.0
        return self._retry.wait_seconds(
            attempts, waited_seconds=waited_seconds, asked_seconds=failure.asked_seconds, draw=random.random()
        )

    # ---- one attempt

    async def _attempt(
        self, model: LibraryModel[Any], request: ModelRequest, way: Output | None, listener: _Listener, streamed: bool
    ) -> Reply:
        from pydantic_ai import direct

        messages = history(state_schema(request) if way == "text" else request.messages)
        parcel = parameters(request, way or "text", self._target.facts)
        settings = _settings(request)
        if streamed:
            async with direct.model_request_stream(
                model, messages, model_settings=settings, model_request_parameters=parcel
            ) as stream:
                heard = _Heard(request.schema_name, listener)
                async for event in stream:
                    heard.hear(event)
                response = stream.get()
                if response.finish_reason is None and not (response.provider_details or {}).get("finish_reason"):
                    raise UnusableReply(NO_REASON)
        else:
            response = await direct.model_request(
                model, messages, model_settings=settings, model_request_parameters=parcel
            )
        reply = _to_reply(response, request, way or "text", self._target)
        if not streamed:
            listener.hear(reply.spoken_text)
        return reply

    # ---- connections

    async def _model(self) -> LibraryModel[Any]:
        for loop in [loop for loop in self._clients if loop.is_closed()]:
            del self._clients[loop]
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            keeper = _keep_open(self._target, self._timeout_seconds)
            client = self._clients[loop] = _Client(await anext(keeper), keeper)
        return client.model


@dataclass(frozen=True, slots=True)
class _Client:
    model: LibraryModel[Any]
    keeper: AsyncGenerator[LibraryModel[Any], None]


async def _keep_open(target: Target, timeout_seconds: float) -> AsyncGenerator[LibraryModel[Any], None]:
    model, close = _OPENERS[target.facts.protocol](target, timeout_seconds)
    try:
        yield model
    finally:
        await close()


_Opened = tuple["LibraryModel[Any]", Callable[[], Awaitable[Any]]]


def _open_openai(target: Target, timeout_seconds: float) -> _Opened:
    from openai import AsyncOpenAI, Timeout
    from pydantic_ai.models.openai import OpenAIChatModel

    client = AsyncOpenAI(
        base_url=target.base_url,
        api_key=target.api_key or NO_KEY,
        max_retries=0,
        timeout=Timeout(timeout_seconds, connect=min(timeout_seconds, 10.0)),
    )
    provider = _provider_class(target)(openai_client=client)
    # Off by default in the library, which then takes a stream that just stops for a finished reply.
    profile = {**dict.fromkeys(target.facts.lacks, False), "openai_chat_streaming_requires_finish_reason": True}
    return OpenAIChatModel(target.model, provider=provider, profile=cast("ModelProfile", profile)), client.close


def _open_anthropic(target: Target, timeout_seconds: float) -> _Opened:
    from anthropic import AsyncAnthropic, Timeout
    from pydantic_ai.models.anthropic import AnthropicModel

    client = AsyncAnthropic(
        base_url=target.base_url,
        api_key=target.api_key or NO_KEY,
        max_retries=0,
        timeout=Timeout(timeout_seconds, connect=min(timeout_seconds, 10.0)),
    )
    return AnthropicModel(target.model, provider=_provider_class(target)(anthropic_client=client)), client.close


def _open_google(target: Target, timeout_seconds: float) -> _Opened:
    from google.genai import Client
    from google.genai.types import HttpOptions
    from pydantic_ai.models.google import GoogleModel

    options = HttpOptions(base_url=target.base_url, timeout=int(timeout_seconds * 1000))
    client = Client(vertexai=False, api_key=target.api_key or NO_KEY, http_options=options)
    return GoogleModel(target.model, provider=_provider_class(target)(client=client)), client.aio.aclose


_OPENERS: dict[str, Callable[[Target, float], _Opened]] = {
    "openai": _open_openai,
    "anthropic": _open_anthropic,
    "google": _open_google,
}


def _provider_class(target: Target) -> Any:
    module, _, name = target.facts.profile_of.partition(":")
    return getattr(import_module(f"pydantic_ai.providers.{module}"), name)


# ---- between the library's types and ours


def _settings(request: ModelRequest) -> ModelSettings:
    settings: ModelSettings = {}
    if request.max_tokens is not None:
        settings["max_tokens"] = request.max_tokens
    if request.temperature is not None:
        settings["temperature"] = request.temperature
    return settings


class _Listener:
    """Passes text on. Remembers how much arrived, whether any was passed on, and whether the listener failed."""

    def __init__(self, on_text: OnText | None) -> None:
        self._on_text = on_text
        self.arrived = 0
        self.passed_on = False
        self.error: Exception | None = None

    def hear(self, text: str) -> None:
        self.arrived += len(text)
        if self._on_text is None or not text:
            return
        self.passed_on = True
        try:
            self._on_text(text)
        except Exception as error:
            self.error = error
            raise


@dataclass
class _Heard:
    """Reads the library's stream events and passes on the text of the reply: prose, or arguments of the plan tool."""

    tool_name: str
    listener: _Listener
    _tools: dict[int, str] = field(default_factory=dict[int, str])
    _passed_on: set[int] = field(default_factory=set[int])

    def hear(self, event: ModelResponseStreamEvent) -> None:
        from pydantic_ai import messages as library

        if isinstance(event, library.PartStartEvent):
            if isinstance(event.part, library.TextPart):
                self.listener.hear(event.part.content)
            elif isinstance(event.part, library.ToolCallPart):
                self._tools[event.index] = event.part.tool_name
                self._arguments(event.index, event.part.args)
        elif isinstance(event, library.PartDeltaEvent):
            if isinstance(event.delta, library.TextPartDelta):
                self.listener.hear(event.delta.content_delta)
            elif isinstance(event.delta, library.ToolCallPartDelta):
                self._tools[event.index] = self._tools.get(event.index, "") + (event.delta.tool_name_delta or "")
                self._arguments(event.index, event.delta.args_delta)
        elif (
            isinstance(event, library.PartEndEvent)
            and isinstance(event.part, library.ToolCallPart)
            and isinstance(event.part.args, dict)
            and event.index not in self._passed_on
        ):
            # Arguments that came as an object, not as text, are passed on whole once they are complete.
            self._arguments(event.index, json.dumps(event.part.args, ensure_ascii=False))

    def _arguments(self, index: int, args: object) -> None:
        if isinstance(args, str) and args and self._tools.get(index) == self.tool_name:
            self._passed_on.add(index)
            self.listener.hear(args)


def _to_reply(response: ModelResponse, request: ModelRequest, way: Output, target: Target) -> Reply:
    from pydantic_ai import messages as library

    text = "".join(part.content for part in response.parts if isinstance(part, library.TextPart))
    thinking = "".join(part.content for part in response.parts if isinstance(part, library.ThinkingPart))
    calls = tuple(
        ToolCallPart(
            part.tool_call_id, part.tool_name, cast("str | dict[str, Any]", "" if part.args is None else part.args)
        )
        for part in response.parts
        if isinstance(part, library.ToolCallPart)
    )
    details = response.provider_details or {}
    finish_reason = response.finish_reason or details.get("finish_reason")
    if not text.strip() and not calls:
        raise UnusableReply(_why_empty(finish_reason, details.get("refusal"), bool(thinking)))
    return Reply(
        text=text,
        tool_calls=calls,
        finish_reason=finish_reason,
        usage=_usage(response, request, text + "".join(call.arguments_text for call in calls) + thinking),
        model=response.model_name or target.model,
        thinking=thinking,
        schema_name=request.schema_name,
        output=way,
    )


def _why_empty(finish_reason: str | None, refusal: object, thought: bool) -> str:
    if refusal:
        return f"declined: {refusal}"
    if finish_reason == "content_filter":
        return "gave no reply: its content filter stopped it"
    if finish_reason == "length":
        spent = "spent all its tokens on thinking" if thought else "used up all its tokens"
        return f"gave no reply: it {spent}; allow it more with `max_tokens`"
    return f"gave an empty reply (finish reason: {finish_reason or 'none'})"


def _usage(response: ModelResponse, request: ModelRequest, written: str) -> Usage:
    usage = response.usage
    if usage.input_tokens or usage.output_tokens:
        return Usage(1, usage.input_tokens, usage.output_tokens, usage.cache_read_tokens)
    asked = json.dumps(request.schema, ensure_ascii=False) if request.schema and not request.schema_stated else ""
    return Usage(1, estimate_tokens(request.text, asked), estimate_tokens(written), estimated=True)
