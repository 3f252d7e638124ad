"""A person's words, and what decides whether they are asked for, from one process to the next."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from journals import read, written
from toolplan import Agent, tool
from toolplan.approval import Card, Decision
from toolplan.check import CheckedPlan
from toolplan.errors import JournalMismatch
from toolplan.journal import Journal, PlanBegun
from toolplan.journal.waiting import answer, approve, questions
from toolplan.models import FunctionModel, Reply, ToolCallPart
from toolplan.plan import Call, Plan, walk
from toolplan.policy import PlannedCall, Review, policy_from_toml
from toolplan.show import template_json, to_json
from toolplan.turn import Turn

LOOKS = policy_from_toml('otherwise = "ask"\n[[rule]]\neffect = "none"\nthen = "ask"\n', "looks")
FREE = policy_from_toml('otherwise = "allow"\n', "free")


class Post:
    """An office that keeps what was sent; a mailbox with other people's text."""

    def __init__(self) -> None:
        self.sent: list[str] = []

        @tool(reads="book")
        def find(name: str) -> str:
            return f"{name}@example.com"

        @tool(reads="mailbox", untrusted=True)
        def read_mail(about: str) -> str:
            return "eve@example.net"

        @tool(writes="mailbox:{to}", guarded="to")
        def send(to: str, body: str = "hi") -> str:
            self.sent.append(to)
            return f"sent to {to}"

        self.tools = [find, read_mail, send]


def step(tool_name: str, result: str | None = None, /, **arguments: Any) -> dict[str, Any]:
    return {"tool_name": tool_name, "arguments": arguments} | ({"result_variable": result} if result else {})


def played(*replies: Any) -> Callable[[], FunctionModel]:
    """Return what makes a model that gives these replies, whichever process asks: by how many it has given before."""
    given = [0]

    def reply(_: Any) -> Any:
        given[0] += 1
        said = replies[min(given[0], len(replies)) - 1]
        return said if isinstance(said, str | Reply) else json.dumps(said)

    return lambda: FunctionModel(reply)


def turns(*replies: Any) -> Callable[[], FunctionModel]:
    """The same for a loop: by the place of the conversation."""

    def reply(request: Any) -> Any:
        said = replies[sum(message.role == "assistant" for message in request.messages)]
        if isinstance(said, str):
            return said
        return Reply("", tuple(ToolCallPart(f"c{n}", name, given) for n, (name, given) in enumerate(said)))

    return lambda: FunctionModel(reply)


MARY = step("send", to="mary@example.com")
BOB = step("send", to="bob@example.com")
UNCLEAR = f"The page contains the following instructions:\n\n```json\n{json.dumps([MARY, BOB])}\n```"
MENDED = json.dumps([MARY, BOB])[:-1] + ",]"
CALL = f"The page contains the following call:\n\n```json\n{json.dumps([MARY])}\n```"


# What decides whether a person is asked ------------------------------------------------------------------------------


def said_of(review: Review) -> dict[str, Any]:
    """Return everything of a review, of its plan and of its calls, but where in a text it stands."""
    plan_fields = {field.name for field in dataclasses.fields(Plan)}
    assert plan_fields == {"steps", "answer", "thought", "inputs", "source", "notation", "repairs"}  # is it written?
    call_fields = {field.name for field in dataclasses.fields(PlannedCall)}
    assert call_fields == {"step", "tool", "arguments", "writes", "verdict", "sources", "unsaid", "again"}
    plan = review.plan
    calls = [
        (c.step, c.tool, template_json(c.arguments), c.writes, c.verdict, c.sources, c.unsaid, c.again)
        for c in review.calls
    ]
    again = [(step.id, step.again) for step in walk(plan.steps) if isinstance(step, Call)]
    written = (to_json(plan), [step.id for step in walk(plan.steps)], again, plan.repairs, plan.notation, plan.inputs)
    others = {field.name for field in dataclasses.fields(Review)} - {"plan", "tools", "calls", "forbidden"}
    rest = {name: getattr(review, name) for name in others}
    return {"plan": written, "calls": calls, "watched": review.watched} | rest


@pytest.fixture
def reviews(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the policy has said of plans so far."""
    seen: list[dict[str, Any]] = []
    reviewed = Turn.reviewed

    def look(self: Turn, checked: CheckedPlan) -> Review:
        found = reviewed(self, checked)
        seen.append(said_of(found))
        return found

    monkeypatch.setattr(Turn, "reviewed", look)
    return seen


PYTHON = 'who = find(name="ann")\nsend(to=who)\nsend(to="bob@example.com")'
ASKS_FIRST = [{"ask_user": "Which?", "result_variable": "who"}, step("send", to="{who}")]
ONCE_MORE = {**MARY, "again": "it was not read"}
CASES: dict[str, tuple[Callable[[], FunctionModel], dict[str, Any], str]] = {
    "unclear": (played(UNCLEAR), {}, "Write to mary@example.com and bob@example.com"),
    "mended": (played(MENDED), {}, "Write to mary@example.com and bob@example.com"),
    "auto": (played(UNCLEAR), {"mode": "auto"}, "Write to mary@example.com and bob@example.com"),
    "small words": (played([MARY, BOB]), {}, "Write to my friends"),
    "python": (played(f"```python\n{PYTHON}\n```"), {"notation": "python"}, "Write to Ann."),
    "inputs": (played({"inputs": {"x": "mary@example.com"}, "steps": [step("send", to="{x}")]}), {}, "Write."),
    "other people's text": (
        played([step("read_mail", "mail", about="x"), step("send", to="{mail}")]),
        {},
        "Answer the mail.",
    ),
    "a question": (played(ASKS_FIRST), {"policy": "cautious", "approve": lambda calls, card: True}, "Write."),
    "again": (
        played([MARY, {"replan": "what now?"}], [step("read_mail", about="x"), ONCE_MORE]),
        {"policy": "cautious", "approve": lambda calls, card: None if calls[0].again else True},
        "Write to her.",
    ),
    "changed": (
        played([MARY, {"ask_user": "on?"}, BOB]),
        {
            "policy": "cautious",
            "approve": lambda calls, card: (
                {c.step: Decision.allow(arguments={"to": "ann@example.com"}) if c.step == "s1" else True for c in calls}
            ),
        },
        "Write.",
    ),
    "a loop": (turns([("send", {"to": "mary@example.com"})], "Done."), {"mode": "loop"}, "Write."),
    "an unclear loop": (turns(CALL, "Done."), {"mode": "loop"}, "Write to mary@example.com."),
    "a loop after other people's text": (
        turns([("read_mail", {"about": "x"})], [("send", {"to": "bob@example.com"})], "Done."),
        {"mode": "loop"},
        "Write to Bob.",
    ),
}


@pytest.mark.parametrize("case", CASES)
async def test_the_policy_says_the_same_in_the_next_process(
    case: str, tmp_path: Path, reviews: list[dict[str, Any]]
) -> None:
    model, options, request = CASES[case]
    post, path = Post(), tmp_path / "j.db"
    first = await Agent(model(), post.tools, journal=path, early_start=False, **options).run(request)
    assert first.outcome == "waiting", first.error
    sent, then = list(post.sent), list(reviews)
    reviews.clear()
    again = await Agent(model(), post.tools, journal=path, **{**options, "approve": None}).resume(first.run_id)
    assert (again.outcome, post.sent) == ("waiting", sent)
    assert [call.step for call in again.approvals] == [call.step for call in first.approvals]
    assert reviews
    assert reviews[-1] == then[-1]
    for review in reviews:
        assert review in then


async def test_the_policy_says_the_same_of_a_request_of_a_conversation(
    tmp_path: Path, reviews: list[dict[str, Any]]
) -> None:
    """What was said before, and whether other people's text was read, count as they did."""
    post, path = Post(), tmp_path / "j.db"
    read = [step("read_mail", "mail", about="x"), step("find", "bob", name="bob"), {"answer": "It is read."}]
    model = played(read, [MARY, BOB, step("send", to="{bob}")])
    chat = Agent(model(), post.tools, journal=path, early_start=False).conversation()
    assert (await chat.send("Read. mary@example.com is my sister.")).outcome == "succeeded"
    first = await chat.send("Write to them.")
    assert (first.outcome, post.sent) == ("waiting", [])
    then = list(reviews)
    reviews.clear()
    again = await Agent(model(), post.tools, journal=path).resume(first.run_id)
    assert (again.outcome, post.sent) == ("waiting", [])
    assert reviews[-1] == then[-1]


@pytest.mark.parametrize("text", [UNCLEAR, MENDED])
@pytest.mark.parametrize("word", ["none", "no", "one", "yes"])
async def test_a_mended_plan_is_not_gone_on_with_without_a_yes(tmp_path: Path, text: str, word: str) -> None:
    post, path, model = Post(), tmp_path / "j.db", played(text)

    def agent() -> Agent:
        return Agent(model(), post.tools, journal=path)

    first = await agent().run("Write to mary@example.com and bob@example.com")
    assert (first.outcome, post.sent) == ("waiting", [])
    with Journal(path) as journal:
        if word != "none":
            approve(journal, first.run_id, steps=["s1"] * (word == "one"), deny="no, never" if word == "no" else None)
    result = await agent().resume(first.run_id)
    sent = ["mary@example.com", "bob@example.com"] if word == "yes" else []
    assert post.sent == sent
    assert result.outcome == {"yes": "succeeded", "no": "rejected"}.get(word, "waiting")


async def test_a_plan_that_an_older_version_has_mended_still_asks(tmp_path: Path) -> None:
    post, path, model = Post(), tmp_path / "j.db", played(MENDED)
    first = await Agent(model(), post.tools, journal=path).run("Write to mary@example.com and bob@example.com")
    entries = [dataclasses.replace(e, repairs=[]) if isinstance(e, PlanBegun) else e for e in read(path)]
    written(tmp_path / "old.db", entries)
    result = await Agent(model(), post.tools, journal=tmp_path / "old.db").resume(first.run_id)
    assert (result.outcome, post.sent) == ("waiting", [])


# A no, and changed arguments ------------------------------------------------------------------------------------------


async def test_a_no_holds_whatever_the_policy_is_by_then(tmp_path: Path) -> None:
    for number, mode in enumerate(("plan", "loop")):
        post, path = Post(), tmp_path / f"{number}.db"
        model = (
            played([MARY, BOB])
            if mode == "plan"
            else turns([("send", {"to": "mary@example.com"}), ("send", {"to": "bob@example.com"})], "Not sent.")
        )

        def agent(policy: Any, mode: Any = mode, model: Any = model, post: Post = post, path: Path = path) -> Agent:
            return Agent(model(), post.tools, journal=path, mode=mode, policy=policy, max_repairs=0)

        first = await agent("cautious").run("Write.")
        with Journal(path) as journal:
            approve(journal, first.run_id, steps=["s1"], deny="no!")
        with pytest.raises(JournalMismatch, match="the policy is not what it was"):
            await agent(FREE).resume(first.run_id)
        for policy in (FREE, "declared", LOOKS):
            result = await agent(policy).resume(first.run_id, accept_changes=True)
            assert post.sent == []
            assert result.outcome == ("rejected" if mode == "plan" else "succeeded")


async def test_a_no_to_a_call_that_changes_nothing_holds_too(tmp_path: Path) -> None:
    post, path = Post(), tmp_path / "j.db"
    model = played([step("read_mail", "mail", about="private"), {"answer": "{mail}"}])
    first = await Agent(model(), post.tools, journal=path, policy=LOOKS, early_start=False).run("Read.")
    with Journal(path) as journal:
        approve(journal, first.run_id, deny="that is private")
    result = await Agent(model(), post.tools, journal=path, policy=FREE, max_repairs=0).resume(
        first.run_id, accept_changes=True
    )
    assert (result.outcome, result.error) == ("rejected", "the plan was not approved: that is private")


async def test_a_no_to_a_call_that_is_about_to_be_made_holds(tmp_path: Path) -> None:
    post, path = Post(), tmp_path / "j.db"
    model = played([step("find", "who", name="ann"), step("send", to="{who}"), {"answer": "done"}])

    def look(calls: Any, card: Card) -> Decision | None:
        return Decision.allow(each_call=True) if card.about == "plan" else None

    first = await Agent(model(), post.tools, journal=path, policy="cautious", approve=look).run("Write.")
    assert first.outcome == "waiting"
    with Journal(path) as journal:
        [question] = questions(journal.read(first.run_id))
        assert question["planned"] is False
        approve(journal, first.run_id, deny="not her")
    result = await Agent(model(), post.tools, journal=path, policy=FREE, max_replans=0).resume(
        first.run_id, accept_changes=True
    )
    assert (result.outcome, post.sent) == ("failed", [])
    assert (result.error or "").startswith("not allowed: not her")


async def test_changed_arguments_hold_whatever_the_policy_is_by_then(tmp_path: Path) -> None:
    """The process ends between the person's word and the run."""
    right = Decision.allow(arguments={"to": "ann@example.com"})
    for number, mode in enumerate(("plan", "loop")):
        post, path = Post(), tmp_path / f"{number}.db"
        loop = turns([("send", {"to": "mary@example.com"}), ("send", {"to": "bob@example.com"})], "Sent.")
        model = played([MARY, BOB]) if mode == "plan" else loop

        def person(calls: Any, card: Card) -> Any:
            return {call.step: right if call.values["to"] == "mary@example.com" else None for call in calls}

        options: dict[str, Any] = {"journal": path, "mode": mode}
        first = await Agent(model(), post.tools, policy="cautious", approve=person, **options).run("Write.")
        made = [] if mode == "plan" else ["ann@example.com"]  # calls of a turn have their words one by one
        assert (first.outcome, post.sent) == ("waiting", made)
        result = await Agent(model(), post.tools, policy=FREE, **options).resume(first.run_id, accept_changes=True)
        assert (result.outcome, post.sent) == ("succeeded", ["ann@example.com", "bob@example.com"])


async def test_a_later_yes_takes_the_place_of_a_no(tmp_path: Path) -> None:
    """What was refused comes again in a plan that the model has mended, and is allowed there."""
    post, path, model = Post(), tmp_path / "j.db", played([MARY], [MARY, BOB])
    words: list[Any] = [Decision.deny("Bob, too"), None]

    def agent() -> Agent:
        return Agent(
            model(), post.tools, journal=path, policy="cautious", approve=lambda *_: words.pop(0) if words else None
        )

    first = await agent().run("Write.")
    assert (first.outcome, [call.step for call in first.approvals]) == ("waiting", ["s1", "s2"])
    assert (await agent().resume(first.run_id)).outcome == "waiting"
    with Journal(path) as journal:
        approve(journal, first.run_id)
    assert (await agent().resume(first.run_id)).outcome == "succeeded"
    assert post.sent == ["mary@example.com", "bob@example.com"]


async def test_what_was_allowed_of_a_refused_plan_is_not_allowed_of_the_next_in_another_process(tmp_path: Path) -> None:
    """The steps of the next plan have the same names."""
    post, path = Post(), tmp_path / "j.db"
    other = [{"ask_user": "on?"}, step("send", to="eve@example.com")]
    model = played([{"ask_user": "on?"}, BOB, MARY], other)
    words: list[Any] = [{"s2": True, "s3": Decision.deny("not Mary")}, Decision.allow(each_call=True)]

    def agent(**more: Any) -> Agent:
        return Agent(model(), post.tools, journal=path, policy="cautious", **more)

    first = await agent(approve=lambda *_: words.pop(0)).run("Write.")
    assert (first.outcome, first.answer) == ("waiting", "on?")
    with Journal(path) as journal:
        answer(journal, first.run_id, "yes")
    result = await agent().resume(first.run_id)
    assert (result.outcome, [call.step for call in result.approvals], post.sent) == ("waiting", ["s2"], [])


# A call that was refused is asked about again -------------------------------------------------------------------------


def for_all_but_bob(scope: Any) -> Callable[[Any, Card], Any]:
    """Return a person who allows Mary for more than once and refuses Bob, and is then away."""
    said: list[str] = []

    def person(calls: Any, card: Card) -> Any:
        words: dict[str, Any] = {}
        for call in calls:
            to = call.values.get("to")
            if to is None:
                words[call.step] = Decision.allow(each_call=True)
            elif to not in said:
                said.append(to)
                pattern = {"to": "*@example.com"} if scope == "pattern" else None
                words[call.step] = Decision.deny("never Bob") if "bob" in to else Decision.allow(scope, pattern=pattern)
        return words

    return person


BOTH = {"for_each": "['mary@example.com', 'bob@example.com']", "as": "to", "do": [step("send", to="{to}")]}
SPELT_OUT = step("send", to="bob@example.com", body="hi")
A_LOOP = [("send", {"to": "mary@example.com"}), ("send", {"to": "bob@example.com"})]
AGAIN_BOB = [("send", {"to": "bob@example.com"})]
REPEATS: dict[str, tuple[tuple[Any, ...], str, list[str]]] = {
    "the next plan": (([MARY, BOB], [BOB]), "plan", []),
    "the next plan, the default spelt out": (([MARY, BOB], [SPELT_OUT]), "plan", []),
    "the rest of a plan": (([BOTH], [BOB]), "plan", ["mary@example.com"]),
    "a loop": ((A_LOOP, AGAIN_BOB, "Done."), "loop", ["mary@example.com"]),
}


@pytest.mark.parametrize("case", REPEATS)
@pytest.mark.parametrize("scope", ["run", "pattern"])
async def test_what_is_allowed_for_more_than_once_does_not_cover_a_call_that_was_refused(
    case: str, scope: str, tmp_path: Path
) -> None:
    replies, mode, sent = REPEATS[case]
    model = played(*replies) if mode == "plan" else turns(*replies)
    post, path = Post(), tmp_path / "j.db"
    options: dict[str, Any] = {"journal": path, "mode": mode, "policy": "cautious"}
    first = await Agent(model(), post.tools, approve=for_all_but_bob(scope), **options).run("Write.")
    assert (first.outcome, post.sent) == ("waiting", sent)
    [call] = first.approvals
    assert call.reason.startswith("a person refused this very call before: never Bob")
    again = await Agent(model(), post.tools, **options).resume(first.run_id)
    assert (again.outcome, post.sent) == ("waiting", sent)
    with Journal(path) as journal:
        approve(journal, first.run_id, steps=[call.step])
    result = await Agent(model(), post.tools, **options).resume(first.run_id)
    assert (result.outcome, post.sent) == ("succeeded", [*sent, "bob@example.com"])


async def test_a_refused_call_under_another_id_asks_whatever_the_policy_is_by_then(tmp_path: Path) -> None:
    post, path, model = Post(), tmp_path / "p.db", played([MARY], [BOB, MARY])
    words: list[Any] = [Decision.deny("never Mary")]
    first = await Agent(
        model(), post.tools, journal=path, policy="cautious", approve=lambda *_: words.pop() if words else None
    ).run("Write.")
    assert first.outcome == "waiting"
    result = await Agent(model(), post.tools, journal=path, policy=FREE).resume(first.run_id, accept_changes=True)
    assert (result.outcome, [call.step for call in result.approvals], post.sent) == ("waiting", ["s2"], [])


async def test_a_refused_call_of_a_loop_asks_whatever_the_policy_is_by_then(tmp_path: Path) -> None:
    post, path = Post(), tmp_path / "l.db"
    mary = [("send", {"to": "mary@example.com"})]
    model = turns(mary, mary, "Done.")
    options: dict[str, Any] = {"journal": path, "mode": "loop"}
    first = await Agent(model(), post.tools, policy="cautious", **options).run("Write.")
    with Journal(path) as journal:
        approve(journal, first.run_id, deny="never Mary")
    for _ in range(2):
        result = await Agent(model(), post.tools, policy=FREE, **options).resume(first.run_id, accept_changes=True)
        assert (result.outcome, [call.step for call in result.approvals], post.sent) == ("waiting", ["s2"], [])


async def test_a_plan_that_goes_on_after_a_no_asks_about_the_same_call_under_another_policy(tmp_path: Path) -> None:
    """The rest of a plan comes in the next process, under another policy."""
    post, path, model = Post(), tmp_path / "j.db", played([BOTH], [BOB])

    def look(calls: Any, card: Card) -> Decision | None:
        return Decision.allow(each_call=True) if card.about == "plan" else None

    first = await Agent(model(), post.tools, journal=path, policy="cautious", approve=look).run("Write.")
    with Journal(path) as journal:
        approve(journal, first.run_id, steps=["s2[1]"], deny="never Bob")
    result = await Agent(model(), post.tools, journal=path, policy=FREE).resume(first.run_id, accept_changes=True)
    assert (result.outcome, post.sent) == ("waiting", ["mary@example.com"])


async def test_a_yes_that_took_a_no_back_does_so_for_another_process_too(tmp_path: Path) -> None:
    """Although it was a word about a plan that was refused for another call."""
    post, path, model = Post(), tmp_path / "j.db", played([BOTH], [BOB, step("send", to="cid@example.com")], [BOB])
    words: dict[str, Any] = {
        "s2": Decision.allow(each_call=True),
        "s2[0]": True,
        "s2[1]": Decision.deny("never Bob"),
        "s3": True,
        "s4": Decision.deny("never Cid"),
    }

    def person(calls: Any, card: Card) -> Any:
        return {call.step: words.pop(call.step, None) for call in calls}

    first = await Agent(model(), post.tools, journal=path, policy="cautious", approve=person).run("Write.")
    again = await Agent(model(), post.tools, journal=path, policy="cautious").resume(first.run_id)
    assert (first.outcome, again.outcome, words, post.sent) == ("waiting", "waiting", {}, ["mary@example.com"])
    assert [call.reason for call in (*first.approvals, *again.approvals)] == ["it changes something"] * 2


async def test_a_person_may_allow_the_same_plan_that_they_refused() -> None:
    for later in (True, Decision.allow("run")):
        post, words = Post(), [Decision.deny("not yet"), later]

        def person(calls: Any, card: Card, words: list[Any] = words) -> Any:
            return words.pop(0)

        agent = Agent(played([MARY], [MARY])(), post.tools, policy="cautious", approve=person)
        result = await agent.run("Write.")
        assert (result.outcome, post.sent, words) == ("succeeded", ["mary@example.com"], [])


async def test_of_two_calls_alike_one_may_be_refused() -> None:
    post = Post()
    twice = [("send", {"to": "mary@example.com"}), ("send", {"to": "mary@example.com", "body": "hi"})]
    asked: list[str] = []

    def person(calls: Any, card: Card) -> Any:
        asked.extend(call.step for call in calls)
        return {call.step: call.step == "s1" for call in calls}

    result = await Agent(turns(twice, "Done.")(), post.tools, mode="loop", policy="cautious", approve=person).run("Go.")
    assert (result.outcome, post.sent) == ("succeeded", ["mary@example.com"])
    assert asked.count("s1") == 1


@pytest.mark.parametrize("mode", ["plan", "loop"])
async def test_changed_arguments_that_ask_at_each_call_are_asked_about_once_before(mode: Any) -> None:
    post = Post()
    model = played([MARY]) if mode == "plan" else turns([("send", {"to": "mary@example.com"})], "Done.")
    cards: list[tuple[str, Any]] = []

    def person(calls: Any, card: Card) -> Any:
        cards.append((card.about, calls[0].values["to"]))
        assert len(cards) < 9, "asked without end"
        return Decision.allow(arguments={"to": "ann@example.com"}, each_call=True) if card.about == "plan" else True

    result = await Agent(model(), post.tools, mode=mode, policy="cautious", approve=person).run("Write.")
    assert (result.outcome, post.sent) == ("succeeded", ["ann@example.com"])
    assert cards == [("plan", "mary@example.com"), ("calls", "ann@example.com")]


# What a yes was said under --------------------------------------------------------------------------------------------


async def test_a_yes_does_not_hold_under_another_policy_whose_rule_has_the_same_name(tmp_path: Path) -> None:
    def rules(why: str) -> Any:
        rule = f'[[rule]]\nname = "mail"\ntool = "send"\nthen = "ask"\nreason = "{why}"\n'
        return policy_from_toml('otherwise = "allow"\n' + rule, "rules")

    one, other = rules("it is big"), rules("legal must sign off")
    for number, mode in enumerate(("plan", "loop")):
        post, path = Post(), tmp_path / f"{number}.db"
        loop = turns(
            [("send", {"to": "mary@example.com"}), ("ask_user", {"question": "on?"})],
            [("send", {"to": "bob@example.com"})],
            "Done.",
        )
        model = played([MARY, {"ask_user": "on?"}, BOB]) if mode == "plan" else loop
        options: dict[str, Any] = {"journal": path, "mode": mode}
        first = await Agent(model(), post.tools, policy=one, **options).run("Write.")
        with Journal(path) as journal:
            approve(journal, first.run_id, scope="run")
        asked = await Agent(model(), post.tools, policy=one, **options).resume(first.run_id)
        assert (asked.outcome, asked.answer, post.sent) == ("waiting", "on?", ["mary@example.com"])
        with Journal(path) as journal:
            answer(journal, first.run_id, "yes")
        result = await Agent(model(), post.tools, policy=other, **options).resume(first.run_id, accept_changes=True)
        assert (result.outcome, post.sent) == ("waiting", ["mary@example.com"])
        assert [call.reason for call in result.approvals] == ["legal must sign off"]
        with Journal(path) as journal:
            approve(journal, first.run_id)
        result = await Agent(model(), post.tools, policy=other, **options).resume(first.run_id, accept_changes=True)
        assert (result.outcome, post.sent) == ("succeeded", ["mary@example.com", "bob@example.com"])


async def test_a_mended_plan_that_waited_for_a_yes_needs_it_from_an_agent_that_trusts_repairs(tmp_path: Path) -> None:
    post, path, model = Post(), tmp_path / "j.db", played(MENDED)
    first = await Agent(model(), post.tools, journal=path).run("Write to mary@example.com and bob@example.com")
    result = await Agent(model(), post.tools, journal=path, trust_repairs=True).resume(first.run_id)
    assert (result.outcome, post.sent) == ("waiting", [])


async def test_changes_that_do_not_fit_are_a_no_the_second_time_though_another_call_is_open() -> None:
    post, problems = Post(), list[str]()

    def person(calls: Any, card: Card) -> Any:
        problems.extend(card.problems)
        return {"s1": Decision.allow(arguments={"to": 5}), "s2": None}

    agent = Agent(played([MARY, BOB])(), post.tools, policy="cautious", approve=person, max_repairs=0)
    result = await agent.run("Write.")
    assert (result.outcome, problems, post.sent) == ("rejected", ["s1"], [])


@pytest.mark.parametrize(("open_one", "made"), [("ann", []), ("bob", ["ann"]), ("cid", ["ann", "bob"])])
@pytest.mark.parametrize("deny", [None, "not him"])
async def test_a_yes_of_a_turn_is_for_its_call(
    tmp_path: Path, open_one: str, made: list[str], deny: str | None
) -> None:
    """What stands before the first open call is made; the rest waits, also for another process."""
    post, path, names = Post(), tmp_path / "j.db", ["ann", "bob", "cid"]
    model, asked = turns([("send", {"to": name}) for name in names], "Sent."), list[list[str]]()

    def person(calls: Any, card: Card) -> dict[str, bool | None]:
        asked.append([call.values["to"] for call in calls])
        return {call.step: None if call.values["to"] == open_one else True for call in calls}

    options: dict[str, Any] = {"journal": path, "policy": "cautious", "mode": "loop"}
    first = await Agent(model(), post.tools, approve=person, **options).run("Write to all.")
    assert (first.outcome, post.sent, [call.values["to"] for call in first.approvals]) == ("waiting", made, [open_one])
    assert asked == [names]  # and not again about what was left open
    with Journal(path) as journal:
        approve(journal, first.run_id, deny=deny)
    await Agent(model(), post.tools, **options).resume(first.run_id)
    assert post.sent == (names if deny is None else made)
