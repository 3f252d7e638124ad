"""Random plans on random tools, run overlapping in simulated time and compared with the written order.

Compared are the final store, the order of the effects on each of its cells, outcome, answer, error and failing step of
the run, and outcome, result, error and attempts of every call that written order makes. Only calls without effects may
be made besides. The trials are those of the tests (`tests/order_trials`), only more of them.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from bench.harness import Bench, Goal, Listing, Report

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from order_trials.agreement import Outcome, Refused, cancelled, left_behind, smallest, trial
from order_trials.claims import disagreement, random_trial

NAME = "order"
FULL = 20_000
USUAL = 2_000
SECONDS = 45.0

WAYS: dict[str, dict[str, Any]] = {
    "written order": {"speculate": False},
    "speculate": {"speculate": True},
    "small window": {"window": 2, "size": 24},
    'failure="independent"': {"failure": "independent"},
}
OTHERS: dict[str, Callable[[Random], str | None]] = {
    "cancelled at any moment": cancelled,
    "calls that cannot be stopped": left_behind,
    "explanation and run": lambda rng: disagreement(*random_trial(rng)),
}


async def run(full: bool) -> Report:
    return await asyncio.to_thread(_run, full)


def _run(full: bool) -> Report:
    plans = FULL if full else USUAL
    deadline = None if full else time.perf_counter() + SECONDS
    counts: dict[str, Counter[str]] = {name: Counter() for name in (*WAYS, *OTHERS)}
    faults: list[str] = []
    for seed in range(plans // len(counts) + 1):
        if deadline is not None and time.perf_counter() > deadline:
            break
        for name, count in counts.items():
            fault = _compared(seed, WAYS[name], count) if name in WAYS else _other(seed, OTHERS[name], count)
            if fault is not None:
                count["disagreements"] += 1
                faults.append(f"{name}, seed {seed}: {fault}")
    rows = tuple(_row(name, count) for name, count in counts.items())
    columns = ("runs", "plans", "calls", "overlapping", "failed", "disagreements")
    tried = sum(count["plans"] for count in counts.values())
    return Report(
        NAME,
        [Listing("random plans against the written order", columns, rows, tuple(faults[:10]))],
        [
            Goal(f"{len(faults)} disagreements in {tried} random plans", len(faults), 0, "0"),
            Goal(f"{tried} plans", -tried, -plans, f">= {plans:,}"),
        ],
    )


def _compared(seed: int, how: dict[str, Any], count: Counter[str]) -> str | None:
    try:
        outcome: Outcome = trial(Random(seed), **how)
    except Refused:
        return None
    count["plans"] += 1
    count["failed"] += outcome.reference.outcome == "failed"
    spans = outcome.simulation.spans
    count["calls"] += len(spans)
    count["overlapping"] += sum(
        any(one[2] < other[3] and other[2] < one[3] for other in spans if other is not one) for one in spans
    )
    return str(smallest(outcome)) if outcome.difference is not None else None


def _other(seed: int, kind: Callable[[Random], str | None], count: Counter[str]) -> str | None:
    try:
        fault = kind(Random(seed))
    except Refused:
        return None
    count["plans"] += 1
    return fault


def _row(name: str, count: Counter[str]) -> tuple[str, ...]:
    calls = count["calls"]
    if not calls:
        return (name, f"{count['plans']:,}", "-", "-", "-", str(count["disagreements"]))
    return (
        name,
        f"{count['plans']:,}",
        f"{calls:,}",
        f"{100 * count['overlapping'] / calls:.0f} %",
        f"{100 * count['failed'] / count['plans']:.0f} %",
        str(count["disagreements"]),
    )


BENCH = Bench(NAME, "random plans against their written order", run)
