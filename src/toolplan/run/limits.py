"""Which gates a call has to pass: its tool's own, and those of the process.

A gate lives as long as the function that the tool was made of, so that the agents of a program, and one agent after
the other, share it. The same function under another name or with other limits has another gate.
"""

from __future__ import annotations

import os
import threading
import types
import weakref
from typing import Any, cast

from toolplan.errors import UsageError
from toolplan.run.gate import Gate
from toolplan.tools import Tool

__all__ = ["gates_of", "is_gated", "set_process_limits"]

_THREADS = Gate("calls in threads", 256)
_PROCESSES = Gate("calls in processes of their own", os.cpu_count() or 1)
_CALLS = Gate("calls in flight")
_all_calls = False

_LOCK = threading.Lock()
_own: dict[int, tuple[weakref.ref[Any], dict[Any, Gate]]] = {}


def set_process_limits(*, calls: int | None = None, threads: int | None = 256, processes: int | None = None) -> None:
    """Bound the calls that all runs of this process together have in flight; None is no bound.

    `calls` counts every call of a tool, `threads` those of plain functions, `processes` those of tools that run in
    processes of their own (None: as many as there are processors). Runs share what there is fairly. Calls in flight
    are not touched; a first bound on `calls` holds for the runs that begin after it. Raises `UsageError`.
    """
    global _all_calls
    for name, value in (("calls", calls), ("threads", threads), ("processes", processes)):
        if value is not None and (isinstance(value, bool) or not isinstance(cast(object, value), int) or value < 1):
            raise UsageError(f"`{name}` is {value!r}; it is a whole number of at least 1, or None")
    _all_calls = calls is not None
    _CALLS.resize(calls)
    _THREADS.resize(threads)
    _PROCESSES.resize(processes or os.cpu_count() or 1)


def is_gated(tool: Tool) -> bool:
    """Return whether the calls of this tool are made in turns, which the scheduler asks for one by one.

    Not for a thread, of which there is usually one: a call that needs nothing else waits for its thread by itself, so
    that its run has no more events than one without threads.
    """
    is_limited = tool.max_concurrency is not None or tool.rate_limit is not None
    return _all_calls or is_limited or tool.runs_in == "process"


def gates_of(tool: Tool) -> tuple[Gate, ...]:
    """Return the gates that a call of this tool passes, in this order."""
    gates: list[Gate] = []
    if tool.max_concurrency is not None or tool.rate_limit is not None:
        gates.append(_own_gate(tool))
    if tool.runs_in == "thread":
        gates.append(_THREADS)
    elif tool.runs_in == "process":
        gates.append(_PROCESSES)
    if _all_calls:
        gates.append(_CALLS)
    return tuple(gates)


def _own_gate(tool: Tool) -> Gate:
    function: Any = tool.function
    anchor, inner = function, None
    if isinstance(function, types.MethodType):  # made anew each time it is looked up
        anchor, inner = function.__self__, function.__func__
    key = (inner, tool.name, tool.max_concurrency, tool.rate_limit)
    with _LOCK:
        gates = _gates_at(anchor, tool)
        if key not in gates:
            gates[key] = Gate(f"`{tool.name}`", tool.max_concurrency, tool.rate_limit)
        return gates[key]


def _gates_at(anchor: Any, tool: Tool) -> dict[Any, Gate]:
    """Return the gates that live as long as `anchor`, by identity; some callables cannot be hashed."""
    known = _own.get(id(anchor))
    if known is not None and known[0]() is anchor:
        return known[1]
    number = id(anchor)

    def forget(reference: weakref.ref[Any]) -> None:
        if number in _own and _own[number][0] is reference:
            del _own[number]

    try:
        reference = weakref.ref(anchor, forget)
    except TypeError:  # nothing can be told of its end, so the gate lives as long as the tool
        return cast("dict[Any, Gate]", tool.__dict__.setdefault("_gates", {}))
    gates: dict[Any, Gate] = {}
    _own[number] = reference, gates
    return gates
