"""What a function of the language is, and what functions and methods need of their arguments.

Each is a plain Python function of the `Budget` and its arguments. The first line of its docstring is its entry in the
reference; its signature is its signature in the language, with `MISSING` for "not given".
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

from toolplan.expressions.dates import Moment, read_moment
from toolplan.expressions.faults import ArgumentFault, Fault, shown
from toolplan.expressions.limits import MAX_INT, Budget
from toolplan.values import Json

__all__ = [
    "FUNCTIONS",
    "MISSING",
    "Function",
    "NotGiven",
    "as_moment",
    "as_number",
    "as_text",
    "as_whole",
    "elements",
    "fitting",
    "function",
    "key_text",
    "written",
]


class NotGiven:
    """The type of `MISSING`: an argument that was left out."""

    def __repr__(self) -> str:
        return "?"


MISSING: Final = NotGiven()


@dataclass(frozen=True, slots=True)
class Function:
    """One function: how it may be called, and what computes it.

    `lazy` marks one that reads a generator expression as it goes, so that what it does not need is never computed;
    `special` one whose arguments are not simply computed first (`compute` is then never called).
    """

    name: str
    signature: str
    summary: str
    parameters: tuple[str, ...]
    keyword_only: frozenset[str]
    required: int
    variadic: bool
    compute: Callable[..., Any]
    lazy: bool = False
    special: bool = False


FUNCTIONS: dict[str, Function] = {}
"""Every function by name. Nothing else can be called by name."""

F = TypeVar("F", bound=Callable[..., Any])


def function(name: str, *, lazy: bool = False, special: bool = False) -> Callable[[F], F]:
    """Register a function of the language under `name`."""

    def register(compute: F) -> F:
        parameters = list(inspect.signature(compute).parameters.values())[1:]
        plain = [p for p in parameters if p.kind == p.POSITIONAL_OR_KEYWORD]
        FUNCTIONS[name] = Function(
            name=name,
            signature=f"{name}({written(parameters)})",
            summary=(compute.__doc__ or "").strip().split("\n")[0],
            parameters=tuple(p.name for p in plain),
            keyword_only=frozenset(p.name for p in parameters if p.kind == p.KEYWORD_ONLY),
            required=sum(p.default is p.empty for p in plain),
            variadic=any(p.kind == p.VAR_POSITIONAL for p in parameters),
            compute=compute,
            lazy=lazy,
            special=special,
        )
        return compute

    return register


def written(parameters: list[inspect.Parameter]) -> str:
    """Return parameters as the reference shows them: `x?` may be left out, `x=` must be named."""
    shown_parameters: list[str] = []
    starred = False
    for p in parameters:
        if p.kind == p.VAR_POSITIONAL:
            shown_parameters.append(f"*{p.name}")
            starred = True
        elif p.kind == p.KEYWORD_ONLY:
            if not starred:
                shown_parameters.append("*")
                starred = True
            shown_parameters.append(f"{p.name}=" if p.default is MISSING else f"{p.name}={p.default}")
        elif p.kind == p.POSITIONAL_OR_KEYWORD:
            left_out = p.default is MISSING or p.default is None
            has_default = p.default is not p.empty
            shown_parameters.append(p.name + ("" if not has_default else "?" if left_out else f"={p.default!r}"))
    return ", ".join(shown_parameters)


# --- what functions need of their arguments --------------------------------------------------------------------------


def elements(budget: Budget, value: object, position: int | str = 0) -> list[Json]:
    """Return the elements that a loop over `value` goes through: a list's, an object's keys, a text's characters.

    A generator or range is read to its end. Raises `ArgumentFault` for anything else.
    """
    if type(value) is list:
        return cast("list[Json]", value)
    if isinstance(value, dict):
        fields = cast("dict[str, Json]", value)
        budget.produce(8 * len(fields))
        return list(fields)
    if isinstance(value, str):
        budget.produce(8 * len(value) if value.isascii() else 80 * len(value))
        return list(value)
    if isinstance(value, range):
        budget.produce(36 * len(value))
        return list(value)
    if isinstance(value, Iterator):
        return list(cast("Iterator[Json]", value))
    raise ArgumentFault(position, cast("Json", value), "a list")


def as_text(value: Json, position: int | str = 0) -> str:
    """Return the argument if it is text, else raise `ArgumentFault`."""
    if isinstance(value, str):
        return value
    help = "turn it into text: `str(...)`" if isinstance(value, int | float) else None
    raise ArgumentFault(position, value, "text", help=help)


def as_number(value: Json, position: int | str = 0) -> int | float:
    """Return the argument if it is a number, else raise `ArgumentFault`."""
    if isinstance(value, int | float):
        return value
    help = "turn it into a number: `number(...)`" if isinstance(value, str) else None
    raise ArgumentFault(position, value, "a number", help=help)


def as_whole(value: Json, position: int | str = 0) -> int:
    """Return the argument if it is a whole number, else raise `ArgumentFault`."""
    if isinstance(value, int):
        return value
    help = "round it: `int(...)` or `round(...)`" if isinstance(value, float) else None
    raise ArgumentFault(position, value, "a whole number", help=help)


def as_moment(value: Json, position: int | str = 0) -> Moment:
    """Return the date or time that the argument is, else raise `Fault`."""
    return read_moment(as_text(value, position))


def fitting(value: int | float | complex) -> int | float:
    """Return a computed number, unless JSON cannot express it or it is too large to handle: then raise `Fault`."""
    if isinstance(value, complex):
        raise Fault("the root of a negative number is not a number")
    if type(value) is float:
        if value - value != 0:
            raise Fault("the result is infinite or not a number, which a JSON value cannot be")
    elif not -MAX_INT < value < MAX_INT:
        raise Fault("the result is a whole number of more than 3,000 digits")
    return value


def key_text(value: Json) -> str:
    """Return `value` if it can be the key of an object, else raise `Fault`."""
    if isinstance(value, str):
        return value
    raise Fault(f"the keys of an object are text, but {shown(value)} is not", help="turn it into text: `str(...)`")
