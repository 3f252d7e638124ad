"""What a rule asks of one argument."""

from __future__ import annotations

import re
from dataclasses import dataclass

from toolplan.policy.facts import UNKNOWN, CallFacts, Unknown, same
from toolplan.policy.quantities import plain_numbers
from toolplan.policy.truth import all_of
from toolplan.values import Json

__all__ = ["ArgumentTest"]


@dataclass(frozen=True, slots=True)
class ArgumentTest:
    """What a rule asks of an argument's value; everything given must hold.

    `untrusted`: it depends on other people's text; `said`: all of its words that the plan wrote are in the request;
    `guarded`: the tool counts it among those for which that matters; `free_text`: it is prose.

    An argument that is not there - left out without a default, null, or an empty text or list - has no value that could
    be so, and no test holds but `absent`: with True it holds (also) when the argument is not there, with False never.
    """

    equals: Json | Unknown = UNKNOWN
    one_of: tuple[Json, ...] | None = None
    none_of: tuple[Json, ...] | None = None
    matches: str | None = None
    not_matches: str | None = None
    at_least: float | None = None
    at_most: float | None = None
    items_at_least: int | None = None
    untrusted: bool | None = None
    said: bool | None = None
    guarded: bool | None = None
    free_text: bool | None = None
    absent: bool | None = None

    def concerns(self, name: str, facts: CallFacts) -> bool:
        """Return whether the test is about this argument: guarded or not, where it says so."""
        return self.guarded is None or facts.is_guarded(name) == self.guarded

    def holds(self, name: str, facts: CallFacts, *, every: bool = True) -> bool | None:
        """Return whether the argument is so; None when that cannot be known yet.

        Of a list, each of its elements has to be; without `every`, at least one of them.
        """
        if not self.concerns(name, facts):
            return False
        value = facts.arguments.get(name)
        if _is_absent(value) and not (value == self.equals and type(value) is type(self.equals)):
            return self.absent is True
        if self.absent is True and self._says_only_absent:
            return None if isinstance(value, Unknown) else False
        answers: list[bool | None] = []
        if self.untrusted is not None:
            answers.append(_as(facts.is_untrusted(name), self.untrusted))
        if self.said is not None:
            answers.append(_as(facts.is_said(name), self.said))
        if self.free_text is not None:
            is_open = isinstance(value, Unknown) and not facts.never_prose(name)
            is_prose = None if is_open else facts.is_prose(name, _value(value))
            answers.append(_as(is_prose, self.free_text))
        if self._needs_value:
            answers.append(None if isinstance(value, Unknown) else self._holds_for(value, every))
        found = all_of(answers)
        if isinstance(value, Unknown) and self.absent is True and found is False:
            return None  # it may turn out not to be there
        return found

    @property
    def _needs_value(self) -> bool:
        wanted = (self.one_of, self.none_of, self.matches, self.not_matches, self.at_least, self.at_most)
        wanted = (*wanted, self.items_at_least)
        return self.equals is not UNKNOWN or any(each is not None for each in wanted)

    @property
    def _says_only_absent(self) -> bool:
        asked = (self.untrusted, self.said, self.guarded, self.free_text)
        return not self._needs_value and all(each is None for each in asked)

    def _holds_for(self, value: Json, every: bool) -> bool:
        if self.items_at_least is not None:
            items = value if isinstance(value, list) else _addresses(value, []) if isinstance(value, str) else []
            if max(len(items), 1) < self.items_at_least:
                return False
        return self._fits(value, every)

    def _fits(self, value: Json, every: bool) -> bool:
        """Return whether the value is so; of a list, whether each of its elements is (`every`), or one.

        What cannot be told counts for caution: a rule that allows (`every`) does not hold, another does.
        """
        if isinstance(value, list) and not isinstance(self.equals, list) and (value or not every):
            return (all if every else any)(self._fits(item, every) for item in value)
        if (
            isinstance(value, str)
            and "@" in f"{self.matches}{self.not_matches}"
            and (each := _addresses(value, [value])) != [value]
        ):
            return (all if every else any)(self._fits(item, every) for item in each)
        if self.equals is not UNKNOWN and not same(value, self.equals):
            return False
        if self.one_of is not None and not any(same(value, each) for each in self.one_of):
            return False
        if self.none_of is not None and any(same(value, each) for each in self.none_of):
            return False
        if self.matches is not None and not (
            _matches(value, self.matches) and not (every and _climbs(value, self.matches))
        ):
            return False
        if self.not_matches is not None and _matches(value, self.not_matches):
            return False
        if self.at_least is None and self.at_most is None:
            return True
        number = _number(value)
        if number is None:
            return not every
        return (self.at_least is None or number >= self.at_least) and (self.at_most is None or number <= self.at_most)

    def to_dict(self) -> dict[str, Json]:
        """Return the test as JSON, with the keys of a policy file."""
        given: dict[str, Json] = {}
        for key in ("one_of", "none_of"):
            if (listed := getattr(self, key)) is not None:
                given[key] = list[Json](listed)
        for key in (
            "matches", "not_matches", "at_least", "at_most", "items_at_least", "untrusted", "said", "guarded",
            "free_text", "absent",
        ):  # fmt: skip
            if (value := getattr(self, key)) is not None:
                given[key] = value
        return given if isinstance(self.equals, Unknown) else {"equals": self.equals, **given}


def _value(value: Json | Unknown) -> Json:
    return None if isinstance(value, Unknown) else value


def _is_absent(value: Json | Unknown) -> bool:
    return value is None or value == "" or value == []


def _as(answer: bool | None, wanted: bool) -> bool | None:
    return None if answer is None else answer == wanted


def _matches(value: Json, pattern: str) -> bool:
    return isinstance(value, str) and re.fullmatch(pattern, value, re.DOTALL) is not None


def _climbs(value: Json, pattern: str) -> bool:
    """Return whether a path leads out of where it seems to be, and the pattern does not say that it may."""
    return isinstance(value, str) and ".." in re.split(r"[/\\]", value) and "\\.\\." not in pattern


def _addresses(value: str, otherwise: list[Json]) -> list[Json]:
    """Return the mail addresses, or what is in their place, of a text that may hold several: `Ann <ann@x.org>, b@y`."""
    found: list[Json] = []
    for piece in re.split(r"[,;，；、]", value):
        named = re.search(r"<([^<>]*)>\s*\Z", piece)
        found += [named[1].strip()] if named else piece.split()
    return found if any("@" in str(each) for each in found) else otherwise


def _number(value: Json) -> float | None:
    """Return the number that a value is, or the only one that a text has; None where that cannot be told."""
    if isinstance(value, str):
        numbers = plain_numbers(value)
        return numbers[0] if len(numbers) == 1 else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
