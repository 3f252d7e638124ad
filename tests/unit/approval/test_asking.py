"""Asking a person: the card of a plan, the answers, and calls whose values arrive later."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any

import pytest
from pydantic import Field

from toolplan import Agent, Result, ToolSet, UsageError, check, parse, run_plan, tool
from toolplan.approval import Card, Decision
from toolplan.approval.grants import Grant
from toolplan.expressions import Fields, Literal
from toolplan.models import FunctionModel, Reply, ToolCallPart
from toolplan.policy import PlannedCall, policy_from_toml


class Bank:
    """Tools that write down what they did; a bill that somebody else wrote, and a book that the user keeps."""

    def __init__(self, iban: str = "DE02 1203") -> None:
        self.log: list[str] = []

        @tool(reads="bills", untrusted=True)
        def read_bill(name: str) -> dict[str, Any]:
            self.log.append(f"read {name}")
            return {"iban": iban, "total": 120, "lines": [1, 2, 3]}

        @tool(reads="book")
        def find(name: str) -> dict[str, Any]:
            return {"iban": f"IBAN-{name}"}

        @tool(writes="account:{to}", guarded=("to", "amount"))
        def pay(to: str, amount: float, note: str = "") -> str:
            self.log.append(f"pay {to} {amount:g}")
            return "paid"

        @tool(writes="notes")
        def note(text: str) -> str:
            self.log.append(f"note {text}")
            return text

        self.tools = [read_bill, find, pay, note]


def call(tool_name: str, result: str | None = None, /, **arguments: Any) -> dict[str, Any]:
    return {"tool_name": tool_name, "arguments": arguments} | ({"result_variable": result} if result else {})


BILL = [call("read_bill", "bill", name="may"), call("pay", to="{bill.iban}", amount="{bill.total}")]
SAID = [call("pay", to="ann", amount=20)]


class Person:
    """Gives these answers, one after the other, and keeps the cards."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.cards: list[Card] = []
        self.asked: list[list[str]] = []

    def __call__(self, calls: Any, card: Card) -> Any:
        self.cards.append(card)
        self.asked.append([each.step for each in calls])
        return self.answers.pop(0)


def run(
    bank: Bank, steps: list[Any], request: str, person: Person | None = None, *more: list[Any], **options: Any
) -> Result:
    replies = [json.dumps({"steps": each, "answer": "done"}) for each in (steps, *more)]
    model = FunctionModel(lambda _: replies.pop(0))
    return Agent(model, bank.tools, approve=person, early_start=False, **options).run_sync(request)


def test_what_the_user_said_runs_and_what_nobody_said_waits() -> None:
    bank = Bank()
    assert run(bank, SAID, "Pay Ann 20.").outcome == "succeeded"
    assert bank.log == ["pay ann 20"]
    result = run(bank, SAID, "Pay Ann what I owe her.")
    assert (result.outcome, [each.step for each in result.approvals]) == ("waiting", ["s1"])
    assert result.card is not None
    assert "not in the request: 20" in result.card.to_text()
    assert bank.log == ["pay ann 20"]


def test_a_trusted_result_is_as_good_as_said_and_an_untrusted_one_asks_before_anything_runs() -> None:
    bank = Bank()
    steps = [call("find", "who", name="Ann"), call("pay", to="{who.iban}", amount=20)]
    assert run(bank, steps, "Pay Ann 20.").outcome == "succeeded"
    bank, person = Bank(), Person(True)
    result = run(bank, BILL, "Pay the may bill.", person)
    assert (result.outcome, bank.log, person.asked) == ("succeeded", ["read may", "pay DE02 1203 120"], [["s2"]])
    line = person.cards[0].to_dict()["calls"][0]
    assert line["origins"] == {"to": ["s1 (read_bill)"], "amount": ["s1 (read_bill)"]}
    assert line["rules"] == ["untrusted value"]


def test_the_card_is_bound_to_plan_arguments_tools_and_policy() -> None:
    def card(steps: list[Any], bank: Bank | None = None, **options: Any) -> Card:
        found = run(bank or Bank(), steps, "Pay.", **options).card
        assert found is not None
        return found

    first = card(SAID)
    assert first.hash == card(SAID).hash
    other_tool = Bank()
    other_tool.tools[2] = (
        other_tool.tools[2].changed(idempotent=True)
        if hasattr(other_tool.tools[2], "changed")
        else tool(writes="account:{to}", guarded=("to", "amount"), idempotent=True, name="pay")(
            lambda to, amount, note="": None
        )
    )
    others = [card([call("pay", to="ann", amount=21)]), card(SAID, policy="cautious"), card(SAID, other_tool)]
    assert len({first.hash, *(each.hash for each in others)}) == 4


def test_a_card_lists_every_effect_with_what_led_there_and_how_often() -> None:
    steps = [
        call("read_bill", "bill", name="may"),
        {"if": "bill.total > 100", "then": [call("note", text="large")]},
        {
            "for_each": [1, 2],
            "as": "n",
            "do": [{"for_each": "bill.lines", "as": "l", "do": [call("pay", to="ann", amount="{l}")]}],
        },
        {"for_each": [1, 2], "as": "n", "do": [call("note", text="number {n}")]},
    ]
    result = run(Bank(), steps, "Pay Ann.")
    assert result.card is not None
    lines = result.card.to_dict()["calls"]
    assert [line["tool"] for line in lines] == ["note", "pay", "note"]
    assert (lines[0]["conditions"], lines[0]["led_by"]) == (["if bill.total > 100"], ["s1 (read_bill)"])
    assert [line["most"] for line in lines] == [1, None, 2]
    text = result.card.to_text()
    assert "only when: if bill.total > 100" in text
    assert "decided by other people's text: s1 (read_bill)" in text
    assert "up to 2 times" in text
    assert "最多 2 次" in result.card.to_text("zh")


def test_each_call_is_asked_with_its_values() -> None:
    bank, person = Bank(), Person(Decision.allow(each_call=True), True)
    result = run(bank, BILL, "Pay the may bill.", person)
    assert (result.outcome, person.asked) == ("succeeded", [["s2"], ["s2"]])
    assert [card.about for card in person.cards] == ["plan", "calls"]
    assert person.cards[1].asks[0].values == {"to": "DE02 1203", "amount": 120}
    assert bank.log[-1] == "pay DE02 1203 120"


def test_a_call_that_is_refused_fails_without_having_been_made() -> None:
    bank, person = Bank(), Person(Decision.allow(each_call=True), Decision.deny("not this account"))
    result = run(bank, BILL, "Pay the may bill.", person, max_replans=0)
    assert (result.outcome, bank.log) == ("failed", ["read may"])
    [step] = [step for step in result.steps if step.id == "s2"]
    assert (step.outcome, step.attempts, step.error) == ("failed", 0, "not allowed: not this account")


def test_questions_of_calls_that_come_up_together_come_together() -> None:
    steps = [
        call("read_bill", "bill", name="may"),
        {"for_each": "bill.lines", "as": "l", "do": [call("pay", to="p{l}", amount="{l}")]},
    ]
    bank, person = Bank(), Person(Decision.allow(each_call=True), {"s2[0]": True, "s2[1]": False, "s2[2]": True})
    person.answers[1] = {f"s{3}[{n}]": n != 1 for n in range(3)}
    result = run(bank, steps, "Pay the lines of the may bill.", person, max_replans=0)
    assert person.asked[1] == ["s3[0]", "s3[1]", "s3[2]"]
    assert sorted(bank.log[1:]) == ["pay p1 1", "pay p3 3"]
    assert result.outcome == "failed"


def test_what_nobody_decides_leaves_the_run_waiting() -> None:
    bank, person = Bank(), Person(Decision.allow(each_call=True), None)
    result = run(bank, BILL, "Pay the may bill.", person)
    assert (result.outcome, [each.step for each in result.approvals], bank.log) == ("waiting", ["s2"], ["read may"])
    assert result.approvals[0].values == {"to": "DE02 1203", "amount": 120}
    assert [step.outcome for step in result.steps] == ["succeeded", "waiting"]


RULE = """
[[rule]]
name = "large payments"
tool = "pay"
arguments = { amount = { at_least = 100 } }
then = "%s"
reason = "more than 100"
[[rule]]
then = "allow"
"""


def test_a_value_that_arrives_later_asks_only_when_it_is_such() -> None:
    bank, person = Bank(), Person(True)
    result = run(bank, BILL, "Pay the may bill.", person, policy=policy_from_toml(RULE % "ask"))
    assert (result.outcome, person.asked, person.cards[0].about) == ("succeeded", [["s2"]], "calls")
    small = [call("read_bill", "bill", name="may"), call("pay", to="ann", amount="{bill.total / 10}")]
    person = Person()
    assert run(bank, small, "Pay a tenth.", person, policy=policy_from_toml(RULE % "ask")).outcome == "succeeded"


def test_a_rule_that_denies_is_a_diagnostic_when_it_is_sure_and_a_failure_when_the_value_comes_later() -> None:
    policy = policy_from_toml(RULE % "deny")
    bank = Bank()
    sure = run(bank, [call("note", text="x"), call("pay", to="ann", amount=500)], "Pay.", policy=policy, max_repairs=0)
    assert (sure.outcome, [each.code for each in sure.diagnostics], bank.log) == ("rejected", ["TP404"], [])
    later = run(bank, BILL, "Pay.", policy=policy, max_replans=0)
    assert (later.outcome, bank.log) == ("failed", ["read may"])
    assert later.error == "forbidden by the policy: more than 100"


def test_arguments_that_a_person_changes_are_checked_and_used() -> None:
    bank, person = Bank(), Person(Decision.allow(arguments={"amount": 15}))
    assert run(bank, SAID, "Pay Ann.", person).outcome == "succeeded"
    assert bank.log == ["pay ann 15"]
    wrong = Person(*[Decision.allow(arguments={"amount": "much"})] * 2)
    result = run(bank, SAID, "Pay Ann.", wrong)
    assert (result.outcome, [each.code for each in result.diagnostics]) == ("rejected", ["TP301"])
    person = Person(Decision.allow(each_call=True), Decision.allow(arguments={"amount": 7}))
    result = run(bank, BILL, "Pay the may bill.", person)
    assert (bank.log[-1], result.steps[-1].arguments) == ("pay DE02 1203 7", {"to": "DE02 1203", "amount": 7})
    person = Person(Decision.allow(each_call=True), *[Decision.allow(arguments={"to": "eve"})] * 2)
    result = run(bank, BILL, "Pay the may bill.", person, max_replans=0)
    assert (result.outcome, "not allowed: the changed arguments" in str(result.steps[-1].error)) == ("failed", True)


def test_a_change_that_cannot_be_made_is_said_at_once_and_can_be_corrected() -> None:
    bank = Bank()
    eve, seven = Decision.allow(arguments={"to": "eve"}), Decision.allow(arguments={"amount": 7})
    person = Person(Decision.allow(each_call=True), eve, Decision.allow(arguments={"amount": "x"}), seven)
    assert run(bank, BILL, "Pay the may bill.", person).outcome == "succeeded"
    assert bank.log[-1] == "pay DE02 1203 7"
    texts = [card.to_text() for card in person.cards]
    assert ["CANNOT BE TAKEN" in text for text in texts] == [False, False, True, True]
    assert "its place in the order is taken" in texts[2]
    assert "expected" in person.cards[3].problems["s2"] or "number" in person.cards[3].problems["s2"]
    assert "不能这样答复：修改后的参数会改动另一个对象" in person.cards[2].to_text("zh")
    assert person.cards[2].to_dict()["problems"].keys() == {"s2"}


def test_before_the_run_a_change_may_name_something_else_and_a_wrong_one_can_be_corrected() -> None:
    bank = Bank()
    wrong, eve = Decision.allow(arguments={"amount": "much"}), Decision.allow(arguments={"to": "eve", "amount": 5})
    person = Person(wrong, eve)
    assert run(bank, SAID, "Pay Ann.", person).outcome == "succeeded"
    assert bank.log == ["pay eve 5"]
    assert ["CANNOT BE TAKEN" in card.to_text() for card in person.cards] == [False, True]
    both = [call("pay", to="ann", amount=20), call("pay", to="bob", amount=30)]
    person = Person({"s1": Decision.allow(arguments={"to": "bob"}), "s2": True})
    bank = Bank()
    assert run(bank, both, "Pay.", person).outcome == "succeeded"
    assert bank.log == ["pay bob 20", "pay bob 30"]  # in written order, for both change the same account now


def test_only_the_question_whose_change_cannot_be_made_comes_again() -> None:
    bank = Bank()
    both = [call("pay", to="{bill.iban}", amount="{bill.total}"), call("pay", to="ann", amount="{bill.total}")]
    steps = [call("read_bill", "bill", name="may"), {"parallel": both}]
    person = Person(Decision.allow(each_call=True), {"s3": Decision.allow(arguments={"to": "x"}), "s4": True}, True)
    assert run(bank, steps, "Pay.", person).outcome == "succeeded"
    assert person.asked[1:] == [["s3", "s4"], ["s3"]]


def test_a_reason_goes_to_the_model_for_another_plan() -> None:
    bank, person = Bank(), Person(Decision.deny("only 10 a day"))
    result = run(bank, SAID, "Pay Ann 10.", person, [call("pay", to="ann", amount=10)])
    assert (result.outcome, result.inferences, bank.log) == ("succeeded", 2, ["pay ann 10"])
    person = Person(Decision.deny("never"), Decision.deny("never"))
    result = run(bank, SAID, "Pay Ann 10.", person, SAID, max_repairs=1)
    assert (result.outcome, result.error) == ("rejected", "the plan was not approved: never")


def test_what_was_allowed_of_a_refused_plan_is_not_allowed_of_the_next() -> None:
    both = [call("pay", to="ann", amount=20), call("pay", to="bob", amount=30)]
    bank, person = Bank(), Person({"s1": True, "s2": Decision.deny("not Bob")}, False)
    result = run(bank, both, "Pay.", person, [call("pay", to="eve", amount=99)])
    assert (result.outcome, bank.log, person.asked) == ("rejected", [], [["s1", "s2"], ["s1"]])


def test_scopes_cover_further_calls_of_the_run() -> None:
    twice = [*BILL, call("read_bill", "other", name="june"), call("pay", to="{other.iban}", amount="{other.total}")]
    for decision, asked in [
        (Decision.allow("run"), 2),
        (Decision.allow("pattern", pattern={"to": "DE*"}), 2),
        (Decision.allow(), 3),
    ]:
        person = Person(Decision.allow(each_call=True), decision, True)
        assert run(Bank(), twice, "Pay both bills.", person).outcome == "succeeded"
        assert len(person.asked) == asked, decision


def test_nothing_of_a_plan_is_made_before_everything_that_asks_is_decided() -> None:
    bank = Bank()
    steps = [call("pay", to="ann", amount=20), call("pay", to="bob", amount=30)]
    for some in ({"s1": True}, {"s1": Decision.allow(arguments={"amount": 5}), "s2": None}):
        person = Person(some)
        result = run(bank, steps, "Pay.", person)
        assert (result.outcome, bank.log, [each.step for each in result.approvals]) == ("waiting", [], ["s2"])
    result = run(bank, steps, "Pay.", Person({"s1": Decision.allow("run")}))  # which is a word on the other one, too
    assert (result.outcome, bank.log) == ("succeeded", ["pay ann 20", "pay bob 30"])


def test_a_pattern_that_does_not_fit_the_call_it_is_said_of_does_not_allow_it() -> None:
    """The question comes again with the reason on the card, for a plan and for calls whose values arrive later."""
    elsewhere = Decision.allow("pattern", pattern={"to": "CH*"})
    why = "the argument `to` does not match the pattern `CH*`, so this does not allow the call"
    steps = [call("pay", to="ann", amount=20)]
    bank, person = Bank(), Person(elsewhere, True)
    assert run(bank, steps, "Pay.", person).outcome == "succeeded"
    assert [dict(card.problems) for card in person.cards] == [{}, {"s1": why}]
    bank, person = Bank(), Person(elsewhere, elsewhere)
    result = run(bank, steps, "Pay.", person, max_repairs=0)
    assert (result.outcome, bank.log, result.error) == ("rejected", [], f"the plan was not approved: {why}")
    bank, person = Bank(), Person(Decision.allow(each_call=True), elsewhere, elsewhere)
    result = run(bank, BILL, "Pay the may bill.", person, max_replans=0)
    assert (result.outcome, bank.log) == ("failed", ["read may"])
    assert (result.error or "").startswith(f"not allowed: {why}")
    assert [dict(card.problems) for card in person.cards] == [{}, {}, {"s2": why}]
    changed = Decision.allow("pattern", pattern={"to": "CH*"}, arguments={"to": "CH9"})
    bank, person = Bank(), Person({"s1": changed})
    assert run(bank, steps, "Pay.", person).outcome == "succeeded"
    assert bank.log == ["pay CH9 20"]
    bank, person = Bank(), Person({"s1": elsewhere}, {"s1": elsewhere})
    model = turns([("pay", {"to": "ann", "amount": 1})], "Not paid.")
    assert Agent(model, bank.tools, mode="loop", approve=person).run_sync("Pay.").answer == "Not paid."
    assert bank.log == []


def test_a_repaired_plan_asks_and_says_what_was_mended() -> None:
    bank = Bank()
    model = FunctionModel(
        lambda _: '{"steps": [{"tool_name": "pay", "arguments": {"to": "ann", "amount": 20},}], "answer": "x"}'
    )
    result = Agent(model, bank.tools, early_start=False).run_sync("Pay Ann 20.")
    assert (result.outcome, bank.log) == ("waiting", [])
    assert result.card is not None
    assert result.card.repairs
    assert "had to be mended" in result.card.to_text()


@pytest.mark.parametrize("answer", ["yes", {"s9": True}, Decision.allow(arguments={"amount": 1})])
def test_an_answer_that_is_none_is_said(answer: Any) -> None:
    steps = [call("pay", to="ann", amount=20), call("pay", to="bob", amount=30)]
    with pytest.raises(UsageError):
        run(Bank(), steps, "Pay.", Person(answer))


async def test_a_run_that_is_cancelled_asks_nobody_any_more() -> None:
    asking, gone = asyncio.Event(), asyncio.Event()

    async def approve(calls: Any, card: Card) -> Any:
        if card.about == "plan":
            return Decision.allow(each_call=True)
        asking.set()
        try:
            await asyncio.sleep(60)
        finally:
            gone.set()

    bank = Bank()
    work = asyncio.create_task(
        Agent(FunctionModel(lambda _: json.dumps(BILL)), bank.tools, approve=approve, early_start=False).run("Pay it.")
    )
    await asyncio.wait_for(asking.wait(), 5)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    await asyncio.wait_for(gone.wait(), 5)
    assert bank.log == ["read may"]


def turns(*replies: Any) -> FunctionModel:
    left = [
        each if isinstance(each, str) else Reply("", tuple(ToolCallPart(str(n), *c) for n, c in enumerate(each)))
        for each in replies
    ]
    return FunctionModel(lambda _: left.pop(0))


def test_in_a_loop_what_trusted_results_hold_counts_as_said_until_other_peoples_text_was_read() -> None:
    bank = Bank()
    model = turns([("find", {"name": "Ann"})], [("pay", {"to": "IBAN-Ann", "amount": 20})], "Paid.")
    assert Agent(model, bank.tools, mode="loop").run_sync("Pay Ann 20.").outcome == "succeeded"
    model = turns(
        [("find", {"name": "Ann"}), ("read_bill", {"name": "may"})],
        [("pay", {"to": "IBAN-Ann", "amount": 20})],
        "Paid.",
    )
    result = Agent(model, bank.tools, mode="loop").run_sync("Pay Ann 20, look at the bill of may.")
    assert (result.outcome, result.approvals[0].verdict.names) == ("waiting", ("untrusted value",))


def test_in_a_loop_some_calls_of_a_turn_can_be_allowed() -> None:
    bank, person = Bank(), Person({"s1": True}, None)
    model = turns([("pay", {"to": "ann", "amount": 1}), ("pay", {"to": "bob", "amount": 2})], "never asked")
    result = Agent(model, bank.tools, mode="loop", approve=person).run_sync("Pay them.")
    assert (result.outcome, bank.log, [each.step for each in result.approvals]) == ("waiting", ["pay ann 1"], ["s2"])
    bank, person = Bank(), Person({"s1": True, "s2": Decision.deny("Bob can wait")}, True)
    seen: list[str] = []

    def model_(request: Any) -> Any:
        seen.extend(part.content for part in request.messages[-1].tool_results)
        return (
            "Ann was paid."
            if seen
            else Reply(
                "",
                (
                    ToolCallPart("1", "pay", {"to": "ann", "amount": 1}),
                    ToolCallPart("2", "pay", {"to": "bob", "amount": 2}),
                ),
            )
        )

    result = Agent(FunctionModel(model_), bank.tools, mode="loop", approve=person).run_sync("Pay them.")
    assert (result.answer, bank.log) == ("Ann was paid.", ["pay ann 1"])
    assert "Bob can wait" in seen[1]


def test_a_plan_that_goes_on_after_other_peoples_text_asks_about_what_the_user_did_not_say() -> None:
    bank = Bank()
    first = [call("read_bill", "bill", name="may"), {"replan": "look at it"}]
    result = run(bank, first, "Look at the bill of may.", None, [call("pay", to="eve", amount=5)])
    assert (result.outcome, bank.log) == ("waiting", ["read may"])
    said = run(bank, first, "Look at the bill of may, then pay Ann 5.", None, [call("pay", to="ann", amount=5)])
    assert (said.outcome, bank.log[-1]) == ("succeeded", "pay ann 5")


def test_words_of_an_answer_count_as_said() -> None:
    steps = [{"ask_user": "How much?", "result_variable": "n"}, {"replan": "go on"}]
    bank = Bank()
    result = run(bank, steps, "Pay Ann.", None, [call("pay", to="ann", amount=42)], ask_user=lambda _: "42")
    assert (result.outcome, bank.log) == ("succeeded", ["pay ann 42"])


def test_what_a_reader_wrote_is_no_word_of_the_user() -> None:
    steps = [
        call("find", "who", name="Ann"),
        {"ask_model": "Who is it?", "data": "{who}", "returns": {"type": "string"}, "result_variable": "name"},
        call("pay", to="{name}", amount=20),
    ]
    bank, replies = Bank(), [json.dumps({"steps": steps, "answer": "ok"}), '"eve"']
    result = Agent(FunctionModel(lambda _: replies.pop(0)), bank.tools, early_start=False).run_sync("Pay Ann 20.")
    assert (result.outcome, bank.log, [each.step for each in result.approvals]) == ("waiting", [], ["s3"])
    replies = [json.dumps({"steps": steps, "answer": "ok"}), '"Ann"']
    result = Agent(FunctionModel(lambda _: replies.pop(0)), bank.tools, early_start=False).run_sync("Pay Ann 20.")
    assert (result.outcome, bank.log) == ("succeeded", ["pay Ann 20"])


def test_results_say_where_arguments_came_from() -> None:
    result = run(Bank(), BILL, "Pay the may bill.", Person(True))
    steps: Any = result.to_dict()["steps"]
    assert steps[0]["sources"] is None
    assert steps[1]["sources"]["arguments"]["to"] == {"steps": ["s1"], "untrusted": ["s1"], "words": []}


def test_a_policy_may_be_a_file_or_a_name(tmp_path: Any) -> None:
    file = tmp_path / "p.toml"
    file.write_text(RULE % "deny", "utf-8")
    assert (
        run(Bank(), [call("pay", to="ann", amount=500)], "Pay.", policy=str(file), max_repairs=0).outcome == "rejected"
    )
    assert run(Bank(), SAID, "Pay Ann 20.", policy="cautious").outcome == "waiting"
    assert run(Bank(), SAID, "Go.", policy="declared").outcome == "succeeded"
    for wrong in ("defualt", str(tmp_path / "none.toml"), 7):
        with pytest.raises(UsageError):
            Agent(policy=wrong)  # type: ignore[arg-type]


async def test_a_run_without_an_agent_keeps_to_what_tools_declare() -> None:
    made: list[str] = []

    @tool(writes="a", approval="ask")
    def ask() -> None:
        made.append("ask")

    @tool(writes="a", approval="deny")
    def deny() -> None:
        made.append("deny")

    tools = ToolSet.of([ask, deny])
    for name, outcome in (("ask", "waiting"), ("deny", "failed")):
        plan = parse(json.dumps([call(name)]), tools=tools)
        result = await run_plan(check(plan, tools))  # type: ignore[arg-type]
        assert (result.outcome, made) == (outcome, [])


def test_a_card_shows_no_secret_in_what_was_not_said() -> None:
    @tool(writes="acc")
    def login(user: str, password: Annotated[str, Field(json_schema_extra={"format": "password"})]) -> str:
        return "in"

    plan = json.dumps([{"tool_name": "login", "arguments": {"user": "ann", "password": "hunter2x!"}}])
    result = Agent(FunctionModel(lambda _: plan), tools=[login]).run_sync("log in as ann")
    assert result.card is not None
    assert "hunter2x" not in result.card.to_text()
    assert "hunter2x" not in json.dumps(result.card.to_dict())
    assert "not in the request" in result.card.to_text()


@pytest.mark.parametrize(
    ("value", "covered"),
    [
        ("ann@x.org", True),
        ("eve@evil.net, ann@x.org", False),
        ("eve@evil.net;ann@x.org", False),
        ("eve@evil.net ann@x.org", False),
        ("eve@evil.net\nann@x.org", False),
        (["ann@x.org", "bob@x.org"], True),
    ],
)
def test_a_star_in_a_pattern_for_addresses_stands_for_one_address(value: Any, covered: bool) -> None:
    planned = PlannedCall("s1", "send", Fields((("to", Literal(value)),)))
    assert Grant("send", frozenset(planned.verdict.names), None, {"to": "*@x.org"}).covers(planned) is covered


def test_a_star_alone_is_anything() -> None:
    planned = PlannedCall("s1", "send", Fields((("to", Literal("Ann, Bob")),)))
    assert Grant("send", frozenset(planned.verdict.names), None, {"to": "*"}).covers(planned)


def test_a_pattern_for_an_argument_that_the_tool_does_not_have_is_refused() -> None:
    person = Person(Decision.allow(scope="pattern", pattern={"too": "ann*"}))
    with pytest.raises(UsageError, match="too"):
        run(Bank(), [call("pay", to="ann", amount=21)], "Pay Ann.", person)


def test_a_policy_file_may_begin_with_a_mark_and_misspelt_names_are_logged(tmp_path: Any, caplog: Any) -> None:
    path = tmp_path / "rules.toml"
    path.write_bytes(b"\xef\xbb\xbf" + b'[[rule]]\ntool = "paay"\nthen = "deny"\n')
    Agent(tools=Bank().tools, policy=str(path))
    assert "there is no tool `paay`; did you mean `pay`?" in caplog.text


def test_the_reasons_on_a_chinese_card_are_chinese() -> None:
    person = Person(False)
    run(Bank(), BILL, "付五月的账单", person)
    card = person.cards[0]
    assert "需要批准：其中的值可能是由他人的文字决定的" in card.to_text("zh")
    assert "asks: a value in it may have been chosen by other people's text" in card.to_text()
    (line,) = card.asks
    assert line.reason_in("zh") == "其中的值可能是由他人的文字决定的"
    own = '[[rule]]\ntool = "pay"\nthen = "ask"\nreason = "大额付款"'
    person = Person(False)
    run(Bank(), BILL, "付五月的账单", person, policy=policy_from_toml(own))
    assert "需要批准：大额付款" in person.cards[0].to_text("zh")


def test_every_reason_of_ours_is_there_in_chinese() -> None:
    from toolplan.policy import SHIPPED, shipped_policy
    from toolplan.policy.reasons import DECLARED, ELSEWHERE, MENDED, NOTHING_ALLOWS_IT, worded

    shipped = [rule.reason for name in SHIPPED for rule in shipped_policy(name).rules if rule.then != "allow"]
    for reason in [*shipped, DECLARED, ELSEWHERE, MENDED, NOTHING_ALLOWS_IT]:
        assert reason
        assert worded([reason], "zh") != reason
