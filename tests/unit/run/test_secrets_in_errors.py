"""What a schema calls secret is in no error, wherever the error goes: result, events, logs, journal, the model."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, SecretStr

from journals import read, written
from toolplan import Agent, Tool, ToolContext, ToolFailed, tool
from toolplan.agent import ModelAsked
from toolplan.journal import EffectStarted, Journal, RunEnded
from toolplan.journal.waiting import answer
from toolplan.models import ScriptedModel
from toolplan.schedule import CallFailed
from unit.run.runs import call

PASSWORD = 'hunter2 "and" more/'
SPELLINGS = (PASSWORD, json.dumps(PASSWORD)[1:-1], "hunter2%20%22and%22%20more", "hunter2+%22and%22")


class Session(BaseModel):
    user: str
    token: SecretStr


@tool(reads="x")
def login(name: str, password: SecretStr) -> str:
    raise ToolFailed(f"{name} with {password.get_secret_value()} was refused")


@tool(reads="x")
async def login_at(ctx: ToolContext, name: str, password: SecretStr) -> str:
    ctx.progress(f"asking for {password.get_secret_value()}")
    raise ConnectionError(f"http://host/{name}/hunter2%20%22and%22%20more%2F?password=hunter2+%22and%22+more%2F")


@tool(writes="x")
def begin(name: str) -> Session:
    return Session(user=name, token=SecretStr(PASSWORD))


@tool(reads="x")
def look(session: str, times: int = 1) -> str:
    raise ToolFailed(f"no session {json.dumps(session)}")


@tool(reads="x")
def count(password: SecretStr, times: int) -> int:
    return times


@tool(reads="x")
def number(text: str) -> int:
    return int(text)


TOOLS = [login, login_at, begin, look, count, number]
LOGIN = call("login", name="ann", password=PASSWORD)
PLANS: dict[str, list[Any]] = {
    "a call": [LOGIN],
    "a call in a loop": [{"for_each": [1], "as": "n", "do": [call("login", name="ann", password=PASSWORD)]}],
    "a call that is tried again": [LOGIN | {"retry": {"attempts": 2, "wait_seconds": 0}}],
    "an address": [call("login_at", name="ann", password=PASSWORD)],
    "a result that is secret": [call("begin", "it", name="ann"), call("look", session="{it.token}")],
    "a call after it": [
        LOGIN | {"on_error": {"value": "no"}, "result_variable": "said"},
        call("number", text="{said} number: " + PASSWORD),
    ],
    "arguments that do not fit": [
        {"let": {"many": "'x'"}},
        {"let": {"times": "many if len(many) else 3"}},
        call("count", password=PASSWORD, times="{times}"),
    ],
}


def is_clean(text: str) -> bool:
    return not any(spelling in text for spelling in SPELLINGS)


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("failure", ["written-order", "independent"])
async def test_no_error_repeats_it(name: str, failure: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    told: list[Any] = []
    agent = Agent(tools=TOOLS, policy="declared", journal=tmp_path / "runs.db", failure=failure)
    with caplog.at_level(logging.DEBUG):
        result = await agent.run_plan([*PLANS[name], {"answer": "done"}], watch=told.append)
    await agent.close()
    errors = [step.error for step in result.steps if step.error]
    assert errors
    assert is_clean(f"{result.error} {result.answer} {errors}")
    assert "(secret)" in f"{errors}" or name == "arguments that do not fit"
    words = [getattr(event, "error", "") or getattr(event, "message", "") for event in told]
    words += [str(event.record.error) for event in told if hasattr(event, "record")]
    assert is_clean("\n".join(map(str, words)))
    assert is_clean(caplog.text)
    with Journal(tmp_path / "runs.db", readonly=True) as journal:
        entries = journal.read(result.run_id)
    assert is_clean(repr([entry for entry in entries if isinstance(entry, CallFailed | RunEnded)]))


async def test_the_model_that_plans_again_does_not_read_it() -> None:
    told: list[Any] = []
    first = json.dumps([call("begin", "it", name="ann"), call("look", session="{it.token}"), {"answer": "done"}])
    model = ScriptedModel([first, json.dumps([{"answer": "sorry"}])])
    result = await Agent(model, tools=[begin, look], policy="declared").run("do it", watch=told.append)
    assert result.replans == 1
    asked = [event for event in told if isinstance(event, ModelAsked)][-1].messages[-1].content
    assert "no session" in asked
    assert "(secret)" in asked[asked.index("no session") :][:30]


async def test_what_an_attempt_puts_into_its_error_is_not_a_value_of_the_plan() -> None:
    plan: list[Any] = [{"try": [LOGIN], "as": "why", "except": [{"answer": "{why}"}]}, {"answer": "done"}]
    result = await Agent(tools=TOOLS, policy="declared").run_plan(plan)
    assert "was refused" in result.answer
    assert is_clean(result.answer)


async def test_a_probe_that_fails_does_not_log_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def probe(password: SecretStr) -> bool:
        raise RuntimeError(f"cannot ask with {password.get_secret_value()}")

    def pay(password: SecretStr) -> str:
        return "paid"

    tools = [Tool.of(pay, writes="x", probe=probe), begin]
    agent = Agent(tools=tools, policy="declared", journal=tmp_path / "whole.db")
    plan: list[Any] = [call("pay", password=PASSWORD), {"answer": "done"}]
    await agent.run_plan(plan)
    await agent.close()
    entries = read(tmp_path / "whole.db")
    left = next(number for number, entry in enumerate(entries) if isinstance(entry, EffectStarted))
    run = written(tmp_path / "cut.db", entries[: left + 1])
    agent = Agent(tools=tools, policy="declared", journal=tmp_path / "cut.db")
    with caplog.at_level(logging.DEBUG):
        result = await agent.resume(run, plan=plan)
    await agent.close()
    assert result.outcome == "waiting"
    assert "the probe of `pay` failed: RuntimeError: cannot ask with (secret)" in caplog.text
    assert is_clean(caplog.text)


async def test_a_run_that_goes_on_knows_what_was_secret_before(tmp_path: Path) -> None:
    def settings() -> dict[str, str]:
        return {"password": PASSWORD}

    def enter(password: SecretStr) -> str:
        return "in"

    def keep(text: str) -> str:
        raise ToolFailed(f"there is no room for {text}")

    tools = [Tool.of(settings, reads="x"), Tool.of(enter, reads="x"), Tool.of(keep, writes="y")]
    plan: list[Any] = [
        call("settings", "found"),
        call("enter", password="{found['password']}"),
        {"ask_user": "Shall it be kept?", "result_variable": "said"},
        call("keep", text="{found['password']}") | {"depends_on": ["said"]},
    ]
    path = tmp_path / "runs.db"
    waits = await Agent(tools=tools, policy="declared", journal=path).run_plan(plan)
    with Journal(path) as journal:
        answer(journal, waits.run_id, "yes")
    result = await Agent(tools=tools, policy="declared", journal=path).resume(waits.run_id)
    assert result.error == "there is no room for (secret)"
    effects = [entry for entry in read(path) if isinstance(entry, EffectStarted | CallFailed | RunEnded)]
    assert is_clean(repr(effects))


async def test_a_plan_that_used_a_cleaned_error_can_go_on(tmp_path: Path) -> None:
    """The journal's story is told again with the same secrets left out, so the same calls come of it."""

    def settings() -> dict[str, str]:
        return {"password": PASSWORD}

    def enter(password: SecretStr) -> str:
        return "in"

    kept: list[str] = []

    def keep(text: str) -> str:
        kept.append(text)
        return "kept"

    tools = [Tool.of(settings, reads="x"), Tool.of(enter, reads="x"), Tool.of(keep, writes="y")]
    plan: list[Any] = [
        call("settings", "found"),
        call("enter", "entered", password="{found['password']}"),
        {
            "try": [{"let": {"n": "int(found['password'] if entered else 0)"}}, {"note": "{n}"}],
            "as": "why",
            "except": [call("keep", text="{why}")],
        },
        {"ask_user": "Shall it go on?"},
        {"answer": "done"},
    ]
    path = tmp_path / "runs.db"
    waits = await Agent(tools=tools, policy="declared", journal=path).run_plan(plan)
    with Journal(path) as journal:
        answer(journal, waits.run_id, "yes")
    result = await Agent(tools=tools, policy="declared", journal=path).resume(waits.run_id)
    assert (result.outcome, result.answer, len(kept)) == ("succeeded", "done", 1)
    assert "(secret)" in kept[0]
    assert is_clean(kept[0])
