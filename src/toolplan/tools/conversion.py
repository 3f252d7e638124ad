"""Whatever a tool returned -> the JSON value that stands for it.

The table of all kinds is in `docs/how-to/tools-and-effects.md`. What the objects of other libraries stand for is in
`foreign.py`.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime as dt
import decimal
import enum
import io
import math
import numbers
import pathlib
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from toolplan.errors import ResultRefused
from toolplan.tools.foreign import UNKNOWN, by_habit, of_library
from toolplan.values import MAX_INTEGER, Json, is_text

__all__ = ["MAX_ITEMS", "MAX_TEXT", "to_json"]

MAX_ITEMS = 1_000_000
"""More than this out of an iterator, of which nobody knows whether it ends, is refused."""

MAX_TEXT = 1 << 28
"""More characters than this in the texts of an iterator are refused."""

MAX_VALUES = 10_000_000
"""More values than this in one result are refused. A list that holds one list many times, and that another, is a tree
of all its copies in JSON, and a few such levels fill any memory."""

MAX_DEPTH = 200
"""Deeper nesting than this in a result is refused; CPython's own JSON writer gives up near 1,000."""


def to_json(value: Any, where: str) -> Json:
    """Return the JSON value that stands for whatever a tool returned, sharing nothing with it that can change.

    The table of all kinds is in `docs/how-to/tools-and-effects.md`. Raises `ResultRefused`, naming `where` and the way
    to the value that has no JSON form, or is too deep, too much, or without an end.
    """
    try:
        return _Conversion().convert(value, 0)
    except _Refused as refused:
        path = refused.path[::-1]
        if len(path) > 20:
            path[10:-5] = ["…"]
        raise ResultRefused(f"{where}{''.join(path)} {refused.reason}") from refused.__cause__


class _Refused(Exception):
    """Something has no JSON value, for a reason that begins with a verb. `path` leads to it, its last step first."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path: list[str] = []


class _Conversion:
    """One conversion, and how many values it has come to."""

    __slots__ = ("_count",)

    def __init__(self) -> None:
        self._count = 0

    def convert(self, value: Any, depth: int) -> Json:
        """Return the JSON value of `value`, which is so deep inside of the whole."""
        kind = cast("type[object]", type(value))
        if kind is str:
            return value if value.isascii() else _text(value)
        if value is None or kind is bool:
            return cast(Json, value)
        if kind is int:
            if -MAX_INTEGER < value < MAX_INTEGER:
                return value
            raise _Refused("is an integer of more than 4,300 digits, which JSON writers refuse")
        if kind is float:
            if math.isfinite(value):
                return value
            raise _Refused(f"is {value!r}, which JSON cannot express")
        if depth > MAX_DEPTH:
            raise _Refused(f"is nested more than {MAX_DEPTH} levels deep, or contains itself")
        if kind is dict:
            return self._object(value.items(), depth)
        if kind is list or kind is tuple:
            return self._list(value, depth)
        return self._other(value, depth)

    def _other(self, value: Any, depth: int) -> Json:
        """Return the JSON value of what is not JSON already."""
        if isinstance(value, type):
            raise _Refused(f"is the class `{value.__name__}`, not a value")
        if isinstance(value, enum.Enum):
            return self.convert(value.value, depth + 1)
        if isinstance(value, str):
            return _text(str(value))
        if isinstance(value, int):
            return self.convert(int(value), depth)
        if isinstance(value, float):
            return self.convert(float(value), depth)
        if isinstance(value, BaseException):
            name = type(value).__name__
            raise _Refused(f"is an exception ({name}: {value}); raise it, or return what is to be known of it")
        found = of_library(value)
        if found is not UNKNOWN:
            return self.convert(found, depth + 1)
        for convert in (self._single, self._record, self._container):
            found = convert(value, depth)
            if found is not UNKNOWN:
                return cast(Json, found)
        name = type(value).__name__
        if name == "coroutine":
            raise _Refused("is a coroutine that nobody has awaited; return what it returns")
        raise _Refused(f"is a `{name}`, which has no JSON value; return a dict, list, text or number")

    def _single(self, value: Any, depth: int) -> object:
        """Return the number or text that a single thing stands for."""
        if isinstance(value, dt.datetime | dt.date | dt.time):
            return value.isoformat()
        if isinstance(value, dt.timedelta):
            return value.total_seconds()
        if isinstance(value, decimal.Decimal):
            return _decimal(value)
        if isinstance(value, bytes | bytearray | memoryview):
            return base64.b64encode(bytes(cast(bytes, value))).decode("ascii")
        if isinstance(value, uuid.UUID | pathlib.PurePath) or type(cast(object, value)).__module__ == "ipaddress":
            return _text(str(value))
        if isinstance(value, numbers.Integral):
            return self.convert(int(value), depth)
        if isinstance(value, numbers.Real):
            return _real(value)
        if isinstance(value, numbers.Complex):
            raise _Refused(f"is the complex number {value}, which JSON cannot express")
        return UNKNOWN

    def _record(self, value: Any, depth: int) -> object:
        """Return the object that something with named fields stands for."""
        kind = cast(Any, type(value))
        if dataclasses.is_dataclass(kind):
            return self._object([(field.name, getattr(value, field.name)) for field in dataclasses.fields(kind)], depth)
        if _is_named_tuple(kind):
            return self._object(value._asdict().items(), depth)
        if callable(dump := getattr(value, "model_dump", None)):
            try:
                dumped = dump(mode="json", by_alias=True)
            except Exception as error:
                raise _Refused(f"is a `{type(value).__name__}` that cannot be written: {error}") from error
            return self.convert(dumped, depth + 1)
        if isinstance(value, re.Match):
            found = cast("re.Match[Any]", value)
            place = {"text": found[0], "start": found.start(), "end": found.end()}
            return self._object({**place, "groups": found.groups(), "names": found.groupdict()}.items(), depth)
        return UNKNOWN

    def _container(self, value: Any, depth: int) -> object:
        """Return the list or object that something to be iterated over stands for."""
        if isinstance(value, Mapping):
            return self._object(cast("Mapping[Any, Any]", value).items(), depth)
        found = by_habit(value)
        if found is not UNKNOWN:
            return self.convert(found, depth + 1)
        if isinstance(value, set | frozenset):
            items = self._list(cast("set[Any]", value), depth)
            try:
                return sorted(items)  # type: ignore[type-var]
            except TypeError:
                return sorted(items, key=repr)
        if isinstance(value, io.IOBase):
            raise _Refused("is an open file; return what is in it")
        if not isinstance(value, Iterable):
            return UNKNOWN
        return self._list(_bounded(cast("Iterable[Any]", value)), depth)

    def _object(self, pairs: Iterable[tuple[Any, Any]], depth: int) -> dict[str, Json]:
        converted: dict[str, Json] = {}
        for given, item in pairs:
            key = given if type(given) is str and given.isascii() else _key(given)
            if key in converted:
                raise _Refused("has two keys that are the same text, such as 1 and '1'")
            try:
                converted[key] = self.convert(item, depth + 1)
            except _Refused as refused:
                refused.path.append(f".{key}")
                raise
        self._add(len(converted))
        return converted

    def _list(self, items: Iterable[Any], depth: int) -> list[Json]:
        converted: list[Json] = []
        try:
            for item in items:
                converted.append(self.convert(item, depth + 1))
        except _Refused as refused:
            refused.path.append("[…]" if isinstance(items, set | frozenset) else f"[{len(converted)}]")
            raise
        self._add(len(converted))
        return converted

    def _add(self, count: int) -> None:
        self._count += count
        if self._count > MAX_VALUES:
            raise _Refused(f"brings the number of values to more than {MAX_VALUES:,}; return less, or pages")


def _text(text: str) -> str:
    if is_text(text):
        return text
    place = next(place for place, character in enumerate(text) if "\ud800" <= character <= "\udfff")
    raise _Refused(
        f"is no text at character {place}: half of a surrogate pair is there, as in wrongly decoded bytes; "
        'decode them with `errors="replace"`'
    )


def _is_named_tuple(kind: Any) -> bool:
    return hasattr(kind, "_asdict") and issubclass(kind, tuple)


def _bounded(items: Iterable[Any]) -> Iterator[Any]:
    """Give the items, unless there are so many that there may be no end to them."""
    text = 0
    for number, item in enumerate(items):
        text += len(item) if isinstance(item, str | bytes) else 0
        if number >= MAX_ITEMS or text > MAX_TEXT:
            raise _Refused("and what follows is too much, or has no end; return a list, or pages")
        yield item


def _key(key: Any) -> str:
    if isinstance(key, enum.Enum):
        key = key.value
    if isinstance(key, str):
        return _text(str(key))
    if isinstance(key, bool) or key is None:
        raise _Refused(f"has the key {key!r}; keys must be text")
    if isinstance(key, int | float | dt.date | dt.time | uuid.UUID | decimal.Decimal | pathlib.PurePath):
        return str(key)
    if isinstance(key, numbers.Integral):
        return str(int(key))
    raise _Refused(f"has a key of type `{type(key).__name__}`; keys must be text")


def _real(value: numbers.Real) -> Json:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise _Refused(f"is {number}, which JSON cannot express")
    return number


def _decimal(value: decimal.Decimal) -> Json:
    if not value.is_finite():
        raise _Refused(f"is {value}, which JSON cannot express")
    if value == value.to_integral_value() and abs(value) < 2**53:
        return int(value)
    return float(value) if decimal.Decimal(repr(float(value))) == value else str(value)
