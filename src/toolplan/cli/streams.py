"""Standard output for results and nothing else; standard error for everything a person sees meanwhile.

While a command runs, whatever is written to standard output by others (a tool that prints, a program that a tool
starts) goes to standard error, so that `toolplan ask ... > answer.txt` and `--json` hold what was asked for.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Generator
from typing import Any, TextIO

from toolplan.visible import visible

__all__ = [
    "OutputFailed",
    "clear_screen",
    "results_apart",
    "say",
    "say_json",
    "set_encoding",
    "stream_for_results",
    "warn",
]

_apart: TextIO | None = None
"""The stream for results while they are kept apart."""


def set_encoding() -> None:
    """Write UTF-8 whatever the locale says, and half a surrogate pair as JSON would, with a backslash."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] - files have it, other streams need not


@contextlib.contextmanager
def results_apart() -> Generator[None]:
    """Keep standard output for `say` and `say_json`; what others write there goes to standard error."""
    global _apart
    before = sys.stdout, _apart
    with _own_standard_output() as _apart:
        sys.stdout = sys.stderr
        try:
            yield
        finally:
            sys.stdout, _apart = before


@contextlib.contextmanager
def _own_standard_output() -> Generator[TextIO]:
    """Give a stream on the real standard output, whose descriptor means standard error meanwhile."""
    stdout: TextIO | None = sys.stdout
    if stdout is None:  # pyright: ignore[reportUnnecessaryComparison] - it is None when the descriptor was closed
        with open(os.devnull, "w", encoding="utf-8") as nowhere:
            yield nowhere
        return
    try:
        is_real = stdout.fileno() == 1
    except (OSError, ValueError):
        is_real = False
    if not is_real:  # a test's or an embedder's own stream; there is no descriptor to guard
        yield stdout
        return
    stdout.flush()
    kept = os.dup(1)
    stream = open(kept, "w", encoding="utf-8", errors="backslashreplace", buffering=1 if stdout.isatty() else -1)  # noqa: SIM115 - closing it may fail when the reader has gone
    try:
        os.dup2(2, 1)
    except OSError:  # standard error is closed
        with open(os.devnull, "w", encoding="utf-8") as nowhere:
            os.dup2(nowhere.fileno(), 1)
    try:
        yield stream
    finally:
        with contextlib.suppress(OSError):
            os.dup2(kept, 1)
        with contextlib.suppress(OSError):
            stream.close()


def stream_for_results() -> TextIO:
    """Return the stream that results go to."""
    return _apart or sys.stdout


class OutputFailed(Exception):
    """A result cannot be written: the disk is full, say. A reader that has gone is a `BrokenPipeError`."""


def say(text: str = "") -> None:
    """Print a result. Raises `OutputFailed` or `BrokenPipeError`."""
    stream = stream_for_results()
    _write(visible(text) if stream.isatty() else text, stream)


def say_json(value: Any, *, in_one_line: bool = False) -> None:
    """Print a JSON document. Raises `OutputFailed` or `BrokenPipeError`."""
    indent = None if in_one_line else 2
    try:
        text = json.dumps(value, ensure_ascii=False, indent=indent)
    except ValueError:  # a number of more than 4,300 digits, which Python writes only when asked to
        sys.set_int_max_str_digits(0)
        text = json.dumps(value, ensure_ascii=False, indent=indent)
    _write(text, stream_for_results())


def clear_screen() -> bool:
    """Clear the terminal that results are shown on; return whether there is one that can be cleared."""
    stream = stream_for_results()
    if not stream.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        return False
    _write("\x1b[2J\x1b[H", stream, end="")
    return True


def _write(text: str, stream: TextIO, end: str = "\n") -> None:
    try:
        print(text, file=stream, end=end, flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputFailed(f"the output cannot be written: {error.strerror or error}") from error


def warn(text: str = "", *, end: str = "\n") -> None:
    """Print something for a person on standard error; if nobody can read it there, that is no failure."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        print(visible(text), file=sys.stderr, end=end, flush=True)
