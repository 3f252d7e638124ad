"""What is counted and remembered while one request is answered, and the only caller of a model.

A turn belongs to one request of one agent. Every inference goes through it, so none can go uncounted (P1).
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Literal, cast

from toolplan.agent_events import (
    AgentEvent,
    ModeChosen,
    ModelAsked,
    ModelReplied,
    PlanAccepted,
    PlanRefused,
    Replanning,
    ReplyStartsOver,
    ReplyStreamed,
    ToolsShown,
    Watcher,
)
from toolplan.answer import approval_text, cannot_text, failure_text, unsettled_text
from toolplan.approval import Card
from toolplan.check import CheckedPlan
from toolplan.diagnostics import Diagnostic, render_all
from toolplan.errors import ModelError, PlanRejected, UsageError
from toolplan.journal import Inferred, Replayed, RunBegun, RunWriter
from toolplan.known import NOTHING_KNOWN, Known
from toolplan.models import Listener, Message, Model, ModelRequest, Reply, ToolSpec, Usage, plan_form
from toolplan.models.replies import without_thinking
from toolplan.origins import Origins
from toolplan.parse import CannotPlan, Prose
from toolplan.parse.prefix import PlanPrefix
from toolplan.past import NO_PAST, Past
from toolplan.plan import AskUser, Call, Plan, Step, walk
from toolplan.plan_schema import plan_schema
from toolplan.policy import PlannedCall, Review, review
from toolplan.prompt import Form, PromptMessage, language_of
from toolplan.reader import read_with_model
from toolplan.recording import Record, asked_of, grant, version
from toolplan.result import Outcome, Result
from toolplan.retelling import Retelling
from toolplan.review import review_with_model
from toolplan.route import Offer
from toolplan.run import EarlyCalls, RunResult, StepFinished, StepLeftOut, StepStarted
from toolplan.run.approvals import Approvals
from toolplan.schedule import AskModelNow, StepRecord
from toolplan.schedule.early import in_a_row
from toolplan.small_plan_schema import small_plan_schema
from toolplan.tools.refusals import cleaned_diagnostic, refusal_without_secrets
from toolplan.tools.secret_words import secret_words
from toolplan.tools.seen_secrets import SeenSecrets
from toolplan.values import Json

if TYPE_CHECKING:
    from toolplan.agent import Agent
    from toolplan.loop.heard import Ear

__all__ = ["Turn", "form_of"]

_log = logging.getLogger("toolplan.agent")

ROOM = 16_000
SMALL_ROOM = 4_000
"""What has run is shown in so many characters, about: to a model, and to one with room for a few thousand tokens."""

_GOES_ON = frozenset({"plan", "repair", "replan", "loop"})
"""What a model is asked for again when its reply is empty."""


def form_of(agent: Agent) -> Form:
    """Return what the agent's model is asked for: a plan in the agent's notation, or a short one if it is small."""
    is_small = agent.notation == "json" and agent.model is not None and plan_form(agent.model) == "small"
    return "small" if is_small else agent.notation


class Turn:
    """What is counted and remembered while one request is answered."""

    def __init__(
        self, agent: Agent, request: str, now: str, watch: Watcher | None, early: Callable[[Turn], EarlyCalls]
    ) -> None:
        self.agent = agent
        self.request = request
        self.watch = watch
        self.now = now
        self.language: Literal["en", "zh"] = language_of(request) if agent.language == "auto" else agent.language
        self.inferences = 0
        self.inferences_before = 0
        """How many of them earlier processes made."""
        self.usage = Usage()
        self.limits = agent.limits
        self.max_seconds = agent.max_seconds
        self.attempts = 0
        self.asked: Sequence[PromptMessage] = ()
        """The messages that the first plan was asked for with."""
        self.plan_text = ""
        """The plan that runs, as the model wrote it."""
        self.messages: Sequence[PromptMessage] = ()
        """The messages that it was asked for with."""
        self.replans = 0
        self.mode = "plan"
        self.mode_used: Literal["plan", "loop"] = "plan"
        self.mode_reason = ""
        self.past = NO_PAST
        self.known: Known | None = None
        """What the last plan has left, where somebody will want to know."""
        self.talk: tuple[Message, ...] = ()
        """What was said in a loop, from the request to the answer."""
        self.steps: tuple[StepRecord, ...] = ()
        self.omitted: dict[str, int] = {}
        """What has happened so far, over all plans."""
        self.run: RunResult | None = None
        """The last plan's run."""
        self.going: dict[str, StepRecord] | None = None
        """The steps of the run that goes on, as far as they got, where somebody wants to know of a broken off one."""
        self.origins = Origins(request)
        self.trust_repairs = agent.trust_repairs
        """Whether what had to be mended of a plan is trusted; not where the process that began the run did not."""
        self.approvals = Approvals(agent.approve, said=self.origins.said)
        self.record = Record(agent.journal, agent.tools)
        self.approvals.decided = self.record.decided
        self.retelling: Retelling | None = None
        """What an earlier process heard and did in the loop that goes on."""
        self._reviewed: Review | None = None
        self.card: Card | None = None
        """What a person was asked about last."""
        self.offer = Offer(agent.tools, None, request)
        self.plan: Plan | None = None
        self.warnings: tuple[Diagnostic, ...] = ()
        self.started = time.perf_counter()
        self.secrets = SeenSecrets()
        """What the calls of this request have shown to be secret."""
        self.approvals.secrets = self.secrets
        self.early = early(self)
        self._arriving: PlanPrefix | None = None

    def begin(self, mode: Literal["plan", "loop", "auto"], past: Past) -> None:
        """Set how the request is to be answered, and what went before it."""
        self.mode, self.past = mode, past
        if past != NO_PAST and self.record.journal is not None:
            self.record.note(past.to_entry())
        self.origins.begin(past.said, past.sources, past.has_read_untrusted, past.known)
        self.offer = Offer(self.agent.tools, self.agent.router, self.request, past.used)
        self.mode_used = "loop" if mode == "loop" else "plan"
        self.mode_reason = "the model made a plan" if mode == "auto" else "it was asked for"

    @property
    def keeps_names(self) -> bool:
        """Whether results that a plan does not use itself are kept, for what goes on after it."""
        return self.mode_used == "plan" and (self.can_replan or self.past is not NO_PAST)

    @property
    def form(self) -> Form:
        """What the model is asked for."""
        return form_of(self.agent)

    @property
    def room(self) -> int:
        """How many characters of what has run a model is shown at once, about."""
        return SMALL_ROOM if self.form == "small" else ROOM

    @property
    def starts_early(self) -> bool:
        """Whether calls may start while a reply arrives; with a budget of calls, a run's own too, none does."""
        return self.agent.early_start and self.limits.max_calls is None

    @property
    def can_replan(self) -> bool:
        """Whether the rest of a plan that stops may be asked for anew."""
        may = self.replans < self.agent.max_replans and self.agent.model is not None and bool(self.request)
        return may and not self.record.has_failed

    @property
    def spent(self) -> str | None:
        """Why no more plans may follow, when the number of them is used up."""
        most = self.agent.max_replans
        return f"no more plans may follow (max_replans={most})" if self.replans >= most else None

    async def infer(self, messages: Sequence[PromptMessage], purpose: str, *, known: Known = NOTHING_KNOWN) -> Reply:
        """Ask the model once; count it. `known` is what a plan that goes on after another builds on."""
        model = self.agent.model
        if model is None:
            raise UsageError('this agent has no model; give `Agent(model=...)` a name such as "openai:gpt-5-mini"')
        planning = purpose in ("plan", "repair", "replan")
        request = ModelRequest(
            tuple(Message(message.role, message.content) for message in messages),
            schema=self._schema(known is not NOTHING_KNOWN) if planning else None,
            schema_stated=True,
            purpose=purpose,
        )
        follows = planning and self.starts_early and self.early.is_open
        self._arriving = None
        if follows:
            self._follow(known)

        def start_over() -> None:
            self.starts_over()
            if follows:
                self._follow(known)

        listens = planning and (self.watch is not None or follows)
        return await self._ask(model, request, Listener(self._streamed, start_over) if listens else None)

    def _follow(self, known: Known) -> None:
        """Expect a plan from its beginning, for the calls that may start while it arrives."""
        self.early.begin(known)
        self._arriving = PlanPrefix(self.agent.tools, self.agent.notation, known.steps + 1)

    async def next_turn(self, messages: Sequence[Message], tools: tuple[ToolSpec, ...], ear: Ear | None) -> Reply:
        """Return the model's next calls, or its answer; count it. `ear` gets the reply while it arrives.

        A loop that goes on gets what the model has said before, as long as there is any.
        """
        if self.retelling is not None and (told := self.retelling.reply()) is not None:
            self.counted_before(told.usage)
            return told
        model = self.agent.model
        if model is None:
            raise UsageError('this agent has no model; give `Agent(model=...)` a name such as "openai:gpt-5-mini"')
        if self.retelling is not None:
            self.retelling.live()
        request = ModelRequest(tuple(messages), tools=tools, purpose="loop")
        listener = None if ear is None else Listener(ear.hear, ear.start_over, ear.called)
        reply = await self._ask(model, request, listener)
        if ear is not None:
            ear.close(reply.finish_reason)
        return reply

    def starts_over(self) -> None:
        """Tell that what the model said has broken off, and begins anew."""
        self.tell(ReplyStartsOver())

    def said(self, text: str) -> None:
        """Tell a piece of what the model says to the user."""
        self.tell(ReplyStreamed(text))

    async def review(self, checked: CheckedPlan, asked: Sequence[PromptMessage]) -> None:
        """Let the model read the plan once more, where that is wanted. Raises `PlanRejected` with its objections.

        `asked` are the messages that asked for it: what went before a plan that goes on is in the last of them.
        """
        model = self.agent.model
        if not self.agent.review or model is None:
            return
        request, last = self.request, asked[-1].content
        objections = await review_with_model(
            request if last == request else last if last.endswith(request) else f"{request}\n\n{last}",
            checked.plan,
            self.offer.tools,
            lambda request: self._ask(model, request),
            language=self.language,
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
        try:
            reply = await model.ask(request, on_text)
        except ModelError as error:
            if error.reason != "empty" or request.purpose not in _GOES_ON:
                self.usage += error.usage or Usage()
                self.record.note(Inferred(request.purpose, (error.usage or Usage()).to_dict()))
                error.usage = self.usage  # whoever gets no result hears at least what the request has cost
                raise
            # Whether a reply that says nothing is a reply differs from model to model; here it always is.
            reply = Reply("", usage=error.usage or Usage(), notes=(error.message,))
        if request.purpose not in _GOES_ON:  # plans and calls are read where thinking is told from them
            reply = without_thinking(reply)
        self.usage += reply.usage
        if request.purpose != "loop":  # what is said there is written down as a whole
            self.record.note(Inferred(request.purpose, reply.usage.to_dict()))
        self.tell(ModelReplied(request.purpose, reply.usage, time.perf_counter() - started))
        return reply

    def _schema(self, goes_on: bool) -> dict[str, Json] | None:
        if self.agent.notation != "json":
            return None
        of_form = small_plan_schema if self.form == "small" else plan_schema
        return of_form(self.offer.tools, goes_on=goes_on)

    def _streamed(self, text: str) -> None:
        self.tell(ReplyStreamed(text))
        try:
            for step in self._arriving.feed(text) if self._arriving is not None else ():
                if self._needs_hidden(step):  # the plan will be asked for again
                    self._arriving = None
                    break
                self.early.offer(step)
            members = self._arriving.members() if self._arriving is not None else None
            if members is not None and not self._needs_hidden(members):
                self.early.offer_members(members)
        except Exception:  # a bug of ours costs the head start, not the request
            self._arriving = None
            _log.exception("the plan could not be followed while it arrived")

    def _needs_hidden(self, step: Step) -> bool:
        return any(isinstance(each, Call) and self.offer.hides(each.tool) for each in in_a_row((step,)))

    def reviewed(self, checked: CheckedPlan) -> Review:
        """Return what the policy says about a plan of this request."""
        agent, origins = self.agent, self.origins
        situation = origins.situation(agent.user, self.mode_used, self.now)
        trusted = self.trust_repairs or origins.is_callers_plan  # it was mended for its author
        known = origins.of_known(checked.known)
        last = self._reviewed
        if last is not None and last.plan is checked.plan and (last.situation, last.known) == (situation, known):
            return last
        found = review(checked.plan, agent.tools, agent.policy, situation, trust_repairs=trusted, known=known)
        self._reviewed = found
        return found

    def accepted(self, checked: CheckedPlan) -> None:
        """Note that a plan may run."""
        self.plan = checked.plan
        self.secrets.see_words(secret_words(checked.plan, self.agent.tools).values)
        self.warnings = checked.warnings
        if self.secrets:
            self.warnings = tuple(cleaned_diagnostic(warning, self.secrets.clean) for warning in checked.warnings)
        self.tell(PlanAccepted(checked))

    def shows(self, tools: Sequence[str], reason: str) -> None:
        """Note that the model is shown further tools from now on."""
        self.tell(ToolsShown(tuple(tools), reason))

    def switch(self, reason: str) -> None:
        """Note that the request goes on as a loop."""
        self.mode_used, self.mode_reason = "loop", reason
        self.origins.is_callers_plan = False
        self.tell(ModeChosen("loop", reason))

    def ran(self, run: RunResult, reviewed: Review) -> None:
        """Note what became of a plan."""
        self.run = run
        if self.going is not None:
            self.going.clear()
        self.origins.ran(reviewed, run.steps)
        self.steps += run.steps
        self.omitted |= run.omitted

    def hear_answers(self, checked: CheckedPlan, run: RunResult) -> None:
        """Note what a person has answered, in whatever process, to the questions of a plan that went on."""
        asks = {step.id for step in walk(checked.plan.steps) if isinstance(step, AskUser)}
        for record in run.steps:
            if record.id.partition("[")[0] in asks and record.outcome == "succeeded":
                answer = str(record.result)
                if answer not in self.origins.said:
                    self.origins.said.append(answer)

    def replanning(self, run: RunResult) -> None:
        """Note that the rest of the plan is asked for anew."""
        self.replans += 1
        self.attempts = 0
        self.origins.is_callers_plan = False
        self.tell(Replanning(self.replans, run.error or run.text or "", run.failed_step))

    @property
    def reached(self) -> tuple[StepRecord, ...]:
        """The steps of all plans, without those of earlier plans that were never reached."""
        last = self.run.steps if self.run is not None else ()
        earlier = self.steps[: len(self.steps) - len(last)]
        return (*(step for step in earlier if step.outcome != "not_run"), *last)

    def refused(self, rejection: PlanRejected, plan: Plan | None) -> PlanRejected:
        """Note that a reply, a plan as far as it could be read as one, may not run; return why, as it may be told."""
        self.attempts += 1
        told = refusal_without_secrets(rejection, plan, self.agent.tools, self.secrets)
        self.tell(PlanRefused(told, self.attempts))
        return told

    def no_plan(self, reading: Prose | CannotPlan | PlanRejected) -> Result:
        """Return the result of a reply that is an answer, the word that there can be no plan, or none that may run."""
        if isinstance(reading, Prose):
            return self.result("succeeded", reading.text)
        if isinstance(reading, PlanRejected):
            return self.rejected(reading)
        text = cannot_text(reading.reason, reading.missing, self.language)
        return self.result("rejected", text, error=reading.reason, missing=tuple(reading.missing))

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
        run = run or self.run
        error = error or (run.error if run and outcome != "succeeded" else None)
        return Result(
            outcome,
            answer,
            self.steps,
            self.inferences,
            self.usage,
            self.warnings,
            self.plan,
            self.secrets.clean(error) if error else error,
            missing or (run.missing if run else ()),
            approvals,
            seconds=time.perf_counter() - self.started,
            run_id=run.run_id if run else self.record.run_id,
            source=self.plan.source if self.plan else None,
            replans=self.replans,
            mode_used=self.mode_used,
            mode_reason=self.mode_reason,
            omitted=self.omitted,
            inferences_before=self.inferences_before,
            shown_tools=self.offer.tools.names if self.agent.router is not None else None,
            reasked=self.offer.reasked,
            card=self.card,
            sources=self.origins.of_steps(),
        )

    def begin_run(self) -> RunWriter | None:
        """Return what the run is written down with, if it is."""
        return self.record.begin(self._begun)

    def _begun(self, run_id: str) -> RunBegun:
        policy = self.agent.policy
        return RunBegun(
            run_id,
            self.request,
            self.mode_used,
            self.origins.is_callers_plan,
            self.now,
            version(),
            policy=policy.name,
            policy_fingerprint=policy.fingerprint,
            user=self.agent.user,
            max_calls=self.limits.max_calls,
            max_seconds=self.max_seconds,
            trust_repairs=self.trust_repairs,
        )

    def counted_before(self, usage: Usage) -> None:
        """Count an inference that an earlier process made."""
        times = max(1, usage.requests)
        self.inferences += times
        self.inferences_before += times
        self.usage += usage

    @property
    def is_live(self) -> bool:
        """Whether nothing is left of what an earlier process heard and did in a loop."""
        return self.retelling is None or self.retelling.is_live

    def taken_up(self, checked: CheckedPlan) -> Replayed | None:
        """Return how far an earlier process got with these calls of a loop, if one made them."""
        told = self.retelling.part(checked) if self.retelling is not None else None
        for decision in told.decisions if told is not None else ():
            grant(self.approvals.grants, decision)
            if isinstance(decision.arguments, dict):
                self.origins.said += [str(value) for value in decision.arguments.values()]
        state = told.state if told is not None else None
        if self.retelling is not None and (state is None or state.machine.finished is None):
            self.retelling.live()
        return state

    async def recorded(self, work: Awaitable[Result]) -> Result:
        """Return the result of the work, when it is written down how it ended."""
        try:
            async with self.early:
                result = await work
            result = self.whole(result)
        except asyncio.CancelledError:
            self.record.leave("cancelled")
            raise
        except BaseException:  # no end: whatever it was, somebody may go on
            self.record.leave()
            raise
        if self.record.writer is None:
            return result
        if result.outcome == "waiting" and (why := await self.record.why_not_later()) is not None:
            error = f"{result.error or 'it waits for a person'}, but nobody could go on later: {why}"
            result = dataclasses.replace(result, outcome="failed", error=error)
        run = self.run
        card = self.card if run is None or run.outcome != "waiting" else None
        asked = (
            asked_of(card, result.approvals, run, self.agent.tools, self.agent.policy)
            if result.outcome == "waiting"
            else []
        )
        asked = cast("list[Json]", self.secrets.clean_json(asked, numbers=False))
        lost = await self.record.end(result.outcome, result.answer, result.error, asked)
        if lost is not None:
            error = f"{result.error}; {lost}" if result.error and lost not in result.error else lost
            return dataclasses.replace(result, error=error)
        return dataclasses.replace(result, waits_for=tuple(asked))

    def waits_for_people(self, run: RunResult) -> Result:
        """Return the result of a run that waits: for a word on calls, to hear what has happened, for an answer."""
        if run.approvals:
            return self.waits_for_word(run)
        texts = [run.text] if run.text else []
        if run.unsettled:
            texts.append(unsettled_text([(effect.step, effect.tool) for effect in run.unsettled], self.language))
            wrong = {step.id: step.error for step in run.steps if step.error}
            texts += [f"{effect.step}: {wrong[effect.step]}" for effect in run.unsettled if effect.step in wrong]
        return self.result("waiting", "\n".join(texts), run)

    def waits_for_word(self, run: RunResult) -> Result:
        """Return the result of a run in which calls wait for a person's word."""
        done = any(step.outcome == "succeeded" for step in self.steps)
        calls = [(call.step, call.tool) for call in run.approvals]
        text = approval_text(calls, self.language, refused=False, rest=done)
        error = "calls wait for approval"
        return self.result("waiting", text, run, error=error, approvals=run.approvals)

    def whole(self, result: Result) -> Result:
        """Return the result with what is known only when nothing is running any more."""
        return dataclasses.replace(result, discarded=tuple(self.early.discarded))

    def broken_off(
        self, outcome: Outcome, error: str, steps: tuple[StepRecord, ...], language: Literal["en", "zh"] | None = None
    ) -> Result:
        """Return the result of a request that did not come to its own end: `error`, and `steps` as far as they got."""
        changing = frozenset(tool.name for tool in self.agent.tools if tool.effects.has_effects)
        settled = tuple(_settled(step, changing) for step in steps)
        text = failure_text(error, None, settled, changing, language or self.language)
        return self.whole(dataclasses.replace(self.result(outcome, text, error=error), steps=settled))

    @property
    def run_watch(self) -> Watcher | None:
        """Who is told of a run; nobody, where nobody wants to know, for then it makes no events."""
        return self.watch if self.going is None else self._note_step

    def _note_step(self, event: AgentEvent) -> None:
        assert self.going is not None
        if isinstance(event, StepStarted):
            at = event.at_seconds
            self.going[event.step] = StepRecord(event.step, event.tool, (), event.arguments, started_seconds=at)
        elif isinstance(event, StepFinished | StepLeftOut):
            self.going[event.record.id] = event.record
        self.tell(event)

    @property
    def so_far(self) -> tuple[StepRecord, ...]:
        """The steps of all plans, as far as they got, those of a run that was broken off included."""
        going = sorted((self.going or {}).values(), key=lambda step: (not step.path, step.path))
        return (*self.steps, *going)

    def tell(self, event: AgentEvent) -> None:
        """Tell whoever watches. A watcher that fails spoils nothing, as in a run."""
        if self.watch is None:
            return
        try:
            self.watch(event)
        except Exception:
            _log.exception("a watcher failed on %s", type(event).__name__)


def _settled(step: StepRecord, changing: frozenset[str]) -> StepRecord:
    """Return the record of a step that was cut off as what is known of it: nothing, if it may change something."""
    if step.outcome != "running":
        return step
    return dataclasses.replace(step, outcome="unknown" if step.tool in changing else "cancelled", error="interrupted")
