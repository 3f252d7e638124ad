"""Journals as tests need them: written as a process left them that ended anywhere, and read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from toolplan.journal import Entry, Journal, RunBegun

__all__ = ["read", "written"]


def written(path: Path, entries: Sequence[Entry]) -> str:
    """Write entries as the journal of a process that ended there; return the run's id."""
    with Journal(path) as journal:
        begun = entries[0]
        assert isinstance(begun, RunBegun)
        writer = journal.begin(begun)
        for entry in entries[1:]:
            writer.add(entry)
        writer.close()
        return begun.run_id


def read(path: Path) -> list[Entry]:
    """Return the entries of the newest run."""
    with Journal(path, readonly=True) as journal:
        return journal.read(journal.runs()[0].run_id)
