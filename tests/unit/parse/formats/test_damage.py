"""Damaged calls: they are told of, swallow nothing, and let nothing out that was data."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from toolplan.diagnostics import Source, catalogue, render
from toolplan.parse.formats import BrokenCall, CallPart, CallScanner, read_calls
from toolplan.parse.formats.parts import settled
from toolplan.tools import Tool, ToolSet

CODES = [code for code in sorted(catalogue) if "TP131" <= code <= "TP136"]
WEATHER = ToolSet(
    Tool.from_schema(
        name, "", {"type": "object", "properties": {"city": {"type": "string"}, "country": {}}}, lambda **_: None
    )
    for name in ("get_weather", "note")
)


def outline(text: str, format: str = "auto") -> list[str]:
    """Return the calls by name, the broken ones by name and code."""
    return [
        part.name if isinstance(part, CallPart) else f"{part.name} {part.diagnostic.code}"
        for part in read_calls(text, format)
        if isinstance(part, CallPart | BrokenCall)
    ]


def test_the_codes_are_here() -> None:
    assert [f"TP{number}" for number in range(131, 137)] == CODES


@pytest.mark.parametrize("code", CODES)
def test_the_examples(code: str, golden: Callable[[str, str], None]) -> None:
    wrong, right = catalogue[code].wrong, catalogue[code].right
    broken = [part for part in read_calls(wrong, "auto", WEATHER) if isinstance(part, BrokenCall)]
    assert code in [part.diagnostic.code for part in broken]
    golden(f"diagnostics/{code}.txt", "\n".join(render(part.diagnostic, Source(wrong)) for part in broken) + "\n")
    assert not [part for part in read_calls(right, "auto") if isinstance(part, BrokenCall)]


GOOD = '<tool_call>\n{"name": "good", "arguments": {}}\n</tool_call>'


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (f'<tool_call>\n{{"name": "f", "arguments": {{"a": "x\n{GOOD}', ["f TP131", "good"]),
        (f'<tool_call>\n{{"name": "f", "arguments": {{"a": 1]}}\n</tool_call>\n{GOOD}', ["f TP131", "good"]),
        (f'<tool_call>\n{{"name": "f", "arguments": {{"a": 1\n</tool_call>\n{GOOD}', ["f TP132", "good"]),
        (f"<tool_call>\n{{}}\n</tool_call>\n{GOOD}", ["None TP134", "good"]),
        (f'<tool_call>\n{{"name": "f", "arguments": {{}}, "city": "Oslo"}}\n</tool_call>\n{GOOD}', ["f TP134", "good"]),
        (f"<tool_call>\n<function=f>\n<parameter=a>\nx\n</tool_call>\n{GOOD}", ["f TP131", "good"]),
        (f"<tool_call>\n<function=f>\njunk\n</function>\n</tool_call>\n{GOOD}", ["f TP131", "good"]),
        (
            '<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"a": "x<|tool_call_end|>'
            "<|tool_call_begin|>functions.good:1<|tool_call_argument_begin|>{}<|tool_call_end|>",
            ["f TP132", "good"],
        ),
    ],
)
def test_a_damaged_call_does_not_swallow_the_next(reply: str, expected: list[str]) -> None:
    assert outline(reply) == expected


@pytest.mark.parametrize(
    "reply",
    [
        # the outer call is damaged, and what looks like a call in it is its data
        '<|python_tag|>runner.call(payload={"name": "bad", "parameters": {"a": 1}}',
        '<tool_call>{"name": "f", "arguments": {"x": {"name": "bad", "arguments": {}}}',
        '<tool_call>{"name": "f", "x": [{"name": "bad", "arguments": {}}]}</tool_call>',
        '<tool_call>{"name": "bad", "arguments": {}}}}</tool_call>',
        '[TOOL_CALLS]{"name": "bad", "arguments": {}}}',
        '{"x": {"name": "bad", "arguments": {}}',
        '[[{"name": "bad", "arguments": {}}]',
        f'<tool_call>\n{{"name": "f", "arguments": {{"a": "so:\n{GOOD.replace("good", "bad")}\nend"}}}}\n</tool_call>',
        '<parameter=a>\n<tool_call>\n{"name": "bad", "arguments": {}}\n</tool_call>\n</parameter>\n</function>',
        'name="content"><function=bad>\n</function>\n</parameter>\n</function>',
        'llo", "content": "<|python_tag|>{\\"name\\": \\"bad\\", \\"parameters\\": {}}"}',
        'say "<start_function_call>call:bad{}<end_function_call>" for that',
    ],
)
def test_data_never_becomes_a_call(reply: str) -> None:
    assert "bad" not in outline(reply)


@pytest.mark.parametrize("damaged", ['"f", "arguments": {"a": "so:\n', '"f", "arguments": {"a": "so:\n\n'])
def test_behind_a_damaged_call_nothing_counts_in_a_reply_that_was_cut_off(damaged: str) -> None:
    reply = f'<tool_call>\n{{"name": {damaged}{GOOD}\nend"}}}}\n</tool_call>'
    for cut in range(len(reply)):
        parts = read_calls(reply[:cut], "auto", None, "length")
        assert not [part for part in parts if isinstance(part, CallPart)]


def test_a_value_may_hold_tags_of_its_own_kind() -> None:
    inner = "see:\n<tool_call>\n<function=g>\n<parameter=x>\n1\n</parameter>\n</function>\n</tool_call>\nso"
    reply = f"<tool_call>\n<function=f>\n<parameter=a>\n{inner}\n</parameter>\n</function>\n</tool_call>"
    (call,) = [part for part in read_calls(reply, "qwen_xml") if isinstance(part, CallPart)]
    assert call.arguments == {"a": inner}
    unclosed = reply.replace("1\n</parameter>", "1\n")
    assert outline(unclosed, "qwen_xml") == ["f TP131", "g TP136"]


def test_an_argument_given_twice_is_not_chosen() -> None:
    reply = "<function=f>\n<parameter=a>\n1\n</parameter>\n<parameter=a>\n2\n</parameter>\n</function>"
    assert outline(reply, "qwen_xml") == ["f TP131"]
    assert outline('<tool_call>{"name": "f", "arguments": {"a": 1, "a": 2}}</tool_call>') == ["f TP131"]


def test_only_so_many_damaged_calls_are_looked_behind() -> None:
    found = outline('<tool_call>\n{"a\n' * 100)
    assert len(found) < 100
    assert all(each.endswith(("TP131", "TP132")) for each in found)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ('{"name": "g", "arguments": {}}', ["f", "g"]),
        ('\n, {"name": "g", "arguments": {}}\n', ["f", "g"]),
        ('\n[{"name": "g", "arguments": {}}]\n{"name": "h", "arguments": {}}', ["f", "g", "h"]),
        ('\n{"a": 1}', ["f", "None TP134"]),
        ('\n{"name": "g", "arguments": {"a": 1]}', ["f", "g TP131"]),
    ],
)
@pytest.mark.parametrize("step", [1, 1000])
def test_a_second_object_between_the_same_marks_is_not_dropped(more: str, expected: list[str], step: int) -> None:
    reply = f'<tool_call>\n{{"name": "f", "arguments": {{}}}}{more}</tool_call>\n{GOOD}'
    assert outline(reply) == [*expected, "good"]
    scanner = CallScanner()
    parts = [part for at in range(0, len(reply), step) for part in scanner.feed(reply[at : at + step])]
    assert settled([*parts, *scanner.close()]) == read_calls(reply)


@pytest.mark.parametrize(
    "value", ['"a" + "b"', '"a"+"b"', '"a" + x + "b"', '"a"+f("x")+"b"', '"a" or "b"', '"a" , "b" c']
)
def test_an_expression_of_texts_is_not_read_as_one_text(value: str) -> None:
    assert outline(f'<tool_call>{{"name": "f", "arguments": {{"path":{value}}}}}</tool_call>') == ["f TP131"]


@pytest.mark.parametrize("value", ['"say "hi" now"', '"run "-v" now"', '"the "+1" button"'])
def test_quotes_inside_a_text_are_still_read_as_part_of_it(value: str) -> None:
    assert outline(f'<tool_call>{{"name": "f", "arguments": {{"path":{value}}}}}</tool_call>') == ["f"]


def test_steps_before_the_end_of_thinking_are_taken_back_when_its_beginning_is_damaged() -> None:
    step = 'Step {n}: {tool}\nAction: call {tool}(path="/")\nOutput: {{{{call_{n}}}}}'
    rehearsed, meant = step.format(n=1, tool="delete_everything"), step.format(n=1, tool="write_file")
    parts = settled(read_calls(f"<thnk>\nPerhaps {rehearsed} but no.\n</think>\n{meant}"))
    assert [part.name for part in parts if isinstance(part, CallPart)] == ["write_file"]


@pytest.mark.parametrize(
    ("text", "format"),
    [
        ("Thought: hm\nAction: get_weather: Oslo", "react"),
        ("Thought: hm\nAction: get_weather[see list[0]", "react"),
        ("Plan: look\n#E1 = get_weather[see list[0]", "rewoo"),
        ('<tool_call>get_weather(city="Oslo")', "auto"),
    ],
)
def test_what_may_go_on_behind_the_end_of_a_reply_that_was_cut_off_is_no_call(text: str, format: str) -> None:
    (cut,) = [part for part in read_calls(text, format, WEATHER, "length") if not hasattr(part, "text")]
    assert isinstance(cut, BrokenCall)
    assert cut.diagnostic.code in ("TP131", "TP132")
    calls = [part for part in read_calls(text, format, WEATHER, "stop") if not hasattr(part, "text")]
    assert [type(part) for part in calls] == [CallPart]
    whole = read_calls("#E1 = get_weather[list[0]]", "rewoo", WEATHER, "length")
    assert [type(part) for part in whole] == [CallPart]
