"""How the benches measure: interleaved repeats, medians, ratios to a floor.

Two things that run one after the other are not measured under the same conditions: another process wakes up, the clock
rate changes, the heap grows. So every repeat runs every runner once, in rotating order, and a ratio is taken within
each repeat; the figure is the median of these ratios. The first repeat warms caches up and is dropped.
"""

from __future__ import annotations

import gc
import inspect
import os
import platform
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Runner: TypeAlias = "Callable[[], object | Awaitable[object]]"


@dataclass(frozen=True)
class Times:
    """Seconds per unit of work, one entry a repeat."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    def ratio_to(self, floor: Times) -> float:
        """Return the median of the ratios within each repeat."""
        return statistics.median(a / b for a, b in zip(self.seconds, floor.seconds, strict=True))


@dataclass(frozen=True)
class Table:
    """One measured table: a row a runner, a column a floor."""

    title: str
    unit: str
    """`us`, `ms` or `s`, per what: `us/step`."""
    rows: Mapping[str, Times]
    floors: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def to_text(self) -> str:
        scale = {"us": 1e6, "ms": 1e3, "s": 1.0}[self.unit.split("/")[0]]
        head = [self.title, f"median {self.unit}", "min", "max", *(f"x {floor}" for floor in self.floors)]
        body = [
            [
                name,
                *(f"{value * scale:.4g}" for value in (times.median, min(times.seconds), max(times.seconds))),
                *(f"{times.ratio_to(self.rows[floor]):.2f}" for floor in self.floors),
            ]
            for name, times in self.rows.items()
        ]
        widths = [max(len(row[column]) for row in [head, *body]) for column in range(len(head))]
        lines = [
            "  ".join(
                cell.ljust(w) if column == 0 else cell.rjust(w)
                for column, (cell, w) in enumerate(zip(row, widths, strict=True))
            )
            for row in [head, *body]
        ]
        return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:], *(f"  {note}" for note in self.notes)])

    def to_dict(self) -> dict[str, object]:
        return {
            "title": self.title,
            "rows": {
                name: {
                    "seconds": list(times.seconds),
                    "median_seconds": times.median,
                    "ratios": {floor: times.ratio_to(self.rows[floor]) for floor in self.floors},
                }
                for name, times in self.rows.items()
            },
        }


@dataclass(frozen=True)
class Listing:
    """One table without any timing: rows of text below their columns."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def to_text(self) -> str:
        lines = [self.columns, *self.rows]
        widths = [max(len(row[column]) for row in lines) for column in range(len(self.columns))]
        drawn = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in lines]
        return "\n".join([self.title, "-" * max(map(len, drawn)), *drawn, *(f"  {note}" for note in self.notes)])

    def to_dict(self) -> dict[str, object]:
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return {"title": self.title, "rows": rows, "notes": list(self.notes)}


@dataclass(frozen=True)
class Goal:
    """One figure and what it should be: `figure` as the last line shows it, `value` <= `reach` when it is reached."""

    figure: str
    value: float
    reach: float
    reach_text: str

    @property
    def reached(self) -> bool:
        return self.value <= self.reach


@dataclass(frozen=True)
class Report:
    """What one bench found out."""

    name: str
    tables: Sequence[Table | Listing]
    goals: Sequence[Goal]
    took_seconds: float = 0.0

    def last_line(self) -> str:
        """Return `NAME: figure (reach ...)`."""
        figures = "; ".join(goal.figure for goal in self.goals)
        reach = "; ".join(goal.reach_text for goal in self.goals)
        return f"{self.name}: {figures} (reach {reach})"

    def to_dict(self) -> dict[str, object]:
        return {
            "name": self.name,
            "line": self.last_line(),
            "goals": [
                {"figure": g.figure, "value": g.value, "reach": g.reach, "reached": g.reached} for g in self.goals
            ],
            "tables": [table.to_dict() for table in self.tables],
            "seconds": round(self.took_seconds, 1),
            "machine": machine(),
        }


@dataclass(frozen=True)
class Bench:
    """One bench: `run(full)` measures. Without `full` it ends within a minute."""

    name: str
    what: str
    run: Callable[[bool], Awaitable[Report]]


def machine() -> dict[str, object]:
    """Return what a reader of the figures must know of the machine."""
    return {"python": platform.python_version(), "system": platform.system().lower(), "cores": os.cpu_count()}


async def interleaved(
    runners: Mapping[str, Runner],
    *,
    repeats: int,
    units: int | Mapping[str, int] = 1,
    expect: Callable[[str, object], None] | None = None,
) -> dict[str, Times]:
    """Return how long each runner took per unit of work, in every repeat.

    `units` is the number of units of work in one run. `expect(name, result)` may raise: a runner that does not
    do the work must not be timed.
    """
    names = list(runners)
    found: dict[str, list[float]] = {name: [] for name in names}
    gc.collect()
    gc.freeze()  # what is there already belongs to no runner, and need not be walked again and again
    try:
        for repeat in range(-1, repeats):
            turn = repeat % len(names)
            for name in names[turn:] + names[:turn]:
                gc.collect()
                started = time.perf_counter()
                result = runners[name]()
                if inspect.isawaitable(result):
                    result = await result
                took = time.perf_counter() - started
                if expect is not None:
                    expect(name, result)
                if repeat >= 0:
                    found[name].append(took / (units if isinstance(units, int) else units[name]))
    finally:
        gc.unfreeze()
    return {name: Times(tuple(seconds)) for name, seconds in found.items()}


def at_most(figure: float, reach: float, *, of: str, digits: int = 2) -> Goal:
    """Return the goal that a ratio to a floor stays at or below `reach`."""
    return Goal(f"{figure:.{digits}g}x {of}" if figure < 10 else f"{figure:.0f}x {of}", figure, reach, f"<= {reach:g}x")


def at_least(figure: int, of: int, reach: int, *, what: str) -> Goal:
    """Return the goal that at least `reach` of `of` things are so."""
    return Goal(f"{figure} of {of} {what}", -figure, -reach, f">= {reach}")


def not_run(name: str, why: str) -> Report:
    """Return the report of a bench whose data or package is not there."""
    return Report(name, [Listing(f"not run: {why}", ("",), ())], [Goal("not run", 0.0, 0.0, why)])


def within_ms(what: str, seconds: float, reach_ms: float) -> Goal:
    """Return the goal that something takes at most so many milliseconds."""
    return Goal(f"{what} {seconds * 1e3:.0f} ms", seconds * 1e3, reach_ms, f"<= {reach_ms:g} ms")
