"""Reaching into values, with the words for what is not there.

These are the slow ways: closures look up directly and come here only when that failed, to find the key under another
spelling or to say what is missing, in the words of the plan's author.
"""

from __future__ import annotations

import ast
import unicodedata
from collections.abc import Callable, Mapping
from typing import TypeAlias, TypeVar

from toolplan.diagnostics import nearest
from toolplan.expressions.faults import Fault, Missing, shown
from toolplan.expressions.methods import METHODS
from toolplan.values import Json

__all__ = ["Source", "empty", "field", "folded", "item"]

Source: TypeAlias = "Callable[[ast.AST], str]"
"""Gives the text of a node as its author wrote it."""

V = TypeVar("V")
SHOWN_FIELDS = 20


def folded(values: Mapping[str, V], key: str, fault: Fault) -> V:
    """Return the value under the folded spelling of `key` (as Python folds identifiers), else raise `fault`."""
    plain = unicodedata.normalize("NFKC", key)
    if plain in values:
        return values[plain]
    raise fault


def empty(source: Source, node: ast.AST, so: str) -> Missing:
    """Return the fault of a null: `node` says what was empty, `so` what therefore does not work."""
    written = source(node)
    return Missing(
        f"`{written}` is empty (null), so {so}",
        help=f"test it first (`{written} is not None`) or give a stand-in: `default({written}, ...)`",
        node=node,
    )


def field(source: Source, value: Json, name: str, node: ast.Attribute) -> Json:
    """Return the field `name` of `value`; `node` is the attribute that asks for it. Raises `Fault`."""
    if isinstance(value, dict):
        return value[name] if name in value else folded(value, name, _no_field(source, node, value, name))
    owner = source(node.value)
    if value is None:
        raise empty(source, node.value, f"it has no field `{name}`")
    help = None
    if name in ("length", "size") and isinstance(value, str | list):
        help = f"write `len({owner})`"
    elif isinstance(value, list):
        help = f"take one element, `{owner}[0].{name}`, or all: `[x.{name} for x in {owner}]`"
    elif type(value) in METHODS.get(name, ()):
        help = f"write `{owner}.{name}()` to call the method"
    raise Missing(f"`{owner}` is {shown(value)}, which has no field `{name}`", help=help, node=node)


def item(source: Source, value: Json, key: Json, node: ast.Subscript) -> Json:
    """Return the element of `value` at `key`; `node` is the subscript that asks for it. Raises `Fault`."""
    owner = source(node.value)
    if value is None:
        raise empty(source, node.value, f"it has no element {shown(key)}")
    if key is None and isinstance(value, dict | list | str):
        raise empty(source, node.slice, f"it names no element of `{owner}`")
    if isinstance(value, dict):
        if isinstance(key, str):
            if key in value:
                return value[key]
            raise _no_field(source, node, value, key)
        raise Fault(
            f"the fields of `{owner}` have names, but {shown(key)} is not text",
            help=f"`list({owner}.values())[0]` is the first value" if isinstance(key, int) else None,
            node=node,
        )
    if not isinstance(value, list | str):
        raise Fault(f"`{owner}` is {shown(value)}, which has no elements", node=node)
    if isinstance(key, int):
        return _element(source, value, key, node)
    help = None
    if isinstance(key, str) and isinstance(value, list) and len(key) < 40:
        help = f"take one element, `{owner}[0]`, or all: `[x[{key!r}] for x in {owner}]`"
    elif isinstance(key, float):
        help = "round it: `int(...)`"
    raise Fault(
        f"the elements of `{owner}` are counted by whole numbers, but {shown(key)} is not one", help=help, node=node
    )


def _element(source: Source, value: list[Json] | str, index: int, node: ast.Subscript) -> Json:
    if -len(value) <= index < len(value):
        return value[index]
    owner, wanted = source(node.value), source(node)
    kind = "list" if isinstance(value, list) else "text"
    if not value:
        raise Missing(
            f"`{wanted}` does not exist: the {kind} `{owner}` is empty",
            help=f"test it first: `{wanted} if {owner} else ...`",
            node=node,
        )
    has = "1 element" if len(value) == 1 else f"{len(value)} elements"
    raise Missing(f"`{wanted}` does not exist: the {kind} `{owner}` has {has}", node=node)


def _no_field(source: Source, node: ast.Attribute | ast.Subscript, fields: dict[str, Json], name: str) -> Missing:
    owner = source(node.value)
    names = list(fields)
    listed = ", ".join(names[:SHOWN_FIELDS]) + (", …" if len(names) > SHOWN_FIELDS else "")
    help = None
    if guess := nearest(name, names):
        help = f"did you mean `{guess}`?"
    elif isinstance(node, ast.Attribute) and dict in METHODS.get(name, ()):
        help = f"write `{owner}.{name}()` to call the method"
    elif isinstance(node, ast.Subscript) and len(name) <= 40:
        help = f"a field that may be missing is read by `{owner}.get({name!r})`"
    return Missing(
        f"`{source(node)}` does not exist: `{owner}` has no field `{name}`; it has {listed or 'no fields at all'}",
        help=help,
        node=node,
    )
