"""What the host tells a tool about the call it is in."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

__all__ = ["IS_CANCELLED", "ToolContext"]


def _unheard(*args: Any, **kwargs: Any) -> None:
    """Drop a progress report that nobody listens to."""


def _is_wanted() -> bool:
    return False


IS_CANCELLED: ContextVar[Callable[[], bool]] = ContextVar("IS_CANCELLED", default=_is_wanted)
"""Whether the call we are in is not wanted any more; for what has no `ToolContext`."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The call a tool is in. A parameter annotated with this class is filled by the host and hidden from the model.

    `idempotency_key` is the same for every attempt at one call and different for every other call, so a tool can hand
    it on to a service that recognises repeated requests. `headers` has it under the name that the tool declares with
    `idempotency="header:NAME"`, to be sent with its HTTP request, else nothing. `dependencies` is whatever the
    application gave to the run.
    `progress("text")` reports to whoever watches. `is_cancelled()` says whether the result is not wanted any more (the
    time is over, or the run was cancelled): a plain function that works for long can look and stop, for nobody else can
    stop it. A tool that is called directly gets these empty defaults.
    """

    run_id: str = ""
    step_id: str = ""
    idempotency_key: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    dependencies: Any = None
    progress: Callable[..., None] = _unheard
    is_cancelled: Callable[[], bool] = _is_wanted
    logger: logging.Logger = logging.getLogger("toolplan.tools")  # noqa: RUF009 - loggers are shared on purpose
