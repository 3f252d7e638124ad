"""Values: JSON data, and where it came from.

Everything a plan computes with is a JSON value. A tool's result becomes one at the edge (`to_json`), once, and stays
data for the rest of its life (P5): it is never parsed again as plan, template, code or protocol text.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime as dt
import decimal
import enum
import math
import pathlib
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from toolplan.errors import ResultRefused

__all__ = ["Json", "Value", "is_text", "kind_of", "shorten", "to_json"]

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

MAX_INTEGER = 10**4300
"""Python refuses to write integers of more than 4,300 digits (CVE-2020-10735), so a result may not be one."""

MAX_DEPTH = 200
"""Deeper nesting than this in a result is refused; CPython's own JSON writer gives up near 1,000."""


@dataclass(slots=True)
class Value:
    """A JSON value and the ids of the steps it was computed from. Never changed (not frozen: one is made per step)."""

    data: Json
    origins: frozenset[str] = frozenset()


def kind_of(value: object) -> str:
    """Return the everyday word for the kind of a JSON value, as error messages use it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true/false"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "text"
    if isinstance(value, list):
        return "list"
    return "object"


def is_text(text: str) -> bool:
    """Whether the text consists of characters; half of a surrogate pair, which Python lets pass, is none."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def shorten(value: Json, limit: int = 60) -> str:
    """Return a one-line rendering of `value` for messages, at most about `limit` characters long."""
    if isinstance(value, str):
        return repr(value if len(value) <= limit else value[:limit] + "…")
    if isinstance(value, list):
        return f"list of {len(value)}"
    if isinstance(value, dict):
        keys = ", ".join(list(value)[:6])
        return "object with " + (keys + (", …" if len(value) > 6 else "") if value else "no fields")
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return repr(value)


def to_json(value: Any, where: str) -> Json:
    """Return the JSON value that stands for whatever a tool returned.

    Dataclasses, pydantic models, named tuples and mappings become objects; sequences, sets (sorted where that is
    possible) and generators become lists; dates are ISO text, `Decimal` is a number when a float holds it exactly and
    text otherwise, enum members their value, bytes base64 text. Raises `ResultRefused`, naming `where` and the field,
    for NaN and infinities, keys that are not text, reference cycles and everything else.
    """
    return _convert(value, where, 0)


def _convert(value: Any, where: str, depth: int) -> Json:
    kind = cast("type[object]", type(value))
    if value is None or kind is str or kind is bool:
        return cast(Json, value)
    if kind is int:
        if -MAX_INTEGER < value < MAX_INTEGER:
            return value
        raise ResultRefused(f"{where} is an integer of more than 4,300 digits, which JSON writers refuse")
    if kind is float:
        if math.isfinite(value):
            return value
        raise ResultRefused(f"{where} is {value!r}, which JSON cannot express")
    if depth > MAX_DEPTH:
        raise ResultRefused(f"{where} is nested more than {MAX_DEPTH} levels deep, or contains itself")
    if isinstance(value, enum.Enum):
        return _convert(value.value, where, depth + 1)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool | int):
        return int(value)
    if isinstance(value, float):
        return _convert(float(value), where, depth)
    if isinstance(value, Mapping):
        pairs = cast("Mapping[Any, Any]", value).items()
        converted = {_key(key, where): _convert(item, f"{where}.{key}", depth + 1) for key, item in pairs}
        if len(converted) < len(pairs):
            raise ResultRefused(f"{where} has two keys that are the same text, such as 1 and '1'")
        return converted
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, dt.timedelta):
        return value.total_seconds()
    if isinstance(value, decimal.Decimal):
        return _decimal(value, where)
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(bytes(cast(bytes, value))).decode("ascii")
    if isinstance(value, uuid.UUID | pathlib.PurePath):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: _convert(getattr(value, field.name), f"{where}.{field.name}", depth + 1)
            for field in dataclasses.fields(value)
        }
    if hasattr(value, "model_dump") and not isinstance(value, type):
        return _convert(value.model_dump(mode="json"), where, depth + 1)
    if isinstance(value, tuple) and hasattr(cast(Any, value), "_asdict"):
        return _convert(cast(Any, value)._asdict(), where, depth + 1)
    if isinstance(value, set | frozenset):
        items = [_convert(item, f"{where}[…]", depth + 1) for item in cast("set[Any]", value)]
        try:
            return sorted(items)  # type: ignore[type-var]
        except TypeError:
            return sorted(items, key=repr)
    if isinstance(value, Iterable):
        return [
            _convert(item, f"{where}[{index}]", depth + 1) for index, item in enumerate(cast("Iterable[Any]", value))
        ]
    raise ResultRefused(f"{where} is a `{kind.__name__}`, which has no JSON value; return a dict, list, text or number")


def _key(key: Any, where: str) -> str:
    if isinstance(key, enum.Enum):
        key = key.value
    if isinstance(key, str):
        return str(key)
    if isinstance(key, bool) or key is None:
        raise ResultRefused(f"{where} has the key {key!r}; keys must be text")
    if isinstance(key, int | float | dt.date | uuid.UUID):
        return str(key)
    raise ResultRefused(f"{where} has a key of type `{type(key).__name__}`; keys must be text")


def _decimal(value: decimal.Decimal, where: str) -> Json:
    if not value.is_finite():
        raise ResultRefused(f"{where} is {value}, which JSON cannot express")
    if value == value.to_integral_value() and abs(value) < 2**53:
        return int(value)
    return float(value) if decimal.Decimal(repr(float(value))) == value else str(value)
