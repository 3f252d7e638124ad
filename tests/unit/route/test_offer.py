"""What one request's model is shown grows by what its replies need, and not for ever."""

from __future__ import annotations

from typing import Any

import pytest

from toolplan import Plan, Tool, ToolSet, parse
from toolplan.parse import CannotPlan, Prose
from toolplan.route import Offer, Router

TOOLS = ToolSet.of(
    Tool.from_schema(name, description, {"properties": {}}, lambda: None)
    for name, description in {
        "get_weather": "the weather of a city",
        "send_email": "sends a mail",
        "send_sms": "sends a short text to a phone",
        "pay": "transfers money",
        "book_hotel": "reserves a room",
        "book_flight": "reserves a seat in a plane",
    }.items()
)


def offer(request: str = "the weather", top: int = 1, **options: Any) -> Offer:
    return Offer(TOOLS, Router(TOOLS, top=top), request, **options)


def plan(*names: str) -> Plan:
    reading = parse([{"tool_name": name, "arguments": {}} for name in names], tools=TOOLS)
    assert isinstance(reading, Plan)
    return reading


def test_without_a_router_everything_is_shown() -> None:
    everything = Offer(TOOLS, None, "hello")
    assert everything.tools is TOOLS
    assert not everything.is_partial
    assert everything.others == ()
    assert everything.needed(plan("pay")) == ()
    assert everything.needed(CannotPlan("no", ("a tool",))) == ()
    assert everything.search("pay") == ()


def test_a_plan_needs_the_tools_that_it_calls() -> None:
    shown = offer()
    assert shown.tools.names == ("get_weather",)
    assert shown.hides("pay")
    assert not shown.hides("no_such_tool")
    assert shown.needed(plan("get_weather", "no_such_tool")) == ()
    assert shown.needed(plan("pay", "get_weather", "send_sms", "pay")) == ("pay", "send_sms")
    assert shown.tools.names == ("get_weather", "send_sms", "pay")
    assert shown.needed(plan("pay")) == ()
    assert shown.reasked == 1


def test_a_plan_is_asked_for_twice_at_most_for_the_tools_it_names() -> None:
    shown = offer()
    assert [len(shown.needed(plan(name))) for name in ("pay", "send_sms", "send_email")] == [1, 1, 0]
    assert shown.reasked == 2


@pytest.mark.parametrize(
    ("reply", "new"),
    [
        (CannotPlan("There is no tool that transfers money.", ("a tool that transfers money",)), ("pay",)),
        (CannotPlan("I need to see it.", ("send_sms",)), ("send_sms",)),
        (CannotPlan("I need to see `send_sms` and `pay`."), ("send_sms", "pay")),
        (CannotPlan("I need pay."), ("pay",)),
        (CannotPlan("缺少转账工具", ("转账",)), ("send_email",)),  # no word tells: the likeliest of the others
        (CannotPlan("Only results can tell."), ()),
        (Prose("Hello!"), ()),
    ],
)
def test_what_is_missing_is_looked_for_once(reply: CannotPlan | Prose, new: tuple[str, ...]) -> None:
    shown = offer()
    assert shown.needed(reply) == new
    assert shown.needed(reply) == ()
    assert shown.reasked == bool(new)


def test_a_chinese_name_is_found_in_chinese_text() -> None:
    tools = ToolSet.of([*TOOLS, Tool.from_schema("查车票", "a", {"properties": {}}, lambda: None)])
    shown = Offer(tools, Router(tools, top=1), "the weather")
    assert shown.needed(CannotPlan("需要先看查车票工具")) == ("查车票",)


def test_others_are_named_by_rank() -> None:
    assert offer("reserve a room, or a plane", top=1).others[0] in ("book_flight", "book_hotel")
    shown = offer()
    shown.show(["pay"])
    assert "pay" not in shown.others
    assert len(shown.others) == 4


def test_what_the_conversation_has_used_is_shown_again() -> None:
    shown = offer("and the weather there?", top=2, used=("pay", "gone", "send_sms", "book_hotel"))
    assert shown.tools.names == ("get_weather", "send_email", "send_sms", "pay")


def test_what_is_shown_has_what_it_needs() -> None:
    tools = ToolSet.of(
        [
            *TOOLS,
            Tool.from_schema("open_page", "a", {"properties": {}}, lambda: None, ensures="page"),
            Tool.from_schema("press", "b", {"properties": {}}, lambda: None, requires="page"),
        ]
    )
    shown = Offer(tools, Router(tools, top=1), "the weather")
    assert set(shown.show(["press"])) == {"press", "open_page"}


def test_searching() -> None:
    shown = offer()
    assert shown.search("reserves a room") == ("book_hotel",)
    assert shown.search('{"wanted": "pay, send_sms or reserve a seat in a plane"}') == (
        "pay",
        "send_sms",
        "book_flight",
    )
    assert shown.search("something else") == ()
