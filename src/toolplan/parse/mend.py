"""Damaged JSON -> JSON, where it has exactly one reading.

One pass over the tokens of the text, with a stack of open brackets. What has one reading is rewritten in place, so
that lines and columns stay where they were: comments, trailing commas, single, triple and typographic quotes, Python's
literals, keys without quotes, line breaks and pairs of quotes inside text, full-width colons and commas, a comma
missing between two entries. Everything else is `Damage`. Brackets are never added or taken away: where a missing one
belongs is a guess that would move a key from one object to another, and closing a text that was cut off could run half
a plan.

(General repairers guess: `json_repair` 0.64 turns `[{"arguments": {"a": 1, "result_variable": "r"}]` into a call with
one more argument, and closes whatever was cut off.)
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from toolplan.patterns import late_pattern

__all__ = ["Damage", "Mended", "mend"]


@dataclass(frozen=True, slots=True)
class Mended:
    """Sound JSON text for one value, where the damaged text of it ended, and what was rewritten."""

    text: str
    end: int
    repairs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Damage:
    """Why the text has no single reading: `at` is where, `problem` what. `kind` is `cut`, `gap` or `broken`.

    A `gap` is an ellipsis: somebody shows what a plan looks like. `open` lists the brackets still open when the text
    ended, with their offsets, and `"` for text without an end.
    """

    kind: str
    at: int
    problem: str
    help: str | None = None
    open: tuple[tuple[str, int], ...] = ()


MAX_QUOTES = 40
"""More bare quotes than this in one text are not read as part of it."""

_TOKEN = late_pattern(
    r"""
      (?P<space>[\s\ufeff\u200b]+)
    | (?P<comment>//[^\n]*+ | /\*(?:[^*]++|\*(?!/))*+\*/ | \#[^\n]*+)
    | (?P<triple>\"{3}(?:[^"\\]++|\\.|"(?!""))*+\"{3} | '{3}(?:[^'\\]++|\\.|'(?!''))*+'{3})
    | (?P<string>"(?:[^"\\]++|\\.)*+")
    | (?P<single>'(?:[^'\\]++|\\.)*+')
    | (?P<curly>“(?:[^”\\]|\\.){0,5000}+” | ‘(?:[^’\\]|\\.){0,5000}+’)
    | (?P<mark>[\[\]{}:,：，])
    | (?P<endless>["'“‘] | /\*)
    | (?P<word>[^\s\[\]{}:,：，"'“‘/#]+ | .)
    """,
    re.VERBOSE | re.DOTALL,
)
_NUMBER = late_pattern(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?\Z")
_CONSTANTS = {"true": "true", "false": "false", "null": "null", "NaN": "NaN", "Infinity": "Infinity"}
_CONSTANTS["-Infinity"] = "-Infinity"
_PYTHON = {"True": "true", "False": "false", "None": "null"}
_QUOTE = late_pattern(r'\\.|"|\n', re.DOTALL)
_AFTER_VALUE = late_pattern(r"\s*(?:[,，}\]]|\Z|//|/\*|\#|\n\s*\")")
_STRUCTURE = late_pattern(r'"\s*[:{\[]|[:{\[,]\s*"')
_ANOTHER_TEXT = late_pattern(r'\s*"')
_JOINT = late_pattern(r"\s|\W*\Z|[-+*/%&|.,;<>=?~^].*[-+*/%&|.,;<>=?~^(\[]\Z", re.DOTALL)
"""Between two quotes it joins two texts, as in `"a" + "b"`, rather than being quoted itself."""
_AFTER_KEY = late_pattern(r"\s*[:：]")


def mend(text: str, start: int) -> Mended | Damage:
    """Return sound JSON for the value whose opening bracket is at `start`, or why there is no single reading."""
    return _Mender(text, start).run()


@dataclass(slots=True)
class _Frame:
    """An open bracket."""

    mark: str
    at: int
    empty: bool = True


@dataclass
class _Mender:
    text: str
    start: int
    out: list[str] = field(default_factory=list[str])
    frames: list[_Frame] = field(default_factory=list[_Frame])
    wants: str = "value"
    """What comes next: `value`, `key`, `colon`, or `next` for a comma or a closing bracket."""
    comma: int = -1
    """Where in `out` the comma stands that nothing has followed yet; `comma_at` is where in the text."""
    comma_at: int = -1
    closed: bool = False
    """Whether the last token closed a bracket."""
    skip_to: int = 0
    """Where the last token really ended, when that is not where it seemed to."""
    found: dict[str, list[int]] = field(default_factory=dict[str, list[int]])

    def run(self) -> Mended | Damage:
        at = self.start
        while match := _TOKEN.match(self.text, at):
            damage = self._token(match.lastgroup or "", match.group(), at, match.end())
            if damage is not None:
                return damage
            at = self.skip_to or match.end()
            self.skip_to = 0
            if not self.frames:
                return Mended("".join(self.out), at, tuple(self._repairs()))
        return self._cut(at)

    def _token(self, kind: str, token: str, at: int, end: int) -> Damage | None:
        if kind == "space":
            if token.strip(" \t\r\n"):
                self._note("read an unusual space as a space", at)
                token = self._blank(token)
            self.out.append(token)
            return None
        if kind == "comment":
            self._note("left out a comment", at)
            self.out.append(self._blank(token))
            return None
        if kind == "endless":
            if token == "/*" or (token in "\"'" and self.wants in ("value", "key")):
                return self._cut(at)
            return self._unexpected(at, f"`{token}` without an end")
        if kind == "mark":
            return self._mark(token, at)
        if kind == "word":
            return self._word(token, at)
        return self._string(kind, token, at, end)

    @staticmethod
    def _blank(token: str) -> str:
        return "".join(ch if ch == "\n" else " " for ch in token)

    def _mark(self, mark: str, at: int) -> Damage | None:
        if mark in "：，":
            self._note("read a full-width mark as the ASCII one", at)
            mark = ":" if mark == "：" else ","
        if mark in "[{":
            if self.wants == "next" and self.closed and self.frames[-1].mark == "[":
                self._note("put a comma between two entries", at)
                self.out.append(",")
            elif self.wants != "value":
                return self._unexpected(at, f"`{mark}`")
            if self.frames:
                self.frames[-1].empty = False
            self.frames.append(_Frame(mark, at))
            self.wants = "value" if mark == "[" else "key"
            self.comma = -1
            self.closed = False
        elif mark in "]}":
            return self._close(mark, at)
        elif mark == ":":
            if self.wants != "colon":
                return self._unexpected(at, "`:`")
            self.wants = "value"
        else:
            if self.wants != "next":
                return self._unexpected(at, "`,`")
            self.wants = "value" if self.frames[-1].mark == "[" else "key"
            self.comma, self.comma_at = len(self.out), at
        self.out.append(mark)
        return None

    def _close(self, mark: str, at: int) -> Damage | None:
        frame = self.frames[-1]
        if mark != ("]" if frame.mark == "[" else "}"):
            opened = self._line(frame.at)
            right = "]" if frame.mark == "[" else "}"
            return self._broken(
                at,
                f"found `{mark}` where `{right}` is expected",
                f"the `{frame.mark}` of line {opened} is not closed; check the brackets around here",
            )
        if self.comma >= 0:
            self._note("left out a comma before a closing bracket", self.comma_at)
            self.out[self.comma] = " "
        elif self.wants != "next" and not frame.empty:
            return self._unexpected(at, f"`{mark}`")
        self.frames.pop()
        self.out.append(mark)
        self._done(closed=True)
        return None

    def _word(self, word: str, at: int) -> Damage | None:
        if word.startswith("```"):
            return self._cut(at)
        if word.startswith(("...", "…")):
            return Damage("gap", at, "`...` stands for something that was left out", "write everything out")
        if self.wants == "key" and (word.isidentifier() or word.isdecimal()):
            self._note("put quotes around a key", at)
            self.out.append(json.dumps(word, ensure_ascii=False))
            self._key()
            return None
        if self.wants != "value":
            return self._unexpected(at, f"`{word[:20]}`")
        if word in _PYTHON:
            self._note("read Python's True, False or None as JSON's", at)
            word = _PYTHON[word]
        elif word not in _CONSTANTS and not _NUMBER.match(word):
            return self._broken(at, f"`{word[:20]}` is neither a value nor quoted text", "put text into double quotes")
        self.out.append(word)
        self._done()
        return None

    def _string(self, kind: str, token: str, at: int, end: int) -> Damage | None:
        if self._begins_entry(end):
            self._note("put a comma between two entries", at)
            self.out.append(",")
            self.wants = "key"
        elif self.wants not in ("value", "key"):
            return self._unexpected(at, f"`{token[:20]}`")
        if kind == "string" and len(whole := self._true_end(token, at)) > len(token):
            self._note("read quotes inside text as part of it", at)
            token = whole
            self.skip_to = at + len(whole)
        if kind in ("single", "triple"):
            self._note("read other quotes as double quotes", at)
        elif kind == "curly":
            self._note("read typographic quotes as double quotes", at)
        width = 3 if kind == "triple" else 1
        body = self._body(token[width:-width], at + width)
        if isinstance(body, Damage):
            return body
        self.out.append(f'"{body}"')
        if self.wants == "key":
            self._key()
        else:
            self._done()
        return None

    def _begins_entry(self, end: int) -> bool:
        """Whether this string is a key before which a comma is missing.

        Behind a text it must stand on a new line; on the same line both could be one text with quotes inside.
        """
        if self.wants != "next" or self.frames[-1].mark != "{" or not _AFTER_KEY.match(self.text, end):
            return False
        gap = self.out[-1] if self.out[-1].isspace() else ""
        return "\n" in gap or not self._is_after_text()

    def _is_after_text(self) -> bool:
        return next((piece for piece in reversed(self.out) if not piece.isspace()), "").endswith('"')

    def _true_end(self, token: str, at: int) -> str:
        """Return the text token that begins at `at`, which is longer than `token` when it has bare quotes inside.

        A quote that ends a value is followed by a comma or a closing bracket, one that ends a key by a colon. If the
        next quote is not, it belongs to the text, and so do the ones after it up to the first that can end it. That is
        the only reading when they are pairs on one line, none of them stands where a key or value could begin or end,
        and what they enclose does not join two texts; otherwise `token` stays and is found to be wrong.
        """
        ends = _AFTER_KEY if self.wants == "key" else _AFTER_VALUE
        behind = at + len(token)
        if ends.match(self.text, behind) or _ANOTHER_TEXT.match(self.text, behind):
            return token
        inner = 1
        opened = behind
        for match in _QUOTE.finditer(self.text, behind):
            if match.group() == "\n":
                break
            if match.group() != '"':
                continue
            if ends.match(self.text, match.end()):
                whole = self.text[at : match.end()]
                return whole if inner % 2 == 0 and not _STRUCTURE.search(whole, 1, len(whole) - 1) else token
            inner += 1
            if inner % 2 == 0 and _JOINT.match(self.text[opened : match.start()]):
                break
            opened = match.end()
            if inner > MAX_QUOTES:
                break
        return token

    def _body(self, body: str, at: int) -> str | Damage:
        pieces: list[str] = []
        last = 0
        for match in _SPECIAL.finditer(body):
            pieces.append(body[last : match.start()])
            last = match.end()
            piece = match.group()
            if piece == '"':
                pieces.append('\\"')
            elif len(piece) == 1:
                self._note("read a line break or control character inside text as its escape", at + match.start())
                pieces.append(json.dumps(piece)[1:-1])
            elif piece in _ESCAPES or len(piece) == 6:
                pieces.append(piece)
            elif piece == "\\'":
                self._note("read `\\'` as an apostrophe", at + match.start())
                pieces.append("'")
            else:
                shown = piece if piece.isprintable() else "\\"
                return self._broken(
                    at + match.start(), f"`{shown}` is not an escape", f"write `\\{shown}` if a backslash is meant"
                )
        pieces.append(body[last:])
        return "".join(pieces)

    def _key(self) -> None:
        self.wants = "colon"
        self.comma = -1
        self.frames[-1].empty = False

    def _done(self, *, closed: bool = False) -> None:
        if self.frames:
            self.frames[-1].empty = False
        self.wants = "next"
        self.comma = -1
        self.closed = closed

    def _note(self, what: str, at: int) -> None:
        self.found.setdefault(what, []).append(at)

    def _repairs(self) -> list[str]:
        return [
            f"{what} (line {self._line(places[0])}"
            + (f" and {len(places) - 1} more place{'s' if len(places) > 2 else ''})" if len(places) > 1 else ")")
            for what, places in self.found.items()
        ]

    def _line(self, at: int) -> int:
        return self.text.count("\n", 0, at) + 1

    def _unexpected(self, at: int, found: str) -> Damage:
        expected = {
            "value": "a value",
            "key": "a key in double quotes",
            "colon": "`:`",
            "next": "`,` or `]`" if self.frames and self.frames[-1].mark == "[" else "`,` or `}`",
        }[self.wants]
        help = 'write a quote inside text as \\"' if self.wants == "next" and self._is_after_text() else None
        return self._broken(at, f"expected {expected}, found {found}", help)

    def _broken(self, at: int, problem: str, help: str | None = None) -> Damage:
        return Damage("broken", at, problem, help)

    def _cut(self, at: int) -> Damage:
        still_open = [(frame.mark, frame.at) for frame in self.frames]
        if at < len(self.text) and not self.text.startswith("```", at):
            if self.text[at] in "\"'":
                still_open.append(('"', at))
            at = len(self.text)
        return Damage("cut", at, "the text ends before the plan does", open=tuple(still_open))


_SPECIAL = late_pattern(r'\\u[0-9a-fA-F]{4}|\\.|["\x00-\x1f]', re.DOTALL)
_ESCAPES = frozenset(("\\" + ch) for ch in '"\\/bfnrt')
