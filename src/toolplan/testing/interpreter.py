"""The meaning of a plan, in the plainest form: one step after the other, as written.

No dataflow, no overlap, no cleverness; the scheduler is compared with this. Sync tools only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from toolplan.errors import EvaluationError, ToolFailed
from toolplan.expressions import Expression, Template, fill, names_of, render_text
from toolplan.plan import (
    Answer,
    AskModel,
    AskUser,
    Block,
    Break,
    Call,
    Cannot,
    Continue,
    ForEach,
    If,
    Let,
    Note,
    OnError,
    Parallel,
    Replan,
    Step,
    Try,
    While,
    assigned_names,
)
from toolplan.schedule import Program
from toolplan.values import Json

if TYPE_CHECKING:
    from toolplan.check import CheckedPlan

__all__ = ["Reference", "run_in_written_order"]

Env = dict[str, Any]

ABSENT: Any = object()
"""A name without a value: its step was skipped, or failed with `on_error: skip`."""


@dataclass(slots=True)
class Reference:
    """How a plan ends when it is run as written."""

    outcome: str
    text: str | None = None
    error: str | None = None
    calls: list[tuple[str, dict[str, Json], str]] = field(default_factory=list[tuple[str, dict[str, Json], str]])
    """Every call that was made: tool, arguments, how it ended."""


class _Failed(Exception):
    def __init__(self, message: str, *, replan: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.replan = replan
        self.ends_plan = False
        """One of the equals reached an end of the plan after another had failed: nothing after them is reached."""


class _Leave(Exception):
    def __init__(self, how: str, outcome: str = "", text: str | None = None) -> None:
        super().__init__(how)
        self.how = how
        self.outcome = outcome
        self.text = text


class _Absent(Exception):
    """A step uses a name that has no value."""


def run_in_written_order(
    checked: CheckedPlan,
    *,
    now: str = "2026-01-01T00:00:00",
    ask: Callable[[str], str] | None = None,
    read: Callable[[str, Json, dict[str, Json]], Json] | None = None,
) -> Reference:
    """Return how the plan ends when its steps run one after the other.

    Tools are called directly, so they must be plain functions; they take no time, so nothing ever times out. `ask`
    answers `ask_user`; `read` answers `ask_model`, given the question, the data and the schema (without it, `ask`).
    """
    run = _Run(checked, ask, read)
    env: Env = {"now": now, **checked.plan.inputs}
    steps: Block = checked.plan.steps
    if checked.plan.answer is not None:
        steps = (*steps, Answer("answer", checked.plan.answer))
    try:
        run.block(steps, env)
    except _Failed as failure:
        return Reference("replan" if failure.replan else "failed", None, failure.message, run.calls)
    except _Leave as leave:
        return Reference(leave.outcome, leave.text, None, run.calls)
    return Reference("succeeded", None, None, run.calls)


class _Run:
    def __init__(
        self,
        checked: CheckedPlan,
        ask: Callable[[str], str] | None,
        read: Callable[[str, Json, dict[str, Json]], Json] | None,
    ) -> None:
        self.tools = checked.tools
        self.ask = ask
        self.read = read
        self.calls: list[tuple[str, dict[str, Json], str]] = []
        self.used = Program(checked.plan, checked.tools).used

    def block(self, steps: Block, env: Env) -> None:
        for step in steps:
            try:
                self.step(step, env)
            except _Absent:
                for name in assigned_names([step]):
                    env[name] = ABSENT
            except EvaluationError as error:
                raise _Failed(f"{error.message}; {error.help}" if error.help else error.message) from None

    def step(self, step: Step, env: Env) -> None:
        match step:
            case Call() | AskModel() | AskUser():
                self.call(step, env)
            case Let():
                for name, template in step.values:
                    try:
                        env[name] = _fill(template, env)
                    except _Absent:
                        env[name] = ABSENT
            case If():
                before = dict(env)
                side = step.then if _test(step.test, env) else step.otherwise
                self.block(side, env)
                _forget(env, before, {*assigned_names(step.then), *assigned_names(step.otherwise)})
            case ForEach():
                self.for_each(step, env)
            case While():
                self.loop(step, env)
            case Parallel():
                self.equals([((member,), env) for member in step.members])
            case Try():
                self.attempt(step, env)
            case Answer():
                raise _Leave("exit", "succeeded", render_text(_fill(step.text, env)))
            case Cannot():
                for template in step.missing:
                    _fill(template, env)
                raise _Leave("exit", "cannot", render_text(_fill(step.reason, env)))
            case Replan():
                raise _Leave("exit", "replan", render_text(_fill(step.reason, env)))
            case Note():
                _fill(step.text, env)
            case Break():
                raise _Leave("break")
            case Continue():
                raise _Leave("continue")

    def call(self, step: Call | AskModel | AskUser, env: Env) -> None:
        on_error = OnError() if isinstance(step, AskUser) else step.on_error
        try:
            if isinstance(step, Call):
                for name in step.depends_on:
                    _need(name, env)
                if step.on_error.value is not None:
                    for name in names_of(step.on_error.value):
                        _need(name, env)
                value = self.made(step, cast("dict[str, Json]", _fill(step.arguments, env)))
            else:
                value = self.asked(step, env)
        except (EvaluationError, ToolFailed) as error:
            match on_error.action:
                case "skip":
                    value = ABSENT
                case "value" if on_error.value is not None:
                    value = _fill(on_error.value, env)
                case "do":
                    before = dict(env)
                    for name in step.defines:
                        env[name] = before.get(name, ABSENT)
                    self.block(on_error.do, env)
                    return
                case _:
                    raise _Failed(str(error), replan=on_error.action == "replan") from None
        for name in step.defines:
            env[name] = value

    def asked(self, step: AskModel | AskUser, env: Env) -> Json:
        question = render_text(_fill(step.question, env))
        if isinstance(step, AskModel):
            data = _fill(step.data, env)
            if self.read is not None:
                return self.read(question, data, step.returns)
        if self.ask is None:
            raise ToolFailed("nobody can be asked")
        return self.ask(question)

    def made(self, step: Call, arguments: dict[str, Json]) -> Json:
        tool = self.tools[step.tool]
        normal = dict(tool.normalise(arguments))
        if not tool.accepts(normal):
            raise ToolFailed("; ".join(fault.message for fault in tool.faults(normal)))
        retry = step.retry or tool.retry
        is_safe = tool.idempotent or not tool.effects.has_effects
        attempts = retry.attempts if retry is not None and is_safe else 1
        while True:
            attempts -= 1
            try:
                value = tool.to_value(tool.bind(normal)())
            except Exception as error:
                self.calls.append((step.tool, normal, "failed"))
                if not attempts:
                    raise ToolFailed(str(error)) from None
            else:
                self.calls.append((step.tool, normal, "succeeded"))
                return value

    def attempt(self, step: Try, env: Env) -> None:
        try:
            self.block(step.body, env)
        except _Failed as failure:
            if step.error:
                env[step.error] = failure.message
            self.block(step.handler, env)

    def for_each(self, step: ForEach, env: Env) -> None:
        given = cast(Json, _fill(step.items, env))
        if not isinstance(given, list | dict):
            raise EvaluationError("`for_each` goes through a list")
        items: list[Json] = list(given)
        assigned = assigned_names(step.body) & self.used
        carried = [name for name in assigned if name in env and name != step.name]
        collected: list[Json] = []
        rounds: list[tuple[Block, Env]] = []
        for item in items:
            rounds.append((step.body, {**env, step.name: item}))
        self.equals(rounds, step, collected, carried, env)
        for name in step.defines:
            env[name] = collected

    def equals(
        self,
        rounds: list[tuple[Block, Env]],
        loop: ForEach | None = None,
        collected: list[Json] | None = None,
        carried: list[str] | None = None,
        outer: Env | None = None,
    ) -> None:
        """Run rounds or members of equal standing; the first failure counts, after the others have had their turn."""
        failure: _Failed | None = None
        leave: _Leave | None = None
        for steps, env in rounds:
            for name in carried or ():
                assert outer is not None
                env[name] = outer[name]
            try:
                self.block(steps, env)
                if loop is not None and loop.collect is not None and collected is not None:
                    try:
                        if loop.keep is None or _test(loop.keep, env):
                            collected.append(_fill(loop.collect, env))
                    except _Absent:
                        pass
                    except EvaluationError as error:
                        raise _Failed(error.message) from None
            except _Failed as error:
                ends = error.ends_plan or (failure is not None and failure.ends_plan)
                failure = failure or error
                failure.ends_plan = ends
                if carried or ends:
                    break
            except _Leave as left:
                if left.how == "continue":
                    pass
                elif left.how == "break":
                    break
                else:
                    leave = left
                    break
            finally:
                for name in carried or ():
                    assert outer is not None
                    outer[name] = env[name]
        if failure is not None:
            failure.ends_plan = failure.ends_plan or leave is not None
            raise failure
        if leave is not None:
            raise leave

    def loop(self, step: While, env: Env) -> None:
        rounds = 0
        while _test(step.test, env):
            if rounds >= step.max_iterations:
                raise _Failed("the loop was still going on")
            rounds += 1
            before = set(env)
            try:
                self.block(step.body, env)
            except _Leave as leave:
                if leave.how == "break":
                    break
                if leave.how == "exit":
                    raise
            finally:
                for name in set(env) - before:
                    del env[name]


def _need(name: str, env: Env) -> Json:
    value = env.get(name, ABSENT)
    if value is ABSENT:
        raise _Absent
    return value


def _fill(template: Template, env: Env) -> Any:
    return fill(template, {name: _need(name, env) for name in names_of(template)})


def _test(test: Expression, env: Env) -> bool:
    return bool(test.evaluate({name: _need(name, env) for name in test.names}))


def _forget(env: Env, before: Env, assigned: set[str]) -> None:
    """After a branch, a name that only the other side assigns keeps what it had, if it had anything."""
    for name in assigned:
        if name not in env and name in before:
            env[name] = before[name]
