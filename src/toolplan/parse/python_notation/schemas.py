"""`returns=` of `ask_model`: a JSON Schema written as a literal, or in the shorthand of Python's type names."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TypeVar

from toolplan.diagnostics import program_calls as wording
from toolplan.parse.python_notation.lowering import Lowering, Refused
from toolplan.parse.python_notation.vocabulary import dotted
from toolplan.values import Json

Read = TypeVar("Read")

__all__ = ["TEXT", "schema_of"]

_TYPES: dict[str, dict[str, Json]] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "list": {"type": "array"},
    "List": {"type": "array"},
    "dict": {"type": "object"},
    "Dict": {"type": "object"},
    "Any": {},
    "None": {"type": "null"},
}
TEXT: dict[str, Json] = {"type": "string"}
"""What `ask_model` returns when nothing is said."""
_JSON_TYPES = frozenset({"string", "integer", "number", "boolean", "array", "object", "null"})
_SCHEMAS = frozenset({"additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then"})
_SCHEMA_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SCHEMA_MAPS = frozenset({"$defs", "definitions", "patternProperties", "properties"})
_TELLING = _SCHEMAS | _SCHEMA_LISTS | {"$ref", "const", "enum"}
MAX_STEPS = 50
"""Names that may stand for names that stand for ... a schema."""


def schema_of(low: Lowering, node: ast.expr) -> dict[str, Json]:
    """Return the JSON Schema that `node` is. Raises `Refused`."""
    return _Schemas(low).schema(node)


class _Schemas:
    def __init__(self, low: Lowering) -> None:
        self.low = low
        self.looked_up = 0

    def schema(self, node: ast.expr) -> dict[str, Json]:
        match node:
            case ast.Dict():
                return self._object(node)
            case ast.Constant(value=None):
                return {"type": "null"}
            case ast.Constant(value=str(name)) if name in _JSON_TYPES:
                return {"type": name}
            case ast.Constant(value=str(name)) if name in _TYPES:
                return dict(_TYPES[name])
            case ast.BinOp(op=ast.BitOr()):
                return _either([self.schema(node.left), self.schema(node.right)])
            case ast.Subscript():
                return self._generic(node)
            case ast.List(elts=[element]):
                return {"type": "array", "items": self.schema(element)}
            case ast.Name(id=name) if name in self.low.survey.values:
                return self._followed(node, self.schema)
            case ast.Name() | ast.Attribute() if (name := (dotted(node) or "").rpartition(".")[2]) in _TYPES:
                return dict(_TYPES[name])
            case _:
                raise Refused(wording.schema(self.low.place(node)))

    def _object(self, node: ast.Dict) -> dict[str, Json]:
        entries = self._entries(node)
        if not entries:
            return {}
        kind = entries.get("type")
        if kind is not None and len(entries) == 1:
            return self._type(kind)
        names_a_type = isinstance(kind, ast.Constant | ast.List) and _is_type(kind)
        maps = any(isinstance(entries.get(key), ast.Dict) for key in _SCHEMA_MAPS)
        if not names_a_type and not maps and _TELLING.isdisjoint(entries):
            fields: dict[str, Json] = {name: self.schema(value) for name, value in entries.items()}
            return {"type": "object", "properties": fields, "required": list(fields)}
        schema: dict[str, Json] = {}
        for key, value in entries.items():
            if key == "type":
                schema |= self._type(value)
            elif key in _SCHEMA_MAPS and isinstance(value, ast.Dict):
                schema[key] = {name: self.schema(inner) for name, inner in self._entries(value).items()}
            elif key in _SCHEMA_LISTS and isinstance(value, ast.List):
                schema[key] = [self.schema(inner) for inner in value.elts]
            elif key in _SCHEMAS and not isinstance(value, ast.Constant):
                schema[key] = self.schema(value)
            else:
                schema[key] = self.literal(value)
        return schema

    def _type(self, node: ast.expr) -> dict[str, Json]:
        """Return what `"type": node` says; types may be Python's, and `None` is null."""
        if isinstance(node, ast.List | ast.Tuple):
            return _either([self._type(element) for element in node.elts]) if node.elts else {}
        return self.schema(node)

    def _entries(self, node: ast.Dict) -> dict[str, ast.expr]:
        entries: dict[str, ast.expr] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                inner = self._value_of(value) if isinstance(value, ast.Name) else value
                if not isinstance(inner, ast.Dict):
                    raise Refused(wording.schema(self.low.place(value)))
                entries |= self._entries(inner)
            elif isinstance(key, ast.Constant) and isinstance(key.value, str):
                entries[key.value] = value
            else:
                raise Refused(wording.schema(self.low.place(key)))
        return entries

    def _generic(self, node: ast.Subscript) -> dict[str, Json]:
        name = (dotted(node.value) or "").rpartition(".")[2]
        inside = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        match name, inside:
            case "Literal", options:
                return {"enum": [self.literal(option) for option in options]}
            case "list" | "List" | "set" | "Sequence" | "Iterable", [element]:
                return {"type": "array", "items": self.schema(element)}
            case "dict" | "Dict" | "Mapping", [_, value]:
                return {"type": "object", "additionalProperties": self.schema(value)}
            case "Optional", [inner]:
                return _either([self.schema(inner), {"type": "null"}])
            case "Union", options:
                return _either([self.schema(option) for option in options])
            case "tuple" | "Tuple", [element, ast.Constant(value=value)] if value is ...:
                return {"type": "array", "items": self.schema(element)}
            case "tuple" | "Tuple", elements:
                schemas: list[Json] = [self.schema(element) for element in elements]
                return {"type": "array", "prefixItems": schemas, "minItems": len(schemas), "maxItems": len(schemas)}
            case _:
                raise Refused(wording.schema(self.low.place(node)))

    def literal(self, node: ast.expr) -> Json:
        """Return the constant that `node` is."""
        match node:
            case ast.Constant(value=value) if value is None or isinstance(value, str | bool | int | float):
                return value
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                return -value
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                return [self.literal(element) for element in elements]
            case ast.Dict():
                return {name: self.literal(value) for name, value in self._entries(node).items()}
            case ast.Name(id=name) if name in self.low.survey.values:
                return self._followed(node, self.literal)
            case ast.Name(id="true" | "false" | "null" as name):
                return {"true": True, "false": False, "null": None}[name]
            case ast.Name() | ast.Attribute() if (name := (dotted(node) or "").rpartition(".")[2]) in _TYPES:
                return _TYPES[name].get("type")
            case _:
                raise Refused(wording.schema(self.low.place(node)))

    def _followed(self, node: ast.Name, read: Callable[[ast.expr], Read]) -> Read:
        """Return what `read` makes of the value of a name. A problem in it is one of the name."""
        value = self._value_of(node)
        try:
            return read(value)
        except Refused:
            raise Refused(wording.schema(self.low.place(node), self.low.place(value))) from None

    def _value_of(self, node: ast.Name) -> ast.expr:
        """Return the one value that the program gives this name."""
        self.looked_up += 1
        assignments = self.low.survey.values.get(node.id, [])
        if len(assignments) == 1 and assignments[0] is not None and self.looked_up <= MAX_STEPS:
            value = assignments[0].value
            if value is not None:
                return value
        raise Refused(wording.schema(self.low.place(node)))


def _is_type(node: ast.Constant | ast.List) -> bool:
    if isinstance(node, ast.Constant):
        return node.value in _JSON_TYPES
    return bool(node.elts) and all(isinstance(e, ast.Constant) and e.value in _JSON_TYPES for e in node.elts)


def _either(options: list[dict[str, Json]]) -> dict[str, Json]:
    """Return the schema of a union; plain types join into one list of types."""
    names: list[Json] = []
    for option in options:
        kind = option.get("type")
        if len(option) != 1 or kind is None:
            break
        names += kind if isinstance(kind, list) else [kind]
    else:
        return {"type": list(dict.fromkeys(str(name) for name in names))}
    flat: list[Json] = []
    for option in options:
        inner = option.get("anyOf")
        flat += inner if isinstance(inner, list) and len(option) == 1 else [option]
    return {"anyOf": flat}
