"""Messages of the APIs, whole and as deltas."""

from __future__ import annotations

from typing import Any

import pytest

from toolplan.parse.formats import (
    BrokenCall,
    CallPart,
    DeltaScanner,
    Part,
    TextPart,
    ThinkingPart,
    read_message,
    settled,
    write_messages,
)

MARKED = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
CALL = CallPart(0, "c1", "f", {"a": 1})


def native(arguments: Any = '{"a": 1}', id: str = "c1", **more: Any) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": "f", "arguments": arguments}, **more}


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "content": None, "tool_calls": [native()]},
        {"role": "assistant", "content": "", "tool_calls": [native({"a": 1})]},
        {"choices": [{"message": {"content": None, "tool_calls": [native()]}, "finish_reason": "tool_calls"}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}}]},
        {"candidates": [{"content": {"parts": [{"functionCall": {"name": "f", "args": {"a": 1}, "id": "c1"}}]}}]},
        {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "f", "args": {"a": 1}}}]},
    ],
)
def test_a_call_in_every_api(message: dict[str, Any]) -> None:
    assert read_message(message) == (CALL,)


def test_text_and_thinking_beside_calls() -> None:
    openai = {"content": "Well.", "reasoning_content": "Hm.", "tool_calls": [native()]}
    anthropic = {
        "content": [
            {"type": "thinking", "thinking": "Hm."},
            {"type": "text", "text": "Well."},
            {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}},
        ]
    }
    gemini = {
        "parts": [
            {"text": "Hm.", "thought": True},
            {"text": "Well."},
            {"functionCall": {"name": "f", "args": {"a": 1}, "id": "c1"}},
        ]
    }
    for message in (openai, anthropic, gemini):
        assert read_message(message) == (ThinkingPart("Hm."), TextPart("Well."), CALL)


def test_the_old_function_call_and_a_message_without_any() -> None:
    (call,) = read_message({"content": None, "function_call": {"name": "f", "arguments": '{"a": 1}'}})
    assert isinstance(call, CallPart)
    assert (call.name, call.arguments) == ("f", {"a": 1})
    assert read_message({"role": "assistant", "content": "Hi."}) == (TextPart("Hi."),)
    assert read_message({"choices": []}) == ()


def test_what_the_server_left_in_the_text_is_read_and_said_to_be_a_repair() -> None:
    (call,) = read_message({"content": MARKED, "tool_calls": []})
    assert isinstance(call, CallPart)
    assert call.repairs
    assert read_message({"content": MARKED}, format="hermes") == (CallPart(0, "call_0", "f", {"a": 1}),)


def test_where_the_server_read_calls_the_text_is_text() -> None:
    parts = read_message({"content": f"so: {MARKED}", "tool_calls": [native()]})
    assert parts == (TextPart(f"so: {MARKED}"), CALL)


def test_reasoning_is_the_reply_only_where_nothing_else_is() -> None:
    message = {"content": None, "tool_calls": [], "reasoning_content": f"Let me see. {MARKED}"}
    assert [type(part) for part in read_message(message)] == [ThinkingPart, CallPart]
    assert [type(part) for part in read_message({**message, "content": "No."})] == [ThinkingPart, TextPart]
    assert read_message({**message, "reasoning_content": "Hm."}) == (ThinkingPart("Hm."),)


def test_in_a_reply_that_was_cut_off_only_the_last_call_is_doubted() -> None:
    message = {"tool_calls": [native("{'a': 1}"), native("{'a': 1}", "c2")]}
    first, second = read_message(message, finish_reason="length")
    assert isinstance(first, CallPart)
    assert isinstance(second, BrokenCall)
    assert second.diagnostic.code == "TP132"


# --- deltas -----------------------------------------------------------------------------------------------------------


def delta(finish: str | None = None, **given: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": given, "finish_reason": finish}]}


def piece(arguments: str, index: int | None = 0, id: str | None = None, name: str | None = None) -> dict[str, Any]:
    call: dict[str, Any] = {"function": {"arguments": arguments}}
    call |= {} if index is None else {"index": index}
    call |= {} if id is None else {"id": id}
    call["function"] |= {} if name is None else {"name": name}
    return delta(tool_calls=[call])


@pytest.mark.parametrize(
    "chunks",
    [
        [piece("", 0, "c1", "f"), piece('{"a"'), piece(": 1}"), piece("", 1, "c2", "g"), piece("{}", 1)],
        [piece('{"a": 1}', None, "c1", "f"), piece("{}", None, "c2", "g")],
        [piece('{"a"', None, "c1", "f"), piece(": 1}", None), piece("{}", None, "c2", "g")],
        [piece('{"a"', 0, "c1", "f"), piece(": 1}", 0, "c1", "f"), piece("{}", 1, "c2", "g")],
        [piece('{"a"', 0, "c1", "f"), piece("{", 1, "c2", "g"), piece(": 1}"), piece("}", 1)],
        [piece('{"a": 1}', 0, "c1", "f"), piece("", 0, "", ""), piece("{}", 1, "c2", "g"), {"choices": []}],
    ],
)
def test_calls_that_arrive_in_pieces(chunks: list[dict[str, Any]]) -> None:
    assert read_message(chunks) == (CALL, CallPart(1, "c2", "g", {}))


def test_a_call_in_an_empty_choice_list_of_usage_ends_well() -> None:
    scanner = DeltaScanner()
    scanner.feed(piece("{}", 0, "c1", "f"))
    scanner.feed(delta("tool_calls"))
    assert scanner.usage is None
    usage = {"prompt_tokens": 10, "completion_tokens": 5}
    scanner.feed({"choices": [], "usage": usage})
    scanner.feed({"choices": None})
    assert (scanner.usage, scanner.finish_reason) == (usage, "tool_calls")
    assert scanner.close() == [CallPart(0, "c1", "f", {})]


def test_text_comes_out_as_it_arrives() -> None:
    scanner = DeltaScanner()
    assert scanner.feed(delta(reasoning_content="Hm. ")) == [ThinkingPart("Hm. ")]
    assert scanner.feed(delta(content="Hello <")) == [TextPart("Hello ")]
    assert settled([*scanner.feed(delta(content="b>")), *scanner.close()]) == (TextPart("<b>"),)


@pytest.mark.parametrize("also_native", [True, False])
def test_calls_in_the_text_of_a_stream_count_where_the_server_read_none(also_native: bool) -> None:
    chunks = [delta(content=ch) for ch in MARKED] + ([piece('{"a": 1}', 0, "c1", "f")] if also_native else [])
    parts = read_message([*chunks, delta("stop")])
    (call,) = [part for part in parts if isinstance(part, CallPart)]
    assert (call.name, call.arguments, bool(call.repairs)) == ("f", {"a": 1}, not also_native)


def test_a_stream_is_read_like_the_whole_message() -> None:
    message = {"content": "Well.", "reasoning_content": "Hm.", "tool_calls": [native('{"a": 1')]}
    chunks = [delta(reasoning_content="Hm."), delta(content="We"), delta(content="ll."), piece('{"a": 1', 0, "c1", "f")]
    live: tuple[Part, ...] = read_message([*chunks, delta("length")])
    assert live == read_message(message, finish_reason="length")
    assert isinstance(live[-1], BrokenCall)


# --- writing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("api", ["openai", "anthropic", "gemini"])
def test_what_is_written_is_read(api: str) -> None:
    message, *answers = write_messages(api, [CALL], "Well.", [{"ok": True}])
    parts = read_message(message)
    assert parts[0] == TextPart("Well.")
    assert [(part.name, part.arguments) for part in parts if isinstance(part, CallPart)] == [("f", {"a": 1})]
    assert len(answers) == 1
