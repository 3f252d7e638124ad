"""Commands about tools, and about what a model is told of them: `tools`, `prompt`, `route`, `schema`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from toolplan.cli.options import (
    JsonOption,
    LanguageOption,
    NotationOption,
    NowOption,
    RequestArgument,
    RouteOption,
    ToolsOption,
    flag,
)
from toolplan.cli.outputs import OK
from toolplan.cli.streams import say, say_json, warn

if TYPE_CHECKING:
    from toolplan.tools import Tool

__all__ = ["choose", "prompt", "schema", "tools"]


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


def _declared(tool: Tool) -> str:
    """Return what a tool declares about its calls."""
    effects = tool.effects
    said = [f"changes {', '.join(effects.writes)}"] if effects.writes else []
    said += [f"reads {', '.join(effects.reads)}"] if effects.reads else []
    said = said or ["pure" if effects.declared else "not declared"]
    said += {"ask": ["asks for approval"], "deny": ["may not be called"]}.get(tool.approval or "", [])
    reason = tool.why_unavailable()
    return "; ".join([*said, f"not available: {reason}"] if reason else said)
