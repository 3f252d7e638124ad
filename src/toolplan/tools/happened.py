"""What a probe says of an effect that was begun, when nobody knows whether it happened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Happened"]


@dataclass(frozen=True, slots=True)
class Happened:
    """It has happened, and this is what the call would have returned.

    A probe may also return `True` (it has happened, and returned nothing), `False` (it has not) or `None` (nobody can
    tell).
    """

    value: Any = None
