"""toolplan asks a language model once, for a whole plan of tool calls; checks it, runs it in parallel, answers.

    from toolplan import Agent, tool

    @tool(reads="weather")
    def get_weather(city: str, date: str) -> Weather: ...

    agent = Agent("openai:gpt-5-mini", tools=[get_weather])
    result = agent.run_sync("Will it rain in Oslo tomorrow?")

The names in `__all__` are the public API; everything else may change. They are imported on first use, so that
`import toolplan` costs little.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolplan.agent import Agent, Result
    from toolplan.agent_events import event_to_json
    from toolplan.approval import Card, Decision
    from toolplan.check import CheckedPlan, Limits, check
    from toolplan.conversation import Conversation
    from toolplan.diagnostics import Diagnostic, Source
    from toolplan.errors import (
        ArgumentsRefused,
        EvaluationError,
        JournalError,
        JournalMismatch,
        ModelError,
        PlanRejected,
        ResultRefused,
        RunIsHeld,
        ToolFailed,
        ToolplanError,
        UsageError,
    )
    from toolplan.explain import PlanOrder, explain_order
    from toolplan.journal import Journal
    from toolplan.models import Model, Usage
    from toolplan.parse import CannotPlan, Prose, parse
    from toolplan.plan import Plan
    from toolplan.policy import Policy
    from toolplan.route import Router
    from toolplan.run import RunEvent, RunResult, run_plan, set_process_limits
    from toolplan.schedule import StepRecord
    from toolplan.stream import AgentStream
    from toolplan.tools import Happened, Tool, ToolContext, ToolSet, tool

__all__ = [
    "Agent",
    "AgentStream",
    "ArgumentsRefused",
    "CannotPlan",
    "Card",
    "CheckedPlan",
    "Conversation",
    "Decision",
    "Diagnostic",
    "EvaluationError",
    "Happened",
    "Journal",
    "JournalError",
    "JournalMismatch",
    "Limits",
    "Model",
    "ModelError",
    "Plan",
    "PlanOrder",
    "PlanRejected",
    "Policy",
    "Prose",
    "Result",
    "ResultRefused",
    "Router",
    "RunEvent",
    "RunIsHeld",
    "RunResult",
    "Source",
    "StepRecord",
    "Tool",
    "ToolContext",
    "ToolFailed",
    "ToolSet",
    "ToolplanError",
    "Usage",
    "UsageError",
    "check",
    "event_to_json",
    "explain_order",
    "parse",
    "run_plan",
    "set_process_limits",
    "tool",
]

_HOMES = {
    "Agent": "toolplan.agent",
    "AgentStream": "toolplan.stream",
    "ArgumentsRefused": "toolplan.errors",
    "CannotPlan": "toolplan.parse",
    "Card": "toolplan.approval",
    "CheckedPlan": "toolplan.check",
    "Conversation": "toolplan.conversation",
    "Decision": "toolplan.approval",
    "Diagnostic": "toolplan.diagnostics",
    "EvaluationError": "toolplan.errors",
    "Happened": "toolplan.tools",
    "Journal": "toolplan.journal",
    "JournalError": "toolplan.errors",
    "JournalMismatch": "toolplan.errors",
    "Limits": "toolplan.check",
    "Model": "toolplan.models",
    "ModelError": "toolplan.errors",
    "Plan": "toolplan.plan",
    "PlanOrder": "toolplan.explain",
    "PlanRejected": "toolplan.errors",
    "Policy": "toolplan.policy",
    "Prose": "toolplan.parse",
    "Result": "toolplan.agent",
    "ResultRefused": "toolplan.errors",
    "Router": "toolplan.route",
    "RunEvent": "toolplan.run",
    "RunIsHeld": "toolplan.errors",
    "RunResult": "toolplan.run",
    "Source": "toolplan.diagnostics",
    "StepRecord": "toolplan.schedule",
    "Tool": "toolplan.tools",
    "ToolContext": "toolplan.tools",
    "ToolFailed": "toolplan.errors",
    "ToolSet": "toolplan.tools",
    "ToolplanError": "toolplan.errors",
    "Usage": "toolplan.models",
    "UsageError": "toolplan.errors",
    "check": "toolplan.check",
    "event_to_json": "toolplan.agent_events",
    "explain_order": "toolplan.explain",
    "parse": "toolplan.parse",
    "run_plan": "toolplan.run",
    "set_process_limits": "toolplan.run",
    "tool": "toolplan.tools",
}


class _Package(types.ModuleType):
    """The package. `check` and `parse` are functions here, as eager imports would have it, and packages inside."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _HOMES and isinstance(value, types.ModuleType):
            return  # the import system binds a subpackage to its parent; the public function of that name goes first
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module `toolplan` has no attribute `{name}`")
        value = getattr(importlib.import_module(home), name)
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *__all__})


sys.modules[__name__].__class__ = _Package
