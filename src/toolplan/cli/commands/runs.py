"""Commands about the runs in the journal: `runs`, `resume`, `approve`, `answer`, `resolve`."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

from cyclopts import Parameter

from toolplan.cli.options import (
    BaseUrlOption,
    JournalOption,
    JsonOption,
    LanguageOption,
    ModelOption,
    PolicyOption,
    QuietOption,
    RunArgument,
    ToolsOption,
    TraceOption,
    YesOption,
    flag,
)
from toolplan.cli.words import tongue_of

__all__ = ["answer", "approve", "resolve", "resume", "runs"]


def runs(
    run: Annotated[
        str | None, Parameter(help="One run, to see what is written of it; without it all are listed.")
    ] = None,
    /,
    *,
    limit: Annotated[int, Parameter(name="--limit", help="How many of the newest runs are listed.")] = 20,
    journal: JournalOption = None,
    as_json: JsonOption = False,
) -> int:
    """List the runs in the journal, or show one of them and what it waits for."""
    from toolplan.cli.runs import list_runs, show_run

    if run is not None:
        return show_run(journal, run, as_json=as_json)
    return list_runs(journal, limit=limit, as_json=as_json)


def resume(
    run: RunArgument,
    /,
    *,
    tools: ToolsOption,
    plan: Annotated[
        str | None,
        Parameter(name="--plan", help="The plan of the run, where it holds secrets: they are not written down."),
    ] = None,
    accept_changes: Annotated[
        bool,
        flag(
            "--accept-changes",
            help="Go on although tools, the policy or the version of toolplan are not what they were.",
        ),
    ] = False,
    model: ModelOption = None,
    base_url: BaseUrlOption = None,
    policy: PolicyOption = "default",
    language: LanguageOption = "auto",
    yes: YesOption = False,
    journal: JournalOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    trace: TraceOption = False,
) -> int:
    """Go on with a run whose process has ended, or that waited for you. Nothing that has finished is done again."""
    from toolplan.agent import Agent
    from toolplan.cli.inputs import load_toolset, model_for, read_text
    from toolplan.cli.running import Manner, carry_out
    from toolplan.cli.runs import begun_of, journal_at

    spoken = tongue_of(language, begun_of(journal, run))
    given = read_text(plan, "a plan")[0] if plan is not None else None
    toolset = load_toolset(tools)
    chosen = model_for(model, base_url)
    make_agent = partial(Agent, chosen, toolset, language=language, policy=policy, journal=journal_at(journal))
    return carry_out(
        make_agent,
        lambda agent: agent.stream_resume(run, plan=given, accept_changes=accept_changes),
        Manner(spoken, yes, as_json, quiet, trace),
    )


def approve(
    run: RunArgument,
    /,
    *,
    step: Annotated[
        list[str] | None,
        Parameter(
            name="--step",
            negative=(),
            consume_multiple=False,
            help="Only the calls of this step. May be given several times.",
        ),
    ] = None,
    deny: Annotated[str | None, Parameter(name="--deny", help="Refuse it instead, for this reason.")] = None,
    whole: Annotated[
        bool, flag("--for-run", help="Also later calls of the same tools that ask for the same reason in this run.")
    ] = False,
    journal: JournalOption = None,
    as_json: JsonOption = False,
) -> int:
    """Allow what a run asks for, or refuse it. `resume` goes on with it."""
    from toolplan.cli import runs as stored

    return stored.approve(journal, run, step or (), deny, whole, as_json=as_json)


def answer(
    run: RunArgument,
    text: Annotated[str, Parameter(help="The answer.")],
    /,
    *,
    step: Annotated[str | None, Parameter(name="--step", help="The step that asks, where several do.")] = None,
    journal: JournalOption = None,
    as_json: JsonOption = False,
) -> int:
    """Answer the question of a plan that a run waits for. `resume` goes on with it."""
    from toolplan.cli import runs as stored

    return stored.answer(journal, run, text, step, as_json=as_json)


def resolve(
    run: RunArgument,
    step: Annotated[str, Parameter(help="The step whose effect it is.")],
    how: Annotated[Literal["happened", "did-not-happen", "fail"], Parameter(help="What you have found out.")],
    /,
    *,
    result: Annotated[
        str | None, Parameter(name="--result", help="What the call would have returned, as JSON.")
    ] = None,
    reason: Annotated[str | None, Parameter(name="--reason", help="Why it counts as failed.")] = None,
    journal: JournalOption = None,
    as_json: JsonOption = False,
) -> int:
    """Say whether an effect has happened that was under way when the process ended. `resume` goes on with the run."""
    from toolplan.cli import runs as stored

    return stored.resolve(journal, run, step, how, result, reason, as_json=as_json)
