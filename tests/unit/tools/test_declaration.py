"""What is declared beside a tool is checked when it is written."""

import re

import pytest

from toolplan.effects import INDEPENDENT, PURE, UNDECLARED
from toolplan.errors import UsageError
from toolplan.plan import Retry
from toolplan.tools import RateLimit, Tool, ToolSet, tool


def send(to: str, body: str = "") -> None:
    """Send."""


def test_nothing_declared():
    made = Tool.of(send)
    assert made.effects is UNDECLARED
    assert (made.idempotent, made.retry, made.approval, made.runs_in) == (False, None, None, "thread")
    assert (made.requires, made.ensures, made.rate_limit, made.untrusted) == ((), (), None, False)


def test_everything_declared():
    made = Tool.of(
        send,
        name="mail",
        description="Mails.",
        reads=["contacts", "me"],
        writes="mailbox:{to}",
        idempotent=True,
        timeout_seconds=2,
        retry=3,
        max_concurrency=4,
        rate_limit="10/min",
        requires="online",
        ensures=["sent:{to}"],
        approval="ask",
        untrusted=True,
        runs_in="loop",
        probe=send,
        compensate=send,
    )
    assert (made.name, made.description) == ("mail", "Mails.")
    assert (made.effects.reads, made.effects.writes) == (("contacts", "me"), ("mailbox:{to}",))
    assert made.retry == Retry(attempts=3)
    assert made.rate_limit == RateLimit(10, 60.0)
    assert (made.requires, made.ensures) == (("online",), ("sent:{to}",))
    assert (made.timeout_seconds, made.max_concurrency, made.approval) == (2, 4, "ask")
    assert (made.probe, made.compensate, made.runs_in) == (send, send, "loop")
    assert made.to_json()["rate_limit"] == [10, 60.0]


@pytest.mark.parametrize(
    ("keywords", "said"),
    [
        ({"read": "x"}, "`tool` has no keyword `read`; did you mean `reads`?"),
        ({"pure": True, "reads": "x"}, "either `pure` or has `reads`/`writes`"),
        (
            {"writes": "mail:{recipient}"},
            "`writes='mail:{recipient}'` speaks of `{recipient}`, but the parameters are: ",
        ),
        ({"reads": "mail:{bdy}"}, "did you mean `body`?"),
        ({"ensures": "sent:{x}"}, "`ensures='sent:{x}'` speaks of `{x}`"),
        ({"writes": "mail:{}"}, "unmatched or empty brace"),
        ({"name": "two words"}, "a tool cannot be named 'two words'"),
        ({"timeout_seconds": 0}, "`timeout_seconds` must be a number above 0, but is 0"),
        ({"retry": 0}, "`retry` must be a whole number of at least 1, but is 0"),
        ({"max_concurrency": 1.5}, "`max_concurrency` must be a whole number"),
        ({"rate_limit": "many"}, '`rate_limit` must be like "10/min"'),
        ({"rate_limit": (0, 1)}, "`rate_limit` must be a whole number"),
        ({"approval": "maybe"}, "`approval` must be one of 'allow', 'ask', 'deny', but is 'maybe'"),
        ({"available": "WEATHER_KEY"}, '`available` must be "env:VARIABLE"'),
        ({"requires": [""]}, "`requires` must be a state"),
        ({"probe": "x"}, "`probe` must be a function"),
        ({"runs_in": "space"}, "`runs_in` must be one of"),
        ({"description": 3}, "`description` must be text"),
    ],
)
def test_refused_where_it_is_written(keywords, said):
    def mine(to: str, body: str = ""): ...

    with pytest.raises(UsageError, match=re.escape(said)):
        tool(**keywords)(mine)
    with pytest.raises(UsageError, match=re.escape(said)):
        Tool.of(mine, **keywords)


def test_placeholders_are_arguments_not_parameters():
    from typing import Annotated

    from pydantic import Field

    @tool(writes="mail:{from}")
    def send(source: Annotated[str, Field(alias="from")]): ...

    assert Tool.of(send).effects.placeholders == {"from"}
    with pytest.raises(UsageError, match=r"speaks of `{source}`, but the parameters are: `from`"):
        Tool.of(send, writes="mail:{source}")

    @tool(writes="row:{table}")
    def insert(**columns: str): ...

    assert Tool.of(insert).effects.writes == ("row:{table}",)


def test_later_declarations_replace_only_what_they_say():
    @tool(writes="mail:{to}", approval="ask", retry=2)
    def mail(to: str): ...

    other = Tool.of(mail, approval="deny")
    assert (other.effects.writes, other.approval, other.retry) == (("mail:{to}",), "deny", Retry(attempts=2))
    third = other.changed(name="post", reads="x")
    assert (third.name, third.effects.reads, third.effects.writes, third.approval) == ("post", ("x",), (), "deny")
    assert other.name == "mail"
    assert third.signature.startswith("post(")
    assert Tool.of(mail).with_effects(INDEPENDENT).effects is INDEPENDENT
    assert Tool.of(mail, pure=True).effects == PURE


def test_one_function_can_be_two_tools():
    def fetch(url: str) -> str:
        return url

    tools = ToolSet.of([tool(fetch, name="a", pure=True), tool(fetch, name="b", writes="web")])
    assert tools.names == ("a", "b")
    assert tools["a"].effects == PURE
    assert tools["b"].effects.writes == ("web",)


def test_bound_methods_and_builtins_come_back_as_tools():
    class Box:
        def get(self, n: int) -> int:
            return n

    made = tool(Box().get, name="take", reads="box")
    assert isinstance(made, Tool)
    assert made(3) == 3
    assert ToolSet.of([made]).names == ("take",)


def test_misused_decorator():
    with pytest.raises(UsageError, match=r"`tool` decorates a function, but found 'weather'"):
        tool("weather")  # type: ignore[call-overload]
    with pytest.raises(UsageError, match="`tool` decorates a function, but found <class"):
        tool(int)


def test_availability(monkeypatch):
    monkeypatch.setenv("TOOLPLAN_TEST_KEY", "k")
    assert Tool.of(send).why_unavailable() is None
    assert Tool.of(send, available="env:TOOLPLAN_TEST_KEY").why_unavailable() is None
    monkeypatch.setenv("TOOLPLAN_TEST_KEY", "")
    assert "`TOOLPLAN_TEST_KEY` is not set" in (
        Tool.of(send, available="env:TOOLPLAN_TEST_KEY").why_unavailable() or ""
    )
    assert Tool.of(send, available="cmd:python3").why_unavailable() is None
    assert "`no-such-cmd` is not installed" in (Tool.of(send, available="cmd:no-such-cmd").why_unavailable() or "")
    assert Tool.of(send, available=lambda: True).why_unavailable() is None
    assert Tool.of(send, available=lambda: False).why_unavailable() == "`send` says that it is not available"
    assert Tool.of(send, available=lambda: "no licence").why_unavailable() == "no licence"
    assert Tool.of(send, available=lambda: False).to_json()["available"] is False


@pytest.mark.parametrize(
    ("keywords", "said"),
    [
        ({"writes": 5}, "`writes` must be a resource"),
        ({"reads": [5]}, "`reads` must be a resource"),
        ({"pure": "yes"}, "`pure` must be True or False, but is 'yes'"),
        ({"writes": "x", "idempotent": "yes"}, "`idempotent` must be True or False, but is 'yes'"),
        ({"requires": 5}, "`requires` must be a state"),
        ({"keywords": 5}, "`keywords` must be a name"),
        ({"nothing_happened": 5}, "`nothing_happened` must be exception classes"),
    ],
)
def test_a_keyword_of_another_kind_says_what_is_expected(keywords: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        tool(**keywords)(lambda: None)
