"""Readers of text, and characters by their numbers."""

from __future__ import annotations

import re

from toolplan.expressions.faults import Fault, shown
from toolplan.expressions.functions.registry import as_text, as_whole, function
from toolplan.expressions.limits import Budget, pay_for_lines
from toolplan.expressions.numerals import numbers_in
from toolplan.values import Json

__all__: list[str] = []

_URL = re.compile(r"https?://[^\s<>\"'“”‘’「」『』《》（）【】，。；！？、|\\^`{}]+", re.IGNORECASE)
_URL_ENDS = ".,;:!?*_~"
_EMAIL = re.compile(
    r"(?<![\w.+-])[A-Za-z0-9_][\w.+-]{0,63}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![\w-])", re.ASCII
)


@function("find_urls")
def _find_urls(budget: Budget, text: Json) -> list[Json]:
    """The http and https addresses in a text, in order, without the punctuation after them."""
    plain = as_text(text)
    budget.spend(len(plain) // 10)
    found: list[Json] = []
    for match in _URL.finditer(plain):
        budget.produce(100 + len(match.group()))
        found.append(_trimmed(match.group()))
    return found


def _trimmed(url: str) -> str:
    """Return the address without what closes the sentence around it; a bracket opened inside it stays."""
    extra = {")": url.count(")") - url.count("("), "]": url.count("]") - url.count("[")}
    end = len(url)
    while end:
        last = url[end - 1]
        if last in extra and extra[last] > 0:
            extra[last] -= 1
        elif last not in _URL_ENDS:
            break
        end -= 1
    return url[:end]


@function("find_emails")
def _find_emails(budget: Budget, text: Json) -> list[Json]:
    """The e-mail addresses in a text, in order."""
    plain = as_text(text)
    budget.spend(len(plain) // 5)
    found: list[Json] = []
    for match in _EMAIL.finditer(plain):
        budget.produce(200)
        found.append(match.group())
    return found


@function("find_numbers")
def _find_numbers(budget: Budget, text: Json) -> list[Json]:
    """All numbers in a text, in order, each read as by `number`."""
    plain = as_text(text)
    budget.spend(len(plain) // 20)
    found: list[Json] = []
    for value in numbers_in(plain):
        budget.spend(20)
        found.append(value)
    return found


@function("lines")
def _lines(budget: Budget, text: Json) -> list[Json]:
    """The lines of a text, without their ends."""
    plain = as_text(text)
    pay_for_lines(budget, plain)
    return list(plain.splitlines())


@function("ord")
def _ord(budget: Budget, character: Json) -> int:
    """The number of a character in Unicode."""
    plain = as_text(character)
    if len(plain) != 1:
        raise Fault(f"`ord` takes one character, not {len(plain)}")
    return ord(plain)


@function("chr")
def _chr(budget: Budget, number: Json) -> str:
    """The character with this number in Unicode."""
    code = as_whole(number)
    if not 0 <= code < 0x110000 or 0xD800 <= code < 0xE000:
        raise Fault(f"no character has the number {shown(code)}")
    return chr(code)
