"""4xx: what calls do to the world: the states they need, and claims about them that do not hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from toolplan.diagnostics.diagnostic import Diagnostic, Mark, Severity, explained
from toolplan.diagnostics.source import Place

__all__ = [
    "as_told_in_loop",
    "conflicting_members",
    "doubled_effect",
    "doubled_effect_in_turn",
    "forbidden_by_policy",
    "forbidden_tool",
    "missing_state",
    "not_allowed",
    "repeated_effect",
]


@explained(
    "TP401",
    "members of `parallel` that get in each other's way",
    severity=Severity.WARNING,
    story="""\
`parallel` is the author's claim that its members are independent. These two declare effects on the same resource, and
at least one of them changes it, so they keep their written order all the same and the claim gains nothing.""",
    wrong="""\
[{"parallel": [
   {"tool_name": "write_note", "arguments": {"title": "todo", "text": "milk"}},
   {"tool_name": "write_note", "arguments": {"title": "todo", "text": "bread"}}]}]""",
    right="""\
[{"tool_name": "write_note", "arguments": {"title": "todo", "text": "milk"}},
 {"tool_name": "write_note", "arguments": {"title": "todo", "text": "bread"}}]""",
)
def conflicting_members(place: Place, tool: str, resource: str, other_place: Place, other: str) -> Diagnostic:
    """Two members of `parallel` that touch one resource, one of them changing it."""
    return Diagnostic(
        "",
        f"`{other}` and `{tool}` both touch `{resource}`, so they cannot run in parallel",
        place,
        f"touches `{resource}`",
        others=(Mark(other_place, f"touches `{resource}` too"),),
        help="take them out of `parallel`; they run in written order",
    )


@explained(
    "TP402",
    "a call needs a state that no earlier step brings about",
    story="""\
A tool may require a state of the world (`requires`) that another tool brings about (`ensures`): a page must be open
before something on it is clicked. The state must hold on every path that leads to the call.""",
    wrong='[{"tool_name": "click", "arguments": {"selector": "#buy"}}]',
    right="""\
[{"tool_name": "navigate", "arguments": {"url": "https://shop.example"}},
 {"tool_name": "click", "arguments": {"selector": "#buy"}}]""",
)
def missing_state(
    place: Place, tool: str, state: str, providers: Sequence[tuple[str, str]], sometimes: Sequence[Place]
) -> Diagnostic:
    """`providers` are the tools that ensure the state: name and short signature. `sometimes`: done on some paths."""
    missing = "which no earlier step ensures" if not sometimes else "which not every path that leads here ensures"
    notes = tuple(f"`{signature}` ensures `{state}`" for _, signature in providers[:3])
    return Diagnostic(
        "",
        f"`{tool}` needs `{state}`, {missing}",
        place,
        f"requires `{state}`",
        others=tuple(Mark(where, f"ensures `{state}`, on some paths only") for where in sometimes[:3]),
        notes=notes,
        help=f"put a `{providers[0][0]}` step before this one" if providers else None,
    )


@explained(
    "TP403",
    "a tool that may never be called",
    story="""\
The application has declared the tool with `approval="deny"`, or a policy says the same of it: no plan may call it, and
no person is asked. A plan that does so is rejected as a whole, before anything of it runs.""",
    wrong='[{"tool_name": "delete_account", "arguments": {"user": "ann"}}]',
    right='[{"cannot": "accounts can only be deleted by an administrator", "missing": ["delete_account"]}]',
)
def forbidden_tool(place: Place, step: str, tool: str) -> Diagnostic:
    """A call of a tool whose declaration, or a policy, forbids every call."""
    return Diagnostic(
        "",
        f"`{tool}` may not be called",
        place,
        "forbidden",
        notes=(f'step `{step}` calls it; it is declared with `approval="deny"`',),
        help="leave this step out, or say with `cannot` that it cannot be done without it",
    )


@explained(
    "TP404",
    "a call that a rule of the policy forbids",
    story="""\
The application's policy has a rule that says `deny` for this call: for its tool, a value in it, what it changes, or
where a value comes from. The message says which rule, and its reason. A plan with such a call is rejected as a whole,
before anything of it runs. Where the value is only known during the run, the call fails then, and nothing has happened.

The example is about a policy that forbids payments of more than 1000.""",
    wrong='[{"tool_name": "pay", "arguments": {"account": "ann", "amount": 5000}}]',
    right='[{"tool_name": "pay", "arguments": {"account": "ann", "amount": 500}}]',
)
def forbidden_by_policy(place: Place, step: str, tool: str, rule: str, reason: str) -> Diagnostic:
    """A call that a rule forbids, whatever values may still come."""
    return Diagnostic(
        "",
        f"this call of `{tool}` is forbidden by the policy: {reason}",
        place,
        "forbidden",
        notes=(f"the rule `{rule}` decides about step `{step}`",),
        help="leave this step out, or say with `cannot` that it cannot be done without it",
    )


@explained(
    "TP405",
    "a call that a person has not allowed",
    story="""\
A person was asked about this call and refused it, with a reason. Nothing of the plan has run. The reason goes to the
model, which may plan another way; the same call again would only be refused again.""",
    wrong='[{"tool_name": "pay", "arguments": {"account": "ann", "amount": 5000}}]',
    right='[{"cannot": "the payment was not allowed", "missing": []}]',
)
def not_allowed(place: Place, step: str, tool: str, reason: str) -> Diagnostic:
    """A call that a person refused; `reason` is what the person said."""
    return Diagnostic(
        "",
        f"this call of `{tool}` was not allowed: {reason}",
        place,
        "not allowed",
        notes=(f"a person was asked about step `{step}` and refused it",),
        help="plan in another way that heeds the reason, or say with `cannot` that it cannot be done",
    )


@explained(
    "TP409",
    "an effect that has happened already",
    story="""\
A plan that goes on after another one, because a step failed or the plan asked for a new one, must not do again what is
done. A call with effects is refused when an earlier plan of the run has made it with the same arguments, and also when
nobody knows whether it took effect (it timed out, or failed without saying that nothing had happened). If it has to be
made again, the call says why: `"again": "reason"` in JSON, a comment `# again: reason` on its line in Python notation,
in a loop one more argument, `again`, which the tool does not get.
The reason is shown to whoever approves the plan. Calls that change nothing, and tools declared
`idempotent`, may always be repeated.

In the examples, an earlier plan of the run has made this payment as its step `s2`.""",
    wrong='[{"tool_name": "pay", "arguments": {"account": "ann", "amount": 20}}]',
    right="""\
[{"tool_name": "pay", "arguments": {"account": "ann", "amount": 20}, "again": "the bank sent the first one back"}]""",
)
def repeated_effect(place: Place, tool: str, step: str, is_unknown: bool) -> Diagnostic:
    """A call with the arguments of one that an earlier plan has made, `step`, and no word why."""
    what = "may have taken effect" if is_unknown else "has happened"
    return Diagnostic(
        "",
        f"`{tool}` with these arguments {what} already, as step `{step}`",
        place,
        f"made already as `{step}`",
        notes=(f"nobody knows whether `{step}` took effect",) if is_unknown else (),
        help=(
            "find out with another call whether it did, ask the user, or add "
            if is_unknown
            else f"leave it out and use the result `{step}`, or add "
        )
        + _AGAIN_IN_PLAN,
    )


def doubled_effect_in_turn(place: Place, tool: str, step: str) -> Diagnostic:
    """A call of a loop's turn with the arguments of an earlier one of the same turn, `step`, and no word why."""
    found = repeated_effect(place, tool, step, False)
    return replace(found, message=f"`{tool}` with these arguments is called already in this turn, as step `{step}`")


@explained(
    "TP410",
    "the same effect twice in one plan",
    severity=Severity.WARNING,
    story="""\
Two calls of one tool with the same arguments both run, and the tool is not declared `idempotent`: the mail is sent
twice, the money paid twice. That may be what was asked for, so the plan runs; whoever has to allow it is told. Leave
one of them out, or say why it is made again: `"again": "reason"` in JSON, a comment `# again: reason` on its line in
Python notation. Of two calls on different sides of an `if` only one runs.""",
    wrong="""\
[{"tool_name": "pay", "arguments": {"account": "ann", "amount": 20}},
 {"tool_name": "pay", "arguments": {"account": "ann", "amount": 20}}]""",
    right="""\
[{"tool_name": "pay", "arguments": {"account": "ann", "amount": 20}},
 {"tool_name": "pay", "arguments": {"account": "ann", "amount": 20}, "again": "two tickets, paid one by one"}]""",
)
def doubled_effect(place: Place, tool: str, first_place: Place, first: str) -> Diagnostic:
    """A call that is made in the same words as an earlier one of the plan, `first`, and no word why."""
    return Diagnostic(
        "",
        f"`{tool}` is called twice with the same arguments, so its effect happens twice",
        place,
        f"the same as `{first}`",
        others=(Mark(first_place, "made here first"),),
        help="leave one of them out, or add " + _AGAIN_IN_PLAN,
    )


_AGAIN_IN_PLAN = '`"again": "reason"` to the call (in Python notation the comment `# again: reason`)'
_AGAIN_IN_LOOP = 'the argument `"again": "reason"` to the call'


def as_told_in_loop(found: Diagnostic) -> Diagnostic:
    """Return a diagnostic as it is told in a loop, where a call has arguments and nothing beside them."""
    return replace(found, help=found.help.replace(_AGAIN_IN_PLAN, _AGAIN_IN_LOOP)) if found.help else found
