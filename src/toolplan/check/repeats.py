"""Does it repeat an effect: one that has happened, before a plan that goes on after others (P4), or one of its own?

Calls can be compared here whose arguments are written in the plan, or are values that earlier plans have left, and
within a plan those that are written in the same words. The scheduler compares the others when it knows their arguments.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping

from toolplan.check.constants import NotConstant, constant_of
from toolplan.check.order import gets_to_end
from toolplan.diagnostics import Diagnostic
from toolplan.diagnostics import effects as say
from toolplan.errors import EvaluationError
from toolplan.expressions import Fields, Items, Literal, Reference, Template
from toolplan.expressions.templates import fill, names_of
from toolplan.known import Known
from toolplan.plan import Block, Call, ForEach, If, Plan, Try, While, assigned_names, blocks_of, walk
from toolplan.tools import Tool, ToolSet
from toolplan.tools.sameness import call_key, effects_of
from toolplan.values import Json

__all__ = ["doubled", "repeats", "twice"]

Arms = tuple[tuple[str, int], ...]
"""The choices on the way to a step: at which step, and which side."""
MOST = 20
"""Of calls that are the same so many are compared with a further one."""


def repeats(plan: Plan, tools: ToolSet, known: Known) -> list[Diagnostic]:
    """Return the calls that an earlier plan has made with the same arguments, and that say no reason.

    A call that changes nothing may be repeated, and so may one of a tool that is declared idempotent.
    """
    return list(_made_before(plan, tools, known)) if known.made else []


def doubled(plan: Plan, tools: ToolSet) -> list[Diagnostic]:
    """Return a warning for each call that stands in the plan a second time, with its effect, and says no reason."""
    return [
        say.doubled_effect(call.tool_place, call.tool, first.tool_place, first.id) for call, first in twice(plan, tools)
    ]


def _made_before(plan: Plan, tools: ToolSet, known: Known) -> Iterator[Diagnostic]:
    effects = effects_of(known, tools)
    own = assigned_names(plan.steps) | {step.name for step in walk(plan.steps) if isinstance(step, ForEach)}
    values = {name: value.data for name, value in known.values.items() if name not in own}
    for step in walk(plan.steps):
        if not isinstance(step, Call) or (tool := _of_effect(step, tools)) is None:
            continue
        arguments = _value_of(step.arguments, values)
        if not isinstance(arguments, dict):
            continue
        made = effects.get(call_key(tool, arguments))
        if made is not None:
            yield say.repeated_effect(step.tool_place, step.tool, made.step, made.outcome == "unknown")


def _value_of(template: Template, values: Mapping[str, Json]) -> Json:
    """Return the value of a template as far as it is certain before the run; None where it is not."""
    names = names_of(template)
    if not names:
        value = constant_of(template)
        return None if isinstance(value, NotConstant) else value
    if not values.keys() >= set(names):
        return None
    try:
        return fill(template, values)
    except EvaluationError:
        return None


def twice(plan: Plan, tools: ToolSet) -> Iterator[tuple[Call, Call]]:
    """Give the calls that stand in the plan a second time where both run, in the same words, each with the first.

    A call before a loop and the same one in each round are no such pair: so one waits until something is ready.
    """
    times = _times_assigned(plan)
    seen: dict[tuple[str, tuple[str, ...]], list[tuple[Arms, Call]]] = {}
    for call, arms, loops in _calls(plan.steps, (), ()):
        tool = _of_effect(call, tools)
        if tool is None or any(times[name] > 1 for name in names_of(call.arguments)):
            continue
        same = seen.setdefault((_written_key(tool, call), loops), [])
        first = next((other for others, other in same if not _excludes(others, arms)), None)
        if first is not None:
            yield call, first
        if len(same) < MOST:
            same.append((arms, call))


def _of_effect(call: Call, tools: ToolSet) -> Tool | None:
    """Return the tool of a call that must not be repeated without a reason, and gives none."""
    tool = tools.get(call.tool)
    if call.again is not None or tool is None or not tool.effects.has_effects or tool.idempotent:
        return None
    return tool


def _times_assigned(plan: Plan) -> Counter[str]:
    """Return how often each name gets a value; those of loops get one in each round."""
    times: Counter[str] = Counter()
    for step in walk(plan.steps):
        times.update(assigned_names((step,)) if not blocks_of(step) else getattr(step, "defines", ()))
        if isinstance(step, ForEach):
            times[step.name] += 2
        elif isinstance(step, Try) and step.error:
            times[step.error] += 2
    return times


def _written_key(tool: Tool, call: Call) -> str:
    """Return what two calls have in common that are written in the same words."""
    value = constant_of(call.arguments)
    if isinstance(value, dict):
        return json.dumps(["value", *call_key(tool, value)])
    return json.dumps(["written", tool.name, _written(call.arguments)], sort_keys=True, default=str)


def _written(template: Template) -> Json:
    if isinstance(template, Literal):
        return ["value", template.value]
    if isinstance(template, Reference):
        return ["expression", template.expression.text.strip()]
    if isinstance(template, Items):
        return [_written(item) for item in template.items]
    if isinstance(template, Fields):
        return {name: _written(item) for name, item in template.fields}
    return [
        part if isinstance(part, str) else ["hole", part.expression.text.strip(), part.literal]
        for part in template.parts
    ]


def _calls(block: Block, arms: Arms, loops: tuple[str, ...]) -> Iterator[tuple[Call, Arms, tuple[str, ...]]]:
    """Give each call that can run, with the choices on the way to it and the loops around it.

    What follows a side that ends the plan, or the round, stands on the other side.
    """
    for step in block:
        if isinstance(step, Call):
            yield step, (*arms, (step.id, 0)), loops
            yield from _calls(step.on_error.do, (*arms, (step.id, 1)), loops)
            continue
        has_sides = isinstance(step, If | Try)
        inside = (*loops, step.id) if isinstance(step, ForEach | While) else loops
        for side, inner in enumerate(blocks_of(step)):
            yield from _calls(inner, (*arms, (step.id, side)) if has_sides else arms, inside)
        if not gets_to_end((step,)):
            return
        if isinstance(step, If):
            ends = [side for side, inner in enumerate((step.then, step.otherwise)) if not gets_to_end(inner)]
            arms = (*arms, (step.id, 1 - ends[0])) if ends else arms


def _excludes(one: Arms, other: Arms) -> bool:
    """Return whether two steps stand on different sides of one choice."""
    sides = dict(one)
    return any(sides.get(step, side) != side for step, side in other)
