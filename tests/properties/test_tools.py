"""Whatever the hints: what the schema accepts can be converted, and values survive the way to JSON and back."""

from __future__ import annotations

import copy
import dataclasses
import datetime as dt
import decimal
import enum
import json
import uuid
from typing import Any, Literal, NamedTuple, TypedDict

from hypothesis import given, settings
from hypothesis import strategies as st

from toolplan.tools import Tool


class Color(enum.Enum):
    RED = "red"
    BLUE = 2


@dataclasses.dataclass
class Place:
    city: str
    near: Place | None = None
    score: float = 0.5


class Point(NamedTuple):
    x: int
    label: str = "-"


class Row(TypedDict, total=False):
    n: int
    tags: list[str]


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
whole = st.integers(-(2**60), 2**60)
number = st.floats(allow_nan=False, allow_infinity=False, width=32)
day = st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31))
moment = st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1))
places = st.recursive(
    st.builds(Place, text, st.none(), number), lambda inner: st.builds(Place, text, inner, number), max_leaves=4
)
LEAVES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (int, whole),
    (float, number),
    (str, text),
    (bool, st.booleans()),
    (None, st.none()),
    (Literal["a", 2, None], st.sampled_from(["a", 2, None])),
    (Color, st.sampled_from(Color)),
    (dt.date, day),
    (dt.datetime, moment),
    (decimal.Decimal, st.decimals(allow_nan=False, allow_infinity=False, places=3, max_value=10**9, min_value=0)),
    (uuid.UUID, st.uuids()),
    (bytes, st.binary(max_size=5)),
    (Place, places),
    (Point, st.builds(Point, whole, text)),
    (Row, st.fixed_dictionaries({}, optional={"n": whole, "tags": st.lists(text, max_size=2)})),
]


def _around(hints: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        hints.map(lambda pair: (list[pair[0]], st.lists(pair[1], max_size=3))),
        hints.map(lambda pair: (dict[str, pair[0]], st.dictionaries(text, pair[1], max_size=3))),
        hints.map(lambda pair: (pair[0] | None if pair[0] else None, st.none() | pair[1])),
        hints.map(lambda pair: (tuple[pair[0], int], st.tuples(pair[1], whole))),
    )


HINTS = st.recursive(st.sampled_from(LEAVES), _around, max_leaves=4)

anything = st.recursive(
    st.none() | st.booleans() | whole | number | text | st.sampled_from(["a", "red", "2026-03-18", "1.5", "/w=="]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["city", "x", "n", "near", "tags", "label", "q"]), inner, max_size=3)
    ),
    max_leaves=6,
)


def tool_of(hint: Any) -> Tool:
    def same(value):
        return value

    same.__annotations__.update(value=hint, **{"return": hint})
    return Tool.of(same)


@settings(max_examples=150, deadline=None)
@given(HINTS, st.data())
def test_values_survive_json(pair, data):
    hint, values = pair
    value = data.draw(values)
    tool = tool_of(hint)
    written = tool.to_value(copy.deepcopy(value))
    assert json.loads(json.dumps(written)) == written
    raw = tool.bind({"value": written})()
    assert raw == value
    assert type(raw) is type(value)
    assert tool.to_value(raw) == written


@settings(max_examples=150, deadline=None)
@given(HINTS, anything)
def test_what_the_schema_accepts_can_be_converted(pair, value):
    tool = tool_of(pair[0])
    arguments = {"value": value}
    before = copy.deepcopy(arguments)
    accepted = tool.accepts(arguments)
    assert accepted == (tool.faults(arguments) == [])
    if accepted:
        result = tool.bind(arguments)()
        tool.to_value(result)
    for fault in tool.faults(arguments):
        assert fault.argument == "value"
        assert fault.message
    assert arguments == before
