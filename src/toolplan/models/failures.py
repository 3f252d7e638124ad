"""What went wrong with a model, said once, without secrets, and with what may be tried next.

Provider SDKs fail in many ways. Here each failure becomes a `Failure`: a `ModelError` for the caller, and the kind
that tells `providers` what is left to try.

    transient     the same request may succeed later: 408, 409, 429, 5xx, no connection, a connection lost
    refused       this provider does not take a schema, or tools, in this way: ask again one level down
    unwanted      this provider does not take one of the `wishes` of the request: ask again without it
    unstreamable  this provider does not stream (in the way asked): ask again without
    final         nothing is left to try

No text of a failure holds a key: not the one in use, and nothing that looks like one, because providers repeat in
their error bodies what they were sent.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

from toolplan.errors import ModelError
from toolplan.models.base import Reason, Usage
from toolplan.models.facts import ProviderFacts

__all__ = [
    "NO_CHOICES",
    "NO_REASON",
    "Attempt",
    "Failure",
    "Stalled",
    "Target",
    "UnusableReply",
    "Wish",
    "explain",
    "scrub",
    "without_password",
]

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

    @property
    def address(self) -> str:
        """The address to connect to: without user and password, which travel in `headers` and so stay out of logs."""
        parts = urlsplit(self.base_url)
        return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))

    @property
    def headers(self) -> dict[str, str]:
        """The headers that an address with a user and a password asks for."""
        login = urlsplit(self.base_url).netloc.rpartition("@")[0]
        if not login:
            return {}
        return {"Authorization": f"Basic {base64.b64encode(unquote(login).encode()).decode()}"}

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be shown, in every spelling: the key, the password of the address, the header made of it."""
        parts = urlsplit(self.base_url)
        found = [self.api_key, parts.password, unquote(parts.password or ""), parts.netloc.rpartition("@")[0]]
        found += [value.partition(" ")[2] for value in self.headers.values()]
        found += [value for _, value in parse_qsl(parts.query)]
        return tuple(secret for secret in found if secret)

    def __repr__(self) -> str:
        return f"Target({self.name} at {self.shown_url})"


Wish: TypeAlias = Literal["tool_choice", "parallel_tool_calls"]
"""What a request asks about calls that can be left out: that there is one, that there is only one."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """How a request was made: streamed or not, with a schema or tools in it, with wishes, and how much text arrived."""

    streamed: bool
    carried: bool
    wishes: tuple[Wish, ...] = ()
    arrived: int = 0


Kind: TypeAlias = Literal["transient", "refused", "unwanted", "unstreamable", "final"]


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed request: the error to raise, what may be tried next, and the seconds the provider asked to wait."""

    error: ModelError
    kind: Kind
    asked_seconds: float | None = None
    wish: Wish | None = None

    @property
    def was_inferred(self) -> bool:
        """Whether the model has, or may have, worked on the request: it counts then, whatever became of the reply.

        It has not where the request reached nobody, was never sent, or was turned down with an error status.
        """
        return self.error.status is None and self.error.reason not in ("unreachable", "refused")


NO_CHOICES = "its answer holds no choices"
NO_REASON = (
    "stopped sending without saying why, so its reply may be incomplete;"
    " a server that never says why can be asked with `stream=False`"
)
"""What is said of a stream without a finish reason."""


class Stalled(Exception):
    """A stream from which nothing came for `seconds`."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"nothing came for {seconds:g} s")
        self.seconds = seconds


class UnusableReply(Exception):
    """A complete answer of a provider that holds no reply: nothing said, declined, or ended without a reason.

    `usage` is what it cost, where that is known.
    """

    def __init__(self, message: str, reason: Reason = "empty", usage: Usage | None = None) -> None:
        super().__init__(message)
        self.reason: Reason = reason
        self.usage = usage


def explain(error: Exception, target: Target, attempt: Attempt, *, attempts: int = 1) -> Failure:
    """Return what a request's failure means. Never raises; an exception of unknown kind means an unreadable reply."""
    # Only called after the library has raised, so that it is loaded already.
    from pydantic_ai import exceptions as library

    after = f" after {attempts} attempts" if attempts > 1 else ""
    if isinstance(error, UnusableReply):
        kind = "transient" if error.reason in ("broke_off", "unreadable") else "final"
        words = f"gave no reply{after}: {error}" if error.reason == "unreadable" else str(error)
        failure = _failure(target, f"`{target.name}` {words}", kind, error.reason)
        failure.error.usage = error.usage
        return failure
    if isinstance(error, Stalled):
        fell = f"after {attempt.arrived} characters" if attempt.arrived else f"before the reply{after}"
        text = f"`{target.name}` fell silent {fell}: nothing came for {error.seconds:g} s"
        return _failure(target, text, "transient", "timeout")
    if isinstance(error, library.ModelHTTPError):
        return _explain_status(error, target, attempt, after)
    if isinstance(error, TimeoutError | library.ModelTimeoutError) and not _is_connecting(error):
        return _failure(target, f"`{target.name}` did not answer in time{after}", "final", "timeout")
    if isinstance(error, library.ModelConnectionError) or _is_transport(error):
        return _explain_connection(error, target, attempt, after)
    if isinstance(error, library.UserError):
        kind = "refused" if attempt.carried else "final"
        return _failure(target, f"`{target.name}` cannot be asked in this way: {error.message}", kind, "refused")
    if isinstance(error, library.ModelAPIError):
        return _explain_unnumbered(error, target, attempt, after)
    return _explain_unreadable(_last_words(error), target, attempt, after)


def _explain_unreadable(words: str, target: Target, attempt: Attempt, after: str) -> Failure:
    """Explain an answer that is no reply, such as the page of a gateway: the next one may be."""
    if attempt.arrived:
        text = f"the reply of `{target.name}` broke off after {attempt.arrived} characters: {words}"
        return _failure(target, text, "transient", "broke_off")
    text = f"the reply of `{target.name}` could not be read{after}: {words}"
    return _failure(target, text, "transient", "unreadable")


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
        return _failure(target, text, "transient", "broke_off", status, asked)
    if attempt.streamed and status in _REFUSALS and _STREAMING.search(body):
        return _failure(target, f"`{name}` does not stream{said}", "unstreamable", "refused", status)
    if status in _REFUSALS and (wish := _refused_wish(attempt, body)):
        return _failure(target, f"`{name}` does not take `{wish}`{said}", "unwanted", "refused", status, wish=wish)
    if status in (401, 403) or (status == 400 and _BAD_KEY.search(body)):
        return _failure(target, f"`{name}` refused the key{said}{_key_advice(target)}", "final", "key", status)
    if attempt.carried and _refuses_schema(status, body.replace(target.model, "")):
        return _failure(target, f"`{name}` refused the request{said}", "refused", "refused", status)
    if status == 404:
        advice = f"; is `{target.model}` the right model, and {target.shown_url} the right address?"
        return _failure(target, f"`{name}` was not found{said}{advice}", "final", "not_found", status)
    if status == 402 or isinstance(error, library.ModelQuotaExceededError):
        return _failure(target, f"`{name}` has no quota or credit left{said}", "final", "no_quota", status)
    if status in (408, 409, 429) or (status >= 500 and status != 501):
        kind = "final" if getattr(error, "provider_retry_hint", None) is False else "transient"
        words = "is busy" if status == 429 else "failed"
        asks = f"; it asks to wait {asked:g} s" if asked else ""
        reason = "busy" if status == 429 else "failed"
        return _failure(target, f"`{name}` {words}{after}{said}{asks}", kind, reason, status, asked)
    return _failure(target, f"`{name}` refused the request{said}", "final", "refused", status)


_REFUSALS = frozenset({400, 404, 405, 415, 422, 501})
_STREAMING = re.compile(r"stream", re.IGNORECASE)
_SCHEMA = re.compile(
    r"response_format|json_schema|schema|grammar|samplers?\b|structured|guided|tool|function.?call", re.IGNORECASE
)
# llama.cpp answers 500, not 400, to tools that it was not started for and to grammars it cannot build.
_SCHEMA_500 = re.compile(
    r"response_format|json_schema|grammar|samplers?\b|param(eter)?:? ?tools|tools param", re.IGNORECASE
)
_BAD_KEY = re.compile(r"api[ _]key (is )?(not valid|invalid|expired)|(invalid|incorrect) api[ _]key", re.IGNORECASE)
"""How providers word with status 400 that they refuse the key, as Gemini does."""
_OTHER_REASON = re.compile(
    r"context.?(length|window)|maximum context|too long|too many tokens|credit|quota", re.IGNORECASE
)


def _refused_wish(attempt: Attempt, body: str) -> Wish | None:
    """Return the wish that an error body names, if it names one of this attempt's."""
    words = re.sub(r"[\W_]+", "_", body.lower())
    return next((wish for wish in attempt.wishes if wish in words), None)


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
        text = f"could not reach `{target.name}` at {target.shown_url}{after}: {words}{advice}"
        return _failure(target, text, "transient", "unreachable")
    if attempt.arrived:
        text = f"the reply of `{target.name}` broke off after {attempt.arrived} characters: {words}"
    else:
        text = f"the connection to `{target.name}` broke off before the reply{after}: {words}"
    return _failure(target, text, "transient", "broke_off")


def _explain_unnumbered(error: Any, target: Target, attempt: Attempt, after: str) -> Failure:
    """Explain an error without an HTTP status: an error event inside a stream, or a stream without an end."""
    words = _body_text(error.body) or str(error.message)
    if _NO_JSON.search(words):
        return _explain_unreadable(_one_line(_without_tags(words)), target, attempt, after)
    if attempt.arrived:
        text = f"the reply of `{target.name}` broke off after {attempt.arrived} characters: {words}"
        return _failure(target, text, "final", "broke_off")
    return _failure(target, f"`{target.name}` failed: {words}", "final", "failed")


_NO_JSON = re.compile(r"Failed to decode response as JSON|Expected a JSON response")
"""How the library words that an answer is no JSON; it has no class of its own for that."""


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
    kind: Kind,
    reason: Reason,
    status: int | None = None,
    asked_seconds: float | None = None,
    wish: Wish | None = None,
) -> Failure:
    clean = scrub(text, *target.secrets)
    error = ModelError(clean, provider=target.facts.name, model=target.model, status=status, reason=reason)
    return Failure(error, kind, asked_seconds, wish)


def _body_text(body: object) -> str:
    """Return a provider's own words from an error body of any make, on one line and not too long."""
    text = body if isinstance(body, str) else _message_in(body)
    if text is None:
        text = json.dumps(body, default=str) if body else ""
    return _one_line(_without_tags(text))


def _without_tags(text: str) -> str:
    """Return the text of a page without its markup; other text as it is."""
    if re.search(r"(?i)<html|<!doctype", text[:300]):
        text = re.sub(r"(?s)<(script|style).*?</\1>|<[^>]+>", " ", text)
    return text


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
    # The longest first: a secret may be part of another one.
    for secret in sorted((secret for secret in secrets if secret and len(secret) >= 4), key=len, reverse=True):
        text = text.replace(secret, _REMOVED)
    return _KEYS.sub(_REMOVED, text)


def without_password(url: str) -> str:
    """Return `url` without user, password, query and fragment, any of which may hold a secret."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))
