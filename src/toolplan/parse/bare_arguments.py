"""A plan that is nothing but calls, as models write them in JSON: their arguments, as the tools take them.

A number in quotes, an object inside a text, a word in other letters: what the scanner of calls mends toward the schema
is mended here by the same rules, and said in `repairs`, so that a call means the same whoever reads it. What has more
to it than calls, or is in the plan language's own words (`tool_name`), was written as a plan: `check` judges that.
"""

from __future__ import annotations

import json
from collections.abc import Collection

from toolplan.diagnostics import Source
from toolplan.parse.extract import JsonPlan
from toolplan.parse.formats.arguments import Refused, fitted, object_of
from toolplan.parse.formats.bare_calls import bare_calls, listed
from toolplan.parse.tool_names import meant_tool
from toolplan.tools import ToolSet
from toolplan.values import Json

__all__ = ["with_fitted_arguments"]


def with_fitted_arguments(found: JsonPlan, tools: ToolSet | Collection[str] | None) -> JsonPlan:
    """Return the plan with the arguments of its calls mended toward the schemas of `tools`.

    The plan as it is when it is not only calls, when its JSON has faults, or when nothing is to be mended.
    """
    calls = [] if found.faults or _is_in_own_words(found.value) else bare_calls(found.value)
    steps: list[Json] = []
    repairs: list[str] = []
    for name, written, id in calls:
        try:
            arguments, more = object_of(written, as_text=True)
        except Refused:
            return found
        meant = meant_tool(name, tools.names) if isinstance(tools, ToolSet) else None
        if meant is not None and isinstance(tools, ToolSet):
            arguments, fits, _ = fitted(tools[meant], arguments)
            repairs += (*more, *fits) if fits else ()
        label: dict[str, Json] = {"id": id} if id else {}
        steps.append({"tool_name": name, "arguments": arguments, **label})
    if not steps or not (repairs or _is_wrapped(found.value)):
        return found
    source = Source(json.dumps(steps, ensure_ascii=False, indent=1), found.source.name, 0, json=True)
    return JsonPlan(steps, source, (), tuple(dict.fromkeys((*found.repairs, *repairs))))


def _is_in_own_words(value: Json) -> bool:
    return any(isinstance(item, dict) and "tool_name" in item for item in listed(value))


def _is_wrapped(value: Json) -> bool:
    """Whether the calls stand in objects of which the reader of plans knows nothing."""
    items = value if isinstance(value, list) else [value]
    return any(isinstance(item, dict) and ("function_call" in item or "tool_call" in item) for item in items)
