"""Program text -> `ast` tree in which every node knows its place, whatever Python runs us.

CPython 3.11 gives nodes inside f-strings wrong columns and refuses f-strings that hold their own quote or a backslash
in a hole; 3.12 reads both (PEP 701), and models write both. So f-strings are read by `fstrings.py`: before Python
parses the text, each f-string is masked by a plain string of as many bytes, and when the tree is walked, `unmasked`
gives the `JoinedStr` that a masked constant stands for, its holes parsed in the coordinates of the whole program.
"""

from __future__ import annotations

import ast
import bisect
import functools
import itertools
import re
import threading
import warnings
from dataclasses import dataclass
from keyword import iskeyword
from typing import Literal, TypeAlias, TypeVar

from toolplan.diagnostics import Place, Source
from toolplan.parse.python_notation.fstrings import FILLER, LINE_END, Hole, Strings, Unreadable, find_strings

__all__ = ["MAX_CHARACTERS", "Located", "ProgramText", "read_expression", "read_text"]

MAX_CHARACTERS = 100_000
"""Longer programs are refused: Python's parser needs about a kilobyte of memory for a line of them."""

Located: TypeAlias = "ast.expr | ast.stmt | ast.excepthandler | ast.keyword | ast.alias | ast.arg"


@dataclass
class ProgramText:
    """A program's statements, its comments by line, and where each node stands."""

    source: Source
    body: list[ast.stmt]
    lines: Lines
    strings: Strings

    def place(self, node: Located) -> Place:
        """Return where the node stands in the source, in characters."""
        start, end = self.span(node)
        return Place(start=start, end=end)

    def span(self, node: Located) -> tuple[int, int]:
        """Return the character offsets of the node in the source."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.lines.span(node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)

    def code(self, start: int, end: int) -> str:
        """Return the source between the offsets, with blanks for its comments."""
        text = self.source.text[start:end]
        comments = self.strings.comments
        index = bisect.bisect_left(comments, start, key=lambda comment: comment.start)
        while index < len(comments) and comments[index].start < end:
            comment = comments[index]
            text = text[: comment.start - start] + " " * (comment.end - comment.start) + text[comment.end - start :]
            index += 1
        return text

    @functools.cached_property
    def comments(self) -> dict[int, str]:
        """The program's comments without their `#`, by line number as the nodes have it."""
        return {self.lines.locate(comment.start)[0]: comment.text for comment in self.strings.comments}

    def unmasked(self, node: ast.Constant) -> ast.JoinedStr | None:
        """Return the f-string that the constant stands for, or None when it is what it seems. Raises `Unreadable`."""
        if not isinstance(node.value, str) or FILLER not in node.value:
            return None
        tokens = self.strings.between(*self.span(node))
        if all(token.parts is None for token in tokens):
            return None
        values: list[ast.expr] = []
        for token in tokens:
            start = self.lines.locate(token.start)
            end = self.lines.locate(token.end)
            if token.parts is None:
                tree = _parse(self.source.text[token.start : token.end], "eval", self.lines, start[0] - 1, start[1])
                assert isinstance(tree, ast.Expression)
                values.append(_placed(tree.body, start, end))
            else:
                values += self._values(token.parts, start, end)
        joined = ast.JoinedStr(_merged(values))
        return ast.copy_location(joined, node)

    def _values(self, parts: list[str | Hole], start: tuple[int, int], end: tuple[int, int]) -> list[ast.expr]:
        values: list[ast.expr] = []
        for part in parts:
            if isinstance(part, str):
                values.append(_placed(ast.Constant(part), start, end))
                continue
            first = self.lines.locate(part.field_start)
            last = self.lines.locate(part.field_end)
            spec = None
            if part.spec is not None:
                spec = _placed(ast.JoinedStr(_merged(self._values(part.spec, first, last))), start, end)
            values.append(_placed(ast.FormattedValue(self._expression(part), part.conversion, spec), first, last))
        return values

    def _expression(self, hole: Hole) -> ast.expr:
        """Return the tree of a hole's expression, in the coordinates of the program."""
        line, column = self.lines.locate(hole.start)
        path = _PATH.fullmatch(self.source.text, hole.start, hole.end)
        if path is not None and not any(map(iskeyword, path.group().split("."))):
            return _path(path.group().split("."), line, column)
        masked = self.strings.masked(hole.start, hole.end)
        tree = _parse(f"({masked}\n)", "eval", self.lines, line - 1, column - 1)
        assert isinstance(tree, ast.Expression)
        for node in ast.walk(tree.body):
            if isinstance(node, ast.expr | ast.keyword | ast.arg):
                end_line, end_column = node.end_lineno or 1, node.end_col_offset or 0
                if node.lineno == 1:
                    node.col_offset += column - 1
                node.end_col_offset = end_column + (column - 1 if end_line == 1 else 0)
                node.lineno += line - 1
                node.end_lineno = end_line + line - 1
        return tree.body


def read_text(source: Source) -> ProgramText:
    """Return the tree of the program in `source.text`, from `source.start` on. Raises `Unreadable`."""
    text, start = source.text, source.start
    if len(text) - start > MAX_CHARACTERS:
        message = f"the program has {len(text) - start:,} characters; at most {MAX_CHARACTERS:,} are read"
        raise Unreadable(message, start, start, too_large=True)
    lines = Lines(text, start)
    strings = find_strings(text, start)
    masked = strings.masked(start, len(text))
    first = _FIRST_CODE.match(masked)
    if first and first.group(1) and first.end() < len(masked):
        return ProgramText(source, _indented(masked, lines), lines, strings)
    tree = _parse(masked, "exec", lines, 0, 0)
    assert isinstance(tree, ast.Module)
    return ProgramText(source, tree.body, lines, strings)


def read_expression(expression: str) -> ast.expr:
    """Return the tree of an expression that stands alone. Columns of its first line count from 1.

    Raises `Unreadable`.
    """
    code = f"({expression}\n)"  # the brackets let it go over several lines
    lines = Lines(code, 0)
    strings = find_strings(code, 0)
    tree = _parse(strings.masked(0, len(code)), "eval", lines, 0, 0)
    assert isinstance(tree, ast.Expression)
    if all(token.parts is None for token in strings.tokens):
        return tree.body
    return _Unmask(ProgramText(Source(code), [], lines, strings)).visit(tree.body)


class _Unmask(ast.NodeTransformer):
    """Puts f-strings in place of the constants that stand for them."""

    def __init__(self, text: ProgramText) -> None:
        self.text = text

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        found = self.text.unmasked(node)
        return node if found is None else self.visit_JoinedStr(found)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.JoinedStr:
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                part.value = self.visit(part.value)
                if isinstance(part.format_spec, ast.JoinedStr):
                    self.visit_JoinedStr(part.format_spec)
        return node


_FIRST_CODE = re.compile(r"(?:[ \t\f]*(?:#[^\r\n]*)?(?:\r\n|\r|\n))*([ \t]*)")


def _indented(code: str, lines: Lines) -> list[ast.stmt]:
    """Return the statements of a program that is indented as a whole, as one cut from a list is: a block's body."""
    lines.before = 1
    tree = _parse("if 1:\n" + code, "exec", lines, 0, 0)
    assert isinstance(tree, ast.Module)
    block, *outside = tree.body
    assert isinstance(block, ast.If)
    if outside:
        place = lines.offset(outside[0].lineno, 0)
        raise Unreadable("unindent does not match the first line of the program", place, place + 1)
    return block.body


class Lines:
    """Character offsets of (line, byte column) pairs in a text, and back. Lines count from 1, columns from 0.

    `before` is how many lines Python was given in front of the text.
    """

    __slots__ = ("_bytes", "_plain", "_starts", "_text", "before")

    def __init__(self, text: str, start: int) -> None:
        self._text = text
        self._plain = text.isascii()
        self._starts = [start, *(match.end() for match in LINE_END.finditer(text, start)), len(text)]
        self._bytes: dict[int, list[int]] = {}
        self.before = 0

    def span(self, line: int, column: int, end_line: int, end_column: int) -> tuple[int, int]:
        """Return the character offsets of a start and an end, each a line and a column in UTF-8 bytes."""
        starts = self._starts
        if self._plain and end_line - self.before < len(starts):
            return starts[line - self.before - 1] + column, starts[end_line - self.before - 1] + end_column
        return self.offset(line, column), self.offset(end_line, end_column)

    def offset(self, line: int, column: int) -> int:
        """Return the character offset of a line and a column in UTF-8 bytes."""
        starts = self._starts
        line -= self.before
        if line < 1:
            return starts[0]
        if line >= len(starts):
            return len(self._text)
        if self._plain:
            return starts[line - 1] + column
        return starts[line - 1] + max(0, bisect.bisect_right(self._columns(line), column) - 1)

    def locate(self, offset: int) -> tuple[int, int]:
        """Return the line and the column in UTF-8 bytes of a character offset."""
        line = max(1, bisect.bisect_right(self._starts, offset, hi=len(self._starts) - 1))
        column = offset - self._starts[line - 1]
        return line + self.before, column if self._plain else self._columns(line)[column]

    def _columns(self, line: int) -> list[int]:
        """Return the byte column of each character of a line, and of its end."""
        columns = self._bytes.get(line)
        if columns is None:
            content = self._text[self._starts[line - 1] : self._starts[line]]
            widths = (1 if c < "\x80" else 2 if c < "\u0800" else 3 if c < "\U00010000" else 4 for c in content)
            columns = self._bytes[line] = list(itertools.accumulate(widths, initial=0))
        return columns


_ODD_LITERAL = re.compile(r"\\|\d\.?[^\W\d]")
_quiet = threading.Lock()


def _parse(code: str, mode: Literal["exec", "eval"], lines: Lines, lines_before: int, shift: int) -> ast.AST:
    """Return what Python reads in `code`, whose first line begins `lines_before` lines into the text.

    `shift` is what must be added to a byte column of that first line.
    """
    try:
        if not _ODD_LITERAL.search(code):
            return ast.parse(code, mode=mode)
        with _quiet, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python warns of a doubtful escape such as "\\d", the plan need not
            return ast.parse(code, mode=mode)
    except SyntaxError as error:
        rows = LINE_END.split(code)

        def offset(row: int | None, column: int | None) -> int | None:
            if row is None or column is None or not 1 <= row <= len(rows):
                return None
            width = len(rows[row - 1][: max(0, column - 1)].encode())
            return lines.offset(row + lines_before, width + (shift if row == 1 else 0))

        start = offset(error.lineno, error.offset)
        end = offset(error.end_lineno, error.end_offset)
        start = lines.offset(len(rows) + lines_before, 0) if start is None else start
        too_deep = error.msg.startswith("too many")  # nested parentheses, levels of indentation
        end = end if end is not None and end > start else start
        raise Unreadable(error.msg, start, end, too_large=too_deep) from None
    except (RecursionError, MemoryError):
        start = lines.offset(1 + lines_before, max(0, shift))
        raise Unreadable("the program is nested too deeply to be read", start, start, too_large=True) from None


_PATH = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")


def _path(parts: list[str], line: int, column: int) -> ast.expr:
    """Return the tree of `a.b.c`, what most holes hold, as Python's parser would."""
    end = column + len(parts[0])
    tree: ast.expr = _placed(ast.Name(parts[0], ast.Load()), (line, column), (line, end))
    for part in parts[1:]:
        end += 1 + len(part)
        tree = _placed(ast.Attribute(tree, part, ast.Load()), (line, column), (line, end))
    return tree


_Node = TypeVar("_Node", bound=ast.expr)


def _placed(node: _Node, start: tuple[int, int], end: tuple[int, int]) -> _Node:
    """Return `node` with the place from `start` to `end`, each a line and a column."""
    node.lineno, node.col_offset = start
    node.end_lineno, node.end_col_offset = end
    return node


def _merged(values: list[ast.expr]) -> list[ast.expr]:
    """Return the parts of an f-string with neighbouring constants joined."""
    merged: list[ast.expr] = []
    for value in values:
        last = merged[-1] if merged else None
        if isinstance(value, ast.Constant) and isinstance(last, ast.Constant):
            merged[-1] = ast.Constant(
                str(last.value) + str(value.value),
                lineno=last.lineno,
                col_offset=last.col_offset,
                end_lineno=value.end_lineno,
                end_col_offset=value.end_col_offset,
            )
        else:
            merged.append(value)
    return merged
