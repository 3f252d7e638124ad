"""What a call may do: nothing, read resources, write resources, or anything at all.

A *resource* is a name chosen by the author of the tools, such as `weather` or `mailbox:{to}`. Placeholders are filled
from the call's arguments. `:` and `/` cut a name into segments, and a name covers everything below it: `files` covers
`files:/a/b`. Two accesses conflict when one of them writes and one name covers the other. A tool that declares
nothing is taken to write the whole world, so it conflicts with everything, another undeclared tool included (P3).

The hierarchy is that of granular locks (Gray, Lorie, Putzolu, Traiger 1975): world / family / resource.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from toolplan.errors import UsageError
from toolplan.values import Json

__all__ = ["INDEPENDENT", "PURE", "UNDECLARED", "WORLD", "Access", "Effects", "Resource", "conflict", "declare"]

Resource = tuple[str, ...]
"""A resource name cut into its segments; `()` is the world."""

WORLD: Resource = ()

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_SEPARATOR = re.compile(r"[:/]+")


@dataclass(frozen=True, slots=True)
class Access:
    """One use of one resource. `resource` is as far as it is known; see `Effects.accesses`."""

    resource: Resource
    write: bool


@dataclass(frozen=True, slots=True)
class Effects:
    """What a tool declares about its calls.

    `reads` and `writes` hold resource names, possibly with `{argument}` placeholders (also dotted:
    `{message.to}`). `declared` is false for a tool that says nothing; such a call is exclusive.
    """

    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    declared: bool = True
    independent: bool = False
    """The user's word that this undeclared tool may overlap others (`Agent(undeclared="independent")`)."""
    _reads: tuple[_Pattern, ...] = field(init=False, repr=False, compare=False)
    _writes: tuple[_Pattern, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_reads", tuple(_Pattern.of(name) for name in self.reads))
        object.__setattr__(self, "_writes", tuple(_Pattern.of(name) for name in self.writes))

    @property
    def has_effects(self) -> bool:
        """Whether a call may change something: it writes, or nobody said that it does not."""
        return bool(self.writes) or not self.declared

    @property
    def placeholders(self) -> frozenset[str]:
        """The argument names that resource names are made of."""
        return frozenset(name.split(".")[0] for p in self._reads + self._writes for name in p.arguments)

    def accesses(self, arguments: Mapping[str, Json] | None) -> tuple[Access, ...]:
        """Return what a call with these arguments touches.

        A placeholder whose argument is missing from `arguments` (or `arguments=None`: nothing is known yet) stands
        for the whole family: the name is cut before it. A list argument touches one resource per element.
        """
        if not self.declared:
            return () if self.independent else (Access(WORLD, write=True),)
        found = [Access(r, write=False) for p in self._reads for r in p.resources(arguments)]
        found += [Access(r, write=True) for p in self._writes for r in p.resources(arguments)]
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
            prefixes = [(*prefix, *_segments(str(element)), *tail) for prefix in prefixes for element in elements]
        return prefixes


def _segments(name: str) -> Resource:
    return tuple(part for part in _SEPARATOR.split(name) if part)


def _lookup(arguments: Mapping[str, Json] | None, dotted: str) -> Json:
    value: Json | Mapping[str, Json] = arguments  # type: ignore[assignment]
    for name in dotted.split("."):
        if not isinstance(value, Mapping) or name not in value:
            return None
        value = value[name]
    return value  # type: ignore[return-value]


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
