"""Where a call gets its handles from: `cancel_event(event_id)` needs a tool whose result has the id of an event.

A handle is an argument that nobody makes up: an id, a number, a path, an address to write to. Whether a field of a
result is the one that a parameter wants is told by names alone: the same name, or `event_id` beside the `id` of an
`Event`, or of the result of `list_events`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any, cast

from toolplan.route.words import words_of
from toolplan.tools import Tool, ToolSet

__all__ = ["Handles"]

_LAST_WORDS = frozenset(
    (
        *("id", "uuid", "no", "number", "code", "key", "ref", "reference", "handle", "phone", "email", "path"),
        *("编号", "号码"),
    )
)

_Name = tuple[str, ...]


class Handles:
    """Which of these tools give the handles that others need."""

    def __init__(self, tools: ToolSet) -> None:
        self._tools = tools

    def givers(self, tool: Tool) -> list[list[str]]:
        """Return, for each handle that the tool cannot be called without, the tools whose results have it.

        A tool that changes something is no way to look something up, and one that needs the same handle has it from
        elsewhere. Handles that no tool gives are left out.
        """
        found: list[list[str]] = []
        for parameter in tool.parameters.get("required", ()):
            wanted = _name(parameter)
            if wanted and wanted[-1] in _LAST_WORDS:
                givers = [
                    name
                    for name, fields in self._fields.items()
                    if name != tool.name
                    and wanted not in map(_name, self._tools[name].parameters["properties"])
                    and any(_is_it(wanted, field, owner) for field, owner in fields)
                ]
                found += [givers] if givers else []
        return found

    @functools.cached_property
    def _fields(self) -> Mapping[str, list[tuple[_Name, frozenset[str]]]]:
        """The fields of each tool's result that may be handles, with the words that say whose they are."""
        fields: dict[str, list[tuple[_Name, frozenset[str]]]] = {}
        for tool in self._tools:
            if tool.returns is None or (tool.effects.declared and tool.effects.has_effects):
                continue
            found = [
                (name, frozenset((*_name(tool.name), *_name(owner))))
                for field, owner in _properties(tool.returns)
                if (name := _name(field)) and name[-1] in _LAST_WORDS
            ]
            if found:
                fields[tool.name] = found
        return fields


def _is_it(wanted: _Name, field: _Name, owner: frozenset[str]) -> bool:
    return field == wanted or (wanted[-1] == field[-1] and len(field) == 1 and owner.issuperset(wanted[:-1]))


@functools.lru_cache(maxsize=65_536)
def _name(name: str) -> _Name:
    return tuple(word for word, _ in words_of(name, all_words=True))


def _properties(schema: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Give the name of each property anywhere in a schema, and the title of the object that it is of."""
    waiting: list[tuple[Any, str]] = [(schema, "")]
    while waiting:
        part, title = waiting.pop()
        if isinstance(part, list):
            waiting += [(each, title) for each in cast("list[Any]", part)]
        elif isinstance(part, Mapping):
            inside = cast("Mapping[str, Any]", part)
            title = str(inside.get("title", title))
            properties = inside.get("properties")
            if isinstance(properties, Mapping):
                yield from ((name, title) for name in cast("Mapping[str, Any]", properties))
            for key, inner in inside.items():
                if key in ("$defs", "definitions") and isinstance(inner, Mapping):
                    waiting += [(each, name) for name, each in cast("Mapping[str, Any]", inner).items()]
                else:
                    waiting.append((inner, title))
