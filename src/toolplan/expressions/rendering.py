"""How a value reads as text, and format specs that cannot exhaust memory.

One rule serves `str(...)`, f-strings and templates, so that both notations write the same letters: text stands as it
is, numbers as Python writes them, and `null`, `true`, `false`, lists and objects as readable JSON.
"""

from __future__ import annotations

import json
import re

from toolplan.errors import EvaluationError
from toolplan.expressions.dates import format_moment, is_date_pattern, read_moment
from toolplan.expressions.faults import Fault, Missing, shown
from toolplan.expressions.limits import BYTES_PER_STEP, MAX_WEIGHT, Budget
from toolplan.values import Json

__all__ = ["convert", "fits_some_value", "format_value", "json_text", "render_text", "text_of"]

MAX_WIDTH = 10_000
"""Widest field and longest precision of a format spec."""


def render_text(value: Json) -> str:
    """Return `value` as it stands inside longer text.

    Text as it is, numbers as Python writes them (3, 3.0), `null`, `true`, `false`; lists and objects as JSON with
    readable characters. Raises `EvaluationError` for a value too large or too deep to write out.
    """
    if type(value) is str:
        return value
    try:
        return text_of(value, Budget({}, steps=MAX_WEIGHT))
    except Fault as fault:
        raise EvaluationError(fault.message, help=fault.help) from None
    except (ValueError, RecursionError):
        raise EvaluationError("the value cannot be written as text: it is too large or nested too deeply") from None


def text_of(value: Json, budget: Budget) -> str:
    """Return `value` as text (see `render_text`), paid from `budget`."""
    if isinstance(value, str):
        return value
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, int | float):
        return repr(value)
    return json_text(value, budget)


def json_text(value: Json, budget: Budget) -> str:
    """Return `value` as JSON on one line with readable characters, paid from `budget`."""
    budget.spend_on(value)
    return json.dumps(value, ensure_ascii=False)


def convert(value: Json, conversion: str, budget: Budget) -> str:
    """Return `value` under the conversion `r`, `s` or `a`: quoted text for `r`, escaped to ASCII for `a`."""
    if conversion not in ("r", "s", "a"):
        raise Fault(f"`!{conversion}` is not a conversion", help="these are `!r`, `!s` and `!a`")
    if conversion == "s" or not isinstance(value, str):
        text = text_of(value, budget)
        return text if conversion != "a" else text.encode("ascii", "backslashreplace").decode("ascii")
    budget.produce(2 * len(value))
    return ascii(value) if conversion == "a" else repr(value)


_SPEC = re.compile(
    r"(?:(?P<fill>.)?(?P<align>[<>=^]))?[-+ ]?z?#?0?(?P<width>\d+)?[_,]?(?:\.(?P<precision>\d+))?(?P<type>[a-zA-Z%])?",
    re.DOTALL,
)
_NUMERIC = frozenset("bcdeEfFgGnoxX%")


def fits_some_value(spec: str) -> bool:
    """Return whether `spec` is a format spec that some number, text or date can be written with."""
    match = _SPEC.fullmatch(spec)
    if match is None or "%" in spec[:-1]:
        return is_date_pattern(spec)
    return not match["type"] or match["type"] in _NUMERIC or match["type"] == "s"


def format_value(value: Json, spec: str, budget: Budget) -> str:
    """Return `value` under a format spec such as `.2f`, `>10`, `,` or, for a date, `%Y-%m-%d`.

    Numbers and text follow Python. Raises `Fault` for a spec that does not fit the value or is too wide.
    """
    if not spec:
        return text_of(value, budget)
    if value is None:
        raise Missing(f"null cannot be formatted with `{spec}`", help="give a stand-in: `default(value, 0)`")
    match = _SPEC.fullmatch(spec)
    if isinstance(value, str) and "%" in spec and not (match and not match["type"]):
        return format_moment(read_moment(value), spec)
    if match is None:
        raise Fault(f"`{spec}` is not a format spec", help="for example `.2f`, `>10`, `,` or for a date `%Y-%m-%d`")
    for part in ("width", "precision"):
        if len(match[part] or "") > 6 or int(match[part] or 0) > MAX_WIDTH:
            raise Fault(f"the format `{spec[:20]}` is wider than {MAX_WIDTH:,} characters")
    budget.spend(MAX_WIDTH // BYTES_PER_STEP if match["width"] or match["precision"] else 0)
    if isinstance(value, list | dict):
        raise Fault(
            f"{shown(value)} cannot be formatted with `{spec}`", help="leave the format out, or format each element"
        )
    if isinstance(value, str) and match["type"] and match["type"] in _NUMERIC:
        raise Fault(
            f"`{spec}` formats numbers, but {shown(value)} is not one", help="turn it into a number: `number(...)`"
        )
    if match["type"] == "n":
        raise Fault("the format `n` depends on the machine's language", help="write `,` for thousands separators")
    if isinstance(value, bool) and not match["type"]:
        value = text_of(value, budget)
    try:
        return format(value, spec)
    except (ValueError, OverflowError) as error:
        raise Fault(f"{shown(value)} cannot be formatted with `{spec}`: {str(error)[:80]}") from None
