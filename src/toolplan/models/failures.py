"""What went wrong with a model, said once, without secrets, and with what may be tried next.

Provider SDKs fail in many ways. Here each failure becomes a `Failure`: a `ModelError` for the caller, and the kind
that tells `providers` what is left to try.

    transient     the same request may succeed later: 408, 409, 429, 5xx, no connection, a connection lost
    refused       this provider does not take a schema in this way: ask again one level down
    unstreamable  this provider does not stream (in the way asked): ask again without
    final         nothing is left to try

No text of a failure holds a key: not the one in use, and nothing that looks like one, because providers repeat in
their error bodies what they were sent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, cast
from urllib.parse import urlsplit, urlunsplit

from toolplan.errors import ModelError
from toolplan.models.facts import ProviderFacts

__all__ = ["NO_REASON", "Attempt", "Failure", "Target", "UnusableReply", "explain", "scrub", "without_password"]

BODY_LIMIT = 300
"""How much of a provider's own words goes into an error."""


@dataclass(frozen=True, slots=True)
class Target:
    """Who is asked: the provider's facts, the model, the address and the key (None where none is needed)."""

    facts: ProviderFacts
    model: str
    base_url: str
    api_key: str | None = None

    @property
    def name(self) -> str:
        """The model's full name, as in `openai:gpt-5-mini`."""
        return f"{self.facts.name}:{self.model}"

    @property
    def shown_url(self) -> str:
        """The address as it may be shown: without user and password."""
        return without_password(self.base_url)

    def __repr__(self) -> str:
        return f"Target({self.name} at {self.shown_url})"


@dataclass(frozen=True, slots=True)
class Attempt:
    """How a failed request was made: whether it was streamed, whether it carried a schema, how much text arrived."""

    streamed: bool
    carried_schema: bool
    arrived: int = 0


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed request: the error to raise, what may be tried next, and the seconds the provider asked to wait."""

    error: ModelError
    kind: Literal["transient", "refused", "unstreamable", "final"]
    asked_seconds: float | None = None


NO_REASON = (
    "stopped sending without saying why, so its reply may be incomplete;"
    " a server that never says why can be asked with `stream=False`"
)
"""What is said of a stream without a finish reason."""


class UnusableReply(Exception):
    """A complete answer of a provider that holds no reply: nothing said, declined, or ended without a reason."""


def explain(error: Exception, target: Target, attempt: Attempt, *, attempts: int = 1) -> Failure:
    """Return what a request's failure means. Never raises; an exception of unknown kind is final."""
    # Only called after the library has raised, so that it is loaded already.
    from pydantic_ai import exceptions as library

    after = f" after {attempts} attempts" if attempts > 1 else ""
    if isinstance(error, UnusableReply):
        return _failure(target, f"`{target.name}` {error}", "final")
    if isinstance(error, library.ModelHTTPError):
        return _explain_status(error, target, attempt, after)
    if isinstance(error, TimeoutError | library.ModelTimeoutError) and not _is_connecting(error):
        return _failure(target, f"`{target.name}` did not answer in time{after}", "final")
    if isinstance(error, library.ModelConnectionError) or _is_transport(error):
        return _explain_connection(error, target, attempt, after)
    if isinstance(error, library.UserError):
        kind = "refused" if attempt.carried_schema else "final"
        return _failure(target, f"`{target.name}` cannot be asked in this way: {error.message}", kind)
    if isinstance(error, library.ModelAPIError):
        return _explain_unnumbered(error, target, attempt)
    if isinstance(error, IndexError):
        # The library takes the first of the choices without looking whether there is one.
        return _failure(target, f"`{target.name}` gave no reply: its answer holds no choices", "final")
    return _failure(target, f"the reply of `{target.name}` could not be read: {_last_words(error)}", "final")


# ---- HTTP statuses


def _explain_status(error: Any, target: Target, attempt: Attempt, after: str) -> Failure:
    from pydantic_ai import exceptions as library

    status = cast(int, error.status_code)
    body = _body_text(error.body)
    said = f" (HTTP {status}): {body}" if body else f" (HTTP {status})"
    name = target.name
    asked = cast("float | None", error.retry_after)
    if attempt.arrived:
        text = f"the reply of `{name}` broke off after {attempt.arrived} characters{said}"
        return _failure(target, text, "transient", status, asked)
    if attempt.streamed and status in _REFUSALS and _STREAMING.search(body):
        return _failure(target, f"`{name}` does not stream{said}", "unstreamable", status)
    if attempt.carried_schema and _refuses_schema(status, body.replace(target.model, "")):
        return _failure(target, f"`{name}` refused the request{said}", "refused", status)
    if status in (401, 403):
        return _failure(target, f"`{name}` refused the key{said}{_key_advice(target)}", "final", status)
    if status == 404:
        advice = f"; is `{target.model}` the right model, and {target.shown_url} the right address?"
        return _failure(target, f"`{name}` was not found{said}{advice}", "final", status)
    if isinstance(error, library.ModelQuotaExceededError):
        return _failure(target, f"`{name}` has no quota or credit left{said}", "final", status)
    if status in (408, 409, 429) or (status >= 500 and status != 501):
        kind = "final" if getattr(error, "provider_retry_hint", None) is False else "transient"
        words = "is busy" if status == 429 else "failed"
        asks = f"; it asks to wait {asked:g} s" if asked else ""
        return _failure(target, f"`{name}` {words}{after}{said}{asks}", kind, status, asked)
    return _failure(target, f"`{name}` refused the request{said}", "final", status)


_REFUSALS = frozenset({400, 404, 405, 415, 422, 501})
_STREAMING = re.compile(r"stream", re.IGNORECASE)
_SCHEMA = re.compile(
    r"response_format|json_schema|schema|grammar|samplers?\b|structured|guided|tool|function.?call", re.IGNORECASE
)
# llama.cpp answers 500, not 400, to tools that it was not started for and to grammars it cannot build.
_SCHEMA_500 = re.compile(
    r"response_format|json_schema|grammar|samplers?\b|param(eter)?:? ?tools|tools param", re.IGNORECASE
)
_OTHER_REASON = re.compile(
    r"context.?(length|window)|maximum context|too long|too many tokens|credit|quota", re.IGNORECASE
)


def _refuses_schema(status: int, body: str) -> bool:
    pattern = _SCHEMA if status in _REFUSALS else _SCHEMA_500 if status == 500 else None
    return pattern is not None and pattern.search(body) is not None and _OTHER_REASON.search(body) is None


def _key_advice(target: Target) -> str:
    facts = target.facts
    if not facts.key_variables:
        return "; pass another `api_key`"
    note = f"; {facts.key_note}" if facts.key_note else ""
    return f"; set `{facts.key_variables[0]}` to a key that {target.shown_url} accepts{note}"


# ---- connections


def _explain_connection(error: Exception, target: Target, attempt: Attempt, after: str) -> Failure:
    words = _last_words(error)
    if _is_connecting(error):
        advice = f"; is the server running? start it with `{target.facts.start}`" if target.facts.start else ""
        return _failure(
            target, f"could not reach `{target.name}` at {target.shown_url}{after}: {words}{advice}", "transient"
        )
    if attempt.arrived:
        text = f"the reply of `{target.name}` broke off after {attempt.arrived} characters: {words}"
    else:
        text = f"the connection to `{target.name}` broke off before the reply{after}: {words}"
    return _failure(target, text, "transient")


def _explain_unnumbered(error: Any, target: Target, attempt: Attempt) -> Failure:
    """Explain an error without an HTTP status: an error event inside a stream, or a stream without an end."""
    words = _body_text(error.body) or str(error.message)
    if "`finish_reason`" in words:
        return _failure(target, f"`{target.name}` {NO_REASON}", "final")
    broke_off = f"the reply of `{target.name}` broke off after {attempt.arrived} characters: {words}"
    return _failure(target, broke_off if attempt.arrived else f"`{target.name}` failed: {words}", "final")


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def _is_transport(error: Exception) -> bool:
    package = type(error).__module__.partition(".")[0]
    return isinstance(error, OSError) or package in ("httpx", "httpx2", "httpcore", "httpcore2")


def _is_connecting(error: Exception) -> bool:
    """Whether no connection came about, so that nothing was sent."""
    if getattr(error, "phase", None) in ("connect", "pool"):
        return True
    return any(type(cause).__name__ in _NO_CONNECTION for cause in _chain(error))


_NO_CONNECTION = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout", "ConnectionRefusedError"})


def _last_words(error: Exception) -> str:
    """Return what the innermost cause says, which names the real reason where the outer ones say 'connection error'."""
    words = type(error).__name__
    for cause in _chain(error):
        if str(cause).strip():
            words = str(cause)
    return _one_line(words)


# ---- texts


def _failure(
    target: Target,
    text: str,
    kind: Literal["transient", "refused", "unstreamable", "final"],
    status: int | None = None,
    asked_seconds: float | None = None,
) -> Failure:
    clean = scrub(text, target.api_key)
    error = ModelError(clean, provider=target.facts.name, model=target.model, status=status)
    return Failure(error, kind, asked_seconds)


def _body_text(body: object) -> str:
    """Return a provider's own words from an error body of any make, on one line and not too long."""
    text = body if isinstance(body, str) else _message_in(body)
    if text is None:
        text = json.dumps(body, default=str) if body else ""
    if "<html" in text[:200].lower() or "<!doctype" in text[:200].lower():
        text = re.sub(r"(?s)<(script|style).*?</\1>|<[^>]+>", " ", text)
    return _one_line(text)


def _one_line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= BODY_LIMIT else text[:BODY_LIMIT] + "…"


def _message_in(body: object) -> str | None:
    if not isinstance(body, dict):
        return None
    fields = cast("dict[str, object]", body)
    for key in ("error", "message", "detail"):
        value = fields.get(key)
        if isinstance(value, str) and value:
            return value
        inner = _message_in(value)
        if inner is not None:
            return inner
    return None


_REMOVED = "[removed]"
_KEYS = re.compile(
    r"""
      (?<![\w-])(?:sk|pk|rk|gsk|hf|xai|nvapi|csk|pplx)[-_][\w*.-]{6,}   # OpenAI, Anthropic, Groq, Hugging Face, ...
    | AIza[\w*-]{8,}                                                    # Google
    | (?i:\bbearer\s+)[^\s"',;]+
    | (?i:\b(?:api[-_]?key|x-goog-api-key|access_token)["']?\s*[=:]\s*["']?)[^\s"'&,;]{6,}
    """,
    re.VERBOSE,
)


def scrub(text: str, *secrets: str | None) -> str:
    """Return `text` without the given secrets and without anything that looks like a key."""
    for secret in secrets:
        if secret and len(secret) >= 4:
            text = text.replace(secret, _REMOVED)
    return _KEYS.sub(_REMOVED, text)


def without_password(url: str) -> str:
    """Return `url` without user, password, query and fragment, any of which may hold a secret."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))
