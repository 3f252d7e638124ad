"""Finding the brace groups of a text: one pass from left to right, in linear time.

At each `{` the group's end is looked for, by a scanner that knows Python's quotes and brackets. The group is a hole
when what stands in it can be read as an expression that mentions a name; otherwise the brace is literal text and the
search goes on behind it, so that a hole inside JSON is found. `{{` and `}}` are one literal brace each, but the brace
that closes a literal group stands for itself: `{"a": {"b": 1}}` survives.

Linear: a group may hold at most `MAX_LENGTH` characters and `MAX_BRACES` levels of braces, so each character is looked
at a bounded number of times.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from toolplan.diagnostics import Place
from toolplan.expressions.limits import MAX_LENGTH
from toolplan.expressions.read import Expression, ExpressionError, parse_expression
from toolplan.expressions.rendering import fits_some_value

__all__ = ["Group", "Unread", "find_groups"]

MAX_BRACES = 8


@dataclass(frozen=True, slots=True)
class Group:
    """A brace group that is a hole: `text[start:end]`."""

    start: int
    end: int
    expression: Expression
    spec: str | None
    conversion: str | None
    doubtful: bool


@dataclass(frozen=True, slots=True)
class Unread:
    """A brace group that looks like an expression and cannot be read as one; it stays literal text.

    `names` are the plain names in it. If one of them is in scope, its author probably meant an expression; with
    `is_python` it is one, only not of this language. With `is_call` it was probably meant as one in any
    case: `{date.today()}`.
    """

    raw: str
    names: frozenset[str]
    is_python: bool
    problem: str
    help: str | None
    place: Place
    is_call: bool = False


_NAME = r"[^\W\d]\w*"
_DOUBLED = re.compile(rf"\{{\{{\s*({_NAME}(?:\.{_NAME}|\[-?\d+\]|\[\"[^\"\\]*\"\]|\['[^'\\]*'\])*)\s*\}}\}}")
_SIMPLE = re.compile(rf"\{{({_NAME}(?:\.{_NAME}|\[-?\d{{1,9}}\])*)\}}")
_BRACE = re.compile(r"[{}]")
_TOKEN = re.compile(
    r"""[{}()\[\]:!]|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|"[^"\\{}]{0,40}"|'[^'\\{}]{0,40}'|["']""", re.DOTALL
)
"""The last strings hold a raw line end: `'\\n'` in a plan that was written with one backslash too few."""
_BROKEN_STRING = re.compile(r""""[^"\\{}]{0,40}"|'[^'\\{}]{0,40}'""")
_PLAIN_NAME = re.compile(rf"""(?<![\w.])({_NAME})|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'""")
_ONE_STRING = re.compile(r"""\s*(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')?\s*\Z""", re.DOTALL)
_LOOKS_READABLE = re.compile(rf"\s*({_NAME})\s*(?:[.\[(+*/<>=-]|\Z|:|!)")
_LATEX = re.compile(r"(?:\\[A-Za-z]+\*?(?:\[[^\[\]{}]*\])?(?:\{[^{}]*\})*|\^)\Z")
_INNER_HOLE = re.compile(r"\{[^{}]*\}")
_CALL = re.compile(rf"\s*{_NAME}(?:\.{_NAME})*(?:\(.*[)\]\w]|\?\.{_NAME}[\w.?()\[\]]*)\s*\Z", re.DOTALL)
_BODY_OF_CODE = re.compile(r"(?:\)|=>|\b(?:else|try|do|finally))\s*\Z")
_TIME = re.compile(r"\s*(?:datetime|date|time|today|Date|now)\b")
_CONVINCING_SPEC = re.compile(r"[.<>=^,%]|[a-zA-Z]\Z")


def find_groups(text: str, place: Place) -> Iterator[str | Group | Unread]:
    """Yield the literal pieces and holes of `text` in order, braces undoubled.

    An `Unread` stands beside the literal piece that it is part of. Never fails.
    """
    partners: dict[int, int] | None = None
    closing: set[int] = set()
    at = 0
    while match := _BRACE.search(text, at):
        start = match.start()
        if start > at:
            yield text[at:start]
        if match.group() == "}":
            doubled = text.startswith("}}", start)
            at = start + (2 if doubled and start not in closing and start + 1 not in closing else 1)
            yield "}"
            continue
        if text.startswith("{{", start):
            group = _doubled(text, start, place)
            if group is not None:
                yield group
                at = group.end
                continue
            yield "{"
            at = start + 2
            continue
        found = _group(text, start, place)
        if isinstance(found, Group):
            yield found
            at = found.end
            continue
        if isinstance(found, Unread):
            yield found
        if partners is None:
            partners = _partners(text)
        closing.add(partners.get(start, -1))
        yield "{"
        at = start + 1
    if at < len(text):
        yield text[at:]


def _partners(text: str) -> dict[int, int]:
    """Return the closing brace of every opening one, quotes disregarded."""
    pairs: dict[int, int] = {}
    opened: list[int] = []
    for match in _BRACE.finditer(text):
        if match.group() == "{":
            opened.append(match.start())
        elif opened:
            pairs[opened.pop()] = match.start()
    return pairs


def _doubled(text: str, start: int, place: Place) -> Group | None:
    """Return the group `{{name}}` at `start`: a reference if its name is in scope, else a literal `{name}`."""
    match = _DOUBLED.match(text, start)
    if match is None:
        return None
    try:
        expression = parse_expression(match[1], place.within(*match.span(1)))
    except ExpressionError:
        return None
    return Group(start, match.end(), expression, None, None, doubtful=True) if expression.names else None


def _group(text: str, start: int, place: Place) -> Group | Unread | None:
    """Return what the brace at `start` opens, None for literal text."""
    spec = conversion = None
    if simple := _SIMPLE.match(text, start):
        end, cut = simple.end(), simple.end() - 1
    else:
        scanned = _scan(text, start)
        if scanned is None:
            return None
        end, cut, conversion, spec = scanned
        if spec and spec[0].isspace() and not conversion:
            return _entry(text, start, end, cut, place)
        if spec and "{" in spec:
            return _nested_spec(text, start, end, spec, place)
    written = text[start + 1 : cut]
    if "\n" in written:
        written = _BROKEN_STRING.sub(lambda string: string.group().replace("\n", "\\n"), written)
    if not written or written.isspace():
        return None
    is_python = None
    try:
        expression = parse_expression(written, place.within(start + 1, cut))
        if not expression.names:
            if not _is_call(written, text, start):
                return None
            return _unread(text, start, end, written, "it uses no value of the plan", None, place)
        if not spec or fits_some_value(spec):
            doubtful = _is_doubtful(text, start, expression, spec)
            return Group(start, end, expression, spec, conversion, doubtful)
        problem, help = f"`{spec[:40]}` is not a format spec", "for example `.2f`, `>10`, `,` or for a date `%Y-%m-%d`"
        is_python = False  # as a whole it is none: `{city:'x'}`
    except ExpressionError as error:
        problem, help = error.message, error.help
    if is_python is None:
        is_python = _is_python(written)
    if not is_python and not _LOOKS_READABLE.match(written) and not _CALL.match(written):
        return None
    return _unread(text, start, end, written, problem, help, place, is_python=is_python)


def _unread(
    text: str,
    start: int,
    end: int,
    written: str,
    problem: str,
    help: str | None,
    place: Place,
    *,
    is_python: bool = False,
) -> Unread:
    names = frozenset(name[1] for name in _PLAIN_NAME.finditer(written) if name[1])
    is_call = _is_call(written, text, start)
    if is_call and _TIME.match(written):
        help = "`now` is the time at which the run began, and `date(now)` its day"
    return Unread(text[start:end], names, is_python, problem, help, place.within(start, end), is_call)


def _is_call(written: str, text: str, start: int) -> bool:
    """Return whether a group calls something, and is neither the body of code nor an argument of LaTeX."""
    if not _CALL.match(written):
        return False
    before = text[max(0, start - 40) : start]
    return not (_BODY_OF_CODE.search(before) or _LATEX.search(before))


def _entry(text: str, start: int, end: int, cut: int, place: Place) -> Unread | None:
    """Return the group `{name: ...}`, an entry of an object or a rule of CSS: text, for all that may be meant."""
    written = text[start + 1 : cut]
    if not _LOOKS_READABLE.match(written) or "{" in text[cut:end]:
        return None
    help = f"write the format without a space before it: `{{{written.strip()[:40]}:...}}`"
    return _unread(text, start, end, written, "a format does not begin with a space", help, place)


def _is_python(text: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(text.strip(), mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True


def _nested_spec(text: str, start: int, end: int, spec: str, place: Place) -> Group | None:
    """Return a group whose format spec holds a hole of its own (`{x:>{width}}`), read as an f-string."""
    raw = text[start:end]
    if not fits_some_value(_INNER_HOLE.sub("8", spec)):
        return None
    if '"""' in raw or "\\" in raw:
        return None
    try:
        expression = parse_expression(f'f"""{raw}"""', place.within(start, end))
    except ExpressionError:
        return None
    return Group(start, end, expression, None, None, doubtful=False) if expression.names else None


def _is_doubtful(text: str, start: int, expression: Expression, spec: str | None) -> bool:
    """Return whether the group could as well be code: a set, CSS, an argument of LaTeX, a shell variable."""
    if isinstance(expression.tree, ast.Tuple):
        return True
    if spec and not _CONVINCING_SPEC.search(spec):
        return True
    if not start:
        return False
    before = text[max(0, start - 40) : start]
    if before[-1] == "$":
        return isinstance(expression.tree, ast.Name)
    return _LATEX.search(before) is not None


def _scan(text: str, start: int) -> tuple[int, int, str | None, str | None] | None:
    """Return the group's end, its expression's end, conversion and format spec; None when it cannot be a hole."""
    limit = min(len(text), start + MAX_LENGTH)
    depth = braces = 0
    at = start + 1
    while match := _TOKEN.search(text, at, limit):
        token = match.group()
        at = match.end()
        if token in "([{":
            depth += 1
            braces += token == "{"
            if braces > MAX_BRACES:
                return None
        elif token in ")]}":
            if depth == 0:
                return (at, at - 1, None, None) if token == "}" else None
            depth -= 1
        elif token in "\"'":
            return None
        elif token == "!" and depth == 0:
            if text.startswith("=", at):
                continue
            cut, letter = match.start(), text[at : at + 1]
            if letter not in "rsa" or not letter or text[at + 1 : at + 2] not in ("}", ":"):
                return None
            if text[at + 1] == "}":
                return at + 2, cut, letter, None
            rest = _spec_end(text, at + 2, limit)
            return None if rest is None else (rest + 1, cut, letter, text[at + 2 : rest])
        elif token == ":" and depth == 0:
            cut = match.start()
            if _ONE_STRING.fullmatch(text, start + 1, cut):
                return None
            rest = _spec_end(text, at, limit)
            return None if rest is None else (rest + 1, cut, None, text[at:rest])
    return None


def _spec_end(text: str, at: int, limit: int) -> int | None:
    depth = 0
    while match := _BRACE.search(text, at, min(limit, at + 200)):
        if match.group() == "{":
            depth += 1
        elif depth == 0:
            return match.start()
        else:
            depth -= 1
        at = match.end()
        if depth > 2:
            return None
    return None
