"""Numbers in text: `3°C`, `￥3,280.00`, `1.2万`, `-7`, `１２％`, `$2.1 billion`.

A number is digits with an optional sign, thousands separators, fraction, exponent and a word for its size right after
it. A hyphen is a sign unless a Latin letter, digit or closing bracket stands before it (`A-7`, `10-20`); `零下`, `负`
and `minus` are signs too, and so is `below zero` after a number. A percentage is the number as written. Computed in
decimal, so that `128.6万` is exactly 1286000; whole results are whole numbers.

A decimal comma is read where nothing else can be meant: after thousands with points (`1.234,56`) and next to a euro
sign (`12,50 €`). Dates, times of day, versions and telephone numbers have digits but are no numbers: they are passed
over. Chinese numerals are read only where the whole text is one (`三`, `零下十二度`); in running text they are as often
parts of words (`一般`, `万一`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from decimal import Context, Decimal

from toolplan.expressions.faults import Fault
from toolplan.patterns import late_pattern

__all__ = ["numbers_in", "passed_over"]

_DIGIT = "[0-9０-９]"
_SCALES = {
    "万亿": 12, "千亿": 11, "百亿": 10, "十亿": 9, "亿": 8, "千万": 7, "百万": 6, "十万": 5, "万": 4, "千": 3, "百": 2,
    "trillion": 12, "billion": 9, "million": 6, "thousand": 3, "k": 3, "K": 3, "M": 6, "B": 9, "bn": 9,
}  # fmt: skip
_SCALE = (
    r"(?:[ ]?(?P<scale>万亿|千亿|百亿|十亿|亿|千万|百万|十万|万"
    r"|千(?![克米瓦卡焦帕赫伏字兆])|百(?![分帕])"
    r"|(?:trillion|billion|million|thousand)\b)|(?P<letter>[kKM]|bn|B)(?![A-Za-z0-9/]))?"
)
_UNSIGNED = (
    rf"(?P<whole>[0-9]{{1,3}}(?:,[0-9]{{3}})+(?!{_DIGIT})|[0-9]{{1,3}}(?:['’\u00a0\u202f][0-9]{{3}})+(?!{_DIGIT})"
    rf"|[０-９]{{1,3}}(?:[，,][０-９]{{3}})+(?!{_DIGIT})|{_DIGIT}+)"
    rf"(?P<fraction>[.．]{_DIGIT}+)?"
)
_EUROPEAN = r"(?<![0-9.,])[1-9][0-9]{0,2}(?:\.[0-9]{3})+,[0-9]+(?![0-9]|[.,][0-9])"
_FIRST = late_pattern(_DIGIT)
_NUMBER = late_pattern(
    r"(?:(?<![0-9A-Za-z_０-９.)\]])(?P<sign>[-+−－＋]|–(?=[0-9.])"
    r"|零下(?:摄氏|大约|约)?|(?<![正自胜])[负負]|[mM]inus(?=[ ]))(?:(?<![0-9０-９][ ][-+−－＋])[ ])?)?"
    r"(?P<money>[$￥¥€£₩₹][ ]?(?P<inner>[-−])?)?"
    r"(?:(?P<comma>"
    + _EUROPEAN
    + r"|[0-9]+,[0-9]{2}(?=[ \u00a0]?(?:€|EUR\b))|(?:(?<=€)|(?<=€[ ]))[0-9]+,[0-9]{2}(?![0-9]|,[0-9]))"
    rf"|{_UNSIGNED}|(?<![0-9A-Za-z.])(?P<point>\.[0-9]+))"
    rf"(?:[eE](?P<exponent>[-+]?[0-9]{{1,3}})(?![0-9A-Za-z]))?{_SCALE}"
)
_MORE = late_pattern(rf"{_UNSIGNED}(?P<scale>千万|百万|十万|万|千(?![克米瓦卡焦帕赫伏字兆])|百(?![分帕]))(?P<letter>)")
_BELOW_ZERO = late_pattern(
    r"[ ]?(?:(?:°[ ]?[CF]?|℃|℉|degrees?(?:[ ](?:Celsius|Fahrenheit))?|[CF]\b)[ ]?)?below[ ]zero\b", re.IGNORECASE
)
_NO_NUMBER = late_pattern(
    r"""(?!"""
    + _EUROPEAN
    + r""")(?:\d{4}-\d{1,2}-\d{1,2}(?:[T ](?=\d{1,2}:\d))?    # a date; its time of day comes next
      |\d{4}/\d{1,2}/\d{1,2} | \d{1,2}/\d{1,2}/\d{4}
      |(?:\d{4}年)?\d{1,2}月\d{1,2}[日号]
      |\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z\b|[+-]\d{2}:\d{2})?
      |\d+(?:\.\d+){2,}| \d+(?:-\d+){2,}              # a version, a telephone number
      |0\d{2,3}-\d{7,8}
      |(?<=\+)\d{1,3}(?:[ -]\d{2,4}){3,}
    )(?!\d)""",
    re.VERBOSE,
)
_HAN = {digit: value for value, digit in enumerate("零一二三四五六七八九")} | {
    "〇": 0, "两": 2, "十": 10, "百": 100, "千": 1_000, "万": 10**4, "亿": 10**8,
}  # fmt: skip
_HAN_NUMERAL = late_pattern(
    r"\s*(?P<sign>零下|[负負])?(?P<whole>[零〇一二两三四五六七八九十百千万亿]+)(?:点(?P<fraction>[零〇一二三四五六七八九]+))?"
    r"(?:摄氏度|度|元|个|天|人|次|岁|件|份|张|级|名|位|小时|分钟)?\s*"
)
_MIXED = late_pattern(rf"[一二两三四五六七八九十][百千万亿]{_DIGIT}")
MAX_DIGITS = 400
_SEPARATORS = late_pattern(r"[,，'’\s]")
_EXACT = Context(prec=2_000)


def numbers_in(text: str) -> Iterator[int | float]:
    """Yield the numbers that are written in `text`, in order. Raises `Fault` for one beyond what JSON can express."""
    if _FIRST.search(text) is None:
        if (numeral := _han(text)) is not None:
            yield numeral
        return
    at = 0
    # Digits are found quickly; what stands before a number (sign, currency) is at most eight characters long.
    while digit := _FIRST.search(text, at):
        if other := _NO_NUMBER.match(text, digit.start()):
            at = other.end()
            continue
        if _MIXED.match(text, max(0, digit.start() - 2), digit.end()):
            begun = text[digit.start() - 2 : digit.end()]
            raise Fault(f"the number `{begun}` begins in Chinese numerals and goes on in digits")
        match = _NUMBER.search(text, max(at, digit.start() - 8))
        assert match is not None
        at = match.end()
        value = _decimal(match)
        if (match["scale"] or "") in ("亿", "万", "千万", "百万", "千", "万亿"):
            smallest = _SCALES[match["scale"]]
            while (more := _MORE.match(text, at)) and _SCALES[more["scale"]] < smallest:
                smallest = _SCALES[more["scale"]]
                value = _EXACT.add(value, _decimal(more))
                at = more.end()
        below = _BELOW_ZERO.match(text, at)
        if (match["sign"] or "+") not in "+＋" or match["inner"] or below:
            value = value.copy_negate()
        yield _plain(value, bool(match["exponent"]))


def _decimal(match: re.Match[str]) -> Decimal:
    part = match.groupdict()
    if comma := part.get("comma"):
        whole, _, fraction = comma.partition(",")
        if len(fraction) == 3:
            raise Fault(
                f"`{comma[:MAX_DIGITS]}` may be one number or two",
                help="take the part that is meant with `split(',')`, or `replace` its separators",
            )
        part |= {"whole": whole.replace(".", ""), "fraction": "." + fraction}
    digits = (part["whole"] or "") + (part["fraction"] or "") + (part.get("point") or "")
    if len(digits) > MAX_DIGITS:
        raise Fault(f"a number in the text has more than {MAX_DIGITS} digits")
    plain = unicodedata.normalize("NFKC", digits)
    plain = _SEPARATORS.sub("", plain)
    value = Decimal(plain + ("e" + part["exponent"] if part.get("exponent") else ""))
    scale = part["scale"] or part["letter"]
    if scale in ("B", "bn") and not part.get("money"):
        scale = None
    return _EXACT.scaleb(value, _SCALES[scale]) if scale else value


def _plain(value: Decimal, in_exponent: bool) -> int | float:
    if (not in_exponent or value.adjusted() < 15) and value == value.to_integral_value(context=_EXACT):
        return int(value)
    number = float(value)
    if number - number != 0:
        raise Fault(f"the number {value:.3e} in the text is too large")
    return number


def passed_over(text: str) -> str | None:
    """Return the first date, time of day, version or telephone number in `text`, which are no numbers, or None."""
    at = _FIRST.search(text)
    found = at and _NO_NUMBER.match(text, at.start())
    return found.group().strip() if found else None


def _han(text: str) -> int | float | None:
    """Return the number that the whole text spells in Chinese numerals, None where it is none or has two readings."""
    match = _HAN_NUMERAL.fullmatch(text)
    if match is None or len(match["whole"]) > 30:
        return None
    whole = _han_whole(match["whole"])
    if whole is None:
        return None
    fraction = "".join(str(_HAN[digit]) for digit in match["fraction"] or "")
    value = Decimal(f"{whole}.{fraction or 0}")
    return _plain(value.copy_negate() if match["sign"] else value, False)


def _han_whole(numeral: str) -> int | None:
    """Return the value of `三千零五十`, `一亿二千万`, `二〇二六`; None for what breaks the order (`一万二`, `百三`)."""
    values = [_HAN[character] for character in numeral]
    if all(value < 10 for value in values):
        return int("".join(map(str, values)))
    total = section = 0
    digit: int | None = None
    largest, smallest = 10**12, 10**4
    for value in values:
        if value < 10:
            if digit:
                return None
            digit = value
        elif value >= 10**4:
            if value >= largest or not section + (digit or 0):
                return None
            total, section, digit = total + (section + (digit or 0)) * value, 0, None
            largest, smallest = value, 10**4
        else:
            if value >= smallest or (not digit and value > 10):
                return None
            section, digit, smallest = section + (digit or 1) * value, None, value
    if digit and values[-2] not in (0, 10):  # `一万二` is 12000 to some readers
        return None
    return total + section + (digit or 0)
