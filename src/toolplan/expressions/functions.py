"""The functions of the language. Nothing else can be called by name.

Each is a plain function of the `Budget` and its arguments. The first line of its docstring is the reference; its Python
signature is its signature in the language, `MISSING` standing for "not given". Whoever adds one adds its typing rule in
`infer.py`.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from toolplan.expressions.dates import Moment, find_date, format_moment, move, read_moment
from toolplan.expressions.faults import ArgumentFault, Fault, Missing, shown
from toolplan.expressions.limits import MAX_INT, Budget, weight
from toolplan.expressions.numerals import numbers_in
from toolplan.expressions.rendering import convert, format_value, json_text, text_of
from toolplan.expressions.sets import distinct
from toolplan.values import Json

__all__ = ["FUNCTIONS", "MISSING", "Function", "elements", "ordered", "quote_key"]


class _NotGiven:
    def __repr__(self) -> str:
        return "not given"


MISSING: Final = _NotGiven()
Key: TypeAlias = "Callable[[Json], Json]"


@dataclass(frozen=True, slots=True)
class Function:
    """One function: how it may be called, and what computes it.

    `lazy` marks one that reads a generator expression as it goes, so that what it does not need is never computed;
    `special` one whose arguments are not simply computed first (`compute` is then never called).
    """

    name: str
    signature: str
    summary: str
    parameters: tuple[str, ...]
    keyword_only: frozenset[str]
    required: int
    variadic: bool
    compute: Callable[..., Any]
    lazy: bool = False
    special: bool = False


FUNCTIONS: dict[str, Function] = {}
"""Every function by name."""


def _function(
    name: str | None = None, *, lazy: bool = False, special: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(compute: Callable[..., Any]) -> Callable[..., Any]:
        called = name or compute.__name__.rstrip("_")
        parameters = list(inspect.signature(compute).parameters.values())[1:]
        positional = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.POSITIONAL_ONLY)]
        keyword_only = frozenset(p.name for p in parameters if p.kind == p.KEYWORD_ONLY)
        variadic = any(p.kind == p.VAR_POSITIONAL for p in parameters)
        required = sum(p.default is p.empty for p in positional)
        summary = (compute.__doc__ or "").strip().split("\n")[0]
        FUNCTIONS[called] = Function(
            called,
            f"{called}({_written(parameters)})",
            summary,
            tuple(p.name for p in positional),
            keyword_only,
            required,
            variadic,
            compute,
            lazy,
            special,
        )
        return compute

    return register


def _written(parameters: list[inspect.Parameter]) -> str:
    shown: list[str] = []
    starred = False
    for p in parameters:
        if p.kind == p.VAR_POSITIONAL:
            shown.append(f"*{p.name}")
            starred = True
        elif p.kind == p.KEYWORD_ONLY:
            if not starred:
                shown.append("*")
                starred = True
            shown.append(f"{p.name}=" if p.default is MISSING else f"{p.name}={p.default}")
        elif p.default is p.empty:
            shown.append(p.name)
        else:
            shown.append(f"{p.name}?" if p.default is MISSING else f"{p.name}={p.default!r}")
    return ", ".join(shown)


# --- what functions need of their arguments -------------------------------------------------------------------------


def elements(budget: Budget, value: Any, position: int | str = 0) -> list[Json]:
    """Return the elements that a loop over `value` goes through: a list's, an object's keys, a text's characters.

    A generator is read to its end. Raises `ArgumentFault` for anything else.
    """
    if type(value) is list:
        return cast("list[Json]", value)
    if isinstance(value, dict):
        budget.produce(8 * len(cast("dict[str, Json]", value)))
        return list(cast("dict[str, Json]", value))
    if isinstance(value, str):
        budget.produce(8 * len(value) if value.isascii() else 80 * len(value))
        return list(value)
    if isinstance(value, range):
        budget.produce(36 * len(value))
        return list(value)
    if isinstance(value, Iterator):
        return list(cast("Iterator[Json]", value))
    raise ArgumentFault(position, value, "a list")


def _text(value: Json, position: int | str = 0) -> str:
    if isinstance(value, str):
        return value
    raise ArgumentFault(position, value, "text")


def _number(value: Json, position: int | str = 0) -> int | float:
    if isinstance(value, int | float):
        return value
    help = "turn it into a number: `number(...)`" if isinstance(value, str) else None
    raise ArgumentFault(position, value, "a number", help=help)


def _whole(value: Json, position: int | str = 0) -> int:
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        raise ArgumentFault(position, value, "a whole number", help="round it: `int(...)` or `round(...)`")
    raise ArgumentFault(position, value, "a whole number")


def _moment(value: Json, position: int | str = 0) -> Moment:
    return read_moment(_text(value, position))


def number_fits(value: Any) -> Any:
    """Return a computed number, unless JSON cannot express it or it is too large to handle: then raise `Fault`."""
    if type(value) is float:
        if value - value != 0:
            raise Fault("the result is infinite or not a number, which a JSON value cannot be")
    elif type(value) is complex:
        raise Fault("the root of a negative number is not a number")
    elif not -MAX_INT < value < MAX_INT:
        raise Fault("the result is a whole number of more than 3,000 digits")
    return value


def quote_key(value: Json) -> str:
    """Return `value` if it can be the key of an object, else raise `Fault`."""
    if isinstance(value, str):
        return value
    raise Fault(f"the keys of an object are text, but {shown(value)} is not", help="turn it into text: `str(...)`")


# --- counting, adding, choosing --------------------------------------------------------------------------------------


@_function("len")
def _len(budget: Budget, x: Json) -> int:
    """The number of characters of a text, elements of a list, or fields of an object."""
    if isinstance(x, str | list | dict):
        return len(x)
    raise ArgumentFault(0, x, "text, a list or an object")


@_function("sum")
def _sum(budget: Budget, items: Any, start: Json = 0) -> Json:
    """The sum of numbers; with `start=[]` the lists in a list put one after the other."""
    values = elements(budget, items)
    budget.spend(len(values) // 4)
    total: Any = start
    if isinstance(total, list):
        joined = list(total)
        for value in values:
            if not isinstance(value, list):
                raise Fault(f"`sum` cannot add {shown(value)} to a list")
            budget.produce(8 * len(value))
            joined += value
        return joined
    _number(total, "start")
    for index, value in enumerate(values):
        if not isinstance(value, int | float):
            if value is None:
                raise Missing(f"`sum` adds numbers, but element {index} is null")
            help = None
            if isinstance(value, str):
                help = "turn each into a number: `sum([number(x) for x in ...])`; texts are joined by `''.join(...)`"
            raise Fault(f"`sum` adds numbers, but element {index} is {shown(value)}", help=help)
    try:
        return number_fits(sum(cast("list[int | float]", values), total))
    except OverflowError:
        raise Fault("the sum is too large") from None


def ordered(budget: Budget, values: list[Any], key: Any, reverse: bool = False) -> list[Any]:
    """Return `values` sorted by `key` (a function, a field's name or None). Raises `Fault` naming what has no order."""
    budget.spend(len(values) // 2 * max(1, len(values).bit_length() // 4))
    budget.produce(16 * len(values))
    keys = [measure(value) for value in values] if (measure := _measure(key)) else values
    _pay_for_comparing(budget, keys)
    try:
        if keys is values:
            return sorted(values, reverse=reverse)
        places = sorted(range(len(keys)), key=keys.__getitem__, reverse=reverse)
    except TypeError:
        raise _no_order(keys) from None
    return [values[place] for place in places]


def _pay_for_comparing(budget: Budget, keys: list[Any]) -> None:
    """Pay for comparing long texts and nested lists, which may be shared and so heavier than what was paid for them."""
    if keys and isinstance(keys[0], list):
        rounds = max(1, len(keys).bit_length())
        budget.spend(weight(keys, budget.steps) * rounds // 4)


def _no_order(keys: list[Any]) -> Fault:
    for before, after in zip(keys, keys[1:], strict=False):
        try:
            before < after  # noqa: B015
        except TypeError:
            return no_order(before, after)
    for other in keys[1:]:
        try:
            keys[0] < other
        except TypeError:
            return no_order(keys[0], other)
    return Fault("these elements cannot be ordered against each other")


def no_order(left: Json, right: Json) -> Fault:
    """Return the fault of two values that have no order, with what to write instead."""
    if isinstance(left, list) and isinstance(right, list):
        for one, other in zip(left, right, strict=False):
            if one != other:
                return no_order(one, other)
    if left is None or right is None:
        return Missing(
            f"{shown(left)} cannot be ordered against {shown(right)}",
            help="test it first (`x is not None`), or give a stand-in: `default(x, 0)`",
        )
    help = None
    if isinstance(left, str) != isinstance(right, str) and isinstance(left, str | int | float):
        text = left if isinstance(left, str) else right
        help = f"turn the text into a number: `number({shown(text).split(' (')[0]})`" if isinstance(text, str) else None
    elif isinstance(left, dict):
        help = "order them by a field: `key='name'`"
    return Fault(f"{shown(left)} cannot be ordered against {shown(right)}", help=help)


def _measure(key: Any) -> Key | None:
    if key is None or key is MISSING:
        return None
    if callable(key):
        return cast("Key", key)
    if isinstance(key, str):
        path = key.split(".")

        def field(value: Json) -> Json:
            if isinstance(value, dict) and key in value:
                return value[key]
            for name in path:
                if not isinstance(value, dict) or name not in value:
                    fields = f"; it has {', '.join(list(value)[:8])}" if isinstance(value, dict) and value else ""
                    raise Missing(f"an element has no field `{key}` to order by{fields}")
                value = value[name]
            return value

        return field
    raise Fault(f"`key` is the name of a field or a lambda, not {shown(key)}", help="`key='price'` or `key=lambda x: x.price`")


def _extreme(budget: Budget, values: tuple[Any, ...], key: Any, default: Any, sign: str) -> Json:
    name = "min" if sign == "<" else "max"
    if len(values) == 1:
        candidates = elements(budget, values[0])
        if not candidates:
            if default is MISSING:
                raise Missing(f"`{name}` of nothing: the list is empty", help=f"give a stand-in: `{name}(..., default=0)`")
            return default
    else:
        candidates = list(values)
        if default is not MISSING:
            raise Fault(f"`default` goes with one list, as in `{name}(prices, default=0)`")
    budget.spend(len(candidates) // 4)
    keys = [measure(value) for value in candidates] if (measure := _measure(key)) else candidates
    _pay_for_comparing(budget, keys)
    try:
        if keys is candidates:
            return min(candidates) if sign == "<" else max(candidates)  # type: ignore[type-var]
        choose: Any = min if sign == "<" else max
        return candidates[choose(range(len(keys)), key=keys.__getitem__)]
    except TypeError:
        raise _no_order(keys) from None


@_function("min")
def _min(budget: Budget, *values: Any, key: Any = MISSING, default: Any = MISSING) -> Json:
    """The smallest of several values or of the elements of one list; `key` as in `sorted`, `default` for an empty list."""
    return _extreme(budget, values, key, default, "<")


@_function("max")
def _max(budget: Budget, *values: Any, key: Any = MISSING, default: Any = MISSING) -> Json:
    """The largest of several values or of the elements of one list; `key` as in `sorted`, `default` for an empty list."""
    return _extreme(budget, values, key, default, ">")


@_function("sorted")
def _sorted(budget: Budget, items: Any, *, key: Any = MISSING, reverse: Json = False) -> list[Json]:
    """The elements in order; `key` is a field's name (also `a.b`) or a lambda, `reverse=True` puts the largest first."""
    return ordered(budget, elements(budget, items), key, bool(reverse))


@_function("reversed")
def _reversed(budget: Budget, items: Any) -> list[Json]:
    """The elements from last to first."""
    values = elements(budget, items)
    budget.produce(8 * len(values))
    return values[::-1]


@_function("any", lazy=True)
def _any(budget: Budget, items: Any) -> bool:
    """Whether at least one element is true."""
    return any(items if isinstance(items, Iterator) else elements(budget, items))


@_function("all", lazy=True)
def _all(budget: Budget, items: Any) -> bool:
    """Whether every element is true."""
    return all(items if isinstance(items, Iterator) else elements(budget, items))


@_function("next", lazy=True)
def _next(budget: Budget, items: Any, default: Json | _NotGiven = MISSING) -> Json:
    """The first element; `default` when there is none."""
    first: Any = next(iter(items if isinstance(items, Iterator) else elements(budget, items)), MISSING)
    if first is not MISSING:
        return first
    if isinstance(default, _NotGiven):
        raise Missing("`next` found no element", help="give a stand-in: `next(..., None)`")
    return default


# --- numbers ---------------------------------------------------------------------------------------------------------


@_function("abs")
def _abs(budget: Budget, x: Json) -> int | float:
    """The number without its sign."""
    return abs(_number(x))


@_function("round")
def _round(budget: Budget, x: Json, ndigits: Json = None) -> int | float:
    """The number rounded to `ndigits` places, to a whole number without; halves go to the even neighbour, as in Python."""
    number = _number(x)
    if ndigits is None:
        return round(number)
    places = _whole(ndigits, 1)
    if abs(places) > 400:
        raise Fault("`round` takes at most 400 places")
    try:
        return number_fits(round(number, places))
    except OverflowError:
        raise Fault("the rounded number is too large") from None


@_function("floor")
def _floor(budget: Budget, x: Json) -> int:
    """The largest whole number that is not above `x`."""
    return math.floor(_number(x))


@_function("ceil")
def _ceil(budget: Budget, x: Json) -> int:
    """The smallest whole number that is not below `x`."""
    return math.ceil(_number(x))


@_function("pow")
def _pow(budget: Budget, base: Json, exp: Json) -> int | float:
    """`base ** exp`."""
    return power(_number(base, 0), _number(exp, 1))


def power(base: int | float, exponent: int | float) -> int | float:
    """Return `base ** exponent`; raises `Fault` before computing what would be too large."""
    if isinstance(base, int) and isinstance(exponent, int) and exponent > 0 and base.bit_length() * exponent > 20_000:
        if abs(base) > 1:
            raise Fault("the power is a whole number of more than 3,000 digits")
        exponent = exponent % 2 + 2
    try:
        return number_fits(base**exponent)
    except OverflowError:
        raise Fault("the power is too large") from None
    except ZeroDivisionError:
        raise Fault("zero cannot be raised to a negative power") from None


@_function("divmod")
def _divmod(budget: Budget, a: Json, b: Json) -> list[Json]:
    """The quotient and the remainder, as a list of two."""
    left, right = _number(a, 0), _number(b, 1)
    try:
        quotient, remainder = divmod(left, right)
    except ZeroDivisionError:
        raise Fault("division by zero") from None
    except OverflowError:
        raise Fault("the number is too large") from None
    return [number_fits(quotient), number_fits(remainder)]


@_function("int")
def _int(budget: Budget, x: Json = 0) -> int:
    """A number without its fraction, or the whole number that a text is."""
    if isinstance(x, int | float):
        return int(x)
    text = _text(x)
    if len(text) > 3_000:
        raise Fault("the text is too long to be a number")
    try:
        return int(text)
    except ValueError:
        raise Fault(
            f"{shown(x)} is not a whole number", help="`number(...)` finds the first number in a text"
        ) from None


@_function("float")
def _float(budget: Budget, x: Json = 0.0) -> float:
    """The number with a fraction that a number or a text is."""
    try:
        value = float(x if isinstance(x, int | float) else _text(x)[:3_000])
    except ValueError:
        raise Fault(f"{shown(x)} is not a number", help="`number(...)` finds the first number in a text") from None
    except OverflowError:
        raise Fault("the number is too large") from None
    if value - value != 0:
        raise Fault(
            "infinity and NaN are not JSON values",
            help="start from `None`, or use `min(..., default=...)`, `max(..., default=...)`",
        )
    return value


@_function("number")
def _read_number(budget: Budget, text: Json, default: Json | _NotGiven = MISSING) -> Json:
    """The first number in a text ("3°C" is 3, "￥1.2万" is 12000, "12%" is 12); a number is itself; else `default`."""
    if isinstance(text, int | float) and not isinstance(text, bool):
        return text
    if isinstance(text, str):
        budget.spend(len(text) // 100)
        for found in numbers_in(text):
            return found
        if isinstance(default, _NotGiven):
            raise Fault(f"there is no number in {shown(text)}", help="give a stand-in: `number(text, 0)`")
    elif text is not None or isinstance(default, _NotGiven):
        raise ArgumentFault(0, text, "text or a number")
    return default


# --- kinds -----------------------------------------------------------------------------------------------------------


@_function("str")
def _str(budget: Budget, x: Json = "") -> str:
    """The value as text: text as it is, numbers as in Python, `null`, `true`, `false`, lists and objects as JSON."""
    return text_of(x, budget)


@_function("repr")
def _repr(budget: Budget, x: Json) -> str:
    """The value as text, with quotes around text."""
    return convert(x, "r", budget)


@_function("format")
def _format(budget: Budget, x: Json, spec: Json = "") -> str:
    """The value under a format spec: `format(3.14159, ".2f")`, `format(day, "%d.%m.%Y")`."""
    return format_value(x, _text(spec, 1), budget)


@_function("json")
def _json(budget: Budget, value: Json) -> str:
    """The value as JSON text."""
    return json_text(value, budget)


@_function("bool")
def _bool(budget: Budget, x: Json = False) -> bool:
    """Whether the value is neither null, false, zero nor empty."""
    return bool(x)


@_function("list")
def _list(budget: Budget, items: Any = MISSING) -> list[Json]:
    """A list of the elements (characters of a text, keys of an object)."""
    if items is MISSING:
        return []
    values = elements(budget, items)
    budget.produce(8 * len(values))
    return list(values)


@_function("tuple")
def _tuple(budget: Budget, items: Any = MISSING) -> list[Json]:
    """The same as `list`: JSON has no tuples."""
    return _list(budget, items)


@_function("set")
def _set(budget: Budget, items: Any = MISSING) -> list[Json]:
    """A list of the different elements, each at its first place."""
    return [] if items is MISSING else distinct(budget, elements(budget, items))


@_function("dict")
def _dict(budget: Budget, pairs: Any = MISSING) -> dict[str, Json]:
    """An object from a list of `[key, value]` pairs, or a copy of an object."""
    if pairs is MISSING:
        return {}
    if isinstance(pairs, dict):
        budget.produce(100 * len(cast("dict[str, Json]", pairs)))
        return dict(cast("dict[str, Json]", pairs))
    values = elements(budget, pairs)
    budget.produce(100 * len(values))
    made: dict[str, Json] = {}
    for pair in values:
        if not isinstance(pair, list) or len(pair) != 2:
            raise Fault(f"`dict` takes pairs `[key, value]`, not {shown(pair)}")
        made[quote_key(pair[0])] = pair[1]
    return made


@_function("isinstance", special=True)
def _isinstance(budget: Budget, x: Json, kind: Any) -> bool:
    """Whether the value is of the kind `str`, `int`, `float`, `bool`, `list` or `dict`, or of one of several in brackets."""
    raise AssertionError("compiled specially")


# --- sequences -------------------------------------------------------------------------------------------------------


@_function("range")
def _range(budget: Budget, start: Json, stop: Json | _NotGiven = MISSING, step: Json = 1) -> list[Json]:
    """The whole numbers from `start` (0 when only `stop` is given) up to, not including, `stop`."""
    values = spread(start, stop, step)
    budget.produce(36 * len(values))
    return list(values)


def spread(start: Json, stop: Any = MISSING, step: Json = 1) -> range:
    """Return Python's range for the arguments of `range`. Raises `Fault`."""
    first, last = (0, _whole(start, 0)) if stop is MISSING else (_whole(start, 0), _whole(stop, 1))
    stride = _whole(step, 2)
    if not stride:
        raise Fault("the step of a `range` cannot be zero")
    if max(abs(first), abs(last), abs(stride)) >= 1 << 62:
        raise Fault("the numbers of this `range` are too large")
    return range(first, last, stride)


@_function("enumerate")
def _enumerate(budget: Budget, items: Any, start: Json = 0) -> list[Json]:
    """Pairs `[index, element]`, counted from `start`."""
    values = elements(budget, items)
    budget.produce(130 * len(values))
    return [[index, value] for index, value in enumerate(values, _whole(start, 1))]


@_function("zip")
def _zip(budget: Budget, *lists: Any) -> list[Json]:
    """The first elements of all lists as a list, then the second ones, up to the end of the shortest."""
    rows = [elements(budget, values, position) for position, values in enumerate(lists)]
    if not rows:
        return []
    budget.produce((60 + 8 * len(rows)) * min(len(row) for row in rows))
    return [list(together) for together in zip(*rows, strict=False)]


@_function()
def set_item(budget: Budget, container: Json, key: Json, value: Json) -> Json:
    """A copy of the list or object with the element at `key` replaced, or the field added."""
    if isinstance(container, dict):
        budget.produce(100 * len(container))
        return {**container, quote_key(key): value}
    if not isinstance(container, list):
        raise ArgumentFault(0, container, "a list or an object")
    index = _whole(key, 1)
    if not -len(container) <= index < len(container):
        raise Missing(f"the list has {len(container)} elements, so there is no element {index} to replace")
    budget.produce(8 * len(container))
    copy = list(container)
    copy[index] = value
    return copy


# --- what may be absent ----------------------------------------------------------------------------------------------


@_function(special=True)
def default(budget: Budget, value: Json, fallback: Json) -> Json:
    """The value, or `fallback` when it is null or any field or element on the way to it does not exist."""
    raise AssertionError("compiled specially")


# --- text ------------------------------------------------------------------------------------------------------------

_URL = re.compile(r"https?://[^\s<>\"'“”‘’「」『』《》（）【】，。；！？、|\\^`{}]+", re.IGNORECASE)
_EMAIL = re.compile(r"(?<![\w.+-])[A-Za-z0-9_][\w.+-]{0,63}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![\w-])", re.ASCII)


@_function()
def find_urls(budget: Budget, text: Json) -> list[Json]:
    """The http and https addresses in a text, in order, without the punctuation after them."""
    plain = _text(text)
    budget.spend(len(plain) // 20)
    found: list[Json] = []
    for match in _URL.finditer(plain):
        url = match.group().rstrip(".,;:!?*_~")
        while url.endswith((")", "]")) and _unbalanced(url):
            url = url[:-1].rstrip(".,;:!?*_~")
        found.append(url)
    budget.produce(100 * len(found))
    return found


def _unbalanced(url: str) -> bool:
    close = url[-1]
    return url.count(close) > url.count("(" if close == ")" else "[")


@_function()
def find_emails(budget: Budget, text: Json) -> list[Json]:
    """The e-mail addresses in a text, in order."""
    plain = _text(text)
    budget.spend(len(plain) // 20)
    found: list[Json] = [match.group() for match in _EMAIL.finditer(plain)]
    budget.produce(100 * len(found))
    return found


@_function()
def find_numbers(budget: Budget, text: Json) -> list[Json]:
    """All numbers in a text, in order, each read as by `number`."""
    plain = _text(text)
    budget.spend(len(plain) // 20)
    found: list[Json] = []
    for number in numbers_in(plain):
        budget.spend(10)
        found.append(number)
    return found


@_function()
def lines(budget: Budget, text: Json) -> list[Json]:
    """The lines of a text, without their ends."""
    plain = _text(text)
    pay_for_lines(budget, plain)
    return list(plain.splitlines())


_BREAKS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"


def pay_for_lines(budget: Budget, text: str) -> None:
    """Pay for the lines of `text` before it is cut."""
    count = 1 + sum(text.count(end) for end in _BREAKS)
    budget.produce(4 * len(text) + 70 * count)


@_function("ord")
def _ord(budget: Budget, character: Json) -> int:
    """The number of a character in Unicode."""
    text = _text(character)
    if len(text) != 1:
        raise Fault(f"`ord` takes one character, not {len(text)}")
    return ord(text)


@_function("chr")
def _chr(budget: Budget, number: Json) -> str:
    """The character with this number in Unicode."""
    code = _whole(number)
    if not 0 <= code < 0x110000 or 0xD800 <= code < 0xE000:
        raise Fault(f"no character has the number {shown(code)}")
    return chr(code)


# --- dates -----------------------------------------------------------------------------------------------------------


@_function()
def date(budget: Budget, text: Json) -> str:
    """The day as ISO text (`2026-03-18`) of a date with or without time, or the first date in a text."""
    found = find_date(_text(text))
    return f"{found.when.year:04}-{found.when.month:02}-{found.when.day:02}"


@_function()
def add(
    budget: Budget,
    d: Json,
    *,
    years: Json = 0,
    months: Json = 0,
    weeks: Json = 0,
    days: Json = 0,
    hours: Json = 0,
    minutes: Json = 0,
    seconds: Json = 0,
) -> str:
    """The date or time moved, in the shape it had: `add("2026-01-31", months=1)` is `2026-02-28`; negative goes back."""
    moved = move(
        _moment(d),
        years=_whole(years, "years"),
        months=_whole(months, "months"),
        weeks=_number(weeks, "weeks"),
        days=_number(days, "days"),
        hours=_number(hours, "hours"),
        minutes=_number(minutes, "minutes"),
        seconds=_number(seconds, "seconds"),
    )
    return moved.text()


@_function()
def days_between(budget: Budget, start: Json, end: Json) -> int:
    """The number of days from `start` to `end`, without regard to the time of day; negative when `end` is earlier."""
    first, last = _moment(start, 0), _moment(end, 1)
    if not (first.has_date and last.has_date):
        raise Fault("`days_between` takes dates, not times of day", help="`minutes_between` takes times of day")
    return (last.when.date() - first.when.date()).days


@_function()
def minutes_between(budget: Budget, start: Json, end: Json) -> int | float:
    """The minutes from `start` to `end`, both dates with a time or both times of day; negative when `end` is earlier."""
    first, last = _moment(start, 0), _moment(end, 1)
    if first.has_date != last.has_date:
        raise Fault("`minutes_between` takes two dates or two times of day, not one of each")
    if bool(first.zone) == bool(last.zone):
        seconds = (last.universal() - first.universal()).total_seconds()
    else:
        seconds = (last.when - first.when).total_seconds()
    return int(seconds // 60) if seconds % 60 == 0 else seconds / 60


@_function()
def weekday(budget: Budget, d: Json) -> int:
    """The day of the week as a number: Monday is 0, Sunday is 6. Its name is `format_date(d, "%A")`."""
    moment = _moment(d)
    if not moment.has_date:
        raise Fault("`weekday` takes a date, not a time of day")
    return moment.when.weekday()


@_function()
def format_date(budget: Budget, d: Json, pattern: Json = "%Y-%m-%d") -> str:
    """The date written after a pattern such as `%d.%m.%Y`, `%-d %B %Y`, `%Y年%m月%d日 %A`, or `YYYY-MM-DD HH:mm`."""
    return format_moment(_moment(d, 0), _text(pattern, 1))
