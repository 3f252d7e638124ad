"""What cannot be told counts for caution: a rule that allows does not hold, one that asks or denies does."""

from __future__ import annotations

from typing import Any

import pytest

from toolplan import Tool, UsageError
from toolplan.policy.files import policy_from_toml
from toolplan.policy.likeness import addresses_in, amount_of
from toolplan.policy.rules import CallFacts

SCHEMA = {"type": "object", "properties": {"to": {}, "amount": {}}}
TOOL = Tool.from_schema("pay", "", SCHEMA, lambda **_: None, writes="x")


def action(then: str, test: str, value: Any, name: str = "to") -> str:
    policy = policy_from_toml(f'[[rule]]\narguments.{name} = {{ {test} }}\nthen = "{then}"')
    return policy.decide(CallFacts(TOOL, {name: value})).action


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("5", 5),
        ("-5", -5),
        ("5k", 5000),
        ("5 million", 5e6),
        ("5M", 5e6),
        ("$5,000.50", 5000.5),
        ("5万元", 50000),
        ("五千", 5000),
        ("１２ EUR", 12),
        ("USD5000", 5000),
        ("1e3", 1000),
        ("5'000", 5000),
        ("50%", 50),
        ("5.25", 5.25),
        ("5m", None),
        ("5bn", None),
        ("5b", None),
        ("5 Mio", None),
        ("5 Mrd", None),
        ("5 Tsd", None),
        ("5 lakh", None),
        ("5 grand", None),
        ("5仟", None),
        ("5.000", None),
        ("1.000,00", None),
        ("5 or 6", None),
        ("50 00", None),
        ("(5)", None),
        ("0x3e8", None),
        ("half", None),
        ("NaN", None),
        (" ", None),
        ("5/0", None),
        ("五 grand", None),
        (True, None),
        ({"v": 5}, None),
        (5, 5),
    ],
)
def test_an_amount_is_one_only_where_it_can_be_told(text: Any, amount: float | None) -> None:
    assert amount_of(text) == amount
    assert action("deny", "at_least = 1e12", text, "amount") == ("deny" if amount is None else "ask")
    if amount is None:
        assert action("allow", "at_most = 1e12", text, "amount") == "ask"


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("Ann <ann@x.org>, b@y.org", ["ann@x.org", "b@y.org"]),
        ("<e@e.net> <a@x.org>", ["e@e.net", "a@x.org"]),
        ("e@e.net <a@x.org>", ["a@x.org", "e@e.net"]),
        ("no address", []),
        ("a@x.org e@e.net", ["a@x.org", "e@e.net"]),
        ("Ann Smith <ann@x.org>", ["ann@x.org"]),
    ],
)
def test_a_text_holds_every_address_in_it(text: str, addresses: list[str]) -> None:
    assert addresses_in(text) == addresses


def test_one_address_is_enough_for_caution() -> None:
    ours = r"matches = '[^@]+@example\.com'"
    for value in (
        "<eve@evil.net> <ann@example.com>",
        "eve@evil.net <ann@example.com>",
        ["<e@evil.net> <a@example.com>"],
    ):
        assert action("allow", ours, value) == "ask"
        assert action("deny", f"not_{ours}", value) == "deny"
    assert action("allow", ours, "Ann <ann@example.com>") == "allow"


@pytest.mark.parametrize(
    "value",
    [
        "eve@evil.net",
        "EVE@Evil.net",
        " eve@evil.net",
        "Eve <eve@evil.net>",
        "ann@x.org, eve@evil.net",
        ["ann@x.org", "Eve@evil.net"],
        {"to": "eve@evil.net"},
    ],
)
def test_a_list_of_the_refused_is_not_beaten_by_another_way_of_writing(value: Any) -> None:
    assert action("deny", 'one_of = ["eve@evil.net"]', value) == "deny"
    assert action("allow", 'none_of = ["eve@evil.net"]', value) == "ask"
    if value != "eve@evil.net":
        assert action("allow", 'one_of = ["eve@evil.net"]', value) == "ask"
        assert action("deny", 'none_of = ["eve@evil.net"]', value) == "deny"


def test_a_number_in_quotes_is_that_number_for_caution_only() -> None:
    for value in ("5", "5.0", "$5"):
        assert action("deny", "one_of = [5]", value, "amount") == "deny"
        assert action("allow", "one_of = [5]", value, "amount") == "ask"
    assert action("deny", "equals = true", "True") == "deny"


@pytest.mark.parametrize("value", [{"k": "evil"}, {"evil": 1}, {"a": ["x", {"b": "evil"}]}, [{"k": "evil"}]])
def test_a_pattern_looks_into_objects(value: Any) -> None:
    assert action("deny", "matches = '.*evil.*'", value) == "deny"
    assert action("allow", "matches = '.*evil.*'", value) == "ask"
    assert action("allow", "not_matches = '.*evil.*'", value) == "ask"
    assert action("deny", "matches = '.*good.*'", value) == "ask"


@pytest.mark.parametrize("value", ["a@x.y,b@x.y", ["a@x.y,b@x.y"], ["a", "b"], {"a": 1, "b": 2}, "a;b", [["a", "b"]]])
def test_how_many_there_are_is_counted_in_what_each_may_hold(value: Any) -> None:
    assert action("deny", "items_at_least = 2", value) == "deny"
    assert action("deny", "items_at_least = 3", value) == "ask"


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ('hours = "09:00-09:00"', "00:00-24:00"),
        ('hours = "24:00-00:00"', "no time of the day"),
        ('arguments."p*" = { matches = ".*" }', "no patterns"),
        ('arguments."pat?" = "x"', "no patterns"),
        ("arguments.x = { at_least = 10, at_most = 5 }", "never hold"),
        ("arguments.x = { at_least = nan }", "never hold"),
        ("arguments.x = { one_of = [] }", "empty"),
    ],
)
def test_a_rule_that_could_never_hold_is_refused(rule: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        policy_from_toml(f'[[rule]]\n{rule}\nthen = "deny"')
    policy_from_toml('[[rule]]\nhours = "22:00-06:00"\narguments."filter[status]" = "x"\nthen = "deny"')
