"""The meaning of a plan, in the plainest form: one step after the other, as written.

No dataflow, no overlap, no cleverness; the scheduler is compared with this. Sync tools only.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
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
from toolplan.schedule import Program, StepRecord
from toolplan.tools import Tool
from toolplan.tools.sameness import call_key, effects_of
from toolplan.values import Json, kind_of

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
    failed_step: str | None = None
    calls: list[tuple[str, dict[str, Json], str]] = field(default_factory=list[tuple[str, dict[str, Json], str]])
    """Every call that was made: tool, arguments, how it ended."""
    records: list[StepRecord] = field(default_factory=list[StepRecord])
    """A row for each call and question that was reached, as a run has them; its attempts are one row."""
    names: dict[str, Json] = field(default_factory=dict[str, Json])
    """What the names outside of loops stand for in the end, or where the plan stopped."""
    notes: list[str] = field(default_factory=list[str])
    """The notes that are shown."""


class _Failed(Exception):
    def __init__(self, message: str, where: str = "", *, replan: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.replan = replan
        self.left = ""
        """One of the equals left the loop's round (`continue`), the loop (`break`) or the plan (`exit`) after another
        had failed: nothing behind it is reached there."""


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
    failure: str = "written-order",
    durations: Callable[[str], float] | None = None,
    effects_at: Callable[[str], float | None] | None = None,
) -> Reference:
    """Return how the plan ends when its steps run one after the other.

    Tools are called directly, so they must be plain functions. `ask` answers `ask_user`; `read` answers `ask_model`,
    given the question, the data and the schema (without it, `ask`). `failure` is that of the agent. `durations` says
    how many seconds the calls of a tool take (none, unless it is given), which matters only for timeouts, and
    `effects_at` after how many they have their effect: a call that is stopped before has none.
    """
    run = _Run(checked, ask, read, failure == "independent", durations, effects_at)
    known = {name: value.data for name, value in checked.known.values.items()}
    env: Env = {**known, "now": now, **checked.plan.inputs}
    steps: Block = checked.plan.steps
    if checked.plan.answer is not None:
        steps = (*steps, Answer("answer", checked.plan.answer))
    outcome, text = "succeeded", None
    try:
        run.block(steps, env)
    except _Failed as failed:
        run.failures.append(failed)
    except _Leave as leave:
        outcome, text = leave.outcome, leave.text
    names = {name: value for name, value in env.items() if value is not ABSENT and name != "now"}
    if run.failures:
        first = run.failures[0]
        outcome = "replan" if first.replan else "failed"
        return Reference(outcome, None, first.message, first.where, run.calls, run.records, names, run.notes)
    return Reference(outcome, text, None, None, run.calls, run.records, names, run.notes)


class _Run:
    def __init__(
        self,
        checked: CheckedPlan,
        ask: Callable[[str], str] | None,
        read: Callable[[str, Json, dict[str, Json]], Json] | None,
        independent: bool,
        durations: Callable[[str], float] | None,
        effects_at: Callable[[str], float | None] | None,
    ) -> None:
        self.tools = checked.tools
        self.ask = ask
        self.read = read
        self.independent = independent
        self.durations = durations
        self.effects_at = effects_at
        self.calls: list[tuple[str, dict[str, Json], str]] = []
        self.records: list[StepRecord] = []
        self.notes: list[str] = []
        self.failures: list[_Failed] = []
        """With `failure="independent"`: what has failed so far, outside of any `try`."""
        self.tries = 0
        """How many bodies of a `try` are around."""
        self.rounds: list[int] = []
        self.used = Program.of(checked).used
        self.before = effects_of(checked.known, checked.tools)

    def label(self, step: Step) -> str:
        return step.id + "".join(f"[{number}]" for number in self.rounds)

    def block(self, steps: Block, env: Env) -> None:
        for step in steps:
            try:
                self.step(step, env)
            except _Absent:
                _lose(env, step.defines if isinstance(step, Call | AskModel) else assigned_names([step]))
            except EvaluationError as error:
                self.fail(_Failed(_words(error), self.label(step)), assigned_names([step]), env)
            except _Failed as failed:
                self.fail(failed, assigned_names([step]), env)

    def fail(self, failed: _Failed, names: Iterable[str], env: Env) -> None:
        """Fail what is around the step; or, where failures are independent, only what uses these names."""
        if not self.independent or self.tries:
            raise failed
        self.failures.append(failed)
        _lose(env, names)

    def step(self, step: Step, env: Env) -> None:
        match step:
            case Call() | AskModel() | AskUser():
                self.call(step, env)
            case Let():
                self.let(step, env)
            case If():
                self.block(step.then if _test(step.test, env) else step.otherwise, env)
                _know(env, step)
            case ForEach():
                self.for_each(step, env)
            case While():
                self.loop(step, env)
            case Parallel():
                self.group(step, env)
            case Try():
                self.attempt(step, env)
                _know(env, step)
            case Answer():
                raise _Leave("exit", "succeeded", render_text(_fill(step.text, env)))
            case Cannot():
                for template in step.missing:
                    _fill(template, env)
                raise _Leave("exit", "cannot", render_text(_fill(step.reason, env)))
            case Replan():
                raise _Leave("exit", "replan", render_text(_fill(step.reason, env)))
            case Note():
                self.notes.append(render_text(_fill(step.text, env)))
            case Break():
                raise _Leave("break")
            case Continue():
                raise _Leave("continue")

    def let(self, step: Let, env: Env) -> None:
        if len(step.values) > 1:
            self.block(tuple(_singly((step,))), env)
            return
        for name, template in step.values:
            env[name] = _fill(template, env)

    # Calls and questions ------------------------------------------------------------------------------------------

    def call(self, step: Call | AskModel | AskUser, env: Env) -> None:
        on_error = OnError() if isinstance(step, AskUser) else step.on_error
        tool = step.tool if isinstance(step, Call) else "ask_model" if isinstance(step, AskModel) else "ask_user"
        record = StepRecord(self.label(step), tool)
        self.records.append(record)
        try:
            for name in (*(step.depends_on if isinstance(step, Call) else ()), *_names_in(on_error.value)):
                _need(name, env)
            if isinstance(step, Call):
                value = self.made(step, cast("dict[str, Json]", _fill(step.arguments, env)), record)
            else:
                value = self.asked(step, env, record)
        except _Absent:
            record.outcome = "skipped"
            raise
        except (EvaluationError, ToolFailed) as error:
            record.outcome = "unknown" if record.outcome == "unknown" else "failed"
            record.error = _words(error)
            match on_error.action:
                case "skip":
                    value = ABSENT
                case "value" if on_error.value is not None:
                    try:
                        value = record.result = _fill(on_error.value, env)
                    except EvaluationError as too:
                        record.error = f"{record.error}; its `on_error` value failed too: {too.message}"
                        raise _Failed(record.error, record.id) from None
                case "do":
                    for name in step.defines:
                        env.setdefault(name, ABSENT)
                    self.block(on_error.do, env)
                    _know(env, step)
                    return
                case _:
                    raise _Failed(record.error, record.id, replan=on_error.action == "replan") from None
        else:
            record.outcome, record.result = "succeeded", value
        for name in step.defines:
            env[name] = value
        _know(env, step)

    def asked(self, step: AskModel | AskUser, env: Env, record: StepRecord) -> Json:
        question = render_text(_fill(step.question, env))
        if isinstance(step, AskModel):
            data = _fill(step.data, env)
            record.attempts = 1
            if self.read is not None:
                return self.read(question, data, step.returns)
        record.attempts = 1
        if self.ask is None:
            raise ToolFailed("nobody can be asked")
        return self.ask(question)

    def made(self, step: Call, arguments: dict[str, Json], record: StepRecord) -> Json:
        tool = self.tools[step.tool]
        normal = record.arguments = dict(tool.normalise(arguments))
        if not tool.accepts(normal):
            faults = "; ".join(fault.message for fault in tool.faults(normal))
            raise ToolFailed(f"the arguments do not fit `{tool.name}`: {faults}")
        may_repeat = tool.idempotent or not tool.effects.has_effects or step.again is not None
        if not may_repeat and (before := self.before.get(call_key(tool, normal))) is not None:
            raise ToolFailed(before.not_again)
        retry = step.retry or tool.retry
        attempts = retry.attempts if retry is not None else 1
        is_safe = tool.idempotent or not tool.effects.has_effects
        limit = step.timeout_seconds if step.timeout_seconds is not None else tool.timeout_seconds
        while True:
            attempts -= 1
            record.attempts += 1
            is_late = limit is not None and self.durations is not None and self.durations(tool.name) > limit
            try:
                value = self.tried(tool, normal, limit if is_late else None)
            except Exception as error:
                self.calls.append((step.tool, normal, "failed"))
                nothing = isinstance(error, ToolFailed) and error.effect_happened is False and not is_late
                if not attempts or not (is_safe or nothing):
                    record.outcome = "unknown" if is_late and tool.effects.has_effects else "failed"
                    raise ToolFailed(str(error)) from None
            else:
                self.calls.append((step.tool, normal, "succeeded"))
                return value

    def tried(self, tool: Tool, arguments: dict[str, Json], limit: float | None) -> Json:
        """Call once; with a limit, it takes longer than that, and has its effect if that comes before."""
        if limit is None:
            return tool.to_value(tool.bind(arguments)())
        effect_at = self.effects_at(tool.name) if self.effects_at is not None else None
        if (effect_at or 0.0) <= limit:
            with contextlib.suppress(Exception):
                tool.bind(arguments)()
        raise ToolFailed(f"the call took longer than {limit:g} seconds")

    # Bodies -------------------------------------------------------------------------------------------------------

    def attempt(self, step: Try, env: Env) -> None:
        self.tries += 1
        try:
            self.block(step.body, env)
        except _Failed as failed:
            self.tries -= 1
            if step.error:
                env[step.error] = failed.message
            self.block(step.handler, env)
        except _Leave:
            self.tries -= 1
            raise
        else:
            self.tries -= 1

    def group(self, step: Parallel, env: Env) -> None:
        """Run the members; one that fails leaves its names without a value for those after it."""
        first: _Failed | None = None
        left: Env = {}
        values = dict(env)
        """The newest value of each name, without those that have none."""
        leave: _Leave | None = None
        for member in _singly(step.members):
            try:
                self.block((member,), env)
            except _Failed as failed:
                names = assigned_names([member])
                if first is None:
                    first, left = failed, {name: env[name] for name in names if name in env}
                else:
                    first.left = first.left or failed.left
                _lose(env, names)
                if first.left:
                    break
            except _Leave as left_by:
                leave = left_by
                break
            values.update((name, value) for name, value in env.items() if value is not ABSENT)
        if first is not None:
            env.update({name: values[name] for name in assigned_names(step.members) if name in values} | left)
            first.left = first.left or (leave.how if leave is not None else "")
            raise first
        if leave is not None:
            raise leave

    def for_each(self, step: ForEach, env: Env) -> None:
        given = cast(Json, _fill(step.items, env))
        if not isinstance(given, list | dict):
            if given is None:
                raise EvaluationError("there is nothing to go through: the list is empty (null)")
            raise EvaluationError(f"`for_each` goes through a list, but this is a {kind_of(given)}")
        carried = [name for name in assigned_names(step.body) & self.used if name in env and name != step.name]
        collected: list[Json] = []
        first: _Failed | None = None
        leave: _Leave | None = None
        outside = dict(env)
        for number, item in enumerate(given):
            inner: Env = {**outside, **{name: env[name] for name in carried}, step.name: item}
            self.rounds.append(number)
            try:
                self.block(step.body, inner)
                self.collect(step, inner, collected)
            except _Failed as failed:
                left, failed.left = failed.left, ""
                first = first or failed
                first.left = "exit" if left == "exit" else ""
                if carried or left in ("exit", "break"):
                    break
            except _Leave as left:
                if left.how == "break":
                    break
                if left.how == "exit":
                    leave = left
                    break
            finally:
                self.rounds.pop()
                env.update((name, inner[name]) for name in carried)
        if first is not None:
            first.left = "exit" if leave is not None else first.left
            raise first
        if leave is not None:
            raise leave
        for name in step.defines:
            env[name] = collected

    def collect(self, step: ForEach, env: Env, collected: list[Json]) -> None:
        if step.collect is None:
            return
        try:
            for name in (*names_of(step.collect), *(step.keep.names if step.keep else ())):
                _need(name, env)
            if step.keep is None or _test(step.keep, env):
                collected.append(_fill(step.collect, env))
        except _Absent:
            pass
        except EvaluationError as error:
            self.fail(_Failed(_words(error), self.label(step)), (), env)

    def loop(self, step: While, env: Env) -> None:
        number = 0
        while _test(step.test, env):
            if number >= step.max_iterations:
                raise EvaluationError(
                    f"the loop was still going on after its {step.max_iterations} rounds (max_iterations)",
                    help="raise `max_iterations`, or make the condition end earlier",
                )
            before = set(env)
            self.rounds.append(number)
            number += 1
            try:
                self.block(step.body, env)
            except _Leave as leave:
                if leave.how == "break":
                    break
                if leave.how == "exit":
                    raise
            finally:
                self.rounds.pop()
                for name in set(env) - before:
                    del env[name]


def _singly(steps: Iterable[Step]) -> Iterator[Step]:
    """Yield the steps; a `let` of several values as one of each."""
    for step in steps:
        if isinstance(step, Let):
            yield from (Let(step.id, (value,), step.place) for value in step.values)
        else:
            yield step


def _need(name: str, env: Env) -> Json:
    value = env.get(name, ABSENT)
    if value is ABSENT:
        raise _Absent
    return value


def _fill(template: Template, env: Env) -> Any:
    return fill(template, {name: _need(name, env) for name in names_of(template)})


def _test(test: Expression, env: Env) -> bool:
    return bool(test.evaluate({name: _need(name, env) for name in test.names}))


def _names_in(template: Template | None) -> frozenset[str]:
    return names_of(template) if template is not None else frozenset()


def _words(error: Exception) -> str:
    help = error.help if isinstance(error, EvaluationError) else None
    return f"{error.args[0]}; {help}" if help else str(error.args[0])


def _lose(env: Env, names: Iterable[str]) -> None:
    for name in names:
        env[name] = ABSENT


def _know(env: Env, step: Step) -> None:
    """After a branch, what only the other side assigns is a name too: one without a value, unless it had one."""
    for name in assigned_names([step]):
        env.setdefault(name, ABSENT)
