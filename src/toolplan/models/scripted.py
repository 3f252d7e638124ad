"""Models without a provider: replies from a list, a recording or a function.

A recording is a JSON Lines file, one reply a line; blank lines and lines that start with `#` or `//` say nothing.

    {"text": "There is no tool that cancels a lunch.", "expect": "cancel tomorrow's lunch"}
    {"tool_calls": [{"name": "submit_plan", "arguments": {...}}], "usage": {"input_tokens": 812, "output_tokens": 95}}

| key | meaning |
| --- | --- |
| `text`, `tool_calls` | the reply; a call has `name`, `arguments` (object or text) and perhaps `id` |
| `thinking`, `finish_reason`, `model` | as in `Reply` |
| `usage` | `input_tokens`, `output_tokens`, `cached_input_tokens`; estimated, and marked so, when absent |
| `expect` | a text, or several, that must occur in the request, so that a reply cannot answer another question |
| `purpose` | what the request must be for: `plan`, `answer`, `repair`, ... |
| `delay_seconds` | how long the reply takes; spread over its pieces, and its calls in a loop, when somebody listens |
| `chunks` | the pieces a listener hears: their size in characters, or the texts themselves |
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from toolplan.errors import ModelError, UsageError
from toolplan.models.base import (
    Model,
    ModelRequest,
    OnText,
    PlanForm,
    Reply,
    ToolCallPart,
    Usage,
    close_model,
    estimate_tokens,
    hears_calls,
    plan_form,
)
from toolplan.models.text_tools import Spoken, callable_tools, with_calls_from_text
from toolplan.values import shorten

__all__ = ["FunctionModel", "RecordingModel", "ScriptedModel"]

CHUNK_CHARACTERS = 24
"""The size of the pieces that a listener hears when a scripted reply does not say."""


@dataclass(frozen=True, slots=True)
class _Line:
    """One scripted reply and the conditions under which it may be given."""

    reply: Reply
    has_usage: bool
    where: str
    expect: tuple[str, ...] = ()
    purpose: str | None = None
    delay_seconds: float = 0.0
    chunks: int | tuple[str, ...] = CHUNK_CHARACTERS


class ScriptedModel:
    """A model that gives the replies of a list or a recording, one after the other.

    `replies` is the path of a recording, or an iterable of texts, of objects as in a recording, and of `Reply`. Where
    tools are offered, calls that stand in a reply's text, in whatever format, are read as calls.
    Raises `UsageError`, with file and line, for a reply that cannot be read; `ask` raises `ModelError` when a reply
    expects another request than it gets, and when there is none left.
    """

    def __init__(
        self, replies: str | Path | Iterable[str | Mapping[str, Any] | Reply], *, name: str | None = None
    ) -> None:
        if isinstance(replies, str | Path):
            self._lines = _read_recording(Path(replies))
            self._name = name or f"scripted:{replies}"
        else:
            self._lines = [_read_item(item, f"reply {number}") for number, item in enumerate(replies, 1)]
            self._name = name or "scripted"
        self._given = 0

    @property
    def name(self) -> str:
        """The model's name: `scripted:` and its file."""
        return self._name

    @property
    def left(self) -> int:
        """How many replies have not been given yet."""
        return len(self._lines) - self._given

    async def ask(self, request: ModelRequest, on_text: OnText | None = None) -> Reply:
        """Return the next reply. See `Model.ask`."""
        number = self._given + 1
        if number > len(self._lines):
            about = f"request {number} (purpose: {request.purpose}) {_gist(request)}"
            raise self._error(f"`{self._name}` has {_count(len(self._lines))}, so that {about} finds none left")
        self._given = number
        line = self._lines[number - 1]
        self._check(line, request, number)
        reply = replace(line.reply, schema_name=request.schema_name, model=line.reply.model or self._name)
        if reply.tool_calls:
            reply = replace(reply, output="tool")
        if not line.has_usage:
            reply = replace(reply, usage=_estimate(request, reply))
        tools = callable_tools(request)
        called = hears_calls(on_text)
        spoken = Spoken(tools, on_text, called, format="auto") if tools and on_text is not None else None
        calls = _call_pieces(reply.tool_calls, line, called) if tools else []
        await _deliver(reply.spoken_text, line, spoken.hear if spoken else on_text, calls)
        if spoken:
            spoken.close(reply.finish_reason)
        return with_calls_from_text(reply, tools, format="auto")

    def _check(self, line: _Line, request: ModelRequest, number: int) -> None:
        if line.purpose is not None and line.purpose != request.purpose:
            raise self._error(
                f"{line.where} is a reply for `{line.purpose}`, but request {number} is for `{request.purpose}`"
            )
        for text in line.expect:
            if text not in request.text:
                raise self._error(
                    f"{line.where} expects {shorten(text)} in the request, but request {number}"
                    f" (purpose: {request.purpose}) {_gist(request)} does not contain it"
                )

    def _error(self, message: str) -> ModelError:
        return ModelError(message, provider="scripted", model=self._name)


class RecordingModel:
    """A model that passes everything to another one and appends each reply to a recording.

    The recording can be played by `ScriptedModel`; each line expects the start of the last message that was sent, so
    that it is not taken for the answer to something else. Replies that end in an error are not recorded.
    """

    def __init__(self, model: Model, path: str | Path) -> None:
        self._model = model
        self._path = Path(path)

    @property
    def name(self) -> str:
        """The name of the recorded model."""
        return self._model.name

    @property
    def plan_form(self) -> PlanForm:
        """The plan form of the recorded model."""
        return plan_form(self._model)

    async def ask(self, request: ModelRequest, on_text: OnText | None = None) -> Reply:
        """Return the other model's reply. See `Model.ask`."""
        reply = await self._model.ask(request, on_text)
        line = json.dumps(_to_line(request, reply), ensure_ascii=False)
        new = not self._path.exists()
        with self._path.open("a", encoding="utf-8") as file:
            if new:
                file.write(f"# replies of {self.name}, recorded by toolplan\n")
            file.write(line + "\n")
        return reply

    async def close(self) -> None:
        """Close what the other model holds open."""
        await close_model(self._model)


class FunctionModel:
    """A model that is a Python function, for tests and experiments.

    The function gets the request and returns a `Reply`, or the text of one; it may be async.
    """

    def __init__(
        self,
        function: Callable[[ModelRequest], Reply | str | Awaitable[Reply | str]],
        *,
        name: str = "function",
    ) -> None:
        self._function = function
        self._name = name

    @property
    def name(self) -> str:
        """The name that was given."""
        return self._name

    async def ask(self, request: ModelRequest, on_text: OnText | None = None) -> Reply:
        """Return what the function returns. What the function raises comes out unchanged."""
        answer = self._function(request)
        if inspect.isawaitable(answer):
            answer = await answer
        if isinstance(answer, str):
            reply = Reply(answer, finish_reason="stop", model=self._name, schema_name=request.schema_name)
            answer = replace(reply, usage=_estimate(request, reply))
        answer = with_calls_from_text(answer, callable_tools(request), format="auto")
        if on_text is not None and answer.spoken_text:
            on_text(answer.spoken_text)
        return answer


# ---- giving a reply


async def _deliver(text: str, line: _Line, on_text: OnText | None, calls: Sequence[Callable[[], None]]) -> None:
    if on_text is None:
        if line.delay_seconds:
            await asyncio.sleep(line.delay_seconds)
        return
    pieces = [*(partial(on_text, piece) for piece in _pieces(text, line.chunks)), *calls]
    for pass_on in pieces:
        # Sleeping for no time still lets whatever waits for the plan go on between two pieces.
        await asyncio.sleep(line.delay_seconds / len(pieces))
        pass_on()


def _call_pieces(
    calls: Sequence[ToolCallPart], line: _Line, called: Callable[[ToolCallPart], None]
) -> list[Callable[[], None]]:
    """Return what is to be done at each piece of the calls: to tell of a call, at its last one."""
    size = line.chunks if isinstance(line.chunks, int) else CHUNK_CHARACTERS
    found: list[Callable[[], None]] = []
    for call in calls:
        found += [_nothing] * (len(call.arguments_text) // size)
        found.append(partial(called, call))
    return found


def _nothing() -> None:
    """Stand for a piece of a call that is not complete."""


def _pieces(text: str, chunks: int | tuple[str, ...]) -> list[str]:
    if isinstance(chunks, int):
        return [text[start : start + chunks] for start in range(0, len(text), chunks)]
    return list(chunks)


def _estimate(request: ModelRequest, reply: Reply) -> Usage:
    written = reply.text + reply.thinking + "".join(call.arguments_text for call in reply.tool_calls)
    return Usage(1, estimate_tokens(request.text), estimate_tokens(written), estimated=True)


def _gist(request: ModelRequest) -> str:
    last = request.messages[-1].text if request.messages else ""
    return f"with the last message {shorten(' '.join(last.split()))}"


def _count(replies: int) -> str:
    return "no replies" if not replies else "one reply" if replies == 1 else f"{replies} replies"


# ---- reading and writing a recording


def _read_recording(path: Path) -> list[_Line]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise UsageError(f"there is no file `{path}` with scripted replies") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the scripted replies in `{path}` cannot be read: {error}") from error
    lines: list[_Line] = []
    # Not splitlines: JSON text may hold other line ends, such as U+2028, inside its strings.
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith(("#", "//")):
            continue
        where = f"{path}:{number}"
        try:
            item = json.loads(stripped)
        except ValueError as error:
            raise UsageError(f"{where}: not a JSON object on one line: {error}") from None
        lines.append(_read_item(item, where))
    return lines


_KEYS = (
    *("text", "tool_calls", "thinking", "finish_reason", "model", "usage"),
    *("expect", "purpose", "delay_seconds", "chunks"),
)


def _read_item(item: object, where: str) -> _Line:
    if isinstance(item, Reply):
        return _Line(item, item.usage != Usage(), where)
    if isinstance(item, str):
        return _Line(Reply(item, finish_reason="stop"), False, where)
    if not isinstance(item, Mapping):
        raise UsageError(f'{where}: expected an object such as {{"text": "..."}}, found {type(item).__name__}')
    fields = cast("Mapping[str, Any]", item)
    unknown = [key for key in fields if key not in _KEYS]
    if unknown:
        raise UsageError(f"{where}: unknown key `{unknown[0]}`; a reply has {', '.join(_KEYS)}")
    if "text" not in fields and "tool_calls" not in fields:
        raise UsageError(f"{where}: a reply needs `text` or `tool_calls`")
    read = _Fields(fields, where)
    calls = tuple(_read_call(call, number, where) for number, call in enumerate(read.get("tool_calls", list, []), 1))
    usage = read.get("usage", dict, None)
    reply = Reply(
        text=read.get("text", str, ""),
        tool_calls=calls,
        finish_reason=read.get("finish_reason", str, "tool_call" if calls else "stop"),
        thinking=read.get("thinking", str, ""),
        model=read.get("model", str, ""),
        usage=_read_usage(usage, where) if usage is not None else Usage(),
    )
    expect: Any = read.get("expect", (str, list), [])
    return _Line(
        reply,
        usage is not None,
        where,
        expect=(expect,) if isinstance(expect, str) else tuple(expect),
        purpose=read.get("purpose", str, None),
        delay_seconds=read.get("delay_seconds", (int, float), 0.0),
        chunks=_read_chunks(read.get("chunks", (int, list), CHUNK_CHARACTERS), reply, where),
    )


@dataclass(frozen=True, slots=True)
class _Fields:
    fields: Mapping[str, Any]
    where: str

    def get(self, key: str, kinds: type | tuple[type, ...], default: Any) -> Any:
        value = self.fields.get(key)
        if value is None:
            return default
        if not isinstance(value, kinds) or isinstance(value, bool):
            names = " or ".join(_WORDS[kind] for kind in (kinds if isinstance(kinds, tuple) else (kinds,)))
            raise UsageError(f"{self.where}: `{key}` must be {names}, found {shorten(value)}")
        return value


_WORDS = {str: "text", list: "a list", dict: "an object", int: "a whole number", float: "a number"}


def _read_call(call: Any, number: int, where: str) -> ToolCallPart:
    fields = _object(call)
    # The OpenAI shape, {"id", "type": "function", "function": {...}}, is what people have at hand to paste.
    inner = _object(fields["function"]) if "function" in fields else fields
    name = inner.get("name")
    if not isinstance(name, str) or not name:
        raise UsageError(f"{where}: tool call {number} needs a `name`")
    arguments = inner.get("arguments", {})
    if not isinstance(arguments, str | dict):
        raise UsageError(f"{where}: the `arguments` of `{name}` must be an object or its text")
    return ToolCallPart(str(fields.get("id") or f"call_{number}"), name, cast("str | dict[str, Any]", arguments))


def _object(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _read_usage(usage: Mapping[str, Any], where: str) -> Usage:
    counts: dict[str, int] = {}
    for key in ("input_tokens", "output_tokens", "cached_input_tokens"):
        value = usage.get(key, 0)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise UsageError(f"{where}: `usage.{key}` must be a whole number, found {shorten(value)}")
        counts[key] = value
    return Usage(requests=1, **counts, estimated=usage.get("estimated") is True)


def _read_chunks(chunks: int | list[Any], reply: Reply, where: str) -> int | tuple[str, ...]:
    if isinstance(chunks, int):
        if chunks < 1:
            raise UsageError(f"{where}: `chunks` must be at least 1 character, found {chunks}")
        return chunks
    pieces = tuple(str(piece) for piece in chunks)
    if reply.text and "".join(pieces) != reply.text:
        raise UsageError(f"{where}: the pieces in `chunks` do not make up the `text`")
    return pieces


def _to_line(request: ModelRequest, reply: Reply) -> dict[str, Any]:
    last = request.messages[-1].text if request.messages else ""
    line: dict[str, Any] = {"purpose": request.purpose, "expect": last[:200], "text": reply.text}
    if reply.tool_calls:
        line["tool_calls"] = [
            {"id": call.id, "name": call.name, "arguments": call.arguments} for call in reply.tool_calls
        ]
    if reply.thinking:
        line["thinking"] = reply.thinking
    usage = {key: value for key, value in reply.usage.to_dict().items() if key != "requests" and value}
    return {**line, "finish_reason": reply.finish_reason, "model": reply.model, "usage": usage}
