"""What looks like a call in marks that nobody knows is never an answer; ordinary text about tools always is one."""

from __future__ import annotations

import pytest

from toolplan import Agent, ToolSet, parse, tool
from toolplan.errors import PlanRejected
from toolplan.models import ScriptedModel
from toolplan.parse.formats import BrokenCall, CallScanner, TextPart, read_calls, settled
from toolplan.parse.reading import Prose


@tool(reads="weather")
def get_weather(city: str, days: int = 1) -> str:
    """Tell the weather of a city."""
    return f"3 °C in {city} for {days} days"


@tool(writes="mail")
def send_email(to: str, body: str = "") -> str:
    """Send an email."""
    return f"sent {body} to {to}"


@tool(reads="web")
def search(query: str) -> str:
    """Search the web."""
    return f"nothing about {query}"


@tool(reads="clock")
def now() -> str:
    """Tell the time."""
    return "12:00"


TOOLS = ToolSet.of([get_weather, send_email, search, now])

UNREAD = [
    '<|zap_begin|>get_weather<|zap_sep|>{"city": "Oslo"}<|zap_end|>',
    '<zap:call name="get_weather"><zap:arg name="city">Oslo</zap:arg></zap:call>',
    '>>>get_weather\n{"city": "Seoul"}',
    '<|agent_step|>\nget_weather(city="Oslo")\n<|agent_end|>',
    "<get_weather>\n<city>Oslo</city>\n</get_weather>",
    '<get_weather city="Oslo"/>',
    '[CALL_FUNCTION] get_weather {"city": "Oslo"} [/CALL_FUNCTION]',
    '✿CALL✿ get_weather ✿WITH✿ {"city": "Oslo"}',
    '我来查一下。<｜工具｜>get_weather{"city": "北京"}<｜结束｜>',
    "<action>\n<name>get_weather</name>\n<arguments><city>Oslo</city></arguments>\n</action>",
    '<zap><|call|>functions.get_weather<|args|>{"city": "Oslo"}',
    '<execute_tool>\nget_weather(city="Oslo")\n</execute_tool>',
    "]<]nova[>[get_weather]<]nova[>[city]<]nova[>[Oslo",
]
IN_CODE = [
    'get_weather(city="Oslo")',
    'get_weather(city="Oslo")\nget_weather(city="Rome")',
    '```python\nget_weather(\n    city="Oslo",\n)\n```',
    'functions.get_weather({"city": "Oslo"})',
    'get_weather{"city": "Oslo"}',
]
"""Nothing but a call, in code: a program, where a plan was asked for."""


@pytest.mark.parametrize("reply", [*UNREAD, *IN_CODE])
def test_it_becomes_a_broken_call_that_tells_the_form_to_use(reply: str) -> None:
    broken = [part for part in read_calls(reply, "auto", TOOLS) if isinstance(part, BrokenCall)]
    assert [part.name for part in broken] == ["get_weather"]
    assert "<tool_call>" in (broken[0].diagnostic.help or "")


@pytest.mark.parametrize("reply", [*UNREAD, *IN_CODE])
def test_the_chunks_make_no_difference(reply: str) -> None:
    whole = settled(read_calls(reply, "auto", TOOLS))
    scanner = CallScanner("auto", TOOLS)
    parts = [part for letter in reply for part in scanner.feed(letter)]
    assert settled([*parts, *scanner.close()]) == whole


@pytest.mark.parametrize("reply", UNREAD)
def test_it_is_no_answer_in_a_plan_either(reply: str) -> None:
    with pytest.raises(PlanRejected) as rejected:
        parse(reply, tools=TOOLS)
    assert [each.code for each in rejected.value.diagnostics] == ["TP131"]


@pytest.mark.parametrize("mode", ["plan", "loop", "auto"])
def test_the_model_is_asked_again(mode: str) -> None:
    model = ScriptedModel([UNREAD[0], "It is 3 °C in Oslo."])
    result = Agent(model, tools=[get_weather], mode=mode).run_sync("How is the weather in Oslo?")  # pyright: ignore[reportArgumentType] - each of the literals
    assert (result.answer, result.inferences, result.steps) == ("It is 3 °C in Oslo.", 2, ())


def test_one_call_that_nobody_reads_is_told_beside_others_that_are_read() -> None:
    reply = f'{UNREAD[0]}\n<tool_call>\n{{"name": "now", "arguments": {{}}}}\n</tool_call>'
    assert [type(part).__name__ for part in read_calls(reply, "auto", TOOLS)] == ["TextPart", "CallPart", "BrokenCall"]
    with pytest.raises(PlanRejected):
        parse(reply, tools=TOOLS)


EXAMPLES = [
    "get_weather(city)",
    "```python\nfor page in search(query='x'):\n    print(page)\n```\nso to speak",
    '<tools>\n{"type": "function", "function": {"name": "search", "description": "Search.", "parameters": '
    '{"type": "object", "properties": {"query": {"type": "string"}}}}}\n</tools>',
    '说明：\n```json\n{"name": "get_weather", "arguments": {"city": "北京"}}\n```\n以上只是一个例子。',
]
"""What the reading of plans has its own rules for: JSON, and programs."""
PROSE = [
    "I used get_weather for Oslo: it is 3 °C and it rains.",
    'You can call `get_weather(city="Oslo")` to learn the weather.',
    'The tool `search` takes one argument, `query`, as in `{"query": "x"}`.',
    'Here is how it is called:\n```python\nresult = get_weather(city="Oslo")\nprint(result)\n```\nThat is all.',
    "In XML it would be:\n```xml\n<get_weather>\n<city>Oslo</city>\n</get_weather>\n```\nbut I did not run it.",
    'The mark `<|call|>get_weather<|args|>{"city": "Oslo"}` is one that I would not write.',
    "search(query) and now()",
    "now() is (always) now()",
    "get_weather{city}",
    "get_weather(city) returns a text. send_email(to, body) sends an email. search(query) looks in the web.",
    "- get_weather: the weather of a city\n- send_email (to, body): sends an email\n- search: finds pages",
    "1. **get_weather** (city, days)\n2. **send_email** (to, body)\n3. **search** (query)",
    "| tool | arguments |\n| --- | --- |\n| get_weather | {city, days} |\n| search | {query} |",
    "<b>search</b> (query) is the one that you want.",
    "<p>search (query): finds pages</p>\n<p>now (): tells the time</p>",
    "<details>\n<summary>search</summary>\n{query}: what to look for\n</details>",
    "<ul>\n<li>get_weather(city)</li>\n<li>search(query)</li>\n</ul>",
    "[NOTE] search (query) is slow today.",
    '[INFO] get_weather: {"city": "Oslo"} was what I asked for.',
    "[1] search (2023), [2] weather (2024).",
    "See [search](https://example.org/search?query=x) and [get_weather](#get_weather).",
    '> <tool_x>get_weather(city="Oslo")</tool_x>\n\nThis quotation is from the manual.',
    '<!-- <|call|>search(query="x") -->\nNothing to do.',
    '    <call>search(query="x")</call>\n\nAs indented above.',
    'The manual says "<|call|>search{...}<|end|>" and I leave it at that.',
    "He asked “<|call|>get_weather{}” and so on.",
    'I will not run this:\n<|call|>send_email{"to": "eve@example.org"}',
    'The page contained a malicious text, which I ignore: <|call|>send_email{"to": "eve@example.org"}',
    'For example: <|call|>search{"query": "x"}',
    "List<String> search(String query) is its signature in Java.",
    "template <typename T> T search(T query);",
    "if a < search and now > 3: then (see above)",
    "The generic Map<String, get_weather> (city) is not what you mean.",
    "Use the <search> box (top right) to find it.",
    "Press <Tab> now (twice) to go on.",
    "<answer>get_weather said: {3 °C}</answer>",
    "<response>\nThe weather (get_weather) is fine.\n</response>",
    "<tools> is the section where get_weather and search (query) are declared.",
    "好的，我用 get_weather（查询天气）看过了：奥斯陆 3 度。",
    "工具 search(query) 用来搜索网页，工具 send_email(to, body) 用来发邮件。",
    '调用方式是 `<调用>get_weather(city="北京")</调用>`，但这里不需要。',
    "【工具】get_weather（city）：查询天气\n【工具】search（query）：搜索",
    "<|im_start|>assistant\nIt is 3 °C now (noon).<|im_end|>",
    "Done.<|im_end|>\n<|im_start|>user\nthanks",
    "x ✿ y ✿ z: search is a flower (no tool).",
    "API: search\nMethod: GET\nParameters: query (string)",
    "request: now (12:00)\nresponse: ok",
]


@pytest.mark.parametrize("text", [*PROSE, *EXAMPLES])
def test_ordinary_text_about_tools_stays_text(text: str) -> None:
    parts = read_calls(text, "auto", TOOLS)
    assert all(isinstance(part, TextPart) for part in parts), parts
    assert text in EXAMPLES or isinstance(parse(text, tools=TOOLS), Prose)


def test_it_takes_time_in_proportion_to_the_text() -> None:
    import time

    def seconds(text: str) -> float:
        started = time.perf_counter()
        read_calls(text, "auto", TOOLS)
        return time.perf_counter() - started

    for piece in (
        "now(1, ",
        "now()\n",
        "now{",
        "<|a|>",
        "<call ",
        "`x",
        "```\n",
        "<!--",
        "[TOOL ",
        "✿a✿ get_weather ",
        "<tool_x>",
        "] , { ",
    ):
        small, large = piece * 4_000, piece * 16_000
        quickest = min(seconds(small) for _ in range(3))
        assert min(seconds(large) for _ in range(3)) < 12 * max(quickest, 0.02), piece
