"""The runs of a journal, one row each, and which of them somebody means."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Any

from toolplan.errors import JournalError
from toolplan.journal.lease import Holder, is_live

__all__ = ["RunRow", "full_id", "one_run", "runs_in"]


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


def runs_in(connection: sqlite3.Connection, limit: int, outcome: str | None) -> list[RunRow]:
    """Return the newest runs first, only those with this outcome if one is given."""
    where, given = (" WHERE outcome = ?", (outcome,)) if outcome is not None else ("", ())
    query = f"{_ROWS}{where} ORDER BY begun DESC, changed DESC LIMIT ?"
    return [_row(row) for row in connection.execute(query, (*given, limit)).fetchall()]


def one_run(connection: sqlite3.Connection, run_id: str) -> RunRow:
    """Return the row of a run, by its whole id."""
    return _row(connection.execute(f"{_ROWS} WHERE r.run_id = ?", (run_id,)).fetchone())


_ROWS = (
    "SELECT r.run_id, request, begun, outcome, changed, holder, host, pid, born, until FROM runs r"
    " LEFT JOIN leases l ON l.run_id = r.run_id"
)


def _row(row: tuple[Any, ...]) -> RunRow:
    run_id, request, begun, outcome, changed, holder, host, pid, born, until = row
    is_held = holder is not None and is_live(Holder(holder, host, pid, born), until)
    return RunRow(run_id, request, begun, outcome, changed, is_held)


def full_id(connection: sqlite3.Connection, run_id: str) -> str:
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
