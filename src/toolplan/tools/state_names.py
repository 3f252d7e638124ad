"""The names of states for one call: `page:{url}` becomes `page:a`, by the values that the tool gets.

These are not always the arguments as they are written. One that is left out has its default, 2.0 for an `int` is 2, and
`null` for an optional one is as good as nothing; so a call that opens a page by its default opens the same page as one
that names it. A list names one state for each of its elements, as it does for resources.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

from toolplan.expressions import Fields, Literal, Reference
from toolplan.tools.sameness import completed
from toolplan.tools.tool import Tool
from toolplan.values import Json

__all__ = ["states_named", "states_planned"]

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


def states_named(states: tuple[str, ...], tool: Tool, arguments: Mapping[str, Json]) -> tuple[str, ...]:
    """Return the names of these states of a tool for a call with these arguments, which are all that it gets.

    A placeholder without a value stays as it is.
    """
    if not any("{" in state for state in states):
        return states
    values = tool.naming(completed(tool, arguments))
    return tuple(name for state in states for name in _filled(state, values, {}))


def states_planned(states: tuple[str, ...], tool: Tool, arguments: Fields) -> tuple[str, ...]:
    """Return the names of these states for a call in a plan; an unknown argument stands there as `{expression}`."""
    if not any("{" in state for state in states):
        return states
    known = {name: template.value for name, template in arguments.fields if isinstance(template, Literal)}
    unknown = {
        name: f"{{{template.expression.text}}}" if isinstance(template, Reference) else ""
        for name, template in arguments.fields
        if name not in known
    }
    values = tool.naming({name: value for name, value in completed(tool, known).items() if name not in unknown})
    return tuple(name for state in states for name in _filled(state, values, unknown))


def _filled(state: str, values: Mapping[str, Json], unknown: Mapping[str, str]) -> list[str]:
    names = [""]
    at = 0
    for hole in _PLACEHOLDER.finditer(state):
        text = state[at : hole.start()]
        fillings = _texts(hole[1], values) or [unknown.get(hole[1]) or hole[0]]
        names = [f"{name}{text}{filling}" for name in names for filling in fillings]
        at = hole.end()
    return [name + state[at:] for name in names]


def _texts(dotted: str, values: Mapping[str, Json]) -> list[str]:
    """Return what the value at a place of the arguments fills in; nothing for one that is missing, or not plain."""
    value: Json = cast(Json, values)
    for name in dotted.split("."):
        if not isinstance(value, dict) or name not in value:
            return []
        value = value[name]
    elements = value if isinstance(value, list) else [value]
    if any(element is None or isinstance(element, list | dict) for element in elements):
        return []
    return [str(int(each) if isinstance(each, float) and each.is_integer() else each) for each in elements]
