"""What a value may stand for: the addresses, amounts and texts in it, and whether it is one of a list.

A rule that allows goes by what a value certainly is; one that asks or denies by what it may be. So there are two
comparisons (`same` in `facts.py`, `is_like` here), and an amount that can be read in two ways is none.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from toolplan.patterns import late_pattern
from toolplan.policy.quantities import plain_numbers
from toolplan.values import Json

__all__ = ["addresses_in", "amount_of", "climbs", "count_of", "is_like", "texts_in"]

_SEPARATORS = late_pattern(r"[,;，；、]")
_NAMED = late_pattern(r"<([^<>]*)>")
_MONEY = r"[$￥¥€£₩₹]|usd|eur|gbp|cny|rmb|jpy|chf|aud|cad|inr|hkd|sgd|us\$|dollars?|euros?|pounds?|yuan|yen"
_AMOUNT = late_pattern(
    rf"""(?:{_MONEY})?\s?[-+−－＋]?\s?(?:{_MONEY})?\s?
        (?:\d+(?:\.\d+)?|\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?|\d{{1,3}}(?:['’]\d{{3}})+(?:\.\d+)?)
        (?:e[-+]?\d{{1,3}})?
        (?:\s?(?P<scale>万亿|千亿|百亿|十亿|亿|千万|百万|十万|万|千|百|trillion|billion|million|thousand)|(?P<letter>[kM]))?
        \s?(?:{_MONEY}|元|块|块钱|人民币|美元|欧元|日元|港元|%)?""",
    re.VERBOSE | re.IGNORECASE,
)
_TWO_WAYS = late_pattern(r"(?<![\d.,])\d{1,3}\.\d{3}(?![\d])")
"""`5.000` is five, or five thousand."""
_HAN_ONLY = late_pattern(r"[零〇一二两三四五六七八九十百千万亿点负]+(?:元|块|块钱)?")


def texts_in(value: Json) -> Iterator[str]:
    """Yield every text in a value, the names of fields too, and numbers as they are written."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from texts_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts_in(item)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def addresses_in(value: str) -> list[str]:
    """Return the mail addresses, or what is in their place, of a text that may hold several: `Ann <ann@x.org>, b@y`.

    A piece with angle brackets holds what is in any of them, and what else has an `@`. Empty without any `@`.
    """
    found: list[str] = []
    for piece in _SEPARATORS.split(value):
        named = [each.strip() for each in _NAMED.findall(piece)]
        rest = _NAMED.sub(" ", piece).split()
        found += [*named, *(each for each in rest if "@" in each)] if named else rest
    return found if any("@" in each for each in found) else []


def count_of(value: Json) -> int:
    """Return how many there may be in a value: elements, addresses, pieces between commas; one at least."""
    if isinstance(value, dict):
        return max(len(value), sum(map(count_of, value.values())), 1)
    if isinstance(value, list):
        return max(len(value), sum(map(count_of, value)), 1)
    if isinstance(value, str):
        pieces = [piece for piece in _SEPARATORS.split(value) if piece.strip()]
        return max(len(addresses_in(value)), len(pieces), 1)
    return 1


def amount_of(value: Json) -> float | None:
    """Return the number that a value is, or that a text says and nothing else; None where that cannot be told.

    `5k`, `$5,000` and `5万元` can; `5m`, `5 lakh`, `5.000` and `1 or 2` cannot.
    """
    if not isinstance(value, str):
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None
    text = unicodedata.normalize("NFKC", value).strip()
    shape = _AMOUNT.fullmatch(text)
    if shape is None:
        if not _HAN_ONLY.fullmatch(text):
            return None
    elif shape["letter"] == "m" or _TWO_WAYS.search(text):
        return None
    numbers = plain_numbers(text)
    return numbers[0] if len(numbers) == 1 else None


def is_like(value: Json, wanted: Json) -> bool:
    """Return whether a value may be the wanted one, however it is written: case, blanks, `Ann <ann@x.org>`, `"5"`."""
    if value == wanted:
        return True
    if isinstance(value, dict | list):
        return not isinstance(wanted, dict | list) and any(is_like(text, wanted) for text in texts_in(value))
    if isinstance(wanted, dict | list) or value is None or wanted is None:
        return False
    if isinstance(wanted, int | float) and not isinstance(wanted, bool) and isinstance(value, str):
        return amount_of(value) == wanted or str(wanted) == _folded(value)
    one, other = _folded(value), _folded(wanted)
    if one == other:
        return True
    return "@" in other and isinstance(value, str) and other in map(_folded, addresses_in(value))


def climbs(value: Json, pattern: str) -> bool:
    """Return whether a path leads out of where it seems to be, and the pattern does not say that it may."""
    return isinstance(value, str) and ".." in re.split(r"[/\\]", value) and "\\.\\." not in pattern


def _folded(value: Json) -> str:
    text = ("true" if value else "false") if isinstance(value, bool) else str(value)
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
