"""When a failed request to a model is made again. The only retries there are: the SDKs' own are off.

Exponential backoff with full jitter (Marc Brooker, "Exponential Backoff And Jitter", 2015): each wait is drawn evenly
between nothing and a ceiling that doubles, so that clients that failed together do not come back together.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Retry"]


@dataclass(frozen=True, slots=True)
class Retry:
    """How often and how patiently a request is repeated; `Retry(0)` never repeats one.

    At most `max_retries` repeats; the ceiling of a wait starts at `base_seconds` and doubles up to `ceiling_seconds`;
    all waits of one request together stay within `total_seconds`, those that a provider asks for included.
    """

    max_retries: int = 2
    base_seconds: float = 0.5
    ceiling_seconds: float = 8.0
    total_seconds: float = 60.0

    def wait_seconds(
        self, retry: int, *, waited_seconds: float, asked_seconds: float | None, draw: float
    ) -> float | None:
        """Return how long to wait before repeat number `retry` (from 1), or None to give up.

        `asked_seconds` is what the provider asked for (Retry-After) and is never undercut: when it does not fit into
        what is left of `total_seconds`, giving up at once is kinder than asking too early. `draw` is a random number
        from 0 to 1.
        """
        if retry > self.max_retries:
            return None
        jitter = draw * min(self.ceiling_seconds, self.base_seconds * 2 ** (retry - 1))
        seconds = jitter if asked_seconds is None else asked_seconds + jitter
        return None if waited_seconds + seconds > self.total_seconds else seconds
