"""What each function and method returns, and what it needs of its arguments.

One rule for every entry of `functions.FUNCTIONS` and `methods.METHODS`. A rule gets the call with the types of its
arguments and returns the type of the result; most of it is a table.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from toolplan.diagnostics import calls as say
from toolplan.expressions.called import Called
from toolplan.expressions.functions import FUNCTIONS
from toolplan.expressions.methods import METHODS, REFUSED
from toolplan.expressions.operands import NUMERIC, any_field, kinds_of, may_be_ordered
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
    Type,
    join,
    join_all,
    joined_lists,
    kind_word,
    list_of,
    members,
    object_of,
    without_null,
)

if TYPE_CHECKING:
    from toolplan.expressions.infer import Inference

__all__ = ["FUNCTION_RULES", "METHOD_RULES", "function", "method"]


Rule: TypeAlias = "Callable[[Called], Type]"

_TEXT = frozenset(("text",))
_LISTS = frozenset(("list", "object", "text"))


# --- functions ------------------------------------------------------------------------------------------------------


def function(infer: Inference, node: ast.Call, name: str) -> Type:
    """Return the type of a call of the function `name`."""
    if name == "default":
        return _default(infer, node)
    if name == "isinstance":
        for argument in node.args[:1]:
            infer.of(argument)
        return BOOLEAN
    rule = FUNCTION_RULES.get(name)
    if rule is None:
        return UNKNOWN
    known = FUNCTIONS[name]
    return rule(Called(infer, node, name, known.parameters, known.variadic))


def _default(infer: Inference, node: ast.Call) -> Type:
    arguments = {**dict(zip(("value", "fallback"), node.args, strict=False)), **{k.arg: k.value for k in node.keywords}}
    value, fallback = arguments.get("value"), arguments.get("fallback")
    if value is None or fallback is None:
        return UNKNOWN
    found = infer.silently(value, infer.env)  # whatever is missing in there, the fallback stands in for it
    return join(without_null(found), infer.of(fallback))


def _sum(call: Called) -> Type:
    element = call.element("items")
    start = call.get("start")
    if start is not None and "list" in kinds_of(start):
        return ListType(lambda: join_all(each.element for each in members(element) if isinstance(each, ListType)))
    node = call.nodes.get("items")
    kinds = kinds_of(without_null(element))
    if node is not None and kinds and not kinds & NUMERIC:
        words = (f"`{call.name}`", "numbers to add", call.infer.words(node), _listed(call.get("items"), element))
        help = "write `sum([number(x) for x in ...])`" if kinds == _TEXT else None
        if isinstance(element, ObjectType):
            help = f"name the field to add: `sum([x.field for x in {call.infer.words(node)}])`"
        return call.infer.report(say.unfit_operand(call.infer.place(node), *words, help))
    call.present_elements("items", element)
    if kinds and kinds <= {"integer", "boolean"} and (start is None or kinds_of(start) <= {"integer", "boolean"}):
        return INTEGER
    return NUMBER


def _listed(found: Type | None, element: Type) -> str:
    """Return the words for what was gone through: `a list of texts`."""
    if found is not None and not all(isinstance(member, ListType) for member in members(found)):
        return kind_word(found)
    word = kind_word(element)
    return f"a list of {_PLURALS.get(word, word)}"


_PLURALS = {
    "text": "texts",
    "a number": "numbers",
    "a whole number": "whole numbers",
    "a list": "lists",
    "an object": "objects",
}


def _extreme(call: Called) -> Type:
    given = [name for name in call.types if isinstance(name, int)]
    if not given or _is_spread(call):
        call.measure("values", UNKNOWN)
        return UNKNOWN
    if len(given) == 1:
        element = call.element(0)
        call.measure(0, element)
        if element is NEVER:
            element = UNKNOWN
        default = call.get("default")
        return element if default is None else join(element, default)
    if "key" not in call.nodes:
        for name in given[1:]:
            if not may_be_ordered(call.types[given[0]], call.types[name]):
                return _no_order(call, given[0], name)
        return join_all(call.infer.present(call.types[name], call.nodes[name]) for name in given)
    found = join_all(call.types[name] for name in given)
    call.measure(given[0], found)
    return found


def _is_spread(call: Called) -> bool:
    """Return whether some of the arguments are the elements of a list, so that nobody knows how many there are."""
    return any(isinstance(argument, ast.Starred) for argument in call.node.args)


def _no_order(call: Called, first: int, second: int) -> Type:
    nodes, types = call.nodes, call.types
    left = (call.infer.words(nodes[first]), kind_word(types[first]))
    right = (call.infer.words(nodes[second]), kind_word(types[second]))
    help = "turn the text into a number: `number(...)`"
    return call.infer.report(say.cannot_order(call.infer.place(call.node), *left, call.name, *right, help))


def _sorted(call: Called) -> Type:
    element = call.element("items")
    call.measure("items", element)
    return list_of(element)


def _same_elements(call: Called) -> Type:
    return list_of(call.element(next(iter(call.types), "items"))) if call.types else list_of(NEVER)


def _next(call: Called) -> Type:
    element = call.element("items")
    default = call.get("default")
    if element is NEVER:
        element = UNKNOWN
    return element if default is None else join(element, default)


def _abs(call: Called) -> Type:
    found = call.need("x", NUMERIC, "a number", _to_number(call, "x"))
    return INTEGER if kinds_of(found) and kinds_of(found) <= {"integer", "boolean"} else NUMBER


def _to_number(call: Called, name: int | str) -> str | None:
    node = call.nodes.get(name)
    return f"write `number({call.infer.words(node)})`" if node is not None and call.get(name) is not UNKNOWN else None


def _round(call: Called) -> Type:
    call.need("x", NUMERIC, "a number", _to_number(call, "x"))
    places = call.get("ndigits")
    return INTEGER if places is None or places == NULL else NUMBER


def _number(call: Called) -> Type:
    default = call.get("default")
    null = frozenset(("null",)) if default is not None else frozenset[str]()
    call.need("text", _TEXT | NUMERIC | null, "text or a number")
    return join(NUMBER, NEVER if default is None else default)


def _dict(call: Called) -> Type:
    pairs = call.get("pairs")
    if pairs is None:
        return ObjectType({}, sealed=True)
    if pairs is UNKNOWN:
        return UNKNOWN
    if all(isinstance(member, ObjectType) for member in members(pairs)):
        return pairs
    element = call.element("pairs")
    if isinstance(element, ListType) and len(element.positions) == 2:
        return ObjectType({}, frozenset(), element.positions[1])
    return ObjectType({}, frozenset(), UNKNOWN)


def _enumerate(call: Called) -> Type:
    element = call.element("items")
    return list_of(list_of(join(INTEGER, element), (INTEGER, element)))


def _zip(call: Called) -> Type:
    if _is_spread(call):
        return list_of(list_of(UNKNOWN))
    elements = [call.element(name) for name in call.types]
    return list_of(list_of(join_all(elements), elements))


def _set_item(call: Called) -> Type:
    value = call.get("value") or UNKNOWN
    key = call.nodes.get("key")
    results = [_with_item(member, key, value) for member in members(call.get("container") or UNKNOWN)]
    return join_all(results) if results else UNKNOWN


def _with_item(container: Type, key: ast.expr | None, value: Type) -> Type:
    if isinstance(container, ListType):
        return joined_lists(container, ListType(value))
    if not isinstance(container, ObjectType):
        return UNKNOWN
    others = None if container.sealed else container.additional or UNKNOWN
    if isinstance(key, ast.Constant) and isinstance(key.value, str):
        fields = {name: container.field(name) or UNKNOWN for name in container.names} | {key.value: value}
        return object_of(fields, container.required | {key.value}, others)
    fields = {name: join(container.field(name) or UNKNOWN, value) for name in container.names}
    return object_of(fields, container.required, join(others or NEVER, value))


def _divmod(call: Called) -> Type:
    call.need("a", NUMERIC, "a number")
    call.need("b", NUMERIC, "a number")
    return list_of(NUMBER, (NUMBER, NUMBER))


def _takes(result: Type, **needs: tuple[frozenset[str], str]) -> Rule:
    """Return the rule of a function that needs these kinds of its arguments and returns `result`."""

    def rule(call: Called) -> Type:
        for name, (kinds, words) in needs.items():
            if name in call.types:
                call.need(name, kinds, words, _to_number(call, name) if kinds is NUMERIC else None)
        return result

    return rule


def _truth_of_each(call: Called) -> Type:
    call.element("items")
    return BOOLEAN


_A_TEXT = (_TEXT, "text")
_A_NUMBER = (NUMERIC, "a number")
_A_DATE = (_TEXT, "a date as ISO text")
_UNITS = ("years", "months", "weeks", "days", "hours", "minutes", "seconds")
_TEXTS, _NUMBERS = list_of(TEXT), list_of(NUMBER)

FUNCTION_RULES: dict[str, Rule] = {
    "len": _takes(INTEGER, x=(_LISTS, "a list, an object or text")),
    "sum": _sum,
    "min": _extreme,
    "max": _extreme,
    "sorted": _sorted,
    "reversed": _same_elements,
    "any": _truth_of_each,
    "all": _truth_of_each,
    "next": _next,
    "abs": _abs,
    "round": _round,
    "floor": _takes(INTEGER, x=_A_NUMBER),
    "ceil": _takes(INTEGER, x=_A_NUMBER),
    "pow": _takes(NUMBER, base=_A_NUMBER, exp=_A_NUMBER),
    "divmod": _divmod,
    "int": _takes(INTEGER, x=(NUMERIC | _TEXT, "a number or text")),
    "float": _takes(NUMBER, x=(NUMERIC | _TEXT, "a number or text")),
    "number": _number,
    "str": _takes(TEXT),
    "repr": _takes(TEXT),
    "format": _takes(TEXT),
    "json": _takes(TEXT),
    "bool": _takes(BOOLEAN),
    "list": _same_elements,
    "tuple": _same_elements,
    "set": _same_elements,
    "dict": _dict,
    "range": _takes(list_of(INTEGER), start=_A_NUMBER, stop=_A_NUMBER, step=_A_NUMBER),
    "enumerate": _enumerate,
    "zip": _zip,
    "set_item": _set_item,
    "find_urls": _takes(_TEXTS, text=_A_TEXT),
    "find_emails": _takes(_TEXTS, text=_A_TEXT),
    "find_numbers": _takes(_NUMBERS, text=_A_TEXT),
    "lines": _takes(_TEXTS, text=_A_TEXT),
    "ord": _takes(INTEGER, character=_A_TEXT),
    "chr": _takes(TEXT, number=_A_NUMBER),
    "date": _takes(TEXT, text=_A_DATE),
    "add": _takes(
        TEXT, d=_A_DATE, **dict.fromkeys(("years", "months", "weeks", "days", "hours", "minutes"), _A_NUMBER)
    ),
    "days_between": _takes(INTEGER, start=_A_DATE, end=_A_DATE),
    "minutes_between": _takes(NUMBER, start=_A_DATE, end=_A_DATE),
    "weekday": _takes(INTEGER, d=_A_DATE),
    "format_date": _takes(TEXT, d=_A_DATE, pattern=_A_TEXT),
}
"""The rule of each function; `default` and `isinstance` are not computed from their arguments' types alone."""


# --- methods --------------------------------------------------------------------------------------------------------

_KINDS: dict[type, str] = {str: "text", list: "list", dict: "object"}


def method(infer: Inference, node: ast.Call, func: ast.Attribute) -> Type:
    """Return the type of a call of a method."""
    base = infer.of(func.value)
    owners = {_KINDS[kind] for kind in METHODS.get(func.attr, ())}
    signature = next(iter(METHODS.get(func.attr, {}).values()), None)
    call = Called(infer, node, func.attr, signature.parameters if signature else ())

    def rule(member: Type) -> Type | Callable[[], say.Diagnostic]:
        (kind,) = kinds_of(member) or ("",)
        if kind in owners:
            return METHOD_RULES.get((kind, func.attr), _unknown)(call, member)
        return lambda: say.unknown_method(
            infer.last_word(func, func.attr),
            infer.words(func.value),
            kind_word(member),
            func.attr,
            _methods_of(kind),
            _instead(infer, func, member, owners),
        )

    return infer.each(base, func.value, rule)


def _unknown(call: Called, base: Type) -> Type:
    return UNKNOWN


def _methods_of(kind: str) -> list[str]:
    return [name for name, kinds in METHODS.items() if any(_KINDS[each] == kind for each in kinds)]


def _instead(infer: Inference, func: ast.Attribute, member: Type, owners: set[str]) -> str | None:
    words = infer.words(func.value)
    if isinstance(member, ListType) and kinds_of(member.element) & owners:
        return (
            f"write `[x.{func.attr}() for x in {words}]` for each element, or `{words}[0].{func.attr}()` for the first"
        )
    if owners == {"text"} and kinds_of(member) <= NUMERIC:
        return f"write `str({words}).{func.attr}(...)`"
    return REFUSED.get(func.attr)


MethodRule: TypeAlias = "Callable[[Called, Type], Type]"


def _gives(result: Type, **needs: tuple[frozenset[str], str]) -> MethodRule:
    take = _takes(result, **needs)
    return lambda call, base: take(call)


def _join(call: Called, base: Type) -> Type:
    element = call.element("items")
    node = call.nodes.get("items")
    kinds = kinds_of(without_null(element))
    if node is not None and kinds and "text" not in kinds:
        words = ("`join`", "a list of texts", call.infer.words(node), _listed(call.get("items"), element))
        help = f"write `[str(x) for x in {call.infer.words(node)}]`"
        call.infer.report(say.unfit_operand(call.infer.place(node), *words, help))
    else:
        call.present_elements("items", element)
    return TEXT


def _replace(call: Called, base: Type) -> Type:
    for name in ("old", "new"):
        call.need(name, _TEXT, "text", _to_text(call, name))
    return TEXT


def _to_text(call: Called, name: str) -> str | None:
    node = call.nodes.get(name)
    return f"write `str({call.infer.words(node)})`" if node is not None else None


def _get(call: Called, base: Type) -> Type:
    assert isinstance(base, ObjectType)
    fallback = call.get("default") or NULL
    key = call.nodes.get("key")
    if isinstance(key, ast.Constant) and isinstance(key.value, str):
        found = base.field(key.value)
        if found is not None:
            return found if key.value in base.required else join(found, fallback)
        if base.sealed:
            return fallback
        return UNKNOWN if base.additional is None else join(base.additional, fallback)
    call.need("key", _TEXT, "text as the key", _to_text(call, "key"))
    return join(any_field(base), fallback)


def _values(call: Called, base: Type) -> Type:
    assert isinstance(base, ObjectType)
    return ListType(lambda: any_field(base))


def _items(call: Called, base: Type) -> Type:
    assert isinstance(base, ObjectType)
    value = any_field(base)
    return list_of(list_of(join(TEXT, value), (TEXT, value)))


def _itself(call: Called, base: Type) -> Type:
    return base


def _own_elements(call: Called, base: Type) -> Type:
    assert isinstance(base, ListType)
    return ListType(lambda: base.element)


def _union(call: Called, base: Type) -> Type:
    assert isinstance(base, ListType)
    return joined_lists(base, ListType(call.element("other")))


_PLACES = {"sub": _A_TEXT}
_WIDTH = {"width": _A_NUMBER}

_OF_TEXT: Mapping[str, MethodRule] = {
    **dict.fromkeys(("lower", "upper", "title", "capitalize", "casefold", "swapcase"), _gives(TEXT)),
    **dict.fromkeys(("strip", "lstrip", "rstrip"), _gives(TEXT, chars=(_TEXT | {"null"}, "text"))),
    **dict.fromkeys(("isdigit", "isnumeric", "isdecimal", "isalpha", "isalnum"), _gives(BOOLEAN)),
    **dict.fromkeys(("isspace", "isupper", "islower", "istitle", "isascii"), _gives(BOOLEAN)),
    **dict.fromkeys(("split", "rsplit"), _gives(_TEXTS, sep=(_TEXT | {"null"}, "text"))),
    **dict.fromkeys(("find", "rfind", "index", "rindex", "count"), _gives(INTEGER, **_PLACES)),
    **dict.fromkeys(("ljust", "rjust", "center", "zfill"), _gives(TEXT, **_WIDTH)),
    **dict.fromkeys(("partition", "rpartition"), _gives(list_of(TEXT, (TEXT, TEXT, TEXT)), sep=_A_TEXT)),
    "splitlines": _gives(_TEXTS),
    "startswith": _gives(BOOLEAN, prefix=(_TEXT | {"list"}, "text")),
    "endswith": _gives(BOOLEAN, suffix=(_TEXT | {"list"}, "text")),
    "removeprefix": _gives(TEXT, prefix=_A_TEXT),
    "removesuffix": _gives(TEXT, suffix=_A_TEXT),
    "join": _join,
    "replace": _replace,
    "format": _gives(TEXT),
}
_OF_LIST: Mapping[str, MethodRule] = {
    "index": _gives(INTEGER),
    "count": _gives(INTEGER),
    "copy": _itself,
    "union": _union,
    **dict.fromkeys(("intersection", "difference"), _own_elements),
    **dict.fromkeys(("issubset", "issuperset", "isdisjoint"), _gives(BOOLEAN)),
}
_OF_OBJECT: Mapping[str, MethodRule] = {
    "get": _get,
    "keys": _gives(_TEXTS),
    "values": _values,
    "items": _items,
    "copy": _itself,
}
METHOD_RULES: dict[tuple[str, str], MethodRule] = {
    **{("text", name): rule for name, rule in _OF_TEXT.items()},
    **{("list", name): rule for name, rule in _OF_LIST.items()},
    **{("object", name): rule for name, rule in _OF_OBJECT.items()},
}
"""The rule of each method, by the kind of value that it belongs to."""
