"""`toolplan check`: one check of a plan, how its findings are printed, and checking again after each change."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Literal, TypeAlias

from toolplan.cli.inputs import STDIN, read_plan
from toolplan.cli.outputs import FAILED, OK, USAGE, complain, print_no_plan, print_rejection, to_json, why_no_plan
from toolplan.cli.streams import clear_screen, say, say_json, warn
from toolplan.cli.words import count
from toolplan.errors import PlanRejected, UsageError

if TYPE_CHECKING:
    from toolplan.check import CheckedPlan
    from toolplan.parse import CannotPlan, Prose
    from toolplan.tools import ToolSet

__all__ = ["Format", "check_once", "saves", "watch"]

Format: TypeAlias = Literal["text", "json", "sarif"]

POLL_SECONDS = 0.3
"""How often a watched file is looked at."""
SETTLE_SECONDS = 0.05
"""How long a changed file must stay as it is before it is read: an editor may be in the middle of writing it."""

Verdict: TypeAlias = "CheckedPlan | PlanRejected | Prose | CannotPlan"


def check_once(plan: str, toolset: ToolSet, shape: Format, *, in_one_line: bool = False) -> int:
    """Check a plan, print what was found, return the exit code. Raises `UsageError` when it cannot be read."""
    verdict = _verdict(plan, toolset)
    if shape == "sarif":
        return _print_sarif(verdict, plan, in_one_line=in_one_line)
    return _print(verdict, as_json=shape == "json", in_one_line=in_one_line)


def watch(plan: str, toolset: ToolSet, shape: Format) -> int:
    """Check a plan now and after each save, until Ctrl-C. Raises `UsageError` when there is no such file to begin with.

    Prints one document a line where documents are asked for.
    """
    if plan == STDIN:
        raise UsageError("`--watch` needs a file; standard input is read only once")
    if not os.path.exists(plan):
        raise UsageError(f"there is no file `{plan}` to watch; give a file with a plan")
    try:
        for number, _ in enumerate(saves(plan)):
            if shape == "text" and not clear_screen() and number:
                say()
            try:
                check_once(plan, toolset, shape, in_one_line=True)
            except UsageError as error:  # half saved, gone again, not UTF-8: the next save may mend it
                complain(str(error), USAGE, as_json=shape == "json", in_one_line=True)
            if shape == "text":
                warn(f"watching {plan}; Ctrl-C ends it")
    except KeyboardInterrupt:  # the usual end, so no failure
        return OK
    return OK


def saves(path: str, wait: Callable[[float], None] = time.sleep) -> Iterator[None]:
    """Yield once now, then after each change of the file; never ends.

    A file that is gone is waited for, since many editors save by putting a new file in the old one's place. Looks at
    the file every `POLL_SECONDS`, because no more is needed for one file, and it works on every file system.
    """
    seen = _state(path)
    yield
    while True:
        wait(POLL_SECONDS)
        now = _state(path)
        if now is None or now == seen:
            continue
        wait(SETTLE_SECONDS)
        while now != (later := _state(path)):
            now = later
            wait(SETTLE_SECONDS)
        if now is not None:
            seen = now
            yield


def _state(path: str) -> tuple[int, int, int] | None:
    """Return what is different after a save; None where there is no file."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _verdict(plan: str, toolset: ToolSet) -> Verdict:
    from toolplan.agent import Agent
    from toolplan.parse import CannotPlan, Prose

    try:
        reading = read_plan(plan, toolset)
        return reading if isinstance(reading, Prose | CannotPlan) else Agent(tools=toolset).check(reading)
    except PlanRejected as rejection:
        return rejection


def _print(verdict: Verdict, *, as_json: bool, in_one_line: bool) -> int:
    from toolplan.check import CheckedPlan
    from toolplan.diagnostics import render_all

    if isinstance(verdict, PlanRejected):
        return print_rejection(verdict, as_json=as_json, in_one_line=in_one_line)
    if not isinstance(verdict, CheckedPlan):
        return print_no_plan(verdict, as_json=as_json, in_one_line=in_one_line)
    plan, warnings = verdict.plan, verdict.warnings
    if as_json:
        found = [diagnostic.to_dict(plan.source) for diagnostic in warnings]
        document = {"outcome": "accepted", "diagnostics": found, "plan": to_json(plan)}
        say_json(document, in_one_line=in_one_line)
        return OK
    if warnings:
        say(render_all(warnings, plan.source) + "\n")
    more = f", {count(len(warnings), 'warning', 'en')}" if warnings else ""
    say(f"the plan may run: {count(len(plan.steps), 'step', 'en')}{more}")
    return OK


def _print_sarif(verdict: Verdict, plan: str, *, in_one_line: bool) -> int:
    from importlib.metadata import version

    from toolplan.check import CheckedPlan
    from toolplan.diagnostics.sarif import artifact_uri, sarif

    ours = version("toolplan")
    uri = artifact_uri("stdin" if plan == STDIN else plan)
    if isinstance(verdict, PlanRejected):
        log = sarif(verdict.diagnostics, verdict.source, uri, version=ours)
    elif isinstance(verdict, CheckedPlan):
        log = sarif(verdict.warnings, verdict.plan.source, uri, version=ours)
    else:
        log = sarif((), None, uri, version=ours, failures=[why_no_plan(verdict)])
    say_json(log, in_one_line=in_one_line)
    return OK if isinstance(verdict, CheckedPlan) else FAILED
