"""Loops over what is not a list: Python goes through the keys of an object and the characters of a text.

A loop of a plan goes through a list, so that `for m in page` where `page.mails` was meant is noticed. Where the program
itself shows that it means the keys, or the characters, it gets the list of them.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from toolplan.parse.python_notation.lowering import Lowering

__all__ = ["as_list"]


def as_list(low: Lowering, items: ast.expr, target: ast.expr, inside: Sequence[ast.AST]) -> ast.expr:
    """Return what a loop over `items` goes through; `inside` is what happens in each round, for each `target`."""
    match items:
        case ast.Constant(value=str()) | ast.JoinedStr():
            is_other = True
        case ast.Name(id=name):
            is_other = _is_object(low, name) or _is_indexed(items, target, inside)
        case ast.Attribute() | ast.Subscript():
            is_other = _is_indexed(items, target, inside)
        case ast.Dict() | ast.DictComp():
            is_other = True
        case _:
            is_other = False
    return low.built("list(items)", items, items=items) if is_other else items


def _is_object(low: Lowering, name: str) -> bool:
    """Return whether every assignment to the name gives it an object."""
    assignments = low.survey.values.get(name, [])
    values = [assignment.value for assignment in assignments if assignment is not None]
    return len(values) == len(assignments) > 0 and all(
        isinstance(value, ast.Dict | ast.DictComp)
        or (isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "dict")
        for value in values
    )


def _is_indexed(items: ast.expr, target: ast.expr, inside: Sequence[ast.AST]) -> bool:
    """Return whether a round uses its element as a key: `for k in d: ... d[k]`."""
    if not isinstance(target, ast.Name):
        return False
    looped = ast.unparse(items)
    for node in inside:
        for part in ast.walk(node):
            match part:
                case ast.Subscript(value=value, slice=ast.Name(id=key)) if key == target.id:
                    if ast.unparse(value) == looped:
                        return True
                case _:
                    pass
    return False
