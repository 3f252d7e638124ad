"""The secrets that were seen in calls, and texts without them.

A tool may put what it was given into its own error: `login as ann with hunter2 failed`. Errors go to people, models,
logs and journals, so whatever leaves as one goes through `SeenSecrets.clean` first. What is secret is said by the
schemas (`secrets.py`); a value of some length that stood in such a place is left out of every error from then on, also
in the spellings of JSON and of addresses. The journal leaves them out of its rows by the same rule.
"""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Iterable, Mapping

from toolplan.tools.secrets import HIDDEN
from toolplan.tools.tool import Tool
from toolplan.values import Json

__all__ = ["SeenSecrets"]

SHORTEST = 5
"""A secret of fewer characters is not looked for: it would be found in too much that is none."""
SHORTENED = 58
"""Messages show the beginning of a long text, about so many characters."""


class SeenSecrets:
    """The secrets of one request. As long as there are none, it is false."""

    __slots__ = ("_texts",)

    def __init__(self) -> None:
        self._texts: dict[str, None] = {}  # the longest first

    def __bool__(self) -> bool:
        return bool(self._texts)

    def see(self, tool: Tool, arguments: Mapping[str, Json]) -> None:
        """Note the secrets in the arguments of a call."""
        secret = tool.secret_arguments
        for name, value in arguments.items() if secret else ():
            if name in secret:
                self._note(value)

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

    def see_words(self, values: Iterable[Json]) -> None:
        """Note words of a plan that go into secret places (`secret_words.py`)."""
        for value in values:
            self._note(value.strip() if isinstance(value, str) else value)

    def see_all(self, others: SeenSecrets) -> None:
        """Note all that others have seen."""
        self._add(others._texts)

    def clean(self, text: str, mark: str = HIDDEN) -> str:
        """Return the text with `mark` in place of the secrets that were seen so far."""
        for secret in self._texts:
            text = text.replace(secret, mark)
        return text

    def clean_error(self, error: str, tool: Tool | None, arguments: Mapping[str, Json] | None) -> str:
        """Return why a step fails, as it may be told: without what was seen so far, and its own secrets."""
        if tool is not None and tool.has_secrets:  # the call may not have been made
            self.see(tool, arguments or {})
        return self.clean(error) if self else error

    def masked(self, text: str) -> str:
        """Return the text with as many asterisks in place of these secrets, so that every place in it stays."""
        for secret in self._texts:
            text = text.replace(secret, "*" * len(secret))
        return text

    def clean_json(self, value: Json, mark: str = HIDDEN, *, numbers: bool = True) -> Json:
        """Return the value with `mark` in place of these secrets in texts and keys, and of whole `numbers` too."""
        match value:
            case str():
                return self.clean(value, mark)
            case list():
                return [self.clean_json(item, mark, numbers=numbers) for item in value]
            case dict():
                return {
                    self.clean(key, mark): self.clean_json(item, mark, numbers=numbers) for key, item in value.items()
                }
            case int() | float() if numbers and not isinstance(value, bool) and str(value) in self._texts:
                return mark
            case _:
                return value

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
        self._add((*spelled, *quoted, *(each[:SHORTENED] for each in spelled if len(each) > SHORTENED)))

    def _add(self, texts: Iterable[str]) -> None:
        self._texts = dict.fromkeys(sorted({**self._texts, **dict.fromkeys(texts)}, key=len, reverse=True))
