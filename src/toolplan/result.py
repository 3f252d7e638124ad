"""What became of a request: the answer, every step, and what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from toolplan import show
from toolplan.approval import Card
from toolplan.diagnostics import Diagnostic, Source
from toolplan.models import Usage
from toolplan.plan import Plan
from toolplan.policy import CallSources, PlannedCall
from toolplan.schedule import StepRecord
from toolplan.values import Json, shorten

__all__ = ["Outcome", "Result"]

Outcome: TypeAlias = Literal["succeeded", "failed", "waiting", "rejected", "cancelled"]


@dataclass(frozen=True, slots=True, repr=False)
class Result:
    """What became of a request.

    `outcome`: `succeeded`; `failed` (a step failed, or the plan found that it cannot be done); `waiting` (for a
    person's answer or approval); `rejected` (no plan that may run, or the model says that it cannot be planned);
    `cancelled` (somebody ended it; what had happened by then is in `steps`).
    `inferences` counts every model call and `usage` what they cost; of a resumed run, those of the processes before
    included (`inferences_before`). `diagnostics` are those of the last plan, warnings included. When a plan was
    replaced by another one (`replans` says how often), `steps` are those of all of them, in order, and `plan` is the
    last.
    """

    outcome: Outcome
    answer: str
    steps: tuple[StepRecord, ...] = ()
    inferences: int = 0
    usage: Usage = field(default_factory=Usage)
    diagnostics: tuple[Diagnostic, ...] = ()
    plan: Plan | None = None
    error: str | None = None
    missing: tuple[str, ...] = ()
    approvals: tuple[PlannedCall, ...] = ()
    """The calls that a person has to allow, when that is what the run waits for."""
    waits_for: tuple[Json, ...] = ()
    """What a run that is in a journal waits for: `kind` is `approval`, `question` or `unknown`, `step` says where."""
    card: Card | None = None
    """What a person was, or has to be, asked about: every effect of the plan, and why it asks."""
    sources: Mapping[str, CallSources] = field(default_factory=dict[str, CallSources])
    """Where the arguments of calls came from, by the id of the step; only of calls whose policy depends on it."""
    seconds: float = 0.0
    run_id: str = ""
    source: Source | None = None
    """The text that `diagnostics` are about."""
    replans: int = 0
    """How often the rest of the plan was asked for anew."""
    shown_tools: tuple[str, ...] | None = None
    """The tools that the model was shown in the end, where a router chose them; None where it was shown all."""
    inferences_before: int = 0
    """How many of the inferences earlier processes made, before this one went on with their run."""
    reasked: int = 0
    """How often a plan, or calls of a loop, were asked for again because they needed tools that had not been shown."""
    mode_used: Literal["plan", "loop"] = "plan"
    mode_reason: str = ""
    """Why this mode: it was asked for, or what `mode="auto"` saw."""
    omitted: Mapping[str, int] = field(default_factory=dict[str, int])
    """Of how many calls that succeeded there is no row in `steps`, by the step: of the 10,001st on that a step makes in
    loops, if they have no effect. Everything else always has its row."""
    discarded: tuple[StepRecord, ...] = ()
    """Calls that change nothing and were made for nothing: they had started before the plan was whole, and it did not
    make them after all. Their times count from the request."""

    def __repr__(self) -> str:
        """Return one short line, however large the values are: `asyncio.run` writes out what its task returned."""
        return f"<Result {self.outcome}: {shorten(self.answer)}, {len(self.steps)} steps, {self.seconds:.3f} s>"

    def to_dict(self) -> dict[str, Json]:
        """Return the result as the JSON document of `toolplan ask --json`."""
        steps: list[Json] = [step.to_dict() | self._sources_of(step) for step in self.steps]
        diagnostics: list[Json] = [diagnostic.to_dict(self.source) for diagnostic in self.diagnostics]
        return {
            "outcome": self.outcome,
            "run_id": self.run_id,
            "answer": self.answer,
            "error": self.error,
            "inferences": self.inferences,
            "inferences_before": self.inferences_before,
            "replans": self.replans,
            "shown_tools": list(self.shown_tools) if self.shown_tools is not None else None,
            "reasked": self.reasked,
            "mode_used": self.mode_used,
            "mode_reason": self.mode_reason,
            "usage": self.usage.to_dict(),
            "seconds": round(self.seconds, 6),
            "steps": steps,
            "omitted": dict(self.omitted),
            "discarded": [step.to_dict() for step in self.discarded],
            "missing": list(self.missing),
            "approvals": [_waiting_call(call) for call in self.approvals],
            "waits_for": list(self.waits_for),
            "card": self.card.to_dict() if self.card is not None else None,
            "diagnostics": diagnostics,
            "plan": show.to_json(self.plan) if self.plan is not None else None,
        }

    def _sources_of(self, step: StepRecord) -> dict[str, Json]:
        """Return where each argument of a step came from, as far as that is known."""
        found = self.sources.get(step.id.partition("[")[0])
        if found is None or step.arguments is None:
            return {"sources": None}
        arguments: dict[str, Json] = {}
        for name, sources in found.arguments.items():
            untrusted: list[Json] = [*sorted(sources.all_untrusted)]
            arguments[name] = {"steps": [*sorted(sources.steps)], "untrusted": untrusted, "words": list(sources.words)}
        return {"sources": {"arguments": arguments, "condition": [*sorted(found.condition)]}}


def _waiting_call(call: PlannedCall) -> Json:
    """Return a call that waits for approval as JSON; what comes from earlier steps is the template that says which."""
    return {
        "id": call.step,
        "tool": call.tool,
        "arguments": show.template_json(call.arguments),
        "writes": list(call.writes),
        "rules": list(call.verdict.names),
        "reason": call.reason,
    }
