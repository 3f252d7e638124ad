"""Messages as the APIs have them: OpenAI's `tool_calls`, Anthropic's `tool_use`, Gemini's `functionCall` parts.

`messages.py` reads the objects. Here they are formats like any other: JSON text of such a message is read, and written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from toolplan.diagnostics import formats as say
from toolplan.parse.formats.cursor import Marks, Reader
from toolplan.parse.formats.format import Format, Opener, result_text
from toolplan.parse.formats.parts import CallPart
from toolplan.parse.formats.scan import Scan
from toolplan.parse.json_text import describe
from toolplan.values import Json

__all__ = ["ANTHROPIC", "GEMINI", "OPENAI", "native_calls", "write_messages"]

_NONE = Marks(())
Native = tuple[str, Json, str | None]
"""A call as it came: its name, its arguments, its id."""


def native_calls(message: dict[str, Json]) -> list[Native] | None:
    """Return the calls of a message object of any of the three APIs; None when it is none of theirs."""
    if isinstance(calls := message.get("tool_calls"), list):
        return [_openai(call) for call in calls if isinstance(call, dict)]
    if isinstance(call := message.get("function_call"), dict):
        return [_openai({"function": call})]
    blocks = message.get("content")
    if isinstance(blocks, list):
        return [_anthropic(block) for block in blocks if isinstance(block, dict) and block.get("type") == "tool_use"]
    if isinstance(blocks, dict):
        message = blocks
    if isinstance(parts := message.get("parts"), list):
        found = [part.get("functionCall") or part.get("function_call") for part in parts if isinstance(part, dict)]
        return [_gemini(call) for call in found if isinstance(call, dict)]
    return None


def _openai(call: dict[str, Json]) -> Native:
    function = call.get("function")
    inner = function if isinstance(function, dict) else call
    return _named(inner, "arguments", call.get("id"))


def _anthropic(block: dict[str, Json]) -> Native:
    return _named(block, "input", block.get("id"))


def _gemini(call: dict[str, Json]) -> Native:
    return _named(call, "args", call.get("id"), missing=None)


def _named(call: dict[str, Json], arguments: str, id: Json, missing: str | None = "") -> Native:
    name = call.get("name")
    return (
        name if isinstance(name, str) else "",
        call.get(arguments),
        id if isinstance(id, str) and id else missing,
    )


def _reader(name: str) -> Callable[[Scan, str, int], Reader[None]]:
    def read(scan: Scan, mark: str, start: int) -> Reader[None]:
        """Read on behind the bracket of a message."""
        scan.cursor.put_back(mark)
        scan.format = name
        found = yield from scan.json_value(_NONE)
        if found.read is None:
            scan.damaged(found, start, _NONE, _NONE)
            return
        for message in found.read.value if isinstance(found.read.value, list) else [found.read.value]:
            calls = native_calls(message) if isinstance(message, dict) else None
            if calls is None:
                scan.broken(say.no_tool_named(scan.place(start), describe(message)), None)
            for called, arguments, id in calls or ():
                scan.call(called, arguments, start, id=id, repairs=found.read.repairs, as_text=name == "openai")

    return read


def write_messages(
    format: str, calls: Sequence[CallPart], text: str = "", results: Sequence[Json] | None = None
) -> list[dict[str, Json]]:
    """Return the message that makes the calls, and the messages with their results, as the API of `format` has them."""
    messages: list[dict[str, Json]] = []
    if format == "openai":
        made: list[Json] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments, ensure_ascii=False)},
            }
            for call in calls
        ]
        messages.append({"role": "assistant", "content": text or None, "tool_calls": made})
        for call, result in zip(calls, results or (), strict=False):
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result_text(result)})
    elif format == "anthropic":
        content: list[Json] = [{"type": "text", "text": text}] if text else []
        for call in calls:
            content.append({"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments})
        messages.append({"role": "assistant", "content": content})
        answers: list[Json] = []
        for call, result in zip(calls, results or (), strict=False):
            answers.append({"type": "tool_result", "tool_use_id": call.id, "content": result_text(result)})
        if answers:
            messages.append({"role": "user", "content": answers})
    else:
        parts: list[Json] = [{"text": text}] if text else []
        for call in calls:
            parts.append({"functionCall": {"name": call.name, "args": call.arguments}})
        messages.append({"role": "model", "parts": parts})
        given: list[Json] = []
        for call, result in zip(calls, results or (), strict=False):
            given.append({"functionResponse": {"name": call.name, "response": {"result": result}}})
        if given:
            messages.append({"role": "user", "parts": given})
    return messages


def _format(name: str, title: str) -> Format:
    def whole(calls: Sequence[CallPart], text: str, results: Sequence[Json] | None) -> str:
        return "\n".join(
            json.dumps(message, ensure_ascii=False) for message in write_messages(name, calls, text, results)
        )

    def write(calls: Sequence[CallPart]) -> str:
        return whole(calls, "", None)

    def write_results(calls: Sequence[CallPart], results: Sequence[Json]) -> str:
        return "\n".join(whole(calls, "", results).split("\n")[1:])

    return Format(
        name,
        title,
        (Opener(("{", "["), _reader(name), "line"),),
        write,
        write_results,
        write_whole=whole,
        alone=False,
    )


OPENAI = _format("openai", "OpenAI's `tool_calls`")
ANTHROPIC = _format("anthropic", "Anthropic's `tool_use`")
GEMINI = _format("gemini", "Gemini's `functionCall` parts")
