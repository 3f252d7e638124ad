"""Marks of many spellings around calls of few shapes; and what is written a little wrong, read with a word about it."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from toolplan import Agent, Plan, PlanRejected, ToolSet, parse, tool
from toolplan.models import ScriptedModel
from toolplan.parse.formats import BrokenCall, CallPart, CallScanner, TextPart, read_calls, settled
from toolplan.parse.formats.dialects import spelt


@tool(reads="weather")
def get_weather(city: str, days: int = 1) -> str:
    """Tell the weather of a city."""
    return f"3 °C in {city} for {days} days"


@tool(reads="clock")
def now() -> str:
    """Tell the time."""
    return "12:00"


@tool(writes="mail", approval="allow")
def send_email(to: str, body: str = "") -> str:
    """Send an email."""
    return f"sent {body} to {to}"


TOOLS = ToolSet.of([get_weather, now, send_email])
OSLO = '{"name": "get_weather", "arguments": {"city": "Oslo"}}'
ROME = '{"name": "get_weather", "arguments": {"city": "Rome"}}'
TO_OSLO, TO_ROME = ("get_weather", {"city": "Oslo"}), ("get_weather", {"city": "Rome"})
NOW: tuple[str, dict[str, Any]] = ("now", {})


def calls(reply: str, format: str = "auto", tools: ToolSet | None = TOOLS) -> list[object]:
    parts = read_calls(reply, format, tools)
    found = [part for part in parts if isinstance(part, CallPart | BrokenCall)]
    return [(part.name, part.arguments) if isinstance(part, CallPart) else part.diagnostic.code for part in found]


def in_pieces(reply: str, size: int) -> object:
    scanner = CallScanner("auto", TOOLS)
    pieces = [reply[at : at + size] for at in range(0, len(reply), size)]
    return settled([*(part for piece in pieces for part in scanner.feed(piece)), *scanner.close("stop")])


TAGS = ("function_call", "functioncall", "tool_use", "tools", "tool_calls", "toolcall", "TOOLCALL", "FUNCTION_CALL")
AROUND = [
    *((f"<{tag}>", f"</{tag}>") for tag in (*TAGS, "function_calls", "tool_code", "minimax:tool_call", "TOOL_CALL")),
    *(("<|tool_calls|>", end) for end in ("<|/tool_calls|>", "</|tool_calls|>", "<|tool_calls_end|>")),
    ("<｜tool▁calls｜>", "<｜tool▁calls▁end｜>"),
    ("<||TOOL_CALLS||>", "<||/TOOL_CALLS||>"),
    ("<|function_call|>", "<|function_call_end|>"),
    ("<|tools_prefix|>", "<|tools_suffix|>"),
    ("<|START_ACTION|>", "<|END_ACTION|>"),
    ("<|action_start|><|plugin|>\n", "<|action_end|>"),
    ("[TOOL_REQUEST]\n", "\n[END_TOOL_REQUEST]"),
    ("[TOOL_CALL]", "[/TOOL_CALL]"),
]
INSIDE = [
    (OSLO, [TO_OSLO]),
    (f"[{OSLO}, {ROME}]", [TO_OSLO, TO_ROME]),
    (f"{OSLO}\n{ROME}", [TO_OSLO, TO_ROME]),
    (f"```json\n{OSLO}\n```", [TO_OSLO]),
    ('[{"get_weather": {"city": "Oslo"}}, {"now": {}}]', [TO_OSLO, NOW]),
    ('get_weather {"city": "Oslo"}', [TO_OSLO]),
    ('get_weather(city="Oslo")\nnow()', [TO_OSLO, NOW]),
    ('[get_weather(city="Oslo"), now()]', [TO_OSLO, NOW]),
    ('<tool_name>get_weather</tool_name>\n<parameters>{"city": "Oslo"}</parameters>', [TO_OSLO]),
    ("<name>now</name>", [NOW]),
]


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("inside", INSIDE)
def test_every_shape_is_read_in_all_marks(around: tuple[str, str], inside: tuple[str, list[object]]) -> None:
    reply = f"{around[0]}{inside[0]}{around[1]}"
    assert calls(reply) == inside[1]
    assert in_pieces(reply, 1) == in_pieces(reply, 7) == settled(read_calls(reply, "auto", TOOLS))
    assert isinstance(parse(reply, tools=TOOLS), Plan)


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("between", ["\n", " ", ""])
def test_what_is_not_closed_ends_where_the_next_begins(around: tuple[str, str], between: str) -> None:
    reply = f"{around[0]}{OSLO}{between}{around[0]}{ROME}{between}{around[0]}{OSLO}"
    assert calls(reply) == [TO_OSLO, TO_ROME, TO_OSLO]
    assert in_pieces(reply, 1) == settled(read_calls(reply, "auto", TOOLS))
    assert calls(f"{around[0]}{OSLO}\nI wait for the result.") == [TO_OSLO]


@pytest.mark.parametrize("mode", ["plan", "loop"])
def test_no_call_of_a_reply_is_left_out(mode: Any) -> None:
    reply = f"<function_call> {OSLO}\n<function_call> {ROME}"
    result = Agent(ScriptedModel([reply, "Both are 3 °C."]), tools=[get_weather], mode=mode).run_sync(
        "In Oslo and Rome?"
    )
    assert [step.arguments["city"] for step in result.steps if step.arguments] == ["Oslo", "Rome"]


def test_the_format_of_granite_has_it_too() -> None:
    assert calls(f"<function_call> {OSLO}\n<function_call> {ROME}", "granite") == [TO_OSLO, TO_ROME]


@pytest.mark.parametrize("around", AROUND)
def test_a_damaged_call_is_broken_and_takes_no_other_with_it(around: tuple[str, str]) -> None:
    damaged = OSLO.replace('"Oslo"}}', '"Oslo"]}')
    assert calls(f"{around[0]}{damaged}{around[1]}") == ["TP131"]
    found = calls(f"{around[0]}{damaged}\n{around[0]}{ROME}")
    assert found[0] == "TP131"
    assert len(found) == 2
    assert calls(f"{around[0]}{OSLO[:-20]}") == ["TP132"]


def test_a_name_in_tags_needs_the_end_of_the_call_behind_it() -> None:
    assert calls("<tool_use>\n<name>now</name>\n</tool_use>") == [NOW]
    assert calls("<tool_use>\n<name>now</name>") == ["TP132"]
    assert calls("<tool_use>\n<name>now</name>\n<arg") == ["TP131"]
    assert calls("<tool_call>\n<name>now</name> <") == ["TP131"]
    assert calls("<tool_use>\n<name>Ann</name>\n</tool_use>") == []
    assert calls("<tool_use>\n<name>now</name> is one\n</tool_use>") == ["TP131"]


def test_tags_around_anything_else_are_text() -> None:
    for tag, inside in itertools.product(TAGS, ("none", "", '{"a": 1}', "see below (later)", "[1, 2]", "x = f(")):
        text = f"So <{tag}>{inside}</{tag}> it is."
        assert read_calls(text, "auto", TOOLS) == (TextPart(text),)


def test_special_tokens_around_anything_else_are_a_broken_call() -> None:
    assert calls('<|tool_calls|>[{"city": "Oslo"}]') == ["TP134"]
    assert calls("<|tool_calls|>get_weather\ncity: Oslo<|/tool_calls|>") == ["TP131"]
    assert calls("<|tool_calls|>get_weather") == ["TP132"]


def test_the_declarations_of_tools_are_text() -> None:
    declared = '{"type": "function", "function": {"name": "get_weather", "parameters": {"city": {}}}}'
    text = f"<tools>\n{declared}\n</tools>"
    assert read_calls(text, "auto", TOOLS) == (TextPart(text),)
    assert calls('<tools>{"name": "unknown", "arguments": {}}</tools>') == []


def test_tokens_are_spelt_with_other_bars_blanks_and_letters() -> None:
    assert {"<|a_b|>", "<｜a▁b｜>", "<||A_B||>", "<｜｜a b｜｜>"} <= set(spelt("a b"))


DSML = '<{b}DSML{b}tool_calls>\n<{b}DSML{b}invoke name="get_weather">\n<{b}DSML{b}parameter name="city" string="true">'
_DSML_END = "Oslo</{b}DSML{b}parameter>\n</{b}DSML{b}invoke>\n</{b}DSML{b}tool_calls>"
DEEPSEEK = (
    "<{b}tool{g}calls{g}begin{b}><{b}tool{g}call{g}begin{b}>{head}<{b}tool{g}call{g}end{b}><{b}tool{g}calls{g}end{b}>"
)
V31 = 'get_weather<{b}tool{g}sep{b}>{{"city": "Oslo"}}'
V3 = 'function<{b}tool{g}sep{b}>get_weather\n```json\n{{"city": "Oslo"}}\n```'


@pytest.mark.parametrize("bars", ["|", "｜", "||", "｜｜"])
def test_deepseeks_marks_in_all_spellings(bars: str) -> None:
    assert calls((DSML + _DSML_END).format(b=bars)) == [TO_OSLO]
    for gap, head in itertools.product("_▁ ", (V31, V3)):
        reply = DEEPSEEK.format(b=bars, g=gap, head=head.format(b=bars, g=gap))
        assert calls(reply) == [TO_OSLO], reply
        assert in_pieces(reply, 1) == settled(read_calls(reply, "auto", TOOLS))


RELATIVES = [
    ("<longcat_tool_call>get_weather\n<longcat_arg_key>city</longcat_arg_key>\n<longcat_arg_value>Oslo"
     "</longcat_arg_value>\n</longcat_tool_call>", [TO_OSLO]),
    ("<tool_calls>\n<tool_call>get_weather<tool_sep>\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n</tool_call>\n"
     "</tool_calls>", [TO_OSLO]),
    ('<｜tool_calls_begin｜>\n<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="get_weather">\n'
     '<steptml:parameter name="city">Oslo</steptml:parameter>\n</steptml:invoke><｜tool_call_end｜>\n'
     "<｜tool_calls_end｜>",
     [TO_OSLO]),
    ('I will call to=functions.get_weather <|constrain|>json<|message|>{"city": "Oslo"}<|call|>', [TO_OSLO]),
    ('✿FUNCTION✿: get_weather\n✿ARGS✿: {"city": "Oslo"}\n✿RESULT✿: 3 °C\n✿RETURN✿: It is 3 °C.', [TO_OSLO]),
    ('Tool: get_weather\nTool Input: {"city": "Oslo"}', [TO_OSLO]),
    ('Action: ```json\n[\n  {"tool_name": "get_weather", "parameters": {"city": "Oslo"}}\n]\n```', [TO_OSLO]),
    ('思考：要查\n步骤1：查天气\n动作：call get_weather(city="Oslo")\n输出：{{found}}', [TO_OSLO]),
    (f"{OSLO}</tool_call>", [TO_OSLO]),
    (f"```json\n{OSLO}\n", [TO_OSLO]),
    ("Thought: so\nAction: now\nAction Input: \"\"", [NOW]),
]  # fmt: skip


@pytest.mark.parametrize(("reply", "expected"), RELATIVES)
def test_relatives_of_other_formats(reply: str, expected: list[object]) -> None:
    assert calls(reply) == expected
    assert in_pieces(reply, 1) == in_pieces(reply, 5) == settled(read_calls(reply, "auto", TOOLS))


@pytest.mark.parametrize("between", ["; ", ", ", "\n", "\n\n", "<|eom_id|>", " "])
def test_llamas_format_has_several_calls_without_marks(between: str) -> None:
    assert calls(f"{OSLO}{between}{ROME}{between}{OSLO}", "llama3") == [TO_OSLO, TO_ROME, TO_OSLO]
    text = f'{OSLO}{between}{{"note": 1}}'
    scanner = CallScanner("llama3", TOOLS)
    parts = [part for letter in text for part in scanner.feed(letter)]
    assert settled([*parts, *scanner.close()]) == settled(read_calls(text, "llama3", TOOLS))
    assert calls(text, "llama3") == [TO_OSLO]


# ---- what is mended is said


@pytest.mark.parametrize(
    ("reply", "to"),
    [
        ("Thought: so\nAction: send_email\nAction Input: `ann@example.com`", "ann@example.com"),
        ('Thought: so\nAction: send_email\nAction Input: `{"to": "ann@example.com"}`', "ann@example.com"),
        ("<tool_call>\n<function=send_email>\n<parameter=to>\nann@example.com\n</parameter>\n</parameter>\n</function>\n"
         "</tool_call>", "ann@example.com"),
        ('<invoke name="send_email"><parameter name="to">ann@example.com</parameter></parameter>\n'
         "</parameter></invoke>",
         "ann@example.com"),
        ("<tool_call>send_email\n<arg_key>to</arg_key>\n<arg_value>ann@example.com</arg_value></arg_value>\n</tool_call>",
         "ann@example.com"),
    ],
)  # fmt: skip
def test_a_mended_argument_has_a_repair(reply: str, to: str) -> None:
    (call,) = [part for part in read_calls(reply, "auto", TOOLS) if isinstance(part, CallPart)]
    assert call.arguments == {"to": to}
    assert call.repairs


def test_a_tag_that_is_missing_inside_of_a_call_is_named() -> None:
    for lost in ("</parameter>\n", "</function>\n"):
        reply = "<tool_call>\n<function=send_email>\n<parameter=to>\nann\n</parameter>\n</function>\n</tool_call>"
        (broken,) = [
            part for part in read_calls(reply.replace(lost, ""), "auto", TOOLS) if isinstance(part, BrokenCall)
        ]
        assert (broken.diagnostic.code, "missing" in broken.diagnostic.message) == ("TP131", True)


@pytest.mark.parametrize("reply", ["{}", "<think>so</think>\n{}", "I'll send the email now.\n{}"])
@pytest.mark.parametrize("mode", ["plan", "loop"])
def test_a_bare_call_that_is_the_reply_or_announced_is_meant(reply: str, mode: Any) -> None:
    call = '{"name": "send_email", "arguments": {"to": "ann@example.com"}}'
    model = ScriptedModel([reply.replace("{}", call), "Done."])
    result = Agent(model, tools=[send_email], mode=mode).run_sync("Send an email to ann@example.com.")
    assert (result.outcome, [step.outcome for step in result.steps]) == ("succeeded", ["succeeded"])


@pytest.mark.parametrize(("mode", "outcome"), [("plan", "succeeded"), ("loop", "waiting")])
def test_a_plan_stands_in_a_fence_and_a_turns_call_there_is_mended(mode: Any, outcome: str) -> None:
    call = '{"name": "send_email", "arguments": {"to": "ann@example.com"}}'
    for trust, expected in ((False, outcome), (True, "succeeded")):
        model = ScriptedModel([f"```json\n{call}\n```", "Done."])
        agent = Agent(model, tools=[send_email], mode=mode, trust_repairs=trust)
        assert agent.run_sync("Send an email to ann@example.com.").outcome == expected


@pytest.mark.parametrize("reply", ["The mail wants me to do so now.\n{}", "{mended}"])
@pytest.mark.parametrize("mode", ["plan", "loop"])
def test_other_words_and_what_is_mended_ask(reply: str, mode: Any) -> None:
    call = '{"name": "send_email", "arguments": {"to": "ann@example.com"}}'
    text = reply.replace("{mended}", call.replace("send_", "Send_")).replace("{}", call)
    result = Agent(ScriptedModel([text, "Done."]), tools=[send_email], mode=mode).run_sync(
        "Send one to ann@example.com."
    )
    assert result.outcome in ("waiting", "succeeded")
    assert not any(step.outcome == "succeeded" for step in result.steps)


@pytest.mark.parametrize("mode", ["plan", "loop"])
def test_the_final_answer_as_an_action_is_the_answer(mode: Any) -> None:
    for reply in ("{}", "```json\n{}\n```"):
        answer = reply.replace("{}", '{"action": "Final Answer", "action_input": "It is 3 °C."}')
        result = Agent(ScriptedModel([answer]), tools=[get_weather], mode=mode).run_sync("How is the weather?")
        assert (result.answer, result.inferences) == ("It is 3 °C.", 1)


def test_a_call_that_text_follows_in_its_line_is_not_lost_beside_others() -> None:
    reply = f"<function_call> {OSLO} and then\n<function_call> {ROME}"
    assert calls(reply) == [TO_ROME, "TP131"]
    with pytest.raises(PlanRejected):
        parse(reply, tools=TOOLS)
