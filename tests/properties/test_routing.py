"""Whatever the tools and the request: a selection keeps its bounds and its promises, and is the same every time."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from toolplan import Tool, ToolSet, UsageError
from toolplan.check.states import may_be_same
from toolplan.prompt import estimate_tokens
from toolplan.prompt.messages import tools_text
from toolplan.route import Offer, Router

WORDS = [
    *(
        "weather",
        "mail",
        "flight",
        "order",
        "page",
        "find",
        "send",
        "list",
        "of a city",
        "event_id",
        "id",
        "查询",
        "天气",
    ),
    *("邮件", "发送", "订单", "的", "城市", "getHTTPStatus", "42", "?!", "ß", "😀", "\ud800", "e\u0301"),
]
TEXTS = st.lists(st.sampled_from(WORDS) | st.text(max_size=6), max_size=8).map(" ".join)
STATES = st.lists(st.sampled_from(["page:open", "page:{id}", "login"]), max_size=2, unique=True)
FIELDS = st.lists(st.sampled_from(["id", "event_id", "order_no", "city", "邮件编号", "path"]), max_size=3, unique=True)


@st.composite
def tool_sets(draw: st.DrawFn) -> ToolSet:
    tools: list[Tool] = []
    for number in range(draw(st.integers(0, 8))):
        takes, gives = draw(FIELDS), draw(FIELDS)
        requires, ensures = draw(STATES), draw(STATES)
        if any("{" in state for state in requires + ensures):
            takes = [*dict.fromkeys([*takes, "id"])]
        name = draw(st.sampled_from(["get_weather", "sendMail", "查天气", "list_events", "x", "event"]))
        tools.append(
            Tool.from_schema(
                f"{name}_{number}",
                draw(TEXTS),
                {"properties": {field: {"type": "string"} for field in takes}, "required": takes},
                lambda **_: None,
                {"type": "object", "title": "Event", "properties": {field: {} for field in gives}},
                requires=requires,
                ensures=ensures,
                **({"keywords": words} if (words := draw(st.lists(st.sampled_from(WORDS), max_size=2))) else {}),
            )
        )
    return ToolSet(tools)


def some_vectors(texts: Any) -> list[list[float]]:
    return [[float(len(text) % 5), float(text.count("e")), 1.0] for text in texts]


@st.composite
def routers(draw: st.DrawFn) -> tuple[ToolSet, dict[str, Any]]:
    tools = draw(tool_sets())
    some = st.lists(st.sampled_from(tools.names), max_size=2, unique=True) if tools.names else st.just([])
    options = {
        "top": draw(st.integers(1, 9)),
        "max_tokens": draw(st.none() | st.integers(1, 200)),
        "always": draw(some),
        "intents": draw(st.dictionaries(st.sampled_from(WORDS), some, max_size=2)),
        "embed": draw(st.sampled_from([None, some_vectors])),
    }
    return tools, options


@given(routers(), TEXTS)
def test_a_selection_keeps_its_promises(made: tuple[ToolSet, dict[str, Any]], request: str) -> None:
    tools, options = made
    try:
        router = Router(tools, **options)
    except UsageError:
        return  # what is always shown does not fit by itself
    selection = router.select(request)
    names = selection.tools.names
    assert set(options["always"]) <= set(names)
    assert len(names) <= router.top or (selection.is_blind and names == tools.names)
    assert selection.tokens == estimate_tokens(tools_text(selection.tools))
    assert router.max_tokens is None or selection.tokens <= router.max_tokens
    assert [name for name in tools.names if name in names] == list(names)
    assert sorted((*names, *selection.left_out)) == sorted(tools.names)
    assert {match.tool for match in selection.matches if match.is_chosen} == set(names)
    for tool in selection.tools:
        for state in tool.requires:
            makers = {each.name for each in tools if any(may_be_same(state, made) for made in each.ensures)}
            assert not makers or makers & set(names)
    again = (router.select(request).to_dict(), Router(tools, **options).select(request).to_dict())
    assert again == (selection.to_dict(), selection.to_dict())


@given(routers(), TEXTS, st.lists(TEXTS, max_size=3))
def test_an_offer_only_grows(made: tuple[ToolSet, dict[str, Any]], request: str, wanted: list[str]) -> None:
    tools, options = made
    try:
        offer = Offer(tools, Router(tools, **options), request)
    except UsageError:
        return
    for text in wanted:
        before = set(offer.tools.names)
        new = offer.search(text)
        assert set(offer.tools.names) == before | set(new)
        assert not before & set(new)
        assert sorted((*offer.tools.names, *offer.others)) == sorted(tools.names)
