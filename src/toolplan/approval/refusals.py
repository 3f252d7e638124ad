"""What a person has refused so far in a request: the very same call asks again, whatever else covers it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace

from toolplan import show
from toolplan.expressions import Fields, Literal
from toolplan.policy import PlannedCall
from toolplan.policy.rules import Verdict
from toolplan.tools import Tool
from toolplan.tools.sameness import completed
from toolplan.tools.secrets import without_secrets

__all__ = ["Refusals", "call_alone"]


def call_alone(call: PlannedCall, tool: Tool) -> str:
    """Return the hash of a call by itself, wherever it stands and whatever the policy says of it.

    Its secrets do not count. A default that is spelt out makes no other call of it.
    """
    arguments, values = call.arguments, call.values
    if len(values) == len(arguments.fields):
        arguments = Fields(tuple((name, Literal(value)) for name, value in completed(tool, values).items()))
    shown = [call.tool, show.template_json(without_secrets(arguments, tool))]
    return hashlib.sha256(json.dumps(shown, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


@dataclass
class Refusals:
    """The calls that were refused, by `call_alone`, with the reasons. A later yes to the same call takes it back.

    Of calls alike on one card some may be allowed and others not: what was allowed of a step before the run is kept.
    """

    reasons: dict[str, str] = field(default_factory=dict[str, str])
    tools: set[str] = field(default_factory=set[str])
    """The tools that any of them is a call of."""
    allowed: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])

    def __bool__(self) -> bool:
        return bool(self.reasons)

    def refuse(self, step: str, tool: str, alone: str, reason: str) -> None:
        """Note that a call was refused."""
        self.tools.add(tool)
        self.reasons[alone] = reason
        self.allowed.discard((step, alone))

    def allow(self, step: str, alone: str, *, planned: bool) -> None:
        """Note that a call was allowed after all; with `planned` before the run, whenever the step makes it."""
        self.reasons.pop(alone, None)
        if planned:
            self.allowed.add((step, alone))

    def marked(self, call: PlannedCall, tool: Tool) -> PlannedCall:
        """Return the call as it is; one that was refused, and is not forbidden anyway, as one that asks and says so."""
        verdict = call.verdict
        if not self.reasons or verdict.instead_of is not None or (verdict.action == "deny" and verdict.is_sure):
            return call
        alone = call_alone(call, tool)
        reason = self.reasons.get(alone)
        if reason is None or (call.step.partition("[")[0], alone) in self.allowed:
            return call
        return replace(call, verdict=Verdict("ask", True, instead_of=verdict, refused_for=reason))
