"""Text as a person may look at it: nothing in it steers a terminal, hides, turns round, or draws lines of its own.

Arguments and results carry other people's text. On a terminal an escape code could clear what stands above it; on a
card, where a person decides, a line end could draw a second call, and characters without a shape could make one
address look like another. They are shown by their codes instead.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["in_one_line", "visible"]

_STEERING = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)
"""Control characters other than tab and line end, those that turn the direction of writing, and those without a
shape. What joins letters (U+200C, U+200D) belongs to some scripts and pictures."""
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def visible(text: str) -> str:
    """Return text in which nothing can steer a terminal. Lines stay lines."""
    return _STEERING.sub(lambda found: _code(found[0]), text.replace("\r\n", "\n"))


def in_one_line(text: str) -> str:
    """Return text as one line in which every character can be seen; a blank of another kind is shown by its code."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_shown, text))


def _shown(char: str) -> str:
    category = unicodedata.category(char)
    return _code(char) if category in _HIDDEN or (category == "Zs" and char not in " \u3000") else char


def _code(char: str) -> str:
    if char in _NAMED:
        return _NAMED[char]
    code = ord(char)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
