"""Real HTTP servers on loopback that speak the model providers' protocols, as tests want them to behave.

A server answers its requests one after the other from a list of answers and keeps what it was asked:

    with OpenAIServer(Says("hello"), Fails(429, retry_after="0"), Says("again")) as server:
        ... server.url ... server.requests[0].body ...

They check requests as strictly as the real services do: a field that the protocol does not know is an error.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import re
import socket
import threading
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

NAMES = r"^[a-zA-Z0-9_.-]{1,64}$"
"""How the tools are named that calls in a conversation may be of."""
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
    """A reply: text in pieces, native calls, a way to end. Pieces of `calls` are pieces of the arguments.

    `quirks` are the ways in which the server departs from its protocol (`toolplan.models.facts.Quirk`).
    """

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
    signature: str = "sig"
    quirks: Collection[str] = ()
    stream_error: dict[str, Any] | None = None

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


@dataclass
class Sends:
    """An answer with status 200 and any text for a body, which may be no JSON at all."""

    body: str
    media_type: str = "application/json"


Answer = Says | Fails | Hangs | Sends


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
        routes = [
            Route("/{server}/props", self._props, methods=["GET"]),
            Route("/{server}/{path:path}", self._answer, methods=["POST"]),
        ]
        app = Starlette(routes=routes)
        config = uvicorn.Config(app, log_level="critical", lifespan="off")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        while not server.started:
            if not thread.is_alive():
                raise RuntimeError("the server did not start")
            threading.Event().wait(0.005)

    async def _props(self, request: Request):
        server = self.servers.get(request.path_params["server"])
        if server is None or server.props is None:
            return JSONResponse({"detail": "Not Found"}, 404)
        server.asked_props.append(str(request.url.query))
        return JSONResponse(server.props)

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
        self.props: Any = None
        """What a llama.cpp server tells of itself under `/props`."""
        self.asked_props: list[str] = []
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
        if isinstance(answer, Sends):
            return Response(answer.body, 200, media_type=answer.media_type)
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

    def __init__(
        self, *answers: Answer, lacks: Sequence[str] = (), status: int = 400, call_ids: str = r"[\x21-\x7e]{1,40}"
    ) -> None:
        super().__init__(*answers)
        self._lacks = lacks
        self._status = status
        self._call_ids = call_ids

    def refuse(self, body: dict[str, Any]) -> Fails | None:
        for name in body:
            if name not in self.fields:
                return Fails(400, f"Unknown parameter: '{name}'.")
        messages = body.get("messages", [])
        roles = [message.get("role") for message in messages]
        if not roles or not set(roles) <= {"system", "developer", "user", "assistant", "tool"}:
            return Fails(400, f"Invalid messages: roles {roles}")
        problem = self._problem_with_calls(messages)
        if problem:
            return Fails(400, problem)
        turns = ["user" if role == "tool" else role for role, _ in itertools.groupby(roles) if role != "system"]
        talk = [role for role in roles if role not in ("system", "developer", "tool")]
        if any(one == other for one, other in itertools.pairwise(turns)) or "user user" in " ".join(talk):
            return Fails(400, f"Conversation roles must alternate user/assistant/user/assistant/...: {roles}")
        if body.get("stream_options") and not body.get("stream"):
            return Fails(400, "'stream_options' is only allowed when 'stream' is true")
        for name in ("max_completion_tokens", "stream_options", "parallel_tool_calls"):
            if name in body and name in self._lacks:
                return self._extra(name, body)
        if body.get("tool_choice") == "required" and "tool_choice" in self._lacks:
            message = "The tool_choice parameter does not support being set to required or object in thinking mode"
            return Fails(400, message)
        kind = (body.get("response_format") or {}).get("type")
        if kind == "json_schema":
            if "json_schema" in self._lacks:
                return Fails(self._status, "This response_format type is unavailable now")
            given = body["response_format"]["json_schema"]
            if given["schema"].get("type") != "object":
                return Fails(400, "Invalid schema for response_format: schema must be of 'type: \"object\"'")
        if body.get("tools") and "tools" in self._lacks:
            return Fails(self._status, "tools param requires --jinja flag")
        if {"tool_choice", "parallel_tool_calls"} & set(body) and not body.get("tools"):
            return Fails(400, "'tool_choice' is only allowed when 'tools' are specified.")
        return None

    def _problem_with_calls(self, messages: list[dict[str, Any]]) -> str | None:
        """Return what is wrong with the calls of a conversation and their answers, as OpenAI's own server says it."""
        open_ids: list[str] = []
        for message in messages:
            role = message["role"]
            if role == "tool":
                if not open_ids or message.get("tool_call_id") != open_ids[0]:
                    return f"Invalid parameter: 'tool_call_id' {message.get('tool_call_id')!r} is not {open_ids[:1]}"
                if not isinstance(message.get("content"), str):
                    return "Invalid type for 'messages.content'"
                open_ids.pop(0)
                continue
            if open_ids:
                return f"An assistant message with 'tool_calls' must be followed by tool messages: {open_ids}"
            calls = message.get("tool_calls") or []
            if message.get("content") is None and not (role == "assistant" and calls):
                return "Invalid value for 'content': expected a string, got null."
            for call in calls:
                if not re.fullmatch(self._call_ids, call["id"]) or call["type"] != "function":
                    return f"Tool call id {call['id']!r} does not fit {self._call_ids}"
                if not re.fullmatch(NAMES, call["function"]["name"]):
                    return f"Invalid 'tool_calls[0].function.name': string does not match pattern '{NAMES}'"
                if not isinstance(json.loads(call["function"]["arguments"]), dict):
                    return "'arguments' must be an object"
            open_ids = [call["id"] for call in calls]
        return f"'tool_calls' without answers: {open_ids}" if open_ids else None

    def _extra(self, name: str, body: dict[str, Any]) -> Fails:
        problem = {"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted"}
        return Fails(422, body={"object": "error", "message": {"detail": [problem]}, "type": "invalid_request_error"})

    def error_body(self, answer: Fails) -> Any:
        return {"error": {"message": answer.message, "type": "invalid_request_error", "code": None, **answer.error}}

    def whole(self, answer: Says, body: dict[str, Any]) -> Any:
        quirks = answer.quirks
        text = "".join(answer.pieces())
        message: dict[str, Any] = {"role": "assistant", "content": text or None}
        if "content_in_parts" in quirks and text:
            message["content"] = [{"type": "text", "text": text}]
        if answer.thinking:
            message["reasoning" if "reasoning" in quirks else "reasoning_content"] = answer.thinking
        if answer.refusal:
            message["refusal"] = answer.refusal
        calls = [
            self._call(quirks, index, name, "".join(args)) for index, (name, args) in enumerate(answer.call_pieces())
        ]
        if "text_calls" in quirks:
            message["content"] = text + "".join(_marked_up(call) for call in calls)
            message["tool_calls"] = []
        elif "function_call" in quirks:
            message["function_call"] = calls[0]["function"]
        elif calls:
            message["tool_calls"] = calls
        choice = {"index": 0, "message": message, "finish_reason": self._finish(answer), "logprobs": None}
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": f"{body['model']}-2026",
            "choices": [] if answer.empty else [choice],
            **({"usage": self._usage(answer.usage)} if answer.usage and "no_usage" not in quirks else {}),
        }

    @staticmethod
    def _call(quirks: Collection[str], index: int, name: str, arguments: str) -> dict[str, Any]:
        given: Any = json.loads(arguments) if "arguments_as_object" in quirks else arguments
        call: dict[str, Any] = {
            "id": f"call_{index}",
            "type": "function",
            "function": {"name": name, "arguments": given},
        }
        if "same_id" in quirks:
            call["id"] = "call_0"
        if "no_id" in quirks:
            del call["id"]
        return call

    async def stream(self, answer: Says, body: dict[str, Any]) -> AsyncIterator[str]:
        quirks = answer.quirks
        base = {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1_700_000_000,
            "model": f"{body['model']}-2026",
        }
        sent = 0

        def chunk(delta: dict[str, Any], finish: str | None = None, **extra: Any) -> str:
            nonlocal sent
            sent += 1
            if "usage_in_each_chunk" in quirks and answer.usage:
                asked, written, cached = answer.usage
                extra["usage"] = self._usage((asked, written if finish else min(sent, written), cached))
            return _sse({**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **extra})

        yield chunk({"role": "assistant", "content": ""})
        if "keep_alives" in quirks:
            yield ": keep-alive\n\n" + _sse({**base, "choices": []})
        events: list[str] = []
        if answer.thinking:
            field = "reasoning" if "reasoning" in quirks else "reasoning_content"
            events.append(chunk({field: answer.thinking, "content": None}))
        if answer.refusal:
            events.append(chunk({"refusal": answer.refusal}))
        for piece in answer.pieces():
            if piece:
                parts = [{"type": "text", "text": piece}] if "content_in_parts" in quirks else piece
                events.append(chunk({"content": parts}))
        for index, (name, args) in enumerate(answer.call_pieces()):
            events += [chunk(delta) for delta in self._call_deltas(quirks, index, name, args)]
        if answer.stream_error is not None:
            events.append(_sse({"error": answer.stream_error}))
        if "keep_alives" in quirks:
            events = [": keep-alive\n\n" + event for event in events]
        ending = [] if answer.empty else [self._last(chunk, answer)]
        include = (body.get("stream_options") or {}).get("include_usage")
        apart = not {"no_usage", "usage_with_choices", "usage_in_each_chunk"} & set(quirks)
        if answer.usage and include and apart:
            ending.append(_sse({**base, "choices": [], "usage": self._usage(answer.usage)}))
        async for text in _paced(answer, [] if answer.empty else events, [*ending, _sse("[DONE]")]):
            yield text

    def _last(self, chunk: Any, answer: Says) -> str:
        usage = {"usage": self._usage(answer.usage)} if "usage_with_choices" in answer.quirks and answer.usage else {}
        return chunk({}, self._finish(answer), **usage)

    def _call_deltas(self, quirks: Collection[str], index: int, name: str, args: Sequence[str]) -> list[dict[str, Any]]:
        """Return the pieces in which one call is streamed."""
        call = self._call(quirks, index, name, "".join(args))
        if "text_calls" in quirks:
            return [{"content": piece} for piece in re.findall(r"(?s).{1,7}", _marked_up(call))]
        if "function_call" in quirks:
            return [{"function_call": {"name": name}}, *({"function_call": {"arguments": piece}} for piece in args)]
        place = {"index": 0 if "same_index" in quirks else index}
        if "whole_calls" in quirks or "arguments_as_object" in quirks:
            pieces: list[dict[str, Any]] = [{**place, **call}]
        else:
            head = {"name": name, "arguments": ""}
            pieces = [{**place, **call, "function": head}]
            pieces += [{**place, "function": {"arguments": piece}} for piece in args if piece]
        if "arguments_twice" in quirks:
            pieces.append({**place, "function": {"arguments": json.dumps(json.loads("".join(args)))}})
        for number, piece in enumerate(pieces[1:]):
            if "name_in_each_piece" in quirks:
                piece["function"]["name"] = name
            if "empty_id_and_name" in quirks:
                piece["id"] = piece["function"]["name"] = ""
            if "new_id_in_each_piece" in quirks:
                piece["id"] = f"call_{index}_{number}"
            if "same_id" in quirks:
                piece["id"] = "call_0"
        if "no_index" in quirks:
            for piece in pieces:
                piece.pop("index", None)
        return [{"tool_calls": [piece]} for piece in pieces]

    @staticmethod
    def _finish(answer: Says) -> str:
        if {"stop_with_calls", "text_calls"} & set(answer.quirks):
            return answer.finish or "stop"
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


def _marked_up(call: dict[str, Any]) -> str:
    """Return a call in the notation that many open models are trained on."""
    function = call["function"]
    given = function["arguments"]
    arguments = given if isinstance(given, str) else json.dumps(given)
    return f'<tool_call>\n{{"name": "{function["name"]}", "arguments": {arguments}}}\n</tool_call>\n'


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
        problem = self._problem_with_calls(body)
        return Fails(400, problem) if problem else None

    def _problem_with_calls(self, body: dict[str, Any]) -> str | None:
        """Return what is wrong with the calls of a conversation and their results, as Anthropic's server says it."""
        open_ids: list[str] = []
        seen: set[str] = set()
        for index, message in enumerate(body["messages"]):
            content = message["content"]
            blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
            if not blocks:
                return f"messages.{index}: all messages must have non-empty content"
            if any(block["type"] == "text" and not block["text"].strip() for block in blocks):
                return f"messages.{index}: text content blocks must contain non-whitespace text"
            results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
            if [block["type"] for block in blocks[: len(results)]] != ["tool_result"] * len(results):
                return f"messages.{index}: tool_result blocks must come first"
            if results != open_ids:
                return f"messages.{index}: `tool_use` ids {open_ids} without `tool_result` blocks, not {results}"
            uses = [block for block in blocks if block["type"] == "tool_use"]
            if uses and not body.get("tools"):
                return "Requests which include `tool_use` or `tool_result` blocks must define tools"
            for block in blocks:
                if block["type"] == "thinking" and not block.get("signature"):
                    return f"messages.{index}.content.0.thinking.signature: Field required"
            for block in uses:
                if not re.fullmatch(r"[a-zA-Z0-9_-]+", block["id"]) or not isinstance(block["input"], dict):
                    return f"messages.{index}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
                if not re.fullmatch(NAMES, block["name"]):
                    return f"messages.{index}.tool_use.name: String should match pattern '{NAMES}'"
                if block["id"] in seen:
                    return f"messages.{index}: `tool_use` ids must be unique"
                seen.add(block["id"])
            open_ids = [block["id"] for block in uses]
        return f"`tool_use` ids were found without `tool_result` blocks: {open_ids}" if open_ids else None

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
            content.append({"type": "thinking", "thinking": answer.thinking, "signature": answer.signature})
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
            deltas = [
                {"type": "thinking_delta", "thinking": answer.thinking},
                {"type": "signature_delta", "signature": answer.signature},
            ]
            block(index, {"type": "thinking", "thinking": "", "signature": ""}, deltas)
            index += 1
        if "".join(answer.pieces()):
            block(index, {"type": "text", "text": ""}, [{"type": "text_delta", "text": p} for p in answer.pieces()])
            index += 1
        for name, args in answer.call_pieces():
            start = {"type": "tool_use", "id": f"toolu_{index}", "name": name, "input": {}}
            block(index, start, [{"type": "input_json_delta", "partial_json": piece} for piece in args])
            index += 1
        if answer.stream_error is not None:
            events.append(event("error", error=answer.stream_error))
        if "keep_alives" in answer.quirks:
            events = [event("ping") + each for each in events]
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

_GEMINI_KEYWORDS = frozenset(
    (
        *(
            "type",
            "format",
            "title",
            "description",
            "nullable",
            "enum",
            "maxItems",
            "minItems",
            "properties",
            "required",
        ),
        *(
            "minProperties",
            "maxProperties",
            "minLength",
            "maxLength",
            "pattern",
            "example",
            "anyOf",
            "default",
            "items",
        ),
        *("minimum", "maximum", "propertyOrdering"),
    )
)


def _problem_with_schema(schema: Any) -> str | None:
    """Return what Gemini's server does not take in a schema of a function declaration."""
    unknown = set(schema) - _GEMINI_KEYWORDS
    if unknown:
        return f'Unknown name "{min(unknown)}": Cannot find field.'
    kind = str(schema.get("type")).lower()
    if kind == "object" and not schema.get("properties") and not schema.get("anyOf"):
        return "properties: should be non-empty for OBJECT type"
    if kind not in ("string", "number", "integer", "boolean", "array", "object"):
        return f"type {schema.get('type')!r} is not a type"
    if any(not isinstance(value, str) for value in schema.get("enum", [])):
        return "enum: only allowed for STRING type"
    inner = [*schema.get("properties", {}).values(), *schema.get("anyOf", [])]
    if "items" in schema:
        inner.append(schema["items"])
    return next((problem for each in inner if (problem := _problem_with_schema(each))), None)


class GeminiServer(LoopbackServer):
    """Gemini's generateContent protocol."""

    path = r"v1beta/models/[\w.-]+:(streamG|g)enerateContent"

    def wants_stream(self, request: Request, body: dict[str, Any]) -> bool:
        return request.url.path.endswith(":streamGenerateContent")

    def refuse(self, body: dict[str, Any]) -> Fails | None:
        names: list[str] = []
        for content in body.get("contents", []):
            answered = [part["functionResponse"]["name"] for part in content["parts"] if "functionResponse" in part]
            if answered != names:
                return Fails(
                    400,
                    "Please ensure that the number of function response parts is equal to the number of function call"
                    f" parts of the function call turn: {answered}, not {names}",
                )
            if answered and len(answered) != len(content["parts"]):
                return Fails(400, "function response parts must not be mixed with others")
            calls = [part for part in content["parts"] if "functionCall" in part]
            if calls and not calls[0].get("thoughtSignature"):
                return Fails(400, "Function call is missing a thought_signature in functionCall parts")
            names = [part["functionCall"]["name"] for part in calls]
        if names:
            return Fails(400, f"function calls without responses: {names}")
        for tool in body.get("tools", []):
            for declared in tool["functionDeclarations"]:
                given = sorted(set(declared) - {"name", "description"})
                if given not in ([], ["parameters"]):
                    return Fails(400, f"Unknown name in function_declarations: {given}")
                problem = _problem_with_schema(declared["parameters"]) if given else None
                if problem:
                    return Fails(400, f"Invalid JSON payload received. {declared['name']}: {problem}")
        return None

    def error_body(self, answer: Fails) -> Any:
        return {"error": {"code": answer.status, "message": answer.message, "status": "INVALID_ARGUMENT"}}

    def _parts(self, answer: Says) -> list[Any]:
        parts: list[Any] = [{"text": answer.thinking, "thought": True}] if answer.thinking else []
        parts += [{"text": piece} for piece in answer.pieces() if piece]
        for index, (name, args) in enumerate(answer.call_pieces()):
            part: dict[str, Any] = {"functionCall": {"name": name, "args": json.loads("".join(args))}}
            if index == 0:
                part["thoughtSignature"] = base64.b64encode(answer.signature.encode()).decode()
            parts.append(part)
        return parts

    def whole(self, answer: Says, body: dict[str, Any]) -> Any:
        parts = self._parts(answer)
        return self._response(answer, parts, self._finish(answer))

    async def stream(self, answer: Says, body: dict[str, Any]) -> AsyncIterator[str]:
        parts = self._parts(answer)
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
