"""`toolplan policy`: what a policy says about a plan, call by call and why; and the policies that come along."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolplan.cli.inputs import read_plan
from toolplan.cli.outputs import FAILED, OK, print_no_plan, print_rejection
from toolplan.cli.streams import say, say_json
from toolplan.cli.words import count
from toolplan.errors import PlanRejected, UsageError
from toolplan.visible import in_one_line

if TYPE_CHECKING:
    from toolplan.approval import CardCall
    from toolplan.tools import ToolSet

__all__ = ["show_policy", "try_policy"]


def show_policy(name: str, *, as_json: bool) -> int:
    """Print a policy that comes along, or that a file holds; return the exit code. Raises `UsageError`."""
    from toolplan.agent import Agent
    from toolplan.policy import SHIPPED

    policy = Agent(policy=name).policy
    if as_json:
        rules = [rule.to_dict() for rule in policy.rules]
        say_json(
            {"name": policy.name, "rules": rules, "otherwise": policy.otherwise, "fingerprint": policy.fingerprint}
        )
    elif name in SHIPPED:
        say(SHIPPED[name].strip())
    else:
        for rule in policy.rules:
            say(f"{rule.then:<5}  {rule.name}" + (f": {rule.reason}" if rule.reason else ""))
        say(f"{policy.otherwise:<5}  whatever else has effects")
    return OK


def try_policy(plan: str, toolset: ToolSet, policy: str, request: str | None, *, as_json: bool) -> int:
    """Check a plan and print what the policy says about each of its calls; return the exit code.

    With a `request` the plan counts as a model's, and its words as said where the request holds them. Runs nothing.
    """
    from toolplan.agent import Agent
    from toolplan.approval import Card
    from toolplan.check import check
    from toolplan.parse import CannotPlan, Prose
    from toolplan.policy import Situation, review
    from toolplan.policy.unmatched import left_open, unmatched

    if request is not None and not request.strip():
        raise UsageError("the request is empty; say what was asked for, or leave `--request` out")
    tools, rules = Agent(tools=toolset).tools, Agent(policy=policy).policy  # apart: their warnings are printed below
    try:
        reading = read_plan(plan, toolset)
        if isinstance(reading, Prose | CannotPlan):
            return print_no_plan(reading, as_json=as_json)
        checked = check(reading, tools)
    except PlanRejected as rejection:
        return print_rejection(rejection, as_json=as_json)
    situation = Situation(request or "", words_are_trusted=request is None)
    reviewed = review(checked.plan, tools, rules, situation, trust_repairs=request is None)
    card = Card.of(checked, reviewed)
    code = FAILED if reviewed.forbidden else OK
    warnings = [*unmatched(rules, tools), *left_open(rules, tools)]
    if as_json:
        forbidden = [diagnostic.to_dict(checked.plan.source) for diagnostic in reviewed.forbidden]
        say_json(card.to_dict() | {"diagnostics": forbidden, "warnings": list(warnings)})
        return code
    for warning in warnings:
        say(f"warning: {in_one_line(warning)}")
    for line in card.lines:
        _print(line)
    if not card.lines:
        say("No call of this plan changes anything or asks.")
    asks, later = len(card.asks), sum(not line.call.verdict.is_sure for line in card.lines)
    said = [count(len(card.lines), "call", "en"), f"{asks} ask", f"{len(reviewed.forbidden)} forbidden"]
    say("\n" + ", ".join([*said, f"{later} depend on values that come later"] if later else said))
    return code


def _print(line: CardCall) -> None:
    from toolplan.approval.text import shortened

    call = line.call
    verdict = call.verdict
    action = verdict.action if verdict.is_sure else f"{verdict.action}?"
    _say(f"{call.step:<4} {action:<6} {call.tool}: {verdict.reason} (rule {', '.join(map(repr, verdict.names))})")
    for name, value in line.arguments.items():
        notes = [
            *(line.origins.get(name, ())),
            *(f"other people's text: {step}" for step in line.untrusted.get(name, ())),
        ]
        notes += [f"not in the request: {word}" for word in call.unsaid.get(name, ())]
        said = notes or (["the plan's own words"] if name in call.sources.arguments else [])
        _say(f"       {name} = {value if name in line.guarded else shortened(value, 'en')}   <- {'; '.join(said)}")
    for condition in line.conditions:
        _say(f"       {condition}")
    for step in line.led_by:
        _say(f"       decided by other people's text: {step}")


def _say(line: str) -> None:
    say(in_one_line(line))
