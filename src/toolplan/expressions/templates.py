r"""Templates: JSON structures whose strings may hold expressions in braces.

    Template = Literal(value)                    a constant
             | Reference(expression)             the whole string "{expr}": the value, type and all
             | Text(str | Hole, ...)             longer text: values are rendered, once, and never expanded again (P5)
             | Items(Template, ...)              a list
             | Fields((key, Template), ...)      an object; its keys are literal

Which brace groups are holes is decided in `holes.py`. A few are doubtful: `{{name}}`, and groups that could as well be
code (`{a, b}`, `\frac{a}{b}`, `${HOME}`, `{margin:0}`). They are references where all their names are in scope and
literal text elsewhere; `settle` makes that decision once, and `fill` makes it at run time where nobody did.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias, cast

from toolplan.diagnostics import NOWHERE, Place
from toolplan.errors import EvaluationError
from toolplan.expressions.faults import Fault
from toolplan.expressions.holes import Group, Unread, find_groups
from toolplan.expressions.limits import Budget, size_of
from toolplan.expressions.read import Expression, ExpressionError, parse_expression
from toolplan.expressions.rendering import convert, format_value, text_of
from toolplan.values import Json

__all__ = [
    "Fields",
    "Hole",
    "Items",
    "Literal",
    "Reference",
    "Template",
    "Text",
    "Unread",
    "fill",
    "holes",
    "names_of",
    "parse_operand",
    "parse_template",
    "rename",
    "settle",
    "unread",
]

MAX_NESTING = 200
MAX_GROUPS = 30_000
"""More brace groups that may be expressions than this in one text are refused: reading each takes its time."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant value."""

    value: Json
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class Reference:
    """The value of an expression, type and all: a whole-string "{expr}", or {"$expr": "..."}."""

    expression: Expression
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class Hole:
    """An expression inside longer text. `raw` is the brace group as written, `spec` a format spec such as ".2f".

    `doubtful` marks a group that is literal text unless its names are in scope (`{{name}}`, or code-like text); the
    names pass settles it. `conversion` is the letter of `!r`, `!s`, `!a`.
    """

    expression: Expression
    raw: str
    spec: str | None = None
    doubtful: bool = False
    conversion: str | None = None

    @property
    def literal(self) -> str:
        """The text that a doubtful hole stands for when it is no reference."""
        return self.raw[1:-1] if self.raw.startswith("{{") else self.raw


@dataclass(frozen=True, slots=True)
class Text:
    """Text with holes; rendered once, never expanded again.

    `unread` are the literal brace groups that look like expressions and cannot be read as such.
    """

    parts: tuple[str | Hole, ...]
    place: Place = NOWHERE
    unread: tuple[Unread, ...] = ()


@dataclass(frozen=True, slots=True)
class Items:
    """A list of templates."""

    items: tuple[Template, ...]
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class Fields:
    """An object of templates."""

    fields: tuple[tuple[str, Template], ...]
    place: Place = NOWHERE


Template: TypeAlias = "Literal | Reference | Text | Items | Fields"


# --- reading ---------------------------------------------------------------------------------------------------------


def parse_template(value: Json, place: Place = NOWHERE) -> Template:
    """Return the template that a JSON value is.

    Raises `ExpressionError` only for a `{"$expr": ...}` that is no expression and for nesting beyond 200 levels.
    """
    return _parse(value, place, 0)


def _parse(value: Json, place: Place, depth: int) -> Template:
    if isinstance(value, str):
        return _parse_text(value, place) if "{" in value or "}" in value else Literal(value, place)
    if isinstance(value, dict):
        if len(value) == 1:
            if "$literal" in value:
                _check_literal(value["$literal"], place.child("$literal"))
                return Literal(value["$literal"], place)
            if "$expr" in value:
                return Reference(_explicit(value["$expr"], place.child("$expr")), place)
        _check_depth(depth, place)
        return Fields(tuple([(key, _parse(item, place.child(key), depth + 1)) for key, item in value.items()]), place)
    if isinstance(value, list):
        _check_depth(depth, place)
        return Items(tuple([_parse(item, place.child(i), depth + 1) for i, item in enumerate(value)]), place)
    return Literal(value, place)


def _check_depth(depth: int, place: Place) -> None:
    if depth >= MAX_NESTING:
        raise ExpressionError(f"a value is nested more than {MAX_NESTING} levels deep", place=place)


def _check_literal(value: Json, place: Place) -> None:
    """Raise `ExpressionError` for a constant that is nested too deeply to be copied."""
    level = [value]
    for depth in range(MAX_NESTING + 2):
        inner = [item for item in level if isinstance(item, list | dict)]
        if not inner:
            return
        _check_depth(depth, place)
        level = [item for part in inner for item in (part.values() if isinstance(part, dict) else part)]


def _explicit(text: Json, place: Place) -> Expression:
    if not isinstance(text, str):
        raise ExpressionError("`$expr` holds an expression as text", place=place, help='write `{"$expr": "a.b"}`')
    inner = _whole_hole(text, place)
    return inner or parse_expression(text, place)


def _parse_text(text: str, place: Place) -> Template:
    pieces: list[str | Hole] = []
    literal: list[str] = []
    doubts: list[Unread] = []
    tried = 0
    for found in find_groups(text, place):
        if isinstance(found, str):
            literal.append(found)
            continue
        tried += 1
        if tried > MAX_GROUPS:
            message = f"the text has more than {MAX_GROUPS:,} groups in braces that may be expressions"
            raise ExpressionError(message, help='write text that is meant as it stands as {"$literal": "..."}')
        if isinstance(found, Unread):
            doubts.append(found)
        else:
            whole = found.start == 0 and found.end == len(text)
            if whole and not (found.doubtful or found.spec or found.conversion):
                return Reference(found.expression, place)
            if literal:
                pieces.append("".join(literal))
                literal.clear()
            pieces.append(_hole(found, text))
    if literal:
        pieces.append("".join(literal))
    if doubts or any(isinstance(piece, Hole) for piece in pieces):
        return Text(tuple(pieces), place, tuple(doubts))
    return Literal("".join(cast("list[str]", pieces)), place)


def _hole(group: Group, text: str) -> Hole:
    return Hole(group.expression, text[group.start : group.end], group.spec, group.doubtful, group.conversion)


def parse_operand(value: Json, place: Place = NOWHERE) -> Expression | Template:
    """Return what stands where the notation expects an expression.

    Text is the expression itself (`"{expr}"` too); a list or object is a structure whose strings are templates; any
    other value is itself. Raises `ExpressionError`.
    """
    if not isinstance(value, str):
        return parse_template(value, place)
    inner = _whole_hole(value, place)
    if inner is not None:
        return inner
    try:
        return parse_expression(value, place)
    except ExpressionError as error:
        if error.help is None and _has_hole(value):
            error.help = f"text needs quotes of its own here: `f{value!r}`"[:200]
        raise


def _whole_hole(text: str, place: Place) -> Expression | None:
    """Return the expression of a text that is one brace group and nothing else."""
    stripped = text.strip()
    if not (stripped.startswith("{") and stripped.endswith("}")):
        return None
    parts = (part for part in find_groups(text, place) if not (isinstance(part, str) and part.isspace()))
    first = next(parts, None)
    if isinstance(first, Group) and not (first.spec or first.conversion) and next(parts, None) is None:
        return first.expression
    return None


def _has_hole(text: str) -> bool:
    pieces = itertools.islice(find_groups(text, NOWHERE), MAX_GROUPS)
    return any(isinstance(found, Group) for found in pieces)


# --- looking and rewriting -------------------------------------------------------------------------------------------


def holes(template: Template) -> Iterator[Reference | Hole]:
    """Yield every reference and hole of the template in written order; `expression.place` says where each stands."""
    stack: list[Template] = [template]
    while stack:
        found = stack.pop()
        if isinstance(found, Reference):
            yield found
        elif isinstance(found, Text):
            yield from (part for part in found.parts if isinstance(part, Hole))
        elif isinstance(found, Items):
            stack.extend(reversed(found.items))
        elif isinstance(found, Fields):
            stack.extend(item for _, item in reversed(found.fields))


def unread(template: Template) -> Iterator[Unread]:
    """Yield the literal brace groups that look like expressions and cannot be read, in written order."""
    stack: list[Template] = [template]
    while stack:
        found = stack.pop()
        if isinstance(found, Text):
            yield from found.unread
        elif isinstance(found, Items):
            stack.extend(reversed(found.items))
        elif isinstance(found, Fields):
            stack.extend(item for _, item in reversed(found.fields))


def names_of(template: Template) -> frozenset[str]:
    """Return the names that the template needs from outside (doubtful holes included)."""
    if isinstance(template, Reference):
        return template.expression.names
    if isinstance(template, Literal):
        return frozenset()
    return frozenset(name for hole in holes(template) for name in hole.expression.names)


def settle(template: Template, decide: Callable[[Hole], bool]) -> Template:
    """Return the template with each doubtful hole made a sure one where `decide` says so, else literal text."""
    return _rewrite(template, None, decide)


def rename(template: Template, paths: Mapping[str, str]) -> Template:
    """Return the template with outside names replaced by paths, such as `temperature` by `weather.temperature`."""
    return _rewrite(template, lambda expression: expression.renamed(paths), None)


def _rewrite(
    template: Template, change: Callable[[Expression], Expression] | None, decide: Callable[[Hole], bool] | None
) -> Template:
    if isinstance(template, Literal):
        return template
    if isinstance(template, Reference):
        if change is None:
            return template
        changed = change(template.expression)
        return template if changed is template.expression else Reference(changed, template.place)
    if isinstance(template, Items):
        items = tuple([_rewrite(item, change, decide) for item in template.items])
        same = all(new is old for new, old in zip(items, template.items, strict=True))
        return template if same else Items(items, template.place)
    if isinstance(template, Fields):
        fields = tuple([(key, _rewrite(item, change, decide)) for key, item in template.fields])
        same = all(new[1] is old[1] for new, old in zip(fields, template.fields, strict=True))
        return template if same else Fields(fields, template.place)
    parts: list[str | Hole] = []
    for part in template.parts:
        if isinstance(part, Hole) and change is not None:
            changed = change(part.expression)
            part = part if changed is part.expression else replace(part, expression=changed)
        if isinstance(part, Hole) and part.doubtful and decide is not None:
            part = replace(part, doubtful=False) if decide(part) else part.literal
        if isinstance(part, str) and parts and isinstance(parts[-1], str):
            parts[-1] += part
        else:
            parts.append(part)
    if all(new is old for new, old in zip(parts, template.parts, strict=False)) and len(parts) == len(template.parts):
        return template
    if len(parts) == 1:
        only = parts[0]
        if isinstance(only, str):
            return Text((only,), template.place, template.unread) if template.unread else Literal(only, template.place)
        if not (only.doubtful or only.spec or only.conversion):
            return Reference(only.expression, template.place)
    return Text(tuple(parts), template.place, template.unread)


# --- filling ---------------------------------------------------------------------------------------------------------


def fill(template: Template, scope: Mapping[str, Json]) -> Json:
    """Return the template's value with the names taken from `scope`. Raises `EvaluationError`.

    A doubtful hole is a reference when all its names are in `scope`. Lists and objects of the template itself are new
    each time; what comes out of `scope` is not copied.
    """
    return _FILL[type(template)](template, scope)


def _fill_literal(template: Literal, scope: Mapping[str, Json]) -> Json:
    value = template.value
    return _copy(value) if isinstance(value, list | dict) else value


def _copy(value: Json) -> Json:
    if isinstance(value, list):
        return [_copy(item) for item in value]
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    return value


def _fill_reference(template: Reference, scope: Mapping[str, Json]) -> Json:
    return template.expression.evaluate(scope)


def _fill_items(template: Items, scope: Mapping[str, Json]) -> Json:
    return [_FILL[type(item)](item, scope) for item in template.items]


def _fill_fields(template: Fields, scope: Mapping[str, Json]) -> Json:
    return {key: _FILL[type(item)](item, scope) for key, item in template.fields}


def _fill_text(template: Text, scope: Mapping[str, Json]) -> Json:
    parts = template.parts
    if len(parts) == 1 and isinstance(only := parts[0], Hole) and not (only.spec or only.conversion):
        return only.expression.evaluate(scope) if _is_reference(only, scope) else only.literal
    budget = Budget(scope)
    texts: list[str] = []
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
        elif _is_reference(part, scope):
            texts.append(_render(part, part.expression.evaluate(scope), budget))
        else:
            texts.append(part.literal)
    try:
        budget.produce(size_of(*texts))
    except Fault as fault:
        raise EvaluationError(fault.message, help=fault.help, place=template.place) from None
    return "".join(texts)


def _is_reference(hole: Hole, scope: Mapping[str, Json]) -> bool:
    return not hole.doubtful or all(name in scope for name in hole.expression.names)


def _render(hole: Hole, value: Json, budget: Budget) -> str:
    """Return `value` as it stands in the text."""
    try:
        if hole.conversion:
            value = convert(value, hole.conversion, budget)
        return format_value(value, hole.spec, budget) if hole.spec else text_of(value, budget)
    except Fault as fault:
        expression = hole.expression
        message = fault.message
        if value is None:
            message = f"`{expression.text.strip()[:60]}` is empty (null), so it cannot be formatted with `{hole.spec}`"
        raise EvaluationError(
            message, start=0, end=len(expression.text), help=fault.help, place=expression.place
        ) from None


_FILL: dict[type, Callable[..., Json]] = {
    Literal: _fill_literal,
    Reference: _fill_reference,
    Text: _fill_text,
    Items: _fill_items,
    Fields: _fill_fields,
}
