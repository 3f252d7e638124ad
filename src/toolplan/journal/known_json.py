"""What earlier plans have left (`Known`), as JSON and back."""

from __future__ import annotations

from typing import Any, cast

from toolplan.known import NOTHING_KNOWN, Known, MadeCall
from toolplan.values import Json, Value

__all__ = ["known_from_json", "known_to_json"]


def known_to_json(known: Known) -> Json:
    """Return it as JSON; None for nothing."""
    if known is NOTHING_KNOWN:
        return None
    values: dict[str, Json] = {
        name: {"value": value.data, "origins": cast("list[Json]", sorted(value.origins))}
        for name, value in known.values.items()
    }
    made: list[Json] = [
        {"step": call.step, "tool": call.tool, "arguments": dict(call.arguments), "outcome": call.outcome}
        for call in known.made
    ]
    states: list[Json] = [*sorted(known.states)]
    return {"values": values, "made": made, "states": states, "steps": known.steps, "calls": known.calls}


def known_from_json(data: Any) -> Known:
    """Return what `known_to_json` has made JSON of."""
    if data is None:
        return NOTHING_KNOWN
    values = {name: Value(item["value"], frozenset(item["origins"])) for name, item in data["values"].items()}
    made = tuple(MadeCall(call["step"], call["tool"], call["arguments"], call["outcome"]) for call in data["made"])
    return Known(values, made, frozenset(data["states"]), data["steps"], data["calls"])
