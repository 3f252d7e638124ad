"""Self-review: one inference that reads an accepted plan against the request, before anything runs.

Its objections become diagnostics, so a plan that does something else than was asked is mended like one that does not
check. A reply that cannot be read is no objection: the review can only add caution, never stand in for a check.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, cast

from toolplan.diagnostics import Diagnostic, Place
from toolplan.diagnostics.review import objection
from toolplan.models import Message, ModelRequest, Reply
from toolplan.plan import Plan, walk
from toolplan.prompt import Language, review_messages
from toolplan.show import canonical
from toolplan.tools import ToolSet
from toolplan.values import Json

__all__ = ["review_with_model"]

_TEXT: dict[str, Json] = {"type": ["string", "null"]}
SCHEMA: dict[str, Json] = {
    "type": "object",
    "properties": {
        "objections": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"step": _TEXT, "problem": {"type": "string"}, "instead": _TEXT},
                "required": ["step", "problem", "instead"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["objections"],
    "additionalProperties": False,
}


async def review_with_model(
    request: str,
    plan: Plan,
    tools: ToolSet,
    infer: Callable[[ModelRequest], Awaitable[Reply]],
    *,
    language: Language = "auto",
    now: str,
    context: str | None = None,
) -> tuple[Diagnostic, ...]:
    """Return what the model objects to in the plan; nothing when it agrees. Raises what `infer` raises."""
    prompt = review_messages(request, canonical(plan), tools, language=language, now=now, context=context)
    messages = tuple(Message(message.role, message.content) for message in prompt)
    reply = await infer(
        ModelRequest(messages, schema=SCHEMA, schema_name="review", schema_stated=True, purpose="review")
    )
    places = {step.id: step.place for step in walk(plan.steps)}
    return tuple(_diagnostic(found, places) for found in _objections(reply.plan_text))


def _objections(text: str) -> list[dict[str, Any]]:
    start, end = text.find("{"), text.rfind("}")
    try:
        read: Any = json.loads(text[start : end + 1])
    except ValueError:
        return []
    listed: Any = cast("dict[str, Any]", read).get("objections") if isinstance(read, dict) else None
    items = cast("list[Any]", listed) if isinstance(listed, list) else []
    return [cast("dict[str, Any]", item) for item in items if isinstance(item, dict) and "problem" in item]


def _diagnostic(found: dict[str, Any], places: dict[str, Place]) -> Diagnostic:
    step = str(found["step"]) if found.get("step") in places else None
    instead = str(found["instead"]) if found.get("instead") else None
    place = places[step] if step is not None else Place()
    return objection(place, step, str(found["problem"]), instead)
