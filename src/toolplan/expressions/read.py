"""Text -> `Expression`.

`syntax` has Python's parser read the text, `grammar` refuses every node of its tree that the language does not have and
collects the names that are needed from outside. Nothing of this executes or compiles anything.

Short texts are read once: `Program`, the tree with its compiled form, is shared by all expressions of the same text.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from toolplan.diagnostics import NOWHERE, Place
from toolplan.errors import EvaluationError
from toolplan.expressions.evaluate import Program
from toolplan.expressions.faults import ExpressionError
from toolplan.expressions.grammar import names_needed
from toolplan.expressions.limits import MAX_LENGTH
from toolplan.expressions.positions import span_of
from toolplan.expressions.renaming import renamed
from toolplan.expressions.syntax import read_path, read_tree
from toolplan.values import Json

__all__ = ["Expression", "ExpressionError", "expression_from_node", "parse_expression"]

MAX_SHARED = 300
"""Longer texts are not kept for the next time; they are hardly ever written twice."""


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """A readable expression: its text, its tree, the names it needs from outside, its place in the plan.

    `line` and `column` say where `text` begins in the coordinates of `tree`'s nodes (`lineno`, `col_offset` in UTF-8
    bytes, as `ast` counts), so that a part of a larger Python program keeps its tree. `program` is the compiled tree,
    shared by expressions of the same text; trees must not be changed.
    """

    text: str
    tree: ast.expr
    names: frozenset[str]
    place: Place = NOWHERE
    line: int = 1
    column: int = 0
    program: Program = field(default=None, repr=False)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.program is None:  # pyright: ignore[reportUnnecessaryComparison]
            object.__setattr__(self, "program", Program(self.tree, self.text, self.line, self.column))

    def place_of(self, node: ast.AST) -> Place:
        """Return the place of a node of `tree` in the plan."""
        return self.place.within(*span_of(node, self.text, self.line, self.column))

    def text_of(self, node: ast.AST) -> str:
        """Return the text of a node of `tree` as its author wrote it."""
        start, end = span_of(node, self.text, self.line, self.column)
        return self.text[start:end]

    def evaluate(self, scope: Mapping[str, Json]) -> Json:
        """Return the value with the names taken from `scope`. Raises `EvaluationError`.

        What is returned may be part of the values in `scope`, not a copy. An evaluation is bounded in time and memory
        (see `limits`) and always ends.
        """
        try:
            return self.program.run(scope)
        except EvaluationError as error:
            error.place = self.place.within(error.start, error.end)
            raise

    def renamed(self, paths: Mapping[str, str]) -> Expression:
        """Return the expression with outside names replaced by paths (`temperature` by `weather.temperature`).

        Text and places stay those of the author; the tree and the names are new.
        """
        if self.names.isdisjoint(paths):
            return self
        tree = renamed(self.tree, paths)
        return replace(
            self,
            tree=tree,
            names=frozenset(paths.get(name, name).partition(".")[0] for name in self.names),
            program=Program(tree, self.text, self.line, self.column),
        )


def parse_expression(text: str, place: Place = NOWHERE) -> Expression:
    """Return the expression that `text` is. Raises `ExpressionError`, whose offsets count from the start of `text`."""
    try:
        program, names = _read_short(text) if len(text) <= MAX_SHARED else _read(text)
    except ExpressionError as error:
        error.place = place.within(error.start, error.end)
        raise
    return Expression(text, program.tree, names, place, 1, program.column, program)


def expression_from_node(
    node: ast.expr, source: str, place: Place = NOWHERE, line: int = 1, column: int = 0
) -> Expression:
    """Return the expression that `node`, a part of the parsed Python text `source`, is.

    `place` is where `source` begins in the plan, `line` and `column` where it begins in the coordinates of `node`; the
    expression's own place is that of the node. Raises `ExpressionError` with offsets into `source`. The tree must not
    be used further where this changes it: constants spelt `true`, `false`, `null` become constants, `now()` becomes
    `now`.
    """
    start, end = span_of(node, source, line, column)
    try:
        names = names_needed(node, source, line, column, folded=True)
    except ExpressionError as error:
        error.place = place.within(error.start, error.end)
        raise
    here = (node.lineno, node.col_offset)
    return Expression(source[start:end], node, names, place.within(start, end), *here)


@functools.lru_cache(maxsize=4096)
def _read_short(text: str) -> tuple[Program, frozenset[str]]:
    return _read(text)


def _read(text: str) -> tuple[Program, frozenset[str]]:
    if len(text) > MAX_LENGTH:
        raise ExpressionError(
            f"the expression is {len(text):,} characters long, more than {MAX_LENGTH:,}",
            0,
            len(text),
            help="compute it in several steps",
        )
    path = read_path(text)
    if path is not None:
        return Program(path[0], text), frozenset((path[1],))
    tree, column = read_tree(text)
    return Program(tree, text, 1, column), names_needed(tree, text, 1, column)
