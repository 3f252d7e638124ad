"""Anything at all given as a plan ends in a plan, an answer or diagnostics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from properties.strategies import mutations
from toolplan.diagnostics import render_all
from toolplan.errors import PlanRejected
from toolplan.parse import CannotPlan, Prose, parse
from toolplan.plan import Plan
from toolplan.show import canonical, mermaid

DATA = Path(__file__).parents[1] / "data"
REPLIES = [
    json.loads(line)["reply"]
    for line in (DATA / "model_replies" / "agentdojo_json.jsonl").read_text(encoding="utf-8").splitlines()
]
FIELD = [
    json.dumps(case["input"]["plan"], ensure_ascii=False)
    for case in map(json.loads, (DATA / "field_cases" / "cases.jsonl").read_text(encoding="utf-8").splitlines())
    if "plan" in case["input"]
]
EVERY_KIND = json.dumps(
    {
        "thought": "t",
        "inputs": {"a": 1},
        "steps": [
            {
                "tool_name": "t",
                "arguments": {"x": "{a}", "y": ["${a}", 1]},
                "result_variable": "r",
                "depends_on": ["s1"],
            },
            {
                "name": "t",
                "arguments": '{"x": 1}',
                "id": 2,
                "on_error": {"do": [{"tool": "u"}]},
                "retry": {"attempts": 2},
            },
            {
                "if": {"left": "$r.x$", "op": "<", "right": 5},
                "then": [{"note": "n"}],
                "elif": [{"if": "a", "then": []}],
            },
            {
                "for each": "x in r",
                "do": [{"if": "x", "then": [{"break": True}]}, {"tool": "t", "as": "y"}],
                "collect": "ys",
            },
            {"while": "a < 3", "do": [{"let": {"a": "a + 1"}}], "max_iterations": 3},
            {
                "try": [{"parallel": [{"function": {"name": "t", "arguments": "{}"}}]}],
                "except": [{"note": "{e}"}],
                "as": "e",
            },
            {"ask_user": "q", "as": "w"},
            {"ask_model": "q", "data": ["{r}"], "returns": {"a": "string"}, "as": "z"},
            {"replan": "r"},
            {"cannot": "c", "missing": ["m"]},
        ],
        "answer": "{r} #E1 $1",
    }
)
CORPUS = [*REPLIES, *FIELD, EVERY_KIND, EVERY_KIND, f"<think>x</think>\n```json\n{EVERY_KIND}\n```"]
TOOLS = ["t", "u", "calendar.find", "send_email"]

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]


def outcome(reply: Any) -> Plan | Prose | CannotPlan | PlanRejected:
    try:
        return parse(reply, tools=TOOLS)
    except PlanRejected as rejected:
        return rejected


def read(reply: Any) -> None:
    found = outcome(reply)
    if isinstance(found, PlanRejected):
        assert 0 < len(found.diagnostics) <= 100
        assert render_all(found.diagnostics, found.source)
        for diagnostic in found.diagnostics:
            assert "TP101" <= diagnostic.code <= "TP199"
            assert diagnostic.to_dict(found.source)["message"]
    if isinstance(found, Plan):
        text = canonical(found)
        again = parse(text)
        assert isinstance(again, CannotPlan) or canonical(again) == text  # type: ignore[arg-type]
        mermaid(found)


def test_the_corpus_is_sound():
    for text in CORPUS:
        assert isinstance(outcome(text), Plan)


@settings(max_examples=1500, deadline=None, suppress_health_check=SLOW)
@given(text=mutations(CORPUS))
def test_damaged_plans(text: str):
    read(text)


@settings(max_examples=500, deadline=None)
@given(text=st.text(st.sampled_from(list("[]{}\"':,\\`<>/#$ \nabN0-e.“”：，…")) | st.characters(), max_size=60))
def test_any_text(text: str):
    read(text)


KEYS = """
    tool_name arguments name args result_variable id depends_on on_error retry timeout if then else elif for_each as do
    collect collect_if while max_iterations parallel let value try except ask_user ask_model data returns replan answer
    cannot missing note break continue steps plan thought inputs type left op right $expr $literal $text oops
"""
keys = st.sampled_from(KEYS.split())
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(
        ["x", "a.b", "{a}", "${a}", "x in xs", "a <", "#E1", "$1", '{"a": 1}', "skip", "==", "string", ""]
    ),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=5),
    max_leaves=25,
)


@settings(max_examples=1500, deadline=None, suppress_health_check=SLOW)
@given(value=st.lists(values, max_size=3) | st.dictionaries(keys, values, max_size=5))
def test_any_value(value: Any):
    read(value)
    read(json.dumps(value))


@settings(max_examples=300, deadline=None, suppress_health_check=SLOW)
@given(data=st.data(), reply=st.sampled_from([*REPLIES, EVERY_KIND]))
def test_a_plan_that_was_cut_off_never_runs(data: st.DataObject, reply: str):
    start = min(reply.find("{"), reply.find("[") if "[" in reply else len(reply))
    end = data.draw(st.integers(start + 20, max(reply.rfind("}"), start + 21) - 1))
    found = outcome(reply[:end])
    assert not isinstance(found, Plan), reply[:end]
    if isinstance(found, PlanRejected):
        assert {d.code for d in found.diagnostics} <= {"TP101", "TP102", "TP103", "TP108"}
