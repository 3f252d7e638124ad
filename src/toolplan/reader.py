"""The quarantined reader behind `ask_model`: one question about one piece of data, an answer in a given shape.

The model that reads sees only the question and the data; it has no tools and cannot see the plan, so text inside the
data can at most spoil its own answer (the "dual LLM" pattern, Willison 2023; CaMeL, Debenedetti et al. 2025). The reply
must fit the JSON Schema; one that does not is asked for once more, with what was wrong.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from typing import Any, cast

from toolplan.errors import ToolFailed
from toolplan.models import Message, ModelRequest, Reply
from toolplan.prompt import Language, reading_messages
from toolplan.schedule import AskModelNow
from toolplan.values import Json

__all__ = ["read_with_model"]

_FENCE = re.compile(r"\A\s*```[a-zA-Z]*\s*\n(.*?)\n?\s*```\s*\Z", re.DOTALL)


async def read_with_model(
    command: AskModelNow, infer: Callable[[ModelRequest], Awaitable[Reply]], *, language: Language = "auto"
) -> Json:
    """Return the model's answer to the question, fitting `command.returns`.

    Asks at most twice. Raises `ToolFailed` when the second reply does not fit either; `infer` raises what it raises.
    """
    prompt = reading_messages(command.question, command.data, command.returns, language=language)
    messages = [Message(message.role, message.content) for message in prompt]
    reply = await infer(_request(messages, command.returns))
    value, fault = _read(reply.plan_text, command.returns)
    if fault is None:
        return value
    messages += [Message("assistant", reply.plan_text), Message("user", fault)]
    reply = await infer(_request(messages, command.returns))
    value, fault = _read(reply.plan_text, command.returns)
    if fault is not None:
        raise ToolFailed(f"the model's reply does not fit what the plan asked for: {fault}", effect_happened=False)
    return value


def _request(messages: list[Message], returns: dict[str, Json]) -> ModelRequest:
    return ModelRequest(tuple(messages), schema=returns, schema_name="reply", schema_stated=True, purpose="ask_model")


def _read(text: str, schema: dict[str, Json]) -> tuple[Json, str | None]:
    """Return the value and None, or what is wrong with it."""
    import jsonschema_rs

    inner = match.group(1) if (match := _FENCE.match(text)) else text.strip()
    try:
        value = cast(Json, json.loads(inner))
    except ValueError:
        value = inner
    validator = cast(Any, jsonschema_rs).validator_for(schema)
    for candidate in dict.fromkeys([json.dumps(value), json.dumps(inner)]):
        read = cast(Json, json.loads(candidate))
        if validator.is_valid(read):
            return read, None
    error = next(iter(validator.iter_errors(value)))
    return None, f"{error.message} (expected JSON that fits {json.dumps(schema, ensure_ascii=False)})"
