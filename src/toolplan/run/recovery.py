"""What has become of an effect that a process began which is no more, and what a later one needs to know to ask that.

A person's word counts first. An effect that may be repeated is repeated, with the same idempotency key. Else the tool's
own `probe` is asked. What nobody can tell waits for a person.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from typing import Any

from toolplan.check import CheckedPlan
from toolplan.errors import ResultRefused, ToolplanError
from toolplan.journal import PlanBegun, StepResolved
from toolplan.journal.known_json import known_to_json
from toolplan.plan import walk
from toolplan.run.failures import describe
from toolplan.schedule import CallFailed, CallSucceeded, Setup, StartCall
from toolplan.show import to_json
from toolplan.tools import Happened, Tool, ToolContext
from toolplan.tools.fingerprint import fingerprints_of
from toolplan.tools.seen_secrets import SeenSecrets
from toolplan.values import Json

__all__ = ["misfit", "plan_begun", "what_happened"]

_log = logging.getLogger("toolplan.run")


def plan_begun(checked: CheckedPlan, setup: Setup) -> PlanBegun:
    """Return what is written down of a plan before it begins."""
    ids = [step.id for step in walk(checked.plan.steps)]
    are_next = ids == [f"s{checked.known.steps + number}" for number in range(1, len(ids) + 1)]
    return PlanBegun(
        to_json(checked.plan),
        fingerprints_of(checked.plan, checked.tools),
        setup.to_json(),
        known_to_json(checked.known),
        bool(checked.plan.repairs),
        list(checked.plan.repairs),
        checked.plan.notation,
        [] if are_next else ids,
    )


async def what_happened(
    tool: Tool,
    command: StartCall,
    word: StepResolved | None,
    context: ToolContext,
    started: float,
    clock: Callable[[], float],
    secrets: SeenSecrets,
) -> tuple[CallSucceeded | CallFailed | None, StepResolved | None]:
    """Return the event that ends an effect which was begun, and what was found out about it.

    Without an event the effect has not happened, or may be repeated, so that the call is to be made; without a finding
    either, nobody knows, and a person has to say. No log repeats the `secrets`.
    """
    key, step = command.key, command.step
    if word is None and tool.idempotent:
        return None, StepResolved(key, step, "did_not_happen", reason="it may be repeated", by="idempotent")
    if word is None:
        word = await _probed(tool, command, context, secrets)
    if word is None or word.how == "did_not_happen":
        return None, word
    if word.how == "happened":
        return CallSucceeded(key, word.result, started, clock()), word
    error = word.reason or "nobody could find out whether this has happened, and it was declared failed"
    return CallFailed(key, error, "unknown", False, started, clock()), word


def misfit(tool: Tool, word: StepResolved | None) -> str | None:
    """Return what is wrong with the result that a person, or a probe, says a call has given, or None: it has to fit.

    A probe that returns True says nothing about the result: of a tool that returns something, a person has to say what.
    """
    if word is None or word.how != "happened" or (word.by == "probe" and word.result is not None):
        return None
    try:
        tool.to_value(word.result)
    except ResultRefused as error:
        if word.by == "probe":
            return "its probe says that it has happened, but not what it returned; say what it returned"
        return f"the result that was given for it cannot be: {error}; say again what it returned"
    return None


async def _probed(tool: Tool, command: StartCall, context: ToolContext, secrets: SeenSecrets) -> StepResolved | None:
    """Ask the tool's probe; return what it found, None when it cannot tell either."""
    if tool.probe is None:
        return None
    try:
        probe = Tool.of(tool.probe, name="probe")
        wanted = probe.parameters["properties"]
        arguments: dict[str, Json] = {name: value for name, value in command.arguments.items() if name in wanted}
        bound = probe.bind(arguments, tool.with_headers(context))
        found: Any = bound() if probe.is_async else await asyncio.to_thread(bound)
        if inspect.isawaitable(found):
            found = await found
        if isinstance(found, Happened):
            return StepResolved(command.key, command.step, "happened", tool.to_value(found.value), by="probe")
    except Exception as error:
        text = secrets.clean(describe(error))
        _log.warning("the probe of `%s` failed: %s", tool.name, text, exc_info=not (secrets or _is_ours(error)))
        return None
    if found is True:
        return StepResolved(command.key, command.step, "happened", by="probe")
    if found is False:
        return StepResolved(command.key, command.step, "did_not_happen", by="probe")
    return None


def _is_ours(error: Exception) -> bool:
    return isinstance(error, ToolplanError)
