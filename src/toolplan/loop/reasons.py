"""Why a call of a loop is made again: the argument `again`, which the tool itself does not have.

In a plan the reason stands beside the arguments. A native call has nothing but arguments, so there it is one of them.
"""

from __future__ import annotations

from dataclasses import replace

from toolplan.diagnostics import Diagnostic
from toolplan.expressions import Fields, Literal
from toolplan.parse.tool_calls import TurnCalls
from toolplan.plan import AskUser, Call
from toolplan.tools import ToolSet

__all__ = ["with_reasons"]

AGAIN = "again"


def with_reasons(given: TurnCalls, tools: ToolSet) -> TurnCalls:
    """Return the calls of a turn, each with its reason to be made again where it gives one."""
    return replace(given, entries=tuple(_with_reason(entry, tools) for entry in given.entries))


def _with_reason(entry: Call | AskUser | Diagnostic, tools: ToolSet) -> Call | AskUser | Diagnostic:
    if not isinstance(entry, Call) or (tool := tools.get(entry.tool)) is None:
        return entry
    arguments = {name: template.value for name, template in entry.arguments.fields if isinstance(template, Literal)}
    reason = arguments.get(AGAIN)
    is_its_own = AGAIN in tool.parameters["properties"] or tool.accepts(tool.normalise(arguments))
    if not isinstance(reason, str) or not reason.strip() or is_its_own:
        return entry
    others = tuple(field for field in entry.arguments.fields if field[0] != AGAIN)
    return replace(entry, arguments=Fields(others, entry.arguments.place), again=reason)
