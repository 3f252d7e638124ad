"""A secret of a tool stands in no file, card, error, printed line or prompt, wherever a plan or a call has it.

One text is put into every place that may hold it, one after the other, and then looked for in all that is left behind.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, SecretStr

from toolplan import Agent, Decision, Tool
from toolplan.approval import Card
from toolplan.check import Limits, check
from toolplan.cli.main import main
from toolplan.cli.progress import watching
from toolplan.errors import JournalMismatch, PlanRejected, ToolFailed
from toolplan.explain import explain_order
from toolplan.models import FunctionModel, ModelRequest, Reply, ToolCallPart
from toolplan.parse import parse
from toolplan.plan import Plan
from toolplan.policy import PlannedCall
from toolplan.result import Result
from toolplan.tools import ToolSet

MARKER = "hunter2-TOPSECRET"
LONG = "-----BEGIN KEY----- " + "MIIEow" * 30
Pin = Annotated[int, Field(json_schema_extra={"writeOnly": True})]
Marked = Annotated[str, Field(json_schema_extra={"format": "password"})]
Code = Annotated[str, Field(json_schema_extra={"format": "password"}, max_length=5)]


class Login(BaseModel):
    user: str
    password: SecretStr


class Kept(BaseModel):
    user: str
    password: Marked


class Vault(BaseModel):
    name: str
    logins: dict[str, list[Kept]]


def login(user: str, password: SecretStr) -> str:
    if user == "bad":
        raise ToolFailed(f"no access for bad with {password.get_secret_value()}")
    return f"in as {user}"


def enter(logins: dict[str, Login], pair: tuple[int, Login] | None = None) -> str:
    return str(len(logins))


def code(code: Code) -> str:
    return "ok"


def pin(pin: Pin) -> str:
    return "ok"


def vault(name: str) -> Vault:
    return Vault.model_validate({"name": name, "logins": {"a": [{"user": "ann", "password": MARKER}]}})


def token(name: str) -> Marked:
    return MARKER


def note(text: str) -> str:
    if "bad" in text:
        raise ToolFailed(f"cannot note {text}")
    return "noted"


def join(a: str, b: str) -> str:
    return a + b


TOOLS = [
    Tool.of(login, writes="login:{user}:{password}"),
    Tool.of(enter, writes="logins"),
    Tool.of(code, writes="code:{code}"),
    Tool.of(pin, writes="pin"),
    Tool.of(vault, reads="vault"),
    Tool.of(token, reads="vault"),
    Tool.of(note, writes="notes"),
    Tool.of(join, pure=True),
]


def call(tool: str, result: str | None = None, **arguments: Any) -> dict[str, Any]:
    shown: dict[str, Any] = {"tool_name": tool, "arguments": arguments}
    return {**shown, "result_variable": result} if result else shown


def log_in(password: Any, user: str = "u") -> dict[str, Any]:
    return call("login", user=user, password=password)


GIVEN = {"user": "u", "password": MARKER}
PLANS: dict[str, Any] = {
    "a constant": [log_in(MARKER)],
    "fields of values": [call("enter", logins={"k": GIVEN})],
    "positions": [call("enter", logins={}, pair=[1, GIVEN])],
    "an expression": [log_in({"$expr": f"'{MARKER}'"})],
    "a sum": [log_in({"$expr": f"'{MARKER}' + ''"})],
    "a choice": [log_in(f"{{'{MARKER}' if now else 'x'}}")],
    "a template": [log_in(f"{MARKER}{{''}}")],
    "a name": [{"let": {"p": f"'{MARKER}'"}}, log_in("{p}")],
    "a field of a name": [{"let": {"c": GIVEN}}, log_in("{c.password}")],
    "an input": {"inputs": {"p": MARKER}, "steps": [log_in("{p}")], "answer": "ok"},
    "a loop": [{"for_each": [MARKER], "as": "p", "do": [log_in("{p}")]}],
    "a pure tool": [call("join", "p", a=MARKER, b=""), log_in("{p}")],
    "a result": [call("vault", "v", name="x"), log_in("{v.logins.a[0].password}")],
    "a whole result": [call("token", "t", name="x"), log_in("{t}")],
    "instead of a result": [{**call("token", "t", name="x"), "on_error": {"value": MARKER}}, log_in("{t}")],
    "instead of another result": [{**log_in(MARKER, "bad"), "on_error": {"value": MARKER}}],
    "in other words": {"thought": f"use {MARKER}", "steps": [{"note": MARKER}, log_in(MARKER)], "answer": "ok"},
    "in another tool": [call("note", text=f"pw {MARKER}"), log_in(MARKER)],
    "in a test": [{"if": f"'{MARKER}' != ''", "then": [log_in(MARKER)]}],
    "in an error": [log_in(MARKER, "bad")],
    "in the error of another tool": [call("vault", "v", name="x"), call("note", text="bad {v.logins.a[0].password}")],
    "in the error of an expression": [call("token", "t", name="x"), {"let": {"n": "int(t)"}}],
    "a kind that does not fit": [call("pin", pin=MARKER)],
    "a name that does not fit": [{"let": {"p": f"'{MARKER}'"}}, call("pin", pin="{p}")],
    "too long": [call("code", code=LONG)],
    "too long, computed": [call("token", "t", name="x"), call("code", code="{t}")],
    "no such tool": [call("logn", **GIVEN)],
    "no such argument": [call("login", user="u", passwrd=MARKER)],
    "no such argument, and no such tool": [call("lgn", passwrd=f"{MARKER}{{x}}")],
    "no such name": [log_in(f"{MARKER}{{nobody}}")],
    "no plan": '{"steps": [{"tool_name": "login", "arguments": {"user": "u", "password": "' + MARKER,
    "no program": f'login(user="u", password="{MARKER}"\nanswer("ok"))',
    "a program": f'pw = "{MARKER}"\nfor u in ["a", "b"]:\n    login(user=u, password=pw)\nanswer("ok")',
    "a program with a dictionary": f'c = {{"password": "{MARKER}"}}\nlogin(user="u", password=c["password"])',
    "a program that does not fit": f'pw = "{MARKER}"\npin(pin=pw)\nlogin(user=1, password=pw)',
}
TEXT_CALL = '<tool_call>\n{"name": "NAME", "arguments": {"user": "u", "KEY": "' + MARKER + '"}}\n</tool_call>'
TURNS: dict[str, list[Any]] = {
    "a call": [[("login", GIVEN)]],
    "a call beside words": [[f"I use {MARKER}", ("login", GIVEN)]],
    "no such tool": [[("logn", GIVEN)]],
    "no such tool, beside words": [[f"I use {MARKER}", ("logn", GIVEN)]],
    "no such argument": [[("login", {"user": "u", "passwrd": MARKER})], [("login", GIVEN)]],
    "one argument more": [[("login", {**GIVEN, "other": MARKER})]],
    "a kind that does not fit": [[("pin", {"pin": MARKER})]],
    "a list": [[("login", {"user": "u", "password": [MARKER]})]],
    "no object": [[("login", f'{{"user": "u", "password": "{MARKER}')]],
    "text": [[TEXT_CALL.replace("NAME", "login").replace("KEY", "password")]],
    "text for no tool": [[TEXT_CALL.replace("NAME", "logn").replace("KEY", "password")]],
    "text for no argument": [[TEXT_CALL.replace("NAME", "login").replace("KEY", "passwrd")]],
    "values": [[("enter", {"logins": {"k": GIVEN}})], [("enter", {"logins": {}, "pair": [1, GIVEN]})]],
    "a result": [[("vault", {"name": "x"})], [("note", {"text": f"bad {MARKER}"})]],
    "a whole result": [[("token", {"name": "x"})], [("login", GIVEN)]],
    "an error": [[("login", {**GIVEN, "user": "bad"})]],
    "again": [[("login", GIVEN)], [("login", {**GIVEN, "again": f"because of {MARKER}"})]],
    "too long": [[("code", {"code": LONG})]],
}


class Seen:
    """What others than the tools, the model and the caller get to see of a request."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.prompts: list[str] = []
        self.cards: list[Card] = []
        self.lines = io.StringIO()

    def approve(self, calls: Sequence[PlannedCall], card: Card) -> bool:
        self.cards.append(card)
        return True

    def leaks(self, result: Result | None, printed: str) -> list[str]:
        """Return where the secret, or the beginning of the long one, stands."""
        texts = {file.name: file.read_bytes().decode("utf-8", "replace") for file in self.path.parent.iterdir()}
        texts |= {"printed": printed, "lines": self.lines.getvalue()}
        for card in self.cards:
            texts["card"] = card.to_text() + card.to_text("zh") + json.dumps(card.to_dict(), ensure_ascii=False)
        if result is not None:
            texts["error"] = str(result.error) + (result.answer if result.outcome == "rejected" else "")
            texts["diagnostics"] = repr(result.diagnostics) + (
                repr(result.source) if result.outcome == "rejected" else ""
            )
            texts["waits for"] = json.dumps(result.waits_for)
        return [name for name, text in texts.items() if MARKER in text or LONG[:40] in text]


async def request(seen: Seen, say: Callable[[ModelRequest], Reply | str], **options: Any) -> Result:
    approve = None if options.pop("waits", False) else seen.approve
    with watching(seen.lines) as view:
        agent = Agent(FunctionModel(say), TOOLS, journal=seen.path, approve=approve, policy="cautious", **options)
        try:
            return await agent.run("log in", watch=view.see)
        finally:
            await agent.close()


def printed_of(path: Path, run_id: str) -> str:
    """Return what `toolplan runs` prints."""
    if not path.exists() or not run_id:
        return ""
    printed = io.StringIO()
    both = (contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed))
    with both[0], both[1], pytest.raises(SystemExit):
        main(["runs", run_id, "--journal", str(path)])
    assert run_id in printed.getvalue()
    return printed.getvalue()


@pytest.mark.parametrize("waits", [False, True], ids=["runs", "waits"])
@pytest.mark.parametrize("written", PLANS.values(), ids=PLANS)
async def test_a_secret_in_a_plan(written: Any, waits: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    seen = Seen(tmp_path / "j.db")
    text = written if isinstance(written, str) else json.dumps(written)
    if isinstance(written, list):
        text = json.dumps([*written, {"answer": "ok"}])
    notation: Any = "python" if not text.startswith(("[", "{")) else "json"
    with caplog.at_level(logging.DEBUG):
        result = await request(seen, lambda _: text, waits=waits, notation=notation, max_repairs=1)
    assert not seen.leaks(result, printed_of(seen.path, result.run_id) + caplog.text)
    if not waits and result.outcome == "succeeded":
        assert seen.cards


@pytest.mark.parametrize("waits", [False, True], ids=["runs", "waits"])
@pytest.mark.parametrize("turns", TURNS.values(), ids=TURNS)
async def test_a_secret_in_a_loop(
    turns: list[Any], waits: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    seen = Seen(tmp_path / "j.db")

    def say(asked: ModelRequest) -> Reply | str:
        number = sum(message.role == "assistant" for message in asked.messages)
        if number >= len(turns):
            return "done"
        words = [each for each in turns[number] if isinstance(each, str)]
        made = [each for each in turns[number] if not isinstance(each, str)]
        return Reply("".join(words), tuple(ToolCallPart(f"c{number}{n}", *each) for n, each in enumerate(made)))

    with caplog.at_level(logging.DEBUG):
        result = await request(seen, say, waits=waits, mode="loop")
    assert not seen.leaks(result, printed_of(seen.path, result.run_id) + caplog.text)


async def test_a_reply_that_was_cut_off(tmp_path: Path) -> None:
    seen = Seen(tmp_path / "j.db")
    text = TEXT_CALL.replace("NAME", "login").replace("KEY", "password")
    said = iter([Reply("", (ToolCallPart("c", "join", {"a": "", "b": ""}),)), Reply(text[:-20], (), "length"), "done"])
    result = await request(seen, lambda _: next(said), mode="loop")
    assert result.outcome == "succeeded"
    assert not seen.leaks(result, printed_of(seen.path, result.run_id))


async def test_a_secret_that_a_person_gives_on_a_card(tmp_path: Path) -> None:
    seen = Seen(tmp_path / "j.db")

    def approve(calls: Sequence[PlannedCall], card: Card) -> Mapping[str, Decision]:
        seen.cards.append(card)
        return {each.step: Decision.allow(arguments={"password": MARKER}) for each in calls}

    agent = Agent(tools=TOOLS, journal=seen.path, approve=approve, policy="cautious")
    result = await agent.run_plan([log_in("other"), {"answer": "ok"}])
    await agent.close()
    assert result.outcome == "succeeded"
    assert not seen.leaks(result, "")


async def test_what_a_replan_is_asked_with(tmp_path: Path) -> None:
    """The request for the rest of a plan shows no error of a tool with a secret in it."""
    seen = Seen(tmp_path / "j.db")
    plans = iter([json.dumps([call("token", "t", name="x"), log_in("{t}", "bad"), {"answer": "ok"}]), "it failed"])

    def say(asked: ModelRequest) -> str:
        seen.prompts.append(repr(asked.messages))
        return next(plans)

    result = await request(seen, say, max_repairs=0)
    assert len(seen.prompts) == 2
    assert "no access for bad" in seen.prompts[-1]
    assert not any(f"bad with {MARKER}" in prompt for prompt in seen.prompts)
    assert not seen.leaks(result, "")


@pytest.mark.parametrize("name", ["a name", "an expression", "an input", "a program"])
async def test_a_plan_that_has_lost_a_secret_is_asked_for_again(name: str, tmp_path: Path) -> None:
    seen = Seen(tmp_path / "j.db")
    written = PLANS[name]
    plan = [*written, {"answer": "ok"}] if isinstance(written, list) else written
    agent = Agent(
        tools=TOOLS, journal=seen.path, policy="cautious", notation="python" if name == "a program" else "json"
    )
    waits = await agent.run_plan(plan)
    assert waits.outcome == "waiting"
    with pytest.raises(JournalMismatch, match=r"its plan holds secrets.*give the plan again"):
        await agent.resume(waits.run_id)
    agent.approve = seen.approve
    result = await agent.resume(waits.run_id, plan=plan)
    await agent.close()
    assert result.outcome == "succeeded", result.error
    assert not seen.leaks(result, "")


async def test_a_loop_that_has_lost_a_misspelt_call_says_that_it_cannot_go_on(tmp_path: Path) -> None:
    seen = Seen(tmp_path / "j.db")
    said = [Reply("", (ToolCallPart("a", "logn", GIVEN),)), Reply("", (ToolCallPart("b", "note", {"text": "x"}),))]

    def say(asked: ModelRequest) -> Reply:
        return said[sum(message.role == "assistant" for message in asked.messages)]

    result = await request(seen, say, waits=True, mode="loop")
    assert result.outcome == "failed"
    assert "what its model said holds a secret, which was not written down" in (result.error or "")
    assert not seen.leaks(result, "")


@pytest.mark.parametrize("written", [each for each in PLANS.values() if isinstance(each, list)], ids=str)
def test_what_is_explained_of_a_plan(written: list[Any]) -> None:
    plan = parse(json.dumps([*written, {"answer": "ok"}]), tools=ToolSet.of(TOOLS))
    assert isinstance(plan, Plan)
    try:
        checked = check(plan, ToolSet.of(TOOLS), Limits())
    except PlanRejected:
        return
    order = explain_order(checked)
    assert MARKER[:12] not in order.to_text() + json.dumps(order.to_dict())


async def test_a_plan_that_takes_its_secret_from_a_tool_goes_on_as_it_is_written(tmp_path: Path) -> None:
    seen = Seen(tmp_path / "j.db")
    agent = Agent(tools=TOOLS, journal=seen.path, policy="cautious")
    waits = await agent.run_plan([*PLANS["a result"], {"answer": "ok"}])
    assert waits.outcome == "waiting"
    agent.approve = seen.approve
    result = await agent.resume(waits.run_id)
    await agent.close()
    assert result.outcome == "succeeded", result.error
    assert not seen.leaks(result, "")
