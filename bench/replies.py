"""What a strong model really wrote for AgentDojo, run by the product on the benchmark's own worlds and checkers.

One program a request, written in one inference without any result known. Each is read, checked and run; its `ask_model`
steps get the recorded answers. Package `agentdojo`, replies in `model_replies`; neither is part of this project.
"""

from __future__ import annotations

from typing import Any

from bench.agentdojo import INSTALL, World, load_suites
from bench.data import Answers, find, lines
from bench.harness import Bench, Listing, Report, at_least, not_run
from toolplan import PlanRejected, RunResult, check, parse, run_plan
from toolplan.parse import CannotPlan, Prose
from toolplan.schedule import AskModelNow

NAME = "replies"
REACH = 56


async def _play(world: World, reply: str, answers: Answers) -> tuple[bool, str, str]:
    """Return whether the task scores, how its plan ended, and why it does not score, if it does not."""
    tools = world.tools()

    async def read(question: AskModelNow) -> Any:
        return answers.find(question.question, question.data)

    try:
        reading = parse(reply, tools=tools)
        if isinstance(reading, Prose):
            return world.is_solved(reading.text), "prose", ""
        if isinstance(reading, CannotPlan):
            return world.is_solved(reading.reason), "cannot", reading.reason
        result = await run_plan(check(reading, tools), now=world.now, read=read)
    except PlanRejected as rejection:
        return False, "rejected", "; ".join(f"{d.code} {d.message}" for d in rejection.diagnostics)
    scores = world.is_solved(result.text or "")
    return scores, result.outcome, "" if scores else _why(result)


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
        suites = load_suites()
    except ImportError:
        return not_run(NAME, INSTALL)
    answers = Answers(lines(recorded))
    rows: list[tuple[str, ...]] = []
    scored = total = 0
    for line in lines(replies):
        suite_name, task_name = line["id"].split("/")
        suite = suites[suite_name]
        total += 1
        scores, outcome, why = await _play(World.of(suite, suite.user_tasks[task_name]), line["reply"], answers)
        scored += scores
        if not scores:
            rows.append((line["id"], outcome, why[:150]))
    table = Listing("programs that do not score", ("task", "outcome", "why"), tuple(rows))
    return Report(NAME, [table], [at_least(scored, total, REACH, what="recorded programs score")])


BENCH = Bench(NAME, "recorded programs of a strong model on AgentDojo's worlds", run)
