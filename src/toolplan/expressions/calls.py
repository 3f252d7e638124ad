"""Nodes -> closures: calls of functions and methods.

Which functions there are and how they may be called was settled when the expression was read; what is left for run time
is the kinds of the values.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from toolplan.expressions.access import Source, empty
from toolplan.expressions.closures import Closure, Compiler, Rule, spread
from toolplan.expressions.faults import ArgumentFault, Fault, Missing, shown
from toolplan.expressions.functions import FUNCTIONS
from toolplan.expressions.limits import Budget, cost_of
from toolplan.expressions.methods import METHODS
from toolplan.values import Json

__all__ = ["RULES", "call_of"]

_TYPES: dict[str, type] = {"str": str, "int": int, "float": float, "bool": bool, "list": list, "dict": dict}
_KIND_NAMES: dict[type, str] = {str: "text", list: "lists", dict: "objects"}


def _call(compiler: Compiler, node: ast.Call) -> Closure:
    if isinstance(node.func, ast.Attribute):
        return _method_call(compiler, node, node.func)
    assert isinstance(node.func, ast.Name)
    name = node.func.id
    if name == "default":
        return _default(compiler, node)
    if name == "isinstance":
        return _isinstance(compiler, node)
    return call_of(compiler, node, name, FUNCTIONS[name].compute)


# --- functions -------------------------------------------------------------------------------------------------------


def call_of(compiler: Compiler, node: ast.Call, name: str, compute: Callable[..., Any]) -> Closure:
    """Compile the call `node` of the function `name`, computed by `compute`."""
    if any(isinstance(argument, ast.Starred) for argument in node.args):
        return _starred_call(compiler, node, name, compute)
    source = compiler.source
    lazy = FUNCTIONS[name].lazy
    arguments = [_lazily(compiler, argument) if lazy else compiler.compile(argument) for argument in node.args]
    keywords = _keywords(compiler, node, name)
    if not keywords and len(arguments) == 1:
        only = arguments[0]

        def call_with_one(budget: Budget) -> Json:
            value = only(budget)
            try:
                return compute(budget, value)
            except Fault as fault:
                raise _refused(source, node, name, fault) from None

        return call_with_one

    def call(budget: Budget) -> Json:
        values = [argument(budget) for argument in arguments]
        named = {key: argument(budget) for key, argument in keywords.items()}
        try:
            return compute(budget, *values, **named)
        except Fault as fault:
            raise _refused(source, node, name, fault) from None

    return call


def _lazily(compiler: Compiler, node: ast.expr) -> Closure:
    return compiler.lazily(node) if isinstance(node, ast.GeneratorExp) else compiler.compile(node)


def _keywords(compiler: Compiler, node: ast.Call, name: str) -> dict[str, Closure]:
    ordering = "key" in FUNCTIONS[name].keyword_only
    return {
        keyword.arg: _order_key(compiler, keyword.value)
        if ordering and keyword.arg == "key"
        else compiler.compile(keyword.value)
        for keyword in node.keywords
        if keyword.arg is not None
    }


def _starred_call(compiler: Compiler, node: ast.Call, name: str, compute: Callable[..., Any]) -> Closure:
    source = compiler.source
    function = FUNCTIONS[name]
    arguments = spread(compiler, node.args)
    keywords = _keywords(compiler, node, name)

    def starred_call(budget: Budget) -> Json:
        values: list[Json] = arguments(budget)
        named = {key: argument(budget) for key, argument in keywords.items()}
        given = len(values) + sum(parameter in named for parameter in function.parameters)
        too_many = not function.variadic and len(values) > len(function.parameters)
        too_few = given < function.required or (function.variadic and not values and name != "zip")
        if too_many or too_few:
            raise Fault(f"`{name}` is given {len(values)} values", help=f"it is `{function.signature}`", node=node)
        try:
            return compute(budget, *values, **named)
        except Fault as fault:
            raise _refused(source, node, name, fault) from None

    return starred_call


def _order_key(compiler: Compiler, node: ast.expr) -> Closure:
    """Compile the `key` of `min`, `max` and `sorted`: a lambda, a function's name, or a field's name."""
    if isinstance(node, ast.Lambda):
        outside = dict(compiler.bound)
        slot = compiler.bind((node.args.posonlyargs + node.args.args)[0].arg)
        body = compiler.compile(node.body)
        compiler.bound = outside
        cost = 2 + cost_of(node.body)

        def by_lambda(budget: Budget) -> Callable[[Json], Json]:
            def key(value: Json) -> Json:
                budget.spend(cost)
                budget.slots[slot] = value
                return body(budget)

            return key

        return by_lambda
    if isinstance(node, ast.Name) and node.id in FUNCTIONS and node.id not in compiler.bound:
        compute, name = FUNCTIONS[node.id].compute, node.id

        def by_function(budget: Budget) -> Callable[[Json], Json]:
            def key(value: Json) -> Json:
                budget.spend(3)
                try:
                    return compute(budget, value)
                except ArgumentFault as fault:
                    kind = Missing if value is None else Fault
                    message = f"`{name}` takes {fault.wanted}, but an element is {shown(value)}"
                    raise kind(message, help=fault.help, node=node) from None

            return key

        return by_function
    return compiler.compile(node)


def _default(compiler: Compiler, node: ast.Call) -> Closure:
    given = dict(zip(("value", "fallback"), node.args, strict=False))
    given |= {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg is not None}
    value, fallback = compiler.compile(given["value"]), compiler.compile(given["fallback"])

    def default(budget: Budget) -> Json:
        try:
            found: Json = value(budget)
        except Missing:
            return fallback(budget)
        return fallback(budget) if found is None else found

    return default


def _isinstance(compiler: Compiler, node: ast.Call) -> Closure:
    value = compiler.compile(node.args[0])
    kinds: list[type] = []
    for part in ast.walk(node.args[1]):
        if isinstance(part, ast.Name):
            kinds.append(_TYPES[part.id])
        elif isinstance(part, ast.Constant):
            kinds.append(type(None))
    wanted = tuple(kinds)
    return lambda budget: isinstance(value(budget), wanted)


# --- methods ---------------------------------------------------------------------------------------------------------


def _method_call(compiler: Compiler, node: ast.Call, function: ast.Attribute) -> Closure:
    source = compiler.source
    name = function.attr
    by_kind = METHODS[name]
    owner = compiler.compile(function.value)
    arguments = [compiler.compile(argument) for argument in node.args]
    keywords = {k.arg: compiler.compile(k.value) for k in node.keywords if k.arg is not None}

    def method_call(budget: Budget) -> Json:
        value: Json = owner(budget)
        method = by_kind.get(type(value))
        if method is None:
            raise _no_method(source, function, value)
        if not method.takes(len(arguments), keywords):
            raise Fault(f"`{name}` of {_KIND_NAMES[method.kind]} is `{method.signature}`", node=node)
        values = [argument(budget) for argument in arguments]
        named = {key: argument(budget) for key, argument in keywords.items()}
        try:
            return method.compute(budget, value, *values, **named)
        except Fault as fault:
            raise _refused(source, node, name, fault) from None

    return method_call


def _no_method(source: Source, function: ast.Attribute, value: Json) -> Fault:
    name, owner = function.attr, source(function.value)
    if value is None:
        return empty(source, function.value, f"it has no `{name}()`")
    kinds = " and ".join(_KIND_NAMES[kind] for kind in METHODS[name])
    help = None
    if isinstance(value, dict) and name in value:
        help = f"the field is `{owner}.{name}`, without the brackets"
    elif isinstance(value, list) and str in METHODS[name]:
        help = f"do it for each: `[x.{name}(...) for x in {owner}]`"
    elif isinstance(value, int | float) and str in METHODS[name]:
        help = f"turn it into text first: `str({owner}).{name}(...)`"
    return Fault(f"`{owner}` is {shown(value)}, and `{name}` is a method of {kinds}", help=help, node=function)


# --- what went wrong -------------------------------------------------------------------------------------------------


def _refused(source: Source, node: ast.Call, name: str, fault: Fault) -> Fault:
    """Return `fault` with a place; one about an argument is said in the words of the plan's author."""
    if not isinstance(fault, ArgumentFault):
        if fault.node is None:
            fault.node = node
        return fault
    part = _argument(node, fault.position)
    if part is None:
        return Fault(f"`{name}` takes {fault.wanted}, but is given {shown(fault.value)}", help=fault.help, node=node)
    written = source(part)
    if fault.value is None:
        return Missing(
            f"`{written}` is empty (null), but `{name}` takes {fault.wanted}",
            help=f"test it first (`{written} is not None`) or give a stand-in: `default({written}, ...)`",
            node=part,
        )
    found = shown(fault.value) if isinstance(part, ast.Constant) else f"`{written}` is {shown(fault.value)}"
    return Fault(f"`{name}` takes {fault.wanted}, but {found}", help=fault.help, node=part)


def _argument(node: ast.Call, position: int | str) -> ast.expr | None:
    """Return the argument at a position or of a name; None when it was not written out."""
    if isinstance(position, str):
        return next((keyword.value for keyword in node.keywords if keyword.arg == position), None)
    if position < 0 and isinstance(node.func, ast.Attribute):
        return node.func.value
    if any(isinstance(argument, ast.Starred) for argument in node.args):
        return None
    if position < len(node.args):
        return node.args[position]
    return node.keywords[0].value if len(node.keywords) == 1 else None


RULES: dict[type[ast.AST], Rule] = {ast.Call: _call}
