"""Drawing diagnostics as text, with marks that stand under the right column for wide characters too."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from toolplan.diagnostics.diagnostic import Diagnostic, Mark
from toolplan.diagnostics.source import Source

__all__ = ["render", "render_all"]

MAX_LINE = 160
"""Longer source lines are cut around the mark; JSON plans are often one single line."""


def render_all(diagnostics: Iterable[Diagnostic], source: Source | None) -> str:
    """Return all diagnostics, a blank line between them."""
    return "\n\n".join(render(d, source) for d in diagnostics)


def render(diagnostic: Diagnostic, source: Source | None = None) -> str:
    """Return `diagnostic` in the style of a compiler: head, place, marked source lines, notes, help."""
    lines = [f"{diagnostic.severity}[{diagnostic.code}]: {diagnostic.message}"]
    gutter = ""
    span = source.locate(diagnostic.place) if source else None
    if source and span:
        line, column = source.line_and_column(span[0])
        path = diagnostic.place.json_path()
        marks = [(span, "^", diagnostic.label)]
        marks += [(found, "-", mark.label) for mark in diagnostic.others if (found := _locate(source, mark))]
        drawn = sorted((_Line.of(source, *mark) for mark in marks), key=lambda line: (line.number, line.sign != "^"))
        gutter = " " * len(str(drawn[-1].number))
        lines.append(f"{gutter}--> {source.name}:{line}:{column}" + (f"  ({path})" if path else ""))
        lines.append(f"{gutter} |")
        shown: tuple[int, str] | None = None
        for entry in drawn:
            if (entry.number, entry.text) != shown:
                lines.append(f"{entry.number:>{len(gutter)}} | {entry.text}")
                shown = (entry.number, entry.text)
            under = " " * entry.indent + entry.sign * entry.width
            lines.append(f"{gutter} | {under} {entry.label}".rstrip())
    elif diagnostic.place.json_path():
        lines.append(f"--> {source.name if source else 'plan'}  ({diagnostic.place.json_path()})")
    for kind, text in [*(("note", note) for note in diagnostic.notes), ("help", diagnostic.help)]:
        if text:
            first, *rest = text.split("\n")
            lines.append(f"{gutter} = {kind}: {first}")
            lines += [f"{gutter}         {more}" for more in rest]
    return "\n".join(lines)


def _locate(source: Source, mark: Mark) -> tuple[int, int] | None:
    return source.locate(mark.place)


@dataclass(frozen=True, slots=True)
class _Line:
    """A source line with one mark under it."""

    number: int
    text: str
    indent: int
    width: int
    sign: str
    label: str

    @classmethod
    def of(cls, source: Source, offsets: tuple[int, int], sign: str, label: str) -> _Line:
        start, end = offsets
        number, column = source.line_and_column(start)
        line_start = start - column + 1
        line_end = source.text.find("\n", line_start)
        line = source.text[line_start : line_end if line_end >= 0 else len(source.text)].rstrip("\r")
        end = min(end, line_start + len(line))
        left, right = start - line_start, max(end - line_start, start - line_start + 1)
        if len(line) > MAX_LINE:
            cut = max(0, left - MAX_LINE // 2)
            right = min(right, cut + MAX_LINE)
            line = ("…" if cut else "") + line[cut : cut + MAX_LINE] + ("…" if cut + MAX_LINE < len(line) else "")
            shift = (1 if cut else 0) - cut
            left, right = left + shift, right + shift
        clean = "".join(" " if ch == "\t" or not ch.isprintable() else ch for ch in line)
        marked = clean[left:right]
        return cls(number, clean, _width(clean[:left]), _width(marked) or 1, sign, label)


def _width(text: str) -> int:
    """Return how many terminal columns `text` takes (UAX #11: wide and fullwidth characters take two)."""
    return sum(0 if unicodedata.combining(ch) else 2 if unicodedata.east_asian_width(ch) in "WF" else 1 for ch in text)
