"""What a person has allowed so far in a run, and which calls that covers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Protocol

from toolplan.approval.decision import Decision
from toolplan.approval.refusals import Refusals
from toolplan.policy import PlannedCall
from toolplan.policy.reasons import REFUSED
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


class Said(Protocol):
    """What of a yes says how far it goes: one of this process, or as a journal keeps it."""

    @property
    def scope(self) -> str:
        """`once`, `run` or `pattern`."""
        ...

    @property
    def each_call(self) -> bool:
        """Whether nothing is allowed in advance."""
        ...


@dataclass
class Grants:
    """All grants of a run, and what was refused, which none of them covers."""

    grants: list[Grant] = field(default_factory=list[Grant])
    policies: frozenset[str] | None = None
    """The fingerprints of the policies under which what a journal keeps was allowed and still is; None for any."""
    refusals: Refusals = field(default_factory=Refusals)
    _each_call: list[Grant] = field(default_factory=list[Grant])
    """The steps of plans of which each call is to be asked about."""

    def add(self, call: PlannedCall, decision: Decision, *, planned: bool) -> None:
        """Note what a decision on a call allows beyond the call itself.

        Of a `planned` call that is the step, however often it is made and whatever values come: the card said so.
        """
        if decision.answer == "allow":
            rules = frozenset(call.verdict.names)
            self.allow(Grant(call.tool, rules, call.step, decision.pattern), decision, planned=planned)

    def allow(self, grant: Grant, said: Said, *, planned: bool) -> None:
        """Note what a yes allows; `grant` is of the step that it was said of."""
        if said.each_call:
            if planned:
                self._each_call.append(replace(grant, pattern=None))
        elif grant.rules == frozenset({REFUSED}):
            return  # the policy itself does not ask: that the no is taken back is all
        elif said.scope != "once":
            self.grants.append(replace(grant, step=None))
        elif planned:
            self.grants.append(grant)

    def covers(self, call: PlannedCall) -> bool:
        """Return whether the call has been allowed. One that was refused before is only by a yes to itself."""
        return call.verdict.instead_of is None and any(grant.covers(call) for grant in self.grants)

    def settles(self, call: PlannedCall) -> bool:
        """Return whether nobody needs to be asked about a planned call: it is allowed, or each call of it asks."""
        return self.covers(call) or any(grant.covers(call) for grant in self._each_call)


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
