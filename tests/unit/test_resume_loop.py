"""Loops that go on in another process: here another agent, with what the journal holds up to some entry."""

from __future__ import annotations

import dataclasses
import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import Field, SecretStr

from journals import read, written
from toolplan import Agent, Tool, ToolContext, UsageError
from toolplan.approval import Decision as Word
from toolplan.errors import JournalError, JournalMismatch, ModelError
from toolplan.journal import (
    Decision,
    EffectStarted,
    Journal,
    LoopBegun,
    ModelSaid,
    PlanBegun,
    RunBegun,
    RunEnded,
    RunResumed,
)
from toolplan.journal.entries import encode
from toolplan.journal.waiting import answer, approve, resolve
from toolplan.models import Message, ModelRequest, Reply, ToolCallPart, Usage
from toolplan.policy import policy_from_toml
from toolplan.route import Router
from toolplan.testing import FunctionModel

ASKS = policy_from_toml(
    'otherwise = "allow"\n[[rule]]\nname = "pays"\ntool = "pay"\nthen = "ask"\nreason = "it pays"\n', "asks"
)


def calls(*made: tuple[str, dict[str, Any]], text: str = "", **more: Any) -> Reply:
    parts = tuple(ToolCallPart(f"c{number}", name, arguments) for number, (name, arguments) in enumerate(made))
    return Reply(text, parts, "tool_call", Usage(1, 10, 5), **more)


class Script:
    """A model that says what comes at this place of the conversation, whoever asks; notes what it was asked with."""

    def __init__(self, *turns: Reply | str) -> None:
        self.turns = turns
        self.asked: list[ModelRequest] = []

    def model(self) -> FunctionModel:
        def reply(request: ModelRequest) -> Reply:
            self.asked.append(request)
            last = max(i for i, m in enumerate(request.messages) if m.role == "user" and m.content == "go")
            place = sum(message.role == "assistant" for message in request.messages[last:])
            turn = self.turns[place]
            return Reply(turn, usage=Usage(1, 10, 5)) if isinstance(turn, str) else turn

        return FunctionModel(reply)

    @property
    def places(self) -> list[int]:
        return [sum(message.role == "assistant" for message in request.messages) for request in self.asked]


class World:
    """A service outside: effects by idempotency key, as often as each happened."""

    def __init__(self) -> None:
        self.effects: list[str] = []
        self.reads = 0

    def tools(self, **changes: Any) -> list[Tool]:
        def read(name: str) -> list[str]:
            self.reads += 1
            return ["a", "b"]

        def pay(ctx: ToolContext, to: str) -> str:
            self.effects.append(ctx.idempotency_key)
            return f"paid {to}"

        def mark(ctx: ToolContext, to: str) -> str:
            self.effects.append(ctx.idempotency_key)
            return f"marked {to}"

        made = {
            "read": Tool.of(read, reads="orders"),
            "pay": Tool.of(pay, writes="card"),
            "mark": Tool.of(mark, writes="orders:{to}", idempotent=True),
        }
        return [tool.changed(**changes.get(name, {})) for name, tool in made.items()]


def agent(script: Script, world: World, path: Path, **more: Any) -> Agent:
    given: dict[str, Any] = {"policy": "declared", "mode": "loop"} | more
    return Agent(script.model(), given.pop("tools", None) or world.tools(), journal=path, **given)


WORK = (
    calls(("read", {"name": "orders"}), text="Let me look.", thinking="hm", kept={"kind": "x", "signature": "abc"}),
    calls(("mark", {"to": "a"}), ("nothing", {}), ("pay", {"to": "a"})),  # the last one is held back
    calls(("pay", {"to": "a"}), ("mark", {"to": "b"})),
    calls(("pay", {"to": 7})),
    calls(("pay", {"to": "b"})),
    "All is paid.",
)


@pytest.mark.parametrize("happened", [True, False])
async def test_a_loop_goes_on_from_any_entry(tmp_path: Path, happened: bool) -> None:
    """Whatever was under way, each effect is there once in the end, and the model hears the same."""
    first, script = World(), Script(*WORK)
    whole = await agent(script, first, tmp_path / "whole.db").run("go")
    assert (whole.outcome, whole.answer, whole.inferences) == ("succeeded", "All is paid.", 6)
    entries = read(tmp_path / "whole.db")
    assert len(set(first.effects)) == len(first.effects) == 4
    asked = 0
    for cut in range(2, len(entries) + 1):
        path, left = tmp_path / f"{cut}.db", entries[:cut]
        run = written(path, left)
        world, again = World(), Script(*WORK)
        ended = {entry.key for entry in left if type(entry).__name__ == "CallSucceeded"}
        keys: list[str] = []
        for number, entry in enumerate(left):
            if isinstance(entry, EffectStarted):
                open_ = not any(getattr(after, "key", None) == entry.key for after in left[number + 1 :])
                keys += [entry.idempotency_key] if happened or not open_ else []
        assert ended or cut < 12
        world.effects = keys
        result = await agent(again, world, path).resume(run)
        while result.outcome == "waiting":
            [question] = result.waits_for
            assert isinstance(question, dict)
            asked += 1
            with Journal(path) as journal:
                if happened:
                    resolve(journal, run, str(question["step"]), "happened", result=f"paid {'ab'[asked > 1]}")
                else:
                    resolve(journal, run, str(question["step"]), "did_not_happen")
            again = Script(*WORK)
            result = await agent(again, world, path).resume(run)
        assert (result.outcome, result.answer) == ("succeeded", "All is paid."), (cut, result.error)
        assert set(world.effects) == set(first.effects)
        doubled = {key for key in world.effects if world.effects.count(key) > 1}
        assert all(key.endswith((":s2", ":s6")) for key in doubled)  # `mark`, which may be repeated
        said = sum(isinstance(entry, ModelSaid) for entry in left)
        assert (result.inferences, result.inferences_before) == (6, 6 - len(again.asked))
        assert len(again.asked) in (6 - said, 0)
        assert [(s.id, s.tool, s.outcome) for s in result.steps] == [(s.id, s.tool, s.outcome) for s in whole.steps]
        for request in again.asked:  # word for word what it would have heard
            place = sum(message.role == "assistant" for message in request.messages)
            assert said_of(request.messages) == said_of(script.asked[place].messages)
            assert request.tools == script.asked[place].tools
    assert asked


def said_of(messages: Sequence[Message]) -> list[Any]:
    return [(m.role, m.content, m.tool_calls, m.tool_results, m.thinking, m.kept) for m in messages[1:]]


async def test_a_loop_that_waits_in_its_first_turn_is_approved_elsewhere(tmp_path: Path) -> None:
    world, path, script = World(), tmp_path / "j.db", Script(calls(("pay", {"to": "a"})), "Paid.")
    first = await agent(script, world, path, policy=ASKS).run("go")
    assert (first.outcome, world.effects, first.error) == ("waiting", [], "the calls wait for approval")
    assert [(q["kind"], q["step"], q["planned"]) for q in first.waits_for if isinstance(q, dict)] == [
        ("approval", "s1", True)
    ]
    still = await agent(script, world, path, policy=ASKS).resume(first.run_id)
    assert (still.outcome, world.effects) == ("waiting", [])
    with Journal(path) as journal:
        assert journal.runs()[0].outcome == "waiting"
        approve(journal, first.run_id)
    result = await agent(script, world, path, policy=ASKS).resume(first.run_id)
    assert (result.outcome, result.answer) == ("succeeded", "Paid.")
    assert world.effects == [f"{first.run_id}:s1"]
    assert (result.inferences, result.inferences_before, result.usage.requests) == (2, 1, 2)
    assert script.places == [0, 1]
    assert (result.mode_used, result.mode_reason) == ("loop", "it was asked for")


async def test_a_call_of_a_loop_is_refused_elsewhere_and_its_model_hears_why(tmp_path: Path) -> None:
    world, path = World(), tmp_path / "j.db"
    script = Script(calls(("mark", {"to": "a"}), ("pay", {"to": "a"})), "Not paid.")
    first = await agent(script, world, path, policy=ASKS).run("go")
    with Journal(path) as journal:
        approve(journal, first.run_id, deny="not this customer")
    result = await agent(script, world, path, policy=ASKS).resume(first.run_id)
    assert (result.outcome, result.answer, world.effects) == ("succeeded", "Not paid.", [f"{first.run_id}:s1"])
    assert "not this customer" in script.asked[-1].messages[-1].tool_results[1].content


async def test_what_was_allowed_and_changed_stays_so_in_later_processes(tmp_path: Path) -> None:
    """One call is changed on the card, one is allowed for the run; the next turn's call is covered by that."""
    world, path = World(), tmp_path / "j.db"
    turns = (
        calls(("pay", {"to": "a"})),
        calls(("pay", {"to": "b"})),
        calls(("ask_user", {"question": "and c?"})),
        calls(("pay", {"to": "c"})),
        "done",
    )

    def person(planned: Any, card: Any) -> Any:
        to = str(planned[0].values["to"])
        return Word.allow(arguments={"to": "x"}) if to == "a" else Word.allow(scope="run") if to == "b" else None

    script = Script(*turns)
    first = await agent(script, world, path, policy=ASKS, approve=person).run("go")
    assert (first.outcome, first.answer) == ("waiting", "and c?")
    assert [step.result for step in first.steps[:2]] == ["paid x", "paid b"]
    with Journal(path) as journal:
        answer(journal, first.run_id, "yes")
    result = await agent(script, world, path, policy=ASKS).resume(first.run_id)
    assert (result.outcome, result.answer) == ("succeeded", "done")
    assert world.effects == [f"{first.run_id}:s{n}" for n in (1, 2, 4)]
    assert result.steps[0].arguments == {"to": "x"}


async def test_a_question_of_a_loop_is_answered_elsewhere(tmp_path: Path) -> None:
    """The answer counts as said by the user, as it does when it is given at once."""
    sent: list[str] = []

    def send(to: str) -> str:
        sent.append(to)
        return "sent"

    path = tmp_path / "j.db"
    tools = [Tool.of(send, writes="mail")]
    script = Script(calls(("ask_user", {"question": "To whom?"})), calls(("send", {"to": "bo@x.org"})), "Sent.")
    first = await agent(script, World(), path, tools=tools, policy="default").run("go")
    assert (first.outcome, first.answer, sent) == ("waiting", "To whom?", [])
    with Journal(path) as journal:
        answer(journal, first.run_id, "bo@x.org")
    result = await agent(script, World(), path, tools=tools, policy="default").resume(first.run_id)
    assert (result.outcome, result.answer, sent) == ("succeeded", "Sent.", ["bo@x.org"])
    assert script.asked[1].messages[-1].tool_results[0].content == "bo@x.org"


async def test_a_loop_without_a_journal_may_only_ask_somebody_who_is_there() -> None:
    script = Script("Hello.")
    await Agent(script.model(), World().tools(), mode="loop").run("go")
    assert "ask_user" not in [spec.name for spec in script.asked[0].tools]


async def test_a_request_that_is_answered_in_words_leaves_no_run(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    assert (await agent(Script("Hello."), World(), path).run("go")).answer == "Hello."
    with Journal(path) as journal:
        assert journal.runs() == []


async def test_a_loop_in_place_of_a_plan_goes_on_as_a_loop(tmp_path: Path) -> None:
    world, path = World(), tmp_path / "j.db"

    def model() -> FunctionModel:
        def reply(request: ModelRequest) -> Reply | str:
            if request.purpose == "plan":
                return '{"cannot": "it depends"}'
            place = sum(message.role == "assistant" for message in request.messages)
            return (calls(("pay", {"to": "a"})), "Paid.")[place]

        return FunctionModel(reply)

    first = await Agent(model(), world.tools(), journal=path, policy=ASKS, mode="auto").run("go")
    assert (first.outcome, first.mode_used, first.inferences) == ("waiting", "loop", 2)
    with Journal(path) as journal:
        approve(journal, first.run_id)
    result = await Agent(model(), world.tools(), journal=path, policy=ASKS).resume(first.run_id)
    assert (result.outcome, result.answer, result.mode_used) == ("succeeded", "Paid.", "loop")
    assert result.mode_reason == first.mode_reason == "the model cannot plan it: it depends"
    assert (result.inferences, result.inferences_before) == (3, 2)


async def test_a_request_of_a_conversation_goes_on_with_what_was_said_before(tmp_path: Path) -> None:
    world, path = World(), tmp_path / "j.db"
    script = Script(calls(("pay", {"to": "a"})), "Paid.")
    talk = agent(script, world, path, policy=ASKS).conversation()
    talk.agent.model = FunctionModel(
        lambda request: (calls(("read", {"name": "x"})), "There are a and b.")[
            sum(m.role == "assistant" for m in request.messages)
        ]
    )
    await talk.send("what is there?")
    talk.agent.model = script.model()
    first = await talk.send("go")
    assert first.outcome == "waiting"
    with Journal(path) as journal:
        approve(journal, first.run_id)
    result = await agent(script, world, path, policy=ASKS).resume(first.run_id)
    assert (result.outcome, result.answer) == ("succeeded", "Paid.")
    assert [step.id for step in result.steps] == ["s2"]
    told = script.asked[-1].messages
    assert [m.role for m in told] == ["system", "user", "assistant", "tool", "assistant", "user", "assistant", "tool"]
    assert told[3].tool_results[0].content == '["a", "b"]'
    assert said_of(told)[:5] == said_of(script.asked[0].messages)[:5]


# What has changed -----------------------------------------------------------------------------------------------------


async def waiting_loop(path: Path, world: World, **more: Any) -> tuple[str, Script]:
    script = Script(calls(("mark", {"to": "a"})), calls(("pay", {"to": "a"})), "Paid.")
    result = await agent(script, world, path, **({"policy": ASKS} | more)).run("go")
    assert result.outcome == "waiting"
    with Journal(path) as journal:
        approve(journal, result.run_id)
    return result.run_id, script


async def test_what_has_changed_is_said_before_anything_runs(tmp_path: Path) -> None:
    world, path = World(), tmp_path / "j.db"
    run, script = await waiting_loop(path, world, max_calls=20, user="ann")
    before = read(path)
    other = policy_from_toml('otherwise = "allow"\n', "other")
    tools = world.tools(mark={"description": "Another."})
    changed = agent(script, world, path, tools=tools, policy=other, max_calls=9, user="bo", max_seconds=3.0)
    with pytest.raises(JournalMismatch) as caught:
        await changed.resume(run)
    for text in (
        "the declarations of `mark`",
        "the policy is not what it was: it was `asks`, and is `other`",
        "for the user 'ann', and this is 'bo'",
        "`max_calls` was 20, and is 9",
        "`max_seconds` was None, and is 3.0",
        "`accept_changes=True` (`--accept-changes`) goes on all the same",
    ):
        assert text in str(caught.value)
    assert (read(path), world.effects) == (before, [f"{run}:s1"])
    with Journal(path) as journal:
        assert journal.runs()[0].outcome == "waiting"
    result = await changed.resume(run, accept_changes=True)
    assert (result.outcome, world.effects) == ("succeeded", [f"{run}:s1", f"{run}:s2"])


async def test_a_loop_that_would_come_out_otherwise_is_not_gone_on_with(tmp_path: Path) -> None:
    """A policy that forbids now what was done then cannot be accepted: what the model was told would not be true."""
    world, path = World(), tmp_path / "j.db"
    run, script = await waiting_loop(path, world)
    before = read(path)
    strict = policy_from_toml('[[rule]]\nname = "no"\ntool = "mark"\nthen = "deny"\nreason = "no"\n', "asks")
    with pytest.raises(JournalMismatch, match="turn 1 of its loop is not what it was: calls that were made then"):
        await agent(script, world, path, policy=strict).resume(run, accept_changes=True)
    assert (read(path), world.effects) == (before, [f"{run}:s1"])
    tools = [tool for tool in world.tools() if tool.name != "mark"]
    with pytest.raises(JournalMismatch, match="no tool `mark` any more"):
        await agent(script, world, path, tools=tools, policy=ASKS).resume(run, accept_changes=True)
    assert (read(path), world.effects) == (before, [f"{run}:s1"])


async def test_the_settings_of_the_loop_are_those_that_it_was_begun_with(tmp_path: Path) -> None:
    world, path = World(), tmp_path / "j.db"
    run, script = await waiting_loop(path, world, max_turns=2, max_calls=5, max_seconds=60)
    result = await agent(script, world, path, policy=ASKS).resume(run)
    assert "no answer after 2 turns" in (result.error or "")
    begun = read(path)[0]
    assert isinstance(begun, RunBegun)
    assert (begun.max_calls, begun.max_seconds, begun.policy) == (5, 60, "asks")


async def test_a_model_that_cannot_be_reached_does_not_end_a_loop_that_goes_on(tmp_path: Path) -> None:
    world, path = World(), tmp_path / "j.db"
    run, script = await waiting_loop(path, world)

    def down(request: ModelRequest) -> Reply:
        raise ModelError("it is down", reason="unreachable")

    with pytest.raises(ModelError, match="it is down"):
        await Agent(FunctionModel(down), world.tools(), journal=path, policy=ASKS).resume(run)
    with pytest.raises(UsageError, match="no model"):
        await Agent(tools=world.tools(), journal=path, policy=ASKS).resume(run)
    result = await agent(script, world, path, policy=ASKS).resume(run)
    assert (result.outcome, world.effects) == ("succeeded", [f"{run}:s1", f"{run}:s2"])


async def test_a_loop_that_has_ended_gives_its_result(tmp_path: Path) -> None:
    world, path = World(), tmp_path / "j.db"
    first = await agent(Script(*WORK), world, path).run("go")
    effects, reads = list(world.effects), world.reads
    deny = policy_from_toml('otherwise = "deny"\n', "none")
    again = await Agent(tools=world.tools(), journal=path, policy=deny).resume(first.run_id)
    assert (again.outcome, again.answer, again.error) == (first.outcome, first.answer, first.error)
    assert [s.to_dict() for s in again.steps] == [s.to_dict() for s in first.steps]
    assert (again.inferences, again.usage, again.mode_used) == (first.inferences, first.usage, "loop")
    assert (world.effects, world.reads) == (effects, reads)


async def test_a_loop_of_an_older_version_is_refused(tmp_path: Path) -> None:
    world, path = World(), tmp_path / "j.db"
    run, script = await waiting_loop(path, world)
    begun, *rest = [entry for entry in read(path) if not isinstance(entry, LoopBegun | ModelSaid)]
    assert isinstance(begun, RunBegun)
    old = [dataclasses.replace(begun, policy="", policy_fingerprint=""), *rest]
    written(tmp_path / "old.db", old)
    with pytest.raises(JournalError, match="words were not written down"):
        await agent(script, world, tmp_path / "old.db", policy=ASKS).resume(run)
    with Journal(tmp_path / "old.db") as journal, pytest.raises(UsageError, match="a loop of an older version"):
        approve(journal, run)


async def test_a_loop_that_has_nothing_to_go_on_with_says_so(tmp_path: Path) -> None:
    world, path = World(), tmp_path / "j.db"
    run, script = await waiting_loop(path, world)
    with pytest.raises(UsageError, match="no plan that could be given"):
        await agent(script, world, path, policy=ASKS).resume(run, plan=[{"answer": "x"}])
    written(tmp_path / "cut.db", read(path)[:1])
    with pytest.raises(JournalError, match="nothing was done"):
        await agent(script, world, tmp_path / "cut.db", policy=ASKS).resume(run)


# Secrets --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("in_text", [False, True])
async def test_secrets_of_a_loop_are_not_written_down(tmp_path: Path, in_text: bool) -> None:
    seen: list[str] = []

    def enter(password: SecretStr, note: str) -> str:
        seen.append(password.get_secret_value())
        return f"entered {note}"

    path = tmp_path / "j.db"
    given = {"password": "hunter-2", "note": "x"}
    text = f"<tool_call>\n{json.dumps({'name': 'enter', 'arguments': given})}\n</tool_call>"
    said = Reply(text) if in_text else calls(("enter", given), kept={"parts": [given]}, thinking="hunter-2 it is")
    script = Script(said, calls(("ask_user", {"question": "on?"})), "done with hunter-2")
    tools = [Tool.of(enter, writes="x")]
    first = await agent(script, World(), path, tools=tools).run("go")
    assert (first.outcome, first.waits_for, seen) == ("failed", (), ["hunter-2"])  # nobody could go on with it
    assert "nobody could go on later: what its model said holds a secret" in (first.error or "")
    assert not files_with(tmp_path, b"hunter-2")
    with Journal(path) as journal, pytest.raises(UsageError, match="it has ended: failed"):
        answer(journal, first.run_id, "yes")
    with pytest.raises(JournalMismatch, match="what its model said holds a secret") as caught:
        await agent(script, World(), path, tools=tools).resume(first.run_id)
    assert "give the plan" not in str(caught.value)
    assert seen == ["hunter-2"]


def files_with(folder: Path, text: bytes) -> list[Path]:
    return [file for file in folder.iterdir() if text in file.read_bytes()]


async def test_a_short_secret_of_a_tool_with_another_name_is_not_written_down(tmp_path: Path) -> None:
    """A provider takes no Chinese names, so the call comes under one that was made up."""

    def enter(pin: SecretStr) -> str:
        return "entered"

    path = tmp_path / "j.db"
    script = Script(calls(("tool", {"pin": "7391"})), calls(("ask_user", {"question": "on?"})), "done")
    tools = [Tool.of(enter, name="输入", writes="x")]
    first = await agent(script, World(), path, tools=tools).run("go")
    assert (first.outcome, first.steps[0].tool, first.steps[0].outcome) == ("failed", "输入", "succeeded")
    assert not [entry for entry in read(path) if '"7391"' in str(encode(entry))]


async def test_a_secret_result_of_a_loop_is_not_written_down(tmp_path: Path) -> None:
    def token() -> Annotated[str, Field(json_schema_extra={"format": "password"})]:
        return "token-123"

    path = tmp_path / "j.db"
    script = Script(calls(("token", {})), calls(("ask_user", {"question": "is it token-123?"})), "ok")
    tools = [Tool.of(token, reads="x")]
    first = await agent(script, World(), path, tools=tools).run("go")
    assert (first.outcome, first.waits_for) == ("failed", ())
    assert "nobody could go on later: " in (first.error or "")
    assert not files_with(tmp_path, b"token-123")
    with pytest.raises(JournalMismatch, match="a secret"):
        await agent(script, World(), path, tools=tools).resume(first.run_id)


@pytest.mark.parametrize("mode", ["plan", "loop"])
@pytest.mark.parametrize("waits_for", ["approval", "question"])
async def test_what_nobody_could_go_on_with_does_not_wait(tmp_path: Path, mode: Any, waits_for: str) -> None:
    """A plan can be given once more; a result cannot, nor what the model of a loop said."""

    def enter(password: SecretStr) -> str:
        return "entered"

    def token() -> Annotated[str, Field(json_schema_extra={"format": "password"})]:
        return "token-123"

    path, tools = tmp_path / "j.db", [Tool.of(enter, writes="x"), Tool.of(token, reads="x")]
    asks = policy_from_toml('otherwise = "ask"\n[[rule]]\ntool = "token"\nthen = "allow"\n', "asks")
    policy = asks if waits_for == "approval" else "declared"
    if mode == "loop":
        asked = ("enter", {"password": "hunter-2"}) if waits_for == "approval" else ("ask_user", {"question": "on?"})
        turns = [calls(("token", {})), calls(asked)] if waits_for == "question" else [calls(asked)]
        first = await agent(Script(*turns, "done"), World(), path, tools=tools, policy=policy).run("go")
    else:
        word = {"each_call": True} if waits_for == "approval" else {}
        plan = [
            {"tool_name": "token", "arguments": {}, "result_variable": "t"},
            {"ask_user": "on?"} if waits_for == "question" else {"let": {"x": "1"}},
            {"tool_name": "enter", "arguments": {"password": "{t}"}},
        ]

        def person(planned: Any, card: Any) -> Word | None:
            return Word.allow(**word) if card.about == "plan" else None

        options: dict[str, Any] = {"journal": path, "policy": policy, "approve": person if word else None}
        first = await Agent(tools=tools, **options).run_plan(plan)
    assert (first.outcome, first.waits_for) == ("failed", ())
    assert "nobody could go on later: " in (first.error or "")
    with Journal(path) as journal, pytest.raises(UsageError, match="it has ended: failed"):
        approve(journal, first.run_id)


# Many tools -----------------------------------------------------------------------------------------------------------


async def test_tools_that_were_looked_for_are_shown_again(tmp_path: Path) -> None:
    world, path = World(), tmp_path / "j.db"

    def tools() -> list[Tool]:
        fill = [Tool.of(lambda: "x", name=f"other_{n}", description=f"Other {n}.", reads="x") for n in range(6)]
        return [*fill, *world.tools(pay={"description": "Pay an invoice.", "approval": "ask"})]

    turns = (calls(("find_tools", {"wanted": "pay an invoice"})), calls(("pay", {"to": "a"})), "Paid.")
    script = Script(*turns)
    first = await agent(script, world, path, tools=tools(), route=Router(tools(), top=1)).run("go")
    assert first.outcome == "waiting"
    with Journal(path) as journal:
        approve(journal, first.run_id)
    result = await agent(script, world, path, tools=tools(), route=Router(tools(), top=1)).resume(first.run_id)
    assert (result.outcome, result.answer, result.shown_tools) == ("succeeded", "Paid.", first.shown_tools)
    assert [spec.name for spec in script.asked[-1].tools] == [spec.name for spec in script.asked[1].tools]


async def test_what_is_written_of_a_loop(tmp_path: Path) -> None:
    """In this order: nothing of a turn is done before what the model said is written."""
    path = tmp_path / "j.db"
    await agent(Script(*WORK), World(), path).run("go")
    kinds = [type(entry) for entry in read(path)]
    assert kinds[:3] == [RunBegun, LoopBegun, ModelSaid]
    assert kinds.count(ModelSaid) == 6
    assert kinds[-1] is RunEnded
    assert kinds.index(PlanBegun) > kinds.index(ModelSaid)
    assert RunResumed not in kinds
    assert Decision not in kinds


async def test_a_loop_that_people_spoke_in_goes_on_from_any_entry(tmp_path: Path) -> None:
    """Over three processes: a call is refused, one changed, one allowed for the run, a question answered."""
    world, path = World(), tmp_path / "whole.db"
    turns = (
        calls(("pay", {"to": "a"}), ("read", {"name": "x"})),
        calls(("pay", {"to": "b"}), ("pay", {"to": "c"})),
        calls(("ask_user", {"question": "and d?"}), ("pay", {"to": "d"})),
        calls(("pay", {"to": "e"})),
        "done",
    )
    told: list[str] = []

    def person(planned: Any, card: Any) -> Any:
        told.extend(str(planned_call.values["to"]) for planned_call in planned)
        words = {"a": Word.deny("not a"), "b": Word.allow(arguments={"to": "x"}), "c": Word.allow(scope="run")}
        return {each.step: words.get(str(each.values["to"])) for each in planned}

    script = Script(*turns)
    first = await agent(script, world, path, policy=ASKS, approve=person).run("go")
    assert (first.outcome, first.answer, told) == ("waiting", "and d?", ["a", "b", "c"])
    with Journal(path) as journal:
        answer(journal, first.run_id, "yes")
    whole = await agent(script, world, path, policy=ASKS, approve=person).resume(first.run_id)
    assert (whole.outcome, told) == ("succeeded", ["a", "b", "c"])
    ends = [(s.id, s.tool, s.outcome, s.arguments) for s in whole.steps]
    entries, effects = read(path), list(world.effects)
    assert len(effects) == 4
    for cut in range(3, len(entries) + 1):
        here, left = tmp_path / f"{cut}.db", entries[:cut]
        run = written(here, left)
        told.clear()
        again, other = Script(*turns), World()
        other.effects = [entry.idempotency_key for entry in left if isinstance(entry, EffectStarted)]
        result = await agent(again, other, here, policy=ASKS, approve=person).resume(run)
        for _ in range(9):
            if result.outcome != "waiting":
                break
            [question] = result.waits_for
            assert isinstance(question, dict)
            with Journal(here) as journal:
                if question["kind"] == "unknown":
                    to = {"s3": "x", "s4": "c", "s6": "d", "s7": "e"}[str(question["step"])]
                    resolve(journal, run, str(question["step"]), "happened", result=f"paid {to}")
                else:
                    answer(journal, run, "yes")
            result = await agent(again, other, here, policy=ASKS, approve=person).resume(run)
        assert (result.outcome, result.answer) == ("succeeded", "done"), (cut, result.error)
        assert sorted(other.effects) == sorted(effects)
        assert [(s.id, s.tool, s.outcome, s.arguments) for s in result.steps] == ends
        decided = {entry.tool + str(entry.step) for entry in left if isinstance(entry, Decision)}
        assert len(told) == 3 - len(decided), (cut, told)  # nobody is asked twice about the same


async def test_an_effect_that_is_declared_failed_is_told_to_the_model(tmp_path: Path) -> None:
    world, path = World(), tmp_path / "whole.db"
    script = Script(calls(("pay", {"to": "a"}), ("mark", {"to": "b"})), calls(("read", {"name": "x"})), "Unclear.")
    await agent(script, world, path).run("go")
    entries = read(path)
    cut = next(number for number, entry in enumerate(entries) if isinstance(entry, EffectStarted)) + 1
    run, other = written(tmp_path / "cut.db", entries[:cut]), World()
    first = await agent(script, other, tmp_path / "cut.db").resume(run)
    assert (first.outcome, [q["kind"] for q in first.waits_for if isinstance(q, dict)]) == ("waiting", ["unknown"])
    assert "s1 (pay)" in first.answer
    with Journal(tmp_path / "cut.db") as journal:
        resolve(journal, run, "s1", "fail", reason="the bank does not say")
    result = await agent(script, other, tmp_path / "cut.db").resume(run)
    assert (result.outcome, result.answer, other.effects) == ("succeeded", "Unclear.", [])
    told = next(m for m in script.asked[-1].messages if m.role == "tool").tool_results
    assert "the bank does not say" in told[0].content
    assert [each.is_error for each in told] == [True, True]  # what stands behind it is held back


async def test_a_loop_whose_journal_is_lost_ends(tmp_path: Path) -> None:
    """Nothing more may be done, so nothing more is asked."""
    world, path = World(), tmp_path / "j.db"

    def lose(request: ModelRequest) -> Reply:
        if len(request.messages) > 2:
            connection = sqlite3.connect(path)
            connection.execute("UPDATE leases SET token = token + 1")
            connection.commit()
            connection.close()
        return calls(("pay", {"to": f"{len(request.messages)}"}))

    result = await Agent(FunctionModel(lose), world.tools(), journal=path, policy="declared", mode="loop").run("go")
    assert (result.outcome, len(world.effects), result.inferences) == ("failed", 1, 2)
    assert "was taken over by another process" in (result.error or "")
    assert "nothing more can be written down" in result.answer
