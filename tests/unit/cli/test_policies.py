"""`toolplan policy`: which rule decides about each call, and the policies that come along."""

from __future__ import annotations

import pytest

TOOLS = """
from toolplan import tool

@tool(reads="bills", untrusted=True)
def read_bill(month: str) -> dict[str, str]:
    "A bill that somebody sent."

@tool(writes="accounts:{to}", guarded=("to",))
def pay(to: str) -> str:
    "Pay somebody."

@tool(writes="accounts", approval="deny")
def close_account() -> str:
    "Close it."
"""
PLAN = [
    {"tool_name": "read_bill", "arguments": {"month": "May"}, "result_variable": "bill"},
    {"tool_name": "pay", "arguments": {"to": "{bill.iban}"}},
    {"tool_name": "pay", "arguments": {"to": "ann"}},
]


def test_each_call_is_told_with_its_rule_and_its_origins(office) -> None:
    tools = office.write("bank.py", TOOLS)
    done = office("policy", "test", office.plan(PLAN), "--tools", tools, "--request", "Pay the bill of May.")
    assert done.code == 0
    assert (
        "s2   ask    pay: a value in it may have been chosen by other people's text (rule 'untrusted value')"
        in done.out
    )
    assert "to = bill.iban   <- s1 (read_bill); other people's text: s1 (read_bill)" in done.out
    assert 'to = "ann"   <- not in the request: ann' in done.out
    assert "2 calls, 2 ask, 0 forbidden" in done.out
    own = office("policy", "test", office.plan(PLAN), "--tools", tools, "--json").document
    assert [(call["id"], call["action"]) for call in own["calls"]] == [("s2", "ask"), ("s3", "allow")]


def test_a_forbidden_call_is_told_too(office) -> None:
    tools = office.write("bank.py", TOOLS)
    plan = office.plan([{"tool_name": "close_account", "arguments": {}}])
    done = office("policy", "test", plan, "--tools", tools)
    assert (done.code, "1 forbidden" in done.out) == (1, True)
    document = office("policy", "test", plan, "--tools", tools, "--policy", "cautious", "--json").document
    assert [each["code"] for each in document["diagnostics"]] == ["TP403"]


def test_a_policy_is_shown(office) -> None:
    assert 'name = "untrusted value"' in office("policy", "show", "default").out
    file = office.write("p.toml", '[[rule]]\nname = "all"\nthen = "deny"\nreason = "never"\n')
    assert office("policy", "show", file).out.splitlines() == ["deny   all: never", "ask    whatever else has effects"]
    assert office("policy", "show", file, "--json").document["rules"] == [
        {"name": "all", "then": "deny", "reason": "never"}
    ]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("show", "nothing"), "no policy is named"),
        (("test", "plan.json"), "--tools"),
        (("show", "no.toml"), "cannot be read"),
    ],
)
def test_what_is_wrong_is_said(office, arguments, says) -> None:
    done = office("policy", *arguments)
    assert (done.code, says in done.err) == (2, True)


def test_a_warning_about_the_policy_is_printed_once(office) -> None:
    tools = office.write("bank.py", TOOLS)
    rules = office.write("p.toml", '[[rule]]\ntool = "payy"\nthen = "ask"\n')
    done = office("policy", "test", office.plan(PLAN), "--tools", tools, "--policy", rules)
    assert (done.out + done.err).count("did you mean `pay`?") == 1
