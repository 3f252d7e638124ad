"""The commands of `toolplan`.

Exit codes: 0 success, 1 refused or failed, 2 wrong usage, 3 waiting for a person, 130 interrupted. With `--json` a
command prints exactly one JSON document on standard output; what is meant for a person goes to standard error.
Library modules are imported inside the commands, so that `toolplan --help` stays quick.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, CycloptsError, Parameter

from toolplan.errors import PlanRejected, ToolplanError, UsageError

if TYPE_CHECKING:
    from toolplan.agent import Agent, Result
    from toolplan.check import CheckedPlan
    from toolplan.plan import Plan
    from toolplan.policy import PlannedCall

__all__ = ["app", "main"]

OK, FAILED, USAGE, WAITING, INTERRUPTED = 0, 1, 2, 3, 130

app = App(
    name="toolplan",
    help="Ask a language model once for a whole plan of tool calls; check it, run it in parallel, answer.",
    version_flags=["--version"],
    help_format="plaintext",
)

ToolsOption = Annotated[
    list[str],
    Parameter(
        name=["--tools", "-t"],
        negative=(),
        consume_multiple=False,
        help="A Python file or an importable module with tools; FILE:NAME takes one list or function. Repeatable.",
    ),
]
ModelOption = Annotated[
    str | None,
    Parameter(name=["--model", "-m"], help="PROVIDER:NAME, or scripted:FILE.jsonl for replies from a file."),
]
BaseUrlOption = Annotated[str | None, Parameter(name="--base-url", help="Address of an OpenAI-compatible server.")]
JsonOption = Annotated[
    bool, Parameter(name="--json", negative=(), help="Print one JSON document on standard output, nothing else.")
]
YesOption = Annotated[
    bool, Parameter(name=["--yes", "-y"], negative=(), help="Allow every call whose tool asks for approval.")
]
LanguageOption = Annotated[
    Literal["auto", "en", "zh"], Parameter(name="--language", help="Language of prompts and messages.")
]
NowOption = Annotated[str | None, Parameter(name="--now", help="The ISO time that the plan sees, instead of now.")]
QuietOption = Annotated[bool, Parameter(name=["--quiet", "-q"], negative=(), help="Show no progress.")]
PlanArgument = Annotated[str, Parameter(help="A file with a plan, or - for standard input.")]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    tokens = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in tokens
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
    try:
        code = app(tokens, exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()
    except CycloptsError as error:
        code = _complain(str(error), USAGE, as_json)
    except UsageError as error:
        code = _complain(str(error), USAGE, as_json)
    except ToolplanError as error:
        code = _complain(str(error), FAILED, as_json)
    except KeyboardInterrupt:
        code = _complain("interrupted", INTERRUPTED, as_json)
    except BrokenPipeError:
        sys.stderr.close()
        code = FAILED
    sys.exit(code if isinstance(code, int) else OK)


@app.command
def demo(
    name: Annotated[str | None, Parameter(help="One demo; without it all of them run. `--list` names them.")] = None,
    /,
    *,
    list_them: Annotated[bool, Parameter(name="--list", negative=(), help="Name the demos and end.")] = False,
    language: Annotated[
        Literal["en", "zh"] | None, Parameter(name="--language", help="Run them in this language.")
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> int:
    """Run the demos: recorded model replies, everything else real. Needs no key and no network."""
    from functools import partial

    from toolplan.cli.live import watching
    from toolplan.demo import run_demos

    show_events = partial(watching, quiet=quiet or as_json)
    return run_demos(name, language=language, list_only=list_them, as_json=as_json, watching=show_events)


@app.command
def ask(
    request: Annotated[str, Parameter(help="What you want done, in any language.")],
    /,
    *,
    tools: ToolsOption,
    model: ModelOption = None,
    base_url: BaseUrlOption = None,
    answer: Annotated[
        Literal["template", "model", "none"],
        Parameter(name="--answer", help="Who words the answer: the plan's template, one more inference, nobody."),
    ] = "template",
    max_repairs: Annotated[int, Parameter(name="--max-repairs", help="How often a rejected plan goes back.")] = 2,
    language: LanguageOption = "auto",
    now: NowOption = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> int:
    """Answer a request: one inference, a checked plan, a parallel run."""
    from toolplan.cli.inputs import load_toolset, model_for
    from toolplan.models import no_model_message
    from toolplan.prompt import language_of

    chosen = model_for(model, base_url)
    if chosen is None:
        raise UsageError(no_model_message(language_of(request) if language == "auto" else language))
    toolset = load_toolset(tools)
    agent = _agent(
        toolset, chosen, as_json=as_json, yes=yes, language=language, now=now, answer=answer, max_repairs=max_repairs
    )
    return _finish(_watched(agent, "run", request, as_json=as_json, quiet=quiet), as_json)


@app.command
def run(
    plan: PlanArgument,
    /,
    *,
    tools: ToolsOption,
    model: ModelOption = None,
    base_url: BaseUrlOption = None,
    language: LanguageOption = "auto",
    now: NowOption = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> int:
    """Check and run a plan that somebody already has. Prints first what it will do.

    A model is only needed by plans with `ask_model` steps.
    """
    from toolplan import show
    from toolplan.cli.inputs import load_toolset, model_for

    toolset = load_toolset(tools)
    read = _read(plan, toolset)
    agent = _agent(toolset, model_for(model, base_url), as_json=as_json, yes=yes, language=language, now=now)
    if not isinstance(read, _Words) and not quiet:
        print(show.summary(read, toolset), file=sys.stderr if as_json else sys.stdout)
    if isinstance(read, _Words):
        return _say(read, as_json)
    return _finish(_watched(agent, "run_plan", read, as_json=as_json, quiet=quiet), as_json)


@app.command
def check(
    plan: PlanArgument,
    /,
    *,
    tools: ToolsOption,
    as_json: JsonOption = False,
) -> int:
    """Check a plan against tools, and say everything that is wrong with it. Runs nothing."""
    from toolplan.agent import Agent
    from toolplan.cli.inputs import load_toolset
    from toolplan.diagnostics import render_all

    toolset = load_toolset(tools)
    try:
        read = _read(plan, toolset)
        if isinstance(read, _Words):
            return _say(read, as_json)
        checked = Agent(tools=toolset).check(read)
    except PlanRejected as rejection:
        if as_json:
            found = [d.to_dict(rejection.source) for d in rejection.diagnostics]
            _print_json({"outcome": "rejected", "diagnostics": found, "plan": None})
        else:
            print(render_all(rejection.diagnostics, rejection.source))
            print(f"\n{_count(len(rejection.diagnostics), 'problem')}", file=sys.stderr)
        return FAILED
    if as_json:
        found = [d.to_dict(checked.plan.source) for d in checked.warnings]
        _print_json({"outcome": "accepted", "diagnostics": found, "plan": _canonical(checked.plan)})
    else:
        if checked.warnings:
            print(render_all(checked.warnings, checked.plan.source) + "\n")
        print(f"the plan is good: {_count(len(checked.plan.steps), 'step')}")
    return OK


@app.command
def show(
    plan: PlanArgument,
    /,
    *,
    tools: Annotated[
        list[str] | None, Parameter(name=["--tools", "-t"], negative=(), help="Tools, where names depend on them.")
    ] = None,
    mermaid: Annotated[bool, Parameter(name="--mermaid", negative=(), help="Draw it as a Mermaid flowchart.")] = False,
    as_json: JsonOption = False,
) -> int:
    """Print a plan in its canonical form."""
    from toolplan import show as printing
    from toolplan.cli.inputs import load_toolset
    from toolplan.diagnostics import render_all

    toolset = load_toolset(tools) if tools else None
    try:
        read = _read(plan, toolset)
    except PlanRejected as rejection:
        if as_json:
            found = [d.to_dict(rejection.source) for d in rejection.diagnostics]
            _print_json({"outcome": "rejected", "diagnostics": found, "plan": None})
        else:
            print(render_all(rejection.diagnostics, rejection.source))
        return FAILED
    if isinstance(read, _Words):
        return _say(read, as_json)
    if as_json:
        _print_json({"plan": _canonical(read)} | ({"mermaid": printing.mermaid(read)} if mermaid else {}))
    else:
        print(printing.mermaid(read) if mermaid else printing.canonical(read))
    return OK


@app.command
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
        _print_json([tool.to_json() for tool in toolset])
        return OK
    print(signatures(toolset))
    undeclared = [tool.name for tool in toolset if not tool.effects.declared]
    if undeclared:
        print(
            f"\nno effects declared, so these run one at a time, in written order: {', '.join(undeclared)}\n"
            'declare them with @tool(pure=True), @tool(reads="...") or @tool(writes="...")'
        )
    return OK


@app.command
def prompt(
    request: Annotated[str, Parameter(help="The request that the prompt is for.")],
    /,
    *,
    tools: ToolsOption,
    language: LanguageOption = "auto",
    now: NowOption = None,
    as_json: JsonOption = False,
) -> int:
    """Print exactly the messages that a model would get, and what they cost in tokens."""
    from toolplan.agent import Agent
    from toolplan.cli.inputs import load_toolset
    from toolplan.prompt import measure

    toolset = load_toolset(tools)
    agent = Agent(tools=toolset, language=language, now=now)
    messages = agent.prompt(request)
    size = measure(toolset, request, language=language, now=now)
    if as_json:
        shown = [{"role": message.role, "content": message.content} for message in messages]
        _print_json({"messages": shown, "tokens": size.to_dict()})
        return OK
    for message in messages:
        print(f"--- {message.role} ---\n{message.content}\n")
    print(size.summary(), file=sys.stderr)
    return OK


@app.command
def explain(code: Annotated[str, Parameter(help="A code such as TP302.")], /, *, as_json: JsonOption = False) -> int:
    """Tell the long story behind a diagnostic's code."""
    from toolplan.diagnostics import load_catalogue, nearest

    catalogue = load_catalogue()
    entry = catalogue.get(code.upper())
    if entry is None:
        near = nearest(code.upper(), catalogue)
        hint = f"; did you mean {near}?" if near else f"; codes go from {min(catalogue)} to {max(catalogue)}"
        raise UsageError(f"there is no code {code}{hint}")
    if as_json:
        names = ("code", "title", "story", "wrong", "right")
        _print_json({name: getattr(entry, name) for name in names} | {"severity": str(entry.severity)})
    else:
        print(f"{entry.code}: {entry.title} ({entry.severity})\n\n{entry.story}\n")
        print(f"wrong:\n{_indented(entry.wrong)}\n\nright:\n{_indented(entry.right)}")
    return OK


@app.command
def schema(*, tools: ToolsOption, strict: Annotated[bool, Parameter(name="--strict", negative=())] = False) -> int:
    """Print the JSON Schema of plans for these tools, for structured output or constrained decoding.

    Parameters
    ----------
    strict
        Leave out what providers' strict modes refuse.
    """
    from toolplan.cli.inputs import load_toolset
    from toolplan.plan_schema import plan_schema

    _print_json(plan_schema(load_toolset(tools), strict=strict))
    return OK


# ----------------------------------------------------------------------------------------------------------------------


class _Words:
    """A text that is an answer or a refusal instead of a plan."""

    def __init__(self, outcome: str, text: str) -> None:
        self.outcome = outcome
        self.text = text


def _read(plan: str, toolset: Any) -> Plan | _Words:
    from toolplan.answer import cannot_text
    from toolplan.cli.inputs import read_plan
    from toolplan.parse import CannotPlan, Prose, parse
    from toolplan.prompt import language_of

    text, name = read_plan(plan)
    reading = parse(text, notation="auto", tools=toolset, name=name)
    if isinstance(reading, Prose):
        return _Words("succeeded", reading.text)
    if isinstance(reading, CannotPlan):
        return _Words("rejected", cannot_text(reading.reason, reading.missing, language_of(reading.reason)))
    return reading


def _say(words: _Words, as_json: bool) -> int:
    if as_json:
        _print_json({"outcome": words.outcome, "answer": words.text, "diagnostics": [], "plan": None})
    else:
        print("this is an answer, not a plan:" if words.outcome == "succeeded" else "no plan:", file=sys.stderr)
        print(words.text)
    return OK if words.outcome == "succeeded" else FAILED


def _agent(toolset: Any, model: Any, *, as_json: bool, yes: bool, **options: Any) -> Agent:
    from toolplan.agent import Agent
    from toolplan.cli.inputs import can_ask

    asking = can_ask(as_json)
    approve = (lambda calls, checked: True) if yes else _approve if asking else None  # pyright: ignore
    return Agent(model, toolset, approve=approve, ask_user=_question if asking else None, **options)


def _approve(calls: Sequence[PlannedCall], checked: CheckedPlan) -> bool:
    from toolplan import show

    print("\nThis plan wants to:", file=sys.stderr)
    for call in calls:
        print(f"  {call.step}  {call.tool}({show.arguments_text(call.arguments)})", file=sys.stderr)
    print("Allow all of it? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes", "是", "好")


def _question(question: str) -> str | None:
    print(f"\n{question}\n> ", end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    return line.strip() if line else None


def _watched(agent: Agent, method: str, *arguments: Any, as_json: bool, quiet: bool) -> Result:
    import asyncio

    from toolplan.cli.live import watching

    with watching(sys.stderr, quiet=quiet or as_json) as watch:
        return asyncio.run(getattr(agent, method)(*arguments, watch=watch))


def _finish(result: Result, as_json: bool) -> int:
    code = {"succeeded": OK, "waiting": WAITING}.get(result.outcome, FAILED)
    if as_json:
        _print_json(result.to_dict())
        return code
    if result.outcome == "waiting" and result.approvals:
        names = ", ".join(f"{call.step} ({call.tool})" for call in result.approvals)
        print(f"nothing was run: these calls need approval: {names}", file=sys.stderr)
        print("run it again with --yes, or in a terminal to be asked", file=sys.stderr)
    if result.answer:
        print(result.answer)
    elif result.error:
        print(result.error, file=sys.stderr)
    return code


def _complain(message: str, code: int, as_json: bool) -> int:
    if as_json:
        _print_json({"outcome": "failed" if code == FAILED else "usage", "error": message})
    else:
        print(f"toolplan: {message}", file=sys.stderr)
    return code


def _canonical(plan: Plan) -> Any:
    from toolplan import show

    return show.to_json(plan)


def _print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=2))


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.strip("\n").splitlines())


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")
