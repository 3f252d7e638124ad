"""The benches measure what they say, and keep working: each runs here once, small."""

from __future__ import annotations

import asyncio
import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from bench.__main__ import MODULES, main  # noqa: E402
from bench.harness import Bench, Goal, Report, Table, Times, at_most, interleaved, within_ms  # noqa: E402


def test_a_ratio_is_the_median_of_the_ratios_within_each_repeat() -> None:
    ours, floor = Times((4.0, 40.0, 6.0)), Times((2.0, 10.0, 1.0))
    assert ours.ratio_to(floor) == 4.0
    assert ours.median == 6.0


async def test_every_repeat_runs_every_runner_once_in_rotating_order() -> None:
    ran: list[str] = []

    async def slow() -> int:
        ran.append("slow")
        await asyncio.sleep(0.02)
        return 1

    def quick() -> int:
        ran.append("quick")
        return 1

    times = await interleaved({"quick": quick, "slow": slow}, repeats=2, units={"quick": 1, "slow": 10})
    assert ran == ["slow", "quick", "quick", "slow", "slow", "quick"], "the first round warms up"
    assert len(times["slow"].seconds) == 2
    assert 0.002 <= times["slow"].median < 0.02, "seconds per unit, waiting included"


async def test_a_runner_that_does_not_do_the_work_is_not_timed() -> None:
    def expect(name: str, result: object) -> None:
        assert result == 1, name

    with pytest.raises(AssertionError, match="lazy"):
        await interleaved({"lazy": lambda: 0}, repeats=1, expect=expect)


def test_the_last_line_names_figure_and_reach() -> None:
    goals = [at_most(3.14159, 5, of="a task"), within_ms("start", 0.12, 150)]
    report = Report("x", [], goals)
    assert report.last_line() == "x: 3.1x a task; start 120 ms (reach <= 5x; <= 150 ms)"
    assert [goal.reached for goal in [*goals, Goal("9", 9, 5, "<= 5")]] == [True, True, False]


def test_a_table_has_a_column_for_each_floor() -> None:
    rows = {"floor": Times((1e-6, 2e-6)), "ours": Times((3e-6, 6e-6))}
    table = Table("title", "us/step", rows, floors=("floor",), notes=("a note",))
    lines = table.to_text().splitlines()
    assert lines[0].split() == ["title", "median", "us/step", "min", "max", "x", "floor"]
    assert lines[3].split() == ["ours", "4.5", "3", "6", "3.00"]
    assert lines[-1] == "  a note"


@pytest.mark.parametrize("name", MODULES)
def test_every_bench_is_what_its_name_says(name: str) -> None:
    bench = importlib.import_module(MODULES[name]).BENCH
    assert isinstance(bench, Bench)
    assert bench.name == name


@pytest.mark.parametrize("name", MODULES)
def test_every_bench_is_in_the_readme(name: str) -> None:
    assert f"\n| `{name}` | " in (ROOT / "bench" / "README.md").read_text(encoding="utf-8")


def test_an_unknown_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["overheads"])
    assert caught.value.code == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"no bench is named `overheads`; there are {', '.join(MODULES)}" in said


async def test_overhead_runs_the_chain_to_its_end() -> None:
    from bench import overhead, peers

    table = await overhead._table(overhead.Agent(tools=[overhead.add_one_tool]), 20, 2, peers.Peers())
    assert set(table.rows) >= {overhead.TASKS, overhead.LOOP, "toolplan"}
    assert table.rows["toolplan"].ratio_to(table.rows[overhead.LOOP]) > 1


def test_compile_reads_a_plan_of_the_size_it_names() -> None:
    from bench import compile as bench_compile

    text = bench_compile.plan_text(bench_compile.STEPS)
    assert 15_000 <= len(text.encode()) <= 25_000
    checked = bench_compile.check(bench_compile.read(text), bench_compile.TOOLS)
    assert len(checked.plan.steps) == bench_compile.STEPS
    assert text.count("{r") > bench_compile.STEPS // 5, "results are used"


async def test_stream_finds_the_same_steps_as_its_floor() -> None:
    from bench import stream

    text = stream.plan_text(8)
    scanners = {
        stream.FLOOR: stream.raw_decode_retried,
        stream.AT_THE_END: stream.loads_at_the_end,
        "ours": stream.ours,
    }
    table = await stream.scanner_table("small", text, scanners, json.loads(text), repeats=2)
    assert set(table.rows) == set(scanners)


def test_stream_shows_what_an_early_start_saves() -> None:
    from bench import stream

    late, early = (stream.seconds_of(40.0, early_start=early) for early in (False, True))
    assert late == pytest.approx(len(json.dumps(stream.REQUEST_PLAN)) / 4 / 40 + 3 * stream.CALL_SECONDS, abs=0.2)
    assert early == pytest.approx(late - 2 * stream.CALL_SECONDS, abs=0.2)
    turn = [*stream.LOOK_UPS, stream.MAIL]
    late, early = (stream.loop_seconds_of(turn, 10.0, early_start=early) for early in (False, True))
    assert late == pytest.approx(len(json.dumps(turn)) / 4 / 10 + 2 * stream.CALL_SECONDS, abs=0.2)
    assert early == pytest.approx(late - stream.CALL_SECONDS, abs=0.2)


@pytest.mark.slow
def test_json_is_one_document_and_nothing_else() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench", "import", "--json"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (report,) = json.loads(done.stdout)
    assert report["name"] == "import"
    assert [goal["reach"] for goal in report["goals"]] == [150, 150, 400]
