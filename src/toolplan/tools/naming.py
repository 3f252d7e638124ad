"""Argument values -> what resource names are made of: the value that the tool gets, in one form for equal ones.

A plan may write one value in many ways: 2 and 2.0 for an `int`, a `UUID` in capitals, `1.50` for a `Decimal`. The tool
gets the same, so both calls touch the same resource, and both have to give it the same name.
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable
from typing import Any, cast

from toolplan.tools.conversion import to_json
from toolplan.values import Json

__all__ = ["name_value"]


def name_value(convert: Callable[[Any], Any] | None, value: Json) -> Json:
    """Return the JSON value that stands for what a tool gets for this argument; None if there is none.

    Without a value the resource is not known any closer than its family.
    """
    if convert is None or value is None:
        return value
    try:
        return _one_form(convert(value))
    except Exception:  # a validator of the tool's author may raise anything; the call itself says what is wrong
        return None


def _one_form(value: Any) -> Json:
    if isinstance(value, list | tuple | set | frozenset) and not hasattr(cast(object, value), "_asdict"):
        return [_one_form(element) for element in cast("list[Any]", value)]
    if isinstance(value, dt.datetime) and value.utcoffset() is not None:
        return value.astimezone(dt.UTC).isoformat()
    made = to_json(value, "the argument")
    if isinstance(value, decimal.Decimal) and isinstance(made, str):
        return str(value.normalize())
    return made
