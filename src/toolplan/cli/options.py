"""The arguments and options that several commands have, each described once."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from cyclopts import Parameter

__all__ = [
    "BaseUrlOption",
    "JournalOption",
    "JsonOption",
    "LanguageOption",
    "ModelOption",
    "NoJournalOption",
    "NotationOption",
    "NowOption",
    "PlanArgument",
    "PolicyOption",
    "QuietOption",
    "RequestArgument",
    "RouteOption",
    "RunArgument",
    "ToolsOption",
    "TraceOption",
    "YesOption",
    "flag",
    "tools_option",
]


def flag(*names: str, help: str) -> Parameter:
    """Return an option that is there or not."""
    return Parameter(name=names, negative=(), show_default=False, help=help)


def tools_option(help: str) -> Parameter:
    """Return the option that names tools and may be given several times."""
    return Parameter(name=("--tools", "-t"), negative=(), consume_multiple=False, help=help)


RequestArgument: TypeAlias = Annotated[
    str, Parameter(help="What you want done, in any language, or - for standard input.")
]
PlanArgument: TypeAlias = Annotated[str, Parameter(help="A file with a plan, or - for standard input.")]
ToolsOption: TypeAlias = Annotated[
    list[str],
    tools_option(
        "A Python file or an importable module with tools; FILE:NAME or MODULE:NAME takes one function or list out of "
        "it. May be given several times."
    ),
]
ModelOption: TypeAlias = Annotated[
    list[str] | None,
    Parameter(
        name=("--model", "-m"),
        negative=(),
        consume_multiple=False,
        help="PROVIDER:NAME such as openai:gpt-5-mini or ollama:qwen3:8b, local:smollm2 or local:FILE.gguf for a model "
        "that is started here, or scripted:FILE.jsonl for replies from a file. Given several times, or with commas "
        "between the names: they are asked in turn until one answers. Without it: what TOOLPLAN_MODEL says.",
    ),
]
BaseUrlOption: TypeAlias = Annotated[
    str | None,
    Parameter(name="--base-url", help="Address of an OpenAI-compatible server, as in http://localhost:8000/v1."),
]
LanguageOption: TypeAlias = Annotated[
    Literal["auto", "en", "zh"],
    Parameter(name="--language", help="Language of prompts and messages; auto: that of the request."),
]
NotationOption: TypeAlias = Annotated[
    Literal["json", "python"],
    Parameter(name="--notation", help="What the model is asked to write its plan in. Either is read in any case."),
]
NowOption: TypeAlias = Annotated[
    str | None, Parameter(name="--now", help="ISO time that the plan sees as `now`, instead of the clock's.")
]
PolicyOption: TypeAlias = Annotated[
    str,
    Parameter(
        name="--policy",
        help="Which calls run, which ask, which never run. default: what nobody said, or other people's text may have "
        "chosen, asks; cautious: every effect asks; declared: what the tools declare; or a TOML file.",
    ),
]
RouteOption: TypeAlias = Annotated[
    int | None,
    Parameter(
        name="--route",
        help="Send only so many tools, those that fit the request best (see `toolplan route`). A plan that needs "
        "others is asked for again with these. Without it all tools are sent.",
    ),
]
YesOption: TypeAlias = Annotated[bool, flag("--yes", "-y", help="Allow every call that needs a person's approval.")]
JournalOption: TypeAlias = Annotated[
    str | None,
    Parameter(
        name="--journal",
        help="The file that runs are written to, so that they can be resumed. Without it: what TOOLPLAN_JOURNAL says, "
        "else one in the folder where your system keeps the state of programs.",
    ),
]
NoJournalOption: TypeAlias = Annotated[
    bool, flag("--no-journal", help="Write nothing down; the run cannot be resumed.")
]
RunArgument: TypeAlias = Annotated[
    str, Parameter(help="The id of a run, or its beginning; `toolplan runs` lists them.")
]
JsonOption: TypeAlias = Annotated[
    bool, flag("--json", help="Print one JSON document on standard output, nothing else.")
]
QuietOption: TypeAlias = Annotated[bool, flag("--quiet", "-q", help="Show nothing but the result.")]
TraceOption: TypeAlias = Annotated[
    bool, flag("--trace", help="Show every value between the stages: prompt, reply, plan, calls.")
]
