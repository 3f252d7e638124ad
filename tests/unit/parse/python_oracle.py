"""What a program means: CPython runs it as it stands, and a plan is run step by step in written order.

Both see the same invented tools. They must make the same calls, in the same order, and give the same answer.
"""

from __future__ import annotations

import copy
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

from toolplan.errors import EvaluationError, ToolFailed
from toolplan.expressions.templates import fill
from toolplan.plan import (
    Answer,
    AskUser,
    Block,
    Break,
    Call,
    Cannot,
    Continue,
    ForEach,
    If,
    Let,
    Note,
    Plan,
    Try,
    While,
)
from toolplan.values import Json

Tools = Mapping[str, Callable[..., Json]]


class World:
    """Records what a program does."""

    def __init__(self, tools: Tools) -> None:
        self.tools = tools
        self.calls: list[tuple[str, dict[str, Json]]] = []

    def call(self, name: str, arguments: dict[str, Json]) -> Json:
        self.calls.append((name, copy.deepcopy(arguments)))
        return copy.deepcopy(self.tools[name](**arguments))


# --- CPython ---------------------------------------------------------------------------------------------------------


class Fields(dict):
    """An object whose fields can be read and set with a dot, as in a program."""

    def __getattr__(self, name: str) -> Any:
        return self[name]

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


def _dotted(value: Any) -> Any:
    if isinstance(value, dict):
        return Fields({key: _dotted(item) for key, item in value.items()})
    if isinstance(value, list):
        return [_dotted(item) for item in value]
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((_plain(item) for item in value), key=repr)
    return value


class _Ended(Exception):
    def __init__(self, answer: Any) -> None:
        self.answer = answer


def run_by_python(program: str, tools: Tools) -> tuple[list[Any], Json]:
    """Return the calls and the answer of the program when CPython executes it."""
    world = World(tools)

    def tool(name: str) -> Callable[..., Any]:
        return lambda **arguments: _dotted(world.call(name, _plain(arguments)))

    def ended(text: Any, **_: Any) -> None:
        raise _Ended(text)

    names: dict[str, Any] = {name: tool(name) for name in tools}
    names |= {"ToolError": ToolFailed, "answer": ended, "cannot": ended, "print": lambda *_: None}
    names |= {"ask_user": lambda question: world.call("ask_user", {"question": question}), "dict": _dotted_dict}
    exec("def plan():\n" + textwrap.indent(program, "    ") + "\n    pass\n", names)
    try:
        answer = names["plan"]()
    except _Ended as end:
        answer = end.answer
    except ToolFailed as failure:
        answer = f"failed: {failure}"
    return world.calls, _plain(answer)


def _dotted_dict(*pairs: Any, **fields: Any) -> Fields:
    return Fields(*pairs, **fields)


# --- a plan, in written order ----------------------------------------------------------------------------------------


class _Left(Exception):
    """A `Break` or `Continue`."""

    def __init__(self, ends_loop: bool) -> None:
        self.ends_loop = ends_loop


def run_in_order(plan: Plan, tools: Tools) -> tuple[list[Any], Json]:
    """Return the calls and the answer of the plan."""
    world = World(tools)
    scope: dict[str, Json] = {"now": "2026-03-18T09:00:00"}
    answer: Json = None
    try:
        _run(plan.steps, scope, world)
        answer = None if plan.answer is None else fill(plan.answer, scope)
    except _Ended as end:
        answer = end.answer
    except ToolFailed as failure:
        answer = f"failed: {failure}"
    return world.calls, answer


def _run(steps: Block, scope: dict[str, Json], world: World) -> None:
    for step in steps:
        match step:
            case Call():
                arguments = fill(step.arguments, scope)
                assert isinstance(arguments, dict)
                result = world.call(step.tool, arguments)
                scope.update(dict.fromkeys(step.defines, result))
            case AskUser():
                result = world.call("ask_user", {"question": fill(step.question, scope)})
                scope.update(dict.fromkeys(step.defines, result))
            case Let():
                for name, template in step.values:
                    scope[name] = fill(template, scope)
            case If():
                _run(step.then if step.test.evaluate(scope) else step.otherwise, scope, world)
            case ForEach():
                _for_each(step, scope, world)
            case While():
                _while(step, scope, world)
            case Try():
                try:
                    _run(step.body, scope, world)
                except (ToolFailed, EvaluationError) as failure:
                    if step.error:
                        scope[step.error] = failure.message
                    _run(step.handler, scope, world)
            case Answer():
                raise _Ended(fill(step.text, scope))
            case Cannot():
                raise _Ended(fill(step.reason, scope))
            case Break() | Continue():
                raise _Left(isinstance(step, Break))
            case Note():
                fill(step.text, scope)
            case _:
                raise AssertionError(f"{type(step).__name__} has no place in these programs")


def _for_each(step: ForEach, scope: dict[str, Json], world: World) -> None:
    items = fill(step.items, scope)
    assert isinstance(items, list | str | dict), items
    collected: list[Json] = []
    for item in list(items):
        before, hidden = set(scope), scope.get(step.name)
        scope[step.name] = item
        ended = False
        try:
            _run(step.body, scope, world)
            if step.collect is not None and (step.keep is None or step.keep.evaluate(scope)):
                collected.append(fill(step.collect, scope))
        except _Left as left:
            ended = left.ends_loop
        _end_round(scope, before)
        if step.name in before:
            scope[step.name] = hidden
        if ended:
            break
    scope.update(dict.fromkeys(step.defines, collected))


def _while(step: While, scope: dict[str, Json], world: World) -> None:
    for _ in range(step.max_iterations + 1):
        if not step.test.evaluate(scope):
            return
        before = set(scope)
        try:
            _run(step.body, scope, world)
        except _Left as left:
            if left.ends_loop:
                return
        _end_round(scope, before)
    raise AssertionError("a loop went on beyond its bound")


def _end_round(scope: dict[str, Json], before: set[str]) -> None:
    for name in set(scope) - before:
        del scope[name]
