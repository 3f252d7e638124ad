"""Where the public data sets and recorded replies are: beside the project, or where TOOLPLAN_DATA says."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

DATA = Path(os.environ.get("TOOLPLAN_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")


def find(*parts: str) -> Path | None:
    """Return the file or folder of a data set, or None when it is not there."""
    path = DATA.joinpath(*parts)
    return path if path.exists() else None


def lines(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a file with one JSON object a line."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


class Answers:
    """Recorded `ask_model` answers, found by question and data; a differing rendering of the same data is forgiven."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self._answers = {(row["question"], _words(row["data"])): row["answer"] for row in rows}

    def find(self, question: str, data: Any) -> Any:
        """Return the answer, or raise `LookupError`."""
        key = (question, _words(data))
        if key not in self._answers:
            raise LookupError(f"no answer is recorded to {question[:60]!r}")
        return self._answers[key]


def _words(data: Any) -> tuple[str, ...]:
    """Return what data says whatever the order of its keys and the form of its dates."""
    return tuple(sorted(re.findall(r"\w+", json.dumps(data, ensure_ascii=False))))
