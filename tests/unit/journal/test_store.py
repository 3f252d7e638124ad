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
from toolplan.journal import Decision, EffectStarted, Journal, PlanBegun, RunBegun, RunEnded, RunResumed, StepResolved
from toolplan.journal.entries import decode, encode
from toolplan.journal.lease import Holder
from toolplan.schedule import CallFailed, CallSucceeded, CancelRun, StartRun

BEGUN = RunBegun("r1", "pay the bill", now="2026-01-01", at="2026-01-01T00:00:00")
PLAN = PlanBegun([{"tool_name": "pay"}], {"pay": {"declared": "abc"}}, {"failure": "written-order"})
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
        PLAN,
        *EVENTS,
        CallFailed(3, "no", "unknown", False, 1, 2, retry_after_seconds=3.0, still_running=True),
        CancelRun(),
        EffectStarted(2, "s2", "pay", 1, "r1:s2", {"to": "A"}, 0.25),
        Decision("allow", "s2", "hash", "pay", ["asks"], True, "run", {"to": "A"}, None, False, "fine", "ann", "now"),
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
        writers = [journal.begin(RunBegun(f"r{i}")) for i in range(20)]
        await asyncio.gather(*(writer.durable() for writer in writers))
        before = journal.commits
        for writer in writers:
            writer.add(StartRun("now"))
        await asyncio.gather(*(writer.durable() for writer in writers))
        assert journal.commits - before <= 3
        assert all(len(journal.read(f"r{i}")) == 2 for i in range(20))


def test_entries_nobody_waits_for_are_written_all_the_same(tmp_path: Path) -> None:
    with Journal(tmp_path / "j.db") as journal:
        writer = journal.begin(BEGUN)
        writer.flush()
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
        "w = Journal(sys.argv[1]).begin(RunBegun('r1')); w.flush(); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path / "j.db")], check=False)
    assert done.returncode == -9
    with Journal(tmp_path / "j.db") as journal:
        assert journal.take("r1").token == 2


def test_a_holder_that_was_given_up_writes_nothing_more(tmp_path: Path) -> None:
    with Journal(tmp_path / "j.db") as first, Journal(tmp_path / "j.db") as second:
        stale = first.begin(BEGUN)
        stale.flush()
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
            journal.begin(RunBegun(name)).flush()
        assert journal.row("abc").run_id == "abc1"
        assert journal.row("x_").run_id == "x_y"
        with pytest.raises(JournalError, match="2 runs begin"):
            journal.read("ab")
        with pytest.raises(JournalError, match="no run"):
            journal.read("q")


def test_a_log_cut_anywhere_leaves_a_prefix(tmp_path: Path) -> None:
    """A power cut: of the log's tail, cut at any byte, only entries go that nobody was told are durable."""
    journal = journal_with_run(tmp_path / "j.db")
    writer = next(iter(journal._held.values()))
    log = tmp_path / "j.db-wal"
    full: list[object] = [BEGUN, *EVENTS]
    durable = [(log.stat().st_size, len(full))]
    for key in (2, 3, 4):
        writer.add(CallSucceeded(key, "x" * 300))
        full.append(CallSucceeded(key, "x" * 300))
        writer.flush()
        durable.append((log.stat().st_size, len(full)))
    db, wal = (tmp_path / "j.db").read_bytes(), log.read_bytes()
    frame = 24 + 4096
    edges = {32 + frame * number + by for number in range(len(wal) // frame + 1) for by in (-25, -1, 0, 1, 23, 24, 25)}
    cuts = sorted((edges | set(range(len(wal) - 2 * frame, len(wal), 61))) & set(range(len(wal) + 1)))
    seen = set()
    for cut in cuts:
        copy = tmp_path / f"cut{cut}"
        copy.mkdir()
        (copy / "j.db").write_bytes(db)
        (copy / "j.db-wal").write_bytes(wal[:cut])
        with Journal(copy / "j.db") as cut_off:
            entries = cut_off.read("r1") if cut_off.runs() else []
        assert entries == full[: len(entries)]
        assert len(entries) >= max((count for size, count in durable if size <= cut), default=0), cut
        seen.add(len(entries))
    assert {3, 4, 5, 6} <= seen
    journal.close()


DAMAGES = {
    "the end": "DELETE FROM entries WHERE number = 2",
    "every entry": "DELETE FROM entries",
    "other words": "UPDATE entries SET body = replace(body, '2.5', '9.5') WHERE number = 2",
    "another kind": "UPDATE entries SET kind = 'CancelRun', body = '{}' WHERE number = 2",
    "one more": "INSERT INTO entries VALUES ('r1', 3, 'CancelRun', '{}')",
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=list(DAMAGES))
def test_entries_that_are_not_those_that_were_written_are_noticed(tmp_path: Path, damage: str) -> None:
    journal_with_run(tmp_path / "j.db").close()
    with sqlite3.connect(tmp_path / "j.db") as connection:
        connection.execute(damage)
    with Journal(tmp_path / "j.db") as journal:
        for use in (journal.read, journal.take):
            with pytest.raises(JournalError, match=r"nothing of it can be trusted"):
                use("r1")


def test_a_run_that_goes_on_is_counted_on(tmp_path: Path) -> None:
    journal_with_run(tmp_path / "j.db").close()
    for number in range(3):
        with Journal(tmp_path / "j.db") as journal:
            writer = journal.take("r1")
            writer.add(RunResumed("me"))
            writer.flush()
            writer.add(RunEnded("waiting"))
            writer.close()
            assert len(journal.read("r1")) == 5 + 2 * number


def test_a_run_that_was_written_without_a_count_is_read_and_counted_from_then_on(tmp_path: Path) -> None:
    journal_with_run(tmp_path / "j.db").close()
    with sqlite3.connect(tmp_path / "j.db") as connection:
        connection.execute("ALTER TABLE runs DROP COLUMN written")
        connection.execute("ALTER TABLE runs DROP COLUMN chain")
    assert len(Journal(tmp_path / "j.db", readonly=True).read("r1")) == 3
    with Journal(tmp_path / "j.db") as journal:
        journal.take("r1").close()
        journal.begin(RunBegun("r2")).close()
        assert [len(journal.read(run)) for run in ("r1", "r2")] == [3, 1]
    with sqlite3.connect(tmp_path / "j.db") as connection:
        connection.execute("DELETE FROM entries WHERE number = 2")
    with pytest.raises(JournalError, match="lost entry 2"):
        Journal(tmp_path / "j.db").read("r1")


def test_overwritten_pages_are_said_to_be_damaged(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    journal_with_run(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'entries'").fetchone()
    data = bytearray(path.read_bytes())
    data[page * 4096 - 40 : page * 4096 - 10] = b"\xff" * 30
    path.write_bytes(data)
    for use in (Journal(path).read, Journal(path).take):
        with pytest.raises(JournalError, match=r"damaged|nothing of it can be trusted"):
            use("r1")
