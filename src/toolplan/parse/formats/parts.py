"""What a reply consists of once it has been read: text, thinking, calls, and calls that could not be read.

A scanner gives parts while the reply arrives. `settled` makes of them what the whole reply says: pieces of text joined,
and everything before a `ThinkingPart` that is `all_before` counted as thinking too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from toolplan.diagnostics import Diagnostic
from toolplan.values import Json

__all__ = ["BrokenCall", "CallPart", "Part", "TextPart", "ThinkingPart", "settled"]


@dataclass(frozen=True, slots=True)
class TextPart:
    """A piece of what the model says to the user."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkingPart:
    """A piece of what the model says to itself.

    `all_before`: a closing tag without its opening one has arrived, because the server kept that for itself. All parts
    so far were thinking: their text was not meant for the user, and their calls were rehearsed, not made. Positions
    begin again.
    """

    text: str
    all_before: bool = False


@dataclass(frozen=True, slots=True)
class CallPart:
    """One call. `position` counts the calls of a reply from 0, broken ones included; `id` is a label, unique in it.

    `repairs` says in one sentence each what had to be mended to read it; a sound call has none.
    """

    position: int
    id: str
    name: str
    arguments: dict[str, Json]
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BrokenCall:
    """A call that cannot be made, and why. It gets an error for its result; the other calls are not concerned."""

    position: int
    id: str
    name: str | None
    diagnostic: Diagnostic


Part: TypeAlias = TextPart | ThinkingPart | CallPart | BrokenCall


def settled(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Return the parts of a whole reply: neighbouring pieces joined, rehearsed calls left out.

    Text that turned out to be thinking is thinking; the calls in it are gone.
    """
    found: list[Part] = []
    kind: type[TextPart] | type[ThinkingPart] = TextPart
    pieces: list[str] = []
    thought: list[str] = []
    """What a late end of thinking has taken back."""

    def finish() -> None:
        if pieces:
            found.append(kind("".join(pieces)))
            pieces.clear()

    for part in parts:
        if isinstance(part, ThinkingPart) and part.all_before:
            finish()
            thought += [each.text for each in found if isinstance(each, TextPart | ThinkingPart)]
            thought.append(part.text)
            found.clear()
        elif isinstance(part, TextPart | ThinkingPart):
            if part.text:
                if not isinstance(part, kind):
                    finish()
                    kind = type(part)
                pieces.append(part.text)
        else:
            finish()
            found.append(part)
    finish()
    if any(thought):
        first = found[0] if found else None
        if isinstance(first, ThinkingPart):
            thought.append(first.text)
            del found[0]
        found.insert(0, ThinkingPart("".join(thought)))
    return tuple(found)
