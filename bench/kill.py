"""Runs that are killed and resumed: how many effects are doubled or lost.

Every trial is a process with a journal, killed with SIGKILL at a boundary of its journal or at a random instant, and
resumed, perhaps killed again, until the run is done. Effects are noticed by an HTTP server in another process, which is
also asked about every effect that was under way. Then two processes at a time fight over runs. All of this with a plan
and with a loop. Everything is in `toolplan.testing.kill`, for anybody's own tools; the tools here are those of the
tests (`tests/integration`).
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from bench.harness import Bench, Goal, Listing, Report
from toolplan.testing.kill import KillReport, Witness, fight_over, kill_at_random, kill_everywhere

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "integration"))
from kill_tools import LOOP, PLAN, make_agent

MAY_REPEAT = ["mark"]


async def run(full: bool) -> Report:
    """Kill."""
    return await asyncio.to_thread(_run, full)


def _run(full: bool) -> Report:
    with Witness() as witness:
        found = {
            "at every boundary" if full else "at some boundaries": kill_everywhere(
                make_agent, PLAN, witness, every=1 if full else 4, may_repeat=MAY_REPEAT
            ),
            "at random": kill_at_random(
                make_agent, PLAN, witness, times=280 if full else 25, longest=0.05, may_repeat=MAY_REPEAT
            ),
            "two at a time": fight_over(make_agent, PLAN, witness, takeovers=50 if full else 10, may_repeat=MAY_REPEAT),
            "loops at every boundary" if full else "loops at some boundaries": kill_everywhere(
                make_agent, LOOP, witness, every=1 if full else 8, may_repeat=MAY_REPEAT
            ),
            "loops at random": kill_at_random(
                make_agent, LOOP, witness, times=100 if full else 10, seed=3, longest=0.05, may_repeat=MAY_REPEAT
            ),
            "loops, two at a time": fight_over(
                make_agent, LOOP, witness, takeovers=50 if full else 10, may_repeat=MAY_REPEAT
            ),
        }
    columns = ("killed", "runs", "kills", "takeovers", "turned away", "effects", "unknown: had happened", "had not")
    rows = tuple((name, *map(str, _counted(report))) for name, report in found.items())
    problems = [problem for report in found.values() for problem in report.problems]
    whole = sum(found.values(), KillReport())
    goals = [
        Goal(f"{len(problems)} doubled or lost", len(problems), 0, "0"),
        Goal(f"{whole.kills} kills", -whole.kills, -300 if full else -30, ">= 300" if full else ">= 30 (--full 300)"),
        Goal(
            f"{found['two at a time'].takeovers} takeovers",
            -found["two at a time"].takeovers,
            -50 if full else -10,
            ">= 50" if full else ">= 10 (--full 50)",
        ),
    ]
    return Report("kill", [Listing("what came of runs that were killed", columns, rows, tuple(problems[:20]))], goals)


def _counted(report: KillReport) -> tuple[int, ...]:
    return (
        report.trials,
        report.kills,
        report.takeovers,
        report.held,
        report.effects,
        report.happened,
        report.did_not_happen,
    )


BENCH = Bench("kill", "runs that are killed anywhere and resumed", run)
