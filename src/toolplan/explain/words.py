"""The order of a plan in English."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from toolplan.explain.rows import Row, Wait
from toolplan.plan import (
    Answer,
    AskModel,
    AskUser,
    Break,
    Call,
    Cannot,
    Continue,
    ForEach,
    If,
    Let,
    Note,
    Parallel,
    Replan,
    Step,
    Try,
    While,
)
from toolplan.schedule.program import Collect
from toolplan.show.words import operand_text, template_text

__all__ = ["Line", "drawn"]

LONGEST = 60


@dataclass(slots=True)
class Line:
    """A step and what is said about it."""

    id: str
    what: str
    inside: list[str]
    waits: list[Wait] = field(default_factory=list[Wait])
    between: list[Wait] = field(default_factory=list[Wait])
    is_handler: bool = False
    around: str = ""
    """What kind of statement it stands in: `if`, `for_each`, ..."""

    @classmethod
    def of(cls, row: Row, inside: list[str], parent: Row | None) -> Line:
        """Return the line of a row that stands in `parent`."""
        around = _AROUND.get(parent.node.kind, "") if parent is not None else ""
        is_handler = around == "try" and bool(row.inside) and row.inside[-1][1] == 1
        return cls(row.id, _what(row.node.step), inside, is_handler=is_handler, around=around)

    def name(self, row: Row) -> None:
        """Say what the step is."""
        self.what = _what(row.node.step)


_AROUND: dict[type, str] = {If: "if", ForEach: "for_each", While: "while", Parallel: "parallel", Try: "try"}


def drawn(lines: Sequence[Line], turns: int, gains: Sequence[tuple[str, int]]) -> str:
    """Return the text: each step, below it why it waits, at the end what declarations could gain."""
    width = max((len(line.id) for line in lines), default=0)
    text: list[str] = []
    for line in lines:
        depth = "  " * len(line.inside)
        text.append(f"{line.id:<{width}}  {depth}{line.what}")
        reasons = [*_reasons(line)]
        text += [f"{'':<{width}}  {depth}    {reason}" for reason in reasons or ["starts at once"]]
    text.append("")
    text.append(f"the longest chain of calls that wait for each other: {turns}")
    for tool, left in gains:
        text.append(
            f"`{tool}` declares nothing, so it may touch anything: if it changes nothing that others use, "
            f"declaring that makes it {left}"
        )
    return "\n".join(text) + "\n"


def _reasons(line: Line) -> Iterable[str]:
    waits = [wait for wait in line.waits if wait.kind != "inside"]
    if reason := _inside(line):
        yield reason
    failures: dict[tuple[str, str | None], list[str]] = {}
    for wait in waits:
        if wait.kind == "failure":
            failures.setdefault((wait.rounds, wait.loop), []).append(wait.on)
    values: dict[Wait, list[Wait]] = {}
    for wait in waits:
        if wait.kind == "value":
            values.setdefault(replace(wait, on=""), []).append(wait)
    for wait, several in values.items():
        yield _reason(replace(wait, on=_listed([f"all of {each.on}" if each.whole else each.on for each in several])))
    for wait in waits:
        if wait.kind not in ("value", "failure"):
            yield _reason(wait)
    for (rounds, loop), steps in failures.items():
        when = f" in earlier rounds of {loop}" if rounds == "earlier" else ""
        yield f"waits until {_listed(steps)} can no longer fail{when}"
    for wait in line.between:
        on = f"all of {wait.on}" if wait.whole else wait.on
        yield f"its next round {_reason(replace(wait, on=on))}"


def _inside(line: Line) -> str:
    if not line.inside and not line.is_handler:
        return ""
    parent = line.inside[-1] if line.inside else line.id
    if line.is_handler:
        return f"runs only if {parent} fails, when all that stands before the failing step is over"
    if line.around == "if":
        return f"runs only if {parent} decides so"
    if line.around in ("for_each", "while"):
        return f"runs in each round of {parent}"
    return f"begins with {parent}" if line.around == "try" else ""


def _reason(wait: Wait) -> str:
    verb = "waits for" if wait.certain else "may wait for"
    on = f"all of {wait.on}" if wait.whole and wait.kind != "value" else wait.on
    when = _when(wait)
    match wait.kind:
        case "value":
            names = _listed([f"`{name}`" for name in wait.names])
            return f"{verb} {on}{when}: {names}"
        case "depends_on":
            return f"{verb} {on}{when}: it says so (`depends_on`)"
        case "effect" | "state":
            return f"{verb} {on}{when}: {_effect(wait)}"
        case "control":
            return f"{verb} {on}{when}: it may leave before this is reached"
        case _:
            return f"{verb} {on}{when}"


def _when(wait: Wait) -> str:
    match wait.rounds:
        case "first":
            return f" in the first round of {wait.loop}"
        case "previous":
            return f" in the round of {wait.loop} before"
        case "earlier":
            return f" in earlier rounds of {wait.loop}"
        case "last":
            return f" in the last round of {wait.loop}"
        case _:
            return ""


def _effect(wait: Wait) -> str:
    if wait.theirs == wait.ours == "anything":
        return "neither declares what it touches"
    if wait.theirs == "anything":
        return "that one does not declare what it touches"
    if wait.ours == "anything":
        return f"it does not declare what it touches, and {wait.on} {wait.theirs}"
    text = f"{wait.on} {wait.theirs}, and it {wait.ours}"
    return text if wait.certain else f"{text}; what is in braces is known only in the run"


def _listed(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def _what(step: Step | Collect) -> str:
    match step:
        case Call():
            arguments = ", ".join(f"{name}={operand_text(value, 30)}" for name, value in step.arguments.fields)
            return f"{step.tool}({arguments})" + (f" -> {step.result}" if step.result else "")
        case If():
            return f"if {step.test.text.strip()}"
        case ForEach():
            return f"for each {step.name} in {operand_text(step.items, LONGEST)}"
        case While():
            return f"while {step.test.text.strip()}"
        case Parallel():
            return "parallel"
        case Try():
            return "try"
        case Let():
            return "; ".join(f"{name} = {operand_text(value, LONGEST)}" for name, value in step.values)
        case AskUser():
            return f'ask the user "{template_text(step.question, LONGEST)}"'
        case AskModel():
            return f'ask a model "{template_text(step.question, LONGEST)}"'
        case Answer():
            return f'answer "{template_text(step.text, LONGEST)}"'
        case Cannot():
            return f'cannot "{template_text(step.reason, LONGEST)}"'
        case Replan():
            return f'replan "{template_text(step.reason, LONGEST)}"'
        case Note():
            return f'note "{template_text(step.text, LONGEST)}"'
        case Break():
            return "break"
        case Continue():
            return "continue"
        case _:
            return "collect"
