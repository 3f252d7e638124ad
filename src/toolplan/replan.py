"""What a plan that stopped leaves to the plan that goes on after it, and what the model is told about it.

Pure: from the record of a run to `Known` (for the checker and the scheduler) and to the words of a prompt. `agent.py`
decides when a plan is asked for again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolplan.check import CheckedPlan
from toolplan.known import Known, MadeCall
from toolplan.plan import Step, walk
from toolplan.prompt import StepReport
from toolplan.run import RunResult
from toolplan.schedule import StepRecord
from toolplan.tools import ToolSet
from toolplan.tools.state_names import states_named
from toolplan.values import Json, Value

__all__ = ["asks_for_another", "known_after", "made_calls", "name_of", "reports", "states_after", "stopped"]

_ROUND = re.compile(r"\[(\d+)\]")


def asks_for_another(run: RunResult) -> bool:
    """Return whether a run ended in a way that another plan may mend: it failed, or the plan wants to see results.

    No plan mends that a budget is used up.
    """
    return run.outcome in ("failed", "replan") and run.used_up is None


def name_of(label: str) -> str:
    """Return the name under which the result of a step is known afterwards: `s3`, `s3_0` for a round `s3[0]`."""
    return _ROUND.sub(r"_\1", label)


def known_after(checked: CheckedPlan, run: RunResult) -> Known:
    """Return everything that the next plan may build on: what the plan began with, and what has come of it.

    Names mean what they meant where the plan stopped. Every finished call is known by its id as well, in a round of a
    loop by the id and the round (`s3_0`). `run` must have kept its names.
    """
    before, steps = checked.known, {step.id: step for step in walk(checked.plan.steps)}
    values = {**before.values, **run.names}
    for record in reversed(run.steps):
        if record.outcome == "succeeded":
            made = Value(record.result, frozenset((_ROUND.sub("", record.id),)))
            value = values.get(name_of(record.id), made)
            for name in (name_of(record.id), *_names(steps.get(record.id))):
                values.setdefault(name, value)
    calls = [record for record in run.steps if record.tool in checked.tools and record.attempts]
    return Known(
        values,
        (*before.made, *made_calls(calls, checked.tools)),
        before.states | states_after(calls, checked.tools),
        max((int(step[1:]) for step in steps), default=before.steps),
        before.calls + len(calls),
    )


def _names(step: Step | None) -> Sequence[str]:
    return getattr(step, "defines", ())


def made_calls(calls: Sequence[StepRecord], tools: ToolSet) -> list[MadeCall]:
    """Return the calls that took effect, or may have: a failed one may have, unless it is certain that it did not."""
    return [
        MadeCall(
            name_of(call.id), call.tool, call.arguments or {}, "succeeded" if call.outcome == "succeeded" else "unknown"
        )
        for call in calls
        if tools[call.tool].effects.has_effects and (call.outcome in ("succeeded", "unknown") or call.is_doubtful)
    ]


def states_after(calls: Sequence[StepRecord], tools: ToolSet) -> frozenset[str]:
    """Return the states that successful calls have brought about."""
    found: set[str] = set()
    for call in calls:
        if call.outcome == "succeeded" and call.tool in tools:
            tool = tools[call.tool]
            found.update(states_named(tool.ensures, tool, call.arguments or {}))
    return frozenset(found)


# ---- what the model is told


def stopped(run: RunResult) -> dict[str, Json]:
    """Return why the plan stopped: the step that failed, or the reason that the plan gives to look at the results."""
    if run.failed_step is not None:
        return {"stopped_at": run.failed_step, "error": run.error}
    return {"stopped_at": "replan", "reason": run.text}


def reports(steps: Sequence[StepRecord], known: Known) -> tuple[list[StepReport], dict[str, Json]]:
    """Return what is said about the steps that ran, and the values of names that none of them shows.

    Each result is told with the name that a further plan may use: the one that a plan chose, else the id.
    """
    chosen: dict[int, str] = {}
    for name, value in known.values.items():
        if id(value) not in chosen or _is_better(name, chosen[id(value)]):
            chosen[id(value)] = name
    said: list[StepReport] = []
    shown: set[int] = set()
    for step in steps:
        if step.outcome == "not_run":
            continue
        name = None
        if step.outcome == "succeeded" and (value := known.values.get(name_of(step.id))) is not None:
            shown.add(id(value))
            name = chosen[id(value)]
            if name in (step.tool, f"{step.tool}_result"):  # a name that came by itself may mean another call next time
                name = name_of(step.id)
        said.append(StepReport(step.id, step.tool, step.outcome, step.arguments or {}, step.result, step.error, name))
    others = {name: known.values[name].data for value, name in chosen.items() if value not in shown}
    return said, others


_ID = re.compile(r"s\d+(?:_\d+)*")


def _is_better(name: str, than: str) -> bool:
    return _ID.fullmatch(than) is not None and _ID.fullmatch(name) is None
