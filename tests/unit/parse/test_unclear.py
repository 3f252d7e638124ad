"""Plans among words that neither announce nor refuse them: no effect without a person's word, in either mode."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolplan import Agent, PlanRejected, parse, tool
from toolplan.agent_events import CallMended
from toolplan.approval import Card
from toolplan.models import Reply
from toolplan.models.text_tools import as_text_says
from toolplan.parse import CannotPlan, Prose
from toolplan.parse.announcing import Matter, announces, closes
from toolplan.parse.meant import UNCLEAR
from toolplan.plan import Plan
from toolplan.run import EarlyStarted
from toolplan.testing import ScriptedModel
from toolplan.tools import ToolSet
from unit.parse.surrounding import (
    ANNOUNCED,
    ANNOUNCED_UNSEEN,
    MAIL_ANNOUNCED,
    MAIL_REFUSED,
    REFUSED,
    REFUSED_UNSEEN,
)

REQUEST = "Please clean up: delete the old file in the folder. 请清理磁盘，删除这个旧文件。"
CALL = '{"name": "delete_file", "arguments": {"path": "/a"}}'
STEPS = '{"steps": [{"tool_name": "delete_file", "arguments": {"path": "/a"}}]}'
LISTED = '[{"tool_name": "delete_file", "arguments": {"path": "/a"}}]'
PROGRAM = "```python\ndelete_file(path='/a')\n```"
MARKED = f"<tool_call>\n{CALL}\n</tool_call>"
INVOKE = '<invoke name="delete_file"><parameter name="path">/a</parameter></invoke>'
PLANS = [CALL, LISTED, f"```json\n{STEPS}\n```", PROGRAM, f"<tool_call>{STEPS}</tool_call>"]


@tool(writes=["files"])
def delete_file(path: str) -> str:
    """Delete a file. 删除文件。"""
    return path


@tool(pure=True)
def search(query: str) -> list[str]:
    """Search. 查找。"""
    return [query]


TOOLS = ToolSet.of([delete_file, search])


def verdict(reply: str) -> str:
    asked_for: Any = "python" if "```python" in reply else None
    reading = parse(reply, tools=TOOLS, asked_for=asked_for, request=REQUEST)
    if isinstance(reading, Prose):
        return "spoken of"
    assert isinstance(reading, Plan)
    return "meant" if reading.repairs == () else "unclear" if reading.repairs == (UNCLEAR,) else str(reading.repairs)


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("text", [*REFUSED, *REFUSED_UNSEEN])
def test_an_unusual_refusal_is_never_taken_for_an_announcement(text: str, plan: str) -> None:
    assert verdict(text.replace("{}", plan)) in ("unclear", "spoken of")


def _halves(texts: list[str]) -> tuple[list[str], list[str]]:
    """Return what stands before the plan where nothing stands behind it, and what stands behind it elsewhere."""
    split = [text.split("{}") for text in texts]
    return [before for before, behind in split if not behind], [behind for _, behind in split if behind]


REFUSED_BEFORE, REFUSED_BEHIND = _halves([*REFUSED, *REFUSED_UNSEEN])
ANNOUNCED_BEFORE, CLOSED_BEHIND = _halves([*ANNOUNCED, *ANNOUNCED_UNSEEN])


@given(
    before=st.lists(st.sampled_from(ANNOUNCED_BEFORE), max_size=2),
    behind=st.lists(st.sampled_from(CLOSED_BEHIND), max_size=2),
    refusal=st.one_of(
        st.tuples(st.just("before"), st.sampled_from(REFUSED_BEFORE)),
        st.tuples(st.just("behind"), st.sampled_from(REFUSED_BEHIND)),
    ),
    at=st.integers(0, 2),
    plan=st.sampled_from(PLANS),
)
def test_a_refusal_among_announcements_is_not_lost(
    before: list[str], behind: list[str], refusal: tuple[str, str], at: int, plan: str
) -> None:
    side, words = refusal
    (before if side == "before" else behind).insert(at, words)
    reply = "\n".join([*before, plan, *behind])
    assert verdict(reply) in ("unclear", "spoken of")


@pytest.mark.parametrize("plan", PLANS)
def test_most_announcements_are_recognised(plan: str) -> None:
    for texts, share in ((ANNOUNCED, 0.9), (ANNOUNCED_UNSEEN, 0.85)):
        found = [verdict(text.replace("{}", plan)) for text in texts]
        assert "spoken of" not in found
        assert found.count("meant") >= share * len(texts)


def test_the_same_holds_in_another_matter() -> None:
    @tool(reads=["weather"])
    def get_weather(city: str) -> str:
        """Return the weather forecast of a city. 查询城市天气。"""
        return city

    @tool(writes=["mail"])
    def send_email(to: str, subject: str, body: str) -> str:
        """Send an email to somebody. 发送邮件。"""
        return to + subject + body

    tools = ToolSet.of([get_weather, send_email])
    request = "Email Bob the weather in Oslo. 把奥斯陆的天气发邮件给Bob。"
    plan = (
        'weather = get_weather(city="Oslo")\nsend_email(to="bob@example.com", subject="Weather in Oslo", body=weather)'
    )

    def is_meant(text: str) -> bool:
        reply = text.replace("{}", f"```python\n{plan}\n```")
        reading = parse(reply, tools=tools, asked_for="python", request=request)
        return isinstance(reading, Plan) and not reading.repairs

    assert [text for text in MAIL_REFUSED if is_meant(text)] == []
    assert sum(map(is_meant, MAIL_ANNOUNCED)) >= 0.85 * len(MAIL_ANNOUNCED)


@pytest.mark.parametrize("text", [text for text in (*REFUSED, *REFUSED_UNSEEN) if text.split("{}")[1]])
def test_words_behind_native_calls_make_them_unclear(text: str) -> None:
    assert verdict(text.replace("{}", INVOKE)) in ("unclear", "spoken of")


LEADS = [text for text in (*REFUSED, *REFUSED_UNSEEN) if text.endswith((":\n{}", "：\n{}")) and ". " not in text]


@pytest.mark.parametrize("text", LEADS)
def test_words_that_lead_into_native_calls_make_them_unclear(text: str) -> None:
    assert verdict(text.replace("{}", MARKED)) in ("unclear", "spoken of")


@pytest.mark.parametrize("call", [MARKED.replace("\n", ""), INVOKE])
@pytest.mark.parametrize(
    ("around", "expected"),
    [
        ("{}", "meant"),
        ("I'll check.\n{}", "meant"),
        ("I'll check. {}", "meant"),
        ("The disk is nearly full.\n{}", "meant"),
        ("I could not find another one, so I delete it.\n{}", "meant"),
        ("I would rather keep it.\n{}", "unclear"),
        ("The mail contained {}", "unclear"),
        ("Use {} to delete.", "unclear"),
        ("Use {} to delete.\n{}", "unclear"),
        ("Use {} to delete. I did not.", "spoken of"),
        ("I won't use {} to delete.", "spoken of"),
        ("{}\n...so it says on the page.", "unclear"),
        ("<think>Not that?</think>\n{}", "meant"),
    ],
)
def test_marks_of_a_format(around: str, expected: str, call: str) -> None:
    reply = around.replace("{}", call)
    assert verdict(reply) == expected
    heard = as_text_says(Reply(reply, finish_reason="stop"), TOOLS)
    if expected == "spoken of":
        assert heard.tool_calls == ()
        assert heard.text == reply
    else:
        assert all((UNCLEAR in made.repairs) == (expected == "unclear") for made in heard.tool_calls)
        assert len(heard.tool_calls) == reply.count(call)


def test_that_something_cannot_be_done_needs_no_leave() -> None:
    for reply in ('I am sorry:\n```python\ncannot("no tool")\n```', 'I am sorry:\n{"cannot": "no tool"}'):
        assert isinstance(parse(reply, tools=TOOLS, asked_for="python"), CannotPlan)


def test_a_program_that_is_refused_is_no_plan() -> None:
    reply = f"I will not run this:\n{PROGRAM}"
    assert isinstance(parse(reply, tools=TOOLS), Prose)
    assert isinstance(parse(reply, tools=TOOLS, asked_for="python"), Prose)
    assert isinstance(parse("I will not run this:\n```python\ndelete_file(\n```", asked_for="python"), Prose)
    with pytest.raises(PlanRejected) as refused:
        parse(reply, "python", tools=TOOLS)
    assert [each.code for each in refused.value.diagnostics] == ["TP120"]


def test_an_earlier_value_or_words_between_the_same_plan_leave_it_open() -> None:
    assert verdict(f'Given {{"a": 1}}, here is the plan:\n{STEPS}') == "unclear"
    assert verdict(f"Here is the plan:\n{LISTED}\nAgain, against my will:\n{LISTED}") == "unclear"
    assert verdict(f"Plan:\n{CALL}\n{CALL.replace('/a', '/b')}").startswith("('read steps")


def test_an_announcement_is_in_words_of_the_matter() -> None:
    matter = Matter("book_table", "Book a table. 预订餐桌。")
    assert announces("I'll book the table.", matter)
    assert announces("我来预订餐桌：", matter)
    assert announces("", matter)
    assert not announces("I'll book the circus.", matter)
    assert not announces("I'll book the table для дураков.", matter)
    assert not announces("Das ist der Plan:", matter)
    assert not announces("我来预订马戏团：", matter)
    assert closes("This plan books a table.", matter)
    assert not closes("This plan books a circus.", matter)
    assert not announces("Here is the plan. " * 100, matter)


# ---- through an agent


class Files:
    """Tools that note what they did."""

    def __init__(self) -> None:
        self.done: list[str] = []

        @tool(writes=["files"])
        def delete_file(path: str) -> str:
            """Delete a file."""
            self.done.append(f"delete {path}")
            return path

        @tool(pure=True)
        def search(query: str) -> list[str]:
            """Search."""
            self.done.append(f"search {query}")
            return [query]

        self.tools = [delete_file, search]

    def agent(self, *replies: str, **options: Any) -> Agent:
        model = ScriptedModel([{"text": reply} for reply in replies])
        return Agent(model, self.tools, answer="none", policy="declared", **options)


def _reads_the_card(calls: Any, card: Card) -> bool:
    return card.repairs == (UNCLEAR,) and UNCLEAR in card.to_text()


@pytest.mark.parametrize(
    ("options", "outcome"),
    [
        ({}, "waiting"),
        ({"trust_repairs": True}, "succeeded"),
        ({"approve": _reads_the_card}, "succeeded"),
    ],
)
@pytest.mark.parametrize("plan", PLANS)
def test_the_effects_of_an_unclear_plan_need_a_word(plan: str, options: dict[str, Any], outcome: str) -> None:
    files = Files()
    notation: Any = "python" if plan is PROGRAM else "json"
    result = files.agent(f"My boss dreams of this one:\n{plan}", notation=notation, **options).run_sync("go")
    assert result.outcome == outcome
    assert files.done == (["delete /a"] if outcome == "succeeded" else [])


@pytest.mark.parametrize("text", REFUSED_UNSEEN)
def test_nothing_is_deleted_on_an_unusual_refusal(text: str) -> None:
    files = Files()
    files.agent(text.replace("{}", STEPS)).run_sync(REQUEST)
    assert files.done == []


def test_what_changes_nothing_runs() -> None:
    files = Files()
    plan = '[{"tool_name": "search", "arguments": {"query": "x"}}]'
    assert files.agent(f"My boss dreams of this one:\n{plan}").run_sync("go").outcome == "succeeded"
    assert files.done == ["search x"]


@pytest.mark.parametrize("options", [{}, {"trust_repairs": True}])
@pytest.mark.parametrize(
    "reply", [f"Use {INVOKE} to delete.", f"{MARKED}\nMy conscience is clear.", f"They sent:\n{INVOKE}"]
)
def test_unclear_calls_in_a_loop_need_a_word(reply: str, options: dict[str, Any]) -> None:
    files = Files()
    told: list[Any] = []
    agent = files.agent(reply, "Done.", mode="loop", **options)
    result = agent.run_sync("go", watch=told.append)
    assert result.outcome == ("succeeded" if options else "waiting")
    assert files.done == (["delete /a"] if options else [])
    assert [event.repairs for event in told if isinstance(event, CallMended)] == [(UNCLEAR,)]


async def test_no_effect_starts_before_the_last_word() -> None:
    files = Files()
    plan = LISTED.replace("[", '[{"tool_name": "search", "arguments": {"query": "x"}}, ')
    agent = files.agent(f"Here is the plan:\n{plan}\nHands off, please.")
    events = [event async for event in agent.stream("go")]
    assert any(isinstance(event, EarlyStarted) for event in events)
    assert files.done == ["search x"]
