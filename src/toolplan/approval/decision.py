"""A person's answer to a card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from toolplan.errors import UsageError
from toolplan.policy import PlannedCall
from toolplan.values import Json

__all__ = ["Decision", "Scope", "decisions_of"]

Scope: TypeAlias = Literal["once", "run", "pattern"]


@dataclass(frozen=True, slots=True)
class Decision:
    """A person's word on calls. Make one with `Decision.allow` or `Decision.deny`.

    `scope`: `once` is what was asked about; `run` every later call of the same tool for the same reason in this run;
    `pattern` those of them whose arguments match `pattern` (names to texts in which `*` stands for anything), which the
    calls that it is said of have to do as well.
    `arguments` are those that the person has changed. With `each_call` nothing is allowed in advance: whatever the card
    says asks, asks again when the call is about to be made, with its values.
    """

    answer: Literal["allow", "deny"]
    scope: Scope = "once"
    reason: str = ""
    arguments: Mapping[str, Json] | None = None
    pattern: Mapping[str, str] | None = None
    each_call: bool = False

    @classmethod
    def allow(
        cls,
        scope: Scope = "once",
        *,
        arguments: Mapping[str, Json] | None = None,
        pattern: Mapping[str, str] | None = None,
        each_call: bool = False,
    ) -> Decision:
        """Return the word that allows. Raises `UsageError` for a scope that there is not, or a pattern without it."""
        if scope not in ("once", "run", "pattern"):
            raise UsageError(f"`scope` is {scope!r}; it may be 'once', 'run' or 'pattern'")
        if (scope == "pattern") != (pattern is not None):
            raise UsageError('`scope="pattern"` and `pattern={"argument": "text with *"}` go together')
        return cls("allow", scope, "", arguments, pattern, each_call)

    @classmethod
    def deny(cls, reason: str = "") -> Decision:
        """Return the word that refuses. A reason goes to the model, which may plan another way."""
        return cls("deny", reason=reason)


def decisions_of(answer: object, calls: Sequence[PlannedCall]) -> dict[str, Decision | None]:
    """Return the decision on each of the calls, by step; None where there is none yet.

    `answer` is what an approver returned: True, False, None, a `Decision`, or one of these for each step by its id.
    Raises `UsageError` for anything else.
    """
    steps = [call.step for call in calls]
    if isinstance(answer, Mapping):
        given = cast("Mapping[str, Any]", answer)
        for step in given:
            if step not in steps:
                raise UsageError(f"`approve` decided about the step {step!r}; it was asked about {', '.join(steps)}")
        found = {step: _decision(given.get(step)) for step in steps}
        for call in calls:
            _refuse_unknown((each.pattern if (each := found[call.step]) else None) or {}, [call])
        return found
    decision = _decision(answer)
    if decision is not None and decision.pattern is not None:
        _refuse_unknown(decision.pattern, calls)
    if decision is not None and decision.arguments is not None and len(steps) > 1:
        raise UsageError('changed arguments belong to one step: return {"s1": Decision.allow(arguments=...)}')
    return dict.fromkeys(steps, decision)


def _refuse_unknown(pattern: Mapping[str, str], calls: Sequence[PlannedCall]) -> None:
    known = [name for call in calls for name, _ in call.arguments.fields]
    for name in pattern:
        if name not in known:
            arguments = ", ".join(f"`{each}`" for each in dict.fromkeys(known)) or "none"
            raise UsageError(f"`pattern` names the argument `{name}`, but those of the call are: {arguments}")


def _decision(answer: object) -> Decision | None:
    if answer is None or isinstance(answer, Decision):
        return answer
    if isinstance(answer, bool):
        return Decision("allow" if answer else "deny")
    raise UsageError(
        "`approve` must return True, False, None (undecided), a `Decision`, or a dict of these by step, but returned "
        f"{answer!r}"
    )
