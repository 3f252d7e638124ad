"""A plan that stops is gone on with: finished results stay, finished effects are not repeated, the end is clear."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from toolplan import Agent, Limits, Tool, ToolFailed, ToolSet, check, parse, run_plan, tool
from toolplan.agent import Replanning
from toolplan.check import CheckedPlan
from toolplan.errors import ModelError, PlanRejected
from toolplan.known import Known, MadeCall, fingerprint, type_of_known
from toolplan.models import FunctionModel, ModelRequest, ScriptedModel
from toolplan.plan import Plan
from toolplan.plan_schema import plan_schema
from toolplan.replan import known_after, reports, stopped
from toolplan.run import RunResult
from toolplan.tools.sameness import call_key
from toolplan.values import Value


class Office:
    """Tools that write down what they did. `find` fails for everybody who is not there."""

    def __init__(self) -> None:
        self.log: list[str] = []

        @tool(reads="people")
        def find(name: str) -> dict[str, Any]:
            self.log.append(f"find {name}")
            if name == "Bob":
                raise ToolFailed("there is nobody of this name; did you mean Rob?")
            return {"name": name, "mail": f"{name.lower()}@x.org"}

        @tool(writes="mailbox:{to}")
        def send(to: str, text: str) -> str:
            if to == "lost@x.org":
                raise ToolFailed("no such mailbox")
            self.log.append(f"send {to} {text}")
            return "sent"

        @tool(writes="store", idempotent=True)
        def store(key: str) -> str:
            self.log.append(f"store {key}")
            return key

        @tool(writes="bank", timeout_seconds=0.01)
        async def pay(amount: float) -> str:
            self.log.append(f"pay {amount}")
            await asyncio.sleep(10)
            return "paid"

        self.tools = ToolSet.of([find, send, store, pay])


def call(tool_name: str, result: str | None = None, /, **arguments: Any) -> dict[str, Any]:
    return {"tool_name": tool_name, "arguments": arguments} | ({"result_variable": result} if result else {})


def new_agent(*given: Any, **options: Any) -> Agent:
    """An agent that starts nothing while the plan arrives, so that each call is made once."""
    return Agent(*given, early_start=False, **options)


class Script:
    """A model that gives these replies and keeps what it was asked."""

    def __init__(self, *replies: Any) -> None:
        self.replies = [reply if isinstance(reply, str) else json.dumps(reply) for reply in replies]
        self.requests: list[ModelRequest] = []
        self.model = FunctionModel(self._reply)

    def _reply(self, request: ModelRequest) -> str:
        self.requests.append(request)
        if not self.replies:
            raise ModelError("there is nobody", provider="script", model="script")
        return self.replies.pop(0)

    @property
    def purposes(self) -> list[str]:
        return [request.purpose for request in self.requests]


FIRST = {
    "steps": [
        call("find", "ann", name="Ann"),
        call("send", to="{ann.mail}", text="Hello"),
        call("find", "bob", name="Bob"),
        call("send", to="{bob.mail}", text="Hello"),
    ],
    "answer": "Both were told.",
}
REST = {
    "steps": [call("find", "rob", name="Rob"), call("send", to="{rob.mail}", text="Hello")],
    "answer": "I told {ann.name} and {rob.name}.",
}


def test_the_rest_is_planned_with_the_finished_results() -> None:
    office, script = Office(), Script(FIRST, REST)
    events: list[Any] = []
    result = new_agent(script.model, office.tools).run_sync("Tell Ann and Bob.", watch=events.append)
    assert (result.outcome, result.answer) == ("succeeded", "I told Ann and Rob.")
    assert (result.inferences, result.replans, script.purposes) == (2, 1, ["plan", "replan"])
    first = ["find Ann", "find Bob", "send ann@x.org Hello"]
    assert sorted(office.log) == sorted([*first, "find Rob", "send rob@x.org Hello"])
    assert [(step.id, step.outcome) for step in result.steps] == [
        ("s1", "succeeded"),
        ("s2", "succeeded"),
        ("s3", "failed"),
        ("s4", "not_run"),
        ("s5", "succeeded"),
        ("s6", "succeeded"),
    ]
    (stop,) = [event for event in events if isinstance(event, Replanning)]
    assert (stop.number, stop.step) == (1, "s3")
    assert "did you mean Rob" in stop.reason
    assert result.to_dict()["replans"] == 1


def test_the_model_gets_everything_it_needs_and_the_same_beginning() -> None:
    script = Script(FIRST, REST)
    new_agent(script.model, Office().tools).run_sync("Tell Ann and Bob.")
    first, second = script.requests
    assert second.messages[:2] == first.messages
    assert second.messages[2].role == "assistant"
    assert json.loads(second.messages[2].content) == FIRST
    told = second.messages[3].content
    lines = [json.loads(line) for line in told.splitlines() if line.startswith("{")]
    assert lines[0] == {"stopped_at": "s3", "error": "there is nobody of this name; did you mean Rob?"}
    assert lines[1] == {
        "step": "s1",
        "tool": "find",
        "outcome": "succeeded",
        "arguments": {"name": "Ann"},
        "name": "ann",
        "result": {"name": "Ann", "mail": "ann@x.org"},
    }
    assert lines[2]["name"] == "s2"
    assert lines[3]["outcome"] == "failed"
    assert len(lines) == 4
    assert "numbered from s5" in told
    assert second.schema == plan_schema(Office().tools, goes_on=True)


def test_a_replan_step_shows_the_results() -> None:
    office = Office()
    script = Script(
        {"steps": [call("find", "ann", name="Ann"), {"let": {"n": "1 + 1"}}, {"replan": "who is {ann.name}?"}]},
        {"steps": [call("send", to="{ann.mail}", text="{n} times")], "answer": "done"},
    )
    result = new_agent(script.model, office.tools, policy="declared").run_sync("Look at Ann, then decide.")
    assert (result.outcome, result.answer, office.log) == ("succeeded", "done", ["find Ann", "send ann@x.org 2 times"])
    lines = [json.loads(line) for line in script.requests[1].messages[3].content.splitlines() if line.startswith("{")]
    assert lines[0] == {"stopped_at": "replan", "reason": "who is Ann?"}
    assert lines[-1] == {"name": "n", "value": 2}


def test_on_error_replan() -> None:
    office = Office()
    steps = [{**call("find", "bob", name="Bob"), "on_error": "replan"}, call("send", to="{bob.mail}", text="x")]
    result = new_agent(Script({"steps": steps}, {"answer": "Bob is not there."}).model, office.tools).run_sync(
        "Tell Bob."
    )
    assert (result.outcome, result.answer, office.log) == ("succeeded", "Bob is not there.", ["find Bob"])


def test_an_effect_that_has_happened_is_refused_and_the_model_is_told() -> None:
    office = Office()
    again = {"steps": [call("send", to="ann@x.org", text="Hello")], "answer": "sent"}
    script = Script(FIRST, again, {"steps": [], "answer": "Ann was told, Bob is not there."})
    result = new_agent(script.model, office.tools).run_sync("Tell Ann and Bob.")
    assert (result.outcome, script.purposes) == ("succeeded", ["plan", "replan", "repair"])
    assert office.log.count("send ann@x.org Hello") == 1
    repair = script.requests[2]
    assert repair.messages[:4] == script.requests[1].messages
    assert "TP409" in repair.messages[-1].content
    assert "made already as `s2`" in repair.messages[-1].content


def test_a_reason_lets_an_effect_happen_again() -> None:
    office = Office()
    again = {"steps": [{**call("send", to="ann@x.org", text="Hello"), "again": "she asked for a copy"}], "answer": "ok"}
    result = new_agent(Script(FIRST, again).model, office.tools).run_sync("Tell Ann and Bob.")
    assert result.outcome == "succeeded"
    assert office.log.count("send ann@x.org Hello") == 2


def test_a_repetition_that_only_shows_when_it_runs_is_not_made() -> None:
    office = Office()
    find = {**call("find", name="Ann"), "result_variable": "again"}
    hidden = {"steps": [find, call("send", to="{again.mail}", text="Hello")], "answer": "sent"}
    result = new_agent(Script(FIRST, hidden).model, office.tools, max_replans=1).run_sync("Tell Ann and Bob.")
    assert (result.outcome, result.replans) == ("failed", 1)
    assert office.log.count("send ann@x.org Hello") == 1
    assert "made already, as `s2`" in str(result.error)


def test_a_repetition_by_reference_is_refused_before_anything_runs() -> None:
    office = Office()
    hidden = {"steps": [call("send", to="{ann.mail}", text="Hello")], "answer": "sent"}
    script = Script(FIRST, hidden, {"steps": [], "answer": "Bob is not there."})
    result = new_agent(script.model, office.tools, max_replans=1).run_sync("Tell Ann and Bob.")
    assert (result.outcome, result.answer, result.replans) == ("succeeded", "Bob is not there.", 1)
    assert office.log.count("send ann@x.org Hello") == 1
    assert "TP409" in script.requests[2].messages[-1].content


def test_an_effect_that_nobody_knows_of_is_not_repeated() -> None:
    office = Office()
    plan = {"steps": [call("pay", amount=20)], "answer": "paid"}
    script = Script(plan, plan, {"steps": [], "answer": "I do not know whether it was paid."})
    result = new_agent(script.model, office.tools).run_sync("Pay 20.")
    assert (result.outcome, office.log) == ("succeeded", ["pay 20.0"])
    assert '"outcome": "unknown"' in script.requests[1].messages[-1].content
    assert "nobody knows whether `s1` took effect" in script.requests[2].messages[-1].content


def test_what_changes_nothing_or_is_idempotent_may_be_repeated() -> None:
    office = Office()
    first = {"steps": [call("find", name="Ann"), call("store", key="a"), call("find", name="Bob")], "answer": "x"}
    second = {"steps": [call("find", name="Ann"), call("store", key="a")], "answer": "done"}
    assert new_agent(Script(first, second).model, office.tools).run_sync("Store it.").outcome == "succeeded"
    assert office.log.count("store a") == 2


@pytest.mark.parametrize(
    ("error", "is_certain"),
    [
        (ToolFailed("refused", effect_happened=False), True),
        (ConnectionRefusedError("nobody there"), True),
        (ConnectionError("reset"), False),
        (ToolFailed("something went wrong"), False),
        (ToolFailed("half of it was done", effect_happened=True), False),
    ],
    ids=["it says so", "it declares so", "any error", "its own failure", "it happened"],
)
def test_a_call_that_failed_is_made_again_only_if_nothing_has_happened(error: Exception, is_certain: bool) -> None:
    tried: list[str] = []

    @tool(writes="mail", nothing_happened=ConnectionRefusedError)
    def post(to: str) -> str:
        tried.append(to)
        raise error

    plan = {"steps": [call("post", to="a")], "answer": "sent"}
    script = Script(plan, plan, {"steps": [], "answer": "I do not know."})
    result = new_agent(script.model, ToolSet.of([post]), max_replans=1).run_sync("Post it to a.")
    assert tried == ["a"] * (2 if is_certain else 1)
    if not is_certain:
        assert result.outcome == "succeeded"
        assert "may have taken effect already, as step `s1`" in script.requests[2].messages[-1].content


def test_a_doubtful_attempt_counts_even_if_a_later_one_certainly_did_nothing() -> None:
    tried: list[str] = []

    @tool(writes="mail", idempotent=True, retry=2)
    def post(to: str) -> str:
        tried.append(to)
        raise ConnectionError("reset") if len(tried) == 1 else ToolFailed("no", effect_happened=False)

    reading = parse({"steps": [call("post", to="a")], "answer": "sent"}, tools=ToolSet.of([post]))
    assert isinstance(reading, Plan)
    checked = check(reading, ToolSet.of([post]))
    assert len(known_after(checked, asyncio.run(run_plan(checked, keep_names=True))).made) == 1


def test_replans_are_bounded_and_the_end_says_everything() -> None:
    office = Office()
    bad = {"steps": [call("find", name="Bob")], "answer": "x"}
    script = Script(FIRST, bad, bad, bad)
    result = new_agent(script.model, office.tools, max_replans=2).run_sync("Tell Ann and Bob.")
    assert (result.outcome, result.inferences, result.replans) == ("failed", 3, 2)
    assert "step s6 (find) failed" in result.answer
    assert "Done before that: s2 (send)" in result.answer


def test_without_replans_left_a_wish_to_plan_again_fails() -> None:
    result = new_agent(Script({"steps": [{"replan": "look"}]}).model, Office().tools, max_replans=0).run_sync("Go.")
    assert result.outcome == "failed"
    assert result.error == "the plan asks to plan again: look; no more plans may follow (max_replans=0)"


def test_a_model_that_cannot_be_reached_loses_nothing() -> None:
    office, script = Office(), Script(FIRST)
    result = new_agent(script.model, office.tools).run_sync("Tell Ann and Bob.")
    assert (result.outcome, result.replans) == ("failed", 1)
    assert "did you mean Rob" in result.answer
    assert "planning again failed: there is nobody" in str(result.error)
    assert len(result.steps) == 4


@pytest.mark.parametrize(
    ("reply", "outcome", "answer"),
    [
        ("Bob is not in the book, Ann was told.", "failed", "Bob is not in the book, Ann was told."),
        ({"cannot": "Bob is not there", "missing": ["his address"]}, "failed", "Bob is not there"),
        ({"steps": [call("nothing")]}, "failed", "did you mean Rob"),
    ],
)
def test_how_a_replanned_request_can_end(reply: Any, outcome: str, answer: str) -> None:
    result = new_agent(Script(FIRST, reply).model, Office().tools, max_repairs=0).run_sync("Tell Ann and Bob.")
    assert (result.outcome, result.replans, len(result.steps)) == (outcome, 1, 4)
    assert answer in result.answer


def test_the_rest_needs_a_persons_word_too() -> None:
    office = Office()
    asked: list[str] = []

    @tool(writes="door", approval="ask")
    def open_door(name: str) -> str:
        office.log.append(f"open {name}")
        return "open"

    def approve(calls: Any, _: CheckedPlan) -> bool | None:
        asked.extend(call.step for call in calls)
        return None

    rest = {"steps": [call("open_door", name="front")], "answer": "open"}
    agent = new_agent(Script(FIRST, rest).model, [*office.tools, open_door], approve=approve)
    result = agent.run_sync("Tell them, open the door.")
    assert (result.outcome, asked) == ("waiting", ["s5"])
    assert result.answer.startswith("The rest was not run")
    assert [step.id for step in result.steps] == ["s1", "s2", "s3", "s4"]


def test_the_rest_is_reviewed_in_view_of_what_was_done() -> None:
    fine = '{"objections": []}'
    script = Script(FIRST, fine, REST, fine)
    result = new_agent(script.model, Office().tools, review=True).run_sync("Tell Ann and Bob.")
    assert (result.outcome, script.purposes) == ("succeeded", ["plan", "review", "replan", "review"])
    assert "did you mean Rob" in script.requests[3].text
    assert "did you mean Rob" not in script.requests[1].text


def test_a_given_plan_is_gone_on_with_only_for_a_request() -> None:
    script = Script(REST, REST)
    agent = new_agent(script.model, Office().tools)
    assert agent.run_plan_sync(FIRST).outcome == "failed"  # type: ignore[arg-type]
    assert script.requests == []
    assert agent.run_plan_sync(FIRST, request="Tell Ann and Bob.").outcome == "succeeded"  # type: ignore[arg-type]


def test_the_python_notation() -> None:
    office = Office()
    first = 'ann = find(name="Ann")\nsend(to=ann.mail, text="Hello")\nbob = find(name="Bob")\nreturn "x"'
    rest = (
        'seen = [ann.name]\nseen.append("Rob")\n'
        'send(to="ann@x.org", text="Hello")  # again: she lost it\nreturn f"{seen}"'
    )
    script = Script(first, rest)
    result = new_agent(script.model, office.tools, notation="python").run_sync("Tell Ann and Bob.")
    assert (result.outcome, result.answer) == ("succeeded", '["Ann", "Rob"]')
    assert script.requests[1].messages[2].content == first
    assert "# again: reason" in script.requests[1].messages[-1].content


def test_a_program_may_change_what_an_earlier_one_has_made() -> None:
    first = "xs = [1]\nreplan('look')"
    rest = "xs.append(2)\nn = 1\nn += len(xs)\nreturn f'{xs} {n}'"
    agent = new_agent(Script(first, rest).model, Office().tools, notation="python")
    assert agent.run_sync("Count.").answer == "[1, 2] 3"


def test_the_words_are_those_of_the_request() -> None:
    script = Script(FIRST, REST)
    new_agent(script.model, Office().tools).run_sync("告诉安和鲍勃。")
    assert "步骤从 s5 开始编号" in script.requests[1].messages[-1].content


def test_times_and_the_run_go_on() -> None:
    script = Script(FIRST, REST)
    result = new_agent(script.model, Office().tools).run_sync("Tell Ann and Bob.")
    third, fifth = result.steps[2], result.steps[4]
    assert third.finished_seconds is not None
    assert fifth.started_seconds is not None
    assert fifth.started_seconds >= third.finished_seconds
    assert result.run_id


# ---- the lower parts, with given values


def left_by(plan: Any, tools: ToolSet, known: Known | None = None) -> tuple[CheckedPlan, RunResult, Known]:
    reading = parse(plan, tools=tools, first_step=known.steps + 1 if known else 1)
    assert isinstance(reading, Plan)
    checked = check(reading, tools, known=known) if known else check(reading, tools)
    run = asyncio.run(run_plan(checked, keep_names=True))
    return checked, run, known_after(checked, run)


def values(known: Known) -> dict[str, Any]:
    return {name: value.data for name, value in known.values.items()}


def test_what_a_failed_plan_leaves() -> None:
    office = Office()
    plan = [
        {"let": {"total": "1"}},
        {
            "if": "true",
            "then": [
                {"let": {"total": "total + 1", "inner": "'here'"}},
                call("find", "ann", name="Ann"),
                call("find", "bob", name="Bob"),
            ],
        },
        {"let": {"total": "100"}},
        call("find", "zoe", name="Zoe"),
    ]
    _, run, known = left_by(plan, office.tools)
    found = values(known)
    assert (found["total"], found["inner"], found["ann"]["name"]) == (2, "here", "Ann")
    assert found["s4"] == found["ann"]
    assert "bob" not in found
    assert known.steps == 7
    assert run.failed_step == "s5"
    assert known.values["ann"].origins == {"s4"}


def test_rounds_are_known_by_their_number_and_results_of_loops_by_name() -> None:
    office = Office()
    plan = [
        {"for_each": "['Ann', 'Cid']", "as": "n", "do": [call("find", "p", name="{n}")], "result_variable": "people"},
        {"for_each": "['Dan', 'Bob']", "as": "n", "do": [call("find", "p", name="{n}")], "result_variable": "others"},
    ]
    _, run, known = left_by(plan, office.tools)
    found = values(known)
    assert [each["name"] for each in found["people"]] == ["Ann", "Cid"]
    assert found["s4_0"]["name"] == "Dan"
    assert "others" not in found
    assert "p" not in found
    said, others = reports(run.steps, known)
    assert [report.name for report in said] == ["s2_0", "s2_1", "s4_0", None]
    assert list(others) == ["people"]
    assert stopped(run) == {"stopped_at": "s4[1]", "error": "there is nobody of this name; did you mean Rob?"}


def test_keeping_names_does_not_tie_rounds_together() -> None:
    """A name from before a loop that its body gives to something too, and that nothing uses, is no accumulator."""
    seen: list[int] = []
    most = 0

    @tool(reads="x")
    async def look(n: int) -> int:
        nonlocal most
        seen.append(n)
        await asyncio.sleep(0)
        most = max(most, len(seen))
        seen.remove(n)
        return n

    body = [call("look", "w", n="{i}")]
    plan = [call("look", "w", n=9), {"for_each": "range(4)", "as": "i", "do": body, "result_variable": "ws"}]
    left_by(plan, ToolSet.of([look]))
    assert most == 5  # the call before the loop, and every round


def test_a_second_replan_builds_on_everything() -> None:
    office = Office()
    _, first_run, first = left_by([call("find", "ann", name="Ann"), call("find", name="Bob")], office.tools)
    rest = [call("send", to="{ann.mail}", text="1"), call("find", "cid", name="Cid"), call("find", name="Bob")]
    _, second_run, second = left_by(rest, office.tools, first)
    assert (second.steps, second.calls) == (5, 5)
    assert values(second)["ann"]["mail"] == "ann@x.org"
    assert [(made.step, made.outcome) for made in second.made] == [("s3", "succeeded")]
    said, _ = reports((*first_run.steps, *second_run.steps), second)
    assert [(report.step, report.name) for report in said if report.name] == [
        ("s1", "ann"),
        ("s3", "s3"),
        ("s4", "cid"),
    ]


def test_states_that_hold_are_known() -> None:
    @tool(writes="page", ensures="page:{url}")
    def navigate(url: str) -> str:
        return url

    @tool(writes="page", requires="page:a")
    def click() -> str:
        raise ToolFailed("no button", effect_happened=False)

    tools = ToolSet.of([navigate, click])
    _, _, known = left_by([call("navigate", url="a"), call("click")], tools)
    assert known.states == {"page:a"}
    reading = parse([call("click")], tools=tools, first_step=3)  # type: ignore[list-item]
    assert isinstance(reading, Plan)
    assert check(reading, tools, known=known)
    with pytest.raises(PlanRejected):
        check(reading, tools)


def test_states_that_hold_are_named_by_what_the_tool_got() -> None:
    @tool(writes="page", ensures=("page:{url}", "row:{number}"))
    def navigate(url: str = "home", number: int = 1, tag: str | None = None) -> str:
        return url

    @tool(reads="page", requires="page:{url}")
    def look(url: str) -> str:
        raise ToolFailed("gone", effect_happened=False)

    tools = ToolSet.of([navigate, look])
    _, _, known = left_by([call("navigate", number=2.0), call("look", url="home")], tools)
    assert known.states == {"page:home", "row:2"}


def refused(plan: Any, known: Known, tools: ToolSet | None = None, limits: Limits | None = None) -> list[str]:
    tools = tools or Office().tools
    reading = parse(plan, tools=tools, first_step=known.steps + 1)
    assert isinstance(reading, Plan)
    try:
        found = check(reading, tools, limits or Limits(), known).warnings
    except PlanRejected as rejection:
        found = rejection.diagnostics
    return [f"{each.code} {each.message}" for each in found]


PERSON = Known({"ann": Value({"name": "Ann", "age": 30, "boss": None}, frozenset({"s1"}))}, steps=1, calls=1)


@pytest.mark.parametrize(
    ("plan", "codes"),
    [
        ([call("send", to="{ann.name}", text="x")], []),
        ([call("send", to="{ann.mail}", text="x")], ["TP306"]),
        ([call("send", to="{ann.age}", text="x")], ["TP304"]),
        ([call("pay", amount="{ann.age}")], []),
        ([{"if": "ann.name == 'Bob'", "then": [{"answer": "Bob"}]}], []),
        ([call("find", name="{bob}")], ["TP203"]),
        ([{**call("find", name="x"), "depends_on": ["ann"]}], []),
        ([call("find", "q", name="x"), {"answer": "{s2.name} {s1.name}"}], ["TP203"]),
    ],
)
def test_known_values_have_names_and_types(plan: Any, codes: list[str]) -> None:
    found = [each.split()[0] for each in refused(plan, PERSON)]
    assert found == codes


def test_the_calls_before_count_towards_the_limit() -> None:
    known = Known(steps=4, calls=4)
    assert refused([call("find", name="a")], known, limits=Limits(max_calls=5)) == []
    (found,) = refused([call("find", name="a"), call("find", name="b")], known, limits=Limits(max_calls=5))
    assert found.startswith("TP503")
    assert refused([{"answer": "x"}], known, limits=Limits(max_calls=3)) == []


@pytest.mark.parametrize(
    ("arguments", "same"),
    [({"amount": 20}, True), ({"amount": 20.0}, True), ({"amount": 21}, False), ({"amount": True}, False)],
)
def test_when_two_calls_are_the_same(arguments: dict[str, Any], same: bool) -> None:
    assert (fingerprint("pay", arguments) == fingerprint("pay", {"amount": 20.0})) is same
    known = Known(made=(MadeCall("s1", "pay", {"amount": 20.0}),), steps=1)
    assert any(each.startswith("TP409") for each in refused([call("pay", **arguments)], known)) is same


@pytest.mark.parametrize("place", ["then", "do", "on_error"])
def test_a_repetition_is_found_wherever_it_stands(place: str) -> None:
    known = Known(made=(MadeCall("s1", "send", {"to": "a", "text": "x"}),), steps=1)
    again = [call("send", to="a", text="x")]
    plans: dict[str, Any] = {
        "then": [{"if": "now > '2020'", "then": again}],
        "do": [{"for_each": "[1]", "as": "i", "do": again}],
        "on_error": [{**call("find", name="q"), "on_error": {"do": again}}],
    }
    assert "TP409" in [each.split()[0] for each in refused(plans[place], known)]


def test_a_tool_that_declares_nothing_is_taken_to_have_effects() -> None:
    @tool
    def look(name: str) -> str:
        return name

    known = Known(made=(MadeCall("s1", "look", {"name": "a"}),), steps=1)
    assert refused([call("look", name="a")], known, ToolSet.of([look]))[0].startswith("TP409")


def test_an_optional_argument_that_is_not_given_makes_no_difference() -> None:
    def post(text: str, tag: str = "") -> str:
        return text + tag

    tools = ToolSet.of([Tool.of(post, writes="wall")])
    known = Known(made=(MadeCall("s1", "post", {"text": "a"}),), steps=1)
    assert refused([call("post", text="a", tag=None)], known, tools)[0].startswith("TP409")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"),
        (True, "bool"),
        (3, "int"),
        (2.5, "float"),
        ("x", "str"),
        ([1, 2], "list[int]"),
        ([1, "a"], "list[int | str]"),
    ],
)
def test_types_of_known_values(value: Any, text: str) -> None:
    assert str(type_of_known(value)) == text


def test_again_is_part_of_a_plan_in_both_notations() -> None:
    from toolplan.show import canonical

    tools = Office().tools
    for plan in (
        '[{"tool_name": "send", "arguments": {"to": "a", "text": "b"}, "again": "it was lost"}]',
        'send(to="a",\n     text="b")  # again: it was lost',
        'send(to="a", text="b")  # again：it was lost',
    ):
        reading = parse(plan, tools=tools)
        assert isinstance(reading, Plan)
        assert '"again": "it was lost"' in canonical(reading)
    other = parse('x = find(name="a")  # again: x\nsend(to="a", text="b")', tools=tools)
    assert isinstance(other, Plan)
    assert getattr(other.steps[1], "again", "") is None


@pytest.mark.parametrize("reason", ["", True, 3, {"a": 1}])
def test_a_reason_is_a_text(reason: Any) -> None:
    with pytest.raises(PlanRejected) as refusal:
        parse([{**call("send", to="a", text="b"), "again": reason}], tools=Office().tools)  # type: ignore[list-item]
    assert [d.code for d in refusal.value.diagnostics] == ["TP114"]


def test_a_scripted_recording_can_play_a_replan() -> None:
    office = Office()
    lines = [{"text": json.dumps(FIRST), "purpose": "plan"}, {"text": json.dumps(REST), "purpose": "replan"}]
    assert new_agent(ScriptedModel(lines), office.tools).run_sync("Tell Ann and Bob.").outcome == "succeeded"


# ---- the same call, however it is written


def _post(log: list[Any]) -> Tool:
    def post(text: str, tag: str = "news", size: int | None = None) -> str:
        log.append((text, tag, size))
        return "posted"

    return Tool.of(post, writes="wall")


@pytest.mark.parametrize("first", [{}, {"tag": "news"}, {"size": None}])
@pytest.mark.parametrize(
    ("then", "same"),
    [({}, True), ({"tag": "news"}, True), ({"size": None}, True), ({"tag": "old"}, False), ({"size": 1}, False)],
)
@pytest.mark.parametrize("late", [False, True])
def test_a_default_that_is_spelled_out_makes_no_other_call(
    first: dict[str, Any], then: dict[str, Any], same: bool, late: bool
) -> None:
    log: list[Any] = []
    office = Office()
    text = "{ann.name}" if late else "Ann"
    script = Script(
        [call("find", "ann", name="Ann"), call("post", text=text, **first), call("find", name="Bob")],
        [call("post", text=text, **then)],
    )
    agent = new_agent(script.model, [*office.tools, _post(log)], max_repairs=0, max_replans=1, policy="declared")
    result = agent.run_sync("Post it.")
    assert (len(log), result.outcome) == ((1, "failed") if same else (2, "succeeded"))


def _pinned(**given: Any) -> str:
    return "pinned"


def test_defaults_inside_of_arguments_count_too() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "card": {"$ref": "#/$defs/Card"},
            "copies": {"type": "array", "items": {"$ref": "#/$defs/Card"}},
        },
        "required": ["card"],
        "$defs": {
            "Card": {
                "type": "object",
                "properties": {"title": {"type": "string"}, "color": {"type": "string", "default": "red"}},
                "required": ["title"],
            }
        },
    }
    pin = Tool.from_schema("pin", "Pin it.", schema, _pinned, writes="wall")
    made: dict[str, Any] = {"card": {"title": "a"}, "copies": [{"title": "b"}]}
    told: dict[str, Any] = {"card": {"title": "a", "color": "red"}, "copies": [{"title": "b", "color": "red"}]}
    assert call_key(pin, made) == call_key(pin, told)
    assert call_key(pin, made) != call_key(pin, {**told, "card": {"title": "a", "color": "blue"}})


# ---- ends that say what they are


@pytest.mark.parametrize("mode", ["plan", "auto"])
@pytest.mark.parametrize("prose", ["I will try find next.", "not a plan at all"])
def test_words_after_a_failed_step_do_not_make_it_succeed(prose: str, mode: Any) -> None:
    result = new_agent(Script(FIRST, prose).model, Office().tools, mode=mode).run_sync("Tell Ann and Bob.")
    assert (result.outcome, result.answer) == ("failed", prose)
    assert "there is nobody of this name" in str(result.error)
    assert "words" in str(result.error)


def test_words_after_what_a_plan_wanted_to_see_are_its_answer() -> None:
    look = {"steps": [call("find", name="Ann"), {"replan": "see"}]}
    result = new_agent(Script(look, "Ann is there.").model, Office().tools).run_sync("Is Ann there?")
    assert (result.outcome, result.answer, result.error) == ("succeeded", "Ann is there.", None)


def test_a_used_up_number_of_replans_is_named() -> None:
    look = {"steps": [{"replan": "see"}]}
    result = new_agent(Script(*[look] * 3).model, Office().tools, max_replans=2).run_sync("Go.")
    assert result.error == "the plan asks to plan again: see; no more plans may follow (max_replans=2)"
    bad = {"steps": [call("find", name="Bob")], "answer": "x"}
    result = new_agent(Script(bad, bad).model, Office().tools, max_replans=1).run_sync("Tell Bob.")
    assert str(result.error).endswith("no more plans may follow (max_replans=1)")
