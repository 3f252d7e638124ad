"""Real HTTP servers on loopback that speak the model providers' protocols, as tests want them to behave.

A server answers its requests one after the other from a list of answers and keeps what it was asked:

    with OpenAIServer(Says("hello"), Fails(429, retry_after="0"), Says("again")) as server:
        ... server.url ... server.requests[0].body ...

They check requests as strictly as the real services do: a field that the protocol does not know is an error.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import socket
import threading
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

PATIENCE_SECONDS = 10.0
"""How long a server waits for its test before it gives up, so that a failing test ends."""


class Gate:
    """Holds a stream between two pieces until the test opens it."""

    def __init__(self) -> None:
        self._open = threading.Event()

    def open(self) -> None:
        self._open.set()

    async def passed(self) -> bool:
        return await asyncio.to_thread(self._open.wait, PATIENCE_SECONDS)


@dataclass
class Says:
    """A reply: text in pieces, native calls, a way to end. Pieces of `calls` are pieces of the arguments."""

    text: str | Sequence[str] = ""
    calls: Sequence[tuple[str, str | Sequence[str]]] = ()
    finish: str | None = None
    usage: tuple[int, int, int] | None = (100, 20, 0)
    thinking: str = ""
    refusal: str | None = None
    gates: Sequence[Gate] = ()
    breaks_after: int | None = None
    stops_after: int | None = None
    empty: bool = False

    def pieces(self) -> list[str]:
        return [self.text] if isinstance(self.text, str) else list(self.text)

    def call_pieces(self) -> list[tuple[str, list[str]]]:
        return [(name, [args] if isinstance(args, str) else list(args)) for name, args in self.calls]


@dataclass
class Fails:
    """An error answer."""

    status: int
    message: str = "something is wrong"
    retry_after: str | None = None
    body: Any = None
    error: dict[str, Any] = field(default_factory=dict)


@dataclass
class Hangs:
    """No answer at all, until the client goes away."""


Answer = Says | Fails | Hangs


@dataclass
class Seen:
    """One request as it arrived, and whether its client went away before the answer was complete."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    arrived: threading.Event = field(default_factory=threading.Event)
    left: threading.Event = field(default_factory=threading.Event)


class _Broken(Exception):
    """Raised inside a response: the server drops the connection without ending the body."""


class _Host:
    """One uvicorn in a thread for all servers of a test run, because starting and stopping each takes 0.2 s."""

    def __init__(self) -> None:
        self.servers: dict[str, LoopbackServer] = {}
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        self.port: int = listener.getsockname()[1]
        app = Starlette(routes=[Route("/{server}/{path:path}", self._answer, methods=["POST"])])
        config = uvicorn.Config(app, log_level="critical", lifespan="off")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        while not server.started:
            if not thread.is_alive():
                raise RuntimeError("the server did not start")
            threading.Event().wait(0.005)

    async def _answer(self, request: Request):
        server = self.servers.get(request.path_params["server"])
        if server is None:
            return JSONResponse({"detail": "Not Found"}, 404)
        return await server.answer(request, request.path_params["path"])


_host: _Host | None = None
_numbers = itertools.count(1)


class LoopbackServer:
    """A server under an address of its own; the protocols below say what is asked and answered."""

    root = ""
    path = ""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.requests: list[Seen] = []
        self.problems: list[str] = []
        self._number = f"s{next(_numbers)}"
        self._next = threading.Condition()

    def __enter__(self):
        global _host
        _host = _host or _Host()
        _host.servers[self._number] = self
        self.url = f"http://127.0.0.1:{_host.port}/{self._number}{self.root}"
        return self

    def __exit__(self, *_: object) -> None:
        assert _host is not None
        del _host.servers[self._number]
        assert not self.problems, self.problems

    def wait_for_request(self, number: int) -> Seen:
        """Return request `number` (from 1) as soon as it has arrived."""
        with self._next:
            assert self._next.wait_for(lambda: len(self.requests) >= number, PATIENCE_SECONDS), "no request arrived"
            return self.requests[number - 1]

    # ---- answering

    async def answer(self, request: Request, path: str):
        if not re.fullmatch(self.path, path):
            return JSONResponse({"detail": f"Not Found: {path}"}, 404)
        body = await request.json()
        seen = Seen(request.url.path, dict(request.headers), body)
        with self._next:
            self.requests.append(seen)
            self._next.notify_all()
        refused = self.refuse(body)
        if refused is not None:
            return self.error(refused)
        if not self.answers:
            self.problems.append(f"request {len(self.requests)} was not expected")
            return self.error(Fails(400, "no answer is left"))
        answer = self.answers.pop(0)
        if isinstance(answer, Fails):
            return self.error(answer)
        if isinstance(answer, Hangs):
            return _Hanging(seen)
        if self.wants_stream(request, body):
            return _Streaming(self.stream(answer, body), seen)
        if answer.breaks_after is not None:
            return _Streaming(_broken_body(), seen, "application/json")
        return JSONResponse(self.whole(answer, body))

    def error(self, answer: Fails) -> JSONResponse:
        headers = {"retry-after": answer.retry_after} if answer.retry_after is not None else None
        content = answer.body if answer.body is not None else self.error_body(answer)
        return JSONResponse(content, answer.status, headers=headers)

    def wants_stream(self, request: Request, body: dict[str, Any]) -> bool:
        return body.get("stream") is True

    def refuse(self, body: dict[str, Any]) -> Fails | None:
        """Return the refusal of a request that the protocol, or this server, does not allow."""
        return None

    def error_body(self, answer: Fails) -> Any:
        raise NotImplementedError

    def whole(self, answer: Says, body: dict[str, Any]) -> Any:
        raise NotImplementedError

    def stream(self, answer: Says, body: dict[str, Any]) -> AsyncIterator[str]:
        raise NotImplementedError


async def _broken_body() -> AsyncIterator[str]:
    yield '{"id": "x", "choi'
    raise _Broken


async def _paced(answer: Says, events: list[str], ending: list[str]) -> AsyncIterator[str]:
    """Yield the events of the pieces, with gates between them, then the ending; or break off, or just stop."""
    gates = list(answer.gates)
    for number, event in enumerate(events):
        if number == answer.breaks_after:
            raise _Broken
        if number == answer.stops_after:
            return
        yield event
        if gates and not await gates.pop(0).passed():
            raise _Broken
    if answer.breaks_after == len(events):
        raise _Broken
    if answer.stops_after == len(events):
        return
    for event in ending:
        yield event


class _Streaming:
    """A chunked response that notices when its client goes away."""

    def __init__(self, body: AsyncIterator[str], seen: Seen, media_type: str = "text/event-stream") -> None:
        self._body = body
        self._seen = seen
        self._media_type = media_type

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        watch = asyncio.create_task(_watch(receive, self._seen))
        try:
            headers = [(b"content-type", self._media_type.encode()), (b"x-request-id", b"req_1")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            try:
                async for text in self._body:
                    await send({"type": "http.response.body", "body": text.encode(), "more_body": True})
            except _Broken:
                # Leaving without the last body message makes uvicorn close the connection.
                return
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            watch.cancel()


class _Hanging:
    def __init__(self, seen: Seen) -> None:
        self._seen = seen

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.wait_for(_watch(receive, self._seen), PATIENCE_SECONDS)


async def _watch(receive: Receive, seen: Seen) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    seen.left.set()


def _sse(data: Any, event: str | None = None) -> str:
    head = f"event: {event}\n" if event else ""
    return f"{head}data: {data if isinstance(data, str) else json.dumps(data)}\n\n"


# ---- OpenAI chat completions


class OpenAIServer(LoopbackServer):
    """OpenAI's chat completions protocol; `lacks` names what this server refuses, as many servers do."""

    root = "/v1"
    path = "v1/chat/completions"
    fields = frozenset(
        (
            *("model", "messages", "stream", "stream_options", "max_tokens", "max_completion_tokens", "temperature"),
            *("tools", "tool_choice", "parallel_tool_calls", "response_format", "reasoning_effort"),
        )
    )

    def __init__(self, *answers: Answer, lacks: Sequence[str] = (), status: int = 400) -> None:
        super().__init__(*answers)
        self._lacks = lacks
        self._status = status

    def refuse(self, body: dict[str, Any]) -> Fails | None:
        for name in body:
            if name not in self.fields:
                return Fails(400, f"Unknown parameter: '{name}'.")
        roles = [message.get("role") for message in body.get("messages", [])]
        if not roles or not set(roles) <= {"system", "developer", "user", "assistant", "tool"}:
            return Fails(400, f"Invalid messages: roles {roles}")
        if body.get("stream_options") and not body.get("stream"):
            return Fails(400, "'stream_options' is only allowed when 'stream' is true")
        if "max_completion_tokens" in body and "max_completion_tokens" in self._lacks:
            return self._extra("max_completion_tokens", body)
        if "stream_options" in body and "stream_options" in self._lacks:
            return self._extra("stream_options", body)
        kind = (body.get("response_format") or {}).get("type")
        if kind == "json_schema":
            if "json_schema" in self._lacks:
                return Fails(self._status, "This response_format type is unavailable now")
            given = body["response_format"]["json_schema"]
            if given["schema"].get("type") != "object":
                return Fails(400, "Invalid schema for response_format: schema must be of 'type: \"object\"'")
        if body.get("tools") and "tools" in self._lacks:
            return Fails(self._status, "tools param requires --jinja flag")
        return None

    def _extra(self, name: str, body: dict[str, Any]) -> Fails:
        problem = {"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted"}
        return Fails(422, body={"object": "error", "message": {"detail": [problem]}, "type": "invalid_request_error"})

    def error_body(self, answer: Fails) -> Any:
        return {"error": {"message": answer.message, "type": "invalid_request_error", "code": None, **answer.error}}

    def whole(self, answer: Says, body: dict[str, Any]) -> Any:
        message: dict[str, Any] = {"role": "assistant", "content": "".join(answer.pieces()) or None}
        if answer.thinking:
            message["reasoning_content"] = answer.thinking
        if answer.refusal:
            message["refusal"] = answer.refusal
        if answer.calls:
            message["tool_calls"] = [
                {"id": f"call_{index}", "type": "function", "function": {"name": name, "arguments": "".join(args)}}
                for index, (name, args) in enumerate(answer.call_pieces())
            ]
        choice = {"index": 0, "message": message, "finish_reason": self._finish(answer), "logprobs": None}
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": f"{body['model']}-2026",
            "choices": [] if answer.empty else [choice],
            **({"usage": self._usage(answer.usage)} if answer.usage else {}),
        }

    async def stream(self, answer: Says, body: dict[str, Any]) -> AsyncIterator[str]:
        base = {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1_700_000_000,
            "model": f"{body['model']}-2026",
        }

        def chunk(delta: dict[str, Any], finish: str | None = None) -> str:
            return _sse({**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

        yield chunk({"role": "assistant", "content": ""})
        events: list[str] = []
        if answer.thinking:
            events.append(chunk({"reasoning_content": answer.thinking}))
        if answer.refusal:
            events.append(chunk({"refusal": answer.refusal}))
        events += [chunk({"content": piece}) for piece in answer.pieces() if piece]
        for index, (name, args) in enumerate(answer.call_pieces()):
            head = {"index": index, "id": f"call_{index}", "type": "function"}
            events.append(chunk({"tool_calls": [{**head, "function": {"name": name, "arguments": ""}}]}))
            events += [
                chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}) for piece in args if piece
            ]
        ending = [] if answer.empty else [chunk({}, self._finish(answer))]
        if answer.usage and (body.get("stream_options") or {}).get("include_usage"):
            ending.append(_sse({**base, "choices": [], "usage": self._usage(answer.usage)}))
        async for text in _paced(answer, [] if answer.empty else events, [*ending, _sse("[DONE]")]):
            yield text

    @staticmethod
    def _finish(answer: Says) -> str:
        return answer.finish or ("tool_calls" if answer.calls else "stop")

    @staticmethod
    def _usage(usage: tuple[int, int, int]) -> dict[str, Any]:
        asked, written, cached = usage
        return {
            "prompt_tokens": asked,
            "completion_tokens": written,
            "total_tokens": asked + written,
            "prompt_tokens_details": {"cached_tokens": cached},
        }


# ---- Anthropic messages


class AnthropicServer(LoopbackServer):
    """Anthropic's messages protocol."""

    path = "v1/messages"
    fields = frozenset(
        (
            *("model", "messages", "system", "stream", "max_tokens", "temperature"),
            *("tools", "tool_choice", "output_config", "thinking"),
        )
    )

    def refuse(self, body: dict[str, Any]) -> Fails | None:
        for name in body:
            if name not in self.fields:
                return Fails(400, f"{name}: Extra inputs are not permitted")
        if not isinstance(body.get("max_tokens"), int):
            return Fails(400, "max_tokens: Field required")
        roles = [message.get("role") for message in body.get("messages", [])]
        if not roles or roles[0] != "user" or not set(roles) <= {"user", "assistant"}:
            return Fails(400, f"messages: unexpected roles {roles}")
        for tool in body.get("tools", []):
            if tool["input_schema"].get("type") != "object":
                return Fails(400, "tools.0.input_schema.type: Input should be 'object'")
        return None

    def error_body(self, answer: Fails) -> Any:
        kind = {401: "authentication_error", 429: "rate_limit_error", 529: "overloaded_error"}.get(answer.status)
        return {
            "type": "error",
            "error": {"type": kind or "invalid_request_error", "message": answer.message},
            "request_id": "req_1",
        }

    def _message(self, answer: Says, body: dict[str, Any], content: list[Any], written: int) -> dict[str, Any]:
        asked, _, cached = answer.usage or (0, 0, 0)
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": content,
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": asked - cached, "cache_read_input_tokens": cached, "output_tokens": written},
        }

    def whole(self, answer: Says, body: dict[str, Any]) -> Any:
        content: list[Any] = []
        if answer.thinking:
            content.append({"type": "thinking", "thinking": answer.thinking, "signature": "sig"})
        if "".join(answer.pieces()):
            content.append({"type": "text", "text": "".join(answer.pieces())})
        for index, (name, args) in enumerate(answer.call_pieces()):
            arguments = json.loads("".join(args))
            content.append({"type": "tool_use", "id": f"toolu_{index}", "name": name, "input": arguments})
        message = self._message(answer, body, content, (answer.usage or (0, 0, 0))[1])
        return {**message, "stop_reason": self._finish(answer)}

    async def stream(self, answer: Says, body: dict[str, Any]) -> AsyncIterator[str]:
        def event(kind: str, **fields: Any) -> str:
            return _sse({"type": kind, **fields}, kind)

        yield event("message_start", message=self._message(answer, body, [], 1))
        yield event("ping")
        events: list[str] = []

        def block(index: int, start: dict[str, Any], deltas: list[dict[str, Any]]) -> None:
            first = event("content_block_start", index=index, content_block=start)
            pieces = [event("content_block_delta", index=index, delta=delta) for delta in deltas]
            events.extend([first + pieces[0], *pieces[1:]] if pieces else [first])
            events[-1] += event("content_block_stop", index=index)

        index = 0
        if answer.thinking:
            deltas = [{"type": "thinking_delta", "thinking": answer.thinking}]
            block(index, {"type": "thinking", "thinking": "", "signature": ""}, deltas)
            index += 1
        if "".join(answer.pieces()):
            block(index, {"type": "text", "text": ""}, [{"type": "text_delta", "text": p} for p in answer.pieces()])
            index += 1
        for name, args in answer.call_pieces():
            start = {"type": "tool_use", "id": f"toolu_{index}", "name": name, "input": {}}
            block(index, start, [{"type": "input_json_delta", "partial_json": piece} for piece in args])
            index += 1
        ending = [
            event(
                "message_delta",
                delta={"stop_reason": self._finish(answer), "stop_sequence": None},
                usage={"output_tokens": (answer.usage or (0, 0, 0))[1]},
            ),
            event("message_stop"),
        ]
        async for text in _paced(answer, events, ending):
            yield text

    @staticmethod
    def _finish(answer: Says) -> str:
        return answer.finish or ("tool_use" if answer.calls else "end_turn")


# ---- Gemini


class GeminiServer(LoopbackServer):
    """Gemini's generateContent protocol."""

    path = r"v1beta/models/[\w.-]+:(streamG|g)enerateContent"

    def wants_stream(self, request: Request, body: dict[str, Any]) -> bool:
        return request.url.path.endswith(":streamGenerateContent")

    def error_body(self, answer: Fails) -> Any:
        return {"error": {"code": answer.status, "message": answer.message, "status": "INVALID_ARGUMENT"}}

    def whole(self, answer: Says, body: dict[str, Any]) -> Any:
        parts: list[Any] = [{"text": piece} for piece in answer.pieces() if piece]
        parts += [{"functionCall": {"name": n, "args": json.loads("".join(a))}} for n, a in answer.call_pieces()]
        return self._response(answer, parts, self._finish(answer))

    async def stream(self, answer: Says, body: dict[str, Any]) -> AsyncIterator[str]:
        parts: list[Any] = [{"text": piece} for piece in answer.pieces() if piece]
        parts += [{"functionCall": {"name": n, "args": json.loads("".join(a))}} for n, a in answer.call_pieces()]
        events = [_sse(self._response(answer, [part], None)) for part in parts]
        async for text in _paced(answer, events, [_sse(self._response(answer, [], self._finish(answer)))]):
            yield text

    def _response(self, answer: Says, parts: list[Any], finish: str | None) -> dict[str, Any]:
        asked, written, cached = answer.usage or (0, 0, 0)
        candidate: dict[str, Any] = {"index": 0, "content": {"role": "model", "parts": parts}}
        if finish:
            candidate["finishReason"] = finish
        return {
            "candidates": [candidate],
            "modelVersion": "gemini-test",
            "usageMetadata": {
                "promptTokenCount": asked,
                "candidatesTokenCount": written,
                "totalTokenCount": asked + written,
                "cachedContentTokenCount": cached,
            },
        }

    @staticmethod
    def _finish(answer: Says) -> str:
        return answer.finish or "STOP"
