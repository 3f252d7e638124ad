"""Diagnostics -> SARIF 2.1.0, the format that editors and code scanners read.

One run of one tool: its rules are the entries of the catalogue that the results cite, a result is a diagnostic. Notes
and help stand in the result's message, below its first line, because viewers show nothing else. The specification is
OASIS "Static Analysis Results Interchange Format (SARIF) Version 2.1.0"; the numbers below are its sections.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from toolplan.diagnostics.diagnostic import Diagnostic, Explanation, load_catalogue
from toolplan.diagnostics.source import Place, Source
from toolplan.values import Json

__all__ = ["SCHEMA", "artifact_uri", "sarif"]

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
HELP_PAGE = "docs/reference/errors.md"
"""The page with an anchor for each code."""


def sarif(
    diagnostics: Sequence[Diagnostic],
    source: Source | None,
    uri: str,
    *,
    version: str = "",
    failures: Sequence[str] = (),
) -> dict[str, Json]:
    """Return the SARIF log of one check.

    `uri` is the plan's address, as from `artifact_uri`. `failures` are reasons why there was no plan to check; they
    become notifications (3.20.21), and the log then says that the execution did not succeed. Lines and columns count
    from 1, columns in characters; ends are exclusive (3.30).
    """
    catalogue = load_catalogue()
    cited = sorted({diagnostic.code for diagnostic in diagnostics})
    index = {code: at for at, code in enumerate(cited)}
    rules: list[Json] = [_rule(catalogue[code]) if code in catalogue else {"id": code} for code in cited]
    driver: dict[str, Json] = {"name": "toolplan", "rules": rules}
    if version:
        driver["version"] = version
    notices: list[Json] = [{"level": "error", "message": {"text": failure}} for failure in failures]
    invocation: dict[str, Json] = {"executionSuccessful": not failures}
    if notices:
        invocation["toolExecutionNotifications"] = notices
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "invocations": [invocation],
                "artifacts": [{"location": {"uri": uri}}],
                "columnKind": "unicodeCodePoints",
                "results": [_result(each, index[each.code], source, uri) for each in diagnostics],
            }
        ],
    }


def artifact_uri(path: str) -> str:
    """Return the URI of a file named on a command line: relative for a relative path, so that a log can be moved."""
    return f"file://{quote(path)}" if path.startswith("/") else quote(path.removeprefix("./"))


def _rule(entry: Explanation) -> dict[str, Json]:
    story = entry.story.strip()
    examples = [(head, text.strip("\n")) for head, text in (("wrong", entry.wrong), ("right", entry.right)) if text]
    fence = "`" * 4  # examples may be replies with fences of their own
    return {
        "id": entry.code,
        "shortDescription": {"text": entry.title},
        "fullDescription": {"text": story},
        "helpUri": f"{HELP_PAGE}#{entry.code.lower()}",
        "help": {
            "text": "\n\n".join([story, *(f"{head}:\n{text}" for head, text in examples)]),
            "markdown": "\n\n".join([story, *(f"{head}:\n{fence}\n{text}\n{fence}" for head, text in examples)]),
        },
        "defaultConfiguration": {"level": str(entry.severity)},
    }


def _result(diagnostic: Diagnostic, rule: int, source: Source | None, uri: str) -> dict[str, Json]:
    lines = [diagnostic.message, *(f"note: {note}" for note in diagnostic.notes)]
    if diagnostic.help:
        lines.append(f"help: {diagnostic.help}")
    result: dict[str, Json] = {
        "ruleId": diagnostic.code,
        "ruleIndex": rule,
        "level": str(diagnostic.severity),
        "message": {"text": "\n".join(lines)},
        "locations": [_location(diagnostic.place, source, uri)],
    }
    related: list[Json] = []
    for number, mark in enumerate(diagnostic.others, 1):
        spot: dict[str, Json] = {"id": number, **_location(mark.place, source, uri)}
        if mark.label:
            spot["message"] = {"text": mark.label}
        related.append(spot)
    if related:
        result["relatedLocations"] = related
    return result


def _location(place: Place, source: Source | None, uri: str) -> dict[str, Json]:
    physical: dict[str, Json] = {"artifactLocation": {"uri": uri, "index": 0}}
    span = source.locate(place) if source else None
    if source and span:
        start, end = source.line_and_column(span[0]), source.line_and_column(span[1])
        physical["region"] = {
            "startLine": start[0],
            "startColumn": start[1],
            "endLine": end[0],
            "endColumn": end[1],
            "snippet": {"text": source.text[span[0] : span[1]]},
        }
    location: dict[str, Json] = {"physicalLocation": physical}
    if path := place.json_path():
        location["logicalLocations"] = [{"fullyQualifiedName": path}]
    return location
