"""What `@tool` leaves on a function, so that it stays the function it was."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, cast

from toolplan.tools.declaration import Declaration

__all__ = ["MARK", "Mark", "is_marked", "mark_of"]

MARK = "__toolplan__"
"""The attribute that holds the mark."""


class Mark:
    """What `@tool` leaves on a function: the declaration, and local names that its annotations mention."""

    def __init__(self, declaration: Declaration, names: Mapping[str, Any]) -> None:
        self.declaration = declaration
        self.names = names


def mark_of(function: Any) -> Mark | None:
    """Return the mark on a function, on what is inside of partials made of it, or on the `__call__` of an object."""
    while True:
        call: Any = getattr(cast("Any", type(function)), "__call__", None)  # noqa: B004 - the function is wanted
        for holder in (function, call):
            mark: Any = getattr(holder, MARK, None)
            if isinstance(mark, Mark):
                return mark
        if not isinstance(function, functools.partial):
            return None
        function = cast("Any", function.func)


def is_marked(function: Any) -> bool:
    """Return whether `@tool` was put on this."""
    return mark_of(function) is not None
