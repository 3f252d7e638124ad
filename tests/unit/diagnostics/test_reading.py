"""The catalogue of reading problems: each code's examples do what they say, and the words keep to the rules."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from toolplan.diagnostics import catalogue, render, render_all
from toolplan.errors import PlanRejected
from toolplan.parse import parse

ENTRIES = [entry for code, entry in sorted(catalogue.items()) if "TP101" <= code <= "TP121"]
NOT_BY_DEFAULT = {"TP107", "TP120"}
"""Examples too large to write out, or about what the caller demands."""


def test_the_codes_are_here():
    assert [entry.code for entry in ENTRIES] == [f"TP{number}" for number in range(101, 122)]


@pytest.mark.parametrize("entry", ENTRIES, ids=[entry.code for entry in ENTRIES])
def test_the_examples(entry):
    parse(entry.right)
    if entry.code in NOT_BY_DEFAULT:
        return
    with pytest.raises(PlanRejected) as caught:
        parse(entry.wrong)
    (problem,) = caught.value.diagnostics
    assert problem.code == entry.code
    shown = render(problem, caught.value.source)
    assert shown.startswith(f"error[{entry.code}]: {problem.message}\n")
    for text in (problem.message, problem.help or "", *problem.notes):
        assert not re.search(r"!\s|invalid|illegal", text)
        assert not text.endswith(".")
    assert problem.message[0].islower() or not problem.message[0].isalpha()


@pytest.mark.parametrize("code", [entry.code for entry in ENTRIES if entry.code not in NOT_BY_DEFAULT])
def test_the_wording_stays(code: str, golden: Callable[[str, str], None]):
    with pytest.raises(PlanRejected) as caught:
        parse(catalogue[code].wrong)
    rejected = caught.value
    golden(f"diagnostics/{code}.txt", render_all(rejected.diagnostics, rejected.source) + "\n")
    facts = [each.to_dict(rejected.source) for each in rejected.diagnostics]
    golden(f"diagnostics/{code}.json", json.dumps(facts, indent=1, ensure_ascii=False) + "\n")


def test_marks_stand_under_wide_characters():
    with pytest.raises(PlanRejected) as caught:
        parse('{"steps": [\n  {"tool_name": "send", "arguments": {"to": "北京", "text": "x"')
    assert (
        render_all(caught.value.diagnostics, caught.value.source)
        == """\
error[TP102]: the plan ends before it is complete
 --> plan:2:62
  |
1 | {"steps": [
  | - opened here
2 |   {"tool_name": "send", "arguments": {"to": "北京", "text": "x"
  |                                                                ^ the text ends here
  = note: still open: `{` `[` `{` `{`
  = help: send the whole plan again; if it was too long, make it shorter (a loop instead of many steps)"""
    )


def test_the_same_facts_without_drawing():
    with pytest.raises(PlanRejected) as caught:
        parse('[{"tool_name": "a", "arguments": "{year: >}"}]')
    (problem,) = caught.value.diagnostics
    assert problem.to_dict(caught.value.source) == {
        "code": "TP118",
        "severity": "error",
        "message": "the arguments of step 1 (`a`) cannot be read: `{year: >}` is not JSON",
        "path": "$[0].arguments",
        "line": 1,
        "column": 34,
        "text": '"{year: >}"',
        "help": 'write the arguments as an object: "arguments": {"name": value}',
    }
