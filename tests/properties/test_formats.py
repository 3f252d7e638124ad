"""Formats of tool calls: what is written is read, and where a stream is cut changes nothing."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from properties.strategies import mutations
from toolplan.parse.formats import (
    FORMATS,
    BrokenCall,
    CallPart,
    CallScanner,
    Part,
    TextPart,
    read_calls,
    settled,
    write_calls,
)
from toolplan.tools import Tool, ToolSet

MARKS = sorted({mark for format in FORMATS.values() for opener in format.openers for mark in opener.marks})
PIECES = [
    *MARKS,
    *("</parameter>", "</arg_value>", "<arg_key>", "<escape>", '<|"|>', "[ARGS]", "<｜tool▁sep｜>", "```", "<think>"),
    *(
        "</think>",
        "<|im_end|>",
        "\nObservation: ",
        "\n",
        "\r\n",
        " ",
        '"',
        "'",
        "\\",
        "{",
        "}",
        "[",
        "]",
        "(",
        ")",
        ",",
    ),
    *("天气", "é", "😀", "a", "5", "null", "True", "007", '{"a": 1}', "$1", "#E1", "{{x}}", "\t", "\u2028", "\x00"),
]
texts = st.lists(st.sampled_from(PIECES) | st.characters(codec="utf-8"), max_size=6).map("".join)
scalars = st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(-1e9, 1e9) | texts
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=6
)
keys = st.sampled_from(["a", "city", "to", "城市", "x_1", "class", "name"])
names = st.sampled_from(["get_weather", "f", "calendar.find", "查天气", "send-mail"])


def calls_of(parts: tuple[Part, ...]) -> list[tuple[str, dict[str, Any]]]:
    return [(part.name, part.arguments) for part in parts if isinstance(part, CallPart)]


def same(left: Any, right: Any) -> bool:
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


made = st.lists(
    st.tuples(names, st.dictionaries(keys, values, max_size=3)).map(
        lambda pair: {"name": pair[0], "arguments": pair[1]}
    ),
    min_size=1,
    max_size=3,
)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(FORMATS)), made)
def test_what_is_written_is_read(format: str, calls: list[dict[str, Any]]) -> None:
    text = write_calls(format, calls)
    parts = read_calls(text, format)
    assert not [part for part in parts if isinstance(part, BrokenCall | TextPart)], text
    assert same(calls_of(parts), [(call["name"], call["arguments"]) for call in calls]), text
    assert not [part.repairs for part in parts if isinstance(part, CallPart) and part.repairs], text


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(FORMATS)), made, st.data())
def test_what_is_written_is_read_by_the_schema_too(
    format: str, calls: list[dict[str, Any]], data: st.DataObject
) -> None:
    tools = ToolSet(
        Tool.from_schema(name, "", schema_of(name, calls, data), lambda **_: None)
        for name in {call["name"]: None for call in calls}
    )
    parts = read_calls(write_calls(format, calls), format, tools)
    assert same(calls_of(parts), [(call["name"], call["arguments"]) for call in calls])


def schema_of(name: str, calls: list[dict[str, Any]], data: st.DataObject) -> dict[str, Any]:
    """Return parameters of a tool that takes what the calls give: by exact types, or by any."""
    kinds: dict[str, set[str]] = {}
    for call in calls:
        if call["name"] == name:
            for key, value in call["arguments"].items():
                kinds.setdefault(key, set()).add(TYPES[type(value)])
    if data.draw(st.booleans()):
        return {"type": "object", "properties": {key: {} for key in kinds}}
    return {"type": "object", "properties": {key: {"type": sorted(found)} for key, found in kinds.items()}}


TYPES = {
    **dict(zip((str, int, float, bool), ("string", "integer", "number", "boolean"), strict=True)),
    **dict(zip((list, dict, type(None)), ("array", "object", "null"), strict=True)),
}
ALIKE = {"mistral_v3", "deepseek_v3", "llama4", "openai", "anthropic", "gemini"}
"""Formats that read like another, or whose text is a message for an API."""


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(FORMATS.keys() - ALIKE)), made)
def test_auto_reads_every_format(format: str, calls: list[dict[str, Any]]) -> None:
    tools = ToolSet(
        Tool.from_schema(name, "", {"type": "object", "additionalProperties": True}, lambda **_: None)
        for name in {call["name"]: None for call in calls}
    )
    text = write_calls(format, calls)
    assert same(calls_of(read_calls(text, "auto", tools)), [(call["name"], call["arguments"]) for call in calls]), text


def in_chunks(text: bytes, cuts: list[int], format: str, tools: ToolSet | None, finish_reason: str | None) -> Any:
    scanner = CallScanner(format, tools)
    parts: list[Part] = []
    for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        parts += scanner.feed(text[start:end])
    return settled([*parts, *scanner.close(finish_reason)])


replies = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(sorted(FORMATS)), made).map(lambda pair: write_calls(*pair)),
        texts,
        texts.map(lambda text: f"<think>{text}</think>"),
        texts.map(lambda text: f"```\n{text}\n```\n"),
        st.sampled_from(
            ["Let me see.\n", "\n", "Thought: hm\n", "Plan: so\n", "Final Answer: 42", "\nObservation: x\n"]
        ),
    ),
    min_size=1,
    max_size=4,
).map("".join)
TOOLS = ToolSet(
    Tool.from_schema(
        name,
        "",
        {"type": "object", "properties": {"city": {"type": "string"}, "a": {}}, "required": []},
        lambda **_: None,
    )
    for name in ("get_weather", "f", "calendar.find")
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    replies | replies.flatmap(lambda text: mutations([text])),
    st.sampled_from(["auto", "auto", *sorted(FORMATS)]),
    st.sampled_from([None, TOOLS]),
    st.sampled_from([None, "stop", "length"]),
    st.data(),
)
def test_where_a_stream_is_cut_changes_nothing(
    text: str, format: str, tools: ToolSet | None, finish_reason: str | None, data: st.DataObject
) -> None:
    raw = text.encode("utf-8", "replace")
    whole = in_chunks(raw, [], format, tools, finish_reason)
    assert whole == read_calls(raw, format, tools, finish_reason)
    every = list(range(1, len(raw)))
    assert in_chunks(raw, every, format, tools, finish_reason) == whole
    some = sorted(data.draw(st.lists(st.sampled_from(every), max_size=6, unique=True))) if every else []
    assert in_chunks(raw, some, format, tools, finish_reason) == whole
