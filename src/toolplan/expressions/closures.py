"""Nodes -> closures: names, paths, operators, displays. `loops` and `calls` hold the other rules.

A rule takes the `Compiler` and a node and returns a closure, a function of the `Budget` that does this node's work on
JSON values and nothing else.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, cast

from toolplan.expressions.access import Source, empty, field, folded, item
from toolplan.expressions.faults import Fault, Missing, shown
from toolplan.expressions.functions.registry import key_text
from toolplan.expressions.limits import Budget, size_of
from toolplan.expressions.operators import (
    BINARY,
    COMPARE,
    COMPARE_NUMBERS,
    COMPARE_SETS,
    NUMERIC,
    SIGNS,
    NoOperationError,
)
from toolplan.expressions.rendering import convert, format_value, text_of
from toolplan.expressions.sets import distinct
from toolplan.values import Json

__all__ = [
    "RULES",
    "Closure",
    "Compiler",
    "LazyGenerator",
    "Rule",
    "constant_index",
    "gone_through",
    "object_key",
    "spread",
]

Closure: TypeAlias = "Callable[[Budget], Any]"
Rule: TypeAlias = "Callable[[Compiler, Any], Closure]"


class LazyGenerator(ast.AST):
    """Stands for a generator expression that is read as it goes, in the table of rules."""


class Compiler:
    """Makes the closures of one tree. Each loop variable gets a slot in the budget, by number."""

    def __init__(self, source: Source, rules: Mapping[type[ast.AST], Rule]) -> None:
        self.source = source
        self.slots = 0
        self.bound: dict[str, int] = {}
        self._rules = rules

    def compile(self, node: ast.expr) -> Closure:
        """Return the closure of `node`."""
        return self._rules[type(node)](self, node)

    def lazily(self, node: ast.GeneratorExp) -> Closure:
        """Return the closure of a generator expression whose reader may stop early."""
        return self._rules[LazyGenerator](self, node)

    def bind(self, name: str) -> int:
        """Return a new slot, which is what `name` means from here on."""
        slot = self.slots
        self.slots += 1
        self.bound[name] = slot
        return slot


# --- names and paths -------------------------------------------------------------------------------------------------


def _constant(compiler: Compiler, node: ast.Constant) -> Closure:
    value = node.value
    return lambda budget: value


def _name(compiler: Compiler, node: ast.Name) -> Closure:
    name = node.id
    slot = compiler.bound.get(name)
    if slot is not None:
        return lambda budget: budget.slots[slot]

    def outer_name(budget: Budget) -> Json:
        try:
            return budget.scope[name]
        except KeyError:
            return folded(budget.scope, name, Fault(f"`{name}` has no value here", node=node))

    return outer_name


def constant_index(node: ast.expr) -> str | int | None:
    """Return the text or whole number that an index is, None for anything that must be computed."""
    sign = 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node, sign = node.operand, -1
    if isinstance(node, ast.Constant):
        if type(node.value) is int:
            return sign * node.value
        if type(node.value) is str and sign == 1:
            return node.value
    return None


def _path(compiler: Compiler, node: ast.Attribute | ast.Subscript) -> Closure:
    """Compile a chain of fields and constant indices as one closure."""
    source = compiler.source
    steps: list[tuple[Any, ast.Attribute | ast.Subscript]] = []
    base: ast.expr = node
    while isinstance(base, ast.Attribute | ast.Subscript):
        key = base.attr if isinstance(base, ast.Attribute) else constant_index(base.slice)
        if key is None:
            break
        steps.append((key, base))
        base = base.value
    if not steps:
        return _subscript(compiler, cast("ast.Subscript", node))
    steps.reverse()
    start = compiler.compile(base)
    keys = [key for key, _ in steps]

    def carefully(value: Json) -> Json:
        for key, part in steps:
            value = (
                field(source, value, key, part) if isinstance(part, ast.Attribute) else item(source, value, key, part)
            )
        return value

    if len(keys) > 1:
        return _several_steps(start, keys, carefully)
    key = keys[0]
    slot = compiler.bound.get(base.id) if isinstance(base, ast.Name) else None
    if slot is not None:

        def step_from_loop_name(budget: Budget) -> Json:
            value: Any = budget.slots[slot]
            try:
                return value[key]
            except (KeyError, IndexError, TypeError):
                return carefully(value)

        return step_from_loop_name

    def one_step(budget: Budget) -> Json:
        value = start(budget)
        try:
            return value[key]
        except (KeyError, IndexError, TypeError):
            return carefully(value)

    return one_step


def _several_steps(start: Closure, keys: list[Any], carefully: Callable[[Json], Json]) -> Closure:
    def several_steps(budget: Budget) -> Json:
        first = value = start(budget)
        try:
            for key in keys:
                value = value[key]
            return value
        except (KeyError, IndexError, TypeError):
            return carefully(first)

    return several_steps


def _subscript(compiler: Compiler, node: ast.Subscript) -> Closure:
    if isinstance(node.slice, ast.Slice):
        return _slice(compiler, node, node.slice)
    source = compiler.source
    owner, index = compiler.compile(node.value), compiler.compile(node.slice)

    def subscript(budget: Budget) -> Json:
        value, key = owner(budget), index(budget)
        if type(key) is str or type(key) is int:
            try:
                return value[key]
            except (KeyError, IndexError, TypeError):
                pass
        return item(source, value, key, node)

    return subscript


def _slice(compiler: Compiler, node: ast.Subscript, cut: ast.Slice) -> Closure:
    source = compiler.source
    owner = compiler.compile(node.value)
    bounds = [(part, compiler.compile(part) if part else None) for part in (cut.lower, cut.upper, cut.step)]

    def slice_of(budget: Budget) -> Json:
        value: Json = owner(budget)
        limits: list[int | None] = []
        for part, bound in bounds:
            limit: Json = bound(budget) if bound is not None else None
            if limit is not None and not isinstance(limit, int):
                raise Fault(f"a slice goes by whole numbers, but {shown(limit)} is not one", node=part)
            limits.append(limit)
        if limits[2] == 0:
            raise Fault("the step of a slice cannot be zero", node=node)
        if isinstance(value, str | list):
            part = slice(*limits)
            count = len(range(*part.indices(len(value))))
            budget.produce(8 * count if isinstance(value, list) else count if value.isascii() else 4 * count)
            return value[part]
        if value is None:
            raise empty(source, node.value, "nothing can be cut out of it")
        raise Fault(f"`{source(node.value)}` is {shown(value)}, and only text and lists can be cut", node=node)

    return slice_of


# --- operators -------------------------------------------------------------------------------------------------------


def _unary(compiler: Compiler, node: ast.UnaryOp) -> Closure:
    source = compiler.source
    operand = compiler.compile(node.operand)
    if isinstance(node.op, ast.Not):
        return lambda budget: not operand(budget)
    sign = "-" if isinstance(node.op, ast.USub) else "+"

    def signed(budget: Budget) -> Json:
        value: Json = operand(budget)
        if isinstance(value, int | float):
            return -value if sign == "-" else +value
        if value is None:
            raise empty(source, node.operand, f"`{sign}` cannot be computed")
        help = f"turn it into a number: `number({source(node.operand)})`" if isinstance(value, str) else None
        raise Fault(f"`{source(node)}`: `{sign}` needs a number, found {shown(value)}", help=help, node=node)

    return signed


def _binary(compiler: Compiler, node: ast.BinOp) -> Closure:
    source = compiler.source
    left, right = compiler.compile(node.left), compiler.compile(node.right)
    compute = BINARY[type(node.op)]

    def binary(budget: Budget) -> Json:
        one, other = left(budget), right(budget)
        try:
            return compute(budget, one, other)
        except Fault as fault:
            fault.node = node
            raise
        except OverflowError:
            raise Fault(f"`{source(node)}`: the result is too large for a number", node=node) from None
        except ZeroDivisionError:
            raise Fault(f"`{source(node)}`: division by zero", node=node) from None
        except NoOperationError:
            raise _no_operation(source, node, one, other) from None

    return binary


def _no_operation(source: Source, node: ast.BinOp, one: Json, other: Json) -> Fault:
    sign = SIGNS[type(node.op)]
    for value, part in ((one, node.left), (other, node.right)):
        if value is None:
            return empty(source, part, f"`{sign}` cannot be computed")
    help = None
    if sign == "+" and isinstance(one, list) != isinstance(other, list):
        help = "add a list to a list: `xs + [x]`"
    elif sign == "+":
        help = "put it into text with an f-string or `str(...)`, or turn the text into a number with `number(...)`"
    elif sign == "%" and isinstance(one, str):
        help = 'write an f-string: `f"{x} items"`'
    elif isinstance(one, str) or isinstance(other, str):
        help = "turn text into a number with `number(...)`; dates have `add` and `days_between`"
    return Fault(f"`{source(node)}`: `{sign}` cannot combine {shown(one)} and {shown(other)}", help=help, node=node)


def _logic(compiler: Compiler, node: ast.BoolOp) -> Closure:
    *first, last = [compiler.compile(value) for value in node.values]
    stops_at = isinstance(node.op, ast.Or)

    def logic(budget: Budget) -> Json:
        for compute in first:
            value: Json = compute(budget)
            if bool(value) is stops_at:
                return value
        return last(budget)

    return logic


def _condition(compiler: Compiler, node: ast.IfExp) -> Closure:
    test, body, other = compiler.compile(node.test), compiler.compile(node.body), compiler.compile(node.orelse)
    return lambda budget: body(budget) if test(budget) else other(budget)


def _compare(compiler: Compiler, node: ast.Compare) -> Closure:
    source = compiler.source
    left = compiler.compile(node.left)
    nodes = [node.left, *node.comparators]
    links: list[tuple[Callable[[Budget, Json, Json], bool], Closure, ast.expr, ast.expr]] = []
    for test, one, other in zip(node.ops, nodes, node.comparators, strict=False):
        written_as_sets = type(test) in COMPARE_SETS and (_is_set(one) or _is_set(other))
        tests = COMPARE_SETS if written_as_sets else COMPARE
        links.append((tests[type(test)], compiler.compile(other), one, other))

    def compare(budget: Budget) -> bool:
        one = left(budget)
        for test, right, one_node, other_node in links:
            other = right(budget)
            try:
                if not test(budget, one, other):
                    return False
            except Fault as fault:
                raise _no_comparison(source, node, fault, (one, one_node), (other, other_node)) from None
            one = other
        return True

    if len(links) > 1:
        return compare
    test, right, one_node, other_node = links[0]
    on_numbers = COMPARE_NUMBERS.get(type(node.ops[0]))
    if on_numbers is not None and isinstance(other_node, ast.Constant) and type(other_node.value) in NUMERIC:
        number: Any = other_node.value

        def compare_with_number(budget: Budget) -> bool:
            one = left(budget)
            if type(one) in NUMERIC:
                return on_numbers(one, number)
            try:
                return test(budget, one, number)
            except Fault as fault:
                raise _no_comparison(source, node, fault, (one, one_node), (number, other_node)) from None

        return compare_with_number

    def compare_two(budget: Budget) -> bool:
        one, other = left(budget), right(budget)
        if on_numbers is not None and type(one) in NUMERIC and type(other) in NUMERIC:
            return on_numbers(one, other)
        try:
            return test(budget, one, other)
        except Fault as fault:
            raise _no_comparison(source, node, fault, (one, one_node), (other, other_node)) from None

    return compare_two


def _no_comparison(
    source: Source, node: ast.expr, fault: Fault, one: tuple[Json, ast.expr], other: tuple[Json, ast.expr]
) -> Fault:
    fault.node = node
    if isinstance(fault, Missing):
        for (value, part), (against, _) in ((one, other), (other, one)):
            if value is None:
                return empty(source, part, f"it cannot be compared with {shown(against)}")
    return fault


def _is_set(node: ast.expr) -> bool:
    """Return whether the expression is written as a set, so that comparing it means comparing sets."""
    if isinstance(node, ast.Set | ast.SetComp):
        return True
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name):
            return node.func.id == "set"
        return isinstance(node.func, ast.Attribute) and node.func.attr in ("union", "intersection", "difference")
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr | ast.BitAnd | ast.BitXor | ast.Sub):
        return _is_set(node.left) or _is_set(node.right)
    return False


# --- displays --------------------------------------------------------------------------------------------------------


def _sequence(compiler: Compiler, node: ast.List | ast.Tuple) -> Closure:
    size = 60 + 8 * len(node.elts)
    if any(isinstance(element, ast.Starred) for element in node.elts):
        return spread(compiler, node.elts)
    parts = [compiler.compile(element) for element in node.elts]

    def sequence(budget: Budget) -> list[Json]:
        budget.produce(size)
        return [part(budget) for part in parts]

    return sequence


def spread(compiler: Compiler, nodes: list[ast.expr]) -> Closure:
    """Compile displayed elements, starred ones among them, as a list."""
    parts = [
        (compiler.compile(node.value), node) if isinstance(node, ast.Starred) else (compiler.compile(node), None)
        for node in nodes
    ]

    def spread_out(budget: Budget) -> list[Json]:
        found: list[Json] = []
        for part, starred in parts:
            value = part(budget)
            if starred is None:
                found.append(value)
                continue
            more = gone_through(compiler.source, budget, value, starred.value)
            budget.produce(60 + 8 * len(more))
            found += more
        budget.produce(60 + 8 * len(found))
        return found

    return spread_out


def gone_through(source: Source, budget: Budget, value: Json, node: ast.expr) -> list[Json] | str:
    """Return what a loop over `value` goes through. Raises `Fault`."""
    if isinstance(value, list | str):
        return value
    if isinstance(value, dict):
        budget.produce(8 * len(value))
        return list(value)
    if value is None:
        raise empty(source, node, "there is nothing to go through")
    raise Fault(
        f"`{source(node)}` is {shown(value)}, and a loop goes through a list",
        help="go through `range(...)` of it" if type(value) is int else None,
        node=node,
    )


def _set(compiler: Compiler, node: ast.Set) -> Closure:
    elements = spread(compiler, node.elts)
    return lambda budget: distinct(budget, elements(budget))


def object_key(value: Json, node: ast.AST) -> str:
    """Return the key of an object that `value` is; `node` is where it stands. Raises `Fault`."""
    if type(value) is str:
        return value
    try:
        return key_text(value)
    except Fault as fault:
        fault.node = node
        raise


def _fields(compiler: Compiler, node: ast.Dict) -> Closure:
    source = compiler.source
    size = 64 + 100 * len(node.keys)
    parts = [
        (compiler.compile(key) if key is not None else None, key, compiler.compile(value), value)
        for key, value in zip(node.keys, node.values, strict=True)
    ]

    def fields(budget: Budget) -> dict[str, Json]:
        budget.produce(size)
        made: dict[str, Json] = {}
        for key, key_node, value, value_node in parts:
            if key is not None and key_node is not None:
                made[object_key(key(budget), key_node)] = value(budget)
                continue
            more: Json = value(budget)
            if isinstance(more, dict):
                budget.produce(100 * len(more))
                made |= more
                continue
            if more is None:
                raise empty(source, value_node, "its fields cannot be taken over")
            raise Fault(f"`**` takes over the fields of an object, not of {shown(more)}", node=value_node)
        return made

    return fields


def _text_with_holes(compiler: Compiler, node: ast.JoinedStr) -> Closure:
    parts = [
        _hole(compiler, part) if isinstance(part, ast.FormattedValue) else compiler.compile(part)
        for part in node.values
    ]

    def text_with_holes(budget: Budget) -> str:
        texts: Iterable[str] = [part(budget) for part in parts]
        budget.produce(50 + size_of(*texts))
        return "".join(texts)

    return text_with_holes


def _hole(compiler: Compiler, node: ast.FormattedValue) -> Closure:
    source = compiler.source
    compute = compiler.compile(node.value)
    spec = compiler.compile(node.format_spec) if node.format_spec is not None else None
    conversion = chr(node.conversion) if node.conversion > 0 else ""

    def hole(budget: Budget) -> str:
        value: Json = compute(budget)
        try:
            if conversion:
                value = convert(value, conversion, budget)
            if spec is None:
                return value if type(value) is str else text_of(value, budget)
            if value is None:
                raise empty(source, node.value, "it cannot be formatted")
            return format_value(value, spec(budget), budget)
        except Fault as fault:
            if fault.node is None:
                fault.node = node.value
            raise

    return hole


RULES: dict[type[ast.AST], Rule] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _path,
    ast.Subscript: _path,
    ast.UnaryOp: _unary,
    ast.BinOp: _binary,
    ast.BoolOp: _logic,
    ast.IfExp: _condition,
    ast.Compare: _compare,
    ast.List: _sequence,
    ast.Tuple: _sequence,
    ast.Set: _set,
    ast.Dict: _fields,
    ast.JoinedStr: _text_with_holes,
}
