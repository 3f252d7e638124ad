"""4xx: what calls do to the world: the states they need, and claims about them that do not hold."""

from __future__ import annotations

from collections.abc import Sequence

from toolplan.diagnostics.diagnostic import Diagnostic, Mark, Severity, explained
from toolplan.diagnostics.source import Place

__all__ = ["conflicting_members", "forbidden_tool", "missing_state"]


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
