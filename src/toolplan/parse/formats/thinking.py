"""Thinking in the text of a reply: between tags, or before a closing tag whose opening one the server kept."""

from __future__ import annotations

from toolplan.parse.formats.cursor import Marks, Reader
from toolplan.parse.formats.format import Opener
from toolplan.parse.formats.scan import Scan
from toolplan.parse.thinking_tags import OTHERS, WORDS

__all__ = ["THINKING", "THINKING_ENDS"]

_TAGS = {
    **{f"<{each}>": f"</{each}>" for word in WORDS for each in (word, word.capitalize(), word.upper())},
    **OTHERS,
}
THINKING_ENDS = frozenset(_TAGS.values())
"""The closing tags."""
_ENDS = {begin: Marks((end,)) for begin, end in _TAGS.items()}


def _thinking(scan: Scan, mark: str, start: int) -> Reader[None]:
    """Pass thinking up to its closing tag, piece by piece. Without one, all the rest is thinking."""
    end = _ENDS[mark]
    while True:
        text, closing = scan.cursor.piece(end)
        scan.thinking(text)
        if closing:
            scan.mark_thought()
            return
        if scan.cursor.closed:
            return
        yield


def _late_end(scan: Scan, mark: str, start: int) -> Reader[None]:
    """Everything so far was thinking: its opening tag was in the prompt, or the server kept it."""
    if scan.before == "`":  # somebody speaks of the tag
        scan.text(mark)
        return
    scan.thinking("", all_before=True)
    scan.mark_thought()
    return
    yield


THINKING = (
    Opener(tuple(_TAGS), _thinking, is_call=False),
    Opener(tuple(_TAGS.values()), _late_end, is_call=False),
)
"""What every format reads."""
