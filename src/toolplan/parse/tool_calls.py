"""The calls of one turn of a loop -> steps of a plan. A model's own tool calls carry values, never templates (P5).

Each call is read by itself, so that one that cannot be read concerns no other. The source is one JSON list of all of
them: what the checker finds later is located in it by the position of the call.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from toolplan.diagnostics import Diagnostic, Place, Source
from toolplan.diagnostics import reading as say
from toolplan.expressions import Fields, Literal
from toolplan.parse.formats.arguments import Refused, fitted, object_of
from toolplan.parse.json_text import describe
from toolplan.parse.tool_names import meant_tool
from toolplan.plan import AskUser, Call
from toolplan.tools import ToolSet
from toolplan.values import Json

__all__ = ["ASK_USER", "FIND_TOOLS", "TurnCalls", "WrittenCall", "read_turn_calls"]

ASK_USER = "ask_user"
"""The name of the tool that asks the person, where one can be asked and no tool has this name."""
FIND_TOOLS = "find_tools"
"""The name of the tool that shows further tools, where some are not shown and no tool has this name."""


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A call as the model wrote it: the tool's name, and its arguments as an object or the text of one.

    `repairs` is what was mended before; `problem` says why it cannot be made, where that is known already.
    """

    name: str
    arguments: Json
    repairs: tuple[str, ...] = ()
    problem: Diagnostic | None = None


@dataclass(frozen=True, slots=True)
class TurnCalls:
    """What the calls are, one entry a call: the step, or what is wrong with it. `repairs` by position."""

    entries: tuple[Call | AskUser | Diagnostic, ...]
    names: tuple[str, ...]
    """The names of the tools, as they were written."""
    source: Source
    repairs: dict[int, tuple[str, ...]]


def read_turn_calls(
    calls: Sequence[WrittenCall], tools: ToolSet, *, first_step: int = 1, can_ask: bool = False
) -> TurnCalls:
    """Return the steps that the calls of one turn are.

    A tool's name is mended where case or a dotted prefix is all that is wrong with it, arguments where they have one
    reading that the tool takes; each repair is told. `can_ask`: the tool `ask_user` is offered.
    """
    written: list[Json] = []
    entries: list[Call | AskUser | Diagnostic] = []
    repairs: dict[int, tuple[str, ...]] = {}
    for position, call in enumerate(calls):
        step, shown, mended = _read(call, position, tools, f"s{first_step + position}", can_ask)
        entries.append(step)
        written.append({"tool_name": call.name, "arguments": shown})
        if mended:
            repairs[position] = mended
    text = json.dumps(written, ensure_ascii=False, indent=1)
    names = tuple(call.name for call in calls)
    return TurnCalls(tuple(entries), names, Source(text, "calls", 0, json=True), repairs)


def _read(
    call: WrittenCall, position: int, tools: ToolSet, id: str, can_ask: bool
) -> tuple[Call | AskUser | Diagnostic, Json, tuple[str, ...]]:
    """Return the step or the problem, the arguments as the source shows them, and what was mended."""
    if call.problem is not None:
        return call.problem, call.arguments, ()
    place = Place((position,))
    at = place.child("arguments")
    try:
        arguments, more = object_of(call.arguments, as_text=True)
    except Refused as refused:
        return refused.diagnostic(at, call.name), call.arguments, ()
    repairs = (*call.repairs, *more)
    if can_ask and call.name == ASK_USER and call.name not in tools:
        question = arguments.get("question")
        if not isinstance(question, str) or not question.strip():
            shape = '{"question": "..."}'
            return say.wrong_kind(at, "question", f"a text, as in {shape}", describe(question)), dict(arguments), ()
        return AskUser(id, Literal(question, at.child("question")), place=place), dict(arguments), repairs
    name = meant_tool(call.name, tools.names) or call.name
    if name != call.name:
        repairs = (f"read the tool name `{call.name}` as `{name}`", *repairs)
    tool = tools.get(name)
    shown = dict(arguments)
    if tool is not None:
        arguments, more, _ = fitted(tool, arguments)
        repairs += more
    fields = tuple((key, Literal(value, at.child(key))) for key, value in arguments.items())
    step = Call(id, name, Fields(fields, at), place=place, tool_place=place.child("tool_name"))
    return step, shown, repairs
