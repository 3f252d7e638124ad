"""Where a value comes from: steps of the plan, words of the plan, and which of the steps carry other people's text.

A value is abstracted to its `Sources`. They are joined wherever values meet - in templates, operators, functions,
comprehensions - so nothing that a value depends on is ever forgotten; where the plan takes one field of a result whose
tool declares which fields are untrusted, the others stay clean. This is information-flow analysis in the manner of
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

__all__ = ["NO_SOURCES", "Environment", "Sources", "join", "sources_of"]

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
        taken = replace(self, words=_one_out(self.words)) if self.words else self
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
            return self
        return replace(self, untrusted=self.all_untrusted, fields=_NONE, containers=frozenset(), is_inside=False)

    def under(self, untrusted: frozenset[str]) -> Sources:
        """Return the sources of the same value where whether it is computed depends on `untrusted` steps."""
        if untrusted <= self.untrusted:
            return self
        return replace(self, untrusted=self.untrusted | untrusted)

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
        }

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Sources:
        """Return the sources that `to_json` has written. Raises `KeyError` or `TypeError` for anything else."""
        fields = {str(name): frozenset[str](steps) for name, steps in given["fields"].items()}
        steps, untrusted, written = (frozenset[str](given[key]) for key in ("steps", "untrusted", "written"))
        containers = frozenset[str](given.get("containers", ()))
        inside = bool(given.get("is_inside", False))
        return cls(steps, untrusted, tuple(given["words"]), fields or _NONE, written, containers, inside)


NO_SOURCES = Sources()

Environment = Mapping[str, Sources]
"""The sources of each name; names that are missing (`now`) come from nowhere that matters."""


def join(sources: Iterable[Sources]) -> Sources:
    """Return the sources of a value that depends on all of these."""
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
    return Sources(
        nothing.union(*(each.steps for each in found)),
        nothing.union(*(each.untrusted for each in found)),
        tuple(words.values()),
        fields or _NONE,
        nothing.union(*(each.written for each in found)),
        nothing.union(*(each.containers for each in found)),
        bool(fields) and all(each.is_inside for each in found if each.fields),
    )


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
            return join(sources_of(item, env) for item in template.items)
        case Fields():
            keys = Sources(words=tuple(_key_word(name) for name, _ in template.fields if name))
            return join((keys, *(_one_deeper(sources_of(value, env)) for _, value in template.fields))).whole()


def _of_part(part: str | Hole, env: Environment) -> Sources:
    if isinstance(part, Hole):
        return _of_node(part.expression.tree, env)
    return _of_constant(part)


def _of_constant(value: Json) -> Sources:
    words = tuple(_words_in(value))
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
        case ast.List() | ast.Tuple() | ast.Set():
            return join(_of_node(item, env) for item in node.elts)
        case ast.Starred():
            return _of_node(node.value, env)
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
            inner, tests = _rounds(node.generators, env)
            return _of_node(node.elt, inner).under(tests)
        case ast.DictComp():
            inner, tests = _rounds(node.generators, env)
            return join((_of_node(node.key, inner), _of_node(node.value, inner))).whole().under(tests)
        case ast.IfExp():
            chosen = join((_of_node(node.body, env), _of_node(node.orelse, env)))
            return chosen.under(_of_node(node.test, env).all_untrusted)
        case ast.Lambda():
            names = {argument.arg: NO_SOURCES for argument in node.args.args}
            return _of_node(node.body, {**env, **names})
        case ast.Call():
            return _of_call(node, env)
        case ast.Compare() | ast.UnaryOp(op=ast.Not()):  # what comes out is true or false, not the words compared
            return replace(join(_of_node(child, env) for child in ast.iter_child_nodes(node)).whole(), words=())
        case ast.UnaryOp():
            number = _signed(node)
            return _of_node(node.operand, env).whole() if number is None else _of_constant(number)
        case _:
            return join(_of_node(child, env) for child in ast.iter_child_nodes(node)).whole()


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
    chosen = (
        join(_of_node(child, env) for child in ast.iter_child_nodes(index))
        if isinstance(index, ast.Slice)
        else (_of_node(index, env))
    )
    return base.under(chosen.all_untrusted)  # an index chooses a value; its own digits are not in it


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
            return join((taken, *(_of_node(item, env) for item in rest)))
        return join((owner.whole(), *(_of_node(item, env) for item in given))).whole()
    found = join(_of_node(item, env) for item in given)
    if isinstance(node.func, ast.Name) and node.func.id in _PICKING:
        keys = [keyword.value for keyword in node.keywords if keyword.arg == "key"]
        return found.under(NO_SOURCES.steps.union(*(_of_key(key, found, env).all_untrusted for key in keys)))
    if isinstance(node.func, ast.Name) and node.func.id in _COUNTING:
        return replace(found.whole(), words=())
    return found.whole()


def _of_key(key: ast.expr, element: Sources, env: Environment) -> Sources:
    """Return the sources of what decides an order: a field's name, or an expression of the element."""
    if isinstance(key, ast.Constant) and isinstance(key.value, str):
        return element.of_field(key.value)
    if isinstance(key, ast.Lambda):
        names = {argument.arg: element for argument in key.args.args}
        return _of_node(key.body, {**env, **names})
    return element.whole()


_PICKING = frozenset({"sorted", "reversed", "list", "set", "min", "max", "default"})
_COUNTING = frozenset({"len", "any", "all", "bool"})


def _rounds(generators: list[ast.comprehension], env: Environment) -> tuple[dict[str, Sources], frozenset[str]]:
    """Return the surroundings inside a comprehension, and the untrusted steps that decide what is taken."""
    inner = dict(env)
    deciding: frozenset[str] = frozenset()
    for generator in generators:
        element = _of_node(generator.iter, inner)
        for name in ast.walk(generator.target):
            if isinstance(name, ast.Name):
                inner[name.id] = element
        for test in generator.ifs:
            deciding |= _of_node(test, inner).all_untrusted
    return inner, deciding
