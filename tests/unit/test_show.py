"""Printing plans: canonical JSON, diagram, words."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from toolplan.diagnostics import NOWHERE
from toolplan.expressions import Hole, Literal, Text, parse_expression
from toolplan.parse import parse
from toolplan.plan import Answer, Plan
from toolplan.show import canonical, mermaid, summary, to_json
from toolplan.tools import ToolSet, tool

CALL: dict[str, Any] = {"tool_name": "get", "arguments": {}}


def plan_of(value: Any) -> Plan:
    plan = parse(value)
    assert isinstance(plan, Plan)
    return plan


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        (
            {"name": "get", "args": {"x": "${a.b}"}, "as": "r"},
            {**CALL, "arguments": {"x": "{a.b}"}, "result_variable": "r"},
        ),
        ({**CALL, "retry": 2}, {**CALL, "retry": {"attempts": 3}}),
        ({**CALL, "timeout": "3s", "on_error": "continue"}, {**CALL, "on_error": "skip", "timeout_seconds": 3.0}),
        ({**CALL, "on_error": {"default": []}}, {**CALL, "on_error": {"value": []}}),
        ({**CALL, "after": "s1"}, {**CALL, "depends_on": ["s1"]}),
        ({**CALL, "when": "x"}, {"if": "x", "then": [CALL]}),
        ({"if": {"left": "a", "op": "<", "right": 5}, "then": CALL}, {"if": "a < 5", "then": [CALL]}),
        ({"for each": "x in xs", "steps": CALL}, {"for_each": "xs", "as": "x", "do": [CALL]}),
        ({"set": [{"name": "a", "value": "'t'"}]}, {"let": {"a": "'t'"}}),
        ({"let": {"a": "5", "b": "x + 1"}}, {"let": {"a": 5, "b": "x + 1"}}),
        ({"ask_llm": "q", "as": "r"}, {"ask_model": "q", "returns": {"type": "string"}, "result_variable": "r"}),
        ({"final_answer": "ok"}, {"answer": "ok"}),
        ({"replan": True, "reason": "why"}, {"replan": "why"}),
        ({"try": [CALL], "catch": CALL}, {"try": [CALL], "except": [CALL]}),
    ],
)
def test_every_spelling_is_printed_in_one_way(written: Any, printed: Any):
    assert to_json(plan_of([{"note": "first"}, written]))["steps"][1] == printed  # type: ignore[index]


def test_the_layout():
    plan = plan_of(
        {
            "thought": "two steps",
            "steps": [
                {"tool_name": "get_weather", "arguments": {"city": "北京"}, "result_variable": "w"},
                {
                    "if": "w.temperature < 5",
                    "then": [
                        {
                            "tool_name": "send_email",
                            "arguments": {"to": "me@example.com", "subject": "低温预警", "body": "{w.temperature} 度"},
                        }
                    ],
                },
            ],
            "answer": "{w.temperature}°C",
        }
    )
    assert (
        canonical(plan)
        == """\
{
  "thought": "two steps",
  "steps": [
    {"tool_name": "get_weather", "arguments": {"city": "北京"}, "result_variable": "w"},
    {
      "if": "w.temperature < 5",
      "then": [
        {
          "tool_name": "send_email",
          "arguments": {"to": "me@example.com", "subject": "低温预警", "body": "{w.temperature} 度"}
        }
      ]
    }
  ],
  "answer": "{w.temperature}°C"
}"""
    )


def answer_of(parts: tuple[Any, ...]) -> Any:
    return to_json(Plan((Answer("s1", Text(parts, NOWHERE)),)))["steps"][0]["answer"]  # type: ignore[index, call-overload]


def hole(text: str, spec: str | None = None) -> Hole:
    return Hole(parse_expression(text), f"{{{text}}}", spec)


@pytest.mark.parametrize(
    ("parts", "printed"),
    [
        (("Hi ", hole("a.b"), "!"), "Hi {a.b}!"),
        ((hole("a"), hole("b", ".2f")), "{a}{b:.2f}"),
        (("{", hole("a"), "}"), "{{{a}}}"),
        (("Total: $", hole("a")), "Total: ${ a}"),
        (("x ", hole("{'k': a}"), ""), "x {({'k': a})}"),
        (("#E1 ", hole("a")), {"$text": "#E1 {a}"}),
        (("{b} ", hole("a")), {"$text": ["{b} ", {"$expr": "a"}]}),
    ],
)
def test_text_with_holes(parts: tuple[Any, ...], printed: Any):
    shown = answer_of(tuple(part for part in parts if part))
    assert shown == printed
    again = plan_of({"steps": [{"answer": shown}, CALL]})
    assert to_json(again)["steps"][0]["answer"] == printed  # type: ignore[index, call-overload]


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        ("plain", "plain"),
        ("{not a hole", "{not a hole"),
        ("{a}", {"$literal": "{a}"}),
        ("$a", {"$literal": "$a"}),
        ("costs $100", "costs $100"),
        ("#E1", {"$literal": "#E1"}),
        ({"$expr": "x"}, {"$literal": {"$expr": "x"}}),
        ([1, {"k": "{a}"}], [1, {"k": {"$literal": "{a}"}}]),
        (None, {"$literal": None}),
        (True, {"$literal": True}),
    ],
)
def test_constants(value: Any, printed: Any):
    plan = Plan((Answer("s1", Literal(value)), Answer("s2", Literal(1))))
    assert to_json(plan)["steps"][0]["answer"] == printed  # type: ignore[index, call-overload]
    again = plan_of(canonical(plan)).steps[0]
    assert isinstance(again, Answer)
    assert json.dumps(to_json(Plan((again,)))) == json.dumps(to_json(Plan(plan.steps[:1])))


EVERYTHING = {
    "inputs": {"team": "t@x.org"},
    "steps": [
        {"tool_name": "search", "arguments": {"q": 'a "quoted" <b> & [c] {x}'}, "result_variable": "found"},
        {"if": "found", "then": [{"let": {"n": "len(found)"}}], "else": [{"let": {"n": "0"}}]},
        {
            "for_each": "found",
            "as": "f",
            "do": [{"tool_name": "read", "arguments": {"id": "{f.id}", "n": "{n}"}, "result_variable": "r"}],
            "collect": "r",
            "result_variable": "texts",
        },
        {"while": "n > 0", "do": [{"break": True}], "max_iterations": 3},
        {"parallel": [CALL, CALL]},
        {"try": [CALL], "except": [{"note": "{e}"}], "as": "e"},
        {"ask_user": "Which?", "result_variable": "which"},
        {"ask_model": "Sum up", "data": "texts", "result_variable": "sum", "on_error": {"do": [{"answer": "no"}]}},
        {"tool_name": "send", "arguments": {"to": "{team}", "body": "{sum} {which}"}},
        {"replan": "more"},
    ],
    "answer": "Sent {n}",
}


def test_the_diagram():
    lines = mermaid(plan_of(EVERYTHING)).splitlines()
    assert lines[0] == "flowchart TD"
    text = "\n".join(lines)
    for arrow in (
        's1 -->|"found"| s2',
        's1 -->|"found"| s5',
        's2 -.->|"yes"| s2_yes',
        's2 -.->|"no"| s2_no',
        's3 -->|"n"| s6',
        's4 -->|"n"| s6',
        's5 -->|"texts"| s16',
        's16 -->|"sum"| s18',
        's15 -->|"which"| s18',
        'input_0 -->|"team"| s18',
        's16 -.->|"fails"| s16_failed',
    ):
        assert f"  {arrow}" in lines, arrow
    assert text.count("subgraph") == text.count("\n    end") + text.count("\n  end") + text.count("\n      end")
    # Everything that could mean something to Mermaid stands inside quotes, as a character code.
    for label in re.findall(r'"([^"]*)"', text):
        assert not re.search(r"[<>&\[\]{}|`]", re.sub(r"#\d+;", "", label)), label
    assert lines == mermaid(plan_of(canonical(plan_of(EVERYTHING)))).splitlines()


def test_the_summary():
    @tool(reads="mail")
    def search(q: str) -> list[dict[str, str]]:
        """Search."""
        return []

    @tool(writes="mailbox:{to}", approval="ask")
    def send(to: str, body: str) -> None:
        """Send."""

    @tool
    def read(id: str, n: int) -> str:
        """Read."""
        return ""

    text = summary(plan_of(EVERYTHING), ToolSet.of([search, send, read]))
    assert text.startswith(
        "This plan makes 6 calls, some of them once a round; 5 of them may change something (marked !).\n"
    )
    assert '  s1  search(q="a \\"quoted\\" <b> & [c] {x}") -> found  [reads mail]\n' in text
    assert '! s18 send(to=team, body="{sum} {which}")  [changes mailbox:{to}; asks first]\n' in text
    assert "!s6" not in text
    assert "!  s6   " not in text
    assert "! s6    read(id=f.id, n=n) -> r  [declares nothing: may change anything]\n" in text
    assert "[unknown tool]" in text
    assert '  s15 ask you: "Which?" -> which\n' in text
    assert "  s7  while n > 0, at most 3 times:\n" in text
    assert text.endswith('Then it answers: "Sent {n}"\n')


def test_the_summary_of_little():
    assert summary(plan_of({"answer": "hi"}), ToolSet()) == 'This plan only answers.\nThen it answers: "hi"\n'
    assert summary(plan_of([{"note": "hi"}]), ToolSet()).startswith("This plan calls no tool.\n")
