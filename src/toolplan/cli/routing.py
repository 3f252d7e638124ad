"""`toolplan route`: which tools would be sent with a request, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from toolplan.cli.outputs import OK
from toolplan.cli.streams import say, say_json
from toolplan.errors import UsageError

if TYPE_CHECKING:
    from toolplan.route import Match, Selection
    from toolplan.tools import ToolSet

__all__ = ["intents_of", "print_route"]

MAX_WORDS = 6
"""Of the words that a tool shares with the request so many are printed."""
MAX_LEFT_OUT = 10
"""So many of the tools that are left out are printed."""


def intents_of(options: Sequence[str]) -> dict[str, list[str]]:
    """Return what `--intent WORD=TOOL,TOOL` says, several times perhaps. Raises `UsageError`."""
    intents: dict[str, list[str]] = {}
    for option in options:
        word, _, names = option.partition("=")
        tools = [name.strip() for name in names.split(",") if name.strip()]
        if not word.strip() or not tools:
            raise UsageError(f"`--intent {option}` names no word or no tool; write `--intent weather=get_weather`")
        intents.setdefault(word.strip(), []).extend(tools)
    return intents


def print_route(
    request: str,
    toolset: ToolSet,
    *,
    top: int,
    max_tokens: int | None,
    always: Sequence[str],
    intents: Sequence[str],
    embeddings: bool,
    as_json: bool,
) -> int:
    """Print what a router chooses, return the exit code. Raises `UsageError`."""
    from toolplan.route import Router

    embed = None
    if embeddings:
        from toolplan.models import packaged_embeddings

        embed = packaged_embeddings()
    router = Router(toolset, top=top, max_tokens=max_tokens, always=always, intents=intents_of(intents), embed=embed)
    selection = router.select(request)
    if as_json:
        say_json(selection.to_dict())
    else:
        say("\n".join(_lines(selection)))
    return OK


def _lines(selection: Selection) -> list[str]:
    chosen = [match for match in selection.matches if match.is_chosen]
    others = [match for match in selection.matches if not match.is_chosen]
    width = max((len(match.tool) for match in (*chosen, *others[:MAX_LEFT_OUT])), default=0)
    every = len(chosen) + len(selection.left_out)
    lines = [
        f"chosen, {len(chosen)} of {every} tools:",
        *(_line(match, width, every == len(chosen)) for match in chosen),
    ]
    if others:
        lines += ["left out, the likeliest first:", *(_line(match, width) for match in others[:MAX_LEFT_OUT])]
    if hidden := len(selection.left_out) - min(len(others), MAX_LEFT_OUT):
        lines.append(f"  {'and ' if others else ''}{hidden} more{'' if others else ' left out'}")
    if selection.is_blind and selection.tokens_saved:
        lines.append(
            "no word of the request is in any tool: give tools keywords (`--intent WORD=TOOL`) or try `--embeddings`"
        )
    share = selection.tokens_saved / selection.tokens_of_all if selection.tokens_of_all else 0.0
    lines.append(
        f"about {selection.tokens:,} tokens instead of {selection.tokens_of_all:,}: {share:.0%} saved in every prompt"
    )
    return lines


def _line(match: Match, width: int, has_all: bool = False) -> str:
    return f"  {match.tool:<{width}}  {match.score:6.2f}  {_why(match, has_all)}".rstrip()


def _why(match: Match, has_all: bool) -> str:
    reasons: list[str] = []
    if match.is_always:
        reasons.append("always")
    if match.along_with is not None:
        reasons.append(f"along with {match.along_with}")
    if match.keywords:
        reasons.append("keyword " + ", ".join(match.keywords))
    if match.words:
        more = len(match.words) - MAX_WORDS
        reasons.append("words " + ", ".join(match.words[:MAX_WORDS]) + (f" and {more} more" if more > 0 else ""))
    if match.likeness is not None:
        reasons.append(f"likeness {match.likeness:.2f}")
    if not reasons:
        reasons.append("room for all" if has_all else "room was left")
    return "; ".join(reasons)
