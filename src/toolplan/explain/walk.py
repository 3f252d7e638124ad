"""The walk through a program, in written order and once through each body: rows, and where values come from.

Every name knows the steps that its value may come from. In a loop the value of a name that rounds hand on comes from
before the loop in the first round, and from the round before in the others; that is known only at the end of the body,
so until then it is a `Carry`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from toolplan.explain.rows import Rounds, Row, Scope, touches_of
from toolplan.plan import AskModel, Call, ForEach, If, Let, Parallel, Try, While
from toolplan.schedule.program import BREAK, CONTINUE, EXIT, Collect, Node, NodeBlock, Program

__all__ = ["Carry", "Source", "Value", "Walk"]


@dataclass(frozen=True, slots=True)
class Source:
    """A step that the value of a name may come from."""

    row: int
    certain: bool = True
    whole: bool = False
    rounds: Rounds = "same"
    loop: int | None = None


@dataclass(frozen=True, slots=True)
class Carry:
    """The value that a name has when a round begins, as long as it is not known where it comes from."""

    loop: int
    name: str
    certain: bool = True


Value: TypeAlias = "tuple[frozenset[Source | Carry], bool]"
"""Where a name's value may come from, and whether it may be missing."""
Values: TypeAlias = dict[str, Value]
NOWHERE: Value = (frozenset(), False)


@dataclass(frozen=True, slots=True)
class Place:
    """What is around a body."""

    inside: tuple[tuple[int, int], ...] = ()
    groups: tuple[tuple[int, int], ...] = ()
    holds: Scope | None = None
    is_group: bool = False


class Walk:
    """The rows of a program, and what is known of each."""

    def __init__(self, program: Program, independent: bool) -> None:
        self.program = program
        self.independent = independent
        self.rows: list[Row] = []
        self.carried: dict[tuple[int, str], tuple[Value, Value]] = {}
        """By loop and name: where a value comes from in the first round, and in later ones."""
        self.values: dict[int, list[tuple[str, Value]]] = {}
        """By row: the names that it needs, as they stood there."""
        self.before: dict[int, list[int]] = {}
        """By row: undecided statements before it in its body."""
        self.equal: dict[int, bool] = {}
        """By loop: whether its rounds are of equal standing."""
        self.fallible = self.all_calls = self.wide_calls = 0
        """Masks: what may fail, the calls that touch anything, and those of them that may touch everything."""
        self.calls_of: dict[str, int] = {}
        """Masks of calls by the first part of the resources' names."""
        values: Values = dict.fromkeys(("now", *program.plan.inputs), NOWHERE)
        self._block(program.root, values, Place(holds=None if independent else Scope(-1, None)))

    # The walk -----------------------------------------------------------------------------------------------------

    def _block(self, block: NodeBlock, names: Values, place: Place) -> Values:
        undecided: list[int] = []
        for number, node in enumerate(block.nodes):
            if node.kind is Collect:
                continue
            row = Row(len(self.rows), node, place.inside, holds=place.holds, groups=place.groups)
            if place.is_group:
                row.groups = (*place.groups, (place.inside[-1][0], number))
            self.rows.append(row)
            self.before[row.index] = list(undecided)
            self.values[row.index] = [(name, names.get(name, NOWHERE)) for name in node.waits]
            missing = any(names.get(name, NOWHERE)[1] for name in node.waits)
            row.touches = tuple(touches_of(node))
            row.firm = not missing and _ends_in_turn(node, self.independent)
            self._enter(row)
            inner = replace(place, groups=row.groups, is_group=False)
            before = dict(names)
            match node.step:
                case If():
                    self._branch(row, node, names, inner, missing)
                case ForEach() | While():
                    self._loop(row, node, names, inner, missing)
                case Parallel():
                    self._group(row, node, names, inner)
                case Try():
                    self._attempt(row, node, names, inner)
                case _:
                    absent = missing or _leaves_nothing(node, self.independent)
                    for name in node.defines:
                        names[name] = (frozenset({Source(row.index)}), absent)
            row.end = len(self.rows)
            for name in node.whole:
                names[name] = (frozenset({Source(row.index, whole=True), *names[name][0]}), True)
            if place.is_group:  # a member that fails leaves its names without a value, and the others go on
                names.update((name, (value[0], True)) for name, value in names.items() if before.get(name) != value)
            if node.leaves:
                undecided.append(row.index)
        return names

    def _enter(self, row: Row) -> None:
        """Enter the row in the masks."""
        bit = 1 << row.index
        if row.node.may_fail and row.node.kind is not Parallel:
            self.fallible |= bit
        if row.is_call:
            self.all_calls |= bit
            if row.node.undeclared:
                self.wide_calls |= bit
            for resource in {touch.access.resource[:1] for touch in row.touches}:
                if resource:
                    self.calls_of[resource[0]] = self.calls_of.get(resource[0], 0) | bit
                else:
                    self.wide_calls |= bit

    def _branch(self, row: Row, node: Node, names: Values, place: Place, missing: bool) -> None:
        ends: list[Values] = []
        for number, block in enumerate(node.blocks):
            inner = replace(place, inside=(*place.inside, (row.index, number)))
            ends.append(self._block(block, dict(names), inner))
        for name in node.assigns:
            sides = [end.get(name, (frozenset[Source | Carry](), True)) for end in ends]
            names[name] = _merged(row.index, sides, missing)

    def _group(self, row: Row, node: Node, names: Values, place: Place) -> None:
        inner = replace(place, inside=(*place.inside, (row.index, 0)), is_group=True)
        inside = self._block(node.blocks[0], dict(names), inner)
        for name in node.assigns:
            names[name] = inside.get(name, NOWHERE)

    def _attempt(self, row: Row, node: Node, names: Values, place: Place) -> None:
        scope = Scope(row.index, place.holds)
        body = replace(place, inside=(*place.inside, (row.index, 0)), holds=scope)
        tried = self._block(node.blocks[0], dict(names), body)
        start = len(self.rows)
        handler = replace(place, inside=(*place.inside, (row.index, 1)))
        whole = Source(row.index, whole=True)
        known = dict(names)
        for name in (each for each in node.assigns if each in tried):
            known[name] = (frozenset({whole, *map(_perhaps, names.get(name, NOWHERE)[0])}), True)
        handled = self._block(node.blocks[1], known, handler)
        for name in node.assigns:
            found, absent = handled.get(name, NOWHERE)
            inner = {source for source in found if isinstance(source, Source) and source.row >= start}
            kept, lacks = tried.get(name, (frozenset[Source | Carry](), True))
            outer = {_perhaps(each) for each in kept if not isinstance(each, Source) or each.row < row.index}
            names[name] = (frozenset({whole, *inner, *outer}), absent or lacks)  # `outer`: only the handler assigns it

    def _loop(self, row: Row, node: Node, names: Values, place: Place, missing: bool) -> None:
        joins = [name for name in node.assigns if name in names]
        inside = dict(names)
        for name in joins:
            inside[name] = (frozenset({Carry(row.index, name)}), True)
        if isinstance(node.step, ForEach):
            inside[node.step.name] = NOWHERE
        inner = replace(place, inside=(*place.inside, (row.index, 0)))
        ends = self._block(node.blocks[0], inside, inner)
        row.end = len(self.rows)
        self.equal[row.index] = node.kind is ForEach and not joins
        for name in joins:
            self.carried[row.index, name] = (names[name], ends.get(name, NOWHERE))
        for name in joins:
            found = {
                replace(
                    source,
                    rounds="last",
                    loop=row.index,
                    certain=self.is_only(row, ends[name], CONTINUE | BREAK | EXIT),
                )
                for source in ends[name][0]
                if isinstance(source, Source)
            }
            names[name] = (frozenset({Source(row.index), *found, *map(_perhaps, names[name][0])}), True)
        for name in node.defines:
            names[name] = (frozenset({Source(row.index, whole=True)}), missing)

    def is_only(self, loop: Row, name: Value, leaves: int) -> bool:
        """Return whether the value at the end of a round always comes from one step, which every round comes to.

        `leaves`: the ways of leaving a round after which there still is somebody who uses the value.
        """
        sources = name[0]
        if len(sources) != 1:
            return False
        (source,) = sources
        if not isinstance(source, Source) or source.rounds != "same" or source.row <= loop.index:
            return False
        return self.rows[source.row].inside[-1] == (loop.index, 0) and not loop.node.blocks[0].leaves & leaves

    def resolved(self, value: Value, seen: tuple[tuple[int, str], ...] = ()) -> Iterable[Source]:
        """Yield the steps that a value may come from, in the first round and in others. `seen` is for itself."""
        for source in value[0]:
            if isinstance(source, Source):
                yield source
                continue
            name = (source.loop, source.name)
            if name in seen:
                continue
            first, later = self.carried[name]
            is_plain = source.certain and not seen
            for each in self.resolved(first, (*seen, name)):
                certain = each.certain and each.rounds == "same" and is_plain
                yield replace(each, certain=certain, rounds="first", loop=source.loop)
            is_only = self.is_only(self.rows[source.loop], later, CONTINUE)
            for each in self.resolved(later, (*seen, name)):
                yield replace(each, certain=is_only and is_plain, rounds="previous", loop=source.loop)


def _merged(row: int, sides: Sequence[Value], missing: bool) -> Value:
    """Return where a value comes from after a branch: what both sides say is certain, what one says as it says it."""
    found: dict[Source | Carry, None] = {Source(row): None}
    for number, (sources, _) in enumerate(sides):
        others = sides[1 - number][0]
        for source in sources:
            if source not in others and (isinstance(source, Carry) or source.row < row):
                source = replace(source, certain=False)
            found[source] = None
    return frozenset(found), missing or any(absent for _, absent in sides)


def _ends_in_turn(node: Node, independent: bool) -> bool:
    """Return whether a step that fails has waited for all that it waits for, or fails what is behind it as well."""
    step = node.step
    if not isinstance(step, Call | AskModel):
        return not isinstance(step, Let) or not independent
    return node.constant is not None or (step.on_error.action in ("fail", "replan") and not independent)


def _leaves_nothing(node: Node, independent: bool) -> bool:
    step = node.step
    if isinstance(step, Call | AskModel):
        return step.on_error.action == "skip" or (independent and node.may_fail)
    return independent and node.may_fail


def _perhaps(source: Source | Carry) -> Source | Carry:
    """Return a source that may be hidden by another."""
    return replace(source, certain=False)
