"""Make a plan on which two runs disagree as small as it gets: leave out parts as long as they still disagree."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["reduced"]

BODIES = ("then", "else", "do", "try", "except", "parallel", "steps")
DISPENSABLE = ("on_error", "depends_on", "retry", "answer", "collect", "collect_if", "as")


def reduced(plan: dict[str, Any], still_bad: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Return a plan that is still bad, and of which nothing can be left out.

    Greedy, one part at a time (Zeller and Hildebrandt 2002, with parts of one). `still_bad` is false of plans that
    may not run.
    """
    changed = True
    while changed:
        changed = False
        for smaller in _smaller(plan):
            if still_bad(smaller):
                plan, changed = smaller, True
                break
    return plan


def _smaller(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for place in list(_places(plan, ())):
        smaller = copy.deepcopy(plan)
        parent: Any = smaller
        for key in place[:-1]:
            parent = parent[key]
        step = parent[place[-1]]
        del parent[place[-1]]
        yield smaller
        if isinstance(parent, list) and isinstance(step, dict):  # the body in the place of the step around it
            for body in BODIES:
                inner = step.get(body)
                if isinstance(inner, list) and inner:
                    lifted = copy.deepcopy(plan)
                    around: Any = lifted
                    for key in place[:-1]:
                        around = around[key]
                    around[place[-1] : place[-1] + 1] = inner
                    yield lifted


def _places(value: Any, at: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Yield where something can be left out, the largest parts first."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in DISPENSABLE or (key == "else"):
                yield (*at, key)
            if key in BODIES or key in ("on_error", "let", "for_each"):
                yield from _places(inner, (*at, key))
            if at and at[-1] == "let" and len(value) > 1:
                yield (*at, key)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            if len(value) > 1:
                yield (*at, index)
            yield from _places(inner, (*at, index))
