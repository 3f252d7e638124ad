"""Where the nodes of Python's tree stand in the text, in characters.

`ast` counts lines from 1 and columns in UTF-8 bytes; messages count characters from the beginning of the text.
"""

from __future__ import annotations

import ast
import re
from typing import cast

__all__ = ["span_of"]

_LINE_END = re.compile(r"\r\n?|\n")


def span_of(node: ast.AST, text: str, line: int, column: int) -> tuple[int, int]:
    """Return the start and end of `node` in characters of `text`, which begins at `line` and `column` of the tree.

    A node without a position of its own (an operator, a comprehension's clause) gives the span of what it holds, and
    failing that the whole text.
    """
    if not hasattr(node, "lineno"):
        inner = next((child for child in ast.iter_child_nodes(node) if hasattr(child, "lineno")), None)
        return span_of(inner, text, line, column) if inner is not None else (0, len(text))
    located = cast("ast.expr", node)
    start = _offset(text, located.lineno - line, located.col_offset, column)
    if located.end_lineno is None or located.end_col_offset is None:
        return start, start
    return start, max(start, _offset(text, located.end_lineno - line, located.end_col_offset, column))


def _offset(text: str, row: int, column: int, first_column: int) -> int:
    """Return the character offset of a byte column in a row counted from 0; the text starts at `first_column`."""
    start = 0
    if row <= 0:
        column -= first_column
    else:
        for _ in range(row):
            match = _LINE_END.search(text, start)
            if match is None:
                return len(text)
            start = match.end()
    column = max(column, 0)
    if text.isascii():
        return min(start + column, len(text))
    piece = text[start : start + column].encode("utf-8", "surrogatepass")[:column]
    return min(start + len(piece.decode("utf-8", "ignore")), len(text))
