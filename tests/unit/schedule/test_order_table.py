"""The table of tickets says the same as the rule of conflict, pair by pair; and exempts what a group sets apart."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from toolplan.effects import Access, conflict
from toolplan.schedule.order import Exempt, FailScope, OrderTable, Ticket

RESOURCES = [(), ("a",), ("b",), ("a", "1"), ("a", "2"), ("a", "1", "x"), ("a", "1", "y")]
ACCESSES = [Access(resource, write) for resource in RESOURCES for write in (False, True)]


def ticket(path: tuple[int, ...], *accesses: Access, undeclared: bool = False) -> Ticket:
    return Ticket(path, accesses, undeclared, None)


def goes_first(one: Ticket, other: Ticket, claimed: Exempt = ()) -> bool:
    table = OrderTable()
    table.add(one)
    table.add(other)
    found = table.blocker(other, claimed)
    assert table.blocker(one, ()) is None, "nothing stands before the first"
    table.remove(one)
    assert table.blocker(other, ()) is None, "what is over is in nobody's way"
    return found is one


@pytest.mark.parametrize(("one", "other"), list(itertools.product(ACCESSES, ACCESSES)))
def test_a_pair_of_accesses(one: Access, other: Access) -> None:
    assert goes_first(ticket((0,), one), ticket((1,), other)) == conflict(one, other)


@pytest.mark.parametrize(("one", "other"), list(itertools.product(ACCESSES, ACCESSES)))
def test_every_access_of_a_call_counts(one: Access, other: Access) -> None:
    apart = Access(("z", "1"), True)
    mine = Access(("z", "2"), True)
    expected = any(conflict(a, b) for a in (apart, one) for b in (mine, other))
    assert goes_first(ticket((0,), apart, one), ticket((1,), mine, other)) == expected


@pytest.mark.parametrize("access", ACCESSES)
def test_an_undeclared_call_conflicts_with_every_access(access: Access) -> None:
    anything: Any = {"undeclared": True}
    assert goes_first(ticket((0,), **anything), ticket((1,), access))
    assert goes_first(ticket((0,), access), ticket((1,), **anything))
    assert goes_first(ticket((0,), **anything), ticket((1,), **anything))


def test_what_touches_nothing_waits_for_nothing() -> None:
    assert not goes_first(ticket((0,), undeclared=True), ticket((1,)))
    assert not goes_first(ticket((0,), Access((), True)), ticket((1,)))


GROUP: Exempt = (((3,), 2),)
"""The asking call is in member 2 of the group at (3,)."""


@pytest.mark.parametrize("declared", [(), (Access(("a",), True),)])
def test_a_group_sets_undeclared_calls_of_other_members_apart(declared: tuple[Access, ...]) -> None:
    asking = ticket((3, 2, 1), *declared, undeclared=not declared)
    assert not goes_first(ticket((3, 1, 5), undeclared=True), asking, GROUP)
    assert goes_first(ticket((3, 2, 0), undeclared=True), asking, GROUP), "the same member"
    assert goes_first(ticket((2,), undeclared=True), asking, GROUP), "before the group"


def test_an_undeclared_call_in_a_group_does_not_wait_for_declared_ones_of_others() -> None:
    asking = ticket((3, 2, 1), undeclared=True)
    for access in ACCESSES:
        assert not goes_first(ticket((3, 1), access), asking, GROUP)
        assert goes_first(ticket((3, 2, 0), access), asking, GROUP)
        assert goes_first(ticket((1,), access), asking, GROUP)


def test_declared_conflicts_keep_their_order_in_a_group() -> None:
    write = Access(("a",), True)
    assert goes_first(ticket((3, 1), write), ticket((3, 2), write), GROUP)


def test_groups_in_groups() -> None:
    around: Exempt = (((3,), 2), ((3, 2, 0), 1))
    asking = ticket((3, 2, 0, 1, 4), undeclared=True)
    for path, waits in [((3, 2, 0, 1, 3), True), ((3, 2, 0, 0), False), ((3, 1, 9), False), ((2, 8), True)]:
        assert goes_first(ticket(path, undeclared=True), asking, around) == waits, path


def test_failures_hold_back_in_their_scope_and_those_inside_of_it() -> None:
    plan = FailScope()
    trial = FailScope(plan)
    before, inside = ticket((0,)), ticket((1, 0, 0))
    plan.pending.add(before)
    trial.pending.add(inside)
    assert trial.blocker((1, 0, 1), ()) is inside
    assert plan.blocker((2,), ()) is before, "what may fail in a `try` holds back nothing behind it"
    trial.pending.remove(inside.path)
    assert trial.blocker((1, 0, 1), ()) is before
    assert plan.blocker((0,), ()) is None
