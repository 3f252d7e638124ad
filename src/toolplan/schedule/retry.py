"""When to try again, as data. Whether a repetition is safe at all is the machine's question."""

from __future__ import annotations

from toolplan.plan import Retry

__all__ = ["wait_before"]


def wait_before(retry: Retry, attempt: int, retry_after_seconds: float | None = None) -> float | None:
    """Return the longest wait in seconds before the attempt with this number, or None when there are no more.

    Exponential backoff: the wait doubles with each attempt, up to `max_wait_seconds`. The engine draws the real wait
    evenly between zero and this ("full jitter", Brooker 2015), but never less than what the server asked for.
    """
    if attempt > retry.attempts:
        return None
    wait = min(retry.wait_seconds * 2.0 ** (attempt - 2), retry.max_wait_seconds)
    return wait if retry_after_seconds is None else max(wait, retry_after_seconds)
