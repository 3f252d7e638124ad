"""A turn of a loop and a person: what is asked in which order, what was changed, and what happened before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from toolplan import Agent, tool
from toolplan.approval import Card, Decision
from toolplan.journal import Journal
from toolplan.journal.waiting import answer, approve
from toolplan.models import FunctionModel, Reply, ToolCallPart


class Office:
    """Tools that write down what they did, beside the questions; `told` is what the model heard of its calls."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.told: list[list[str]] = []

        @tool(reads="files")
        def read(path: str) -> str:
            self.log.append(f"read {path}")
            return f"text of {path}"

        @tool(reads="disk")
        def broken(path: str) -> str:
            raise ValueError("cannot be read")

        @tool(writes="files:{path}")
        def delete(path: str) -> str:
            self.log.append(f"delete {path}")
            return f"{path} is gone"

        @tool(writes="mailbox:{to}")
        def send(to: str, count: int = 1) -> str:
            self.log.append(f"send {to}")
            return f"sent to {to}"

        self.tools = [read, broken, delete, send]

    def ask(self, question: str) -> str | None:
        self.log.append(f"asked {question}")
        return "yes"

    def agent(self, *turns: list[tuple[str, dict[str, Any]]], **options: Any) -> Agent:
        def reply(request: Any) -> Reply | str:
            self.told.append([part.content for m in request.messages for part in m.tool_results])
            place = sum(message.role == "assistant" for message in request.messages)
            if place >= len(turns):
                return "done"
            return Reply("", tuple(ToolCallPart(f"c{n}", *call) for n, call in enumerate(turns[place])))

        given: dict[str, Any] = {"tools": self.tools, "mode": "loop", "policy": "declared"} | options
        return Agent(FunctionModel(reply), **given)


def ask(question: str) -> tuple[str, dict[str, Any]]:
    return "ask_user", {"question": question}


def delete(path: str) -> tuple[str, dict[str, Any]]:
    return "delete", {"path": path}


def read(path: str) -> tuple[str, dict[str, Any]]:
    return "read", {"path": path}


def send(to: str) -> tuple[str, dict[str, Any]]:
    return "send", {"to": to}


# Questions and effects ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("failure", ["written-order", "independent"])
@pytest.mark.parametrize(
    ("turn", "log"),
    [
        ([ask("Really?"), delete("a")], ["asked Really?", "delete a"]),
        ([delete("a"), ask("And?"), delete("b")], ["delete a", "asked And?", "delete b"]),
        ([ask("One?"), ask("Two?"), delete("a")], ["asked One?", "asked Two?", "delete a"]),
        ([ask("One?"), delete("a"), ask("Two?"), delete("b")], ["asked One?", "delete a", "asked Two?", "delete b"]),
        ([ask("One?"), read("a"), delete("a"), read("a")], ["read a", "asked One?", "delete a", "read a"]),
        ([read("a"), ask("One?"), read("b")], ["read a", "read b", "asked One?"]),
    ],
)
async def test_a_question_is_asked_before_the_effects_behind_it(
    failure: str, turn: list[tuple[str, dict[str, Any]]], log: list[str]
) -> None:
    office = Office()
    result = await office.agent(turn, ask_user=office.ask, failure=failure, early_start=False).run("go")
    assert (result.outcome, office.log) == ("succeeded", log)
    assert len(office.told[-1]) == len(turn)
    assert sorted(step.id for step in result.steps) == [f"s{n + 1}" for n in range(len(turn))]


async def test_the_effects_behind_a_question_wait_for_its_answer(tmp_path: Path) -> None:
    office, path = Office(), tmp_path / "j.db"
    turn = [read("a"), delete("a"), ask("Really?"), read("b"), delete("b"), send("ann")]
    first = await office.agent(turn, journal=path).run("go")
    assert (first.outcome, first.answer) == ("waiting", "Really?")
    assert office.log == ["read a", "delete a", "read b"]
    again = await office.agent(turn, journal=path).resume(first.run_id)
    assert (again.outcome, again.answer, office.log) == ("waiting", "Really?", ["read a", "delete a", "read b"])
    with Journal(path) as journal:
        answer(journal, first.run_id, "yes")
    result = await office.agent(turn, journal=path).resume(first.run_id)
    assert (result.outcome, office.log[3:]) == ("succeeded", ["delete b", "send ann"])
    assert office.told[-1] == ["text of a", "a is gone", "yes", "text of b", "b is gone", "sent to ann"]
    assert [step.id for step in result.steps] == ["s1", "s2", "s4", "s3", "s5", "s6"]


async def test_what_fails_before_a_question_holds_back_the_effects_behind_it() -> None:
    office = Office()
    turn = [("broken", {"path": "a"}), ask("Really?"), delete("a")]
    result = await office.agent(turn, ask_user=office.ask).run("go")
    assert (result.outcome, office.log) == ("succeeded", ["asked Really?"])
    assert "broken" in office.told[-1][2]

    def fails(question: str) -> str:
        raise RuntimeError("nobody is there")

    office = Office()
    await office.agent([ask("Really?"), delete("a")], ask_user=fails).run("go")
    assert office.log == []
    assert "ask_user" in office.told[-1][1]
    office = Office()
    await office.agent([ask("Really?"), delete("a")], ask_user=fails, failure="independent").run("go")
    assert office.log == ["delete a"]


async def test_a_person_passes_the_whole_turn_before_a_question_of_it() -> None:
    """What stands behind the question is on the card with what stands before it."""
    office, cards = Office(), list[list[str]]()

    def person(calls: Any, card: Card) -> dict[str, Any]:
        cards.append([call.step for call in calls])
        office.log.append("card")
        return {"s1": True, "s3": None if len(cards) == 1 else True}

    turn = [delete("a"), ask("Really?"), delete("b")]
    first = await office.agent(turn, policy="cautious", approve=person, ask_user=office.ask).run("go")
    assert (first.outcome, office.log, [call.step for call in first.approvals]) == ("waiting", ["card"], ["s3"])
    result = await office.agent(turn, policy="cautious", approve=person, ask_user=office.ask).run("go")
    assert (result.outcome, cards) == ("succeeded", [["s1", "s3"], ["s1", "s3"]])
    assert office.log[1:] == ["card", "delete a", "asked Really?", "delete b"]


# Changed arguments ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("other", [True, Decision.deny("not him"), Decision.deny()])
async def test_changed_arguments_hold_whatever_becomes_of_the_other_calls(other: Any) -> None:
    office = Office()

    def person(calls: Any, card: Card) -> dict[str, Any]:
        words = {"s1": Decision.allow(arguments={"to": "right"}), "s2": other}
        return {call.step: words[call.step] for call in calls}

    turn = [send("wrong"), send("bob")]
    result = await office.agent(turn, policy="cautious", approve=person).run("go")
    assert (result.outcome, office.log[0], len(office.log)) == ("succeeded", "send right", 2 if other is True else 1)
    if other is not True:
        reason = ": not him" if other.reason else ""
        assert office.told[-1][1] == f"not made: the user did not allow it{reason}"


async def test_changed_arguments_that_do_not_fit_come_back_at_once() -> None:
    office, cards = Office(), list[Card]()
    words: list[Any] = [
        {"s1": Decision.allow(arguments={"count": "many"}), "s2": Decision.deny("no")},
        {"s1": Decision.allow(arguments={"count": 2}), "s2": Decision.deny("no")},
    ]

    def person(calls: Any, card: Card) -> Any:
        cards.append(card)
        return words.pop(0)

    await office.agent([send("ann"), send("bob")], policy="cautious", approve=person).run("go")
    assert office.log == ["send ann"]
    assert [list(card.problems) for card in cards] == [[], ["s1"]]
    office = Office()
    wrong = {"s1": Decision.allow(arguments={"count": "many"})}
    await office.agent([send("ann")], policy="cautious", approve=lambda *_: wrong).run("go")
    assert office.log == []
    assert "`count`" in office.told[-1][0]


async def test_of_two_calls_that_are_decided_elsewhere_each_has_its_word(tmp_path: Path) -> None:
    office, path = Office(), tmp_path / "j.db"
    first = await office.agent([send("ann"), send("bob")], policy="cautious", journal=path).run("go")
    with Journal(path) as journal:
        approve(journal, first.run_id, steps=["s1"])
        approve(journal, first.run_id, steps=["s2"], deny="not him")
    result = await office.agent([send("ann"), send("bob")], policy="cautious", journal=path).resume(first.run_id)
    assert (result.outcome, office.log) == ("succeeded", ["send ann"])
    assert office.told[-1] == ["sent to ann", "not made: the user did not allow it: not him"]


# When something has changed -------------------------------------------------------------------------------------------


def with_copy(office: Office) -> list[Any]:
    """Return the tools of an office by now: a mail may have a copy."""

    @tool(writes="mailbox:{to}")
    def send(to: str, count: int = 1, cc: str | None = None) -> str:
        office.log.append(f"send {to}")
        return f"sent to {to}"

    return [*office.tools[:-1], send]


@pytest.mark.parametrize("how", ["tool", "policy"])
async def test_what_was_made_before_a_change_stays_made(tmp_path: Path, how: str) -> None:
    """Of the calls that were made then nobody is asked again; of the others everybody who is to be asked now is."""
    office, path = Office(), tmp_path / "j.db"
    turns = ([send("a"), send("b")], [send("c")])

    def person(calls: Any, card: Card) -> bool | None:
        return True if len(calls) == 2 else None

    then = "cautious" if how == "tool" else "declared"
    more = {"approve": person} if how == "tool" else {}
    first = await office.agent(*turns, [ask("on?")], policy=then, journal=path, **more).run("go")
    assert (first.outcome, office.log[:2]) == ("waiting", ["send a", "send b"])
    made, asked = list(office.log), list[str]()

    def asks(calls: Any, card: Card) -> bool:
        asked.extend(call.step for call in calls)
        return True

    if how == "policy":
        with Journal(path) as journal:
            answer(journal, first.run_id, "yes")
    options: dict[str, Any] = {"policy": "cautious", "approve": asks}
    if how == "tool":
        options["tools"] = with_copy(office)
    result = await office.agent(*turns, [ask("on?")], journal=path, **options).resume(first.run_id, accept_changes=True)
    if how == "tool":
        assert (result.outcome, result.answer, asked) == ("waiting", "on?", ["s3"])
        assert office.log == [*made, "send c"]
    else:
        assert (result.outcome, office.log, asked) == ("succeeded", made, [])


async def test_a_turn_that_was_under_way_asks_by_the_new_policy_for_what_has_not_been_made(tmp_path: Path) -> None:
    office, path = Office(), tmp_path / "j.db"
    turn = [send("a"), ask("on?"), send("b")]
    first = await office.agent(turn, journal=path).run("go")
    assert (first.outcome, office.log) == ("waiting", ["send a"])
    with Journal(path) as journal:
        answer(journal, first.run_id, "yes")
    again = await office.agent(turn, journal=path, policy="cautious").resume(first.run_id, accept_changes=True)
    assert (again.outcome, office.log, [call.step for call in again.approvals]) == ("waiting", ["send a"], ["s3"])
    with Journal(path) as journal:
        approve(journal, first.run_id)
    result = await office.agent(turn, journal=path, policy="cautious").resume(first.run_id, accept_changes=True)
    assert (result.outcome, office.log) == ("succeeded", ["send a", "send b"])
