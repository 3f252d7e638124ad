import json

import pytest

from toolplan.models import Message, ModelRequest, Reply, ToolCallPart, Usage
from toolplan.models.base import estimate_tokens

PLAN = '{"steps": []}'


def call(arguments, name="submit_plan", id="c1"):
    return ToolCallPart(id, name, arguments)


def test_usage_adds_up_and_stays_marked():
    total = Usage(1, 10, 5, 3) + Usage(2, 1, 1, estimated=True)
    assert total == Usage(requests=3, input_tokens=11, output_tokens=6, cached_input_tokens=3, estimated=True)
    assert total.to_dict() == {
        "requests": 3,
        "input_tokens": 11,
        "output_tokens": 6,
        "cached_input_tokens": 3,
        "estimated": True,
    }


def test_plan_text_is_the_text_when_nothing_was_called():
    assert Reply("hello").plan_text == "hello"


def test_plan_text_is_what_was_submitted_exactly_as_written():
    written = '{ "steps": [ ] , }'
    assert Reply("Sure!", (call(written),)).plan_text == written


def test_plan_text_of_arguments_that_came_as_an_object():
    assert json.loads(Reply("", (call({"city": "北京"}),)).plan_text) == {"city": "北京"}
    assert "北京" in Reply("", (call({"city": "北京"}),)).plan_text


def test_plan_text_follows_the_name_of_the_plan_tool():
    reply = Reply("", (call(PLAN, name="give_answer"),), schema_name="give_answer")
    assert reply.plan_text == PLAN


def test_plan_text_hides_no_second_submission():
    assert Reply("", (call(PLAN), call('{"steps": [1]}'))).plan_text == PLAN + '\n\n{"steps": [1]}'
    assert Reply("", (call(PLAN), call(PLAN))).plan_text == PLAN


def test_calls_of_the_applications_tools_read_as_a_plan():
    calls = (call('{"a": 1}', "read"), call({"b": 2}, "write"), call("", "ping"), call('{"cut', "lost"))
    assert json.loads(Reply("", calls).plan_text) == [
        {"tool_name": "read", "arguments": {"a": 1}},
        {"tool_name": "write", "arguments": {"b": 2}},
        {"tool_name": "ping", "arguments": {}},
        {"tool_name": "lost", "arguments": '{"cut'},
    ]


def test_spoken_text_is_what_a_listener_hears():
    calls = (call("{1", "submit_plan"), call("x", "other"), call("2}", "submit_plan"))
    assert Reply("Sure. ", calls).spoken_text == "Sure. {12}"


@pytest.mark.parametrize("reason", ["length", "max_tokens", "content_filter", "error", "SAFETY"])
def test_a_reply_that_ended_before_its_model_had(reason: str):
    reply = Reply("x", finish_reason=reason)
    assert (reply.is_cut_off, reply.may_be_cut_off) == (True, True)


@pytest.mark.parametrize(
    ("reason", "may"), [("stop", False), (None, False), ("tool_call", False), ("EOS", False), ("max_time", True)]
)
def test_other_reasons_do_not_say_that_a_reply_was_cut_off(reason: str | None, may: bool):
    reply = Reply("x", finish_reason=reason)
    assert (reply.is_cut_off, reply.may_be_cut_off) == (False, may)


def test_request_text_is_all_messages():
    request = ModelRequest((Message("system", "a"), Message("user", "b")))
    assert request.text == "a\n\nb"


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("abcd", 1), ("abcde", 2), ("明天北京", 4), ("北京ab", 3)])
def test_estimated_tokens(text, tokens):
    assert estimate_tokens(text) == tokens
    assert estimate_tokens(text, text) == 2 * tokens
