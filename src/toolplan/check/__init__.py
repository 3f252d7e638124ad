"""Plan -> CheckedPlan, or every reason why not. One file a pass, and each pass answers one question.

    limits.py    is it small enough?
    names.py     does every name mean something on every path?
    order.py     can every step run, and do steps wait only for earlier ones?
    calls.py     do the tools exist, and do their arguments fit?
    types.py     do the values fit where they are used?
    states.py    does every call find the state that it needs?
    effects.py   do claims of independence hold?
    repeats.py   does it repeat an effect that has happened?

The passes look only at the plan, its tools, the limits and what is known before it starts; which notation the plan was
written in makes no difference.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from toolplan.check.calls import arguments
from toolplan.check.effects import conflicts
from toolplan.check.limits import Limits, max_calls, size, totals
from toolplan.check.names import resolve
from toolplan.check.order import order
from toolplan.check.repeats import doubled, repeats
from toolplan.check.states import states
from toolplan.check.types import values
from toolplan.diagnostics import Diagnostic, Severity, Source
from toolplan.errors import PlanRejected
from toolplan.known import NOTHING_KNOWN, Known
from toolplan.plan import Plan
from toolplan.tools import ToolSet

__all__ = ["CheckedPlan", "Limits", "check"]

_FOLLOW_UPS = frozenset(("TP209",))
"""Warnings that any error may have brought about: a use that was not understood leaves a result unused."""
_DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class CheckedPlan:
    """A plan that may run with these tools, every name in it resolved."""

    plan: Plan
    tools: ToolSet
    warnings: tuple[Diagnostic, ...] = ()
    max_calls: int | None = None
    """The most calls that it may make; None when that is not known before the run."""
    known: Known = NOTHING_KNOWN
    """What the plan was checked against: the values and effects that earlier plans have left."""
    programs: dict[bool, Any] = field(default_factory=dict[bool, Any], init=False, repr=False, compare=False)
    """What `schedule` has prepared for running it, by whether names are kept: once, because neither ever changes."""


def check(plan: Plan, tools: ToolSet, limits: Limits = _DEFAULT_LIMITS, known: Known = NOTHING_KNOWN) -> CheckedPlan:
    """Return `plan` with every name resolved and every argument checked.

    Looks at all passes and reports every problem at once: raises `PlanRejected` with diagnostics in source order.
    Depends on nothing but its arguments (and, for tools that declare `available`, on what that asks). `known` is what
    earlier plans of the run have left: the plan may use its values, and may not repeat its effects without a reason.

    Promises to the scheduler: each name has a value on every path that leads to its use, steps wait only for earlier
    ones, each tool exists, no argument is of a type that its tool never accepts, every `while` has a bound.
    """
    if too_large := size(plan, limits):
        raise PlanRejected(too_large, plan.source)
    found = order(plan)
    plan, more = resolve(plan, tools, known)
    found += more
    found += arguments(plan, tools)
    found += values(plan, tools, known)
    found += states(plan, tools, known)
    found += conflicts(plan, tools)
    found += repeats(plan, tools, known)
    found += totals(plan, calls := max_calls(plan.steps), limits, known.calls)
    if not any(diagnostic.severity is Severity.ERROR for diagnostic in found):
        found += doubled(plan, tools)
    found = _in_source_order(found, plan.source)
    if any(diagnostic.severity is Severity.ERROR for diagnostic in found):
        raise PlanRejected([each for each in found if each.code not in _FOLLOW_UPS], plan.source)
    return CheckedPlan(plan, tools, tuple(found), calls, known)


def _in_source_order(found: list[Diagnostic], source: Source) -> list[Diagnostic]:
    """Return the diagnostics by where they stand in the text; those without a place come last."""
    if len(found) < 2:
        return found
    nowhere = len(source.text), 0
    return sorted(found, key=lambda diagnostic: source.locate(diagnostic.place) or nowhere)
