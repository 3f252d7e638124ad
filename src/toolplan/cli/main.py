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
from toolplan.cli.streams import OutputFailed, results_apart, set_encoding, warn
from toolplan.errors import ToolplanError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.process import BaseProcess

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
    except OutputFailed as error:
        warn(f"toolplan: {error}")
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
        code, message = _guarded(lambda: command(*bound.args, **bound.kwargs))
        if message is not None:
            complain(message, code, as_json=as_json, whole=command.__name__ in ("ask", "run", "demo"))
    return code


def _guarded(command: Callable[[], int]) -> tuple[int, str | None]:
    """Return the command's exit code, or one for what it raised, with a message."""
    try:
        return command(), None
    except UsageError as error:
        return USAGE, str(error)
    except ToolplanError as error:
        return FAILED, str(error)
    except KeyboardInterrupt:
        return INTERRUPTED, "interrupted"
    except (BrokenPipeError, OutputFailed):
        raise
    except Exception as error:
        if os.environ.get("TOOLPLAN_DEBUG"):
            import traceback

            traceback.print_exc()
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        hint = "this is a bug of toolplan; set TOOLPLAN_DEBUG=1 and run it again to see where it happened"
        return FAILED, f"unexpected {what}\n{hint}"


def _leave(code: int) -> NoReturn:
    """End the process, without the calls that cannot be ended: Python would wait for their threads."""
    for stream in filter(None, (sys.stdout, sys.stderr)):  # None when it was closed from the start
        try:
            stream.flush()
        except (OSError, ValueError):  # it is closed; Python must not stumble over it again on its way out
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            code = code or FAILED
    calls = [*_processes(), *(thread for thread in threading.enumerate() if thread.name.startswith("toolplan"))]
    deadline = time.monotonic() + GRACE_SECONDS
    for call in calls:
        call.join(max(0.0, deadline - time.monotonic()))
    if any(call.is_alive() for call in calls):
        warn("toolplan: a call was still running; it was ended with the program")
        for process in _processes():
            process.kill()
        os._exit(code)
    sys.exit(code)


def _processes() -> list[BaseProcess]:
    """Return the processes in which tools run; they would outlive this one."""
    if "multiprocessing" not in sys.modules:
        return []
    import multiprocessing

    return multiprocessing.active_children()
