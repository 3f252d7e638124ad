"""The methods of text, lists and objects. Nothing changes the value before the dot: `append` and the like are refused.

A method is a plain function of the `Budget`, the value before the dot and its arguments, registered under its name and
the kind of value it belongs to. `index`, `count` and `copy` belong to several kinds.
"""

from __future__ import annotations

import inspect
import string
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, cast

from toolplan.expressions.faults import ArgumentFault, Fault, Missing, shown
from toolplan.expressions.functions.registry import elements, written
from toolplan.expressions.limits import Budget, pay_for_lines
from toolplan.expressions.rendering import convert, format_value
from toolplan.expressions.sets import both, either, within, without
from toolplan.values import Json

__all__ = ["METHODS", "REFUSED", "Method"]


@dataclass(frozen=True, slots=True)
class Method:
    """One method of one kind of value; `kind` is `str`, `list` or `dict`."""

    name: str
    kind: type
    signature: str
    summary: str
    parameters: tuple[str, ...]
    required: int
    variadic: bool
    compute: Callable[..., Any]
    free_keywords: bool = False

    def takes(self, positions: int, keywords: Collection[str]) -> bool:
        """Return whether the method can be called with so many arguments by position and these by name."""
        if self.free_keywords:
            return True
        if positions > len(self.parameters) or not set(keywords) <= set(self.parameters[positions:]):
            return False
        return all(parameter in keywords for parameter in self.parameters[positions : self.required])


METHODS: dict[str, dict[type, Method]] = {}
"""Every method by its name and the kind of value before the dot."""

REFUSED: dict[str, str] = {
    "append": "expressions change nothing; write the longer list: `xs + [x]`",
    "extend": "expressions change nothing; write the longer list: `xs + ys`",
    "insert": "expressions change nothing; write the new list: `xs[:i] + [x] + xs[i:]`",
    "remove": "expressions change nothing; write what stays: `[x for x in xs if x != y]`",
    "pop": "expressions change nothing; read with `xs[-1]` or `d['k']`, and keep the rest with `xs[:-1]`",
    "clear": "expressions change nothing; write an empty list `[]` or object `{}`",
    "sort": "expressions change nothing; write `sorted(xs)`",
    "reverse": "expressions change nothing; write `xs[::-1]` or `reversed(xs)`",
    "add": "expressions change nothing; write `xs + [x]`",
    "discard": "expressions change nothing; write what stays: `[x for x in xs if x != y]`",
    "update": "expressions change nothing; write the new object: `{**a, **b}`",
    "setdefault": "expressions change nothing; read with `d.get('k', default)`",
    "popitem": "expressions change nothing",
    "fromkeys": "write `set(xs)` for the different elements, or `{x: value for x in xs}` for an object",
    "format_map": 'write an f-string: `f"{name}: {price}"`',
    "encode": "text has no bytes here",
    "strftime": "dates are ISO text; write `format_date(d, '%Y-%m-%d')`",
    "isoformat": "dates are ISO text already",
    "weekday": "write `weekday(d)`",
    "date": "write `date(d)`",
    "dumps": "write `json(value)`",
    "loads": "results are values already",
    "match": "write `in`, `startswith`, `find_numbers(text)` or the like",
    "search": "write `in`, `find_numbers(text)` or the like",
    "findall": "write `find_numbers(text)`, `find_urls(text)`, `find_emails(text)` or `split`",
    "sub": "write `replace`",
    "push": "expressions change nothing; write the longer list: `xs + [x]`",
    "map": "write a comprehension: `[f(x) for x in xs]`",
    "filter": "write a comprehension: `[x for x in xs if test]`",
    "includes": "write `x in xs`",
    "contains": "write `x in xs`",
    "indexOf": "write `xs.index(x)` or `text.find(x)`",
    "toLowerCase": "write `lower()`",
    "toUpperCase": "write `upper()`",
    "toFixed": 'write `round(x, 2)` or `f"{x:.2f}"`',
    "trim": "write `strip()`",
    "length": "write `len(x)`",
    "size": "write `len(x)`",
    "toString": "write `str(x)`",
    "slice": "write `xs[a:b]`",
    "substring": "write `text[a:b]`",
    "has_key": "write `'k' in d`",
    "total_seconds": "write `minutes_between(a, b)`",
    "group": "there are no regular expressions here",
}
"""What to write instead of a method that other languages or Python's changeable values have."""


def _method(
    *kinds: type, name: str | None = None, free_keywords: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(compute: Callable[..., Any]) -> Callable[..., Any]:
        called = name or compute.__name__.strip("_")
        parameters = list(inspect.signature(compute).parameters.values())[2:]
        plain = [p for p in parameters if p.kind == p.POSITIONAL_OR_KEYWORD]
        for kind in kinds:
            METHODS.setdefault(called, {})[kind] = Method(
                called,
                kind,
                f"{called}({written(parameters)})",
                (compute.__doc__ or "").strip().split("\n")[0],
                tuple(p.name for p in plain),
                sum(p.default is p.empty for p in plain),
                any(p.kind == p.VAR_POSITIONAL for p in parameters),
                compute,
                free_keywords,
            )
        return compute

    return register


# --- what methods need of their arguments ----------------------------------------------------------------------------


def _text(value: Any, position: int = 0) -> str:
    if isinstance(value, str):
        return value
    help = "turn it into text: `str(...)`" if isinstance(value, int | float) else None
    raise ArgumentFault(position, value, "text", help=help)


def _whole(value: Any, position: int) -> int:
    if isinstance(value, int):
        return value
    raise ArgumentFault(position, value, "a whole number")


def _bound(value: Any, position: int) -> int | None:
    return None if value is None else _whole(value, position)


def _width(budget: Budget, value: Any, position: int = 0) -> int:
    width = _whole(value, position)
    if width > 0:
        budget.produce(4 * width)
    return width


def _affixes(value: Any) -> str | tuple[str, ...]:
    if isinstance(value, list):
        return tuple([_text(item) for item in cast("list[Json]", value)])
    return _text(value)


# --- text ------------------------------------------------------------------------------------------------------------


def _simple(name: str, summary: str) -> None:
    """Register a method of text that takes no arguments and can at most triple its length."""
    plain = getattr(str, name)

    def compute(budget: Budget, text: str) -> Any:
        budget.produce(3 * len(text))
        return plain(text)

    compute.__name__ = name
    compute.__doc__ = summary
    _method(str)(compute)


_simple("lower", "The text in small letters.")
_simple("upper", "The text in capital letters.")
_simple("title", "The text with each word capitalised.")
_simple("capitalize", "The text with its first letter capitalised and the rest small.")
_simple("casefold", "The text in small letters for comparing regardless of case.")
_simple("swapcase", "The text with capital and small letters exchanged.")
_simple("isdigit", "Whether the text is digits only, at least one.")
_simple("isnumeric", "Whether the text is numeric characters only, at least one; 三 counts.")
_simple("isdecimal", "Whether the text is decimal digits only, at least one.")
_simple("isalpha", "Whether the text is letters only, at least one.")
_simple("isalnum", "Whether the text is letters and digits only, at least one.")
_simple("isspace", "Whether the text is blanks only, at least one.")
_simple("isupper", "Whether all its letters are capital, at least one.")
_simple("islower", "Whether all its letters are small, at least one.")
_simple("istitle", "Whether each word is capitalised, at least one.")
_simple("isascii", "Whether all characters are ASCII.")


@_method(str)
def strip(budget: Budget, text: str, chars: Json = None) -> str:
    """The text without blanks (or the characters `chars`) at both ends."""
    return text.strip(None if chars is None else _text(chars))


@_method(str)
def lstrip(budget: Budget, text: str, chars: Json = None) -> str:
    """The text without blanks (or the characters `chars`) at its beginning."""
    return text.lstrip(None if chars is None else _text(chars))


@_method(str)
def rstrip(budget: Budget, text: str, chars: Json = None) -> str:
    """The text without blanks (or the characters `chars`) at its end."""
    return text.rstrip(None if chars is None else _text(chars))


def _cut(budget: Budget, text: str, sep: Json, maxsplit: Json, cut: Callable[..., list[str]]) -> list[str]:
    between = None if sep is None else _text(sep)
    if between == "":
        raise Fault("a text cannot be split at nothing", help="its characters are `list(text)`")
    most = _whole(maxsplit, 1)
    budget.produce(len(text))
    affordable = budget.steps // 2
    parts = cut(text, between, most if 0 <= most <= affordable else affordable)
    budget.produce(70 * len(parts) + 4 * len(text))
    return parts


@_method(str)
def split(budget: Budget, text: str, sep: Json = None, maxsplit: Json = -1) -> list[str]:
    """The parts of the text between separators `sep` (any blanks without it), at most `maxsplit` cuts."""
    return _cut(budget, text, sep, maxsplit, str.split)


@_method(str)
def rsplit(budget: Budget, text: str, sep: Json = None, maxsplit: Json = -1) -> list[str]:
    """The same as `split`, cut from the end."""
    return _cut(budget, text, sep, maxsplit, str.rsplit)


@_method(str)
def splitlines(budget: Budget, text: str, keepends: Json = False) -> list[str]:
    """The lines of the text."""
    pay_for_lines(budget, text)
    return text.splitlines(bool(keepends))


@_method(str)
def join(budget: Budget, text: str, items: Any) -> str:
    """The texts of a list, with this text between them."""
    parts = elements(budget, items)
    size = len(text) * len(parts)
    for index, part in enumerate(parts):
        if not isinstance(part, str):
            if part is None:
                raise Missing(
                    f"`join` puts texts together, but element {index} is null",
                    help="leave empty ones out: `[x for x in xs if x is not None]`",
                )
            raise Fault(
                f"`join` puts texts together, but element {index} is {shown(part)}",
                help="turn each into text: `[str(x) for x in xs]`",
            )
        size += len(part)
    budget.spend(len(parts) // 4)
    budget.produce(size * (1 if size < 1_000 else 2))
    return text.join(parts)  # type: ignore[arg-type]


@_method(str)
def replace(budget: Budget, text: str, old: Json, new: Json, count: Json = -1) -> str:
    """The text with `old` replaced by `new` everywhere, or `count` times."""
    before, after, most = _text(old, 0), _text(new, 1), _whole(count, 2)
    budget.spend(len(text) // 20)
    if len(after) > len(before):
        found = text.count(before)
        if 0 <= most < found:
            found = most
        budget.produce(2 * (len(text) + found * (len(after) - len(before))))
    else:
        budget.produce(2 * len(text))
    return text.replace(before, after, most)


@_method(str)
def startswith(budget: Budget, text: str, prefix: Json, start: Json = None, end: Json = None) -> bool:
    """Whether the text begins with `prefix`, or one of several in a list."""
    return text.startswith(_affixes(prefix), _bound(start, 1), _bound(end, 2))


@_method(str)
def endswith(budget: Budget, text: str, suffix: Json, start: Json = None, end: Json = None) -> bool:
    """Whether the text ends with `suffix`, or one of several in a list."""
    return text.endswith(_affixes(suffix), _bound(start, 1), _bound(end, 2))


@_method(str)
def find(budget: Budget, text: str, sub: Json, start: Json = None, end: Json = None) -> int:
    """The index of the first `sub` in the text, -1 when there is none."""
    budget.spend(len(text) // 20)
    return text.find(_text(sub), _bound(start, 1), _bound(end, 2))


@_method(str)
def rfind(budget: Budget, text: str, sub: Json, start: Json = None, end: Json = None) -> int:
    """The index of the last `sub` in the text, -1 when there is none."""
    budget.spend(len(text) // 20)
    return text.rfind(_text(sub), _bound(start, 1), _bound(end, 2))


@_method(str, name="index")
def _index_of_text(budget: Budget, text: str, sub: Json, start: Json = None, end: Json = None) -> int:
    """The index of the first `sub` in the text; it must occur."""
    found = find(budget, text, sub, start, end)
    if found < 0:
        raise Missing(f"{shown(sub)} does not occur in {shown(text)}", help="`find` gives -1 instead")
    return found


@_method(str, name="rindex")
def _rindex(budget: Budget, text: str, sub: Json, start: Json = None, end: Json = None) -> int:
    """The index of the last `sub` in the text; it must occur."""
    found = rfind(budget, text, sub, start, end)
    if found < 0:
        raise Missing(f"{shown(sub)} does not occur in {shown(text)}", help="`rfind` gives -1 instead")
    return found


@_method(str, name="count")
def _count_in_text(budget: Budget, text: str, sub: Json, start: Json = None, end: Json = None) -> int:
    """How often `sub` occurs in the text."""
    budget.spend(len(text) // 20)
    return text.count(_text(sub), _bound(start, 1), _bound(end, 2))


def _fill(fill: Json) -> str:
    character = _text(fill, 1)
    if len(character) != 1:
        raise Fault(f"the filling is one character, not {len(character)}")
    return character


@_method(str)
def ljust(budget: Budget, text: str, width: Json, fill: Json = " ") -> str:
    """The text filled up to `width` characters at its end."""
    return text.ljust(_width(budget, width), _fill(fill))


@_method(str)
def rjust(budget: Budget, text: str, width: Json, fill: Json = " ") -> str:
    """The text filled up to `width` characters at its beginning."""
    return text.rjust(_width(budget, width), _fill(fill))


@_method(str)
def center(budget: Budget, text: str, width: Json, fill: Json = " ") -> str:
    """The text filled up to `width` characters at both ends."""
    return text.center(_width(budget, width), _fill(fill))


@_method(str)
def zfill(budget: Budget, text: str, width: Json) -> str:
    """The text filled up to `width` characters with zeros after its sign."""
    return text.zfill(_width(budget, width))


@_method(str)
def removeprefix(budget: Budget, text: str, prefix: Json) -> str:
    """The text without `prefix`, if it begins with it."""
    return text.removeprefix(_text(prefix))


@_method(str)
def removesuffix(budget: Budget, text: str, suffix: Json) -> str:
    """The text without `suffix`, if it ends with it."""
    return text.removesuffix(_text(suffix))


@_method(str)
def partition(budget: Budget, text: str, sep: Json) -> list[str]:
    """What stands before the first `sep`, `sep` itself, and what stands after it."""
    return list(text.partition(_separator(sep)))


@_method(str)
def rpartition(budget: Budget, text: str, sep: Json) -> list[str]:
    """What stands before the last `sep`, `sep` itself, and what stands after it."""
    return list(text.rpartition(_separator(sep)))


def _separator(sep: Json) -> str:
    text = _text(sep)
    if not text:
        raise Fault("a text cannot be split at nothing")
    return text


@_method(str, name="format", free_keywords=True)
def _format(budget: Budget, text: str, *values: Json, **named: Json) -> str:
    """The text with `{}`, `{0}` and `{name}` replaced; only plain fields, `f"..."` is better."""
    budget.spend(len(text) // 20)
    out: list[str] = []
    counted = 0
    try:
        pieces = list(string.Formatter().parse(text))
    except ValueError as error:
        raise Fault(f"the braces of the text do not fit: {error}", help="write an f-string") from None
    for literal, field, spec, conversion in pieces:
        out.append(literal)
        if field is None:
            continue
        if "{" in (spec or ""):
            raise Fault("a format spec of `format` is plain text", help="write an f-string")
        if field == "":
            field, counted = str(counted), counted + 1
        if field.isascii() and field.isdigit() and len(field) < 4 and int(field) < len(values):
            value = values[int(field)]
        elif field in named:
            value = named[field]
        else:
            raise Fault(f"`format` was given nothing for `{{{field[:40]}}}`", help='write an f-string: `f"{x.name}"`')
        if conversion:
            value = convert(value, conversion, budget)
        out.append(format_value(value, spec or "", budget))
        budget.produce(2 * len(out[-1]))
    return "".join(out)


# --- lists -----------------------------------------------------------------------------------------------------------


@_method(list, name="index")
def _index_of_list(budget: Budget, items: list[Json], value: Json) -> int:
    """The index of the first element equal to `value`; there must be one."""
    budget.spend(len(items) // 4)
    try:
        return items.index(value)
    except ValueError:
        raise Missing(f"{shown(value)} is not in the list", help="test it first: `x in xs`") from None


@_method(list, name="count")
def _count_in_list(budget: Budget, items: list[Json], value: Json) -> int:
    """How many elements are equal to `value`."""
    budget.spend(len(items) // 4)
    return items.count(value)


@_method(list, name="union")
def _union(budget: Budget, items: list[Json], other: Json) -> list[Json]:
    """The different elements of both lists."""
    return either(budget, items, elements(budget, other))


@_method(list, name="intersection")
def _intersection(budget: Budget, items: list[Json], other: Json) -> list[Json]:
    """The different elements that the other list has too."""
    return both(budget, items, elements(budget, other))


@_method(list, name="difference")
def _difference(budget: Budget, items: list[Json], other: Json) -> list[Json]:
    """The different elements that the other list does not have."""
    return without(budget, items, elements(budget, other))


@_method(list, name="issubset")
def _issubset(budget: Budget, items: list[Json], other: Json) -> bool:
    """Whether the other list has all of the elements."""
    return within(budget, items, elements(budget, other))


@_method(list, name="issuperset")
def _issuperset(budget: Budget, items: list[Json], other: Json) -> bool:
    """Whether all elements of the other list are here too."""
    return within(budget, elements(budget, other), items)


@_method(list, name="isdisjoint")
def _isdisjoint(budget: Budget, items: list[Json], other: Json) -> bool:
    """Whether the lists have no element in common."""
    return not both(budget, items, elements(budget, other))


# --- objects ---------------------------------------------------------------------------------------------------------


@_method(dict)
def get(budget: Budget, fields: dict[str, Json], key: Json, default: Json = None) -> Json:
    """The field `key`, or `default` when there is none."""
    return fields.get(_text(key), default)


@_method(dict)
def keys(budget: Budget, fields: dict[str, Json]) -> list[str]:
    """The names of the fields."""
    budget.produce(8 * len(fields))
    return list(fields)


@_method(dict)
def values(budget: Budget, fields: dict[str, Json]) -> list[Json]:
    """The values of the fields."""
    budget.produce(8 * len(fields))
    return list(fields.values())


@_method(dict)
def items(budget: Budget, fields: dict[str, Json]) -> list[Json]:
    """Pairs `[name, value]` of the fields."""
    budget.produce(80 * len(fields))
    return [[key, value] for key, value in fields.items()]


@_method(dict, list, name="copy")
def _copy(budget: Budget, value: Any) -> Any:
    """The same value: nothing here can change it."""
    return value
