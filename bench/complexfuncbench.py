"""ComplexFuncBench's plans: each reads, checks clean against schemas inferred from its records, and runs on them.

A fake tool per label returns the recorded result; every reference must resolve, and every later call must get exactly
the arguments that resolving by hand gives.
"""

from __future__ import annotations

import json
import re
from typing import Any

from bench.data import find, lines
from bench.harness import Bench, Listing, Report, at_least, not_run
from toolplan import PlanRejected, Tool, ToolSet, check, parse, run_plan
from toolplan.plan import Plan

NAME = "complexfuncbench"
_REFERENCE = re.compile(r"\$(\w+)((?:\.\w+|\[\d+\])*)\$")
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")


def _schema(value: Any) -> dict[str, Any]:
    """Return a schema that the value fits, with every field it has."""
    if isinstance(value, dict):
        properties = {name: _schema(item) for name, item in value.items()}
        return {"type": "object", "properties": properties, "required": list(value)}
    if isinstance(value, list):
        items = [_schema(item) for item in value]
        return {"type": "array", "items": items[0] if len({json.dumps(item) for item in items}) == 1 else {}}
    names = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}
    return {"type": names[type(value)]}


def _resolve(value: Any, results: dict[str, Any]) -> tuple[Any, int]:
    """Return the value with its references replaced, and how many there were."""
    if isinstance(value, dict):
        pairs = {name: _resolve(item, results) for name, item in value.items()}
        return {name: pair[0] for name, pair in pairs.items()}, sum(pair[1] for pair in pairs.values())
    if isinstance(value, list):
        items = [_resolve(item, results) for item in value]
        return [item for item, _ in items], sum(count for _, count in items)
    whole = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
    if whole is None:
        return value, 0
    found = results[whole.group(1)]
    for field, index in _STEP.findall(whole.group(2)):
        found = found[field] if field else found[int(index)]
    return found, 1


def _fakes(steps: list[dict[str, Any]], got: list[Any]) -> tuple[ToolSet, list[dict[str, Any]]]:
    """Return a tool per label, and the plan that calls them."""
    tools: list[Tool] = []
    plan: list[dict[str, Any]] = []
    for number, step in enumerate(steps):

        def fake(number: int = number, result: Any = step["result"], **arguments: Any) -> Any:
            got[number] = arguments
            return result

        name = re.sub(r"\W", "_", f"{step['name']}_{step['label']}")
        schema = {"type": "object", "additionalProperties": True}
        tools.append(
            Tool.from_schema(name, "", schema, fake, returns=_schema(step["result"]), pure=True, runs_in="loop")
        )
        plan.append({"name": name, "arguments": step["arguments"], "label": step["label"]})
    return ToolSet.of(tools), plan


async def run(full: bool) -> Report:
    """Play every plan of the sample; the figure is how many references resolve."""
    path = find("complexfuncbench", "plans.jsonl")
    if path is None:
        return not_run(NAME, "complexfuncbench is not there")
    rows: list[tuple[str, ...]] = []
    resolved = total = 0
    for line in lines(path):
        steps = line["steps"]
        results: dict[str, Any] = {}
        expected: list[Any] = []
        references = 0
        for step in steps:
            arguments, count = _resolve(step["arguments"], results)
            expected.append(arguments)
            references += count
            results[step["label"]] = step["result"]
        total += references
        got: list[Any] = [None] * len(steps)
        tools, plan = _fakes(steps, got)
        try:
            reading = parse(json.dumps(plan), tools=tools)
            assert isinstance(reading, Plan)
            result = await run_plan(check(reading, tools))
        except PlanRejected as rejection:
            rows.append((line["id"], "; ".join(f"{d.code} {d.message}" for d in rejection.diagnostics)[:150]))
            continue
        if got == expected:
            resolved += references
        else:
            rows.append((line["id"], (result.error or "other arguments than by hand")[:150]))
    table = Listing("plans that do not run as recorded", ("plan", "why"), tuple(rows))
    return Report(NAME, [table], [at_least(resolved, total, total, what="references resolve")])


BENCH = Bench(NAME, "references between calls, resolved on recorded results", run)
