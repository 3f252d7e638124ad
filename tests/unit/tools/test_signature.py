"""Tools as text: one line for a message, a whole set for a prompt."""

import dataclasses
import datetime as dt
import enum
from typing import Annotated, Any, Literal, TypedDict

from pydantic import BaseModel, Field

from toolplan.tools import Tool, ToolSet, signatures


class Weekday(enum.Enum):
    MON = "mon"
    TUE = "tue"
    WED = "wed"
    THU = "thu"
    FRI = "fri"
    SAT = "sat"


@dataclasses.dataclass
class Person:
    """Somebody."""

    name: str
    mail: str | None = None


@dataclasses.dataclass
class Event:
    title: str
    start: dt.datetime
    people: list[Person]
    state: Literal["open", "done"] = "open"


class Tree(BaseModel):
    name: str
    children: list["Tree"] = []


class Hit(BaseModel):
    url: str = Field(description="where it is")
    score: float


def events(day: dt.date, weekday: Weekday = Weekday.MON, kind: Literal["a", "b"] | None = None) -> list[Event]:
    """Events of a day.

    Not those of others.

    Args:
        day: The day.
        weekday: what to do about it

    Returns:
        sorted by time
    """
    return []


def invite(person: Person, event: Event | None = None, tags: dict[str, Any] | None = None) -> None: ...


def search(q: Annotated[str, Field(min_length=2)], limit: Annotated[int, Field(ge=1, le=9)] = 5) -> list[Hit]:
    """Search."""
    return []


def find(node: Tree, **more: int) -> Tree:
    return node


def test_one_line():
    assert Tool.of(events).signature == (
        'events(day: Date, weekday: "mon" | "tue" | "wed" | "thu" | "fri" | "sat" = "mon", '
        'kind: "a" | "b" | None = None)'
        " -> list[Event {title: str, start: DateTime, people: list[Person {name: str, mail: str | None}], "
        'state: "open" | "done"}]'
    )
    assert Tool.of(invite).call_signature == (
        "invite(person: Person, event: Event | None = None, tags: dict[str, Any] | None = None) -> None"
    )
    assert Tool.of(find).signature == "find(node: Tree {name: str, children: list[Tree] = []}, **: int) -> Tree"
    assert repr(Tool.of(search)) == "<Tool search(q: str, limit: int = 5) -> list[Hit]>"


def test_a_set():
    assert signatures(ToolSet.of([events, invite, search])) == (
        """
Date = str  # YYYY-MM-DD
DateTime = str  # YYYY-MM-DDTHH:MM:SS
class Event: title: str, start: DateTime, people: list[Person], state: "open" | "done"
class Person: name: str, mail: str | None  # Somebody.
class Hit:
  url: str  # where it is
  score: float
Weekday = "mon" | "tue" | "wed" | "thu" | "fri" | "sat"
class PersonInput: name: str, mail: str | None = None  # Somebody.
class EventInput: title: str, start: DateTime, people: list[PersonInput], state: "open" | "done" = "open"

events(day: Date, weekday: Weekday = "mon", kind: "a" | "b" | None = None) -> list[Event]
  Events of a day.
  Not those of others.
  weekday: what to do about it
  returns: sorted by time

invite(person: PersonInput, event: EventInput | None = None, tags: dict[str, Any] | None = None) -> None

search(q: str, limit: int = 5) -> list[Hit]
  Search.
  q: (length 2..)
  limit: (>= 1, <= 9)
""".strip()
    )


def test_chinese_stays_chinese():
    def 查天气(城市: str) -> str:
        """查询天气。

        参数：
            城市：城市名，不带“市”字。

        返回：
            温度，例如“3°C”。
        """
        return 城市

    assert signatures(ToolSet.of([查天气])) == (
        "查天气(城市: str) -> str\n  查询天气。\n  城市: 城市名，不带“市”字。\n  返回: 温度，例如“3°C”。"
    )


def test_types_of_one_name():
    def make(fields):
        return TypedDict("Row", fields)  # type: ignore[misc]

    def a(): ...
    def b(): ...
    def c(): ...

    a.__annotations__["return"] = make({"x": int})
    b.__annotations__["return"] = make({"y": int})
    c.__annotations__["return"] = make({"x": int})
    text = signatures(ToolSet.of([a, b, c]))
    assert text == "class Row: x: int\nclass Row2: y: int\n\na() -> Row\n\nb() -> Row2\n\nc() -> Row"


def test_given_schemas():
    def signature(schema: dict[str, Any], **more: Any) -> str:
        properties = {"type": "object", "properties": {"a": schema}, **more}
        return Tool.from_schema("f", "", properties, dict).signature

    assert signature({}) == "f(a: Any = ...) -> Any"
    assert signature({"type": ["string", "null"], "default": None}) == "f(a: str | None = None) -> Any"
    assert signature({"type": ["string", "integer"]}, required=["a"]) == "f(a: str | int) -> Any"
    assert signature({"enum": ["x", None, 1, True]}) == 'f(a: "x" | None | 1 | True = ...) -> Any'
    assert signature({"const": "x"}) == 'f(a: "x" = ...) -> Any'
    assert signature({"type": "object"}) == "f(a: dict[str, Any] = ...) -> Any"
    assert signature({"type": "array", "prefixItems": [{"type": "string"}, {}]}) == "f(a: tuple[str, Any] = ...) -> Any"
    nested = {"type": "object", "properties": {"b": {"type": "boolean"}, "c": {}}, "required": ["b"]}
    assert signature(nested) == "f(a: {b: bool, c: Any = ...} = ...) -> Any"
    itself = {"$defs": {"L": {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/L"}, {"type": "integer"}]}}}}
    assert signature({"$ref": "#/$defs/L"}, **itself) == "f(a: list[L | int] = ...) -> Any"
    older = {"definitions": {"P": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}}}
    assert signature({"$ref": "#/definitions/P"}, **older) == "f(a: P {x: int} = ...) -> Any"
    circle = {"$defs": {"A": {"anyOf": [{"$ref": "#/$defs/A"}]}}}
    assert signature({"$ref": "#/$defs/A"}, **circle) == "f(a: A = ...) -> Any"


def test_unnamed_objects_keep_their_descriptions():
    flight = {"type": "object", "properties": {"date": {"type": "string", "description": "as YYYY-MM-DD"}, "no": {}}}
    schema = {
        "type": "object",
        "properties": {
            "flights": {"type": "array", "items": flight, "description": "All of them."},
            "limit": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}], "default": None},
        },
    }
    returns = {"type": "object", "properties": {"id": {"type": "string", "description": "booking number"}}}
    made = Tool.from_schema("book", "Book.", schema, dict, returns)
    assert signatures(ToolSet.of([made])) == (
        "book(flights: list[{date: str = ..., no: Any = ...}] = ..., limit: int | None = None) -> {id?: str}\n"
        "  Book.\n"
        "  flights: All of them.\n"
        "  flights[].date: as YYYY-MM-DD\n"
        "  limit: (>= 1)\n"
        "  returns.id: booking number"
    )
