"""Where the arguments of every call of a plan come from, and what decides that the call is made at all.

A walk over the plan in written order, repeated until nothing more is added, which is soon, because sources only grow.
A branch hands both its sides on, joined; a round of a loop begins with whatever any round before may have left. What a
condition decides is not only whether a call is made (`CallSources.condition`) but also which values there are to choose
from:

- after a branch, a name that either side assigns depends on the test;
- after a loop, a name that its rounds assign depends on what decides how many rounds there are;
- inside of a loop, a test decides which rounds come to a call, and so which of the elements it is made for: what
  differs from round to round depends on the tests around it, as in a comprehension with `if`.

A name assigned where nothing else can be assigned depends on no condition: if the plan gets there, its value is what
it is. The walk knows no values, so it says what can be, for all runs of the plan at once: before the run for whoever
approves, and during the run for the rules.

What it leaves out: that a call failed, and how long something took, tell something too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from toolplan.expressions import Literal
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
    Parallel,
    Plan,
    Replan,
    Step,
    Try,
    While,
    assigned_names,
    blocks_of,
    walk,
)
from toolplan.policy.sources import NO_SOURCES, Sources, join, sources_of, truth_of
from toolplan.tools import Tool, ToolSet
from toolplan.tools.fields import field_names, fields_around

__all__ = ["CallSources", "Trace", "trace"]

NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class CallSources:
    """Where each argument of a call comes from; `condition` are the untrusted steps that decide whether it is made."""

    arguments: dict[str, Sources] = field(default_factory=dict[str, Sources])
    condition: frozenset[str] = NONE

    @property
    def untrusted(self) -> frozenset[str]:
        """The untrusted steps that any of the arguments depends on."""
        return NONE.union(*(each.all_untrusted for each in self.arguments.values()))


@dataclass(frozen=True, slots=True)
class Trace:
    """Where everything in a plan comes from.

    `calls` are the sources of each call's arguments, `results` those of what each step returns, by step id; `names`
    those of whatever a name may hold at some time, for the plan that goes on after this one.
    """

    calls: Mapping[str, CallSources] = field(default_factory=dict[str, CallSources])
    results: Mapping[str, Sources] = field(default_factory=dict[str, Sources])
    names: Mapping[str, Sources] = field(default_factory=dict[str, Sources])


def trace(plan: Plan, tools: ToolSet, known: Mapping[str, Sources] | None = None) -> Trace:
    """Return the sources of every call of a checked plan, and of all that it leaves behind.

    `known` are the sources of names from outside the plan, such as those of the finished steps of an earlier plan.
    The plan's own `inputs` are words of the plan.
    """
    walk = _Walk(tools)
    begin = dict(known or {}) | {name: sources_of(Literal(value), {}) for name, value in plan.inputs.items()}
    while walk.changed:
        walk.changed = False
        walk.block(plan.steps, dict(begin), NONE)
    return Trace(walk.calls, walk.results, walk.names)


class _Walk:
    def __init__(self, tools: ToolSet) -> None:
        self.tools = tools
        self.calls: dict[str, CallSources] = {}
        self.results: dict[str, Sources] = {}
        self.names: dict[str, Sources] = {}
        self.heads: dict[str, dict[str, Sources]] = {}
        """What each name may be at the beginning of a round, by loop."""
        self.left: dict[str, frozenset[str]] = {}
        """The untrusted steps that decide whether a loop is left early."""
        self.round: frozenset[str] = NONE
        """The names that differ from round to round of the loops around."""
        self.assigned: dict[str, frozenset[str]] = {}
        """The names that each branch and loop assigns somewhere inside."""
        self.changed = True

    def block(self, block: Block, env: dict[str, Sources], condition: frozenset[str]) -> frozenset[str]:
        """Walk a block; return the untrusted steps that decide whether what follows it is reached."""
        for step in block:
            more = self.step(step, env, condition) - condition
            condition |= more
            self._chosen(env, more)
        return condition

    def step(self, step: Step, env: dict[str, Sources], condition: frozenset[str]) -> frozenset[str]:
        """Walk a step; return the untrusted steps that decide whether it leaves the plan or the round."""
        match step:
            case Call():
                return self.call(step, env, condition)
            case AskModel():
                found = join((sources_of(step.question, env), sources_of(step.data, env))).whole()
                here = frozenset((step.id,))
                result = self.results[step.id] = Sources(here, found.all_untrusted, written=here)
                self._assign(env, step.defines, result, condition)
                return self._on_error(step, env, condition)
            case AskUser():
                self._assign(env, step.defines, Sources(frozenset((step.id,))), condition)
            case Let():
                for name, value in step.values:
                    self._assign(env, (name,), sources_of(value, env), condition)
            case If():
                return self.branch(step, env, condition)
            case ForEach() | While():
                return self.loop(step, env, condition)
            case Parallel():
                return self.block(step.members, env, condition) - condition
            case Try():
                return self.attempt(step, env, condition)
            case Answer() | Cannot() | Replan() | Break() | Continue():
                return condition
            case _:
                pass
        return NONE

    def call(self, step: Call, env: dict[str, Sources], condition: frozenset[str]) -> frozenset[str]:
        arguments = {name: sources_of(value, env) for name, value in step.arguments.fields}
        before = self.calls.get(step.id)
        if before is not None:  # walked before, when less was known
            arguments = {name: join((before.arguments[name], found)) for name, found in arguments.items()}
            condition |= before.condition
        sources = CallSources(arguments, condition)
        self.calls[step.id] = sources
        result = self.results[step.id] = _result(step.id, self.tools[step.tool], sources)
        self._assign(env, step.defines, result, condition)
        return self._on_error(step, env, condition)

    def branch(self, step: If, env: dict[str, Sources], condition: frozenset[str]) -> frozenset[str]:
        deciding = truth_of(step.test.tree, env)
        then, otherwise = dict(env), dict(env)
        left = NONE
        for block, inner in ((step.then, then), (step.otherwise, otherwise)):
            self._chosen(inner, deciding)
            left |= self.block(block, inner, condition | deciding)
        _merge(env, then, otherwise, deciding, self._names(step))
        return left if _leaves(step.then) or _leaves(step.otherwise) else NONE

    def loop(self, step: ForEach | While, env: dict[str, Sources], condition: frozenset[str]) -> frozenset[str]:
        """Walk the body once, from all that is known of the loop's beginning; `trace` repeats the whole walk."""
        names = assigned = self._names(step)
        head = self.heads.setdefault(step.id, {})
        for name, found in env.items():
            self._grow(head, name, found)
        inner = dict(head)
        if isinstance(step, ForEach):
            items = sources_of(step.items, env)
            inner[step.name] = items.element()
            names |= {step.name}
            deciding = items.counted().untrusted
        else:
            deciding = truth_of(step.test.tree, head)
        deciding |= self.left.get(step.id, NONE)
        inside = condition | deciding
        around, self.round = self.round, self.round | names
        self._chosen(inner, deciding)
        left = self.block(step.body, inner, inside) - inside
        self.round = around
        if left:
            self.left[step.id] = self.left.get(step.id, NONE) | left
            self.changed = True
        for name in assigned & env.keys():
            self._grow(head, name, inner[name].under(deciding | left))
        env.update(head)
        if isinstance(step, ForEach):
            collected = NO_SOURCES
            if step.collect is not None:
                rounds = deciding | left
                collected = replace(sources_of(step.collect, inner).under(rounds), length=rounds)
            self._assign(env, step.defines, collected, condition)
        return deciding if _leaves(step.body, of_loop=True) else NONE

    def _grow(self, head: dict[str, Sources], name: str, more: Sources) -> None:
        """Join what is known of a name at a loop's beginning with what else may get there."""
        before = head.get(name)
        joined = more if before is None else join((before, more))
        if joined != before:
            head[name] = joined
            self.changed = self.changed or before is not None

    def _chosen(self, env: dict[str, Sources], deciding: frozenset[str]) -> None:
        """Note that only some rounds get here, and what decides which."""
        if deciding:
            for name in self.round & env.keys():
                env[name] = env[name].under(deciding)

    def _names(self, step: Step) -> frozenset[str]:
        """Return the names that are assigned inside of a step."""
        found = self.assigned.get(step.id)
        if found is None:
            found = self.assigned[step.id] = assigned_names((step,))
        return found

    def attempt(self, step: Try, env: dict[str, Sources], condition: frozenset[str]) -> frozenset[str]:
        body = dict(env)
        names = self._names(step)
        left = self.block(step.body, body, condition) - condition
        _merge(env, body, dict(env), NONE, names)
        handler = dict(env)
        if step.error:
            called = (self.results.get(each.id, NO_SOURCES) for each in walk(step.body))
            handler[step.error] = join(found.whole() for found in (*env.values(), *called))
        left |= self.block(step.handler, handler, condition) - condition
        _merge(env, handler, dict(env), NONE, names)
        return left

    def _on_error(self, step: Call | AskModel, env: dict[str, Sources], condition: frozenset[str]) -> frozenset[str]:
        value, do = step.on_error.value, step.on_error.do
        if value is not None:
            instead = sources_of(value, env)
            for name in step.defines:
                self._assign(env, (name,), join((env[name], instead)), condition)
        if not do:
            return NONE
        handler = dict(env)
        left = self.block(do, handler, condition) - condition
        _merge(env, handler, dict(env), NONE, self._names(step))
        return left

    def _assign(
        self, env: dict[str, Sources], names: Iterable[str], sources: Sources, condition: frozenset[str]
    ) -> None:
        for name in names:
            env[name] = sources
            self.names[name] = join((self.names.get(name, NO_SOURCES), sources.under(condition)))


def _result(step: str, tool: Tool, sources: CallSources) -> Sources:
    """Return the sources of a call's result: the call, and everything untrusted that it was given."""
    here = frozenset((step,))
    untrusted = sources.untrusted
    declared = tool.untrusted
    if tool.assigns is True:
        return Sources(here)
    if tool.assigns and (untrusted or declared):  # the arguments have a say in all the other fields
        more = here if declared is True else NONE
        fields = dict.fromkeys(field_names(tool.returns or {}).difference(tool.assigns), untrusted | more)
        fields = {name: steps for name, steps in fields.items() if steps}
        fields |= dict.fromkeys(declared, untrusted | here) if isinstance(declared, tuple) else {}
        return Sources(here, NONE, (), fields, containers=fields_around(tool.returns, frozenset(fields)))
    if declared is True:
        return Sources(here, untrusted | here)
    if not declared:
        return Sources(here, untrusted)
    containers = fields_around(tool.returns, frozenset(declared))
    return Sources(here, untrusted, (), dict.fromkeys(declared, here), containers=containers)


def _merge(
    env: dict[str, Sources],
    one: Mapping[str, Sources],
    other: Mapping[str, Sources],
    deciding: frozenset[str],
    names: frozenset[str],
) -> None:
    """Let each name that a side may have assigned be what it is there, chosen by what decides the side."""
    for name in names:
        if name in one or name in other:
            env[name] = join((one.get(name, NO_SOURCES), other.get(name, NO_SOURCES))).under(deciding)


def _leaves(block: Block, *, of_loop: bool = False) -> bool:
    """Return whether a step of the block may leave what is around it: the plan, or (not `of_loop`) the round."""
    for step in block:
        if isinstance(step, Answer | Cannot | Replan) or (isinstance(step, Break | Continue) and not of_loop):
            return True
        inside = of_loop or isinstance(step, ForEach | While)
        if any(_leaves(inner, of_loop=inside) for inner in blocks_of(step)):
            return True
    return False
