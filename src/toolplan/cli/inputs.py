"""What the commands read: plans from files or standard input, tools, models."""

from __future__ import annotations

import datetime as dt
import importlib
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from toolplan.cli.streams import warn
from toolplan.errors import UsageError

if TYPE_CHECKING:
    from toolplan.models import Model
    from toolplan.parse import Reading
    from toolplan.tools import ToolSet

__all__ = ["STDIN", "load_toolset", "model_for", "moment", "read_plan", "read_request", "read_text"]

STDIN = "<stdin>"
"""What `-` is called once the command line has been read, and in messages."""


def read_plan(plan: str, toolset: ToolSet | None) -> Reading:
    """Return what a file, or standard input, holds: mostly a plan. Raises `UsageError` or `PlanRejected`."""
    from toolplan.parse import parse

    text, name = read_text(plan, "a plan")
    return parse(text, notation="auto", tools=toolset, name=name)


def read_request(request: str) -> str:
    """Return the request; standard input holds it for `-`. Raises `UsageError` when it says nothing."""
    text = read_text(request, "a request")[0] if request == STDIN else request
    if not text.strip():
        raise UsageError("the request is empty; say what you want done")
    return text.strip()


def read_text(source: str, what: str) -> tuple[str, str]:
    """Return the text of a file, or of standard input, and what messages call it. Raises `UsageError`."""
    if source == STDIN:
        stdin: TextIO | None = sys.stdin
        if stdin is None:  # pyright: ignore[reportUnnecessaryComparison] - it is None when the descriptor was closed
            raise UsageError(f"standard input is closed, so {what} cannot be read from it")
        if stdin.isatty():
            warn(f"reading {what} from standard input; end it with Ctrl-D")
        buffer = getattr(stdin, "buffer", None)
        data: bytes = buffer.read() if buffer is not None else stdin.read().encode()
        name = STDIN
    else:
        path = Path(source)
        try:
            data, name = path.read_bytes(), path.name
        except FileNotFoundError:
            raise UsageError(
                f"there is no file `{source}`; give a file with a plan, or `-` for standard input"
            ) from None
        except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
            raise UsageError(f"`{source}` cannot be read: {getattr(error, 'strerror', None) or error}") from None
    try:
        return data.decode("utf-8-sig"), name
    except UnicodeDecodeError as error:
        raise UsageError(f"`{name}` is not UTF-8 text (byte {error.start}); save it as UTF-8") from None


def load_toolset(references: Sequence[str]) -> ToolSet:
    """Return the tools of all the files and modules named.

    Raises `UsageError`; where the user's own code failed, it shows where, in Python's own form.
    """
    from toolplan.tools import ToolSet
    from toolplan.toolsources.local import load_tools

    tools: list[ToolSet] = []
    for reference in references:
        try:
            found = load_tools(reference)
            if not len(found):
                raise UsageError(f"`{reference}` has no tools in it")
            tools.append(found)
        except UsageError as error:
            place = reference.rpartition(":")[0] or reference
            named = str(error) if place in str(error) else f"`{reference}`: {error}"
            raise UsageError(f"{named}\n{_story(error)}".rstrip()) from error
    return ToolSet.of(tools)


def _story(error: UsageError) -> str:
    """Return the part of the traceback that is about the user's own code; empty when none is."""
    cause = error.__cause__ or error
    if isinstance(cause, SyntaxError):  # its own lines name the place
        return "".join(traceback.format_exception_only(cause)).rstrip()
    ours = (str(Path(__file__).parent.parent), str(Path(importlib.__file__).parent), "<frozen")
    frames = traceback.extract_tb(cause.__traceback__)
    return "".join(traceback.format_list([f for f in frames if not f.filename.startswith(ours)])).rstrip()


def model_for(names: Sequence[str] | None, base_url: str | None) -> Model | None:
    """Return the model named, or the one the environment names, or None; of several names one model that asks in turn.

    Raises `UsageError`.
    """
    from toolplan.models import model_from_environment

    return model_from_environment([name for name in names if name] if names else None, base_url)


def moment(now: str | None) -> str:
    """Return the ISO time that a plan sees: the one given, else the clock's. Raises `UsageError`."""
    if now is None:
        return dt.datetime.now().isoformat(timespec="seconds")
    try:
        dt.datetime.fromisoformat(now)
    except ValueError:
        raise UsageError(f"`--now {now}` is no ISO date or time; write `--now 2026-03-18T09:00`") from None
    return now
