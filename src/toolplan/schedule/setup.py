"""What a machine is made of besides its plan: what has to be the same for the same events to mean the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from toolplan.effects import Access
from toolplan.known import NOTHING_KNOWN, Known
from toolplan.plan import Plan
from toolplan.schedule.events import LeftCall
from toolplan.schedule.machine import WINDOW, Machine
from toolplan.schedule.program import Program
from toolplan.tools import ToolSet
from toolplan.values import Json

if TYPE_CHECKING:
    from toolplan.check import CheckedPlan

__all__ = ["Setup"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The settings of a `Machine`, and whether its program keeps its names; see there what each means."""

    max_concurrency: int | None = None
    failure: str = "written-order"
    gated: frozenset[str] = frozenset()
    speculate: bool = False
    max_calls: int | None = None
    calls: int = 0
    keep_names: bool = False
    window: int = WINDOW
    left_behind: tuple[LeftCall, ...] = ()

    def machine(self, plan: Plan, tools: ToolSet, known: Known = NOTHING_KNOWN) -> Machine:
        """Return a new machine with these settings, for a plan that has been checked against these tools."""
        return self._machine(Program(plan, tools, keep_names=self.keep_names), known)

    def machine_for(self, checked: CheckedPlan) -> Machine:
        """Return a new machine with these settings. The plan is prepared the first time that it is run."""
        return self._machine(Program.of(checked, keep_names=self.keep_names), checked.known)

    def _machine(self, program: Program, known: Known) -> Machine:
        return Machine(
            program,
            max_concurrency=self.max_concurrency,
            failure=self.failure,
            window=self.window,
            gated=self.gated,
            known=known,
            speculate=self.speculate,
            max_calls=self.max_calls,
            calls=self.calls,
            left_behind=self.left_behind,
        )

    def to_json(self) -> dict[str, Json]:
        """Return the settings as a journal keeps them."""
        gated: list[Json] = [*sorted(self.gated)]
        settings: dict[str, Json] = {**asdict(replace(self, left_behind=())), "gated": gated}
        del settings["left_behind"]
        if self.left_behind:
            settings["left_behind"] = [
                {"step": call.step, "accesses": [[list[Json](each.resource), each.write] for each in call.accesses]}
                for call in self.left_behind
            ]
        return settings

    @classmethod
    def from_json(cls, settings: Mapping[str, Any]) -> Setup:
        """Return the settings that a journal has kept. Raises `TypeError` for one that this version does not know."""
        left = tuple(
            LeftCall(call["step"], tuple(Access(tuple(resource), write) for resource, write in call["accesses"]))
            for call in settings.get("left_behind", ())
        )
        given: dict[str, Any] = {**settings, "gated": frozenset(settings.get("gated", ())), "left_behind": left}
        return cls(**given)
