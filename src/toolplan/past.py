"""What was said and done before a request, in a conversation, in each form in which a model may be told of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from toolplan.journal import Earlier
from toolplan.journal.known_json import known_from_json, known_to_json
from toolplan.known import NOTHING_KNOWN, Known
from toolplan.models import Message
from toolplan.policy import Sources
from toolplan.spoken import message_from_json, message_to_json
from toolplan.values import Json

__all__ = ["NO_PAST", "Past"]


@dataclass(frozen=True, slots=True)
class Past:
    """What was said and done before a request, in each form in which a model may be told of it."""

    messages: tuple[Message, ...] = ()
    """For a loop: the conversation in the provider's valid shape."""
    told: str | None = None
    """For a plan: the same as data, with the names of results."""
    known: Known = NOTHING_KNOWN
    """These results, for the checker and the scheduler."""
    budget: int | None = None
    """The tokens that a loop may send at once, about; None for any number."""
    said: tuple[str, ...] = ()
    """What the user has said: requests, answers to questions, arguments changed on a card."""
    sources: Mapping[str, Sources] = field(default_factory=dict[str, Sources])
    """Where the known results come from, by name."""
    has_read_untrusted: bool = False
    """Whether what the model is told of the past may hold other people's text."""
    used: tuple[str, ...] = ()
    """The tools that were called, those of the newest request first."""

    def to_entry(self) -> Earlier:
        """Return it as a journal keeps it."""
        return Earlier(
            [message_to_json(message) for message in self.messages],
            self.told,
            known_to_json(self.known),
            list(self.said),
            {name: cast(Json, sources.to_json()) for name, sources in self.sources.items()},
            self.has_read_untrusted,
            list(self.used),
            self.budget,
        )

    @classmethod
    def of_entry(cls, earlier: Earlier | None) -> Past:
        """Return what a journal has kept."""
        if earlier is None:
            return NO_PAST
        return cls(
            tuple(message_from_json(cast("dict[str, Any]", message)) for message in earlier.messages),
            earlier.told,
            known_from_json(earlier.known),
            earlier.budget,
            tuple(earlier.said),
            {name: Sources.from_json(cast("dict[str, Any]", each)) for name, each in earlier.sources.items()},
            earlier.has_read_untrusted,
            tuple(earlier.used),
        )


NO_PAST = Past()
