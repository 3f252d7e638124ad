"""The string literals and comments of a program, f-strings taken apart: literal text and holes, nested ones included.

Follows PEP 701: a hole ends at its own brace, whatever quotes, braces and backslashes stand in strings inside it.
"""

from __future__ import annotations

import ast
import bisect
import re
from dataclasses import dataclass, field

__all__ = ["FILLER", "LINE_END", "Hole", "StringToken", "Strings", "Unreadable", "find_strings"]

FILLER = "\x01"
"""What masked f-strings are filled with; hardly any other text has it."""
LINE_END = re.compile(r"\r\n|\r|\n")

_TOKEN = re.compile(r"""#[^\r\n]*|(?:(?<!\w)([rRbBuUfF]{1,2}))?(\"\"\"|'''|"|')""")
_END = {
    '"': re.compile(r'[^"\\\r\n]*(?:\\(?:\r\n|[\s\S])[^"\\\r\n]*)*"'),
    "'": re.compile(r"[^'\\\r\n]*(?:\\(?:\r\n|[\s\S])[^'\\\r\n]*)*'"),
    '"""': re.compile(r'(?:[^"\\]|\\[\s\S]|"(?!""))*"""'),
    "'''": re.compile(r"(?:[^'\\]|\\[\s\S]|'(?!''))*'''"),
}
_LITERAL_STOP = re.compile(r"""[\\{}"'\r\n]""")
_ESCAPE = re.compile(r"\\(?:N\{[^{}'\"\r\n]*\}|\r\n|[^{}])")
_ESCAPED = re.compile(r"\\(?:N\{[^{}]*\}|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{1,3}|[\s\S])")
_ESCAPES = "\n\\'\"abfnrtvxuUN01234567"
"""What follows a backslash that means something; before anything else it is a backslash."""
_HOLE_STOP = re.compile(r"""#|(?:(?<!\w)[rRbBuUfF]{1,2})?["']|[()\[\]{}:!=\r\n]""")
_SELF_DOCUMENTING = re.compile(r"=\s*(?=[}:!])")
_SPEC_STOP = re.compile(r"""[{}"'\r\n]""")
_SURROGATE = re.compile("[\ud800-\udfff]")


class Unreadable(Exception):
    """Text that is not a Python program. Offsets are characters in the text."""

    def __init__(self, message: str, start: int, end: int, *, too_large: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.start = start
        self.end = end
        self.too_large = too_large


@dataclass(slots=True)
class StringToken:
    """One string literal, prefix and quotes included. `parts` is None for any but an f-string."""

    start: int
    end: int
    quote: str
    parts: list[str | Hole] | None = None


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment; `text` is what it says."""

    start: int
    end: int
    text: str


@dataclass(slots=True)
class Hole:
    """A replacement field: where its braces and its expression stand, its conversion and its format spec."""

    field_start: int
    start: int
    end: int
    field_end: int
    conversion: int = -1
    spec: list[str | Hole] | None = None


@dataclass(slots=True)
class Strings:
    """Every string literal of a text, those inside f-strings included, by where it begins; and every comment."""

    text: str
    tokens: list[StringToken] = field(default_factory=list[StringToken])
    starts: list[int] = field(default_factory=list[int])
    comments: list[Comment] = field(default_factory=list[Comment])

    def between(self, start: int, end: int) -> list[StringToken]:
        """Return the literals from `start` to `end`, without those inside an f-string that is itself returned."""
        found: list[StringToken] = []
        index = bisect.bisect_left(self.starts, start)
        while index < len(self.tokens) and self.tokens[index].start < end:
            token = self.tokens[index]
            if not found or token.start >= found[-1].end:
                found.append(token)
            index += 1
        return found

    def masked(self, start: int, end: int) -> str:
        """Return the text with every f-string as a plain string that takes as many bytes on each line."""
        pieces: list[str] = []
        at = start
        for token in self.between(start, end):
            if token.parts is not None:
                pieces += [self.text[at : token.start], _mask(self.text[token.start : token.end], token.quote)]
                at = token.end
        pieces.append(self.text[at:end])
        return "".join(pieces)


def find_strings(text: str, start: int) -> Strings:
    """Return the string literals and comments of the program that begins at `start`. Raises `Unreadable`."""
    if bad := _SURROGATE.search(text, start):
        raise Unreadable("the program holds half of a surrogate pair, which is no character", *bad.span())
    if (null := text.find("\0", start)) >= 0:
        raise Unreadable("the program holds a null character", null, null + 1)
    finder = _Finder(text)
    try:
        finder.scan(start)
    except RecursionError:
        raise Unreadable("f-strings are nested too deeply to be read", start, start, too_large=True) from None
    finder.comments.sort(key=lambda comment: comment.start)
    finder.tokens.sort(key=lambda token: token.start)
    return Strings(text, finder.tokens, [token.start for token in finder.tokens], finder.comments)


class _Finder:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[StringToken] = []
        self.comments: list[Comment] = []

    def scan(self, at: int) -> None:
        while match := _TOKEN.search(self.text, at):
            end = self._token(match)
            if end is None:
                return  # never closed: Python's parser says so better
            at = end

    def _token(self, match: re.Match[str]) -> int | None:
        """Note the comment or string that begins here; return where it ends, None if it is never closed."""
        quote = match.group(2)
        if quote is None:
            self.comments.append(Comment(match.start(), match.end(), match.group()[1:].strip()))
            return match.end()
        prefix = (match.group(1) or "").lower()
        if "f" in prefix:
            parts, end = self._fstring(match.end(), quote, "r" in prefix, match.start())
            self.tokens.append(StringToken(match.start(), end, quote, parts))
            return end
        closed = _END[quote].match(self.text, match.end())
        if closed is None:
            return None
        self.tokens.append(StringToken(match.start(), closed.end(), quote))
        return closed.end()

    def _fstring(self, at: int, quote: str, raw: bool, start: int) -> tuple[list[str | Hole], int]:
        """Return the parts of the f-string whose contents begin at `at`, and where it ends."""
        parts: list[str | Hole] = []
        written: list[str] = []

        def flush() -> None:
            if written:
                parts.append(_decoded("".join(written), raw, start))
                written.clear()

        text = self.text
        while stop := _LITERAL_STOP.search(text, at):
            if stop.start() > at:
                written.append(text[at : stop.start()])
                at = stop.start()
            character = stop.group()
            if text.startswith(quote, at):
                flush()
                return parts, at + len(quote)
            if character == "\\":
                escape = None if raw else _ESCAPE.match(text, at)
                written.append(escape.group() if escape else "\\" if raw else "\\\\")
                at = escape.end() if escape else at + 1
                if raw and text[at : at + 1] == quote[0]:  # in a raw string too, a backslash keeps the quote open
                    written.append(quote[0])
                    at += 1
            elif character in "{}":
                if text.startswith(character * 2, at):
                    written.append(character)
                    at += 2
                elif character == "}":
                    raise Unreadable("a single `}` in an f-string; a literal brace is doubled", at, at + 1)
                else:
                    flush()
                    at = self._hole(at, quote, raw, parts)
            elif character in "\r\n" and len(quote) == 1:
                break
            else:
                written.append(character)
                at += 1
        raise Unreadable("unterminated f-string literal", start, min(start + 2, len(text)))

    def _hole(self, opening: int, quote: str, raw: bool, parts: list[str | Hole]) -> int:
        """Read the replacement field whose brace is at `opening` into `parts`; return the offset after it."""
        text = self.text
        never_closed = Unreadable("this brace of the f-string is never closed", opening, opening + 1)
        brackets: list[str] = []
        shown = False
        at = opening + 1
        while True:
            stop = _HOLE_STOP.search(text, at)
            if stop is None:
                raise never_closed
            at = stop.start()
            character = text[at]
            token = _TOKEN.match(text, at)
            if token is not None:
                end = self._token(token)
                if end is None:
                    raise never_closed
                at = end
                continue
            if character in "([{":
                brackets.append(character)
            elif brackets and character in ")]}":
                brackets.pop()
            elif character in ")]":
                raise Unreadable(f"unmatched `{character}` in an f-string", at, at + 1)
            elif character in "\r\n" and len(quote) == 1:
                raise never_closed
            elif not brackets and (character in ":}" or (character == "!" and text[at + 1 : at + 2] != "=")):
                break
            elif not brackets and character == "=" and text[at - 1] not in "=!<>" and _SELF_DOCUMENTING.match(text, at):
                shown = True
                break
            at += 2 if text[at : at + 2] in ("!=", "==") else 1
        hole = Hole(opening, opening + 1, at, at)
        if not text[opening + 1 : at].strip():
            raise Unreadable("the f-string has empty braces", opening, min(at + 1, len(text)))
        if shown and (equals := _SELF_DOCUMENTING.match(text, at)):
            at = equals.end()
            parts.append(text[hole.start : at])
        if text[at : at + 1] == "!":
            if text[at + 1 : at + 2] not in ("s", "r", "a"):
                raise Unreadable("after `!` an f-string takes `s`, `r` or `a`", at, at + 1)
            hole.conversion = ord(text[at + 1])
            at += 2
        if text[at : at + 1] == ":":
            hole.spec, at = self._spec(at + 1, quote, raw)
        elif shown and hole.conversion == -1:
            hole.conversion = ord("r")
        if text[at : at + 1] != "}":
            raise never_closed
        hole.field_end = at + 1
        parts.append(hole)
        return at + 1

    def _spec(self, at: int, quote: str, raw: bool) -> tuple[list[str | Hole], int]:
        parts: list[str | Hole] = []
        text = self.text
        while stop := _SPEC_STOP.search(text, at):
            if stop.start() > at:
                parts.append(text[at : stop.start()])
            at = stop.start()
            if stop.group() == "{":
                at = self._hole(at, quote, raw, parts)
            elif stop.group() in ("'", '"') and not text.startswith(quote, at):
                parts.append(stop.group())
                at += 1
            else:
                break
        return parts, at


def _decoded(written: str, raw: bool, start: int) -> str:
    """Return the text that a stretch of literal text in an f-string stands for."""
    if "\r" in written:
        written = LINE_END.sub("\n", written)
    if raw or "\\" not in written:
        return written

    def escaped(match: re.Match[str]) -> str:
        if match.group()[1] not in _ESCAPES:
            return match.group()
        try:
            return ast.literal_eval(f'"{match.group()}"')
        except (SyntaxError, ValueError) as error:
            message = error.msg if isinstance(error, SyntaxError) else str(error)
            raise Unreadable(message, start, start + 1) from None

    return _ESCAPED.sub(escaped, written)


def _mask(token: str, quote: str) -> str:
    """Return a plain string literal with as many bytes on each line as `token`, an f-string."""
    filled: list[str] = []
    at = 0
    for line_end in [*LINE_END.finditer(token), None]:
        width = len(token[at : line_end.start() if line_end else len(token) - len(quote)].encode())
        if line_end is None:
            filled.append(FILLER * width)
        elif len(quote) == 1:  # a backslash went on with the string on the next line
            filled += [FILLER * (width - 1), "\\", line_end.group()]
        else:
            filled += [FILLER * width, line_end.group()]
        at = line_end.end() if line_end else at
    return quote + "".join(filled)[len(quote) :] + quote
