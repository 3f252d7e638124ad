"""The scanner: when text comes out, what is thinking, what is an example, what ends a reply."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolplan import UsageError
from toolplan.parse.formats import (
    FORMATS,
    BrokenCall,
    CallPart,
    CallScanner,
    Part,
    TextPart,
    ThinkingPart,
    read_calls,
    settled,
)
from toolplan.parse.formats.cursor import Cursor
from toolplan.tools import Tool, ToolSet

CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'


def text_of(parts: Any) -> str:
    return "".join(part.text for part in parts if isinstance(part, TextPart))


def calls_of(parts: Any) -> list[tuple[str, dict[str, Any]]]:
    return [(part.name, part.arguments) for part in parts if isinstance(part, CallPart)]


# --- delay ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["auto", "hermes", "qwen_xml"])
def test_text_comes_out_at_once_and_only_a_possible_mark_is_held_back(format: str) -> None:
    scanner = CallScanner(format)
    assert scanner.feed("Hello <") == [TextPart("Hello ")]
    assert text_of(scanner.feed("b>")) == "<b>"
    assert scanner.feed("and <tool_") == [TextPart("and ")]
    assert text_of(scanner.feed("box>")) == "<tool_box>"


def test_every_character_of_plain_prose_comes_out_as_it_comes_in() -> None:
    scanner = CallScanner()
    said = ""
    prose = "So it is: 3 < 5, a & b, (c). Well.\nNext line, with 1 number.\n"
    for index, ch in enumerate(prose):
        said += text_of(scanner.feed(ch))
        assert len(prose[: index + 1]) - len(said) <= 2
    assert text_of(settled([TextPart(said), *scanner.close()])) == prose


def test_a_call_comes_out_before_the_reply_ends() -> None:
    scanner = CallScanner("hermes")
    assert scanner.feed(CALL[:-1]) == []
    assert scanner.feed(">") == []
    assert calls_of(scanner.feed("\nNow")) == [("get_weather", {"city": "Oslo"})]
    scanner = CallScanner("hermes")
    assert calls_of(scanner.feed(f"{CALL}\n{CALL[:20]}")) == []
    assert len(calls_of(scanner.feed(CALL[20:]))) == 1
    assert len(calls_of(scanner.close())) == 1


def test_json_that_is_no_call_is_passed_on_while_it_arrives() -> None:
    scanner = CallScanner()
    assert text_of(scanner.feed('{"city": "Os')) == '{"city": "Os'
    assert text_of(scanner.feed('lo <tool_call>{}", ')) == 'lo <tool_call>{}", '
    assert text_of([*scanner.feed('"x": 1} and'), *scanner.close()]) == '"x": 1} and'


# --- linear time ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reply",
    [
        CALL.replace("Oslo", "x" * 20_000),
        "<tool_call>\n<function=f>\n<parameter=a>\n" + "x < y\n" * 4_000 + "</parameter>\n</function>\n</tool_call>",
        "prose with 1 < 2 and [brackets] {and} 'quotes'. " * 500,
        "<tool_call>" * 2_000,
        '<tool_call>{"a' * 1_500,
        '{"name": "f", "arguments": {}};\n' * 700 + "so",
        "```json\n" + '{"name": ' * 2_000,
        "Action: x\nAction: " * 1_000,
        "<think>" + "a < b </thin " * 1_500,
        "[f(x=[" * 3_000,
        "1. f(x)\n" * 2_000 + "so it is",
        "<escape>" * 2_000,
    ],
    ids=range(12),
)
@pytest.mark.parametrize("format", ["auto", "hermes", "react", "json"])
def test_no_text_is_looked_at_again_and_again(reply: str, format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, again = work_on(reply, format, None, 4, monkeypatch)
    assert seen < 16 * len(reply)
    assert again < 40 * len(reply)


def work_on(
    reply: str, format: str, tools: ToolSet | None, size: int, monkeypatch: pytest.MonkeyPatch
) -> tuple[int, int]:
    """Return how many characters wait before the cursor when text comes, and how many are put back; times are noise."""
    seen = again = 0
    push, put_back = Cursor.push, Cursor.put_back

    def counting(self: Cursor, chunk: str) -> None:
        nonlocal seen
        push(self, chunk)
        seen += len(self.text) - self.at

    def counting_back(self: Cursor, text: str) -> None:
        nonlocal again
        before = self.text
        put_back(self, text)
        again += len(text) if self.text is before else len(self.text)

    with monkeypatch.context() as patched:
        patched.setattr(Cursor, "push", counting)
        patched.setattr(Cursor, "put_back", counting_back)
        scanner = CallScanner(format, tools)
        for at in range(0, len(reply), size):
            scanner.feed(reply[at : at + size])
        scanner.close()
    return seen, again


BEFORE = ["", "<tool_call>", "Action: f\nAction Input: ", "#E1 = f[", "```\n"]
WORDS = [
    "f(",
    "f(x=",
    "city=[, ",
    '{"name": ',
    "{'a': 1}",
    "#E1 = ",
    "1. f(x)",
    "Action 1: f[x]",
    "\\",
    '"',
    "${",
    "{{",
]


@pytest.mark.parametrize("before", BEFORE, ids=range(len(BEFORE)))
def test_no_mark_is_looked_at_again_and_again(before: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any mark, again and again: what is put back is bounded, by the damaged calls that are looked into (32)."""
    tools = ToolSet([Tool.from_schema("f", "", {"type": "object", "properties": {"city": {}, "x": {}}}, dict)])
    marks = {mark for format in FORMATS.values() for opener in format.openers for mark in opener.marks}
    marks = {mark for mark in marks if not any(ch.isdigit() for ch in mark)}
    for mark in (*sorted(marks), "<tool_call name=", "<tools>", *WORDS):
        for unit in (mark, f"{mark}\n"):
            reply = before + unit * (3000 // len(unit))
            for size in (100, len(reply)):
                seen, again = work_on(reply, "auto", tools, size, monkeypatch)
                assert seen < 4 * len(reply), unit
                assert again < 40 * len(reply), unit


# --- thinking ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("begin", "end"), [("<think>", "</think>"), ("[THINK]", "[/THINK]"), ("<Thought>", "</Thought>")]
)
def test_calls_in_closed_thinking_do_not_count(begin: str, end: str) -> None:
    parts = read_calls(f"{begin}\nPerhaps {CALL}?\n{end}\nNo need.")
    assert parts == (ThinkingPart(f"\nPerhaps {CALL}?\n"), TextPart("No need."))


def test_thinking_without_an_end_is_thinking() -> None:
    assert calls_of(read_calls(f"<think>well {CALL}")) == []


def test_a_late_end_of_thinking_takes_back_what_was_before_it() -> None:
    reply = f"I could\n{CALL}\nbut no.\n</think>\n\nHello.{CALL}"
    parts = read_calls(reply)
    assert [type(part) for part in parts] == [ThinkingPart, TextPart, CallPart]
    assert text_of(parts) == "Hello."
    (call,) = [part for part in parts if isinstance(part, CallPart)]
    assert (call.position, call.id) == (0, "call_0")
    scanner = CallScanner()
    live: list[Part] = []
    for ch in reply:
        live += scanner.feed(ch)
    live += scanner.close()
    assert len(calls_of(live)) == 2
    assert settled(live) == parts


def test_a_tag_that_is_spoken_of_ends_nothing() -> None:
    assert text_of(read_calls("It ends with `</think>` then.")) == "It ends with `</think>` then."


# --- examples and unmarked calls --------------------------------------------------------------------------------------

JSON = '{"name": "get_weather", "arguments": {"city": "Oslo"}}'
WEATHER = ("get_weather", {"city": "Oslo"})


@pytest.mark.parametrize(
    "reply",
    [
        JSON,
        f"[{JSON}]",
        f"```json\n{JSON}\n```",
        f"```\n{CALL}\n```",
        f"Let me look.\n```json\n{JSON}\n```\n",
        f"Let me look.\n{JSON}<|im_end|>",
        f'{{"tool_calls": [{{"id": "a", "type": "function", "function": {JSON}}}]}}',
        '{"name": "get_weather", "parameters": {"city": "Oslo"}}',
        '{"tool": "get_weather", "args": {"city": "Oslo"}}',
        '{"action": "get_weather", "action_input": {"city": "Oslo"}}',
        "[get_weather(city='Oslo')]",
        "```tool_code\nprint(get_weather(city='Oslo'))\n```",
        "{'name': 'get_weather', 'arguments': {'city': 'Oslo'}}",
        f"<think>x</think>\n{JSON}",
    ],
)
def test_a_call_without_marks(reply: str) -> None:
    assert calls_of(read_calls(reply)) == [WEATHER]


@pytest.mark.parametrize(
    "reply",
    [
        f"It would be:\n```json\n{JSON}\n```\nShall I run it?",
        f"Shall I run this?\n{JSON}",
        f"It would be:\n```\n{CALL}\n```\nand so on",
        f"It is {JSON}, inline",
        '{"name": "Oslo", "population": 700000}',
        '{"name": "Oslo"}',
        '[{"name": "Oslo"}, {"name": "Bergen"}]',
        "x" * 250 + f"\n{JSON}",
        "[get_weather](https://example.org)",
        "- [ ] one\n- [x] two",
        "Use `<tool_call>` for calls.",
        "The tag <tool_call> begins a call.",
        "See functools[cache] and functools.",
        "Thought: is it? Yes.",
        "Plan: rest.",
        "1. First get_weather\n2. then rest",
        "Action: rest",
        "Final Answer: 42",
    ],
)
def test_what_is_no_call(reply: str) -> None:
    assert read_calls(reply) == (TextPart(reply),)


def test_a_named_format_is_strict() -> None:
    qwen = "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>"
    assert calls_of(read_calls(qwen, "qwen_xml")) == [("f", {"a": 1})]
    (broken,) = read_calls(qwen, "hermes")
    assert isinstance(broken, BrokenCall)
    assert read_calls(JSON, "hermes") == (TextPart(JSON),)
    assert read_calls("[TOOL_CALLS]f{}", "hermes") == (TextPart("[TOOL_CALLS]f{}"),)


def test_every_format_is_known_by_its_other_names() -> None:
    for format in FORMATS.values():
        for name in format.also:
            CallScanner(name)


# --- the end ----------------------------------------------------------------------------------------------------------


def test_tokens_that_end_a_reply_are_no_text() -> None:
    assert read_calls("Hello.<|im_end|>\n</s>") == (TextPart("Hello."),)
    assert read_calls("The token <|im_end|> ends it.") == (TextPart("The token <|im_end|> ends it."),)


def test_a_whole_call_in_a_reply_that_was_cut_off_is_a_call() -> None:
    assert calls_of(read_calls(CALL, "auto", None, "length")) == [WEATHER]


@pytest.mark.parametrize("reason", ["length", "max_tokens", "MAX_TOKENS", "content_filter"])
def test_nothing_at_the_end_of_a_reply_that_was_cut_off_is_mended(reason: str) -> None:
    mended = "<tool_call>{'name': 'f', 'arguments': {'a': 1}}"
    assert calls_of(read_calls(mended)) == [("f", {"a": 1})]
    (broken,) = read_calls(mended, "auto", None, reason)
    assert isinstance(broken, BrokenCall)
    assert broken.diagnostic.code == "TP132"


def test_bytes_may_be_cut_inside_a_character() -> None:
    reply = '<tool_call>{"name": "查天气", "arguments": {"城市": "北京 😀"}}</tool_call>'.encode()
    scanner = CallScanner("hermes")
    parts = [part for at in range(len(reply)) for part in scanner.feed(reply[at : at + 1])]
    assert calls_of([*parts, *scanner.close()]) == [("查天气", {"城市": "北京 😀"})]
    assert text_of(read_calls(b"caf\xc3")) == "caf\ufffd"


def test_wrong_use() -> None:
    with pytest.raises(UsageError, match="no format is named 'xml'"):
        CallScanner("xml")
    scanner = CallScanner()
    scanner.close()
    with pytest.raises(UsageError, match="closed"):
        scanner.feed("x")
    with pytest.raises(UsageError, match="closed"):
        scanner.close()


def test_ids_are_labels_and_positions_count() -> None:
    calls = '[TOOL_CALLS][{"name": "f", "arguments": {}, "id": "call_1"}, {"name": "g", "arguments": {}}, {"a": 1}]'
    parts = read_calls(calls, "mistral")
    assert [(part.position, part.id) for part in parts if isinstance(part, CallPart | BrokenCall)] == [
        (0, "call_1"),
        (1, "call_1_1"),
        (2, "call_2"),
    ]


def test_white_space_around_calls_is_no_text() -> None:
    assert read_calls(f"\n{CALL}\n\n{CALL}\n")[0] == TextPart("\n")
    assert text_of(read_calls(f"A\n{CALL}\n\n{CALL}\nB")) == "A\n\nB"
    assert json.dumps(calls_of(read_calls(f"{CALL}\n"))) == json.dumps([WEATHER])
