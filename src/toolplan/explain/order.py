"""`explain_order`: what each step of a plan waits for and why, as a value, a text and a JSON document."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from toolplan.effects import PURE
from toolplan.explain.rows import Row, Wait
from toolplan.explain.waits import rows_of
from toolplan.explain.words import Line, drawn
from toolplan.plan import AskModel, AskUser, Call
from toolplan.schedule.program import Program
from toolplan.tools import ToolSet
from toolplan.tools.secret_words import secret_words
from toolplan.tools.secrets import HIDDEN
from toolplan.tools.seen_secrets import SeenSecrets
from toolplan.values import Json

if TYPE_CHECKING:
    from toolplan.check import CheckedPlan

__all__ = ["Gain", "PlanOrder", "StepOrder", "explain_order"]

FailureMode: TypeAlias = Literal["written-order", "independent"]


@dataclass(frozen=True, slots=True)
class StepOrder:
    """One step of the plan: what it waits for, and, for a loop, what its next round waits for."""

    id: str
    what: str
    """`send_email(to=...)`, `if total > 5`, ..."""
    inside: tuple[str, ...]
    """The ids of the steps around it, outermost first."""
    waits: tuple[Wait, ...] = ()
    between_rounds: tuple[Wait, ...] = ()


@dataclass(frozen=True, slots=True)
class Gain:
    """What a declaration could bring: a tool that declares nothing, and the turns left if it changes nothing."""

    tool: str
    turns: int


@dataclass(frozen=True, slots=True)
class PlanOrder:
    """Why the steps of a plan run in the order they run in."""

    steps: tuple[StepOrder, ...]
    turns: int
    """The longest chain of calls that wait for each other, with one round of each loop."""
    gains: tuple[Gain, ...] = ()
    failure: FailureMode = "written-order"
    _lines: tuple[Line, ...] = field(default=(), repr=False, compare=False)

    def to_text(self) -> str:
        """Return it in words, one line a step and one a reason."""
        return drawn(self._lines, self.turns, [(gain.tool, gain.turns) for gain in self.gains])

    def to_dict(self) -> dict[str, Json]:
        """Return the document of the JSON interface."""
        return {
            "turns": self.turns,
            "steps": [
                {
                    "id": step.id,
                    "what": step.what,
                    "inside": list(step.inside),
                    "waits": [_wait(wait) for wait in step.waits],
                    "between_rounds": [_wait(wait) for wait in step.between_rounds],
                }
                for step in self.steps
            ],
            "gains": [{"tool": gain.tool, "turns": gain.turns} for gain in self.gains],
        }


def explain_order(
    checked: CheckedPlan, *, failure: FailureMode = "written-order", everything: bool = False
) -> PlanOrder:
    """Return what each step of a checked plan waits for, and why. Runs nothing.

    A wait that follows from the others is left out, unless `everything` is asked for. `failure` is the agent's.
    Limits on calls in flight are no part of it: they decide when a step starts, not in which order effects happen.
    What goes into secret places is left out (`tools/secret_words.py`).
    """
    tools = checked.tools
    secret = secret_words(checked.plan, tools)
    plan = secret.cut(HIDDEN)
    program = Program(plan, tools) if secret else Program.of(checked)
    rows = rows_of(program, failure=failure, everything=everything)
    plain = rows if not everything else rows_of(program, failure=failure)
    turns = _turns(plain)
    undeclared = dict.fromkeys(row.node.tool.name for row in rows if row.node.tool is not None and row.node.undeclared)
    gains: list[Gain] = []
    for name in undeclared if turns > 1 else ():
        other = ToolSet.of(tool.with_effects(PURE) if tool.name == name else tool for tool in tools)
        left = _turns(rows_of(Program(plan, other), failure=failure))
        if left < turns:
            gains.append(Gain(name, left))
    lines = tuple(_lines(rows))
    seen = SeenSecrets()
    seen.see_words(secret.values)
    for line in lines if seen else ():
        line.what = seen.clean(line.what)
    steps = tuple(
        StepOrder(line.id, line.what, tuple(line.inside), tuple(line.waits), tuple(line.between)) for line in lines
    )
    return PlanOrder(steps, turns, tuple(gains), failure, lines)


def _lines(rows: list[Row]) -> Iterable[Line]:
    """Yield a line for each step. A call with `on_error: {"do": ...}` is a `try` and a call to the machine."""
    lines: dict[str, Line] = {}
    for row in rows:
        around = [rows[index] for index, _ in row.inside]
        inside = [each.id for each in around if each.id != row.id]
        line = lines.get(row.id)
        if line is None:
            parent = around[-1] if around else None
            line = lines[row.id] = Line.of(row, inside, parent)
        elif row.node.kind in (Call, AskModel):
            line.name(row)
        line.waits += [wait for wait in row.waits if wait.on != row.id or wait.rounds != "same"]
        line.between += row.between
    for line in lines.values():
        line.waits = list(dict.fromkeys(line.waits))
    return lines.values()


def _turns(rows: list[Row]) -> int:
    """Return the length of the longest chain of calls and questions that wait for each other."""
    done: dict[str, int] = {}
    longest = 0
    by_id = {row.id: row for row in rows}
    for row in rows:
        before = 0
        for wait in row.waits:
            if wait.rounds not in ("same", "first", "last"):
                continue
            before = max(before, done.get(wait.on, 0))
            if wait.whole and wait.on in by_id:
                inner = by_id[wait.on]
                before = max([before, *(done.get(each.id, 0) for each in rows[inner.index + 1 : inner.end])])
        own = 1 if row.node.kind in (Call, AskModel, AskUser) else 0
        done[row.id] = max(done.get(row.id, 0), before + own)
        longest = max(longest, done[row.id])
    return longest


def _wait(wait: Wait) -> dict[str, Json]:
    found: dict[str, Json] = {"on": wait.on, "kind": wait.kind, "certain": wait.certain}
    if wait.whole:
        found["whole"] = True
    if wait.rounds != "same":
        found |= {"rounds": wait.rounds, "loop": wait.loop}
    if wait.names:
        found["names"] = list(wait.names)
    if wait.ours:
        found |= {"ours": wait.ours, "theirs": wait.theirs}
    return found
