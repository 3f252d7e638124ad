"""Entries in SQLite: appended by one thread, in groups, each group one durable commit.

    journal.begin(run) / journal.take(run_id) ──> RunWriter
    writer.add(entry)          joins the next commit, at most DELAY_SECONDS later
    await writer.durable()     everything added so far is on disk

The write-ahead log with `synchronous=FULL` makes every commit durable, lets others read while a run is live, and lets
several processes share one file; after a crash, a damaged tail of the log is what was not committed, and SQLite leaves
it out. Commits of concurrent steps are grouped: whoever asks while one commit is under way shares the next (group
commit, DeWitt et al. 1984). Entries of a run become durable in the order in which they were added, so what is on disk
is always a prefix of what happened.

Once a commit has failed, for want of space or permission, nothing later of that run is written: every `durable` after
it fails too, and the engine sends no effect that is not written down.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from toolplan.errors import JournalError, JournalMismatch, RunIsHeld
from toolplan.journal.entries import FORMAT, Entry, RunBegun, RunEnded, RunResumed, decode, encode
from toolplan.journal.lease import LEASE_SECONDS, Holder, take

__all__ = ["DELAY_SECONDS", "Journal", "RunRow", "RunWriter"]

DELAY_SECONDS = 0.05
"""How long entries that nobody waits for may stay in memory."""

BUSY_SECONDS = 30.0
"""How long a commit waits for other processes' commits."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS journal (format INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS runs (
    run_id TEXT PRIMARY KEY, request TEXT NOT NULL, begun TEXT NOT NULL, outcome TEXT NOT NULL, changed TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS entries (
    run_id TEXT NOT NULL, number INTEGER NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (run_id, number)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS leases (
    run_id TEXT PRIMARY KEY, holder TEXT NOT NULL, host TEXT NOT NULL, pid INTEGER NOT NULL, born TEXT NOT NULL,
    token INTEGER NOT NULL, until REAL NOT NULL
) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run, as `toolplan runs` lists it.

    `outcome` is "running" until an end is written; `is_held` says whether a process is at work on it.
    """

    run_id: str
    request: str
    begun: str
    outcome: str
    changed: str
    is_held: bool


Tell: TypeAlias = "Callable[[JournalError | None], None]"


@dataclass(slots=True)
class _Batch:
    """What one run adds to the next commit."""

    writer: RunWriter
    rows: list[tuple[str, str]]
    outcome: str | None
    done: list[Tell] = field(default_factory=list["Tell"])


class RunWriter:
    """One run's end of the journal. Used from one event loop; `close` gives the run back."""

    def __init__(self, journal: Journal, run_id: str, token: int, number: int) -> None:
        self.run_id = run_id
        self.token = token
        self._journal = journal
        self._next = number
        self._batch: _Batch | None = None
        self.failed: JournalError | None = None
        self.is_closed = False

    def add(self, entry: Entry) -> None:
        """Let an entry join the next commit."""
        outcome = entry.outcome if isinstance(entry, RunEnded) else "running" if isinstance(entry, RunResumed) else None
        self._journal._add(self, encode(entry), outcome)  # pyright: ignore[reportPrivateUsage] - its other half

    async def durable(self) -> None:
        """Return when everything added so far is on disk. Raises `JournalError` when that cannot be."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()

        def tell(error: JournalError | None) -> None:
            with suppress(RuntimeError):  # the loop is closed; nobody waits any more
                loop.call_soon_threadsafe(_settle, done, error)

        self._journal._sync(self, tell)  # pyright: ignore[reportPrivateUsage]
        await done

    def flush(self) -> None:
        """`durable` for code that is not async."""
        over = threading.Event()
        found: list[JournalError | None] = [None]

        def tell(error: JournalError | None) -> None:
            found[0] = error
            over.set()

        self._journal._sync(self, tell)  # pyright: ignore[reportPrivateUsage]
        over.wait()
        if found[0] is not None:
            raise found[0]

    def close(self) -> None:
        """Write what is left and let others take the run. Safe to call twice; never raises."""
        if self.is_closed:
            return
        with suppress(JournalError):
            self.flush()
        self._journal._release(self)  # pyright: ignore[reportPrivateUsage]
        self.is_closed = True


class Journal:
    """A journal in one SQLite file. Any number of runs, threads and processes may use the same file.

    Opening makes the file if there is none. Raises `JournalError` for a file that cannot be written, is no journal, or
    was written by a newer version. With `readonly=True` nothing is made and `begin` and `take` are refused.
    """

    def __init__(self, path: str | Path, *, readonly: bool = False) -> None:
        self.path = Path(path)
        self.readonly = readonly
        self.holder = Holder.this_process()
        self._wake = threading.Condition()
        self._batches: dict[int, _Batch] = {}
        self._urgent = False
        self._closing = False
        self._thread: threading.Thread | None = None
        self._held: dict[int, RunWriter] = {}
        self._commits = 0
        with _explained(self.path):
            if readonly:
                if not self.path.is_file():
                    raise JournalError(f"there is no journal at {self.path}")
            else:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(self._connect()) as connection:
                self._check_format(connection)

    @property
    def commits(self) -> int:
        """How many durable commits this journal has made, for measurements."""
        return self._commits

    # Runs ---------------------------------------------------------------------------------------------------------

    def begin(self, begun: RunBegun) -> RunWriter:
        """Write the first entry of a new run, durably, and return the run's writer."""
        with self._writing() as connection:
            token = take(connection, begun.run_id, self.holder)
            if connection.execute("SELECT 1 FROM runs WHERE run_id = ?", (begun.run_id,)).fetchone():
                raise JournalError(f"run {begun.run_id} is in the journal already")
            connection.execute(
                "INSERT INTO runs VALUES (?, ?, ?, 'running', ?)", (begun.run_id, begun.request, begun.at, _now())
            )
            connection.execute("INSERT INTO entries VALUES (?, 0, ?, ?)", (begun.run_id, *encode(begun)))
        return self._hold(RunWriter(self, begun.run_id, token, 1))

    def take(self, run_id: str) -> RunWriter:
        """Take a run that somebody began and return its writer.

        Raises `RunIsHeld` while another holder is at work on it, `JournalError` when there is no such run.
        """
        with self._writing() as connection:
            run_id = _full_id(connection, run_id)
            token = take(connection, run_id, self.holder)
            (number,) = connection.execute("SELECT MAX(number) + 1 FROM entries WHERE run_id = ?", (run_id,)).fetchone()
        return self._hold(RunWriter(self, run_id, token, number))

    def read(self, run_id: str) -> list[Entry]:
        """Return the entries of a run, the first one `RunBegun`. `run_id` may be a beginning that fits one run only."""
        with self._reading() as connection:
            full = _full_id(connection, run_id)
            rows = connection.execute(
                "SELECT number, kind, body FROM entries WHERE run_id = ? ORDER BY number", (full,)
            ).fetchall()
        for expected, (number, _, _) in enumerate(rows):
            if number != expected:
                raise JournalError(f"the journal has lost entry {expected} of run {full}; nothing of it can be trusted")
        entries = [decode(kind, body) for _, kind, body in rows]
        if not entries or not isinstance(entries[0], RunBegun):
            raise JournalMismatch(f"run {full} does not begin with its plan")
        return entries

    def runs(self, *, limit: int = 100, outcome: str | None = None) -> list[RunRow]:
        """Return the newest runs first."""
        query = "SELECT r.run_id, request, begun, outcome, changed, COALESCE(until, 0) > ? AND holder <> '' FROM runs r"
        query += " LEFT JOIN leases l ON l.run_id = r.run_id"
        given: list[Any] = [time.time()]
        if outcome is not None:
            query += " WHERE outcome = ?"
            given.append(outcome)
        query += " ORDER BY begun DESC, changed DESC LIMIT ?"
        with self._reading() as connection:
            rows = connection.execute(query, (*given, limit)).fetchall()
        return [_row(row) for row in rows]

    def row(self, run_id: str) -> RunRow:
        """Return the row of one run. Raises `JournalError` when there is none."""
        with self._reading() as connection:
            full = _full_id(connection, run_id)
            row = connection.execute(
                "SELECT r.run_id, request, begun, outcome, changed, COALESCE(until, 0) > ? AND holder <> '' FROM runs r"
                " LEFT JOIN leases l ON l.run_id = r.run_id WHERE r.run_id = ?",
                (time.time(), full),
            ).fetchone()
        return _row(row)

    def close(self) -> None:
        """Write what is left, give back every run, and end the writing thread."""
        for writer in list(self._held.values()):
            writer.close()
        thread = self._thread
        if thread is not None:
            with self._wake:
                self._closing = True
                self._wake.notify()
            thread.join()
            self._thread = None
            self._closing = False

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # What runs add ------------------------------------------------------------------------------------------------

    def _hold(self, writer: RunWriter) -> RunWriter:
        with self._wake:
            self._held[id(writer)] = writer
            if self._thread is None:
                self._thread = threading.Thread(target=self._write, name="toolplan-journal", daemon=True)
                self._thread.start()
        return writer

    def _add(self, writer: RunWriter, row: tuple[str, str], outcome: str | None) -> None:
        with self._wake:
            batch = self._batch_of(writer)
            batch.rows.append(row)
            batch.outcome = outcome or batch.outcome

    def _sync(self, writer: RunWriter, tell: Callable[[JournalError | None], None]) -> None:
        with self._wake:
            if writer.failed is None and writer.is_closed:
                writer.failed = JournalError(f"run {writer.run_id} has been given back")
            if writer.failed is not None or (id(writer) not in self._held and id(writer) not in self._batches):
                tell(writer.failed)
                return
            self._batch_of(writer).done.append(tell)
            self._urgent = True
            self._wake.notify()

    def _batch_of(self, writer: RunWriter) -> _Batch:
        batch = self._batches.get(id(writer))
        if batch is None:
            batch = self._batches[id(writer)] = _Batch(writer, [], None)
            if len(self._batches) == 1:
                self._wake.notify()
        return batch

    def _release(self, writer: RunWriter) -> None:
        with self._wake:
            self._held.pop(id(writer), None)
        with suppress(JournalError), self._writing() as connection:
            connection.execute(
                "UPDATE leases SET holder = '', until = 0 WHERE run_id = ? AND token = ?", (writer.run_id, writer.token)
            )

    # The writing thread -------------------------------------------------------------------------------------------

    def _write(self) -> None:
        connection: sqlite3.Connection | None = None
        renewed = time.monotonic()
        try:
            while True:
                with self._wake:
                    if not self._batches and not self._closing:
                        self._wake.wait(LEASE_SECONDS / 3)
                    if self._batches and not self._urgent and not self._closing:
                        self._wake.wait_for(lambda: self._urgent or self._closing, DELAY_SECONDS)
                    batches = list(self._batches.values())
                    self._batches = {}
                    self._urgent = False
                    if self._closing and not batches:
                        return
                    held = list(self._held.values())
                try:
                    if connection is None:
                        connection = self._connect()
                    if time.monotonic() - renewed > LEASE_SECONDS / 3:
                        renewed = time.monotonic()
                        waiting = {id(batch.writer) for batch in batches}
                        batches += [_Batch(writer, [], None) for writer in held if id(writer) not in waiting]
                    self._commit(connection, batches)
                except sqlite3.Error as error:
                    if connection is not None:
                        with suppress(sqlite3.Error):
                            connection.close()
                        connection = None
                    failure = _explain(self.path, error)
                    for batch in batches:
                        batch.writer.failed = batch.writer.failed or failure
                for batch in batches:
                    for tell in batch.done:
                        tell(batch.writer.failed)
        finally:
            if connection is not None:
                connection.close()

    def _commit(self, connection: sqlite3.Connection, batches: Sequence[_Batch]) -> None:
        connection.execute("BEGIN IMMEDIATE")
        try:
            until, now = time.time() + LEASE_SECONDS, _now()
            written: list[tuple[RunWriter, int]] = []
            for batch in batches:
                writer = batch.writer
                if writer.failed is not None:
                    continue
                renewed = connection.execute(
                    "UPDATE leases SET until = ? WHERE run_id = ? AND token = ?", (until, writer.run_id, writer.token)
                )
                if renewed.rowcount == 0:
                    writer.failed = RunIsHeld(f"run {writer.run_id} was taken over by another process")
                    continue
                rows = [(writer.run_id, writer._next + i, *row) for i, row in enumerate(batch.rows)]  # pyright: ignore[reportPrivateUsage]
                connection.executemany("INSERT INTO entries VALUES (?, ?, ?, ?)", rows)
                if batch.outcome is not None:
                    connection.execute(
                        "UPDATE runs SET outcome = ?, changed = ? WHERE run_id = ?", (batch.outcome, now, writer.run_id)
                    )
                written.append((writer, len(rows)))
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        self._commits += 1
        for writer, count in written:
            writer._next += count  # pyright: ignore[reportPrivateUsage]

    # Connections --------------------------------------------------------------------------------------------------

    def _connect(self) -> sqlite3.Connection:
        mode = "ro" if self.readonly else "rwc"
        connection = sqlite3.connect(
            f"{self.path.absolute().as_uri()}?mode={mode}",
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            if not self.readonly:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("PRAGMA fullfsync = ON")
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_format(self, connection: sqlite3.Connection) -> None:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if "journal" not in tables:
            if tables:
                raise JournalError(f"{self.path} is a database, but no journal of toolplan")
            if self.readonly:
                raise JournalError(f"{self.path} is empty")
            connection.execute("BEGIN IMMEDIATE")
            for statement in _SCHEMA.split(";"):
                connection.execute(statement)
            if connection.execute("SELECT COUNT(*) FROM journal").fetchone() == (0,):
                connection.execute("INSERT INTO journal VALUES (?)", (FORMAT,))
            connection.execute("COMMIT")
        (found,) = connection.execute("SELECT MAX(format) FROM journal").fetchone()
        if found > FORMAT:
            raise JournalError(
                f"{self.path} was written by a newer version of toolplan (format {found}; this one knows {FORMAT})"
            )

    @contextmanager
    def _writing(self) -> Generator[sqlite3.Connection]:
        """Give a connection inside a transaction that is committed at the end."""
        if self.readonly:
            raise JournalError(f"the journal {self.path} was opened only to be read")
        with _explained(self.path), closing(self._connect()) as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _reading(self) -> Generator[sqlite3.Connection]:
        with _explained(self.path), closing(self._connect()) as connection:
            connection.execute("BEGIN")
            yield connection


def _settle(done: asyncio.Future[None], error: JournalError | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)


def _row(row: tuple[str, str, str, str, str, int]) -> RunRow:
    run_id, request, begun, outcome, changed, is_held = row
    return RunRow(run_id, request, begun, outcome, changed, bool(is_held))


def _full_id(connection: sqlite3.Connection, run_id: str) -> str:
    """Return the one run whose id begins with `run_id`."""
    pattern = run_id.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
    found = [
        name for (name,) in connection.execute("SELECT run_id FROM runs WHERE run_id LIKE ? ESCAPE '\\'", (pattern,))
    ]
    if run_id in found:
        return run_id
    if len(found) == 1 and run_id:
        return found[0]
    if found:
        raise JournalError(f"{len(found)} runs begin with `{run_id}`; give more of the id")
    raise JournalError(f"the journal has no run `{run_id}`; `toolplan runs` lists those it has")


@contextmanager
def _explained(path: Path) -> Generator[None]:
    """Turn what SQLite and the system raise into a `JournalError` that says what to do."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise _explain(path, error) from error


def _explain(path: Path, error: Exception) -> JournalError:
    text = str(error)
    if "full" in text or "No space" in text:
        return JournalError(f"the journal {path} cannot be written: the disk is full; nothing unwritten was started")
    if "readonly" in text or "read-only" in text or isinstance(error, PermissionError):
        return JournalError(f"the journal {path} cannot be written: it, or its folder, is read-only")
    if "unable to open" in text:
        return JournalError(f"the journal {path} cannot be opened: its folder is missing or not writable")
    if "not a database" in text:
        return JournalError(f"{path} is no journal: the file is not a database")
    if "malformed" in text or "disk image" in text:
        return JournalError(f"the journal {path} is damaged; what can be saved of it: `sqlite3 FILE .recover`")
    if "locked" in text or "busy" in text:
        return JournalError(f"the journal {path} is locked by another program for more than {BUSY_SECONDS:g} seconds")
    return JournalError(f"the journal {path} cannot be used: {text}")


def _now() -> str:
    return dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")
