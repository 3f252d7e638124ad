"""A call with the types of its arguments, and what rules ask about these."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from toolplan.diagnostics import calls as say
from toolplan.expressions.operands import kinds_of
from toolplan.expressions.shapes import (
    NEVER,
    NULL,
    UNKNOWN,
    ListType,
    ObjectType,
    Type,
    join_all,
    kind_word,
    may_be_null,
    members,
    without_null,
)

if TYPE_CHECKING:
    from toolplan.expressions.infer import Inference

__all__ = ["Called"]


class Called:
    """One call with the types of its arguments, by position and by name."""

    __slots__ = ("infer", "name", "node", "nodes", "types")

    def __init__(
        self, infer: Inference, node: ast.Call, name: str, parameters: tuple[str, ...], variadic: bool = False
    ) -> None:
        self.infer = infer
        self.node = node
        self.name = name
        self.types: dict[int | str, Type] = {}
        self.nodes: dict[int | str, ast.expr] = {}
        for position, argument in enumerate(node.args):
            if isinstance(argument, ast.Starred):
                infer.of(argument.value)
                break  # what follows has no known position
            known = parameters[position] if position < len(parameters) and not variadic else position
            self._take(known, argument)
        for keyword in node.keywords:
            if keyword.arg is not None:
                self._take(keyword.arg, keyword.value)

    def _take(self, known: int | str, node: ast.expr) -> None:
        self.nodes[known] = node
        if known != "key":
            self.types[known] = self.infer.of(node)

    def get(self, name: int | str) -> Type | None:
        """Return the type of an argument, or None when it is not given."""
        return self.types.get(name)

    def need(self, name: int | str, kinds: frozenset[str], words: str, help: str | None = None) -> Type:
        """Return the type of an argument that has to be of one of `kinds`; report when it never is or may be null."""
        found = self.types.get(name, UNKNOWN)
        node = self.nodes.get(name)
        own = kinds_of(found)
        if node is None or not own:
            return found
        if own & kinds:
            return found if "null" in kinds else self.infer.present(found, node)
        words_of_call = (f"`{self.name}`", words, self.infer.words(node), kind_word(found))
        return self.infer.report(say.unfit_operand(self.infer.place(node), *words_of_call, help))

    def element(self, name: int | str) -> Type:
        """Return the type of the elements of an argument that is gone through."""
        node = self.nodes.get(name)
        if node is None:
            return UNKNOWN
        return self.infer.element_of(self.types.get(name, UNKNOWN), node, f"`{self.name}`")

    def present_elements(self, name: int | str, element: Type) -> Type:
        """Return the type of the elements for a place where null fails; warn if there may be some among them."""
        node = self.nodes.get(name)
        if node is None or not may_be_null(element) or element == NULL:
            return element
        if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp):
            return self.infer.present(element, node.elt)
        words = (self.infer.words(node), str(element))
        self.infer.report(say.maybe_null(self.infer.place(node), *words, of_elements=True))
        return without_null(element)

    def measure(self, items: int | str, element: Type) -> None:
        """Type what `sorted`, `min` and `max` order: the elements, or what their `key` says of these.

        A key is a lambda, the name of a field, or a function.
        """
        key = self.nodes.get("key")
        if key is None:
            self.present_elements(items, element)
        elif isinstance(key, ast.Lambda):
            (parameter,) = key.args.args or key.args.posonlyargs
            found = self.infer.within(self.infer.bound(ast.Name(parameter.arg), element), key.body)
            if isinstance(key.body, ast.Tuple) and isinstance(found, ListType):
                for part, own in zip(key.body.elts, found.positions, strict=False):
                    self.infer.present(own, part)
            else:
                self.infer.present(found, key.body)
        elif isinstance(key, ast.Constant) and isinstance(key.value, str):
            found = members(without_null(element))
            objects = [member for member in found if isinstance(member, ObjectType)]
            name = key.value
            if objects and len(objects) == len(found) and all(_lacks(each, name) for each in objects):
                first = objects[0]
                words = (f"{self.infer.words(self.nodes.get(items, key))}[0]", name, first.name or "this object")
                self.infer.report(say.unknown_field(self.infer.place(key), *words, list(first.names)))
            elif (own := join_all(each.field(name) or NEVER for each in objects)) != NULL and may_be_null(own):
                words = (self.infer.words(self.nodes.get(items, key)), str(own))
                self.infer.report(say.maybe_null(self.infer.place(key), *words, of_elements=True, field=name))


def _lacks(found: ObjectType, path: str) -> bool:
    return found.knows_all_fields and found.field(path) is None and found.field(path.split(".")[0]) is None
