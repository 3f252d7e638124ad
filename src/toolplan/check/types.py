"""Do the values fit where they are used? Types flow from the results' schemas to the arguments' schemas.

The walk goes through the steps in written order with the types of the names in scope, as far as they are known. A
branch narrows what its test tests; where paths meet, types are joined. A loop's body is walked until the types at its
head no longer change, which takes two or three rounds, and only the last walk reports.

A constant argument is the business of `calls.py`. What is reported here is the value that comes from somewhere else,
at any depth of the argument.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from toolplan.check.calls import unfit
from toolplan.check.fitting import Fitting, origin_of, spot_of, words_of
from toolplan.diagnostics import Diagnostic, Severity
from toolplan.diagnostics import calls as say
from toolplan.expressions import Expression, Literal, Template
from toolplan.expressions.infer import infer, infer_template, narrow_by
from toolplan.expressions.narrowing import define, join_env
from toolplan.expressions.types import (
    BOOLEAN,
    INTEGER,
    NEVER,
    NUMBER,
    TEXT,
    UNKNOWN,
    ListType,
    ObjectType,
    Scalar,
    Type,
    from_schema,
    is_same,
    join,
    join_all,
    kind_word,
    may_be_null,
    members,
    without_null,
)
from toolplan.known import NOTHING_KNOWN, Known
from toolplan.plan import (
    Answer,
    AskModel,
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
    OnError,
    Parallel,
    Plan,
    Replan,
    Step,
    Try,
    While,
    assigned_names,
)
from toolplan.tools import Tool, ToolSet

__all__ = ["values"]

Env: TypeAlias = "dict[str, Type]"

MAX_NESTED_LOOPS = 2
"""In loops nested deeper, what a body changes is of unknown type; walking each body again would take 2^depth walks."""
MAX_ROUNDS = 4


def values(plan: Plan, tools: ToolSet, known: Known = NOTHING_KNOWN) -> list[Diagnostic]:
    """Return the values of wrong types, and the expressions that cannot work."""
    walker = _Types(tools)
    env: Env = {"now": TEXT, **known.types, **{name: _of_input(value) for name, value in plan.inputs.items()}}
    end = walker.block(plan.steps, env)
    if plan.answer is not None and end is not None:
        walker.template(plan.answer, end)
    return list(walker.found)


def _of_input(value: object) -> Type:
    """Return the type of an input: another run may give another value of the same kind."""
    if isinstance(value, str | bool | int | float):
        return {str: TEXT, bool: BOOLEAN, int: INTEGER, float: NUMBER}[type(value)]
    return UNKNOWN


class _Loop:
    """What is known at the exits of the innermost loop's body."""

    def __init__(self) -> None:
        self.again: list[Env] = []
        """At the end of a round: the end of the body, and each `continue`."""
        self.left: list[Env] = []
        """At each `break`."""


class _Types:
    def __init__(self, tools: ToolSet) -> None:
        self.tools = tools
        self.found: dict[Diagnostic, None] = {}
        self.warned: set[str] = set()
        self.results: dict[str, Call] = {}
        """The call that a name's value came from last."""
        self.loops: list[_Loop] = []
        self.silent = False

    def report(self, findings: Sequence[Diagnostic]) -> None:
        """Note what was found, unless this walk is silent. A warning that was given already is not repeated."""
        for finding in () if self.silent else findings:
            if finding.severity is Severity.ERROR or finding.message not in self.warned:
                self.warned.add(finding.message)
                self.found[finding] = None

    # --- steps ---

    def block(self, steps: Block, env: Env) -> Env | None:
        """Return what is known after the steps, None when no path gets there. Changes `env`."""
        after: Env | None = env
        for step in steps:
            if after is None:
                return None
            after = self.step(step, after)
        return after

    def step(self, step: Step, env: Env) -> Env | None:
        match step:
            case Call():
                return self.call(step, env)
            case Let():
                for name, template in step.values:
                    define(env, name, self.template(template, env))
                return env
            case If():
                return self.branch(step, env)
            case ForEach():
                return self.for_each(step, env)
            case While():
                return self.while_(step, env)
            case Parallel():
                return self.block(step.members, env)
            case Try():
                return self.try_(step.body, step.handler, step.error, env)
            case AskModel():
                self.template(step.question, env)
                self.template(step.data, env)
                return self.result(step, from_schema(step.returns), step.on_error, env)
            case AskUser():
                self.template(step.question, env)
                return self.result(step, TEXT, None, env)
            case Note():
                self.template(step.text, env)
                return env
            case Answer():
                self.template(step.text, env)
            case Cannot():
                self.template(step.reason, env)
                for each in step.missing:
                    self.template(each, env)
            case Replan():
                self.template(step.reason, env)
            case Break():
                if self.loops:
                    self.loops[-1].left.append(env)
            case Continue():
                if self.loops:
                    self.loops[-1].again.append(env)
        return None

    def call(self, step: Call, env: Env) -> Env | None:
        tool = self.tools.get(step.tool)
        if tool is None:
            for _, template in step.arguments.fields:
                self.template(template, env)
            return self.result(step, UNKNOWN, step.on_error, env)
        types = tool.argument_types
        for name, template in step.arguments.fields:
            if type(template) is not Literal:
                self.argument(step, tool, name, template, types.get(name, UNKNOWN), env)
        return self.result(step, tool.result_type, step.on_error, env)

    def result(self, step: Call | AskModel | AskUser, found: Type, on_error: OnError | None, env: Env) -> Env | None:
        """Give the step's names their type; return what is known after the step."""
        otherwise: Env | None = None
        if on_error is not None and on_error.value is not None:
            found = join(found, self.template(on_error.value, env))
        elif on_error is not None and on_error.do:
            otherwise = self.block(on_error.do, dict(env))
        for name in step.defines:
            define(env, name, found)
            if isinstance(step, Call):
                self.results[name] = step
        return env if otherwise is None else join_env(env, otherwise)

    def branch(self, step: If, env: Env) -> Env | None:
        self.expression(step.test, env)
        then = self.block(step.then, dict(narrow_by(step.test, env, True)))
        otherwise = self.block(step.otherwise, dict(narrow_by(step.test, env, False)))
        return _met(then, otherwise)

    def try_(self, body: Block, handler: Block, error: str | None, env: Env) -> Env | None:
        after_body = self.block(body, dict(env))
        inner = dict(env)
        for name in assigned_names(body) & env.keys():  # the body may have got that far
            define(inner, name, join(env[name], after_body.get(name, UNKNOWN)) if after_body else UNKNOWN)
        if error:
            define(inner, error, TEXT)
        return _met(after_body, self.block(handler, inner))

    # --- loops ---

    def for_each(self, step: ForEach, env: Env) -> Env | None:
        element = self.element(step, env)

        def one_round(head: Env) -> Env | None:
            define(head, step.name, element)
            return self.block(step.body, head)

        loop, end = self.rounds(step, env, one_round)
        collected: Type = UNKNOWN
        if end is not None:
            if step.keep is not None:
                self.expression(step.keep, end)
                end = dict(narrow_by(step.keep, end, True))
            collected = self.template(step.collect, end) if step.collect is not None else UNKNOWN
        after = _kept(env, [env, *loop.again, *loop.left])
        if step.name in env:  # the loop's own name hid it
            define(after, step.name, env[step.name])
        for name in step.defines:
            define(after, name, ListType(collected))
        return after

    def while_(self, step: While, env: Env) -> Env | None:
        def one_round(head: Env) -> Env | None:
            self.expression(step.test, head)
            return self.block(step.body, dict(narrow_by(step.test, head, True)))

        loop, _ = self.rounds(step, env, one_round)
        done = _kept(env, [env, *loop.again])
        return _kept(env, [dict(narrow_by(step.test, done, False)), *loop.left])

    def rounds(self, step: ForEach | While, env: Env, one_round: _Round) -> tuple[_Loop, Env | None]:
        """Walk the body until the types at its head are stable; return its exits and what is known at its end."""
        changing = assigned_names(step.body) & env.keys()
        head = dict(env)
        for name in changing:  # what is known about the parts of a value is no longer known once it changes
            define(head, name, env[name])
        if changing and len(self.loops) >= MAX_NESTED_LOOPS:
            for name in changing:
                define(head, name, UNKNOWN)
        elif changing:
            was_silent, self.silent = self.silent, True
            for count in range(MAX_ROUNDS):
                loop, _ = self.one_round(head, one_round)
                after = _kept(env, [head, *loop.again])
                if all(is_same(head[name], after[name]) for name in changing):
                    break
                head = after
                if count == MAX_ROUNDS - 2:  # still growing: give up on what grows
                    for name in changing:
                        define(head, name, UNKNOWN)
            self.silent = was_silent
        return self.one_round(head, one_round)

    def one_round(self, head: Env, walk: _Round) -> tuple[_Loop, Env | None]:
        loop = _Loop()
        self.loops.append(loop)
        end = walk(dict(head))
        self.loops.pop()
        if end is not None:
            loop.again.append(end)
        return loop, end

    def element(self, step: ForEach, env: Env) -> Type:
        """Return the type of what the loop goes through; report what is no list."""
        found = self.template(step.items, env)
        there = without_null(found)
        lists = [member for member in members(there) if isinstance(member, ListType)]
        if found is UNKNOWN or UNKNOWN in members(there):
            return UNKNOWN
        place, words = spot_of(step.items), words_of(step.items)
        if not lists and found is not NEVER:
            origin, help = origin_of(step.items, self.results, self.tools), _list_inside(there, words)
            self.report([say.not_a_list(place, words, kind_word(found), str(found), origin, help)])
            return UNKNOWN
        if may_be_null(found):
            self.report([say.maybe_null(place, words, str(found))])
        return join_all(each.element for each in lists)

    # --- values ---

    def expression(self, expression: Expression, env: Env) -> Type:
        found, findings = infer(expression, env)
        if findings:
            self.report(findings)
        return found

    def template(self, template: Template, env: Env) -> Type:
        found, findings = infer_template(template, env)
        if findings:
            self.report(findings)
        return found

    def argument(self, call: Call, tool: Tool, name: str, template: Template, target: Type, env: Env) -> None:
        """Check one argument of a call; most are of the very type that is wanted."""
        found = self.template(template, env)
        if found is target or found is UNKNOWN or target is UNKNOWN or self.silent:
            return
        misfits = Fitting(call, tool, self.tools, env, self.results).misfits(name, template, found, target)
        if not misfits and isinstance(found, Scalar) and found.values is not None and len(found.values) == 1:
            (value,) = found.values
            faults = [fault for fault in tool.faults_of_given({name: value}) if fault.argument == name]
            misfits = [unfit(call, tool, fault, template) for fault in faults]
        self.report(misfits)


_Round: TypeAlias = "Callable[[Env], Env | None]"
"""One walk of a loop's body: from what is known at its head to what is known at its end."""


def _met(a: Env | None, b: Env | None) -> Env | None:
    """Return what is known where two paths meet, None for a path that does not get there."""
    if a is None or b is None:
        return b if a is None else a
    return join_env(a, b)


def _kept(before: Env, exits: list[Env]) -> Env:
    """Return what is known after a loop, or at its head: the names from before it, as each exit leaves them.

    What only the body defines ends with the round. What a test has shown about parts of values stays.
    """
    result = exits[0]
    for each in exits[1:]:
        result = join_env(result, each)
    return {name: found for name, found in result.items() if name in before or not name.isidentifier()}


def _list_inside(found: Type, words: str) -> str | None:
    """Return the help for a loop over an object that has a list in it."""
    lists = [
        f"`{words}.{name}`"
        for member in members(found)
        if isinstance(member, ObjectType)
        for name in member.names
        if isinstance(member.field(name), ListType)
    ]
    if lists:
        return f"{' and '.join(lists[:3])} {'is a list' if len(lists) == 1 else 'are lists'}"
    if found is INTEGER:
        return f"write `range({words})`"
    return f"write `lines({words})` for its lines" if found == TEXT else None
