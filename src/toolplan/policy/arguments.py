"""What a rule asks of one argument."""

from __future__ import annotations

import re
from dataclasses import dataclass

from toolplan.policy.facts import UNKNOWN, CallFacts, Unknown, same
from toolplan.policy.likeness import addresses_in, amount_of, climbs, count_of, is_like, texts_in
from toolplan.policy.truth import all_of, as_wanted
from toolplan.values import Json

__all__ = ["ArgumentTest"]


@dataclass(frozen=True, slots=True)
class ArgumentTest:
    """What a rule asks of an argument's value; everything given must hold.

    `untrusted`: it depends on other people's text; `said`: all of its words that the plan wrote are in the request;
    `guarded`: the tool counts it among those for which that matters; `free_text`: it is prose.

    What cannot be told counts for caution: of a value that may be so (a number in words of its own, an object in place
    of a text, `Eve <eve@x.org>` for `eve@x.org`) a rule that allows does not hold, and one that asks or denies does.

    An argument that is not there - left out without a default, null, or an empty text or list - has no value that could
    be so, and no test holds but `absent`: with True it holds (also) when the argument is not there, with False never.
    Whether such an argument is `untrusted` or `said` is a question all the same where nothing there is a choice too:
    `""` for a path, null after other people's text was read.
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
        if (
            _is_absent(value)
            and not (value == self.equals and type(value) is type(self.equals))
            and not (self._asks_who and (facts.is_said(name) is False or facts.is_untrusted(name)))
        ):
            return self.absent is True
        if self.absent is True and self._says_only_absent:
            return None if isinstance(value, Unknown) else False
        answers: list[bool | None] = []
        if self.untrusted is not None:
            answers.append(as_wanted(facts.is_untrusted(name), self.untrusted))
        if self.said is not None:
            answers.append(as_wanted(facts.is_said(name), self.said))
        if self.free_text is not None:
            is_open = isinstance(value, Unknown) and not facts.never_prose(name)
            is_prose = None if is_open else facts.is_prose(name, _value(value))
            answers.append(as_wanted(is_prose, self.free_text))
        if self._needs_value:
            answers.append(None if isinstance(value, Unknown) else self._holds_for(value, every))
        found = all_of(answers)
        if isinstance(value, Unknown) and self.absent is True and found is False:
            return None  # it may turn out not to be there
        return found

    @property
    def _asks_who(self) -> bool:
        return self.untrusted is not None or self.said is not None

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
        if self.items_at_least is not None and count_of(value) < self.items_at_least:
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
            and (each := addresses_in(value))
            and each != [value]
        ):
            return (all if every else any)(self._fits(item, every) for item in each)
        return self._fits_listed(value, every) and self._fits_patterns(value, every) and self._fits_limits(value, every)

    def _fits_listed(self, value: Json, every: bool) -> bool:
        certain, possible = (same, is_like) if every else (is_like, same)
        if self.equals is not UNKNOWN and not certain(value, self.equals):  # pyright: ignore[reportArgumentType]
            return False
        if self.one_of is not None and not any(certain(value, each) for each in self.one_of):
            return False
        return self.none_of is None or not any(possible(value, each) for each in self.none_of)

    def _fits_patterns(self, value: Json, every: bool) -> bool:
        texts = [value] if isinstance(value, str) else [] if every else list(texts_in(value))
        if self.matches is not None and not any(
            _matches(text, self.matches) and not (every and climbs(text, self.matches)) for text in texts
        ):
            return False
        if self.not_matches is None:
            return True
        if isinstance(value, str) or every:
            return not any(_matches(text, self.not_matches) for text in texts_in(value))
        return True

    def _fits_limits(self, value: Json, every: bool) -> bool:
        if self.at_least is None and self.at_most is None:
            return True
        number = amount_of(value)
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


def _matches(text: str, pattern: str) -> bool:
    return re.fullmatch(pattern, text, re.DOTALL) is not None
