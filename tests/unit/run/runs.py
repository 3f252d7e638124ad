"""Plans as JSON steps, run by the real engine: what the tests of this folder have in common."""

from __future__ import annotations

import json
from typing import Any

from toolplan import CheckedPlan, RunResult, ToolSet, check, parse, run_plan
from toolplan.plan import Plan
from toolplan.run import Engine


def checked(steps: Any, tools: Any) -> CheckedPlan:
    toolset = tools if isinstance(tools, ToolSet) else ToolSet.of(tools)
    plan = parse(json.dumps(steps, ensure_ascii=False), tools=toolset)
    assert isinstance(plan, Plan), plan
    return check(plan, toolset)


async def run(steps: Any, tools: Any, **options: Any) -> RunResult:
    return await run_plan(checked(steps, tools), **options)


def engine(steps: Any, tools: Any, **options: Any) -> Engine:
    return Engine(checked(steps, tools), **options)


def call(tool_name: str, result: str | None = None, **arguments: Any) -> dict[str, Any]:
    step: dict[str, Any] = {"tool_name": tool_name, "arguments": arguments}
    return step | ({"result_variable": result} if result else {})


def each(items: list[Any], step: dict[str, Any]) -> dict[str, Any]:
    """Return a loop over the items, as `n`."""
    return {"for_each": items, "as": "n", "do": [step]}
