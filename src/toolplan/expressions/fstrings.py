r"""f-strings that hold their own quote or a backslash in a hole, for the parser of CPython 3.11.

Since 3.12 `f'{', '.join(xs)}'` and `f"{'\n'.join(xs)}"` are Python (PEP 701), and models write both; whether a plan can
be read must not depend on the Python that runs us. So the strings inside the holes of f-strings are hidden: each
becomes a word in the other kind of quotes with as many bytes, and gets its value back in the tree.
"""

from __future__ import annotations

import ast
import re
import string
from dataclasses import dataclass, field
from typing import Any

__all__ = ["hidden_strings", "with_strings"]

_START = re.compile(r"(?<![\w])([rRbBuUfF]{0,2})('''|\"\"\"|'|\")")
_IN_SPEC = re.compile(r"[{}'\"]")
_END = {
    "'": re.compile(r"(?:[^'\\\n]|\\.)*'", re.DOTALL),
    '"': re.compile(r'(?:[^"\\\n]|\\.)*"', re.DOTALL),
    "'''": re.compile(r"(?:[^\\]|\\.)*?'''", re.DOTALL),
    '"""': re.compile(r'(?:[^\\]|\\.)*?"""', re.DOTALL),
}
_IN_TEXT = re.compile(r"\\.|\{\{|\}\}|[{}]|'''|\"\"\"|['\"]", re.DOTALL)
_IN_HOLE = re.compile(r"[()\[\]{}:]|(?<![\w])[rRbBuUfF]{0,2}(?:'''|\"\"\"|'|\")")
_LETTERS = string.ascii_letters + string.digits


class _GiveUpError(Exception):
    """An f-string that cannot be written for the old parser, or is none."""


@dataclass
class _Hider:
    text: str
    pieces: list[str] = field(default_factory=list[str])
    copied: int = 0
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    """The value of each word that stands for a string."""

    def scan(self) -> str:
        at = 0
        while start := _START.search(self.text, at):
            if "f" in start[1].lower():
                at = self.f_string(start.end(), start[2])
            else:
                at = self.end_of_string(start.end(), start[2])
        return "".join([*self.pieces, self.text[self.copied :]])

    def end_of_string(self, at: int, quote: str) -> int:
        match = _END[quote].match(self.text, at)
        if match is None:
            raise _GiveUpError
        return match.end()

    def f_string(self, at: int, quote: str) -> int:
        """Hide the strings in the holes of the f-string whose text begins at `at`; return where it ends."""
        while found := _IN_TEXT.search(self.text, at):
            at = found.end()
            if found.group() == quote:
                return at
            if found.group() == "{":
                at = self.hole(at, quote)
            elif found.group().startswith(quote):  # a quote in front of three others
                return found.start() + len(quote)
        raise _GiveUpError

    def hole(self, at: int, quote: str) -> int:
        depth = 0
        while found := _IN_HOLE.search(self.text, at):
            token = found.group()
            at = found.end()
            if token in "([{":
                depth += 1
            elif token in ")]}":
                if depth == 0:
                    return at
                depth -= 1
            elif token == ":":
                if depth == 0:
                    return self.spec(at, quote)
            else:
                at = self.hide(found.start(), at, quote)
        raise _GiveUpError

    def spec(self, at: int, quote: str) -> int:
        while found := _IN_SPEC.search(self.text, at):
            at = found.end()
            if found.group() == "}":
                return at
            if found.group() != "{":
                raise _GiveUpError
            at = self.hole(at, quote)
        raise _GiveUpError

    def hide(self, start: int, opened: int, outer: str) -> int:
        """Put a word in the place of the string in a hole; return where the string ends."""
        opening = self.text[start:opened]
        prefix, quote = opening.rstrip("'\""), opening.lstrip("rRbBuUfF")
        if "f" in prefix.lower():
            raise _GiveUpError
        end = self.end_of_string(opened, quote)
        literal = self.text[start:end]
        other = "'" if outer[0] == '"' else '"'
        word = self.word(len(literal.encode()) - 2)
        if word:
            self.values[word] = ast.literal_eval(literal)
        self.pieces += (self.text[self.copied : start], other, word, other)
        self.copied = end
        return end

    def word(self, width: int) -> str:
        """Return a word of `width` letters that no other string has."""
        number = len(self.values)
        if width == 1 and number < len(_LETTERS):
            return _LETTERS[number]
        word = str(number).rjust(width, "_") if width else ""
        if len(word) > width or width == 1:
            raise _GiveUpError
        return word


def hidden_strings(text: str) -> tuple[str, dict[str, Any]] | None:
    """Return `text` with the strings inside the holes of its f-strings hidden, and their values.

    Each node of its tree has the place in bytes that it has in `text`. None when there is nothing that hiding could
    mend, or no way to do it.
    """
    hider = _Hider(text)
    try:
        hidden = hider.scan()
    except (_GiveUpError, ValueError, SyntaxError, RecursionError):
        return None
    return (hidden, hider.values) if hider.pieces else None


def with_strings(tree: ast.expr, values: dict[str, Any]) -> ast.expr:
    """Return `tree` with the hidden strings back in the holes of its f-strings. Changes it in place."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FormattedValue):
            literal = {
                id(part) for inner in ast.walk(node.value) if isinstance(inner, ast.JoinedStr) for part in inner.values
            }
            for part in ast.walk(node.value):
                if isinstance(part, ast.Constant) and isinstance(part.value, str) and id(part) not in literal:
                    part.value = values.get(part.value, part.value)
    return tree
