"""Programs whose meaning CPython can say, and the tools they call."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from toolplan.errors import ToolFailed
from toolplan.values import Json

ROWS: list[Json] = [
    {"id": 1, "name": "Ann", "city": "Oslo", "price": 30, "tags": ["a", "b"], "ok": True},
    {"id": 2, "name": "Bo", "city": "Rome", "price": 10, "tags": [], "ok": False},
    {"id": 3, "name": "Cy", "city": "Oslo", "price": 20, "tags": ["c"], "ok": True},
]


def _get(id: int) -> Json:
    found = next((row for row in ROWS if row["id"] == id), None)  # type: ignore[index, call-overload]
    if found is None:
        raise ToolFailed(f"no row {id}")
    return found


TOOLS: dict[str, Any] = {
    "rows": lambda: ROWS,
    "get": _get,
    "find": lambda city: [row for row in ROWS if row["city"] == city],  # type: ignore[index, call-overload]
    "double": lambda x: x * 2,
    "is_even": lambda x: x % 2 == 0,
    "send": lambda to, text="": {"sent": to, "text": text},
    "page": lambda n: {"found": [n, n + 1], "next": n + 1 if n < 4 else None},
    "pair": lambda: [7, 8],
    "nothing": lambda: None,
    "fail": lambda: (_ for _ in ()).throw(ToolFailed("out of order")),
}

PROGRAMS: dict[str, str] = dict(
    re.findall(
        r"^## ([^\n]+)\n\n```python\n(.*?)\n```$",
        Path(__file__).with_suffix(".md").read_text(encoding="utf-8"),
        re.DOTALL | re.MULTILINE,
    )
)
