"""Do claims of independence hold? Members of `parallel` that declare effects on one resource keep their order."""

from __future__ import annotations

from typing import TypeAlias

from toolplan.diagnostics import Diagnostic
from toolplan.diagnostics import effects as say
from toolplan.effects import Access, Resource
from toolplan.expressions import Literal
from toolplan.plan import Call, Parallel, Plan, Step, walk
from toolplan.tools import ToolSet

__all__ = ["conflicts"]

_Calls: TypeAlias = "list[tuple[Call, tuple[Access, ...]]]"
"""Calls with what they touch."""
_Touch: TypeAlias = "tuple[int, Call]"
"""A call, and which of all it is."""


def conflicts(plan: Plan, tools: ToolSet) -> list[Diagnostic]:
    """Return the pairs of members of a `parallel` that certainly get in each other's way, one for each member."""
    found: list[Diagnostic] = []
    for step in walk(plan.steps):
        if isinstance(step, Parallel):
            before = _Accesses()
            for member in step.members:
                calls = _calls(member, tools)
                found += before.first_conflict(calls)
                before.add(calls)
    return found


class _Accesses:
    """What the calls of earlier members touch, found by resource: a `parallel` may have thousands of members.

    Two accesses are in each other's way when one of them writes and the resource of one covers that of the other, so
    those that an access meets are below its resource, or are of one of the resources above it.
    """

    def __init__(self) -> None:
        self.at: dict[tuple[Resource, bool], _Touch] = {}
        """The first access of exactly this resource; True for the first that writes."""
        self.below: dict[tuple[Resource, bool], _Touch] = {}
        """The first access of this resource or of what it covers."""
        self.count = 0

    def add(self, calls: _Calls) -> None:
        """Note what these calls touch."""
        for call, accesses in calls:
            self.count += 1
            for access in accesses:
                touch = (self.count, call)
                for write in (False, True) if access.write else (False,):
                    self.at.setdefault((access.resource, write), touch)
                    for length in range(len(access.resource) + 1):
                        self.below.setdefault((access.resource[:length], write), touch)

    def first_conflict(self, calls: _Calls) -> list[Diagnostic]:
        """Return the diagnostic for the first of the calls that meets earlier ones, and the first that it meets."""
        for call, accesses in calls:
            met = [(touch, access) for access in accesses if (touch := self._met_by(access)) is not None]
            if met:
                (_, other), access = min(met, key=lambda each: each[0][0])
                name = ":".join(access.resource[1:] if access.is_state else access.resource)
                return [say.conflicting_members(call.tool_place, call.tool, name, other.tool_place, other.tool)]
        return []

    def _met_by(self, access: Access) -> _Touch | None:
        resource, write = access.resource, not access.write  # a reader meets only what writes
        above = (self.at.get((resource[:length], write)) for length in range(len(resource)))
        touches = [touch for touch in (self.below.get((resource, write)), *above) if touch is not None]
        return min(touches, key=lambda touch: touch[0], default=None)


def _calls(member: Step, tools: ToolSet) -> _Calls:
    """Return the calls of a member whose declared accesses are known from the plan's text alone."""
    found: _Calls = []
    for step in walk((member,)):
        tool = tools.get(step.tool) if isinstance(step, Call) else None
        if tool is None or not isinstance(step, Call) or not tool.effects.declared:
            continue
        known = {name: each.value for name, each in step.arguments.fields if isinstance(each, Literal)}
        if tool.effects.placeholders <= known.keys():
            found.append((step, tool.accesses(known)))
    return found
