"""How often a `while` may go round, read from the program: nothing else promises that it ends.

A bound is said in a comment (`# max_iterations: 20`), by `max_iterations(20)` as the first statement of the body, or by
a counter: the condition, or an `if ...: break`, compares it with a limit, and each round moves it by a constant. Where
the limit is only known when the plan runs, as in `while i < len(xs)`, the bound is `MAX_ROUNDS`. A bound that turns out
too small never ends a loop in silence: the step fails.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from toolplan.parse.python_notation.lowering import Lowering

__all__ = ["MAX_ROUNDS", "bound_of", "stated_bound"]

MAX_ROUNDS = 1_000
"""The bound of a loop whose counter has a limit that is not in the text."""

_COMMENT = re.compile(
    r"(?:max(?:imum)?[ _-]?(?:iterations|rounds|loops|steps|tries|attempts)|at most|up to|最多|至多|上限)"
    r"\D{0,12}?(\d{1,6})",
    re.IGNORECASE,
)


def bound_of(low: Lowering, node: ast.While) -> int | None:
    """Return the most rounds that the loop may take, or None when the program does not say."""
    for line in range(node.lineno - 1, node.body[0].lineno + 1):
        comment = low.text.comments.get(line)
        if comment and (found := _COMMENT.search(comment)):
            return max(1, int(found.group(1)))
    stated = stated_bound(node.body[0])
    if stated is not None:
        return stated
    bounds = [rounds for test in _conditions(node) if (rounds := _rounds(low, node, test)) is not None]
    # one more round is needed to reach the `break`
    bounds += [1 + rounds for test in _exits(node) if (rounds := _rounds(low, node, test)) is not None]
    return max(1, min(bounds)) if bounds else None


def stated_bound(node: ast.stmt) -> int | None:
    """Return n when the statement is `max_iterations(n)`."""
    match node:
        case ast.Expr(
            value=ast.Call(func=ast.Name(id="max_iterations"), args=[ast.Constant(value=int(rounds))], keywords=[])
        ):
            return max(1, rounds)
        case _:
            return None


def _conditions(node: ast.While) -> Iterator[ast.expr]:
    """Yield the conditions that must all hold for a round to begin."""
    stack = [node.test]
    while stack:
        test = stack.pop()
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
            stack += reversed(test.values)
        else:
            yield test


_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.Eq: ast.NotEq,
}


def _exits(node: ast.While) -> Iterator[ast.expr]:
    """Yield conditions under which the loop goes on, one for each `if ...: break` that every round comes to."""
    for statement in node.body:
        match statement:
            case ast.If(test=test, body=[*_, ast.Break() | ast.Return()]):
                pass
            case _:
                continue
        stack = [test]
        while stack:
            condition = stack.pop()
            match condition:
                case ast.BoolOp(op=ast.Or(), values=values):
                    stack += values
                case ast.Compare(left=left, ops=[op], comparators=right) if type(op) in _OPPOSITE:
                    yield ast.copy_location(ast.Compare(left, [_OPPOSITE[type(op)]()], right), condition)
                case _:
                    pass


def _rounds(low: Lowering, node: ast.While, test: ast.expr) -> int | None:
    """Return how often the condition can hold when each round moves its counter."""
    match test:
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            pass
        case ast.Name(id=name):
            return MAX_ROUNDS if _shrinks(node, name) else None
        case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)]):
            return MAX_ROUNDS if _shrinks(node, name) else None
        case _:
            return None
    match op, left, right:
        case ast.Lt() | ast.LtE() | ast.NotEq(), ast.Name(id=counter), limit:
            direction, inclusive = 1, isinstance(op, ast.LtE)
        case ast.Gt() | ast.GtE(), limit, ast.Name(id=counter) if _step(node, counter) > 0:
            direction, inclusive = 1, isinstance(op, ast.GtE)
        case ast.Gt() | ast.GtE(), ast.Name(id=counter), limit:
            direction, inclusive = -1, isinstance(op, ast.GtE)
        case ast.Gt() | ast.NotEq(), ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)]), _:
            return MAX_ROUNDS if _shrinks(node, name) else None
        case ast.Lt() | ast.LtE(), ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)]), limit:
            size = _whole(low, limit)
            grows = any(_method(statement) == (name, "append") for statement in node.body)
            return None if not grows or size is None else size + isinstance(op, ast.LtE)
        case _:
            return None
    step = _step(node, counter)
    towards_limit = step * direction > 0 or (isinstance(op, ast.NotEq) and step)
    if not towards_limit:
        return None
    last, first = _whole(low, limit), _first(low, node, counter, step)
    if last is None or first is None:
        return MAX_ROUNDS
    distance = (last - first) * (1 if step > 0 else -1) + inclusive
    return max(0, -(-distance // abs(step)))


def _step(node: ast.While, counter: str) -> int:
    """Return by how much each round moves the counter, 0 when that cannot be said."""
    step = 0
    for statement in node.body:
        match statement:
            case ast.AugAssign(
                target=ast.Name(id=name), op=ast.Add() | ast.Sub() as op, value=ast.Constant(value=int(by))
            ) if name == counter:
                step += by if isinstance(op, ast.Add) else -by
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.BinOp(
                    left=ast.Name(id=same), op=ast.Add() | ast.Sub() as op, right=ast.Constant(value=int(by))
                ),
            ) if name == same == counter:
                step += by if isinstance(op, ast.Add) else -by
            case _:
                pass
    return step


def _shrinks(node: ast.While, name: str) -> bool:
    """Return whether each round takes something from the list."""
    for statement in node.body:
        if _method(statement) == (name, "pop"):
            return True
        match statement:
            case ast.Assign(
                targets=[ast.Name(id=target)], value=ast.Subscript(value=ast.Name(id=same), slice=ast.Slice())
            ):
                if target == same == name:
                    return True
            case _:
                pass
    return False


def _method(statement: ast.stmt) -> tuple[str, str] | None:
    """Return the name and the method when the statement calls one on a variable: `x = xs.pop()`, `xs.append(x)`."""
    match statement:
        case ast.Expr(value=value) | ast.Assign(value=value):
            pass
        case _:
            return None
    match value:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)):
            return name, method
        case _:
            return None


def _first(low: Lowering, node: ast.While, counter: str, step: int) -> int | None:
    """Return the value of the counter before the loop that is farthest from its limit."""
    inside = set(ast.walk(node))
    found: list[int] = []
    for assignment in low.survey.values.get(counter, []):
        if assignment is None or assignment in inside:
            continue  # the counter's own steps
        value = _constant(assignment.value)
        if value is None:
            return None
        found.append(value)
    return (min(found) if step > 0 else max(found)) if found else None


def _whole(low: Lowering, limit: ast.expr) -> int | None:
    """Return the whole number that `limit` is throughout the program, if it is one."""
    if isinstance(limit, ast.Name):
        assignments = low.survey.values.get(limit.id, [])
        if len(assignments) != 1 or assignments[0] is None:
            return None
        return _constant(assignments[0].value)
    return _constant(limit)


def _constant(node: ast.expr | None) -> int | None:
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
            return -value
        case _:
            return None
