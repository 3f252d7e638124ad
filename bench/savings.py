"""What one plan saves beside the loop: inferences, tokens, seconds, on AgentDojo's tasks with 5 to 74 tools in view.

The same knowledge answers in both modes: the benchmark's published solution, as one plan, or call by call. Both run
through the product, in the benchmark's own worlds, and the requests and replies that really pass are counted. The loop
gets its tools as the JSON Schemas of a provider's `tools` field and every result so far, as loops do. Nothing is known
of thinking, which both would do. Package `agentdojo`; tokens are those of `o200k_base` when a tokenizer is at hand that
brings its vocabulary along (package `bpe-openai`), else the product's estimate, and the table says which.
"""

from __future__ import annotations

import importlib
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from bench.agentdojo import INSTALL, World, load_suites, reference_plan
from bench.data import find, lines
from bench.harness import Bench, Goal, Listing, Report, not_run
from toolplan import Agent, Tool, ToolSet
from toolplan.models import ModelRequest, OnText, Reply, ToolCallPart
from toolplan.prompt import estimate_tokens

NAME = "savings"
FIELDS = (5, 10, 20, 40, 74)
SECONDS, PER_TOKEN = 0.5, 1 / 50
"""How long a model takes before its first token, and for each one."""
PER_MESSAGE = 4
"""Tokens that a message costs besides its text, about, as providers count them."""
REACH = 1.0
"""What there must be at least: one plan is never dearer than the loop."""


@dataclass
class Cost:
    """What the inferences of some runs cost."""

    inferences: int = 0
    sent: int = 0
    fresh: int = 0
    """Tokens sent that are not the beginning of the request before, so that no prompt cache could serve them."""
    written: int = 0

    @property
    def seconds(self) -> float:
        return self.inferences * SECONDS + self.written * PER_TOKEN


@dataclass
class Knower:
    """A model that knows the solution: in plan mode it writes it as one plan, in a loop turn by turn."""

    plan: str
    turns: Sequence[Sequence[Any]]
    answer: str
    count: Callable[[str], int]
    cost: Cost
    name: str = "knower"
    _turn: int = 0
    _before: list[str] = field(default_factory=list[str])

    async def ask(self, request: ModelRequest, on_text: OnText | None = None) -> Reply:
        if request.purpose != "loop":
            reply = Reply(self.plan)
        elif self._turn < len(self.turns):
            calls = self.turns[self._turn]
            self._turn += 1
            parts = (ToolCallPart(f"c{n}", call.function, dict(call.args)) for n, call in enumerate(calls))
            reply = Reply("", tuple(parts), "tool_call")
        else:
            reply = Reply(self.answer)
        self._note(request, reply)
        return reply

    def _note(self, request: ModelRequest, reply: Reply) -> None:
        tools = [json.dumps(_function(spec), ensure_ascii=False, separators=(",", ":")) for spec in request.tools]
        pieces = [*tools, *(message.text for message in request.messages)]
        same = 0
        while same < min(len(pieces), len(self._before)) and pieces[same] == self._before[same]:
            same += 1
        self._before = pieces
        sizes = [self.count(piece) + PER_MESSAGE for piece in pieces]
        said = [f'{{"name": "{call.name}", "arguments": {call.arguments_text}}}' for call in reply.tool_calls]
        self.cost.inferences += 1
        self.cost.sent += sum(sizes)
        self.cost.fresh += sum(sizes[same:])
        self.cost.written += self.count(reply.text) + sum(map(self.count, said))


def _function(spec: Any) -> dict[str, Any]:
    described = {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
    return {"type": "function", "function": described}


def counter() -> tuple[Callable[[str], int], str]:
    """Return what counts tokens, and its name."""
    try:
        bpe_openai: Any = importlib.import_module("bpe_openai")
    except ImportError:
        return cache(
            estimate_tokens
        ), "the product's estimate (fitted to o200k_base), for want of the package bpe-openai"
    encoding = bpe_openai.get_encoding("o200k_base")

    @cache
    def count(text: str) -> int:
        return len(encoding.encode(text))

    return count, "o200k_base"


def _shown(world: World, others: Sequence[Any], needed: set[str], size: int, seed: str) -> ToolSet:
    """Return so many tools: those that the solution needs, and others, the same for the same task."""
    own = {tool.name: tool for tool in world.tools()}
    foreign = [_unreachable(each) for each in others if each.name not in own]
    rest = [tool for tool in (*own.values(), *foreign) if tool.name not in needed]
    random.Random(seed).shuffle(rest)
    chosen = {tool.name for tool in rest[: max(size - len(needed), 0)]} | needed
    return ToolSet.of(tool for tool in (*own.values(), *foreign) if tool.name in chosen)


def _unreachable(function: Any) -> Tool:
    def run(**_: Any) -> Any:
        raise AssertionError("no solution calls a tool of another suite")

    schema = function.parameters.model_json_schema()
    return Tool.from_schema(function.name, function.description, schema, run)


def _together(calls: Sequence[Any]) -> list[list[Any]]:
    """Return the calls in turns: neighbours of one tool in one turn, as models do that call in parallel."""
    turns: list[list[Any]] = []
    for call in calls:
        if turns and turns[-1][-1].function == call.function:
            turns[-1].append(call)
        else:
            turns.append([call])
    return turns


async def _play(suite: Any, task: Any, others: Sequence[Any], size: int, mode: str, count: Any, cost: Cost) -> bool:
    """Run one task in one mode; add what it cost, return whether it scores."""
    world = World.of(suite, task)
    calls = task.ground_truth(world.environment)
    answer = task.GROUND_TRUTH_OUTPUT or "Done."
    turns = _together(calls) if mode == "loop, parallel" else [[call] for call in calls]
    knower = Knower(json.dumps(reference_plan(calls, answer)), turns, answer, count, cost)
    tools = _shown(world, others, {call.function for call in calls}, size, task.ID)
    bounds: dict[str, Any] = {"early_start": False, "max_turns": 60, "max_repeats": 60}
    agent = Agent(knower, tools, now=world.now or "2026-01-01T00:00", policy="declared", **bounds)  # nobody is asked
    result = await agent.run(task.PROMPT, mode="plan" if mode == "plan" else "loop")
    return result.outcome == "succeeded" and world.is_solved(result.answer)


def _written(count: Callable[[str], int]) -> tuple[str, ...]:
    """Return a note on how long the plans of a real model were, where the recording is there."""
    recorded = find("model_replies", "agentdojo_python.jsonl")
    if recorded is None:
        return ()
    sizes = sorted(count(line["reply"]) for line in lines(recorded))
    median = sizes[len(sizes) // 2]
    return (f"a strong model's own programs for these tasks: {median} tokens in the median, {sizes[-1]} at most",)


async def run(full: bool) -> Report:
    """Play tasks in all modes at all sizes; the figure is how much faster one plan is with every tool in view."""
    try:
        suites = load_suites()
    except ImportError:
        return not_run(NAME, INSTALL)
    count, counted_with = counter()
    tasks = [(suite, task) for suite in suites.values() for task in suite.user_tasks.values()]
    if not full:
        tasks = tasks[::6]
    others = list({function.name: function for suite in suites.values() for function in suite.tools}.values())
    rows: list[tuple[str, ...]] = []
    costs: dict[tuple[int, str], Cost] = {}
    solved = 0
    for size in FIELDS:
        for mode in ("plan", "loop", "loop, parallel"):
            cost = costs[size, mode] = Cost()
            score = 0
            for suite, task in tasks:
                score += await _play(suite, task, others, size, mode, count, cost)
            solved += score
            plan = costs[size, "plan"]
            each = [cost.inferences, cost.sent, cost.fresh, cost.written, cost.seconds]
            shown = [f"{value / len(tasks):,.1f}" for value in each]
            ratios = [f"{cost.sent / plan.sent:.1f}x", f"{cost.seconds / plan.seconds:.1f}x"]
            rows.append((str(size), mode, *shown, *ratios, f"{score} of {len(tasks)}"))
    notes = (
        f"a task, in the mean over {len(tasks)}; tokens: {counted_with}",
        f"seconds: {SECONDS} and 1/{1 / PER_TOKEN:.0f} for each token written; tools take no time",
        *_written(count),
    )
    columns = ("tools", "mode", "inferences", "sent", "of it new", "written", "seconds", "sent", "seconds", "score")
    most = FIELDS[-1]
    plan, loop = costs[most, "plan"], costs[most, "loop"]
    faster, cheaper = loop.seconds / plan.seconds, loop.sent / plan.sent
    goals = [
        Goal(f"{faster:.1f}x faster", -faster, -REACH, f">= {REACH:g}x"),
        Goal(f"{cheaper:.1f}x fewer tokens sent", -cheaper, -REACH, f">= {REACH:g}x"),
        Goal(f"{loop.inferences / plan.inferences:.1f}x fewer inferences", -loop.inferences, -plan.inferences, "> 1x"),
        Goal(f"{solved} of {len(rows) * len(tasks)} runs score", -solved, -len(rows) * len(tasks), "all"),
    ]
    return Report(NAME, [Listing("one plan beside the loop", columns, tuple(rows), notes)], goals)


BENCH = Bench(NAME, "one plan beside the loop, on AgentDojo's tasks and worlds", run)
