"""Policies that a company would want, in its own words, and what they say about calls."""

from __future__ import annotations

from typing import Any

import pytest

from toolplan import Tool, ToolSet, UsageError
from toolplan.policy.files import policy_from_toml
from toolplan.policy.rules import UNKNOWN, CallFacts, Situation
from toolplan.policy.sources import Sources
from toolplan.policy.unmatched import left_open, unmatched

WORKDAY = "2026-03-18T10:30:00"  # a Wednesday


def tool(name: str, *arguments: str, **declared: Any) -> Tool:
    schema = {"type": "object", "properties": {each: {} for each in arguments}, "required": list(arguments[:1])}
    return Tool.from_schema(name, "", schema, lambda **_: None, **(declared or {"writes": name}))


PAY = tool("pay", "to", "amount", "cc", writes="accounts:{to}")
MAIL = tool("send_email", "to", "cc", "body", writes="mail")
DEPLOY = tool("deploy", "env", "version", writes="deploy:{env}")
WRITE = tool("write_file", "path", "text", writes="files:{path}")
付款 = tool("付款", "收款人", "金额", writes="账户:{收款人}")


def says(policy: str, called: Tool, situation: dict[str, Any] | None = None, /, **arguments: Any) -> str:
    given = {"now": WORKDAY, "words_are_trusted": True, **(situation or {})}
    sources = given.pop("sources", {})
    verdict = policy_from_toml(policy).decide(
        CallFacts(called, arguments, sources, given.pop("condition", frozenset()), Situation(**given))
    )
    return verdict.action if verdict.is_sure else f"{verdict.action}?"


PAYMENTS = """
[[rule]]
name = "too much"
tool = "pay"
arguments.amount = { at_least = 1000 }
then = "deny"
[[rule]]
name = "larger ones, and those that do not say how much"
tool = "pay"
arguments.amount = { at_least = 100, absent = true }
then = "ask"
[[rule]]
tool = "pay"
then = "allow"
"""


@pytest.mark.parametrize(
    ("amount", "action"),
    [(50, "allow"), (100, "ask"), (1000, "deny"), ("50", "allow"), ("1,000 EUR", "deny"), ("5千元", "deny"),
     ("fifty or so", "deny"), (None, "ask"), (UNKNOWN, "deny?"), (True, "deny"), ("1 or 2", "deny")],
)  # fmt: skip
def test_payments_by_amount(amount: Any, action: str) -> None:
    assert says(PAYMENTS, PAY, to="ann", amount=amount) == action


def test_a_payment_that_leaves_the_amount_out() -> None:
    assert says(PAYMENTS, PAY, to="ann") == "ask"
    assert says(PAYMENTS.replace(", absent = true", ""), PAY, to="ann") == "allow"
    assert left_open(policy_from_toml(PAYMENTS), ToolSet([PAY])) == [
        "too much: not about calls of `pay` that leave `amount` out; add `absent = true` if it should be, else "
        "`absent = false`"
    ]


OUR_DOMAIN = """
[[rule]]
name = "outside"
tool = "send_*"
arguments.to = { not_matches = '[^@]+@firm\\.example' }
then = "ask"
[[rule]]
name = "copies outside"
tool = "send_*"
arguments.cc = { not_matches = '[^@]+@firm\\.example', absent = false }
then = "ask"
[[rule]]
name = "many at once"
tool = "send_*"
arguments.to = { items_at_least = 10 }
then = "deny"
[[rule]]
tool = "send_*"
then = "allow"
"""


@pytest.mark.parametrize(
    ("to", "cc", "action"),
    [
        ("ann@firm.example", None, "allow"), (["ann@firm.example"], [], "allow"), ("eve@evil.example", None, "ask"),
        (["ann@firm.example", "eve@evil.example"], None, "ask"), ("ann@firm.example", "eve@evil.example", "ask"),
        ("eve@evil.example, ann@firm.example", None, "ask"), ("ann@firm.example, bob@firm.example", "", "allow"),
        ("Ann <ann@firm.example>", None, "allow"), ("ann@firm.example.evil.example", None, "ask"),
        (UNKNOWN, None, "deny?"),
        ([f"p{n}@firm.example" for n in range(10)], None, "deny"), (5, None, "ask"),
    ],
)  # fmt: skip
def test_mail_leaves_the_house_only_with_a_yes(to: Any, cc: Any, action: str) -> None:
    assert says(OUR_DOMAIN, MAIL, to=to, body="x", **({} if cc is None else {"cc": cc})) == action


def test_several_addresses_in_a_text_are_several() -> None:
    inside = '[[rule]]\ntool = "send_email"\narguments.to = { matches = ".*@firm[.]example" }\nthen = "allow"'
    assert says(inside, MAIL, to="ann@firm.example") == "allow"
    assert says(inside, MAIL, to="Ann Lee <ann@firm.example>, bob@firm.example") == "allow"
    for sly in ("eve@evil.example, ann@firm.example", "eve@evil.example ann@firm.example", "all；ann@firm.example",
                "ann@firm.example <eve@evil.example>"):  # fmt: skip
        assert says(inside, MAIL, to=sly) == "ask", sly


OFFICE_HOURS = """
[[rule]]
name = "interns, at work"
user = "intern-*"
days = ["mon", "tue", "wed", "thu", "fri"]
hours = "09:00-18:00"
effect = "writes"
then = "ask"
[[rule]]
name = "interns, else"
user = "intern-*"
effect = ["writes", "undeclared"]
then = "deny"
[[rule]]
name = "the others, at night"
hours = "22:00-06:00"
effect = ["writes", "undeclared"]
then = "ask"
[[rule]]
then = "allow"
"""


@pytest.mark.parametrize(
    ("user", "now", "action"),
    [
        ("intern-7", WORKDAY, "ask"), ("intern-7", "2026-03-18T18:00:00", "deny"),
        ("intern-7", "2026-03-21T10:00", "deny"),
        ("ann", WORKDAY, "allow"), ("ann", "2026-03-18T23:10:00", "ask"), ("ann", "2026-03-18T05:59:59+08:00", "ask"),
        ("ann", "2026-03-18T06:00:00", "allow"), ("ann", "", "ask"),
    ],
)  # fmt: skip
def test_office_hours_by_user(user: str, now: str, action: str) -> None:
    assert says(OFFICE_HOURS, WRITE, {"user": user, "now": now}, path="a", text="b") == action


def test_what_allows_by_time_does_not_where_the_time_is_not_known() -> None:
    by_day = '[[rule]]\nhours = "09:00-18:00"\nthen = "allow"'
    assert says(by_day, WRITE, path="a") == "allow"
    assert says(by_day, WRITE, {"now": ""}, path="a") == "ask"


ENVIRONMENTS = """
[[rule]]
name = "production is for people"
resource = "deploy:prod"
mode = ["loop", "mcp"]
then = "deny"
[[rule]]
name = "production"
resource = "deploy:prod"
then = "ask"
[[rule]]
name = "the test systems"
resource = "deploy:test-*"
then = "allow"
"""


@pytest.mark.parametrize(
    ("mode", "env", "action"),
    [("plan", "prod", "ask"), ("loop", "prod", "deny"), ("plan", "test-3", "allow"), ("plan", "prod-2", "ask"),
     ("plan", UNKNOWN, "ask?"), ("loop", UNKNOWN, "deny?"), ("plan", "../prod", "ask")],
)  # fmt: skip
def test_environments(mode: str, env: Any, action: str) -> None:
    assert says(ENVIRONMENTS, DEPLOY, {"mode": mode}, env=env) == action


中文 = """
[[rule]]
name = "大额付款"
tool = "付款"
arguments = { "金额" = { at_least = 5000 } }
then = "deny"
reason = "超过 5000 元"
[[rule]]
name = "自己人"
tool = "付款"
arguments."收款人" = { one_of = ["王芳", "李明"] }
then = "allow"
"""


@pytest.mark.parametrize(
    ("who", "amount", "action"),
    [("王芳", 100, "allow"), ("王芳", 5000, "deny"), ("马洛里", 1, "ask"), ("王芳", "两万元", "deny"),
     ("王芳", "100 元", "allow")],
)  # fmt: skip
def test_chinese_names_and_reasons(who: str, amount: Any, action: str) -> None:
    assert says(中文, 付款, 收款人=who, 金额=amount) == action


def test_nobody_changes_what_belongs_to_another_department() -> None:
    policy = '[[rule]]\nresource = "files:hr"\nthen = "deny"\n[[rule]]\nresource = "files"\nthen = "allow"'
    assert says(policy, WRITE, path="hr/pay.csv") == "deny"
    assert says(policy, WRITE, path="it/hr/x") == "allow"
    assert says(policy, WRITE, path="it/../hr/x") == "deny"
    assert says(policy, tool("anything", "x", approval="allow"), x=1) == "deny"  # it declares nothing: it may be that


PATHS = """
[[rule]]
name = "reports"
tool = "write_file"
arguments.path = { matches = 'reports/.*' }
then = "allow"
[[rule]]
tool = "write_file"
then = "deny"
"""


@pytest.mark.parametrize(
    ("path", "action"),
    [("reports/may.txt", "allow"), ("reports/../secret", "deny"), ("reports/a/../../secret", "deny"),
     ("reports\\..\\secret", "deny"), ("secret", "deny"), ("reports/a..b", "allow"), ("/reports/x", "deny")],
)  # fmt: skip
def test_only_some_paths(path: str, action: str) -> None:
    assert says(PATHS, WRITE, path=path, text="x") == action
    by_resource = '[[rule]]\nresource = "files:reports"\nthen = "allow"\n[[rule]]\nthen = "deny"'
    if not path.startswith("/") and "\\" not in path:
        assert says(by_resource, WRITE, path=path, text="x") == action


def test_who_may_only_read() -> None:
    policy = '[[rule]]\nuser = "audit*"\neffect = ["writes", "undeclared"]\nthen = "deny"\n[[rule]]\nthen = "allow"'
    assert says(policy, WRITE, {"user": "auditor"}, path="x") == "deny"
    assert says(policy, tool("look", "x", reads="files"), {"user": "auditor"}, x=1) == "allow"


def test_nothing_happens_because_a_mail_says_so() -> None:
    policy = '[[rule]]\ncondition = "untrusted"\neffect = "writes"\nthen = "ask"\n[[rule]]\nthen = "allow"'
    assert says(policy, WRITE, {"condition": frozenset(["s1"])}, path="x") == "ask"
    assert says(policy, WRITE, path="x") == "allow"


def test_nothing_of_other_people_goes_into_a_payment() -> None:
    policy = '[[rule]]\ntool = "pay"\narguments."*" = { untrusted = true }\nthen = "deny"\n[[rule]]\nthen = "allow"'
    assert says(policy, PAY, {"sources": {"to": Sources(untrusted=frozenset(["s1"]))}}, to="x", amount=1) == "deny"
    assert says(policy, PAY, to="x", amount=1) == "allow"


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ('days = "monday"', "'mon' or 'tue'"), ('hours = "9-18"', "two times such as"), ("hours = 9", "must be text"),
        ('arguments.x = { absent = "yes" }', "must be true or false"),
        ('arguments.x = { not_matches = "(" }', "expression"),
        ('arguments.x = { items_at_least = "2" }', "must be a number"), ('hours = "09:00-25:00"', "two times such as"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_policy_is_said(rule: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        policy_from_toml(f'[[rule]]\nthen = "ask"\n{rule}')


def test_the_examples_name_nothing_that_is_not_there() -> None:
    tools = ToolSet([PAY, MAIL, DEPLOY, WRITE, 付款])
    for policy in (PAYMENTS, OUR_DOMAIN, OFFICE_HOURS, ENVIRONMENTS, 中文, PATHS):
        assert unmatched(policy_from_toml(policy), tools) == []
        assert policy_from_toml(policy).fingerprint == policy_from_toml(policy).fingerprint
