"""Is the plan small enough? How many steps, how deep, how many calls in the worst case, how many rounds."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from toolplan.check.spots import part_place
from toolplan.diagnostics import Diagnostic
from toolplan.diagnostics import limits as say
from toolplan.expressions import Items, Literal, Reference, Template
from toolplan.plan import Block, Call, ForEach, If, Plan, Step, While, blocks_of, walk

__all__ = ["Limits", "max_calls", "size", "totals"]


@dataclass(frozen=True, slots=True)
class Limits:
    """How large a plan may be. `max_calls` is the budget of calls in the worst case, None for any number."""

    max_steps: int = 5_000
    max_depth: int = 50
    max_calls: int | None = None
    max_loop_iterations: int = 10_000


def size(plan: Plan, limits: Limits) -> list[Diagnostic]:
    """Return what is wrong with the plan's size: found first and without recursion, for the other passes recurse."""
    found: list[Diagnostic] = []
    stack: list[tuple[Step, int]] = [(step, 1) for step in reversed(plan.steps)]
    count = 0
    while stack:
        step, depth = stack.pop()
        count += 1
        if count == limits.max_steps + 1:
            total = sum(1 for _ in walk(plan.steps))
            return [*found, say.too_many_steps(step.place, total, limits.max_steps)]
        if depth > limits.max_depth:
            found = found or [say.too_deep(step.place, limits.max_depth)]
            continue
        for block in reversed(blocks_of(step)):
            stack.extend((inner, depth + 1) for inner in reversed(block))
    return found


def totals(plan: Plan, calls: int | None, limits: Limits, made: int = 0) -> list[Diagnostic]:
    """Return what is wrong with the number of rounds, and of `calls` in the worst case after `made` ones."""
    found = [
        say.too_many_rounds(part_place(step, "max_iterations"), step.max_iterations, limits.max_loop_iterations)
        for step in walk(plan.steps)
        if isinstance(step, While) and step.max_iterations > limits.max_loop_iterations
    ]
    if limits.max_calls is not None and calls and calls + made > limits.max_calls and not found:
        largest = max(plan.steps, key=lambda step: max_calls((step,)) or 0)
        found.append(say.too_many_calls(largest.place, calls, limits.max_calls, made))
    return found


def max_calls(steps: Block) -> int | None:
    """Return the most calls that the steps may make, None when a loop's length is not known before the run.

    A call that is tried again counts once.
    """
    total = 0
    for step in steps:
        calls = _calls_of(step)
        if calls is None:
            return None
        total += calls
    return total


def _calls_of(step: Step) -> int | None:
    if isinstance(step, Call) and not step.on_error.do:
        return 1
    inner = [max_calls(block) for block in blocks_of(step)]
    known = [calls for calls in inner if calls is not None]
    if len(known) < len(inner):
        return None
    if isinstance(step, Call):
        return 1 + sum(known)
    if isinstance(step, If):
        return max(known)
    if isinstance(step, ForEach):
        rounds = 0 if known == [0] else length_of(step.items)
        return None if rounds is None else rounds * known[0]
    if isinstance(step, While):
        return step.max_iterations * known[0]
    return sum(known)


def length_of(items: Template) -> int | None:
    """Return how many elements a loop's list has, if the plan's text says it."""
    if isinstance(items, Items):
        return len(items.items)
    if isinstance(items, Literal):
        return len(items.value) if isinstance(items.value, list) else None
    if not isinstance(items, Reference):
        return None
    tree = items.expression.tree
    if isinstance(tree, ast.List | ast.Tuple):
        return None if any(isinstance(each, ast.Starred) for each in tree.elts) else len(tree.elts)
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id == "range" and not tree.keywords:
        bounds = [each.value for each in tree.args if isinstance(each, ast.Constant) and isinstance(each.value, int)]
        if 0 < len(bounds) == len(tree.args) <= 3 and (len(bounds) < 3 or bounds[2]):
            every = range(*bounds)
            return max(0, -((every.start - every.stop) // every.step))
    return None
