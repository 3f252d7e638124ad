"""Commands that look at plans and run nothing: `check`, `show`, `explain-order`, `fmt`, `policy`, `explain`."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from toolplan.cli.options import JsonOption, PlanArgument, PolicyOption, ToolsOption, flag, tools_option
from toolplan.cli.outputs import FAILED, OK, print_no_plan, print_rejection, to_json
from toolplan.cli.streams import say, say_json
from toolplan.errors import PlanRejected, UsageError

__all__ = ["check", "explain", "explain_order", "fmt", "policy", "show"]


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
