"""From the story of a run back to plans and machines: what `Agent.resume` goes on with, or why it cannot.

Everything that has changed is said at once, before anything runs. A plan that holds secrets has to be given again,
because they are not written down.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from toolplan import show
from toolplan.check import CheckedPlan
from toolplan.diagnostics import render_all
from toolplan.errors import JournalMismatch, PlanRejected
from toolplan.journal import PlanBegun, Replayed, SecretLeftOut, Story, replay
from toolplan.journal.entries import decode
from toolplan.journal.fingerprints import changes
from toolplan.journal.known_json import known_from_json
from toolplan.journal.secrets import Secrets
from toolplan.known import Known
from toolplan.parse import parse
from toolplan.plan import Plan
from toolplan.schedule import Setup
from toolplan.tools import ToolSet
from toolplan.values import Json

__all__ = ["Part", "parts_of"]

Check = Callable[[Plan, Known], CheckedPlan]


@dataclass(frozen=True, slots=True)
class Part:
    """One plan of the run. `state` is None for one that has not begun."""

    checked: CheckedPlan
    state: Replayed | None


def parts_of(
    story: Story,
    tools: ToolSet,
    check: Check,
    *,
    version: str,
    given: Plan | None = None,
    accept_changes: bool = False,
) -> list[Part]:
    """Return the plans of a run in the state that its story tells.

    `given` is the plan as the caller has it. Raises `JournalMismatch`, with everything that has changed, for a run that
    cannot go on; with `accept_changes` only for what would make its journal mean something else.
    """
    fatal, others = _changes(story, tools, version)
    fatal += _missing_secrets(story, tools, given)
    if fatal or (others and not accept_changes):
        hint = "" if fatal else "; `accept_changes` goes on all the same"
        said = "; ".join(dict.fromkeys([*fatal, *others]))
        raise JournalMismatch(f"run {story.begun.run_id} cannot go on as it is: {said}{hint}")
    parts: list[Part] = []
    for number, (begun, entries) in enumerate(story.parts):
        is_last = number == len(story.parts) - 1
        checked = _checked(begun, tools, check, given if is_last else None)
        has_begun = not is_last or story.has_begun
        setup = Setup.from_json(begun.settings)
        parts.append(Part(checked, replay(entries, checked.plan, tools, checked.known, setup) if has_begun else None))
        if not is_last and parts[-1].state is not None and parts[-1].state.machine.finished is None:
            raise JournalMismatch(f"plan {number + 1} of run {story.begun.run_id} has no end, but another one follows")
    return parts


def _changes(story: Story, tools: ToolSet, version: str) -> tuple[list[str], list[str]]:
    fatal: list[str] = []
    others: list[str] = []
    if story.begun.version != version:
        others.append(f"it was begun by toolplan {story.begun.version or '?'}, and this is {version or '?'}")
    for begun, _ in story.parts:
        found, more = changes(begun.tools, tools)
        fatal += found
        others += more
    return fatal, others


def _missing_secrets(story: Story, tools: ToolSet, given: Plan | None) -> list[str]:
    """Return what is missing because secrets are not written down."""
    begun, entries = story.parts[-1]
    found: list[str] = []
    cut = [entry.what for _, after in story.parts for entry in after if isinstance(entry, SecretLeftOut)]
    if "result" in cut:
        found.append("a result that holds a secret was not written down, and what follows needs it")
    if "change" in cut:
        found.append("a person changed arguments that hold a secret, which was not written down")
    if len(story.parts) > 1 and any(isinstance(e, SecretLeftOut) for _, after in story.parts[:-1] for e in after):
        found.append("an earlier plan of it holds a secret, which was not written down")
    is_cut = any(isinstance(entry, SecretLeftOut) and entry.what == "plan" for entry in entries)
    if given is None:
        if is_cut:
            found.append("its plan holds secrets, which were not written down; give the plan again (`plan`)")
        return found
    if _plan_of(_cut(given, tools)) != _plan_of(begun.plan):
        found.append("the plan that was given is not the plan of this run")
    return found


def _cut(plan: Plan, tools: ToolSet) -> Json:
    """Return the JSON of a plan as a journal keeps it."""
    secrets = Secrets(tools)
    secrets.see_plan(plan)
    _, body = secrets.rows(PlanBegun(show.to_json(plan)))[0]
    entry = decode("PlanBegun", body)
    assert isinstance(entry, PlanBegun)
    return entry.plan


def _plan_of(shown: Json) -> Json:
    """Return what counts of a plan's JSON: not the thoughts of whoever wrote it."""
    return {key: value for key, value in shown.items() if key != "thought"} if isinstance(shown, dict) else shown


def _checked(begun: PlanBegun, tools: ToolSet, check: Check, given: Plan | None) -> CheckedPlan:
    known = known_from_json(begun.known)
    try:
        plan = given
        if plan is None:
            shown = cast("dict[str, Json]", begun.plan)
            reading = parse(shown, notation="json", tools=tools, name="journal", first_step=known.steps + 1)
            assert isinstance(reading, Plan), "a journal keeps plans in their canonical form"
            plan = reading
        return check(plan, known)
    except PlanRejected as rejection:
        why = render_all(rejection.diagnostics, rejection.source)
        raise JournalMismatch(f"the plan of the run may not run with these tools and this policy:\n{why}") from None
