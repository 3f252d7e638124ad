"""The words of the classic loop: its rules, and results as a model reads them."""

from __future__ import annotations

from collections.abc import Sequence

from toolplan.prompt.language import Language, wording_for
from toolplan.prompt.messages import application_rules, situation
from toolplan.prompt.shorten import as_json, shortened
from toolplan.prompt.wording import LoopWords
from toolplan.values import Json

__all__ = ["loop_rules", "loop_words", "result_text"]


def loop_words(language: Language, request: str) -> LoopWords:
    """Return what a model is told in a loop about this request. Raises `UsageError` for an unknown language."""
    return wording_for(language, request).loop


def loop_rules(
    request: str, *, language: Language = "auto", now: str, context: str | None = None, extra_rules: Sequence[str] = ()
) -> str:
    """Return the system message of a loop: the rules, the application's own, the situation. Tools travel natively."""
    words = wording_for(language, request)
    parts = [words.loop.rules, *application_rules(words, extra_rules), *situation(words, now, context)]
    return "\n\n".join(parts)


def result_text(value: Json, *, language: Language, request: str, room: int = 12_000) -> str:
    """Return a result as text for a model: text as it is, anything else as JSON, both shortened to about `room`."""
    kept = shortened(value, room, wording_for(language, request))
    return kept if isinstance(kept, str) else as_json(kept)
