"""What runs in a worker process: takes calls from its parent one by one, makes them, sends back what came of them.

A worker is a clean interpreter: no thread, lock or connection of the parent is in it, as there would be after a fork.
Nothing of the parent's program is imported but the module that the called function is in. When that is the program
itself, its file is loaded under another name, as `multiprocessing` does; `LOADING` then keeps a program without
`if __name__ == "__main__":` from running its plans a second time.

Messages are pickles, one after the other, over what were standard input and output. For each call the parent sends
`(name, module, file, pickled call, pickled nothing_happened)`; the worker answers `BEGUN` when it begins to make the
call, and then `(succeeded, value or exception)`. A worker that has heard nothing for `IDLE_SECONDS` ends. So does one
whose parent is gone, however busy it is: a thread reads what the parent sends, and sees the end of it.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import pickle
import queue
import runpy
import signal
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any, BinaryIO

from toolplan.errors import ToolFailed
from toolplan.run.threads import guarded

__all__ = ["BEGUN", "serve", "why_nothing_may_run"]

BEGUN = "begun"
IDLE_SECONDS = 30.0

_loading = ""


def why_nothing_may_run() -> str | None:
    """Return why no plan may be run here and now: the program is only being loaded for one function in it."""
    if not _loading:
        return None
    return (
        f"`{_loading}` runs a plan when it is imported, but it is only being loaded for a tool that runs in a process "
        'of its own; put what starts the program below `if __name__ == "__main__":`, or the tool into another module'
    )


def serve() -> None:
    """Make calls until the parent has gone or has been silent for long."""
    calls, answers = _streams()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; what it means the parent decides
    idle = _Idle()
    inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(calls, inbox), name="toolplan-parent", daemon=True).start()
    while True:
        idle.begin()
        name, module, file, call, kinds = inbox.get()
        idle.end()
        try:
            bound: Callable[[], Any] | None = _loaded(module, file, call)
            answer = b""
        except BaseException as error:
            bound, answer = None, _not_loaded(name, error)
        _send(answers, pickle.dumps(BEGUN))
        _send(answers, answer if bound is None else _made(name, bound, kinds))


def _listen(calls: BinaryIO, inbox: queue.SimpleQueue[Any]) -> None:
    """Pass on what the parent sends; end the process when there will be no more."""
    try:
        while True:
            inbox.put(pickle.load(calls))
    finally:
        os._exit(0)


class _Idle:
    """Ends the process when it has nothing to do for long. Never while it has something to do."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def begin(self) -> None:
        self._timer = threading.Timer(IDLE_SECONDS, self._leave)
        self._timer.daemon = True
        self._timer.start()

    def end(self) -> None:
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def _leave(self) -> None:
        with self._lock:
            if self._timer is not None:
                os._exit(0)


def _streams() -> tuple[BinaryIO, BinaryIO]:
    """Return the streams from and to the parent. What the tools print goes to standard error."""
    calls = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return calls, answers


def _send(answers: BinaryIO, message: bytes) -> None:
    answers.write(message)
    answers.flush()


def _loaded(module: str, file: str | None, call: bytes) -> Callable[[], Any]:
    """Return the call, after importing the module of its function, also one that is on no path."""
    global _loading
    _loading = file or module
    try:
        if module == "__main__":
            _load_program(file)
        elif module not in sys.modules:
            try:
                importlib.import_module(module)
            except ModuleNotFoundError:
                if file is None:
                    raise
                _load_file(module, file)
        return pickle.loads(call)
    finally:
        _loading = ""


def _load_program(file: str | None) -> None:
    """Load the parent's main module, which is known here as `__mp_main__`, and by its old name to pickles."""
    if "__mp_main__" in sys.modules:
        return
    if file is None:
        raise ImportError("it is defined in an interactive session; put it into a module")
    program = ModuleType("__mp_main__")
    program.__dict__.update(runpy.run_path(file, run_name="__mp_main__"))
    sys.modules["__main__"] = sys.modules["__mp_main__"] = program


def _load_file(name: str, file: str) -> None:
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"`{file}` cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise


def _made(name: str, bound: Callable[[], Any], kinds: bytes) -> bytes:
    """Make the call; return what came of it as a message."""
    try:
        value = guarded(bound)
    except BaseException as error:
        return _failure(error, kinds)
    try:
        return pickle.dumps((True, value))
    except Exception as error:
        text = f"`{name}` runs in a process of its own, and what it returned cannot be sent back: {error}"
        return pickle.dumps((False, ToolFailed(text)))


def _failure(error: BaseException, kinds: bytes) -> bytes:
    """Return the exception as a message; one that does not survive the journey is told in words.

    `kinds` are the exceptions that mean that nothing has happened: that is found out here where the class is lost.
    """
    try:
        message = pickle.dumps((False, error))
        pickle.loads(message)
    except Exception:
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return pickle.dumps((False, ToolFailed(text, effect_happened=False if _is_one(error, kinds) else None)))
    return message


def _is_one(error: BaseException, kinds: bytes) -> bool:
    try:
        return isinstance(error, pickle.loads(kinds))
    except Exception:  # classes that cannot be found here
        return False


def _not_loaded(name: str, error: BaseException) -> bytes:
    text = f"`{name}` cannot be loaded in a process of its own: {type(error).__name__}: {error}"
    return pickle.dumps((False, ToolFailed(text, effect_happened=False)))
