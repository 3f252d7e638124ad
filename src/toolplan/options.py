"""Whether the options of an agent can be, and what they stand for: said at once, in words, not later by a traceback."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

from toolplan.check import Limits
from toolplan.effects import INDEPENDENT
from toolplan.errors import UsageError
from toolplan.policy import Policy, policy_from_toml, shipped_policy
from toolplan.policy.files import SHIPPED
from toolplan.route import Router
from toolplan.tools import ToolSet

__all__ = [
    "check_choice",
    "check_number",
    "check_seconds",
    "check_switch",
    "policy_named",
    "router_of",
    "with_budget",
    "with_undeclared",
]


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise `UsageError` for anything but one of the choices."""
    if value not in choices:
        raise UsageError(f"`{name}` is {value!r}; it may be {', '.join(map(repr, choices))}")


def router_of(route: Router | int | None, tools: ToolSet) -> Router | None:
    """Return the router of an agent with these tools. Raises `UsageError` for one that chooses among others."""
    if route is None or isinstance(route, Router):
        if route is not None and set(route.tools.names) != set(tools.names):
            raise UsageError("`route` chooses among other tools than the agent has; give both of them the same tools")
        return route
    check_number("route", route, 1)
    return Router(tools, top=route)


def check_number(name: str, value: int, least: int) -> None:
    """Raise `UsageError` for anything but a whole number of at least `least`."""
    given = cast(object, value)
    if isinstance(given, bool) or not isinstance(given, int) or given < least:
        raise UsageError(f"`{name}` is {value!r}; it is a number of at least {least}")


def check_seconds(name: str, value: object) -> None:
    """Raise `UsageError` for anything but a number above 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise UsageError(f"`{name}` is {value!r}; it is a number of seconds above 0, or None")


def check_switch(name: str, value: object) -> None:
    """Raise `UsageError` for anything but True and False."""
    if not isinstance(value, bool):
        raise UsageError(f"`{name}` is {value!r}; it is True or False")


def with_budget(limits: Limits, max_calls: int | None) -> Limits:
    """Return the limits with the budget of calls. Raises `UsageError` when they say another number."""
    if max_calls is None:
        return limits
    check_number("max_calls", max_calls, 0)
    if limits.max_calls not in (None, max_calls):
        raise UsageError(f"`max_calls` is {max_calls}, but the limits say {limits.max_calls}; give one of them")
    return replace(limits, max_calls=max_calls)


def with_undeclared(tools: ToolSet, undeclared: str) -> ToolSet:
    """Return the tools, those that declare no effects declared as the word says."""
    if undeclared == "exclusive":
        return tools
    return ToolSet.of(tool if tool.effects.declared else tool.with_effects(INDEPENDENT) for tool in tools)


def policy_named(policy: object) -> Policy:
    """Return a policy that comes along, or that a file holds. Raises `UsageError`."""
    if isinstance(policy, str) and (policy in SHIPPED or not policy.endswith(".toml")):
        return shipped_policy(policy)
    if not isinstance(policy, str | Path):
        raise UsageError(f"`policy` is {policy!r}; it may be a name, the path of a TOML file, or a `Policy`")
    try:
        return policy_from_toml(Path(policy).read_text("utf-8-sig"), str(policy))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the policy `{policy}` cannot be read: {error}") from None
