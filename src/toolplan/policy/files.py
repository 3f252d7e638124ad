"""Policies as TOML, and those that come along.

[[rule]]
name = "large payments"
tool = "pay"                                  # a name, or a list of them; `*` stands for anything
arguments = { amount = { at_least = 1000 } }  # by name; "*" is any of them
then = "ask"
reason = "more than 1000"

[[rule]]
effect = "none"
then = "allow"
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import date, time
from functools import lru_cache
from typing import Any, cast

from toolplan.diagnostics import nearest
from toolplan.errors import UsageError
from toolplan.policy.rules import DAYS, ArgumentTest, Policy, Rule

__all__ = ["SHIPPED", "policy_from_toml", "shipped_policy"]

_DEFAULT = """
# What the user said may be done; what other people's text chose, or the model made up, asks.

[[rule]]
name = "free of effects"
effect = "none"
then = "allow"

[[rule]]
name = "untrusted value"
arguments."*" = { guarded = true, untrusted = true, free_text = false }
then = "ask"
reason = "a value in it may have been chosen by other people's text"

[[rule]]
name = "not said"
arguments."*" = { said = false }
then = "ask"
reason = "a value in it is not in the request"

[[rule]]
name = "untrusted call"
effect = ["writes", "undeclared"]
bound = false
then = "ask"
reason = "other people's text was read before, and nothing in the call is from the request"

[[rule]]
name = "said"
effect = ["writes", "undeclared"]
then = "allow"
"""

_CAUTIOUS = """
# Every effect asks.

[[rule]]
name = "free of effects"
effect = "none"
then = "allow"

[[rule]]
name = "effects"
effect = ["writes", "undeclared"]
then = "ask"
reason = "it changes something"
"""

_DECLARED = """
# Only what the tools declare counts.

[[rule]]
name = "declared"
then = "allow"
"""

SHIPPED: Mapping[str, str] = {"default": _DEFAULT, "cautious": _CAUTIOUS, "declared": _DECLARED}
"""The policies that come along, as text."""


@lru_cache
def shipped_policy(name: str) -> Policy:
    """Return a policy that comes along. Raises `UsageError` for a name that is none of them."""
    text = SHIPPED.get(name)
    if text is None:
        near = nearest(name, SHIPPED)
        hint = f"did you mean {near!r}?" if near else "there are " + ", ".join(map(repr, SHIPPED))
        raise UsageError(f"no policy is named {name!r}; {hint} or give the path of a TOML file")
    return policy_from_toml(text, name)


def policy_from_toml(text: str, name: str = "policy") -> Policy:
    """Return the policy that a TOML text describes. Raises `UsageError` that says which rule is wrong, and how."""
    import tomllib  # 2 ms to import

    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{name} is no TOML: {error}") from None
    _known(document, {"version", "rule", "otherwise"}, name)
    if document.get("version", 1) != 1:
        raise UsageError(f"{name} has version {document['version']!r}; this toolplan knows version 1")
    otherwise = _action(document.get("otherwise", "ask"), f"{name}: `otherwise`")
    rules = document.get("rule", [])
    if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in cast("list[Any]", rules)):
        raise UsageError(f"{name}: write each rule as a table `[[rule]]`")
    read = [_rule(rule, f"{name}, rule {number}") for number, rule in enumerate(cast("list[dict[str, Any]]", rules), 1)]
    return Policy(tuple(read), otherwise, name)


_LISTS = ("tool", "effect", "resource", "user", "mode", "days")
_EFFECTS = ("none", "writes", "undeclared")
_MODES = ("plan", "loop", "mcp")


def _rule(given: dict[str, Any], where: str) -> Rule:
    where = f"{where} (`{given['name']}`)" if isinstance(given.get("name"), str) else where
    _known(given, {item.name for item in fields(Rule)}, where)
    if "then" not in given:
        raise UsageError(f'{where} does not say what happens; add then = "allow", "ask" or "deny"')
    values: dict[str, Any] = {"then": _action(given["then"], f"{where}: `then`")}
    for key in ("name", "reason"):
        if key in given:
            values[key] = _text(given[key], f"{where}: `{key}`")
    for key in _LISTS:
        if key in given:
            several = given[key] if isinstance(given[key], list) else [given[key]]
            if not several:
                raise UsageError(f"{where}: `{key}` is empty; leave it out, and the rule is about all of them")
            values[key] = tuple(_text(each, f"{where}: `{key}`") for each in cast("list[Any]", several))
    _one_of(values.get("effect", ()), _EFFECTS, f"{where}: `effect`")
    _one_of(values.get("mode", ()), _MODES, f"{where}: `mode`")
    _one_of(values.get("days", ()), DAYS, f"{where}: `days`")
    if "hours" in given:
        values["hours"] = _hours(given["hours"], f"{where}: `hours`")
    if "condition" in given:
        _one_of((given["condition"],), ("trusted", "untrusted"), f"{where}: `condition`")
        values["condition"] = given["condition"]
    if "bound" in given:
        if not isinstance(given["bound"], bool):
            raise UsageError(f"{where}: `bound` must be true or false, but is {given['bound']!r}")
        values["bound"] = given["bound"]
    tests = given.get("arguments", {})
    if not isinstance(tests, dict):
        raise UsageError(f"{where}: `arguments` must be a table such as {{ amount = {{ at_least = 100 }} }}")
    for name in cast("dict[str, Any]", tests):
        if name != "*" and ("*" in name or "?" in name):
            raise UsageError(
                f"{where}: `{name}` is no name of an argument, and names of arguments take no patterns; write each of "
                'them, or "*" for any'
            )
    values["arguments"] = {
        name: _test(test, f"{where}: argument `{name}`") for name, test in cast("dict[str, Any]", tests).items()
    }
    values.setdefault("name", where.rpartition(", ")[2])
    return Rule(**values)


def _test(given: Any, where: str) -> ArgumentTest:
    _no_dates(given, where)
    if not isinstance(given, dict):
        return ArgumentTest(equals=given)
    test = cast("dict[str, Any]", given)
    _known(test, {item.name for item in fields(ArgumentTest)}, where)
    for key in ("untrusted", "said", "guarded", "free_text", "absent"):
        if key in test and not isinstance(test[key], bool):
            raise UsageError(f"{where}: `{key}` must be true or false, but is {test[key]!r}")
    for key in ("at_least", "at_most", "items_at_least"):
        if key in test and (isinstance(test[key], bool) or not isinstance(test[key], int | float)):
            raise UsageError(f"{where}: `{key}` must be a number, but is {test[key]!r}")
    for key in ("matches", "not_matches"):
        if key in test:
            _pattern(test[key], f"{where}: `{key}`")
    values: dict[str, Any] = dict(test)
    low, high = test.get("at_least"), test.get("at_most")
    if low != low or high != high or (low is not None and high is not None and low > high):
        raise UsageError(f"{where}: no number is `at_least` {low} and `at_most` {high}; the rule would never hold")
    for key in ("one_of", "none_of"):
        if key in test:
            if not isinstance(test[key], list):
                raise UsageError(f"{where}: `{key}` must be a list, but is {test[key]!r}")
            if not test[key]:
                raise UsageError(f"{where}: `{key}` is empty; leave it out, or name what it is about")
            values[key] = tuple(cast("list[Any]", test[key]))
    return ArgumentTest(**values)


def _no_dates(given: Any, where: str) -> None:
    """Refuse the dates and times of TOML: arguments are JSON, where a date is text."""
    if isinstance(given, date | time):
        raise UsageError(f'{where}: a date is text in an argument; put it in quotes: "{given}"')
    if isinstance(given, dict | list):
        for each in cast("Any", given.values() if isinstance(given, dict) else given):  # pyright: ignore[reportUnknownMemberType]
            _no_dates(each, where)


def _known(given: Mapping[str, Any], names: set[str], where: str) -> None:
    for key in given:
        if key not in names:
            near = nearest(key, sorted(names))
            hint = f"did you mean `{near}`?" if near else "it knows " + ", ".join(f"`{name}`" for name in sorted(names))
            raise UsageError(f"{where} has no key `{key}`; {hint}")


def _action(value: Any, where: str) -> Any:
    _one_of((value,), ("allow", "ask", "deny"), where)
    return value


def _one_of(values: tuple[Any, ...], allowed: tuple[str, ...], where: str) -> None:
    for value in values:
        if value not in allowed:
            raise UsageError(f"{where} must be {' or '.join(map(repr, allowed))}, but is {value!r}")


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{where} must be text, but is {value!r}")
    return value


def _hours(value: Any, where: str) -> tuple[str, str]:
    import re

    found = re.fullmatch(
        r"((?:[01]\d|2[0-4]):[0-5]\d)-((?:[01]\d|2[0-4]):[0-5]\d)", _text(value, where).replace(" ", "")
    )
    if found is None:
        raise UsageError(f'{where} must be two times such as "09:00-18:00", but is {value!r}')
    begin, end = found[1], found[2]
    if begin == end or (begin, end) == ("24:00", "00:00"):
        raise UsageError(f'{where}: {value!r} is no time of the day; for the whole day write "00:00-24:00", or nothing')
    return begin, end


def _pattern(value: Any, where: str) -> None:
    import re

    try:
        re.compile(_text(value, where))
    except re.error as error:
        raise UsageError(f"{where} is no regular expression: {error}") from None
