"""Written order of effects: who must wait for whom, asked in O(log n) and answered one predecessor at a time.

Every step instance has a *path*, the position of its statement and rounds; comparing paths compares written order.
Before it may run, an instance holds a `Ticket` on the resources it will touch. A conflicting ticket with a smaller
path goes first. These are the granular locks of Gray, Lorie, Putzolu and Traiger (1975) - a name covers what is below
it - granted in a fixed order as in Calvin (Thomson et al., 2012), so there is no deadlock and no choice.

What has not been unfolded yet (the rounds of a loop, the steps behind an undecided branch) holds one ticket with the
summary of everything it may touch, at the path where it will continue.

A second, simpler order is that of failures: an effect waits for every earlier step that could still fail the run.
Rounds of a `for_each` and members of a `parallel` are of equal standing there: they do not wait for each other.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

from toolplan.effects import WORLD, Access, Resource

if TYPE_CHECKING:
    from toolplan.schedule.state import Instance

__all__ = ["Exempt", "FailScope", "Gate", "InOrder", "OrderTable", "Path", "Ticket"]

Path: TypeAlias = tuple[int, ...]

Exempt: TypeAlias = tuple[tuple[Path, int], ...]
"""Enclosing groups of equals, outermost first: (path of the group, number of the round or member inside)."""


class Ticket:
    """A claim at a place in the written order: on resources, on possibly failing, on possibly leaving."""

    __slots__ = ("accesses", "behind", "gates", "path", "scope", "undeclared", "waiters")

    def __init__(
        self,
        path: Path,
        accesses: tuple[Access, ...],
        undeclared: bool,
        scope: FailScope | None,
        gates: tuple[Gate, ...] = (),
    ) -> None:
        self.path = path
        self.accesses = accesses
        self.undeclared = undeclared
        self.scope = scope
        self.waiters: list[Instance] = []
        """Whoever wants to be told when the ticket is gone."""
        self.gates = gates
        """What it may leave."""
        self.behind: list[Instance] = []
        """Calls behind it that began although it may still leave (`speculate`)."""


class InOrder:
    """Tickets in path order. Appending at the end, the common case, does not search."""

    __slots__ = ("paths", "tickets")

    def __init__(self) -> None:
        self.paths: list[Path] = []
        self.tickets: dict[Path, Ticket] = {}

    def add(self, ticket: Ticket) -> None:
        """Enter a ticket at its place."""
        path = ticket.path
        if path in self.tickets:
            return
        if not self.paths or self.paths[-1] < path:
            self.paths.append(path)
        else:
            insort(self.paths, path)
        self.tickets[path] = ticket

    def remove(self, path: Path) -> None:
        """Take out the ticket at this place, if there is one."""
        if self.tickets.pop(path, None) is None:
            return
        paths = self.paths
        if paths[0] == path:
            del paths[0]
        else:
            del paths[bisect_left(paths, path)]

    def within(self, path: Path) -> list[Ticket]:
        """Return the tickets inside the statement or body at `path`."""
        paths = self.paths
        begin = bisect_left(paths, path)
        end = bisect_left(paths, (*path[:-1], path[-1] + 1))
        return [self.tickets[each] for each in paths[begin:end]]

    def last_before(self, path: Path, exempt: Exempt = ()) -> Ticket | None:
        """Return the nearest ticket before `path`, leaving out those of other members of the groups in `exempt`."""
        paths = self.paths
        if not paths or paths[0] >= path:
            return None
        end = path
        for group, member in reversed(exempt):
            index = bisect_left(paths, end)
            if index and paths[index - 1] >= (*group, member):
                return self.tickets[paths[index - 1]]
            end = group
        index = bisect_left(paths, end)
        return self.tickets[paths[index - 1]] if index else None


class Gate:
    """Tickets of the statements that may still leave one thing: the plan, a loop, or a round of a loop.

    Kept only where calls may begin before that is known (`speculate`). Whatever stands behind one of them in the same
    gate may turn out not to be needed.
    """

    __slots__ = ("leaves", "pending")

    def __init__(self, leaves: int) -> None:
        self.leaves = leaves
        self.pending = InOrder()


class FailScope:
    """Tickets of the steps that may still fail, between here and the nearest enclosing `try` (or the run's edge)."""

    __slots__ = ("parent", "pending")

    def __init__(self, parent: FailScope | None = None) -> None:
        self.parent = parent
        self.pending = InOrder()

    def blocker(self, path: Path, exempt: Exempt) -> Ticket | None:
        """Return an earlier step that could still fail what `path` belongs to, or None."""
        scope: FailScope | None = self
        while scope is not None:
            if found := scope.pending.last_before(path, exempt):
                return found
            scope = scope.parent
        return None


class _Node:
    """The tickets on one resource, and those on resources below it."""

    __slots__ = ("below_reads", "below_writes", "reads", "writes")

    def __init__(self) -> None:
        self.reads = InOrder()
        self.writes = InOrder()
        self.below_reads = InOrder()
        self.below_writes = InOrder()

    def is_empty(self) -> bool:
        return not (self.reads.paths or self.writes.paths or self.below_reads.paths or self.below_writes.paths)


class OrderTable:
    """All tickets on resources."""

    __slots__ = ("_nodes", "_undeclared")

    def __init__(self) -> None:
        self._nodes: dict[Resource, _Node] = {}
        self._undeclared = InOrder()

    def add(self, ticket: Ticket) -> None:
        """Enter a ticket."""
        if ticket.undeclared:
            self._undeclared.add(ticket)
        nodes = self._nodes
        for access in ticket.accesses:
            resource = access.resource
            node = nodes.get(resource)
            if node is None:
                node = nodes[resource] = _Node()
            (node.writes if access.write else node.reads).add(ticket)
            for depth in range(len(resource)):
                above = nodes.get(resource[:depth])
                if above is None:
                    above = nodes[resource[:depth]] = _Node()
                (above.below_writes if access.write else above.below_reads).add(ticket)

    def remove(self, ticket: Ticket) -> None:
        """Take a ticket out. Its waiters are the caller's business."""
        if ticket.undeclared:
            self._undeclared.remove(ticket.path)
        nodes = self._nodes
        for access in ticket.accesses:
            resource = access.resource
            for depth in range(len(resource), -1, -1):
                node = nodes.get(resource[:depth])
                if node is None:
                    continue
                if depth == len(resource):
                    (node.writes if access.write else node.reads).remove(ticket.path)
                else:
                    (node.below_writes if access.write else node.below_reads).remove(ticket.path)
                if node.is_empty():
                    del nodes[resource[:depth]]

    def blocker(self, ticket: Ticket, claimed: Exempt) -> Ticket | None:
        """Return an earlier ticket that `ticket` has to wait for, or None.

        `claimed` are the enclosing `parallel` groups: an undeclared call does not wait for other members, nor they
        for it; declared effects keep their order there too.
        """
        path = ticket.path
        if (ticket.accesses or ticket.undeclared) and (found := self._undeclared.last_before(path, claimed)):
            return found
        if ticket.undeclared:
            world = self._nodes.get(WORLD)
            return world and _first(world, path, claimed)
        for access in ticket.accesses:
            if found := self._conflicting(access, path):
                return found
        return None

    def _conflicting(self, access: Access, path: Path) -> Ticket | None:
        nodes = self._nodes
        resource = access.resource
        for depth in range(len(resource)):
            above = nodes.get(resource[:depth])
            if above is not None:
                found = above.writes.last_before(path)
                if found is None and access.write:
                    found = above.reads.last_before(path)
                if found is not None:
                    return found
        node = nodes.get(resource)
        if node is None:
            return None
        found = node.writes.last_before(path) or node.below_writes.last_before(path)
        if found is None and access.write:
            found = node.reads.last_before(path) or node.below_reads.last_before(path)
        return found


def _first(world: _Node, path: Path, claimed: Exempt) -> Ticket | None:
    lists: Iterable[InOrder] = (world.writes, world.below_writes, world.reads, world.below_reads)
    for tickets in lists:
        if found := tickets.last_before(path, claimed):
            return found
    return None
