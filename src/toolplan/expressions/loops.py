"""Nodes -> closures: comprehensions and generator expressions.

Every round is paid for before it runs: one step, and one for each node that it evaluates.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TypeAlias

from toolplan.expressions.calls import call_of
from toolplan.expressions.closures import Closure, Compiler, LazyGenerator, Rule, gone_through, object_key
from toolplan.expressions.faults import Fault, shown
from toolplan.expressions.functions.registry import MISSING, NotGiven
from toolplan.expressions.functions.sequences import spread as range_of
from toolplan.expressions.limits import Budget, cost_of, exhausted
from toolplan.expressions.sets import distinct
from toolplan.values import Json

__all__ = ["RULES"]

Rounds: TypeAlias = "Callable[[Budget], Iterator[None]]"
"""One value a round, with the loop variables set; the value itself means nothing."""
Assign: TypeAlias = "Callable[[Budget, Json], None]"


def _list(compiler: Compiler, node: ast.ListComp | ast.GeneratorExp) -> Closure:
    clause = node.generators[0]
    if len(node.generators) == 1 and isinstance(clause.target, ast.Name) and len(clause.ifs) < 2:
        return _plain_list(compiler, node, clause, clause.target.id)
    rounds, element = _compiled(compiler, node.generators, node.elt)
    return lambda budget: [element(budget) for _ in rounds(budget)]


def _plain_list(
    compiler: Compiler, node: ast.ListComp | ast.GeneratorExp, clause: ast.comprehension, name: str
) -> Closure:
    """Compile `[... for x in xs]` with at most one `if`, by far the commonest, without a generator between."""
    outside = dict(compiler.bound)
    iterable = _iterable(compiler, clause.iter)
    slot = compiler.bind(name)
    test = compiler.compile(clause.ifs[0]) if clause.ifs else None
    element = compiler.compile(node.elt)
    compiler.bound = outside
    cost = 1 + cost_of(node.elt, *clause.ifs)

    def plain_list(budget: Budget) -> list[Json]:
        values = iterable(budget)
        budget.spend(cost * len(values))
        slots = budget.slots
        found: list[Json] = []
        for value in values:
            slots[slot] = value
            if test is None or test(budget):
                found.append(element(budget))
        return found

    return plain_list


def _lazily(compiler: Compiler, node: ast.GeneratorExp) -> Closure:
    """Compile a generator expression whose reader may stop early."""
    rounds, element = _compiled(compiler, node.generators, node.elt)
    return lambda budget: (element(budget) for _ in rounds(budget))


def _set(compiler: Compiler, node: ast.SetComp) -> Closure:
    rounds, element = _compiled(compiler, node.generators, node.elt)
    return lambda budget: distinct(budget, (element(budget) for _ in rounds(budget)))


def _fields(compiler: Compiler, node: ast.DictComp) -> Closure:
    rounds, key, value = _compiled(compiler, node.generators, node.key, node.value)

    def fields(budget: Budget) -> dict[str, Json]:
        made: dict[str, Json] = {}
        for _ in rounds(budget):
            budget.steps -= 3
            made[object_key(key(budget), node.key)] = value(budget)
        return made

    return fields


def _compiled(compiler: Compiler, clauses: list[ast.comprehension], *inside: ast.expr) -> tuple[Closure, ...]:
    """Return the rounds of a comprehension and the closures of what it evaluates in each."""
    outside = dict(compiler.bound)
    rounds: Rounds | None = None
    for clause in clauses:
        iterable = _iterable(compiler, clause.iter)
        assign = _target(compiler, clause.target)
        tests = [compiler.compile(test) for test in clause.ifs]
        cost = 1 + cost_of(*inside, *clause.ifs)
        one_clause = _clause(iterable, assign, tests, cost)
        rounds = one_clause if rounds is None else _nested(rounds, one_clause)
    assert rounds is not None
    closures = [compiler.compile(part) for part in inside]
    compiler.bound = outside
    return (rounds, *closures)


def _clause(
    iterable: Callable[[Budget], Iterable[Json]], assign: Assign, tests: Sequence[Closure], cost: int
) -> Rounds:
    """Return the rounds of one `for ... in ... if ...`."""
    only_test = tests[0] if len(tests) == 1 else None

    def rounds(budget: Budget) -> Iterator[None]:
        for value in iterable(budget):
            budget.steps -= cost
            if budget.steps < 0:
                raise exhausted()
            assign(budget, value)
            if only_test is not None:
                if only_test(budget):
                    yield
                continue
            for test in tests:
                if not test(budget):
                    break
            else:
                yield

    return rounds


def _nested(outer: Rounds, inner: Rounds) -> Rounds:
    def nested(budget: Budget) -> Iterator[None]:
        for _ in outer(budget):
            budget.steps -= 8
            yield from inner(budget)

    return nested


def _iterable(compiler: Compiler, node: ast.expr) -> Callable[[Budget], Collection[Json]]:
    """Compile what a loop goes through; a `range(...)` is gone through without making its list."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
        return call_of(compiler, node, "range", _range)
    compute = compiler.compile(node)
    source = compiler.source
    return lambda budget: gone_through(source, budget, compute(budget), node)


def _range(budget: Budget, start: Json, stop: Json | NotGiven = MISSING, step: Json = 1) -> range:
    return range_of(start, stop, step)


def _target(compiler: Compiler, node: ast.expr) -> Assign:
    """Compile what takes the value of a round: a name, or several names for a list of as many."""
    if isinstance(node, ast.Name):
        slot = compiler.bind(node.id)

        def one_name(budget: Budget, value: Json) -> None:
            budget.slots[slot] = value

        return one_name
    assert isinstance(node, ast.Tuple | ast.List)
    targets = [_target(compiler, element) for element in node.elts]
    source = compiler.source

    def several_names(budget: Budget, value: Json) -> None:
        if not isinstance(value, list | str | dict):
            raise Fault(f"`{source(node)}` takes a list of {len(targets)}, found {shown(value)}", node=node)
        if len(value) != len(targets):
            raise Fault(f"`{source(node)}` takes {len(targets)} values, found {len(value)}", node=node)
        for assign, element in zip(targets, value, strict=True):
            assign(budget, element)

    return several_names


RULES: dict[type[ast.AST], Rule] = {
    ast.ListComp: _list,
    ast.GeneratorExp: _list,
    LazyGenerator: _lazily,
    ast.SetComp: _set,
    ast.DictComp: _fields,
}
