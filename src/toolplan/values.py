"""Values: JSON data, and where it came from.

Everything a plan computes with is a JSON value. A tool's result becomes one at the edge (`tools/conversion.py`),
once, and stays data for the rest of its life (P5): it is never parsed again as plan, template, code or protocol text.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

__all__ = ["MAX_INTEGER", "Json", "Value", "is_text", "kind_of", "shorten", "value_at"]

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

MAX_INTEGER = 10**4300
"""Python refuses to write integers of more than 4,300 digits (CVE-2020-10735), so a result may not be one."""


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


def value_at(value: Any, path: Iterable[str | int]) -> Any:
    """Return what stands at the end of a path of keys and positions; None when nothing does."""
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value


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
