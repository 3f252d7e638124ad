"""Do claims of independence hold? Members of `parallel` that declare effects on one resource keep their order."""

from __future__ import annotations

from toolplan.diagnostics import Diagnostic
from toolplan.diagnostics import effects as say
from toolplan.effects import Access, conflict
from toolplan.expressions import Literal
from toolplan.plan import Call, Parallel, Plan, Step, walk
from toolplan.tools import ToolSet

__all__ = ["conflicts"]


def conflicts(plan: Plan, tools: ToolSet) -> list[Diagnostic]:
    """Return the pairs of members of a `parallel` that certainly get in each other's way, one for each member."""
    found: list[Diagnostic] = []
    for step in walk(plan.steps):
        if isinstance(step, Parallel):
            members = [_calls(member, tools) for member in step.members]
            for index, calls in enumerate(members):
                before = [earlier for member in members[:index] for earlier in member]
                found += _first_conflict(before, calls)
    return found


def _first_conflict(
    before: list[tuple[Call, tuple[Access, ...]]], calls: list[tuple[Call, tuple[Access, ...]]]
) -> list[Diagnostic]:
    for call, accesses in calls:
        for other, other_accesses in before:
            for access in accesses:
                if any(conflict(access, each) for each in other_accesses):
                    name = ":".join(access.resource[1:] if access.is_state else access.resource)
                    return [say.conflicting_members(call.tool_place, call.tool, name, other.tool_place, other.tool)]
    return []


def _calls(member: Step, tools: ToolSet) -> list[tuple[Call, tuple[Access, ...]]]:
    """Return the calls of a member whose declared accesses are known from the plan's text alone."""
    found: list[tuple[Call, tuple[Access, ...]]] = []
    for step in walk((member,)):
        tool = tools.get(step.tool) if isinstance(step, Call) else None
        if tool is None or not isinstance(step, Call) or not tool.effects.declared:
            continue
        known = {name: each.value for name, each in step.arguments.fields if isinstance(each, Literal)}
        if tool.effects.placeholders <= known.keys():
            found.append((step, tool.accesses(known)))
    return found
