"""The words of a text, as two texts are compared by them: English words without their plural, Chinese in pairs.

Names are cut where their author put a seam (`get_weather`, `getWeather`, `HTTPServer`). Of English endings only that of
the plural is folded, as by the S stemmer (Harman 1991, "How effective is suffixing?"); stronger stemmers found no more
tools in the benches and mix up more words. Text in Chinese, Japanese and Korean script has no spaces, so every two
neighbouring characters are a word, the usual index for it (Nie, Gao, Zhang, Zhou 2000).
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterator

from toolplan.patterns import late_pattern

__all__ = ["holds", "parts_of", "words_of"]

_WIDE = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_PIECE = late_pattern(rf"(?P<wide>[{_WIDE}]+)|(?:(?![{_WIDE}])[^\W\d_])+|\d+")
_IS_WIDE = late_pattern(rf"[{_WIDE}]")
_SEAM = late_pattern(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_PLURAL_E = late_pattern(r"(?<=[sxzi])e\Z|(?<=[cs]h)e\Z")
_PLURAL_Y = late_pattern(r"(?<=[b-df-hj-np-tv-z])y\Z")
"""Endings that the plural changes: box and boxes, size and sizes, movie and movies, city and cities."""
_PART = late_pattern(r"[.!?;,:\n]+(?=\s|$)|[。！？；，：、\n]+|\b(?:and|then)\b", re.IGNORECASE)
_SHORTEST_PART = 4
"""Characters that a part of a request has at least."""
_STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
        a about all also am an and any are as at be been but by can could did do does for from had has have he her his
        how i if in into is it its just may me my no not of on or our out please she should so some than that the their
        them then there these they this to up us was we were what when where which who will with would you your
        """,
    )
)
"""English words that say nothing about a tool. Those of other texts are told by how many tools have them."""


def words_of(text: str, *, all_words: bool = False) -> Iterator[tuple[str, str]]:
    """Give each word that counts, or every word: in the form that is compared, and as it stands in the text."""
    for word, shown in _words(text):
        if all_words or (word not in _STOP_WORDS and (len(word) > 1 or _IS_WIDE.match(word))):
            yield _singular(word), shown


def _words(text: str) -> Iterator[tuple[str, str]]:
    for piece in _PIECE.finditer(unicodedata.normalize("NFKC", text)):
        run = piece[0]
        if piece.lastgroup == "wide":
            for pair in [run[at : at + 2] for at in range(len(run) - 1)] or [run]:
                yield pair, pair
        else:
            for part in _SEAM.split(run):
                yield part.casefold(), part


@functools.lru_cache(maxsize=65_536)
def _singular(word: str) -> str:
    """Return a form that an English word and its plural have in common; not always a word."""
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    if len(word) > 3:
        word = _PLURAL_E.sub("", word)
    return _PLURAL_Y.sub("i", word)


def holds(request: str, keyword: str) -> bool:
    """Return whether a request speaks of a keyword: Chinese anywhere in it, other words whole, plural or not."""
    if _IS_WIDE.search(keyword):
        return _joined(keyword) in _joined(request)
    phrase = _spaced(keyword)
    return bool(phrase.strip()) and phrase in _spaced(request)


@functools.lru_cache(maxsize=4096)
def _joined(text: str) -> str:
    return "".join(unicodedata.normalize("NFKC", text).casefold().split())


@functools.lru_cache(maxsize=4096)
def _spaced(text: str) -> str:
    return f" {' '.join(_singular(word) for word, _ in _words(text))} "


def parts_of(request: str) -> list[str]:
    """Return the parts that a request has by its punctuation and its "and"s; the request itself where it has none."""
    parts = [part.strip() for part in _PART.split(request)]
    return [part for part in parts if len(part) >= _SHORTEST_PART] or [request]
