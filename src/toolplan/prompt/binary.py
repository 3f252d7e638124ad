"""Files in values (pictures, sound, archives, as base64 text): a model is told of them, and is not sent them.

As text they would cost a thousand tokens a kilobyte and say nothing; cut in the middle they make providers refuse the
whole request. The plan works on them as they are. What is base64 is seen by its looks: nothing declares it.
"""

from __future__ import annotations

import base64
import binascii
import itertools
import re
from collections.abc import Iterable

from toolplan.prompt.wording import Wording
from toolplan.values import Json

__all__ = ["without_files"]

SMALLEST = 256
"""Shorter text is shown as it is, whatever it looks like: it may be a key or a hash."""

_URL = re.compile(rf"data:([\w.+-]+/[\w.+-]+)?(?:;[\w.=+-]+)*;base64,([A-Za-z0-9+/_-]{{{SMALLEST},}}={{0,2}})")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
_LINE_LENGTHS = (60, 64, 76)
_TYPE_KEYS = ("mimeType", "mime_type", "media_type", "mediaType", "contentType", "content_type")
_BEGINNINGS = {
    b"\x89PNG": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"%PDF": "application/pdf",
    b"PK\x03\x04": "application/zip",
    b"\x1f\x8b": "application/gzip",
    b"OggS": "audio/ogg",
    b"ID3": "audio/mpeg",
    b"fLaC": "audio/flac",
}


def without_files(value: Json, words: Wording) -> Json:
    """Return the value with a note of type and size in the place of each file; the same object if there is none."""
    return _without(value, words, None)


def _without(value: Json, words: Wording, declared: str | None) -> Json:
    if isinstance(value, str):
        return _text_without(value, words, declared)
    if isinstance(value, list):
        return _changed(value, [_without(item, words, declared) for item in value])
    if isinstance(value, dict):
        declared = next((str(value[key]) for key in _TYPE_KEYS if isinstance(value.get(key), str)), declared)
        items = [_without(item, words, declared) for item in value.values()]
        changed = _changed(list(value.values()), items)
        return dict(zip(value, items, strict=True)) if changed is items else value
    return value


def _changed(old: list[Json], new: list[Json]) -> list[Json]:
    return old if all(a is b for a, b in zip(old, new, strict=True)) else new


def _text_without(text: str, words: Wording, declared: str | None) -> str:
    if len(text) < SMALLEST:
        return text
    if "base64," in text:
        return _URL.sub(lambda found: _note(found[2], found[1] or declared, words), text)
    data = _as_one_line(text)
    return _note(data, declared, words) if data is not None else text


def _as_one_line(text: str) -> str | None:
    """Return the base64 text without its line ends, or None when it is something else."""
    if not text.isascii() or " " in text[:100]:
        return None
    lines = text.split()
    if len(lines) > 1 and (len(lines[0]) not in _LINE_LENGTHS or len(set(map(len, lines[:-1]))) > 1):
        return None
    data = "".join(lines)
    is_file = _is_varied(data[:SMALLEST]) or _type_of(data) is not None
    return data if is_file and _BASE64.fullmatch(data) else None


def _is_varied(beginning: str) -> bool:
    """Whether the characters are as mixed as those of encoded bytes; words, numbers and repetitions are not."""
    return (
        len(set(beginning)) >= 30
        and any(map(str.isdigit, beginning))
        and _changes_of_case(beginning) > len(beginning) // 8
    )


def _changes_of_case(text: Iterable[str]) -> int:
    cases = [character.isupper() for character in text if character.isalpha()]
    return sum(a != b for a, b in itertools.pairwise(cases))


def _note(data: str, declared: str | None, words: Wording) -> str:
    size = len(data) * 3 // 4 - data[-2:].count("=")
    return words.file.format(kind=declared or _type_of(data) or words.file_of_unknown_type, size=size)


def _type_of(data: str) -> str | None:
    try:
        beginning = base64.b64decode(data[:32], altchars=b"-_" if set("-_") & set(data[:32]) else None)
    except (binascii.Error, ValueError):
        return None
    if beginning[:4] == b"RIFF":
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(beginning[8:12])
    return next((kind for start, kind in _BEGINNINGS.items() if beginning.startswith(start)), None)
