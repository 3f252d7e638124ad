"""Every hosted and local provider, through the direct model API of `pydantic-ai-slim`.

    ask ── one attempt after another, until one gives a reply or nothing is left to try
      attempt ── one HTTP request: streamed when somebody listens, and read to its end

Only the library's request translation is used: not its agent, not its retries (the SDKs' are set to 0), and it is
imported with the first `ask`. A reply counts only when it is whole: a stream that stops without saying why is an
error, whatever arrived before. A request is repeated only while nothing of its reply has been passed on, or when
whoever hears it can start over.

Connections belong to an event loop, and `run_sync` opens a new loop each time, so each loop has its own client. An
async generator keeps it open: when the loop ends, `asyncio.run` closes its generators, and so the client. A model that
is thrown away earlier closes in the background, if the loop still runs long enough; `close` does it for certain.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from toolplan.errors import UsageError
from toolplan.models.base import Listener, ModelRequest, OnText, Output, Reply, ToolCallPart, Usage, starts_over
from toolplan.models.conversation import history
from toolplan.models.failures import NO_REASON, Attempt, Failure, Stalled, Target, UnusableReply, Wish, explain, scrub
from toolplan.models.llama_props import shows_tools
from toolplan.models.outputs import parameters, state_schema, ways
from toolplan.models.replies import Heard, to_reply, usage_of
from toolplan.models.retry import Retry
from toolplan.models.text_tools import Spoken, callable_tools, in_words, with_calls_from_text

if TYPE_CHECKING:
    from pydantic_ai.models import Model as LibraryModel
    from pydantic_ai.profiles import ModelProfile
    from pydantic_ai.settings import ModelSettings

__all__ = ["ProviderModel"]

_Event = TypeVar("_Event")
_Said = TypeVar("_Said", str, ToolCallPart)

_log = logging.getLogger(__name__)

NO_KEY = "no-key-needed"
"""Sent as the key to servers that need none, because the SDKs insist on one."""


class ProviderModel:
    """A model of one provider.

    `output` overrides how a wanted shape or tools travel; "auto" takes the best way that the provider has and walks
    down when the server refuses, remembering what was refused for the life of this object. `stream` False never
    streams, True always does; None streams when `ask` is given `on_text`. `timeout_seconds` bounds one attempt from
    the first byte sent to the last one read, `stall_seconds` the silence between two pieces of a stream.
    """

    def __init__(
        self,
        target: Target,
        *,
        output: Output | Literal["auto"] = "auto",
        stream: bool | None = None,
        retry: Retry | None = None,
        timeout_seconds: float = 600.0,
        stall_seconds: float = 180.0,
    ) -> None:
        self._target = target
        self._output: Output | Literal["auto"] = output
        self._stream = True if stream is None and target.facts.always_streams else stream
        self._retry = retry or Retry()
        self._timeout_seconds = timeout_seconds
        self._stall_seconds = stall_seconds
        self._refused: set[Output] = set()
        self._unwanted: set[Wish] = set()
        self._shows_tools: bool | None = None
        self._clients: dict[asyncio.AbstractEventLoop, _Client] = {}

    @property
    def name(self) -> str:
        """The model's full name, as in `openai:gpt-5-mini`."""
        return self._target.name

    def __repr__(self) -> str:
        return f"ProviderModel({self.name} at {self._target.shown_url})"

    async def ask(self, request: ModelRequest, on_text: OnText | None = None) -> Reply:
        """Return the model's complete reply. See `Model.ask` for what it promises and raises."""
        if request.tools and request.schema is not None:
            raise UsageError("a request has a schema or tools, not both")
        model = await self._model()
        carries = bool(request.tools) or request.schema is not None
        if carries and self._target.facts.tells_template and self._shows_tools is None:
            self._shows_tools = await asyncio.to_thread(shows_tools, self._target)
        notes: list[str] = []
        attempts = repeats = 0
        lost = Usage()
        waited_seconds = 0.0
        while True:
            way = self._way(request, model)
            listener = _Listener(on_text)
            attempts += 1
            attempt = Attempt(
                streamed=self._stream if self._stream is not None else on_text is not None,
                carried=way not in (None, "text"),
                wishes=self._wishes(request) if way == "tool" else (),
            )
            try:
                async with asyncio.timeout(self._timeout_seconds):
                    reply = await self._attempt(model, request, way, listener, attempt)
                return replace(reply, notes=tuple(notes), usage=reply.usage + lost)
            except Exception as error:
                if error is listener.error or isinstance(error, UsageError):
                    raise
                failure = explain(error, self._target, replace(attempt, arrived=listener.arrived), attempts=attempts)
            # Outside the handler, so that the error carries no context: the SDK's own errors hold request headers.
            # Going one level down is no repeat: it does not use up the patience for a busy server.
            repeats += failure.kind == "transient"
            wait_seconds = self._next_wait(failure, way, repeats, waited_seconds, listener)
            lost += failure.error.usage or Usage(requests=int(listener.began or failure.was_inferred))
            if wait_seconds is None:
                failure.error.inferences, failure.error.usage = lost.requests, lost
                raise failure.error
            notes.append(failure.error.message)
            _log.info("asking again: %s", failure.error.message)
            waited_seconds += wait_seconds
            await asyncio.sleep(wait_seconds)
            if listener.passed_on:
                starts_over(on_text)

    async def close(self) -> None:
        """Close the connections of the running event loop. They open again when needed."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.keeper.aclose()

    # ---- what to try

    def _way(self, request: ModelRequest, model: LibraryModel[Any]) -> Output | None:
        if request.schema is None and not request.tools:
            return None
        if self._output != "auto":
            return "tool" if request.tools and self._output == "native" else self._output
        facts = self._target.facts if self._shows_tools is not False else replace(self._target.facts, tools="text")
        possible = ways(request, facts, cast("dict[str, Any]", model.profile))
        return next(way for way in possible if way == "text" or way not in self._refused)

    def _wishes(self, request: ModelRequest) -> tuple[Wish, ...]:
        """Return what is asked of a server about calls beyond the tools themselves, less what it refused before."""
        wishes: list[Wish] = []
        if request.schema is not None or request.tool_choice == "required":
            wishes.append("tool_choice")
        if request.tools and not request.parallel_tool_calls:
            wishes.append("parallel_tool_calls")
        return tuple(wish for wish in wishes if wish not in self._unwanted)

    def _next_wait(
        self, failure: Failure, way: Output | None, repeats: int, waited_seconds: float, listener: _Listener
    ) -> float | None:
        """Return the seconds to wait before the next attempt, or None when there is to be none."""
        if failure.kind == "final" or (listener.passed_on and not listener.can_start_over):
            return None
        if failure.kind == "unwanted" and failure.wish is not None:
            self._unwanted.add(failure.wish)
            return 0.0
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
            repeats, waited_seconds=waited_seconds, asked_seconds=failure.asked_seconds, draw=random.random()
        )

    # ---- one attempt

    async def _attempt(
        self, model: LibraryModel[Any], request: ModelRequest, way: Output | None, listener: _Listener, attempt: Attempt
    ) -> Reply:
        from pydantic_ai import direct

        said, tools = request.messages, callable_tools(request)
        if way == "text":
            said = in_words(request) if request.tools else state_schema(request)
        messages = history(said, self._target.facts, model.system)
        format = "auto" if way == "text" else "marked"
        parcel = parameters(request, way or "text", self._target.facts, forced="tool_choice" in attempt.wishes)
        settings = _settings(request, attempt)
        if attempt.streamed:
            async with direct.model_request_stream(
                model, messages, model_settings=settings, model_request_parameters=parcel
            ) as stream:
                spoken = Spoken(tools, listener.hear, listener.called, format=format) if tools else None
                heard = Heard(request.schema_name, spoken.hear if spoken else listener.hear, listener.called)
                async with aclosing(_never_silent(aiter(stream), self._stall_seconds)) as events:
                    async for event in events:
                        listener.began = True
                        heard.hear(event)
                response = stream.get()
                if response.finish_reason is None and not (response.provider_details or {}).get("finish_reason"):
                    raise UnusableReply(NO_REASON, "broke_off", usage_of(response, request))
                if spoken:
                    spoken.close(response.finish_reason)
        else:
            response = await direct.model_request(
                model, messages, model_settings=settings, model_request_parameters=parcel
            )
        reply = to_reply(response, request, way or "text", self._target)
        reply = with_calls_from_text(reply, tools, format=format)
        if not attempt.streamed:
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
    from pydantic_ai.exceptions import UserError

    try:
        model, close = _OPENERS[target.facts.protocol](target, timeout_seconds)
    except UserError as error:
        raise UsageError(f"`{target.name}` cannot be asked: {scrub(error.message, *target.secrets)}") from None
    try:
        yield model
    finally:
        await close()


_Opened = tuple["LibraryModel[Any]", Callable[[], Awaitable[Any]]]


def _open_openai(target: Target, timeout_seconds: float) -> _Opened:
    from openai import AsyncOpenAI, Timeout

    from toolplan.models.openai_chat import ChatModel

    client = AsyncOpenAI(
        base_url=target.address,
        api_key=target.api_key or NO_KEY,
        default_headers=target.headers,
        max_retries=0,
        timeout=Timeout(timeout_seconds, connect=min(timeout_seconds, 10.0)),
    )
    provider = _provider_class(target)(openai_client=client)
    profile = dict.fromkeys(target.facts.lacks, False)
    return ChatModel(target.model, provider=provider, profile=cast("ModelProfile", profile)), client.close


def _open_anthropic(target: Target, timeout_seconds: float) -> _Opened:
    from anthropic import AsyncAnthropic, Timeout
    from pydantic_ai.models.anthropic import AnthropicModel

    client = AsyncAnthropic(
        base_url=target.address,
        api_key=target.api_key or NO_KEY,
        # With a login of the address the SDK would leave the key out.
        default_headers=target.headers and {**target.headers, "X-Api-Key": target.api_key or NO_KEY},
        max_retries=0,
        timeout=Timeout(timeout_seconds, connect=min(timeout_seconds, 10.0)),
    )
    return AnthropicModel(target.model, provider=_provider_class(target)(anthropic_client=client)), client.close


def _open_google(target: Target, timeout_seconds: float) -> _Opened:
    from google.genai import Client
    from google.genai.types import HttpOptions

    from toolplan.models.gemini_chat import GeminiModel

    options = HttpOptions(base_url=target.address, headers=target.headers, timeout=int(timeout_seconds * 1000))
    client = Client(vertexai=False, api_key=target.api_key or NO_KEY, http_options=options)
    return GeminiModel(target.model, provider=_provider_class(target)(client=client)), client.aio.aclose


_OPENERS: dict[str, Callable[[Target, float], _Opened]] = {
    "openai": _open_openai,
    "anthropic": _open_anthropic,
    "google": _open_google,
}


def _provider_class(target: Target) -> Any:
    module, _, name = target.facts.profile_of.partition(":")
    return getattr(import_module(f"pydantic_ai.providers.{module}"), name)


# ---- between the library's types and ours


async def _never_silent(events: AsyncIterator[_Event], stall_seconds: float) -> AsyncGenerator[_Event, None]:
    """Yield the events of a stream; raises `Stalled` when none comes for too long after the first one."""
    event = await anext(events, None)
    while event is not None:
        yield event
        try:
            async with asyncio.timeout(stall_seconds):
                event = await anext(events, None)
        except TimeoutError as error:
            raise Stalled(stall_seconds) from error


def _settings(request: ModelRequest, attempt: Attempt) -> ModelSettings:
    settings: ModelSettings = {}
    if request.tools and attempt.carried:
        if request.tool_choice == "none":
            settings["tool_choice"] = "none"
        if "parallel_tool_calls" in attempt.wishes:
            settings["parallel_tool_calls"] = False
    if request.max_tokens is not None:
        settings["max_tokens"] = request.max_tokens
    if request.temperature is not None:
        settings["temperature"] = request.temperature
    return settings


class _Listener:
    """Passes on what is said. Remembers whether a reply began, how much arrived, and whether the listener failed."""

    def __init__(self, on_text: OnText | None) -> None:
        self._on_text = on_text
        self.began = False
        self.arrived = 0
        self.passed_on = False
        self.error: Exception | None = None

    @property
    def can_start_over(self) -> bool:
        return isinstance(self._on_text, Listener)

    def hear(self, text: str) -> None:
        self.arrived += len(text)
        if self._on_text is not None and text:
            self._pass_on(self._on_text, text)

    def called(self, call: ToolCallPart) -> None:
        if isinstance(self._on_text, Listener):
            self._pass_on(self._on_text.called, call)

    def _pass_on(self, to: Callable[[_Said], None], said: _Said) -> None:
        self.passed_on = True
        try:
            to(said)
        except Exception as error:
            self.error = error
            raise
