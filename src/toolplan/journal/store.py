"""Entries in SQLite: appended by one thread, in groups, each group one durable commit.

    journal.begin(run) / journal.take(run_id) ──> RunWriter
    writer.add(entry)          joins the next commit, at most DELAY_SECONDS later
    await writer.durable()     everything added so far is on disk

The write-ahead log with `synchronous=FULL` makes every commit durable, lets others read while a run is live, and lets
several processes share one file; after a crash, a damaged tail of the log is what was not committed, and SQLite leaves
it out. Commits of concurrent steps are grouped: whoever asks while one commit is under way shares the next (group
commit, DeWitt et al. 1984). Entries of a run become durable in the order in which they were added, so what is on disk
is always a prefix of what happened. How many entries a run has, and a hash over all of them, is committed with them
(`chain.py`): a run whose entries are not those that were written is refused, for what is missing could be an effect.
That the log has lost commits which were on disk, to a disk that lies or to whoever cuts it off, cannot be noticed: what
is left is the journal as it once was.

Once a commit has failed, for want of space or permission, nothing later of that run is written: every `durable` after
it fails too, and the engine sends no effect that is not written down.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import itertools
import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from toolplan.errors import JournalError, JournalMismatch, RunIsHeld
from toolplan.journal import chain
from toolplan.journal.database import check_format, connect, damaged, explain, explained
from toolplan.journal.entries import Entry, RunBegun, RunEnded, RunResumed, SecretLeftOut, decode, encode
from toolplan.journal.lease import LEASE_SECONDS, Holder, take
from toolplan.journal.listing import RunRow, full_id, one_run, runs_in
from toolplan.journal.secrets import Secrets

__all__ = ["DELAY_SECONDS", "Journal", "RunWriter"]

DELAY_SECONDS = 0.05
"""How long entries that nobody waits for may stay in memory."""

Tell: TypeAlias = "Callable[[JournalError | None], None]"


@dataclass(slots=True)
class _Batch:
    """What one run adds to the next commit."""

    writer: RunWriter
    rows: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    outcome: str | None = None
    done: list[Tell] = field(default_factory=list["Tell"])
    is_last: bool = False
    """Whether the run is given back with it."""


class RunWriter:
    """One run's end of the journal. Used from one event loop; `close` gives the run back.

    With `secrets`, these are left out of whatever is written.
    """

    def __init__(self, journal: Journal, run_id: str, token: int, number: int, begun: RunBegun | None = None) -> None:
        self.run_id = run_id
        self.token = token
        self.secrets: Secrets | None = None
        self.left_out: set[str] = set()
        """The kinds of entries of which something was left out, because it is secret."""
        self.failed: JournalError | None = None
        self.is_closed = False
        self._journal = journal
        self._next = number
        self._begun = begun

    def add(self, entry: Entry) -> None:
        """Let an entry join the next commit."""
        outcome = entry.outcome if isinstance(entry, RunEnded) else "running" if isinstance(entry, RunResumed) else None
        rows = self.secrets.rows(entry) if self.secrets else [encode(entry)]
        self.left_out |= {json.loads(body)["what"] for kind, body in rows if kind == SecretLeftOut.__name__}
        self._journal._add(self, rows, outcome)  # pyright: ignore[reportPrivateUsage] - its other half

    async def durable(self) -> None:
        """Return when everything added so far is on disk. Raises `JournalError` when that cannot be."""
        await self._synced(last=False)

    async def aclose(self) -> None:
        """`close` for async code; raises `JournalError` when what is left could not be written."""
        if self.is_closed:
            return
        try:
            await self._synced(last=True)
        finally:
            self._drop()

    async def _synced(self, *, last: bool) -> None:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()

        def tell(error: JournalError | None) -> None:
            with suppress(RuntimeError):  # the loop is closed; nobody waits any more
                loop.call_soon_threadsafe(_settle, done, error)

        self._journal._sync(self, tell, last)  # pyright: ignore[reportPrivateUsage]
        await done

    def flush(self, *, last: bool = False) -> None:
        """`durable` for code that is not async. The `last` time the run is given back."""
        over = threading.Event()
        found: list[JournalError | None] = [None]

        def tell(error: JournalError | None) -> None:
            found[0] = error
            over.set()

        self._journal._sync(self, tell, last)  # pyright: ignore[reportPrivateUsage]
        over.wait()
        if found[0] is not None:
            raise found[0]

    def close(self) -> None:
        """Write what is left and let others take the run. Safe to call twice; never raises."""
        if self.is_closed:
            return
        with suppress(JournalError):
            self.flush(last=True)
        self._drop()

    def _drop(self) -> None:
        self.is_closed = True
        self._journal._forget(self)  # pyright: ignore[reportPrivateUsage]


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
        with explained(self.path):
            if readonly:
                if not self.path.is_file():
                    raise JournalError(f"there is no journal at {self.path}")
            else:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))  # what is in it is nobody else's business
            with closing(self._connect()) as connection:
                check_format(connection, self.path, readonly=readonly)

    @property
    def commits(self) -> int:
        """How many durable commits this journal has made, for measurements."""
        return self._commits

    # Runs ---------------------------------------------------------------------------------------------------------

    def begin(self, begun: RunBegun) -> RunWriter:
        """Return the writer of a new run. Its first entry, and the lease, join the next commit."""
        if self.readonly:
            raise JournalError(f"the journal {self.path} was opened only to be read")
        begun = begun if begun.at else replace(begun, at=_now())
        writer = self._hold(self.writer(begun.run_id, 0, 0, begun))
        writer.add(begun)
        return writer

    def writer(self, run_id: str, token: int, number: int, begun: RunBegun | None = None) -> RunWriter:
        """Return a writer; the one place where they are made."""
        return RunWriter(self, run_id, token, number, begun)

    def take(self, run_id: str) -> RunWriter:
        """Take a run that somebody began and return its writer.

        Raises `RunIsHeld` while another holder is at work on it, `JournalError` when there is no such run.
        """
        with self._writing() as connection:
            run_id = full_id(connection, run_id)
            token = take(connection, run_id, self.holder)
            if connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
                raise damaged(self.path)
            rows = chain.verified(connection, run_id)
            chain.seal(connection, run_id, len(rows), chain.of(rows))  # an older version has not done so
        return self._hold(self.writer(run_id, token, len(rows)))

    def read(self, run_id: str) -> list[Entry]:
        """Return the entries of a run, the first one `RunBegun`. `run_id` may be a beginning that fits one run only."""
        with self._reading() as connection:
            full = full_id(connection, run_id)
            rows = chain.verified(connection, full)
        entries = [decode(kind, body) for kind, body in rows]
        if not entries or not isinstance(entries[0], RunBegun):
            raise JournalMismatch(f"run {full} does not begin with its plan")
        return entries

    def runs(self, *, limit: int = 100, outcome: str | None = None) -> list[RunRow]:
        """Return the newest runs first."""
        with self._reading() as connection:
            return runs_in(connection, limit, outcome)

    def row(self, run_id: str) -> RunRow:
        """Return the row of one run. Raises `JournalError` when there is none."""
        with self._reading() as connection:
            return one_run(connection, full_id(connection, run_id))

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
            if self.holder.pid != os.getpid():
                self.holder = Holder.this_process()
            self._held[id(writer)] = writer
            if self._thread is None or not self._thread.is_alive():  # the second: in a process that was forked
                self._thread = threading.Thread(target=self._write, name="toolplan-journal", daemon=True)
                self._thread.start()
        return writer

    def _add(self, writer: RunWriter, rows: list[tuple[str, str]], outcome: str | None) -> None:
        with self._wake:
            batch = self._batch_of(writer)
            batch.rows += rows
            batch.outcome = outcome or batch.outcome

    def _sync(self, writer: RunWriter, tell: Callable[[JournalError | None], None], last: bool) -> None:
        with self._wake:
            if writer.failed is None and id(writer) not in self._held:
                writer.failed = JournalError(f"run {writer.run_id} has been given back")
            if writer.failed is not None and not last:
                tell(writer.failed)
                return
            batch = self._batch_of(writer)
            batch.done.append(tell)
            batch.is_last = batch.is_last or last
            self._urgent = True
            self._wake.notify()

    def _batch_of(self, writer: RunWriter) -> _Batch:
        batch = self._batches.get(id(writer))
        if batch is None:
            batch = self._batches[id(writer)] = _Batch(writer)
            if len(self._batches) == 1:
                self._wake.notify()
        return batch

    def _forget(self, writer: RunWriter) -> None:
        with self._wake:
            self._held.pop(id(writer), None)

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
                        batches += [_Batch(writer) for writer in held if id(writer) not in waiting]
                    self._commit(connection, batches)
                except Exception as error:  # whatever it is, whoever waits must hear of it
                    if connection is not None:
                        with suppress(sqlite3.Error):
                            connection.close()
                        connection = None
                    self._commit_each(batches, error)
                for batch in batches:
                    for tell in batch.done:
                        tell(batch.writer.failed)
        finally:
            if connection is not None:
                connection.close()

    def _commit(self, connection: sqlite3.Connection, batches: Sequence[_Batch]) -> None:
        connection.execute("BEGIN IMMEDIATE")
        try:
            written = [batch for batch in batches if self._write_batch(connection, batch)]
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        self._commits += 1
        for batch in written:
            batch.writer._next += len(batch.rows)  # pyright: ignore[reportPrivateUsage]
            batch.writer._begun = None  # pyright: ignore[reportPrivateUsage]

    def _commit_each(self, batches: Sequence[_Batch], error: Exception) -> None:
        """Commit what can be committed after a commit has failed: one run must not spoil it for the others."""
        for batch in batches:
            try:
                if len(batches) == 1:
                    raise error
                with closing(self._connect()) as connection:
                    self._commit(connection, [batch])
            except Exception as found:
                failure = found if isinstance(found, JournalError) else explain(self.path, found)
                batch.writer.failed = batch.writer.failed or failure

    def _write_batch(self, connection: sqlite3.Connection, batch: _Batch) -> bool:
        """Write what one run adds, if the run is still ours; return whether it was written."""
        writer, now = batch.writer, _now()
        first = writer._begun  # pyright: ignore[reportPrivateUsage]
        if first is not None:
            if connection.execute("SELECT 1 FROM runs WHERE run_id = ?", (first.run_id,)).fetchone():
                writer.failed = writer.failed or JournalError(f"run {first.run_id} is in the journal already")
            else:
                writer.token = take(connection, first.run_id, self.holder)
                row = (first.run_id, first.request, first.at, now)
                connection.execute("INSERT INTO runs VALUES (?, ?, ?, 'running', ?, 0, '')", row)
        until, holder = (0.0, "") if batch.is_last else (time.time() + LEASE_SECONDS, self.holder.name)
        renewed = connection.execute(
            "UPDATE leases SET until = ?, holder = ? WHERE run_id = ? AND token = ?",
            (until, holder, writer.run_id, writer.token),
        )
        if renewed.rowcount == 0:
            writer.failed = writer.failed or RunIsHeld(f"run {writer.run_id} was taken over by another process")
        if writer.failed is not None:  # what came before is lost, so what follows must not be there either
            return False
        numbers = itertools.count(writer._next)  # pyright: ignore[reportPrivateUsage]
        rows = [(writer.run_id, next(numbers), *row) for row in batch.rows]
        connection.executemany("INSERT INTO entries VALUES (?, ?, ?, ?)", rows)
        if rows:
            chain.extend(connection, writer.run_id, batch.rows)
        if batch.outcome is not None:
            changed = (batch.outcome, now, writer.run_id)
            connection.execute("UPDATE runs SET outcome = ?, changed = ? WHERE run_id = ?", changed)
        return True

    # Connections --------------------------------------------------------------------------------------------------

    def _connect(self) -> sqlite3.Connection:
        return connect(self.path, readonly=self.readonly)

    @contextmanager
    def _writing(self) -> Generator[sqlite3.Connection]:
        """Give a connection inside a transaction that is committed at the end."""
        if self.readonly:
            raise JournalError(f"the journal {self.path} was opened only to be read")
        with explained(self.path), closing(self._connect()) as connection:
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
        with explained(self.path), closing(self._connect()) as connection:
            connection.execute("BEGIN")
            yield connection


def _settle(done: asyncio.Future[None], error: JournalError | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)


def _now() -> str:
    return dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")
