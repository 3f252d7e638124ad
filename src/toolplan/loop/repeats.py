"""Notices a model that goes round in circles: the same call, with the same arguments, again.

One that was made is a repetition when its results are the same; one that was refused, whatever the reason.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from toolplan.known import fingerprint
from toolplan.schedule import StepRecord
from toolplan.values import Json

__all__ = ["Repeats"]


class Repeats:
    """What has come of each call so far. A call is a repetition when its last `most` results were all the same."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._results: dict[tuple[str, str], list[str]] = {}
        self._unknown: dict[tuple[str, str], str] = {}
        self._refused: dict[tuple[str, str], int] = {}

    def note(self, record: StepRecord) -> None:
        """Note what came of a call that was made."""
        if record.outcome not in ("succeeded", "failed", "unknown"):
            return
        call = fingerprint(record.tool, record.arguments or {})
        came = [record.outcome, record.error if record.outcome != "succeeded" else record.result]
        self._results.setdefault(call, []).append(json.dumps(came, sort_keys=True, ensure_ascii=False))
        if record.outcome == "unknown" or (record.outcome == "failed" and record.is_doubtful):
            self._unknown[call] = record.id

    def times(self, tool: str, arguments: Mapping[str, Json]) -> int | None:
        """Return how often this very call has had the same result, when that is too often; else None."""
        results = self._results.get(fingerprint(tool, arguments), [])
        same = 0
        for result in reversed(results):
            if result != results[-1]:
                break
            same += 1
        return same if same >= self._most else None

    def refused(self, tool: str, arguments: Json) -> bool:
        """Note that a call, as the model wrote it, is refused; return whether it has been refused too often."""
        call = fingerprint(tool, {"as written": arguments})
        self._refused[call] = self._refused.get(call, 0) + 1
        return self._refused[call] > self._most

    def left_open(self, tool: str, arguments: Mapping[str, Json]) -> bool:
        """Return whether this call was made before and nobody knows whether it took effect."""
        return fingerprint(tool, arguments) in self._unknown
