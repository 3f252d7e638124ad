"""Text in which nothing steers, hides or turns round."""

from __future__ import annotations

import pytest

from toolplan.visible import in_one_line, visible


@pytest.mark.parametrize(
    ("text", "lines", "line"),
    [
        ("plain text, 中文 👍", "plain text, 中文 👍", "plain text, 中文 👍"),
        ("a\tb\nc\r\nd", "a\tb\nc\nd", "a\\tb\\nc\\r\\nd"),
        ("\x1b[2J\x07\x9b\x7f", "\\x1b[2J\\x07\\x9b\\x7f", "\\x1b[2J\\x07\\x9b\\x7f"),
        ("a\u202eb\u2066", "a\\u202eb\\u2066", "a\\u202eb\\u2066"),
        ("a\u200bb\ufeff\u2028", "a\\u200bb\\ufeff\\u2028", "a\\u200bb\\ufeff\\u2028"),
        ("\U000e0041", "\\U000e0041", "\\U000e0041"),
        ("a\u00a0b\u200dc", "a\u00a0b\u200dc", "a\\xa0b\\u200dc"),
    ],
)
def test_what_cannot_be_seen_is_shown_by_its_code(text: str, lines: str, line: str) -> None:
    assert visible(text) == lines
    assert in_one_line(text) == line
