"""Which calls run, which ask a person, which never run.

A tool's own declaration decides here: `approval="deny"` never runs, `approval="ask"` needs a person, everything else
runs. The review is of the whole plan, before anything starts (P2): one list of every call that needs a word, with its
arguments as far as the text tells them.
"""

from __future__ import annotations

from dataclasses import dataclass

from toolplan.diagnostics import Diagnostic
from toolplan.diagnostics.effects import forbidden_tool
from toolplan.expressions import Fields
from toolplan.plan import Call, Plan, walk
from toolplan.tools import ToolSet

__all__ = ["PlannedCall", "Review", "review"]


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call of the plan that a person has to allow. It may happen several times when it stands in a loop."""

    step: str
    tool: str
    arguments: Fields
    writes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Review:
    """What the policy says about a plan: the calls that ask, and diagnostics for those that are forbidden."""

    asks: tuple[PlannedCall, ...]
    forbidden: tuple[Diagnostic, ...]


def review(plan: Plan, tools: ToolSet) -> Review:
    """Return what the tools' declarations say about the calls of a checked plan, in written order."""
    asks: list[PlannedCall] = []
    forbidden: list[Diagnostic] = []
    for step in walk(plan.steps):
        if not isinstance(step, Call):
            continue
        tool = tools[step.tool]
        if tool.approval == "deny":
            forbidden.append(forbidden_tool(step.tool_place, step.id, step.tool))
        elif tool.approval == "ask":
            asks.append(PlannedCall(step.id, step.tool, step.arguments, tool.effects.writes))
    return Review(tuple(asks), tuple(forbidden))
