"""Whether the user said it: the words that a plan itself writes into an argument, looked up in the request.

What is looked up depends on what the word is. A short text (a name, an address, an id) must occur in the request as it
is, case and blanks aside, or piece by piece in this order ("pizza Oslo" of "good pizza in Oslo"); a number must be one
of the request's numbers, in whatever way it was written there (`quantities.py`), also in words or as a percentage, and
where an argument counts time, one of its lengths of time; of a longer text - a message, a description - only what can
lead somewhere counts: mail addresses, web addresses, account and card numbers, long numbers. Dates and times are
computed from the calendar and are no one's words. Short choices of a schema (`enum`) are the author's words. What
cannot be found was not said.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Literal, TypeAlias

from toolplan.patterns import late_pattern
from toolplan.policy.quantities import duration_of, durations_said, numbers_said, plain_numbers
from toolplan.values import Json

__all__ = ["is_free_text", "leads_nowhere", "unsaid"]

FREE_TEXT_WORDS = 8
"""From so many words on, a text is read as prose, not as a name."""

_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_HAN_DAY = (
    r"(?:大?[今明后昨前]天|[下上这本]?个?(?:周|星期|礼拜)[一二三四五六日天末]|(?:\d{4}年)?\d{1,2}月\d{1,2}[日号]?)"
)
_HAN_HOUR = (
    r"(?:凌晨|早上|上午|中午|下午|傍晚|晚上)?(?:\d{1,2}|[一二三四五六七八九十两]{1,3})[点时]"
    r"(?:半|整|[一三]刻|(?:\d{1,2}|[零一二三四五六七八九十]{1,3})分?)?"
)
_DATE = late_pattern(
    rf"""\d{{4}}[-/]\d{{1,2}}(?:[-/]\d{{1,2}})?
         (?:[T ]\d{{1,2}}:\d{{2}}(?::\d{{2}}(?:\.\d+)?)?)?\s?(?:Z|[+-]\d{{2}}:?\d{{2}})?
       | \d{{1,2}}:\d{{2}}(?::\d{{2}})?(?:\s?[ap]\.?m\.?)? | \d{{1,2}}\s?[ap]\.?m\.?
       | {_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?(?:,?\s+\d{{4}})? | \d{{1,2}}(?:st|nd|rd|th)?\s+{_MONTH}(?:,?\s+\d{{4}})?
       | {_HAN_DAY}?{_HAN_HOUR} | {_HAN_DAY}""",
    re.VERBOSE | re.IGNORECASE,
)
_DATED = late_pattern(
    rf"""\d{{4}}-\d{{1,2}}(?:-\d{{1,2}})? | \d{{1,2}}:\d{{2}}(?::\d{{2}})? | \d{{1,2}}\s?[ap]\.?m\b
       | \b{_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?\b(?:,?\s+\d{{4}}\b)?
       | \b\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH}(?:,?\s+\d{{4}}\b)?
       | \b\d{{1,2}}(?:st|nd|rd|th)\b | \d+\s*[年月日号点]""",
    re.VERBOSE | re.IGNORECASE,
)
_LEADS = late_pattern(
    r"""(?: https?://\S+ | (?<![\w.@-])(?:[\w-]+\.)+[a-z]{2,}(?:/\S*)?(?![\w@])     # web addresses
          | [\w.+-]+@[\w.-]+\w                                                    # mail addresses
          | (?<!\w)[A-Z]{2}\d{2}(?:[ ]?[A-Z0-9]{2,4}){3,8}(?!\w)                  # IBAN (ISO 13616)
          | (?<!\w)[A-Za-z]*\d[\w-]{5,}(?!\w) | (?<!\w)\d(?:[ -]?\d){5,}(?!\w)    # ids, card and telephone numbers
        )""",
    re.VERBOSE | re.ASCII,
)
_RUN_ON = late_pattern(r"(?:https?://|www\.|[\w.+-]+@)[a-z0-9.-]+\.[a-z]{2,6}\.(?=[A-Z][a-z]*\s)")
"""An address and the full stop of its sentence, without a blank before the next one: "on www.ours.com.They sent"."""
_WIDE = late_pattern(r"[\u3400-\u9fff\uf900-\ufaff]")
_NUMBER = late_pattern(r"[-+]?[\d.,]+")
_GAP = 2
"""Between two words of a text that was said in pieces there may be so many others."""
_SMALL = frozenset(
    re.findall(
        r"\w+", "a an the of and or for to from in on at by with about re fw is are my your our their this that no not"
    )
)
"""English words that say nothing by themselves."""
_ODD = late_pattern(r"\d|[@/\\_]|\w\.\w")
"""What is more than a word of a language: numbers, addresses, ids, paths."""
_BEFORE_NAME = r"(?<!\w)(?<!\w[.+@])"
_BEFORE_ODD = r"(?<!\w)(?<!\w[.+@-])"
_BEFORE_ADDRESS = r"(?<!\w)(?<!\w[.+@!#$%&'*/=?^`{|}~-])"
"""What must not stand before a text for it to be there as a whole: the tail of an address is another address
(RFC 5322, section 3.2.3, says what may be in one)."""
_BLANKS = late_pattern(r"\s+")


def is_free_text(value: Json) -> bool:
    """Return whether a value is prose rather than a name, an address, an id or a number."""
    if isinstance(value, list):
        return bool(value) and all(is_free_text(item) for item in value)
    if not isinstance(value, str):
        return False
    return len(value.split()) + len(_WIDE.findall(value)) // 2 >= FREE_TEXT_WORDS


_COMMANDS = late_pattern(r"[|`]|&&|\$[({]|(?<!\S)(?:~|\.{1,2})?/\w|(?<!\S)--?[A-Za-z]")
"""What a text holds that is for a shell rather than for a reader: pipes, substitutions, paths, options."""


def leads_nowhere(text: Json, request: str) -> bool:
    """Return whether prose is for reading only: no commands, and no address or account that is not in the request."""
    return not any(isinstance(leaf, str) and _COMMANDS.search(leaf) for leaf in _leaves((text,))) and not unsaid(
        (text,), request, "prose"
    )


Way: TypeAlias = Literal["name", "wording", "prose"]
"""What a text is looked at as."""


def unsaid(words: tuple[Json, ...], request: str, way: Way = "name", seconds: int | None = None) -> list[str]:
    """Return which of these words, as text, the request does not hold. `seconds`: what a number stands for, of time.

    As "prose", only what can lead somewhere counts, whatever the length. As "wording", a short text of plain letters
    ("Hello", "Lunch with Ann") is no name: only its numbers, addresses, ids and paths have to be in the request. As a
    "name", all of it has to be.
    """
    said = _Said.of(request)
    missing: dict[str, None] = {}
    for word in _leaves(words):
        if isinstance(word, int | float):
            if way != "prose" and not said.number(word, seconds):
                missing[f"{word:g}" if isinstance(word, float) else str(word)] = None
        else:
            for lead in _leads(word, way):
                if not said.text(lead):
                    missing[lead] = None
    return list(missing)


def _leads(text: str, way: Way) -> list[str]:
    """Return what of a text has to be in the request: a name as a whole, of prose only what can lead somewhere."""
    if way == "name":
        return [text]
    if way == "prose" or is_free_text(text):
        return _LEADS.findall(text)
    if _DATE.fullmatch(text.strip()):
        return [text]
    pieces = [piece.strip("()[]{}<>.,;:!?'\"，。！？：；、") for piece in text.split()]
    odd = [piece for piece in pieces if _ODD.search(piece)]
    return [text] if odd and len(odd) == len(pieces) else odd


def _leaves(values: Iterable[Json]) -> Iterator[str | int | float]:
    """Yield every text and number in the values, keys too. True, false and null say nothing."""
    for value in values:
        if isinstance(value, dict):
            yield from value
            yield from _leaves(value.values())
        elif isinstance(value, list):
            yield from _leaves(value)
        elif isinstance(value, str | int | float) and not isinstance(value, bool):
            yield value


class _Said:
    """A request, prepared for being searched."""

    def __init__(self, request: str) -> None:
        request = _RUN_ON.sub(r"\g<0> ", request)
        self.words = _plain(request)
        self.close = self.words.replace(" ", "")
        parts = (part.strip("()[]{}<>.,;:!?'\"") for part in self.words.split(" "))
        self.parts = [_stem(part) for part in parts if part and part not in _SMALL]
        self.undated = _DATED.sub(" | ", self.words)
        """The request without its dates: "June 13" does not say the number 13."""
        self.numbers = numbers_said(_DATED.sub(" | ", request))
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

    def text(self, text: str) -> bool:
        """Return whether a short text occurs, whole, in the request."""
        plain = _plain(text).strip(" .,;:!?。，；：！？'\"")
        if not plain or not any(char.isalnum() for char in plain) or _DATE.fullmatch(plain):
            return True
        if _WIDE.search(plain):  # Chinese sets no blanks between words
            return plain.replace(" ", "") in self.close
        before = _BEFORE_ADDRESS if "@" in plain else _BEFORE_ODD if _ODD.search(plain) else _BEFORE_NAME
        pattern = before + re.escape(plain) + r"(?![\w@]|[.+-]\w)"
        if re.search(pattern, self.undated if plain.isdecimal() else self.words):
            return True
        if _NUMBER.fullmatch(plain) is not None:
            found = plain_numbers(plain)  # none in an IP address or a version
            return bool(found) and all(number in self.numbers for number in found)
        if (lasting := duration_of(plain)) is not None:
            return lasting in self.durations
        return self._in_pieces(plain.split(" "))

    def _in_pieces(self, parts: list[str]) -> bool:
        """Return whether the words of a text occur in this order, close together, whatever their endings."""
        wanted = [_stem(word) for word in (part.strip("()[]{}<>.,;:!?'\"") for part in parts) if word not in _SMALL]
        wanted = [word for word in wanted if word]
        if len(wanted) < 2:
            return False
        ends = [place for place, word in enumerate(self.parts) if word == wanted[0]]
        for word in wanted[1:]:
            reach = {place + step for place in ends for step in range(1, _GAP + 2)}
            ends = [place for place in sorted(reach) if place < len(self.parts) and self.parts[place] == word]
        return bool(ends)


def _stem(word: str) -> str:
    """Return a word without its ending, as far as that is the same word to a reader: "meetings", "meeting's"."""
    if not word.isalpha():
        return word
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word.removesuffix(ending).rstrip("e")
    return word.rstrip("e") if len(word) > 4 else word


def _plain(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold()
    return _BLANKS.sub(" ", folded.replace("’", "'").replace("“", '"').replace("”", '"')).strip()
