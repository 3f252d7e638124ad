"""What the host tells a tool about the call it is in."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["ToolContext"]


def _unheard(*args: Any, **kwargs: Any) -> None:
    """Drop a progress report that nobody listens to."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The call a tool is in. A parameter annotated with this class is filled by the host and hidden from the model.

    `idempotency_key` is the same for every attempt at one call and different for every other call, so a tool can hand
    it on to a service that recognises repeated requests. `dependencies` is whatever the application gave to the run.
    `progress("text")` reports to whoever watches. A tool that is called directly gets these empty defaults.
    """

    run_id: str = ""
    step_id: str = ""
    idempotency_key: str = ""
    dependencies: Any = None
    progress: Callable[..., None] = _unheard
    logger: logging.Logger = logging.getLogger("toolplan.tools")  # noqa: RUF009 - loggers are shared on purpose
