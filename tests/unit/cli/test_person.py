"""Asking a person: what is shown before they decide, what counts as a yes, and what an answer is."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator

import pytest

from toolplan import CheckedPlan, ToolSet, check, parse, tool
from toolplan.approval import Card, Decision
from toolplan.cli.person import Person
from toolplan.policy import Situation, review, shipped_policy


@tool(writes="mailbox:{to}", approval="ask")
def send_email(to: str, body: str) -> str:
    return "sent"


@tool(approval="ask")
def reboot() -> str:
    return "up"


@tool(reads="safe", approval="ask")
def open_safe() -> str:
    return "gold"


TOOLS = ToolSet.of([send_email, reboot, open_safe])
PLAN = """{"steps": [
  {"tool_name": "open_safe", "arguments": {}, "result_variable": "gold"},
  {"tool_name": "send_email", "arguments": {"to": "me@example.com", "body": "found: {gold}"}},
  {"tool_name": "reboot", "arguments": {}}]}"""


@pytest.fixture
def checked() -> CheckedPlan:
    plan = parse(PLAN, tools=TOOLS)
    return check(plan, TOOLS)  # type: ignore[arg-type]


def card_of(checked: CheckedPlan) -> Card:
    return Card.of(checked, review(checked.plan, TOOLS, shipped_policy("declared"), Situation()))


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """A function that types something on standard input and ends it."""
    read, write = os.pipe()
    stdin = os.fdopen(read, encoding="utf-8")
    monkeypatch.setattr("sys.stdin", stdin)

    def put(text: str) -> None:
        os.write(write, text.encode())
        os.close(write)

    yield put
    stdin.close()


class Pauses:
    """Counts how often the view was taken off."""

    count = 0

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        self.count += 1
        yield


@pytest.mark.parametrize(
    ("answer", "allowed"),
    [("y\n", True), ("YES\n", True), ("好的\n", True), ("n\n", False), ("\n", False), ("", False), ("yep\n", False)],
)
async def test_only_a_clear_yes_allows(typed, checked, answer, allowed) -> None:
    typed(answer)
    card = card_of(checked)
    assert await Person("en", Pauses()).approve(card.asks, card) is allowed


@pytest.mark.parametrize(
    ("answer", "decision"),
    [("e\n", Decision.allow(each_call=True)), ("n not today\n", Decision.deny("not today"))],
)
async def test_other_answers(typed, checked, answer, decision) -> None:
    typed(answer)
    card = card_of(checked)
    assert await Person("en", Pauses()).approve(card.asks, card) == decision


async def test_what_is_shown_before_somebody_decides(typed, checked, capsys: pytest.CaptureFixture[str]) -> None:
    typed("y\n")
    pauses = Pauses()
    card = card_of(checked)
    await Person("en", pauses).approve(card.asks, card)
    assert pauses.count == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == (
        "\nThis plan asks for your approval before anything runs:\n\n"
        "  s1  open_safe  [changes nothing]\n"
        '      asks: its tool is declared with approval="ask"\n'
        "  s2  send_email  [changes mailbox:me@example.com]\n"
        '      to: "me@example.com"\n'
        '      body: "found: {gold}"   (from s1 (open_safe))\n'
        '      asks: its tool is declared with approval="ask"\n'
        "  s3  reboot  [may change anything]\n"
        '      asks: its tool is declared with approval="ask"\n'
        "\nWhat stands in braces comes from earlier steps.\n"
        "\ne: ask again before each call, with the values that come from earlier steps\n"
        "Allow all 3? [y/N] "
    )


async def test_an_approval_in_chinese(typed, checked, capsys: pytest.CaptureFixture[str]) -> None:
    typed("好\n")
    card = card_of(checked)
    assert await Person("zh", Pauses()).approve(card.asks[:1], card)
    assert "允许吗？[y/N]" in capsys.readouterr().err


async def test_questions_side_by_side_are_asked_one_after_the_other(typed) -> None:
    person = Person("en", Pauses())
    first = asyncio.create_task(person.answer("Which day?"))
    second = asyncio.create_task(person.answer("Which time?"))
    await asyncio.sleep(0)
    typed("Monday\n")
    assert await asyncio.wait_for(first, 10) == "Monday"
    assert await asyncio.wait_for(second, 10) is None  # the input has ended


async def test_other_work_goes_on_while_a_person_thinks(typed) -> None:
    done: list[str] = []

    async def work() -> None:
        done.append("work")
        typed("an answer\n")

    answer, _ = await asyncio.gather(Person("en", Pauses()).answer("Well?"), work())
    assert (answer, done) == ("an answer", ["work"])


async def test_a_question_can_be_given_up(typed) -> None:
    asking = asyncio.create_task(Person("en", Pauses()).answer("Well?"))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    typed("late\n")
