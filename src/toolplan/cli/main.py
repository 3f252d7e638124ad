"""From arguments to an exit code: whatever happens, a person gets a sentence and a program one JSON document."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from cyclopts import CycloptsError

from toolplan.cli.app import app
from toolplan.cli.outputs import FAILED, INTERRUPTED, OK, USAGE, complain
from toolplan.cli.streams import results_apart, set_encoding, warn
from toolplan.errors import ToolplanError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["main"]

GRACE_SECONDS = 0.3
"""How long a call that was given up may take to notice, before the process ends without it."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with its code."""
    set_encoding()
    tokens = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = _run(tokens, as_json="--json" in tokens)
    except BrokenPipeError:  # whoever read our output has seen enough
        code = FAILED
    except KeyboardInterrupt:  # a second one, or one while the result was printed
        code = INTERRUPTED
    _leave(code)


def _run(tokens: list[str], *, as_json: bool) -> int:
    try:
        command, bound, _ = app.parse_args(tokens, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        from toolplan.cli.usage import usage_message

        return complain(usage_message(error, tokens), USAGE, as_json=as_json)
    if command.__module__ != "toolplan.cli.app":  # --help and --version
        command(*bound.args, **bound.kwargs)
        return OK
    with results_apart():
        return _guarded(lambda: command(*bound.args, **bound.kwargs), as_json=as_json)


def _guarded(command: Callable[[], int], *, as_json: bool) -> int:
    """Return the command's exit code; turn what it raises into words and a code."""
    try:
        return command()
    except UsageError as error:
        return complain(str(error), USAGE, as_json=as_json)
    except ToolplanError as error:
        return complain(str(error), FAILED, as_json=as_json)
    except KeyboardInterrupt:
        return complain("interrupted", INTERRUPTED, as_json=as_json)
    except BrokenPipeError:
        raise
    except Exception as error:
        if os.environ.get("TOOLPLAN_DEBUG"):
            import traceback

            traceback.print_exc()
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        hint = "this is a bug of toolplan; set TOOLPLAN_DEBUG=1 and run it again to see where it happened"
        return complain(f"unexpected {what}\n{hint}", FAILED, as_json=as_json)


def _leave(code: int) -> NoReturn:
    """End the process, without the calls that cannot be ended: Python would wait for their threads."""
    for stream in filter(None, (sys.stdout, sys.stderr)):  # None when it was closed from the start
        try:
            stream.flush()
        except (OSError, ValueError):  # it is closed; Python must not stumble over it again on its way out
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            code = code or FAILED
    deadline = time.monotonic() + GRACE_SECONDS
    calls = [thread for thread in threading.enumerate() if thread.name.startswith("toolplan")]
    for thread in calls:
        thread.join(max(0.0, deadline - time.monotonic()))
    if any(thread.is_alive() for thread in calls) or _busy_processes():
        warn("toolplan: a call was still running; it was ended with the program")
        os._exit(code)
    sys.exit(code)


def _busy_processes() -> bool:
    """Whether a tool's own process is still at work; if so, it is ended."""
    if "multiprocessing" not in sys.modules:
        return False
    import multiprocessing

    children = multiprocessing.active_children()
    deadline = time.monotonic() + GRACE_SECONDS
    for child in children:
        child.join(max(0.0, deadline - time.monotonic()))
    alive = [child for child in children if child.is_alive()]
    for child in alive:
        child.kill()
    return bool(alive)
