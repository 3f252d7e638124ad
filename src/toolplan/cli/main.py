"""From arguments to an exit code: whatever happens, a person gets a sentence and a program one JSON document."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from cyclopts import CycloptsError

from toolplan.cli.app import COMMANDS, app
from toolplan.cli.inputs import STDIN
from toolplan.cli.outputs import FAILED, INTERRUPTED, OK, USAGE, complain
from toolplan.cli.streams import OutputFailed, results_apart, set_encoding, stream_for_results, warn
from toolplan.errors import ToolplanError, UsageError

if TYPE_CHECKING:
    from threading import Thread

__all__ = ["main"]

GRACE_SECONDS = 0.3
"""How long a call that was given up may take to notice, before the process ends without it."""

ANSWERING = ("ask", "run", "resume", "demo")
"""The commands whose documents have the keys of a result, on failures too."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with its code."""
    set_encoding()
    tokens = list(sys.argv[1:] if arguments is None else arguments)
    earlier = frozenset(_calls())
    ended_by: list[int] = []
    with results_apart(), _as_ctrl_c(ended_by):
        try:
            code = _run(tokens)
        except BrokenPipeError:  # whoever read our output has seen enough
            code = FAILED
        except OutputFailed as error:
            warn(f"toolplan: {error}")
            code = FAILED
        except KeyboardInterrupt:  # another one, while the outcome of the first was printed
            code = INTERRUPTED
        if ended_by and code == INTERRUPTED:
            code = 128 + ended_by[0]
        _leave(code, earlier)


@contextlib.contextmanager
def _as_ctrl_c(ended_by: list[int]) -> Generator[None]:
    """Let the signals that ask a program to end do what Ctrl-C does, and note which one it was."""
    asking = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    is_main = threading.current_thread() is threading.main_thread()
    taken = [number for number in asking if is_main and signal.getsignal(number) is signal.SIG_DFL]

    def end(number: int, frame: object) -> None:
        ended_by.append(number)
        if signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, None):  # a shell has put us in the background
            raise KeyboardInterrupt
        signal.raise_signal(signal.SIGINT)

    for number in taken:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


def _run(tokens: list[str]) -> int:
    """Return the exit code; print why, where the command itself could not."""
    as_json = "--json" in tokens or "--format=json" in tokens or ("--format", "json") in itertools.pairwise(tokens)
    whole = tokens[0:1] and tokens[0] in ANSWERING
    tokens = [STDIN if token == "-" else token for token in tokens]  # a lone hyphen would be taken for an option
    try:
        command, bound, _ = app.parse_args(tokens, exit_on_error=False, print_error=False)
        if command not in [known for known, _ in COMMANDS.values()]:
            return _print_help(lambda: command(*bound.args, **bound.kwargs))
        return command(*bound.args, **bound.kwargs)
    except CycloptsError as error:
        from toolplan.cli.usage import usage_message

        code, message = USAGE, usage_message(error)
    except UsageError as error:
        code, message = USAGE, str(error)
    except ToolplanError as error:
        code, message = FAILED, str(error)
    except KeyboardInterrupt:
        code, message = INTERRUPTED, "interrupted"
    except (BrokenPipeError, OutputFailed):
        raise
    except Exception as error:
        code, message = FAILED, _unexpected(error)
    return complain(message, code, as_json=as_json, whole=bool(whole))


def _print_help(show: Callable[[], Any]) -> int:
    """Print the help or the version, which the library for command lines prints itself."""
    try:
        with contextlib.redirect_stdout(stream_for_results()):
            show()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputFailed(f"the help cannot be written: {error.strerror or error}") from error
    return OK


def _unexpected(error: Exception) -> str:
    if os.environ.get("TOOLPLAN_DEBUG"):
        import traceback

        traceback.print_exc()
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    hint = "this is a bug of toolplan; set TOOLPLAN_DEBUG=1 and run it again to see where it happened"
    return f"unexpected {what}\n{hint}"


def _leave(code: int, earlier: frozenset[Thread]) -> NoReturn:
    """End the process, without the calls that cannot be ended: Python would wait for their threads.

    `earlier` are those of somebody who was here before us.
    """
    try:
        calls = [call for call in _calls() if call not in earlier]
        deadline = time.monotonic() + GRACE_SECONDS
        for call in calls:
            call.join(max(0.0, deadline - time.monotonic()))
        if not any(call.is_alive() for call in calls):
            sys.exit(code)
        warn("toolplan: a call was still running; it was ended with the program")
    except KeyboardInterrupt:
        code = INTERRUPTED
    if "toolplan.run.processes" in sys.modules:
        from toolplan.run import end_workers

        end_workers()  # they would outlive us
    os._exit(code)


def _calls() -> list[Thread]:
    """Return the threads in which tools run, or in which somebody waits for a tool that runs in a process."""
    return [thread for thread in threading.enumerate() if thread.name.startswith("toolplan")]
