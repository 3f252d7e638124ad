"""Whether the entries of a run are those that were written: their number, and a hash over all of them.

Both stand in the row of the run and are committed with the entries they count. The hash is chained, each over the one
before and one entry, so that appending costs what is appended. It finds damage, such as lost entries or overwritten
bytes; it is no signature, and it cannot find that the database as a whole is an earlier one, as when whole commits are
cut off the end of the write-ahead log. A run whose row has no count was written by a version that did not count.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence

from toolplan.errors import JournalError

__all__ = ["extend", "make_room", "of", "seal", "verified"]

Row = tuple[str, str]
"""Kind and body of an entry."""


def of(rows: Sequence[Row], before: str = "") -> str:
    """Return the hash over what `before` is the hash of, and these rows after it."""
    for kind, body in rows:
        data = f"{before}\n{kind}\n{body}".encode("utf-8", "surrogatepass")
        before = hashlib.sha256(data).hexdigest()[:32]
    return before


def make_room(connection: sqlite3.Connection) -> None:
    """Add the columns to a journal that was made without them."""
    if not _has_columns(connection):
        connection.execute("BEGIN IMMEDIATE")
        if not _has_columns(connection):  # another process may have been first
            connection.execute("ALTER TABLE runs ADD COLUMN written INTEGER")
            connection.execute("ALTER TABLE runs ADD COLUMN chain TEXT")
        connection.execute("COMMIT")


def extend(connection: sqlite3.Connection, run_id: str, rows: Sequence[Row]) -> None:
    """Count rows that are being added to a run, in the transaction that adds them."""
    found = connection.execute("SELECT written, chain FROM runs WHERE run_id = ?", (run_id,)).fetchone()
    if found is None:
        raise JournalError(f"the journal has lost run {run_id}, which is being written; nothing of it can be trusted")
    written, before = found
    if written is not None:
        seal(connection, run_id, written + len(rows), of(rows, before))


def seal(connection: sqlite3.Connection, run_id: str, written: int, chain: str) -> None:
    """Note how many entries a run has, and the hash over them."""
    connection.execute("UPDATE runs SET written = ?, chain = ? WHERE run_id = ?", (written, chain, run_id))


def verified(connection: sqlite3.Connection, run_id: str) -> list[Row]:
    """Return the rows of a run. Raises `JournalError` when they are not those that were written."""
    found = connection.execute(
        "SELECT number, kind, body FROM entries WHERE run_id = ? ORDER BY number", (run_id,)
    ).fetchall()
    rows = [(kind, body) for _, kind, body in found]
    written, chain = None, ""
    if _has_columns(connection):
        written, chain = connection.execute("SELECT written, chain FROM runs WHERE run_id = ?", (run_id,)).fetchone()
    count = len(rows) if written is None else written
    lost = next((at for at in range(count) if at >= len(found) or found[at][0] != at), None)
    if lost is not None:
        raise JournalError(f"the journal has lost entry {lost} of run {run_id}; nothing of it can be trusted")
    if written is not None and (len(rows), of(rows)) != (written, chain):
        raise JournalError(f"the entries of run {run_id} are not those that were written; nothing of it can be trusted")
    return rows


def _has_columns(connection: sqlite3.Connection) -> bool:
    columns = {name for _, name, *_ in connection.execute("PRAGMA table_info(runs)")}
    return {"written", "chain"} <= columns
