"""Anything at all given as a plan ends in a plan, an answer or diagnostics: real plans, damaged at random.

Every damaged text is read and, when that gives a plan, checked. Counted are exceptions other than `PlanRejected`,
inputs that take longer than a second, and the memory that is left in use. Replies with tool calls in the formats of
models follow; see `fuzz_formats`, which needs no data.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import fuzz_formats
from bench.data import find, lines
from bench.harness import Bench, Goal, Listing, Report
from toolplan import PlanRejected, Tool, ToolSet, check, parse
from toolplan.plan import Plan

NAME = "fuzz"
FULL = 200_000
SECONDS = 35.0
FORMAT_SECONDS = 15.0
LONGEST_SECONDS = 1.0

Mutation = Callable[[random.Random, str], str]

_PIECES = [
    '"', "'", "{", "}", "[", "]", "(", ")", ",", ":", "\\", "\n", "```", "{{", "}}", "${", "$var1.x$", "null", "NaN",
    "1e999", "\ud800", "\u0000", "，", "｛", "<think>", "</think>", "<tool_call>", "for x in y", "lambda: 0", "await ",
    "**", "def f():\n", "import os\n", "__class__", "9" * 400, " " * 50, '{"$expr": "', '"for_each": ', "depends_on",
]  # fmt: skip


def _cut(rng: random.Random, text: str) -> str:
    return text[: rng.randrange(len(text) + 1)]


def _drop(rng: random.Random, text: str) -> str:
    at = rng.randrange(len(text) + 1)
    return text[:at] + text[at + rng.choice([1, 1, 2, 5, 40]) :]


def _insert(rng: random.Random, text: str) -> str:
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice(_PIECES) + text[at:]


def _double(rng: random.Random, text: str) -> str:
    at = rng.randrange(len(text) + 1)
    end = at + rng.choice([3, 20, 200])
    return text[:end] + text[at:]


def _swap(rng: random.Random, text: str) -> str:
    points = sorted(rng.randrange(len(text) + 1) for _ in range(3))
    return text[: points[0]] + text[points[1] : points[2]] + text[points[0] : points[1]] + text[points[2] :]


def _letter(rng: random.Random, text: str) -> str:
    if not text:
        return rng.choice(_PIECES)
    at = rng.randrange(len(text))
    return text[:at] + chr(rng.choice([rng.randrange(32, 127), rng.randrange(0x4E00, 0x4E80), 10])) + text[at + 1 :]


_MUTATIONS: list[Mutation] = [_cut, _drop, _insert, _double, _swap, _letter]


def _resident() -> float:
    """Return the memory of this process in MiB, or 0 where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * 4096 / 2**20


def _corpus() -> list[tuple[str, str]]:
    """Return texts and the AgentDojo suite whose tools they use."""
    texts: list[tuple[str, str]] = []
    for name in ("agentdojo_python.jsonl", "agentdojo_json.jsonl"):
        path = find("model_replies", name)
        texts += [(line["reply"], line["id"].split("/")[0]) for line in lines(path)] if path else []
    return texts


async def run(full: bool) -> Report:
    """Feed damaged plans for a while (all 200,000 with `--full`); the figure is how many ended as they must."""
    replies, calls = fuzz_formats.run(_MUTATIONS, _cut, [_swap, _double], FULL, None if full else FORMAT_SECONDS)
    corpus = _corpus()
    listed = find("agentdojo", "tools.json")
    if not corpus or listed is None:
        absent = Listing("damaged plans: not run, model_replies or agentdojo is not there", ("",), ())
        return Report(NAME, [replies, absent], [calls])
    suites: dict[str, list[dict[str, Any]]] = json.loads(listed.read_text(encoding="utf-8"))
    tools = {
        suite: ToolSet.of(Tool.from_schema(t["name"], t["description"], t["parameters"], dict) for t in entries)
        for suite, entries in suites.items()
    }
    rng = random.Random(20_260_318)
    outcomes: Counter[str] = Counter()
    faults: list[tuple[str, ...]] = []
    slowest = 0.0
    count = 0
    base = 0.0
    started = time.perf_counter()
    while count < FULL and (full or time.perf_counter() - started < SECONDS):
        text, suite = rng.choice(corpus)
        for _ in range(rng.choice([1, 1, 1, 2, 4])):
            text = rng.choice(_MUTATIONS)(rng, text)
        count += 1
        begun = time.perf_counter()
        try:
            reading = parse(text, tools=tools[suite])
            if isinstance(reading, Plan):
                check(reading, tools[suite])
            outcomes[type(reading).__name__] += 1
        except PlanRejected:
            outcomes["PlanRejected"] += 1
        except BaseException as error:
            faults.append((type(error).__name__, repr(text)[:160]))
            if isinstance(error, KeyboardInterrupt | asyncio.CancelledError):
                raise
        took = time.perf_counter() - begun
        slowest = max(slowest, took)
        if took > LONGEST_SECONDS:
            faults.append((f"{took:.1f} s", repr(text)[:160]))
        if count == 2_000:
            base = _resident()
    grown = _resident() - (base if count > 2_000 else 0.0)
    notes = (
        ", ".join(f"{number} {name}" for name, number in outcomes.most_common()),
        f"slowest {slowest * 1e3:.0f} ms; {grown:.1f} MiB more resident at the end",
    )
    table = Listing("inputs that ended otherwise", ("how", "text"), tuple(faults[:20]), notes)
    figure = f"{count - len(faults)} of {count} ended in a plan, an answer or diagnostics"
    return Report(NAME, [table, replies], [Goal(figure, len(faults), 0, "all, each within 1 s"), calls])


BENCH = Bench(NAME, "damaged plans and replies with tool calls", run)
