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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, Literal, TypeAlias, cast

from toolplan.effects import WORLD
from toolplan.policy.said import Way, is_free_text, leads_nowhere, unsaid
from toolplan.policy.sources import NO_SOURCES, Sources
from toolplan.tools import Tool
from toolplan.tools.fields import field_names
from toolplan.values import Json

__all__ = ["UNKNOWN", "Action", "ArgumentTest", "CallFacts", "Policy", "Rule", "Situation", "Verdict"]

Action: TypeAlias = Literal["allow", "ask", "deny"]
Effect: TypeAlias = Literal["none", "writes", "undeclared"]

_CAUTION: dict[Action, int] = {"allow": 0, "ask": 1, "deny": 2}


class _Unknown:
    """The value of an argument that is not known yet."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = _Unknown()


@dataclass(frozen=True, slots=True)
class Situation:
    """Who asks for calls, how, and what was said; the same for all calls of a plan.

    `said` is what the user has said: the request, answers to questions, and whatever else counts as said. With
    `words_are_trusted` the plan was written by whoever asks for the run; else a model wrote it, and the words in it
    count as the user's only where `said` holds them. With `has_read_untrusted` that model had other people's text
    before it (a later turn of a loop, a replan), so whatever is not the user's counts as chosen by that text.
    """

    said: str = ""
    user: str = ""
    mode: str = "plan"
    words_are_trusted: bool = False
    has_read_untrusted: bool = False


@dataclass(frozen=True, slots=True)
class CallFacts:
    """One call as rules see it.

    `arguments` are the values as far as they are known; those still to come are `UNKNOWN`. `sources` says where each
    comes from and `condition` which untrusted steps decide that the call is made.
    """

    tool: Tool
    arguments: Mapping[str, Json | _Unknown]
    sources: Mapping[str, Sources] = field(default_factory=dict[str, Sources])
    condition: frozenset[str] = frozenset()
    situation: Situation = field(default_factory=Situation)

    @property
    def effect(self) -> Effect:
        """What the call may do to the world."""
        return _effect_of(self.tool)

    @property
    def known(self) -> dict[str, Json]:
        """The arguments whose values are known."""
        return {name: value for name, value in self.arguments.items() if not isinstance(value, _Unknown)}

    def unsaid(self, name: str) -> list[str]:
        """Return which of the words that a model put into an argument the user did not say, as far as they are known.

        Those are the words in the plan's text, and the value itself where an `ask_model` step worded some of it. What
        counts depends on the argument: everything in those that the tool names as `guarded`, and when the model has had
        other people's text before it; only what can lead somewhere (addresses, accounts) in those that it does not
        name; and where it names none, everything but plain words.
        """
        if self.situation.words_are_trusted or self._is_choice(name):
            return []
        sources = self.sources.get(name, NO_SOURCES)
        value = self.arguments.get(name, UNKNOWN)
        written = (value,) if sources.written and not isinstance(value, _Unknown) else ()
        missing = unsaid((*sources.words, *written), self.situation.said, self._way(name))
        fields = field_names(self._schema(name)) if missing else ()
        return [word for word in missing if word not in fields]

    def _way(self, name: str) -> Way:
        if self.is_guarded(name):
            return "name" if self.tool.guarded is not None or self.situation.has_read_untrusted else "wording"
        return "prose"

    def is_said(self, name: str) -> bool | None:
        """Return whether the user said all that a model put into an argument; None while that is not known."""
        if self.unsaid(name):
            return False
        if self.situation.words_are_trusted or not self.sources.get(name, NO_SOURCES).written:
            return True
        return None if isinstance(self.arguments[name], _Unknown) else True

    def is_untrusted(self, name: str) -> bool | None:
        """Return whether an argument depends on other people's text; None while that is not known.

        Of a model that had such text before it, everything may, except what the user said.
        """
        sources = self.sources.get(name, NO_SOURCES)
        if sources.is_untrusted:
            return True
        if not self.situation.has_read_untrusted or self.situation.words_are_trusted or self._is_choice(name):
            return False
        if self.unsaid(name):
            return True
        value = self.arguments[name]
        if isinstance(value, _Unknown):
            return None
        return any(word not in field_names(self._schema(name)) for word in unsaid((value,), self.situation.said))

    def is_guarded(self, name: str) -> bool:
        """Return whether it matters who chose the argument: those that the tool declares, else every one."""
        return self.tool.guarded is None or name in self.tool.guarded

    def is_prose(self, name: str, value: Json) -> bool:
        """Return whether a value is prose, which does nothing by itself. What a tool names as guarded never is."""
        if self.tool.guarded is not None:
            return name not in self.tool.guarded and is_free_text(value)
        return is_free_text(value) and leads_nowhere(value, self.situation.said)

    def _is_choice(self, name: str) -> bool:
        """Return whether the value is the author's word: one of a list of choices, or the argument's own default."""
        known = self._schema(name)
        if "enum" in known or "const" in known or known.get("type") == "boolean":
            return True
        value = self.arguments.get(name, UNKNOWN)
        return "default" in known and not isinstance(value, _Unknown) and _same(value, known["default"])

    def _schema(self, name: str) -> dict[str, Any]:
        schema: Any = self.tool.parameters["properties"].get(name)
        return cast("dict[str, Any]", schema) if isinstance(schema, dict) else {}

    def with_default(self, name: str) -> CallFacts | None:
        """Return the call with an argument that is left out as its schema fills it in, None where it does not."""
        default = self._schema(name).get("default")
        return None if default is None else replace(self, arguments={**self.arguments, name: default})


@dataclass(frozen=True, slots=True)
class ArgumentTest:
    """What a rule asks of an argument's value; everything given must hold.

    `untrusted`: it depends on other people's text; `said`: all of its words that the plan wrote are in the request;
    `guarded`: the tool counts it among those for which that matters; `free_text`: it is prose.
    """

    equals: Json | _Unknown = UNKNOWN
    one_of: tuple[Json, ...] | None = None
    none_of: tuple[Json, ...] | None = None
    matches: str | None = None
    at_least: float | None = None
    at_most: float | None = None
    untrusted: bool | None = None
    said: bool | None = None
    guarded: bool | None = None
    free_text: bool | None = None

    def concerns(self, name: str, facts: CallFacts) -> bool:
        """Return whether the test is about this argument: guarded or not, where it says so."""
        return self.guarded is None or facts.is_guarded(name) == self.guarded

    def holds(self, name: str, facts: CallFacts, *, every: bool = True) -> bool | None:
        """Return whether the argument is so; None when that cannot be known yet.

        Of a list, each of its elements has to be; without `every`, at least one of them.
        """
        if not self.concerns(name, facts):
            return False
        answers: list[bool | None] = []
        if self.untrusted is not None:
            answers.append(_as(facts.is_untrusted(name), self.untrusted))
        if self.said is not None:
            answers.append(_as(facts.is_said(name), self.said))
        value = facts.arguments[name]
        if self.free_text is not None:
            never = facts.tool.guarded is not None and name in facts.tool.guarded
            is_prose = None if isinstance(value, _Unknown) and not never else facts.is_prose(name, _value(value))
            answers.append(_as(is_prose, self.free_text))
        if self._needs_value:
            answers.append(None if isinstance(value, _Unknown) else self._fits(value, every))
        return _all(answers)

    @property
    def _needs_value(self) -> bool:
        wanted = (self.one_of, self.none_of, self.matches, self.at_least, self.at_most)
        return self.equals is not UNKNOWN or any(each is not None for each in wanted)

    def _fits(self, value: Json, every: bool) -> bool:
        """Return whether the value is so; of a list, whether each of its elements is, or one."""
        if isinstance(value, list) and not isinstance(self.equals, list) and (value or not every):
            return (all if every else any)(self._fits(item, every) for item in value)
        if self.equals is not UNKNOWN and not _same(value, self.equals):
            return False
        if self.one_of is not None and not any(_same(value, each) for each in self.one_of):
            return False
        if self.none_of is not None and any(_same(value, each) for each in self.none_of):
            return False
        if self.matches is not None and not (
            isinstance(value, str) and re.fullmatch(self.matches, value, re.DOTALL) is not None
        ):
            return False
        if self.at_least is not None and not (_is_number(value) and value >= self.at_least):  # type: ignore[operator]
            return False
        return self.at_most is None or (_is_number(value) and value <= self.at_most)  # type: ignore[operator]

    def to_dict(self) -> dict[str, Json]:
        """Return the test as JSON, with the keys of a policy file."""
        given: dict[str, Json] = {}
        for key in ("one_of", "none_of"):
            if (listed := getattr(self, key)) is not None:
                given[key] = list[Json](listed)
        for key in ("matches", "at_least", "at_most", "untrusted", "said", "guarded", "free_text"):
            if (value := getattr(self, key)) is not None:
                given[key] = value
        return given if isinstance(self.equals, _Unknown) else {"equals": self.equals, **given}


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: when all its conditions hold, `then` is what happens. Conditions that are not given always hold.

    `tool`, `user` and `mode` are names; `effect` is one or more of "none", "writes", "undeclared"; `resource` names
    something the call writes, or something above or below it; `arguments` tests them by name, `"*"` meaning at least
    one of them, and each of them where the rule allows; `condition` says whether untrusted text decides that the call
    is made.
    """

    then: Action
    name: str = ""
    reason: str = ""
    tool: tuple[str, ...] = ()
    effect: tuple[Effect, ...] = ()
    resource: tuple[str, ...] = ()
    arguments: Mapping[str, ArgumentTest] = field(default_factory=dict[str, ArgumentTest])
    condition: Literal["trusted", "untrusted"] | None = None
    user: tuple[str, ...] = ()
    mode: tuple[str, ...] = ()

    def concerns(self, tool: Tool, situation: Situation) -> bool:
        """Return whether the rule can be about calls of this tool at all, whatever their arguments."""
        if self.tool and not _named(tool.name, self.tool):
            return False
        if self.effect and _effect_of(tool) not in self.effect:
            return False
        if self.user and not _named(situation.user, self.user):
            return False
        return not self.mode or _named(situation.mode, self.mode)

    def fits(self, facts: CallFacts) -> bool | None:
        """Return whether the rule is about this call; None when values that decide it are not known yet."""
        if not self.concerns(facts.tool, facts.situation):
            return False
        if self.condition is not None and bool(facts.condition) != (self.condition == "untrusted"):
            return False
        answers = [self._fits_resource(facts)] if self.resource else []
        every = self.then == "allow"  # one bad element is enough for caution
        for name, test in self.arguments.items():
            if name == "*":
                concerned = (each for each in facts.arguments if test.concerns(each, facts))
                answers.append((_all if every else _any)(test.holds(each, facts, every=every) for each in concerned))
                continue
            given = facts if name in facts.arguments else facts.with_default(name)
            if given is None:
                return False
            answers.append(test.holds(name, given, every=every))
        return _all(answers)

    @property
    def looks_closer(self) -> bool:
        """Whether more than the tool decides it: arguments, resources, conditions."""
        return bool(self.resource or self.arguments or self.condition)

    def to_dict(self) -> dict[str, Json]:
        """Return the rule as JSON, with the keys of a policy file."""
        given: dict[str, Json] = {"name": self.name, "then": self.then, "reason": self.reason}
        for key in ("tool", "effect", "resource", "user", "mode"):
            given[key] = list[Json](getattr(self, key))
        given["arguments"] = {name: test.to_dict() for name, test in self.arguments.items()}
        given["condition"] = self.condition
        return {key: value for key, value in given.items() if value}

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

    @property
    def asks(self) -> bool:
        """Whether the call needs a person's word, whatever its values."""
        return self.is_sure and self.action == "ask"

    @property
    def reason(self) -> str:
        """Why, in a few words."""
        if self.declared:
            return f'its tool is declared with approval="{self.action}"'
        reasons = [rule.reason or rule.name for rule in self.rules if rule.then == self.action]
        return "; ".join(dict.fromkeys(filter(None, reasons))) or "no rule allows it"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the rules that decided, or may decide."""
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
        if _effect_of(tool) == "none":
            return Rule("allow", "free of effects")
        if tool.approval is not None:
            return Rule(tool.approval, f'declared approval="{tool.approval}"')
        return Rule(self.otherwise, "no rule", "no rule allows it")


def _effect_of(tool: Tool) -> Effect:
    effects = tool.effects
    if not effects.declared:
        return "undeclared"
    return "writes" if effects.writes else "none"


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


def _value(value: Json | _Unknown) -> Json:
    return None if isinstance(value, _Unknown) else value


def _as(answer: bool | None, wanted: bool) -> bool | None:
    return None if answer is None else answer == wanted


def _all(answers: Iterable[bool | None]) -> bool | None:
    undecided = False
    for answer in answers:
        if answer is False:
            return False
        undecided = undecided or answer is None
    return None if undecided else True


def _any(answers: Iterable[bool | None]) -> bool | None:
    undecided = False
    for answer in answers:
        if answer:
            return True
        undecided = undecided or answer is None
    return None if undecided else False


def _named(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _same(a: Json, b: object) -> bool:
    return a == b and isinstance(a, bool) == isinstance(b, bool)


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
