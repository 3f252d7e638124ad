"""Why a plan may not run, told without the secrets that the plan, or the text that is none, may hold.

Messages repeat words of the plan, and lines of its text. The model that wrote them gets them whole, to mend them;
everybody else - a watcher, the result, the journal - without the words that go into secret places. Of a text that is no
plan nobody can tell which these are: nothing that stands in quotes is repeated then, but for the names of fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from toolplan.diagnostics import Diagnostic
from toolplan.errors import PlanRejected
from toolplan.plan import Plan
from toolplan.tools.secret_words import secret_words
from toolplan.tools.seen_secrets import SeenSecrets
from toolplan.tools.toolset import ToolSet

__all__ = ["cleaned_diagnostic", "refusal_without_secrets"]

_QUOTED = re.compile(r"""("{3}|'{3}|"|')((?:\\.|(?!\1)[^\\])*)(\1|\\?\Z)""", re.DOTALL)
_KEY = re.compile(r"\w{1,64}")


def refusal_without_secrets(
    rejection: PlanRejected, plan: Plan | None, tools: ToolSet, seen: SeenSecrets
) -> PlanRejected:
    """Return the refusal of a plan, or (None) of a text that is none, without its secrets and those `seen` before."""
    if plan is None:
        if not any(tool.secret_arguments for tool in tools):
            return rejection
        return _told(rejection, _without_quoted, _without_quoted)
    known = SeenSecrets()
    known.see_all(seen)
    known.see_words(secret_words(plan, tools).values)
    return _told(rejection, known.clean, known.masked) if known else rejection


def _told(rejection: PlanRejected, clean: Callable[[str], str], masked: Callable[[str], str]) -> PlanRejected:
    """Return the refusal with its messages cleaned, and its text masked, so that every place in it stays."""
    source = rejection.source
    if source is not None:
        source = replace(source, text=masked(source.text))
    return PlanRejected([cleaned_diagnostic(diagnostic, clean) for diagnostic in rejection.diagnostics], source)


def cleaned_diagnostic(found: Diagnostic, clean: Callable[[str], str]) -> Diagnostic:
    """Return the diagnostic with all its words cleaned."""
    return replace(
        found,
        message=clean(found.message),
        label=clean(found.label),
        others=tuple(replace(mark, label=clean(mark.label)) for mark in found.others),
        notes=tuple(map(clean, found.notes)),
        help=clean(found.help) if found.help is not None else None,
    )


def _without_quoted(text: str) -> str:
    """Return the text with asterisks in place of what stands in quotes, also where they are never closed."""

    def hidden(match: re.Match[str]) -> str:
        opening, inner, closing = match.groups()
        if _KEY.fullmatch(inner) and text[match.end() :].lstrip()[:1] == ":":
            return match.group()
        return opening + re.sub(r"[^\n]", "*", inner) + closing

    return _QUOTED.sub(hidden, text)
