"""Rules: which calls run, which ask a person, which never run, in the order in which they are tried.

    Policy   = rules: Rule*, otherwise: Action           the first rule that fits a call decides
    Rule     = conditions (all must hold) -> Action      see the fields of `Rule`
    CallFacts = one call, planned or about to leave      values may not be known yet
    Verdict  = allow | ask | deny, sure or not           with the rules that decided, or may decide

A rule can be undecided as long as values are: then the verdict says what may still come (`Verdict.is_sure`). Names
match whole; `*` in them stands for anything, and has to be written. A rule never makes a call freer than its tool was
declared: the more cautious of the two counts.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias

from toolplan.effects import WORLD
from toolplan.policy.arguments import ArgumentTest
from toolplan.policy.facts import UNKNOWN, CallFacts, Effect, Situation, effect_of
from toolplan.policy.reasons import DECLARED, NOTHING_ALLOWS_IT, REFUSED, REFUSED_BEFORE, Tongue, worded
from toolplan.policy.truth import all_of, any_of, as_wanted
from toolplan.tools import Tool
from toolplan.values import Json

__all__ = ["DAYS", "UNKNOWN", "Action", "ArgumentTest", "CallFacts", "Policy", "Rule", "Situation", "Verdict"]

Action: TypeAlias = Literal["allow", "ask", "deny"]

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_CAUTION: dict[Action, int] = {"allow": 0, "ask": 1, "deny": 2}


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: when all its conditions hold, `then` is what happens. Conditions that are not given always hold.

    `tool`, `user` and `mode` are names; `effect` is one or more of "none", "writes", "undeclared"; `resource` names
    something the call writes, or something above or below it; `arguments` tests them by name, `"*"` meaning at least
    one of them, and each of them where the rule allows; `condition` says whether untrusted text decides that the call
    is made: a test in the plan, or, of a call that was written after such text had been read, the text itself. `bound`
    says whether the request ties a call to itself all the same (`CallFacts.is_bound`). `hours` (from, to:
    `("18:00", "09:00")` goes over midnight) and `days` (`"mon"` to `"sun"`) are those of the request; where its time is
    not known, a rule that allows does not hold, and one that asks or denies does.
    """

    then: Action
    name: str = ""
    reason: str = ""
    tool: tuple[str, ...] = ()
    effect: tuple[Effect, ...] = ()
    resource: tuple[str, ...] = ()
    arguments: Mapping[str, ArgumentTest] = field(default_factory=dict[str, ArgumentTest])
    condition: Literal["trusted", "untrusted"] | None = None
    bound: bool | None = None
    user: tuple[str, ...] = ()
    mode: tuple[str, ...] = ()
    hours: tuple[str, str] | None = None
    days: tuple[str, ...] = ()

    def concerns(self, tool: Tool, situation: Situation) -> bool:
        """Return whether the rule can be about calls of this tool at all, whatever their arguments."""
        if self.tool and not _named(tool.name, self.tool):
            return False
        if self.effect and effect_of(tool) not in self.effect:
            return False
        if self.user and not _named(situation.user, self.user):
            return False
        if self.mode and not _named(situation.mode, self.mode):
            return False
        if self.bound is False and (situation.words_are_trusted or not situation.has_read_untrusted):
            return False
        return not (self.hours or self.days) or self._is_time(situation.now)

    def _is_time(self, now: str) -> bool:
        try:
            time = datetime.fromisoformat(now)
        except ValueError:
            return self.then != "allow"
        if self.days and DAYS[time.weekday()] not in self.days:
            return False
        if self.hours is None:
            return True
        begin, end = self.hours
        clock = f"{time:%H:%M}"
        return begin <= clock < end if begin <= end else clock >= begin or clock < end

    def fits(self, facts: CallFacts) -> bool | None:
        """Return whether the rule is about this call; None when values that decide it are not known yet."""
        if not self.concerns(facts.tool, facts.situation):
            return False
        if self.condition is not None and facts.is_led != (self.condition == "untrusted"):
            return False
        answers: list[bool | None] = [] if self.bound is None else [as_wanted(facts.is_bound, self.bound)]
        answers += [self._fits_resource(facts)] if self.resource else []
        every = self.then == "allow"  # one bad element is enough for caution
        for name, test in self.arguments.items():
            if name == "*":
                concerned = (each for each in facts.arguments if test.concerns(each, facts))
                answers.append(
                    (all_of if every else any_of)(test.holds(each, facts, every=every) for each in concerned)
                )
                continue
            given = facts if name in facts.arguments else facts.with_default(name)
            answers.append(test.holds(name, given or facts, every=every))
        return all_of(answers)

    @property
    def looks_closer(self) -> bool:
        """Whether more than the tool decides it: arguments, resources, conditions, the request."""
        return bool(self.resource or self.arguments or self.condition or self.bound is not None)

    def to_dict(self) -> dict[str, Json]:
        """Return the rule as JSON, with the keys of a policy file."""
        given: dict[str, Json] = {"name": self.name, "then": self.then, "reason": self.reason}
        for key in ("tool", "effect", "resource", "user", "mode"):
            given[key] = list[Json](getattr(self, key))
        given["arguments"] = {name: test.to_dict() for name, test in self.arguments.items()}
        given["condition"] = self.condition
        bound: dict[str, Json] = {} if self.bound is None else {"bound": self.bound}
        given["hours"] = "-".join(self.hours or ())
        given["days"] = list[Json](self.days)
        return {key: value for key, value in given.items() if value} | bound

    def _fits_resource(self, facts: CallFacts) -> bool | None:
        """Return whether the call writes one of the resources. What is not declared may write anything."""
        known = facts.known
        whole = len(known) == len(facts.arguments)
        found: bool | None = False
        for access in facts.tool.accesses(known):
            if not access.write or access.is_state:
                continue
            if access.resource == WORLD:
                if self.then != "allow":
                    return True
                continue
            name = "/".join(access.resource)
            for wanted in self.resource:
                pattern = re.sub(r"[:/]+", "/", wanted).strip("/")
                if fnmatchcase(name, pattern) or fnmatchcase(name, pattern + "/*"):
                    return True
                if pattern.startswith(name + "/"):  # it writes all that is below; a path with `..` is one of those
                    if not whole and facts.tool.effects.placeholders:
                        found = None
                    elif self.then != "allow":
                        return True
        return found


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the policy says about a call.

    With `is_sure`, `action` is final. Otherwise values that are not known yet decide: `action` is the most cautious of
    what may come, and each call is judged again when they are there. `rules` are those that decided, or may decide.
    """

    action: Action
    is_sure: bool
    rules: tuple[Rule, ...] = ()
    declared: bool = False
    """The tool's own declaration decided, not a rule."""
    instead_of: Verdict | None = None
    """What the policy says, where the call asks because a person refused the very same call before."""
    refused_for: str = ""
    """The reason that the person gave then."""

    @property
    def own(self) -> Verdict:
        """What the policy itself says."""
        return self.instead_of or self

    @property
    def asks(self) -> bool:
        """Whether the call needs a person's word, whatever its values."""
        return self.is_sure and self.action == "ask"

    @property
    def reason(self) -> str:
        """Why, in a few words."""
        return self.reason_in("en")

    def reason_in(self, language: Tongue) -> str:
        """Return why, in a few words of a language. What a rule of one's own says stays as it is."""
        if self.instead_of is not None:
            refused = worded([REFUSED_BEFORE], language) + (f": {self.refused_for}" if self.refused_for else "")
            own = self.instead_of.reason_in(language) if self.instead_of.asks else ""
            return worded([refused, own], language)
        if self.declared:
            return worded([DECLARED], language, self.action)
        reasons = [rule.reason or rule.name for rule in self.rules if rule.then == self.action]
        return worded(reasons, language) or worded([NOTHING_ALLOWS_IT], language)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the rules that decided, or may decide."""
        if self.instead_of is not None:
            return (REFUSED, *(self.instead_of.names if self.instead_of.asks else ()))
        if self.declared:
            return ("declared",)
        return tuple(dict.fromkeys(rule.name for rule in self.rules if rule.then == self.action))


@dataclass(frozen=True, slots=True)
class Policy:
    """Ordered rules. `otherwise` is for a call with effects that no rule fits; one without effects then runs."""

    rules: tuple[Rule, ...] = ()
    otherwise: Action = "ask"
    name: str = ""

    def decide(self, facts: CallFacts) -> Verdict:
        """Return what happens to the call."""
        return _with_declared(self._by_rules(facts), facts.tool)

    def at_a_glance(self, tool: Tool, situation: Situation) -> Verdict | None:
        """Return what happens to every call of a tool, None when that depends on the call."""
        for rule in self.rules:
            if rule.concerns(tool, situation):
                return None if rule.looks_closer else _with_declared(_verdict([rule]), tool)
        return _with_declared(_verdict([self._last(tool)]), tool)

    @property
    def fingerprint(self) -> str:
        """What two policies have in common when they say the same."""
        said = {"rules": [rule.to_dict() for rule in self.rules], "otherwise": self.otherwise}
        return hashlib.sha256(json.dumps(said, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:16]

    def _by_rules(self, facts: CallFacts) -> Verdict:
        undecided: list[Rule] = []
        for rule in self.rules:
            fits = rule.fits(facts)
            if fits is None:
                undecided.append(rule)
            if fits:
                return _verdict([*undecided, rule])
        return _verdict([*undecided, self._last(facts.tool)])

    def _last(self, tool: Tool) -> Rule:
        """Return what holds for a tool where no rule fits."""
        if effect_of(tool) == "none":
            return Rule("allow", "free of effects")
        if tool.approval is not None:
            return Rule(tool.approval, f'declared approval="{tool.approval}"')
        return Rule(self.otherwise, "no rule", NOTHING_ALLOWS_IT)


def _with_declared(verdict: Verdict, tool: Tool) -> Verdict:
    """Return the more cautious of what the rules and the tool's own declaration say."""
    declared = tool.approval
    if declared is None or _CAUTION[declared] <= _CAUTION[verdict.action]:
        if declared is None or declared == "allow" or verdict.is_sure:
            return verdict
        # Undecided, but not less than what is declared: what may come and is freer does not.
        if all(_CAUTION[rule.then] >= _CAUTION[declared] for rule in verdict.rules):
            return verdict
        rules = tuple(rule for rule in verdict.rules if _CAUTION[rule.then] > _CAUTION[declared])
        if not rules:
            return Verdict(declared, True, declared=True)
        return Verdict(verdict.action, False, (*rules, Rule(declared, "declared", f'declared approval="{declared}"')))
    return Verdict(declared, True, declared=True)


def _verdict(rules: list[Rule]) -> Verdict:
    actions: set[Action] = {rule.then for rule in rules}
    action: Action = "deny" if "deny" in actions else "ask" if "ask" in actions else "allow"
    return Verdict(action, len(actions) == 1, tuple(rules))


def _named(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
