"""The tags around thinking that a server has left in the text of a reply: one table for all who read replies.

The patterns are for `re.IGNORECASE`, under which tags that look like those of HTML count in any letters; the others,
which have brackets as data has them, only as they are.
"""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = ["CLOSING", "LONGEST", "OPENING", "OTHERS", "THINKING", "WORDS", "end_of_thinking"]

WORDS = ("think", "thinking", "thought", "reasoning", "reflection", "scratchpad")
"""What stands in the tags `<WORD>` and `</WORD>`."""
OTHERS = {
    "<seed:think>": "</seed:think>",
    "<mm:think>": "</mm:think>",
    "[THINK]": "[/THINK]",
    "◁think▷": "◁/think▷",
    "<|START_THINKING|>": "<|END_THINKING|>",
}
"""Other opening tags, and what closes each."""


def _exactly(tag: str) -> str:
    return f"(?-i:{re.escape(tag)})"


_PAIRS = (
    *((f"<{word}>", f"</{word}>") for word in WORDS),
    *((_exactly(begin), _exactly(end)) for begin, end in OTHERS.items()),
)
OPENING = "|".join(begin for begin, _ in _PAIRS)
"""The pattern of an opening tag."""
CLOSING = "|".join(end for _, end in _PAIRS)
"""The pattern of a closing tag."""
THINKING = "|".join(rf"{begin}.*?(?:{end}|\Z)" for begin, end in _PAIRS)
"""The pattern of thinking with its tags, for `re.DOTALL`. Without a closing one, all the rest is thinking."""
LONGEST = max(map(len, (*(f"</{word}>" for word in WORDS), *OTHERS, *OTHERS.values())))
"""The length of the longest tag."""


@lru_cache(maxsize=64)
def end_of_thinking(opening: str) -> re.Pattern[str]:
    """Return the pattern of what closes the thinking that this tag opens."""
    closing = OTHERS.get(opening) or f"</{opening[1:]}"
    return re.compile(re.escape(closing), re.IGNORECASE)
