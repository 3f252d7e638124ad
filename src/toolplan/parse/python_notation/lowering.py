"""What the parts of the lowering share: the program's text, its names, the problems found so far."""

from __future__ import annotations

import abc
import ast
import copy
import functools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from toolplan.diagnostics import Diagnostic, Place
from toolplan.diagnostics.reading import unreadable_expression
from toolplan.expressions import (
    Expression,
    ExpressionError,
    Fields,
    Hole,
    Items,
    Literal,
    Reference,
    Template,
    Text,
)
from toolplan.expressions.read import expression_from_node
from toolplan.parse.python_notation.splicing import Piece, Pieces, joined, place_of
from toolplan.parse.python_notation.survey import Survey
from toolplan.parse.python_notation.text import Located, ProgramText, read_expression
from toolplan.parse.python_notation.vocabulary import Vocabulary
from toolplan.plan import Answer, Block, Break, Cannot, Continue, If, Let, Replan, Step
from toolplan.values import is_text

__all__ = ["Loop", "Lowering", "Refused", "ends"]


class Refused(Exception):
    """Something the notation does not have; its statement is left out and the next one is read."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


def ends(steps: Sequence[Step]) -> bool:
    """Return whether nothing after these steps is reached."""
    if not steps:
        return False
    last = steps[-1]
    if isinstance(last, If):
        return ends(last.then) and ends(last.otherwise)
    return isinstance(last, Answer | Cannot | Replan | Break | Continue)


@dataclass(slots=True)
class Loop:
    """A loop around the statement being lowered. `before_next` makes the steps that a `continue` must run first."""

    before_next: Callable[[list[Step]], None] | None = None


@dataclass
class Lowering(abc.ABC):
    """The state of one reading, and what turns expressions free of steps into parts of a plan."""

    text: ProgramText
    survey: Survey
    vocabulary: Vocabulary
    problems: list[Diagnostic] = field(default_factory=list[Diagnostic])
    repairs: list[str] = field(default_factory=list[str])
    loops: list[Loop] = field(default_factory=list[Loop])
    errors: list[str] = field(default_factory=list[str])
    """The names of the errors of the `except` blocks around the statement being lowered."""
    refused: set[str] = field(default_factory=set[str])
    """The names of imported modules and of functions: these have been reported, and what follows from them is not."""
    temporaries: set[str] = field(default_factory=set[str])
    """The names that stand for values which the program gave none."""
    visible: set[str] = field(default_factory=set[str])
    """The names that were assigned before the statement being lowered and have not ended with a loop."""
    rebuilt: set[ast.expr] = field(default_factory=set[ast.expr])
    """The expressions that were made from ones of the program, with something in them replaced."""
    written: dict[ast.expr, Pieces] = field(default_factory=dict[ast.expr, Pieces])
    """The text of expressions that do not stand in the program, such as the names put in place of calls."""
    statement: ast.AST | None = None
    """The statement being lowered; of a branch or a loop, its head."""
    _fresh: Iterator[str] | None = None

    # --- what the other parts do ---------------------------------------------------------------------------------

    @abc.abstractmethod
    def value(self, node: ast.expr, out: list[Step]) -> ast.expr:
        """Return `node` free of steps; those it needs are appended to `out`, in Python's order of evaluation."""

    @abc.abstractmethod
    def assign(self, name: str, node: ast.expr, out: list[Step], place: Place) -> None:
        """Append the steps that give `name` the value of `node`."""

    @abc.abstractmethod
    def perform(self, node: ast.expr, out: list[Step]) -> None:
        """Append the steps of an expression whose value nobody uses."""

    @abc.abstractmethod
    def block(self, statements: Sequence[ast.stmt]) -> Block:
        """Return the steps of these statements; problems are reported, and the statement left out."""

    # --- names ---------------------------------------------------------------------------------------------------

    def fresh(self) -> str:
        """Return a name that nothing in the program has."""
        if self._fresh is None:
            self._fresh = self._unused_names()
        name = next(self._fresh)
        self.temporaries.add(name)
        return name

    def _unused_names(self) -> Iterator[str]:
        number = 0
        while True:
            number += 1
            name = f"_{number}"
            if name not in self.survey.names and name not in self.vocabulary.tools:
                yield name

    def name(self, name: str, at: ast.expr | ast.stmt) -> ast.Name:
        """Return a use of the value `name`, standing where `at` stands."""
        node = ast.copy_location(ast.Name(name, ast.Load()), at)
        self.written[node] = (Piece(name, *self.text.span(at)),)
        return node

    def report(self, diagnostic: Diagnostic) -> None:
        """Note a problem; reading goes on."""
        self.problems.append(diagnostic)

    def report_refused(self, refused: Refused, node: ast.AST) -> None:
        """Note the problem that ended the reading of `node`, unless it follows from one that is known."""
        if not any(isinstance(found, ast.Name) and found.id in self.refused for found in ast.walk(node)):
            self.report(refused.diagnostic)

    def place(self, node: Located) -> Place:
        """Return where `node` stands in the source."""
        return self.text.place(node)

    # --- making expressions --------------------------------------------------------------------------------------

    def built(self, pattern: str, at: ast.expr | ast.stmt, **parts: ast.expr) -> ast.expr:
        """Return the expression `pattern` with `parts` for the names it has in common, standing where `at` stands."""
        start, end = self.text.span(at)
        pieces: list[Piece] = []
        last = 0
        for match in _NAME.finditer(pattern):
            part = parts.get(match.group())
            if part is None:
                continue
            bare = isinstance(part, _ATOMS) or _needs_no_brackets(
                part, pattern[: match.start()], pattern[match.end() :]
            )
            pieces.append(Piece(pattern[last : match.start()] + ("" if bare else "("), start, end))
            pieces += self.pieces(part)
            pieces.append(Piece("" if bare else ")", start, end))
            last = match.end()
        pieces.append(Piece(pattern[last:], start, end))
        tree = _Filled(parts, at).visit(copy.deepcopy(_pattern(pattern)))
        self.written[tree] = tuple(piece for piece in pieces if piece.text)
        return tree

    def stand_in(self, node: ast.expr, at: ast.expr) -> ast.expr:
        """Return `node` as something that stands where `at` stands."""
        pieces = self.pieces(node)
        moved = ast.copy_location(copy.copy(node), at)
        self.written[moved] = pieces
        return moved

    def pieces(self, node: ast.expr) -> Pieces:
        """Return the text of `node`, names standing for calls in place of these, and where it comes from."""
        if node in self.written:
            return self.written[node]
        start, end = self.text.span(node)
        code = self.text.code
        pieces: list[Piece] = []
        if node in self.rebuilt:
            for child in sorted(_outermost(node, self.written), key=self.text.span):
                first, last = self.text.span(child)
                opening, closing = ("", "") if isinstance(child, _ATOMS) else ("(", ")")
                pieces += [
                    Piece(code(start, first), start, first),
                    Piece(opening, first, first),
                    *self.written[child],
                    Piece(closing, last, last),
                ]
                start = last
        return (*pieces, Piece(code(start, end), start, end))

    # --- expressions and templates -------------------------------------------------------------------------------

    def expression(self, node: ast.expr) -> Expression:
        """Return the expression that `node` is, once nothing in it must become a step. Raises `Refused`."""
        if isinstance(node, ast.Tuple) and not joined(self.pieces(node)).startswith("("):
            node = self.built("value", node, value=node)  # alone, a tuple needs its brackets
        pieces = self.pieces(node)
        text = joined(pieces)
        place = place_of(pieces, *self.text.span(node))
        try:
            if node in self.written or node in self.rebuilt:
                return expression_from_node(read_expression(text), text, place, 1, 1)
            return expression_from_node(node, text, place, node.lineno, node.col_offset)
        except ExpressionError as error:
            where = place.within(error.start, error.end) if error.end > error.start else place
            raise Refused(unreadable_expression(where, error.message, error.help)) from None

    def template(self, node: ast.expr) -> Template:
        """Return the template that `node` is: structures and f-strings as such, anything else a reference."""
        place = self.place(node)
        match node:
            case ast.Constant(value=str(text)) if is_text(text):
                return Literal(text, place)
            case ast.Constant(value=value) if value is None or isinstance(value, bool | int):
                return Literal(value, place)
            case ast.Constant(value=float(value)) if math.isfinite(value):
                return Literal(value, place)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)) if not isinstance(
                value, bool
            ) and math.isfinite(value):
                return Literal(-value, place)
            case ast.Name(id="true" | "false" | "null" as name) if name not in self.survey.values:
                return Literal({"true": True, "false": False, "null": None}[name], place)
            case ast.JoinedStr():
                return self._text(node) or Reference(self.expression(node), place)
            case ast.List(elts=elements) | ast.Tuple(elts=elements) if not any(
                isinstance(element, ast.Starred) for element in elements
            ):
                items = tuple(self.template(element) for element in elements)
                return Items(items, place)
            case ast.Dict(keys=keys, values=values) if (names := _field_names(keys)) is not None:
                fields = tuple((name, self.template(value)) for name, value in zip(names, values, strict=True))
                return Fields(fields, place)
            case _:
                return Reference(self.expression(node), place)

    def _text(self, node: ast.JoinedStr) -> Template | None:
        """Return the f-string as text with holes, or None when it cannot be one: a lone hole would keep its type."""
        parts: list[str | Hole] = []
        for value in node.values:
            match value:
                case ast.Constant(value=str(text)) if is_text(text):
                    last = parts[-1] if parts else None
                    if isinstance(last, str):
                        parts[-1] = last + text
                    else:
                        parts.append(text)
                case ast.FormattedValue(value=inner, conversion=letter, format_spec=format):
                    spec = _plain(format)
                    if format is not None and spec is None:
                        return None
                    expression = self.expression(inner)
                    conversion = chr(letter) if letter != -1 else None
                    shown = expression.text + (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "")
                    parts.append(Hole(expression, "{" + shown + "}", spec, conversion=conversion))
                case _:
                    return None
        place = self.place(node)
        if all(isinstance(part, str) for part in parts):
            return Literal("".join(part for part in parts if isinstance(part, str)), place)
        return Text(tuple(parts), place) if len(parts) > 1 else None

    def given(self, node: ast.expr, out: list[Step]) -> Template:
        """Return the template that `node` is, its steps appended to `out`; null after reporting a problem in it."""
        try:
            return self.template(self.value(node, out))
        except Refused as refused:
            self.report_refused(refused, node)
            return Literal(None, self.place(node))

    def let(self, name: str, value: ast.expr, out: list[Step], place: Place) -> None:
        """Append the step that gives `name` the value of an expression free of steps."""
        out.append(Let("", ((name, self.template(value)),), place))


_NAME = re.compile(r"[^\W\d]\w*")
_ATOMS = (
    ast.Name,
    ast.Constant,
    ast.Attribute,
    ast.Subscript,
    ast.Call,
    ast.List,
    ast.Dict,
    ast.Set,
    ast.ListComp,
    ast.DictComp,
    ast.SetComp,
    ast.JoinedStr,
)
"""Expressions that need no brackets wherever they stand."""


def _needs_no_brackets(part: ast.expr, before: str, after: str) -> bool:
    """Return whether `part`, which is no atom, can stand between these texts as it is."""
    if isinstance(part, ast.Tuple):
        return False
    first = after.split(maxsplit=1)[:1] or [""]
    if before.rstrip()[-1:] in ("(", "[", "{", ",", ":") or before.endswith("="):
        return after.lstrip()[:1] in (")", "]", "}", ",", ":") or first == ["for"]
    in_clause = before.endswith((" if ", " in ")) and "for " in before
    return (
        in_clause and not isinstance(part, ast.IfExp | ast.Lambda) and (first[0] in ("if", "for") or after[:1] in "]}")
    )


@functools.cache
def _pattern(pattern: str) -> ast.expr:
    return ast.parse(pattern, mode="eval").body


class _Filled(ast.NodeTransformer):
    """Puts parts in place of names, and gives every other node the place of `at`."""

    def __init__(self, parts: dict[str, ast.expr], at: ast.expr | ast.stmt) -> None:
        self.parts = parts
        self.at = at

    def visit(self, node: ast.AST) -> ast.expr:
        if isinstance(node, ast.Name) and node.id in self.parts:
            return self.parts[node.id]
        if isinstance(node, ast.expr | ast.keyword | ast.arg):
            ast.copy_location(node, self.at)
        return self.generic_visit(node)  # type: ignore[return-value]


def _plain(spec: ast.expr | None) -> str | None:
    """Return a format spec that is plain text, else None."""
    match spec:
        case ast.JoinedStr(values=[ast.Constant(value=str(text))]):
            return text
        case ast.JoinedStr(values=[]):
            return ""
        case _:
            return None


def _field_names(keys: list[ast.expr | None]) -> list[str] | None:
    names = [key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]
    return names if len(names) == len(keys) == len(set(names)) and all(map(is_text, names)) else None


def _outermost(node: ast.expr, written: dict[ast.expr, Pieces]) -> Iterator[ast.expr]:
    """Yield the expressions below `node` that have a text of their own, none inside another."""
    stack: list[ast.AST] = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, ast.expr) and current in written:
            yield current
        else:
            stack.extend(ast.iter_child_nodes(current))
