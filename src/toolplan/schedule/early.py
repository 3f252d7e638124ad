"""Which calls may be made before the whole plan is known, let alone accepted (P2, P3).

A plan is written from its beginning, so what stands before a step is known when the step is. A call may be made early
when it changes nothing, nothing before it changes what it reads, and nothing before it can end the plan: then whatever
is written after it makes no difference to what it returns. The members of a `parallel` count as steps, one after the
other, which is stricter than what they are. Other steps with bodies are not looked into, except for what they touch;
behind one that may leave the plan nothing is early.

The same rule is applied twice: to the steps as they arrive, and to the plan that was accepted in the end, which need
not be the one that had been arriving.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from toolplan.effects import Access, conflict
from toolplan.expressions import Literal
from toolplan.plan import Answer, AskUser, Call, Cannot, Parallel, Replan, Step, walk
from toolplan.tools import Tool, ToolSet
from toolplan.values import Json

__all__ = ["Beginning", "can_be_early", "in_a_row"]

MAX_STEPS = 500
"""No step behind so many is early: each is compared with all changes before it."""

_LEAVING = Answer | Cannot | Replan | AskUser


def can_be_early(tool: Tool) -> bool:
    """Return whether calls of this tool may be made early at all.

    It changes nothing, needs no state and nobody's word, and its calls are not counted: one may be made for nothing.
    """
    return (
        not tool.effects.has_effects
        and not tool.requires
        and tool.approval in (None, "allow")
        and tool.rate_limit is None
    )


def in_a_row(steps: Iterable[Step]) -> Iterator[Step]:
    """Yield the steps as a `Beginning` takes them, the members of a `parallel` in its place."""
    for step in steps:
        yield from step.members if isinstance(step, Parallel) else (step,)


class Beginning:
    """The beginning of a plan: its steps, given one after the other in written order; see `in_a_row`."""

    def __init__(self, tools: ToolSet) -> None:
        self._tools = tools
        self._changes: dict[Access, None] = {}
        """What the steps so far may change."""
        self._steps = 0
        self._is_closed = False

    def admits(self, step: Step) -> bool:
        """Add the next step; return whether it is a call that may be made early, once its arguments are known."""
        if self._is_closed:
            return False
        admitted = isinstance(step, Call) and self._is_early(step)
        for inner in walk((step,)):
            if isinstance(inner, _LEAVING):
                self._is_closed = True
            elif isinstance(inner, Call):
                tool = self._tools.get(inner.tool)
                if tool is None:  # the plan will be rejected
                    self._is_closed = True
                else:
                    accesses = tool.accesses(_constants(inner))
                    self._changes.update((access, None) for access in accesses if access.write)
        self._steps += 1
        if self._steps >= MAX_STEPS:
            self._is_closed = True
        return admitted

    def _is_early(self, call: Call) -> bool:
        tool = self._tools.get(call.tool)
        if tool is None or not can_be_early(tool):
            return False
        reads = tool.accesses(_constants(call))
        return not any(conflict(read, change) for read in reads for change in self._changes)


def _constants(call: Call) -> dict[str, Json]:
    return {name: template.value for name, template in call.arguments.fields if isinstance(template, Literal)}
