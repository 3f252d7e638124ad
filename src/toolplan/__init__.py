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
    from toolplan.check import CheckedPlan, Limits, check
    from toolplan.diagnostics import Diagnostic, Source
    from toolplan.errors import (
        ArgumentsRefused,
        EvaluationError,
        ModelError,
        PlanRejected,
        ResultRefused,
        ToolFailed,
        ToolplanError,
        UsageError,
    )
    from toolplan.models import Model, Usage
    from toolplan.parse import CannotPlan, Prose, parse
    from toolplan.plan import Plan
    from toolplan.run import RunEvent, RunResult, run_plan
    from toolplan.schedule import StepRecord
    from toolplan.tools import Tool, ToolContext, ToolSet, tool

__all__ = [
    "Agent",
    "ArgumentsRefused",
    "CannotPlan",
    "CheckedPlan",
    "Diagnostic",
    "EvaluationError",
    "Limits",
    "Model",
    "ModelError",
    "Plan",
    "PlanRejected",
    "Prose",
    "Result",
    "ResultRefused",
    "RunEvent",
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
    "parse",
    "run_plan",
    "tool",
]

_HOMES = {
    "Agent": "toolplan.agent",
    "ArgumentsRefused": "toolplan.errors",
    "CannotPlan": "toolplan.parse",
    "CheckedPlan": "toolplan.check",
    "Diagnostic": "toolplan.diagnostics",
    "EvaluationError": "toolplan.errors",
    "Limits": "toolplan.check",
    "Model": "toolplan.models",
    "ModelError": "toolplan.errors",
    "Plan": "toolplan.plan",
    "PlanRejected": "toolplan.errors",
    "Prose": "toolplan.parse",
    "Result": "toolplan.agent",
    "ResultRefused": "toolplan.errors",
    "RunEvent": "toolplan.run",
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
    "parse": "toolplan.parse",
    "run_plan": "toolplan.run",
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
