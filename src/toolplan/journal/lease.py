"""Who works on a run: one holder at a time, and a holder that is dead is replaced at once.

A lease is a row with a holder, a time and a number that grows with each taking (a fencing token). Every commit of a
run checks its own number in the same transaction, so a holder that was given up for dead and comes back can write
nothing more, and therefore, because an effect leaves only after its entry is durable, can do nothing more either.

On the same machine a dead holder is noticed by its process; a process id that was given out again is told apart by
the process's start. Elsewhere, and where that cannot be asked, the lease's time decides.
"""

from __future__ import annotations

import os
import socket
import sqlite3
import time
import uuid
from dataclasses import dataclass

from toolplan.errors import RunIsHeld

__all__ = ["LEASE_SECONDS", "Holder", "is_live", "take"]

LEASE_SECONDS = 30.0
"""How long a lease holds without being renewed. It is renewed with every commit and every third of this."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A process, as far as others can tell whether it still lives."""

    name: str
    host: str
    pid: int
    born: str

    @classmethod
    def this_process(cls) -> Holder:
        """Return a new holder in this process."""
        pid = os.getpid()
        return cls(uuid.uuid4().hex[:12], _host(), pid, _born(pid))

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host.partition(':')[0]}"


def is_live(holder: Holder, until: float) -> bool:
    """Return whether somebody is at work on a run whose lease says this."""
    return bool(holder.name) and until > time.time() and _lives(holder)


def take(connection: sqlite3.Connection, run_id: str, holder: Holder) -> int:
    """Take the lease of a run inside an open write transaction; return its fencing token.

    Raises `RunIsHeld` while another holder lives.
    """
    row = connection.execute(
        "SELECT holder, host, pid, born, token, until FROM leases WHERE run_id = ?", (run_id,)
    ).fetchone()
    token = 1
    if row is not None:
        name, host, pid, born, before, until = row
        token = before + 1
        other = Holder(name, host, pid, born)
        if is_live(other, until):
            raise RunIsHeld(f"run {run_id} is being worked on by {other}", holder=str(other))
    connection.execute(
        "INSERT OR REPLACE INTO leases (run_id, holder, host, pid, born, token, until) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (run_id, holder.name, holder.host, holder.pid, holder.born, token, time.time() + LEASE_SECONDS),
    )
    return token


def _lives(holder: Holder) -> bool:
    """Return whether a holder whose time is not over can still be alive."""
    if holder.host != _host():
        return True
    try:
        os.kill(holder.pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    state, born = _process(holder.pid)
    if state in ("Z", "X"):  # dead, and only not yet buried by its parent
        return False
    return not holder.born or born in ("", holder.born)


def _host() -> str:
    """Return what two processes share exactly when a process id means the same to both."""
    return f"{socket.gethostname()}:{_boot()}:{_namespace()}"


def _boot() -> str:
    """Return what tells one start of the machine from another, where there is such a thing."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()[:8]
    except OSError:
        return ""


def _namespace() -> str:
    """Return the name of the process-id namespace: containers have their own."""
    try:
        return os.readlink("/proc/self/ns/pid").strip("pid:[]")
    except OSError:
        return ""


def _born(pid: int) -> str:
    return _process(pid)[1]


def _process(pid: int) -> tuple[str, str]:
    """Return a process's state and when it started, in the system's own units; empty where that cannot be asked."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        return fields[0], fields[19]
    except (OSError, IndexError):
        return "", ""
