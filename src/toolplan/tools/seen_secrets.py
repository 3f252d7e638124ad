"""The secrets that were seen in calls, and texts without them.

A tool may put what it was given into its own error: `login as ann with hunter2 failed`. Errors go to people, models,
logs and journals, so whatever leaves as one goes through `SeenSecrets.clean` first. What is secret is said by the
schemas (`secrets.py`); a value of some length that stood in such a place is left out of every error from then on, also
in the spellings of JSON and of addresses.
"""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Mapping

from toolplan.tools.secrets import HIDDEN
from toolplan.tools.tool import Tool
from toolplan.values import Json

__all__ = ["SeenSecrets"]

SHORTEST = 5
"""A secret of fewer characters is not looked for: it would be found in too much that is none."""


class SeenSecrets:
    """The secrets of one request. As long as there are none, it is false."""

    __slots__ = ("_texts",)

    def __init__(self) -> None:
        self._texts: dict[str, None] = {}  # the longest first

    def __bool__(self) -> bool:
        return bool(self._texts)

    def see(self, tool: Tool, arguments: Mapping[str, Json]) -> None:
        """Note the secrets in the arguments of a call."""
        for name in tool.secret_arguments:
            self._note(arguments.get(name))

    def see_result(self, tool: Tool, value: Json) -> None:
        """Note the secrets in what a call has returned."""
        names = tool.secret_result
        if names is None:
            return
        if not names or not isinstance(value, dict):
            self._note(value)
            return
        for name in names:
            self._note(value.get(name))

    def clean(self, text: str) -> str:
        """Return the text without the secrets that were seen so far."""
        for secret in self._texts:
            text = text.replace(secret, HIDDEN)
        return text

    def _note(self, value: Json) -> None:
        if isinstance(value, list):
            for item in value:
                self._note(item)
        elif isinstance(value, dict):
            for item in value.values():
                self._note(item)
        elif isinstance(value, str | int | float) and not isinstance(value, bool):
            self._note_text(str(value))

    def _note_text(self, text: str) -> None:
        if len(text) < SHORTEST or text in self._texts:
            return
        spelled = (text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1], repr(text)[1:-1])
        quoted = (urllib.parse.quote(text), urllib.parse.quote(text, safe=""), urllib.parse.quote_plus(text))
        found = {**self._texts, **dict.fromkeys((*spelled, *quoted))}
        self._texts = dict.fromkeys(sorted(found, key=len, reverse=True))
