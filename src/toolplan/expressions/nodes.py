"""The typing rule of each kind of node: what it gives, and when it can never work.

The order is that of the language: names and fields, operators, displays and comprehensions, f-strings, calls.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from toolplan.diagnostics import Diagnostic, Place, nearest
from toolplan.diagnostics import calls as say
from toolplan.expressions import results
from toolplan.expressions.narrowing import as_tested, may_equal, narrow, path_of
from toolplan.expressions.operands import (
    COMPARISONS,
    NUMERIC,
    OPERATORS,
    any_field,
    combined,
    is_text,
    kinds_of,
    may_be_ordered,
    truthy_or_falsy,
)
from toolplan.expressions.shapes import (
    BOOLEAN,
    INTEGER,
    NEVER,
    NULL,
    NUMBER,
    TEXT,
    UNKNOWN,
    ListType,
    ObjectType,
    Scalar,
    Type,
    join,
    join_all,
    kind_word,
    list_of,
    members,
    object_of,
    type_of,
    without_null,
)

if TYPE_CHECKING:
    from toolplan.expressions.infer import Inference, Trouble

__all__ = ["RULES"]


# --- names, fields, elements ----------------------------------------------------------------------------------------


def _name(infer: Inference, node: ast.Name) -> Type:
    return as_tested(node.id, infer.env)


def _constant(infer: Inference, node: ast.Constant) -> Type:
    value = node.value
    return type_of(value) if value is None or isinstance(value, str | int | float) else UNKNOWN


def _attribute(infer: Inference, node: ast.Attribute) -> Type:
    known = _known(infer, node)
    if known is not None:
        return known
    base = infer.of(node.value)
    return infer.each(base, node.value, lambda member: _field(infer, member, node.attr, node, node.value))


def _known(infer: Inference, node: ast.expr) -> Type | None:
    """Return what a test has shown about the path `node`, if anything."""
    path = path_of(node)
    return infer.env.get(path) if path is not None else None


def _field(infer: Inference, base: Type, name: str, node: ast.expr, owner: ast.expr) -> Type | Trouble:
    if isinstance(base, ObjectType):
        found = base.field(name)
        if found is not None:
            return found
        if base.additional is not None or not base.knows_all_fields:
            return base.additional or UNKNOWN
        fields = list(base.names)
        return lambda: say.unknown_field(
            infer.last_word(node, name), infer.words(owner), name, base.name or "this object", fields
        )
    words = (infer.words(owner), _plain_kind(base), name, str(base))
    return lambda: say.no_fields(infer.last_word(node, name), *words, _field_instead(base, name, words[0]))


def _field_instead(base: Type, name: str, words: str) -> str | None:
    """Return how to get at a field that `base` does not have because it is no object."""
    if isinstance(base, ListType):
        if any(isinstance(each, ObjectType) and each.field(name) is not None for each in members(base.element)):
            return f"write `{words}[0].{name}` for the first element, `[x.{name} for x in {words}]` for all"
        return f"write `len({words})`" if name in _SIZES else f"write `{words}[0]` for the first element"
    if is_text(base):
        return f"write `len({words})`" if name in _SIZES else "text has no fields; dates are ISO text too"
    return None


_SIZES = ("length", "size", "count")


def _subscript(infer: Inference, node: ast.Subscript) -> Type:
    known = _known(infer, node)
    if known is not None:
        return known
    base, index = infer.of(node.value), node.slice
    if isinstance(index, ast.Slice):
        for bound in (index.lower, index.upper, index.step):
            if bound is not None:
                infer.of(bound)
        return infer.each(base, node.value, lambda member: _slice(infer, member, node))
    if isinstance(index, ast.Constant) and isinstance(index.value, str):
        key = index.value
        return infer.each(base, node.value, lambda member: _field(infer, member, key, node, node.value))
    by = infer.of(index)
    return infer.each(base, node.value, lambda member: _element(infer, member, by, node))


def _slice(infer: Inference, base: Type, node: ast.Subscript) -> Type | Trouble:
    if isinstance(base, ListType):
        return ListType(lambda: base.element)
    if is_text(base):
        return TEXT
    return lambda: _no_index(infer, base, "a slice", node)


def _element(infer: Inference, base: Type, by: Type, node: ast.Subscript) -> Type | Trouble:
    kinds = kinds_of(by)
    if isinstance(base, ObjectType):
        if kinds and "text" not in kinds and base.knows_all_fields:
            return lambda: _no_index(infer, base, kind_word(by), node)
        return any_field(base)
    if not kinds or kinds & NUMERIC:
        if isinstance(base, ListType):
            return _at(base, node.slice)
        if is_text(base):
            return TEXT
    return lambda: _no_index(infer, base, "text" if is_text(by) else kind_word(by), node)


def _no_index(infer: Inference, base: Type, by: str, node: ast.Subscript) -> Diagnostic:
    has_elements = isinstance(base, ListType | ObjectType) or is_text(base)
    help = None
    if isinstance(base, ObjectType):
        help = "an object is indexed by a field's name: " + ", ".join(f"'{name}'" for name in list(base.names)[:8])
    words = (infer.words(node.value), _plain_kind(base), by if has_elements else None)
    return say.cannot_index(infer.place(node.slice), *words, help)


def _at(base: ListType, index: ast.expr) -> Type:
    """Return the type at an index, the exact one if the position is known."""
    if base.positions:
        negative = isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub)
        number = index.operand if negative and isinstance(index, ast.UnaryOp) else index
        position = number.value if isinstance(number, ast.Constant) else None
        if isinstance(position, int):
            position = -position if negative else position
            if -len(base.positions) <= position < len(base.positions):
                return base.positions[position]
    return UNKNOWN if base.element is NEVER else base.element


# --- operators ------------------------------------------------------------------------------------------------------


def _binary(infer: Inference, node: ast.BinOp) -> Type:
    spine: list[ast.BinOp] = []  # a + b + c + ... leans to the left: walked in a loop
    left: ast.expr = node
    while isinstance(left, ast.BinOp):
        spine.append(left)
        left = left.left
    result = infer.of(left)
    for part in reversed(spine):
        result = _combine(infer, part, result, infer.of(part.right))
    return result


def _combine(infer: Inference, node: ast.BinOp, left: Type, right: Type) -> Type:
    if not kinds_of(left) or not kinds_of(right):
        return _beside_unknown(node.op, left if kinds_of(left) else right)
    possible = [
        found
        for a in members(without_null(left))
        for b in members(without_null(right))
        if (found := combined(node.op, a, b)) is not None
    ]
    if possible:
        infer.present(left, node.left)
        infer.present(right, node.right)
        return join_all(possible)
    right_words = (infer.words(node.right), _plain_kind(right))
    operator = OPERATORS.get(type(node.op), "this operator")
    words = (infer.words(node.left), _plain_kind(left), operator, *right_words)
    return infer.report(say.cannot_combine(infer.place(node), *words, _mended(infer, node, left, right)))


def _beside_unknown(operator: ast.operator, known: Type) -> Type:
    """Return what can be said when one side is unknown: `text + x` works only if `x` is text."""
    if isinstance(operator, ast.Add):
        if is_text(known):
            return TEXT
        if isinstance(known, ListType):
            return ListType(UNKNOWN)
    return UNKNOWN


def _mended(infer: Inference, node: ast.BinOp, left: Type, right: Type) -> str | None:
    """Return how the operation could be written for these kinds."""
    adds = isinstance(node.op, ast.Add)
    sides = ((left, node.left, right, node.right), (right, node.right, left, node.left))
    for found, found_node, other, other_node in sides:
        if is_text(found) and kinds_of(other) <= NUMERIC:
            number = infer.as_number(found, found_node)
            text = f"write `str({infer.words(other_node)})` to join texts" if adds else None
            return f"{text}, {number.removeprefix('write ')} to add numbers" if text and number else text or number
        if adds and isinstance(found, ListType):
            return f"write `[{infer.words(other_node)}]` to add one element"
    return None


def _unary(infer: Inference, node: ast.UnaryOp) -> Type:
    found = infer.of(node.operand)
    if isinstance(node.op, ast.Not):
        return BOOLEAN
    sign = -1 if isinstance(node.op, ast.USub) else 1
    if isinstance(node.operand, ast.Constant) and isinstance(node.operand.value, int | float):
        return type_of(sign * node.operand.value)

    def rule(member: Type) -> Type | Trouble:
        if kinds_of(member) <= NUMERIC:
            return NUMBER if member == NUMBER else INTEGER
        words = ("`-`" if sign < 0 else "`+`", "a number", infer.words(node.operand), kind_word(found))
        return lambda: say.unfit_operand(infer.place(node), *words, infer.as_number(member, node.operand))

    return infer.each(found, node.operand, rule)


def _boolean(infer: Inference, node: ast.BoolOp) -> Type:
    """`a or b` is `a` where `a` is true and else `b`, which is walked knowing that `a` is false."""
    result: Type = NEVER
    env = infer.env
    is_or = isinstance(node.op, ast.Or)
    for part in node.values[:-1]:
        found = infer.within(env, part)
        result = join(result, truthy_or_falsy(found, is_or))
        env = narrow(part, env, not is_or, infer.silently)
    return join(result, infer.within(env, node.values[-1]))


def _compare(infer: Inference, node: ast.Compare) -> Type:
    left_node, left = node.left, infer.of(node.left)
    for operator, right_node in zip(node.ops, node.comparators, strict=True):
        right = infer.of(right_node)
        if isinstance(operator, ast.In | ast.NotIn):
            _contain(infer, left_node, left, right_node, right)
        elif kinds_of(left) and kinds_of(right):
            if isinstance(operator, ast.Eq | ast.NotEq):
                _equate(infer, left_node, left, right_node, right)
            elif not isinstance(operator, ast.Is | ast.IsNot):
                _order(infer, operator, left_node, left, right_node, right)
        left_node, left = right_node, right
    return BOOLEAN


def _span(infer: Inference, first: ast.expr, last: ast.expr) -> Place:
    start, end = infer.place(first), infer.place(last)
    return start if start.start is None or end.end is None else Place(start.path, start.start, end.end)


def _order(
    infer: Inference, operator: ast.cmpop, left_node: ast.expr, left: Type, right_node: ast.expr, right: Type
) -> None:
    if NULL not in (left, right) and may_be_ordered(without_null(left), without_null(right)):
        infer.present(left, left_node)
        infer.present(right, right_node)
        return
    sign, help = COMPARISONS[type(operator)], None
    left_words, right_words = infer.words(left_node), infer.words(right_node)
    if is_text(left) and kinds_of(right) <= NUMERIC:
        help = f"write `number({left_words}) {sign} {right_words}`"
    elif is_text(right) and kinds_of(left) <= NUMERIC:
        help = f"write `{left_words} {sign} number({right_words})`"
    elif isinstance(left, ListType) and kinds_of(right) <= NUMERIC:
        help = f"write `len({left_words}) {sign} {right_words}` to compare how many there are"
    elif isinstance(right, ListType) and kinds_of(left) <= NUMERIC:
        help = f"write `{left_words} {sign} len({right_words})` to compare how many there are"
    elif NULL in (left, right):
        help = "test with `is None` instead"
    words = (left_words, _plain_kind(left), sign, right_words, _plain_kind(right))
    infer.report(say.cannot_order(_span(infer, left_node, right_node), *words, help))


def _plain_kind(found: Type) -> str:
    """Return the kind without its known values: an order does not depend on them."""
    return kind_word(join_all(Scalar(each.kind) if isinstance(each, Scalar) else each for each in members(found)))


def _equate(infer: Inference, left_node: ast.expr, left: Type, right_node: ast.expr, right: Type) -> None:
    if NULL in (left, right) or may_equal(left, right):
        return
    help, describe = None, _plain_kind
    if is_text(left) and is_text(right):
        help, describe = _nearest_value(left, right) or _nearest_value(right, left), kind_word
    elif kinds_of(right) <= NUMERIC:
        help = infer.as_number(left, left_node)
    elif kinds_of(left) <= NUMERIC:
        help = infer.as_number(right, right_node)
    words = (infer.words(left_node), describe(left), infer.words(right_node), describe(right))
    infer.report(say.never_equal(_span(infer, left_node, right_node), *words, help))


def _nearest_value(allowed: Type, given: Type) -> str | None:
    """Return a hint at the allowed value that was probably meant."""
    known, meant = _texts(allowed), _texts(given)
    near = nearest(meant[0], known) if len(meant) == 1 else None
    return f"did you mean {near!r}?" if near else None


def _texts(found: Type) -> list[str]:
    return sorted(str(value) for each in members(found) if isinstance(each, Scalar) for value in each.values or ())


def _contain(infer: Inference, item_node: ast.expr, item: Type, group_node: ast.expr, group: Type) -> None:
    def rule(member: Type) -> Type | Trouble:
        kinds = kinds_of(item)
        if isinstance(member, ListType | ObjectType) or (is_text(member) and (not kinds or "text" in kinds)):
            return BOOLEAN
        if is_text(member):
            words = ("looking inside text", "text to look for", infer.words(item_node), kind_word(item))
            return lambda: say.unfit_operand(infer.place(item_node), *words, f"write `str({words[2]})`")
        words = ("`in`", "a list, an object or text on its right", infer.words(group_node), kind_word(member))
        return lambda: say.unfit_operand(infer.place(group_node), *words, None)

    infer.each(group, group_node, rule)


def _conditional(infer: Inference, node: ast.IfExp) -> Type:
    infer.of(node.test)
    chosen = infer.within(narrow(node.test, infer.env, True, infer.silently), node.body)
    other = infer.within(narrow(node.test, infer.env, False, infer.silently), node.orelse)
    return join(chosen, other)


# --- displays and comprehensions ------------------------------------------------------------------------------------


def _items(infer: Inference, node: ast.List | ast.Tuple | ast.Set) -> Type:
    elements: list[Type] = []
    whole = not isinstance(node, ast.Set)
    for part in node.elts:
        if isinstance(part, ast.Starred):
            elements.append(infer.element_of(infer.of(part.value), part.value, "`*`"))
            whole = False
        else:
            elements.append(infer.of(part))
    return list_of(join_all(elements), elements if whole else ())


def _fields(infer: Inference, node: ast.Dict) -> Type:
    fields: dict[str, Type] = {}
    required: set[str] = set()
    additional: Type = NEVER
    for key, value in zip(node.keys, node.values, strict=True):
        found = infer.of(value)
        if key is None:  # **value
            for member in members(found) or (UNKNOWN,):
                if isinstance(member, ObjectType):
                    fields.update({name: member.field(name) or UNKNOWN for name in member.names})
                    required.update(member.required)
                if not isinstance(member, ObjectType) or not member.sealed:
                    additional = UNKNOWN
        elif isinstance(key, ast.Constant) and isinstance(key.value, str):
            fields[key.value] = found
            required.add(key.value)
        else:
            _key(infer, key)
            additional = join(additional, found)
    return object_of(fields, frozenset(required), None if additional is NEVER else additional)


def _key(infer: Inference, key: ast.expr) -> None:
    kinds = kinds_of(found := infer.of(key))
    if kinds and "text" not in kinds:
        words = ("an object", "text as its keys", infer.words(key), kind_word(found))
        infer.report(say.unfit_operand(infer.place(key), *words, f"write `str({words[2]})`"))


def _comprehension(infer: Inference, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Type:
    before = infer.env
    _rounds(infer, node.generators)
    element = infer.of(node.elt)
    infer.env = before
    return ListType(element)


def _fields_comprehension(infer: Inference, node: ast.DictComp) -> Type:
    before = infer.env
    _rounds(infer, node.generators)
    _key(infer, node.key)
    value = infer.of(node.value)
    infer.env = before
    return ObjectType({}, frozenset(), value)


def _rounds(infer: Inference, generators: list[ast.comprehension]) -> None:
    """Bring the loop variables into scope, narrowed by the conditions."""
    for generator in generators:
        element = infer.element_of(infer.of(generator.iter), generator.iter, "a loop")
        infer.env = infer.bound(generator.target, element)
        for test in generator.ifs:
            infer.of(test)
            infer.env = narrow(test, infer.env, True, infer.silently)


# --- f-strings and calls --------------------------------------------------------------------------------------------


def _text(infer: Inference, node: ast.JoinedStr) -> Type:
    with infer.inside(node):
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                found = infer.of(part.value)
                if isinstance(part.format_spec, ast.JoinedStr):
                    _text(infer, part.format_spec)
                    written = [piece.value for piece in part.format_spec.values if isinstance(piece, ast.Constant)]
                    if len(part.format_spec.values) == len(written) == 1 and part.conversion < 0:
                        infer.check_format(str(written[0]), found, part.value)
    return TEXT


def _call(infer: Inference, node: ast.Call) -> Type:
    if isinstance(node.func, ast.Name):
        return results.function(infer, node, node.func.id)
    if isinstance(node.func, ast.Attribute):
        known = _known(infer, node)
        return results.method(infer, node, node.func) if known is None else known
    return UNKNOWN


RULES: dict[type, Callable[[Inference, Any], Type]] = {
    ast.Name: _name,
    ast.Constant: _constant,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.BoolOp: _boolean,
    ast.Compare: _compare,
    ast.IfExp: _conditional,
    ast.List: _items,
    ast.Tuple: _items,
    ast.Set: _items,
    ast.Dict: _fields,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.DictComp: _fields_comprehension,
    ast.JoinedStr: _text,
    ast.Call: _call,
}
"""The rule of each kind of node; a node without one is UNKNOWN."""
