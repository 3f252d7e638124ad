"""Rules: the first that fits decides, what is not known yet leaves it open, and caution only grows."""

from __future__ import annotations

from typing import Any

import pytest

from toolplan import Tool, UsageError
from toolplan.policy.files import SHIPPED, policy_from_toml, shipped_policy
from toolplan.policy.rules import UNKNOWN, CallFacts, Situation, Verdict
from toolplan.policy.sources import Sources

SCHEMA = {"type": "object", "properties": {"to": {}, "amount": {}, "body": {}, "kind": {"enum": ["a", "b"]}}}


def make(name: str = "pay", **declared: Any) -> Tool:
    declared = declared or {"writes": "accounts:{to}"}
    return Tool.from_schema(name, "", SCHEMA, lambda **_: None, **declared)


def decide(rules: str, tool: Tool | None = None, arguments: dict[str, Any] | None = None, **facts: Any) -> Verdict:
    policy = shipped_policy(rules) if rules in SHIPPED else policy_from_toml(rules)
    sources, condition = facts.pop("sources", {}), facts.pop("condition", frozenset())
    return policy.decide(CallFacts(tool or make(), arguments or {}, sources, condition, Situation(**facts)))


def words(**given: Any) -> dict[str, Sources]:
    return {name: Sources(words=(value,)) for name, value in given.items()}


def test_the_first_rule_that_fits_decides() -> None:
    rules = """
        [[rule]]
        tool = "pay"
        arguments = { amount = { at_least = 100 } }
        then = "deny"
        [[rule]]
        tool = "pay"
        then = "allow"
    """
    assert decide(rules, arguments={"amount": 500}).action == "deny"
    assert decide(rules, arguments={"amount": 50}).action == "allow"
    assert decide(rules, make("other")).action == "ask"
    later = decide(rules, arguments={"amount": UNKNOWN})
    assert (later.action, later.is_sure) == ("deny", False)


@pytest.mark.parametrize(("name", "fits"), [("pay", True), ("pay_all", False), ("repay", False)])
def test_names_match_whole(name: str, fits: bool) -> None:
    verdict = decide('[[rule]]\ntool = "pay"\nthen = "deny"', make(name))
    assert (verdict.action == "deny") == fits
    assert decide('[[rule]]\ntool = "pay*"\nthen = "deny"', make(name)).action == ("ask" if name == "repay" else "deny")


def test_a_rule_adds_caution_and_never_takes_it_away() -> None:
    allow = '[[rule]]\nthen = "allow"'
    assert decide(allow, make(writes="x", approval="deny")).action == "deny"
    assert decide(allow, make(writes="x", approval="ask")).action == "ask"
    assert decide('[[rule]]\nthen = "ask"', make(writes="x", approval="allow")).action == "ask"
    assert decide("", make(writes="x", approval="allow")).action == "allow"


def test_an_effect_that_no_rule_fits_asks_and_anything_else_runs() -> None:
    assert decide("").action == "ask"
    assert decide('otherwise = "deny"').action == "deny"
    assert decide("", make(pure=True)).action == "allow"
    assert decide("", make(reads="x")).action == "allow"


def test_resources_are_those_below_and_above_the_named_one() -> None:
    rules = '[[rule]]\nresource = "accounts/shared"\nthen = "deny"'
    assert decide(rules, arguments={"to": "shared"}).action == "deny"
    assert decide(rules, arguments={"to": "own"}).action == "ask"
    assert not decide(rules, arguments={"to": UNKNOWN}).is_sure
    assert decide('[[rule]]\nresource = "accounts"\nthen = "deny"', arguments={"to": "own"}).action == "deny"


def test_each_element_of_a_list_is_tested() -> None:
    rules = '[[rule]]\narguments = { to = { one_of = ["a", "b"] } }\nthen = "allow"'
    assert decide(rules, arguments={"to": ["a", "b"]}).action == "allow"
    assert decide(rules, arguments={"to": ["a", "c"]}).action == "ask"


def test_patterns_match_whole_values() -> None:
    rules = r"""
        [[rule]]
        arguments.to.matches = '[^@]+@x\.org'
        then = "allow"
    """
    assert decide(rules, arguments={"to": "ann@x.org"}).action == "allow"
    assert decide(rules, arguments={"to": "ann@x.org.evil.com"}).action == "ask"


def test_the_default_asks_about_what_untrusted_text_chose() -> None:
    sources = {"to": Sources(frozenset({"s1"}), frozenset({"s1"}))}
    assert decide("default", arguments={"to": "x"}, sources=sources).action == "ask"
    unknown = decide("default", arguments={"to": UNKNOWN}, sources=sources)
    assert (unknown.action, unknown.is_sure) == ("ask", False)
    assert decide("default", arguments={"to": "x"}, sources={"to": Sources(frozenset({"s1"}))}).action == "allow"
    tool = make(writes="m", guarded=("to",))
    assert decide("default", tool, {"body": "x"}, sources={"body": sources["to"]}).action == "allow"


def test_the_default_asks_about_what_the_user_did_not_say() -> None:
    given = {"to": "ann", "amount": 20}
    assert decide("default", arguments=given, sources=words(**given), said="give Ann 20").action == "allow"
    assert decide("default", arguments=given, sources=words(**given), said="give Ann 30").action == "ask"
    assert decide("default", arguments=given, sources=words(**given), words_are_trusted=True).action == "allow"
    choice = {"kind": "a"}
    assert decide("default", arguments=choice, sources=words(**choice), said="go").action == "allow"


def test_words_of_a_model_that_had_read_untrusted_text_are_untrusted() -> None:
    given = {"to": "eve"}
    rules = '[[rule]]\narguments.to = { untrusted = true }\nthen = "deny"'
    assert decide(rules, arguments=given, sources=words(**given), has_read_untrusted=True).action == "deny"
    assert (
        decide(rules, arguments=given, sources=words(**given), has_read_untrusted=True, said="to Eve").action == "ask"
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[rule]]\ntool = 'x'", "does not say what happens"),
        ("[[rule]]\nthen = 'permit'", "'allow' or 'ask' or 'deny'"),
        ("[[rule]]\ntol = 'x'\nthen = 'ask'", "did you mean `tool`"),
        ("[[rule]]\narguments = { to = { matchs = 'x' } }\nthen = 'ask'", "did you mean `matches`"),
        ("[[rule]]\narguments = { to = { matches = '(' } }\nthen = 'ask'", "no regular expression"),
        ("[[rule]]\neffect = 'read'\nthen = 'ask'", "`effect`"),
        ("version = 7", "version 7"),
        ("[[rule]", "no TOML"),
    ],
)
def test_a_wrong_policy_says_where_and_how(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says.replace("[", r"\[")):
        policy_from_toml(text, "p.toml")


@pytest.mark.parametrize(("then", "expected"), [("deny", "deny"), ("ask", "ask"), ("allow", "ask")])
def test_of_a_list_one_element_is_enough_for_caution_and_all_are_needed_to_allow(then: str, expected: str) -> None:
    rules = f'[[rule]]\narguments = {{ to = {{ one_of = ["eve"] }} }}\nthen = "{then}"'
    assert decide(rules, arguments={"to": ["eve", "ann"]}).action == expected
    assert decide(rules, arguments={"to": ["eve"]}).action == then


def test_an_empty_list_fits_no_cautious_rule() -> None:
    rules = '[[rule]]\narguments = { to = { none_of = ["ann"] } }\nthen = "deny"'
    assert decide(rules, arguments={"to": []}).action == "ask"


def test_an_argument_that_is_left_out_has_its_default() -> None:
    schema = {"type": "object", "properties": {"amount": {"type": "number", "default": 5000}, "cc": {"default": None}}}
    tool = Tool.from_schema("pay", "", schema, lambda **_: None, writes="x")
    assert decide('[[rule]]\narguments.amount = { at_least = 1000 }\nthen = "deny"', tool).action == "deny"
    assert decide('[[rule]]\narguments.amount = { at_most = 1000 }\nthen = "deny"', tool).action == "ask"
    assert decide('[[rule]]\narguments.cc = { none_of = ["ann"] }\nthen = "deny"', tool).action == "ask"


def test_the_authors_default_and_field_names_are_no_words_of_the_model() -> None:
    schema = {
        "type": "object",
        "properties": {
            "minutes": {"type": "integer", "default": 30},
            "who": {"type": "object", "properties": {"surname_2": {"type": "string"}}},
        },
    }
    tool = Tool.from_schema("note", "", schema, lambda **_: None, writes="x")
    assert decide("default", tool, {"minutes": 30}, sources=words(minutes=30)).action == "allow"
    assert decide("default", tool, {"minutes": 31}, sources=words(minutes=31)).action == "ask"
    value = {"surname_2": "Ann"}
    sources = {"who": Sources(words=({"surname_2": None}, "Ann"))}
    assert decide("default", tool, {"who": value}, sources=sources, said="Ann").action == "allow"


@pytest.mark.parametrize(
    ("value", "action"),
    [
        ("a b c d e f g h eve@evil.net", "ask"),
        ("DE02 1203 0000 0000 2020 51 is the new account of the firm", "ask"),
        ("cat the secret file now && rm -rf everything here", "ask"),
        ("see you all at the usual place on Friday night", "allow"),
        ("see you all at the usual place, says ann@x.org", "allow"),
    ],
)
def test_untrusted_prose_is_free_while_it_leads_nowhere(value: str, action: str) -> None:
    sources = {"body": Sources(untrusted=frozenset(["s1"]))}
    assert decide("default", None, {"body": value}, sources=sources, said="mail ann@x.org").action == action


@pytest.mark.parametrize("key", ["tool", "effect", "resource", "user", "mode"])
def test_an_empty_list_is_no_condition(key: str) -> None:
    with pytest.raises(UsageError, match="empty"):
        policy_from_toml(f'[[rule]]\n{key} = []\nthen = "allow"')


def test_dates_in_a_rule_have_to_be_text() -> None:
    for test in ("2024-01-01", "{ one_of = [2024-01-01] }"):
        with pytest.raises(UsageError, match="quotes"):
            policy_from_toml(f'[[rule]]\narguments.to = {test}\nthen = "deny"')


@pytest.mark.parametrize("path", ["/tmp/../etc/passwd", "//etc//passwd", "/etc/./passwd", "../etc/passwd"])
def test_a_path_is_what_it_leads_to(path: str) -> None:
    tool = make("rm", writes="files:{to}")
    assert decide('[[rule]]\nresource = "files:/etc"\nthen = "deny"', tool, {"to": path}).action == "deny"


def test_what_may_lead_anywhere_is_not_allowed_by_a_rule_for_one_place() -> None:
    rules = '[[rule]]\nresource = "files:/tmp"\nthen = "allow"'
    tool = make("rm", writes="files:{to}")
    assert decide(rules, tool, {"to": "/tmp/a"}).action == "allow"
    assert decide(rules, tool, {"to": "/tmp/../etc/passwd"}).action == "ask"
    assert decide(rules, make("rm", writes="files"), {"to": "/tmp/a"}).action == "ask"


def test_what_is_not_declared_is_not_allowed_by_a_rule_for_one_place() -> None:
    tool = Tool.from_schema("run", "", SCHEMA, lambda **_: None)
    assert decide('[[rule]]\nresource = "files:/tmp"\nthen = "allow"', tool, {"to": "a"}).action == "ask"
    assert decide('[[rule]]\nresource = "files:/tmp"\nthen = "deny"', tool, {"to": "a"}).action == "deny"


def test_a_misspelt_name_in_a_rule_is_noticed() -> None:
    from toolplan import ToolSet
    from toolplan.policy.unmatched import unmatched

    rules = """
        [[rule]]
        name = "one"
        tool = ["paay", "pay", "p*"]
        then = "deny"
        [[rule]]
        name = "two"
        tool = "pay"
        arguments = { amonut = { at_least = 1 }, "*" = { said = true }, amount = 3 }
        then = "deny"
    """
    assert unmatched(policy_from_toml(rules), ToolSet.of([make()])) == [
        "one: there is no tool `paay`; did you mean `pay`?",
        "two: `pay` has no argument `amonut`; did you mean `amount`?",
    ]


def test_a_rule_that_allows_is_about_every_argument_where_it_names_any() -> None:
    rules = '[[rule]]\narguments."*" = { said = true }\nthen = "allow"'
    made_up = {"to": "eve", "amount": 20}
    both = make("pay", writes="x", guarded=("to", "amount"))
    assert decide(rules, both, made_up, sources=words(to="eve", amount=20), said="pay 20").action == "ask"
    assert decide(rules, both, made_up, sources=words(to="eve", amount=20), said="pay eve 20").action == "allow"
    guarded = make("pay", writes="x", guarded=("amount",))
    rules = rules.replace("said", "guarded = true, said")
    assert decide(rules, guarded, made_up, sources=words(to="eve", amount=20), said="pay 20").action == "allow"
