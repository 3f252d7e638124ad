"""Whether the user said it: the words that a plan itself writes into an argument, looked up in the request.

What is looked up depends on what the word is. A short text (a name, an address, an id) must occur in the request as a
whole token (`tokens.py`), case and blanks aside, or piece by piece in this order ("pizza Oslo" of "good pizza in
Oslo"); so must signs alone (`/`, `*`). A number must be one of the request's numbers, in whatever way it was written
there (`quantities.py`), also in words or as a percentage, and where an argument counts time, one of its lengths of
time. Of a longer text - a message, a description - only what can lead somewhere counts: mail addresses, web addresses,
account and card numbers, long numbers. Where an argument is for dates, those are computed from the calendar and are no
one's words (`dates.py`). What the request says is not to be done ("do not write to bob@x.org") was not said. Short
choices of a schema (`enum`) are the author's words. What cannot be found was not said.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Literal, TypeAlias

from toolplan.patterns import late_pattern
from toolplan.policy.dates import is_date, without_dates
from toolplan.policy.quantities import duration_of, durations_said, numbers_said, plain_numbers
from toolplan.policy.tokens import HAN, ODD, is_bare, plain, spaced, stands_in, unquoted
from toolplan.values import Json

__all__ = ["Way", "bare_leaves", "is_free_text", "is_glue", "leads_nowhere", "unsaid"]

FREE_TEXT_WORDS = 8
"""From so many words on, a text is read as prose, not as a name."""

_LEADS = late_pattern(
    r"""(?: https?://\S+ | (?<![\w.@-])(?:[\w-]+\.)+[a-z]{2,}(?:/\S*)?(?![\w@])     # web addresses
          | [\w.+-]+@[\w.-]+\w                                                    # mail addresses
          | (?<!\w)[A-Z]{2}\d{2}(?:[ ]?[A-Z0-9]{2,4}){3,8}(?!\w)                  # IBAN (ISO 13616)
          | (?<!\w)[A-Za-z]*\d[\w-]{5,}(?!\w) | (?<!\w)\d(?:[ -]?\d){5,}(?!\w)    # ids, card and telephone numbers
        )""",
    re.VERBOSE | re.ASCII,
)
_RUN_ON = late_pattern(r"(?:https?://|www\.|(?<![\w.+-])[\w.+-]{1,64}@)[a-z0-9.-]+\.[a-z]{2,6}\.(?=[A-Z][a-z]*\s)")
"""An address and the full stop of its sentence, without a blank before the next one: "on www.ours.com.They sent"."""
_NUMBER = late_pattern(r"[-+]?[\d.,]+")
_GAP = 2
"""Between two words of a text that was said in pieces there may be so many others."""
_SMALL = frozenset(
    re.findall(
        r"\w+", "a an the of and or for to from in on at by with about re fw is are my your our their this that no not"
    )
)
"""English words that say nothing by themselves."""
_EMPHASIS = late_pattern(r"\*\*(?=\S)([^*\n]+)(?<=\S)\*\*")
_GLUE = late_pattern(r"[\s,;:|_()<>\[\]'\"，、；：（）《》-]*")
"""What only stands between the parts of a text that is put together: `{name} <{address}>, {other}`."""
_PLAIN_SIGNS = late_pattern(r"[^\w/\\~*$%|&<>@#]*")
"""Signs as in a sentence, or pictures: what no shell and no file system takes for something."""
_CLIMB = late_pattern(r"\.{1,2}|-+")
_NOT_TO = late_pattern(
    r"""(?:(?:^|[.;!?\n]\s*|,\s+|\b(?:please|but|and|so)\s+)(?:please\s+)?(?:do\s+not|don't|dont|never)\s+
           (?!forget|hesitate|worry|miss|fail|wait|mind|care|be|have|know|think|only|just)
         | (?<![要需])不要(?!忘|紧|担心|客气) | (?<![特分区级性类鉴个告离])别(?!忘|担心|客气|管|的|人|墅|名|处|克)
         | 切勿|请勿
         | ,\s+(?:and\s+|but\s+)?not\s+(?!only|just|sure|later|before|if|when))
        (?:(?!\s(?:but|instead|rather|until|unless|before|without)\b
              | [.;!?](?:\s|$) | ,\s | [，。；！？\n] | 而是|直到|除非).)*""",
    re.VERBOSE | re.IGNORECASE,
)
"""What the user says is not to be done, up to the end of its clause."""
_IN_A_NAME = late_pattern(
    r"(?<![\w.+-])[\w.+-]+@[\w.-]+|https?://\S+|(?<![\w])(?!(?:usd|eur|gbp|cny|rmb|jpy|chf|aud|cad|inr|hkd|sgd|us|x|no|nr)\d)"
    r"[a-z_][a-z_]*\d\w*",
    re.IGNORECASE | re.ASCII,
)
"""Digits of an address, a link or a user's name (`ann99`) are no numbers of the request."""
_BY_BLANKS = late_pattern(r"(?<![\d.,-])[1-9]\d{0,2}(?:[ \u00a0\u202f]\d{3})+(?![\d])")
"""`1 500` is one number, if it is one: then neither 1 nor 500 was said."""
_ACCOUNTS = late_pattern(
    r"(?<!\w)(?:[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,3})?"  # IBAN (ISO 13616)
    r"|\d{4}(?:[ -]\d{4}){3,4}|\+\d{1,3}(?:[ -]?\d{2,}){2,})(?!\w|[ -]\d)",
    re.ASCII,
)
"""Accounts, cards and telephone numbers: one number, wherever blanks are set in it."""
_BETWEEN_DIGITS = late_pattern(r"[ -]")


def is_free_text(value: Json) -> bool:
    """Return whether a value is prose rather than a name, an address, an id or a number."""
    if isinstance(value, list):
        return bool(value) and all(is_free_text(item) for item in value)
    if not isinstance(value, str):
        return False
    return len(value.split()) + len(HAN.findall(value)) // 2 >= FREE_TEXT_WORDS


_COMMANDS = late_pattern(r"[|`]|&&|\$[({]|(?<!\S)(?:~|\.{1,2})?/\w|(?<!\S)--?[A-Za-z]")
"""What a text holds that is for a shell rather than for a reader: pipes, substitutions, paths, options."""


def leads_nowhere(text: Json, request: str) -> bool:
    """Return whether prose is for reading only: no commands, and no address or account that is not in the request."""
    return not any(isinstance(leaf, str) and _COMMANDS.search(leaf) for leaf in _leaves((text,))) and not unsaid(
        (text,), request, "prose"
    )


Way: TypeAlias = Literal["name", "wording", "prose"]
"""What a text is looked at as."""


def is_glue(word: Json) -> bool:
    """Return whether a piece of a text only stands between others: a comma, a blank."""
    return isinstance(word, str) and _GLUE.fullmatch(word) is not None


def bare_leaves(value: Json) -> list[str]:
    """Return the texts in a value that have no letter and no digit, the empty one among them."""
    return [leaf for leaf in _leaves((value,)) if isinstance(leaf, str) and is_bare(leaf)]


def unsaid(
    words: tuple[Json, ...],
    request: str,
    way: Way = "name",
    seconds: int | None = None,
    *,
    dates: bool = False,
    flags: bool = False,
) -> list[str]:
    """Return which of these words, as text, the request does not hold. `seconds`: what a number stands for, of time.

    As "prose", only what can lead somewhere counts, whatever the length. As "wording", a short text of plain letters
    ("Hello", "Lunch with Ann") is no name: only its numbers, addresses, ids and paths have to be in the request. As a
    "name", all of it has to be. With `dates`, a date is nobody's word. With `flags` so much counts that true, false,
    null and what is empty have to be said too - which they cannot be.
    """
    said = _Said.of(request)
    missing: dict[str, None] = {}
    for word in _leaves(words, flags=flags):
        if word is None or isinstance(word, bool):
            missing[json.dumps(word)] = None
        elif isinstance(word, int | float):
            if way != "prose" and not said.number(word, seconds):
                missing[f"{word:g}" if isinstance(word, float) else str(word)] = None
        elif not word:
            if way == "name":
                missing['""'] = None
        else:
            for lead, is_whole in _leads(word, way):
                if not said.text(lead, dates or not is_whole):
                    missing[lead] = None
    return list(missing)


def _leads(text: str, way: Way) -> Iterator[tuple[str, bool]]:
    """Yield what of a text has to be in the request, and whether it is the whole text.

    Of a name that is all of it, of prose only what can lead somewhere.
    """
    if way == "name":
        yield text, True
    elif way == "prose" or is_free_text(text):
        yield from ((lead, False) for lead in _LEADS.findall(text))
    elif is_date(text.strip()):
        yield text, True
    elif is_bare(text):
        if _CLIMB.fullmatch(text.strip()) or not _PLAIN_SIGNS.fullmatch(text):
            yield text, True
    else:
        pieces = [piece.strip("()[]{}<>.,;:!?'\"，。！？：；、") for piece in text.split()]
        odd = [piece for piece in pieces if ODD.search(piece)]
        if odd and len(odd) == len(pieces):
            yield text, True
        else:
            yield from ((piece, False) for piece in odd)


def _leaves(values: Iterable[Json], *, flags: bool = False) -> Iterator[str | int | float | bool | None]:
    """Yield every text and number in the values, keys too. True, false and null say nothing without `flags`."""
    for value in values:
        if isinstance(value, dict):
            yield from value
            yield from _leaves(value.values(), flags=flags)
        elif isinstance(value, list):
            yield from _leaves(value, flags=flags)
        elif flags or (isinstance(value, str | int | float) and not isinstance(value, bool)):
            yield value


class _Said:
    """A request, prepared for being searched."""

    def __init__(self, request: str) -> None:
        request = _NOT_TO.sub(" | ", _RUN_ON.sub(r"\g<0> ", _EMPHASIS.sub(r"\1", request)))
        request = _run_together(request)
        self.chinese = plain(request)
        self.words = spaced(self.chinese)
        self.parts = [_stem(part) for part in map(unquoted, self.words.split(" ")) if part and part not in _SMALL]
        counted = _BY_BLANKS.sub(lambda found: re.sub(r"\s", "", found[0]), _IN_A_NAME.sub(" | ", request))
        self.numbers = numbers_said(without_dates(counted))
        self.counts = without_dates(spaced(plain(counted)))
        """What may say a number: the request without its dates ("June 13" does not say 13) and what is in names."""
        self.durations = durations_said(request)

    @staticmethod
    @lru_cache(maxsize=16)
    def of(request: str) -> _Said:
        return _Said(request)

    def number(self, number: float, seconds: int | None = None) -> bool:
        if not abs(number) < 10**300:
            return False
        if float(number) in self.numbers:
            return True
        return seconds is not None and Fraction(str(number)) * seconds in self.durations

    def text(self, text: str, dates: bool) -> bool:
        """Return whether a short text occurs, whole, in the request. With `dates`, a date always does."""
        wanted = unquoted(plain(_run_together(text)))
        if not wanted or (dates and is_date(wanted)):
            return True
        if HAN.search(wanted):
            return stands_in(wanted, self.chinese)
        if stands_in(wanted, self.counts if wanted.isdecimal() else self.words):
            return True
        if is_bare(wanted):
            return False
        if _NUMBER.fullmatch(wanted) is not None:
            found = plain_numbers(wanted)  # none in an IP address or a version
            return bool(found) and all(number in self.numbers for number in found)
        if (lasting := duration_of(wanted)) is not None:
            return lasting in self.durations
        return self._in_pieces(wanted.split(" "))

    def _in_pieces(self, parts: list[str]) -> bool:
        """Return whether the words of a text occur in this order, close together, whatever their endings."""
        wanted = [_stem(word) for word in map(unquoted, parts) if word and word not in _SMALL]
        if len(wanted) < 2:
            return False
        ends = [place for place, word in enumerate(self.parts) if word == wanted[0]]
        for word in wanted[1:]:
            reach = {place + step for place in ends for step in range(1, _GAP + 2)}
            ends = [place for place in sorted(reach) if place < len(self.parts) and self.parts[place] == word]
        return bool(ends)


def _run_together(text: str) -> str:
    return _ACCOUNTS.sub(lambda found: _BETWEEN_DIGITS.sub("", found[0]), text)


def _stem(word: str) -> str:
    """Return a word without its ending, as far as that is the same word to a reader: "meetings", "meeting's"."""
    if not word.isalpha():
        return word
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word.removesuffix(ending).rstrip("e")
    return word.rstrip("e") if len(word) > 4 else word
