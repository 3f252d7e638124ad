"""`mode="auto"`: when a request that was to be planned goes on as a loop."""

from __future__ import annotations

import re

from toolplan.check import CheckedPlan
from toolplan.errors import PlanRejected
from toolplan.parse import CannotPlan, Prose
from toolplan.plan import Replan
from toolplan.tools import ToolSet

__all__ = ["reason_for_no_plan", "reason_to_loop"]

_WORD = re.compile(r"[\w.\-]+")


def reason_to_loop(planned: CheckedPlan | CannotPlan | Prose | PlanRejected, tools: ToolSet) -> str | None:
    """Return why the reply to the request for a plan is better followed by a loop, or None.

    The model says that it cannot plan and that nothing is missing; the plan begins by asking to see results; prose
    that speaks of a tool by its name is no answer but the wish to use it; no plan passed the checks. That something is
    missing (`cannot` with `missing`) is the end: a loop would not have it either.
    """
    if isinstance(planned, CannotPlan):
        return None if planned.missing else f"the model cannot plan it: {planned.reason}"
    if isinstance(planned, Prose):
        named = [word for word in _WORD.findall(planned.text) if word in tools]
        return f"the model speaks of `{named[0]}` instead of planning its call" if named else None
    if isinstance(planned, PlanRejected):
        return f"no plan passed the checks: {planned}"
    steps = planned.plan.steps
    return "the plan asks to see results before anything else" if steps and isinstance(steps[0], Replan) else None


def reason_for_no_plan(said: CannotPlan | Prose | PlanRejected) -> str:
    """Return why a request has no plan, when no loop follows either."""
    if isinstance(said, Prose):
        return "the model answered in words"
    return "the model says what is missing" if isinstance(said, CannotPlan) else "no plan passed the checks"
