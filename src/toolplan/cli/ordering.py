"""`toolplan explain-order` and `toolplan show --order`: why a plan's steps run in the order they run in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from toolplan.cli.inputs import read_plan
from toolplan.cli.outputs import OK, print_no_plan, print_rejection
from toolplan.cli.streams import say, say_json
from toolplan.errors import PlanRejected

if TYPE_CHECKING:
    from toolplan.tools import ToolSet

__all__ = ["print_order"]


def print_order(
    plan: str,
    toolset: ToolSet,
    *,
    failure: Literal["written-order", "independent"] = "written-order",
    everything: bool = False,
    as_json: bool = False,
) -> int:
    """Check a plan, print what each of its steps waits for, return the exit code. Raises `UsageError`."""
    from toolplan.agent import Agent
    from toolplan.explain import explain_order
    from toolplan.parse import CannotPlan, Prose

    try:
        reading = read_plan(plan, toolset)
        if isinstance(reading, Prose | CannotPlan):
            return print_no_plan(reading, as_json=as_json)
        checked = Agent(tools=toolset).check(reading)
    except PlanRejected as rejection:
        return print_rejection(rejection, as_json=as_json)
    order = explain_order(checked, failure=failure, everything=everything)
    if as_json:
        say_json(order.to_dict())
    else:
        say(order.to_text().rstrip())
    return OK
