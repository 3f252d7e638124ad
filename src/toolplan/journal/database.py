"""The SQLite file of a journal: its tables, its connections, and what goes wrong with it, as errors that help."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from toolplan.errors import JournalError
from toolplan.journal import chain
from toolplan.journal.entries import FORMAT

__all__ = ["SCHEMA", "check_format", "connect", "damaged", "explain", "explained"]

ROOM_BYTES = 65_536
"""With less room than this, an input or output error of SQLite means that the disk is full."""

BUSY_SECONDS = 30.0
"""How long a commit waits for other processes' commits."""

SCHEMA = """
CREATE TABLE IF NOT EXISTS journal (format INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS runs (
    run_id TEXT PRIMARY KEY, request TEXT NOT NULL, begun TEXT NOT NULL, outcome TEXT NOT NULL, changed TEXT NOT NULL,
    written INTEGER, chain TEXT
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


def connect(path: Path, *, readonly: bool) -> sqlite3.Connection:
    """Return a connection whose commits are durable."""
    mode = "ro" if readonly else "rwc"
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        if not readonly:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA fullfsync = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def check_format(connection: sqlite3.Connection, path: Path, *, readonly: bool) -> None:
    """Make the tables where there are none. Raises `JournalError` for a file that is no journal of this version."""
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if "journal" not in tables:
        if tables:
            raise JournalError(f"{path} is a database, but no journal of toolplan")
        if readonly:
            raise JournalError(f"{path} is empty")
        connection.execute("BEGIN IMMEDIATE")
        for statement in SCHEMA.split(";"):
            connection.execute(statement)
        if connection.execute("SELECT COUNT(*) FROM journal").fetchone() == (0,):
            connection.execute("INSERT INTO journal VALUES (?)", (FORMAT,))
        connection.execute("COMMIT")
    elif not readonly:
        chain.make_room(connection)
    (found,) = connection.execute("SELECT MAX(format) FROM journal").fetchone()
    if found > FORMAT:
        raise JournalError(
            f"{path} was written by a newer version of toolplan (format {found}; this one knows {FORMAT})"
        )


@contextmanager
def explained(path: Path) -> Generator[None]:
    """Turn what SQLite and the system raise into a `JournalError` that says what to do."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise explain(path, error) from error


def explain(path: Path, error: Exception) -> JournalError:
    """Return what an error of SQLite or the system means, as a `JournalError` that says what to do."""
    text = str(error)
    if "full" in text or "No space" in text or ("disk I/O" in text and _is_full(path)):
        return JournalError(f"the journal {path} cannot be written: the disk is full; nothing unwritten was started")
    if "readonly" in text or "read-only" in text or isinstance(error, PermissionError):
        return JournalError(f"the journal {path} cannot be written: it, or its folder, is read-only")
    if "unable to open" in text or isinstance(error, FileExistsError | NotADirectoryError):
        return JournalError(f"the journal {path} cannot be opened: its folder is missing or not writable")
    if "not a database" in text:
        return JournalError(f"{path} is no journal: the file is not a database")
    if "malformed" in text or "disk image" in text or "decode to UTF-8" in text:
        return damaged(path)
    if "locked" in text or "busy" in text:
        return JournalError(f"the journal {path} is locked by another program for more than {BUSY_SECONDS:g} seconds")
    return JournalError(f"the journal {path} cannot be used: {text}")


def _is_full(path: Path) -> bool:
    """Return whether so little room is left that SQLite cannot make its files beside the journal."""
    import shutil  # 2 ms to import

    with suppress(OSError):
        return shutil.disk_usage(path.parent).free < ROOM_BYTES
    return False


def damaged(path: Path) -> JournalError:
    """Return the error of a file whose contents are not what was written."""
    return JournalError(f"the journal {path} is damaged; what can be saved of it: `sqlite3 FILE .recover`")
