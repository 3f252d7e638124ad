"""Values cut down to what there is room for, saying in place how much is missing.

Only what is shown to a model is shortened; the plan itself always works on whole values. Room is measured in characters
of JSON text and shared out in order: each element may use an even part of what is left, and what it does not need goes
to those after it.
"""

from __future__ import annotations

import json

from toolplan.prompt.binary import without_files
from toolplan.prompt.wording import Wording
from toolplan.values import Json

__all__ = ["as_json", "shortened"]

_SMALLEST_SHARE = 120
"""Elements are left out rather than cut to less than this, so that what is shown can be read."""

_MORE = "…"
"""The key that a shortened object's note stands under."""


def as_json(value: Json) -> str:
    """Return `value` as readable one-line JSON."""
    return json.dumps(value, ensure_ascii=False)


def shortened(value: Json, room: int, words: Wording) -> Json:
    """Return `value` whole if it fits into about `room` characters, else as much of its beginning as does.

    Files in it are not shown in any case; see `binary.py`.
    """
    return _shortened(without_files(value, words), room, words)


def _shortened(value: Json, room: int, words: Wording) -> Json:
    if isinstance(value, str):
        if len(value) <= room:
            return value
        kept = max(room, 0)
        if kept < _SMALLEST_SHARE // 4:
            return words.left_out
        return value[:kept] + words.shortened_text.format(left=len(value) - kept, all=len(value))
    if not isinstance(value, list | dict) or len(as_json(value)) <= room:
        return value
    if room < _SMALLEST_SHARE // 4:
        return words.left_out
    if isinstance(value, list):
        items = _fill(value, room, words)
        left = len(value) - len(items)
        return [*items, words.shortened_items.format(left=left, all=len(value))] if left else items
    names = list(value)
    items = _fill([value[name] for name in names], room - sum(len(name) + 4 for name in names[:20]), words)
    fields: dict[str, Json] = dict(zip(names, items, strict=False))
    left = len(names) - len(items)
    return {**fields, _MORE: words.shortened_fields.format(left=left, all=len(names))} if left else fields


def _fill(values: list[Json], room: int, words: Wording) -> list[Json]:
    kept: list[Json] = []
    for index, value in enumerate(values):
        if room <= 0:
            break
        item = _shortened(value, max(room // (len(values) - index), _SMALLEST_SHARE), words)
        kept.append(item)
        room -= len(as_json(item)) + 2
    return kept
