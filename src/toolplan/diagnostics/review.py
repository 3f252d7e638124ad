"""6xx: what a second reading of the plan objects to."""

from __future__ import annotations

from toolplan.diagnostics.diagnostic import Diagnostic, explained
from toolplan.diagnostics.source import Place

__all__ = ["objection"]


@explained(
    "TP601",
    "the review of the plan objects to it",
    story="""\
With `Agent(review=True)` a model reads an accepted plan once more against the request, before anything runs. What it
objects to is handled like any other problem: the plan goes back to be mended. The checker alone never reports this
code; the wrong example stands for a request to write to Ann.""",
    wrong='[{"tool_name": "send_email", "arguments": {"to": "bob@example.com", "subject": "Hi", "body": "Hello Ann"}}]',
    right='[{"tool_name": "send_email", "arguments": {"to": "ann@example.com", "subject": "Hi", "body": "Hello Ann"}}]',
)
def objection(place: Place, step: str | None, problem: str, instead: str | None) -> Diagnostic:
    """One objection of the reviewing model; `problem` and `instead` are its words."""
    note = f"about step `{step}`" if step else "about the plan as a whole"
    return Diagnostic("", problem.strip().rstrip("."), place, "the review objects", notes=(note,), help=instead)
