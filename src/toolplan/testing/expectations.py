"""What a conformance case demands, line by line: a diagnostic at a line of a plan, a line of an `expect` block.

`conformance.py` says how they are written and what they mean.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, cast

from toolplan.check import Limits
from toolplan.values import Json

__all__ = [
    "LIMITS",
    "OF_NO_PLAN",
    "SETTINGS",
    "Demand",
    "Wish",
    "read_call",
    "read_demands",
    "read_text",
    "read_texts",
    "read_wish",
]

_STRING = r'"(?:[^"\\]|\\.)*"'
_DEMAND = re.compile(
    rf"(?:(?P<severity>error|warning):?\s*)?\[(?P<code>TP\d{{3}})\](?:\s+at\s+(?P<marked>{_STRING}):?)?"
    rf"(?:\s+(?P<text>{_STRING}))?\s*(?:;\s*|$)"
)
_FORMS: dict[str, re.Pattern[str]] = {
    form: re.compile(pattern + r"\Z")
    for form, pattern in {
        "text": rf"text (?P<text>{_STRING})",
        "cannot": rf"cannot (?P<text>{_STRING})(?: missing (?P<missing>{_STRING}(?:, {_STRING})*))?",
        "diagnostic": r"(?P<demands>(?:error|warning) \[.*)",
        "mended": rf"mended (?P<text>{_STRING})",
        "same": r"same plan",
        "canonical": r"canonical (?P<json>\{.*\})",
        "accepted": r"accepted",
        "call": r"call (?P<call>.*?\))(?P<failing> fails)?",
        "no call": r"no call",
        "answer": rf"answer (?P<text>{_STRING})",
        "succeeds": r"succeeds",
        "fails": rf"fails (?P<text>{_STRING})(?: at (?P<step>\S+))?",
        "replans": rf"replans (?P<text>{_STRING})",
        "waits": r"waits",
        "asks": rf"asks (?P<text>{_STRING})",
        "note": rf"note (?P<text>{_STRING})",
        "step": r"step (?P<step>\S+) (?P<outcome>succeeded|failed|unknown|skipped|cancelled|waiting|not_run)",
        "order": r"(?P<one>.+?) (?P<relation>overlaps|before) (?P<other>.+)",
        "time": r"time (?P<seconds>\d+(?:\.\d+)?)",
        "with": r"with (?P<settings>.+)",
    }.items()
}

OF_NO_PLAN = frozenset({"text", "cannot", "diagnostic", "with"})
"""Expectations that a text which is no plan can meet."""

SETTINGS = ("failure", "window", "max_concurrency", "now")
"""What `with` can set for the run."""
LIMITS = tuple(field.name for field in fields(Limits))
"""What `with` can set for the check."""


@dataclass(frozen=True, slots=True)
class Demand:
    """A diagnostic that must be reported. `line` counts from 1 in the plan; None for wherever it is."""

    severity: str
    code: str
    text: str = ""
    marked: str | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Wish:
    """A line of an `expect` block: its form, the parts of its text, and where it stands in the page."""

    form: str
    source: str
    line: int
    parts: Mapping[str, str | None]

    def part(self, name: str) -> str:
        """Return a part of the text; empty when it is not there."""
        return self.parts.get(name) or ""

    @property
    def text(self) -> str:
        """The text that the line quotes."""
        return read_text(self.part("text") or '""')

    @property
    def demands(self) -> list[Demand]:
        """The diagnostics that the line names."""
        return read_demands(self.part("demands"))

    @property
    def settings(self) -> dict[str, Any]:
        """What the line sets."""
        return read_call(f"settings({self.part('settings')})")[1]


def read_wish(source: str, line: int) -> Wish:
    """Return the expectation that a line is. Raises `ValueError`."""
    for form, pattern in _FORMS.items():
        if match := pattern.match(source):
            wish = Wish(form, source, line, match.groupdict())
            _verify(wish)
            return wish
    raise ValueError("this is not an expectation")


def _verify(wish: Wish) -> None:
    """Read all parts once, so that a wrong one is found before anything runs."""
    _ = wish.text
    json.loads(wish.part("json") or "null")
    for name in ("call", "one", "other"):
        if text := wish.part(name):
            read_call(text)
    if wish.form == "diagnostic":
        _ = wish.demands
    if wish.form == "with":
        for name in wish.settings:
            if name not in SETTINGS and name not in LIMITS:
                raise ValueError(f"there is no setting `{name}`; there are {', '.join((*SETTINGS, *LIMITS))}")


def read_text(quoted: str) -> str:
    """Return the text that is written as a JSON string."""
    return cast(str, json.loads(quoted))


def read_texts(quoted: str) -> list[str]:
    """Return the texts that are written as JSON strings, one after the other."""
    return [read_text(each) for each in re.findall(_STRING, quoted)]


def read_demands(text: str) -> list[Demand]:
    """Return the diagnostics that a text such as `error: [TP302] at "marked": "said"; [TP303]` names.

    Raises `ValueError`.
    """
    found: list[Demand] = []
    severity = "error"
    at = 0
    while at < len(text):
        match = _DEMAND.match(text, at)
        if match is None:
            raise ValueError('a demand looks like `error: [TP302] at "marked": "part of the message"`')
        severity = match["severity"] or severity
        marked = read_text(match["marked"]) if match["marked"] else None
        found.append(Demand(severity, match["code"], read_text(match["text"] or '""'), marked))
        at = match.end()
    return found


def read_call(text: str) -> tuple[str, dict[str, Json]]:
    """Return the tool and the arguments of a call written as `tool(argument=value)`, or of a tool's name alone.

    Raises `ValueError`.
    """
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise ValueError(str(error)) from None
    if isinstance(node, ast.Name):
        return node.id, {}
    if not isinstance(node, ast.Call) or node.args or any(keyword.arg is None for keyword in node.keywords):
        raise ValueError("a call looks like `tool(argument=value)`")
    arguments = {str(keyword.arg): cast(Json, ast.literal_eval(keyword.value)) for keyword in node.keywords}
    return ast.unparse(node.func), arguments
