"""Calls of a loop's turn that are made while its reply is still arriving, through whole requests."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from toolplan import Agent, Result, ToolSet, tool
from toolplan.agent import AgentEvent, ModelReplied
from toolplan.agent_events import CallRefused, CallsRequested
from toolplan.errors import ModelError
from toolplan.journal import Journal, ModelSaid
from toolplan.journal.waiting import approve
from toolplan.models import FallbackModel, Listener, ModelRequest, Reply, ToolCallPart
from toolplan.models.base import hears_calls, starts_over
from toolplan.models.text_tools import Spoken, as_text_says
from toolplan.policy import policy_from_toml
from toolplan.route import Router
from toolplan.run import EarlyDiscarded, EarlyFinished, EarlyStarted, StepStarted

Wait = Callable[[], Awaitable[Any]]
Piece = str | ToolCallPart | Wait


class Writer:
    """A model that writes its replies piece by piece, and between them waits for what the test says.

    Native calls are pieces, told of unless they are the last one; text is read as where a server has no native calls.
    """

    name = "writer"

    def __init__(self, *replies: list[Piece] | Exception, finish_reason: str = "stop") -> None:
        self.replies = list(replies)
        self.finish_reason = finish_reason
        self.listened: list[bool] = []
        self.told: list[list[str]] = []

    async def ask(self, request: ModelRequest, on_text: Callable[[str], None] | None = None) -> Reply:
        self.listened.append(on_text is not None)
        self.told.append([result.content for result in request.messages[-1].tool_results])
        called = hears_calls(on_text)
        spoken = Spoken(request.tools, on_text, called, format="auto") if on_text else None
        text, calls = "", list[ToolCallPart]()
        pieces = self._next()
        for number, piece in enumerate(pieces, 1):
            if isinstance(piece, str):
                text += piece
                if spoken:
                    spoken.hear(piece)
            elif isinstance(piece, ToolCallPart):
                calls.append(piece)
                if number < len(pieces):
                    called(piece)
            else:
                async with asyncio.timeout(5):
                    if await piece() is AGAIN and starts_over(on_text):
                        text, calls = "", []
            await asyncio.sleep(0)
        if spoken:
            spoken.close(self.finish_reason)
        reply = Reply(text, tuple(calls), self.finish_reason)
        return reply if calls or not text else as_text_says(reply, request.tools)

    def _next(self) -> list[Piece]:
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply


AGAIN = object()


async def again() -> object:
    return AGAIN


class Desk:
    """Tools that tell when they are called."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.news = asyncio.Condition()
        self.files = {"a": "A", "b": "B"}
        self.running = self.fail = 0
        self.hold = asyncio.Event()
        self.hold.set()

        @tool(reads="file:{path}")
        async def read(path: str) -> str:
            """Reads a file."""
            await self.note(f"read {path}")
            self.running += 1
            try:
                await self.hold.wait()
                if self.fail:
                    self.fail -= 1
                    raise OSError("busy")
                return self.files[path]
            finally:
                self.running -= 1

        @tool(writes="file:{path}")
        async def write(path: str, text: str) -> str:
            """Writes a file."""
            await self.note(f"write {path}")
            self.files[path] = text
            return "written"

        @tool(reads="vault", approval="ask")
        async def vault() -> str:
            """Opens the vault."""
            await self.note("vault")
            return "gold"

        @tool(reads="clock", rate_limit="5/minute")
        async def clock() -> str:
            """Tells the time."""
            await self.note("clock")
            return "noon"

        self.tools: list[Any] = [read, write, vault, clock]

    async def note(self, text: str) -> None:
        async with self.news:
            self.calls.append(text)
            self.news.notify_all()

    def called(self, text: str, times: int = 1) -> Wait:
        async def wait() -> None:
            async with self.news:
                await self.news.wait_for(lambda: self.calls.count(text) >= times)

        return wait

    def has_called(self, *calls: str) -> Wait:
        """Return what makes sure, some turns of the event loop later, that nothing else was called."""

        async def look() -> None:
            await settled()
            assert self.calls == list(calls)

        return look


async def settled() -> None:
    for _ in range(30):
        await asyncio.sleep(0)


def call(name: str, **arguments: Any) -> ToolCallPart:
    return ToolCallPart("", name, arguments)


def written(name: str, **arguments: Any) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>\n"


READ, READ_B = call("read", path="a"), call("read", path="b")
WRITE = call("write", path="a", text="new")


async def answer(model: Any, desk: Desk, **options: Any) -> tuple[Result, list[AgentEvent]]:
    events: list[AgentEvent] = []
    settings: dict[str, Any] = {"mode": "loop", "policy": "declared", **options}
    result = await Agent(model, desk.tools, **settings).run("please", watch=events.append)
    assert desk.running == 0
    assert asyncio.all_tasks() == {asyncio.current_task()}
    return result, events


def kinds(events: list[AgentEvent], *which: type) -> list[str]:
    return [type(event).__name__ for event in events if isinstance(event, which)]


def was_early(result: Result) -> list[bool]:
    return [(step.started_seconds or 0) < 0 for step in result.steps]


# ---- what starts early


async def test_calls_start_while_the_reply_arrives_and_are_made_once() -> None:
    desk = Desk()
    look = [READ, desk.called("read a"), WRITE, desk.has_called("read a"), READ_B, desk.called("read b"), settled]
    model = Writer(look, ["ok"])
    result, events = await answer(model, desk)
    assert (result.outcome, result.answer, result.discarded) == ("succeeded", "ok", ())
    assert desk.calls == ["read a", "read b", "write a"]
    assert model.told == [[], ["A", "written", "B"]]
    assert was_early(result) == [True, False, True]
    assert [step.id for step in result.steps] == ["s1", "s2", "s3"]
    early = [event.step for event in events if isinstance(event, EarlyStarted)]
    assert early == ["s1", "s3"]
    order = kinds(events, EarlyStarted, EarlyFinished, ModelReplied, CallsRequested, StepStarted)
    assert order[:6] == [*["EarlyStarted", "EarlyFinished"] * 2, "ModelReplied", "CallsRequested"]


async def test_calls_in_text_start_early_too() -> None:
    desk = Desk()
    look = written("read", path="a") + written("read", path="b")
    model = Writer(["I look.\n", look, desk.called("read a"), written("clock"), desk.called("read b")], ["ok"])
    result, _ = await answer(model, desk)
    assert (result.answer, model.told[1]) == ("ok", ["A", "B", "noon"])
    assert was_early(result) == [True, True, False]


async def test_every_turn_starts_its_calls_early() -> None:
    desk = Desk()
    model = Writer([READ, desk.called("read a"), WRITE], [READ, desk.called("read a", 2), settled], ["ok"])
    result, events = await answer(model, desk)
    assert model.told == [[], ["A", "written"], ["new"]]
    assert (desk.calls, result.discarded) == (["read a", "write a", "read a"], ())
    assert [event.step for event in events if isinstance(event, EarlyStarted)] == ["s1", "s3"]


async def test_it_needs_nobody_who_watches() -> None:
    desk = Desk()
    model = Writer([READ, desk.called("read a"), READ_B], ["ok"])
    result = await Agent(model, desk.tools, mode="loop").run("please")
    assert (result.answer, model.listened, was_early(result)) == ("ok", [True, True], [True, False])


async def test_names_and_arguments_are_mended_as_in_the_turn() -> None:
    desk = Desk()
    mended = ToolCallPart("", "functions.read", '{"path": "a"}')
    model = Writer([mended, desk.called("read a"), READ_B], ["ok"])
    result, _ = await answer(model, desk)
    assert (model.told[1], was_early(result)) == (["A", "B"], [True, False])


# ---- what does not


@pytest.mark.parametrize(
    ("before", "then"),
    [
        ([WRITE], READ),  # what it reads is changed before it
        ([], WRITE),
        ([], call("vault")),  # a person has to allow it
        ([], call("clock")),  # its calls are counted
        ([], call("nobody", path="a")),
        ([], call("read", path=7)),
        ([], ToolCallPart("", "read", '{"path": "a"')),
    ],
)
async def test_not_started_early(before: list[Piece], then: Piece) -> None:
    desk = Desk()
    model = Writer([*before, then, desk.has_called()], ["ok"])
    result, events = await answer(model, desk, approve=lambda *_: True)
    assert (result.answer, result.discarded, kinds(events, EarlyStarted)) == ("ok", (), [])


@pytest.mark.parametrize("then", ["ask", "deny"])
async def test_what_the_policy_does_not_simply_allow_waits(then: str) -> None:
    desk = Desk()
    rule = f'otherwise = "allow"\n[[rule]]\nname = "r"\ntool = "read"\nthen = "{then}"\n'
    model = Writer([READ, desk.has_called()], ["ok"])
    result, events = await answer(model, desk, policy=policy_from_toml(rule, "p"), approve=lambda *_: True)
    assert (result.answer, desk.calls) == ("ok", ["read a"] if then == "ask" else [])
    assert kinds(events, EarlyStarted) == []


@pytest.mark.parametrize("options", [{"early_start": False}, {"max_calls": 5}])
async def test_switched_off_nothing_starts_early(options: dict[str, Any]) -> None:
    desk = Desk()
    model = Writer([READ, desk.has_called(), READ_B], ["ok"])
    result, events = await answer(model, desk, **options)
    assert (model.told[1], kinds(events, EarlyStarted), was_early(result)) == (["A", "B"], [], [False, False])


async def test_a_reference_to_a_result_is_never_sent_early() -> None:
    desk = Desk()
    parts = [ToolCallPart(f"E{n}", "read", {"path": path}, format="rewoo") for n, path in enumerate(("a", "#E0"))]
    model = Writer([*parts, settled], ["ok"])
    result, events = await answer(model, desk)
    assert (kinds(events, EarlyStarted), desk.calls, result.discarded) == (["EarlyStarted"], ["read a"], ())
    assert "TP137" in model.told[1][1]


async def test_a_tool_that_was_not_shown_and_a_search_for_tools() -> None:
    desk = Desk()

    @tool(reads="sky")
    async def stars() -> str:
        """Counts the stars."""
        await desk.note("stars")
        return "many"

    desk.tools.append(stars)
    find = call("find_tools", wanted="writes a file")
    model = Writer([find, call("stars"), READ, desk.called("read a"), READ_B, settled], ["ok"])
    router = Router(ToolSet.of(desk.tools), top=1, always=["read"], max_tokens=12)
    result, events = await answer(model, desk, route=router)
    assert [event.step for event in events if isinstance(event, EarlyStarted)] == ["s2", "s3"]
    assert ([step.id for step in result.steps], desk.calls) == (["s2", "s3"], ["read a", "read b"])


async def test_a_call_that_goes_round_in_circles_is_not_made_early_either() -> None:
    desk = Desk()
    model = Writer(*[[READ]] * 3, [READ, READ_B, desk.called("read b")], ["ok"])
    result, events = await answer(model, desk)
    assert desk.calls == ["read a"] * 3 + ["read b"]
    assert (len(kinds(events, CallRefused)), result.discarded) == (1, ())


# ---- what becomes of it


@pytest.mark.parametrize(
    ("reply", "finish_reason"),
    [
        ([READ, "wait"], "length"),
        (["I could write ", written("read", path="a").strip(), " he", "wait", "re, but I will not do that."], "stop"),
    ],
)
async def test_calls_of_a_reply_that_turns_out_otherwise_are_dropped(reply: list[Any], finish_reason: str) -> None:
    desk = Desk()
    pieces = [desk.called("read a") if piece == "wait" else piece for piece in reply]
    model = Writer(pieces, ["ok"], finish_reason=finish_reason)
    result, events = await answer(model, desk)
    assert (result.steps, [step.tool for step in result.discarded]) == ((), ["read"])
    assert kinds(events, EarlyDiscarded) == ["EarlyDiscarded"]


async def test_what_is_discarded_adds_up_over_the_turns() -> None:
    desk = Desk()
    lost: list[Piece] = [READ, desk.called("read a"), again, READ_B]
    more: list[Piece] = [READ, desk.called("read a", 2), again, READ_B]
    result, _ = await answer(Writer(lost, more, ["ok"]), desk)
    assert [step.arguments for step in result.discarded] == [{"path": "a"}] * 2
    assert [step.arguments for step in result.steps] == [{"path": "b"}] * 2


async def test_a_reply_that_begins_anew_keeps_what_it_asks_for_again() -> None:
    desk = Desk()
    model = Writer([READ, desk.called("read a"), again, READ_B, READ, settled], ["ok"])
    result, _ = await answer(model, desk)
    assert (model.told[1], desk.calls, result.discarded) == (["B", "A"], ["read a", "read b"], ())


async def test_another_model_takes_over() -> None:
    desk = Desk()
    lost = ModelError("it broke off", provider="p", model="m", reason="broke_off")

    async def break_off() -> None:
        raise lost

    model = FallbackModel([Writer([READ, desk.called("read a"), break_off]), Writer([READ, settled], ["ok"])])
    model.models[0].replies.append(["ok"])  # type: ignore[attr-defined]
    result, _ = await answer(model, desk)
    assert (result.outcome, desk.calls, result.discarded) == ("succeeded", ["read a"], ())


async def test_a_call_that_failed_early_is_made_again() -> None:
    desk = Desk()
    desk.fail = 1
    model = Writer([READ, desk.called("read a"), settled, READ_B], ["ok"])
    result, _ = await answer(model, desk)
    assert (model.told[1], desk.calls.count("read a")) == (["A", "B"], 2)
    assert [step.outcome for step in result.discarded] == ["failed"]


async def test_a_model_that_goes_away_leaves_nothing_running() -> None:
    desk = Desk()
    desk.hold.clear()

    async def break_off() -> None:
        raise ModelError("it broke off", provider="p", model="m")

    model = Writer([call("clock")], [READ, desk.called("read a"), break_off])
    result, _ = await answer(model, desk)
    assert (result.outcome, [step.outcome for step in result.discarded]) == ("failed", ["cancelled"])


async def test_cancelling_while_a_reply_arrives_leaves_nothing_running() -> None:
    desk = Desk()
    desk.hold.clear()
    model = Writer([READ, asyncio.Event().wait])
    run = asyncio.create_task(Agent(model, desk.tools, mode="loop").run("please"))
    await desk.called("read a")()
    assert desk.running == 1
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert desk.running == 0
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_stream_that_is_left_leaves_nothing_running() -> None:
    desk = Desk()
    desk.hold.clear()
    async with Agent(Writer([READ, asyncio.Event().wait]), desk.tools, mode="loop").stream("please"):
        await desk.called("read a")()
        assert desk.running == 1
    assert desk.running == 0


async def test_a_person_is_asked_while_the_early_calls_run() -> None:
    """A call that a person has to allow holds back nothing that was made before; a refusal discards nothing else."""
    desk = Desk()
    model = Writer([READ, desk.called("read a"), call("vault")], ["ok"])
    result, _ = await answer(model, desk, approve=lambda *_: False)
    assert (desk.calls, model.told[1][0], was_early(result)) == (["read a"], "A", [True])
    assert result.discarded == ()


async def test_a_turn_that_waits_for_a_person_drops_what_it_has_read() -> None:
    desk = Desk()
    model = Writer([READ, desk.called("read a"), call("vault")], ["ok"])
    result, _ = await answer(model, desk)
    assert (result.outcome, result.steps, len(result.discarded)) == ("waiting", (), 1)


async def test_a_call_that_a_person_refused_does_not_start_early_under_another_policy(tmp_path: Path) -> None:
    desk, path = Desk(), tmp_path / "j.db"
    asks = policy_from_toml('otherwise = "ask"\n[[rule]]\neffect = "none"\nthen = "ask"\n', "asks")
    first, _ = await answer(Writer([READ]), desk, policy=asks, journal=path)
    with Journal(path) as journal:
        approve(journal, first.run_id, deny="that is private")
    model = Writer([READ, settled, READ_B])
    free = policy_from_toml('otherwise = "allow"\n', "free")
    agent = Agent(model, desk.tools, policy=free, mode="loop", journal=path)
    result = await agent.resume(first.run_id, accept_changes=True)
    assert (result.outcome, [waiting.step for waiting in result.approvals]) == ("waiting", ["s2"])
    assert model.listened == [True]
    assert "read a" not in desk.calls


async def test_nothing_starts_early_in_a_run_that_was_begun_with_a_budget_of_calls(tmp_path: Path) -> None:
    desk, path = Desk(), tmp_path / "j.db"
    first, _ = await answer(Writer([call("vault")]), desk, journal=path, max_calls=3)
    with Journal(path) as journal:
        approve(journal, first.run_id)
    model = Writer([READ, settled, READ_B], ["ok"])
    agent = Agent(model, desk.tools, policy="declared", mode="loop", journal=path)
    result = await agent.resume(first.run_id)
    assert (result.answer, was_early(result), model.listened) == ("ok", [False] * 3, [False, False])


async def test_plan_first_then_loop() -> None:
    """What was read early for a plan that is none is not taken by the loop."""
    desk = Desk()
    plan = '{"steps": [{"tool_name": "read", "arguments": {"path": "a"}}, '
    model = Writer(
        [plan, desk.called("read a"), '{"tool_name": "nobody"}]}'], [READ, desk.called("read a", 2), READ_B], ["ok"]
    )
    result, _ = await answer(model, desk, mode="auto", max_repairs=0)
    assert (result.mode_used, result.answer, len(result.discarded)) == ("loop", "ok", 1)
    assert was_early(result) == [True, False]


# ---- effects that nobody could stop


async def test_an_effect_that_goes_on_keeps_reads_out_of_its_way() -> None:
    go, box = threading.Event(), list[str]()

    @tool(writes="box", timeout_seconds=0.01)
    def slow() -> int:
        go.wait(20)
        box.append("slow")
        return 1

    looked = list[int]()

    @tool(reads="box")
    async def look() -> int:
        looked.append(len(box))
        return len(box)

    desk = Desk()
    desk.tools = [slow, look]

    async def ends() -> None:
        assert looked == []  # the early call was refused, for the effect may still be under way
        go.set()
        threads = [thread for thread in threading.enumerate() if thread.name == "toolplan"]
        await asyncio.to_thread(lambda: [thread.join(10) for thread in threads])

    model = Writer([call("slow")], [call("look"), settled, ends], ["ok"])
    try:
        result, _ = await answer(model, desk)
    finally:
        go.set()
    assert (looked, model.told[2], result.steps[-1].outcome) == ([1], ["1"], "succeeded")


# ---- journals


async def test_what_the_model_said_is_written_down_before_a_result_is_taken(tmp_path: Path) -> None:
    desk = Desk()
    model = Writer([READ, desk.called("read a"), WRITE], [READ_B, desk.called("read b"), READ], ["ok"])
    with Journal(tmp_path / "j.db") as journal:
        result, _ = await answer(model, desk, journal=journal)
        entries = journal.read(result.run_id)
    kinds = [type(entry).__name__ for entry in entries]
    said = [number for number, entry in enumerate(entries) if isinstance(entry, ModelSaid)]
    ends = [number for number, kind in enumerate(kinds) if kind == "CallSucceeded"]
    assert (len(said), len(ends)) == (3, 4)
    assert said[0] < ends[0] < ends[1] < said[1] < ends[2] < ends[3] < said[2]


async def test_a_turn_that_is_told_again_starts_nothing_early(tmp_path: Path) -> None:
    """What it had read early was not a part of the run; the turn after it starts early as any."""
    desk = Desk()
    model = Writer([READ, desk.called("read a"), call("vault")], [READ_B, desk.called("read b"), READ], ["ok"])
    first, _ = await answer(model, desk, journal=tmp_path / "j.db")
    assert (first.outcome, desk.calls, len(first.discarded)) == ("waiting", ["read a"], 1)
    with Journal(tmp_path / "j.db") as journal:
        approve(journal, first.run_id)
    events: list[AgentEvent] = []
    agent = Agent(model, desk.tools, mode="loop", policy="declared", journal=tmp_path / "j.db")
    result = await agent.resume(first.run_id, watch=events.append)
    await agent.close()
    assert (result.outcome, result.answer, result.discarded) == ("succeeded", "ok", ())
    assert [event.step for event in events if isinstance(event, EarlyStarted)] == ["s3"]
    assert desk.calls == ["read a", "read a", "vault", "read b", "read a"]


def test_a_listener_hears_of_calls_if_it_wants_to() -> None:
    heard: list[ToolCallPart] = []
    Listener(str, lambda: None).called(READ)
    Listener(str, lambda: None, heard.append).called(READ)
    hears_calls(str)(READ)  # type: ignore[arg-type]
    hears_calls(None)(READ)
    assert heard == [READ]
