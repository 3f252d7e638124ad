"""Programs that put the plan into a function and call it: the function's body is the plan.

`async def main(): ...` with `asyncio.run(main())`, perhaps under `if __name__ == "__main__":`, has one reading: the
steps of `main` where it is called, its `return` being the answer.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

__all__ = ["unwrapped"]


def unwrapped(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return the statements of the plan. What has no such reading stays as it is, to be refused where it stands."""
    statements: list[ast.stmt] = []
    for statement in body:
        if _is_main_guard(statement):
            assert isinstance(statement, ast.If)
            statements += statement.body
        else:
            statements.append(statement)
    functions = [s for s in statements if isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef)]
    if len(functions) != 1 or not _is_plain(functions[0]):
        return statements
    function = functions[0]
    others = [statement for statement in statements if statement is not function]
    calls = [number for number, statement in enumerate(others) if _calls(statement, function.name)]
    if not calls:
        harmless = all(isinstance(s, ast.Import | ast.ImportFrom | ast.Assign) or _is_text(s) for s in others)
        return [*others, *function.body] if harmless and not _mentions(others, function.name) else statements
    first = calls[0]
    if len(calls) > 1 or not _only_answers(others[first], others[first + 1 :]):
        return statements
    return [*others[:first], *function.body]


def _is_main_guard(node: ast.stmt) -> bool:
    match node:
        case ast.If(test=ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]), orelse=[]):
            sides = [left, right]
            return any(isinstance(side, ast.Name) and side.id == "__name__" for side in sides) and any(
                isinstance(side, ast.Constant) and side.value == "__main__" for side in sides
            )
        case _:
            return False


def _is_plain(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    given = node.args
    has_parameters = given.posonlyargs or given.args or given.vararg or given.kwonlyargs or given.kwarg
    return not (has_parameters or node.decorator_list or _mentions(node.body, node.name))


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _mentions(nodes: Sequence[ast.AST], name: str) -> bool:
    return any(isinstance(found, ast.Name) and found.id == name for node in nodes for found in ast.walk(node))


def _calls(node: ast.stmt, name: str) -> bool:
    return _mentions([node], name)


def _only_answers(call: ast.stmt, after: Sequence[ast.stmt]) -> bool:
    """Return whether `call` calls the function and nothing but giving its value as the answer follows."""
    match call:
        case ast.Expr(value=value) | ast.Return(value=ast.expr() as value):
            return not after and _is_call(_shown(value) or value)
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            if not _is_call(value) or len(after) > 1:
                return False
            match list(after):
                case []:
                    return True
                case [ast.Return(value=ast.Name(id=same))] | [ast.Expr(value=ast.Name(id=same))]:
                    return same == name
                case [ast.Expr(value=shown)]:
                    inside = _shown(shown)
                    return isinstance(inside, ast.Name) and inside.id == name
                case _:
                    return False
        case _:
            return False


def _shown(node: ast.expr) -> ast.expr | None:
    """Return what a `print` or `answer` shows, None for anything else."""
    match node:
        case ast.Call(func=ast.Name(id="print" | "answer" | "final_answer"), args=[value], keywords=[]):
            return value
        case _:
            return None


def _is_call(node: ast.expr) -> bool:
    """Return whether `node` is `main()`, awaited or run by asyncio."""
    match node:
        case ast.Await(value=value):
            return _is_call(value)
        case ast.Call(func=ast.Attribute(attr="run" | "run_until_complete"), args=[value], keywords=[]):
            return _is_call(value)
        case ast.Call(func=ast.Name(), args=[], keywords=[]):
            return True
        case _:
            return False
