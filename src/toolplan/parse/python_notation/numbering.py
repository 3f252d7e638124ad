"""The ids of the steps: `s1`, `s2`, ... in written order, counted through bodies."""

from __future__ import annotations

from toolplan.plan import Block, walk

__all__ = ["number"]


def number(steps: Block, first: int = 1) -> int:
    """Give every step its id, counted from `first`, and return how many there are.

    The steps are filled in place: they were made a moment ago, not in their written order, and nobody else has seen
    them.
    """
    count = 0
    for step in walk(steps):
        object.__setattr__(step, "id", f"s{first + count}")
        count += 1
    return count
