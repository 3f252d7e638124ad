"""SARIF: the parts that viewers rely on, and places in characters."""

from __future__ import annotations

import json
from typing import Any

import pytest

from plan_tools import TOOLS, reading
from toolplan.check import check
from toolplan.diagnostics import NOWHERE, Diagnostic, Mark, Place, Severity, Source, load_catalogue
from toolplan.diagnostics.sarif import artifact_uri, sarif
from toolplan.errors import PlanRejected


def conforms(log: Any) -> Any:
    """Check what SARIF 2.1.0 demands of the parts that are used here; return the one run."""
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-2.1.0.json")
    (run,) = log["runs"]
    assert run["columnKind"] == "unicodeCodePoints"
    driver = run["tool"]["driver"]
    assert driver["name"] == "toolplan"
    ids = [rule["id"] for rule in driver["rules"]]
    assert len(set(ids)) == len(ids)
    for rule in driver["rules"]:
        assert rule["defaultConfiguration"]["level"] in ("error", "warning")
        for text in (rule["shortDescription"], rule["fullDescription"], rule["help"]):
            assert text["text"].strip()
    for result in run["results"]:
        assert ids[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in ("error", "warning", "note", "none")
        assert result["message"]["text"]
        assert len(result["locations"]) == 1
        related = result.get("relatedLocations", [])
        assert [location["id"] for location in related] == list(range(1, len(related) + 1))
        for location in [*result["locations"], *related]:
            physical = location["physicalLocation"]
            artifact = physical["artifactLocation"]
            assert run["artifacts"][artifact["index"]]["location"]["uri"] == artifact["uri"]
            if region := physical.get("region"):
                start, end = (region["startLine"], region["startColumn"]), (region["endLine"], region["endColumn"])
                assert (1, 1) <= start <= end
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is ("toolExecutionNotifications" not in invocation)
    return json.loads(json.dumps(run))


def log_of(written: str) -> tuple[Any, Source, tuple[Diagnostic, ...]]:
    """Return the run for a plan that the checker has something to say about."""
    plan = reading(written)
    try:
        found = check(plan, TOOLS).warnings
    except PlanRejected as rejected:
        found = rejected.diagnostics
    assert found
    return conforms(sarif(found, plan.source, "plans/a.json", version="1.2.3")), plan.source, found


def test_a_result_says_what_where_and_what_would_be_right() -> None:
    run, _, _ = log_of('c = find_customer(name="Kim")\nsend_email(recipient=c.name, subject="Offer", body="text")\n')
    (result,) = run["results"]
    assert (result["ruleId"], result["level"]) == ("TP302", "error")
    assert result["message"]["text"].split("\n") == [
        "`send_email` takes no argument `recipient`",
        "note: signature: send_email(to: str, subject: str, body: str) -> SentMessage",
        "help: did you mean `to`? it is required and missing from this call",
    ]
    assert result["locations"] == [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": "plans/a.json", "index": 0},
                "region": {
                    "startLine": 2,
                    "startColumn": 12,
                    "endLine": 2,
                    "endColumn": 21,
                    "snippet": {"text": "recipient"},
                },
            }
        }
    ]
    driver = run["tool"]["driver"]
    assert driver["version"] == "1.2.3"
    (rule,) = driver["rules"]
    entry = load_catalogue()["TP302"]
    assert rule["helpUri"] == "docs/reference/errors.md#tp302"
    assert rule["shortDescription"]["text"] == entry.title
    assert rule["fullDescription"]["text"] == entry.story.strip()
    assert entry.wrong.strip() in rule["help"]["markdown"]


def test_the_other_half_of_a_conflict_is_a_related_location() -> None:
    run, source, (found,) = log_of('s1 = read_invoice(id="A-17")\npay(account="a", amount=s1.total)\n')
    (related,) = run["results"][0]["relatedLocations"]
    assert related["message"]["text"] == found.others[0].label
    assert related["physicalLocation"]["region"]["snippet"]["text"] == 'read_invoice(id="A-17")'
    assert related["physicalLocation"]["region"]["startLine"] == 1
    assert source.text.startswith("s1")


def test_columns_count_characters_not_bytes_or_cells() -> None:
    text = '[{"tool_name": "pay", "arguments": {"account": "账户𝄞", "amuont": 1, "amount": 1}}]'
    run, _, _ = log_of(text)
    (location,) = run["results"][0]["locations"]
    region = location["physicalLocation"]["region"]
    assert text[region["startColumn"] - 1 : region["endColumn"] - 1] == '"amuont"'
    assert location["logicalLocations"] == [{"fullyQualifiedName": "$[0].arguments.amuont"}]


def test_a_region_may_go_over_lines() -> None:
    text = "first\nsecond\nthird"
    run = conforms(sarif([Diagnostic("TP304", "wrong", Place(start=2, end=8))], Source(text), "a.py"))
    region = run["results"][0]["locations"][0]["physicalLocation"]["region"]
    assert (region["startLine"], region["startColumn"], region["endLine"], region["endColumn"]) == (1, 3, 2, 3)


def test_rules_are_those_of_the_results_each_once() -> None:
    found = [
        Diagnostic("TP304", "one"),
        Diagnostic("TP201", "two"),
        Diagnostic("TP304", "three", others=(Mark(NOWHERE),)),
        Diagnostic("TP209", "four", severity=Severity.WARNING),
    ]
    run = conforms(sarif(found, None, "a.py"))
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["TP201", "TP209", "TP304"]
    assert [result["level"] for result in run["results"]] == ["error", "error", "error", "warning"]
    assert all("region" not in result["locations"][0]["physicalLocation"] for result in run["results"])


@pytest.mark.parametrize("code", sorted(load_catalogue()))
def test_each_code_has_a_complete_rule(code: str) -> None:
    run = conforms(sarif([Diagnostic(code, "message")], None, "a.py"))
    assert run["tool"]["driver"]["rules"][0]["helpUri"].endswith(f"#{code.lower()}")


def test_without_a_plan_there_is_a_notification() -> None:
    run = conforms(sarif((), None, "a.md", failures=["this is prose"]))
    (notice,) = run["invocations"][0]["toolExecutionNotifications"]
    assert notice == {"level": "error", "message": {"text": "this is prose"}}
    assert run["results"] == []


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("plan.json", "plan.json"),
        ("./plans/a b.json", "plans/a%20b.json"),
        ("计划.json", "%E8%AE%A1%E5%88%92.json"),
        ("/tmp/#1.json", "file:///tmp/%231.json"),
    ],
)
def test_addresses_of_files(path: str, uri: str) -> None:
    assert artifact_uri(path) == uri
