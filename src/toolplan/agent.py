"""The life of one request, top to bottom: ask once, parse, check, review, run, answer.

    tools -> prompt -> (model) -> parse -> check -> review -> run -> answer
                ^                   | rejected |
                +---- diagnostics --+----------+

`Agent.run` is the whole story. Each stage is one call into the module of that name, and takes and gives plain values.
"""

from __future__ import annotations

import asyncio
import dataclasses
import datetime as dt
import inspect
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

from toolplan import show
from toolplan.answer import approval_text, cannot_text, failure_text, plain_results
from toolplan.check import CheckedPlan, Limits, check
from toolplan.diagnostics import Diagnostic, Place, Source, render_all
from toolplan.diagnostics.reading import cut_off
from toolplan.effects import INDEPENDENT
from toolplan.errors import ModelError, PlanRejected, UsageError
from toolplan.models import Message, Model, ModelRequest, Reply, Usage, model_from_name
from toolplan.parse import CannotPlan, Prose, parse
from toolplan.plan import AskModel, Plan, walk
from toolplan.plan_schema import plan_schema
from toolplan.policy import PlannedCall
from toolplan.policy import review as review_policy
from toolplan.prompt import (
    PromptMessage,
    StepReport,
    answer_messages,
    language_of,
    plan_messages,
    repair_messages,
)
from toolplan.reader import read_with_model
from toolplan.review import review_with_model
from toolplan.run import RunEvent, RunResult, run_plan
from toolplan.schedule import AskModelNow, AskUserNow, StepRecord
from toolplan.tools import Tool, ToolSet
from toolplan.values import Json

__all__ = [
    "Agent",
    "AgentEvent",
    "ModelAsked",
    "ModelReplied",
    "PlanAccepted",
    "PlanRefused",
    "ReplyStreamed",
    "Result",
]

_log = logging.getLogger("toolplan.agent")

Outcome: TypeAlias = Literal["succeeded", "failed", "waiting", "rejected"]
Language: TypeAlias = Literal["auto", "en", "zh"]
Notation: TypeAlias = Literal["json", "python"]
Approver: TypeAlias = Callable[[Sequence[PlannedCall], CheckedPlan], "bool | Awaitable[bool | None] | None"]
"""Asked once, before anything runs, about every call of the plan that needs a person's word.

Only True allows it; False refuses; None leaves it undecided, so that the run ends as `waiting`."""


@dataclass(frozen=True, slots=True)
class ModelAsked:
    """A model is being asked; `purpose` is plan, repair, answer or ask_model."""

    purpose: str
    model: str
    messages: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True)
class ReplyStreamed:
    """A piece of the reply with the plan has arrived."""

    text: str


@dataclass(frozen=True, slots=True)
class ModelReplied:
    """The reply is there."""

    purpose: str
    usage: Usage
    seconds: float


@dataclass(frozen=True, slots=True)
class PlanAccepted:
    """The plan has passed every check and may run."""

    checked: CheckedPlan


@dataclass(frozen=True, slots=True)
class PlanRefused:
    """The reply was no plan that may run; `attempt` counts from 1."""

    rejection: PlanRejected
    attempt: int


AgentEvent: TypeAlias = RunEvent | ModelAsked | ReplyStreamed | ModelReplied | PlanAccepted | PlanRefused
Watcher: TypeAlias = Callable[[AgentEvent], None]


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a request.

    `outcome`: `succeeded`; `failed` (a step failed, or the plan found that it cannot be done); `waiting` (for a
    person's answer or approval); `rejected` (no plan that may run, or the model says that it cannot be planned).
    `inferences` counts every model call; `diagnostics` are those of the last plan, warnings included.
    """

    outcome: Outcome
    answer: str
    steps: tuple[StepRecord, ...] = ()
    inferences: int = 0
    usage: Usage = field(default_factory=Usage)
    diagnostics: tuple[Diagnostic, ...] = ()
    plan: Plan | None = None
    error: str | None = None
    missing: tuple[str, ...] = ()
    approvals: tuple[PlannedCall, ...] = ()
    """The calls that a person has to allow, when that is what the run waits for."""
    seconds: float = 0.0
    run_id: str = ""
    source: Source | None = None
    """The text that `diagnostics` are about."""

    def to_dict(self) -> dict[str, Json]:
        """Return the result as the JSON document of `toolplan ask --json`."""
        steps: list[Json] = [step.to_dict() for step in self.steps]
        diagnostics: list[Json] = [diagnostic.to_dict(self.source) for diagnostic in self.diagnostics]
        return {
            "outcome": self.outcome,
            "answer": self.answer,
            "error": self.error,
            "inferences": self.inferences,
            "usage": self.usage.to_dict(),
            "seconds": round(self.seconds, 6),
            "steps": steps,
            "missing": list(self.missing),
            "approvals": [_waiting_call(call) for call in self.approvals],
            "diagnostics": diagnostics,
            "plan": show.to_json(self.plan) if self.plan is not None else None,
        }


class Agent:
    """A model and tools; answers requests with one inference and a checked plan.

    `model` is a `Model` or a name such as `"openai:gpt-5-mini"`; it may be None for an agent that only runs plans
    somebody already has. `tools` are functions, `Tool`s or `ToolSet`s.

    `answer` says who words the answer: `"template"` the plan if it has one, else one more inference; `"model"` always
    one more inference; `"none"` never an inference, so plain results when the plan has no template.
    `approve` is asked about the calls whose tool says `approval="ask"`; without it such a run ends as `waiting`.
    `ask_user` answers the plan's questions; without it a question ends the run as `waiting`.
    `base_url` and `api_key` go with a model given by name; without a key the provider's environment variable is read.
    `review=True` lets the model read an accepted plan once more before it runs; its objections send the plan back.
    `reader` is the model for `ask_model` steps (default: the same). `now` is the time the plan sees, as ISO text.
    `undeclared="independent"` is your word that tools without declared effects may overlap.
    `failure="independent"` runs everything that does not use a failed step's value.
    Raises `UsageError` for an unknown model name or a tool that cannot be described.
    """

    def __init__(
        self,
        model: Model | str | None = None,
        tools: Iterable[Tool | Callable[..., Any] | ToolSet] = (),
        *,
        language: Language = "auto",
        notation: Notation = "json",
        answer: Literal["template", "model", "none"] = "template",
        approve: Approver | None = None,
        ask_user: Callable[[str], str | Awaitable[str | None] | None] | None = None,
        reader: Model | str | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        context: str | None = None,
        extra_rules: Sequence[str] = (),
        now: str | Callable[[], str] | None = None,
        max_repairs: int = 2,
        review: bool = False,
        max_concurrency: int = 64,
        limits: Limits | None = None,
        undeclared: Literal["exclusive", "independent"] = "exclusive",
        failure: Literal["written-order", "independent"] = "written-order",
        dependencies: Any = None,
    ) -> None:
        _check_choice("answer", answer, ("template", "model", "none"))
        _check_choice("failure", failure, ("written-order", "independent"))
        _check_choice("undeclared", undeclared, ("exclusive", "independent"))
        _check_number("max_repairs", max_repairs, 0)
        _check_number("max_concurrency", max_concurrency, 1)
        self.model = model_from_name(model, base_url, api_key) if isinstance(model, str) else model
        self.reader = model_from_name(reader, base_url, api_key) if isinstance(reader, str) else reader or self.model
        self.tools = _with_undeclared(ToolSet.of(tools), undeclared)
        self.language: Language = language
        self.notation: Notation = notation
        self.answer = answer
        self.approve = approve
        self.ask_user = ask_user
        self.context = context
        self.extra_rules = tuple(extra_rules)
        self.now = now
        self.max_repairs = max_repairs
        self.review = review
        self.max_concurrency = max_concurrency
        self.limits = limits or Limits()
        self.failure = failure
        self.dependencies = dependencies

    # The story ----------------------------------------------------------------------------------------------------

    async def run(self, request: str, *, watch: Watcher | None = None) -> Result:
        """Answer the request. `watch` is told everything that happens, as it happens.

        Raises `ModelError` when the model cannot be reached; whatever goes wrong with the plan or a tool is in the
        result.
        """
        if not isinstance(request, str):  # pyright: ignore[reportUnnecessaryIsInstance] - not every caller checks types
            raise UsageError(f"a request is text, but this is a `{type(request).__name__}`")
        turn = _Turn(self, request, watch)
        messages: Sequence[PromptMessage] = self.prompt(request, now=turn.now)
        purpose = "plan"
        while True:
            reply = await turn.infer(messages, purpose)
            reading = None
            try:
                reading = self._parse(reply.plan_text)
                if isinstance(reading, Prose):
                    return turn.result("succeeded", reading.text)
                if isinstance(reading, CannotPlan):
                    text = cannot_text(reading.reason, reading.missing, turn.language)
                    return turn.result("rejected", text, error=reading.reason, missing=tuple(reading.missing))
                _refuse_cut_off(reading, reply)
                checked = self.check(reading)
                await turn.review(checked)
                break
            except PlanRejected as rejection:
                turn.refused(rejection)
                if turn.attempts > self.max_repairs:
                    return turn.rejected(rejection)
                purpose = "repair"
                read = reading if isinstance(reading, Plan) else None
                messages = self._repair_prompt(turn, reply, rejection, read)
        return await self._run_checked(checked, turn)

    def run_sync(self, request: str, *, watch: Watcher | None = None) -> Result:
        """Answer the request, from code that is not async. Raises `UsageError` inside a running event loop."""
        return self._run_sync("run", self.run(request, watch=watch))

    async def run_plan(
        self,
        plan: Plan | str | list[Json] | dict[str, Json],
        *,
        request: str = "",
        watch: Watcher | None = None,
    ) -> Result:
        """Check and run a plan that somebody already has, as text, JSON data or a `Plan`. No inference to plan it.

        As in a model's reply, plain prose is an answer. Raises `UsageError` for anything else.
        """
        given = cast(object, plan)
        if not isinstance(given, Plan | str | list | dict):
            raise UsageError(f"a plan is text, a list or an object, but this is a `{type(given).__name__}`")
        turn = _Turn(self, request, watch)
        try:
            reading = plan if isinstance(plan, Plan) else self._parse(plan)
            if isinstance(reading, Prose):
                return turn.result("succeeded", reading.text)
            if isinstance(reading, CannotPlan):
                text = cannot_text(reading.reason, reading.missing, turn.language)
                return turn.result("rejected", text, error=reading.reason, missing=tuple(reading.missing))
            checked = self.check(reading)
        except PlanRejected as rejection:
            turn.refused(rejection)
            return turn.rejected(rejection)
        return await self._run_checked(checked, turn)

    def run_plan_sync(
        self,
        plan: Plan | str | list[Json] | dict[str, Json],
        *,
        request: str = "",
        watch: Watcher | None = None,
    ) -> Result:
        """`run_plan`, from code that is not async."""
        return self._run_sync("run_plan", self.run_plan(plan, request=request, watch=watch))

    async def close(self) -> None:
        """Close the models' connections of the running event loop. They open again when needed."""
        for model in {id(model): model for model in (self.model, self.reader)}.values():
            close = getattr(model, "close", None)
            if close is not None:
                await close()

    def prompt(self, request: str, *, now: str | None = None) -> tuple[PromptMessage, ...]:
        """Return exactly the messages that a model would get for this request."""
        return plan_messages(
            request,
            self.tools,
            language=self.language,
            notation=self.notation,
            now=now or self._now(),
            context=self.context,
            extra_rules=self.extra_rules,
        )

    def check(self, plan: Plan) -> CheckedPlan:
        """Return the plan checked against this agent's tools and limits. Raises `PlanRejected`."""
        checked = check(plan, self.tools, self.limits)
        forbidden = review_policy(checked.plan, self.tools).forbidden
        if forbidden:
            raise PlanRejected(forbidden, plan.source)
        return checked

    # Its parts ----------------------------------------------------------------------------------------------------

    async def _run_checked(self, checked: CheckedPlan, turn: _Turn) -> Result:
        if self.reader is None and any(isinstance(step, AskModel) for step in walk(checked.plan.steps)):
            raise UsageError(
                "the plan has an `ask_model` step and this agent has no model to ask; give `Agent(model=...)`, or "
                '`reader=...`, a name such as "openai:gpt-5-mini"'
            )
        turn.accepted(checked)
        asks = review_policy(checked.plan, self.tools).asks
        if asks:
            allowed = await self._approved(asks, checked)
            if not allowed:
                calls = [(call.step, call.tool) for call in asks]
                text = approval_text(calls, turn.language, refused=allowed is False)
                if allowed is None:
                    return turn.result("waiting", text, error="the plan waits for approval", approvals=asks)
                return turn.result("rejected", text, error="the plan was not approved", approvals=asks)
        run = await run_plan(
            checked,
            now=turn.now,
            max_concurrency=self.max_concurrency,
            failure=self.failure,
            dependencies=self.dependencies,
            read=turn.read if self.reader is not None else None,
            ask=self._ask if self.ask_user is not None else None,
            watch=turn.watch,
        )
        return await self._answer(run, turn)

    async def _answer(self, run: RunResult, turn: _Turn) -> Result:
        if run.outcome == "waiting":
            return turn.result("waiting", run.text or "", run)
        if run.outcome == "cannot":
            return turn.result("failed", cannot_text(run.text or "", run.missing, turn.language), run)
        if run.outcome == "replan":
            error = run.error or f"the plan asks to plan again: {run.text}"
            return turn.result("failed", error, run, error=error)
        if run.outcome != "succeeded":
            changes = frozenset(tool.name for tool in self.tools if tool.effects.has_effects)
            text = failure_text(run.error, run.failed_step, run.steps, changes, turn.language)
            return turn.result("failed", text, run)
        if self.answer != "model" and run.text is not None:
            return turn.result("succeeded", run.text, run)
        if self.answer == "none" or self.model is None or not turn.request:
            return turn.result("succeeded", run.text or plain_results(run.steps, turn.language), run)
        messages = answer_messages(
            turn.request,
            [_report(step) for step in run.steps],
            language=self.language,
            now=turn.now,
            context=self.context,
        )
        try:
            reply = await turn.infer(messages, "answer")
        except ModelError as error:  # what was done is done; the user must hear of it all the same
            text = run.text or plain_results(run.steps, turn.language)
            return turn.result("succeeded", text, run, error=f"the answer could not be worded: {error}")
        return turn.result("succeeded", reply.text.strip(), run)

    async def _approved(self, asks: Sequence[PlannedCall], checked: CheckedPlan) -> bool | None:
        if self.approve is None:
            return None
        answer = self.approve(asks, checked)
        allowed = cast(object, await answer if inspect.isawaitable(answer) else answer)
        if allowed is None or isinstance(allowed, bool):
            return allowed
        raise UsageError(f"`approve` must return True, False or None (undecided), but returned {allowed!r}")

    async def _ask(self, command: AskUserNow) -> str | None:
        assert self.ask_user is not None
        answer = self.ask_user(command.question)
        return await answer if inspect.isawaitable(answer) else answer

    def _parse(self, text: str | list[Json] | dict[str, Json]) -> Plan | Prose | CannotPlan:
        return parse(text, notation="auto", tools=self.tools, asked_for=self.notation)

    def _repair_prompt(
        self, turn: _Turn, reply: Reply, rejection: PlanRejected, plan: Plan | None
    ) -> tuple[PromptMessage, ...]:
        return repair_messages(
            turn.request,
            reply.plan_text,
            render_all(rejection.diagnostics, rejection.source),
            self.tools,
            plan=plan,
            language=self.language,
            notation=self.notation,
            now=turn.now,
            context=self.context,
            extra_rules=self.extra_rules,
        )

    def _run_sync(self, name: str, work: Coroutine[Any, Any, Result]) -> Result:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            work.close()
            raise UsageError(f"`{name}_sync` was called inside a running event loop; write `await agent.{name}(...)`")

        async def closing() -> Result:
            try:
                return await work
            finally:
                await self.close()

        return asyncio.run(closing())

    def _now(self) -> str:
        if callable(self.now):
            return self.now()
        return self.now or dt.datetime.now().isoformat(timespec="seconds")


class _Turn:
    """What is counted and remembered while one request is answered."""

    def __init__(self, agent: Agent, request: str, watch: Watcher | None) -> None:
        self.agent = agent
        self.request = request
        self.watch = watch
        self.now = agent._now()  # pyright: ignore[reportPrivateUsage] - its own other half
        self.language: Literal["en", "zh"] = language_of(request) if agent.language == "auto" else agent.language
        self.inferences = 0
        self.usage = Usage()
        self.attempts = 0
        self.plan: Plan | None = None
        self.warnings: tuple[Diagnostic, ...] = ()
        self.started = time.perf_counter()

    async def infer(self, messages: Sequence[PromptMessage], purpose: str) -> Reply:
        """Ask the model once; count it."""
        model = self.agent.model
        if model is None:
            raise UsageError('this agent has no model; give `Agent(model=...)` a name such as "openai:gpt-5-mini"')
        planning = purpose in ("plan", "repair")
        request = ModelRequest(
            tuple(Message(message.role, message.content) for message in messages),
            schema=self._schema() if planning else None,
            schema_stated=True,
            purpose=purpose,
        )
        return await self._ask(model, request, self._streamed if planning and self.watch else None)

    async def review(self, checked: CheckedPlan) -> None:
        """Let the model read the plan once more, where that is wanted. Raises `PlanRejected` with its objections."""
        model = self.agent.model
        if not self.agent.review or model is None:
            return
        objections = await review_with_model(
            self.request,
            checked.plan,
            self.agent.tools,
            lambda request: self._ask(model, request),
            language=self.agent.language,
            now=self.now,
            context=self.agent.context,
        )
        if objections:
            raise PlanRejected(objections, checked.plan.source)

    async def read(self, command: AskModelNow) -> Json:
        """Carry out an `ask_model` step with the reader model."""
        reader = self.agent.reader
        assert reader is not None
        return await read_with_model(command, lambda request: self._ask(reader, request), language=self.agent.language)

    async def _ask(self, model: Model, request: ModelRequest, on_text: Callable[[str], None] | None = None) -> Reply:
        self.tell(ModelAsked(request.purpose, model.name, request.messages))
        started = time.perf_counter()
        self.inferences += 1
        reply = await model.ask(request, on_text)
        self.usage += reply.usage
        self.tell(ModelReplied(request.purpose, reply.usage, time.perf_counter() - started))
        return reply

    def _schema(self) -> dict[str, Json] | None:
        return plan_schema(self.agent.tools) if self.agent.notation == "json" else None

    def _streamed(self, text: str) -> None:
        self.tell(ReplyStreamed(text))

    def accepted(self, checked: CheckedPlan) -> None:
        """Note that a plan may run."""
        self.plan = checked.plan
        self.warnings = checked.warnings
        self.tell(PlanAccepted(checked))

    def refused(self, rejection: PlanRejected) -> None:
        """Note that a reply was no plan that may run."""
        self.attempts += 1
        self.tell(PlanRefused(rejection, self.attempts))

    def rejected(self, rejection: PlanRejected) -> Result:
        """Return the result of a request for which no plan could be accepted."""
        answer = render_all(rejection.diagnostics, rejection.source)
        result = self.result("rejected", answer, error=str(rejection))
        return dataclasses.replace(result, diagnostics=rejection.diagnostics, source=rejection.source)

    def result(
        self,
        outcome: Outcome,
        answer: str,
        run: RunResult | None = None,
        *,
        error: str | None = None,
        missing: tuple[str, ...] = (),
        approvals: tuple[PlannedCall, ...] = (),
    ) -> Result:
        """Return the result with everything that was counted."""
        return Result(
            outcome,
            answer,
            run.steps if run else (),
            self.inferences,
            self.usage,
            self.warnings,
            self.plan,
            error or (run.error if run else None),
            missing or (run.missing if run else ()),
            approvals,
            time.perf_counter() - self.started,
            run.run_id if run else "",
            self.plan.source if self.plan else None,
        )

    def tell(self, event: AgentEvent) -> None:
        """Tell whoever watches. A watcher that fails spoils nothing, as in a run."""
        if self.watch is None:
            return
        try:
            self.watch(event)
        except Exception:
            _log.exception("a watcher failed on %s", type(event).__name__)


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise UsageError(f"`{name}` is {value!r}; it may be {', '.join(map(repr, choices))}")


def _check_number(name: str, value: int, least: int) -> None:
    given = cast(object, value)
    if isinstance(given, bool) or not isinstance(given, int) or given < least:
        raise UsageError(f"`{name}` is {value!r}; it is a number of at least {least}")


def _with_undeclared(tools: ToolSet, undeclared: str) -> ToolSet:
    if undeclared == "exclusive":
        return tools
    return ToolSet.of(tool if tool.effects.declared else tool.with_effects(INDEPENDENT) for tool in tools)


def _refuse_cut_off(plan: Plan, reply: Reply) -> None:
    """Raise `PlanRejected` for a plan out of a reply that ran into its output limit, unless it is certainly whole.

    A JSON value that needed no mending is. A program may have lost lines without a trace.
    """
    if reply.is_cut_off and (plan.notation == "python" or plan.repairs):
        end = len(plan.source.text)
        raise PlanRejected([cut_off(Place(start=max(0, end - 1), end=end), [])], plan.source)


def _waiting_call(call: PlannedCall) -> Json:
    """Return a call that waits for approval as JSON; what comes from earlier steps is the template that says which."""
    arguments = show.template_json(call.arguments)
    return {"id": call.step, "tool": call.tool, "arguments": arguments, "writes": list(call.writes)}


def _report(step: StepRecord) -> StepReport:
    return StepReport(step.id, step.tool, step.outcome, step.arguments or {}, step.result, step.error)
