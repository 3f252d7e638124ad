"""What a call may do: nothing, read resources, write resources, or anything at all.

A *resource* is a name chosen by the author of the tools, such as `weather` or `mailbox:{to}`. Placeholders are filled
from the call's arguments. `:` and `/` cut a name into segments, and a name covers everything below it: `files` covers
`files:/a/b`. Two accesses conflict when one of them writes and one name covers the other. A tool that declares
nothing is taken to write the whole world, so it conflicts with everything, another undeclared tool included (P3).

A *state* (`requires="page:open"`, `ensures="page:open"`) is a resource of its own kind: whoever ensures it writes it,
whoever requires it reads it, whatever else the two touch.

The hierarchy is that of granular locks (Gray, Lorie, Putzolu, Traiger 1975): world / family / resource.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from toolplan.errors import UsageError
from toolplan.values import Json

__all__ = [
    "INDEPENDENT",
    "PURE",
    "STATE",
    "UNDECLARED",
    "WORLD",
    "Access",
    "Effects",
    "Resource",
    "conflict",
    "covering",
    "declare",
]

Resource = tuple[str, ...]
"""A resource name cut into its segments; `()` is the world."""

WORLD: Resource = ()
STATE = ""
"""The first segment of every state, which no resource's name can have."""

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_SEPARATOR = re.compile(r"[:/]+")


@dataclass(frozen=True, slots=True)
class Access:
    """One use of one resource. `resource` is as far as it is known; see `Effects.accesses`."""

    resource: Resource
    write: bool

    @property
    def is_state(self) -> bool:
        """Whether it is a state that is required or ensured, rather than a resource."""
        return self.resource[:1] == (STATE,)

    @property
    def name(self) -> str:
        """The resource's or state's name, as it would be written: `mailbox:ann`, `files:a/b`; `` for the world."""
        parts = self.resource[1:] if self.is_state else self.resource
        return ":".join((parts[0], "/".join(parts[1:]))) if len(parts) > 1 else "".join(parts)


@dataclass(frozen=True, slots=True)
class Effects:
    """What a tool declares about its calls.

    `reads` and `writes` hold resource names, possibly with `{argument}` placeholders (also dotted:
    `{message.to}`). `declared` is false for a tool that says nothing; such a call is exclusive. `requires` and
    `ensures` hold the names of states. They are no effects, but what ensures a state goes before what requires it.
    """

    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    declared: bool = True
    independent: bool = False
    """The user's word that this undeclared tool may overlap others (`Agent(undeclared="independent")`)."""
    requires: tuple[str, ...] = ()
    ensures: tuple[str, ...] = ()
    _reads: tuple[_Pattern, ...] = field(init=False, repr=False, compare=False)
    _writes: tuple[_Pattern, ...] = field(init=False, repr=False, compare=False)
    _states: tuple[tuple[_Pattern, bool], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_reads", tuple(_Pattern.of(name) for name in self.reads))
        object.__setattr__(self, "_writes", tuple(_Pattern.of(name) for name in self.writes))
        states = [(_Pattern.of(name), False) for name in self.requires]
        object.__setattr__(self, "_states", (*states, *((_Pattern.of(name), True) for name in self.ensures)))

    def with_states(self, requires: tuple[str, ...], ensures: tuple[str, ...]) -> Effects:
        """Return these effects with the states that a call needs and brings about."""
        if (requires, ensures) == (self.requires, self.ensures):
            return self
        return replace(self, requires=requires, ensures=ensures)

    @property
    def has_effects(self) -> bool:
        """Whether a call may change something: it writes, or nobody said that it does not."""
        return bool(self.writes) or not self.declared

    @property
    def placeholders(self) -> frozenset[str]:
        """The argument names that resource names are made of."""
        patterns = (*self._reads, *self._writes, *(pattern for pattern, _ in self._states))
        return frozenset(name.split(".")[0] for pattern in patterns for name in pattern.arguments)

    def accesses(self, arguments: Mapping[str, Json] | None) -> tuple[Access, ...]:
        """Return what a call with these arguments touches.

        A placeholder whose argument is missing from `arguments` (or `arguments=None`: nothing is known yet) stands
        for the whole family: the name is cut before it. A list argument touches one resource per element. The values
        are those that the tool gets, as JSON: for a call as it stands in a plan ask `Tool.accesses`.
        """
        if not (self.declared or self.independent):
            return (Access(WORLD, write=True),)
        found = [Access(r, write=False) for p in self._reads for r in p.resources(arguments)]
        found += [Access(r, write=True) for p in self._writes for r in p.resources(arguments)]
        found += [Access((STATE, *r), write) for p, write in self._states for r in p.resources(arguments)]
        return tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A resource name cut at its placeholders: texts[0] {arguments[0]} texts[1] ..."""

    texts: tuple[str, ...]
    arguments: tuple[str, ...]

    @classmethod
    def of(cls, name: str) -> _Pattern:
        pieces = _PLACEHOLDER.split(name)
        if "{" in "".join(pieces[::2]) or "}" in "".join(pieces[::2]) or not all(pieces[1::2]):
            raise UsageError(f"resource name `{name}` has an unmatched or empty brace; write `family:{{argument}}`")
        if not _segments(pieces[0]) and len(pieces) == 1:
            raise UsageError("a resource name must not be empty; leave `reads`/`writes` out instead")
        return cls(tuple(pieces[::2]), tuple(pieces[1::2]))

    def resources(self, arguments: Mapping[str, Json] | None) -> list[Resource]:
        prefixes = [_segments(self.texts[0])]
        for argument, text in zip(self.arguments, self.texts[1:], strict=True):
            value = _lookup(arguments, argument)
            if value is None or isinstance(value, dict):
                return prefixes
            elements = value if isinstance(value, list) else [value]
            if any(isinstance(element, list | dict) for element in elements):
                return prefixes
            tail = _segments(text)
            prefixes = [(*prefix, *_filled(element), *tail) for prefix in prefixes for element in elements]
        return prefixes


def _segments(name: str) -> Resource:
    return tuple(part for part in _SEPARATOR.split(name) if part)


def _filled(value: Json) -> Resource:
    """Return the segments that a value fills in. Equal numbers give one name, and so do `a/b` and `./a/b`."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    segments = _segments(str(value))
    return tuple(part for part in segments if part != ".") if "." in segments else segments


def _lookup(arguments: Mapping[str, Json] | None, dotted: str) -> Json:
    value: Json | Mapping[str, Json] = arguments  # type: ignore[assignment]
    for name in dotted.split("."):
        if not isinstance(value, Mapping) or name not in value:
            return None
        value = value[name]
    return value  # type: ignore[return-value]


def covering(access: Access) -> Access:
    """Return the access that covers all that this one may be: `files` for `files:a/../b`.

    Where `a/..` leads only the tool knows; there may be links on the way.
    """
    if ".." not in access.resource:
        return access
    return Access(access.resource[: 2 if access.is_state else 1], access.write)


def conflict(a: Access, b: Access) -> bool:
    """Return whether the two accesses must keep their written order."""
    if not (a.write or b.write):
        return False
    shared = min(len(a.resource), len(b.resource))
    return a.resource[:shared] == b.resource[:shared]


def declare(
    *,
    pure: bool = False,
    reads: str | tuple[str, ...] | list[str] = (),
    writes: str | tuple[str, ...] | list[str] = (),
) -> Effects:
    """Return the effects of a tool declared with these keywords; nothing given means undeclared.

    Raises `UsageError` when `pure` is combined with `reads` or `writes`.
    """
    read_names = (reads,) if isinstance(reads, str) else tuple(reads)
    write_names = (writes,) if isinstance(writes, str) else tuple(writes)
    if pure and (read_names or write_names):
        raise UsageError("a tool is either `pure` or has `reads`/`writes`, not both")
    if not (pure or read_names or write_names):
        return UNDECLARED
    return Effects(read_names, write_names)


PURE = Effects()
UNDECLARED = Effects(declared=False)
INDEPENDENT = Effects(declared=False, independent=True)
