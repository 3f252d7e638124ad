"""What a provider said, from the library's types to ours: text while it arrives, then the whole reply."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolplan.models.base import ModelRequest, Output, Reply, ToolCallPart, Usage, estimate_tokens
from toolplan.models.conversation import kept_parts
from toolplan.models.failures import Target, UnusableReply
from toolplan.parse.formats import TextPart, ThinkingPart, read_calls

if TYPE_CHECKING:
    from pydantic_ai import messages as library
    from pydantic_ai.messages import ModelResponse, ModelResponsePart, ModelResponseStreamEvent

__all__ = ["Heard", "to_reply", "usage_of", "without_thinking"]


@dataclass
class Heard:
    """Reads the library's stream events and passes on the text of the reply: prose, or arguments of the plan tool.

    `called` hears of each call that something follows. The last one may be cut off, which only the whole reply tells.
    """

    tool_name: str
    listen: Callable[[str], None]
    called: Callable[[ToolCallPart], None]
    _tools: dict[int, str] = field(default_factory=dict[int, str])
    _passed_on: set[int] = field(default_factory=set[int])

    def hear(self, event: ModelResponseStreamEvent) -> None:
        """Take one event in; passes on what it says, if anything."""
        from pydantic_ai import messages as library

        if isinstance(event, library.PartStartEvent):
            if isinstance(event.part, library.TextPart):
                self.listen(event.part.content)
            elif isinstance(event.part, library.ToolCallPart):
                self._tools[event.index] = event.part.tool_name
                self._arguments(event.index, event.part.args)
        elif isinstance(event, library.PartDeltaEvent):
            if isinstance(event.delta, library.TextPartDelta):
                self.listen(event.delta.content_delta)
            elif isinstance(event.delta, library.ToolCallPartDelta):
                self._tools[event.index] = self._tools.get(event.index, "") + (event.delta.tool_name_delta or "")
                self._arguments(event.index, event.delta.args_delta)
        elif isinstance(event, library.PartEndEvent) and isinstance(event.part, library.ToolCallPart):
            if isinstance(event.part.args, dict) and event.index not in self._passed_on:
                # Arguments that came as an object, not as text, are passed on whole once they are complete.
                self._arguments(event.index, json.dumps(event.part.args, ensure_ascii=False))
            if event.next_part_kind is not None:
                self.called(_to_call(event.part))

    def _arguments(self, index: int, args: object) -> None:
        if isinstance(args, str) and args and self._tools.get(index) == self.tool_name:
            self._passed_on.add(index)
            self.listen(args)


def to_reply(response: ModelResponse, request: ModelRequest, way: Output, target: Target) -> Reply:
    """Return the reply. Raises `UnusableReply` when it holds nothing at all."""
    from pydantic_ai import messages as library

    if any(isinstance(part, library.ToolCallPart) for part in response.parts):
        response = dataclasses.replace(response, parts=list(_thinking_apart(response)))
    text = "".join(part.content for part in response.parts if isinstance(part, library.TextPart))
    thinking = "".join(part.content for part in response.parts if isinstance(part, library.ThinkingPart))
    calls = _told_apart(_to_call(part) for part in response.parts if isinstance(part, library.ToolCallPart))
    details = response.provider_details or {}
    finish_reason = response.finish_reason or details.get("finish_reason")
    if calls and finish_reason == "stop":
        # The calls decide: many servers say `stop` whatever they send.
        finish_reason = "tool_call"
    if not text.strip() and not calls:
        declined = bool(details.get("refusal")) or finish_reason == "content_filter"
        why = _why_empty(finish_reason, details.get("refusal"), bool(thinking))
        raise UnusableReply(why, "declined" if declined else "empty", usage_of(response, request, thinking))
    return Reply(
        text=text,
        tool_calls=calls,
        finish_reason=finish_reason,
        usage=usage_of(response, request, text + "".join(call.arguments_text for call in calls) + thinking),
        model=response.model_name or target.model,
        thinking=thinking,
        schema_name=request.schema_name,
        output=way,
        kept=kept_parts(response),
    )


def _thinking_apart(response: ModelResponse) -> Iterator[ModelResponsePart]:
    """Give the parts of a reply with calls; thinking that stands in its text is a part of its own."""
    from pydantic_ai import messages as library

    for part in response.parts:
        read = read_calls(part.content, "none") if isinstance(part, library.TextPart) else ()
        if not any(isinstance(each, ThinkingPart) for each in read):
            yield part
            continue
        for each in read:
            if isinstance(each, ThinkingPart):
                # Of this id, the library sends it back between tags, as it came.
                yield library.ThinkingPart(each.text, id="content", provider_name=response.provider_name)
            elif isinstance(each, TextPart) and each.text.strip():
                yield library.TextPart(each.text)


def without_thinking(reply: Reply) -> Reply:
    """Return a reply that is words, or a value, without the thinking in its text."""
    try:
        json.loads(reply.text)
        return reply
    except ValueError:
        pass
    parts = read_calls(reply.text, "none")
    thinking = "".join(part.text for part in parts if isinstance(part, ThinkingPart))
    if not thinking and not any(isinstance(part, ThinkingPart) for part in parts):
        return reply
    text = "".join(part.text for part in parts if isinstance(part, TextPart))
    return dataclasses.replace(reply, text=text, thinking=reply.thinking + thinking)


def _to_call(part: library.ToolCallPart) -> ToolCallPart:
    return ToolCallPart(part.tool_call_id, part.tool_name, "" if part.args is None else part.args)


def _told_apart(calls: Iterable[ToolCallPart]) -> tuple[ToolCallPart, ...]:
    """Return the calls with another id for each one whose id an earlier one has."""
    apart: dict[str, ToolCallPart] = {}
    for call in calls:
        id, number = call.id, 1
        while id in apart:
            number += 1
            id = f"{call.id}_{number}"
        apart[id] = dataclasses.replace(call, id=id)
    return tuple(apart.values())


def _why_empty(finish_reason: str | None, refusal: object, thought: bool) -> str:
    if refusal:
        return f"declined: {refusal}"
    if finish_reason == "content_filter":
        return "gave no reply: its content filter stopped it"
    if finish_reason == "length":
        spent = "spent all its tokens on thinking" if thought else "used up all its tokens"
        return f"gave no reply: it {spent}; allow it more with `max_tokens`"
    return f"gave an empty reply (finish reason: {finish_reason or 'none'})"


def usage_of(response: ModelResponse, request: ModelRequest, written: str = "") -> Usage:
    """Return what a reply has cost; where it is not said, an estimate by the request and what was written."""
    usage = response.usage
    if usage.input_tokens or usage.output_tokens:
        return Usage(1, usage.input_tokens, usage.output_tokens, usage.cache_read_tokens)
    asked = [json.dumps(request.schema, ensure_ascii=False)] if request.schema and not request.schema_stated else []
    asked += [spec.name + spec.description + json.dumps(spec.parameters, ensure_ascii=False) for spec in request.tools]
    return Usage(1, estimate_tokens(request.text, *asked), estimate_tokens(written), estimated=True)
