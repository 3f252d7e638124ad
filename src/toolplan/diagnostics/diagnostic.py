"""What a diagnostic consists of, and the registry of codes."""

from __future__ import annotations

import enum
import functools
import importlib
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import ParamSpec

from toolplan.diagnostics.source import NOWHERE, Place, Source
from toolplan.values import Json

__all__ = ["Diagnostic", "Explanation", "Mark", "Severity", "catalogue", "explained", "load_catalogue", "nearest"]


class Severity(enum.StrEnum):
    """Errors stop a plan; warnings and notes go along with it."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Mark:
    """A place with the few words to write under it."""

    place: Place
    label: str = ""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One located message: what is wrong (`message`), facts (`notes`), what to write instead (`help`).

    `label` stands under the marked text; `others` mark the other half of a conflict.
    """

    code: str
    message: str
    place: Place = NOWHERE
    label: str = ""
    others: tuple[Mark, ...] = ()
    notes: tuple[str, ...] = ()
    help: str | None = None
    severity: Severity = Severity.ERROR

    def to_dict(self, source: Source | None = None) -> dict[str, Json]:
        """Return the same facts without drawing, for a model or a program."""
        shown: dict[str, Json] = {"code": self.code, "severity": str(self.severity), "message": self.message}
        shown |= _spot(self.place, source)
        if self.others:
            shown["others"] = [{**_spot(mark.place, source), "label": mark.label} for mark in self.others]
        if self.notes:
            shown["notes"] = list(self.notes)
        if self.help:
            shown["help"] = self.help
        return shown


def _spot(place: Place, source: Source | None) -> dict[str, Json]:
    shown: dict[str, Json] = {}
    if path := place.json_path():
        shown["path"] = path
    span = source.locate(place) if source else None
    if source and span:
        line, column = source.line_and_column(span[0])
        shown |= {"line": line, "column": column, "text": source.text[span[0] : span[1]]}
    return shown


@dataclass(frozen=True, slots=True)
class Explanation:
    """The long story behind a code, as `toolplan explain` prints it and the reference page shows it.

    `wrong` and `right` are plans in JSON notation (or other text, where the code is about text that is no plan).
    """

    code: str
    title: str
    story: str
    wrong: str
    right: str
    severity: Severity = field(default=Severity.ERROR)


catalogue: dict[str, Explanation] = {}
"""Every code's explanation, filled by `explained`."""

P = ParamSpec("P")


def load_catalogue() -> dict[str, Explanation]:
    """Return the explanations of all codes, sorted; imports the modules of the catalogue that nobody needed so far."""
    package = __name__.rpartition(".")[0]
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
        importlib.import_module(f"{package}.{module.name}")
    return dict(sorted(catalogue.items()))


def explained(
    code: str, title: str, *, story: str, wrong: str, right: str, severity: Severity = Severity.ERROR
) -> Callable[[Callable[P, Diagnostic]], Callable[P, Diagnostic]]:
    """Register the function that words the diagnostics of `code`, with the long story for `toolplan explain`.

    The function returns a `Diagnostic` whose code and severity are filled in here.
    """
    if code in catalogue:
        raise AssertionError(f"diagnostic code {code} is defined twice")
    catalogue[code] = Explanation(code, title, story, wrong, right, severity)

    def wrap(function: Callable[P, Diagnostic]) -> Callable[P, Diagnostic]:
        @functools.wraps(function)
        def worded(*args: P.args, **kwargs: P.kwargs) -> Diagnostic:
            d = function(*args, **kwargs)
            return Diagnostic(code, d.message, d.place, d.label, d.others, d.notes, d.help, severity)

        return worded

    return wrap


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the one known name that `name` was probably meant to be, or None.

    Case and underscores are folded; about a third of the letters may differ (Damerau-Levenshtein distance, optimal
    string alignment variant), so none in a name of one or two; of two Chinese characters, which say as much as four
    letters, one may. Two equally near names give none.
    """
    folded = _fold(name)
    wide = sum(ch >= "\u2e80" for ch in folded)
    allowed = max(len(folded) // 3, 1 if wide >= 2 else 0)
    ranked: list[tuple[int, str]] = []
    for candidate in dict.fromkeys(known):
        other = _fold(candidate)
        if abs(len(other) - len(folded)) <= allowed and candidate != name:
            distance = _distance(folded, other, allowed)
            if distance <= allowed:
                ranked.append((distance, candidate))
    if not ranked:
        return None
    ranked.sort()
    return ranked[0][1] if len(ranked) == 1 or ranked[0][0] < ranked[1][0] else None


def _fold(name: str) -> str:
    return name.casefold().replace("_", "").replace("-", "")


def _distance(a: str, b: str, limit: int) -> int:
    if a == b:
        return 0
    before: list[int] = []
    previous = list(range(len(b) + 1))
    for i, left in enumerate(a, 1):
        current = [i]
        for j, right in enumerate(b, 1):
            cost = min(previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (left != right))
            if i > 1 and j > 1 and left == b[j - 2] and a[i - 2] == right:
                cost = min(cost, before[j - 2] + 1)
            current.append(cost)
        if min(current) > limit:
            return limit + 1
        before, previous = previous, current
    return previous[-1]
