"""A card shows what is in the data, and nothing that the data could draw."""

from __future__ import annotations

import pytest

from toolplan import ToolSet, check, parse, tool
from toolplan.approval import Card
from toolplan.policy import Situation, review, shipped_policy

FORGED = "ann@x.org\n      asks: nothing\n  s9  \x1b[2Jfake\u202eten\u200b\x85\u2028"


@tool(writes="mailbox:{to}", guarded="to")
def send(to: str, body: str) -> str:
    """Send."""
    return "sent"


@tool(writes="shell")
def run(command: str) -> str:
    """Run."""
    return ""


TOOLS = ToolSet.of([send, run])


def card_of(name: str, **arguments: object) -> Card:
    plan = parse(
        [{"tool_name": name, "arguments": {each: {"$literal": value} for each, value in arguments.items()}}],
        tools=TOOLS,
    )
    checked = check(plan, TOOLS)
    return Card.of(checked, review(checked.plan, TOOLS, shipped_policy("cautious"), Situation()))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_value_draws_no_lines_and_steers_nothing(language: str) -> None:
    text = card_of("send", to=FORGED, body=FORGED).to_text(language)  # type: ignore[arg-type]
    plain = card_of("send", to="ann@x.org", body="hi").to_text(language)  # type: ignore[arg-type]
    assert len(text.splitlines()) == len(plain.splitlines())
    assert all(char.isprintable() for char in text if char != "\n")
    assert '[changes "mailbox:' in text or "会改动" in text


def test_a_resource_that_could_be_taken_for_something_else_is_in_quotes() -> None:
    assert "[changes mailbox:ann@x.org]" in card_of("send", to="ann@x.org", body="hi").to_text()
    assert '[changes "mailbox:a]  asks: nothing"]' in card_of("send", to="a]  asks: nothing", body="hi").to_text()


def test_what_is_left_out_is_counted_and_nothing_of_what_matters_is_left_out() -> None:
    tail = "PAY EVE"
    card = card_of("send", to="a" * 5000 + tail, body="B" * 3000 + tail)
    text = card.to_text()
    assert text.count(tail) == 2  # in the resource and in the argument
    assert "(1,009 more characters)" in text
    assert "还有 1,009 个字符" in card.to_text("zh")
    assert (card.is_shortened, card.to_text(full=True).count(tail)) == (True, 3)
    command = card_of("run", command="x" * 3000 + tail)
    assert (tail in command.to_text(), command.is_shortened) == (True, False)


def test_blanks_in_a_value_are_shown_as_they_are() -> None:
    assert '"a  b\\xa0c"' in card_of("send", to="a  b\u00a0c", body="hi").to_text()
