"""Whether a JSON value that stands in a reply looks like a plan, judged by its keys alone.

Any data may have a `name` or an `answer`; so what stands among other text has to say more than what stands alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from toolplan.parse.formats.bare_calls import bare_calls
from toolplan.parse.spellings import ANNOTATIONS, ANSWER, CALL, IF, LET, NOTE, PLAN, find_kind, fold
from toolplan.parse.tool_names import meant_tool
from toolplan.values import Json

__all__ = ["is_broken_plan", "is_plan"]

_STEP_KEYS = frozenset(
    ("tool_name", "tool_calls_sequence", "for_each", "while", "let", "parallel", "ask_user", "ask_model", "replan")
)
"""Keys that data hardly has."""


def is_plan(value: Json, tools: Collection[str], *, alone: bool) -> bool:
    """Whether a JSON value is meant as a plan, judged by its keys. `alone`: there is nothing else in the reply."""
    if _is_wrapped_call(value, tools, alone=alone):
        return True
    if isinstance(value, list):
        return any(isinstance(item, dict) and _is_step(item, tools, alone) for item in value)
    if not isinstance(value, dict):
        return False
    if _is_step(value, tools, alone):
        return True
    given = {PLAN.canonical(key): item for key, item in value.items() if item is not None}
    steps = given.get("steps")
    if isinstance(steps, str):
        steps = steps.lstrip()
        return steps.startswith(("[", "{")) and '"' in steps
    if is_plan(steps, tools, alone=alone):
        return True
    return alone and bool(given.keys() & {"answer", "cannot", "steps"})


def _is_wrapped_call(value: Json, tools: Collection[str], *, alone: bool) -> bool:
    """Whether a value is calls in the wrapping of an API that is not among the spellings of a step."""
    first = value[0] if isinstance(value, list) and value else value
    if not isinstance(first, dict) or not any(
        isinstance(first.get(key), dict) for key in ("function_call", "tool_call")
    ):
        return False
    calls = bare_calls(value)
    return bool(calls) and (alone or all(meant_tool(name, tools) for name, _, _ in calls))


def is_broken_plan(value: Json, tools: Collection[str], fenced: bool) -> bool:
    """Whether a list, or a fenced object, has the keys of steps: a plan that has to be mended, never an answer."""
    if isinstance(value, list):
        items = [item for item in value if isinstance(item, dict)]
        return len(items) == len(value) > 0 and any(_is_broken_step(item, tools) for item in items)
    return fenced and isinstance(value, dict) and _is_broken_step(value, tools)


def _is_broken_step(value: Mapping[str, Json], tools: Collection[str]) -> bool:
    if not value.keys().isdisjoint(_STEP_KEYS):
        return True
    if any(isinstance(value.get(key), list) for key in ("then", "do")) or isinstance(value.get("if"), str):
        return True
    return len(value) == 1 and all(key in tools and isinstance(item, dict) for key, item in value.items())


def _is_step(value: Mapping[str, Json], tools: Collection[str], alone: bool) -> bool:
    kinds, sure = find_kind(value)
    if not kinds:
        return False
    keys = {kind.canonical(key) for kind in kinds for key in value}
    if CALL in kinds:
        tool = next((item for key, item in value.items() if CALL.canonical(key) == "tool_name"), None)
        if isinstance(tool, Mapping):
            return "name" in tool
        if not isinstance(tool, str) or not tool:
            return len(kinds) > 1 and alone
        return "tool_name" in value or "arguments" in keys or tool in tools or (sure and alone)
    if kinds == [IF]:
        return "then" in keys and (alone or not _is_json_schema(value))
    if alone:
        return True
    if any(kind in (ANSWER, LET, NOTE) for kind in kinds):  # words that any data may have
        known = all(kinds[0].canonical(key) or fold(key) in ANNOTATIONS for key in value)
        return known and kinds != [ANSWER] and (LET not in kinds or isinstance(value.get("let"), dict))
    return sure


def _is_json_schema(value: Mapping[str, Json]) -> bool:
    """Whether `if` and `then` are those of JSON Schema, whose conditions are schemas."""
    return any(isinstance(side, dict) and side.keys() & {"properties", "required", "const"} for side in value.values())
