"""Plans that models really wrote: what the checker says about them is a real fault, or it says nothing."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from toolplan.check import check
from toolplan.diagnostics import Severity, Source
from toolplan.errors import PlanRejected
from toolplan.parse import parse
from toolplan.parse.python_notation import read_program
from toolplan.plan import Plan
from toolplan.tools import Tool, ToolSet

DATA = Path(__file__).parents[3] / "shared" / "data"
REPLIES = DATA / "model_replies"


def lines_of(file: Path) -> Iterator[dict[str, Any]]:
    if not file.exists():
        pytest.skip(f"not run: {file} is absent")
    with file.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def suite_tools(suite: str) -> ToolSet:
    """Return the tools whose signatures and result classes `tools_SUITE.txt` lists."""
    code = ["from __future__ import annotations", "from dataclasses import dataclass", "from typing import *"]
    code += ["from datetime import *", "EmailStr = str"]
    names: list[str] = []
    for line in (REPLIES / f"tools_{suite}.txt").read_text(encoding="utf-8").splitlines():
        if found := re.match(r"class (\w+): (.*)", line):
            fields = re.split(r", (?=\w+: )", found[2])
            code += ["@dataclass", f"class {found[1]}:", *(f"    {field.split(' = ')[0]}" for field in fields)]
        elif re.match(r"\w+ = Literal", line):
            code.append(line)
        elif found := re.match(r"def (\w+)", line):
            code.append(f"{line} ...")
            names.append(found[1])
    module = types.ModuleType(f"tools_{suite}")
    sys.modules[module.__name__] = module
    exec(compile("\n".join(code), module.__name__, "exec"), module.__dict__)
    return ToolSet.of([getattr(module, name) for name in names])


def read(reply: str, tools: ToolSet) -> object:
    program = re.search(r"```python\n(.*?)```", reply, re.DOTALL)
    if program is None:
        return parse(reply, tools=tools)
    parameters = {tool.name: list(tool.parameters["properties"]) for tool in tools}
    return read_program(Source(program[1]), tools.names, parameters)


def findings(reply: str, tools: ToolSet) -> set[str]:
    plan = read(reply, tools)
    if not isinstance(plan, Plan):
        return set()
    try:
        return {each.code for each in check(plan, tools).warnings}
    except PlanRejected as rejected:
        return {each.code for each in rejected.diagnostics}


def test_json_replies_check_clean() -> None:
    tools: dict[str, ToolSet] = {}
    for case in lines_of(REPLIES / "agentdojo_json.jsonl"):
        suite = case["id"].split("/")[0]
        tools.setdefault(suite, suite_tools(suite))
        assert findings(case["reply"], tools[suite]) == set(), case["id"]


def test_python_replies_check_clean_but_for_null_passed_on_as_text() -> None:
    """Four programs hand fields that a reader may leave null to required arguments."""
    tools: dict[str, ToolSet] = {}
    found: dict[str, set[str]] = {}
    for case in lines_of(REPLIES / "agentdojo_python.jsonl"):
        suite = case["id"].split("/")[0]
        tools.setdefault(suite, suite_tools(suite))
        if codes := findings(case["reply"], tools[suite]):
            found[case["id"]] = codes
    faulty = ("banking/user_task_12", "slack/user_task_18", "workspace/user_task_13", "workspace/user_task_19")
    assert found == {id: {"TP305"} for id in faulty}


def test_chinese_replies_check_clean() -> None:
    module = DATA / "zh_tasks" / "zh_tools.py"
    cases = list(lines_of(REPLIES / "zh_python.jsonl"))
    spec = importlib.util.spec_from_file_location("zh_tools_of_the_task_set", module)
    assert spec is not None
    assert spec.loader is not None
    zh_tools = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = zh_tools
    spec.loader.exec_module(zh_tools)
    known = ("pure", "reads", "writes", "requires", "ensures")
    tools = ToolSet.of(
        Tool.of(function, **{name: said for name in known if (said := zh_tools.EFFECTS[function.__name__][name])})
        for function in zh_tools.make_tools(zh_tools.World())
    )
    for case in cases:
        assert findings(case["reply"], tools) == set(), case["id"]


def schema_of(value: Any) -> dict[str, Any]:
    """Return a schema that a recorded result is of."""
    if isinstance(value, list):
        kinds = [schema_of(item) for item in value]
        return {"type": "array", "items": {"anyOf": kinds} if kinds else {}}
    if isinstance(value, dict):
        return {"type": "object", "properties": {k: schema_of(v) for k, v in value.items()}, "required": list(value)}
    names = {type(None): "null", bool: "boolean", int: "integer", float: "number", str: "string"}
    return {"type": names[type(value)]}


def test_recorded_plans_check_clean_against_the_schemas_of_their_results() -> None:
    for case in lines_of(DATA / "complexfuncbench" / "plans.jsonl"):
        names = {step["name"]: re.sub(r"[()]", "_", step["name"]) for step in case["steps"]}
        results: dict[str, list[dict[str, Any]]] = {}
        parameters: dict[str, dict[str, Any]] = {}
        for step in case["steps"]:
            results.setdefault(names[step["name"]], []).append(schema_of(step["result"]))
            parameters.setdefault(names[step["name"]], {}).update({name: {} for name in step["arguments"]})
        tools = ToolSet(
            Tool.from_schema(
                name, "", {"type": "object", "properties": parameters[name]}, lambda **_: None, {"anyOf": schemas}
            )
            for name, schemas in results.items()
        )
        plan = [
            {"tool_name": names[step["name"]], "arguments": step["arguments"], "result_variable": step["label"]}
            for step in case["steps"]
        ]
        checked = parse(json.dumps(plan), tools=tools)
        assert isinstance(checked, Plan)
        try:
            check(checked, tools)
        except PlanRejected as rejected:
            errors = [each.message for each in rejected.diagnostics if each.severity is Severity.ERROR]
            pytest.fail(f"{case['id']}: {errors}")
