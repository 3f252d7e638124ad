"""Where a value comes from: steps of the plan, words of the plan, and which of the steps carry other people's text.

A value is abstracted to its `Sources`. They are joined wherever values meet - in templates, operators, functions,
comprehensions - so nothing that a value depends on is ever forgotten; where the plan takes one field of a result whose
tool declares which fields are untrusted, the others stay clean. How many elements a list has is kept apart from what is
in them: `if not found` learns nothing of the texts in `found`. This is information-flow analysis in the manner of
Denning and Denning (1977), over an abstract interpretation of the expressions.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from toolplan.expressions import Fields, Hole, Items, Literal, Reference, Template, Text
from toolplan.values import Json

__all__ = ["NO_SOURCES", "Environment", "Sources", "join", "sources_of", "truth_of"]

_NONE: Mapping[str, frozenset[str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Sources:
    """What a value was made of.

    `steps` are the steps whose results went into it; `untrusted` those, among everything it depends on, whose results
    may carry other people's text; `words` the constants that the plan itself wrote into it; `written` the `ask_model`
    steps that worded some of it. `fields` says of an object (or a list of objects) which of its fields are untrusted,
    where that is known field by field.
    """

    steps: frozenset[str] = frozenset()
    untrusted: frozenset[str] = frozenset()
    words: tuple[Json, ...] = ()
    fields: Mapping[str, frozenset[str]] = field(default_factory=lambda: _NONE)
    written: frozenset[str] = frozenset()
    containers: frozenset[str] = frozenset()
    """Fields that may hold an untrusted one further down."""
    is_inside: bool = False
    """The value is one of the other fields: trusted as a whole, while `fields` are still untrusted below it."""
    length: frozenset[str] | None = None
    """The untrusted steps that decide how many elements a list has, all in `untrusted`; None if it may be no list."""

    @property
    def all_untrusted(self) -> frozenset[str]:
        """Every untrusted step that the value as a whole depends on, in whichever field."""
        return self.untrusted if self.is_inside else self.untrusted.union(*self.fields.values())

    @property
    def is_untrusted(self) -> bool:
        """Whether the value as a whole may be, or hold, what other people wrote."""
        return bool(self.untrusted or (self.fields and not self.is_inside))

    def of_field(self, name: str) -> Sources:
        """Return the sources of one field of the value.

        The fields declared untrusted are so at any depth: below a field that is not among them they still are, though
        that field, taken whole, counts as what it was declared.
        """
        taken = self.element()
        taken = replace(taken, words=_one_out(self.words)) if self.words else taken
        if not self.fields:
            return taken
        if name in self.fields:
            return replace(taken, untrusted=self.untrusted | self.fields[name], fields=_NONE)
        if name in self.containers:
            return taken
        return replace(taken, is_inside=True)

    def whole(self) -> Sources:
        """Return the sources of something made of the whole value."""
        if not self.fields:
            return self.element()
        untrusted = self.all_untrusted
        return replace(self, untrusted=untrusted, fields=_NONE, containers=frozenset(), is_inside=False, length=None)

    def element(self) -> Sources:
        """Return the sources of one of a list's elements."""
        return self if self.length is None else replace(self, length=None)

    def counted(self) -> Sources:
        """Return the sources of how much there is in the value, and so of whether it is empty.

        Where only certain fields of a result are untrusted, what they hold does not say how many there are.
        """
        decide = self.length
        if decide is None:
            decide = self.untrusted if self.fields else self.all_untrusted
        return Sources(self.steps, decide, written=self.written)

    def under(self, untrusted: frozenset[str]) -> Sources:
        """Return the sources of the same value where whether it is computed depends on `untrusted` steps."""
        length = self.length
        if untrusted <= self.untrusted and (length is None or untrusted <= length):
            return self
        return replace(
            self, untrusted=self.untrusted | untrusted, length=None if length is None else length | untrusted
        )

    def to_json(self) -> dict[str, Json]:
        """Return the sources as JSON, for a conversation that goes on elsewhere."""
        return {
            "steps": list[Json](sorted(self.steps)),
            "untrusted": list[Json](sorted(self.untrusted)),
            "words": list(self.words),
            "fields": {name: list[Json](sorted(steps)) for name, steps in self.fields.items()},
            "written": list[Json](sorted(self.written)),
            "containers": list[Json](sorted(self.containers)),
            "is_inside": self.is_inside,
            "length": None if self.length is None else list[Json](sorted(self.length)),
        }

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Sources:
        """Return the sources that `to_json` has written. Raises `KeyError` or `TypeError` for anything else."""
        fields = {str(name): frozenset[str](steps) for name, steps in given["fields"].items()}
        steps, untrusted, written = (frozenset[str](given[key]) for key in ("steps", "untrusted", "written"))
        containers = frozenset[str](given.get("containers", ()))
        inside = bool(given.get("is_inside", False))
        length = None if given.get("length") is None else frozenset[str](given["length"])
        return cls(steps, untrusted, tuple(given["words"]), fields or _NONE, written, containers, inside, length)


NO_SOURCES = Sources()
_EMPTY_LIST = Sources(length=frozenset())

Environment = Mapping[str, Sources]
"""The sources of each name; names that are missing (`now`) come from nowhere that matters."""


def join(sources: Iterable[Sources]) -> Sources:
    """Return the sources of a value that depends on all of these: one of them, or made of them."""
    found = [each for each in sources if each is not NO_SOURCES]
    if not found:
        return NO_SOURCES
    if len(found) == 1:
        return found[0]
    fields: dict[str, frozenset[str]] = {}
    words: dict[str, Json] = {}
    for each in found:
        for name, steps in each.fields.items():
            fields[name] = fields.get(name, frozenset()) | steps
        words.update({repr(word): word for word in each.words})
    nothing: frozenset[str] = frozenset()
    lengths = [each.length for each in found if each.length is not None]
    return Sources(
        nothing.union(*(each.steps for each in found)),
        nothing.union(*(each.untrusted for each in found)),
        tuple(words.values()),
        fields or _NONE,
        nothing.union(*(each.written for each in found)),
        nothing.union(*(each.containers for each in found)),
        bool(fields) and all(each.is_inside for each in found if each.fields),
        nothing.union(*lengths) if len(lengths) == len(found) else None,
    )


def _list(elements: Iterable[Sources], length: frozenset[str]) -> Sources:
    """Return the sources of a list of these elements, whose number `length` decides."""
    return replace(join(elements).under(length), length=length)


def sources_of(template: Template | ast.expr, env: Environment) -> Sources:
    """Return the sources of what a template, or the tree of an expression, gives in these surroundings."""
    match template:
        case ast.expr():
            return _of_node(template, env)
        case Literal():
            return _of_constant(template.value)
        case Reference():
            return _of_node(template.expression.tree, env)
        case Text():
            return join(_of_part(part, env) for part in template.parts).whole()
        case Items():
            return _list((sources_of(item, env) for item in template.items), frozenset())
        case Fields():
            keys = Sources(words=tuple(_key_word(name) for name, _ in template.fields if name))
            return join((keys, *(_one_deeper(sources_of(value, env)) for _, value in template.fields))).whole()


def _of_part(part: str | Hole, env: Environment) -> Sources:
    if isinstance(part, Hole):
        return _of_node(part.expression.tree, env)
    return _of_constant(part)


def _of_constant(value: Json) -> Sources:
    words = tuple(_words_in(value))
    if isinstance(value, list):
        return Sources(words=words, length=frozenset()) if words else _EMPTY_LIST
    return Sources(words=words) if words else NO_SOURCES


def _words_in(value: Json) -> Iterable[Json]:
    """Yield the texts and numbers of a constant, and the keys of its objects. True, false and null say nothing."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key:
                yield _key_word(key)
            yield from map(_deeper, _words_in(item))
    elif isinstance(value, list):
        for item in value:
            yield from _words_in(item)
    elif isinstance(value, str | int | float) and not isinstance(value, bool) and value != "":
        yield value


_DEEPEST = 4
"""How many objects deep a key is told from others; a key from deeper down stays a word for good."""


def _key_word(key: str) -> Json:
    """Return the key of an object as a word: `{key: null}`, in one list more for every object around its own.

    Whoever takes a field of an object has left its keys behind, but not those of the objects inside.
    """
    return {key: None}


def _deeper(word: Json) -> Json:
    return [word] if isinstance(word, dict | list) and _depth(word) < _DEEPEST else word


def _depth(word: Json) -> int:
    return 1 + _depth(word[0]) if isinstance(word, list) else 0


def _one_deeper(found: Sources) -> Sources:
    """Return the sources of a value as part of an object."""
    return replace(found, words=tuple(map(_deeper, found.words))) if found.words else found


def _one_out(words: tuple[Json, ...]) -> tuple[Json, ...]:
    """Return the words that are left of an object where one of its fields is taken."""
    inner = (word[0] if isinstance(word, list) and _depth(word) < _DEEPEST else word for word in words)
    return tuple(new for new, word in zip(inner, words, strict=True) if not isinstance(word, dict))


def _of_node(node: ast.AST, env: Environment) -> Sources:
    match node:
        case ast.Name():
            return env.get(node.id, NO_SOURCES)
        case ast.Constant():
            return _of_constant(node.value) if isinstance(node.value, str | int | float) else NO_SOURCES
        case ast.Attribute():
            return _of_node(node.value, env).of_field(node.attr)
        case ast.Subscript():
            return _of_subscript(node, env)
        case ast.List() | ast.Tuple():
            more = (_of_node(item.value, env).counted() for item in node.elts if isinstance(item, ast.Starred))
            return _list((_of_node(item, env) for item in node.elts), join(more).untrusted)
        case ast.Set():
            return join(_of_node(item, env) for item in node.elts).element()
        case ast.Starred():
            return _of_node(node.value, env).element()
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
            inner, deciding = _rounds(node.generators, env)
            found = _list((_of_node(node.elt, inner),), deciding)
            return found.element() if isinstance(node, ast.SetComp) else found
        case ast.DictComp():
            inner, deciding = _rounds(node.generators, env)
            return join((_of_node(node.key, inner), _of_node(node.value, inner))).whole().under(deciding)
        case ast.IfExp():
            chosen = join((_of_node(node.body, env), _of_node(node.orelse, env)))
            return chosen.under(truth_of(node.test, env))
        case ast.BoolOp():  # one of its operands, which those before it choose
            chosen = join(_of_node(value, env) for value in node.values)
            return chosen.under(frozenset[str]().union(*(truth_of(value, env) for value in node.values[:-1])))
        case ast.BinOp(op=ast.Add()):
            return _of_sum(_of_node(node.left, env), _of_node(node.right, env))
        case ast.Lambda():
            return _of_lambda(node, NO_SOURCES, env)
        case ast.Call():
            return _of_call(node, env)
        case ast.UnaryOp(op=ast.Not()):
            return replace(_of_node(node.operand, env).whole(), untrusted=truth_of(node.operand, env), words=())
        case ast.Compare():  # what comes out is true or false, not the words compared
            if len(node.ops) == 1 and _is_nothing(node.comparators[0]) and isinstance(node.ops[0], _EQUALS):
                return _of_node(node.left, env).counted()
            return replace(join(_of_node(child, env) for child in ast.iter_child_nodes(node)).whole(), words=())
        case ast.UnaryOp():
            number = _signed(node)
            return _of_node(node.operand, env).whole() if number is None else _of_constant(number)
        case _:
            return join(_of_node(child, env) for child in ast.iter_child_nodes(node)).whole()


def truth_of(node: ast.expr, env: Environment) -> frozenset[str]:
    """Return the untrusted steps that decide whether an expression counts as true."""
    match node:
        case ast.BoolOp():
            return frozenset[str]().union(*(truth_of(value, env) for value in node.values))
        case ast.UnaryOp(op=ast.Not()):
            return truth_of(node.operand, env)
        case _:
            return _of_node(node, env).counted().untrusted


_EQUALS = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)


def _is_nothing(node: ast.expr) -> bool:
    """Return whether an expression is null or an empty list: to be equal to it is to be empty."""
    return (isinstance(node, ast.Constant) and node.value is None) or (isinstance(node, ast.List) and not node.elts)


def _of_sum(one: Sources, other: Sources) -> Sources:
    """Return the sources of a sum. Two lists make a list of the elements of both."""
    if one.length is None or other.length is None:
        return join((one, other)).whole()
    return _list((one, other), one.length | other.length)


def _signed(node: ast.expr) -> int | float | None:
    """Return the number that a constant with signs before it is; None for anything else."""
    match node:
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.UnaryOp(op=ast.UAdd()):
            return _signed(node.operand)
        case ast.UnaryOp(op=ast.USub()):
            number = _signed(node.operand)
            return None if number is None else -number
        case _:
            return None


def _of_subscript(node: ast.Subscript, env: Environment) -> Sources:
    base, index = _of_node(node.value, env), node.slice
    if isinstance(index, ast.Constant) and isinstance(index.value, str):
        return base.of_field(index.value)
    if isinstance(index, ast.Slice):
        return base.under(join(_of_node(child, env) for child in ast.iter_child_nodes(index)).all_untrusted)
    chosen = _of_node(index, env)
    if base.fields and any(isinstance(word, str) for word in chosen.words):
        base = base.whole()  # a field, and any of them
    return base.element().under(chosen.all_untrusted)  # an index chooses a value; its own digits are not in it


def _of_call(node: ast.Call, env: Environment) -> Sources:
    """Return the sources of a function or method: those of all it is given.

    Functions that pick among elements or put them in order hand on elements as they are.
    """
    given = [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg != "key")]
    if isinstance(node.func, ast.Attribute):
        owner = _of_node(node.func.value, env)
        if node.func.attr == "get" and node.args:
            first, *rest = node.args
            name = first.value if isinstance(first, ast.Constant) else None
            taken = owner.of_field(name) if isinstance(name, str) else owner.whole()
            return join((taken, *(_of_node(item, env) for item in rest))).element()
        return join((owner.whole(), *(_of_node(item, env) for item in given))).whole()
    found = join(_of_node(item, env) for item in given)
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name in _PICKING:
        keys = [keyword.value for keyword in node.keywords if keyword.arg == "key"]
        found = found if name in _WHOLE_LISTS else found.element()
        return found.under(NO_SOURCES.steps.union(*(_of_key(key, found, env).all_untrusted for key in keys)))
    if name in _COUNTING:
        return found.counted()
    if name in ("any", "all"):
        return replace(found.whole(), words=())
    return found.whole()


def _of_key(key: ast.expr, element: Sources, env: Environment) -> Sources:
    """Return the sources of what decides an order: a field's name, or an expression of the element."""
    if isinstance(key, ast.Constant) and isinstance(key.value, str):
        return element.of_field(key.value)
    if isinstance(key, ast.Lambda):
        return _of_lambda(key, element, env)
    return element.whole()


def _of_lambda(node: ast.Lambda, given: Sources, env: Environment) -> Sources:
    parameters = (*node.args.posonlyargs, *node.args.args)
    return _of_node(node.body, {**env, **{parameter.arg: given for parameter in parameters}})


_WHOLE_LISTS = frozenset({"sorted", "reversed", "list", "tuple", "enumerate"})
"""What gives a list of as many elements as it is given, and the elements as they are."""
_PICKING = _WHOLE_LISTS | {"set", "zip", "min", "max", "next", "default"}
_COUNTING = frozenset({"len", "bool"})


def _rounds(generators: list[ast.comprehension], env: Environment) -> tuple[dict[str, Sources], frozenset[str]]:
    """Return the surroundings inside a comprehension, and the untrusted steps that decide which elements are taken."""
    inner = dict(env)
    deciding: frozenset[str] = frozenset()
    for generator in generators:
        items = _of_node(generator.iter, inner)
        deciding |= items.counted().untrusted
        element = items.element()
        for name in ast.walk(generator.target):
            if isinstance(name, ast.Name):
                inner[name.id] = element
        for test in generator.ifs:
            deciding |= truth_of(test, inner)
    return inner, deciding
