"""Entries in SQLite: durable, in order, one holder at a time."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from toolplan.errors import JournalError, JournalMismatch, RunIsHeld
from toolplan.journal import Decision, EffectStarted, Journal, RunBegun, RunEnded, RunResumed, StepResolved
from toolplan.journal.entries import decode, encode
from toolplan.journal.lease import Holder
from toolplan.schedule import CallFailed, CallSucceeded, CancelRun, StartRun

BEGUN = RunBegun("r1", [{"tool_name": "pay"}], "pay the bill", {"pay": "abc"}, {"failure": "written-order"})
EVENTS = [StartRun("2026-01-01T00:00:00"), CallSucceeded(1, {"ok": [1, 2.5, None, "é\u0000"]}, 0.5, 1.0)]


def journal_with_run(path: Path) -> Journal:
    journal = Journal(path)
    with_run = journal.begin(BEGUN)
    for event in EVENTS:
        with_run.add(event)
    with_run.flush()
    return journal


@pytest.mark.parametrize(
    "entry",
    [
        BEGUN,
        *EVENTS,
        CallFailed(3, "no", "unknown", False, 1, 2, retry_after_seconds=3.0, still_running=True),
        CancelRun(),
        EffectStarted(2, "s2", "pay", 1, "r1:s2", {"to": "A"}, 0.25),
        Decision("allow", "s2", "hash", "run", {"to": "A"}, None, "fine", "ann", "now"),
        StepResolved(2, "s2", "happened", {"id": 3}),
        RunResumed("someone"),
        RunEnded("waiting", "which one?", questions=[{"step": "s3"}]),
    ],
)
def test_an_entry_comes_back_as_it_was(entry: object) -> None:
    assert decode(*encode(entry)) == entry  # type: ignore[arg-type]


@pytest.mark.parametrize(("kind", "body"), [("Teleported", "{}"), ("StartRun", '{"when":1}'), ("StartRun", "{")])
def test_an_entry_of_a_newer_version_is_a_mismatch(kind: str, body: str) -> None:
    with pytest.raises(JournalMismatch, match=kind):
        decode(kind, body)


def test_what_is_written_can_be_read_while_the_run_is_live(tmp_path: Path) -> None:
    journal = journal_with_run(tmp_path / "j.db")
    assert Journal(tmp_path / "j.db", readonly=True).read("r1") == [BEGUN, *EVENTS]
    (row,) = journal.runs()
    assert (row.run_id, row.request, row.outcome, row.is_held) == ("r1", "pay the bill", "running", True)
    journal.close()
    assert not journal.runs()[0].is_held


def test_an_end_is_the_outcome_of_the_run(tmp_path: Path) -> None:
    with journal_with_run(tmp_path / "j.db") as journal:
        writer = next(iter(journal._held.values()))
        writer.add(RunEnded("succeeded", "done"))
        writer.close()
        assert journal.row("r1").outcome == "succeeded"
        assert [row.run_id for row in journal.runs(outcome="waiting")] == []


async def test_commits_of_concurrent_runs_are_grouped(tmp_path: Path) -> None:
    import asyncio

    with Journal(tmp_path / "j.db") as journal:
        writers = [journal.begin(RunBegun(f"r{i}", [])) for i in range(20)]
        before = journal.commits
        for writer in writers:
            writer.add(StartRun("now"))
        await asyncio.gather(*(writer.durable() for writer in writers))
        assert journal.commits - before <= 3
        assert all(len(journal.read(f"r{i}")) == 2 for i in range(20))


def test_entries_nobody_waits_for_are_written_all_the_same(tmp_path: Path) -> None:
    with Journal(tmp_path / "j.db") as journal:
        writer = journal.begin(BEGUN)
        writer.add(StartRun("now"))
        for _ in range(200):
            if len(journal.read("r1")) == 2:
                break
            threading.Event().wait(0.02)
        assert len(journal.read("r1")) == 2


def test_a_run_has_one_holder(tmp_path: Path) -> None:
    with journal_with_run(tmp_path / "j.db") as first, Journal(tmp_path / "j.db") as second:
        with pytest.raises(RunIsHeld, match=str(os.getpid())):
            second.take("r1")
        next(iter(first._held.values())).close()
        writer = second.take("r1")
        writer.add(RunResumed("me"))
        writer.flush()
        assert len(second.read("r1")) == 4


def test_a_dead_holder_is_replaced_at_once(tmp_path: Path) -> None:
    script = (
        "import sys, os; from toolplan.journal import Journal, RunBegun\n"
        "w = Journal(sys.argv[1]).begin(RunBegun('r1', [])); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path / "j.db")], check=False)
    assert done.returncode == -9
    with Journal(tmp_path / "j.db") as journal:
        assert journal.take("r1").token == 2


def test_a_holder_that_was_given_up_writes_nothing_more(tmp_path: Path) -> None:
    with Journal(tmp_path / "j.db") as first, Journal(tmp_path / "j.db") as second:
        stale = first.begin(BEGUN)
        with sqlite3.connect(tmp_path / "j.db") as connection:
            connection.execute("UPDATE leases SET until = 0")
        second.take("r1")
        stale.add(StartRun("now"))
        with pytest.raises(RunIsHeld, match="taken over"):
            stale.flush()
        with pytest.raises(RunIsHeld):
            stale.flush()
        assert second.read("r1") == [BEGUN]


def test_process_ids_that_were_given_out_again_are_told_apart() -> None:
    from toolplan.journal.lease import _lives

    mine = Holder.this_process()
    assert _lives(mine)
    assert not _lives(Holder("x", mine.host, mine.pid, "1"))
    assert _lives(Holder("x", "elsewhere", 1, "1"))


def test_when_the_disk_is_full_nothing_later_is_taken_for_written(tmp_path: Path) -> None:
    journal = journal_with_run(tmp_path / "j.db")
    writer = next(iter(journal._held.values()))
    connect = journal._connect

    def small() -> sqlite3.Connection:
        connection = connect()
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
        return connection

    journal.close()
    journal._connect = small  # type: ignore[method-assign]
    writer = journal.take("r1")
    writer.add(CallSucceeded(2, "x" * 100_000))
    with pytest.raises(JournalError, match="disk is full"):
        writer.flush()
    writer.add(CallSucceeded(3, "small"))
    with pytest.raises(JournalError, match="disk is full"):
        writer.flush()
    journal._connect = connect  # type: ignore[method-assign]
    assert journal.read("r1") == [BEGUN, *EVENTS]
    journal.close()


def test_files_that_are_no_journal_are_named_for_what_they_are(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("hello, this is no database at all, is it? " * 50)
    with pytest.raises(JournalError, match="not a database"):
        Journal(text)
    with sqlite3.connect(tmp_path / "other.db") as connection:
        connection.execute("CREATE TABLE t (x)")
    with pytest.raises(JournalError, match="no journal of toolplan"):
        Journal(tmp_path / "other.db")
    with pytest.raises(JournalError, match="there is no journal"):
        Journal(tmp_path / "missing.db", readonly=True)
    journal_with_run(tmp_path / "newer.db").close()
    with sqlite3.connect(tmp_path / "newer.db") as connection:
        connection.execute("UPDATE journal SET format = 99")
    with pytest.raises(JournalError, match="newer version"):
        Journal(tmp_path / "newer.db")


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(JournalError, match="cannot be"):
        Journal(blocked / "j.db")


def test_a_lost_entry_is_noticed(tmp_path: Path) -> None:
    journal_with_run(tmp_path / "j.db").close()
    with sqlite3.connect(tmp_path / "j.db") as connection:
        connection.execute("DELETE FROM entries WHERE number = 1")
    with pytest.raises(JournalError, match="lost entry 1"):
        Journal(tmp_path / "j.db").read("r1")


def test_runs_are_found_by_the_beginning_of_their_id(tmp_path: Path) -> None:
    with Journal(tmp_path / "j.db") as journal:
        for name in ("abc1", "abd2", "x_y", "xzy"):
            journal.begin(RunBegun(name, []))
        assert journal.row("abc").run_id == "abc1"
        assert journal.row("x_").run_id == "x_y"
        with pytest.raises(JournalError, match="2 runs begin"):
            journal.read("ab")
        with pytest.raises(JournalError, match="no run"):
            journal.read("q")


def test_a_log_cut_anywhere_leaves_a_prefix(tmp_path: Path) -> None:
    """Cutting the tail off, at any byte of the last frames, loses the newest entries and nothing before them."""
    journal = journal_with_run(tmp_path / "j.db")
    writer = next(iter(journal._held.values()))
    full: list[object] = [BEGUN, *EVENTS]
    for key in (2, 3):
        writer.add(CallSucceeded(key, "x" * 300))
        full.append(CallSucceeded(key, "x" * 300))
        writer.flush()
    db, wal = (tmp_path / "j.db").read_bytes(), (tmp_path / "j.db-wal").read_bytes()
    seen = set()
    for cut in range(len(wal), max(0, len(wal) - 9000), -97):
        copy = tmp_path / f"cut{cut}"
        copy.mkdir()
        (copy / "j.db").write_bytes(db)
        (copy / "j.db-wal").write_bytes(wal[:cut])
        with Journal(copy / "j.db") as cut_off:
            entries = cut_off.read("r1") if cut_off.runs() else []
        assert entries == full[: len(entries)]
        seen.add(len(entries))
    assert len(seen) >= 3
    journal.close()
