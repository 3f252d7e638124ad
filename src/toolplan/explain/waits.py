"""What each step of a plan waits for, worked out from the `Program` that the machine runs.

`walk.py` goes through the plan once and notes what each step touches, uses and may do. Here each step is held against
the earlier ones, with the same facts and the same rule of conflict (`effects.conflict`) that the machine uses.

A wait is *certain* when it holds in every run that comes to both steps. It is not when an argument that names a
resource is known only in the run, or when another step may have given the value. `rounds` says which rounds of a loop
it is about. Waits that follow from others are left out, unless everything is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from toolplan.effects import conflict
from toolplan.explain.rows import Kind, Rounds, Row, Scope, Wait, said
from toolplan.explain.walk import Carry, Source, Walk
from toolplan.expressions import names_of
from toolplan.plan import (
    Answer,
    AskModel,
    AskUser,
    Break,
    Call,
    Cannot,
    Continue,
    ForEach,
    If,
    Note,
    Parallel,
    Replan,
    Try,
    While,
)
from toolplan.schedule.program import BREAK, CONTINUE, EXIT, Program

__all__ = ["rows_of"]

CALLS = (Call, AskModel, AskUser)
ENDS = (Answer, Cannot, Replan, Break, Continue, Note)


def rows_of(program: Program, *, failure: str = "written-order", everything: bool = False) -> list[Row]:
    """Return the statements of the program in written order with what they wait for."""
    walk = Walk(program, failure == "independent")
    waits = _Waits(walk, everything)
    for row in walk.rows:
        waits.settle(row)
    return walk.rows


class _Waits:
    def __init__(self, walk: Walk, everything: bool) -> None:
        self.walk = walk
        self.rows = walk.rows
        self.everything = everything

    # What a step waits for ----------------------------------------------------------------------------------------

    def settle(self, row: Row) -> None:
        """Note what the step waits for. Rows are settled in written order.

        Goes from the nearest row backwards, and does not look at those that are over by then anyway: bit `i` of a mask
        stands for row `i`.
        """
        given = self.given(row)
        rivals = self.rivals(row) if row.is_call else 0
        fallible = self.walk.fallible if self.waits_for_success(row) else 0
        asked = sum(1 << on for on in given if on < row.index)
        todo = (rivals | fallible) & ((1 << row.index) - 1) | asked
        found: list[tuple[int, Wait]] = []
        over = 0
        while todo:
            on = todo.bit_length() - 1
            bit = 1 << on
            todo ^= bit
            is_over = over & bit and not self.everything
            waits = [wait for wait in given.pop(on, ()) if not (is_over and _may_be_implied(wait))]
            if not is_over:
                other = self.rows[on]
                if rivals & bit and not _exclusive(other, row, self.rows):
                    waits += self.conflict(other, row)
                if fallible & bit and (self.everything or not _is_covered(waits)):
                    waits += self.failure(other, row)
            for wait in waits:
                found.append((on, wait))
                if wait.certain and wait.rounds == "same":
                    over |= self.over_with(row, on, wait)
            if not self.everything:
                todo &= ~over | asked
        found += [(on, wait) for on, waits in given.items() for wait in waits]  # from later steps, a round before
        row.implied = over
        row.waits += [wait for _, wait in sorted(found, key=lambda each: (_ORDER[each[1].kind], each[0]))]
        for loop, _ in row.inside:
            if self.rows[loop].node.kind in (ForEach, While):
                row.waits += self.between_rounds(row, self.rows[loop])
        if row.node.kind in (ForEach, While):
            row.between += self.next_round(row)

    def given(self, row: Row) -> dict[int, list[Wait]]:
        """Return what the step waits for as the text of the plan has it: what is around it, control, values."""
        found: list[tuple[int, Wait]] = []
        if row.inside:
            parent, body = row.inside[-1]
            outer = self.rows[parent]
            found.append((parent, Wait(outer.id, "inside", whole=outer.node.kind is Try and body == 1)))
        found += [(on, Wait(self.rows[on].id, "control")) for on in self.walk.before[row.index]]
        found += self.values_of(row)
        given: dict[int, list[Wait]] = {}
        for on, wait in _merge_values(found):
            given.setdefault(on, []).append(wait)
        return given

    def rivals(self, row: Row) -> int:
        """Return the mask of the calls that may conflict with this one."""
        if row.node.undeclared or any(not touch.access.resource for touch in row.touches):
            return self.walk.all_calls
        found = self.walk.wide_calls
        for touch in row.touches:
            found |= self.walk.calls_of.get(touch.access.resource[0], 0)
        return found

    def over_with(self, row: Row, on: int, wait: Wait) -> int:
        """Return the bits of what is over when `row` has waited for this."""
        other = self.rows[on]
        bits = other.implied
        if wait.kind == "inside":
            bits |= 1 << on if other.node.kind in (If, Parallel) else 0
        elif other.inside == row.inside[: len(other.inside)] and other.firm:
            bits |= 1 << on
        else:
            bits = 1 << on
        if wait.whole:
            for inner in range(on + 1, other.end):
                if other.node.kind is not Try or self.rows[inner].inside[len(other.inside)][1] == 0:
                    bits |= 1 << inner
        return bits

    # Values -------------------------------------------------------------------------------------------------------

    def values_of(self, row: Row) -> list[tuple[int, Wait]]:
        found: list[tuple[int, Wait]] = []
        step = row.node.step
        only_ordered = set[str]()
        if isinstance(step, Call):
            used = names_of(step.arguments)
            used |= names_of(step.on_error.value) if step.on_error.value is not None else frozenset()
            only_ordered = set(step.depends_on) - used
        for name, value in self.walk.values[row.index]:
            kind: Kind = "depends_on" if name in only_ordered else "value"
            found += [(source.row, self.value(source, kind, name)) for source in self.walk.resolved(value)]
        return found

    def value(self, source: Source, kind: Kind, name: str) -> Wait:
        loop = self.rows[source.loop].id if source.loop is not None else None
        return Wait(self.rows[source.row].id, kind, source.certain, source.whole, source.rounds, loop, (name,))

    # Effects ------------------------------------------------------------------------------------------------------

    def conflict(self, other: Row, row: Row, loop: Row | None = None) -> list[Wait]:
        """Return why `row` waits for the effects of `other`, if it does; with `loop`, for those of earlier rounds."""
        if other.node.undeclared or row.node.undeclared:
            is_claimed = loop is None and any(
                group == mine and member != my_member
                for group, member in other.groups
                for mine, my_member in row.groups
            )
            if not is_claimed:
                certain = all(each.node.undeclared or any(t.sure for t in each.touches) for each in (other, row))
                return [self.effect(other, said(row), said(other), certain, loop)]
        best: Wait | None = None
        for theirs in other.touches:
            for ours in row.touches:
                if conflict(theirs.access, ours.access):
                    certain = theirs.surely_meets(ours) and ours.surely_meets(theirs)
                    if best is None or (certain and not best.certain):
                        best = self.effect(other, ours.text, theirs.text, certain, loop)
        return [best] if best is not None else []

    def effect(self, other: Row, ours: str, theirs: str, certain: bool, loop: Row | None) -> Wait:
        kind: Kind = "state" if ours.startswith(("needs", "brings about")) else "effect"
        rounds: Rounds = "earlier" if loop is not None else "same"
        return Wait(
            other.id, kind, certain, rounds=rounds, loop=loop.id if loop is not None else None, ours=ours, theirs=theirs
        )

    # Failures -----------------------------------------------------------------------------------------------------

    def waits_for_success(self, row: Row) -> bool:
        is_leaf = row.node.kind in (*CALLS, *ENDS)
        return is_leaf and row.node.effect and row.holds is not None and self.walk.program.holds_back

    def failure(self, other: Row, row: Row) -> list[Wait]:
        """Return the wait for the success of `other`, where there is one."""
        if _exclusive(other, row, self.rows) or _equals(other, row) or not _is_within(row.holds, other.holds):
            return []
        if any(other.index == parent for parent, _ in row.inside):
            return []
        return [Wait(other.id, "failure", whole=_fails_late(other))]

    # Rounds -------------------------------------------------------------------------------------------------------

    def between_rounds(self, row: Row, loop: Row) -> list[Wait]:
        """Return what a step in a loop waits for in earlier rounds."""
        rivals = self.rivals(row) if row.is_call else 0
        fallible = self.walk.fallible if self.waits_for_success(row) and not self.walk.equal[loop.index] else 0
        todo = (rivals | fallible) >> (loop.index + 1) << (loop.index + 1) & ((1 << loop.end) - 1)
        body = (*loop.inside, (loop.index, 0))
        goes_on = not loop.node.blocks[0].leaves & CONTINUE
        found: list[Wait] = []
        over = 0
        while todo:
            on = todo.bit_length() - 1
            bit = 1 << on
            todo ^= bit
            other = self.rows[on]
            waits = self.conflict(other, row, loop) if rivals & bit else []
            scope = other.holds if self.everything or not any(wait.certain for wait in waits) else None
            if fallible & bit and scope is not None and scope.row < loop.index and _is_within(row.holds, scope):
                waits.append(Wait(other.id, "failure", whole=_fails_late(other), rounds="earlier", loop=loop.id))
            found += waits
            if goes_on and other.firm and other.inside == body and any(wait.certain for wait in waits):
                over |= bit | other.implied
            if not self.everything:
                todo &= ~over
        if fallible and _fails_late(loop) and _is_within(row.holds, loop.holds):
            found.append(Wait(loop.id, "failure", whole=True, rounds="earlier", loop=loop.id))
        return found[::-1]

    def next_round(self, row: Row) -> list[Wait]:
        """Return what the next round of a loop waits for, besides what its steps wait for themselves."""
        block = row.node.blocks[0]
        joins = any(loop == row.index for loop, _ in self.walk.carried)
        if row.node.kind is ForEach and not (joins or block.leaves & (EXIT | BREAK)):
            return []
        found: list[Wait] = []
        for index in range(row.index + 1, row.end):
            other = self.rows[index]
            if other.inside == (*row.inside, (row.index, 0)) and other.node.leaves:
                found.append(Wait(other.id, "control", rounds="earlier", loop=row.id))
        for name in row.node.waits if row.node.kind is While else ():
            if (row.index, name) in self.walk.carried:
                again = self.walk.resolved((frozenset({Carry(row.index, name)}), False))
                found += [self.value(source, "value", name) for source in again if source.rounds == "previous"]
        return found


_ORDER: dict[Kind, int] = {
    "inside": 0,
    "value": 1,
    "depends_on": 2,
    "effect": 3,
    "state": 4,
    "control": 5,
    "failure": 6,
}


def _merge_values(found: list[tuple[int, Wait]]) -> list[tuple[int, Wait]]:
    """Return the waits with those for several names of one step as one."""
    merged: dict[object, tuple[int, Wait]] = {}
    for on, wait in found:
        key = (on, replace(wait, names=()))
        if key in merged:
            names = merged[key][1].names
            merged[key] = (on, replace(wait, names=(*names, *(name for name in wait.names if name not in names))))
        else:
            merged[key] = (on, wait)
    return list(merged.values())


def _exclusive(other: Row, row: Row, rows: Sequence[Row]) -> bool:
    """Return whether the two stand on different sides of one `if`, or one is around the other."""
    for (outer, body), (mine, my_body) in zip(other.inside, row.inside, strict=False):
        if outer != mine:
            return False
        if body != my_body:
            return rows[outer].node.kind is If
    return False


def _equals(other: Row, row: Row) -> bool:
    """Return whether they are in different members of one `parallel`."""
    return any(group == mine and member != mine_ for group, member in other.groups for mine, mine_ in row.groups)


def _fails_late(row: Row) -> bool:
    """Return whether a statement may fail when all inside of it is over: a handler fails, or a `collect` does."""
    return row.node.kind is Try or (row.node.kind is ForEach and row.node.blocks[0].collect is not None)


def _may_be_implied(wait: Wait) -> bool:
    """Return whether the wait may follow from others, rather than only when it has begun."""
    return wait.kind != "inside" and not wait.whole and wait.rounds in ("same", "first")


def _is_covered(waits: Sequence[Wait]) -> bool:
    """Return whether the step is waited for anyway, so that it need not be said that it may fail."""
    return any(wait.certain and wait.rounds == "same" and wait.kind != "inside" for wait in waits)


def _is_within(inner: Scope | None, outer: Scope | None) -> bool:
    """Return whether what stands in one scope is failed by what fails in the other."""
    while inner is not None and outer is not None:
        if inner.row == outer.row:
            return True
        inner = inner.parent
    return False
