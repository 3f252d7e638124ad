"""Who must wait for whom: tickets taken and given back, and what may begin before it is known that it is needed.

A statement that may still leave the plan, its loop or its round (`answer`, `break`, a branch that contains one, ...)
normally stops the issuing of what is behind it. With `speculate` it does not. It keeps a ticket in the *gates* of what
it may leave instead, and whatever stands behind such a ticket may turn out not to be needed. Of that, only calls
without effects begin; everything else waits until nothing that is undecided stands before it. A call that fails there
keeps its failure to itself until then. When the statement does leave, what is behind it is given up (`Flow`).

This is speculative execution with in-order commitment (Smith and Pleszkun 1985), except that there is nothing to undo
but names, since only calls without effects began.
"""

from __future__ import annotations

from collections import deque

from toolplan.effects import Access
from toolplan.schedule.order import FailScope, Gate, OrderTable, Path, Ticket
from toolplan.schedule.program import Program
from toolplan.schedule.records import Records
from toolplan.schedule.state import Frame, Instance
from toolplan.schedule.story import Story

__all__ = ["MAX_EARLY", "Tickets"]

MAX_EARLY = 512
"""How many calls may have begun of which it is not known whether they are needed. Bounds what is done for nothing."""


class Tickets(Records):
    """The order of effects, the order of failures, and the gates."""

    def __init__(self, program: Program, *, story: bool = False) -> None:
        super().__init__()
        self.story = Story() if story else None
        self._holds_back = program.holds_back
        self._order = OrderTable()
        self._agenda: deque[Instance] = deque()
        self._early: set[Instance] = set()  # calls that began although something before them may still leave

    def _take_ticket(
        self,
        path: Path,
        accesses: tuple[Access, ...],
        undeclared: bool,
        scope: FailScope | None,
        gates: tuple[Gate, ...] = (),
    ) -> Ticket | None:
        if not accesses and not undeclared and scope is None and not gates:
            return None
        ticket = Ticket(path, accesses, undeclared, scope, gates)
        self._order.add(ticket)
        if scope is not None:
            scope.pending.add(ticket)
        for gate in gates:
            gate.pending.add(ticket)
        return ticket

    def _return_ticket(self, ticket: Ticket | None, *, failed: bool = False) -> None:
        """Give a ticket back. A step that failed keeps its place among those that may fail, for ever."""
        if ticket is not None:
            self._withdraw(ticket, failed=failed)
            self._wake(ticket)

    def _withdraw(self, ticket: Ticket, *, failed: bool = False) -> None:
        """Take a ticket out; `_wake` must follow, when what takes its place has its own."""
        self._order.remove(ticket)
        if ticket.scope is not None and not failed:
            ticket.scope.pending.remove(ticket.path)
        for gate in ticket.gates:
            gate.pending.remove(ticket.path)

    def _narrow(self, ticket: Ticket | None, accesses: tuple[Access, ...]) -> None:
        """Let a ticket claim only what the arguments, now known, really name."""
        if ticket is None or ticket.accesses == accesses:
            return
        self._order.remove(ticket)
        ticket.accesses = accesses
        self._order.add(ticket)
        self._wake(ticket)

    def _wake(self, ticket: Ticket) -> None:
        if ticket.waiters:
            self._agenda.extend(ticket.waiters)
            ticket.waiters = []
        if ticket.behind:
            behind, ticket.behind = ticket.behind, []
            for inst in behind:
                self._follow(inst)

    def _is_blocked(self, inst: Instance) -> bool:
        """Return whether something earlier goes first; if so, the instance is told when that is over."""
        frame = inst.frame
        blocker = None
        if frame.gates and (not inst.node.early or len(self._early) >= MAX_EARLY):
            blocker = self._undecided_before(inst)
        if blocker is None and inst.ticket is not None:
            claimed = (*frame.claimed, (frame.path, inst.index)) if frame.parallel else frame.claimed
            blocker = self._order.blocker(inst.ticket, claimed)
        if blocker is None and inst.node.effect and self._holds_back and frame.scope is not None:
            blocker = frame.scope.blocker(inst.path, inst.equals())
        if blocker is None:
            return False
        self._wait_behind(inst, blocker)
        return True

    def _wait_behind(self, inst: Instance, ticket: Ticket) -> None:
        """Let the instance look again when the ticket is gone."""
        inst.blocker = ticket
        ticket.waiters.append(inst)
        if self.story is not None:
            state = "deferred" if inst.deferred is not None else "open" if inst.loop is not None else "blocked"
            self.story.enter(inst, state, f"behind what stands at {ticket.path}")

    # What may not be needed ---------------------------------------------------------------------------------------

    def _left_by(self, leaves: int, frame: Frame) -> tuple[Gate, ...]:
        """Return the gates of what a statement with these `leaves` may leave, the nearest of each kind."""
        found: list[Gate] = []
        for gate in frame.gates:
            if gate.leaves & leaves:
                found.append(gate)
                leaves &= ~gate.leaves
        return tuple(found)

    def _undecided_before(self, inst: Instance) -> Ticket | None:
        """Return the ticket of something that may still make the instance unneeded, or None."""
        for gate in inst.frame.gates:
            if found := gate.pending.last_before(inst.path):
                return found
        return None

    def _follow(self, inst: Instance) -> None:
        """Remember a call that began, as long as it may not be needed."""
        ticket = self._undecided_before(inst)
        if ticket is None:
            self._early.discard(inst)
        else:
            self._early.add(inst)
            ticket.behind.append(inst)

    def _drop_early(self, begin: Path, gates: tuple[Gate, ...]) -> None:
        """Drop what calls did that began at or after `begin`, in the same body or loop: they are not needed."""
        body = begin[:-1]
        for gate in gates:
            ticket = gate.pending.last_before(begin)
            if ticket is None or not ticket.behind:
                continue
            behind, ticket.behind = ticket.behind, []
            for inst in behind:
                if inst.path >= begin and inst.path[: len(body)] == body:
                    self._early.discard(inst)
                    self._record_unneeded(inst)
                else:
                    ticket.behind.append(inst)

    def _forget_undecided(self, path: Path, gates: tuple[Gate, ...]) -> None:
        """Take out what was to leave from inside of a body that failed instead."""
        for gate in gates:
            for ticket in gate.pending.within(path):
                gate.pending.remove(ticket.path)
                self._wake(ticket)
