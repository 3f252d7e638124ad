"""The tools of an agent, by name, in the order in which they were given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias, cast

from toolplan.errors import UsageError
from toolplan.tools.fields import field_names, names_its_fields, unknown_field
from toolplan.tools.tool import Tool

__all__ = ["ToolSet", "ToolSource"]

ToolSource: TypeAlias = "Tool | Callable[..., Any] | ToolSet"
"""What a set of tools can be made of: tools, functions (decorated or not), other sets."""


class ToolSet:
    """Tools by name. Iterating gives the tools, `in` and `[...]` take names. Sets do not change once made."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        """Raise `UsageError` when two different tools have one name, or one's declarations name no field of its result.

        The same tool given twice counts once.
        """
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            other = self._tools.setdefault(tool.name, tool)
            if other is not tool and (other.function, other.declaration) != (tool.function, tool.declaration):
                raise UsageError(
                    f"two tools are named `{tool.name}`: one at {other.place}, one at {tool.place}; "
                    f"give one of them another name with `tool(function, name=...)`"
                )
            if isinstance(tool.untrusted, tuple) and (problem := unknown_field(tool.returns, tool.untrusted)):
                raise UsageError(f"`{tool.name}` ({tool.place}): `untrusted` {problem}")
            if tool.assigns and (problem := _unclear(tool)):
                raise UsageError(f"`{tool.name}` ({tool.place}): `assigns` {problem}")

    @classmethod
    def of(cls, sources: Iterable[ToolSource]) -> ToolSet:
        """Return the set of these tools, functions and sets. Raises `UsageError` for what cannot be a tool."""
        if isinstance(sources, ToolSet):
            return sources
        if callable(sources) or not isinstance(cast("Any", sources), Iterable):
            name = getattr(sources, "__name__", "my_tool")
            raise UsageError(f"`ToolSet.of` takes a list of tools; write `ToolSet.of([{name}])`")
        return cls(
            tool for source in sources for tool in (source if isinstance(source, ToolSet) else (Tool.of(source),))
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tools, in order."""
        return tuple(self._tools)

    def get(self, name: str) -> Tool | None:
        """Return the tool of this name, or None."""
        return self._tools.get(name)

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __or__(self, other: ToolSet) -> ToolSet:
        return ToolSet([*self, *other])

    def __repr__(self) -> str:
        return f"<ToolSet {', '.join(self.names)}>"


def _unclear(tool: Tool) -> str | None:
    """Return what is wrong with the fields that a tool assigns itself. The others must be known by name."""
    if tool.assigns is True:
        return None
    if tool.returns is None or not names_its_fields(tool.returns):
        return "needs a result whose fields are known: give the result a type"
    known = field_names(tool.returns)
    unknown = (name for name in tool.assigns or () if name not in known)
    return next((f"names `{name}`, which is no field of the result" for name in unknown), None)
