"""`toolplan fmt`: a file's plan in its canonical form."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolplan.cli.inputs import STDIN, read_text
from toolplan.errors import UsageError

if TYPE_CHECKING:
    from toolplan.parse import CannotPlan, Prose
    from toolplan.plan import Plan
    from toolplan.tools import ToolSet

__all__ = ["Formatted", "formatted"]


@dataclass(frozen=True)
class Formatted:
    """A plan, the file it is from, its canonical text, and whether the file reads differently."""

    plan: Plan
    file: str
    text: str
    is_changed: bool

    def write(self) -> None:
        """Give the file the canonical text. Raises `UsageError` when it cannot be written."""
        try:
            Path(self.file).write_bytes(self.text.encode())
        except OSError as error:
            raise UsageError(f"`{self.file}` cannot be written: {error.strerror or error}") from None

    def in_words(self, *, written: bool) -> str:
        """Return what was done, or with `written=False` what would be done."""
        if not self.is_changed:
            return f"{self.file} is in the canonical form"
        return f"{self.file} was rewritten" if written else f"{self.file} is not in the canonical form"


def formatted(file: str, toolset: ToolSet | None, *, in_place: bool) -> Formatted | Prose | CannotPlan:
    """Return the plan with its canonical text, or what the file holds instead of a plan.

    With `in_place` the file must be one plan in JSON and nothing else, because what stands around a plan would be
    lost, and a program would become JSON. Raises `UsageError` or `PlanRejected`.
    """
    from toolplan import show
    from toolplan.parse import parse
    from toolplan.plan import Plan

    if in_place and file == STDIN:
        raise UsageError("`--write` and `--check` need a file; standard input has none")
    before, name = read_text(file, "a plan")
    plan = parse(before, tools=toolset, name=name)
    if not isinstance(plan, Plan):
        return plan
    if in_place and plan.notation != "json":
        raise UsageError(f"`{file}` is a program; without `--write` and `--check`, `toolplan fmt` prints it as JSON")
    if in_place and (before.strip()[:1] not in ("[", "{") or before.strip()[-1:] not in ("]", "}")):
        raise UsageError(f"`{file}` holds more than a plan; keep the plan alone in a file, as `toolplan fmt` prints it")
    text = show.canonical(plan) + "\n"
    return Formatted(plan, file, text, before != text)
