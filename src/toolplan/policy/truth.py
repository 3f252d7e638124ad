"""True, false, and not known yet (None), put together."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["all_of", "any_of", "as_wanted"]


def all_of(answers: Iterable[bool | None]) -> bool | None:
    """Return whether all are true; None where that is not known."""
    undecided = False
    for answer in answers:
        if answer is False:
            return False
        undecided = undecided or answer is None
    return None if undecided else True


def any_of(answers: Iterable[bool | None]) -> bool | None:
    """Return whether one is true; None where that is not known."""
    undecided = False
    for answer in answers:
        if answer:
            return True
        undecided = undecided or answer is None
    return None if undecided else False


def as_wanted(answer: bool | None, wanted: bool) -> bool | None:
    """Return whether an answer is the wanted one; None where there is none yet."""
    return None if answer is None else answer == wanted
