"""The commands of `toolplan`.

Exit codes: 0 success, 1 refused or failed, 2 wrong usage, 3 waiting for a person, 130 interrupted. With `--json` a
command prints exactly one JSON document on standard output; what is meant for a person goes to standard error.
Library modules are imported inside the commands, so that `toolplan --help` stays quick.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

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
    RunArgument,
    ToolsOption,
    TraceOption,
    YesOption,
    flag,
    tools_option,
)
from toolplan.cli.outputs import FAILED, OK, print_no_plan, print_rejection, print_result, to_json
from toolplan.cli.streams import say, say_json, stream_for_results, warn
from toolplan.errors import PlanRejected, UsageError

if TYPE_CHECKING:
    from toolplan.cli.words import Tongue
    from toolplan.plan import Plan
    from toolplan.tools import Tool

__all__ = ["app"]

REPLY_SECONDS = 0.8
"""How long a recorded reply takes to come in when somebody sees it come."""

app = App(
    name="toolplan",
    help="Ask a language model once for a whole plan of tool calls; check it, run it in parallel, answer.",
    help_format="plaintext",
    help_epilogue="Start with `toolplan demo`, which needs no key. `toolplan COMMAND --help` tells more; every command "
    "takes --json. Exit codes: 0 success, 1 refused or failed, 2 wrong usage, 3 waiting for a person, 130 interrupted.",
    version_flags=["--version"],
    suppress_keyboard_interrupt=False,
)


@app.command(sort_key=1, help_epilogue="Example: toolplan demo ten-cities --language zh")
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


@app.command(
    sort_key=2,
    help_epilogue='Example: toolplan ask "Will it rain in Oslo tomorrow?" --tools tools.py --model ollama:qwen3:8b',
)
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
    from toolplan.prompt import language_of

    request = read_request(request)
    if max_repairs < 0:
        raise UsageError(f"`--max-repairs` is {max_repairs}; write 0 or more")
    if max_replans < 0:
        raise UsageError(f"`--max-replans` is {max_replans}; write 0 or more")
    spoken = language_of(request) if language == "auto" else language
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


@app.command(sort_key=3, help_epilogue="Example: toolplan run plan.json --tools tools.py --tools my.package:more_tools")
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
    try:
        reading = read_plan(plan, make_agent().tools)
        if isinstance(reading, Prose):
            return print_result(Result("succeeded", reading.text), spoken, as_json=as_json)
        if isinstance(reading, CannotPlan):
            text = cannot_text(reading.reason, reading.missing, _spoken(language, reading.reason))
            result = Result("rejected", text, error=reading.reason, missing=reading.missing)
            return print_result(result, spoken, as_json=as_json)
        checked = make_agent().check(reading)
    except PlanRejected as rejection:
        found, source = rejection.diagnostics, rejection.source
        result = Result("rejected", render_all(found, source), diagnostics=found, error=str(rejection), source=source)
        return print_result(result, spoken, as_json=as_json)
    spoken = _spoken(language, _texts_of(reading))
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


@app.command(sort_key=4, help_epilogue="Example: toolplan check plan.json --tools tools.py")
def check(
    plan: PlanArgument,
    /,
    *,
    tools: ToolsOption,
    watch: Annotated[
        bool,
        flag("--watch", "-w", help="Check again whenever the file is saved, until Ctrl-C. Tools are loaded once."),
    ] = False,
    shape: Annotated[
        Literal["text", "json", "sarif"] | None,
        Parameter(
            name="--format",
            help="text: for people, the default; json: one document, as --json; sarif: SARIF 2.1.0, for editors and "
            "code scanners. With --watch a document takes one line.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Check a plan against tools, and say everything that is wrong with it. Runs nothing."""
    from toolplan.cli import checking
    from toolplan.cli.inputs import load_toolset

    if as_json and shape not in (None, "json"):
        raise UsageError(f"`--json` and `--format {shape}` ask for different documents; give one of them")
    shape = "json" if as_json else shape or "text"
    toolset = load_toolset(tools)
    return checking.watch(plan, toolset, shape) if watch else checking.check_once(plan, toolset, shape)


@app.command(sort_key=5, help_epilogue="Example: toolplan show plan.json --mermaid > plan.mmd")
def show(
    plan: PlanArgument,
    /,
    *,
    tools: Annotated[
        list[str] | None,
        tools_option("Tools, as for `check`; only needed where their names decide how the text is read."),
    ] = None,
    mermaid: Annotated[bool, flag("--mermaid", help="Draw it as a Mermaid flowchart.")] = False,
    order: Annotated[
        bool, flag("--order", help="Say what each step waits for, and why; as `explain-order`. Needs the tools.")
    ] = False,
    as_json: JsonOption = False,
) -> int:
    """Print a plan in its canonical form, as a diagram, or with the order of its steps."""
    from toolplan import show as printing
    from toolplan.cli.inputs import load_toolset, read_plan
    from toolplan.cli.ordering import print_order
    from toolplan.parse import CannotPlan, Prose

    if order and mermaid:
        raise UsageError("`--order` and `--mermaid` ask for different things; give one of them")
    if order and not tools:
        raise UsageError("`--order` follows from what the tools declare; name them with `--tools`")
    if order:
        return print_order(plan, load_toolset(tools or []), as_json=as_json)
    toolset = load_toolset(tools) if tools else None
    try:
        reading = read_plan(plan, toolset)
    except PlanRejected as rejection:
        return print_rejection(rejection, as_json=as_json)
    if isinstance(reading, Prose | CannotPlan):
        return print_no_plan(reading, as_json=as_json)
    if as_json:
        say_json({"plan": to_json(reading)} | ({"mermaid": printing.mermaid(reading)} if mermaid else {}))
    else:
        say(printing.mermaid(reading).rstrip() if mermaid else printing.canonical(reading))
    return OK


@app.command(sort_key=6, help_epilogue="Example: toolplan fmt plan.json --write")
def fmt(
    plan: PlanArgument,
    /,
    *,
    tools: Annotated[
        list[str] | None,
        tools_option("Tools, as for `check`; only needed where their names decide how the text is read."),
    ] = None,
    write: Annotated[bool, flag("--write", help="Rewrite the file instead of printing.")] = False,
    check: Annotated[
        bool, flag("--check", help="Change nothing; exit with 1 where the file is not in the canonical form.")
    ] = False,
    as_json: JsonOption = False,
) -> int:
    """Bring a plan into its canonical form: one spelling, one layout. Prints it, or rewrites the file."""
    from toolplan.cli.formatting import formatted
    from toolplan.cli.inputs import load_toolset
    from toolplan.parse import CannotPlan, Prose

    if write and check:
        raise UsageError("`--write` changes the file and `--check` does not; give one of them")
    try:
        done = formatted(plan, load_toolset(tools) if tools else None, in_place=write or check)
    except PlanRejected as rejection:
        return print_rejection(rejection, as_json=as_json)
    if isinstance(done, Prose | CannotPlan):
        return print_no_plan(done, as_json=as_json)
    if write and done.is_changed:
        done.write()
    if as_json:
        say_json({"changed": done.is_changed, "plan": to_json(done.plan)})
    elif write or check:
        say(done.in_words(written=write))
    else:
        say(done.text.removesuffix("\n"))
    return FAILED if check and done.is_changed else OK


@app.command(sort_key=7, help_epilogue="Example: toolplan tools --tools tools.py --json")
def tools(
    *,
    tools: ToolsOption,
    as_json: JsonOption = False,
) -> int:
    """List tools: their signatures and effects, or with --json their JSON Schemas."""
    from toolplan.cli.inputs import load_toolset
    from toolplan.tools import signatures

    toolset = load_toolset(tools)
    if as_json:
        say_json([tool.to_json() for tool in toolset])
        return OK
    say(signatures(toolset))
    say("\neffects:")
    width = max(len(tool.name) for tool in toolset)
    for tool in toolset:
        say(f"  {tool.name:<{width}}  {_declared(tool)}")
    undeclared = [tool.name for tool in toolset if not tool.effects.declared]
    if undeclared:
        say(
            f"\nA call of {' or '.join(undeclared)} runs alone and in written order, for it might change anything."
            "\nTo let calls overlap, declare what is true of them: @tool(pure=True),"
            ' @tool(reads="weather"), @tool(writes="mailbox:{to}")'
        )
    return OK


@app.command(sort_key=8, help_epilogue='Example: toolplan prompt "Will it rain in Oslo tomorrow?" --tools tools.py')
def prompt(
    request: RequestArgument,
    /,
    *,
    tools: ToolsOption,
    route: RouteOption = None,
    notation: NotationOption = "json",
    language: LanguageOption = "auto",
    now: NowOption = None,
    as_json: JsonOption = False,
) -> int:
    """Print exactly the messages that a model would get, and about how many tokens they are."""
    import dataclasses

    from toolplan.agent import Agent
    from toolplan.cli.inputs import load_toolset, moment, read_request
    from toolplan.prompt import measure
    from toolplan.route import Offer

    request = read_request(request)
    toolset = load_toolset(tools)
    time = moment(now)
    agent = Agent(tools=toolset, notation=notation, language=language, now=time, route=route)
    messages = agent.prompt(request)
    offer = Offer(agent.tools, agent.router, request)
    size = measure(offer.tools, request, notation=notation, language=language, now=time, others=offer.others)
    if as_json:
        shown = [{"role": message.role, "content": message.content} for message in messages]
        say_json({"messages": shown, "tokens": dataclasses.asdict(size)})
        return OK
    for message in messages:
        say(f"--- {message.role} ---\n{message.content}\n")
    warn(
        f"about {size.total:,} tokens ({size.counted_with}); of these the tools {size.tools:,}, which as JSON Schemas "
        f"would be {size.json_schemas_with_results:,} ({size.json_schemas:,} without their results)"
    )
    return OK


@app.command(
    name="route",
    sort_key=8.5,
    help_epilogue='Example: toolplan route "明天奥斯陆会下雨吗？" --tools tools.py --top 3 --intent 下雨=get_weather',
)
def choose(
    request: RequestArgument,
    /,
    *,
    tools: ToolsOption,
    top: Annotated[int, Parameter(name="--top", help="How many tools are chosen at most.")] = 10,
    max_tokens: Annotated[
        int | None, Parameter(name="--max-tokens", help="How many tokens the text of the chosen tools may cost.")
    ] = None,
    always: Annotated[
        list[str] | None,
        Parameter(
            name="--always", negative=(), consume_multiple=False, help="A tool that is always chosen. Several times."
        ),
    ] = None,
    intent: Annotated[
        list[str] | None,
        Parameter(
            name="--intent",
            negative=(),
            consume_multiple=False,
            help="WORD=TOOL,TOOL: a word in the request and the tools it stands for. Several times. Tools may also say "
            "so themselves: @tool(keywords=...).",
        ),
    ] = None,
    embeddings: Annotated[
        bool, flag("--embeddings", help="Compare meanings too. Needs `pip install 'toolplan[route]'`.")
    ] = False,
    as_json: JsonOption = False,
) -> int:
    """Say which of the tools would be sent with a request, and why: shared words, keywords, likeness. Asks no model."""
    from toolplan.cli.inputs import load_toolset, read_request
    from toolplan.cli.routing import print_route

    return print_route(
        read_request(request),
        load_toolset(tools),
        top=top,
        max_tokens=max_tokens,
        always=always or (),
        intents=intent or (),
        embeddings=embeddings,
        as_json=as_json,
    )


@app.command(sort_key=9, help_epilogue="Example: toolplan schema --tools tools.py > plan.schema.json")
def schema(
    *,
    tools: ToolsOption,
    strict: Annotated[
        bool,
        flag("--strict", help="Leave out what providers' strict modes refuse."),
    ] = False,
    as_json: JsonOption = False,
) -> int:
    """Print the JSON Schema of plans for these tools, for structured output or constrained decoding."""
    from toolplan.cli.inputs import load_toolset
    from toolplan.plan_schema import plan_schema

    say_json(plan_schema(load_toolset(tools), strict=strict))
    return OK


@app.command(
    name="explain-order", sort_key=5.5, help_epilogue="Example: toolplan explain-order plan.json --tools tools.py"
)
def explain_order(
    plan: PlanArgument,
    /,
    *,
    tools: ToolsOption,
    everything: Annotated[
        bool, flag("--all", help="Also the waits that follow from others, which are left out otherwise.")
    ] = False,
    failure: Annotated[
        Literal["written-order", "independent"],
        Parameter(name="--failure", help="What a failure means, as for an `Agent`."),
    ] = "written-order",
    as_json: JsonOption = False,
) -> int:
    """Say what each step of a plan waits for, and why: values, effects, states, failures, ends. Runs nothing."""
    from toolplan.cli.inputs import load_toolset
    from toolplan.cli.ordering import print_order

    return print_order(plan, load_toolset(tools), failure=failure, everything=everything, as_json=as_json)


@app.command(
    sort_key=9.5,
    help_epilogue="Example: toolplan policy test plan.json --tools tools.py --request 'pay Ann 20'; "
    "toolplan policy show default",
)
def policy(
    action: Annotated[
        Literal["test", "show"],
        Parameter(help="test: say of each call of a plan what the policy does and why; show: print a policy."),
    ],
    what: Annotated[str, Parameter(help="test: a file with a plan, or -; show: a policy's name or TOML file.")],
    /,
    *,
    tools: Annotated[list[str] | None, tools_option("Tools, as for `check`. Needed by `test`.")] = None,
    policy: PolicyOption = "default",
    request: Annotated[
        str | None,
        Parameter(
            name="--request",
            help="What was asked for: then the plan counts as a model's, whose words were said if they are in it.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Say what a policy does with each call of a plan, and which rule decides; or print a policy. Runs nothing."""
    from toolplan.cli.inputs import load_toolset
    from toolplan.cli.policies import show_policy, try_policy

    if action == "show":
        return show_policy(what, as_json=as_json)
    if not tools:
        raise UsageError("`policy test` needs the tools of the plan; name them with `--tools`")
    return try_policy(what, load_toolset(tools), policy, request, as_json=as_json)


@app.command(sort_key=3.1, help_epilogue="Example: toolplan runs 3f2a")
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


@app.command(sort_key=3.2, help_epilogue="Example: toolplan resume 3f2a --tools tools.py")
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

    spoken = _spoken(language, begun_of(journal, run))
    given = read_text(plan, "a plan")[0] if plan is not None else None
    toolset = load_toolset(tools)
    chosen = model_for(model, base_url)
    make_agent = partial(Agent, chosen, toolset, language=language, policy=policy, journal=journal_at(journal))
    return carry_out(
        make_agent,
        lambda agent: agent.stream_resume(run, plan=given, accept_changes=accept_changes),
        Manner(spoken, yes, as_json, quiet, trace),
    )


@app.command(sort_key=3.3, help_epilogue='Example: toolplan approve 3f2a --deny "not this customer"')
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


@app.command(sort_key=3.4, help_epilogue='Example: toolplan answer 3f2a "the second one"')
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


@app.command(sort_key=3.5, help_epilogue="Example: toolplan resolve 3f2a s2 happened --result '{\"id\": 7}'")
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


@app.command(sort_key=10, help_epilogue="Example: toolplan explain TP302")
def explain(
    code: Annotated[str | None, Parameter(help="A code such as TP302; without it all codes are listed.")] = None,
    /,
    *,
    as_json: JsonOption = False,
) -> int:
    """Tell the long story behind a diagnostic's code."""
    from toolplan.diagnostics import load_catalogue, nearest

    catalogue = load_catalogue()
    names = ("code", "title", "severity", "story", "wrong", "right")
    if code is None:
        if as_json:
            say_json([{name: str(getattr(entry, name)) for name in names} for entry in catalogue.values()])
        for entry in () if as_json else catalogue.values():
            say(f"{entry.code}  {entry.severity:<7}  {entry.title}")
        return OK
    wanted = code.strip().upper()
    entry = catalogue.get(wanted) or catalogue.get(f"TP{wanted}")
    if entry is None:
        near = nearest(wanted, catalogue)
        raise UsageError(
            f"there is no code `{code}`" + (f"; did you mean `{near}`?" if near else "; `toolplan explain` lists them")
        )
    if as_json:
        say_json({name: str(getattr(entry, name)) for name in names})
        return OK
    say(f"{entry.code}: {entry.title} ({entry.severity})\n\n{entry.story.strip()}")
    for head, example in (("wrong:", entry.wrong), ("right:", entry.right)):
        if example.strip():
            say(f"\n{head}\n" + "\n".join(f"    {line}" for line in example.strip("\n").splitlines()))
    return OK


# What they share ------------------------------------------------------------------------------------------------------


def _spoken(language: Literal["auto", "en", "zh"], text: str) -> Tongue:
    from toolplan.prompt import language_of

    return language_of(text) if language == "auto" else language


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


def _declared(tool: Tool) -> str:
    """Return what a tool declares about its calls."""
    effects = tool.effects
    said = [f"changes {', '.join(effects.writes)}"] if effects.writes else []
    said += [f"reads {', '.join(effects.reads)}"] if effects.reads else []
    said = said or ["pure" if effects.declared else "not declared"]
    said += {"ask": ["asks for approval"], "deny": ["may not be called"]}.get(tool.approval or "", [])
    reason = tool.why_unavailable()
    return "; ".join([*said, f"not available: {reason}"] if reason else said)
