"""Where the command line keeps the runs of a user: in the system's folder for the state of programs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["default_path"]


def default_path() -> Path:
    """Return the path of the user's journal. Nothing is made."""
    named = os.environ.get("TOOLPLAN_JOURNAL")
    return Path(named) if named else _folder() / "toolplan" / "journal.db"


def _folder() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    state = os.environ.get("XDG_STATE_HOME", "")
    return Path(state) if os.path.isabs(state) else Path.home() / ".local" / "state"
