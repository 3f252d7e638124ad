"""Text -> Python's tree, read by Python's own parser.

The many expressions that are just a path (`a`, `a.b[0].c`) are recognised by one regular expression instead.

Read leniently where there is one reading: blanks and line ends around and inside an expression do not matter; field
names may be Python keywords (`mail.from`), which are hidden from the parser and get their spelling back in `grammar`.
"""

from __future__ import annotations

import ast
import re
import threading
import warnings
from keyword import iskeyword
from typing import Any

from toolplan.expressions.faults import ExpressionError
from toolplan.expressions.fstrings import hidden_strings, with_strings
from toolplan.expressions.limits import MAX_DEPTH
from toolplan.expressions.mistakes import explain_syntax, masked

__all__ = ["CONSTANTS", "read_path", "read_tree"]

CONSTANTS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
"""What JSON writes differently from Python."""

_NAME = r"[^\W\d]\w*"
_STEP = rf"\.{_NAME}|\[(?:-?\d{{1,9}}|\"[^\"\\\n]*\"|'[^'\\\n]*')\]"
_PATH = re.compile(rf"[ ]*({_NAME})((?:{_STEP}){{0,{MAX_DEPTH - 1}}})[ ]*")
_STEPS = re.compile(_STEP)
_LOAD = ast.Load()


def read_path(text: str) -> tuple[ast.expr, str] | None:
    """Return the tree and the name of a text that is just a path, None for any other text."""
    match = _PATH.fullmatch(text)
    if match is None or iskeyword(match[1]) or match[1] in CONSTANTS or "__" in text:
        return None
    return _path_tree(text, match), match[1]


def _path_tree(text: str, match: re.Match[str]) -> ast.expr:
    """Return the tree that Python would give for a path, built without its parser."""
    plain = text.isascii()

    def column(offset: int) -> int:
        return offset if plain else len(text[:offset].encode("utf-8", "surrogatepass"))

    start = column(match.start(1))
    at = match.end(1)
    tree: ast.expr = ast.Name(
        id=match[1], ctx=_LOAD, lineno=1, col_offset=start, end_lineno=1, end_col_offset=column(at)
    )
    for step in _STEPS.finditer(text, at, match.end(2)):
        written = step.group()
        end = column(step.end())
        where: dict[str, Any] = {"lineno": 1, "col_offset": start, "end_lineno": 1, "end_col_offset": end}
        if written[0] == ".":
            tree = ast.Attribute(value=tree, attr=written[1:], ctx=_LOAD, **where)
            continue
        inside: dict[str, Any] = {
            "lineno": 1,
            "col_offset": column(step.start() + 1),
            "end_lineno": 1,
            "end_col_offset": end - 1,
        }
        key = written[1:-1]
        index: ast.expr
        if key[0] in "\"'":
            index = ast.Constant(value=key[1:-1], **inside)
        elif key[0] == "-":
            number = ast.Constant(value=int(key[1:]), **{**inside, "col_offset": inside["col_offset"] + 1})
            index = ast.UnaryOp(op=ast.USub(), operand=number, **inside)
        else:
            index = ast.Constant(value=int(key), **inside)
        tree = ast.Subscript(value=tree, slice=index, ctx=_LOAD, **where)
    return tree


# --- any other text --------------------------------------------------------------------------------------------------

_HIDDEN = re.compile(rf"\.\s*({_NAME})|[\u00a0\u2000-\u200b\u202f\u205f\u3000\ufeff]")
_ODD_LITERAL = re.compile(r"\\|\d[A-Za-z_]")
_quiet = threading.Lock()


def read_tree(text: str) -> tuple[ast.expr, int]:
    """Return Python's tree for `text`, and the column at which `text` begins in it (negative for blanks cut off)."""
    body = text.strip()
    if not body:
        raise ExpressionError("there is no expression here", 0, len(text))
    if "\n" in body or "\r" in body:
        if _closes_too_much(body):
            raise ExpressionError("a bracket is closed that was not opened", 0, len(text))
        # Inside brackets an expression may go over several lines, as it may inside a template or a JSON string.
        wrapped, column = f"({text}\n)", 1
    else:
        blanks = text[: len(text) - len(text.lstrip())]
        wrapped, column = body, -len(blanks.encode())
    try:
        return _python_parse(wrapped), column
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        tree = _read_mended(wrapped)
        if tree is not None:
            return tree, column
        message, start, end, help = explain_syntax(text, error, -column)
        raise ExpressionError(message, start, end, help) from None


def _read_mended(text: str) -> ast.expr | None:
    """Return the tree of a text that Python refuses but that has one reading, else None."""
    hidden, values = hidden_strings(text) or (text, {})
    mended = _mended(hidden)
    if mended == text:
        return None
    try:
        return with_strings(_python_parse(mended), values)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _closes_too_much(text: str) -> bool:
    open_brackets = 0
    for character in masked(text):
        if character in "([{":
            open_brackets += 1
        elif character in ")]}":
            open_brackets -= 1
            if open_brackets < 0:
                return True
    return False


def _python_parse(text: str) -> ast.expr:
    if _ODD_LITERAL.search(text):  # such as "\d", of which Python would warn
        with _quiet, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text, mode="eval").body
    return ast.parse(text, mode="eval").body


def _mended(text: str) -> str:
    """Return `text` with what Python cannot read but has one reading hidden from it, each byte in its place.

    Field names that are Python keywords (`mail.from`) become underscores; they get their spelling back from the text
    afterwards (see `grammar`). Blanks of other scripts become as many plain blanks as they have bytes.
    """
    plain = masked(text, holes=True)
    pieces: list[str] = []
    at = 0
    for match in _HIDDEN.finditer(plain):
        if match[1] and not iskeyword(match[1]):
            continue
        start = match.start(1) if match[1] else match.start()
        pieces += (text[at:start], "_" * len(match[1]) if match[1] else " " * len(match.group().encode()))
        at = match.end()
    return "".join([*pieces, text[at:]])
