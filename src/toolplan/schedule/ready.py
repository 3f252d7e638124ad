"""Steps that could start, in the order in which they are to: those with the longest chain behind them first.

Which chain is the longest is known by the number of calls in it (`rank`), for nobody knows durations beforehand. Of
equal ranks, the one that is written first goes first. There are few ranks and there may be many steps, which mostly
become ready in written order; so each rank has a queue in which a step is nearly always the last one, and only the
ranks are kept in a heap.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator

from toolplan.schedule.order import Path
from toolplan.schedule.state import Instance

__all__ = ["Ready"]


class Ready:
    """Instances by rank, the highest first."""

    __slots__ = ("_queues", "_ranks")

    def __init__(self) -> None:
        self._queues: dict[int, deque[Instance]] = {}  # none of them empty
        self._ranks: list[int] = []  # a heap of the ranks in `_queues`, negated

    def __bool__(self) -> bool:
        """Whether there is anything."""
        return bool(self._ranks)

    def __iter__(self) -> Iterator[Instance]:
        """Yield every instance, the first one first."""
        for rank in sorted(self._ranks):
            yield from self._queues[rank]

    def push(self, inst: Instance, rank: int) -> None:
        """Put an instance among those of its rank, in written order."""
        queue = self._queues.get(-rank)
        if queue is None:
            queue = self._queues[-rank] = deque()
            heapq.heappush(self._ranks, -rank)
        if not queue or queue[-1].path < inst.path:
            queue.append(inst)
        else:
            queue.insert(bisect_left(queue, inst.path, key=_path), inst)

    def pop(self) -> Instance:
        """Take out the first instance."""
        rank = self._ranks[0]
        queue = self._queues[rank]
        inst = queue.popleft()
        if not queue:
            heapq.heappop(self._ranks)
            del self._queues[rank]
        return inst

    def clear(self) -> None:
        """Take out everything."""
        self._queues.clear()
        self._ranks.clear()


def _path(inst: Instance) -> Path:
    return inst.path
