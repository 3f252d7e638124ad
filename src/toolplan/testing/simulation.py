"""The real scheduler on a virtual clock: calls take random times, and take effect at a random instant in between."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from toolplan.errors import ToolFailed
from toolplan.schedule import (
    AskModelNow,
    AskUserNow,
    CallEnded,
    CallFailed,
    CallSucceeded,
    CancelCall,
    CancelRun,
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
from toolplan.values import Json, Value

if TYPE_CHECKING:
    from toolplan.check import CheckedPlan

__all__ = ["Simulation", "simulate"]

Question: TypeAlias = "StartCall | AskModelNow | AskUserNow"


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
    names: Mapping[str, Value] = field(default_factory=dict[str, Value])
    """What the plan's names stood for where it stopped; complete with `keep_names`."""


def simulate(
    checked: CheckedPlan,
    *,
    seed: int = 0,
    max_concurrency: int | None = None,
    failure: str = "written-order",
    window: int = 512,
    speculate: bool = False,
    max_calls: int | None = None,
    keep_names: bool = False,
    now: str = "2026-01-01T00:00:00",
    durations: Callable[[str, random.Random], float] | None = None,
    seconds: Callable[[Question], float] | None = None,
    effects_at: Callable[[str], float | None] | None = None,
    keeps_going: Callable[[str], bool] | None = None,
    cancel_at: float | None = None,
    ask: Callable[[str], str] | None = None,
    read: Callable[[str, Json, dict[str, Json]], Json] | None = None,
) -> Simulation:
    """Run a checked plan on the scheduler in simulated time; the seed decides durations and instants of effects.

    Tools are called directly, so they must be plain functions. `durations` says how long the calls of a tool take, or
    `seconds` how long this very call or question does; `effects_at` after how many seconds the calls of a tool have
    their effect (None leaves it to chance). A call that takes longer than it may is stopped, unless the tool
    `keeps_going`. With `cancel_at` somebody cancels the run then. `ask` and `read` answer questions as they do for
    `run_in_written_order`; without an answer to come, the simulation ends with `finish=None`, as a run that waits. The
    machine's invariants are checked after every event.
    """
    rng = random.Random(seed)
    machine = Machine(
        Program.of(checked, keep_names=keep_names),
        max_concurrency=max_concurrency,
        failure=failure,
        window=window,
        known=checked.known,
        speculate=speculate,
        max_calls=max_calls,
        story=True,
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

    def lasting(command: Question, kind: str) -> float:
        if seconds is not None:
            return seconds(command)
        if durations is not None:
            return durations(kind, rng)
        return rng.random() if kind == "ask" else rng.choice([0.0, rng.random(), 10 * rng.random()])

    def start(command: StartCall) -> None:
        took = lasting(command, command.tool)
        limit = command.timeout_seconds
        is_late = limit is not None and took > limit
        goes_on = is_late and keeps_going is not None and keeps_going(command.tool)
        begun, ended = clock, clock + (limit if limit is not None and is_late else took)
        instant = effects_at(command.tool) if effects_at is not None else None
        effect_at = begun + (took * rng.random() if instant is None else instant)
        spans.append((command.tool, command.arguments, begun, ended))
        tool = checked.tools[command.tool]

        def act() -> None:
            if command.key in cancelled or command.key in results:
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
                message = f"the call took longer than {limit:g} seconds"
                return CallFailed(command.key, message, known, True, begun, ended, still_running=goes_on)
            act()
            value, error = results.pop(command.key)
            if error is None:
                return CallSucceeded(command.key, value, begun, ended)
            nothing = isinstance(error, ToolFailed) and error.effect_happened is False
            effect = "none" if nothing or not tool.effects.has_effects else "failed"
            return CallFailed(command.key, str(error), effect, started_seconds=begun, at_seconds=ended)

        if goes_on or effect_at <= ended:
            later(effect_at, act)
        later(ended, end)
        if goes_on:
            later(max(begun + took, effect_at), lambda: CallEnded(command.key))

    def carry_out(commands: list[Command]) -> None:
        for command in commands:
            match command:
                case StartCall():
                    start(command)
                case CancelCall(key=key):
                    cancelled.add(key)
                    if key in machine.running:  # the machine still wants to know what became of it
                        later(clock, lambda key=key: CallFailed(key, "the call was cancelled", "unknown", False))
                case RetryLater(key=key, wait_seconds=wait):
                    later(clock + wait, lambda key=key: RetryDue(key))
                case ShowNote():
                    notes.append(command.text)
                case AskModelNow() | AskUserNow():
                    reply = _reply(command, clock, clock + lasting(command, "ask"), ask, read)
                    if reply is not None:
                        later(reply.at_seconds, lambda reply=reply: reply)
                case _:
                    pass

    if cancel_at is not None:
        later(cancel_at, CancelRun)
    carry_out(machine.on(StartRun(now)))
    check_all(machine)
    while queue and machine.finished is None:
        clock, _, what = heapq.heappop(queue)
        event = what()
        if event is not None:
            carry_out(machine.on(event))
            check_all(machine)
    return Simulation(
        machine.finished, sorted(machine.records, key=lambda r: r.path), clock, spans, notes, machine.names()
    )


def _reply(
    question: AskModelNow | AskUserNow,
    begun: float,
    ended: float,
    ask: Callable[[str], str] | None,
    read: Callable[[str, Json, dict[str, Json]], Json] | None,
) -> CallSucceeded | CallFailed | None:
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
        return CallFailed(question.key, error.message, "none", False, begun, ended)
    return CallSucceeded(question.key, value, begun, ended)
