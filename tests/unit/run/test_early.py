"""Calls that are made while the plan is still arriving, through a whole request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from toolplan import Agent, Plan, Result, ToolContext, ToolSet, check, parse, run_plan, tool
from toolplan.agent import AgentEvent, ModelReplied, PlanAccepted
from toolplan.known import Known
from toolplan.models import ModelRequest, Reply
from toolplan.run import EarlyCalls, EarlyDiscarded, EarlyFinished, EarlyStarted, StepFinished, StepStarted

Piece = str | Callable[[], Awaitable[Any]]


class Writer:
    """A model that writes its replies piece by piece, and between them waits for what the test says."""

    name = "writer"

    def __init__(self, *replies: list[Piece], finish_reason: str = "stop") -> None:
        self.replies = list(replies)
        self.finish_reason = finish_reason
        self.listened: list[bool] = []

    async def ask(self, request: ModelRequest, on_text: Callable[[str], None] | None = None) -> Reply:
        self.listened.append(on_text is not None)
        text = ""
        for piece in self.replies.pop(0):
            if not isinstance(piece, str):
                async with asyncio.timeout(5):
                    await piece()
                continue
            text += piece
            if on_text is not None:
                on_text(piece)
            await asyncio.sleep(0)
        return Reply(text, finish_reason=self.finish_reason)


class Desk:
    """Tools that tell when they are called."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.news = asyncio.Condition()
        self.files = {"a": "old", "b": "B"}
        self.running = self.most = 0
        self.hold = asyncio.Event()
        self.hold.set()
        self.ended: list[str] = []
        self.has_ended = asyncio.Event()
        self.fail = 0

        @tool(reads="file:{path}")
        async def read(path: str) -> str:
            """Reads a file."""
            await self.note(f"read {path}")
            self.running += 1
            self.most = max(self.most, self.running)
            try:
                await self.hold.wait()
                if self.fail:
                    self.fail -= 1
                    raise OSError("busy")
                return self.files[path]
            finally:
                self.running -= 1
                self.ended.append(path)
                self.has_ended.set()

        @tool(writes="file:{path}")
        async def write(path: str, text: str) -> str:
            """Writes a file."""
            await self.note(f"write {path}")
            self.files[path] = text
            return "written"

        @tool
        async def anything() -> str:
            """Does anything."""
            await self.note("anything")
            return "done"

        @tool(reads="vault", approval="ask")
        async def vault() -> str:
            """Opens the vault."""
            await self.note("vault")
            return "gold"

        self.tools: list[Any] = [read, write, anything, vault]

    async def note(self, text: str) -> None:
        async with self.news:
            self.calls.append(text)
            self.news.notify_all()

    def called(self, text: str, times: int = 1) -> Callable[[], Awaitable[Any]]:
        async def wait() -> None:
            async with self.news:
                await self.news.wait_for(lambda: self.calls.count(text) >= times)

        return wait


def call(name: str, result: str | None = None, **arguments: Any) -> str:
    step = {"tool_name": name, "arguments": arguments} | ({"result_variable": result} if result else {})
    return json.dumps(step)


async def settled() -> None:
    for _ in range(30):
        await asyncio.sleep(0)


async def answer(agent: Agent) -> tuple[Result, list[AgentEvent]]:
    events: list[AgentEvent] = []
    return await agent.run("please", watch=events.append), events


def kinds(events: list[AgentEvent], *which: type) -> list[str]:
    return [type(event).__name__ for event in events if isinstance(event, which)]


async def test_a_chain_runs_while_the_plan_arrives() -> None:
    desk = Desk()
    desk.files["a"] = "b"
    model = Writer(
        [
            '{"steps": [' + call("read", "x", path="a"),
            desk.called("read a"),
            ", " + json.dumps({"let": {"where": "x.strip()"}}) + ", " + call("read", "y", path="{where}"),
            desk.called("read b"),
            settled,
            ", " + call("write", path="c", text="{y}") + '], "answer": "{y}"}',
        ]
    )
    result, events = await answer(Agent(model, desk.tools))
    assert (result.outcome, result.answer, result.discarded) == ("succeeded", "B", ())
    assert desk.calls == ["read a", "read b", "write c"]
    assert kinds(events, EarlyStarted, EarlyFinished, ModelReplied, PlanAccepted, StepStarted, StepFinished)[:5] == [
        *["EarlyStarted", "EarlyFinished"] * 2,
        "ModelReplied",
    ]
    assert [step.outcome for step in result.steps] == ["succeeded"] * 3
    first, second, third = (step.started_seconds for step in result.steps)
    assert first is not None
    assert second is not None
    assert third is not None
    assert first < second < 0 <= third
    started = [event.at_seconds for event in events if isinstance(event, StepStarted)]
    assert started[:2] == [pytest.approx(first), pytest.approx(second)]


async def test_the_run_waits_for_an_early_call_that_is_still_running() -> None:
    desk = Desk()
    desk.hold.clear()
    agent = Agent(Writer(["[" + call("read", path="a"), desk.called("read a"), "]"]), desk.tools, answer="none")
    run = asyncio.create_task(agent.run("please"))
    await settled()
    assert not run.done()
    desk.hold.set()
    result = await run
    assert (result.outcome, desk.calls, result.discarded) == ("succeeded", ["read a"], ())


async def test_a_chain_that_goes_on_after_the_plan_is_there_is_the_runs_business() -> None:
    calls: list[str] = []

    @tool(reads="web")
    async def follow(link: str) -> str:
        """Follows a link."""
        calls.append(link)
        await asyncio.sleep(0.01)
        return link + "b"

    steps = call("follow", "x", link="a") + ', {"let": {"y": "x.strip()"}}, ' + call("follow", link="{y}")
    result = await Agent(Writer(["[" + steps, settled, "]"]), [follow], answer="none").run("please")
    assert (result.outcome, calls, result.discarded) == ("succeeded", ["a", "ab"], ())
    assert (result.steps[0].started_seconds or 0) < 0 <= (result.steps[1].started_seconds or 0)


@pytest.mark.parametrize("step", [call("write", path="a", text="new"), call("anything"), call("vault")])
async def test_nothing_else_starts_before_the_plan_is_accepted(step: str) -> None:
    desk = Desk()
    seen: list[list[str]] = []

    async def look() -> None:
        await settled()
        seen.append(list(desk.calls))

    agent = Agent(Writer(["[" + step, look, "]"]), desk.tools, answer="none", approve=lambda calls, checked: True)
    result = await agent.run("please")
    assert result.outcome == "succeeded"
    assert (seen, len(desk.calls)) == ([[]], 1)


async def test_early_start_can_be_switched_off() -> None:
    desk = Desk()
    model = Writer(["[" + call("read", path="a") + "]"])
    result = await Agent(model, desk.tools, answer="none", early_start=False).run("please")
    assert (result.outcome, model.listened, desk.calls) == ("succeeded", [False], ["read a"])
    assert (result.steps[0].started_seconds or 0) >= 0


async def test_a_model_need_not_stream_for_tools_that_all_have_effects() -> None:
    desk = Desk()
    model = Writer(["[" + call("anything") + "]"])
    await Agent(model, [desk.tools[2]], answer="none").run("please")
    assert model.listened == [False]


async def test_a_failed_early_call_is_made_again() -> None:
    desk = Desk()
    desk.fail = 1
    model = Writer(["[" + call("read", path="a"), desk.called("read a"), settled, "]"])
    result, events = await answer(Agent(model, desk.tools, answer="none"))
    assert (result.outcome, desk.calls) == ("succeeded", ["read a", "read a"])
    assert [(step.id, step.outcome, step.error) for step in result.discarded] == [("s1", "failed", "OSError: busy")]
    assert kinds(events, EarlyDiscarded) == ["EarlyDiscarded"]
    assert (result.steps[0].attempts, result.steps[0].outcome) == (1, "succeeded")


async def test_a_rejected_plan_discards_and_awaits_its_calls() -> None:
    desk = Desk()
    desk.hold.clear()
    bad = ", " + call("nothing_like_it")
    model = Writer(["[" + call("read", path="a"), desk.called("read a"), bad, "]"])
    result, events = await answer(Agent(model, desk.tools, max_repairs=0))
    assert result.outcome == "rejected"
    assert [(step.id, step.outcome) for step in result.discarded] == [("s1", "cancelled")]
    assert (desk.running, desk.ended) == (0, ["a"])
    assert kinds(events, EarlyStarted, EarlyFinished, EarlyDiscarded) == [
        "EarlyStarted",
        "EarlyFinished",
        "EarlyDiscarded",
    ]
    assert result.to_dict()["discarded"] == [result.discarded[0].to_dict()]


async def test_a_repaired_plan_does_not_repeat_what_it_kept() -> None:
    desk = Desk()
    kept = call("read", "x", path="a")
    model = Writer(
        ["[" + kept + ", ", desk.called("read a"), call("read", path="b"), desk.called("read b"), ", 7]"],
        ["[" + call("read", path="b") + ", " + kept + ", " + call("read", path="c"), desk.called("read c"), "]"],
    )
    desk.files["c"] = "C"
    result = await Agent(model, desk.tools, answer="none").run("please")
    assert (result.outcome, result.inferences, result.discarded) == ("succeeded", 2, ())
    assert sorted(desk.calls) == ["read a", "read b", "read c"]


async def test_a_repair_that_changes_the_call_discards_it() -> None:
    desk = Desk()
    model = Writer(
        ["[" + call("read", path="a"), desk.called("read a"), ", 7]"],
        ["[" + call("read", path="b"), desk.called("read b"), "]"],
    )
    result = await Agent(model, desk.tools, answer="none").run("please")
    assert [(step.tool, step.arguments) for step in result.discarded] == [("read", {"path": "a"})]
    assert [step.arguments for step in result.steps] == [{"path": "b"}]


async def test_an_answer_in_prose_discards() -> None:
    desk = Desk()
    model = Writer(["I could call ```json\n[" + call("read", path="a"), desk.called("read a"), "\n but need not."])
    result = await Agent(model, desk.tools, max_repairs=0).run("please")
    assert [step.arguments for step in result.discarded] == [{"path": "a"}]
    assert result.steps == ()


async def test_a_rehearsed_read_is_never_taken_for_one_behind_a_change() -> None:
    desk = Desk()
    rehearsal = '{"steps": [' + call("write", path="z", text="") + ", " + call("read", "x", path="a")
    model = Writer(
        [
            rehearsal,
            desk.called("read a"),
            "]} no, first it must be new </think>\n",
            '{"steps": [' + call("write", path="a", text="new") + ", " + call("read", "x", path="a"),
            '], "answer": "{x}"}',
        ]
    )
    result = await Agent(model, desk.tools).run("please")
    assert (result.outcome, result.answer) == ("succeeded", "new")
    assert desk.calls == ["read a", "write a", "read a"]
    assert [step.outcome for step in result.discarded] == ["succeeded"]


async def test_a_cut_off_reply_runs_nothing_but_what_changes_nothing() -> None:
    desk = Desk()
    write = call("write", path="a", text="new")
    model = Writer(
        ["[" + call("read", path="a") + ", " + write + ", ", desk.called("read a"), '{"tool_name": "wri'],
        finish_reason="length",
    )
    result = await Agent(model, desk.tools, max_repairs=0).run("please")
    assert (result.outcome, desk.calls, desk.files["a"]) == ("rejected", ["read a"], "old")


async def test_early_and_other_calls_share_the_places() -> None:
    desk = Desk()
    desk.hold.clear()
    paths = ["a", "b", "c", "d", "e"]
    desk.files |= dict.fromkeys(paths, "x")
    calls = ", ".join(call("read", path=path) for path in paths)

    async def release() -> None:
        desk.hold.set()

    model = Writer(["[" + calls, desk.called("read b"), settled, "]"])
    agent = Agent(model, desk.tools, answer="none", max_concurrency=2)
    run = asyncio.create_task(agent.run("please"))
    await settled()
    assert desk.calls == ["read a", "read b"]
    await release()
    result = await run
    assert (result.outcome, desk.most, len(desk.calls)) == ("succeeded", 2, 5)
    assert result.discarded == ()


async def test_a_tools_own_limit_holds_for_both_kinds() -> None:
    running = most = 0
    hold = asyncio.Event()

    @tool(reads="db", max_concurrency=1)
    async def query(number: int) -> int:
        """Asks the database."""
        nonlocal running, most
        running += 1
        most = max(most, running)
        await hold.wait()
        await asyncio.sleep(0)
        running -= 1
        return number

    async def release() -> None:
        await settled()
        asyncio.get_running_loop().call_later(0.01, hold.set)

    late = json.dumps({"if": "1 == 1", "then": [json.loads(call("query", number=3))]})
    model = Writer(["[" + call("query", number=1) + ", " + call("query", number=2) + ", " + late, release, "]"])
    result = await Agent(model, [query], answer="none").run("please")
    assert (result.outcome, most) == ("succeeded", 1)


async def test_cancelling_while_the_plan_arrives_leaves_nothing_running() -> None:
    desk = Desk()
    desk.hold.clear()
    model = Writer(["[" + call("read", path="a"), desk.called("read a"), asyncio.Event().wait])
    run = asyncio.create_task(Agent(model, desk.tools).run("please"))
    await desk.called("read a")()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert (desk.running, desk.ended) == (0, ["a"])
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_time_limit_holds_early_too() -> None:
    desk = Desk()
    desk.hold.clear()
    step = json.dumps({"tool_name": "read", "arguments": {"path": "a"}, "timeout_seconds": 0.01, "on_error": "skip"})

    model = Writer(["[" + step, desk.has_ended.wait, "]"])
    result = await Agent(model, desk.tools, answer="none").run("please")
    assert [step.outcome for step in (*result.discarded, *result.steps)] == ["failed", "failed"]


async def test_a_program_starts_early_too() -> None:
    desk = Desk()
    desk.files["a"] = "b"
    model = Writer(
        [
            "```python\nx = read(path='a')\n",
            desk.called("read a"),
            "y = read(x)\n",
            desk.called("read b"),
            "write(path='c', text=y)\n",
            "return y\n```",
        ]
    )
    result = await Agent(model, desk.tools, notation="python").run("please")
    assert (result.answer, desk.calls, result.discarded) == ("B", ["read a", "read b", "write c"], ())


async def test_arguments_that_do_not_fit_start_nothing() -> None:
    desk = Desk()
    model = Writer(["[" + call("read", path=7) + ", " + call("read", file="a"), settled, "]"])
    result = await Agent(model, desk.tools, max_repairs=0).run("please")
    assert (result.outcome, desk.calls, result.discarded) == ("rejected", [], ())


async def test_an_early_call_has_its_context() -> None:
    seen: list[tuple[str, Any]] = []
    called = asyncio.Event()

    @tool(reads="web")
    async def load(context: ToolContext, url: str) -> str:
        """Loads a page."""
        seen.append((context.step_id, context.dependencies))
        called.set()
        context.progress("half")
        return url

    model = Writer(["[" + call("load", url="u"), called.wait, "]"])
    result, events = await answer(Agent(model, [load], answer="none", dependencies="shared"))
    assert (result.outcome, seen) == ("succeeded", [("s1", "shared")])
    assert "StepProgress" in [type(event).__name__ for event in events]


async def test_a_null_that_means_not_given_makes_no_other_call() -> None:
    calls: list[int] = []
    called = asyncio.Event()

    @tool(reads="web")
    async def load(url: str, times: int = 1) -> str:
        """Loads a page."""
        calls.append(times)
        called.set()
        return url

    model = Writer(["[" + call("load", url="u", times=None), called.wait, "]"])
    result = await Agent(model, [load], answer="none").run("please")
    assert (result.outcome, calls, result.discarded) == ("succeeded", [1], ())


async def test_a_chain_of_a_refused_plan_does_not_go_on() -> None:
    desk = Desk()
    desk.files |= {"a": "b", "c": "C"}
    desk.hold.clear()
    chain = call("read", "x", path="a") + ", " + call("read", path="{x}")

    async def release() -> None:
        desk.hold.set()
        await settled()

    model = Writer(["[" + chain, desk.called("read a"), ", 7]"], ["[", release, call("read", path="c"), "]"])
    result = await Agent(model, desk.tools, answer="none").run("please")
    assert result.outcome == "succeeded"
    assert sorted(desk.calls) == ["read a", "read c"]
    assert [step.arguments for step in result.discarded] == [{"path": "a"}]


async def test_a_call_is_judged_with_the_steps_that_its_arguments_come_from() -> None:
    desk = Desk()
    desk.files |= {"a": "b", "B": "x"}
    tools = ToolSet.of(desk.tools)
    asked: list[list[str]] = []

    def may_start(plan: Plan, step: str, known: Known) -> bool:
        asked.append([each.id for each in plan.steps])
        assert plan.steps[-1].id == step
        return step != "s5"

    async def run(plan: Plan, watch: Any) -> Any:
        return await run_plan(check(plan, tools), watch=watch)

    steps = [
        json.loads(call("read", "x", path="a")),
        json.loads(call("read", path="b")),
        {"let": {"y": "x.strip()"}},
        json.loads(call("read", "z", path="{y}")),
        json.loads(call("read", "w", path="{z}")),
        json.loads(call("read", path="{w}")),
    ]
    plan = parse(steps, tools=tools)
    assert isinstance(plan, Plan)
    async with EarlyCalls(tools, may_start, run, now="", max_concurrency=9, tell=lambda event: None) as early:
        for step in plan.steps:
            early.offer(step)
        await settled()
    assert asked == [["s1"], ["s2"], ["s1", "s3", "s4"], ["s1", "s3", "s4", "s5"]]
    assert desk.calls == ["read a", "read b", "read b"]
    assert len(early.discarded) == 3


async def test_members_of_a_parallel_start_as_they_arrive() -> None:
    desk = Desk()
    model = Writer(
        [
            '[{"parallel": [' + call("read", "x", path="a"),
            desk.called("read a"),
            ", " + call("write", path="b", text="new") + ", " + call("read", "y", path="b") + ", " + call("vault"),
            settled,
            "]}, ",
            settled,
            call("read", "z", path="c") + ', {"answer": "{x}"}]',
        ]
    )
    desk.files["c"] = "C"
    seen: list[list[str]] = []
    model.replies[0].insert(5, lambda: seen_so_far(desk, seen))
    agent = Agent(model, desk.tools, approve=lambda calls, card: True, policy="declared")
    result, _ = await answer(agent)
    assert (result.outcome, result.answer, result.discarded) == ("succeeded", "old", ())
    assert seen == [["read a"]]
    assert sorted(desk.calls) == ["read a", "read b", "read c", "vault", "write b"]
    assert desk.calls.index("write b") < desk.calls.index("read b")


async def seen_so_far(desk: Desk, seen: list[list[str]]) -> None:
    await settled()
    seen.append(list(desk.calls))


async def test_a_member_is_made_once_although_its_parallel_arrives_again_as_a_whole() -> None:
    desk = Desk()
    members = [call("read", path=name) for name in ("a", "b", "a")]
    pieces = ['[{"note": "first"}, {"parallel": [', members[0], ", ", members[1], ", ", members[2], "]}", settled, "]"]
    result = await Agent(Writer([*pieces]), desk.tools, answer="none").run("please")
    assert (result.outcome, desk.calls, result.discarded) == ("succeeded", ["read a", "read b", "read a"], ())
    assert [(step.started_seconds or 0) < 0 for step in result.steps] == [True] * 3


async def test_the_rest_of_a_plan_starts_early_with_what_is_known() -> None:
    desk = Desk()
    desk.files["a"] = "b"
    first = "[" + call("read", "x", path="a") + ", " + call("write", path="b", text="new") + ', {"replan": "look"}]'
    rest: list[Piece] = [
        "[" + call("read", "y", path="{x}"),
        desk.called("read b"),
        settled,
        ", " + call("write", path="c", text="{y}") + ', {"answer": "{y}"}]',
    ]
    result, events = await answer(Agent(Writer([first], rest), desk.tools, policy="declared"))
    assert (result.outcome, result.answer, result.discarded) == ("succeeded", "new", ())
    assert desk.calls == ["read a", "write b", "read b", "write c"]
    assert kinds(events, EarlyFinished, PlanAccepted)[-2:] == ["EarlyFinished", "PlanAccepted"]


async def test_what_was_read_for_one_plan_is_read_again_for_the_next() -> None:
    """The first plan has changed it since, or somebody else has."""
    desk = Desk()
    read = call("read", "x", path="a")
    end = ", " + call("write", path="a", text="new") + ', {"replan": "?"}]'
    first: list[Piece] = ["[" + read, desk.called("read a"), end]
    rest: list[Piece] = ["[" + call("read", "y", path="a"), desk.called("read a", 2), ', {"answer": "{x} {y}"}]']
    result = await Agent(Writer(first, rest), desk.tools, policy="declared").run("please")
    assert (result.answer, desk.calls) == ("old new", ["read a", "write a", "read a"])


async def test_calls_of_a_rest_that_is_refused_are_discarded_and_awaited() -> None:
    desk = Desk()
    first = "[" + call("read", "x", path="a") + ', {"replan": "look"}]'
    rest: list[Piece] = ["[" + call("read", "y", path="b"), desk.called("read b"), ", " + call("nothing_like_it"), "]"]
    result, _ = await answer(Agent(Writer([first], rest), desk.tools, max_repairs=0))
    assert result.outcome == "failed"
    assert [step.arguments for step in result.discarded] == [{"path": "b"}]
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_plan_that_somebody_has_is_gone_on_with_early_too() -> None:
    desk = Desk()
    rest: list[Piece] = ["[" + call("read", "y", path="b"), desk.called("read b"), ', {"answer": "{y}"}]']
    agent = Agent(Writer(rest, ["no plan at all"]), desk.tools)
    steps: Any = [json.loads(call("read", "x", path="a")), {"replan": "look"}]
    result = await agent.run_plan(steps, request="please")
    assert (result.answer, desk.calls, result.discarded) == ("B", ["read a", "read b"], ())


async def test_the_next_request_of_a_conversation_starts_early_with_what_is_known() -> None:
    desk = Desk()
    desk.files["a"] = "b"
    first = "[" + call("read", "x", path="a") + ', {"answer": "{x}"}]'
    second: list[Piece] = ["[" + call("read", "y", path="{x}"), desk.called("read b"), ', {"answer": "{y}"}]']
    talk = Agent(Writer([first], second), desk.tools, policy="declared").conversation()
    await talk.send("first")
    result = await talk.send("second")
    assert (result.answer, desk.calls) == ("B", ["read a", "read b"])
