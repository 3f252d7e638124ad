"""Ways in which tool calling breaks in practice (`tests/data/field_cases`): plans, and what the engine shows of others.

Kinds A (replies), B (schemas) and F (providers) have modules of their own, `test_field_cases_replies.py`,
`tests/unit/tools/test_field_cases_schema.py` and `test_field_cases_providers.py`. `NOT_YET` names every case that the
product does not support so far, with the part that is missing; a case is in exactly one place.
"""

from __future__ import annotations

import asyncio
import base64
import contextvars
import json
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolplan import Agent, Prose, Result, Tool, ToolContext, ToolFailed, ToolSet, check, parse, run_plan, tool
from toolplan.approval import Decision
from toolplan.plan import Plan, walk
from toolplan.policy import Policy, Rule
from toolplan.run import Engine
from toolplan.testing import ScriptedModel

FILE = Path(__file__).parents[1] / "data" / "field_cases" / "cases.jsonl"
CASES = {case["id"]: case for case in map(json.loads, FILE.read_text("utf-8").splitlines())}

PLANS = [name for name, case in CASES.items() if case["kind"] == "plan" and "plan_text" not in case["input"]]
SCHEMAS = [name for name, case in CASES.items() if case["kind"] == "schema"]
REPLIES = [name for name, case in CASES.items() if case["kind"] == "malformed-output" and name != "A31"]
PROVIDERS = [name for name, case in CASES.items() if case["kind"] == "provider"]
ALONE = {"A31", "C01", "C02", "C04", "C05", "C07", "C08", "C11", "C12", "D18", "E01", "E02", "E04", "E05", "E07", "E08"}
"""Cases with a test function of their own below."""

NOT_YET: dict[str, str] = {}


def test_every_case_is_somewhere() -> None:
    places = [set(PLANS), set(SCHEMAS), set(REPLIES), set(PROVIDERS), ALONE, set(NOT_YET)]
    assert set().union(*places) == set(CASES)
    assert sum(len(place) for place in places) == len(CASES)


class Fakes:
    """The tools of a case: what each returns is a constant, or an expression over its arguments."""

    def __init__(self, case: dict[str, Any], names: list[str]) -> None:
        self.calls: list[dict[str, Any]] = []
        fakes = case["input"].get("fakes", {})
        given = {item["name"]: item for item in case["input"].get("tools") or case.get("tools") or []}
        open_schema = {"type": "object", "additionalProperties": True}
        self.tools = ToolSet.of(
            Tool.from_schema(
                name,
                given.get(name, {}).get("description", ""),
                given.get(name, {}).get("parameters", open_schema),
                self._fake(name, fakes.get(name)),
                pure=True,
            )
            for name in names
        )

    def _fake(self, name: str, answer: Any) -> Callable[..., Any]:
        def call(**arguments: Any) -> Any:
            self.calls.append({"name": name, "arguments": arguments})
            if not isinstance(answer, str):
                return answer
            expression = answer.removesuffix(" (no newline)")
            try:
                return eval(expression, {"len": len}, dict(arguments))  # the file's own Python expressions
            except (SyntaxError, NameError):
                return answer

        return call


def tool_names(plan: Any) -> list[str]:
    names: dict[str, None] = {}

    def visit(node: Any) -> None:
        if isinstance(node, dict):
            if isinstance(node.get("tool_name"), str):
                names[node["tool_name"]] = None
            for value in node.values():
                visit(value)
        elif isinstance(node, list):
            for value in node:
                visit(value)

    visit(plan)
    return list(names)


def play(case: dict[str, Any]) -> tuple[Result, Fakes]:
    plan = case["input"]["plan"]
    fakes = Fakes(case, tool_names(plan))
    return Agent(tools=fakes.tools, answer="none").run_plan_sync(json.dumps(plan)), fakes


def says(text: str, *words: str) -> None:
    for word in words:
        assert word in text, f"{word!r} is missing in: {text}"


MESSAGES = {
    "D04": ["s2", "u.mail", "email"],
    "D05": ["s.quantity"],
    "D07": ["'3°C'", "5", "number"],
    "D11": ["report", "$[1].arguments.text"],
    "D17": ["s2", "method", "bayes", "similarity", "regression"],
}


@pytest.mark.parametrize("name", PLANS)
def test_plan(name: str) -> None:
    case = CASES[name]
    expected = case["expect"]
    detail = expected["detail"]
    result, fakes = play(case)
    if expected["outcome"] == "plan_run":
        assert result.outcome == "succeeded", result.answer
        if "calls" in detail:
            assert sorted(map(json.dumps, fakes.calls)) == sorted(map(json.dumps, detail["calls"]))
        if "publish_calls" in detail:
            published = [c["arguments"]["text"] for c in fakes.calls if c["name"] == "publish"]
            assert sorted(published) == sorted(call["text"] for call in detail["publish_calls"])
        for variable, value in detail.get("variables", {}).items():
            produced = [step.result for step in result.steps if step.id == _step_of(result, variable)]
            assert produced == [value]
    elif expected["outcome"] == "plan_rejected":
        assert result.outcome == "rejected"
        assert fakes.calls == []
        says(json.dumps([d.to_dict(result.source) for d in result.diagnostics]) + result.answer, *MESSAGES[name])
    else:
        assert result.outcome == "failed"
        assert fakes.calls == detail["calls"]
        assert not {c["name"] for c in fakes.calls} & set(detail["must_not_execute"])
        says(f"{result.answer} {[(s.id, s.error) for s in result.steps]}", *MESSAGES[name])


def _step_of(result: Result, variable: str) -> str:
    assert result.plan is not None
    return next(step.id for step in walk(result.plan.steps) if getattr(step, "result", None) == variable)


def test_d18_arguments_that_cannot_be_parsed() -> None:
    case = CASES["D18"]
    fakes = Fakes(case, ["load", "remove_rows"])
    result = Agent(tools=fakes.tools).run_plan_sync(case["input"]["plan_text"])
    assert (result.outcome, fakes.calls) == ("rejected", [])
    says(json.dumps([d.to_dict(result.source) for d in result.diagnostics]) + result.answer, "2", "{year: >}")


def test_a31_the_whole_reply_is_one_fenced_call() -> None:
    case = CASES["A31"]
    fakes = Fakes(case, ["get_weather"])
    result = Agent(ScriptedModel([{"text": case["input"]["text"]}]), fakes.tools, answer="none").run_sync("weather?")
    assert result.outcome == "succeeded"
    assert fakes.calls == case["expect"]["detail"]["calls"]


def test_e07_markup_and_references_in_a_result_stay_text() -> None:
    result, fakes = play(CASES["E07"])
    assert result.outcome == "succeeded"
    assert fakes.calls == CASES["E07"]["expect"]["detail"]["calls"]


async def run_calls(tools: list[Any], *calls: dict[str, Any], **options: Any) -> Any:
    toolset = ToolSet.of(tools)
    plan = parse(json.dumps(list(calls)), tools=toolset)
    assert isinstance(plan, Plan)
    return await run_plan(check(plan, toolset), **options)


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tool_name": name, "arguments": arguments}


async def test_c01_blocking_tools_stop_neither_the_loop_nor_each_other() -> None:
    @tool(pure=True)
    def slow_a() -> int:
        time.sleep(0.4)
        return 1

    @tool(pure=True)
    def slow_b() -> int:
        time.sleep(0.4)
        return 2

    @tool(pure=True)
    async def tick() -> int:
        await asyncio.sleep(0.05)
        return 3

    gaps: list[float] = []

    async def heartbeat() -> None:
        last = time.perf_counter()
        while True:
            await asyncio.sleep(0.02)
            now = time.perf_counter()
            gaps.append(now - last)
            last = now

    beating = asyncio.create_task(heartbeat())
    result = await run_calls([slow_a, slow_b, tick], call("slow_a"), call("slow_b"), call("tick"))
    beating.cancel()
    assert [step.outcome for step in result.steps] == ["succeeded"] * 3
    spans = [(step.started_seconds, step.finished_seconds) for step in result.steps]
    assert max(start for start, _ in spans) < min(end for _, end in spans)
    assert len(gaps) > 5


async def test_c02_context_variables_reach_a_plain_function() -> None:
    var: contextvars.ContextVar[str] = contextvars.ContextVar("var")

    @tool(pure=True)
    def whoami() -> str:
        return var.get("lost")

    var.set("tenant-1")
    result = await run_calls([whoami], call("whoami") | {"timeout_seconds": 5}, call("whoami"))
    assert [step.result for step in result.steps] == ["tenant-1", "tenant-1"]


async def test_c04_a_blocking_effect_that_takes_too_long_is_not_repeated() -> None:
    done: list[int] = []

    @tool(writes="x", timeout_seconds=0.2, retry=3)
    def post() -> int:
        time.sleep(0.5)
        done.append(1)
        return 1

    result = await run_calls([post], call("post"))
    (step,) = result.steps
    assert (step.outcome, step.attempts, done) == ("unknown", 1, [])
    says(step.error or "", "may still be running")
    await asyncio.sleep(0.4)
    assert done == [1]


async def test_c05_an_async_tool_that_does_not_end_when_cancelled_holds_nothing_up() -> None:
    released = asyncio.Event()

    @tool(pure=True, timeout_seconds=0.1)
    async def stubborn() -> int:
        try:
            await asyncio.sleep(60)
        finally:
            await released.wait()
        return 1

    result = await run_calls([stubborn], call("stubborn"))
    released.set()
    assert result.steps[0].outcome == "failed"
    says(result.steps[0].error or "", "longer than 0.1 seconds")


@pytest.mark.parametrize("form", ["mcp", "bytes", "url", "anthropic"])
def test_c07_a_model_is_told_of_a_picture_and_not_sent_its_text(form: str) -> None:
    data = random.Random(7).randbytes(200_000)
    text = base64.b64encode(data).decode()
    forms: dict[str, Any] = {
        "mcp": {"type": "image", "mimeType": "image/png", "data": text},
        "bytes": data,
        "url": f"![](data:image/png;base64,{text})",
        "anthropic": {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": text}},
    }
    given: list[Any] = []

    @tool(pure=True)
    def screenshot() -> Any:
        return forms[form]

    @tool(writes="files")
    def save(picture: Any) -> str:
        given.append(picture)
        return "saved"

    steps = [
        {"tool_name": "screenshot", "arguments": {}, "result_variable": "p"},
        {"tool_name": "save", "arguments": {"picture": "{p}"}},
        {"ask_model": "What does it show?", "data": "{p}", "returns": {"type": "string"}, "result_variable": "a"},
    ]
    model = ScriptedModel([{"text": json.dumps(steps)}, {"text": '"no idea"'}, {"text": "Saved."}])
    requests: list[str] = []

    class Listening:
        name = "listening"

        async def ask(self, request: Any, on_text: Any = None) -> Any:
            requests.append(request.text)
            return await model.ask(request, on_text)

    result = Agent(Listening(), [screenshot, save]).run_sync("Save a screenshot.")
    assert result.outcome == "succeeded"
    assert text in json.dumps(given)  # the plan works on the whole of it
    assert len(requests) == 3
    for request in requests[1:]:
        says(request, "binary data" if form == "bytes" else "image/png", "200000 bytes, not shown")
        assert not re.search("[A-Za-z0-9+/]{100}", request)
        assert len(request) < 5_000


def test_c08_a_huge_result_stays_whole_for_the_plan() -> None:
    case = CASES["C08"]
    fakes = Fakes(case, ["dump", "length_of"])
    model = ScriptedModel([{"text": json.dumps(case["input"]["plan"])}, {"text": "It is long."}])
    requests: list[str] = []

    class Listening:
        name = "listening"

        async def ask(self, request: Any, on_text: Any = None) -> Any:
            requests.append(request.text)
            return await model.ask(request, on_text)

    result = Agent(Listening(), fakes.tools).run_sync("How long is the dump?")
    assert result.steps[1].result == 5_000_000
    assert len(requests[1]) < 33_000
    says(requests[1], "of 5000000 characters left out")


async def test_c11_two_edits_of_one_file_do_not_lose_one() -> None:
    content = ["A B"]

    @tool(writes="file:{path}")
    async def edit(path: str, old: str, new: str) -> str:
        text = content[0]
        await asyncio.sleep(0.05)
        content[0] = text.replace(old, new)
        return content[0]

    edits = [call("edit", path="f", old="A", new="1"), call("edit", path="f", old="B", new="2")]
    await run_calls([edit], {"parallel": edits})
    assert content == ["1 2"]


async def test_c12_a_cancelled_run_starts_nothing_more() -> None:
    sent: list[int] = []
    started = asyncio.Event()

    @tool(reads="x")
    async def slow() -> int:
        started.set()
        await asyncio.sleep(5)
        return 1

    @tool(writes="x")
    async def send() -> int:
        sent.append(1)
        return 1

    toolset = ToolSet.of([slow, send])
    plan = parse(json.dumps([call("slow"), call("send"), call("send")]), tools=toolset)
    assert isinstance(plan, Plan)
    engine = Engine(check(plan, toolset))
    running = asyncio.create_task(engine.run())
    await started.wait()
    engine.cancel()
    result = await running
    assert (result.outcome, sent) == ("cancelled", [])


def test_e01_a_decision_belongs_to_one_call() -> None:
    case = CASES["E01"]
    made: list[str] = []

    @tool(writes="database", approval="ask")
    def run_sql(q: str) -> str:
        made.append(q)
        return "done"

    pending = [{"name": each["name"], "arguments": each["arguments"]} for each in case["input"]["pending"]]
    queries = {each["id"]: each["arguments"]["q"] for each in case["input"]["pending"]}
    approved = {queries[each["id"]] for each in case["input"]["decisions"] if each["approve"]}

    def approve(calls: Any, card: Any) -> dict[str, bool]:
        return {call.step: True for call in calls if call.values["q"] in approved}

    model = ScriptedModel([{"tool_calls": pending}])
    result = Agent(model, tools=[run_sql], approve=approve, mode="loop").run_sync("Tidy up the database.")
    wanted = case["expect"]["detail"]
    assert made == [queries[id] for id in wanted["executed"]]
    assert [call.values["q"] for call in result.approvals] == [queries[id] for id in wanted["still_pending"]]


def test_e05_a_rule_never_removes_what_a_tool_demands() -> None:
    made: list[float] = []

    @tool(writes="account", approval="ask")
    def wire_money(amount: float) -> None:
        made.append(amount)

    plan = [{"tool_name": "wire_money", "arguments": {"amount": 5}}]
    everything = Policy((Rule("allow", "not needed"),), otherwise="allow")
    for policy in (everything, "declared"):
        result = Agent(tools=[wire_money], policy=policy).run_plan_sync(plan)
        assert (result.outcome, [call.tool for call in result.approvals], made) == ("waiting", ["wire_money"], [])


@pytest.mark.parametrize("changes", [False, True])
def test_e08_what_is_approved_are_the_values_and_not_a_template(changes: bool) -> None:
    case = CASES["E08"]
    found = dict(case["input"]["fakes"]["find_account"])
    shown: list[dict[str, Any]] = []
    made: list[dict[str, Any]] = []

    @tool(reads="book")
    def find_account(name: str) -> dict[str, str]:
        return found

    @tool(writes="account", approval="ask")
    def transfer(to: str, amount: float) -> str:
        made.append({"to": to, "amount": amount})
        if changes and len(made) == 1:
            raise ToolFailed("try again", effect_happened=False)
        return "done"

    def approve(calls: Any, card: Any) -> Any:
        if card.about == "plan":
            return Decision.allow(each_call=True)
        shown.extend(call.values for call in calls)
        return True

    agent = Agent(tools=[find_account, transfer], approve=approve)
    first = agent.run_plan_sync(json.dumps(case["input"]["plan"]))
    assert shown == [case["expect"]["detail"]["approval_shows"]]
    assert made == shown[: len(made)]
    if changes:  # the same plan again, when the account is another one
        assert first.outcome == "failed"
        found["iban"] = "XX99 9999"
        assert agent.run_plan_sync(json.dumps(case["input"]["plan"])).outcome == "succeeded"
        assert (shown[1], made[1]) == ({"to": "XX99 9999", "amount": 50}, shown[1])


def test_e02_a_paused_batch_goes_on_in_another_process(tmp_path: Path) -> None:
    """Each step is a process of its own; the mail is sent once."""
    sent, plan, tools = tmp_path / "sent", tmp_path / "plan.json", tmp_path / "tools.py"
    tools.write_text(
        "from toolplan import tool\n"
        "@tool(writes='mail')\n"
        "def send_email(to: str) -> str:\n"
        f"    open({str(sent)!r}, 'a').write(to + '\\n')\n"
        "    return 'sent'\n"
    )
    plan.write_text(
        json.dumps(
            [
                {"tool_name": "send_email", "arguments": {"to": "a@example.org"}},
                {"ask_user": "Anything else?", "result_variable": "word"},
                {"answer": "you said {word}"},
            ]
        )
    )

    def toolplan(*arguments: str) -> tuple[int, Any]:
        command = [sys.executable, "-m", "toolplan", *arguments, "--journal", str(tmp_path / "j.db"), "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)

    code, waiting = toolplan("run", str(plan), "--tools", str(tools), "--policy", "declared")
    assert (code, waiting["outcome"], waiting["answer"]) == (3, "waiting", "Anything else?")
    assert [question["step"] for question in waiting["waits_for"]] == ["s2"]
    run = waiting["run_id"]
    assert toolplan("answer", run, "no")[0] == 0
    code, result = toolplan("resume", run, "--tools", str(tools), "--policy", "declared")
    assert (code, result["answer"]) == (0, "you said no")
    assert [(step["id"], step["outcome"]) for step in result["steps"]] == [("s1", "succeeded"), ("s2", "succeeded")]
    assert sent.read_text() == "a@example.org\n"


async def test_e04_every_attempt_has_the_same_key_and_every_call_another() -> None:
    keys: list[str] = []

    @tool(writes="payments", idempotent=True, retry=2)
    def create_payment(ctx: ToolContext, amount: int) -> int:
        keys.append(ctx.idempotency_key)
        if len(keys) == 1:
            raise ConnectionResetError("reset")
        return amount

    quick = {"retry": {"attempts": 2, "wait_seconds": 0.001}}
    result = await run_calls(
        [create_payment], call("create_payment", amount=1) | quick, call("create_payment", amount=2)
    )
    assert [step.attempts for step in result.steps] == [2, 1]
    assert keys[0] == keys[1]
    assert keys[2] != keys[0]
    assert "ctx" not in json.dumps(ToolSet.of([create_payment])["create_payment"].parameters)


def test_plain_prose_is_an_answer() -> None:
    assert isinstance(parse("The sum is 4."), Prose)
