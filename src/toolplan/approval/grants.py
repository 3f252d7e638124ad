"""What a person has allowed so far in a run, and which calls that covers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from toolplan.approval.decision import Decision
from toolplan.policy import PlannedCall
from toolplan.values import Json

__all__ = ["Grant", "Grants"]


@dataclass(frozen=True, slots=True)
class Grant:
    """Calls of a tool that may be made although one of these rules asks: of one step, or (without it) of the run."""

    tool: str
    rules: frozenset[str]
    step: str | None = None
    pattern: Mapping[str, str] | None = None

    def covers(self, call: PlannedCall) -> bool:
        """Return whether the call is among them. A call that another rule asks about is not."""
        if call.tool != self.tool or not self.rules.issuperset(call.verdict.names):
            return False
        if self.step is not None and call.step.partition("[")[0] != self.step:
            return False
        values = call.values
        wanted = self.pattern or {}
        return all(name in values and _matches(values[name], text) for name, text in wanted.items())


@dataclass
class Grants:
    """All grants of a run."""

    grants: list[Grant] = field(default_factory=list[Grant])

    def add(self, call: PlannedCall, decision: Decision, *, planned: bool) -> None:
        """Note what a decision on a call allows beyond the call itself.

        Of a `planned` call that is the step, however often it is made and whatever values come: the card said so.
        """
        if decision.answer != "allow" or decision.each_call:
            return
        rules = frozenset(call.verdict.names)
        if decision.scope != "once":
            self.grants.append(Grant(call.tool, rules, None, decision.pattern))
        elif planned:
            self.grants.append(Grant(call.tool, rules, call.step))

    def covers(self, call: PlannedCall) -> bool:
        """Return whether the call has been allowed."""
        return any(grant.covers(call) for grant in self.grants)


_MORE = re.compile(r"[\s,;]")
"""What stands between two addresses: where the pattern is one address, `*` does not reach over it."""


def _matches(value: Json, pattern: str) -> bool:
    if isinstance(value, list):
        return bool(value) and all(_matches(item, pattern) for item in value)
    text = value if isinstance(value, str) else str(value)
    if ".." in re.split(r"[/\\]", text) and ".." not in pattern:
        return False  # it leads elsewhere
    is_address = pattern.strip("*?") and ("@" in pattern or "." in pattern)
    return fnmatchcase(text, pattern) and not (is_address and _MORE.search(text) and not _MORE.search(pattern))
