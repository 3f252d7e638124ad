"""The ids of the steps: `s1`, `s2`, ... in written order, counted through bodies."""

from __future__ import annotations

from toolplan.plan import Block, walk

__all__ = ["number"]


def number(steps: Block) -> int:
    """Give every step its id, and return how many there are.

    The steps are filled in place: they were made a moment ago, not in their written order, and nobody else has seen
    them.
    """
    count = 0
    for step in walk(steps):
        count += 1
        object.__setattr__(step, "id", f"s{count}")
    return count
