"""The real scheduler on a virtual clock: calls take random times, and take effect at a random instant in between."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from toolplan.errors import ToolFailed
from toolplan.schedule import (
    AskModelNow,
    AskUserNow,
    CallFailed,
    CallSucceeded,
    CancelCall,
    Command,
    Event,
    FinishRun,
    Machine,
    Program,
    RetryDue,
    RetryLater,
    ShowNote,
    StartCall,
    StartRun,
    StepRecord,
)
from toolplan.schedule.invariants import check_all
from toolplan.values import Json

if TYPE_CHECKING:
    from toolplan.check import CheckedPlan

__all__ = ["Simulation", "simulate"]


@dataclass(slots=True)
class Simulation:
    """How a simulated run ended. `spans` are the calls: tool, arguments, when they started and ended."""

    finish: FinishRun | None
    records: list[StepRecord]
    seconds: float
    spans: list[tuple[str, dict[str, Any], float, float]] = field(
        default_factory=list[tuple[str, dict[str, Any], float, float]]
    )
    notes: list[str] = field(default_factory=list[str])


def simulate(
    checked: CheckedPlan,
    *,
    seed: int = 0,
    max_concurrency: int | None = None,
    failure: str = "written-order",
    window: int = 512,
    now: str = "2026-01-01T00:00:00",
    durations: Callable[[str, random.Random], float] | None = None,
    ask: Callable[[str], str] | None = None,
    read: Callable[[str, Json, dict[str, Json]], Json] | None = None,
) -> Simulation:
    """Run a checked plan on the scheduler in simulated time; the seed decides durations and instants of effects.

    Tools are called directly, so they must be plain functions. `ask` and `read` answer questions as they do for
    `run_in_written_order`; without an answer to come, the simulation ends with `finish=None`, as a run that waits. The
    machine's invariants are checked after every event.
    """
    rng = random.Random(seed)
    machine = Machine(
        Program(checked.plan, checked.tools), max_concurrency=max_concurrency, failure=failure, window=window
    )
    clock = 0.0
    number = 0
    queue: list[tuple[float, int, Callable[[], Event | None]]] = []
    spans: list[tuple[str, dict[str, Any], float, float]] = []
    notes: list[str] = []
    results: dict[int, tuple[Any, Exception | None]] = {}
    cancelled: set[int] = set()

    def later(at: float, what: Callable[[], Event | None]) -> None:
        nonlocal number
        number += 1
        heapq.heappush(queue, (at, number, what))

    def start(command: StartCall) -> None:
        took = durations(command.tool, rng) if durations else rng.choice([0.0, rng.random(), 10 * rng.random()])
        limit = command.timeout_seconds
        is_late = limit is not None and took > limit
        begun, ended = clock, clock + (limit if limit is not None and is_late else took)
        spans.append((command.tool, command.arguments, begun, ended))
        tool = checked.tools[command.tool]

        def act() -> None:
            if command.key in cancelled:
                return
            try:
                results[command.key] = (tool.to_value(tool.bind(command.arguments)()), None)
            except Exception as error:
                results[command.key] = (None, error)

        def end() -> Event | None:
            if command.key in cancelled:
                return None
            if is_late:
                known = "unknown" if tool.effects.has_effects else "none"
                return CallFailed(
                    command.key, f"the call took longer than {limit:g} seconds", known, True, begun, ended
                )
            if command.key not in results:
                act()
            value, error = results.pop(command.key)
            if error is None:
                return CallSucceeded(command.key, value, begun, ended)
            effect = "failed" if tool.effects.has_effects else "none"
            return CallFailed(command.key, str(error), effect, started_seconds=begun, at_seconds=ended)

        def happen() -> None:
            act()

        later(begun + took * rng.random(), happen)
        later(ended, end)

    def carry_out(commands: list[Command]) -> None:
        for command in commands:
            match command:
                case StartCall():
                    start(command)
                case CancelCall():
                    cancelled.add(command.key)
                case RetryLater(key=key, wait_seconds=wait):
                    later(clock + wait, lambda key=key: RetryDue(key))
                case ShowNote():
                    notes.append(command.text)
                case AskModelNow() | AskUserNow():
                    reply = _reply(command, ask, read)
                    if reply is not None:
                        later(clock + (durations("ask", rng) if durations else rng.random()), lambda reply=reply: reply)
                case _:
                    pass

    carry_out(machine.on(StartRun(now)))
    check_all(machine)
    while queue and machine.finished is None:
        clock, _, what = heapq.heappop(queue)
        event = what()
        if event is not None:
            carry_out(machine.on(event))
            check_all(machine)
    return Simulation(machine.finished, sorted(machine.records, key=lambda r: r.path), clock, spans, notes)


def _reply(
    question: AskModelNow | AskUserNow,
    ask: Callable[[str], str] | None,
    read: Callable[[str, Json, dict[str, Json]], Json] | None,
) -> Event | None:
    """Return the reply to a question, None when nobody gives one."""
    value: Json
    try:
        if isinstance(question, AskModelNow) and read is not None:
            value = read(question.question, question.data, question.returns)
        elif ask is not None:
            value = ask(question.question)
        else:
            return None
    except ToolFailed as error:
        return CallFailed(question.key, error.message, "none", retryable=False)
    return CallSucceeded(question.key, value)
