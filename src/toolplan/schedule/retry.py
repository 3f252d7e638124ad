"""When to try again, as data. Whether a repetition is safe at all is the machine's question."""

from __future__ import annotations

from toolplan.plan import Retry

__all__ = ["wait_before"]


def wait_before(retry: Retry, attempt: int, retry_after_seconds: float | None = None) -> float | None:
    """Return the longest wait in seconds before the attempt with this number, or None when there are no more.

    Exponential backoff: the wait doubles with each attempt, up to `max_wait_seconds`. The engine draws the real wait
    evenly between zero and this ("full jitter", Brooker 2015), and adds it to what the tool asked for. To ask for more
    than `max_wait_seconds` is a refusal: to come back earlier would be useless, to wait that long was not allowed.
    """
    if attempt > retry.attempts or (retry_after_seconds or 0.0) > retry.max_wait_seconds:
        return None
    return min(retry.wait_seconds * 2.0 ** min(attempt - 2, 64), retry.max_wait_seconds)
