"""A plan with the arguments that a person has changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from toolplan.expressions import Fields, Literal
from toolplan.plan import AskModel, Block, Call, ForEach, If, Parallel, Plan, Step, Try, While
from toolplan.values import Json

__all__ = ["Changes", "with_arguments"]

Changes = Mapping[str, Mapping[str, Json]]


def with_arguments(plan: Plan, changes: Changes) -> Plan:
    """Return the plan with these arguments in place of what it says, by step and name. It has to be checked again."""
    return replace(plan, steps=_block(plan.steps, changes))


def _block(block: Block, changes: Changes) -> Block:
    return tuple(_step(step, changes) for step in block)


def _step(step: Step, changes: Changes) -> Step:
    match step:
        case Call() | AskModel():
            if step.on_error.do:
                step = replace(step, on_error=replace(step.on_error, do=_block(step.on_error.do, changes)))
            if isinstance(step, Call) and (changed := changes.get(step.id)):
                fields = dict(step.arguments.fields)
                fields |= {name: Literal(value) for name, value in changed.items()}
                step = replace(step, arguments=Fields(tuple(fields.items())))
            return step
        case If():
            return replace(step, then=_block(step.then, changes), otherwise=_block(step.otherwise, changes))
        case ForEach() | While():
            return replace(step, body=_block(step.body, changes))
        case Parallel():
            return replace(step, members=_block(step.members, changes))
        case Try():
            return replace(step, body=_block(step.body, changes), handler=_block(step.handler, changes))
        case _:
            return step
