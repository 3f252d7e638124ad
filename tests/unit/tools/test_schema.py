"""Hints become a JSON Schema, and JSON arguments become what the function expects."""

import dataclasses
import datetime as dt
import decimal
import enum
import pathlib
import typing
import uuid
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, NamedTuple, Optional, TypedDict, Unpack

import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from toolplan.errors import ArgumentsRefused, UsageError
from toolplan.tools import Tool, ToolContext


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Place:
    city: str
    zip: str | None = None
    seen: dt.date = dt.date(2026, 3, 18)


class Point(NamedTuple):
    x: float
    y: float = 0.0


class Inner(TypedDict):
    z: str


class Outer(TypedDict, total=False):
    a: typing.Required[int]
    b: list[Inner]


class Node(BaseModel):
    name: str
    children: list["Node"] = []


class Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    day: dt.date
    color: Color


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str


def received(hint: Any, value: Any) -> Any:
    """What a function gets for a JSON value, when its parameter has this hint."""

    def take(value):
        return value

    take.__annotations__["value"] = hint
    return Tool.of(take).bind({"value": value})()


def schema_of(hint: Any) -> dict[str, Any]:
    def take(value):
        return value

    take.__annotations__["value"] = hint
    return Tool.of(take).parameters["properties"]["value"]


def refused(hint: Any, value: Any) -> str:
    with pytest.raises(ArgumentsRefused) as caught:
        received(hint, value)
    assert caught.value.effect_happened is False
    return str(caught.value)


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (None, {"type": "null"}),
        (Any, {}),
        (object, {}),
        (list, {"type": "array", "items": {}}),
        (dict, {"type": "object", "additionalProperties": True}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (dict[str, float], {"type": "object", "additionalProperties": {"type": "number"}}),
        (dict[str, Any], {"type": "object", "additionalProperties": True}),
        (str | None, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}),  # noqa: UP045 - the older spelling
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal[1, "b", None], {"enum": [1, "b", None]}),
        (dt.date, {"type": "string", "format": "date"}),
        (uuid.UUID, {"type": "string", "format": "uuid"}),
        (Annotated[int, Field(ge=1, le=9)], {"type": "integer", "minimum": 1, "maximum": 9}),
        (Annotated[str, "the city"], {"type": "string", "description": "the city"}),
    ],
)
def test_schema(hint, schema):
    assert schema_of(hint) == schema


@pytest.mark.parametrize(
    ("hint", "value", "expected"),
    [
        (int, 3.0, 3),
        (int, 10**30, 10**30),
        (float, 3, 3.0),
        (list[int], [1.0, 2], [1, 2]),
        (int | None, None, None),
        (int | None, 4.0, 4),
        (dict[str, float], {"a": 1}, {"a": 1.0}),
        (Literal[1, 2], 2.0, 2),
        (Color, "blue", Color.BLUE),
        (list[Color], ["red"], [Color.RED]),
        (Literal[Color.RED], "red", Color.RED),
        (dt.date, "2026-03-18", dt.date(2026, 3, 18)),
        (dt.datetime, "2026-03-18T10:00", dt.datetime(2026, 3, 18, 10)),
        (dt.datetime, "2026-03-18T10:00:00Z", dt.datetime(2026, 3, 18, 10, tzinfo=dt.UTC)),
        (dt.datetime, "2026-03-18", dt.datetime(2026, 3, 18)),
        (dt.time, "09:30", dt.time(9, 30)),
        (dt.timedelta, "PT1H30M", dt.timedelta(hours=1.5)),
        (decimal.Decimal, "3.20", decimal.Decimal("3.20")),
        (decimal.Decimal, 3.5, decimal.Decimal("3.5")),
        (uuid.UUID, "12345678-1234-5678-1234-567812345678", uuid.UUID("12345678123456781234567812345678")),
        (pathlib.Path, "/a/b", pathlib.Path("/a/b")),
        (bytes, "/+8=", b"\xff\xef"),
        (set[int], [1, 2, 2], {1, 2}),
        (frozenset[str], ["a"], frozenset({"a"})),
        (tuple[int, str], [1, "a"], (1, "a")),
        (tuple[int, ...], [1, 2, 3], (1, 2, 3)),
        (Sequence[int], [1], [1]),
        (Iterable[int], [1, 2], [1, 2]),
        (Place, {"city": "Oslo"}, Place("Oslo")),
        (list[Place], [{"city": "Oslo", "seen": "2026-01-02"}], [Place("Oslo", None, dt.date(2026, 1, 2))]),
        (Point, {"x": 1}, Point(1.0, 0.0)),
        (Outer, {"a": 1, "b": [{"z": "q"}]}, {"a": 1, "b": [{"z": "q"}]}),
        (Node, {"name": "a", "children": [{"name": "b"}]}, Node(name="a", children=[Node(name="b")])),
        (Strict, {"day": "2026-03-18", "color": "red"}, Strict(day=dt.date(2026, 3, 18), color=Color.RED)),
        (int | str, "3", "3"),
        (int | str, 3, 3),
        (Cat | Dog, {"kind": "dog", "name": "Rex"}, Dog(kind="dog", name="Rex")),
    ],
)
def test_received(hint, value, expected):
    found = received(hint, value)
    assert found == expected
    assert type(found) is type(expected)


def test_iterables_can_be_read_twice():
    values = received(Iterable[int], [1, 2])
    assert list(values) == list(values) == [1, 2]


@pytest.mark.parametrize(
    ("hint", "value", "said"),
    [
        (int, "3", "`value` must be a whole number, but is '3' (text)"),
        (int, 3.5, "`value` must be a whole number, but is 3.5 (number)"),
        (int, True, "`value` must be a whole number, but is true (true/false)"),
        (bool, 1, "`value` must be true or false, but is 1 (number)"),
        (str, 3, "`value` must be text, but is 3 (number)"),
        (str, None, "`value` must be text, but is null"),
        (dt.date, "tomorrow", "`value` must be a date such as 2026-03-18, but is 'tomorrow' (text)"),
        (dt.date, "20260318", "a date such as"),
        (dt.date, "2026-02-30", "a date such as"),
        (dt.datetime, "1773828000", "a date and time such as"),
        (decimal.Decimal, "3 kg", "`value` must be a number or text of the form"),
        (bytes, "not base64!", "`value` must be base64 text"),
        (Color, "rde", '`value` must be "red" or "blue", but is \'rde\' (text); did you mean `red`?'),
        (list[int], [1, "2"], "`value[1]` must be a whole number, but is '2' (text)"),
        (list[Place], [{"zip": "1"}], "`city` is required and missing in `value[0]`"),
        (tuple[int, str], [1], "a list of at least 2"),
        (Point, {"x": 1, "z": 2}, "`z` is unknown in `value`; known: `x`, `y`"),
        (Outer, {"b": []}, "`a` is required and missing in `value`"),
        (Strict, {"day": "2026-03-18", "color": "red", "c": 1}, "`c` is unknown in `value`"),
        (str | int | None, [1], "`value` must be text, a whole number or null, but is list of 1"),
        (str | list[int], [1, "a"], "`value[1]` must be a whole number, but is 'a' (text)"),
        (Cat | Dog, {"kind": "cow"}, '`value.kind` must be "cat" or "dog", but is \'cow\' (text)'),
        (Cat | Dog, {"kind": "cat", "lives": "9"}, "`value.lives` must be a whole number, but is '9' (text)"),
        (
            Annotated[Cat | Dog, Field(discriminator="kind")],
            {"kind": "dog"},
            "`name` is required and missing in `value`",
        ),
    ],
)
def test_refused(hint, value, said):
    assert said in refused(hint, value)


def test_what_only_the_type_itself_knows_is_refused_too():
    def even(value: int) -> int:
        if value % 2:
            raise ValueError("must be even")
        return value

    message = refused(Annotated[int, AfterValidator(even)], 3)
    assert "`value` does not fit: value error, must be even (found 3)" in message
    assert "too large for a float" in refused(float, 10**400)


def test_arguments_are_copies():
    given = {"value": {"a": [1]}, "tags": ["x"], "model": {"name": "a", "children": []}}

    def spoil(value: dict[str, Any], tags: list[str], model: Node, free=None):
        value["a"].append(2)
        tags.append("y")
        model.children.append(Node(name="b"))

    Tool.of(spoil).bind(given)()
    assert given == {"value": {"a": [1]}, "tags": ["x"], "model": {"name": "a", "children": []}}


S = object()


def test_defaults_are_shown_in_their_json_form_or_not_at_all():
    def f(
        a: dt.date = dt.date(2026, 3, 18),
        b: Color = Color.RED,
        c: Any = S,
        d: list[int] = [],  # noqa: B006 - what users write
        e: int = None,  # noqa: RUF013 - what users write
        g: float = float("nan"),
        h: decimal.Decimal = decimal.Decimal("1.50"),
        i: str | None = None,
        j: tuple[int, ...] = (1, 2),
        k: Place = Place("Oslo"),  # noqa: B008
    ):
        return a, b, c, d, e, h, i, j, k

    tool = Tool.of(f)
    shown = {name: p["default"] for name, p in tool.parameters["properties"].items() if "default" in p}
    assert shown == {
        "a": "2026-03-18",
        "b": "red",
        "d": [],
        "h": "1.50",
        "i": None,
        "j": [1, 2],
        "k": {"city": "Oslo", "zip": None, "seen": "2026-03-18"},
    }
    assert tool.parameters["required"] == []
    got = tool.bind({})()
    assert got[2] is S
    assert got[0] == dt.date(2026, 3, 18)


def test_null_for_an_optional_argument_that_forbids_it_means_not_given():
    def f(a: int = 7, b: str | None = "x", c: Color = Color.RED, *, d: Any = 1):
        return a, b, c, d

    tool = Tool.of(f)
    assert tool.normalise({"a": None, "b": None, "c": None, "d": None}) == {"b": None, "d": None}
    assert tool.bind({"a": None, "b": None, "c": None, "d": None})() == (7, None, Color.RED, None)
    assert not tool.accepts({"a": None})
    whole = {"a": 1}
    assert tool.normalise(whole) is whole


def test_every_kind_of_parameter():
    def f(a: int, /, b: int = 2, *rest: int, c: str, **more: float):
        return a, b, rest, c, more

    tool = Tool.of(f)
    schema = tool.parameters
    assert list(schema["properties"]) == ["a", "b", "rest", "c"]
    assert schema["required"] == ["a", "c"]
    assert schema["additionalProperties"] == {"type": "number"}
    assert tool.bind({"a": 1, "c": "x"})() == (1, 2, (), "x", {})
    assert tool.bind({"c": "x", "rest": [3, 4.0], "a": 1, "y": 5})() == (1, 2, (3, 4), "x", {"y": 5.0})
    assert "`y` must be a number" in str(tool.faults({"a": 1, "c": "x", "y": "5"})[0].message)


def test_rest_parameters_alone():
    def total(*numbers: float) -> float:
        return sum(numbers)

    tool = Tool.of(total)
    assert tool.parameters["required"] == []
    assert tool.bind({"numbers": [1, 2.5]})() == 3.5
    assert tool.bind({})() == 0


def test_open_keywords_cannot_reach_what_is_hidden():
    def f(ctx: ToolContext, source: Annotated[str, Field(alias="from")], **more):
        return source, more

    tool = Tool.of(f)
    assert tool.parameters["additionalProperties"] is True
    assert tool.bind({"from": "a", "x": 1})() == ("a", {"x": 1})
    for name in ("ctx", "source"):
        (fault,) = tool.faults({"from": "a", name: "evil"})
        assert (fault.kind, fault.path) == ("unknown", (name,))


def test_unpacked_typed_dict_keywords():
    class Options(TypedDict, total=False):
        limit: typing.Required[int]
        tags: list[str]

    def f(q: str, **options: Unpack[Options]):
        return q, options

    tool = Tool.of(f)
    assert list(tool.parameters["properties"]) == ["q", "limit", "tags"]
    assert tool.parameters["required"] == ["q", "limit"]
    assert tool.parameters["additionalProperties"] is False
    assert tool.bind({"q": "a", "limit": 1})() == ("a", {"limit": 1})


def test_awkward_names():
    def f(schema: str, json: int, model_config: str, _x: int, self: str, copy: str = "c", validate: bool = True):
        return schema, json, model_config, _x, self, copy, validate

    tool = Tool.of(f)
    given = {"schema": "s", "json": 1, "model_config": "m", "_x": 2, "self": "me"}
    assert list(tool.parameters["properties"]) == ["schema", "json", "model_config", "_x", "self", "copy", "validate"]
    assert tool.bind(given)() == ("s", 1, "m", 2, "me", "c", True)


def test_chinese_names():
    def 查天气(城市: str, 日期: str = "今天") -> str:
        return 城市 + 日期

    tool = Tool.of(查天气)
    assert tool.name == "查天气"
    assert not tool.has_native_name
    assert tool.bind({"城市": "北京"})() == "北京今天"
    assert tool.signature == '查天气(城市: str, 日期: str = "今天") -> str'


def test_fields_of_pydantic_on_parameters():
    def f(
        source: Annotated[str, Field(alias="from", description="who sends", min_length=2)],
        n: int = Field(default=3, ge=1, description="how many"),
        tags: list[str] = Field(default_factory=list),  # noqa: B008
        m: Annotated[int, Field(5)] = 6,
        r: str = Field(description="needed"),
    ):
        """F.

        Args:
            source: what the docstring says
            tags: labels
        """
        return source, n, tags, m, r

    tool = Tool.of(f)
    properties = tool.parameters["properties"]
    assert properties["from"] == {"type": "string", "minLength": 2, "description": "who sends"}
    assert properties["n"] == {"type": "integer", "minimum": 1, "description": "how many", "default": 3}
    assert properties["tags"]["description"] == "labels"
    assert properties["m"]["default"] == 6
    assert tool.parameters["required"] == ["from", "r"]
    assert tool.bind({"from": "ab", "r": "x"})() == ("ab", 3, [], 6, "x")


def test_hints_without_json_are_refused_with_the_parameter():
    class Odd: ...

    def f(a: str, b: Odd): ...

    with pytest.raises(UsageError, match=r"parameter `b` of `f` \(.*test_schema.py:\d+\) has a type that JSON cannot"):
        Tool.of(f)

    def g(callback: typing.Callable[[int], int], b: int): ...

    with pytest.raises(UsageError, match="parameter `callback` of `g`"):
        Tool.of(g)


def test_two_classes_of_one_name():
    def make():
        @dataclasses.dataclass
        class Place:
            lat: float

        return Place

    Other = make()

    def f(a, b):
        return a, b

    f.__annotations__.update(a=Place, b=Other)
    tool = Tool.of(f)
    assert tool.bind({"a": {"city": "x"}, "b": {"lat": 1}})() == (Place("x"), Other(1.0))
    assert not tool.accepts({"a": {"lat": 1}, "b": {"lat": 1}})


@pytest.mark.parametrize(
    ("hint", "strict"),
    [
        (str, True),
        (Place, True),
        (list[Node], True),
        (Cat | Dog, True),
        (dict[str, Any], False),
        (dict[str, int], False),
        (Any, False),
        (list, False),
        (tuple[int, str], False),
    ],
)
def test_strict_compatible(hint, strict):
    def f(value): ...

    f.__annotations__["value"] = hint
    assert Tool.of(f).strict_compatible is strict


def test_no_parameters_and_closed_objects():
    def ping():
        return "pong"

    tool = Tool.of(ping)
    assert tool.parameters == {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    assert tool.strict_compatible
    assert not tool.accepts({"x": 1})
    assert not tool.accepts([])  # type: ignore[arg-type]


def test_text_that_is_not_text():
    assert "`value` is no JSON value" in refused(list[Place], [{"city": "\ud800"}])
    assert Tool.of(lambda value: value, name="same").bind({"value": "\ud800"})() == "\ud800"
