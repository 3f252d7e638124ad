"""Ways in which a reply with tool calls is malformed in practice: kind A of `tests/data/field_cases`.

Each is read whole, cut at every place, and byte by byte, and must come out the same. What a model wrote as text is read
as a plan too.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolplan import Agent, PlanRejected, Prose, Tool, ToolSet, parse, tool
from toolplan.parse.formats import (
    BrokenCall,
    CallPart,
    CallScanner,
    Part,
    TextPart,
    read_calls,
    read_message,
    settled,
    write_messages,
)
from toolplan.plan import Call, Plan
from toolplan.show import to_json
from toolplan.testing import ScriptedModel

FILE = Path(__file__).parents[1] / "data" / "field_cases" / "cases.jsonl"
CASES = {
    case["id"]: case
    for case in map(json.loads, FILE.read_text("utf-8").splitlines())
    if case["kind"] == "malformed-output"
}
TEXTS = [name for name, case in CASES.items() if "text" in case["input"]]

SAYS = {
    "A04": ["must be a JSON object", "list"],
    "A07": ["`search`", "github_search", "gitlab_search"],
    "A08": ["`execute_python`", "get_weather"],
    "A14": ["cannot be read"],
    "A38": ["cut off"],
    "A41": ["cut off", "output limit", "smaller"],
    "A42": ["cut off", "output limit"],
    "A47": ["MaxWait", "max_wait"],
}
"""What the messages must tell."""


def tools_of(case: dict[str, Any]) -> ToolSet:
    return ToolSet(
        Tool.from_schema(each["name"], each["description"], each["parameters"], lambda **_: None)
        for each in case["tools"]
    )


def read(case: dict[str, Any]) -> tuple[Part, ...]:
    given, tools = case["input"], tools_of(case)
    if "message" in given:
        return read_message(given["message"], tools, finish_reason=given["finish_reason"])
    return read_calls(given["text"], given["format"], tools, given["finish_reason"])


@pytest.mark.parametrize("name", CASES)
def test_a_reply(name: str) -> None:
    case = CASES[name]
    outcome, detail = case["expect"]["outcome"], case["expect"]["detail"]
    parts = read(case)
    calls = [part for part in parts if isinstance(part, CallPart)]
    broken = [part for part in parts if isinstance(part, BrokenCall)]
    wanted = detail.get("calls", [])
    assert [{"name": call.name, "arguments": call.arguments} for call in calls] == [
        {"name": each["name"], "arguments": each["arguments"]} for each in wanted
    ]
    assert [call.id for call in calls if any("id" in each for each in wanted)] == [
        each["id"] for each in wanted if "id" in each
    ]
    assert bool(broken) == (outcome in ("error", "mixed"))
    assert any(call.repairs for call in calls) == (outcome == "repaired")
    for error in detail.get("errors", []):
        assert [part for part in broken if error.get("id", part.id) == part.id]
        assert [part for part in broken if error.get("index", part.position) == part.position]
    told = " ".join(
        " ".join((part.diagnostic.message, *part.diagnostic.notes, part.diagnostic.help or "")) for part in broken
    )
    for word in SAYS.get(name, []):
        assert word in told
    text = "".join(part.text for part in parts if isinstance(part, TextPart)).strip()
    if "text" in detail or "final_answer" in detail:
        assert text == detail.get("text", detail.get("final_answer"))


@pytest.mark.parametrize("name", TEXTS)
def test_a_reply_in_pieces(name: str) -> None:
    case = CASES[name]
    given, tools, whole = case["input"], tools_of(case), read(case)
    raw = given["text"].encode()
    cuts = [[at] for at in range(1, len(raw))]
    for cut in [*cuts, list(range(1, len(raw)))]:
        scanner = CallScanner(given["format"], tools)
        parts: list[Part] = []
        for start, end in zip([0, *cut], [*cut, len(raw)], strict=True):
            parts += scanner.feed(raw[start:end])
        assert settled([*parts, *scanner.close(given["finish_reason"])]) == whole


@pytest.mark.parametrize("name", TEXTS)
def test_a_reply_as_a_plan(name: str) -> None:
    case = CASES[name]
    outcome, detail = case["expect"]["outcome"], case["expect"]["detail"]
    if outcome in ("error", "mixed"):
        with pytest.raises(PlanRejected) as rejected:
            parse(case["input"]["text"], tools=tools_of(case))
        assert rejected.value.diagnostics[0].code.startswith("TP13")
        return
    reading = parse(case["input"]["text"], tools=tools_of(case))
    if outcome == "text":
        assert isinstance(reading, Prose)
        assert reading.text == detail.get("final_answer", case["input"]["text"])
        return
    assert isinstance(reading, Plan)
    assert all(isinstance(step, Call) for step in reading.steps)
    written: Any = to_json(reading)
    assert [(step["tool_name"], step["arguments"]) for step in written["steps"]] == [
        (each["name"], each["arguments"]) for each in detail["calls"]
    ]


def test_a17_ids_are_the_same_each_time_and_in_the_history() -> None:
    parts = read(CASES["A17"])
    calls = [part for part in parts if isinstance(part, CallPart)]
    ids = [call.id for call in calls]
    assert ids[0] == "call_0"
    assert len({*ids}) == 3
    assert all(ids)
    assert ids == [part.id for part in read(CASES["A17"]) if isinstance(part, CallPart)]
    message, *answers = write_messages("openai", calls, results=["a", "b", "c"])
    made: Any = message["tool_calls"]
    assert [each["id"] for each in made] == ids == [answer["tool_call_id"] for answer in answers]


MENDED = '```json\n[{"tool_name": "send", "arguments": {"text": "hi"},}]\n```'


@pytest.mark.parametrize(
    ("reply", "options", "outcome"),
    [
        (MENDED, {}, "waiting"),
        (MENDED, {"trust_repairs": True}, "succeeded"),
        (MENDED, {"approve": lambda calls, plan: [call.tool for call in calls] == ["send"]}, "succeeded"),
        (MENDED.replace(",}", "}"), {}, "succeeded"),
        (MENDED.replace("send", "look"), {}, "succeeded"),
        ('<tool_call>{"name": "Send", "arguments": {"text": "hi"}}</tool_call>', {}, "waiting"),
        ('<tool_call>{"name": "send", "arguments": {"text": "hi"}}</tool_call>', {}, "succeeded"),
    ],
)
def test_the_effects_of_a_mended_plan_need_a_word(reply: str, options: dict[str, Any], outcome: str) -> None:
    done: list[str] = []

    @tool(writes="mail")
    def send(text: str) -> str:
        done.append(text)
        return text

    @tool(reads="mail")
    def look(text: str) -> str:
        return text

    agent = Agent(ScriptedModel([{"text": reply}]), [send, look], answer="none", policy="declared", **options)
    assert agent.run_sync("go").outcome == outcome
    assert done == (["hi"] if outcome == "succeeded" and "end" in reply else [])


def test_a_mended_plan_of_somebody_else_runs() -> None:
    @tool(writes="mail")
    def send(text: str) -> str:
        return text

    plan = '[{"tool_name": "send", "arguments": {"text": "hi"},}]'
    assert Agent(tools=[send], answer="none", policy="declared").run_plan_sync(plan).outcome == "succeeded"
