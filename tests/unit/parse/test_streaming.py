"""Steps out of a plan that is still arriving."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolplan.parse.streaming import PlanStream

STEPS: list[dict[str, Any]] = [
    {"tool_name": "a", "arguments": {"x": '}]"{[\\', "y": [1, {"z": '\\"'}]}},
    {"for_each": "xs", "do": [{"tool_name": "b", "arguments": {"steps": [{"tool_name": "inner"}]}}]},
    {"tool_name": "查天气", "arguments": {"城市": "北京 {a}"}, "result_variable": "r"},
]
LIST = json.dumps(STEPS)
PLAN = json.dumps({"thought": 'first [ { "steps": [{', "steps": STEPS, "answer": "{r} }"}, ensure_ascii=False)


def streamed(text: str, size: int) -> list[Any]:
    stream = PlanStream()
    return [step for at in range(0, len(text), size) for step in stream.feed(text[at : at + size])]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 1000])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(LIST, STEPS, id="list"),
        pytest.param(PLAN, STEPS, id="object"),
        pytest.param(json.dumps({"plan": {"goal": {"a": 1}, "steps": STEPS}}), STEPS, id="wrapped"),
        pytest.param(json.dumps({"inputs": {"a": {}}, "steps": STEPS}), STEPS, id="something before the steps"),
        pytest.param(json.dumps({"Tool Calls": STEPS}), STEPS, id="another spelling"),
        pytest.param(json.dumps(STEPS[0]), STEPS[:1], id="one step without a list"),
        pytest.param("\n".join(map(json.dumps, STEPS)), STEPS, id="steps without a list"),
        pytest.param("Here it is:\n```json\n" + LIST + '\n```\nor {"tool_name": "c"}', STEPS, id="fenced"),
        pytest.param('In {"city": "Oslo"} see [1] and [{"a": 1}]: ' + PLAN, STEPS, id="other JSON before"),
        pytest.param('<think>[{"tool_name": "no"}]</think>\n' + LIST, STEPS, id="thinking"),
        pytest.param('<Thinking>[{"tool_name": "no"}', [], id="open thinking"),
        pytest.param('call(payload={"tool_name": "no"}) ' + LIST, STEPS, id="glued"),
        pytest.param(LIST[:-30], STEPS[:2], id="cut off"),
        pytest.param(LIST.replace("]}}", "]}}]", 1), STEPS[:1], id="closed too early"),
        pytest.param(LIST.replace('"for_each"', "'for_each'"), STEPS[:1], id="broken"),
        pytest.param(LIST + LIST, STEPS, id="twice"),
        pytest.param("Nothing to {do} here.", [], id="prose"),
        pytest.param(json.dumps({"answer": "hello"}), [{"answer": "hello"}], id="an answer"),
        pytest.param('{"name": "Bob"}', [], id="data"),
    ],
)
def test_steps_come_complete_and_in_order(text: str, expected: list[Any], size: int) -> None:
    assert streamed(text, size) == expected


def test_a_step_comes_with_its_closing_brace() -> None:
    stream = PlanStream()
    at = LIST.index(', {"for_each"')
    assert stream.feed(LIST[: at - 1]) == []
    assert stream.feed(LIST[at - 1 : at]) == STEPS[:1]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='ab"\\{}[]é\n'),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet='k"\\{[]}', max_size=3), inner),
    max_leaves=8,
)


@given(
    st.lists(st.dictionaries(st.sampled_from(["x", "steps", "}"]), json_values), max_size=4),
    st.booleans(),
    st.sampled_from([None, 2]),
    st.lists(st.integers(1, 9), min_size=1, max_size=30),
)
def test_any_steps_in_any_pieces(arguments: list[Any], ascii_only: bool, indent: int | None, sizes: list[int]) -> None:
    steps = [{"tool_name": "t", "arguments": value} for value in arguments]
    text = json.dumps({"thought": "x", "steps": steps}, ensure_ascii=ascii_only, indent=indent)
    stream = PlanStream()
    found: list[Any] = []
    at = number = 0
    while at < len(text):
        size = sizes[number % len(sizes)]
        found += stream.feed(text[at : at + size])
        at, number = at + size, number + 1
    assert found == steps


def test_one_huge_step_takes_time_in_proportion_to_its_length() -> None:
    def seconds(size: int) -> float:
        text = json.dumps([{"tool_name": "write", "arguments": {"text": 'if (x) { y["a"] = {}; }\n' * size}}])
        best = 9.0
        for _ in range(3):
            started = time.process_time()
            assert len(streamed(text, 4)) == 1
            best = min(best, time.process_time() - started)
        return best

    assert seconds(8_000) < 8 * 3 * seconds(1_000)
