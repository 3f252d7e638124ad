"""A conversation as a provider wants to see it: every call answered once, under an id that the provider accepts.

Ids of calls are labels: models leave them out, repeat them within a reply and from turn to turn, and each provider has
its own rule for them (`ProviderFacts.call_ids`). `numbered` gives every call of a conversation an id of its own, keeps
the given one where it may, and puts each result after its call, in the order of the calls. What it makes up depends
only on the position of the call, so the same conversation is always sent in the same bytes and prompt caches hold.

What a provider wants back unchanged with a message, such as the signature of its thinking, is kept by `kept_parts` as
JSON and goes back to the same provider only.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from toolplan.errors import UsageError
from toolplan.models.base import Message, ToolCallPart, ToolResultPart
from toolplan.models.facts import ProviderFacts
from toolplan.values import Json

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse, ModelResponsePart

__all__ = ["history", "kept_parts", "numbered"]

NO_RESULT = "there is no result of this call"
"""What a model is told of a call that nobody answered."""

NOTHING_SAID = "(no reply)"
"""Stands between results and what the user says next; after results, OpenAI's protocol has the assistant's turn."""

_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_.:-]+")
MOST_OF_A_NAME = 64

_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"
MADE_UP_LENGTH = 9
"""The length of ids that are made up: what the strictest provider wants, and all others take."""


# ---- ids and results


def numbered(messages: Sequence[Message], allowed: str) -> tuple[Message, ...]:
    """Return the conversation with ids that match the pattern `allowed`, unique in it, and every call answered.

    The results of one message's calls become one message, in the order of the calls; a call without a result gets one
    that says so. A result is of the first call with its id that has none yet; one without an id is of the first call
    of its tool. Raises `UsageError` for a result whose call is not in the message before it.
    """
    pattern = re.compile(allowed)
    given = {call.id for message in messages for call in message.tool_calls}
    used: set[str] = set()
    sent: list[Message] = []
    index = 0
    while index < len(messages):
        message = messages[index]
        index += 1
        if message.role == "tool":
            raise UsageError(_stray(message.tool_results[0] if message.tool_results else None))
        if not message.tool_calls:
            sent.append(message)
            continue
        results: list[ToolResultPart] = []
        while index < len(messages) and messages[index].role == "tool":
            results += messages[index].tool_results
            index += 1
        ids: list[str] = []
        for position, call in enumerate(message.tool_calls):
            fits = pattern.fullmatch(call.id) is not None and call.id not in used
            ids.append(call.id if fits else _made_up(len(sent), position, given | used))
            used.add(ids[-1])
        calls = tuple(dataclasses.replace(call, id=id) for call, id in zip(message.tool_calls, ids, strict=True))
        sent.append(dataclasses.replace(message, tool_calls=calls))
        answers = tuple(_answers(message.tool_calls, ids, results))
        sent.append(Message("tool", tool_results=answers))
    return tuple(sent)


def _answers(
    calls: Sequence[ToolCallPart], ids: Sequence[str], results: list[ToolResultPart]
) -> Iterator[ToolResultPart]:
    answered: dict[int, ToolResultPart] = {}
    for result in sorted(results, key=lambda result: not result.id):
        open_calls = [position for position in range(len(calls)) if position not in answered]
        mine = [
            position
            for position in open_calls
            if (calls[position].id == result.id if result.id else calls[position].name == result.name)
        ]
        if not mine:
            raise UsageError(_stray(result))
        answered[mine[0]] = result
    for position, call in enumerate(calls):
        result = answered.get(position) or ToolResultPart("", call.name, NO_RESULT, is_error=True)
        yield dataclasses.replace(result, id=ids[position], name=call.name)


def _stray(result: ToolResultPart | None) -> str:
    if result is None:
        return "a message of the role `tool` holds no result, or does not follow the message with its calls"
    return (
        f"the result of call `{result.id}` of `{result.name}` answers no open call of the message before it;"
        " every call is answered once, right after the message that makes it"
    )


def _made_up(turn: int, position: int, taken: set[str]) -> str:
    for attempt in range(len(taken) + 1):
        number = int.from_bytes(hashlib.sha256(f"{turn}.{position}.{attempt}".encode()).digest()[:8], "big")
        digits = ""
        for _ in range(MADE_UP_LENGTH):
            number, digit = divmod(number, len(_ALPHABET))
            digits += _ALPHABET[digit]
        if digits not in taken:
            return digits
    raise AssertionError("more ids were tried than are taken")


# ---- what a provider wants back


def kept_parts(response: ModelResponse) -> dict[str, Json] | None:
    """Return what has to go back unchanged with this reply, as JSON; None when text and calls say it all.

    The parts in their order, with whose they are. The address is left out: it may hold a password.
    """
    from pydantic_ai import messages as library

    if not any(isinstance(part, library.ThinkingPart) or _details(part) for part in response.parts):
        return None
    dumped = library.ModelMessagesTypeAdapter.dump_python([response], mode="json")[0]
    return {key: dumped[key] for key in ("kind", "parts", "model_name", "provider_name", "canonical_system")}


def _details(part: object) -> object:
    return getattr(part, "provider_details", None) or getattr(part, "signature", None)


def _is_own(message: Message, system: str) -> bool:
    return message.kept is not None and message.kept.get("provider_name") == system


def _restored(message: Message, system: str) -> list[ModelResponsePart]:
    """Return the kept parts of a message where they are this provider's own."""
    from pydantic_ai import messages as library

    if not _is_own(message, system):
        return []
    try:
        (response,) = library.ModelMessagesTypeAdapter.validate_python([message.kept])
    except ValueError as error:
        raise UsageError(f"what was kept of an assistant's message cannot be read: {error}") from None
    return list(cast("ModelResponse", response).parts)


# ---- the library's messages


def history(messages: Sequence[Message], facts: ProviderFacts, system: str = "") -> list[ModelMessage]:
    """Return the conversation as the library's messages: what was said to the model, and what it answered, in turns.

    User and assistant take turns, as many servers and templates insist: what one says twice in a row, where a reply
    between was empty, becomes one message. `system` is the library's name of the provider, to whom what it wanted kept
    is given back.
    """
    from pydantic_ai import messages as library

    turns: list[ModelMessage] = []

    def add_response(parts: list[Any], **whose: Any) -> None:
        last = turns[-1] if turns else None
        if isinstance(last, library.ModelResponse):
            turns[-1] = dataclasses.replace(last, parts=[*last.parts, *parts])
        else:
            turns.append(library.ModelResponse(parts, **whose))

    # OpenAI's protocol has no mark for a failed call; there the words of the result say it, unwrapped.
    failed = "success" if facts.protocol == "openai" else "failed"
    for message in numbered(messages, facts.call_ids):
        if message.role == "assistant":
            parts = _assistant_parts(message, system)
            if parts:
                kept: dict[str, Any] = message.kept if _is_own(message, system) and message.kept else {}
                provider, canonical = kept.get("provider_name"), kept.get("canonical_system")
                add_response(parts, provider_name=provider, canonical_system=canonical)
            continue
        said: list[Any]
        if message.role == "system":
            said = [library.SystemPromptPart(message.content)]
        elif message.role == "tool":
            said = [
                library.ToolReturnPart(
                    _accepted(result.name), result.content, result.id, outcome=failed if result.is_error else "success"
                )
                for result in message.tool_results
            ]
        else:
            said = [library.UserPromptPart(message.content)]
        last = turns[-1] if turns else None
        before = last.parts[-1] if isinstance(last, library.ModelRequest) else None
        if message.role == "user" and isinstance(before, library.UserPromptPart):
            merged = library.UserPromptPart(f"{before.content}\n\n{message.content}".strip())
            turns[-1] = library.ModelRequest(parts=[*cast("Any", last).parts[:-1], merged])
        elif message.role == "user" and isinstance(before, library.ToolReturnPart) and facts.protocol == "openai":
            add_response([library.TextPart(NOTHING_SAID)])
            turns.append(library.ModelRequest(parts=said))
        elif isinstance(last, library.ModelRequest):
            turns[-1] = dataclasses.replace(last, parts=[*last.parts, *said])
        else:
            turns.append(library.ModelRequest(parts=said))
    return turns


def _accepted(name: str) -> str:
    """Return the name of a call as providers take it: a model may write any, and one bad name fails every request."""
    return _NOT_IN_NAMES.sub("_", name)[:MOST_OF_A_NAME] or "_"


def _assistant_parts(message: Message, system: str) -> list[ModelResponsePart]:
    """Return the parts of an assistant's message: thinking first, then text, then calls, unless it kept an order.

    Kept parts go back as they came when nothing of text and calls was changed since; otherwise only the thinking does,
    and what belongs to a call that is still there.
    """
    from pydantic_ai import messages as library

    restored = _restored(message, system)
    kept_calls = [part for part in restored if isinstance(part, library.ToolCallPart)]
    text = "".join(part.content for part in restored if isinstance(part, library.TextPart))
    same_calls = [(part.tool_name, part.args or "") for part in kept_calls] == [
        (call.name, call.arguments or "") for call in message.tool_calls
    ]
    if restored and text == message.content and same_calls:
        ids = iter(call.id for call in message.tool_calls)
        return [
            dataclasses.replace(part, tool_call_id=next(ids)) if isinstance(part, library.ToolCallPart) else part
            for part in restored
        ]
    parts: list[Any] = [part for part in restored if isinstance(part, library.ThinkingPart)]
    if message.content:
        parts.append(library.TextPart(message.content))
    for index, call in enumerate(message.tool_calls):
        own = kept_calls[index] if index < len(kept_calls) and kept_calls[index].tool_name == call.name else None
        part = library.ToolCallPart(_accepted(call.name), call.arguments or None, call.id)
        if own is not None and own.provider_details:
            part = dataclasses.replace(part, provider_name=own.provider_name, provider_details=own.provider_details)
        parts.append(part)
    return parts
