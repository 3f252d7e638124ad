import asyncio
import json

import pytest

from toolplan.errors import ModelError, UsageError
from toolplan.models import (
    FallbackModel,
    FunctionModel,
    Listener,
    Message,
    ModelRequest,
    RecordingModel,
    Reply,
    ScriptedModel,
    ToolCallPart,
    ToolResultPart,
    ToolSpec,
    Usage,
    model_from_name,
    plan_form,
)

ASK = ModelRequest((Message("system", "You plan."), Message("user", "查明天北京的天气")))


def write(tmp_path, *lines):
    path = tmp_path / "replies.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


async def test_replies_come_in_order_and_run_out():
    model = ScriptedModel(["one", {"text": "two"}, Reply("three")])
    assert [(await model.ask(ASK)).text for _ in range(3)] == ["one", "two", "three"]
    assert model.left == 0
    with pytest.raises(ModelError) as caught:
        await model.ask(ModelRequest((Message("user", "one more?"),), purpose="answer"))
    assert str(caught.value) == (
        "`scripted` has 3 replies, so that request 4 (purpose: answer)"
        " with the last message 'one more?' finds none left"
    )


async def test_a_recording_may_have_comments_and_blank_lines(tmp_path):
    path = write(tmp_path, "\ufeff# a comment", "", '{"text": "a\u2028b"}', "  // another", '{"text": "two"}')
    model = ScriptedModel(path)
    assert model.name == f"scripted:{path}"
    assert [(await model.ask(ASK)).text for _ in range(2)] == ["a\u2028b", "two"]


async def test_a_recording_by_name(tmp_path):
    path = write(tmp_path, '{"text": "hello"}')
    assert (await model_from_name(f"scripted:{path}").ask(ASK)).text == "hello"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"text": "x"', "not a JSON object on one line"),
        ("[1]", "expected an object"),
        ('{"txt": "x"}', "unknown key `txt`"),
        ("{}", "a reply needs `text` or `tool_calls`"),
        ('{"text": 1}', "`text` must be text, found 1"),
        ('{"text": "x", "delay_seconds": "1"}', "`delay_seconds` must be a whole number or a number, found '1'"),
        ('{"text": "x", "delay_seconds": true}', "`delay_seconds` must be"),
        ('{"tool_calls": [{"arguments": {}}]}', "tool call 1 needs a `name`"),
        ('{"tool_calls": [7]}', "tool call 1 needs a `name`"),
        ('{"tool_calls": [{"name": "f", "arguments": [1]}]}', "the `arguments` of `f` must be an object or its text"),
        ('{"text": "x", "usage": {"input_tokens": -1}}', "`usage.input_tokens` must be a whole number"),
        ('{"text": "x", "chunks": 0}', "`chunks` must be at least 1 character"),
        ('{"text": "xy", "chunks": ["x"]}', "do not make up the `text`"),
    ],
)
def test_a_bad_line_is_named_with_its_place(tmp_path, line, problem):
    path = write(tmp_path, "# first", '{"text": "fine"}', line)
    with pytest.raises(UsageError) as caught:
        ScriptedModel(path)
    assert str(caught.value).startswith(f"{path}:3: ")
    assert problem in str(caught.value)


def test_a_missing_recording(tmp_path):
    with pytest.raises(UsageError, match="there is no file"):
        ScriptedModel(tmp_path / "nothing.jsonl")
    with pytest.raises(UsageError, match="cannot be read"):
        ScriptedModel(tmp_path)


@pytest.mark.parametrize("arguments", [{"steps": []}, '{"steps": []}'])
async def test_native_calls_in_both_spellings(arguments):
    plain = {"name": "submit_plan", "arguments": arguments}
    for call in (plain, {"id": "c9", "type": "function", "function": plain}):
        reply = await ScriptedModel([{"tool_calls": [call]}]).ask(ASK)
        assert reply.tool_calls == (ToolCallPart(call.get("id", "call_1"), "submit_plan", arguments),)
        assert json.loads(reply.plan_text) == {"steps": []}
        assert (reply.text, reply.finish_reason, reply.output) == ("", "tool_call", "tool")


async def test_usage_is_as_given_or_marked_as_estimated():
    given = {"input_tokens": 812, "output_tokens": 95, "cached_input_tokens": 8}
    model = ScriptedModel([{"text": "hello", "usage": given}, {"text": "hello"}])
    assert (await model.ask(ASK)).usage == Usage(1, 812, 95, 8)
    estimated = (await model.ask(ASK)).usage
    assert estimated.estimated
    assert (estimated.requests, estimated.output_tokens) == (1, 2)
    assert estimated.input_tokens >= 8


async def test_what_a_reply_expects_must_be_asked():
    model = ScriptedModel([{"text": "x", "expect": "北京"}, {"text": "y", "expect": ["北京", "上海"]}])
    assert (await model.ask(ASK)).text == "x"
    with pytest.raises(ModelError) as caught:
        await model.ask(ASK)
    assert "reply 2 expects '上海' in the request, but request 2" in str(caught.value)
    assert "查明天北京的天气" in str(caught.value)


async def test_what_a_reply_is_for():
    model = ScriptedModel([{"text": "x", "purpose": "answer"}])
    with pytest.raises(ModelError, match="reply 1 is a reply for `answer`, but request 1 is for `plan`"):
        await model.ask(ASK)


@pytest.mark.parametrize(
    ("chunks", "heard"),
    [({"chunks": 2}, ["ab", "cd", "e"]), ({"chunks": ["a", "bcde"]}, ["a", "bcde"]), ({}, ["abcde"])],
)
async def test_listeners_hear_pieces(chunks, heard):
    pieces = []
    reply = await ScriptedModel([{"text": "abcde", **chunks}]).ask(ASK, pieces.append)
    assert pieces == heard
    assert reply.text == "abcde"


async def test_long_replies_come_in_several_pieces_by_themselves():
    pieces = []
    text = "0123456789" * 10
    await ScriptedModel([text]).ask(ASK, pieces.append)
    assert len(pieces) > 3
    assert "".join(pieces) == text


async def test_listeners_hear_the_arguments_of_the_plan_tool():
    pieces = []
    calls = [{"name": "submit_plan", "arguments": '{"steps": []}'}, {"name": "other", "arguments": "{}"}]
    await ScriptedModel([{"tool_calls": calls, "chunks": 5}]).ask(ASK, pieces.append)
    assert "".join(pieces) == '{"steps": []}'


async def test_others_go_on_between_two_pieces():
    order = []

    async def other():
        for _ in range(3):
            order.append("other")
            await asyncio.sleep(0)

    await asyncio.gather(ScriptedModel([{"text": "abc", "chunks": 1}]).ask(ASK, order.append), other())
    assert order.index("other") < order.index("c")


async def test_a_delay_is_spread_over_the_pieces(monkeypatch):
    slept = []

    async def sleep(seconds):
        slept.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    line = {"text": "abcd", "chunks": 1, "delay_seconds": 2}
    await ScriptedModel([line]).ask(ASK, lambda _: None)
    assert slept == [0.5, 0.5, 0.5, 0.5]
    slept.clear()
    await ScriptedModel([line]).ask(ASK)
    assert slept == [2]


async def test_a_listener_hears_of_the_calls_of_offered_tools_one_after_the_other(monkeypatch):
    slept = []

    async def sleep(seconds):
        slept.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    calls = [{"name": "look", "arguments": "{}"}, {"name": "look", "arguments": '{"at": 1}'}]
    line = {"tool_calls": calls, "chunks": 5, "delay_seconds": 3}
    heard = []
    listener = Listener(lambda text: None, lambda: None, lambda call: heard.append((call.arguments, len(slept))))
    offered = ToolSpec("look", "", {"type": "object", "properties": {}})
    await ScriptedModel([line]).ask(ModelRequest(ASK.messages, tools=(offered,)), listener)
    assert (heard, slept) == ([("{}", 1), ('{"at": 1}', 3)], [1.0, 1.0, 1.0])
    heard.clear()
    await ScriptedModel([line]).ask(ASK, listener)
    assert heard == []


async def test_a_recorded_model_plays_back_the_same(tmp_path):
    path = tmp_path / "new.jsonl"
    replies = [
        Reply("[]", finish_reason="stop", usage=Usage(1, 10, 2, 1), model="m", thinking="hm"),
        Reply(
            "", (ToolCallPart("c1", "submit_plan", {"城市": "北京"}),), "tool_call", Usage(1, 4, 4, estimated=True), "m"
        ),
    ]
    recorder = RecordingModel(ScriptedModel(replies, name="openai:m"), path)
    heard = []
    assert recorder.name == "openai:m"
    first = [await recorder.ask(ASK, heard.append), await recorder.ask(ASK)]
    assert "".join(heard) == "[]"
    assert path.read_text("utf-8").startswith("# replies of openai:m, recorded by toolplan\n")

    player = ScriptedModel(path)
    assert [await player.ask(ASK), await player.ask(ASK)] == first
    with pytest.raises(ModelError, match="expects '查明天北京的天气'"):
        await ScriptedModel(path).ask(ModelRequest((Message("user", "something else"),)))


async def test_a_failed_request_is_not_recorded(tmp_path):
    path = tmp_path / "new.jsonl"
    with pytest.raises(ModelError):
        await RecordingModel(ScriptedModel([]), path).ask(ASK)
    assert not path.exists()


async def test_a_function_is_a_model():
    heard = []
    reply = await FunctionModel(lambda request: f"{request.purpose}!").ask(ASK, heard.append)
    assert (reply.text, heard) == ("plan!", ["plan!"])
    assert reply.usage.estimated

    async def later(request):
        await asyncio.sleep(0)
        return Reply("later", usage=Usage(1, 2, 3))

    assert await FunctionModel(later).ask(ASK) == Reply("later", usage=Usage(1, 2, 3))
    with pytest.raises(ZeroDivisionError):
        await FunctionModel(lambda _: 1 / 0).ask(ASK)


# ---- tools and calls

WEATHER = ToolSpec("get_weather", "Weather.", {"type": "object", "properties": {"city": {"type": "string"}}})
MARKED = 'Let me see.\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'


def offering(*messages, **options):
    return ModelRequest(messages or (Message("user", "hi"),), tools=(WEATHER,), purpose="loop", **options)


async def test_native_calls_are_given_as_they_are():
    call = {"id": "c1", "name": "get_weather", "arguments": {"city": "Oslo"}}
    reply = await ScriptedModel([{"text": "Let me see.", "tool_calls": [call]}]).ask(offering())
    assert reply.tool_calls == (ToolCallPart("c1", "get_weather", {"city": "Oslo"}),)
    assert (reply.text, reply.output, reply.finish_reason) == ("Let me see.", "tool", "tool_call")


@pytest.mark.parametrize("make", [lambda text: ScriptedModel([text]), lambda text: FunctionModel(lambda _: text)])
async def test_calls_in_the_text_are_read_where_tools_are_offered(make):
    heard = []
    reply = await make(MARKED).ask(offering(), heard.append)
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [("get_weather", {"city": "Oslo"})]
    assert (reply.text.strip(), "".join(heard).strip()) == ("Let me see.", "Let me see.")
    for request in (offering(tool_choice="none"), ModelRequest((Message("user", "hi"),))):
        heard = []
        reply = await make(MARKED).ask(request, heard.append)
        assert (reply.text, reply.tool_calls, "".join(heard)) == (MARKED, (), MARKED)


async def test_a_loop_can_be_recorded_and_played(tmp_path):
    path = tmp_path / "replies.jsonl"
    call = {"id": "c1", "name": "get_weather", "arguments": '{"city": "Oslo"}'}
    recorded = RecordingModel(ScriptedModel([{"tool_calls": [call]}, "It rains."]), path)
    first = await recorded.ask(offering())
    results = Message("tool", tool_results=(ToolResultPart("c1", "get_weather", "rain in Oslo"),))
    talk = (Message("user", "hi"), first.message, results)
    await recorded.ask(offering(*talk))
    played = ScriptedModel(path)
    again = await played.ask(offering())
    assert again.tool_calls == first.tool_calls
    assert (await played.ask(offering(*talk))).text == "It rains."
    # The second reply is for these results and no others.
    wrong = ScriptedModel(path)
    await wrong.ask(offering())
    other = Message("tool", tool_results=(ToolResultPart("c1", "get_weather", "snow in Oslo"),))
    with pytest.raises(ModelError, match="expects"):
        await wrong.ask(offering(Message("user", "hi"), first.message, other))


async def test_a_recorded_model_stays_what_it_is():
    class Small:
        name = "small"
        plan_form = "small"
        closed = 0

        async def ask(self, request, on_text=None):
            raise NotImplementedError

        async def close(self):
            self.closed += 1

    small = Small()
    recorded = RecordingModel(small, "unused.jsonl")
    assert plan_form(recorded) == plan_form(FallbackModel([recorded, ScriptedModel([])])) == "small"
    assert plan_form(ScriptedModel([])) == "full"
    await FallbackModel([recorded]).close()
    assert small.closed == 1
