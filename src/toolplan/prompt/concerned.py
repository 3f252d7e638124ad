"""Which tools a repair has to show again."""

from __future__ import annotations

from toolplan.diagnostics import nearest
from toolplan.patterns import late_pattern
from toolplan.plan import Call, Plan, walk
from toolplan.tools import ToolSet

__all__ = ["concerned_tools"]

_WORD = late_pattern(r"[\w.\-/]+")
_PART = late_pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[\u3400-\u9fff]")
_NEAR = 3
"""As many tools are shown for a name that no tool has."""
_FEW = 8
"""So few tools are not worth choosing from: all of them are shown."""


def concerned_tools(tools: ToolSet, reply: str, diagnostics: str, plan: Plan | None = None) -> ToolSet:
    """Return the tools that a rejected plan is about, in the order of `tools`.

    These are the tools that the reply or its diagnostics name, and for each name that no tool has, those whose names
    come nearest: by spelling, else by the parts they share (`search_mail` and `find_mail_by_sender`).
    """
    if len(tools.names) <= _FEW:
        return tools
    chosen = {word for word in _WORD.findall(f"{reply} {diagnostics}") if word in tools}
    if plan is not None:
        called = {step.tool for step in walk(plan.steps) if isinstance(step, Call)}
        for unknown in sorted(name for name in called if name not in tools):
            chosen.update(_near(unknown, tools))
    return ToolSet.of([tool for tool in tools if tool.name in chosen])


def _near(unknown: str, tools: ToolSet) -> list[str]:
    spelt_alike = nearest(unknown, tools.names)
    found = [spelt_alike] if spelt_alike else []
    wanted = _parts(unknown)
    shared = {tool.name: len(wanted & _parts(tool.name)) for tool in tools}
    ranked = sorted((name for name in shared if shared[name] and name != spelt_alike), key=lambda name: -shared[name])
    return (found + ranked)[:_NEAR]


def _parts(name: str) -> frozenset[str]:
    return frozenset(part.casefold() for part in _PART.findall(name))
