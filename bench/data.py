"""Where the public data sets and recorded replies are: beside the project, or where TOOLPLAN_DATA says."""

from __future__ import annotations

import json
import os
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
    """Recorded `ask_model` answers, found by task, question and data; a differing rendering of the data is forgiven."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self._exact = {(row["id"], row["question"], _canonical(row["data"])): row["answer"] for row in rows}
        self._by_question: dict[tuple[str, str], list[Any]] = {}
        for row in rows:
            self._by_question.setdefault((row["id"], row["question"]), []).append(row["answer"])
        self.misses: list[str] = []

    def find(self, task: str, question: str, data: Any) -> Any:
        """Return the answer, or raise `KeyError`. The only answer to a question counts whatever the data looks like."""
        key = (task, question, _canonical(data))
        if key in self._exact:
            return self._exact[key]
        answers = self._by_question.get((task, question), [])
        if len(answers) == 1:
            return answers[0]
        self.misses.append(task)
        raise KeyError(f"no recorded answer to {question[:60]!r}")


def _canonical(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, sort_keys=True)
