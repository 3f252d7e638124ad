"""The states of a request: what the page draws is exactly what happens."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from journals import read, written
from toolplan import Agent, ToolFailed, ToolSet, tool
from toolplan.journal import Journal
from toolplan.journal.waiting import approve
from toolplan.models import FunctionModel, ModelRequest, Reply, ToolCallPart
from toolplan.states import STATES, TRANSITIONS, StateWatcher, state_of

PAGE = Path(__file__).parents[2] / "docs" / "design" / "run-states.md"


def call(tool_name: str, /, **arguments: Any) -> dict[str, Any]:
    return {"tool_name": tool_name, "arguments": arguments}


def turn(*given: tuple[str, dict[str, Any]]) -> Reply:
    return Reply("", tuple(ToolCallPart(f"c{n}", *each) for n, each in enumerate(given)), "tool_call")


def tools() -> ToolSet:
    failures = iter([True])

    @tool(reads="x", retry=2)
    async def look() -> str:
        await asyncio.sleep(0)
        if next(failures, False):
            raise RuntimeError("once")
        return "seen"

    @tool(writes="y")
    async def put() -> str:
        return "put"

    @tool(reads="x")
    async def wait() -> str:
        await asyncio.sleep(0.05)
        return "waited"

    @tool(reads="x")
    def fail() -> str:
        raise ToolFailed("it is broken")

    @tool(writes="z", approval="ask")
    def open_door() -> str:
        return "open"

    return ToolSet.of([look, put, wait, fail, open_door])


def passed(*replies: Any, **options: Any) -> list[str]:
    """Return the states of one request with a model that gives these replies."""
    given = [reply if isinstance(reply, Reply | str) else json.dumps(reply) for reply in replies]

    def model(request: ModelRequest) -> Reply | str:
        return given.pop(0)

    plan: Any = options.pop("plan", None)
    settings: dict[str, Any] = {"max_replans": 0, **options}

    async def follow() -> list[str]:
        agent = Agent(FunctionModel(model), tools(), early_start=False, **settings)
        watcher = StateWatcher()
        events: list[Any] = []
        async with agent.stream("Do it.") if plan is None else agent.stream_plan(plan) as stream:
            async for event in stream:
                events.append(event)
                assert watcher.see(event) == watcher.state
        assert state_of(events) == watcher.state
        return list(watcher.passed)

    return asyncio.run(follow())


def resumed(*replies: Any, cut: int | None = None, **options: Any) -> list[str]:
    """Return the states of a request that another process goes on with, once with each answer; of the last process.

    What it waits for is allowed; with `cut` the first process ended at that entry.
    """
    given = [reply if isinstance(reply, Reply | str) else json.dumps(reply) for reply in replies]

    async def follow(folder: Path) -> list[str]:
        path = folder / "j.db"

        def agent() -> Agent:
            model = FunctionModel(lambda request: given.pop(0))
            return Agent(model, tools(), early_start=False, max_replans=0, journal=path, **options)

        run = (await agent().run("Do it.")).run_id
        if cut is not None:
            entries = read(path)[:cut]
            path = folder / "cut.db"
            written(path, entries)
        else:
            with Journal(path) as journal:
                approve(journal, run)
        watcher = StateWatcher()
        async with agent().stream_resume(run) as stream:
            async for event in stream:
                watcher.see(event)
        return list(watcher.passed)

    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(follow(Path(folder)))


def this(_: str) -> str:
    return "this"


def nobody(_: str) -> None:
    return None


def refuse(*_: object) -> bool:
    return False


ANSWER: Any = {"steps": [], "answer": "done"}
ASK: Any = {"ask_user": "which?", "result_variable": "which"}
PLAYS: dict[str, Callable[[], list[str]]] = {
    "prose": lambda: passed("Hello."),
    "a plan": lambda: passed({"steps": [call("put"), call("put")], "answer": "done"}),
    "a plan that somebody has": lambda: passed(plan={"steps": [call("put")], "answer": "done"}),
    "a plan that somebody has and that is none": lambda: passed(plan=[call("nothing")]),
    "an attempt fails beside another call": lambda: passed({"steps": [call("wait"), call("look")], "answer": "done"}),
    "only an answer": lambda: passed(ANSWER),
    "the model words the answer": lambda: passed({"steps": [call("put")]}, "done"),
    "an attempt fails": lambda: passed({"steps": [call("look")], "answer": "done"}),
    "a plan is mended": lambda: passed([call("nothing")], ANSWER),
    "no plan is accepted": lambda: passed([call("nothing")], max_repairs=0),
    "nothing can be planned": lambda: passed({"cannot": "no", "missing": ["a tool"]}),
    "a step fails": lambda: passed([call("fail")]),
    "the rest is planned anew": lambda: passed([call("fail")], ANSWER, max_replans=1),
    "the rest is none": lambda: passed([call("fail")], [call("nothing")], max_replans=1, max_repairs=0),
    "a person is asked": lambda: passed({"steps": [ASK, call("put")], "answer": "{which}"}, ask_user=this),
    "a person is asked while a call runs": lambda: passed(
        {"steps": [call("look"), ASK], "answer": "{which}"}, ask_user=this
    ),
    "a person is asked after a call": lambda: passed({"steps": [call("put"), ASK], "answer": "{which}"}, ask_user=this),
    "nobody answers": lambda: passed({"steps": [ASK]}),
    "a person has to allow it": lambda: passed([call("open_door")]),
    "a person does not allow it": lambda: passed([call("open_door")], approve=refuse),
    "a loop": lambda: passed(turn(("put", {})), "done", mode="loop"),
    "a loop with a wrong call": lambda: passed(turn(("nothing", {})), "done", mode="loop"),
    "a loop without end": lambda: passed(turn(("put", {})), mode="loop", max_turns=1),
    "a loop of wrong calls": lambda: passed(turn(("nothing", {})), mode="loop", max_turns=1),
    "a loop that says nothing": lambda: passed("", "", mode="loop"),
    "a loop asks": lambda: passed(
        turn(("put", {}), ("ask_user", {"question": "?"})), "done", mode="loop", ask_user=this
    ),
    "a loop asks in vain": lambda: passed(turn(("ask_user", {"question": "?"})), mode="loop", ask_user=nobody),
    "a loop has to be allowed": lambda: passed(turn(("open_door", {})), mode="loop"),
    "a plan is resumed": lambda: resumed([call("open_door")], "done"),
    "a loop is resumed": lambda: resumed(turn(("put", {})), turn(("open_door", {})), "done", mode="loop"),
    "a loop whose answer was there is resumed": lambda: resumed(turn(("put", {})), "done", cut=-1, mode="loop"),
    "auto goes over to a loop": lambda: passed({"cannot": "look first"}, turn(("put", {})), "done", mode="auto"),
}


def test_the_transitions_that_are_seen_are_those_that_are_documented() -> None:
    seen: set[tuple[str, str]] = set()
    for name, play in PLAYS.items():
        states = play()
        assert states[-1] in ("final answer", "abort", "waiting for user"), name
        seen |= set(itertools.pairwise(states))
    documented = {(state, following) for state, after in TRANSITIONS.items() for following in after}
    assert seen - documented == set()
    assert documented - seen == set()


def test_the_page_draws_them() -> None:
    text = PAGE.read_text(encoding="utf-8")
    (diagram,) = re.findall(r"```mermaid\n(.*?)```", text, re.DOTALL)
    names = dict(re.findall(r'state "([^"]+)" as (\w+)', diagram))
    by_id = {id: name for name, id in names.items()} | {id: id for id in re.findall(r"^\s+(\w+) -->", diagram, re.M)}
    by_id |= {id: name for name, id in names.items()}
    arrows = re.findall(r"^\s+(\w+) --> (\w+)", diagram, re.MULTILINE)
    drawn = {(by_id[a], by_id.get(b, b)) for a, b in arrows}
    assert drawn == {(state, following) for state, after in TRANSITIONS.items() for following in after}
    for state, meaning in STATES.items():
        assert f"| {state} | {meaning} |" in text


def test_what_a_plan_goes_through() -> None:
    assert PLAYS["a plan"]() == [
        "waiting for user",
        "reasoning",
        "tool requested",
        "validated",
        "running",
        "returned",
        "running",
        "returned",
        "final answer",
    ]


def test_before_anything_the_user_is_waited_for() -> None:
    assert state_of([]) == "waiting for user"
