"""The plays of public task sets judge rightly: on small worlds of our own, without any package or data set."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from bench import agentdojo, api_bank, bfcl, bfcl_single, tau  # noqa: E402
from bench.bfcl_schema import json_schema  # noqa: E402
from bench.plays import Document, Overlaps, Stage, after_a_while, plan_of, sample, share  # noqa: E402
from bench.tau_domains import Domain, Task, World  # noqa: E402

from toolplan import Agent, ToolFailed  # noqa: E402
from toolplan.models import Message, ToolCallPart, ToolResultPart  # noqa: E402
from toolplan.tools.declaration import Facts  # noqa: E402

# --- what they share --------------------------------------------------------------------------------------------------


async def test_a_plan_makes_its_calls_with_exactly_these_arguments():
    stage = Stage([Document("keep", "", {"type": "object"})], {})
    made: list[dict[str, Any]] = []
    stage.methods = {"keep": lambda **arguments: made.append(arguments)}
    calls = [{"text": "{name} and {{x}}", "n": 1}, {"nested": [{"$expr": "1"}, "{s1}"]}, {"dict": {"$literal": 2}}, {}]
    result = await Agent(tools=stage.tools).run_plan(plan_of(("keep", arguments) for arguments in calls))
    assert result.outcome == "succeeded", result.error
    assert made == calls


async def test_calls_that_may_fail_do_not_end_the_run():
    stage = Stage([Document("f", "", {"type": "object", "properties": {"n": {}}})], {})

    def f(n: int) -> int:
        if n == 1:
            raise ToolFailed("no")
        return n

    stage.methods = {"f": f}
    calls = [("f", {"n": n}) for n in range(3)]
    agent = Agent(tools=stage.tools)
    result = await agent.run_plan(plan_of(calls, may_fail=[1]))
    assert [step.outcome for step in result.steps] == ["succeeded", "failed", "succeeded"]
    assert (await agent.run_plan(plan_of(calls))).outcome == "failed"


async def test_overlaps_are_calls_under_way_together():
    documents = [Document(name, "", {"type": "object"}) for name in ("read", "write")]
    stage = Stage(documents, {"read": Facts(reads="x"), "write": Facts(writes="x")})
    stage.methods = {name: after_a_while(lambda: None, name, 0.001) for name in ("read", "write")}
    overlaps = Overlaps()
    names = ["read", "read", "write", "read"]
    await Agent(tools=stage.tools).run_plan(plan_of((name, {}) for name in names), watch=overlaps)
    assert (overlaps.calls, overlaps.overlapped) == (4, 2)


def test_a_sample_is_spread_evenly_and_always_the_same():
    assert sample(range(10), 4) == [0, 2, 5, 7]
    assert sample([1, 2], 4) == [1, 2]
    assert (share(1, 3), share(0, 0)) == ("33%", "-")


# --- BFCL -------------------------------------------------------------------------------------------------------------


def test_only_types_are_mapped_to_words_of_json_schema():
    document = {
        "type": "dict",
        "properties": {
            "type": {"type": "string", "enum": ["dict", "any"], "default": "float"},
            "size": {"type": "tuple", "items": {"type": "float"}},
            "what": {"type": "any", "description": "type: dict"},
            "dict": {"type": "dict", "properties": {"any": {"type": "any"}}},
        },
        "required": ["type"],
    }
    assert json_schema(document) == {
        "type": "object",
        "properties": {
            "type": {"type": "string", "enum": ["dict", "any"], "default": "float"},
            "size": {"type": "array", "items": {"type": "number"}},
            "what": {"description": "type: dict"},
            "dict": {"type": "object", "properties": {"any": {}}},
        },
        "required": ["type"],
    }


PARAMETERS = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "enum": ["Oslo", "Rome"]},
        "days": {"type": "array", "items": {"type": "integer"}},
        "where": {"type": "object", "properties": {"lat": {"type": "number"}, "lon": {"type": "number"}}},
        "unit": {"type": "string"},
    },
    "required": ["city"],
}


def test_every_accepted_value_is_tried_once():
    answer = {
        "city": ["Oslo", "Rome"],
        "days": [[1, 2]],
        "where": [{"lat": [59.9, 60], "lon": [""]}],
        "unit": ["", "C"],
    }
    first = {"city": "Oslo", "days": [1, 2], "where": {"lat": 59.9}, "unit": "C"}
    assert list(bfcl_single.accepted(answer, PARAMETERS)) == [
        first,
        {**first, "city": "Rome"},
        {"city": "Oslo", "days": [1, 2], "where": {"lat": 59.9}},
    ]


def test_a_call_is_spoilt_in_each_way_and_each_is_refused_by_name():
    call = ("weather.get", {"city": "Oslo", "days": [1], "unit": "C"})
    tools = Stage([Document("weather.get", "", PARAMETERS)], {}).tools
    found = list(bfcl_single.mistakes(call, PARAMETERS))
    assert sorted((mistake.kind, mistake.named) for mistake in found) == [
        ("enumeration", "city"),
        ("item type", "days"),
        ("missing", "city"),
        ("type", "city"),
        ("type", "days"),
        ("type", "unit"),
        ("unknown argument", "no_such_argument"),
        ("unknown name", "no_such_function_at_all"),
    ]
    toolset = bfcl_single.ToolSet.of(tools)
    assert bfcl_single.refusal(plan_of([call]), toolset) == []
    assert bfcl_single.refusal(bfcl_single.program_of([call]), toolset) == []
    for mistake in found:
        assert mistake.named in "".join(bfcl_single.refusal(plan_of([mistake.call]), toolset)), mistake
        assert not bfcl_single.simply_fits(mistake.call[1], PARAMETERS) or mistake.kind == "unknown name"


def test_a_back_end_call_in_python_text_gets_its_arguments_by_name():
    def mv(source: str, destination: str = "x") -> None: ...

    assert bfcl._call("mv('a', destination=['b', {'c': -1.5}])", {"mv": mv}) == (
        "mv",
        {"source": "a", "destination": ["b", {"c": -1.5}]},
    )
    with pytest.raises(ValueError, match="not a plain call"):
        bfcl._call("x.mv('a')", {"mv": mv})


# --- tau --------------------------------------------------------------------------------------------------------------

ACCOUNT = {"type": "object", "properties": {"to": {"type": "string"}, "by": {"type": "integer"}}}


def bank(effects: Mapping[str, Facts]) -> Domain:
    """A world of accounts: `add` changes one and refuses to take too much, `double` changes one, `look` reads one.

    An `add` of 3 waits for a `double` in its way, so that one that may start too early does.
    """

    def start(task: Task) -> World:
        accounts = {"a": 1, "b": 5}
        doubled = threading.Event()

        def add(to: str, by: int) -> int:
            if by == 3:
                doubled.wait(0.05)
            if accounts[to] + by < 0:
                raise ToolFailed("Error: not enough")
            accounts[to] += by
            return accounts[to]

        def double(to: str) -> int:
            accounts[to] *= 2
            doubled.set()
            return accounts[to]

        return World({"add": add, "double": double, "look": lambda to: accounts[to]}, lambda: accounts)

    calls = (
        ("look", {"to": "a"}),
        ("look", {"to": "b"}),
        ("add", {"to": "a", "by": 3}),
        ("add", {"to": "b", "by": -9}),
        ("double", {"to": "a"}),
        ("add", {"to": "a", "by": -1}),
    )
    return Domain(
        "bank", [Document(name, "", ACCOUNT) for name in ("add", "double", "look")], effects, [Task("1", calls)], start
    )


RIGHT = {"look": Facts(reads="{to}"), "add": Facts(writes="{to}"), "double": Facts(writes="{to}")}


async def play(effects: Mapping[str, Facts]) -> tau.Score:
    domain, score = bank(effects), tau.Score()
    await tau._play(tau.Stages.of(domain), domain.tasks[0], score)
    return score


async def test_a_task_ends_like_the_reference_and_stops_at_the_refused_call():
    score = await play(RIGHT)
    assert (score.tasks, score.calls, score.refused) == (1, 6, 1)
    assert (score.undeclared, score.declared, score.wrong) == (1, 1, [])
    assert (score.must_stop, score.stopped) == (2, 2), "with nothing declared, and with declarations"
    assert score.overlaps.overlapped >= 4, "at least the two looks, and the two changes after them"


async def test_a_wrong_declaration_is_noticed():
    score = await play({**RIGHT, "double": Facts(pure=True), "add": Facts(pure=True)})
    assert score.undeclared == 1
    assert score.declared == 0


async def test_without_package_and_data_nothing_is_run(monkeypatch):
    for name in ("bfcl_eval", "agentdojo", "tau2", "tau_bench"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr("bench.data.DATA", ROOT / "no such folder")
    for module in (agentdojo, api_bank, bfcl, bfcl_single, tau):
        report = await module.BENCH.run(False)
        assert "not run" in report.last_line(), module


# --- AgentDojo --------------------------------------------------------------------------------------------------------


def test_a_reference_plan_answers_exactly_as_published():
    class Call:
        function, args = "read", {"path": "{x}"}

    assert agentdojo.reference_plan([Call()], "100 {dollars}") == {
        "steps": [
            {"tool_name": "read", "arguments": {"path": {"$literal": "{x}"}}},
            {"answer": {"$literal": "100 {dollars}"}},
        ]
    }


# --- API-Bank ---------------------------------------------------------------------------------------------------------


def api(name: str, output: Any, **arguments: str) -> dict[str, Any]:
    return {"role": "API", "api_name": name, "param_dict": arguments, "result": {"output": output, "exception": None}}


DIALOGUE = [
    {"role": "User", "text": "Wake me at six. I am ann."},
    {"role": "AI", "text": "Sure."},
    api("Token", {"token": "a9s8d7"}, user="ann"),
    api("Alarm", "success", token="a9s8d7", time="06:00"),
    {"role": "AI", "text": "It is set."},
    {"role": "User", "text": "Thanks"},
    {"role": "AI", "text": "Any time."},
]


def test_a_dialogue_becomes_turns():
    first, second = api_bank.turns_of(DIALOGUE)
    assert [(said.words, said.call and said.call[0]) for said in first.replies] == [
        ("Sure.", "Token"),
        ("", "Alarm"),
        ("It is set.", None),
    ]
    assert (second.user, [said.words for said in second.replies]) == ("Thanks", ["Any time."])


async def test_a_dialogue_is_played_with_new_values_in_place_of_the_recorded_ones():
    recording = api_bank.Recording(DIALOGUE)
    (token,) = recording.travelling.values()
    assert token != "a9s8d7"
    documents = api_bank.documents_of([DIALOGUE])
    assert await api_bank._play(recording, Stage(documents, {}), documents) is None
    assert recording.made[1] == ("Alarm", {"token": token, "time": "06:00"})


async def test_a_result_that_does_not_reach_the_model_is_noticed():
    recording = api_bank.Recording(DIALOGUE)
    give = recording.call
    recording.call = lambda name, arguments: give(name, arguments) and "lost"  # type: ignore[method-assign]
    documents = api_bank.documents_of([DIALOGUE])
    assert await api_bank._play(recording, Stage(documents, {}), documents) == "other calls were made"


def test_a_conversation_in_another_shape_is_noticed():
    asks = Message("assistant", tool_calls=(ToolCallPart("1", "f", "{}"), ToolCallPart("2", "f", "{}")))

    def answers(*ids: str) -> Message:
        return Message("tool", tool_results=tuple(ToolResultPart(id, "f", "x") for id in ids))

    assert api_bank.fault_of([Message("user", "x"), asks, answers("1", "2")]) is None
    for following in ([answers("1")], [answers("2", "1")], [], [Message("user"), answers("1", "2")]):
        assert api_bank.fault_of([asks, *following]) is not None
    assert api_bank.fault_of([answers("1")]) == "calls [] are followed by results ['1']"
    assert api_bank.fault_of([asks, answers("1", "2"), asks, answers("1", "2")]) == "two calls with one id"
