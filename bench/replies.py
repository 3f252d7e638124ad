"""What a strong model really wrote for AgentDojo, run by the product on the benchmark's own worlds and checkers.

One program a request, written in one inference without any result known. Each is read, checked and run; its `ask_model`
steps get the recorded answers. Package `agentdojo`, replies in `model_replies`; neither is part of this project.
"""

from __future__ import annotations

import inspect
import warnings
from typing import Any

from bench.data import Answers, find, lines
from bench.harness import Bench, Listing, Report, at_least, not_run
from toolplan import PlanRejected, RunResult, Tool, ToolFailed, ToolSet, check, parse, run_plan
from toolplan.parse import CannotPlan, Prose
from toolplan.schedule import AskModelNow

NAME = "replies"
REACH = 56
VERSION = "v1.2.2"


def _tools(suite: Any, env: Any, made: list[Any]) -> ToolSet:
    from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime
    from pydantic import TypeAdapter

    runtime = FunctionsRuntime(suite.tools)

    def call(name: str) -> Any:
        def run(**arguments: Any) -> Any:
            made.append(FunctionCall(function=name, args=arguments))
            result, error = runtime.run_function(env, name, arguments)
            if error is not None:
                raise ToolFailed(error)
            return result

        return run

    def returns(function: Any) -> dict[str, Any] | None:
        annotation = inspect.signature(function.run, eval_str=True).return_annotation
        try:
            return TypeAdapter(annotation).json_schema(mode="serialization")
        except Exception:
            return None

    return ToolSet.of(
        Tool.from_schema(
            function.name,
            function.description,
            function.parameters.model_json_schema(),
            call(function.name),
            returns=returns(function),
            runs_in="loop",
        )
        for function in suite.tools
    )


def _score(task: Any, output: str, before: Any, env: Any, made: list[Any]) -> bool:
    seen = task.utility_from_traces(output, before, env, made)
    return bool(task.utility(output, before, env) if seen is None else seen)


async def _play(suite: Any, task: Any, reply: str, answers: Answers) -> tuple[bool, str, str]:
    """Return whether the task scores, how its plan ended, and why it does not score, if it does not."""
    env = task.init_environment(suite.load_and_inject_default_environment({}))
    before = env.model_copy(deep=True)
    made: list[Any] = []
    tools = _tools(suite, env, made)

    async def read(question: AskModelNow) -> Any:
        return answers.find(question.question, question.data)

    try:
        reading = parse(reply, tools=tools)
        if isinstance(reading, Prose):
            return _score(task, reading.text, before, env, made), "prose", ""
        if isinstance(reading, CannotPlan):
            return _score(task, reading.reason, before, env, made), "cannot", reading.reason
        result = await run_plan(check(reading, tools), now=_now(env), read=read)
    except PlanRejected as rejection:
        return False, "rejected", "; ".join(f"{d.code} {d.message}" for d in rejection.diagnostics)
    scores = _score(task, result.text or "", before, env, made)
    return scores, result.outcome, "" if scores else _why(result)


def _now(env: Any) -> str | None:
    day = getattr(getattr(env, "calendar", None), "current_day", None)
    return f"{day.isoformat()}T00:00:00" if day is not None else None


def _why(result: RunResult) -> str:
    if result.error:
        return f"{result.failed_step}: {result.error}"
    return "ran as written; the benchmark wanted another answer or effect"


async def run(full: bool) -> Report:
    """Run every recorded program; the figure is how many score."""
    replies = find("model_replies", "agentdojo_python.jsonl")
    recorded = find("model_replies", "ask_model_answers.jsonl")
    if replies is None or recorded is None:
        return not_run(NAME, "model_replies is not there")
    try:
        from agentdojo.task_suite.load_suites import get_suites
    except ImportError:
        return not_run(NAME, "the package agentdojo is not installed")
    warnings.filterwarnings("ignore", module="agentdojo")
    suites = get_suites(VERSION)
    answers = Answers(lines(recorded))
    rows: list[tuple[str, ...]] = []
    scored = total = 0
    for line in lines(replies):
        suite_name, task_name = line["id"].split("/")
        suite = suites[suite_name]
        total += 1
        scores, outcome, why = await _play(suite, suite.user_tasks[task_name], line["reply"], answers)
        scored += scores
        if not scores:
            rows.append((line["id"], outcome, why[:150]))
    table = Listing("programs that do not score", ("task", "outcome", "why"), tuple(rows))
    return Report(NAME, [table], [at_least(scored, total, REACH, what="recorded programs score")])


BENCH = Bench(NAME, "recorded programs of a strong model on AgentDojo's worlds", run)
