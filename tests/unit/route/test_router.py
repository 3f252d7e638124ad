"""Which tools a router chooses: by words, keywords and meaning, within its bounds, with what they need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pytest

from toolplan import Tool, ToolSet, UsageError, tool
from toolplan.prompt import estimate_tokens
from toolplan.prompt.messages import tools_text
from toolplan.route import Router, Selection


@dataclass
class Event:
    id: str
    title: str


@dataclass
class Ticket:
    id: str


@dataclass
class Order:
    order_no: str
    item: str


@tool(reads="weather")
def get_weather(city: str, unit: Literal["celsius", "fahrenheit"] = "celsius") -> str:
    """Tells the weather of a city.

    Args:
        city: a town or village
    """
    return ""


@tool(reads="mail")
def search_email(text: str) -> str:
    """Finds mails by their text."""
    return ""


@tool(writes="mail")
def send_email(to: str, subject: str, body: str) -> str:
    """Sends a mail."""
    return ""


@tool(reads="calendar")
def list_events(day: str) -> list[Event]:
    """Appointments of a day."""
    return []


@tool(writes="calendar")
def cancel_event(event_id: str) -> str:
    """Cancels a meeting."""
    return ""


@tool(reads="orders")
def list_orders() -> list[Order]:
    """What was bought."""
    return []


@tool(writes="orders")
def refund(order_no: str) -> str:
    """Gives money back."""
    return ""


@tool(writes="browser", ensures="page:open")
def navigate(url: str) -> str:
    """Opens an address."""
    return ""


@tool(writes="browser", requires="page:open")
def click(selector: str) -> str:
    """Presses a button."""
    return ""


@tool(reads="exchange", keywords=("汇率", "美元"))
def get_rate(base: str, quote: str) -> float:
    """Exchange rates."""
    return 1.0


TOOLS = ToolSet.of(
    [
        get_weather,
        search_email,
        send_email,
        list_events,
        cancel_event,
        list_orders,
        refund,
        navigate,
        click,
        get_rate,
    ]
)


def chosen(selection: Selection) -> set[str]:
    return set(selection.tools.names)


def best(request: str, **options: Any) -> str:
    return Router(TOOLS, top=1, **options).select(request).tools.names[0]


@pytest.mark.parametrize(
    ("request_text", "name"),
    [
        ("Will the weather hold?", "get_weather"),
        ("in what village am I?", "get_weather"),  # the description of a parameter
        ("how much is that in Fahrenheit", "get_weather"),  # a choice of a parameter
        ("find mails about rent", "search_email"),
        ("all appointments", "list_events"),
        ("what was bought", "list_orders"),
        ("美元现在多少钱", "get_rate"),
    ],
)
def test_by_words(request_text: str, name: str) -> None:
    assert best(request_text) == name


def test_by_words_in_chinese() -> None:
    @tool
    def query_weather(city: str) -> str:
        """查询城市的天气。"""
        return ""

    @tool
    def send_mail(to: str) -> str:
        """发送邮件。"""
        return ""

    router = Router([query_weather, send_mail, *TOOLS], top=2)
    selection = router.select("查一下北京明天的天气，然后给王明发一封邮件")
    assert selection.tools.names == ("query_weather", "send_mail")
    assert next(m for m in selection.matches if m.tool == "query_weather").words[0] == "天气"


def test_the_tools_stay_in_the_order_given_and_matches_are_by_rank() -> None:
    selection = Router(TOOLS, top=2).select("press the button; and the weather?")
    assert selection.tools.names == ("navigate", "click")
    assert [match.tool for match in selection.matches if match.is_chosen] == ["click", "navigate"]
    assert selection.left_out[0] == "get_weather"
    assert set(selection.left_out) | chosen(selection) == set(TOOLS.names)


def test_every_part_of_a_request_is_served() -> None:
    weather = [
        Tool.from_schema(f"weather_{n}", "weather forecast of a city by day", {"properties": {}}, lambda: None)
        for n in range(8)
    ]
    router = Router([*weather, *TOOLS], top=4)
    assert "refund" in chosen(router.select("the weather forecast of the city by day, and money back"))


def test_keywords_of_tools_and_intents() -> None:
    request = "看看邮箱里有没有新消息"
    assert Router(TOOLS, top=3).select(request).is_blind
    router = Router(TOOLS, top=3, intents={"邮箱": "search_email", "消息": ["search_email", "send_email"]})
    first, second = router.select(request).matches[:2]
    assert (first.tool, first.keywords) == ("search_email", ("邮箱", "消息"))
    assert (second.tool, second.keywords) == ("send_email", ("消息",))


def test_what_makes_a_state_comes_along() -> None:
    selection = Router(TOOLS, top=2).select("press the button")
    assert chosen(selection) == {"click", "navigate"}
    assert next(m for m in selection.matches if m.tool == "navigate").along_with == "click"
    assert "click" not in chosen(Router(TOOLS, top=1).select("press the button"))  # no room for both
    alone = Router([click, send_email, search_email], top=2).select("press the button")
    assert "click" in chosen(alone)  # nothing makes its state, so the application has to


def test_states_come_along_from_one_to_the_next() -> None:
    @tool(requires="logged-in", ensures="cart:{shop}", writes="x")
    def fill_cart(shop: str) -> str:
        return ""

    @tool(ensures="logged-in", writes="x")
    def log_in() -> str:
        return ""

    @tool(requires="cart:{name}", writes="x")
    def pay_now(name: str) -> str:
        """Checkout."""
        return ""

    selection = Router([fill_cart, log_in, pay_now, *TOOLS], top=3).select("checkout")
    assert chosen(selection) == {"pay_now", "fill_cart", "log_in"}


def test_what_gives_a_handle_comes_along_where_there_is_room() -> None:
    assert chosen(Router(TOOLS, top=2).select("cancel it")) == {"cancel_event", "list_events"}  # `id` of an `Event`
    assert chosen(Router(TOOLS, top=2).select("give me my money")) == {"refund", "list_orders"}  # the same name
    assert chosen(Router(TOOLS, top=1).select("cancel it")) == {"cancel_event"}


def test_what_comes_along_has_what_it_needs_too() -> None:
    @tool(reads="tickets", requires="page:open")
    def list_tickets() -> list[Ticket]:
        """Open cases."""
        return []

    @tool(writes="tickets")
    def close_ticket(ticket_id: str) -> str:
        """Settles it."""
        return ""

    tools = [list_tickets, close_ticket, *TOOLS]
    assert chosen(Router(tools, top=3).select("settle it")) == {"close_ticket", "list_tickets", "navigate"}
    assert "list_tickets" not in chosen(Router(tools, top=2).select("settle it"))
    related = Router([click, navigate, search_email, send_email], top=2).select("recipient subject body")
    assert "click" not in chosen(related) or "navigate" in chosen(related)


def test_what_is_always_shown_stays_although_something_fits_better() -> None:
    @tool(ensures="page:open", writes="browser")
    def reload(times: int) -> str:
        """Loads the page once more, from the beginning, with everything that is on it, however long that takes."""
        return ""

    tools = [navigate, reload, click, *TOOLS]
    room = estimate_tokens(tools_text(ToolSet.of([navigate, click])))
    router = Router(tools, top=2, always=["click"], max_tokens=room)
    assert chosen(router.select("reload the page")) == {"click", "navigate"}


def test_the_application_says_what_goes_together() -> None:
    router = Router(TOOLS, top=2, along={"send_email": "search_email"})
    assert chosen(router.select("send it")) == {"send_email", "search_email"}


def test_room_that_is_left_goes_to_related_tools() -> None:
    selection = Router(TOOLS, top=3).select("subject and body")
    assert chosen(selection) >= {"send_email", "search_email"}  # both are about mail
    assert "click" not in chosen(selection)


@pytest.mark.parametrize(
    "request_", ["你好", "提醒我下午3点开会", "Will it hail?", "Сколько будет 17% от 230?", "What's 17% of 230?", ""]
)
def test_where_no_word_tells_all_tools_are_shown_that_there_is_room_for(
    request_: str, caplog: pytest.LogCaptureFixture
) -> None:
    router = Router(TOOLS, top=3, always=["get_rate"])
    selection = router.select(request_)
    assert (selection.is_blind, selection.tools.names) == (True, TOOLS.names)
    router.select(request_)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "keywords" in caplog.text
    assert "embed" in caplog.text
    many = [
        *TOOLS,
        *(
            Tool.from_schema(f"q{chr(97 + n // 26)}{chr(97 + n % 26)}", "a" * 40, {"properties": {}}, lambda: None)
            for n in range(300)
        ),
    ]
    some = Router(many, top=3, always=["get_rate"]).select(request_)
    assert (some.is_blind, len(some.tools)) == (True, 3)
    assert "get_rate" in chosen(some)
    tight = Router(TOOLS, top=3, max_tokens=60).select(request_)
    assert 0 < tight.tokens <= 60


def test_a_request_whose_words_tell_is_not_blind() -> None:
    for request in ("the weather", "press 按钮", "press 100 按钮", "weather in Köln"):
        assert not Router(TOOLS, top=3).select(request).is_blind
    assert not Router(TOOLS, top=3, intents={"邮件": "send_email"}).select("发邮件给小王").is_blind


def test_no_place_stays_free() -> None:
    assert len(Router(TOOLS, top=3).select("press the button").tools) == 3
    assert not Router(TOOLS, top=3).select("hail", without=["click"]).tools  # for more, only what is found


def test_few_tools_are_all_chosen() -> None:
    selection = Router(TOOLS, top=10).select("你好")
    assert selection.tools.names == TOOLS.names
    assert (selection.left_out, selection.tokens_saved) == ((), 0)


def test_tokens() -> None:
    everything = estimate_tokens(tools_text(TOOLS))
    selection = Router(TOOLS, top=9, max_tokens=60).select("weather, mail, appointments, meeting, money, button")
    assert selection.tokens == estimate_tokens(tools_text(selection.tools)) <= 60
    assert (selection.tokens_of_all, selection.tokens_saved) == (everything, everything - selection.tokens)
    assert len(selection.tools) > 1
    letters = Router(TOOLS, top=9, max_tokens=60, count=len).select("weather, mail")
    assert len(tools_text(letters.tools)) <= 60


def test_what_is_shown_already_is_not_chosen_again() -> None:
    router = Router(TOOLS, top=2, always=["get_rate"])
    assert chosen(router.select("mails", without=["search_email", "get_rate"])) == {"send_email"}


def vectors(texts: Any) -> list[list[float]]:
    """Meaning as a small table: how much a text is about messages, and about the sky."""
    about = {"mail": (1, 0), "post": (1, 0), "letter": (1, 0), "weather": (0, 1), "sky": (0, 1), "umbrella": (0, 1)}
    found = []
    for text in texts:
        hits = [vector for word, vector in about.items() if word in text.lower()]
        found.append([sum(hit[0] for hit in hits), sum(hit[1] for hit in hits), 0.1])
    return found


def test_by_meaning() -> None:
    router = Router(TOOLS, top=2, embed=vectors)
    selection = router.select("Do I need an umbrella, and is there post?")
    assert "get_weather" in chosen(selection)
    assert chosen(selection) & {"search_email", "send_email"}
    match = next(m for m in selection.matches if m.tool == "get_weather")
    assert match.likeness == pytest.approx(1.0)
    assert match.words == ()


def test_by_meaning_with_arrays() -> None:
    numpy = pytest.importorskip("numpy", reason="not run: numpy is not installed")
    lists = Router(TOOLS, top=3, embed=vectors).select("umbrella")
    arrays = Router(TOOLS, top=3, embed=lambda texts: numpy.array(vectors(texts))).select("umbrella")
    assert [match.tool for match in arrays.matches] == [match.tool for match in lists.matches]


def test_embeddings_that_are_too_few() -> None:
    with pytest.raises(UsageError, match="10 texts and gave 1 vectors"):
        Router(TOOLS, top=2, embed=lambda texts: [[1.0]]).select("hello")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"top": 0}, "`top` is 0"),
        ({"top": True}, "`top` is True"),
        ({"max_tokens": 0}, "`max_tokens` is 0"),
        ({"always": ["get_wether"]}, "`always` names `get_wether`.*did you mean `get_weather`"),
        ({"intents": {"天气": "nothing_like_it"}}, "`intents` names `nothing_like_it`"),
        ({"intents": {" ": "click"}}, "empty keyword"),
        ({"along": {"klick": "navigate"}}, "`along` names `klick`"),
        ({"along": {"click": ["navigat"]}}, "did you mean `navigate`"),
        ({"always": ["click"], "top": 1}, "2 tools are always shown, more than `top=1` allows: `click`, `navigate`"),
        ({"always": ["click", "send_email"], "max_tokens": 5}, "more than `max_tokens=5` allows"),
    ],
)
def test_what_cannot_be(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Router(TOOLS, **options)


def test_no_tools() -> None:
    selection = Router([], embed=vectors).select("hello")
    assert (selection.tools.names, selection.tokens, selection.tokens_saved) == ((), 0, 0)


def test_as_json() -> None:
    document = Router(TOOLS, top=2).select("press the button").to_dict()
    assert document["tools"] == ["navigate", "click"]
    assert document["matches"][0] == {
        "tool": "click",
        "chosen": True,
        "score": document["matches"][0]["score"],
        "words": ["button", "press"],
        "keywords": [],
        "likeness": None,
        "always": False,
        "along_with": None,
    }
    assert document["tokens"] + document["tokens_saved"] == document["tokens_of_all"]


def test_keywords_are_declared() -> None:
    def search(text: str) -> str:
        return ""

    assert Tool.of(search).keywords == ()
    assert Tool.of(tool(keywords="邮箱")(search)).keywords == ("邮箱",)
    assert Tool.of(search, keywords=["邮箱", "inbox"]).to_json()["keywords"] == ["邮箱", "inbox"]
    assert Tool.of(search, keywords=("a",)).changed(description="x").keywords == ("a",)
    with pytest.raises(UsageError, match="`keywords` must be"):
        tool(keywords=["", "x"])(search)
