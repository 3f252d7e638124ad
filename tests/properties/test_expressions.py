"""Expressions mean what they mean in Python: generated expressions on generated values, CPython as the oracle.

What is generated keeps away from the listed differences (docs/reference/expressions.md): the text of `true`, `null` and
lists, sets used other than as sets, keys that are not text, and what this language allows beyond Python.
"""

from __future__ import annotations

import builtins
import json
import math
import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolplan.diagnostics import Place
from toolplan.errors import EvaluationError
from toolplan.expressions import (
    ExpressionError,
    Reference,
    fill,
    holes,
    names_of,
    parse_expression,
    parse_template,
    render_text,
    settle,
)

# --- the oracle ------------------------------------------------------------------------------------------------------


class Fields(dict[str, Any]):
    """A JSON object as the oracle sees it: `a.b` is `a["b"]`, a method only where it is called."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def for_python(value: Any) -> Any:
    if isinstance(value, dict):
        return Fields({key: for_python(item) for key, item in value.items()})
    if isinstance(value, list):
        return [for_python(item) for item in value]
    return value


def as_json(value: Any) -> Any:
    """Return Python's result as JSON: tuples, views and iterators are lists. Raises for what JSON cannot express."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise OverflowError("not finite")
        return value
    if isinstance(value, dict):
        return {key: as_json(item) for key, item in value.items()}
    if isinstance(value, complex):
        raise ValueError("complex")
    return [as_json(item) for item in value]


BUILTINS = (
    "len sum min max sorted any all abs round int float str bool list dict set range enumerate zip reversed "
    "divmod isinstance ord chr tuple pow"
)
ALLOWED = {name: getattr(builtins, name) for name in re.findall(r"\w+", BUILTINS)}


def python_says(text: str, scope: dict[str, Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python warns of `'a' is None`
        # One namespace for names and built-ins: names inside comprehensions are looked up there too.
        return as_json(eval(text, {"__builtins__": ALLOWED, **for_python(scope)}))


def exactly(value: Any) -> Any:
    """Return something equal only for the same JSON: 1, 1.0 and True differ."""
    if isinstance(value, list):
        return [exactly(item) for item in value]
    if isinstance(value, dict):
        return [(key, exactly(item)) for key, item in value.items()]
    return (type(value).__name__, repr(value))


# --- generated expressions -------------------------------------------------------------------------------------------

SHORT = st.text(alphabet="ab Ab1-,.中é文", max_size=6)
NUMBERS = st.one_of(
    st.integers(-20, 20),
    st.integers(-(10**6), 10**6),
    st.sampled_from([0.5, -0.25, 2.0, 1e10, 3.14159, -0.0, 1.005, 2.5, 3.5]),
)
SCOPES = st.fixed_dictionaries(
    {
        "n": NUMBERS,
        "m": st.integers(-5, 5),
        "t": SHORT,
        "u": SHORT,
        "b": st.booleans(),
        "z": st.none(),
        "ns": st.lists(NUMBERS, max_size=5),
        "ts": st.lists(SHORT, max_size=5),
        "o": st.fixed_dictionaries({"n": NUMBERS, "t": SHORT, "ns": st.lists(NUMBERS, max_size=3), "字段": NUMBERS}),
        "os": st.lists(st.fixed_dictionaries({"n": NUMBERS, "t": SHORT, "ok": st.booleans()}), max_size=4),
        "d": st.dictionaries(SHORT, NUMBERS, max_size=4),
        "变量": NUMBERS,
    }
)
CHARACTERS = st.sampled_from(["'a'", "'b'", "' '", "','", "'中'", "'-'", "'ab'", "''", "'é'"])
FILLS = st.sampled_from(["'*'", "'中'", "'ab'"])
SPECS = st.sampled_from([".2f", "5", "<6", ">6", "^7", ",", "e", "g", "+", "010.3f", "x>8", ".1%", ".0f", "_"])
TEXT_SPECS = st.sampled_from(["5", "<6", ">6", "^7", "*^9", ".2", "8.3", "s"])
PLAIN_METHODS = st.sampled_from(
    ["lower", "upper", "strip", "title", "capitalize", "casefold", "swapcase", "lstrip", "rstrip"]
)
TESTS = st.sampled_from(
    ["isdigit", "isalpha", "isupper", "islower", "isspace", "isalnum", "isnumeric", "isdecimal", "istitle", "isascii"]
)


class Writer:
    """Writes expressions of a wanted kind; now and then one of another kind, so that both sides must refuse."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.loops = 0
        self.sure = 0
        self.bound: dict[str, list[str]] = {}

    def pick(self, *options: Any) -> Any:
        return self.draw(st.sampled_from(options))

    def of(self, kind: str, depth: int) -> str:
        if depth > 0 and not self.sure and self.draw(st.integers(0, 24)) == 0:
            kind = self.pick("number", "text", "test", "numbers", "texts", "object", "null")
        if depth > 0 and self.draw(st.integers(0, 9)) == 0:
            return f"({self.of(kind, depth - 1)} if {self.of('test', depth - 1)} else {self.of(kind, depth - 1)})"
        return getattr(self, kind)(depth)

    def surely(self, kind: str, depth: int) -> str:
        """Return an expression of exactly this kind, where another one would show a listed difference."""
        self.sure += 1
        text = self.of(kind, depth)
        self.sure -= 1
        return text

    def name(self, kind: str, *names: str) -> str:
        return self.pick(*names, *self.bound.get(kind, []))

    def null(self, depth: int) -> str:
        return self.pick("None", "z")

    def number(self, d: int) -> str:
        n, t, xs = (
            (lambda: self.of("number", d - 1)),
            (lambda: self.of("text", d - 1)),
            lambda: self.of("numbers", d - 1),
        )
        if d <= 0:
            return self.pick(
                str(self.draw(st.integers(0, 30))),
                "2.5",
                self.name("number", "n", "m", "变量", "o.n", "o['n']", "o.字段"),
            )
        return self.pick(
            lambda: f"({n()} {self.pick('+', '-', '*', '/', '//', '%')} {n()})",
            lambda: f"({n()} {self.pick('+', '-', '*')} {n()})",
            lambda: f"({n()} ** {self.pick('0', '1', '2', '3')})",
            lambda: f"{self.pick('-', '+')}{n()}",
            lambda: f"len({self.pick(t, xs, lambda: self.of('texts', d - 1), lambda: self.of('object', d - 1))()})",
            lambda: f"{self.pick('sum', 'max', 'min')}({xs()})",
            lambda: f"{self.pick('max', 'min')}({n()}, {n()})",
            lambda: f"{self.pick('max', 'min')}({xs()}, default={n()})",
            lambda: f"abs({n()})",
            lambda: f"round({n()})",
            lambda: f"round({n()}, {self.pick('0', '1', '2', '-1', 'm')})",
            lambda: f"{self.pick('int', 'float')}({self.pick(n, t)()})",
            lambda: f"{xs()}[{self.pick('0', '-1', '1', 'm', n())}]",
            lambda: f"{t()}.{self.pick('find', 'rfind', 'count', 'index', 'rindex')}({self.draw(CHARACTERS)})",
            lambda: f"{xs()}.{self.pick('index', 'count')}({n()})",
            lambda: f"d.get({self.surely('text', d - 1)}, {n()})",
            lambda: f"d[{t()}]",
            lambda: f"o.{self.pick('n', 'ns[0]', 'missing', '字段')}",
            lambda: f"os[{self.pick('0', '-1', '1')}].n",
            lambda: f"max(os, key=lambda p: {self.inside({'number': ['p.n'], 'text': ['p.t']}, 'number', d)}).n",
            lambda: f"({n()} {self.pick('or', 'and')} {n()})",
            lambda: f"len({self.set(d)})",
            lambda: f"divmod({n()}, {n()})[{self.pick('0', '1')}]",
            lambda: f"ord({t()})",
        )()

    def text(self, d: int) -> str:
        t, ts = (lambda: self.of("text", d - 1)), lambda: self.of("texts", d - 1)
        if d <= 0:
            return self.pick(repr(self.draw(SHORT)), self.name("text", "t", "u", "o.t", "o['t']"))
        return self.pick(
            lambda: f"({t()} + {t()})",
            lambda: f"({t()} * {self.pick('0', '1', '3', 'm', '-1')})",
            lambda: f"{t()}.{self.draw(PLAIN_METHODS)}()",
            lambda: f"{t()}.{self.pick('strip', 'lstrip', 'rstrip')}({self.draw(CHARACTERS)})",
            lambda: f"{t()}.{self.pick('removeprefix', 'removesuffix')}({self.draw(CHARACTERS)})",
            lambda: f"{t()}.replace({self.draw(CHARACTERS)}, {t()})",
            lambda: f"{t()}.replace({self.draw(CHARACTERS)}, {t()}, {self.pick('1', '-1', 'm')})",
            lambda: f"{self.draw(CHARACTERS)}.join({ts()})",
            lambda: f"{t()}[{self.cut(d)}]",
            lambda: f"{t()}[{self.pick('0', '-1', 'm')}]",
            lambda: f"{ts()}[{self.pick('0', '-1', 'm')}]",
            lambda: f"str({self.surely(self.pick('text', 'number'), d - 1)})",
            lambda: f"f'{{{self.unquoted('number', d)}}}|{{{self.unquoted('text', d)}!r:>8}}'",
            lambda: f"f'{{{self.unquoted('number', d)}:{self.draw(SPECS)}}}'",
            lambda: f"f'{{{self.unquoted('text', d)}:{self.draw(TEXT_SPECS)}}}'",
            lambda: f"{t()}.{self.pick('ljust', 'rjust', 'center')}({self.pick('6', 'm', '10')}, {self.draw(FILLS)})",
            lambda: f"{t()}.zfill({self.pick('6', 'm')})",
            lambda: f"{t()}.partition({self.draw(CHARACTERS)})[{self.pick('0', '1', '2')}]",
            lambda: f"{self.pick('min', 'max')}({ts()})",
            lambda: f"({t()} {self.pick('or', 'and')} {t()})",
            lambda: f"sorted(os, key=lambda q: {self.inside({'number': ['q.n'], 'text': ['q.t']}, 'text', d)})[0].t",
            lambda: f"chr({self.pick('65', '20013', 'm')})",
        )()

    def unquoted(self, kind: str, depth: int) -> str:
        """Return an expression that may stand inside quotes of the f-string on every Python."""
        text = self.surely(kind, depth - 1)
        return text if not set(text) & set("'\\\"{}!:=") and "lambda" not in text else "n" if kind == "number" else "u"

    def cut(self, d: int) -> str:
        bound = lambda: self.pick("", "0", "1", "-1", "2", "m", "None")  # noqa: E731
        return f"{bound()}:{bound()}" + self.pick("", "", f":{self.pick('1', '-1', '2', '0', 'm')}")

    def test(self, d: int) -> str:
        n, t, xs = (
            (lambda: self.of("number", d - 1)),
            (lambda: self.of("text", d - 1)),
            lambda: self.of("numbers", d - 1),
        )
        p, _ts = (lambda: self.of("test", d - 1)), lambda: self.of("texts", d - 1)
        if d <= 0:
            return self.pick("True", "False", self.name("test", "b"))
        order = lambda: self.pick("<", "<=", ">", ">=", "==", "!=")  # noqa: E731
        anything = lambda: self.of(self.pick("number", "text", "numbers", "texts", "test", "object", "null"), d - 1)  # noqa: E731
        return self.pick(
            lambda: f"({n()} {order()} {n()})",
            lambda: f"({n()} {order()} {n()} {order()} {n()})",
            lambda: f"({t()} {order()} {t()})",
            lambda: f"({xs()} {order()} {xs()})",
            lambda: f"({anything()} {self.pick('==', '!=')} {anything()})",
            lambda: f"({p()} {self.pick('and', 'or')} {p()})",
            lambda: f"(not {anything()})",
            lambda: f"({t()} {self.pick('in', 'not in')} {t()})",
            lambda: f"({n()} {self.pick('in', 'not in')} {xs()})",
            lambda: f"({t()} {self.pick('in', 'not in')} {self.pick('d', 'o')})",
            lambda: f"({anything()} {self.pick('is', 'is not')} None)",
            lambda: f"{self.pick('any', 'all')}({self.loop('test', d)})",
            lambda: f"{self.pick('any', 'all')}([{self.loop('test', d)}])",
            lambda: f"{t()}.{self.pick('startswith', 'endswith')}({self.draw(CHARACTERS)})",
            lambda: f"{t()}.{self.draw(TESTS)}()",
            lambda: f"bool({anything()})",
            lambda: (
                f"isinstance({anything()}, {self.pick('str', 'int', 'float', '(int, float)', 'bool', 'list', 'dict')})"
            ),
            lambda: f"({self.set(d)} {self.pick('==', '!=', '<=', '<', '>', '>=')} {self.set(d)})",
        )()

    def numbers(self, d: int) -> str:
        n, xs = (lambda: self.of("number", d - 1)), lambda: self.of("numbers", d - 1)
        if d <= 0:
            return self.name("numbers", "ns", "o.ns", "[]", "[1, 2, 3]")
        return self.pick(
            lambda: "[" + ", ".join(n() for _ in range(self.draw(st.integers(0, 3)))) + "]",
            lambda: f"[{n()}, *{xs()}]",
            lambda: f"({xs()} + {xs()})",
            lambda: f"({xs()} * {self.pick('0', '2', 'm')})",
            lambda: f"{xs()}[{self.cut(d)}]",
            lambda: f"sorted({xs()})",
            lambda: f"sorted({xs()}, reverse={self.of('test', d - 1)})",
            lambda: f"sorted({xs()}, key=lambda k: {self.inside({'number': ['k']}, 'number', d)})",
            lambda: f"sorted(set({self.surely('numbers', d - 1)}))",
            lambda: f"list({self.pick('reversed', 'list')}({xs()}))",
            lambda: f"list(range({self.pick('m', '3')}, {self.pick('8', 'm')}, {self.pick('1', '2', 'm', '-1')}))",
            lambda: f"[{self.loop('number', d)}]",
            lambda: f"list({self.loop('number', d)})",
            lambda: f"sorted({{{self.sure_loop('number', d)}}})",
            lambda: "[len(w) for w in ts]",
            lambda: f"list({self.pick('d', 'o.ns')}{self.pick('.values()', '')})",
            lambda: f"({xs()} or {xs()})",
            lambda: f"[p.{self.pick('n', 'n', 'missing')} for p in os if {self.about_an_object(d)}]",
            lambda: f"[v for k, v in d.items() if {self.inside({'number': ['v'], 'text': ['k']}, 'test', d)}]",
            lambda: f"[i + len(w) for i, w in enumerate({self.of('texts', d - 1)}, {self.pick('0', '1', 'm')})]",
            lambda: f"[x * y for x, y in zip({xs()}, {xs()})]",
            lambda: f"sum([{xs()}, {xs()}], [])",
        )()

    def texts(self, d: int) -> str:
        t, ts = (lambda: self.of("text", d - 1)), lambda: self.of("texts", d - 1)
        if d <= 0:
            return self.name("texts", "ts", "['a', 'b']", "[]")
        return self.pick(
            lambda: f"{t()}.split()",
            lambda: f"{t()}.{self.pick('split', 'rsplit')}({self.draw(CHARACTERS)})",
            lambda: f"{t()}.{self.pick('split', 'rsplit')}({self.draw(CHARACTERS)}, {self.pick('1', 'm', '-1')})",
            lambda: f"{t()}.splitlines()",
            lambda: f"list({t()})",
            lambda: f"list({self.pick('d', 'o', 'd.keys()')})",
            lambda: f"sorted({ts()})",
            lambda: f"[{self.loop('text', d)}]",
            lambda: f"({ts()} + [{t()}])",
            lambda: f"{ts()}[{self.cut(d)}]",
            lambda: f"[c for w in {ts()} for c in w]",
            lambda: f"list({t()}.partition({self.draw(CHARACTERS)}))",
        )()

    def object(self, d: int) -> str:
        n, t = (lambda: self.of("number", d - 1)), lambda: self.of("text", d - 1)
        if d <= 0:
            return self.pick("d", "o", "{}")
        return self.pick(
            lambda: f"{{'a': {n()}, {self.surely('text', d - 1)}: {t()}}}",
            lambda: f"{{**{self.of('object', d - 1)}, 'x': {n()}}}",
            lambda: f"{{w: len(w) for w in {self.surely('texts', d - 1)}}}",
            lambda: f"{{k: v for k, v in d.items() if {self.inside({'number': ['v'], 'text': ['k']}, 'test', d)}}}",
            lambda: f"dict(zip({self.surely('texts', d - 1)}, {self.of('numbers', d - 1)}))",
            lambda: f"dict({self.pick('d', 'o')})",
            lambda: f"(d | {self.of('object', d - 1)})",
        )()

    def loop(self, kind: str, d: int) -> str:
        """Return the inside of a comprehension with elements of `kind`."""
        self.loops += 1
        name = self.pick("x", "y", "n", f"w{self.loops}")
        over, element = self.pick(("numbers", "number"), ("texts", "text"))
        source = self.of(over, d - 1)
        inside = self.inside({element: [name]}, kind, d)
        test = f" if {self.inside({element: [name]}, 'test', d)}" if self.draw(st.booleans()) else ""
        return f"{inside} for {name} in {source}{test}"

    def about_an_object(self, d: int) -> str:
        return self.inside({"number": ["p.n"], "text": ["p.t"], "test": ["p.ok"]}, "test", d)

    def sure_loop(self, kind: str, d: int) -> str:
        self.sure += 1
        text = self.loop(kind, d)
        self.sure -= 1
        return text

    def set(self, d: int) -> str:
        """Return a set of scalars; Python has no sets of lists, where this language has."""
        one = lambda: f"set({self.surely(self.pick('numbers', 'texts'), d - 1)})"  # noqa: E731
        return self.pick(one, one, lambda: f"({one()} {self.pick('&', '|', '-', '^')} {one()})")()

    def inside(self, names: dict[str, list[str]], kind: str, d: int) -> str:
        before = {key: list(known) for key, known in self.bound.items()}
        for key, more in names.items():
            self.bound.setdefault(key, []).extend(more * 3)
        text = self.of(kind, d - 1)
        self.bound = before
        return text


@st.composite
def expressions(draw: st.DrawFn) -> str:
    writer = Writer(draw)
    kind = draw(st.sampled_from(["number", "text", "test", "numbers", "texts", "object"]))
    return writer.of(kind, draw(st.integers(1, 4)))


@settings(max_examples=1500, deadline=None, suppress_health_check=list(HealthCheck))
@given(expressions(), SCOPES)
def test_an_expression_means_what_it_means_in_python(text: str, scope: dict[str, Any]) -> None:
    try:
        expected = python_says(text, scope)
    except Exception as error:
        with pytest.raises((EvaluationError, ExpressionError)):
            print(text, "is refused by Python:", error, "but is", parse_expression(text).evaluate(scope))
        return
    found = parse_expression(text).evaluate(scope)
    assert exactly(found) == exactly(expected), text


def test_the_generated_expressions_are_worth_comparing() -> None:
    outcomes = {"value": 0, "refused": 0}

    @settings(max_examples=300, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(expressions(), SCOPES)
    def count(text: str, scope: dict[str, Any]) -> None:
        try:
            python_says(text, scope)
            outcomes["value"] += 1
        except Exception:
            outcomes["refused"] += 1

    count()
    assert outcomes["value"] > outcomes["refused"] > 20


# --- whatever is written ---------------------------------------------------------------------------------------------

SIGNS = [
    *"()[]{}.,:+-*/%<>=!&|'\"\\ \n#@~^$?;`",
    "名",
    "：",
    "，",
    "（",
    "“",
    "\u3000",
    "\0",
    "\ud800",
    "**",
    "//",
    "==",
    ".a",
]
WORDS = ["if", "else", "for", "in", "not", "lambda", "and", "is", "await", "None", "x", "xs", "len", "default", "key="]
PIECES = st.sampled_from([*SIGNS, *WORDS, "f'", "1", "0.5", "[0]"])


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """Return an expression with some pieces put in, taken out or doubled."""
    text = draw(expressions())
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        upto = min(len(text), at + draw(st.integers(0, 5)))
        text = text[:at] + draw(PIECES) + draw(st.sampled_from(["", text[at:upto]])) + text[upto:]
    return text


@settings(max_examples=600, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.one_of(st.text(max_size=40), damaged(), st.lists(PIECES, max_size=25).map("".join)), SCOPES)
def test_anything_is_an_expression_or_is_refused(text: str, scope: dict[str, Any]) -> None:
    place = Place(("x",), 7, 7 + len(text))
    value, error = outcome(lambda: parse_expression(text, place).evaluate({"x": 1, "xs": [1, 2], **scope}))
    if error is None:
        json.dumps(value, allow_nan=False)
    else:
        assert 0 <= error.start <= error.end <= len(text)
        assert error.message
        assert error.place is not None
        assert error.place.start == 7 + error.start


def outcome(compute: Callable[[], Any]) -> tuple[Any, ExpressionError | EvaluationError | None]:
    """Return the value, or the refusal."""
    try:
        return compute(), None
    except (ExpressionError, EvaluationError) as error:
        return None, error


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(expressions(), SCOPES)
def test_blanks_around_an_expression_change_nothing(text: str, scope: dict[str, Any]) -> None:
    plain = parse_expression(text)
    expected, error = outcome(lambda: plain.evaluate(scope))
    for padded in (f"  {text}", f"\n{text}\n", f" {text}\t"):
        other = parse_expression(padded)
        assert other.names == plain.names
        found, other_error = outcome(lambda other=other: other.evaluate(scope))
        assert found == expected
        assert (other_error is None) is (error is None)
        if error and other_error:
            assert other_error.message == error.message
            assert padded[other_error.start : other_error.end].strip() == text[error.start : error.end].strip()


# --- templates -------------------------------------------------------------------------------------------------------

BRACED = st.lists(
    st.one_of(PIECES, st.sampled_from(["{", "}", "{{", "}}", "{x}", "{x.a}", "{{x}}", "{'a': ", '{"k": ', "{ ", " }"])),
    max_size=20,
).map("".join)
JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        SHORT,
        st.text(alphabet="a'\"\\\n:!x "),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(alphabet="ab'\" :x", max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=1000, deadline=None)
@given(BRACED)
def test_any_text_is_a_template(text: str) -> None:
    template = parse_template(text)
    assert names_of(template) == frozenset(name for hole in holes(template) for name in hole.expression.names)
    as_text = settle(template, lambda hole: False)
    names = names_of(as_text)
    try:
        value = fill(template, dict.fromkeys(names, "v"))
    except EvaluationError:
        return
    assert isinstance(value, str) or isinstance(as_text, Reference)


@given(st.text(alphabet=st.characters(exclude_characters="{}")))
def test_text_without_braces_is_itself(text: str) -> None:
    assert fill(parse_template(text), {}) == text


@given(BRACED)
def test_doubled_braces_are_the_text(text: str) -> None:
    assert fill(parse_template(text.replace("{", "{{").replace("}", "}}")), {}) == text


@given(JSON, st.sampled_from([None, 2]))
def test_json_in_text_survives(value: Any, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    assert fill(parse_template(text), {"a": 1, "x": 2}) == text
    assert fill(parse_template(f"Reply with {text} only"), {"a": 1, "x": 2}) == f"Reply with {text} only"


@given(JSON)
def test_a_value_is_inserted_once_and_as_it_is(value: Any) -> None:
    scope = {"x": value, "a": "!"}
    assert fill(parse_template("{x}"), scope) == value
    assert fill(parse_template("<{x}>{a}"), scope) == f"<{render_text(value)}>!"
    assert fill(parse_template(["{x}", {"k": "{x}"}]), scope) == [value, {"k": value}]
    assert fill(parse_template({"$literal": value}), scope) == value
    if not isinstance(value, str):
        assert json.loads(render_text(value)) == value or isinstance(value, float)


@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
@given(expressions(), SCOPES)
def test_a_template_of_an_expression_is_the_expression(text: str, scope: dict[str, Any]) -> None:
    expression = parse_expression(text)
    if not expression.names or text.startswith(("{", "f'{")) or "{" in text or ":" in text:
        return
    template = parse_template("{" + text + "}")
    assert isinstance(template, Reference)
    expected, error = outcome(lambda: expression.evaluate(scope))
    found, other_error = outcome(lambda: fill(template, scope))
    assert found == expected
    assert str(other_error) == str(error)
    if error is None:
        assert fill(parse_template("- {" + text + "}"), scope) == "- " + render_text(expected)
