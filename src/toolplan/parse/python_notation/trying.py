"""`try` around calls: when a step of the body fails, the rest of the body is left out and the handler runs.

A failed call is a failed call whatever its exception is called, so a `try` has one handler. What follows `else` runs
only after a whole body and is not watched; `finally` is what follows the `try`, where nothing leaves it.
"""

from __future__ import annotations

import ast

from toolplan.diagnostics import program as wording
from toolplan.expressions import Literal
from toolplan.parse.python_notation.lowering import Lowering, Refused, ends
from toolplan.plan import Answer, Break, Cannot, Continue, If, Let, Replan, Step, Try, walk

__all__ = ["tried"]


def tried(low: Lowering, node: ast.Try, out: list[Step]) -> None:
    """Append the steps of a `try`. Raises `Refused`."""
    place = low.place(node)
    if not node.handlers:
        raise Refused(wording.try_without_handler(place))
    handler, *others = node.handlers
    if any(_differs(handler, other) for other in others):
        raise Refused(wording.several_handlers(low.place(others[0])))
    before = set(low.visible)
    body = low.block(node.body)
    after_body, low.visible = low.visible, before
    low.errors.append(handler.name or "")
    handled = low.block(handler.body)
    low.errors.pop()
    low.visible |= after_body
    last: list[Step] = []
    if node.orelse:
        rest = low.block(node.orelse)
        if ends(handled):
            last += rest
        else:
            flag = low.fresh()
            out.append(Let("", ((flag, Literal(False, place)),), place))
            body = (*body, Let("", ((flag, Literal(True, place)),), place))
            test = low.expression(low.name(flag, node.orelse[0]))
            last.append(If("", test, rest, place=low.place(node.orelse[0])))
    out.append(Try("", body, handled, handler.name, place))
    out += last
    if node.finalbody:
        leaving = next((step for step in walk([*body, *handled, *last]) if isinstance(step, _LEAVING)), None)
        if leaving is not None:
            raise Refused(wording.left_before_finally(low.place(node.finalbody[0]), leaving.place))
        out += low.block(node.finalbody)


_LEAVING = (Answer, Break, Cannot, Continue, Replan)


def _differs(one: ast.ExceptHandler, other: ast.ExceptHandler) -> bool:
    return one.name != other.name or [ast.dump(s) for s in one.body] != [ast.dump(s) for s in other.body]
