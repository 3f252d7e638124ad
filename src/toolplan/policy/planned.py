"""The policy looks at a whole plan, before anything starts: every call, what may become of it, and why (P2).

What is known then are the constants of the text and where everything else will come from. A call whose values decide is
judged again when they are there, by the same rules (`PlannedCall.judge`), so there is one gate (P7).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from toolplan.diagnostics import Diagnostic
from toolplan.diagnostics.effects import forbidden_by_policy, forbidden_tool
from toolplan.expressions import Fields, Items, Literal, Template
from toolplan.plan import Call, Plan, walk
from toolplan.policy.reasons import MENDED, Tongue
from toolplan.policy.rules import UNKNOWN, CallFacts, Policy, Rule, Situation, Verdict
from toolplan.policy.sources import Sources
from toolplan.policy.trace import CallSources, Trace, trace
from toolplan.tools import ToolSet
from toolplan.tools.secrets import HIDDEN, secret_arguments
from toolplan.values import Json

__all__ = ["PlannedCall", "Review", "review"]

_MENDED = Rule("ask", "mended", MENDED)
NO_CALL_SOURCES = CallSources()


@dataclass(frozen=True)
class PlannedCall:
    """A call as the policy sees it: planned, or about to be made. In a loop it may happen several times.

    `step` is the id of the step, in a round of a loop with the round (`s3[0]`) once it is about to be made.
    `arguments` are the values as far as they are known and the templates of the others.
    """

    step: str
    tool: str
    arguments: Fields
    writes: tuple[str, ...] = ()
    verdict: Verdict = field(default_factory=lambda: Verdict("allow", True))
    sources: CallSources = NO_CALL_SOURCES
    unsaid: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """The words in each argument that a model wrote and the user did not say."""
    again: str | None = None
    """Why a call that was made already is made again."""

    @property
    def reason(self) -> str:
        """Why the policy says what it says, in a few words."""
        return self.verdict.reason

    def reason_in(self, language: Tongue) -> str:
        """Return why the policy says what it says, in words of a language."""
        return self.verdict.reason_in(language)

    @property
    def values(self) -> dict[str, Json]:
        """The arguments whose values are known."""
        known = ((name, value_of(template)) for name, template in self.arguments.fields)
        return {name: value for name, value in known if value is not UNKNOWN}  # pyright: ignore[reportReturnType]


@dataclass(frozen=True)
class Review:
    """What a policy says about a plan.

    `calls` are all calls that do not simply run: those with effects, and whatever else asks or may ask, in written
    order. `forbidden` are diagnostics for those that may not be made whatever comes.
    """

    plan: Plan
    tools: ToolSet
    policy: Policy
    situation: Situation
    calls: tuple[PlannedCall, ...] = ()
    forbidden: tuple[Diagnostic, ...] = ()
    is_mended: bool = False
    known: Mapping[str, Sources] = field(default_factory=dict[str, Sources])

    @property
    def asks(self) -> tuple[PlannedCall, ...]:
        """The calls that need a person's word."""
        return tuple(call for call in self.calls if call.verdict.asks)

    @cached_property
    def trace(self) -> Trace:
        """Where everything in the plan comes from."""
        return trace(self.plan, self.tools, self.known)

    @cached_property
    def watched(self) -> frozenset[str]:
        """The steps whose calls are looked at again when they are about to be made: not sure to be allowed."""
        return frozenset(call.step for call in self.calls if call.verdict.action != "allow")

    def judge(self, step: str, arguments: Mapping[str, Json], situation: Situation | None = None) -> PlannedCall:
        """Return a call that is about to be made, with the verdict on its values. `step` may name a round."""
        return self.seen(self._steps[step.partition("[")[0]], step, arguments, situation or self.situation)

    @cached_property
    def _steps(self) -> dict[str, Call]:
        return {step.id: step for step in walk(self.plan.steps) if isinstance(step, Call)}

    def seen(self, planned: Call, step: str, arguments: Mapping[str, Json] | None, situation: Situation) -> PlannedCall:
        """Return a call as the policy sees it: with these arguments, or (None) with what the text says of them."""
        tool = self.tools[planned.tool]
        verdict = self.policy.at_a_glance(tool, situation)
        looks = verdict is None
        sources = self.trace.calls.get(planned.id, NO_CALL_SOURCES) if looks or tool.effects.has_effects else None
        sources = sources or NO_CALL_SOURCES
        if arguments is None:
            known = tool.normalise({name: value_of(template) for name, template in planned.arguments.fields})  # pyright: ignore[reportArgumentType]
            fields = planned.arguments
        else:
            known = arguments
            fields = Fields(tuple((name, Literal(value)) for name, value in arguments.items()))
        facts = CallFacts(tool, known, sources.arguments, sources.condition, situation)
        verdict = verdict or self.policy.decide(facts)
        if self.is_mended and tool.effects.has_effects and verdict.action == "allow":
            verdict = Verdict("ask", True, (_MENDED,))
        unsaid: dict[str, tuple[str, ...]] = {}
        if looks:
            found = {name: tuple(facts.unsaid(name)) for name in known}
            secret = secret_arguments(tool)
            unsaid = {name: (HIDDEN,) if name in secret else words for name, words in found.items() if words}
        return PlannedCall(
            step, planned.tool, fields, tool.effects.writes, verdict, sources, unsaid, again=planned.again
        )


def review(
    plan: Plan,
    tools: ToolSet,
    policy: Policy,
    situation: Situation,
    *,
    trust_repairs: bool = True,
    known: Mapping[str, Sources] | None = None,
) -> Review:
    """Return what the policy says about the calls of a checked plan.

    `known` are the sources of names that come from earlier plans. Without `trust_repairs`, every call of a mended plan
    asks that may change something.
    """
    is_mended = bool(plan.repairs) and not trust_repairs
    found = Review(plan, tools, policy, situation, is_mended=is_mended, known=known or {})
    calls: list[PlannedCall] = []
    forbidden: list[Diagnostic] = []
    glances: dict[str, Verdict | None] = {}
    for step in walk(plan.steps):
        if not isinstance(step, Call):
            continue
        tool = tools[step.tool]
        if step.tool not in glances:
            glances[step.tool] = policy.at_a_glance(tool, situation)
        glance = glances[step.tool]
        if glance is not None and glance.action == "allow" and not tool.effects.has_effects:
            continue
        call = found.seen(step, step.id, None, situation)
        if call.verdict.action == "deny" and call.verdict.is_sure:
            forbidden.append(_forbidden(step, call.verdict))
        calls.append(call)
    return replace(found, calls=tuple(calls), forbidden=tuple(forbidden))


def _forbidden(step: Call, verdict: Verdict) -> Diagnostic:
    if verdict.declared:
        return forbidden_tool(step.tool_place, step.id, step.tool)
    return forbidden_by_policy(step.tool_place, step.id, step.tool, verdict.names[0], verdict.reason)


def value_of(template: Template) -> object:
    """Return the value of an argument as far as the text tells it, else `UNKNOWN`."""
    match template:
        case Literal():
            return template.value
        case Items():
            items = [value_of(item) for item in template.items]
            return UNKNOWN if UNKNOWN in items else items
        case Fields():
            fields = {name: value_of(item) for name, item in template.fields}
            return UNKNOWN if UNKNOWN in fields.values() else fields
        case _:
            return UNKNOWN
