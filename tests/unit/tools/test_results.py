"""What a function returns becomes a JSON value that fits what it declares."""

import dataclasses
import datetime as dt
import decimal
import enum
import math
import typing
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
