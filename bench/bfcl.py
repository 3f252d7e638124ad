"""BFCL's multi-turn tasks: every turn is one plan, run by the product on the benchmark's own back ends.

The published answer to a task is a list of calls a turn, as Python text. It is played in four ways beside the reference
(the same calls made one after the other, by hand):

- `undeclared`: the text as it is, in Python notation; nothing is said about effects, all parallelism is on.
- `declared`: the same calls in JSON notation, with the declarations of `bfcl_effects.py`; here calls overlap.
- `declared, failures apart`: the same with `failure="independent"`, so that an effect need not wait until no earlier
  call can fail: what that part of the written order costs.
- `no order`: every call may overlap every other one. Not a promise of the product, but the proof that the play would
  notice: end states that come out right by luck are not worth much.

A task is right when after each turn every back end is as after the reference (the benchmark's own rule: all public
attributes equal) and every call gave what it gave there. Every call waits a moment first, each another one, so calls
that may overlap end in another order. No call of these answers raises; an `{"error": ...}` is a result like any other,
so no plan needs an `on_error`.
"""

from __future__ import annotations

import ast
import copy
import functools
import importlib
import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from bench.bfcl_effects import EFFECTS
from bench.bfcl_schema import json_schema
from bench.harness import Bench, Goal, Listing, Report, at_least, not_run
from bench.plays import Document, Overlaps, Stage, after_a_while, plan_of, share
from toolplan import Agent

NAME = "bfcl"
INSTALL = "a package is not installed: pip install --no-deps bfcl-eval==2026.3.23; pip install mpmath==1.3.0 overrides"
CATEGORIES = ("multi_turn_base", "multi_turn_miss_func", "multi_turn_miss_param", "multi_turn_long_context")
BACK_ENDS = {
    "GorillaFileSystem": "gorilla_file_system",
    "MathAPI": "math_api",
    "MessageAPI": "message_api",
    "TwitterAPI": "posting_api",
    "TicketAPI": "ticket_api",
    "TradingBot": "trading_bot",
    "TravelAPI": "travel_booking",
    "VehicleControlAPI": "vehicle_control",
}
ROUNDS_IF_FULL = 3
"""How often each task is played with `--full`; every round has other waiting times."""
LONGEST_CALL_SECONDS = 0.001
WAYS: dict[str, dict[str, Any]] = {
    "undeclared": {},
    "declared": {},
    "declared, failures apart": {"failure": "independent"},
    "no order": {"undeclared": "independent", "failure": "independent"},
}
"""Each way of playing, and what the agent is told for it."""
PROMISED = ("undeclared", "declared", "declared, failures apart")


@dataclass
class Task:
    """One conversation: where it starts, and the calls that answer each turn, as published."""

    id: str
    classes: tuple[str, ...]
    start: dict[str, Any]
    turns: list[list[str]]
    long: bool
    """Whether the back ends are filled with much more data than needed."""


@dataclass
class Turn:
    """How things stand after a turn: the public attributes of each back end, and what each call gave."""

    state: dict[str, dict[str, Any]]
    results: list[Any]


@dataclass
class Score:
    """What one way of playing all tasks gave."""

    right: int = 0
    tasks: int = 0
    overlaps: Overlaps = field(default_factory=Overlaps)
    wrong: list[tuple[str, str]] = field(default_factory=list)


def _lines(name: str) -> list[dict[str, Any]]:
    text = (resources.files("bfcl_eval") / "data" / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def _tasks(category: str) -> list[Task]:
    answers = {line["id"]: line["ground_truth"] for line in _lines(f"possible_answer/BFCL_v4_{category}.json")}
    return [
        Task(
            line["id"],
            tuple(line["involved_classes"]),
            line["initial_config"],
            answers[line["id"]],
            "long_context" in category,
        )
        for line in _lines(f"BFCL_v4_{category}.json")
    ]


def _back_ends(task: Task) -> dict[str, Any]:
    """Return fresh back ends. Copied once more, because some of them start with objects that all share."""
    found: dict[str, Any] = {}
    for name in task.classes:
        module = importlib.import_module(f"bfcl_eval.eval_checker.multi_turn_eval.func_source_code.{BACK_ENDS[name]}")
        found[name] = getattr(module, name)()
        if name != "MathAPI":
            found[name]._load_scenario(copy.deepcopy(task.start.get(name, {})), long_context=task.long)
    return copy.deepcopy(found)


def _methods(back_ends: dict[str, Any]) -> dict[str, Callable[..., Any]]:
    return {
        name: _without_dots(method)
        for back_end in back_ends.values()
        for name, method in inspect.getmembers(back_end, predicate=inspect.ismethod)
        if not name.startswith("_")
    }


def _without_dots(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method with text for Python's `...`, which a long list of stocks ends with and JSON does not have."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(item) for key, item in value.items()}
        if isinstance(value, list):
            return [plain(item) for item in value]
        return "..." if value is ... else value

    return functools.wraps(method)(lambda *args, **kwargs: plain(method(*args, **kwargs)))


def _state(back_ends: dict[str, Any]) -> dict[str, dict[str, Any]]:
    public = {
        name: {key: value for key, value in vars(back_end).items() if not key.startswith("_")}
        for name, back_end in back_ends.items()
    }
    return copy.deepcopy(public)


def _call(text: str, methods: dict[str, Callable[..., Any]]) -> tuple[str, dict[str, Any]]:
    """Return the name and the arguments of a call in Python text, positional ones by their names."""
    node = ast.parse(text.strip(), mode="eval").body
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise ValueError(f"not a plain call: {text}")
    names = list(inspect.signature(methods[node.func.id]).parameters)
    arguments = {name: ast.literal_eval(value) for name, value in zip(names, node.args, strict=False)}
    arguments |= {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in node.keywords}
    return node.func.id, arguments


def _reference(task: Task) -> list[Turn]:
    """Return the turns of the task when its calls are simply made, one after the other."""
    back_ends = _back_ends(task)
    methods = _methods(back_ends)
    turns: list[Turn] = []
    for calls in task.turns:
        results: list[Any] = []
        for text in calls:
            name, arguments = _call(text, methods)
            results.append(json.loads(json.dumps(methods[name](**arguments), default=float)))  # mpmath's numbers
        turns.append(Turn(_state(back_ends), results))
    return turns


def _document(line: dict[str, Any]) -> Document:
    """Return the document of a function with its types as JSON Schema words.

    Ticket numbers may be text too: the documents say whole number, but the tickets of task 173 are called `ticket_001`,
    and the back end takes that.
    """
    schema = json_schema(line["parameters"])
    if "ticket_id" in schema["properties"]:
        schema["properties"]["ticket_id"]["type"] = ["integer", "string"]
    return Document(line["name"], line["description"], schema)


async def _play(task: Task, stage: Stage, way: str, reference: list[Turn], score: Score, seed: str) -> None:
    """Play the task and add what came of it to the score."""
    back_ends = _back_ends(task)
    methods = _methods(back_ends)
    stage.methods = {name: after_a_while(method, seed, LONGEST_CALL_SECONDS) for name, method in methods.items()}
    agent = Agent(tools=stage.tools, answer="none", **WAYS[way])
    score.tasks += 1
    for number, (calls, expected) in enumerate(zip(task.turns, reference, strict=True)):
        if not calls:
            continue
        written = plan_of(_call(text, methods) for text in calls)
        plan = "\n".join(calls) if way == "undeclared" else written
        result = await agent.run_plan(plan, watch=score.overlaps)
        if result.outcome != "succeeded":
            score.wrong.append((task.id, f"turn {number + 1} {result.outcome}: {result.error or result.answer}"))
            return
        if _state(back_ends) != expected.state:
            score.wrong.append((task.id, f"turn {number + 1} ends in another state"))
            return
        if [step.result for step in result.steps] != expected.results:
            score.wrong.append((task.id, f"turn {number + 1} gives other results"))
            return
    score.right += 1


async def run(full: bool) -> Report:
    """Play the tasks in each way; the figures are the right ones of those ways that the product promises."""
    try:
        documents = {
            name: [_document(line) for line in _lines(f"multi_turn_func_doc/{module}.json")]
            for name, module in BACK_ENDS.items()
        }
        importlib.import_module("bfcl_eval.eval_checker.multi_turn_eval.func_source_code.math_api")
    except ImportError:
        return not_run(NAME, INSTALL)
    tasks = [task for category in CATEGORIES for task in _tasks(category)]
    scores = {way: Score() for way in WAYS}
    stages: dict[tuple[tuple[str, ...], bool], Stage] = {}
    for task in tasks:
        reference = _reference(task)
        for way, score in scores.items():
            key = (task.classes, way.startswith("declared"))
            if key not in stages:
                shown = [document for name in task.classes for document in documents[name]]
                effects = {tool: facts for name in task.classes for tool, facts in EFFECTS[name].items()}
                stages[key] = Stage(shown, effects if key[1] else {})
            stage = stages[key]
            for number in range(ROUNDS_IF_FULL if full else 1):
                await _play(task, stage, way, reference, score, f"{number} {task.id}")
    return _report(scores)


def _report(scores: dict[str, Score]) -> Report:
    rows = tuple(
        (
            way,
            f"{score.right} of {score.tasks}",
            str(score.overlaps.calls),
            share(score.overlaps.overlapped, score.overlaps.calls),
        )
        for way, score in scores.items()
    )
    played = Listing(
        "tasks that end in the right state, with the right results",
        ("effects", "right", "calls", "overlapped another"),
        rows,
        ("`no order` lets every call overlap: it shows what the written order is worth, and is not a goal",),
    )
    wrong = tuple((way, *row) for way in PROMISED for row in scores[way].wrong)
    tables = [played, *([Listing("tasks that do not", ("effects", "task", "why"), wrong)] if wrong else [])]
    goals = [at_least(scores[way].right, scores[way].tasks, scores[way].tasks, what=f"right {way}") for way in PROMISED]
    overlaps = scores["declared"].overlaps
    overlapped = f"{share(overlaps.overlapped, overlaps.calls)} of the declared calls overlap"
    return Report(NAME, tables, [*goals, Goal(overlapped, -overlaps.overlapped, -1, "some")])


BENCH = Bench(NAME, "BFCL multi-turn: every turn one plan, on the benchmark's back ends", run)
