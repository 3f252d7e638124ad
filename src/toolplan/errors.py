"""Every exception that toolplan raises on purpose, sorted by who acts next.

    ToolplanError
    ├── PlanRejected        the model acts: its diagnostics go back, nothing ran
    ├── EvaluationError     the scheduler acts: an expression met a value it cannot work with
    ├── ToolFailed          the scheduler acts: a call went wrong; the plan's `on_error` decides
    │   ├── ArgumentsRefused    the call's arguments do not fit the tool; the tool was not called
    │   └── ResultRefused       the tool answered with something that is not a value
    ├── ModelError          the caller acts: the model could not be reached or gave no usable reply
    ├── UsageError          the developer acts: a wrong call of our API, or a wrong tool definition
    └── JournalError        the operator acts: the journal cannot be written or read
        ├── JournalMismatch     stored events do not fit this plan, these tools or this version
        └── RunIsHeld           another process is at work on this run

A broken invariant is a bug of ours and stays an `AssertionError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolplan.diagnostics import Diagnostic, Place, Source
    from toolplan.models import Usage


class ToolplanError(Exception):
    """The base of every error raised on purpose by toolplan."""


class PlanRejected(ToolplanError):
    """A plan that may not run, with every reason in source order."""

    def __init__(self, diagnostics: Sequence[Diagnostic], source: Source | None = None) -> None:
        self.diagnostics = tuple(diagnostics)
        self.source = source
        first = self.diagnostics[0] if self.diagnostics else None
        more = len(self.diagnostics) - 1
        head = f"{first.code}: {first.message}" if first else "the plan was rejected"
        super().__init__(head + (f" (and {more} more)" if more > 0 else ""))


class EvaluationError(ToolplanError):
    """An expression that could not be evaluated on the values at hand.

    `message` stands alone ("`'3°C'` (text) cannot be ordered against 5 (number)"); `start` and `end`
    are character offsets into the expression's text; `help` says what to write instead, if known; `place` is the same
    spot in the plan, where the expression knows its own.
    """

    def __init__(
        self, message: str, *, start: int = 0, end: int = 0, help: str | None = None, place: Place | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.start = start
        self.end = end
        self.help = help
        self.place = place


class ToolFailed(ToolplanError):
    """A call that went wrong. Tools may raise it (or any other exception) themselves.

    With `effect_happened=False` a tool promises that nothing was changed, which makes a retry safe; before
    `retry_after_seconds` there is none.
    """

    def __init__(
        self, message: str, *, effect_happened: bool | None = None, retry_after_seconds: float | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.effect_happened = effect_happened
        self.retry_after_seconds = retry_after_seconds


class ArgumentsRefused(ToolFailed):
    """Arguments that do not fit the tool's schema. The tool was not called."""

    def __init__(self, message: str) -> None:
        super().__init__(message, effect_happened=False)


class ResultRefused(ToolFailed):
    """A result that is not a value: it does not serialise, or is not what the tool declared."""


class ModelError(ToolplanError):
    """The model could not be reached, or its reply could not be used.

    `provider` and `model` say which one was asked, `status` is the HTTP status where there was one, `reason` one word
    on what went wrong (`toolplan.models.Reason`). `inferences` counts the requests that it has, or may have, worked on
    in vain, `usage` is what they cost, as far as the provider said; of an error that ends a whole request to an
    `Agent`, what that has cost. The text holds no key.
    """

    def __init__(
        self,
        message: str,
        *,
        provider: str = "",
        model: str = "",
        status: int | None = None,
        reason: str = "",
        inferences: int = 0,
        usage: Usage | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.provider = provider
        self.model = model
        self.status = status
        self.reason = reason
        self.inferences = inferences
        self.usage = usage


class UsageError(ToolplanError):
    """A wrong call of toolplan's API, or a wrong tool definition."""


class JournalError(ToolplanError):
    """The journal cannot be written or read: no space, no permission, damage, a newer format."""


class JournalMismatch(JournalError):
    """Stored events that do not fit this plan, these tools or this version."""


class RunIsHeld(JournalError):
    """Another process is at work on this run. `holder` says which."""

    def __init__(self, message: str, *, holder: str = "") -> None:
        super().__init__(message)
        self.holder = holder
