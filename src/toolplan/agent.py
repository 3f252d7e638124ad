"""The life of one request, top to bottom: ask once, parse, check, review, run, answer.

    tools -> prompt -> (model) -> parse -> check -> review -> run -> answer
                ^                   | rejected |               | stopped
                +---- diagnostics --+----------+---- replan ---+

`Agent.run` is the whole story. Each stage is one call into the module of that name, and takes and gives plain values.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import inspect
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from toolplan import show
from toolplan.agent_events import (
    AgentEvent,
    ModelAsked,
    ModelReplied,
    PlanAccepted,
    PlanRefused,
    Replanning,
    ReplyStreamed,
    RequestFinished,
    Watcher,
)
from toolplan.answer import approval_text, cannot_text, failure_text, plain_results
from toolplan.approval import with_arguments
from toolplan.check import CheckedPlan, Limits, check
from toolplan.conversation import Conversation
from toolplan.diagnostics import Place, render_all
from toolplan.diagnostics.effects import not_allowed
from toolplan.diagnostics.reading import cut_off
from toolplan.effects import INDEPENDENT
from toolplan.errors import JournalError, ModelError, PlanRejected, UsageError
from toolplan.journal import Journal, Replayed, tell
from toolplan.known import NOTHING_KNOWN, Known
from toolplan.loop import Gate, Loop, reason_for_no_plan, reason_to_loop
from toolplan.models import Model, Reply, model_from, model_from_name
from toolplan.parse import CannotPlan, Prose, parse
from toolplan.plan import AskModel, Call, Plan, walk
from toolplan.policy import Policy, Review, Situation, policy_from_toml, shipped_policy
from toolplan.policy import review as review_policy
from toolplan.policy.files import SHIPPED
from toolplan.policy.unmatched import unmatched
from toolplan.prompt import (
    PromptMessage,
    StepReport,
    answer_messages,
    concerned_tools,
    plan_messages,
    repair_messages,
    replan_messages,
    replan_repair_messages,
)
from toolplan.recording import restore, said_before, version
from toolplan.replan import asks_for_another, known_after, reports, stopped
from toolplan.result import Outcome, Result
from toolplan.resuming import parts_of
from toolplan.route import Offer, Router
from toolplan.route.offer import called_tools
from toolplan.run import EarlyCalls, RunEvent, RunResult, run_plan
from toolplan.run.approvals import Approver, Word
from toolplan.schedule import AskUserNow, StepRecord
from toolplan.schedule.early import can_be_early
from toolplan.stream import AgentStream
from toolplan.tools import Tool, ToolSet
from toolplan.turn import NO_PAST, Past, Turn
from toolplan.values import Json

__all__ = [
    "Agent",
    "AgentEvent",
    "ModelAsked",
    "ModelReplied",
    "PlanAccepted",
    "PlanRefused",
    "Replanning",
    "ReplyStreamed",
    "RequestFinished",
    "Result",
]

Language: TypeAlias = Literal["auto", "en", "zh"]
Notation: TypeAlias = Literal["json", "python"]
Mode: TypeAlias = Literal["plan", "loop", "auto"]
MODES = ("plan", "loop", "auto")


class Agent:
    """A model and tools; answers requests with one inference and a checked plan.

    `model` is a `Model` or a name such as `"openai:gpt-5-mini"`; it may be None for an agent that only runs plans
    somebody already has. `tools` are functions, `Tool`s or `ToolSet`s.

    `answer` says who words the answer: `"template"` the plan if it has one, else one more inference; `"model"` always
    one more inference; `"none"` never an inference, so plain results when the plan has no template.
    `policy` says which calls run, which ask a person, which never run: `"default"` (what the user did not say, or other
    people's text may have chosen, asks), `"cautious"` (every effect asks), `"declared"` (only what tools declare), the
    path of a TOML file, or a `Policy`. `user` is whom its rules know as the user.
    `approve(calls, card)` is asked about calls that need a person's word: once about the plan, and again about calls
    whose values bring up something new. It returns True, False, None (undecided), a `Decision`, or a dict of these by
    step; it may be async. Without it such a run ends as `waiting`.
    `ask_user` answers the plan's questions; without it a question ends the run as `waiting`.
    `base_url` and `api_key` go with a model given by name; without a key the provider's environment variable is read.
    `review=True` lets the model read an accepted plan once more before it runs; its objections send the plan back.
    The effects of a plan whose text had to be mended need a person's word, unless `trust_repairs=True`.
    `max_repairs` is how often a rejected plan goes back, `max_replans` how often the rest of a plan is asked for anew
    after a step has failed or the plan wants to see results.
    `mode="loop"` lets the model call tools turn by turn, at most `max_turns`; a call that has had the same result, or
    was refused, `max_repeats` times is not made again. `mode="auto"` plans first, and loops when the model cannot plan.
    `reader` is the model for `ask_model` steps (default: the same). `now` is the time the plan sees, as ISO text.
    `route` chooses the tools that are sent with a request, for agents with many: a `Router`, or how many tools at most.
    A plan that needs others is asked for again with these (`Result.reasked`); in a loop the model can look for more.
    `undeclared="independent"` is your word that tools without declared effects may overlap.
    `failure="independent"` runs everything that does not use a failed step's value.
    `early_start=False` keeps calls that change nothing from starting while the plan that has them is still arriving;
    with a budget of calls none starts early, for it might be made for nothing.
    `speculate=True` lets calls that change nothing start although something before them may still end the plan or leave
    their loop; what they did is dropped when they turn out not to be needed.
    `max_calls` is how many calls a request may make, attempts again and rounds of loops included, and `max_seconds` how
    long its run may take; a run that needs more fails and says so. `max_calls` is the `Limits(max_calls=...)` of the
    check as well: a plan that may need more by its text is refused.
    With a `journal`, a file or a `Journal`, runs are written down: no effect leaves before that is durable, and
    `resume` goes on with a run whose process has ended, or that waits for a person.
    Raises `UsageError` for an unknown model name or a tool that cannot be described, `JournalError` for a journal that
    cannot be written.
    """

    def __init__(
        self,
        model: Model | str | Sequence[Model | str] | None = None,
        tools: Iterable[Tool | Callable[..., Any] | ToolSet] = (),
        *,
        language: Language = "auto",
        notation: Notation = "json",
        answer: Literal["template", "model", "none"] = "template",
        policy: Policy | Path | str = "default",
        user: str = "",
        approve: Approver | None = None,
        ask_user: Callable[[str], str | Awaitable[str | None] | None] | None = None,
        reader: Model | str | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        context: str | None = None,
        extra_rules: Sequence[str] = (),
        now: str | Callable[[], str] | None = None,
        max_repairs: int = 2,
        max_replans: int = 2,
        mode: Mode = "plan",
        max_turns: int = 20,
        max_repeats: int = 3,
        route: Router | int | None = None,
        review: bool = False,
        trust_repairs: bool = False,
        max_concurrency: int = 64,
        limits: Limits | None = None,
        undeclared: Literal["exclusive", "independent"] = "exclusive",
        failure: Literal["written-order", "independent"] = "written-order",
        early_start: bool = True,
        speculate: bool = False,
        max_calls: int | None = None,
        max_seconds: float | None = None,
        dependencies: Any = None,
        journal: Journal | Path | str | None = None,
    ) -> None:
        _check_choice("answer", answer, ("template", "model", "none"))
        _check_choice("failure", failure, ("written-order", "independent"))
        _check_choice("undeclared", undeclared, ("exclusive", "independent"))
        _check_number("max_repairs", max_repairs, 0)
        _check_number("max_replans", max_replans, 0)
        _check_choice("mode", mode, MODES)
        _check_number("max_turns", max_turns, 1)
        _check_number("max_repeats", max_repeats, 1)
        _check_number("max_concurrency", max_concurrency, 1)
        if max_seconds is not None:
            _check_seconds("max_seconds", max_seconds)
        switches = {"review": review, "trust_repairs": trust_repairs}
        for name, value in (switches | {"early_start": early_start, "speculate": speculate}).items():
            _check_switch(name, value)
        self.model = None if model is None else model_from(model, base_url, api_key)
        self.reader = model_from_name(reader, base_url, api_key) if isinstance(reader, str) else reader or self.model
        self.tools = _with_undeclared(ToolSet.of(tools), undeclared)
        self.router = _router(route, self.tools)
        self.language: Language = language
        self.notation: Notation = notation
        self.answer = answer
        self.policy = policy if isinstance(policy, Policy) else _policy_named(policy)
        for line in unmatched(self.policy, self.tools) if self.tools else ():
            logging.getLogger("toolplan.agent").warning("the policy %s: %s", self.policy.name, line)
        self.user = user
        self.approve = approve
        self.ask_user = ask_user
        self.context = context
        self.extra_rules = tuple(extra_rules)
        self.now = now
        self.max_repairs = max_repairs
        self.max_replans = max_replans
        self.mode: Mode = mode
        self.max_turns = max_turns
        self.max_repeats = max_repeats
        self.review = review
        self.trust_repairs = trust_repairs
        self.max_concurrency = max_concurrency
        self.limits = _with_budget(limits or Limits(), max_calls)
        self.max_seconds = max_seconds
        self.speculate = speculate
        self.failure = failure
        may_start_early = self.limits.max_calls is None and any(can_be_early(tool) for tool in self.tools)
        self.early_start = early_start and may_start_early
        self.dependencies = dependencies
        self.journal = journal if isinstance(journal, Journal) or journal is None else Journal(journal)
        self._owns_journal = not isinstance(journal, Journal)

    # The story ----------------------------------------------------------------------------------------------------

    async def run(self, request: str, *, mode: Mode | None = None, watch: Watcher | None = None) -> Result:
        """Answer the request. `watch` is told everything that happens, as it happens.

        `mode` takes the place of the agent's for this request. Raises `ModelError` when the model cannot be reached;
        whatever goes wrong with the plan or a tool is in the result.
        """
        return await self.answer_turn(self.turn(request, watch, mode=mode))

    def stream(self, request: str, *, mode: Mode | None = None) -> AgentStream:
        """Return the request as a stream: all its events as they happen, a handle to cancel it, the result.

        `async with agent.stream("...") as run:` and, in it, `async for event in run:`; see `AgentStream`.
        """
        turn = self.turn(request, mode=mode)
        return AgentStream(turn, lambda: self.answer_turn(turn))

    def conversation(self, *, mode: Mode | None = None, token_budget: int | None = None) -> Conversation:
        """Return a new conversation with this agent: requests that may speak of what was said and done before.

        `token_budget` bounds what of it is sent along; the oldest is left out first.
        """
        return Conversation(self, mode=mode, token_budget=token_budget)

    async def answer_turn(self, turn: Turn) -> Result:
        """Answer the request of a turn, in its mode.

        In plan mode: ask for a plan and run it. Calls that change nothing start while the plan arrives; see
        `run/early.py`. In a loop: see `loop/turns.py`.
        """
        return await turn.recorded(self._in_its_mode(turn))

    async def _in_its_mode(self, turn: Turn) -> Result:
        if turn.mode == "loop":
            return await self._loop(turn)
        turn.asked = self._asked(turn)
        async with turn.early:
            planned = await self._plan(turn, turn.asked, known=turn.past.known)
            why = reason_to_loop(planned, self.tools) if turn.mode == "auto" else None
            if turn.mode == "auto" and not isinstance(planned, CheckedPlan):
                turn.mode_reason = reason_for_no_plan(planned)
            if why is not None:
                turn.switch(why)
                result = await self._loop(turn)
            elif isinstance(planned, CheckedPlan):
                result = await self._run_checked(planned, turn)
            else:
                result = turn.no_plan(planned)
        return turn.whole(result)

    def run_sync(self, request: str, *, mode: Mode | None = None, watch: Watcher | None = None) -> Result:
        """Answer the request, from code that is not async. Raises `UsageError` inside a running event loop."""
        return self.run_blocking("run", self.run(request, mode=mode, watch=watch))

    async def run_plan(
        self,
        plan: Plan | str | list[Json] | dict[str, Json],
        *,
        request: str = "",
        watch: Watcher | None = None,
    ) -> Result:
        """Check and run a plan that somebody already has, as text, JSON data or a `Plan`. No inference to plan it.

        With a `request` the model words the answer where the plan does not, and plans the rest where the plan stops.
        As in a model's reply, plain prose is an answer. Raises `UsageError` for anything else.
        """
        _check_plan(plan)
        turn = self.turn(request, watch, mode="plan")
        return await turn.recorded(self._from_plan(plan, turn))

    def stream_plan(self, plan: Plan | str | list[Json] | dict[str, Json], *, request: str = "") -> AgentStream:
        """`run_plan` as a stream."""
        _check_plan(plan)
        turn = self.turn(request, mode="plan")
        return AgentStream(turn, lambda: turn.recorded(self._from_plan(plan, turn)))

    async def _from_plan(self, plan: Plan | str | list[Json] | dict[str, Json], turn: Turn) -> Result:
        """Run a plan that somebody already has."""
        try:
            reading = plan if isinstance(plan, Plan) else self._parse(plan)
            if isinstance(reading, Prose | CannotPlan):
                return turn.no_plan(reading)
            turn.origins.is_callers_plan = True
            checked = self._check(reading, turn)
        except PlanRejected as rejection:
            turn.refused(rejection)
            return turn.rejected(rejection)
        turn.offer.show(called_tools(checked.plan))
        turn.asked, turn.plan_text = self._asked(turn), show.canonical(checked.plan)
        return await self._run_checked(checked, turn)

    def run_plan_sync(
        self,
        plan: Plan | str | list[Json] | dict[str, Json],
        *,
        request: str = "",
        watch: Watcher | None = None,
    ) -> Result:
        """`run_plan`, from code that is not async."""
        return self.run_blocking("run_plan", self.run_plan(plan, request=request, watch=watch))

    async def resume(
        self,
        run_id: str,
        *,
        plan: Plan | str | list[Json] | dict[str, Json] | None = None,
        accept_changes: bool = False,
        watch: Watcher | None = None,
    ) -> Result:
        """Go on with a run of the journal whose process has ended, or that waited for a person, and return its result.

        What has finished is not done again; of an effect that had begun, the tool's `probe` or a person says whether it
        happened. A run that has ended gives its result. `plan` is needed for a plan with secrets, which are not written
        down. Raises `JournalMismatch` when something has changed since (with `accept_changes`, only when that cannot
        be), `RunIsHeld` while another process is at work on it, `JournalError` when there is no such run.
        """
        return await self.stream_resume(run_id, plan=plan, accept_changes=accept_changes).of(watch)

    def stream_resume(
        self,
        run_id: str,
        *,
        plan: Plan | str | list[Json] | dict[str, Json] | None = None,
        accept_changes: bool = False,
    ) -> AgentStream:
        """`resume` as a stream. Raises `JournalError` when there is no such run."""
        if self.journal is None:
            raise UsageError('this agent has no journal; give `Agent(journal="runs.db")`, the one that the run is in')
        begun = tell(self.journal.read(run_id)).begun
        turn = Turn(self, begun.request, begun.now, None, self._early_calls)
        turn.begin("loop" if begun.mode == "loop" else "plan", NO_PAST)
        return AgentStream(turn, lambda: self._resumed(turn, begun.run_id, plan, accept_changes))

    def resume_sync(
        self,
        run_id: str,
        *,
        plan: Plan | str | list[Json] | dict[str, Json] | None = None,
        accept_changes: bool = False,
        watch: Watcher | None = None,
    ) -> Result:
        """`resume`, from code that is not async."""
        work = self.resume(run_id, plan=plan, accept_changes=accept_changes, watch=watch)
        return self.run_blocking("resume", work)

    async def _resumed(
        self,
        turn: Turn,
        run_id: str,
        plan: Plan | str | list[Json] | dict[str, Json] | None,
        accept_changes: bool,
    ) -> Result:
        assert self.journal is not None
        await turn.early.close()
        writer = await asyncio.to_thread(self.journal.take, run_id)
        try:
            story = tell(await asyncio.to_thread(self.journal.read, run_id))
            turn.record.go_on(writer, story)
            if turn.mode == "loop":
                raise JournalError(f"run {run_id} is a loop, which cannot be resumed; `toolplan runs` shows its calls")
            if not story.parts:
                raise JournalError(f"the process of run {run_id} ended before there was a plan, so nothing was done")
            given = None if plan is None or isinstance(plan, Plan) else self._parse(plan)
            if isinstance(given, Prose | CannotPlan):
                raise UsageError("what was given is no plan")
            given = plan if isinstance(plan, Plan) else given
            turn.origins.is_callers_plan = story.begun.is_callers_plan
            has_ended = story.ended is not None and story.ended.outcome != "waiting"
            parts = parts_of(
                story,
                self.tools,
                (lambda plan, known: check(plan, self.tools, self.limits, known))
                if has_ended  # what the policy says by now does not matter any more
                else (lambda plan, known: self._check(plan, turn, known)),
                version=version(),
                given=given,
                accept_changes=accept_changes or has_ended,
            )
            if writer.secrets:
                for part in parts:
                    writer.secrets.see_plan(part.checked.plan)
            for part in parts[:-1] if not has_ended else parts:
                if part.state is not None:
                    await self._run(part.checked, turn.reviewed(part.checked), turn, self.failure, part.state)
                turn.origins.is_callers_plan = False
            turn.replans = len(parts) - 1
            if has_ended and story.ended is not None:
                turn.accepted(parts[-1].checked)
                ended, outcome = story.ended, cast("Outcome", story.ended.outcome)
                turn.record.leave()
                return turn.result(outcome, ended.text or "", turn.run, error=ended.error)
        except BaseException:
            turn.record.leave()
            writer.close()
            raise
        turn.origins.is_callers_plan = story.begun.is_callers_plan and len(parts) == 1
        turn.offer.show(called_tools(parts[-1].checked.plan))
        turn.asked, turn.plan_text = self._asked(turn), show.canonical(parts[-1].checked.plan)
        turn.record.resumed()
        restore(turn.approvals.grants, story)
        turn.approvals.approve = said_before(story, self.approve)
        return await turn.recorded(self._run_checked(parts[-1].checked, turn, parts[-1].state))

    async def close(self) -> None:
        """Close the models' connections of the running event loop, and the journal. They open again when needed."""
        if self._owns_journal and self.journal is not None:
            await asyncio.to_thread(self.journal.close)
        for model in {id(model): model for model in (self.model, self.reader)}.values():
            close = getattr(model, "close", None)
            if close is not None:
                await close()

    def prompt(self, request: str, *, now: str | None = None) -> tuple[PromptMessage, ...]:
        """Return exactly the messages that a model would get for this request."""
        offer = Offer(self.tools, self.router, request)
        return plan_messages(
            request,
            offer.tools,
            language=self.language,
            notation=self.notation,
            now=now or self._now(),
            context=self.context,
            extra_rules=self.extra_rules,
            others=offer.others,
        )

    def check(self, plan: Plan, known: Known = NOTHING_KNOWN) -> CheckedPlan:
        """Return the plan checked against this agent's tools and limits, and what is known before it starts.

        Raises `PlanRejected`.
        """
        checked = check(plan, self.tools, self.limits, known)
        _refuse_forbidden(review_policy(checked.plan, self.tools, self.policy, Situation(words_are_trusted=True)))
        return checked

    def _check(self, plan: Plan, turn: Turn, known: Known = NOTHING_KNOWN) -> CheckedPlan:
        """Return a plan of this request checked, the policy included. Raises `PlanRejected`."""
        checked = check(plan, self.tools, self.limits, known)
        _refuse_forbidden(turn.reviewed(checked))
        return checked

    # Its parts ----------------------------------------------------------------------------------------------------

    def turn(
        self, request: str, watch: Watcher | None = None, *, mode: Mode | None = None, past: Past = NO_PAST
    ) -> Turn:
        """Return the turn in which a request is answered. Raises `UsageError` for what is no request."""
        if mode is not None:
            _check_choice("mode", mode, MODES)
        if not isinstance(request, str):  # pyright: ignore[reportUnnecessaryIsInstance] - not every caller checks types
            raise UsageError(f"a request is text, but this is a `{type(request).__name__}`")
        turn = Turn(self, request, self._now(), watch, self._early_calls)
        turn.begin(mode or self.mode, past)
        return turn

    def _early_calls(self, turn: Turn) -> EarlyCalls:
        """Return what makes calls before the plan that they belong to is accepted, through the same gate."""

        def may_start(plan: Plan, step: str) -> bool:
            try:
                reviewed = turn.reviewed(check(plan, self.tools, self.limits))
            except PlanRejected:  # the whole plan will be, too
                return False
            return not reviewed.forbidden and all(call.step != step for call in reviewed.calls)

        async def run(plan: Plan, watch: Callable[[RunEvent], None]) -> RunResult:
            checked = check(plan, self.tools, self.limits)
            return await run_plan(checked, now=turn.now, max_concurrency=1, dependencies=self.dependencies, watch=watch)

        return EarlyCalls(
            self.tools, may_start, run, now=turn.now, max_concurrency=self.max_concurrency, tell=turn.tell
        )

    async def _plan(
        self,
        turn: Turn,
        messages: Sequence[PromptMessage],
        purpose: str = "plan",
        known: Known = NOTHING_KNOWN,
        *,
        refused: tuple[PlanRejected, Plan] | None = None,
    ) -> CheckedPlan | Prose | CannotPlan | PlanRejected:
        """Ask for a plan, and again with the diagnostics when it is refused; return what came of it in the end.

        With `refused`, a plan that `messages` had asked for was refused later on, for these reasons.
        """
        turn.messages, asked, first_purpose = messages, messages, purpose
        if refused is not None:
            purpose, asked = "repair", self._repair_prompt(turn, messages, turn.plan_text, *refused, known)
        while True:
            reply = await turn.infer(asked, purpose, goes_on=known is not NOTHING_KNOWN)
            reading = None
            try:
                reading = self._parse(reply.plan_text, known)
                if refused is None and (needed := turn.offer.needed(reading)):
                    turn.shows(needed, "the plan needs tools that had not been shown")
                    purpose, messages = first_purpose, self._with_offer(turn)
                    asked = messages
                    continue
                if isinstance(reading, Prose | CannotPlan):
                    return reading
                _refuse_cut_off(reading, reply)
                checked = self._check(reading, turn, known)
                turn.offer.show(called_tools(checked.plan))
                await turn.review(checked, messages)
                turn.plan_text = reply.plan_text
                return checked
            except PlanRejected as rejection:
                turn.refused(rejection)
                if turn.attempts > self.max_repairs:
                    return rejection
                purpose = "repair"
                read = reading if isinstance(reading, Plan) else None
                asked = self._repair_prompt(turn, messages, reply.plan_text, rejection, read, known)

    async def _replan(self, checked: CheckedPlan, run: RunResult, turn: Turn) -> CheckedPlan | Result:
        """Ask for the rest of a plan that stopped; return it, or the end of the request when there is none."""
        known = turn.known or known_after(checked, run)
        done, others = reports(turn.steps, known)
        turn.replanning(run)
        messages = replan_messages(
            turn.asked,
            turn.request,
            turn.plan_text,
            stopped(run),
            done,
            others,
            f"s{known.steps + 1}",
            language=self.language,
            notation=self.notation,
        )
        try:
            planned = await self._plan(turn, messages, "replan", known)
        except ModelError as error:  # what was done is done; the user must hear of it all the same
            return self._failed(run, turn, f"planning again failed: {error}")
        if isinstance(planned, CheckedPlan):
            return planned
        if isinstance(planned, Prose):
            return self._in_words(planned, run, turn)
        if isinstance(planned, CannotPlan):
            text = cannot_text(planned.reason, planned.missing, turn.language)
            return turn.result("failed", text, error=planned.reason, missing=tuple(planned.missing))
        return self._failed(run, turn, f"planning again gave no plan that may run: {planned}")

    def _in_words(self, said: Prose, run: RunResult, turn: Turn) -> Result:
        """Return the result of a request whose plan stopped, when words came instead of the rest of it.

        They are the answer to what a plan wanted to see. After a failed step they are what the user gets to read, but
        what the plan was made for has not been done.
        """
        if run.outcome == "replan" and run.error is None:
            return turn.result("succeeded", said.text)
        why = "the model answered in words instead of planning the rest"
        return turn.result("failed", said.text, run, error=f"{run.error or run.text}; {why}")

    async def _run_checked(self, checked: CheckedPlan, turn: Turn, goes_on: Replayed | None = None) -> Result:
        """Run a plan that may run, and the ones that go on after it, to the end of the request.

        One that `goes_on` has been allowed by whoever began it.
        """
        while True:
            if goes_on is not None:
                self._need_reader(checked)
                turn.accepted(checked)
                reviewed = turn.reviewed(checked)
            else:
                allowed = await self._allowed(checked, turn)
                if isinstance(allowed, Result):
                    return allowed
                checked, reviewed = allowed
            run = await self._run(checked, reviewed, turn, self.failure, goes_on)
            goes_on = None
            if turn.keeps_names:
                turn.known = known_after(checked, run)
            if not (turn.can_replan and asks_for_another(run)):
                return await self._answer(run, turn)
            following = await self._replan(checked, run, turn)
            if isinstance(following, Result):
                return following
            checked = following

    async def _run(
        self, checked: CheckedPlan, reviewed: Review, turn: Turn, failure: str, goes_on: Replayed | None = None
    ) -> RunResult:
        """Run a plan that may run, as the next part of the turn's run; `goes_on`: as far as its journal tells."""
        run = await run_plan(
            checked,
            now=turn.now,
            max_concurrency=self.max_concurrency,
            failure=failure,
            dependencies=self.dependencies,
            read=turn.read if self.reader is not None else None,
            ask=(lambda command: self._ask(command, turn)) if self.ask_user is not None else None,
            watch=turn.run_watch,
            early=await turn.early.accept(checked.plan),
            keep_names=turn.keeps_names,
            after=turn.run,
            speculate=self.speculate,
            max_calls=self.limits.max_calls,
            max_seconds=self.max_seconds,
            guard=turn.approvals.guard(checked, reviewed),
            journal=turn.begin_run(),
            goes_on=goes_on,
        )
        await turn.early.close()
        turn.ran(run, reviewed)
        return run

    async def _loop(self, turn: Turn) -> Result:
        """Let the model call tools turn by turn, through the same gate as a plan."""
        failure = "independent" if self.failure == "independent" else "reads-go-on"
        gate = Gate(
            lambda plan, known: self._check(plan, turn, known),
            turn.reviewed,
            turn.approvals,
            lambda checked, reviewed: self._run(checked, reviewed, turn, failure),
        )
        return await Loop(self, turn, gate, turn.past.messages).run()

    def _asked(self, turn: Turn) -> tuple[PromptMessage, ...]:
        """Return the messages that ask for a plan, with what was said before and what there is besides a plan."""
        return plan_messages(
            turn.request,
            turn.offer.tools,
            language=self.language,
            notation=self.notation,
            now=turn.now,
            context=self.context,
            extra_rules=self.extra_rules,
            may_loop=turn.mode == "auto",
            earlier=turn.past.told,
            others=turn.offer.others,
        )

    def _with_offer(self, turn: Turn) -> tuple[PromptMessage, ...]:
        """Return the messages that the turn asks with, where they show all that is offered by now."""
        turn.asked = self._asked(turn)
        turn.messages = (turn.asked[0], *turn.messages[1:])  # the tools stand in the system message
        return tuple(turn.messages)

    async def _allowed(self, checked: CheckedPlan, turn: Turn) -> tuple[CheckedPlan, Review] | Result:
        """Return the plan that may run, and what the policy says about it, or the end of the request if none may.

        A plan that a person changes is checked and judged again. One that is refused with a reason goes back to the
        model with it, as one that does not check does.
        """
        self._need_reader(checked)
        turn.accepted(checked)
        while True:
            reviewed = turn.reviewed(checked)
            if reviewed.asks and turn.begin_run() is not None:
                turn.record.asks(checked)
            word = await turn.approvals.of_plan(checked, reviewed)
            if word is None:
                return checked, reviewed
            turn.card = word.card
            asks = word.card.asks
            calls = [(call.step, call.tool) for call in asks]
            if word.allowed is None:
                text = approval_text(calls, turn.language, refused=False, rest=turn.replans > 0)
                return turn.result("waiting", text, error="the plan waits for approval", approvals=asks)
            if word.allowed and not word.edits:
                return checked, reviewed
            try:
                if word.allowed:
                    checked = self._edited(checked, word, turn)
                    continue
                raise _not_allowed(word, checked.plan)
            except PlanRejected as rejection:
                if word.allowed:
                    return turn.rejected(rejection)
                turn.attempts += 1
                if not word.reasons or self.model is None or not turn.messages or turn.attempts > self.max_repairs:
                    text = approval_text(calls, turn.language, refused=True, rest=turn.replans > 0)
                    outcome = "failed" if turn.replans else "rejected"  # of a replanned request, something did run
                    why = "; ".join(reason for _, reason in word.reasons)
                    error = f"the plan was not approved: {why}" if why else "the plan was not approved"
                    return turn.result(outcome, text, error=error, approvals=asks)
                turn.tell(PlanRefused(rejection, turn.attempts))
                known, refused = checked.known, (rejection, checked.plan)
                planned = await self._plan(turn, turn.messages, "repair", known, refused=refused)
                if not isinstance(planned, CheckedPlan):
                    return turn.no_plan(planned)
                checked = planned
                self._need_reader(checked)
                turn.accepted(checked)

    def _edited(self, checked: CheckedPlan, word: Word, turn: Turn) -> CheckedPlan:
        """Return the plan with the arguments that a person has changed. Raises `PlanRejected` when they do not fit."""
        edited = self._check(with_arguments(checked.plan, word.edits), turn, checked.known)
        turn.accepted(edited)
        return edited

    def _need_reader(self, checked: CheckedPlan) -> None:
        """Raise `UsageError` when the plan has a question to a model, and there is none."""
        if self.reader is None and any(isinstance(step, AskModel) for step in walk(checked.plan.steps)):
            raise UsageError(
                "the plan has an `ask_model` step and this agent has no model to ask; give `Agent(model=...)`, or "
                '`reader=...`, a name such as "openai:gpt-5-mini"'
            )

    async def _answer(self, run: RunResult, turn: Turn) -> Result:
        if run.outcome == "waiting":
            return turn.waits_for_people(run)
        if run.outcome == "cannot":
            return turn.result("failed", cannot_text(run.text or "", run.missing, turn.language), run)
        if run.outcome == "replan":
            if run.error is not None:
                return self._failed(run, turn)
            return self._failed(replace(run, error=f"the plan asks to plan again: {run.text}"), turn, turn.spent)
        if run.outcome != "succeeded":
            return self._failed(run, turn, turn.spent if asks_for_another(run) and turn.replans else None)
        if self.answer != "model" and run.text is not None:
            return turn.result("succeeded", run.text, run)
        if self.answer == "none" or self.model is None or not turn.request:
            return turn.result("succeeded", run.text or plain_results(turn.reached, turn.language), run)
        messages = answer_messages(
            turn.request,
            [_report(step) for step in turn.reached],
            language=self.language,
            now=turn.now,
            context=self.context,
        )
        try:
            reply = await turn.infer(messages, "answer")
        except ModelError as error:  # what was done is done; the user must hear of it all the same
            text = run.text or plain_results(turn.reached, turn.language)
            return turn.result("succeeded", text, run, error=f"the answer could not be worded: {error}")
        return turn.result("succeeded", reply.text.strip(), run)

    def _failed(self, run: RunResult, turn: Turn, also: str | None = None) -> Result:
        """Return the result of a request whose last plan stopped; `also` is what went wrong after that."""
        changes = frozenset(tool.name for tool in self.tools if tool.effects.has_effects)
        why = run.error or run.text or ""
        text = failure_text(why, run.failed_step, turn.reached, changes, turn.language)
        return turn.result("failed", text, run, error=f"{why}; {also}" if also else why)

    async def _ask(self, command: AskUserNow, turn: Turn) -> str | None:
        assert self.ask_user is not None
        answer = self.ask_user(command.question)
        said = await answer if inspect.isawaitable(answer) else answer
        if said is not None:
            turn.origins.said.append(str(said))
        return said

    def _parse(
        self, text: str | list[Json] | dict[str, Json], known: Known = NOTHING_KNOWN
    ) -> Plan | Prose | CannotPlan:
        return parse(text, notation="auto", tools=self.tools, asked_for=self.notation, first_step=known.steps + 1)

    def _repair_prompt(
        self,
        turn: Turn,
        messages: Sequence[PromptMessage],
        text: str,
        rejection: PlanRejected,
        plan: Plan | None,
        known: Known,
    ) -> tuple[PromptMessage, ...]:
        diagnostics = render_all(rejection.diagnostics, rejection.source)
        if known is not NOTHING_KNOWN:  # without what has run nobody could mend it
            return replan_repair_messages(messages, turn.request, text, diagnostics, language=self.language)
        if turn.offer.is_partial:
            turn.offer.show(concerned_tools(self.tools, text, diagnostics, plan).names)
        return repair_messages(
            turn.request,
            text,
            diagnostics,
            turn.offer.tools,
            plan=plan,
            language=self.language,
            notation=self.notation,
            now=turn.now,
            context=self.context,
            extra_rules=self.extra_rules,
        )

    def run_blocking(self, name: str, work: Coroutine[Any, Any, Result]) -> Result:
        """Run `work` to its end, for `NAME_sync`, and close the models. Raises `UsageError` inside an event loop."""
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


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise UsageError(f"`{name}` is {value!r}; it may be {', '.join(map(repr, choices))}")


def _router(route: Router | int | None, tools: ToolSet) -> Router | None:
    """Return the router of an agent with these tools. Raises `UsageError` for one that chooses among others."""
    if route is None or isinstance(route, Router):
        if route is not None and set(route.tools.names) != set(tools.names):
            raise UsageError("`route` chooses among other tools than the agent has; give both of them the same tools")
        return route
    _check_number("route", route, 1)
    return Router(tools, top=route)


def _check_plan(plan: object) -> None:
    if not isinstance(plan, Plan | str | list | dict):
        raise UsageError(f"a plan is text, a list or an object, but this is a `{type(plan).__name__}`")


def _check_number(name: str, value: int, least: int) -> None:
    given = cast(object, value)
    if isinstance(given, bool) or not isinstance(given, int) or given < least:
        raise UsageError(f"`{name}` is {value!r}; it is a number of at least {least}")


def _check_seconds(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise UsageError(f"`{name}` is {value!r}; it is a number of seconds above 0, or None")


def _check_switch(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise UsageError(f"`{name}` is {value!r}; it is True or False")


def _with_budget(limits: Limits, max_calls: int | None) -> Limits:
    """Return the limits with the budget of calls. Raises `UsageError` when they say another number."""
    if max_calls is None:
        return limits
    _check_number("max_calls", max_calls, 0)
    if limits.max_calls not in (None, max_calls):
        raise UsageError(f"`max_calls` is {max_calls}, but the limits say {limits.max_calls}; give one of them")
    return replace(limits, max_calls=max_calls)


def _with_undeclared(tools: ToolSet, undeclared: str) -> ToolSet:
    if undeclared == "exclusive":
        return tools
    return ToolSet.of(tool if tool.effects.declared else tool.with_effects(INDEPENDENT) for tool in tools)


def _policy_named(policy: object) -> Policy:
    """Return a policy that comes along, or that a file holds. Raises `UsageError`."""
    if isinstance(policy, str) and (policy in SHIPPED or not policy.endswith(".toml")):
        return shipped_policy(policy)
    if not isinstance(policy, str | Path):
        raise UsageError(f"`policy` is {policy!r}; it may be a name, the path of a TOML file, or a `Policy`")
    try:
        return policy_from_toml(Path(policy).read_text("utf-8-sig"), str(policy))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the policy `{policy}` cannot be read: {error}") from None


def _refuse_forbidden(reviewed: Review) -> None:
    """Raise `PlanRejected` when the policy forbids calls of the plan, whatever comes."""
    if reviewed.forbidden:
        raise PlanRejected(reviewed.forbidden, reviewed.plan.source)


def _not_allowed(word: Word, plan: Plan) -> PlanRejected:
    """Return the refusal of a plan with a diagnostic for each call that a person has refused."""
    places = {step.id: step.tool_place for step in walk(plan.steps) if isinstance(step, Call)}
    found = [not_allowed(places[call.step], call.step, call.tool, reason) for call, reason in word.refused]
    return PlanRejected(found, plan.source)


def _refuse_cut_off(plan: Plan, reply: Reply) -> None:
    """Raise `PlanRejected` for a plan out of a reply that ran into its output limit, unless it is certainly whole.

    A JSON value that needed no mending is. A program may have lost lines without a trace.
    """
    if reply.is_cut_off and (plan.notation != "json" or plan.repairs):
        end = len(plan.source.text)
        raise PlanRejected([cut_off(Place(start=max(0, end - 1), end=end), [])], plan.source)


def _report(step: StepRecord) -> StepReport:
    return StepReport(step.id, step.tool, step.outcome, step.arguments or {}, step.result, step.error)
