"""Commands that answer requests and run plans: `demo`, `ask`, `run`."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from toolplan.cli.options import (
    BaseUrlOption,
    JournalOption,
    JsonOption,
    LanguageOption,
    ModelOption,
    NoJournalOption,
    NotationOption,
    NowOption,
    PlanArgument,
    PolicyOption,
    QuietOption,
    RequestArgument,
    RouteOption,
    ToolsOption,
    TraceOption,
    YesOption,
    flag,
)
from toolplan.cli.outputs import print_result
from toolplan.cli.streams import say, say_json, stream_for_results
from toolplan.cli.words import tongue_of
from toolplan.errors import PlanRejected, UsageError

if TYPE_CHECKING:
    from toolplan.cli.words import Tongue
    from toolplan.plan import Plan

__all__ = ["ask", "demo", "run"]

REPLY_SECONDS = 0.8
"""How long a recorded reply takes to come in when somebody sees it come."""


def demo(
    name: Annotated[str | None, Parameter(help="One demo; without it all of them run.")] = None,
    /,
    *,
    list_them: Annotated[bool, flag("--list", help="Only list the demos.")] = False,
    language: Annotated[
        Literal["en", "zh"] | None,
        Parameter(name="--language", help="Run them in this language. Without it: some in each."),
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    trace: TraceOption = False,
) -> int:
    """Run the demos: recorded model replies, everything else real. Needs no key and no network."""
    from toolplan.cli.progress import watching
    from toolplan.demo import Output, list_demos, run_demos

    output = Output(say=say, say_json=say_json if as_json else None)
    if list_them:
        return list_demos(output)
    stream = sys.stderr if as_json else stream_for_results()
    watch = partial(watching, stream, quiet=quiet or as_json, trace=trace)
    is_seen = stream.isatty() and not (quiet or as_json or trace)
    return run_demos(name, language, output, watch, reply_seconds=REPLY_SECONDS if is_seen else 0.0)


def ask(
    request: RequestArgument,
    /,
    *,
    tools: ToolsOption,
    model: ModelOption = None,
    base_url: BaseUrlOption = None,
    answer: Annotated[
        Literal["template", "model", "none"],
        Parameter(
            name="--answer",
            help="Who words the answer. template: the plan, if it does, else one more inference; model: always one "
            "more inference; none: the plan or nobody.",
        ),
    ] = "template",
    max_repairs: Annotated[
        int, Parameter(name="--max-repairs", help="How often a rejected plan goes back to the model.")
    ] = 2,
    max_replans: Annotated[
        int,
        Parameter(name="--max-replans", help="How often the rest of a plan that stopped is asked for anew."),
    ] = 2,
    mode: Annotated[
        Literal["plan", "loop", "auto"],
        Parameter(
            name="--mode",
            help="plan: one plan for the whole request; loop: calls turn by turn; auto: a plan, a loop where none can "
            "be made.",
        ),
    ] = "plan",
    max_turns: Annotated[
        int, Parameter(name="--max-turns", help="How often a loop may ask the model, its answer included.")
    ] = 20,
    review: Annotated[
        bool,
        flag("--review", help="Let the model read its accepted plan once more before it runs: one more inference."),
    ] = False,
    route: RouteOption = None,
    notation: NotationOption = "json",
    language: LanguageOption = "auto",
    now: NowOption = None,
    policy: PolicyOption = "default",
    yes: YesOption = False,
    journal: JournalOption = None,
    no_journal: NoJournalOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    trace: TraceOption = False,
) -> int:
    """Answer a request: one inference, a checked plan, a parallel run."""
    from toolplan.agent import Agent
    from toolplan.cli.inputs import load_toolset, model_for, moment, read_request
    from toolplan.cli.running import Manner, carry_out
    from toolplan.cli.runs import journal_for
    from toolplan.models import no_model_message

    request = read_request(request)
    if max_repairs < 0:
        raise UsageError(f"`--max-repairs` is {max_repairs}; write 0 or more")
    if max_replans < 0:
        raise UsageError(f"`--max-replans` is {max_replans}; write 0 or more")
    if max_turns < 1:
        raise UsageError(f"`--max-turns` is {max_turns}; write 1 or more")
    spoken = tongue_of(language, request)
    chosen = model_for(model, base_url)
    if chosen is None:
        raise UsageError(no_model_message(spoken))
    make_agent = partial(
        Agent,
        chosen,
        load_toolset(tools),
        journal=journal_for(journal, off=no_journal),
        language=language,
        now=moment(now),
        answer=answer,
        max_repairs=max_repairs,
        max_replans=max_replans,
        max_turns=max_turns,
        mode=mode,
        route=route,
        review=review,
        notation=notation,
        policy=policy,
    )
    return carry_out(
        make_agent,
        lambda agent: agent.stream(request),
        Manner(spoken, yes, as_json, quiet, trace),
    )


def run(
    plan: PlanArgument,
    /,
    *,
    tools: ToolsOption,
    model: ModelOption = None,
    base_url: BaseUrlOption = None,
    language: LanguageOption = "auto",
    now: NowOption = None,
    policy: PolicyOption = "default",
    yes: YesOption = False,
    journal: JournalOption = None,
    no_journal: NoJournalOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    trace: TraceOption = False,
) -> int:
    """Check and run a plan that somebody already has. Prints first what it will do.

    A model is only needed by plans with `ask_model` steps.
    """
    from toolplan import show
    from toolplan.agent import Agent, Result
    from toolplan.answer import cannot_text
    from toolplan.cli.inputs import load_toolset, model_for, moment, read_plan
    from toolplan.cli.running import Manner, carry_out
    from toolplan.cli.runs import journal_for
    from toolplan.diagnostics import render_all
    from toolplan.models import no_model_message
    from toolplan.parse import CannotPlan, Prose
    from toolplan.plan import AskModel, walk

    chosen = model_for(model, base_url)
    make_agent = partial(Agent, chosen, load_toolset(tools), now=moment(now), policy=policy)
    spoken: Tongue = "en" if language == "auto" else language
    looking = make_agent()
    try:
        reading = read_plan(plan, looking.tools)
        if isinstance(reading, Prose):
            return print_result(Result("succeeded", reading.text), spoken, as_json=as_json)
        if isinstance(reading, CannotPlan):
            text = cannot_text(reading.reason, reading.missing, tongue_of(language, reading.reason))
            result = Result("rejected", text, error=reading.reason, missing=reading.missing)
            return print_result(result, spoken, as_json=as_json)
        checked = looking.check(reading)
    except PlanRejected as rejection:
        found, source = rejection.diagnostics, rejection.source
        result = Result("rejected", render_all(found, source), diagnostics=found, error=str(rejection), source=source)
        return print_result(result, spoken, as_json=as_json)
    spoken = tongue_of(language, _texts_of(reading))
    if chosen is None and any(isinstance(step, AskModel) for step in walk(reading.steps)):
        raise UsageError(f"this plan has an `ask_model` step, and {no_model_message(spoken)}")
    if not quiet and not as_json:
        say(show.summary(checked.plan, checked.tools))
    make_agent = partial(make_agent, language=spoken, journal=journal_for(journal, off=no_journal))
    return carry_out(
        make_agent,
        lambda agent: agent.stream_plan(reading),
        Manner(spoken, yes, as_json, quiet, trace),
    )


def _texts_of(plan: Plan) -> str:
    """Return what the plan says to a person, to tell its language by."""
    from toolplan.plan import Answer, AskUser, Note, walk
    from toolplan.show.words import template_text

    said = [
        step.question if isinstance(step, AskUser) else step.text
        for step in walk(plan.steps)
        if isinstance(step, Answer | AskUser | Note)
    ]
    texts = [template_text(template, 1000) for template in [*said, *([plan.answer] if plan.answer else [])]]
    return "\n".join([plan.thought or "", *texts])
