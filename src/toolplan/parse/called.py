"""Whether the calls that stand in a reply's text between the marks of a format are meant: `meant` for formats.

Marks are a stronger sign than JSON in prose: models are trained to write them where they call. So calls at the end of a
reply are meant, unless the sentence before them raises doubt or leads into them without announcing them. A call in the
middle of a sentence (`Use <invoke ...>...</invoke> to delete.`) is unclear at best, and text behind the calls that does
more than close the reply makes all of them unclear. JSON without marks is judged as a plan is: by every word around it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from toolplan.parse.announcing import Matter, announces, closes, is_doubtful, sentences
from toolplan.parse.formats import read_calls
from toolplan.parse.formats.loose import UNMARKED
from toolplan.parse.formats.parts import BrokenCall, CallPart, Part, TextPart
from toolplan.parse.meant import UNCLEAR, Meaning, asks_or_refuses, how_meant, last_clause, refuses

__all__ = ["how_called", "with_doubts"]

REACH = 1000
"""Of the text before calls, so much is looked at."""
_FULL_STOPS = (".", "!", "…", "。", "！", ")", "）")


def how_called(parts: Sequence[Part], matter: Matter) -> Meaning:
    """Return the verdict on the calls in a reply that consists of these parts; `matter` is what they may be about."""
    said = ""
    before: list[str] = []
    """The text before each call, since the last one."""
    for part in parts:
        if isinstance(part, TextPart):
            said += part.text
        elif isinstance(part, CallPart | BrokenCall):
            before.append(said)
            said = ""
    if not before:
        return "meant"
    inline = [_is_inline(left, right) for left, right in zip(before, [*before[1:], said], strict=True)]
    if all(inline) and (asks_or_refuses(said) or any(map(refuses, before))):
        return "spoken of"
    matter = matter.also(*(str(part.arguments) for part in parts if isinstance(part, CallPart)))
    is_clear = not any(inline) and closes(said, matter) and all(_leads_to_calls(text, matter) for text in before)
    return "meant" if is_clear else "unclear"


def with_doubts(parts: Iterable[Part], text: str, matter: Matter) -> tuple[Part, ...]:
    """Return the parts of a reply after the verdict: its calls with a repair that says it, or its `text` as text."""
    parts = tuple(parts)
    is_unmarked = any(isinstance(part, CallPart) and UNMARKED in part.repairs for part in parts)
    meaning = _how_unmarked(parts, matter) if is_unmarked else how_called(parts, matter)
    if is_unmarked:
        parts = tuple(_without(part, UNMARKED) for part in parts)
    if meaning == "spoken of":
        return read_calls(text, "none")
    if meaning == "meant":
        return parts
    return tuple(
        replace(part, repairs=(*part.repairs, UNCLEAR)) if isinstance(part, CallPart) else part for part in parts
    )


def _how_unmarked(parts: Sequence[Part], matter: Matter) -> Meaning:
    """Return the verdict on calls without marks, which stand one behind the other."""
    calls = [at for at, part in enumerate(parts) if isinstance(part, CallPart | BrokenCall)]
    before, behind = (
        "".join(part.text for part in some if isinstance(part, TextPart))
        for some in (parts[: calls[0]], parts[calls[-1] :])
    )
    written = (f"{part.name} {part.arguments}" for part in parts if isinstance(part, CallPart))
    return how_meant(before, behind, matter.also(*written))


def _without(part: Part, repair: str) -> Part:
    if isinstance(part, CallPart) and repair in part.repairs:
        return replace(part, repairs=tuple(each for each in part.repairs if each != repair))
    return part


def _is_inline(before: str, behind: str) -> bool:
    """Whether a call between these texts stands in a line with text on both sides."""
    return bool(before.rpartition("\n")[2].strip() and behind.partition("\n")[0].strip())


def _leads_to_calls(before: str, matter: Matter) -> bool:
    """Whether calls behind this text are meant, as far as it tells."""
    said = sentences(before[-REACH:])
    if not said or announces(said[-1], matter):
        return True
    return said[-1].endswith(_FULL_STOPS) and not is_doubtful(last_clause(said[-1]))
