"""Chinese requests: programs that a strong model wrote for `zh_tasks`, run by the product, judged by the set.

With the set's declared effects in force and parallelism on; `ask_model` steps get the recorded answers.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from bench.data import Answers, find, lines
from bench.harness import Bench, Listing, Report, at_least, not_run
from toolplan import PlanRejected, Tool, ToolSet, check, parse, run_plan
from toolplan.parse import CannotPlan, Prose
from toolplan.schedule import AskModelNow

NAME = "zh"
NOW = "2026-03-18T09:00:00"
DECLARED = ("pure", "reads", "writes", "idempotent", "untrusted", "requires", "ensures")


def _tools(world: Any, names: list[str], calls: list[Any], module: Any) -> ToolSet:
    return ToolSet.of(
        Tool.of(function, **{key: value for key in DECLARED if (value := module.EFFECTS[function.__name__].get(key))})
        for function in module.recorded(module.make_tools(world), calls)
        if function.__name__ in names
    )


async def _answer(reply: str, tools: ToolSet, answers: Answers) -> str:
    async def read(question: AskModelNow) -> Any:
        return answers.find(question.question, question.data)

    reading = parse(reply, tools=tools)
    if isinstance(reading, Prose):
        return reading.text
    if isinstance(reading, CannotPlan):
        return " ".join([reading.reason, *reading.missing])
    result = await run_plan(check(reading, tools), now=NOW, read=read)
    return result.text or result.error or ""


async def run(full: bool) -> Report:
    """Run every recorded program; the figure is how many pass."""
    folder = find("zh_tasks")
    replies = find("model_replies", "zh_python.jsonl")
    recorded = find("model_replies", "zh_ask_model_answers.jsonl")
    if folder is None or replies is None or recorded is None:
        return not_run(NAME, "zh_tasks or model_replies is not there")
    sys.path.insert(0, str(folder))
    module = importlib.import_module("zh_tools")
    judge = importlib.import_module("checks").check
    tasks = {task["id"]: task for task in lines(folder / "tasks.jsonl")}
    answers = Answers(lines(recorded))
    rows: list[tuple[str, ...]] = []
    passed = total = 0
    for line in lines(replies):
        task = tasks[line["id"]]
        total += 1
        world, calls = module.World(), []
        before = world.snapshot()
        tools = _tools(world, task["tools"], calls, module)
        try:
            answer = await _answer(line["reply"], tools, answers)
        except PlanRejected as rejection:
            rows.append((task["id"], "; ".join(f"{d.code} {d.message}" for d in rejection.diagnostics)[:150]))
            continue
        faults = judge(task["id"], before, world.snapshot(), calls, answer)
        passed += not faults
        if faults:
            rows.append((task["id"], "; ".join(faults)[:150]))
    table = Listing("programs that do not pass", ("task", "why"), tuple(rows))
    return Report(NAME, [table], [at_least(passed, total, total, what="recorded programs pass")])


BENCH = Bench(NAME, "recorded programs of a strong model for Chinese requests", run)
