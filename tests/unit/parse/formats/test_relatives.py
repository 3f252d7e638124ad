"""Near relatives of the formats, as models really write them: read, or refused clearly, and never lost."""

from __future__ import annotations

from typing import Any

import pytest

from toolplan import PlanRejected, Prose, Tool, ToolSet, parse
from toolplan.parse.formats import (
    BrokenCall,
    CallPart,
    CallScanner,
    Part,
    TextPart,
    read_calls,
    settled,
)
from toolplan.plan import Plan
from toolplan.show import to_json

STRING, INTEGER = {"type": "string"}, {"type": "integer"}


def tool_of(name: str, properties: dict[str, Any]) -> Tool:
    schema = {"type": "object", "properties": properties, "required": []}
    return Tool.from_schema(name, "", schema, lambda **_: None)


TOOLS = ToolSet(
    [
        tool_of("get_weather", {"city": STRING, "days": INTEGER}),
        tool_of("search", {"query": STRING}),
        tool_of("send_email", {"to": STRING, "subject": {}}),
        tool_of("ping", {}),
    ]
)
WEATHER: tuple[str, dict[str, Any]] = ("get_weather", {"city": "Oslo"})
SEARCH: tuple[str, dict[str, Any]] = ("search", {"query": "x"})
PING: tuple[str, dict[str, Any]] = ("ping", {})
Called = list[tuple[str, dict[str, Any]]]


def in_pieces(text: str, cuts: list[int], tools: ToolSet | None, reason: str | None) -> tuple[Part, ...]:
    scanner = CallScanner("auto", tools)
    parts: list[Part] = []
    for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        parts += scanner.feed(text[start:end])
    return settled([*parts, *scanner.close(reason)])


def read(text: str, tools: ToolSet | None = TOOLS, reason: str | None = None) -> tuple[Part, ...]:
    """Return the parts, having read the text cut at every place too."""
    whole = read_calls(text, "auto", tools, reason)
    for cut in range(1, len(text)):
        assert in_pieces(text, [cut], tools, reason) == whole
    assert in_pieces(text, list(range(1, len(text))), tools, reason) == whole
    return whole


def calls_of(parts: tuple[Part, ...]) -> Called:
    return [(part.name, part.arguments) for part in parts if isinstance(part, CallPart)]


def text_of(parts: tuple[Part, ...]) -> str:
    return "".join(part.text for part in parts if isinstance(part, TextPart))


def planned(text: str) -> Called:
    plan = parse(text, tools=TOOLS)
    assert isinstance(plan, Plan), plan
    written: Any = to_json(plan)
    return [(step["tool_name"], step["arguments"]) for step in written["steps"]]


PAPER = "Thought 1: I look.\nAction 1: search[x]"
JSON = '{"name": "get_weather", "arguments": {"city": "Oslo"}}'


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        # ReAct as in the paper: numbered lines
        (PAPER, [SEARCH]),
        (f"{PAPER}\nObservation 1: y\nThought 2: so\nAction 2: Finish[yes]", [SEARCH]),
        ("Action 3: search[x]\nObservation 3:", [SEARCH]),
        ('**Thought 1:** so\n**Action 1:** search\n**Action Input 1:** {"query": "x"}', [SEARCH]),
        ("思考1：查\n行动1：search[x]", [SEARCH]),
        ("Thought: so\nAction: search\nInput: x", [SEARCH]),
        ("Action: search: x", [SEARCH]),
        # LLMCompiler behind thoughts; ReWOO in one line
        ('Thought: I need two.\n1. search("x")\n2. join()', [SEARCH]),
        ('Thought: two of them,\none by one\n\n1. search("x")\n2. get_weather("Oslo")\n', [SEARCH, WEATHER]),
        ('Plan:\n1. search("x")\n2. join()<END_OF_PLAN>', [SEARCH]),
        ('Thought: so\n1. search("x")\nThought: then\n2. ping()\n3. join()', [SEARCH, PING]),
        ("Plan: find it. #E1 = search[x]\nPlan: then. #E2 = ping[]", [SEARCH, PING]),
        # Python in a fence
        ('```python\n[get_weather(city="Oslo"), ping()]\n```', [WEATHER, PING]),
        ("```py\n[ping()]\n```", [PING]),
        ('```tool_code\n[get_weather(city="Oslo"), ping()]\n```', [WEATHER, PING]),
        ('```\n[get_weather(city="Oslo"), ping()]\n```', [WEATHER, PING]),
        ('Let me look.\n```python\n[get_weather(city="Oslo")]\n```\n', [WEATHER]),
        # between tags: a fence, Python, a name in the tag
        (f"<tool_call>\n```json\n{JSON}\n```\n</tool_call>", [WEATHER]),
        (f"<tool_call>\n```\n{JSON}\n```\n</tool_call>", [WEATHER]),
        (f"<tool_call>```{JSON}```</tool_call>\n<tool_call>\n{JSON}\n</tool_call>", [WEATHER, WEATHER]),
        ('<tool_call name="get_weather">{"city": "Oslo"}</tool_call>', [WEATHER]),
        ('<tool_call name="get_weather">\n{"city": "Oslo"}\n</tool_call>\nand so', [WEATHER]),
        ("<tool_call name='ping'></tool_call>", [PING]),
        (f'<tool_call name="get_weather">{JSON}</tool_call>', [WEATHER]),
        ('<tool_call name="get_weather">\n```json\n{"city": "Oslo"}\n```\n</tool_call>', [WEATHER]),
        ('<tool_call>get_weather(city="Oslo")</tool_call>', [WEATHER]),
        ('<tool_call>\nget_weather({"city": "Oslo"})\n</tool_call>', [WEATHER]),
        ('<tool_call>\n[get_weather(city="Oslo"), ping()]\n</tool_call>', [WEATHER, PING]),
        ('<tool_call>get_weather\n{"city": "Oslo"}</tool_call>', [WEATHER]),
        ('<tool_call>get_weather {"city": "Oslo"}\n</tool_call>', [WEATHER]),
        # other tags around JSON
        (f"<function_call>{JSON}</function_call>", [WEATHER]),
        (f"<functioncall> {JSON} </functioncall>", [WEATHER]),
        (f"I look.\n<tools>\n{JSON}\n</tools>", [WEATHER]),
        (f"<tool_use>\n{JSON}\n</tool_use>", [WEATHER]),
    ],
)
def test_it_is_read(text: str, calls: Called) -> None:
    parts = read(text)
    assert calls_of(parts) == calls, parts
    assert not [part for part in parts if isinstance(part, BrokenCall)]
    assert planned(text) == calls


def test_a_named_format_has_the_name_in_its_tag_too() -> None:
    parts = read_calls('<tool_call name="get_weather">\n{"city": "Oslo"}\n</tool_call>', "hermes", TOOLS)
    assert calls_of(parts) == [WEATHER]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Thought 2: so\nAction 2: Finish[yes]", "yes"),
        ("Action: Finish[yes]", "yes"),
        ("Thought: so\nAction: finish\nAction Input: yes", "yes"),
        ("Action: finish\nAction Input: yes", "yes"),
        ("Thought: so\nAction: Final Answer\nAction Input: yes", "yes"),
        ("Thought: so\nAnswer: yes", "yes"),
        ("思考：好\n回答：是", "是"),
    ],
)
def test_an_answer_is_an_answer(text: str, answer: str) -> None:
    parts = read(text)
    assert not calls_of(parts)
    assert text_of(parts) == answer
    found = parse(text, tools=TOOLS)
    assert isinstance(found, Prose)
    assert found.text == answer or "\nAnswer:" in text or "\n回答：" in text


@pytest.mark.parametrize(
    "text",
    [
        '[send_email(to="a", subject=search(query="x"))]',
        '```python\n[send_email(to="a", subject=search(query="x"))]\n```',
        "[get_weather(city=oslo)]",
        '<tool_call>[send_email(to="a", subject=search(query="x"))]</tool_call>',
        "<tool_call>get_weather(city=oslo, dates=1)</tool_call>",
        '<tool_call name="get_weather" arguments=\'{"city": "Oslo"}\' />',
        '<tool_call name="get_weather">city: Oslo</tool_call>',
        "<tool_call>get_weather\n{city}</tool_call>",
        'Plan: look up "x". #E1 = search[x]',
        '#E1 = search[{\\"query\\": \\"x\\"}ping[{"a": 1}]]',
        f"<tool_call>{JSON})</tool_call>",
    ],
)
def test_it_is_refused_clearly(text: str) -> None:
    parts = read(text)
    assert not calls_of(parts)
    assert [part.diagnostic.code for part in parts if isinstance(part, BrokenCall)] == ["TP131"], parts
    with pytest.raises(PlanRejected):
        parse(text, tools=TOOLS)


@pytest.mark.parametrize(
    "text",
    [
        "Action 1 is to rest.",
        "Thought 1: rest.",
        "Thought: a list\n1. search (later)\n2. rest",
        "Thought: a list\n1. search(x) is a call\n2. rest",
        "Plan:\n1. find(x)\n2. rest(y)\n",
        'Use <tool_call name="x"> for calls.',
        "`<tools>` is a tag.",
        '<tools>\n{"type": "function", "function": {"name": "get_weather", "parameters": {}}}\n</tools> are the tools',
        "Answer: 42",
        '```python\nx = [search(query="x")]\n```',
        '```python\n[search(query="x")]\n```\nShall I?',
        'The code is\n```python\n[unknown(query="x")]\n```\n',
    ],
)
def test_what_is_no_call(text: str) -> None:
    parts = read(text)
    assert parts == (TextPart(text),)


@pytest.mark.parametrize(
    "text",
    [
        f"<think>\n{PAPER}\n</think>\nNo.",
        '<think>\n<tool_call name="ping"></tool_call>\n</think>\nNo.',
        f"{PAPER}\n</think>\nNo.",
        f"<tools>{JSON}</tools>\n</think>\nNo.",
    ],
)
def test_rehearsed_ones_do_not_count(text: str) -> None:
    parts = read(text)
    assert not calls_of(parts)
    assert text_of(parts).strip() == "No."


@pytest.mark.parametrize(
    "text",
    [
        "Thought 1: so\nAction 1: search[x",
        "Action 1: search",
        'Thought: so\n1. search("x',
        '```python\n[get_weather(city="Oslo"',
        '```python\n[get_weather(city="Oslo")',
        f"<tool_call>\n```json\n{JSON[:-1]}",
        '<tool_call name="get_weather">{"city": "Oslo"',
        '<tool_call name="get_weather',
        '<tool_call>get_weather(city="Oslo"',
        '<tool_call>get_weather\n{"city": "Oslo"',
        f"<function_call>{JSON[:-1]}",
        "Plan: find. #E1 = search[x",
    ],
)
def test_text_that_was_cut_off_is_none(text: str) -> None:
    assert not calls_of(read(text, TOOLS, "length"))
    assert not calls_of(read(text, None, "length"))


@pytest.mark.parametrize(
    "text",
    [
        "</think>>\nAction: search\nAction Input: x",
        "> quoted\n\nAction: search\nAction Input: x",
        "so >\n\n1. search('x')\n2. join()",
        f"{'a b ' * 45}\n{JSON}",
        f"{'a b ' * 55}\n{JSON}",
        f"{' ' * 300}so\n{JSON}",
    ],
)
def test_white_space_counts_the_same_in_pieces(text: str) -> None:
    assert read(text) == read(text, TOOLS, "stop")
