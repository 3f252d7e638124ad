"""What of a long loop is sent to the model: as much as fits, calls never without their results."""

from __future__ import annotations

from collections.abc import Sequence

from toolplan.models import Message
from toolplan.prompt import estimate_tokens

__all__ = ["fitting"]

OVERHEAD = 4
"""Tokens that a message costs besides its text, about."""


def fitting(
    system: Message, before: Sequence[Message], talk: Sequence[Message], budget: int | None, left_out: str
) -> tuple[Message, ...]:
    """Return the messages to send within about `budget` tokens: the system message, the past, the request, its turns.

    The past goes first, then the oldest turns of the request; a turn is an assistant's message with everything that
    answers it. The request and its newest turn always stay. `left_out` (pattern: {left}) is added to the system message
    when turns of the request are gone, so that the model knows.
    """
    whole = (system, *before, *talk)
    if budget is None or _size(whole) <= budget:
        return whole
    request, turns = talk[0], _turns(talk[1:])
    kept: list[list[Message]] = []
    room = budget - _size((system, request))
    for turn in reversed(turns):
        room -= _size(turn)
        if room < 0 and kept:
            break
        kept.append(turn)
    gone = len(turns) - len(kept)
    if gone:
        system = Message("system", f"{system.content}\n\n{left_out.format(left=gone)}")
    past = _turns(before) if not gone else []
    while past and sum(map(_size, past)) > room:
        past.pop(0)
    while past and past[0][0].role != "user":  # an answer without its request means nothing
        past.pop(0)
    return (system, *(m for turn in past for m in turn), request, *(m for turn in reversed(kept) for m in turn))


def _turns(messages: Sequence[Message]) -> list[list[Message]]:
    """Return the messages in groups that belong together: each with the results that follow it."""
    groups: list[list[Message]] = []
    for message in messages:
        if message.role == "tool" and groups:
            groups[-1].append(message)
        else:
            groups.append([message])
    return groups


def _size(messages: Sequence[Message]) -> int:
    return sum(estimate_tokens(message.text) + OVERHEAD for message in messages)
