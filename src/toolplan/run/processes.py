"""Worker processes for tools that keep a processor busy: one call at a time in each, and each can be ended.

`concurrent.futures` cannot end one call: killing a worker of its pool breaks the pool, so that all other calls in it
fail with it. Here a thread waits for each call, and a killed worker is the end of that call only. Workers are kept for
the next call, of any run, and end by themselves when there is none for a while; starting one takes as long as
importing the tool's module does. See decision 0011.
"""

from __future__ import annotations

import atexit
import functools
import pickle
import signal
import subprocess
import sys
import threading
import types
from collections.abc import Callable
from typing import IO, Any, cast

from toolplan.errors import ToolFailed
from toolplan.run.worker import BEGUN

__all__ = ["Job", "ProcessDied", "busy_workers", "end_workers"]

_START = (
    "import sys; sys.path[:] = {path!r}; sys.argv[:] = {arguments!r}; from toolplan.run.worker import serve; serve()"
)


class ProcessDied(Exception):
    """The worker ended: it was killed, or ran out of memory, or crashed. `begun` says whether it had begun the call."""

    def __init__(self, message: str, *, begun: bool = True) -> None:
        super().__init__(message)
        self.begun = begun


class _Worker:
    def __init__(self) -> None:
        command = [sys.executable, "-c", _START.format(path=sys.path, arguments=getattr(sys, "argv", [""]))]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.calls = cast("IO[bytes]", self.process.stdin)
        self.answers = cast("IO[bytes]", self.process.stdout)

    def end(self) -> None:
        """End the process, whatever it does, and take note of its end."""
        self.process.kill()
        self.process.wait()
        for stream in (self.calls, self.answers):
            try:
                stream.close()
            except OSError:  # something was still to be written
                continue


class _Answers(pickle.Unpickler):
    """Reads what a worker sends, to whom the main module of this program has another name."""

    def find_class(self, module: str, name: str) -> Any:
        """Return what has this name here."""
        return super().find_class("__main__" if module == "__mp_main__" else module, name)


class _Pool:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.idle: list[_Worker] = []
        self.busy: set[_Worker] = set()

    def take(self) -> tuple[_Worker, bool]:
        """Return a worker, and whether it is a new one."""
        with self.lock:
            while self.idle:
                worker = self.idle.pop()
                if worker.process.poll() is None:
                    self.busy.add(worker)
                    return worker, False
                worker.end()
        worker = _Worker()
        with self.lock:
            self.busy.add(worker)
        return worker, True

    def give_back(self, worker: _Worker) -> None:
        with self.lock:
            self.busy.discard(worker)
            self.idle.append(worker)
            for other in [w for w in self.idle if w.process.poll() is not None]:
                self.idle.remove(other)
                other.end()

    def drop(self, worker: _Worker) -> None:
        with self.lock:
            self.busy.discard(worker)
        worker.end()


_POOL = _Pool()


class Job:
    """One call in a worker process. `run()` is for a thread: it returns what the call returns, or raises its exception.

    Raises `ToolFailed` when the call cannot be sent or its result cannot be brought back, and `ProcessDied` when the
    worker ended, as it does after `kill()`.
    """

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        bound: Callable[[], Any],
        nothing_happened: tuple[type[Exception], ...] = (),
    ) -> None:
        """`bound` is the call, `function` the function that it calls in the end, `name` its name in messages.

        `nothing_happened` are the exceptions that say so, for those that cannot be brought back.
        """
        self._nothing_happened = nothing_happened
        self._name = name
        self._function = function
        self._bound = bound
        self._lock = threading.Lock()
        self._worker: _Worker | None = None
        self._killed = False

    def kill(self) -> None:
        """End the call with its process. Other calls go on. Nothing happens when the call has ended."""
        with self._lock:
            self._killed = True
            if self._worker is not None:
                self._worker.process.kill()

    def run(self) -> Any:
        """Return what the call returns."""
        message = self._message()
        while True:
            worker, is_new = _POOL.take()
            answer = self._answer(worker, message)
            if answer is not None:
                succeeded, outcome = answer
                if succeeded:
                    return outcome
                raise outcome
            if is_new or self._killed:  # one that had waited for long may have ended by itself just now
                raise ProcessDied(f"the process of `{self._name}` ended before the call began", begun=False)

    def _message(self) -> bytes:
        module, file = _home_of(self._function)
        try:
            return pickle.dumps((self._name, module, file, pickle.dumps(self._bound), self._kinds()))
        except Exception as error:
            raise ToolFailed(
                f"`{self._name}` cannot be sent to a process of its own: {error}; what runs there is a function at the "
                "top of a module, and its arguments can be pickled",
                effect_happened=False,
            ) from error

    def _kinds(self) -> bytes:
        try:
            return pickle.dumps(self._nothing_happened)
        except Exception:  # classes that are found by no name
            return pickle.dumps(())

    def _answer(self, worker: _Worker, message: bytes) -> tuple[bool, Any] | None:
        """Return what the worker answers; None when it ended before it began to make the call."""
        begun = False
        try:
            with self._lock:
                self._worker = worker
                if self._killed:
                    worker.process.kill()
            worker.calls.write(message)
            worker.calls.flush()
            begun = pickle.load(worker.answers) == BEGUN
            answer = _Answers(worker.answers).load()
        except (OSError, EOFError, pickle.UnpicklingError):
            self._forget_worker()
            _POOL.drop(worker)
            if not begun:
                return None
            text = f"the process of `{self._name}` ended while the call was made ({_ending(worker)})"
            raise ProcessDied(text) from None
        except BaseException as error:  # an answer that means nothing here
            self._forget_worker()
            _POOL.drop(worker)
            text = f"what `{self._name}` returned cannot be read here: {type(error).__name__}: {error}"
            raise ToolFailed(text) from error
        self._forget_worker()
        _POOL.give_back(worker)
        return answer

    def _forget_worker(self) -> None:
        with self._lock:
            self._worker = None


def _home_of(function: Any) -> tuple[str, str | None]:
    """Return the module that a function is in, and the module's file."""
    while isinstance(function, functools.partial | types.MethodType):
        function = cast("Any", function.func if isinstance(function, functools.partial) else function.__func__)
    name = str(getattr(function, "__module__", None) or type(function).__module__)
    return name, getattr(sys.modules.get(name), "__file__", None)


def _ending(worker: _Worker) -> str:
    code = worker.process.returncode
    if code is not None and code < 0:
        try:
            return signal.Signals(-code).name
        except ValueError:
            return f"signal {-code}"
    return f"exit code {code}"


def busy_workers() -> int:
    """Return how many workers make a call now."""
    return len(_POOL.busy)


def end_workers() -> None:
    """End all workers. A call in flight fails with `ProcessDied`."""
    with _POOL.lock:
        idle, _POOL.idle = _POOL.idle, []
        busy = list(_POOL.busy)
    for worker in idle:
        worker.end()
    for worker in busy:
        worker.process.kill()


atexit.register(end_workers)
