"""Does it repeat an effect that has happened? For a plan that goes on after others in the same run (P4).

Only calls whose arguments are written in the plan can be compared here. The scheduler compares the others when their
arguments are known.
"""

from __future__ import annotations

from toolplan.check.constants import NotConstant, constant_of
from toolplan.diagnostics import Diagnostic
from toolplan.diagnostics import effects as say
from toolplan.known import Known
from toolplan.plan import Call, Plan, walk
from toolplan.tools import ToolSet
from toolplan.tools.sameness import call_key, effects_of

__all__ = ["repeats"]


def repeats(plan: Plan, tools: ToolSet, known: Known) -> list[Diagnostic]:
    """Return the calls that have been made already, with the same arguments, and that say no reason.

    A call that changes nothing may be repeated, and so may one of a tool that is declared idempotent.
    """
    if not known.made:
        return []
    effects = effects_of(known, tools)
    found: list[Diagnostic] = []
    for step in walk(plan.steps):
        if not isinstance(step, Call) or step.again is not None:
            continue
        tool = tools.get(step.tool)
        if tool is None or not tool.effects.has_effects or tool.idempotent:
            continue
        arguments = constant_of(step.arguments)
        if isinstance(arguments, NotConstant) or not isinstance(arguments, dict):
            continue
        made = effects.get(call_key(tool, arguments))
        if made is not None:
            found.append(say.repeated_effect(step.tool_place, step.tool, made.step, made.outcome == "unknown"))
    return found
