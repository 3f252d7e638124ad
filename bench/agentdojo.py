"""AgentDojo: its worlds as tools, plans run in them, and its own checkers.

A `World` is one user task of one suite with a fresh environment: the product's tools over it, the calls that were made,
and what the benchmark's checker says to the end of it. The package computes the calls of the published solution from
the environment; here they become one plan, whose answer is the published answer, and the product runs it.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bench.harness import Bench, Listing, Report, at_least, not_run
from bench.plays import plan_of
from toolplan import Agent, Tool, ToolFailed, ToolSet
from toolplan.tools.declaration import Facts

__all__ = ["INSTALL", "VERSION", "World", "load_suites", "reference_plan"]

NAME = "agentdojo"
VERSION = "v1.2.2"
INSTALL = "the package is not installed: pip install agentdojo==0.1.35"


def load_suites() -> Mapping[str, Any]:
    """Return the benchmark's suites by name. Raises `ImportError` without the package."""
    from agentdojo.task_suite.load_suites import get_suites

    warnings.filterwarnings("ignore", module="agentdojo")
    return get_suites(VERSION)


@dataclass
class World:
    """One user task with an environment of its own, and the tools that act in it."""

    suite: Any
    task: Any
    environment: Any
    before: Any
    """A copy of the environment as the task finds it."""
    made: list[Any] = field(default_factory=list)
    """The calls that were made, as the benchmark writes them."""

    @classmethod
    def of(cls, suite: Any, task: Any, injections: Mapping[str, str] | None = None) -> World:
        """Return the task's world. `injections` puts text into the suite's injectable places, by their names."""
        environment = task.init_environment(_environment(suite, tuple(sorted((injections or {}).items()))))
        return cls(suite, task, environment, environment.model_copy(deep=True))

    def tools(self, effects: Mapping[str, Facts] | None = None) -> ToolSet:
        """Return the suite's functions as tools; `effects` says what each of them declares."""
        return ToolSet.of(
            Tool.from_schema(
                function.name,
                function.description,
                function.parameters.model_json_schema(),
                self._caller(function.name),
                returns=_returns(function),
                **{"runs_in": "loop", **(effects or {}).get(function.name, {})},
            )
            for function in self.suite.tools
        )

    def _caller(self, name: str) -> Any:
        from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime

        runtime = FunctionsRuntime(self.suite.tools)

        def call(**arguments: Any) -> Any:
            self.made.append(FunctionCall(function=name, args=arguments))
            result, error = runtime.run_function(self.environment, name, arguments)
            if error is not None:
                raise ToolFailed(error)
            return result

        return call

    @property
    def now(self) -> str | None:
        """The time of the environment as ISO text, where it has one."""
        day = getattr(getattr(self.environment, "calendar", None), "current_day", None)
        return f"{day.isoformat()}T00:00:00" if day is not None else None

    def is_solved(self, answer: str) -> bool:
        """Return what the benchmark's checker says to this answer and the world as it is now."""
        seen = self.task.utility_from_traces(answer, self.before, self.environment, self.made)
        return bool(self.task.utility(answer, self.before, self.environment) if seen is None else seen)


def _environment(suite: Any, injections: tuple[tuple[str, str], ...]) -> Any:
    """Return a fresh environment of the suite; reading it from its file takes longer than most plays."""
    return _read_environment(suite, injections).model_copy(deep=True)


@functools.lru_cache(maxsize=64)
def _read_environment(suite: Any, injections: tuple[tuple[str, str], ...]) -> Any:
    return suite.load_and_inject_default_environment(dict(injections))


def _returns(function: Any) -> dict[str, Any] | None:
    from pydantic import TypeAdapter

    annotation = inspect.signature(function.run, eval_str=True).return_annotation
    try:
        return TypeAdapter(annotation).json_schema(mode="serialization")
    except Exception:
        return None


def reference_plan(calls: Sequence[Any], answer: str) -> dict[str, Any]:
    """Return the plan that makes these calls of the benchmark's, in order, and gives this answer."""
    steps = plan_of((call.function, dict(call.args)) for call in calls)
    return {"steps": [*steps, {"answer": {"$literal": answer}}]}


async def run(full: bool) -> Report:
    """Run the published solutions, and the attacks of `agentdojo_attacks.py`."""
    try:
        suites = load_suites()
    except ImportError:
        return not_run(NAME, INSTALL)
    from bench.agentdojo_attacks import guarded

    published = await _published(suites)
    return replace(published, **await guarded(suites, published, full=full))


async def _published(suites: Mapping[str, Any]) -> Report:
    """Run the published solution of every user task; the figure is how many score."""
    rows: list[tuple[str, ...]] = []
    wrong: list[tuple[str, ...]] = []
    scored = tasks = 0
    for name, suite in suites.items():
        solved = calls = 0
        for task_name, task in suite.user_tasks.items():
            world = World.of(suite, task)
            reference = task.ground_truth(world.environment)
            agent = Agent(tools=world.tools(), answer="none", now=world.now)
            result = await agent.run_plan(reference_plan(reference, task.GROUND_TRUTH_OUTPUT))
            calls += len(reference)
            if result.outcome == "succeeded" and world.is_solved(result.answer):
                solved += 1
            else:
                wrong.append((f"{name}/{task_name}", result.outcome, (result.error or "the checker says no")[:150]))
        rows.append((name, str(len(suite.tools)), str(len(suite.user_tasks)), str(calls), str(solved)))
        scored, tasks = scored + solved, tasks + len(suite.user_tasks)
    tables = [Listing("published solutions", ("suite", "tools", "tasks", "calls", "score"), tuple(rows))]
    if wrong:
        tables.append(Listing("solutions that do not score", ("task", "outcome", "why"), tuple(wrong)))
    return Report(NAME, tables, [at_least(scored, tasks, tasks, what="published solutions score")])


BENCH = Bench(NAME, "AgentDojo: published solutions as plans, who is asked, hijacked models, swapped values", run)
