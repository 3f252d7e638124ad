"""Does every call find the state that it needs? `requires` and `ensures` along every path.

A state's name may hold `{argument}`, as a resource's may. Where an argument is not known before the run, its expression
stands for it, and what could be the same state is taken to be it.
"""

from __future__ import annotations

import re

from toolplan.check.limits import length_of
from toolplan.check.spots import call_place
from toolplan.diagnostics import Diagnostic
from toolplan.diagnostics import effects as say
from toolplan.known import NOTHING_KNOWN, Known
from toolplan.plan import (
    Answer,
    AskModel,
    Block,
    Break,
    Call,
    Cannot,
    Continue,
    ForEach,
    If,
    Parallel,
    Plan,
    Replan,
    Step,
    Try,
    While,
    walk,
)
from toolplan.tools import Tool, ToolSet
from toolplan.tools.state_names import states_planned

__all__ = ["may_be_same", "states"]

Held = frozenset[str]
"""The states that certainly hold."""


def states(plan: Plan, tools: ToolSet, known: Known = NOTHING_KNOWN) -> list[Diagnostic]:
    """Return the calls that need a state which does not hold on every path that leads to them."""
    if not any(tool.requires for tool in tools):
        return []
    walker = _States(plan, tools)
    walker.block(plan.steps, known.states)
    return walker.found


class _States:
    def __init__(self, plan: Plan, tools: ToolSet) -> None:
        self.plan = plan
        self.tools = tools
        self.found: list[Diagnostic] = []
        self.calls: list[Call] = []
        """The calls on the way so far."""

    def block(self, steps: Block, held: Held) -> Held | None:
        """Return the states that hold after the steps, None when no path gets there."""
        after: Held | None = held
        for step in steps:
            if after is None:
                return None
            after = self.step(step, after)
        return after

    def step(self, step: Step, held: Held) -> Held | None:
        match step:
            case Call():
                return self.call(step, held)
            case If():
                return _met(self.block(step.then, held), self.block(step.otherwise, held))
            case ForEach():
                after = self.block(step.body, held)
                return after if after is not None and length_of(step.items) and not _leaves_early(step.body) else held
            case While():
                self.block(step.body, held)
                return held
            case Parallel():
                return self.block(step.members, held)
            case Try():
                return _met(self.block(step.body, held), self.block(step.handler, held))
            case AskModel() if step.on_error.do:
                return _met(held, self.block(step.on_error.do, held))
            case Answer() | Cannot() | Replan() | Break() | Continue():
                return None
            case _:
                return held

    def call(self, call: Call, held: Held) -> Held | None:
        tool = self.tools.get(call.tool)
        if tool is None:
            return held
        for needed in states_planned(tool.requires, tool, call.arguments):
            if not any(may_be_same(needed, each) for each in held):
                self.found.append(self.missing(call, tool, needed))
                held |= {needed}  # said once
        self.calls.append(call)
        ensured = held.union(states_planned(tool.ensures, tool, call.arguments))
        if call.on_error.action in ("fail", "replan"):
            return ensured
        return _met(ensured, self.block(call.on_error.do, held))

    def missing(self, call: Call, tool: Tool, state: str) -> Diagnostic:
        sometimes = [
            call_place(earlier)
            for earlier in self.calls
            if any(may_be_same(state, each) for each in self._ensured(earlier))
        ]
        family = re.split(r"[:/{]", state, maxsplit=1)[0]
        providers = [
            (each.name, _short_signature(each))
            for each in self.tools
            if any(may_be_same(state, name) or (name.startswith(family) and "{" in name) for name in each.ensures)
        ]
        return say.missing_state(call.tool_place, tool.name, state, providers, sometimes)

    def _ensured(self, call: Call) -> tuple[str, ...]:
        tool = self.tools[call.tool]
        return states_planned(tool.ensures, tool, call.arguments)


def _met(a: Held | None, b: Held | None) -> Held | None:
    if a is None or b is None:
        return b if a is None else a
    return a & b


def _leaves_early(body: Block) -> bool:
    return any(isinstance(step, Break | Continue) for step in walk(body))


_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


def may_be_same(a: str, b: str) -> bool:
    """Return whether two states could be the same one, whatever stands in their braces."""
    if a == b:
        return True
    return any(
        "{" in pattern and re.fullmatch(".+".join(map(re.escape, _PLACEHOLDER.split(pattern)[::2])), name) is not None
        for pattern, name in ((a, b), (b, a))
    )


def _short_signature(tool: Tool) -> str:
    return f"{tool.name}({', '.join(tool.parameters.get('required', ()))})"
