"""Arithmetic beyond the operators, and numbers out of text."""

from __future__ import annotations

import math

from toolplan.expressions.faults import ArgumentFault, Fault, shown
from toolplan.expressions.functions.registry import MISSING, NotGiven, as_number, as_text, as_whole, fitting, function
from toolplan.expressions.limits import Budget
from toolplan.expressions.numerals import numbers_in, passed_over
from toolplan.values import Json

__all__ = ["power"]

MAX_PLACES = 400
MAX_DIGITS = 3_000


@function("abs")
def _abs(budget: Budget, x: Json) -> int | float:
    """The number without its sign."""
    return abs(as_number(x))


@function("round")
def _round(budget: Budget, x: Json, ndigits: Json = None) -> int | float:
    """The number rounded to `ndigits` places, or to a whole number; halves go to the even neighbour, as in Python."""
    value = as_number(x)
    if ndigits is None:
        return round(value)
    places = as_whole(ndigits, 1)
    if abs(places) > MAX_PLACES:
        raise Fault(f"`round` takes at most {MAX_PLACES} places")
    try:
        return fitting(round(value, places))
    except OverflowError:
        raise Fault("the rounded number is too large") from None


@function("floor")
def _floor(budget: Budget, x: Json) -> int:
    """The largest whole number that is not above `x`."""
    return math.floor(as_number(x))


@function("ceil")
def _ceil(budget: Budget, x: Json) -> int:
    """The smallest whole number that is not below `x`."""
    return math.ceil(as_number(x))


@function("pow")
def _pow(budget: Budget, base: Json, exp: Json) -> int | float:
    """`base ** exp`."""
    return power(as_number(base, 0), as_number(exp, 1))


def power(base: int | float, exponent: int | float) -> int | float:
    """Return `base ** exponent`; raises `Fault` before computing what would be too large."""
    if isinstance(base, int) and isinstance(exponent, int) and exponent > 0:
        if abs(base) < 2:
            exponent = 2 - exponent % 2
        elif (abs(base).bit_length() - 1) * exponent > MAX_DIGITS * 4:
            raise Fault("the power is a whole number of more than 3,000 digits")
    try:
        return fitting(base**exponent)
    except OverflowError:
        raise Fault("the power is too large for a number") from None
    except ZeroDivisionError:
        raise Fault("zero cannot be raised to a negative power") from None


@function("divmod")
def _divmod(budget: Budget, a: Json, b: Json) -> list[Json]:
    """The quotient and the remainder, as a list of two."""
    try:
        quotient, remainder = divmod(as_number(a, 0), as_number(b, 1))
    except ZeroDivisionError:
        raise Fault("division by zero") from None
    except OverflowError:
        raise Fault("the number is too large") from None
    return [fitting(quotient), fitting(remainder)]


@function("int")
def _int(budget: Budget, x: Json = 0) -> int:
    """A number without its fraction, or the whole number that a text is."""
    if isinstance(x, int | float):
        return int(x)
    written = as_text(x)
    if len(written) > MAX_DIGITS:
        raise Fault("the text is too long to be a number")
    try:
        return int(written)
    except ValueError:
        raise Fault(
            f"{shown(x)} is not a whole number", help="`number(...)` finds the first number in a text"
        ) from None


@function("float")
def _float(budget: Budget, x: Json = 0.0) -> float:
    """The number with a fraction that a number or a text is."""
    try:
        value = float(x if isinstance(x, int | float) else as_text(x)[:MAX_DIGITS])
    except ValueError:
        raise Fault(f"{shown(x)} is not a number", help="`number(...)` finds the first number in a text") from None
    except OverflowError:
        raise Fault("the number is too large") from None
    if value - value != 0:
        raise Fault(
            "infinity and NaN are not JSON values",
            help="start from `None`, or use `min(..., default=...)`, `max(..., default=...)`",
        )
    return value


@function("number")
def _number(budget: Budget, text: Json, default: Json | NotGiven = MISSING) -> Json:
    """The first number in a text ("3°C" is 3, "￥1.2万" is 12000, "12%" is 12); a number is itself; else `default`."""
    if isinstance(text, int | float) and not isinstance(text, bool):
        return text
    if isinstance(text, str):
        budget.spend(len(text) // 20)
        for found in numbers_in(text):
            return found
        if isinstance(default, NotGiven):
            help = "give a stand-in: `number(text, 0)`"
            if other := passed_over(text):
                separator = next(character for character in other if not character.isdigit())
                part = f"`int(text.split({separator!r})[0])`"
                help = f"`{other[:40]}` is a date, a time, a version or the like; take the part that is meant: {part}"
            raise Fault(f"there is no number in {shown(text)}", help=help)
        return default
    if text is None and not isinstance(default, NotGiven):
        return default
    raise ArgumentFault(0, text, "text or a number")
