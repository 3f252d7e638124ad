"""The quantities that a request says: numbers in digits and in words, percentages, durations. English and Chinese.

    numbers_said("a dozen for 15 %")          12, 15, 0.15
    durations_said("an hour and a half")      5400 seconds
    seconds_of("duration_minutes", schema)    60: in what an argument counts time, where its name or description says so

What may be read in two ways is not read: then a person is asked, who knows. So `one` counts before a thing only ("one
ticket", not "the red one"), a Chinese numeral only where a measure word or a larger unit shows that it is one
(`两百块`, not `一般` or `万一`), and `some hundred`, `几百`, `三十多` say no number at all.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

from toolplan.expressions.faults import Fault
from toolplan.expressions.numerals import numbers_in
from toolplan.patterns import late_pattern

__all__ = ["duration_of", "durations_said", "numbers_said", "plain_numbers", "seconds_of"]

_SMALL = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16,
    "seventeen": 17, "eighteen": 18, "nineteen": 19,
}  # fmt: skip
_TENS = {
    "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
_LARGE = {"thousand": 1000, "million": 10**6, "billion": 10**9}
_WORD = "|".join(sorted((*_SMALL, *_TENS, "hundred", *_LARGE), key=len, reverse=True))
_RUN = (
    rf"(?:(?:an?\ (?=hundred|thousand|million|billion))?(?:{_WORD})(?:(?:\ and\ |[\ -])(?:{_WORD})){{0,12}}"
    rf"(?![\ -](?:{_WORD})\b))"
)
_VAGUE = r"(?<!past\ )(?<!some\ )(?<!several\ )(?<!few\ )(?<!about\ a\ )"
_NUMERAL = late_pattern(
    rf"""(?<![\w-]){_VAGUE}(?:
        (?P<half>half\ an?\ )?(?P<dozen>(?:(?:an?|{_RUN}|\d{{1,9}})\ )?dozen)\b
      | (?P<part>half\ an?\ (?P<scale>hundred|thousand|million|billion))\b
      | (?P<run>{_RUN}|\d{{1,9}}(?=\ and\ a\ half))
        (?P<and_half>\ and\ a\ half(?:\ (?P<times>thousand|million|billion))?)?\b
    )(?!-?(?:odd|something|ish)\b|\ or\ so\b)""",
    re.VERBOSE,
)
_HALF = late_pattern(r"(?<![\w-])half(?!\w|-|\s+(?:past|an?|of\s+an?)\b)")
_NOT_A_COUNT = late_pattern(
    r"(?:the|this|that|these|those|which|no|any|every|each|another|last|next|first|only|new|old|red|big|small) $"
)
_NO_THING = late_pattern(
    r"(?:of|is|was|are|were|will|would|can|could|and|or|but|by|on|in|at|to|from|for|with|that|which|who|more|another"
    r"|day|time|way)\b"
)
_CLOCK = late_pattern(r"\s*(?:o'?clock|[ap]\.?m\b|past\b|to\ \w+\b|thirty\b|fifteen\b)")
_PERCENT = late_pattern(r"(?<![\d.,])([-+]?\d[\d.,]{0,20})\s?(?:%|percent\b|per\ cent\b|pct\b)")
_PERCENT_WORDS = late_pattern(rf"(?<![\w-])({_RUN})\s(?:percent|per\ cent)\b")
_FRACTIONS = {"½": Fraction(1, 2), "¼": Fraction(1, 4), "¾": Fraction(3, 4)}
_VULGAR = late_pattern(r"(?<!\d)(\d{0,9})\s?([½¼¾])")
_RAISED = late_pattern(r"[⁰¹²³⁴-⁹₀-₉]+")

_HAN_DIGITS = "零〇一二两三四五六七八九"
_VALUES = {digit: value for value, digit in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_BARE = {word: float(value) for word, value in (*_VALUES.items(), ("十", 10), ("one", 1))}
_DIGIT = late_pattern(r"[0-9]")
_HAN_RUN = rf"[{_HAN_DIGITS}十百千万亿]+"
_HAN = late_pattern(
    rf"(?P<before>百分之|[几数第点周期拜好\d.])?(?P<whole>{_HAN_RUN})"
    rf"(?P<fraction>点[{_HAN_DIGITS}]{{1,9}}(?![{_HAN_DIGITS}十百千万亿分刻]))?(?=(?P<after>.{{0,2}}))"
)
_MEASURES = frozenset("个块元张份人次天年周件台瓶杯盒袋斤位名间本套箱页封条辆只双秒米岁层支部场桌")
_ARTICLES = frozenset("个份张件台瓶杯盒袋位名间本套箱页封条辆只双次人部场桌层支周年")
"""What `一` before is most often an article: `发一封邮件` says no number."""
_LONG_MEASURES = ("小时", "分钟", "星期", "公里", "公斤", "美元", "欧元", "日元", "人民币", "钟头")
_ABOUT = ("多", "几", "余", "来")
_NO_COUNT_AFTER = ("月", "日", "号", "点", "时")

_UNITS = {
    "hour": 3600, "hr": 3600, "h": 3600, "minute": 60, "min": 60, "second": 1, "sec": 1, "day": 86400, "week": 604800,
    "小时": 3600, "钟头": 3600, "分钟": 60, "秒": 1, "天": 86400, "周": 604800, "星期": 604800,
}  # fmt: skip
_UNIT = r"(?:hours?|hrs?|minutes?|mins?|seconds?|secs?|days?|weeks?|h)(?![\w])"
_ENGLISH_SPAN = late_pattern(
    rf"""(?<![\w.,-])(?:
        (?P<half>half\ (?:an?\ |of\ an\ )?|½\ ?)
      | (?P<number>\d{{1,9}}(?:\.\d{{1,9}})?|an?|{_RUN})(?P<and>\ and\ a\ half)?[\ -]?
    )(?P<unit>{_UNIT})(?P<later>\ and\ a\ half\b)?""",
    re.VERBOSE,
)
_HAN_SPAN = late_pattern(
    rf"(?<![几数第周期拜.\d{_HAN_DIGITS}十百千万亿])(?P<number>\d{{1,9}}(?:\.\d{{1,9}})?|[{_HAN_DIGITS}十百千]{{1,12}}|(?=半))"
    r"\s?个?(?P<half>半)?个?(?P<unit>小时|钟头|分钟|秒|天(?![气上下空])|周(?![年末一二三四五六日])|星期(?![一二三四五六日天]))"
    r"(?P<later>半)?"
)
_HALVED = (3600, 60)
"""Half a day is as often some hours, or a long time (`半天`)."""
_RATE = late_pattern(r"(?:\d\S*|times|once|twice|km|miles|dollars|euros|pounds) \Z")
"""Before `an hour`, which then is no length of time: twice a day, 20 euros an hour."""
_BETWEEN = late_pattern(r"(?:\s|,|and\b|又|零)*")
_NAMED_UNIT = late_pattern(r"minutes?|mins?|hours?|hrs?|seconds?|secs?|days?|weeks?|分钟|小时|秒|天")
_ISO_DURATION = late_pattern(r"P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.IGNORECASE)


def numbers_said(text: str) -> set[float]:
    """Return the numbers that a text says. Dates should be taken out of it before."""
    text = _without_fractions(text)
    found = set(plain_numbers(text)) if _DIGIT.search(text) else set[float]()
    for line in text.splitlines():  # an answer that is nothing else
        found.update(_BARE[word] for word in (line.strip(" .!。！").casefold(),) if word in _BARE)
    folded = text.casefold()
    for match in _PERCENT.finditer(folded):
        found |= {_hundredth(number) for number in plain_numbers(match[1])}
    found |= {_hundredth(number) for match in _PERCENT_WORDS.finditer(folded) if (number := _run(match[1])) is not None}
    found.update(map(float, _english(folded)))
    found.update(map(float, _chinese(text)))
    return found


def plain_numbers(text: str) -> list[float]:
    """Return the numbers that are written in digits."""
    try:
        return [float(number) for number in numbers_in(text) if abs(number) < 10**300]
    except Fault:
        return []


def durations_said(text: str) -> set[Fraction]:
    """Return the lengths of time that a text says, in seconds. `1 hour 30 minutes` is one of them."""
    text = _without_fractions(text).casefold()
    return {*_spans(text, _ENGLISH_SPAN, _english_length), *_spans(text, _HAN_SPAN, _chinese_length)}


def duration_of(text: str) -> Fraction | None:
    """Return the seconds of an ISO 8601 duration such as `PT1H30M`, None for any other text."""
    match = _ISO_DURATION.fullmatch(text.strip())
    if match is None or not any(match.groups()):
        return None
    units = (604800, 86400, 3600, 60, 1)
    return sum((Fraction(part) * unit for part, unit in zip(match.groups(), units, strict=True) if part), Fraction(0))


def seconds_of(name: str, schema: Mapping[str, Any]) -> int | None:
    """Return how many seconds one of an argument's numbers stands for: 60 for `duration_minutes`.

    None where neither its name nor its description names exactly one unit of time.
    """
    return _seconds_of(name, str(schema.get("title", "")), str(schema.get("description", "")))


@lru_cache(maxsize=4096)
def _seconds_of(name: str, *about: str) -> int | None:
    parts = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).casefold().split("_")
    for text in (" ".join(parts), *about):
        words = (unit for word in re.findall(r"[a-z]+|[一-鿿]+", text.casefold()) for unit in _units_in(word))
        if units := set(words):
            return units.pop() if len(units) == 1 else None
    return None


def _units_in(word: str) -> Iterator[int]:
    if word.isascii():
        if _NAMED_UNIT.fullmatch(word):
            yield _UNITS[word.removesuffix("s")]
    else:
        yield from (_UNITS[unit] for unit in _NAMED_UNIT.findall(word))


def _without_fractions(text: str) -> str:
    """Return the text with `1½` as `1.5` and without raised digits, which Unicode's plain form would run together."""

    def decimal(match: re.Match[str]) -> str:
        return str(float(Fraction(match[1] or 0) + _FRACTIONS[match[2]]))

    return unicodedata.normalize("NFKC", _RAISED.sub(" ", _VULGAR.sub(decimal, text)))


def _hundredth(number: float | Fraction) -> float:
    return float(Fraction(str(number)) / 100)


# English --------------------------------------------------------------------------------------------------------------


def _english(text: str) -> Iterator[Fraction]:
    for match in _NUMERAL.finditer(text):
        if dozen := match["dozen"]:
            count = dozen.removesuffix("dozen").strip()
            many = Fraction(1) if count in ("", "a", "an") else Fraction(count) if count.isdecimal() else _run(count)
            if many is not None and not (match["half"] and count):
                yield many * (6 if match["half"] else 12)
        elif match["part"]:
            yield Fraction(100 if match["scale"] == "hundred" else _LARGE[match["scale"]]) / 2
        elif (value := _run(match["run"])) is not None and not _CLOCK.match(text, match.end()):
            if match["and_half"]:
                yield (value + Fraction(1, 2)) * _LARGE.get(match["times"] or "", 1)
            elif match["run"] != "one" or _counts_a_thing(text, match.start(), match.end()):
                yield value
    if _HALF.search(text):
        yield Fraction(1, 2)


def _counts_a_thing(text: str, start: int, end: int) -> bool:
    """Return whether `one` says a number here: `one ticket`, not `the red one`, `one of them`."""
    after = text[end:].lstrip(" ")
    names = after[:1].isalpha() and not _NO_THING.match(after)
    return names and _NOT_A_COUNT.search(text[max(0, start - 20) : start]) is None


def _run(words: str) -> Fraction | None:
    """Return the value of number words in a row; None where they are not one number (`twenty twenty`, `one two`)."""
    if words.isdecimal():
        return Fraction(words)
    total, section, last, smallest = 0, 0, 1000, 10**12
    for word in re.split(r"[ -]", words):
        if word in ("a", "an"):
            section = 1
        elif word in _LARGE:
            if not section or _LARGE[word] >= smallest:
                return None
            smallest = _LARGE[word]
            total, section, last = total + section * smallest, 0, 1000
        elif word == "hundred":
            if not 0 < section < 100:
                return None
            section, last = section * 100, 100
        elif word in _TENS:
            if last < 100:
                return None
            section, last = section + _TENS[word], 10
        elif word in _SMALL:
            value = _SMALL[word]
            if last < 10 or (last == 10 and not 0 < value < 10):
                return None
            section, last = section + value, 1
    return Fraction(total + section)


def _english_length(match: re.Match[str]) -> Fraction | None:
    unit = match["unit"]
    seconds = _UNITS[unit if unit in _UNITS else unit.removesuffix("s")]
    if match["half"]:
        return Fraction(seconds, 2) if seconds in _HALVED else None
    number = match["number"]
    if number in ("a", "an") and (
        seconds == 1 or _RATE.search(match.string[max(0, match.start() - 20) : match.start()])
    ):
        return None
    value = Fraction(1) if number in ("a", "an") else Fraction(number) if number[0].isdecimal() else _run(number)
    if value is None:
        return None
    return (value + (Fraction(1, 2) if match["and"] or match["later"] else 0)) * seconds


# Chinese --------------------------------------------------------------------------------------------------------------


def _chinese(text: str) -> Iterator[Fraction]:
    for match in _HAN.finditer(text):
        before, whole, after = match["before"] or "", match["whole"], match["after"] or ""
        value = _han(whole)
        if value is None or after.startswith(_ABOUT):
            continue
        if match["fraction"]:
            digits = "".join(str(_VALUES[digit]) for digit in match["fraction"][1:])
            value += Fraction(int(digits), 10 ** len(digits))
        if before == "百分之":
            yield from (value, value / 100)
        elif not before and _is_count(whole, bool(match["fraction"]), after):
            yield value


def _is_count(whole: str, is_decimal: bool, after: str) -> bool:
    if after.startswith(_NO_COUNT_AFTER):
        return False
    if is_decimal:
        return True
    if len(whole) > 1:
        return whole[0] not in "百千万亿零〇" and any(sign in whole for sign in "十百千万亿")
    if after.startswith(_LONG_MEASURES):
        return True
    return after[:1] in _MEASURES and not (whole == "一" and after[:1] in _ARTICLES)


def _han(whole: str) -> Fraction | None:
    """Return the value of a Chinese numeral, as far as it has one only."""
    if len(whole) > 1 and not any(sign in whole for sign in "十百千万亿"):
        return None  # digits read out, or `两三`: two or three
    numbers = plain_numbers(whole + "个")
    return Fraction(str(numbers[0])) if len(numbers) == 1 else None


def _chinese_length(match: re.Match[str]) -> Fraction | None:
    number, seconds = match["number"], _UNITS[match["unit"]]
    if not number:
        return Fraction(seconds, 2) if match["half"] and seconds in _HALVED else None
    value = Fraction(number) if number[0].isdecimal() else _han(number)
    if value is None:
        return None
    return (value + (Fraction(1, 2) if match["half"] or match["later"] else 0)) * seconds


# Lengths that follow each other ---------------------------------------------------------------------------------------


def _spans(text: str, pattern: re.Pattern[str], length: Any) -> Iterator[Fraction]:
    """Yield each length, those that follow each other from large to small as one."""
    total: Fraction | None = None
    end, unit = -1, 0
    for match in pattern.finditer(text):
        value: Fraction | None = length(match)
        name = match["unit"]
        size = _UNITS[name if name in _UNITS else name.removesuffix("s")]
        goes_on = total is not None and size < unit and _BETWEEN.fullmatch(text, end, match.start())
        if total is not None and not goes_on:
            yield total
            total = None
        if value is not None:
            total = value + (total or 0)
        end, unit = match.end(), size
    if total is not None:
        yield total
