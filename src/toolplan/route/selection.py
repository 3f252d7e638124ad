"""What a router chose for a request, and why."""

from __future__ import annotations

from dataclasses import dataclass

from toolplan.tools import ToolSet
from toolplan.values import Json

__all__ = ["Match", "Selection"]


@dataclass(frozen=True, slots=True)
class Match:
    """What speaks for one tool."""

    tool: str
    score: float = 0.0
    """What its words and keywords are worth (BM25). Good to compare within one selection."""
    is_chosen: bool = False
    words: tuple[str, ...] = ()
    """The words of the request that the tool has too, as the request has them, the weightiest first."""
    keywords: tuple[str, ...] = ()
    """The keywords of the tool that the request speaks of."""
    likeness: float | None = None
    """The cosine between the tool and the part of the request that is nearest, where embeddings are used."""
    is_always: bool = False
    along_with: str | None = None
    """The chosen tool that needs this one."""

    def to_dict(self) -> dict[str, Json]:
        """Return the match as JSON."""
        return {
            "tool": self.tool,
            "chosen": self.is_chosen,
            "score": round(self.score, 4),
            "words": list(self.words),
            "keywords": list(self.keywords),
            "likeness": None if self.likeness is None else round(self.likeness, 4),
            "always": self.is_always,
            "along_with": self.along_with,
        }


@dataclass(frozen=True, slots=True)
class Selection:
    """The tools for a request, in the order in which they were given to the router."""

    request: str
    tools: ToolSet
    matches: tuple[Match, ...]
    """Every tool that was chosen or that something speaks for: the chosen ones first, each part the best first."""
    left_out: tuple[str, ...]
    """The names of the others: those that something speaks for first, then the rest in the order given."""
    tokens: int
    """What the text of the chosen tools costs in a prompt."""
    tokens_of_all: int
    """What the text of all tools would cost."""
    is_blind: bool = False
    """Whether nothing of the request is in any tool, so that the choice is a guess, or everything."""

    @property
    def tokens_saved(self) -> int:
        """What is saved in every prompt that holds the chosen tools instead of all."""
        return self.tokens_of_all - self.tokens

    def to_dict(self) -> dict[str, Json]:
        """Return the selection as the JSON document of `toolplan route --json`."""
        return {
            "request": self.request,
            "tools": list(self.tools.names),
            "matches": [match.to_dict() for match in self.matches],
            "left_out": list(self.left_out),
            "blind": self.is_blind,
            "tokens": self.tokens,
            "tokens_of_all": self.tokens_of_all,
            "tokens_saved": self.tokens_saved,
        }
