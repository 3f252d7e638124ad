"""What a function returns becomes a JSON value that fits what it declares."""

import array
import base64
import collections
import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import io
import ipaddress
import itertools
import json
import math
import numbers
import pathlib
import re
import sqlite3
import types
import typing
import uuid
from collections.abc import Iterator
from typing import Any, NamedTuple, TypedDict

import pytest
from pydantic import BaseModel, Field, SecretStr, computed_field

from toolplan.errors import ResultRefused
from toolplan.tools import Tool


class Color(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Place:
    city: str
    color: Color = Color.RED
    day: dt.date | None = None


class Point(NamedTuple):
    x: float
    price: decimal.Decimal = decimal.Decimal("0.10")


class Row(TypedDict):
    n: int
    note: typing.NotRequired[str]


class Mail(BaseModel):
    sender: str = Field(alias="from")
    secret: SecretStr = SecretStr("s")

    @computed_field
    @property
    def length(self) -> int:
        return len(self.sender)


class Tree(BaseModel):
    name: str
    children: list["Tree"] = []


def tool_returning(hint: Any) -> Tool:
    def f(): ...

    f.__annotations__["return"] = hint
    return Tool.of(f)


@pytest.mark.parametrize(
    ("hint", "raw", "value"),
    [
        (str, "a", "a"),
        (int, 3, 3),
        (float, 3, 3),
        (None, None, None),
        (bool, True, True),
        (str | None, None, None),
        (Place, Place("Oslo"), {"city": "Oslo", "color": "red", "day": None}),
        (Place, {"city": "Oslo", "color": "red", "day": None}, {"city": "Oslo", "color": "red", "day": None}),
        (list[Place], [Place("a", day=dt.date(2026, 3, 18))], [{"city": "a", "color": "red", "day": "2026-03-18"}]),
        (Iterator[int], [1, 2], [1, 2]),
        (Point, Point(1), {"x": 1.0, "price": "0.10"}),
        (list[Point] | None, [Point(1)], [{"x": 1.0, "price": "0.10"}]),
        (dict[str, Point], {"a": Point(2)}, {"a": {"x": 2.0, "price": "0.10"}}),
        (Row, {"n": 1}, {"n": 1}),
        (list[Row], [{"n": 1, "note": "x"}], [{"n": 1, "note": "x"}]),
        (Mail, Mail(**{"from": "ann"}), {"from": "ann", "secret": "**********", "length": 3}),
        (Tree, Tree(name="a", children=[Tree(name="b")]), {"name": "a", "children": [{"name": "b", "children": []}]}),
        (set[str], {"b", "a", "c"}, ["a", "b", "c"]),
        (bytes, b"\xff\xef", "/+8="),
        (decimal.Decimal, decimal.Decimal("12.50"), "12.50"),
        (dt.datetime, dt.datetime(2026, 3, 18, 9, 30), "2026-03-18T09:30:00"),
        (dt.timedelta, dt.timedelta(minutes=90), "PT1H30M"),
        (tuple[int, str], (1, "a"), [1, "a"]),
        (dict[str, Any], {"a": [Place("x")]}, {"a": [{"city": "x", "color": "red", "day": None}]}),
        (Any, (n for n in (1, 2)), [1, 2]),
        (Any, {"d": dt.date(2026, 3, 18)}, {"d": "2026-03-18"}),
    ],
)
def test_value(hint, raw, value):
    tool = tool_returning(hint)
    assert tool.to_value(raw) == value


@pytest.mark.parametrize(
    ("hint", "raw", "said"),
    [
        (str, 3, "`f` returned something else than it declares: the result must be text, but is 3 (number)"),
        (int, "3", "the result must be a whole number, but is '3' (text)"),
        (None, 1, "the result must be null, but is 1 (number)"),
        (Place, Place(3), "`city` must be text, but is 3 (number)"),  # type: ignore[arg-type]
        (list[Place], [Place("a"), {"color": "red"}], "`city` is required and missing in `[1]`"),
        (float, math.nan, "the result of `f` is nan, which JSON cannot express"),
        (list[float], [1.0, math.inf], "the result of `f`[1] is inf"),
        (dict[str, Any], {"a": {"b": math.nan}}, "the result of `f`.a.b is nan"),
        (Place, object(), "the result of `f` is a `object`, which has no JSON value"),
        (Any, {1: {2: {(3,): 4}}}, "keys must be text"),
    ],
)
def test_refused(hint, raw, said):
    with pytest.raises(ResultRefused) as caught:
        tool_returning(hint).to_value(raw)
    assert said in str(caught.value)


@dataclasses.dataclass
class Reading:
    value: float
    more: dict[str, Any] = dataclasses.field(default_factory=dict)


def test_nan_does_not_hide_in_models():
    tool = tool_returning(Reading)
    assert tool.to_value(Reading(1.5)) == {"value": 1.5, "more": {}}
    with pytest.raises(ResultRefused, match="value"):
        tool.to_value(Reading(math.nan))
    with pytest.raises(ResultRefused, match=r"more.x is nan"):
        tool.to_value(Reading(1.0, {"x": math.nan}))


class Whole:
    """A whole number of another library, as `numpy.int64` is one: no `int`, but registered as a number."""

    def __index__(self) -> int:
        return 7

    __int__ = __index__


class Precise:
    """A real number of another library, as mpmath's `mpf` is one."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __float__(self) -> float:
        return float(self.text)


class Flag:
    """A scalar that is no number, as `numpy.bool_` is one; like all of that library's it has `tolist`."""

    def tolist(self) -> bool:
        return True


numbers.Integral.register(Whole)
numbers.Real.register(Precise)


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (Whole(), 7),
        ({"n": [Whole()]}, {"n": [7]}),
        ({Whole(): "seven"}, {"7": "seven"}),
        (Precise("1.25"), 1.25),
        (fractions.Fraction(1, 4), 0.25),
        (array.array("d", [1.5, 2.0]), [1.5, 2.0]),
        ([Flag()], [True]),
    ],
)
def test_numbers_of_other_libraries_are_numbers(raw, value):
    assert json.dumps(tool_returning(Any).to_value(raw)) == json.dumps(value)


@pytest.mark.parametrize("raw", [Precise("nan"), Precise("inf"), fractions.Fraction(10**400), 1j])
def test_numbers_that_json_does_not_have_are_refused(raw):
    with pytest.raises(ResultRefused, match=r"the result of `f`\.n is"):
        tool_returning(Any).to_value({"n": raw})


def test_circles_are_refused():
    circle: list[Any] = []
    circle.append(circle)
    for hint in (Any, list, list[Any]):
        with pytest.raises(ResultRefused, match="contains itself"):
            tool_returning(hint).to_value(circle)


@pytest.mark.parametrize("hint", [Any, list[dict[str, int]], list[Row], list[Any]])
def test_results_are_copies(hint):
    raw = [{"n": 1}]
    value = tool_returning(hint).to_value(raw)
    raw[0]["n"] = 2
    raw.append({"n": 3})
    assert value == [{"n": 1}]


def test_schemas():
    assert tool_returning(Any).returns is None
    assert Tool.of(lambda: 1, name="f").returns is None
    assert tool_returning(None).returns == {"type": "null"}
    assert tool_returning(list[int]).returns == {"type": "array", "items": {"type": "integer"}}
    place = tool_returning(Place).returns
    assert place is not None
    assert place["title"] == "Place"
    assert place["required"] == ["city", "color", "day"]  # a result has its defaults
    row = tool_returning(Row).returns
    assert row is not None
    assert row["required"] == ["n"]
    mail = tool_returning(Mail).returns
    assert mail is not None
    assert list(mail["properties"]) == ["from", "secret", "length"]
    tree = tool_returning(Tree).returns
    assert tree is not None
    assert tree["$ref"] == "#/$defs/Tree"


def test_types_that_cannot_be_described_stay_unknown():
    class Odd: ...

    tool = tool_returning(Odd)
    assert tool.returns is None
    assert tool.to_value({"a": 1}) == {"a": 1}
    with pytest.raises(ResultRefused, match="`Odd`"):
        tool.to_value(Odd())


def test_static_types():
    def f(a: int, place: Place | None = None) -> list[Place]: ...

    tool = Tool.of(f)
    assert str(tool.result_type) == "list[Place]"
    assert set(tool.argument_types) == {"a", "place"}
    assert str(tool.argument_types["place"]) == "Place | None"


class Slots:
    """Made by attrs, as far as anybody can see from outside."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)
        type(self).__attrs_attrs__ = [types.SimpleNamespace(name=name) for name in fields]  # type: ignore[attr-defined]


class Picture:
    """A picture of Pillow, as far as anybody can see from outside."""

    mode, size = "RGB", (1, 1)

    def getpixel(self, place: tuple[int, int]) -> tuple[int, int, int]:
        return (0, 0, 0)

    def save(self, file: Any, format: str) -> None:
        file.write(f"a {format} file".encode())


class Table:
    """A table of pandas, as far as anybody can see from outside."""

    columns = ("day", "rain")

    def to_dict(self, orient: str) -> list[dict[str, Any]]:
        assert orient == "records"
        return [{"day": dt.date(2026, 3, 18), "rain": 1.5}, {"day": dt.date(2026, 3, 19), "rain": math.nan}]


class Missing:
    """A missing value of pandas."""


Missing.__name__ = "NaTType"
Table.__module__ = Missing.__module__ = "pandas.core"


class PolarTable:
    def to_dicts(self) -> list[dict[str, Any]]:
        return [{"a": 1}, {"a": None}]


def row() -> Any:
    connection = sqlite3.connect(":memory:")
    connection.row_factory = sqlite3.Row
    return connection.execute("select 1 as n, 'x' as name").fetchone()


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (dt.timedelta(minutes=1.5), 90.0),
        (dt.time(9, 30), "09:30:00"),
        (decimal.Decimal("12.50"), 12.5),
        (decimal.Decimal("0.1000000000000000000001"), "0.1000000000000000000001"),
        (decimal.Decimal("100"), 100),
        (bytearray(b"\xff"), "/w=="),
        (memoryview(b"abc"), "YWJj"),
        (pathlib.PurePosixPath("/a/b"), "/a/b"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (ipaddress.ip_address("10.0.0.1"), "10.0.0.1"),
        (ipaddress.ip_network("10.0.0.0/8"), "10.0.0.0/8"),
        (frozenset({3, 1, 2}), [1, 2, 3]),
        ({"b", 1}, ["b", 1]),
        (range(3), [0, 1, 2]),
        (collections.deque([1, 2]), [1, 2]),
        (collections.OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
        (collections.Counter("aab"), {"a": 2, "b": 1}),
        (types.MappingProxyType({"a": 1}), {"a": 1}),
        ({1: "a", 2.5: "b", Color.RED: "d"}, {"1": "a", "2.5": "b", "red": "d"}),
        ({dt.date(2026, 3, 18): 1, uuid.UUID(int=1): 2}, {"2026-03-18": 1, "00000000-0000-0000-0000-000000000001": 2}),
        ({"a": 1}.values(), [1]),
        (map(str, [1, 2]), ["1", "2"]),
        (iter([1]), [1]),
        (Point(1), {"x": 1, "price": 0.1}),
        (Slots(a=1, b=[Color.RED]), {"a": 1, "b": ["red"]}),
        (Mail(**{"from": "ann"}), {"from": "ann", "secret": "**********", "length": 3}),
        ([Mail(**{"from": "ann"})], [{"from": "ann", "secret": "**********", "length": 3}]),
        (Picture(), {"type": "image", "mimeType": "image/png", "data": base64.b64encode(b"a PNG file").decode()}),
        (Table(), [{"day": "2026-03-18", "rain": 1.5}, {"day": "2026-03-19", "rain": None}]),
        ([Missing()], [None]),
        (PolarTable(), [{"a": 1}, {"a": None}]),
        (row(), {"n": 1, "name": "x"}),
        ([row()], [{"n": 1, "name": "x"}]),
        (
            re.search(r"(?P<day>\d+)\.(\d+)?", "on 18. of"),
            {"text": "18.", "start": 3, "end": 6, "groups": ["18", None], "names": {"day": "18"}},
        ),
        ("x" * 1_000_000, "x" * 1_000_000),
        ("天气 🌧", "天气 🌧"),
        (2**200, 2**200),
    ],
)
def test_every_kind_has_its_value(raw, value):
    assert json.dumps(tool_returning(Any).to_value(raw)) == json.dumps(value)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (3 + 4j, "is the complex number (3+4j), which JSON cannot express"),
        (ValueError("no"), "is an exception (ValueError: no); raise it"),
        (Color, "is the class `Color`, not a value"),
        (len, "is a `builtin_function_or_method`, which has no JSON value"),
        (re.compile("a"), "is a `Pattern`, which has no JSON value"),
        (io.StringIO("text"), "is an open file; return what is in it"),
        (decimal.Decimal("NaN"), "is NaN, which JSON cannot express"),
        ({(1, 2): 3}, "has a key of type `tuple`; keys must be text"),
        ({None: 3}, "has the key None; keys must be text"),
        ({1: "a", "1": "b"}, "has two keys that are the same text"),
        ("half \ud83d", "is no text at character 5: half of a surrogate pair is there"),
        ([10**4300], "[0] is an integer of more than 4,300 digits"),
    ],
)
@pytest.mark.parametrize("deep", [False, True])
def test_what_has_no_value_is_named_with_its_place(raw, said, deep):
    where = "the result of `f`.rows[1].cell" if deep else "the result of `f`"
    with pytest.raises(ResultRefused) as caught:
        tool_returning(Any).to_value({"rows": [{}, {"cell": raw}]} if deep else raw)
    assert str(caught.value).startswith(where + (said if said.startswith("[") else f" {said}"))


def test_half_characters_are_no_text_where_text_is_declared():
    with pytest.raises(ResultRefused, match="the result of `f` is no text at character 1"):
        tool_returning(str).to_value("a\udcff")


def test_a_coroutine_that_was_forgotten_is_named():
    async def inner() -> int:
        return 1

    forgotten = inner()
    with pytest.raises(ResultRefused, match=r"`f`\[0\] is a coroutine that nobody has awaited"):
        tool_returning(Any).to_value([forgotten])
    forgotten.close()


def test_what_has_no_end_is_refused(monkeypatch):
    monkeypatch.setattr("toolplan.tools.conversion.MAX_ITEMS", 100)
    monkeypatch.setattr("toolplan.tools.listing.MAX_ITEMS", 100)
    for raw in (itertools.count(), (n for n in itertools.count()), range(10**15)):
        with pytest.raises(ResultRefused, match=r"`f`\.n\[100\] and what follows is too much, or has no end"):
            tool_returning(Any).to_value({"n": raw})

    def forever() -> Iterator[int]:
        yield from itertools.count()

    with pytest.raises(ResultRefused, match="`forever` yielded more than 100 items"):
        Tool.of(forever).bind({})()


def test_what_is_too_much_text_is_refused(monkeypatch):
    monkeypatch.setattr("toolplan.tools.listing.MAX_TEXT", 1000)

    def chatter() -> Iterator[str]:
        while True:
            yield "blah " * 20

    with pytest.raises(ResultRefused, match="`chatter` yielded more than 1,000 characters"):
        Tool.of(chatter).bind({})()


async def test_an_async_generator_without_an_end_is_refused_and_closed(monkeypatch):
    monkeypatch.setattr("toolplan.tools.listing.MAX_ITEMS", 100)
    closed = []

    async def forever() -> typing.AsyncIterator[int]:
        try:
            n = 0
            while True:
                yield n
                n += 1
        finally:
            closed.append(True)

    with pytest.raises(ResultRefused, match="`forever` yielded more than 100 items"):
        await Tool.of(forever).bind({})()
    assert closed == [True]


def test_one_list_many_times_is_as_much_as_all_its_copies(monkeypatch):
    monkeypatch.setattr("toolplan.tools.conversion.MAX_VALUES", 100_000)
    laughs: list[Any] = ["ha"] * 10
    for _ in range(8):
        laughs = [laughs] * 10
    with pytest.raises(ResultRefused, match="brings the number of values to more than 100,000"):
        tool_returning(Any).to_value(laughs)


def test_the_way_to_a_deep_place_is_not_told_in_full():
    circle: dict[str, Any] = {}
    circle["again"] = circle
    with pytest.raises(ResultRefused) as caught:
        tool_returning(Any).to_value(circle)
    assert "contains itself" in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_model_that_cannot_be_written_is_named():
    class Blob(BaseModel):
        data: bytes

    with pytest.raises(ResultRefused, match=r"is a `Blob` that cannot be written: .*utf-8"):
        tool_returning(Any).to_value(Blob(data=b"\xff\xfe"))


def test_pictures_of_mcp_are_values_as_they_are():
    picture = {"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="}
    assert tool_returning(Any).to_value(picture) == picture
