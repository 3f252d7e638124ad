"""What is said in a conversation, and what a model replied, as JSON and back: for journals and stored conversations."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, cast

from toolplan.diagnostics import Diagnostic
from toolplan.journal import ModelSaid
from toolplan.models import Message, Reply, ToolCallPart, ToolResultPart, Usage
from toolplan.values import Json

__all__ = ["entry_of_reply", "message_from_json", "message_to_json", "reply_of_entry", "usage_from_json"]


def message_to_json(message: Message) -> dict[str, Json]:
    """Return a message as JSON."""
    calls: list[Json] = [_call_to_json(call) for call in message.tool_calls]
    results = [dataclasses.asdict(result) for result in message.tool_results]
    return {
        "role": message.role,
        "content": message.content,
        "tool_calls": calls,
        "tool_results": cast("list[Json]", results),
        "thinking": message.thinking,
        "kept": message.kept,
    }


def message_from_json(message: Mapping[str, Any]) -> Message:
    """Return what `message_to_json` has made JSON of. Raises `KeyError` or `TypeError` for anything else."""
    return Message(
        message["role"],
        message["content"],
        tuple(_call_from_json(call) for call in message["tool_calls"]),
        tuple(ToolResultPart(**result) for result in message["tool_results"]),
        message["thinking"],
        message["kept"],
    )


def entry_of_reply(reply: Reply, heard: Sequence[tuple[str, Json]]) -> ModelSaid:
    """Return a reply as a journal keeps it. `heard` are its calls, by the tools' own names, with their arguments.

    They are written where they stand in the reply's text, or under other names than its calls have.
    """
    calls = [_call_to_json(call) for call in reply.tool_calls]
    received = [(call.name, cast(Json, call.arguments)) for call in reply.tool_calls]
    return ModelSaid(
        reply.text,
        calls,
        [] if received == list(heard) else [{"tool": tool, "arguments": arguments} for tool, arguments in heard],
        reply.finish_reason,
        reply.thinking,
        reply.kept,
        list(reply.notes),
        reply.model,
        reply.usage.to_dict(),
    )


def reply_of_entry(said: ModelSaid) -> Reply:
    """Return the reply that a journal has kept."""
    return Reply(
        said.text,
        tuple(_call_from_json(cast("dict[str, Any]", call)) for call in said.calls),
        said.finish_reason,
        usage_from_json(said.usage),
        said.model,
        said.thinking,
        notes=tuple(said.notes),
        kept=cast("dict[str, Json] | None", said.kept),
    )


def usage_from_json(usage: Mapping[str, Any]) -> Usage:
    """Return what `Usage.to_dict` has made JSON of."""
    return Usage(**usage)


def _call_to_json(call: ToolCallPart) -> Json:
    shown: dict[str, Json] = {"id": call.id, "name": call.name, "arguments": call.arguments}
    if call.format is not None:
        shown["format"] = call.format
    if call.repairs:
        shown["repairs"] = list(call.repairs)
    if call.problem is not None:
        shown["problem"] = call.problem.to_dict()
    return shown


def _call_from_json(call: Mapping[str, Any]) -> ToolCallPart:
    problem = call.get("problem")
    return ToolCallPart(
        call["id"],
        call["name"],
        call["arguments"],
        tuple(call.get("repairs", ())),
        None
        if problem is None
        else Diagnostic(
            problem["code"],
            problem["message"],
            notes=tuple(problem.get("notes", ())),
            help=problem.get("help"),
        ),
        call.get("format"),
    )
