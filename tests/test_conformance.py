"""The specification of the plan language: every rule is shown at work, and everything that is shown is so."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from toolplan.diagnostics import load_catalogue
from toolplan.parse import Prose, parse
from toolplan.parse.extract import MAX_CHARACTERS
from toolplan.parse.json_notation import MAX_STEPS
from toolplan.parse.json_text import MAX_LEVELS
from toolplan.parse.python_notation.text import MAX_CHARACTERS as MAX_PROGRAM_CHARACTERS
from toolplan.parse.spellings import PLAN, STEPS, Kind, table
from toolplan.plan import Plan
from toolplan.show import canonical
from toolplan.testing import Case, load_cases, run_case

ROOT = Path(__file__).parent.parent
SPEC = ROOT / "docs" / "spec.md"
PAGES = sorted((ROOT / "tests" / "conformance").glob("*.md"))
CASES = [case for page in PAGES for case in load_cases(page)]
OPEN = "open"
"""The page of cases that are known to fail."""
NOT_OF_THE_LANGUAGE = {"TP601", *(f"TP{number}" for number in range(131, 138))}
"""A model's objection to a plan, when it reviews one; calls in a model's own format (no rule of the language)."""
WITHOUT_CASE = {"TP161", "TP403", "TP404", "TP405"}
"""A case always has tools whose parameters are known, and no policy."""

_RULE = re.compile(r'^\*\*<a id="r(\d+)"></a>R(\d+) ', re.MULTILINE)
_TABLE = re.compile(r"(?<=<!-- spellings: begin -->\n)(.*)(?=<!-- spellings: end -->)", re.DOTALL)


@pytest.mark.parametrize("case", [case for case in CASES if case.path.stem != OPEN], ids=str)
def test_a_case(case: Case) -> None:
    run_case(case)


@pytest.mark.parametrize("case", [case for case in CASES if case.path.stem == OPEN], ids=str)
def test_a_case_that_is_not_so_yet(case: Case) -> None:
    try:
        run_case(case)
    except AssertionError:
        return
    pytest.fail(f"{case} is so now: move it to its page")


def test_the_rules_are_numbered_in_order() -> None:
    numbers = _RULE.findall(SPEC.read_text(encoding="utf-8"))
    assert [(str(n), str(n)) for n in range(1, len(numbers) + 1)] == numbers


def test_every_rule_has_a_case_and_every_case_a_rule() -> None:
    rules = {f"R{number}" for number, _ in _RULE.findall(SPEC.read_text(encoding="utf-8"))}
    shown = {rule for case in CASES if case.path.stem != OPEN for rule in case.rules}
    assert shown == rules
    assert {rule for case in CASES for rule in case.rules} <= rules


def test_rules_that_rules_speak_of_exist() -> None:
    text = SPEC.read_text(encoding="utf-8")
    rules = {f"R{number}" for number, _ in _RULE.findall(text)}
    assert set(re.findall(r"\bR\d+\b", text)) <= rules


def test_every_code_belongs_to_a_rule_and_is_shown() -> None:
    codes = set(load_catalogue()) - NOT_OF_THE_LANGUAGE
    assert set(re.findall(r"TP\d{3}", SPEC.read_text(encoding="utf-8"))) == codes
    demanded = {d.code for case in CASES for e in case.examples for plan in e.plans for d in plan.demands}
    demanded |= {d.code for case in CASES for e in case.examples for w in e.wishes for d in w.demands}
    assert demanded == codes - WITHOUT_CASE


def test_the_limits_are_those_of_the_readers() -> None:
    (rule,) = re.findall(r'^\*\*<a id="r97">.*?\n\n', SPEC.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    limits = [MAX_CHARACTERS, MAX_PROGRAM_CHARACTERS, MAX_LEVELS, MAX_STEPS]
    assert re.findall(r"\b\d[\d,]+\b", rule) == [f"{limit:,}" for limit in limits]


STEP = {"tool_name": "t", "arguments": {"x": 1}, "result_variable": "q"}
SAMPLES: dict[str, list[dict[str, Any]]] = {
    "plan": [{"steps": [STEP], "thought": "x", "inputs": {"i": 1}, "answer": "a"}, {"cannot": "no", "missing": ["m"]}],
    "call": [{**STEP, "depends_on": ["p"], "on_error": "skip", "retry": 2, "timeout_seconds": 5}, {**STEP, "if": "p"}],
    "if": [{"if": "p", "then": [STEP], "else": [STEP], "elif": [{"if": "p", "then": [STEP]}]}],
    "for_each": [{"for_each": "p", "as": "e", "do": [STEP], "collect": "q", "collect_if": "q", "result_variable": "r"}],
    "while": [{"while": "p", "do": [STEP], "max_iterations": 3}],
    "parallel": [{"parallel": [STEP, STEP]}],
    "let": [{"let": {"a": 1}}, {"let": "a", "value": "1"}, {"let": "1", "result_variable": "a"}],
    "try": [{"try": [STEP], "except": [STEP], "as": "e"}],
    "ask_user": [{"ask_user": "q?", "result_variable": "r"}],
    "ask_model": [{"ask_model": "q?", "data": "p", "returns": "integer", "result_variable": "r", "on_error": "skip"}],
    "replan": [{"replan": "why"}],
    "answer": [{"answer": "a"}],
    "cannot": [{"cannot": "no", "missing": ["m"]}],
    "note": [{"note": "n"}],
    "break": [{"break": True}],
    "continue": [{"continue": True}],
}
SPELLINGS = [(kind, key.name, also) for kind in (PLAN, *STEPS) for key in kind.keys for also in key.also]


@pytest.mark.parametrize(("kind", "key", "also"), SPELLINGS, ids=lambda each: getattr(each, "name", each))
def test_another_spelling_means_the_same(kind: Kind, key: str, also: str) -> None:
    samples = [sample for sample in SAMPLES[kind.name] if key in sample]
    assert samples
    for sample in samples:
        told = {"type": kind.types[0]} if kind.types else {}
        respelt = {also if name == key else name: value for name, value in sample.items()}
        assert read(told | respelt, kind) == read(sample, kind)


def read(step: dict[str, Any], kind: Kind) -> object:
    """Return the canonical form of a plan with this step, or of the plan that it is."""
    plan: Any = step
    if kind is not PLAN:
        plan = [{"let": {"p": [1]}}, {"for_each": "p", "do": [step]} if kind.name in ("break", "continue") else step]
    reading = parse(json.dumps(plan), "json", ["t"])
    assert not isinstance(reading, Prose)
    return canonical(reading) if isinstance(reading, Plan) else (reading.reason, reading.missing)


def test_the_table_of_spellings_is_that_of_the_reader(request: pytest.FixtureRequest) -> None:
    text = SPEC.read_text(encoding="utf-8")
    shown = _TABLE.search(text)
    assert shown is not None
    if request.config.getoption("--update-golden"):
        text = text[: shown.start()] + table() + text[shown.end() :]
        SPEC.write_text(text, encoding="utf-8", newline="")
        shown = _TABLE.search(text)
        assert shown is not None
    assert shown[1] == table()
