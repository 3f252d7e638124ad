"""The statements of a plan as rows, and the reasons for which they wait."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from toolplan.effects import Access, Effects, covering
from toolplan.expressions import Literal as Constant
from toolplan.plan import Call
from toolplan.schedule.program import Node
from toolplan.values import Json

__all__ = ["Kind", "Rounds", "Row", "Scope", "Touch", "Wait", "said", "touches_of"]

Kind: TypeAlias = Literal["inside", "value", "depends_on", "effect", "state", "failure", "control"]
Rounds: TypeAlias = Literal["same", "first", "previous", "earlier", "last"]


@dataclass(frozen=True, slots=True)
class Wait:
    """One reason why a step waits for another. `on` and `loop` are ids of steps."""

    on: str
    kind: Kind
    certain: bool = True
    whole: bool = False
    """It waits for all that is inside `on`, not only for `on` to be decided."""
    rounds: Rounds = "same"
    loop: str | None = None
    """The loop whose rounds `rounds` is about: only the first round waits; each waits for the one before, or for all
    earlier ones; what stands behind the loop waits for its last round."""
    names: tuple[str, ...] = ()
    """The names whose values come from there."""
    ours: str = ""
    theirs: str = ""
    """What the two touch: `reads mailbox`, `writes mailbox:{to}`, `anything`."""


@dataclass(slots=True)
class Row:
    """One statement of the plan: what it is, where it stands, what it waits for."""

    index: int
    node: Node
    inside: tuple[tuple[int, int], ...]
    """The statements around it, outermost first: (index of its row, number of the body)."""
    waits: list[Wait] = field(default_factory=list[Wait])
    between: list[Wait] = field(default_factory=list[Wait])
    """Of a loop: what its next round waits for."""
    end: int = 0
    """The index behind the last row inside."""
    holds: Scope | None = None
    groups: tuple[tuple[int, int], ...] = ()
    """The `parallel`s around it: (index of its row, number of the member)."""
    touches: tuple[Touch, ...] = ()
    firm: bool = True
    """It waits for all that it waits for, even when it does not succeed."""
    implied: int = 0
    """Bits of the rows that are over when it begins, in the same round."""

    @property
    def id(self) -> str:
        """The id of the step."""
        return self.node.id

    @property
    def is_call(self) -> bool:
        """Whether it is a call that may conflict with others."""
        return self.node.kind is Call and (self.node.undeclared or bool(self.touches))


@dataclass(frozen=True, slots=True)
class Scope:
    """What catches a failure: the plan, or a `try` (the index of its row)."""

    row: int
    parent: Scope | None


@dataclass(frozen=True, slots=True)
class Touch:
    """A resource that a call touches, as far as it is known. `exact`: it is known."""

    access: Access
    text: str
    exact: bool
    sure: bool
    """It touches one resource at least."""

    def surely_meets(self, other: Touch) -> bool:
        """Return whether it conflicts with the other whatever it turns out to be, if it does as far as it is known."""
        is_below = len(other.access.resource) <= len(self.access.resource)
        return self.exact or (self.sure and other.exact and is_below)


def touches_of(node: Node) -> Iterable[Touch]:
    """Yield what a call touches, one declared name at a time."""
    if node.tool is None or not isinstance(node.step, Call):
        return
    effects = node.tool.effects
    known = {name: value.value for name, value in node.step.arguments.fields if isinstance(value, Constant)}
    properties: Mapping[str, Json] = node.tool.parameters.get("properties", {})  # type: ignore[assignment]
    said = [("reads", name, Effects(reads=(name,))) for name in effects.reads]
    said += [("writes", name, Effects(writes=(name,))) for name in effects.writes]
    said += [("needs", name, Effects(requires=(name,))) for name in effects.requires]
    said += [("brings about", name, Effects(ensures=(name,))) for name in effects.ensures]
    for word, name, effect in said:
        accesses = map(covering, effect.accesses(node.tool.naming(known)))
        exact = all(argument in known and not isinstance(known[argument], dict) for argument in effect.placeholders)
        exact = exact or not node.placeholders
        sure = all(argument in known or _is_single(properties.get(argument)) for argument in effect.placeholders)
        for access in accesses:
            shown = access.name if exact else name
            yield Touch(access, f"{word} {shown}", exact, sure)


def _is_single(schema: object) -> bool:
    """Return whether a value of this schema names one resource, and not a list of them."""
    return isinstance(schema, dict) and schema.get("type") in ("string", "integer", "number", "boolean")  # type: ignore[reportUnknownMemberType]


def said(row: Row) -> str:
    """Return what a call touches, in words."""
    if row.node.undeclared:
        return "anything"
    return row.touches[0].text if row.touches else ""
