"""What a journal holds is the run: replayed, in whatever process, it gives the same machine (I7)."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

from order_trials.agreement import Refused, checked
from order_trials.plans import random_plan
from order_trials.world import World, random_kinds
from properties.test_engine_order import ask, model, on_time, without_retries
from toolplan.journal import Journal, RunBegun, tell
from toolplan.resuming import parts_of
from toolplan.run import run_plan

PLANS = 25


def world_of(seed: int) -> tuple[World, dict[str, Any]]:
    rng = Random(seed)
    kinds = [on_time(kind) for kind in random_kinds(rng)]
    return World(kinds), without_retries(random_plan(rng, kinds))


def told(outcome: str, records: Any) -> str:
    rows = [[r.id, r.tool, r.outcome, r.arguments, r.result, r.error, r.attempts] for r in records]
    return hashlib.sha256(json.dumps([outcome, rows], sort_keys=True).encode()).hexdigest()


def replayed(path: Path, seed: int) -> str:
    """Return what the journal tells of the run of this seed, having replayed every beginning of it, too."""
    world, _ = world_of(seed)
    with Journal(path, readonly=True) as journal:
        entries = journal.read(str(seed))
    for end in (*range(3, len(entries), 7), len(entries)):
        story = tell(entries[:end])
        (part,) = parts_of(story, world.tools, lambda plan, _: checked_again(plan, world))
        assert part.state is not None
    machine = part.state.machine
    assert machine.finished is not None
    return told(machine.finished.outcome, sorted(machine.records, key=lambda record: record.path))


def checked_again(plan: Any, world: World) -> Any:
    from toolplan import check

    return check(plan, world.tools)


def main(path: str, seeds: list[str]) -> None:
    print(json.dumps([replayed(Path(path), int(seed)) for seed in seeds]))


async def test_a_replayed_run_is_the_run(tmp_path: Path) -> None:
    path, live = tmp_path / "j.db", dict[int, str]()
    with Journal(path) as journal:
        for seed in range(PLANS):
            world, plan = world_of(seed)
            try:
                ready = checked(plan, world.tools)
            except Refused:
                continue
            writer = journal.begin(RunBegun(str(seed)))
            result = await run_plan(
                ready, ask=ask, read=model, speculate=seed % 2 == 1, max_concurrency=8, journal=writer
            )
            await writer.aclose()
            live[seed] = told(result.outcome, result.steps)
    assert len(live) > PLANS // 2
    for hash_seed in ("1", "2"):
        assert replayed_elsewhere(path, [*map(str, live)], hash_seed) == list(live.values())


def replayed_elsewhere(path: Path, seeds: list[str], hash_seed: str) -> list[str]:
    """Return what a process tells in which sets have another order."""
    tests = Path(__file__).parents[1]
    script = f"import sys; sys.path[:0] = [{str(tests)!r}]\nfrom properties.test_replay import main\n"
    done = subprocess.run(
        [sys.executable, "-c", script + f"main({str(path)!r}, {seeds!r})"],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
