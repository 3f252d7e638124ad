"""Names in a policy that are nothing the tools have: most often misspelt."""

from __future__ import annotations

from collections.abc import Iterator

from toolplan.diagnostics import nearest
from toolplan.policy.rules import Policy, Rule
from toolplan.tools import ToolSet

__all__ = ["left_open", "unmatched"]


def unmatched(policy: Policy, tools: ToolSet) -> list[str]:
    """Return a line for each tool that a rule names without `*` and that is not there, and each argument likewise.

    That is no error: a policy may be for more tools than these.
    """
    return [line for rule in policy.rules for line in _of_rule(rule, tools)]


def left_open(policy: Policy, tools: ToolSet) -> list[str]:
    """Return a line for each rule that asks or denies by an argument which a call may leave out.

    Not for those that say whether they are about such a call (`absent`). The others are not.
    """
    return [line for rule in policy.rules if rule.then != "allow" for line in _left_open(rule, tools)]


def _left_open(rule: Rule, tools: ToolSet) -> Iterator[str]:
    for tool in (tool for name in rule.tool if (tool := tools.get(name)) is not None):
        required = tool.parameters.get("required", ())
        for name, test in rule.arguments.items():
            schema = tool.parameters["properties"].get(name)
            if test.absent is None and schema is not None and name not in required and schema.get("default") is None:
                yield (
                    f"{rule.name}: not about calls of `{tool.name}` that leave `{name}` out; add `absent = true` if it "
                    "should be, else `absent = false`"
                )


def _of_rule(rule: Rule, tools: ToolSet) -> Iterator[str]:
    names = [name for name in rule.tool if not any(sign in name for sign in "*?[")]
    for name in names:
        if name not in tools.names:
            yield f"{rule.name}: there is no tool `{name}`{_hint(name, tools.names)}"
    named = [tool for name in names if (tool := tools.get(name)) is not None]
    if not named or len(named) < len(rule.tool):
        return
    known = sorted({argument for tool in named for argument in tool.parameters["properties"]})
    is_open = any(tool.parameters.get("additionalProperties", True) is not False for tool in named)
    for argument in rule.arguments:
        if argument != "*" and argument not in known and not is_open:
            yield f"{rule.name}: `{'`, `'.join(rule.tool)}` has no argument `{argument}`{_hint(argument, known)}"


def _hint(name: str, known: tuple[str, ...] | list[str]) -> str:
    near = nearest(name, known)
    return f"; did you mean `{near}`?" if near else ""
