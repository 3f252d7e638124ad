"""What a program means: CPython runs it as it stands, and the plan that it is read as runs step by step as written.

Both see the same invented tools. They must make the same calls, in the same order, and give the same answer.
"""

from __future__ import annotations

import copy
import inspect
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from toolplan.check import check
from toolplan.errors import ToolFailed
from toolplan.expressions import render_text
from toolplan.plan import Plan
from toolplan.testing.interpreter import run_in_written_order
from toolplan.tools import Tool, ToolSet
from toolplan.values import Json

Tools = Mapping[str, Callable[..., Json]]

REPLY = "yes"
"""What a person says, whatever the question."""


@dataclass(frozen=True)
class Outcome:
    """What a program did: its calls, its answer, why it failed."""

    calls: list[tuple[str, dict[str, Json]]]
    answer: str | None = None
    failure: str | None = None


def run_as_plan(plan: Plan, tools: Tools) -> Outcome:
    """Return what the plan does, once it has passed the checker."""
    ended = run_in_written_order(check(plan, toolset(tools)), ask=lambda question: REPLY)
    return Outcome([(tool, arguments) for tool, arguments, _ in ended.calls], ended.text, ended.error)


def toolset(tools: Tools) -> ToolSet:
    """Return the tools with schemas that only know the names of their parameters."""
    return ToolSet.of([_tool(name, function) for name, function in tools.items()])


def _tool(name: str, function: Callable[..., Json]) -> Tool:
    parameters = {parameter: {} for parameter in inspect.signature(function).parameters}
    schema = {"type": "object", "properties": parameters}
    return Tool.from_schema(name, f"The tool {name}.", schema, lambda **given: copy.deepcopy(function(**given)))


class _Ended(Exception):
    def __init__(self, answer: Any) -> None:
        self.answer = answer


def run_by_python(program: str, tools: Tools) -> Outcome:
    """Return what the program does when CPython executes it."""
    calls: list[tuple[str, dict[str, Json]]] = []

    def tool(name: str) -> Callable[..., Any]:
        def call(**arguments: Any) -> Any:
            calls.append((name, copy.deepcopy(_plain(arguments))))
            return _dotted(tools[name](**calls[-1][1]))

        return call

    def ended(text: Any, **_: Any) -> None:
        raise _Ended(text)

    names: dict[str, Any] = {name: tool(name) for name in tools}
    names |= {"ToolError": ToolFailed, "answer": ended, "cannot": ended, "print": lambda *_: None, "dict": _Fields}
    names |= {"ask_user": lambda question: REPLY, "max_iterations": lambda rounds: None}
    exec("def plan():\n" + textwrap.indent(program, "    ") + "\n    pass\n", names)
    try:
        answer = names["plan"]()
    except _Ended as end:
        answer = end.answer
    except ToolFailed as failure:
        return Outcome(calls, None, failure.message)
    return Outcome(calls, None if answer is None else render_text(_plain(answer)))


class _Fields(dict):
    """An object whose fields can be read and set with a dot, as in a program."""

    def __getattr__(self, name: str) -> Any:
        return self[name]

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


def _dotted(value: Any) -> Any:
    if isinstance(value, dict):
        return _Fields({key: _dotted(item) for key, item in value.items()})
    if isinstance(value, list):
        return [_dotted(item) for item in value]
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
