"""The classic loop: calls turn by turn through the same gate, each answered once, and a clear end."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from toolplan import Agent, Limits, ToolFailed, ToolSet, UsageError, tool
from toolplan.agent_events import CallMended, CallRefused, CallsRequested, ModeChosen, ReplyStreamed
from toolplan.errors import ModelError
from toolplan.loop.repeats import Repeats
from toolplan.loop.trim import fitting
from toolplan.models import FunctionModel, Message, ModelRequest, Reply, ToolCallPart, ToolResultPart, Usage
from toolplan.parse.tool_calls import WrittenCall, read_turn_calls
from toolplan.plan import AskUser, Call
from toolplan.run import StepStarted
from toolplan.schedule import StepRecord


class Bank:
    """Tools that write down what they did."""

    def __init__(self) -> None:
        self.log: list[str] = []

        @tool(reads="accounts")
        def balance(account: str) -> float:
            """Tells how much is in an account."""
            self.log.append(f"balance {account}")
            if account == "none":
                raise ToolFailed("there is no such account")
            return 100.0

        @tool(writes="accounts")
        def pay(account: str, amount: float) -> str:
            self.log.append(f"pay {account} {amount}")
            if amount > 100:
                raise ToolFailed("not enough money")
            return "paid"

        @tool(writes="mail")
        def confirm(text: str) -> str:
            self.log.append(f"confirm {text}")
            return "sent"

        @tool(writes="slow", timeout_seconds=0.01)
        async def transfer(amount: float) -> str:
            self.log.append(f"transfer {amount}")
            await asyncio.sleep(10)
            return "done"

        self.tools = ToolSet.of([balance, pay, confirm, transfer])


def calls(*given: tuple[str, Any], text: str = "", finish: str = "tool_call") -> Reply:
    parts = tuple(ToolCallPart(f"c{n}", name, arguments) for n, (name, arguments) in enumerate(given))
    return Reply(text, parts, finish)


class Script:
    """A model that gives these replies and keeps what it was asked."""

    def __init__(self, *replies: Reply | str) -> None:
        self.replies = list(replies)
        self.requests: list[ModelRequest] = []
        self.model = FunctionModel(self._reply)

    def _reply(self, request: ModelRequest) -> Reply | str:
        self.requests.append(request)
        if not self.replies:
            raise ModelError("there is nobody", provider="script", model="script")
        return self.replies.pop(0)

    def told(self, request: int = -1) -> list[str]:
        """What the model was told about the calls of its last turn."""
        last = self.requests[request].messages[-1]
        assert last.role == "tool"
        return [result.content for result in last.tool_results]


def loop(script: Script, bank: Bank, **options: Any) -> Agent:
    return Agent(script.model, bank.tools, mode="loop", **options)


def test_calls_results_answer() -> None:
    bank = Bank()
    events: list[Any] = []
    script = Script(
        calls(("balance", {"account": "a"}), ("balance", '{"account": "b"}'), text="Let me look."),
        calls(("pay", {"account": "a", "amount": 5})),
        "Paid 5 out of a.",
    )
    result = loop(script, bank).run_sync("Pay 5 from the fuller account.", watch=events.append)
    assert (result.outcome, result.answer, result.inferences) == ("succeeded", "Paid 5 out of a.", 3)
    assert (result.mode_used, result.mode_reason) == ("loop", "it was asked for")
    assert sorted(bank.log[:2]) == ["balance a", "balance b"]
    assert bank.log[2:] == ["pay a 5.0"]
    assert [(step.id, step.tool) for step in result.steps] == [("s1", "balance"), ("s2", "balance"), ("s3", "pay")]
    assert result.plan is not None
    assert [step.id for step in result.plan.steps] == ["s1", "s2", "s3"]
    requested = [event for event in events if isinstance(event, CallsRequested)]
    assert [(event.turn, len(event.calls)) for event in requested] == [(1, 2), (2, 1)]
    assert "".join(event.text for event in events if isinstance(event, ReplyStreamed)).endswith("Paid 5 out of a.")


def test_the_conversation_has_the_shape_that_providers_want() -> None:
    script = Script(calls(("balance", {"account": "a"}), ("balance", {"account": "none"})), "done")
    loop(script, Bank()).run_sync("Look.")
    first, second = script.requests
    assert [message.role for message in first.messages] == ["system", "user"]
    assert [spec.name for spec in first.tools] == ["balance", "pay", "confirm", "transfer"]
    assert first.tools[0].description == "Tells how much is in an account."
    assert first.purpose == "loop"
    assert second.messages[:2] == first.messages
    said, told = second.messages[2:]
    assert [call.id for call in said.tool_calls] == ["c0", "c1"]
    assert told.role == "tool"
    assert told.tool_results == (
        ToolResultPart("c0", "balance", "100.0"),
        ToolResultPart("c1", "balance", "error: there is no such account", is_error=True),
    )


WRONG: list[tuple[Any, str, str]] = [
    (("balence", {"account": "a"}), "TP201", "did you mean `balance`"),
    (("balance", {"acount": "a"}), "TP302", "did you mean `account`"),
    (("balance", {}), "TP303", "account"),
    (("pay", {"account": "a", "amount": "much"}), "TP301", "`amount` of `pay` must be"),
    (("balance", '{"account": "a"'), "TP", ""),
    (("balance", "[1]"), "TP", ""),
    (("balance", "no json"), "TP", ""),
]


@pytest.mark.parametrize(("call", "code", "said"), WRONG)
def test_a_wrong_call_is_told_what_is_wrong_and_stops_no_other(call: Any, code: str, said: str) -> None:
    bank = Bank()
    events: list[Any] = []
    script = Script(calls(call, ("balance", {"account": "b"})), "sorry")
    result = loop(script, bank).run_sync("Look.", watch=events.append)
    first, second = script.told()
    assert first.startswith(f"not made, because it was refused:\n{code}")
    assert said in first
    assert second == "100.0"
    assert (result.outcome, bank.log) == ("succeeded", ["balance b"])
    (refused,) = [event for event in events if isinstance(event, CallRefused)]
    assert refused.reason == first


def test_a_failed_call_holds_back_the_effects_after_it_and_nothing_else() -> None:
    bank = Bank()
    turn = calls(
        ("confirm", {"text": "before"}),
        ("pay", {"account": "a", "amount": 500}),
        ("confirm", {"text": "after"}),
        ("balance", {"account": "a"}),
    )
    script = Script(turn, "It failed.")
    result = loop(script, bank).run_sync("Pay 500, confirm, and look.")
    told = script.told()
    assert told[0] == "sent"
    assert told[1] == "error: not enough money"
    assert told[2].startswith("not made, because `pay`, called before it in the same turn, did not succeed.")
    assert told[3] == "100.0"
    assert bank.log == ["confirm before", "pay a 500.0", "balance a"]
    assert [step.outcome for step in result.steps] == ["succeeded", "failed", "not_run", "succeeded"]
    assert (result.outcome, result.error) == ("succeeded", None)


def test_a_refused_call_counts_as_failed() -> None:
    bank = Bank()
    turn = calls(
        ("balance", {"account": "a"}),
        ("pay", {"account": "a"}),
        ("confirm", {"text": "x"}),
        ("balance", {"account": "b"}),
    )
    script = Script(turn, "no")
    loop(script, bank).run_sync("Pay.")
    assert sorted(bank.log) == ["balance a", "balance b"]
    assert "`pay`, called before it" in script.told()[2]


def test_independent_calls_hold_nothing_back() -> None:
    bank = Bank()
    script = Script(calls(("pay", {"account": "a"}), ("confirm", {"text": "x"})), "no")
    loop(script, bank, failure="independent").run_sync("Pay.")
    assert bank.log == ["confirm x"]


def test_arguments_are_values_and_never_templates() -> None:
    bank = Bank()
    script = Script(calls(("confirm", {"text": "{s1} {{x}} {now}"})), "ok")
    loop(script, bank, policy="declared").run_sync("Confirm it.")
    assert bank.log == ["confirm {s1} {{x}} {now}"]


def test_written_order_holds_within_a_turn() -> None:
    order: list[str] = []

    @tool
    async def slow() -> str:
        await asyncio.sleep(0.01)
        order.append("slow")
        return "a"

    @tool
    async def fast() -> str:
        order.append("fast")
        return "b"

    script = Script(calls(("slow", {}), ("fast", {})), "ok")
    Agent(script.model, [slow, fast], mode="loop").run_sync("Go.")
    assert (order, script.told()) == (["slow", "fast"], ["a", "b"])


def test_reads_of_a_turn_overlap() -> None:
    running = most = 0

    @tool(reads="x")
    async def look(n: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1
        return n

    script = Script(calls(*[("look", {"n": n}) for n in range(5)]), "ok")
    Agent(script.model, [look], mode="loop").run_sync("Go.")
    assert (most, script.told()) == (5, ["0", "1", "2", "3", "4"])


def test_going_round_in_circles_is_noticed_and_ended() -> None:
    bank = Bank()
    same = calls(("balance", {"account": "a"}))
    script = Script(*[same] * 9)
    result = loop(script, bank, max_repeats=3).run_sync("Look.")
    assert bank.log == ["balance a"] * 3
    assert (result.outcome, result.inferences) == ("failed", 5)
    assert "the model goes round in circles: it asks for the same call of `balance`" in str(result.error)
    assert "you have made this very call 3 times" in script.told()[0]


def test_a_repetition_with_another_result_is_none() -> None:
    counts = iter(range(100))

    @tool(reads="clock")
    def tick() -> int:
        return next(counts)

    script = Script(*[calls(("tick", {}))] * 6, "now")
    result = Agent(script.model, [tick], mode="loop", max_repeats=2).run_sync("Wait.")
    assert (result.outcome, len(result.steps)) == ("succeeded", 6)


def test_one_repeated_call_beside_a_new_one_is_no_circle() -> None:
    bank = Bank()
    turns = [calls(("balance", {"account": "a"}), ("balance", {"account": f"x{n}"})) for n in range(6)]
    result = loop(Script(*turns, "ok"), bank, max_repeats=1).run_sync("Look.")
    assert result.outcome == "succeeded"
    assert bank.log.count("balance a") == 1


def test_an_effect_that_nobody_knows_of_is_not_repeated() -> None:
    bank = Bank()
    same = calls(("transfer", {"amount": 5}))
    script = Script(same, same, "I do not know whether it was transferred.")
    result = loop(script, bank).run_sync("Transfer 5.")
    assert bank.log == ["transfer 5.0"]
    assert "Nobody knows whether it took effect" in script.told(1)[0]
    assert "nobody knows whether it took effect" in script.told(2)[0]
    assert [step.outcome for step in result.steps] == ["unknown"]


@pytest.mark.parametrize("is_certain", [True, False])
def test_an_effect_that_failed_is_repeated_only_if_nothing_has_happened(is_certain: bool) -> None:
    tried: list[str] = []

    @tool(writes="mail")
    def post(to: str) -> str:
        tried.append(to)
        raise ToolFailed("no", effect_happened=False) if is_certain else ConnectionError("reset")

    same = calls(("post", {"to": "a"}))
    script = Script(same, same, "I do not know.")
    agent = Agent(script.model, tools=[post], mode="loop", policy="declared")
    assert agent.run_sync("Post it to a.").outcome == "succeeded"
    assert len(tried) == (2 if is_certain else 1)
    assert ("nobody knows whether it took effect" in script.told(2)[0]) is not is_certain


def test_too_many_turns_end_clearly() -> None:
    bank = Bank()
    turns = [calls(("pay", {"account": "a", "amount": n})) for n in range(9)]
    result = loop(Script(*turns), bank, max_turns=3).run_sync("Pay a 0, 1, 2 and so on.")
    assert (result.outcome, result.inferences, len(bank.log)) == ("failed", 3, 3)
    assert result.error == "there is no answer after 3 turns, which is the limit (max_turns)"
    assert "Done before that: s1 (pay), s2 (pay), s3 (pay)." in result.answer


@pytest.mark.parametrize("arguments", [{"account": "a", "amount": 5}, '{"account": "a", "amount": 5'])
def test_a_reply_that_is_cut_off_runs_nothing(arguments: Any) -> None:
    bank = Bank()
    script = Script(calls(("pay", arguments), text="Pay", finish="length"), "I will not.")
    result = loop(script, bank).run_sync("Pay.")
    assert (bank.log, result.outcome) == ([], "succeeded")
    roles = [message.role for message in script.requests[1].messages]
    assert roles == ["system", "user", "assistant", "user"]
    assert "cut off at its length limit" in script.requests[1].messages[-1].content
    again = Script(*[calls(("pay", arguments), finish="length")] * 2)
    assert loop(again, bank).run_sync("Pay.").error == "the model's replies are cut off"


def test_an_answer_that_is_cut_off_says_so() -> None:
    result = loop(Script(Reply("It is rai", finish_reason="length")), Bank()).run_sync("Weather?")
    assert (result.outcome, result.answer) == ("succeeded", "It is rai")
    assert result.error == "the answer was cut off at the model's length limit"


def test_an_empty_reply_is_asked_for_once_more() -> None:
    script = Script(Reply("  "), "Here I am.")
    assert loop(script, Bank()).run_sync("Hello?").answer == "Here I am."
    assert script.requests[1].messages[-1].content.startswith("Your last reply was empty")
    assert loop(Script(Reply(""), Reply("")), Bank()).run_sync("Hello?").error == "the model says nothing"


def test_a_model_that_goes_away_loses_nothing() -> None:
    bank = Bank()
    result = loop(Script(calls(("pay", {"account": "a", "amount": 1}))), bank).run_sync("Pay a 1.")
    assert (result.outcome, len(result.steps)) == ("failed", 1)
    assert "Done before that: s1 (pay)" in result.answer
    with pytest.raises(ModelError):
        loop(Script(), bank).run_sync("Pay.")


def test_long_results_are_shortened_and_say_so() -> None:
    @tool(reads="x")
    def read() -> list[str]:
        return ["word " * 200] * 500

    script = Script(calls(("read", {})), "ok")
    result = Agent(script.model, [read], mode="loop").run_sync("Read.")
    (told,) = script.told()
    assert len(told) < 16_000
    assert "items left out]" in told
    assert len(result.steps[0].result) == 500  # type: ignore[arg-type]


class TestApproval:
    def agent(self, script: Script, word: bool | None, bank: Bank, **options: Any) -> tuple[Agent, list[str]]:
        asked: list[str] = []

        @tool(writes="door", approval="ask")
        def open_door(name: str) -> str:
            bank.log.append(f"open {name}")
            return "open"

        def approve(calls: Any, _: Any) -> bool | None:
            asked.extend(f"{call.step} {call.tool}" for call in calls)
            return word

        return Agent(script.model, [*bank.tools, open_door], mode="loop", approve=approve, **options), asked

    TURN = calls(("balance", {"account": "a"}), ("open_door", {"name": "front"}), ("confirm", {"text": "open"}))

    def test_allowed(self) -> None:
        bank = Bank()
        agent, asked = self.agent(Script(self.TURN, "ok"), True, bank)
        assert agent.run_sync("Open.").outcome == "succeeded"
        assert asked == ["s2 open_door"]
        assert bank.log == ["balance a", "open front", "confirm open"]

    def test_refused(self) -> None:
        bank = Bank()
        script = Script(self.TURN, "I may not.")
        agent, asked = self.agent(script, False, bank)
        assert agent.run_sync("Open.").outcome == "succeeded"
        assert (asked, bank.log) == (["s2 open_door"], ["balance a"])
        assert script.told()[:2] == ["100.0", "not made: the user did not allow it"]
        assert "`open_door`, called before it" in script.told()[2]

    def test_undecided(self) -> None:
        bank = Bank()
        agent, _ = self.agent(Script(self.TURN), None, bank)
        result = agent.run_sync("Open.")
        assert (result.outcome, bank.log) == ("waiting", [])
        assert [call.tool for call in result.approvals] == ["open_door"]

    def test_a_forbidden_tool(self) -> None:
        bank = Bank()

        @tool(writes="all", approval="deny")
        def wipe() -> None:
            bank.log.append("wiped")

        script = Script(calls(("wipe", {})), "no")
        Agent(script.model, [wipe], mode="loop").run_sync("Wipe it.")
        assert "TP403" in script.told()[0]
        assert bank.log == []


def front_door(question: str) -> str:
    return f"{question} The front door."


def nobody(_: str) -> None:
    return None


class TestQuestions:
    QUESTION = calls(("ask_user", {"question": "Which one?"}), ("balance", {"account": "a"}))

    def test_the_person_can_be_asked(self) -> None:
        script = Script(self.QUESTION, "The front door it is.")
        result = loop(script, Bank(), ask_user=front_door).run_sync("Open it.")
        assert [spec.name for spec in script.requests[0].tools][-1] == "ask_user"
        assert script.told() == ["Which one? The front door.", "100.0"]
        assert [step.tool for step in result.steps] == ["balance", "ask_user"]

    def test_nobody_answers(self) -> None:
        result = loop(Script(self.QUESTION), Bank(), ask_user=nobody).run_sync("Open it.")
        assert (result.outcome, result.answer) == ("waiting", "Which one?")

    def test_without_anybody_to_ask_it_is_not_offered(self) -> None:
        script = Script(self.QUESTION, "ok")
        loop(script, Bank()).run_sync("Open it.")
        assert "ask_user" not in [spec.name for spec in script.requests[0].tools]
        assert "TP201" in script.told()[0]

    @pytest.mark.parametrize("arguments", [{}, {"question": 3}, {"question": ""}])
    def test_a_question_is_a_text(self, arguments: Any) -> None:
        script = Script(calls(("ask_user", arguments)), "ok")
        loop(script, Bank(), ask_user=front_door).run_sync("Ask.")
        assert script.told()[0].startswith("not made, because it was refused")


def test_tools_with_names_that_no_provider_takes() -> None:
    @tool(name="查天气", reads="weather")
    def weather(city: str) -> str:
        """查一个城市的天气。"""
        return f"{city}晴"

    @tool(name="mail.find", reads="mail")
    def find() -> str:
        return "none"

    script = Script(calls(("tool", {"city": "北京"}), ("mail_find", {})), "晴")
    result = Agent(script.model, [weather, find], mode="loop").run_sync("北京天气怎么样？")
    assert [spec.name for spec in script.requests[0].tools] == ["tool", "mail_find"]
    assert script.requests[0].tools[0].description.startswith("`查天气`\n")
    assert script.told() == ["北京晴", "none"]
    assert [step.tool for step in result.steps] == ["查天气", "mail.find"]
    assert "你用手头的工具" in script.requests[0].messages[0].content


def test_states_hold_from_turn_to_turn() -> None:
    @tool(writes="page", ensures="page:open")
    def navigate() -> str:
        return "there"

    @tool(writes="page", requires="page:open")
    def click() -> str:
        return "clicked"

    script = Script(calls(("click", {})), calls(("navigate", {})), calls(("click", {})), "ok")
    Agent(script.model, [navigate, click], mode="loop").run_sync("Click.")
    assert "TP402" in script.told(1)[0]
    assert script.told(3) == ["clicked"]


def test_the_limit_of_calls_counts_all_turns() -> None:
    bank = Bank()
    script = Script(calls(("balance", {"account": "a"})), calls(("balance", {"account": "b"})), "ok")
    loop(script, bank, limits=Limits(max_calls=1)).run_sync("Look.")
    assert bank.log == ["balance a"]
    assert "TP503" in script.told()[0]


def test_a_turn_of_many_calls_is_cut() -> None:
    script = Script(calls(*[("balance", {"account": str(n)}) for n in range(130)]), "ok")
    bank = Bank()
    loop(script, bank).run_sync("Look.")
    assert len(bank.log) == 128
    assert script.told()[-1] == "not made: of one turn only the first 128 calls are made"


# ---- auto


PLAN = json.dumps({"steps": [{"tool_name": "balance", "arguments": {"account": "a"}}], "answer": "planned"})


@pytest.mark.parametrize(
    ("reply", "mode", "reason"),
    [
        (PLAN, "plan", "the model made a plan"),
        ("There is nothing to do.", "plan", "the model answered in words"),
        ('{"cannot": "no tool sells", "missing": ["a shop"]}', "plan", "the model says what is missing"),
        (
            '{"cannot": "I must see the balance first"}',
            "loop",
            "the model cannot plan it: I must see the balance first",
        ),
        ("I need to call balance first.", "loop", "the model speaks of `balance` instead of planning its call"),
        ('[{"replan": "let me look"}]', "loop", "the plan asks to see results before anything else"),
        ('[{"tool_name": "nothing", "arguments": {}}]', "loop", "no plan passed the checks: TP201"),
    ],
)
def test_auto_plans_first_and_says_why_it_loops(reply: str, mode: str, reason: str) -> None:
    script = Script(reply, calls(("balance", {"account": "a"})), "looked")
    events: list[Any] = []
    agent = Agent(script.model, Bank().tools, mode="auto", max_repairs=0, early_start=False)
    result = agent.run_sync("Look.", watch=events.append)
    assert result.mode_used == mode
    assert result.mode_reason.startswith(reason)
    assert [event.mode for event in events if isinstance(event, ModeChosen)] == (["loop"] if mode == "loop" else [])
    if mode == "loop":
        assert (result.answer, result.inferences) == ("looked", 3)


def test_only_auto_tells_the_model_of_the_loop() -> None:
    for mode, told in (("auto", True), ("plan", False)):
        script = Script(PLAN)
        Agent(script.model, Bank().tools, early_start=False).run_sync("Look.", mode=mode)  # type: ignore[arg-type]
        assert ("turn by turn" in script.requests[0].messages[0].content) is told


def test_a_mode_is_one_of_three() -> None:
    with pytest.raises(UsageError, match="`mode` is 'chat'"):
        Agent(Script().model, mode="chat")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="`mode` is 'chat'"):
        Agent(Script().model).run_sync("x", mode="chat")  # type: ignore[arg-type]


# ---- the parts


def test_the_calls_of_a_turn_become_steps() -> None:
    bank = Bank()
    given = [
        WrittenCall("functions.Balance", '{"account": "a"}'),
        WrittenCall("pay", {"account": "a", "amount": "5"}),
        WrittenCall("ask_user", {"question": "Sure?"}),
        WrittenCall("balance", ""),
    ]
    turn = read_turn_calls(given, bank.tools, first_step=7, can_ask=True)
    first, second, third, fourth = turn.entries
    assert isinstance(first, Call)
    assert (first.id, first.tool) == ("s7", "functions.Balance")  # two mistakes at once have no one reading
    assert isinstance(second, Call)
    assert second.arguments.fields[1][1].value == 5  # type: ignore[union-attr]
    assert "as `5`" in turn.repairs[1][0]
    assert isinstance(third, AskUser)
    assert isinstance(fourth, Call)
    assert fourth.arguments.fields == ()
    mended = read_turn_calls([WrittenCall("functions.balance", {})], bank.tools).entries[0]
    assert isinstance(mended, Call)
    assert mended.tool == "balance"


def test_repeats_count_equal_results_in_a_row() -> None:
    repeats = Repeats(2)

    def note(result: Any, outcome: Any = "succeeded") -> None:
        repeats.note(StepRecord("s1", "t", arguments={"a": 1}, outcome=outcome, result=result))

    note(1)
    assert repeats.times("t", {"a": 1}) is None
    note(2)
    assert repeats.times("t", {"a": 1}) is None
    note(2)
    assert (repeats.times("t", {"a": 1.0}), repeats.times("t", {"a": 2})) == (2, None)
    note(None, "not_run")
    assert repeats.times("t", {"a": 1}) == 2
    note(None, "unknown")
    assert repeats.left_open("t", {"a": 1})


def _talk(turns: int) -> list[Message]:
    talk = [Message("user", "the request")]
    for n in range(turns):
        talk.append(Message("assistant", "", (ToolCallPart(f"c{n}", "t", {"n": n}),)))
        talk.append(Message("tool", tool_results=(ToolResultPart(f"c{n}", "t", "word " * 100),)))
    return talk


def shape(messages: tuple[Message, ...]) -> list[str]:
    return [message.role for message in messages]


def test_what_fits_is_sent_and_calls_keep_their_results() -> None:
    system, before = Message("system", "rules"), [Message("user", "hi"), Message("assistant", "hello")]
    talk = _talk(4)
    assert fitting(system, before, talk, None, "{left}") == (system, *before, *talk)
    assert fitting(system, before, talk, 10_000, "{left}") == (system, *before, *talk)
    short = fitting(system, before, talk, 300, "{left} gone")
    assert shape(short) == ["system", "user", "assistant", "tool", "assistant", "tool"]
    assert short[0].content == "rules\n\n2 gone"
    assert short[1] == talk[0]
    assert short[-1] == talk[-1]
    least = fitting(system, before, talk, 1, "{left} gone")
    assert shape(least) == ["system", "user", "assistant", "tool"]


def test_the_past_goes_before_the_request() -> None:
    system = Message("system", "rules")
    before = [
        Message("user", "old " * 200),
        Message("assistant", "a"),
        Message("user", "new"),
        Message("assistant", "b"),
    ]
    kept = fitting(system, before, _talk(1), 220, "{left}")
    assert [message.content for message in kept[:3]] == ["rules", "new", "b"]
    assert shape(kept) == ["system", "user", "assistant", "user", "assistant", "tool"]


def test_a_long_loop_stays_within_its_budget() -> None:
    @tool(reads="x")
    def read(n: int) -> str:
        return "word " * 300

    script = Script(*[calls(("read", {"n": n})) for n in range(6)], "ok")
    agent = Agent(script.model, [read], mode="loop")
    agent.conversation(token_budget=900).send_sync("Read all.")
    sizes = [len(request.messages) for request in script.requests]
    assert max(sizes) < 8
    assert "are not shown" in script.requests[-1].messages[0].content


def test_steps_of_a_loop_are_told_like_any_others() -> None:
    events: list[Any] = []
    loop(Script(calls(("balance", {"account": "a"})), "ok"), Bank()).run_sync("Look.", watch=events.append)
    assert [event.step for event in events if isinstance(event, StepStarted)] == ["s1"]


# ---- calls as text


HERMES = 'I look.\n<tool_call>\n{"name": "balance", "arguments": {"account": "a"}}\n</tool_call>'


def test_calls_in_text_are_calls_like_any_other() -> None:
    bank = Bank()
    events: list[Any] = []
    script = Script(HERMES, "There are 100.")
    result = loop(script, bank).run_sync("How much is in a?", watch=events.append)
    assert (result.outcome, result.answer, bank.log) == ("succeeded", "There are 100.", ["balance a"])
    said, told = script.requests[1].messages[2:]
    assert (said.content, [call.name for call in said.tool_calls]) == ("I look.", ["balance"])
    assert [part.id for part in told.tool_results] == [said.tool_calls[0].id]
    streamed = "".join(event.text for event in events if isinstance(event, ReplyStreamed))
    assert " ".join(streamed.split()) == "I look. There are 100."


def test_a_call_in_text_that_cannot_be_made_is_told_why() -> None:
    bank = Bank()
    broken = '<tool_call>{"name": "balence", "arguments": {"account": "a"}}</tool_call>'
    script = Script(broken + HERMES, "ok")
    loop(script, bank).run_sync("Look.")
    first, second = script.told()
    assert "did you mean `balance`" in first
    assert (second, bank.log) == ("100.0", ["balance a"])


def test_a_mended_call_is_seen() -> None:
    events: list[Any] = []
    loop(Script(calls(("pay", {"account": "a", "amount": "5"})), "ok"), Bank()).run_sync("Pay.", watch=events.append)
    (mended,) = [event for event in events if isinstance(event, CallMended)]
    assert (mended.step, mended.tool) == ("s1", "pay")


def test_text_that_is_cut_off_in_a_call_runs_nothing() -> None:
    bank = Bank()
    cut = Reply('<tool_call>{"name": "pay", "arguments": {"account": "a", "amount": 5}}', finish_reason="length")
    assert loop(Script(cut, "no"), bank).run_sync("Pay.").outcome == "succeeded"
    assert bank.log == []


@pytest.mark.parametrize(
    ("reply", "reference"),
    [
        ('1. balance("a")\n2. confirm("There are $1.")\n3. confirm("It costs $9.")\n', "$1"),
        ("Plan: look\n#E1 = balance[a]\nPlan: tell\n#E2 = confirm[There are #E1.]\n", "#E1"),
        (
            'Step 1: look\nAction: call balance(account="a")\nOutput: {{a}}\n'
            'Step 2: tell\nAction: call confirm(text="There are {{a[0]}}.")\nOutput: {{b}}\n',
            "{{a[0]}}",
        ),
    ],
)
def test_a_reference_of_a_text_plan_is_refused_and_never_run_as_text(reply: str, reference: str) -> None:
    bank = Bank()
    script = Script(reply, "ok")
    loop(script, bank, policy="declared", failure="independent").run_sync("Tell how much is in a.")
    told = script.told()
    assert f"`{reference}` refers to a result" in told[1]
    assert not [line for line in bank.log if reference in line]
    assert (bank.log[0], told[0]) == ("balance a", "100.0")


def test_a_reference_is_refused_where_tools_have_other_names_for_the_provider() -> None:
    log: list[str] = []

    @tool(reads="accounts", name="查询余额")
    def look(account: str) -> float:
        log.append(f"look {account}")
        return 100.0

    @tool(writes="mail", name="发送.mail")
    def send(text: str) -> str:
        log.append(f"send {text}")
        return "sent"

    class Raw:
        """A model of somebody's own that leaves the calls in the text."""

        name = "raw"

        def __init__(self, script: Script) -> None:
            self.script = script

        async def ask(self, request: ModelRequest, on_text: Any = None) -> Reply:
            self.script.requests.append(request)
            return Reply(str(self.script.replies.pop(0)), usage=Usage(1))

    for first, second, is_raw in (("tool", "mail", False), ("tool", "mail", True), ("查询余额", "发送.mail", True)):
        log.clear()
        script = Script(f"Plan: look\n#E1 = {first}[a]\nPlan: tell\n#E2 = {second}[There are #E1.]\n", "ok")
        model: Any = Raw(script) if is_raw else script.model
        Agent(model, [look, send], mode="loop", policy="declared").run_sync("Tell how much is in a.")
        assert ("TP137" in script.told()[1], log) == (True, ["look a"])
        said = script.requests[1].messages[-2]
        assert [(call.name, call.format) for call in said.tool_calls] == [("tool", "rewoo"), ("mail", "rewoo")]


def test_a_native_call_has_no_references() -> None:
    bank = Bank()
    script = Script(calls(("balance", {"account": "a"}), ("confirm", {"text": "There are #E1 and $1."})), "ok")
    loop(script, bank, policy="declared").run_sync("Tell.")
    assert bank.log == ["balance a", "confirm There are #E1 and $1."]


def test_a_reference_is_refused_beside_thinking_that_the_provider_wants_back() -> None:
    bank = Bank()
    text = "#E1 = balance[a]\n#E2 = confirm[There are #E1.]\n"
    parts: list[Any] = [{"part_kind": "thinking", "content": "hm"}, {"part_kind": "text", "content": text}]
    script = Script(Reply(text, kept={"kind": "response", "parts": parts}), "ok")
    loop(script, bank, policy="declared").run_sync("Tell how much is in a.")
    assert ("`#E1` refers to a result" in script.told()[1], bank.log) == (True, ["balance a"])


# ---- the same again


@pytest.mark.parametrize(
    "same",
    [
        ("balance", {"acount": "a"}),
        ("balance", '{"account": '),
        ("nothing", {}),
        ("pay", {"account": "a", "amount": "much"}),
    ],
)
def test_a_call_that_is_refused_again_and_again_ends_the_loop(same: tuple[str, Any]) -> None:
    script = Script(*[calls(same)] * 20)
    result = loop(script, Bank(), max_repeats=3).run_sync("Look.")
    assert (result.outcome, result.inferences) == ("failed", 5)
    assert "goes round in circles" in str(result.error)


def test_what_a_refused_call_holds_back_is_part_of_the_circle() -> None:
    bank = Bank()
    script = Script(*[calls(("balance", {"account": "none"}), ("confirm", {"text": "x"}))] * 20)
    result = loop(script, bank, max_repeats=2).run_sync("Look.")
    assert (result.outcome, bank.log) == ("failed", ["balance none"] * 2)
    assert result.inferences < 8


def test_another_mistake_each_time_is_no_circle() -> None:
    script = Script(*[calls(("balance", {f"acount{n}": "a"})) for n in range(6)], "I give up.")
    assert loop(script, Bank(), max_repeats=1).run_sync("Look.").answer == "I give up."


def test_an_effect_is_not_made_twice_in_silence() -> None:
    bank = Bank()
    same = calls(("confirm", {"text": "x"}))
    script = Script(same, same, "Done.")
    result = loop(script, bank, policy="declared").run_sync("Confirm.")
    assert (result.outcome, bank.log) == ("succeeded", ["confirm x"])
    assert "has happened already, as step `s1`" in script.told(2)[0]
    assert 'add the argument `"again": "reason"` to the call' in script.told(2)[0]
    assert "Python" not in script.told(2)[0]


@pytest.mark.parametrize("arguments", [{"text": "x", "again": "two copies"}, '{"text": "x", "again": "two copies"}'])
def test_a_reason_makes_an_effect_twice_in_a_loop_too(arguments: Any) -> None:
    bank = Bank()
    script = Script(calls(("confirm", {"text": "x"})), calls(("confirm", arguments)), "Done.")
    result = loop(script, bank, policy="declared").run_sync("Confirm twice.")
    assert (result.outcome, bank.log) == ("succeeded", ["confirm x"] * 2)


def test_an_own_argument_of_that_name_stays_an_argument() -> None:
    log: list[Any] = []

    @tool(writes="x")
    def press(again: str = "") -> str:
        log.append(again)
        return "ok"

    script = Script(calls(("press", {"again": "yes"})), calls(("press", {"again": "yes"})), "Done.")
    Agent(script.model, [press], mode="loop", policy="declared").run_sync("Press.")
    assert log == ["yes"]


def test_what_changes_nothing_or_is_idempotent_may_be_made_again() -> None:
    log: list[str] = []

    @tool(writes="store", idempotent=True)
    def store(key: str) -> str:
        log.append(key)
        return "ok"

    same = calls(("store", {"key": "a"}))
    Agent(Script(same, same, "Done.").model, [store], mode="loop", policy="declared").run_sync("Store.")
    assert log == ["a", "a"]


# ---- empty replies, whatever the model


def _says_nothing(text: str = "the reply was empty") -> ModelError:
    return ModelError(text, provider="p", model="m", reason="empty", usage=Usage(1, 1000, 500))


class Moody:
    """A model whose replies may be errors, as those of providers are."""

    def __init__(self, *replies: Reply | str | ModelError) -> None:
        self.replies = list(replies)
        self.model = FunctionModel(self._reply)

    def _reply(self, request: ModelRequest) -> Reply | str:
        reply = self.replies.pop(0)
        if isinstance(reply, ModelError):
            raise reply
        return reply


def test_a_provider_that_says_nothing_is_asked_once_more() -> None:
    agent = Agent(Moody(_says_nothing(), Reply("Here I am.", usage=Usage(1, 10, 5))).model, mode="loop")
    result = agent.run_sync("Hello?")
    assert (result.answer, result.inferences, result.usage) == ("Here I am.", 2, Usage(2, 1010, 505))


def test_a_provider_that_says_nothing_twice_ends_the_loop() -> None:
    bank = Bank()
    script = Moody(calls(("pay", {"account": "a", "amount": 1})), _says_nothing(), _says_nothing("give it more tokens"))
    result = Agent(script.model, bank.tools, mode="loop").run_sync("Pay a 1.")
    assert (result.outcome, result.error) == ("failed", "the model says nothing: give it more tokens")
    assert "Done before that: s1 (pay)" in result.answer


def test_a_plan_that_is_empty_is_mended_whatever_the_model() -> None:
    for empty in (_says_nothing(), ""):
        result = Agent(Moody(empty, PLAN).model, Bank().tools, early_start=False).run_sync("Look.")
        assert (result.outcome, result.answer, result.inferences) == ("succeeded", "planned", 2)


def test_the_same_effect_twice_in_one_turn_is_made_once() -> None:
    bank = Bank()
    both = calls(("pay", {"account": "a", "amount": 5}), ("pay", {"amount": 5.0, "account": "a"}))
    script = Script(both, "Paid.")
    result = loop(script, bank).run_sync("Pay 5 to a")
    assert (result.outcome, bank.log) == ("succeeded", ["pay a 5.0"])
    assert script.told()[0] == "paid"
    assert "TP409" in script.told()[1]
    assert "already in this turn, as step `s1`" in script.told()[1]
    assert '"again": "reason"' in script.told()[1]


def test_the_same_effect_twice_in_one_turn_is_made_where_the_model_says_why() -> None:
    bank = Bank()
    again = {"account": "a", "amount": 5, "again": "two tickets"}
    script = Script(calls(("pay", {"account": "a", "amount": 5}), ("pay", again)), "Paid.")
    assert loop(script, bank).run_sync("Pay 5 to a, twice").outcome == "succeeded"
    assert bank.log == ["pay a 5.0", "pay a 5.0"]


def test_reading_twice_in_one_turn_is_nothing_to_refuse() -> None:
    bank = Bank()
    script = Script(calls(("balance", {"account": "a"}), ("balance", {"account": "a"})), "100.")
    assert loop(script, bank).run_sync("How much?").outcome == "succeeded"
    assert script.told() == ["100.0", "100.0"]
