"""A card: everything that a plan may do, for whoever has to allow it.

One line for each call that may change something, or that a rule asks about, in written order: its arguments as far as
they are known and where the others will come from, what led there, how often it may happen, what the policy says and
why. The card is bound to its plan, arguments, tools and policy by a hash: another plan has another card.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal as OneOf

from toolplan import show
from toolplan.approval.text import card_text
from toolplan.check import CheckedPlan
from toolplan.check.limits import length_of
from toolplan.check.repeats import twice
from toolplan.expressions import Literal, Template
from toolplan.plan import AskModel, Block, Call, ForEach, If, Parallel, Step, Try, While, walk
from toolplan.policy import PlannedCall, Review
from toolplan.policy.obeyed import is_obeyed
from toolplan.show.words import operand_text
from toolplan.tools import Tool, ToolSet
from toolplan.tools.fingerprint import fingerprint_of
from toolplan.tools.secret_words import secret_words
from toolplan.tools.secrets import HIDDEN, shown, without_secrets
from toolplan.tools.seen_secrets import SeenSecrets
from toolplan.values import Json

__all__ = ["Card", "CardCall"]

LINE = 70


@dataclass(frozen=True)
class CardCall:
    """One line of a card: a call, and what surrounds it in the plan."""

    call: PlannedCall
    changes: tuple[str, ...] | None = ()
    """What it changes, as far as known; None for a tool that declares nothing, so that it may be anything."""
    origins: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """The steps that each argument comes from, such as `s1 (read_bill)`."""
    untrusted: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Those of them, and of what decided about them, that carry other people's text."""
    conditions: tuple[str, ...] = ()
    """What has to be so for the call to be made, outermost first."""
    led_by: tuple[str, ...] = ()
    """The steps with other people's text that decide whether it is made."""
    most: int | None = 1
    """How often it may be made; None when a loop's length is not known before the run."""
    arguments: Mapping[str, str] = field(default_factory=dict[str, str])
    """What is written for each argument, as an expression, in full; secrets are left out."""
    guarded: frozenset[str] = frozenset()
    """The arguments for which it matters who chose them: those are never shortened."""
    shown: Json = None
    """The arguments as JSON, as a plan writes them; secrets are left out."""
    same_as: str | None = None
    """An earlier call of the plan, in the same words, whose effect happens as well."""

    def to_dict(self) -> dict[str, Json]:
        """Return the line as JSON."""
        call = self.call
        return {
            "id": call.step,
            "tool": call.tool,
            "arguments": self.shown,
            "writes": list(call.writes),
            "changes": None if self.changes is None else list(self.changes),
            "action": call.verdict.action,
            "is_sure": call.verdict.is_sure,
            "rules": list(call.verdict.names),
            "reason": call.reason,
            "origins": _lists(self.origins),
            "untrusted": _lists(self.untrusted),
            "unsaid": _lists(call.unsaid),
            "conditions": list(self.conditions),
            "led_by": list(self.led_by),
            "most": self.most,
            "again": call.again,
            "same_as": self.same_as,
        }


@dataclass(frozen=True)
class Card:
    """What a person is asked about: a whole plan, or (`about="calls"`) calls of it that are about to be made."""

    about: OneOf["plan", "calls"]
    lines: tuple[CardCall, ...]
    request: str
    policy: str
    max_calls: int | None
    repairs: tuple[str, ...]
    """What had to be mended to read the plan's text."""
    hash: str
    checked: CheckedPlan
    secrets: SeenSecrets = field(default_factory=SeenSecrets, repr=False, compare=False)
    """What of the plan and of the calls is secret, wherever it stands on the card."""
    policy_fingerprint: str = ""
    """Which policy asks: its name may stand for other rules by the time of the answer."""
    problems: Mapping[str, str] = field(default_factory=dict[str, str])
    """Why the arguments that a person has just changed cannot be taken, by step: the question comes once more."""

    @property
    def asks(self) -> tuple[PlannedCall, ...]:
        """The calls that the question is about."""
        return tuple(line.call for line in self.lines if line.call.verdict.asks)

    @property
    def tools(self) -> ToolSet:
        """The tools of the plan."""
        return self.checked.tools

    @classmethod
    def of(cls, checked: CheckedPlan, review: Review) -> Card:
        """Return the card of a plan."""
        return cls._of("plan", checked, review, review.calls)

    @classmethod
    def of_calls(cls, checked: CheckedPlan, review: Review, calls: Sequence[PlannedCall]) -> Card:
        """Return the card of calls that are about to be made, with their values."""
        return cls._of("calls", checked, review, calls)

    @classmethod
    def _of(
        cls, about: OneOf["plan", "calls"], checked: CheckedPlan, review: Review, calls: Sequence[PlannedCall]
    ) -> Card:
        secret = secret_words(checked.plan, checked.tools)
        secrets = SeenSecrets()
        secrets.see_words(secret.values)
        for call in calls:
            secrets.see(checked.tools[call.tool], call.values)
        surroundings = dict(_surroundings(secret.cut(HIDDEN).steps, (), 1))
        words = _words_of_steps(checked)
        firsts = {call.id: first.id for call, first in twice(checked.plan, checked.tools)}
        lines = tuple(
            replace(
                _line(call, review, words, *surroundings[call.step.partition("[")[0]]), same_as=firsts.get(call.step)
            )
            for call in calls
        )
        tools = {call.tool for call in calls if not _is_there_for_a_no(call, checked.tools)}
        bound: dict[str, Json] = {  # the same whether or not something was refused before
            "plan": show.to_json(checked.plan),
            "calls": [
                [line.call.step, line.shown, list(line.call.verdict.own.names)]
                for line in lines
                if not _is_there_for_a_no(line.call, checked.tools)
            ],
            "tools": {name: fingerprint_of(checked.tools[name]) for name in sorted(tools)},
            "policy": review.policy.fingerprint,
        }
        digest = hashlib.sha256(json.dumps(bound, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
        repairs = checked.plan.repairs if review.is_mended else ()
        said = review.situation.said.partition("\n")[0]
        return cls(
            about,
            lines,
            said,
            review.policy.name,
            checked.max_calls,
            repairs,
            digest,
            checked,
            secrets,
            review.policy.fingerprint,
        )

    @classmethod
    def together(cls, cards: Sequence[Card]) -> Card:
        """Return one card of several, for questions that come together."""
        if len(cards) == 1:
            return cards[0]
        digest = hashlib.sha256(" ".join(card.hash for card in cards).encode()).hexdigest()
        problems = {step: why for card in cards for step, why in card.problems.items()}
        lines = tuple(line for card in cards for line in card.lines)
        secrets = SeenSecrets()
        for card in cards:
            secrets.see_all(card.secrets)
        return replace(cards[0], lines=lines, hash=digest, problems=problems, secrets=secrets)

    def with_problems(self, problems: Mapping[str, str]) -> Card:
        """Return the card with which a person is asked again, because the changes to these steps cannot be made."""
        return replace(self, problems=problems)

    def to_text(self, language: OneOf["en", "zh"] = "en", *, full: bool = False) -> str:
        """Return the card in words. A long argument is shortened and says by how much, unless it is `guarded`.

        With `full`, nothing is. Characters that steer a terminal, hide, or end a line are shown by their codes.
        """
        return self.secrets.clean(card_text(self, language, full=full))

    @property
    def is_shortened(self) -> bool:
        """Whether `to_text` leaves a part of an argument out without `full`."""
        return self.to_text() != self.to_text(full=True)

    def to_dict(self) -> dict[str, Json]:
        """Return the card as JSON."""
        shown: dict[str, Json] = {
            "about": self.about,
            "hash": self.hash,
            "policy": self.policy,
            "max_calls": self.max_calls,
            "repairs": list(self.repairs),
            "problems": dict(self.problems),
            "asks": [call.step for call in self.asks],
            "calls": [line.to_dict() for line in self.lines],
        }
        return {name: self.secrets.clean_json(value, numbers=False) for name, value in shown.items()}


def _is_there_for_a_no(call: PlannedCall, tools: ToolSet) -> bool:
    """Return whether a call is on the card only because it was refused before: else it would simply run."""
    own = call.verdict.instead_of
    return own is not None and own.action == "allow" and not tools[call.tool].effects.has_effects


def _line(
    call: PlannedCall, review: Review, words: Mapping[str, str], conditions: tuple[str, ...], most: int | None
) -> CardCall:
    tool = review.tools[call.tool]
    arguments, sources = without_secrets(call.arguments, tool), call.sources
    is_made = "[" in call.step or all(isinstance(value, Literal) for _, value in call.arguments.fields)
    return CardCall(
        call,
        tuple(_named(resource, call, tool) for resource in call.writes) if tool.effects.declared else None,
        {name: _steps(found.steps, words) for name, found in sources.arguments.items() if found.steps},
        {name: _steps(found.all_untrusted, words) for name, found in sources.arguments.items() if found.is_untrusted},
        conditions,
        _steps(sources.condition, words),
        1 if is_made and "[" in call.step else most,
        {name: _operand(value) for name, value in arguments.fields},
        frozenset(name for name, _ in arguments.fields if _counts(tool, name)),
        show.template_json(arguments),
    )


def _operand(value: Template) -> str:
    """Return what is written for an argument, every character of a value as it is."""
    if isinstance(value, Literal):
        return json.dumps(value.value, ensure_ascii=False)
    return operand_text(value, sys.maxsize)


def _counts(tool: Tool, name: str) -> bool:
    return name in tool.guarded if tool.guarded is not None else is_obeyed(tool, name)


def _named(resource: str, call: PlannedCall, tool: Tool) -> str:
    """Return the name of a resource with those arguments put in that are known already, and are no secrets."""
    for name, value in shown(call.values, tool).items():
        if isinstance(value, str | int):
            resource = resource.replace(f"{{{name}}}", str(value))
    return resource


def _steps(steps: frozenset[str], words: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(words.get(step, step) for step in sorted(steps, key=lambda step: (len(step), step)))


def _words_of_steps(checked: CheckedPlan) -> dict[str, str]:
    words: dict[str, str] = {}
    for step in walk(checked.plan.steps):
        if isinstance(step, Call):
            words[step.id] = f"{step.id} ({step.tool})"
        elif isinstance(step, AskModel):
            words[step.id] = f"{step.id} (ask_model)"
    return words


Surroundings = tuple[str, tuple[tuple[str, ...], int | None]]


def _surroundings(block: Block, conditions: tuple[str, ...], most: int | None) -> Iterator[Surroundings]:
    """Yield for each call what has to be so for it to be made, and how often it may be made."""
    for step in block:
        yield from _inside(step, conditions, most)


def _inside(step: Step, conditions: tuple[str, ...], most: int | None) -> Iterator[Surroundings]:
    match step:
        case Call() | AskModel():
            if isinstance(step, Call):
                yield step.id, (conditions, most)
            yield from _surroundings(step.on_error.do, (*conditions, f"{step.id} fails"), most)
        case If():
            test = _cut(step.test.text)
            yield from _surroundings(step.then, (*conditions, f"if {test}"), most)
            yield from _surroundings(step.otherwise, (*conditions, f"if not ({test})"), most)
        case ForEach():
            length = length_of(step.items)
            rounds = None if most is None or length is None else most * length
            head = f"for each {step.name} in {operand_text(step.items, LINE)}"
            yield from _surroundings(step.body, (*conditions, head), rounds)
        case While():
            rounds = None if most is None else most * step.max_iterations
            yield from _surroundings(step.body, (*conditions, f"while {_cut(step.test.text)}"), rounds)
        case Parallel():
            yield from _surroundings(step.members, conditions, most)
        case Try():
            yield from _surroundings(step.body, conditions, most)
            yield from _surroundings(step.handler, (*conditions, f"{step.id} fails"), most)
        case _:
            pass


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LINE else line[: LINE - 1] + "…"


def _lists(given: Mapping[str, Sequence[str]]) -> dict[str, Json]:
    return {name: list[Json](each) for name, each in given.items()}
