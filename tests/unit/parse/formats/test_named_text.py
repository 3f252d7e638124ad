"""Arguments given by name in plain text: `city=Oslo, days=2` behind an action, between brackets, in parentheses."""

from __future__ import annotations

from typing import Any

import pytest

from toolplan import PlanRejected, Tool, ToolSet, parse
from toolplan.parse.formats import BrokenCall, CallPart, CallScanner, Part, read_calls, settled
from toolplan.parse.formats.arguments import Refused
from toolplan.parse.formats.named_text import named_in_text
from toolplan.plan import Plan
from toolplan.show import to_json

STRING, INTEGER = {"type": "string"}, {"type": "integer"}
LIST = {"type": "array", "items": STRING}


def tool_of(name: str, properties: dict[str, Any], required: tuple[str, ...] = ()) -> Tool:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return Tool.from_schema(name, "", schema, lambda **_: None)


WEATHER = tool_of("get_weather", {"city": STRING, "days": INTEGER})
SEARCH = tool_of("search", {"query": STRING})
MAIL = tool_of("mail", {"to": LIST, "subject": STRING, "body": STRING}, ("subject",))
LOOKUP = tool_of("查天气", {"城市": STRING, "天数": INTEGER})
TOOLS = ToolSet([WEATHER, SEARCH, MAIL, LOOKUP])


def pieces(text: str, cuts: list[int], format: str, tools: ToolSet | None, reason: str | None) -> tuple[Part, ...]:
    scanner = CallScanner(format, tools)
    parts: list[Part] = []
    for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        parts += scanner.feed(text[start:end])
    return settled([*parts, *scanner.close(reason)])


def read(text: str, format: str = "auto", reason: str | None = None) -> list[CallPart | BrokenCall]:
    """Return the calls, having read the text cut at every place too."""
    whole = read_calls(text, format, TOOLS, reason)
    for cut in range(1, len(text)):
        assert pieces(text, [cut], format, TOOLS, reason) == whole
    assert pieces(text, list(range(1, len(text))), format, TOOLS, reason) == whole
    return [part for part in whole if isinstance(part, CallPart | BrokenCall)]


@pytest.mark.parametrize(
    ("tool", "text", "arguments"),
    [
        (WEATHER, "city=Oslo, days=2", {"city": "Oslo", "days": 2}),
        (WEATHER, 'city="Oslo", days=2', {"city": "Oslo", "days": 2}),
        (WEATHER, "city='Oslo',days = 2", {"city": "Oslo", "days": 2}),
        (WEATHER, "city: Oslo, days: 2", {"city": "Oslo", "days": 2}),
        (WEATHER, "city: Oslo\ndays: 2\n", {"city": "Oslo", "days": 2}),
        (WEATHER, '- city: Oslo\n- days: "2"', {"city": "Oslo", "days": "2"}),
        (WEATHER, '"city": "Oslo", "days": 2', {"city": "Oslo", "days": 2}),
        (WEATHER, "city：奥斯陆，days：2", {"city": "奥斯陆", "days": 2}),
        (WEATHER, "city＝奥斯陆； days＝2", {"city": "奥斯陆", "days": 2}),
        (WEATHER, "city=“奥斯陆”，days=2", {"city": "奥斯陆", "days": 2}),
        (LOOKUP, "城市: 北京, 天数: 3", {"城市": "北京", "天数": 3}),
        (WEATHER, "city=New York, NY, days=2", {"city": "New York, NY", "days": 2}),
        (WEATHER, "city=Oslo", {"city": "Oslo"}),
        (WEATHER, "city=a=b&c=d", {"city": "a=b&c=d"}),
        (WEATHER, 'city="a, days=3"', {"city": "a, days=3"}),
        (WEATHER, 'city="a\\"b, days=3", days=1', {"city": 'a"b, days=3', "days": 1}),
        (WEATHER, "city=#1 \"best\" town, days=2", {"city": '#1 "best" town', "days": 2}),
        (MAIL, 'to=["a", "b"], subject=Hi, body={x}', {"to": ["a", "b"], "subject": "Hi", "body": "{x}"}),
        (MAIL, "subject: at 10:30\nbody: see http://x.org/?a=1", {"subject": "at 10:30", "body": "see http://x.org/?a=1"}),
        (SEARCH, "query=cats", {"query": "cats"}),
        (SEARCH, "query: a, b: c", {"query": "a, b: c"}),
        (SEARCH, "query=a=b, c=d", {"query": "a=b, c=d"}),
        (SEARCH, 'query="a, b"', {"query": "a, b"}),
    ],
)  # fmt: skip
def test_every_key_is_an_argument_of_the_tool(tool: Tool, text: str, arguments: dict[str, Any]) -> None:
    assert named_in_text(tool, text) == arguments


@pytest.mark.parametrize(
    ("tool", "text"),
    [
        (WEATHER, "Oslo"),
        (WEATHER, "Oslo, 2"),
        (WEATHER, "the city: Oslo"),
        (WEATHER, "2 + 2 = 4"),
        (WEATHER, "x=1, y=2"),
        (WEATHER, "City=Oslo"),
        (SEARCH, "a=b, c=d"),
        (SEARCH, "a=1, query=2"),
        (SEARCH, "who said: query?"),
        (SEARCH, "query"),
        (SEARCH, "http://query"),
        (WEATHER, ""),
        (None, "city=Oslo, days=2"),
    ],
)
def test_what_stays_text(tool: Tool | None, text: str) -> None:
    assert named_in_text(tool, text) is None


@pytest.mark.parametrize(
    "text",
    [
        "city=Oslo, day=2",
        "town=Oslo, days=2",
        "city=Oslo, city=Rome",
        "city: Oslo\nunit: C",
        'city="Oslo" days=2',
    ],
)
def test_what_has_more_than_one_reading_is_refused(text: str) -> None:
    with pytest.raises(Refused) as refused:
        named_in_text(WEATHER, text)
    assert refused.value.kind == "broken"


def test_a_number_of_entries_takes_linear_time() -> None:
    big = tool_of("big", {f"k{number}": {} for number in range(400)})
    text = ", ".join(f"k{number}=[{number}]" for number in range(400))
    assert named_in_text(big, text) == {f"k{number}": [number] for number in range(400)}
    with pytest.raises(Refused):
        named_in_text(WEATHER, "city=[, " * 50_000 + "city=1")


NAMED = ("get_weather", {"city": "Oslo", "days": 2})


@pytest.mark.parametrize(
    "text",
    [
        "Thought: x\nAction: get_weather\nAction Input: city=Oslo, days=2",
        'Action: get_weather\nAction Input: city="Oslo", days=2\n',
        "Action: get_weather\nAction Input: city: Oslo\ndays: 2\nObservation: 3",
        "行动：get_weather\n行动输入：city：Oslo，days：2",
        "Action: get_weather\nAction Input:\n```\ncity: Oslo\ndays: 2\n```",
        "Action: get_weather[city=Oslo, days=2]",
        'Action: get_weather({"city": "Oslo", "days": 2})',
        "Plan: look\n#E1 = get_weather[city=Oslo, days=2]",
        '#E1 = get_weather[city="Oslo", days=2]\n#E2 = search[x]',
        '#E1 = get_weather(city="Oslo", days=2)',
        '1. get_weather(city="Oslo", days=2)\n2. join()',
    ],
)
def test_in_every_notation(text: str) -> None:
    first = read(text)[0]
    assert isinstance(first, CallPart), first
    assert (first.name, first.arguments) == NAMED
    plan = parse(text, tools=TOOLS)
    assert isinstance(plan, Plan)
    steps: Any = to_json(plan)
    assert steps["steps"][0]["arguments"] == NAMED[1]


def test_it_is_told() -> None:
    (call,) = read("Action: get_weather\nAction Input: city=Oslo, days=2")
    assert isinstance(call, CallPart)
    assert call.repairs == ("read the text as the arguments `city`, `days`, because it names them",)


def test_results_are_referred_to_by_name() -> None:
    plan = parse("#E1 = search[x]\n#E2 = get_weather[city=#E1.city, days=2]", tools=TOOLS)
    assert isinstance(plan, Plan)
    steps: Any = to_json(plan)
    assert steps["steps"][1]["arguments"] == {"city": "{s1.city}", "days": 2}


@pytest.mark.parametrize(
    "text",
    [
        "Action: get_weather\nAction Input: city=Oslo, day=2\n",
        "Action: get_weather[city=Oslo, day=2]",
        "#E1 = get_weather[city=Oslo, day=2]",
        "Action: get_weather(Oslo is cold)",
        "Action: get_weather(city=oslo, days=2)",
        "1. get_weather(city=oslo, days=2)\n2. join()",
    ],
)
def test_it_is_never_half_of_them(text: str) -> None:
    (call,) = read(text)
    assert isinstance(call, BrokenCall)
    assert call.diagnostic.code == "TP131"
    with pytest.raises(PlanRejected):
        parse(text, tools=TOOLS)


@pytest.mark.parametrize(
    "text",
    [
        "Action: get_weather\nAction Input: city=Oslo, days=2",
        "#E1 = get_weather[city=Oslo, days=2",
        "Action: get_weather(city=Oslo, days=2",
        "1. get_weather(city=Oslo, days=2",
    ],
)
def test_text_that_was_cut_off_is_none(text: str) -> None:
    for format in ("react", "rewoo", "llm_compiler", "auto"):
        assert not [part for part in read(text, format, "length") if isinstance(part, CallPart)]
