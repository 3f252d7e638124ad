"""Regular expressions that are compiled when they are first used.

Compiling one takes up to 30 ms where it lists many words or characters of wide scripts, and `import toolplan` would pay
for hundreds of them. What is cheap to compile, or used while modules are loaded, is left to `re.compile`.
"""

from __future__ import annotations

import re
from typing import Any, cast

__all__ = ["late_pattern"]


class _Pattern:
    """Stands for a `re.Pattern` and becomes one, attribute by attribute, as these are asked for."""

    def __init__(self, text: str, flags: int = 0) -> None:
        self._written = text, flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(re.compile(*self._written), name)  # `re` keeps what it has compiled
        setattr(self, name, found)  # the next time it is found without coming here
        return found


def late_pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """Return the regular expression, which is compiled when something is first asked of it."""
    return cast("re.Pattern[str]", _Pattern(text, flags))
