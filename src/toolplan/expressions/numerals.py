"""Numbers in text: `3°C`, `￥3,280.00`, `1.2万`, `-7`, `１２％`, `$2.1 billion`.

A number is digits with an optional sign, thousands separators, fraction, exponent and a word for its size right after
it. A hyphen is a sign unless a Latin letter, digit or closing bracket stands before it (`A-7`, `10-20`). A percentage
is the number as written. Computed in decimal, so that `128.6万` is exactly 1286000; whole results are whole numbers.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from decimal import Context, Decimal

from toolplan.expressions.faults import Fault

__all__ = ["numbers_in"]

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
    rf"(?P<whole>[0-9]{{1,3}}(?:,[0-9]{{3}})+(?!{_DIGIT})|[０-９]{{1,3}}(?:[，,][０-９]{{3}})+(?!{_DIGIT})|{_DIGIT}+)"
    rf"(?P<fraction>[.．]{_DIGIT}+)?"
)
_FIRST = re.compile(_DIGIT)
_NUMBER = re.compile(
    r"(?:(?<![0-9A-Za-z_０-９.)\]])(?P<sign>[-+−－＋])[ ]?)?"
    r"(?P<money>[$￥¥€£₩₹][ ]?(?P<inner>[-−])?)?"
    rf"(?:{_UNSIGNED}|(?<![0-9A-Za-z.])(?P<point>\.[0-9]+))"
    rf"(?:[eE](?P<exponent>[-+]?[0-9]{{1,3}})(?![0-9A-Za-z]))?{_SCALE}"
)
_MORE = re.compile(rf"{_UNSIGNED}(?P<scale>千万|百万|十万|万|千(?![克米瓦卡焦帕赫伏字兆])|百(?![分帕]))(?P<letter>)")
MAX_DIGITS = 400
_EXACT = Context(prec=2_000)


def numbers_in(text: str) -> Iterator[int | float]:
    """Yield the numbers that are written in `text`, in order. Raises `Fault` for one beyond what JSON can express."""
    at = 0
    # Digits are found quickly; what stands before a number (sign, currency) is at most six characters long.
    while digit := _FIRST.search(text, at):
        match = _NUMBER.search(text, max(at, digit.start() - 6))
        assert match is not None
        at = match.end()
        value = _decimal(match)
        if (match["scale"] or "") in ("亿", "万", "千万", "百万", "千", "万亿"):
            smallest = _SCALES[match["scale"]]
            while (more := _MORE.match(text, at)) and _SCALES[more["scale"]] < smallest:
                smallest = _SCALES[more["scale"]]
                value = _EXACT.add(value, _decimal(more))
                at = more.end()
        negative = (match["sign"] or "") in ("-", "−", "－") and bool(match["sign"])
        if negative or match["inner"]:
            value = value.copy_negate()
        yield _plain(value, bool(match["exponent"]))


def _decimal(match: re.Match[str]) -> Decimal:
    part = match.groupdict()
    digits = (part["whole"] or "") + (part["fraction"] or "") + (part.get("point") or "")
    if len(digits) > MAX_DIGITS:
        raise Fault(f"a number in the text has more than {MAX_DIGITS} digits")
    plain = unicodedata.normalize("NFKC", digits).replace(",", "").replace("，", "")
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
