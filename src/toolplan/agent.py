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
from pathlib import Path
from typing import Any, Literal, TypeAlias

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
from toolplan.allowing import allowed, need_reader
from toolplan.check import CheckedPlan, Limits, check
from toolplan.conversation import Conversation
from toolplan.ending import answered, failed, without_rest
from toolplan.errors import ModelError, PlanRejected, UsageError
from toolplan.journal import Journal, LoopBegun, Replayed, tell
from toolplan.known import NOTHING_KNOWN, Known
from toolplan.loop import Gate, Loop, reason_for_no_plan, reason_to_loop
from toolplan.models import Model, model_from, model_from_name
from toolplan.options import (
    check_choice,
    check_number,
    check_seconds,
    check_switch,
    policy_named,
    router_of,
    with_budget,
    with_undeclared,
)
from toolplan.parse import CannotPlan, Prose
from toolplan.past import NO_PAST, Past
from toolplan.plan import Plan
from toolplan.planning import ask_for_plan, ask_for_rest, asked_with, check_in, read_plan, refuse_forbidden
from toolplan.policy import Policy, Review, Situation
from toolplan.policy import review as review_policy
from toolplan.policy.unmatched import unmatched
from toolplan.prompt import PromptMessage, plan_messages
from toolplan.replan import asks_for_another, known_after
from toolplan.result import Result
from toolplan.resuming import take_up
from toolplan.route import Offer, Router
from toolplan.route.offer import called_tools
from toolplan.run import EarlyCalls, RunEvent, RunResult, run_plan
from toolplan.run.approvals import Approver
from toolplan.run.left_behind import LeftBehind
from toolplan.schedule import AskUserNow
from toolplan.schedule.early import can_be_early
from toolplan.stream import AgentStream
from toolplan.tools import Tool, ToolSet
from toolplan.turn import Turn, form_of
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
    `ask_user` answers the plan's questions; without it a question ends the run as `waiting`. The model of a loop may
    ask when there is `ask_user`, or a journal, so that somebody can answer later.
    `base_url` and `api_key` go with a model given by name; without a key the provider's environment variable is read.
    `review=True` lets the model read an accepted plan once more before it runs; its objections send the plan back.
    The effects of a plan whose text had to be mended, or leaves open whether it is meant, need a person's word, unless
    `trust_repairs=True`.
    `max_repairs` is how often a rejected plan goes back, `max_replans` how often the rest of a plan is asked for anew
    after a step has failed or the plan wants to see results.
    `mode="loop"` lets the model call tools turn by turn, at most `max_turns`; a call that has had the same result, or
    was refused, `max_repeats` times is not made again. `mode="auto"` plans first, and loops when the model cannot plan.
    `reader` is the model for `ask_model` steps (default: the same). `now` is the time the plan sees, as ISO text.
    `route` chooses the tools that are sent with a request, for agents with many: a `Router`, or how many tools at most.
    A plan that needs others is asked for again with these (`Result.reasked`); in a loop the model can look for more.
    `undeclared="independent"` is your word that tools without declared effects may overlap.
    `failure="independent"` runs everything that does not use a failed step's value.
    `early_start=False` keeps calls that change nothing from starting while the plan that has them, or the turn of a
    loop, is still arriving; with a budget of calls none starts early, for it might be made for nothing.
    `speculate=True` lets calls that change nothing start although something before them may still end the plan or leave
    their loop; what they did is dropped when they turn out not to be needed.
    `max_calls` is how many calls a request may make, attempts again and rounds of loops included, and `max_seconds` how
    long its run may take; a run that needs more fails and says so. `max_calls` is the `Limits(max_calls=...)` of the
    check as well: a plan that may need more by its text is refused.
    With a `journal`, a file or a `Journal`, runs are written down: no effect leaves before that is durable, and
    `resume` goes on with a run, a loop too, whose process has ended, or that waits for a person.
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
        check_choice("answer", answer, ("template", "model", "none"))
        check_choice("failure", failure, ("written-order", "independent"))
        check_choice("undeclared", undeclared, ("exclusive", "independent"))
        check_number("max_repairs", max_repairs, 0)
        check_number("max_replans", max_replans, 0)
        check_choice("mode", mode, MODES)
        check_number("max_turns", max_turns, 1)
        check_number("max_repeats", max_repeats, 1)
        check_number("max_concurrency", max_concurrency, 1)
        if max_seconds is not None:
            check_seconds("max_seconds", max_seconds)
        switches = {"review": review, "trust_repairs": trust_repairs}
        for name, value in (switches | {"early_start": early_start, "speculate": speculate}).items():
            check_switch(name, value)
        self.model = None if model is None else model_from(model, base_url, api_key)
        self.reader = model_from_name(reader, base_url, api_key) if isinstance(reader, str) else reader or self.model
        self.tools = with_undeclared(ToolSet.of(tools), undeclared)
        self.router = router_of(route, self.tools)
        self.language: Language = language
        self.notation: Notation = notation
        self.answer = answer
        self.policy = policy if isinstance(policy, Policy) else policy_named(policy)
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
        self.limits = with_budget(limits or Limits(), max_calls)
        self.max_seconds = max_seconds
        self.speculate = speculate
        self.failure = failure
        self.early_start = early_start and any(can_be_early(tool) for tool in self.tools)
        self.dependencies = dependencies
        self.journal = journal if isinstance(journal, Journal) or journal is None else Journal(journal)
        self._owns_journal = not isinstance(journal, Journal)
        self._left_behind = LeftBehind()

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
        turn.asked = asked_with(turn)
        planned = await ask_for_plan(turn, turn.asked, known=turn.past.known)
        why = reason_to_loop(planned, self.tools) if turn.mode == "auto" else None
        if turn.mode == "auto" and not isinstance(planned, CheckedPlan):
            turn.mode_reason = reason_for_no_plan(planned)
        if why is not None:
            turn.switch(why)
            return await self._loop(turn)
        if isinstance(planned, CheckedPlan):
            return await self._run_checked(planned, turn)
        return turn.no_plan(planned)

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
        reading = None
        try:
            reading = plan if isinstance(plan, Plan) else read_plan(turn, plan)
            if isinstance(reading, Prose | CannotPlan):
                return turn.no_plan(reading)
            turn.origins.is_callers_plan = True
            checked = check_in(turn, reading)
        except PlanRejected as rejection:
            return turn.rejected(turn.refused(rejection, reading if isinstance(reading, Plan) else None))
        turn.offer.show(called_tools(checked.plan))
        turn.asked, turn.plan_text = asked_with(turn), show.canonical(checked.plan)
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
        happened. A loop is told again as far as it got, without asking its model. A run that has ended gives its
        result. `plan` is needed for a plan with secrets, which are not written down. Raises `JournalMismatch` when
        something has changed since (with `accept_changes`, only when that cannot be), `RunIsHeld` while another process
        is at work on it, `JournalError` when there is no such run.
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
        story = tell(self.journal.read(run_id))
        begun = story.begun
        turn = Turn(self, begun.request, begun.now, None, self._early_calls)
        turn.begin("loop" if begun.mode == "loop" else "plan", Past.of_entry(story.earlier))
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
        """Go on with a run where its journal ends; see `resuming.py`."""
        await turn.early.close()
        given = None if plan is None or isinstance(plan, Plan) else read_plan(turn, plan)
        if isinstance(given, Prose | CannotPlan):
            raise UsageError("what was given is no plan")
        given = plan if isinstance(plan, Plan) else given
        last = await take_up(turn, run_id, self._run, given=given, accept_changes=accept_changes)
        if isinstance(last, Result):
            return last
        if isinstance(last, LoopBegun):
            return await turn.recorded(self._loop(turn, last))
        return await turn.recorded(self._run_checked(last.checked, turn, last.state))

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
            notation=form_of(self),
            now=now or self._now(),
            context=self.context,
            extra_rules=self.extra_rules,
            others=offer.others_told,
        )

    def check(self, plan: Plan, known: Known = NOTHING_KNOWN) -> CheckedPlan:
        """Return the plan checked against this agent's tools and limits, and what is known before it starts.

        Raises `PlanRejected`.
        """
        checked = check(plan, self.tools, self.limits, known)
        refuse_forbidden(review_policy(checked.plan, self.tools, self.policy, Situation(words_are_trusted=True)))
        return checked

    # Its parts ----------------------------------------------------------------------------------------------------

    def turn(
        self, request: str, watch: Watcher | None = None, *, mode: Mode | None = None, past: Past = NO_PAST
    ) -> Turn:
        """Return the turn in which a request is answered. Raises `UsageError` for what is no request."""
        if mode is not None:
            check_choice("mode", mode, MODES)
        if not isinstance(request, str):  # pyright: ignore[reportUnnecessaryIsInstance] - not every caller checks types
            raise UsageError(f"a request is text, but this is a `{type(request).__name__}`")
        turn = Turn(self, request, self._now(), watch, self._early_calls)
        turn.begin(mode or self.mode, past)
        return turn

    def _early_calls(self, turn: Turn) -> EarlyCalls:
        """Return what makes calls before the plan that they belong to is accepted, through the same gate."""

        def may_start(plan: Plan, step: str, known: Known) -> bool:
            try:
                reviewed = turn.reviewed(check(plan, self.tools, turn.limits, known))
            except PlanRejected:  # the whole plan will be, too
                return False
            refused = turn.approvals.grants.refusals.tools  # their calls may ask, whatever the policy says
            if not refused.isdisjoint(called_tools(plan)):
                return False
            return not reviewed.forbidden and all(call.step != step for call in reviewed.calls)

        async def run(plan: Plan, watch: Callable[[RunEvent], None]) -> RunResult:
            checked = check(plan, self.tools, turn.limits)
            return await run_plan(
                checked,
                now=turn.now,
                max_concurrency=1,
                dependencies=self.dependencies,
                watch=watch,
                left_behind=self._left_behind,
                secrets=turn.secrets,
            )

        return EarlyCalls(
            self.tools, may_start, run, now=turn.now, max_concurrency=self.max_concurrency, tell=turn.tell
        )

    async def _run_checked(self, checked: CheckedPlan, turn: Turn, goes_on: Replayed | None = None) -> Result:
        """Run a plan that may run, and the ones that go on after it, to the end of the request.

        One that `goes_on` has been allowed by whoever began it.
        """
        while True:
            if goes_on is not None:
                need_reader(checked, turn)
                turn.accepted(checked)
                reviewed = turn.reviewed(checked)
            else:
                may_run = await allowed(checked, turn)
                if isinstance(may_run, Result):
                    return may_run
                checked, reviewed = may_run
            run = await self._run(checked, reviewed, turn, self.failure, goes_on)
            goes_on = None
            if turn.keeps_names:
                turn.known = known_after(checked, run)
            if not (turn.can_replan and asks_for_another(run)):
                return await answered(run, turn)
            try:
                planned = await ask_for_rest(turn, checked, run)
            except ModelError as error:  # what was done is done; the user must hear of it all the same
                return failed(run, turn, f"planning again failed: {error}")
            if not isinstance(planned, CheckedPlan):
                return without_rest(planned, run, turn)
            checked = planned

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
            max_calls=turn.limits.max_calls,
            max_seconds=turn.max_seconds,
            guard=turn.approvals.guard(checked, reviewed),
            journal=turn.begin_run(),
            goes_on=goes_on,
            left_behind=self._left_behind,
            secrets=turn.secrets,
        )
        await turn.early.close()
        turn.ran(run, reviewed)
        if goes_on is not None:
            turn.hear_answers(checked, run)
        return run

    async def _loop(self, turn: Turn, begun: LoopBegun | None = None) -> Result:
        """Let the model call tools turn by turn, through the same gate as a plan.

        One that an earlier process has `begun` is told again first, as far as it got; see `retelling.py`.
        """
        if begun is None:
            begun = self._begin_loop(turn)
        failure = "independent" if begun.failure == "independent" else "reads-go-on"
        gate = Gate(
            lambda plan, known: check_in(turn, plan, known),
            turn.reviewed,
            turn.approvals,
            lambda checked, reviewed: self._run(checked, reviewed, turn, failure, turn.taken_up(checked)),
        )
        result = await Loop(self, turn, gate, begun, turn.past.messages).run()
        if turn.retelling is not None:
            turn.retelling.live()
        return result

    def _begin_loop(self, turn: Turn) -> LoopBegun:
        """Return what the turns of a new loop depend on, written down."""
        begun = LoopBegun(
            turn.mode,
            turn.mode_reason,
            self.failure,
            self.max_turns,
            self.max_repeats,
            self.ask_user is not None or self.journal is not None,  # somebody may answer later
            list(turn.offer.tools.names) if self.router is not None else None,
        )
        turn.record.note(begun)
        return begun

    async def _ask(self, command: AskUserNow, turn: Turn) -> str | None:
        assert self.ask_user is not None
        answer = self.ask_user(command.question)
        said = await answer if inspect.isawaitable(answer) else answer
        if said is not None:
            turn.origins.said.append(str(said))
        return said

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


def _check_plan(plan: object) -> None:
    if not isinstance(plan, Plan | str | list | dict):
        raise UsageError(f"a plan is text, a list or an object, but this is a `{type(plan).__name__}`")
