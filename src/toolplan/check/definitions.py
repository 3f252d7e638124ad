"""The whole plan at a glance: where steps stand, what is inside what, where names get their values.

Made only when a name has no value, to say why: it gets one later, or did in a loop that has ended, or on another path.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

from toolplan.diagnostics import Place, Source
from toolplan.expressions.types import ObjectType, from_schema, members
from toolplan.plan import AskModel, AskUser, Block, Call, ForEach, Let, Step, Try, While, blocks_of, walk

__all__ = ["Definitions"]

_LABELS = ("id", "step_id", "label")
"""The keys under which a JSON plan calls a loop something that is no variable."""


@dataclass(slots=True)
class Definitions:
    """The whole plan at a glance: where steps stand, what is inside what, and where names get their values."""

    steps: dict[str, Step] = field(default_factory=dict[str, Step])
    """Every name that a step is known by."""
    by_name: dict[str, list[Step]] = field(default_factory=dict[str, "list[Step]"])
    loops: list[ForEach | While] = field(default_factory=list["ForEach | While"])
    readings: dict[str, set[int]] = field(default_factory=dict[str, "set[int]"])
    """The fields that `ask_model` steps declare, each with the identities of these steps."""
    _order: dict[int, int] = field(default_factory=dict[int, int])
    _around: dict[int, tuple[Step, ...]] = field(default_factory=dict[int, "tuple[Step, ...]"])

    @classmethod
    def of(cls, steps: Block) -> Definitions:
        """Return what there is to know about these steps."""
        definitions = cls()
        definitions._enter(steps, ())
        return definitions

    def _enter(self, steps: Block, around: tuple[Step, ...]) -> None:
        for step in steps:
            self._order[id(step)] = len(self._order)
            self._around[id(step)] = around
            self.steps.setdefault(step.id, step)
            if isinstance(step, ForEach | While):
                self.loops.append(step)
            if isinstance(step, AskModel):
                for declared in members(from_schema(step.returns)):
                    for name in declared.names if isinstance(declared, ObjectType) else ():
                        self.readings.setdefault(name, set()).add(id(step))
            for name in _defined_by(step):
                self.by_name.setdefault(name, []).append(step)
                self.steps[name] = step
            for block in blocks_of(step):
                self._enter(block, (*around, step))

    def before(self, step: Step) -> list[str]:
        """Return the names of the steps that are written before `step` and do not hold it."""
        at, around = self._order[id(step)], {id(each) for each in self._around[id(step)]}
        return [name for name, each in self.steps.items() if self._order[id(each)] < at and id(each) not in around]

    def failed(self, step: Step | None) -> str | None:
        """Return "try" or "on_error" when `step` runs because something failed, by the innermost such place."""
        if step is None:
            return None
        path = (*self._around[id(step)], step)
        for outer, inner in reversed(list(itertools.pairwise(path))):
            if isinstance(outer, Call | AskModel):
                return "on_error"
            if isinstance(outer, Try) and any(each is inner for each in outer.handler):
                return "try"
        return None

    def is_loop(self, name: str, source: Source) -> bool:
        """Return whether `name` is what the plan calls a loop that has no value: its id, or its label in JSON."""
        for step in self.loops:
            if isinstance(step, ForEach) and step.defines:
                continue
            if step.id == name or any(_written(source, step.place.child(key)) == name for key in _LABELS):
                return True
        return False

    def look_up(self, name: str, current: Step | None, after_body: bool) -> tuple[list[Step], Step | None, Step | None]:
        """Return what defines `name` for a use at `current`: earlier steps, a loop that has ended, a later step.

        `current` is None for the plan's answer; `after_body` says that the use follows the body of `current`.
        """
        if current is None:
            at, inside = len(self._order), frozenset[int]()
        else:
            inside = frozenset(id(step) for step in (*self._around[id(current)], current))
            at = self._order[id(current)]
            if after_body:
                at += sum(1 for _ in walk((current,)))
        earlier: list[Step] = []
        ended = later = None
        for step in self.by_name.get(name, ()):
            loops = [each for each in (*self._around[id(step)], step) if isinstance(each, ForEach | While)]
            if name in getattr(step, "defines", ()):
                loops = [each for each in loops if each is not step]
            left = [each for each in loops if id(each) not in inside]
            if self._order[id(step)] >= at:
                later = later or step
            elif left:
                ended = ended or left[0]
            else:
                earlier.append(step)
        return earlier, ended, later


def _written(source: Source, place: Place) -> str | None:
    """Return the text or number that a JSON plan has at `place`, None where it has nothing."""
    span = source.locate(place) if place.path else None
    return source.text[span[0] : span[1]].strip('"') if span else None


def _defined_by(step: Step) -> Sequence[str]:
    if isinstance(step, Let):
        return [name for name, _ in step.values]
    if isinstance(step, ForEach):
        return [*step.defines, step.name]
    if isinstance(step, Try):
        return [step.error] if step.error else []
    return step.defines if isinstance(step, Call | AskModel | AskUser) else ()
