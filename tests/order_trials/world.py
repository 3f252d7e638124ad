"""A shared store, and random tools that read and change exactly what they declare, or anything when they do not."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from toolplan.effects import INDEPENDENT
from toolplan.errors import ToolFailed
from toolplan.tools import Tool, ToolSet

CELLS = ("a/1/x", "a/1/y", "a/2/x", "a/2/y", "b/1", "b/2", "c")
PATTERNS = ("a", "a:{k}", "a:{k}", "a:{k}/{s}", "a:{k}/x", "a:1/y", "b", "b:{k}", "b:{k}", "c")
ODD = 997
LIMIT, EARLY, LATE, TOO_LONG = 1.0, 0.5, 3.0, 5.0
"""Seconds: how long a call may take, when its effect comes in time or too late, and how long a late one takes."""

FAULTS = ("never", "never", "never", "before", "after", "harmless", "flaky", "late with effect", "late without")


@dataclass(frozen=True)
class Kind:
    """What a random tool is."""

    name: str
    declared: str
    """`pure`, `declared`, `undeclared`, `apart` (undeclared, touches nothing that others do) or `independent`."""
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    fault: str = "never"
    idempotent: bool = False
    retry: int = 1
    max_concurrency: int | None = None

    @property
    def is_late(self) -> bool:
        return self.fault.startswith("late")

    @property
    def is_free(self) -> bool:
        return not self.has_effects

    @property
    def has_effects(self) -> bool:
        return bool(self.writes) or self.declared in ("undeclared", "apart", "independent")


def random_kinds(rng: Random) -> list[Kind]:
    """Return the tools of one trial: some of each sort."""
    kinds: list[Kind] = []
    patterns = rng.sample(PATTERNS, rng.choice([2, 3, len(PATTERNS)]))
    sorts = ["pure", "reads", "writes", "writes", "both", "undeclared", "apart", "independent"]
    sorts += rng.choices(["pure", "reads", "writes", "both", "undeclared"], k=2)
    for number, sort in enumerate(sorts):
        reads = tuple(rng.choices(patterns, k=rng.choice([1, 1, 2]))) if sort in ("reads", "both") else ()
        writes = tuple(rng.choices(patterns, k=rng.choice([1, 1, 2]))) if sort in ("writes", "both") else ()
        declared = sort if sort in ("pure", "undeclared", "apart", "independent") else "declared"
        kinds.append(
            Kind(
                f"t{number}_{sort}",
                declared,
                reads,
                writes,
                rng.choice(FAULTS),
                rng.random() < 0.3,
                rng.choice([1, 1, 2, 3]),
                rng.choice([None, None, None, 1, 2]),
            )
        )
    return kinds


class World:
    """The store: a number in each cell, and the order of the effects on it."""

    def __init__(self, kinds: list[Kind]) -> None:
        self.kinds = {kind.name: kind for kind in kinds}
        self.cells = dict.fromkeys(CELLS, 1)
        self.tries = dict.fromkeys(CELLS, 0)
        self.log: dict[str, list[Any]] = {cell: [] for cell in CELLS}
        self.apart: list[tuple[Any, ...]] = []
        """Effects that share nothing with any other; their order means nothing."""
        self.tools = ToolSet.of([self._tool(kind) for kind in kinds])

    def _tool(self, kind: Kind) -> Tool:
        facts: dict[str, Any] = {"timeout_seconds": LIMIT} if kind.is_late else {}
        if kind.declared == "pure":
            facts["pure"] = True
        if kind.declared == "declared":
            facts |= {"reads": kind.reads, "writes": kind.writes}
        facts |= {"idempotent": kind.idempotent, "max_concurrency": kind.max_concurrency}
        if kind.retry > 1:
            facts["retry"] = kind.retry
        tool = Tool.of(self._function(kind), name=kind.name, **facts)
        return tool.with_effects(INDEPENDENT) if kind.declared == "independent" else tool

    def _function(self, kind: Kind) -> Callable[..., int]:
        def call(v: Any = 0, k: Any = "1", s: str = "x") -> int:
            return self.act(kind, v, k, s)

        return call

    def act(self, kind: Kind, v: Any, k: Any, s: str) -> int:
        """Do what a tool of this kind does; raise where it is to fail."""
        everything = kind.declared == "undeclared"
        read = CELLS if everything else covered(kind.reads, k, s)
        changed = CELLS if everything else covered(kind.writes, k, s)
        touched = tuple(dict.fromkeys((*read, *changed)))
        value = mixed(kind.name, v, k, s, *(self.cells[cell] for cell in touched))
        is_bad = value % 3 == 0
        if kind.fault == "before" and is_bad:
            raise ToolFailed(f"{kind.name} refuses {v}")
        if kind.fault == "harmless" and is_bad:
            raise ToolFailed(f"{kind.name} is busy", effect_happened=False)
        if kind.fault == "flaky" and changed:
            self.tries[changed[0]] += 1
            if self.tries[changed[0]] % 2:
                raise ToolFailed(f"{kind.name} tries", effect_happened=False)
        for cell in changed:
            self.cells[cell] = mixed(self.cells[cell], cell, value)
            self.log[cell].append((kind.name, v, k, s))
        if kind.declared in ("apart", "independent"):
            self.apart.append((kind.name, v, str(k), s))
        if kind.fault == "after" and is_bad:
            raise ToolFailed(f"{kind.name} broke on {v}")
        return value

    def takes(self, tool: str) -> float:
        """How many seconds calls of a tool take in the written-order run; only whether it is too long counts."""
        return TOO_LONG if self.kinds[tool].is_late else 0.0

    def effect_at(self, tool: str) -> float | None:
        """After how many seconds calls of a tool have their effect, where that makes a difference."""
        if not self.kinds[tool].is_late:
            return None
        return EARLY if self.kinds[tool].fault == "late with effect" else LATE

    def duration(self, tool: str, rng: Random) -> float:
        """How many seconds a call takes in a simulation, at random."""
        kind = self.kinds.get(tool)
        if kind is not None and kind.is_late:
            return TOO_LONG
        return rng.choice([0.0, rng.random(), 10 * rng.random()])

    def lasts(self, tool: str, seconds: float) -> float:
        """How many seconds a call goes on that cannot be stopped. Nobody minds one that only reads."""
        kind = self.kinds[tool]
        return TOO_LONG if kind.is_late and kind.has_effects else seconds

    def meet(self, one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
        """Whether two calls (tool, arguments, ...) must not go on at the same time: one changes what the other sees."""
        (read, changed), (seen, written) = self.touched(*one[:2]), self.touched(*other[:2])
        return not (changed.isdisjoint(written | seen) and written.isdisjoint(changed | read))

    def touched(self, tool: str, arguments: dict[str, Any]) -> tuple[set[str], set[str]]:
        """Return the cells that a call reads, and those that it changes."""
        kind = self.kinds[tool]
        if kind.declared == "undeclared":
            return set(CELLS), set(CELLS)
        k, s = arguments.get("k", "1"), arguments.get("s", "x")
        return set(covered(kind.reads, k, s)), set(covered(kind.writes, k, s))


def covered(patterns: tuple[str, ...], k: Any, s: str) -> tuple[str, ...]:
    """Return the cells that the names cover, worked out without the code under test."""
    found: dict[str, None] = {}
    for pattern in patterns:
        for filled in _fillings(pattern, k, s):
            name = filled.replace(":", "/")
            found.update(dict.fromkeys(cell for cell in CELLS if (cell + "/").startswith(name + "/")))
    return tuple(found)


def _fillings(pattern: str, k: Any, s: str) -> list[str]:
    if "{k}" not in pattern:
        return [pattern.replace("{s}", s)]
    if k is None:  # not told which one: all of them
        return [pattern.split(":")[0]]
    return [pattern.replace("{k}", str(each)).replace("{s}", s) for each in (k if isinstance(k, list) else [k])]


def mixed(*parts: Any) -> int:
    """Return a number that depends on every part."""
    return zlib.crc32(repr(parts).encode()) % ODD


def answer(question: str) -> str:
    """What a person answers."""
    return str(mixed("person", question))


def read(question: str, data: Any, returns: Any) -> int:
    """What a model reads; now and then it fails."""
    value = mixed("model", question, data)
    if value % 5 == 0:
        raise ToolFailed(f"the model cannot read {data}")
    return value
