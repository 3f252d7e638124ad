"""The grammar: which nodes of Python's tree the language has, and how functions and methods may be called.

One walk over a tree refuses what is not on the list, counts nodes and nesting, and collects the names that are needed
from outside. It also settles spellings, in place: `true`, `false`, `null` become constants, unless a comprehension
gives one of these names a value; `now()` becomes `now`, `today()` becomes `date(now)`, `map` and `filter` become
comprehensions (see `idioms`); and identifiers that Python's parser folded (NFKC: `ｘ` becomes `x`) get the spelling of
the text back, because the keys of JSON are not folded.
"""

from __future__ import annotations

import ast
import re
import unicodedata
from collections.abc import Callable
from keyword import iskeyword
from typing import Any, NoReturn

from toolplan.diagnostics import nearest
from toolplan.expressions.faults import ExpressionError
from toolplan.expressions.functions import FUNCTIONS
from toolplan.expressions.idioms import respelt
from toolplan.expressions.limits import MAX_DEPTH, MAX_INT, MAX_NODES
from toolplan.expressions.methods import METHODS, REFUSED
from toolplan.expressions.positions import span_of
from toolplan.expressions.syntax import CONSTANTS
from toolplan.values import is_text

__all__ = ["names_needed"]


def names_needed(tree: ast.expr, text: str, line: int, column: int, *, folded: bool = False) -> frozenset[str]:
    """Return the names that `tree` needs from outside; refuse what the language does not have.

    `text` begins at `line` and `column` of the tree. With `folded`, names keep Python's spelling, as they do where
    Python's parser also read the assignments to them. Raises `ExpressionError`.
    """
    try:
        return _Reader(text, line, column, folded).read(tree)
    except RecursionError:
        raise ExpressionError("the expression is nested too deeply", *span_of(tree, text, line, column)) from None


_IDENTIFIER = r"[^\W\d]\w*"
_LOAD = ast.Load()
_KINDS = frozenset({"str", "int", "float", "bool", "list", "dict"})
_BINARY = (
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.BitOr, ast.BitAnd, ast.BitXor
)  # fmt: skip
_REFUSED_NODES: dict[type[ast.AST], tuple[str, str | None]] = {
    ast.NamedExpr: ("an expression cannot assign a name (`:=`)", "use a step of its own for the value"),
    ast.Await: ("`await` has no meaning here", "leave it out"),
    ast.Yield: ("`yield` has no meaning here", None),
    ast.YieldFrom: ("`yield` has no meaning here", None),
    ast.Lambda: (
        "a lambda can only be the `key` of `min`, `max` or `sorted`, or what `map` or `filter` does",
        "write a comprehension: `[... for x in xs]`",
    ),
    ast.MatMult: ("`@` has no meaning here", None),
    ast.LShift: ("`<<` has no meaning here", "write `* 2 ** n`"),
    ast.RShift: ("`>>` has no meaning here", "write `// 2 ** n`"),
    ast.Invert: ("`~` has no meaning here", "write `not`"),
}


class _Reader:
    """One walk over a tree: refuses what is not allowed, collects the free names, restores spellings."""

    def __init__(self, text: str, line: int, column: int, folded: bool = False) -> None:
        self.text = text
        self.line = line
        self.column = column
        # In a Python program all names are folded, those that are assigned too; fields keep the spelling of the text.
        self.folded = folded
        self.odd = not unicodedata.is_normalized("NFKC", text)
        self.bound: dict[str, int] = {}
        self.names: set[str] = set()
        self.count = 0

    def read(self, tree: ast.expr) -> frozenset[str]:
        self.visit(tree, 0)
        return frozenset(self.names)

    def fail(self, node: ast.AST, message: str, help: str | None = None) -> NoReturn:
        start, end = span_of(node, self.text, self.line, self.column)
        raise ExpressionError(message, start, end, help)

    def visit(self, node: ast.expr, depth: int) -> None:
        self.count += 1
        if depth > MAX_DEPTH:
            self.fail(
                node, f"the expression is nested more than {MAX_DEPTH} levels deep", "compute it in several steps"
            )
        if self.count > MAX_NODES:
            self.fail(node, f"the expression has more than {MAX_NODES:,} parts", "compute it in several steps")
        kind = type(node)
        if kind is ast.Name:
            self.name(node)  # type: ignore[arg-type]
            return
        if kind is ast.Constant:
            self.constant(node)  # type: ignore[arg-type]
            return
        visit = _VISITS.get(kind)
        if visit is None:
            message, help = _REFUSED_NODES.get(
                kind, (f"`{self._source(node)}` is not an expression of this language", None)
            )
            self.fail(node, message, help)
        visit(self, node, depth + 1)

    def _source(self, node: ast.AST) -> str:
        start, end = span_of(node, self.text, self.line, self.column)
        text = self.text[start:end]
        return text if len(text) <= 40 else text[:40] + "…"

    # names and constants

    def name(self, node: ast.Name) -> None:
        if self.odd and not self.folded:
            node.id = self.spelling(node, node.id)
        name = node.id
        if self.bound.get(name):
            return
        if name in CONSTANTS:
            _become_constant(node, CONSTANTS[name])
            return
        if name.startswith("__"):
            self.fail(node, f"no name can be called `{name}`")
        self.names.add(name)

    def spelling(self, node: ast.AST, folded: str) -> str:
        """Return the identifier at the end of a node as it is written, where that is the same name."""
        start, end = span_of(node, self.text, self.line, self.column)
        match = re.search(rf"({_IDENTIFIER})\Z", self.text[start:end])
        if match is None:
            return folded
        written = match[1]
        hidden = iskeyword(written) and folded == "_" * len(written)
        return written if hidden or unicodedata.normalize("NFKC", written) == folded else folded

    def constant(self, node: ast.Constant) -> None:
        value = node.value
        if value is None or isinstance(value, bool):
            return
        if isinstance(value, str):
            if not is_text(value):
                self.fail(node, "half of a surrogate pair is not a character", "write the character itself")
            return
        if isinstance(value, int):
            if value >= MAX_INT:
                self.fail(node, "this number has more than 3,000 digits")
            return
        if isinstance(value, float):
            if value - value != 0:
                self.fail(node, f"`{self._source(node)}` is too large for a number")
            return
        what = {bytes: "bytes", complex: "a complex number", type(...): "`...`"}[type(value)]
        self.fail(node, f"{what} is not a value here" if what != "bytes" else "bytes are not a value here")

    # operators

    def unary(self, node: ast.UnaryOp, depth: int) -> None:
        if type(node.op) is ast.Invert:
            self.fail(node, *_REFUSED_NODES[ast.Invert])
        self.visit(node.operand, depth)

    def binary(self, node: ast.BinOp, depth: int) -> None:
        if not isinstance(node.op, _BINARY):
            self.fail(node, *_REFUSED_NODES[type(node.op)])
        self.visit(node.left, depth)
        self.visit(node.right, depth)

    def logic(self, node: ast.BoolOp, depth: int) -> None:
        for value in node.values:
            self.visit(value, depth)

    def compare(self, node: ast.Compare, depth: int) -> None:
        self.visit(node.left, depth)
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            self.visit(right, depth)
            if isinstance(operator, ast.Is | ast.IsNot) and not (_is_single(left) or _is_single(right)):
                word, sign = ("is", "==") if isinstance(operator, ast.Is) else ("is not", "!=")
                self.fail(node, f"`{word}` only goes with `None`, `True` and `False`", f"write `{sign}`")
            left = right

    def condition(self, node: ast.IfExp, depth: int) -> None:
        self.visit(node.test, depth)
        self.visit(node.body, depth)
        self.visit(node.orelse, depth)

    # what is inside values

    def attribute(self, node: ast.Attribute, depth: int) -> None:
        if self.odd or not node.attr.strip("_"):
            node.attr = self.spelling(node, node.attr)
        if node.attr.startswith("__"):
            self.fail(node, f"no field is called `{node.attr}`", "only fields of values can be read")
        self.visit(node.value, depth)

    def subscript(self, node: ast.Subscript, depth: int) -> None:
        self.visit(node.value, depth)
        index = node.slice
        if isinstance(index, ast.Slice):
            self.count += 1
            for bound in (index.lower, index.upper, index.step):
                if bound is not None:
                    self.visit(bound, depth)
        elif isinstance(index, ast.Tuple):
            self.fail(index, "an index is one value", "index one after the other: `a[i][j]`")
        else:
            self.visit(index, depth)

    # displays

    def sequence(self, node: ast.List | ast.Tuple | ast.Set, depth: int) -> None:
        for element in node.elts:
            if isinstance(element, ast.Starred):
                self.count += 1
                element = element.value
            self.visit(element, depth)

    def fields(self, node: ast.Dict, depth: int) -> None:
        known: dict[str, ast.expr] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is not None:
                self.visit(key, depth)
                if isinstance(key, ast.Constant) and not isinstance(key.value, str):
                    written = self._source(key)
                    self.fail(key, f"the keys of an object are text, but `{written}` is not", f'write `"{written}"`')
            self.visit(value, depth)
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                other = known.setdefault(key.value, value)
                if other is not value and ast.dump(other) != ast.dump(value):
                    message = f"the key `{key.value}` is written twice in one object, with different values"
                    self.fail(key, message, "keep one of them")

    def text_with_holes(self, node: ast.JoinedStr, depth: int) -> None:
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                self.count += 1
                self.visit(part.value, depth)
                if part.format_spec is not None:
                    self.visit(part.format_spec, depth)
            else:
                self.visit(part, depth)

    # comprehensions

    def comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, depth: int) -> None:
        bound = self.rounds(node.generators, depth)
        self.visit(node.elt, depth)
        self.release(bound)

    def dict_comprehension(self, node: ast.DictComp, depth: int) -> None:
        bound = self.rounds(node.generators, depth)
        self.visit(node.key, depth)
        self.visit(node.value, depth)
        self.release(bound)

    def rounds(self, generators: list[ast.comprehension], depth: int) -> list[str]:
        bound: list[str] = []
        for generator in generators:
            self.count += 1
            if generator.is_async:
                self.fail(generator.target, "`async for` has no meaning here", "leave `async` out")
            self.visit(generator.iter, depth)
            self.bind(generator.target, bound)
            for test in generator.ifs:
                self.visit(test, depth)
        return bound

    def bind(self, target: ast.expr, bound: list[str]) -> None:
        self.count += 1
        if isinstance(target, ast.Name):
            if self.odd and not self.folded:
                target.id = self.spelling(target, target.id)
            if target.id.startswith("__"):
                self.fail(target, f"no name can be called `{target.id}`")
            self.bound[target.id] = self.bound.get(target.id, 0) + 1
            bound.append(target.id)
        elif isinstance(target, ast.Tuple | ast.List) and len(bound) < MAX_DEPTH:
            for element in target.elts:
                self.bind(element, bound)
        else:
            self.fail(target, "a loop variable is a name, or several names: `for key, value in d.items()`")

    def release(self, bound: list[str]) -> None:
        for name in bound:
            self.bound[name] -= 1

    # calls

    def call(self, node: ast.Call, depth: int) -> None:
        function = node.func
        self.count += 1
        if isinstance(function, ast.Name):
            self.function_call(node, function, depth)
        elif isinstance(function, ast.Attribute):
            self.method_call(node, function, depth)
        else:
            self.fail(node, "only functions and methods by name can be called")

    def function_call(self, node: ast.Call, function: ast.Name, depth: int) -> None:
        name = function.id
        if name in ("now", "today") and not node.args and not node.keywords:
            _become_now(node, function, name)
            self.names.add("now")
            return
        if respelt(node, name, self.is_function):
            self.comprehension(node, depth)  # type: ignore[arg-type]
            return
        known = FUNCTIONS.get(name)
        if known is None:
            self.unknown_function(node, function)
        starred = any(isinstance(argument, ast.Starred) for argument in node.args)
        if known.special and starred:
            self.fail(node, f"`{name}` takes its arguments one by one")
        positions = len(node.args)
        given = {keyword.arg for keyword in node.keywords}
        for keyword in node.keywords:
            if keyword.arg is None:
                self.fail(keyword.value, "`**` cannot be used in a call")
            if keyword.arg not in known.parameters and keyword.arg not in known.keyword_only:
                guess = nearest(keyword.arg, [*known.parameters, *known.keyword_only])
                self.fail(
                    keyword,
                    f"`{name}` takes no argument `{keyword.arg}`",
                    f"did you mean `{guess}`?" if guess else f"it is `{known.signature}`",
                )
            if keyword.arg in known.parameters[:positions]:
                self.fail(keyword, f"`{name}` is given `{keyword.arg}` twice", f"it is `{known.signature}`")
        if not known.variadic and positions > len(known.parameters):
            help = f"it is `{known.signature}`"
            if name in ("min", "max"):
                help = f"write `{name}([...])`"
            if name == "add":
                help = "say what to add: `add(d, days=1)`"
            self.fail(node, f"`{name}` takes {_count(len(known.parameters))}, but is given {positions}", help)
        if not starred:
            missing = [p for p in known.parameters[positions : known.required] if p not in given]
            if missing or (known.variadic and not positions and name != "zip"):
                what = missing[0] if missing else "values"
                self.fail(node, f"`{name}` needs `{what}`", f"it is `{known.signature}`")
        self.count += 1
        if name == "isinstance":
            self.visit(node.args[0] if node.args else node.keywords[0].value, depth)
            self.kinds(node)
            return
        self.arguments(node, depth)

    def is_function(self, name: str) -> bool:
        """Return whether the name is that of a function of one argument."""
        known = FUNCTIONS.get(name)
        return known is not None and not known.special and known.required <= 1 and not self.bound.get(name)

    def kinds(self, node: ast.Call) -> None:
        if len(node.args) != 2:
            self.fail(node, "`isinstance` takes a value and a kind", "it is `isinstance(x, str)`")
        kind = node.args[1]
        options = kind.elts if isinstance(kind, ast.Tuple | ast.List) else [kind]
        while any(isinstance(option, ast.BinOp) for option in options):
            options = [side for o in options for side in ((o.left, o.right) if isinstance(o, ast.BinOp) else (o,))]
        for option in options:
            if not (isinstance(option, ast.Name) and option.id in _KINDS) and not _is_none(option):
                self.fail(option, "a kind is `str`, `int`, `float`, `bool`, `list` or `dict`")

    def unknown_function(self, node: ast.Call, function: ast.Name) -> NoReturn:
        name = function.id
        help = _INSTEAD.get(name)
        if help is None:
            if self.bound.get(name):
                self.fail(function, f"`{name}` is a value and cannot be called")
            guess = nearest(name, FUNCTIONS)
            help = f"did you mean `{guess}`?" if guess else "a tool is called in a step of its own"
        self.fail(function, f"no function is named `{name}`", help)

    def method_call(self, node: ast.Call, function: ast.Attribute, depth: int) -> None:
        name = function.attr
        known = METHODS.get(name)
        if known is None:
            help = REFUSED.get(name)
            if help is None:
                guess = nearest(name, METHODS)
                help = f"did you mean `{guess}`?" if guess else None
                if name in FUNCTIONS:
                    help = f"it is a function: `{name}({self._source(function.value)})`"
            what = f"`{name}` would change a value" if help and help.startswith("expressions change") else None
            self.fail(node, what or f"no method is named `{name}`", help)
        self.visit(function.value, depth)
        if any(isinstance(argument, ast.Starred) for argument in node.args):
            self.fail(node, f"`{name}` takes its arguments one by one")
        methods = list(known.values())
        if not methods[0].free_keywords:
            fits = [m for m in methods if self._fits(m.parameters, m.required, m.variadic, node)]
            if not fits:
                signatures = " or ".join(f"`{m.signature}`" for m in methods)
                self.fail(node, f"`{name}` is not called like this", f"it is {signatures}")
        self.arguments(node, depth)

    @staticmethod
    def _fits(parameters: tuple[str, ...], required: int, variadic: bool, node: ast.Call) -> bool:
        positions = len(node.args)
        named = [keyword.arg for keyword in node.keywords]
        if positions > len(parameters) and not variadic:
            return False
        if any(name not in parameters[positions:] for name in named):
            return False
        return all(p in named for p in parameters[positions:required])

    def arguments(self, node: ast.Call, depth: int) -> None:
        for argument in node.args:
            self.visit(argument.value if isinstance(argument, ast.Starred) else argument, depth)
        for keyword in node.keywords:
            value = keyword.value
            if keyword.arg == "key" and isinstance(node.func, ast.Name):
                self.key(value, depth)
            else:
                self.visit(value, depth)

    def key(self, node: ast.expr, depth: int) -> None:
        if isinstance(node, ast.Lambda):
            given = node.args
            if (
                len(given.args) + len(given.posonlyargs) != 1
                or given.vararg
                or given.kwarg
                or given.kwonlyargs
                or given.defaults
            ):
                self.fail(node, "a `key` takes one argument", "write `key=lambda x: x.price`")
            self.count += 1
            argument = (given.posonlyargs + given.args)[0]
            if self.odd and not self.folded:
                argument.arg = self.spelling(argument, argument.arg)
            self.bound[argument.arg] = self.bound.get(argument.arg, 0) + 1
            self.visit(node.body, depth + 1)
            self.bound[argument.arg] -= 1
        elif isinstance(node, ast.Name) and node.id in FUNCTIONS and not self.bound.get(node.id):
            if not self.is_function(node.id):
                self.fail(node, f"`{node.id}` takes more than one argument", "write `key=lambda x: ...`")
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in ("str", "dict", "list")
        ):
            self.fail(node, "a `key` is a field's name or a lambda", f"write `key=lambda x: x.{node.attr}()`")
        else:
            self.visit(node, depth)


_VISITS: dict[type[ast.expr], Callable[[_Reader, Any, int], None]] = {
    ast.UnaryOp: _Reader.unary,
    ast.BinOp: _Reader.binary,
    ast.BoolOp: _Reader.logic,
    ast.Compare: _Reader.compare,
    ast.IfExp: _Reader.condition,
    ast.Attribute: _Reader.attribute,
    ast.Subscript: _Reader.subscript,
    ast.List: _Reader.sequence,
    ast.Tuple: _Reader.sequence,
    ast.Set: _Reader.sequence,
    ast.Dict: _Reader.fields,
    ast.JoinedStr: _Reader.text_with_holes,
    ast.ListComp: _Reader.comprehension,
    ast.SetComp: _Reader.comprehension,
    ast.GeneratorExp: _Reader.comprehension,
    ast.DictComp: _Reader.dict_comprehension,
    ast.Call: _Reader.call,
}

_INSTEAD = {
    "map": "write a comprehension: `[f(x) for x in xs]`",
    "filter": "write a comprehension: `[x for x in xs if test]`",
    "type": "test the kind with `isinstance(x, str)`",
    "print": "a step of its own says something while running",
    "datetime": "dates are ISO text: `now`, `date(text)`, `add(d, days=1)`",
    "timedelta": "write `add(d, days=1)` or `days_between(a, b)`",
    "getattr": "read a field by `x.name`, `x['name']` or `x.get('name')`",
    "hasattr": "test a field by `'name' in x`",
    "iter": "lists can be gone through as often as needed",
    "frozenset": "write `set(...)`",
    "slice": "write `xs[a:b]`",
    "join": "write `', '.join(xs)`",
    "length": "write `len(x)`",
    "concat": "write `a + b`",
    "to_number": "write `number(x)`",
    "parse_float": "write `number(x)`",
    "Number": "write `number(x)`",
    "String": "write `str(x)`",
    "parseInt": "write `int(x)` or `number(x)`",
    "parseFloat": "write `float(x)` or `number(x)`",
}
"""What to write instead of functions that models know from elsewhere."""


def _count(parameters: int) -> str:
    return "no arguments" if not parameters else "1 argument" if parameters == 1 else f"{parameters} arguments"


def _is_single(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, bool))


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _become_constant(node: ast.Name, value: bool | None) -> None:
    """Make `node` a constant in place, so that whoever reads the tree need not know the other spelling."""
    node.__class__ = ast.Constant  # type: ignore[assignment]
    constant: ast.Constant = node  # type: ignore[assignment]
    constant.value = value
    constant.kind = None


def _become_now(node: ast.Call, function: ast.Name, name: str) -> None:
    """Make `now()` the name `now`, and `today()` the call `date(now)`."""
    function.id = "now"
    if name == "today":
        argument = ast.copy_location(ast.Name(id="now", ctx=_LOAD), function)
        function.id = "date"
        node.args = [argument]
        return
    node.__class__ = ast.Name  # type: ignore[assignment]
    plain: ast.Name = node  # type: ignore[assignment]
    plain.id = "now"
    plain.ctx = _LOAD
