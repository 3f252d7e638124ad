"""Tools as compact typed text: one line for a message, a whole set with its result types for a prompt.

Written from the JSON Schemas, so that tools of any source look alike. The style is Python's, because that is what
models read best: `search(query: str, limit: int = 10) -> list[Hit]`. Dates are text in a plan, so they are shown by
names (`Date`, `DateTime`) that a set explains as text.
"""

from __future__ import annotations

import json
import re
import typing
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

from toolplan.tools.json_schema import definitions_of, is_array, is_object, references

if typing.TYPE_CHECKING:
    from toolplan.tools.tool import Tool

__all__ = ["signature_of", "signatures"]

Schema: TypeAlias = "Mapping[str, Any]"
Style: TypeAlias = Literal["named", "once"]
"""Models by name alone, or with their fields where they are mentioned first."""

_SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_FORMATS = {"date": "Date", "date-time": "DateTime", "time": "Time", "duration": "Duration"}
_FORMAT_NOTES = {
    "Date": "str  # YYYY-MM-DD",
    "DateTime": "str  # YYYY-MM-DDTHH:MM:SS",
    "Time": "str  # HH:MM:SS",
    "Duration": "str  # ISO 8601, such as PT1H30M",
}
_LONG_ENUM = 5
"""An enumeration of a named type with more values than this is declared once in a set, not spelt out at each use."""


def signature_of(tool: Tool, *, with_fields: bool) -> str:
    """Return the tool on one line; `with_fields` writes a model's fields where it is mentioned first."""
    writer = _Writer(_InPlace("once" if with_fields else "named"))
    return _call(tool, writer)


def signatures(tools: Iterable[Tool]) -> str:
    """Return all tools for a prompt: the types they share, each declared once, then each tool with what it says.

    A tool's text is its signature, its description, those descriptions of parameters that say more than the name, and
    what its docstring says about the result.
    """
    declared = _Declared()
    writer = _Writer(declared)
    known = list(tools)
    for tool in known:  # results first: when an input model differs from the result's, the result keeps the name
        if tool.returns is not None:
            writer.text(tool.returns, definitions_of(tool.returns))
    blocks = ["\n".join(_lines(tool, writer)) for tool in known]
    formats = [f"{name} = {note}" for name, note in _FORMAT_NOTES.items() if name in writer.formats]
    types = "\n".join([*formats, *declared.lines()])
    return "\n\n".join(filter(None, [types, *blocks]))


def _call(tool: Tool, writer: _Writer) -> str:
    parameters = tool.parameters
    definitions = definitions_of(parameters)
    required = set(parameters.get("required", ()))
    written = [
        writer.field(name, schema, definitions, name in required)
        for name, schema in parameters.get("properties", {}).items()
    ]
    extra = parameters.get("additionalProperties", False)
    if extra is not False:
        written.append("**: " + (writer.text(extra, definitions, taken=True) if is_object(extra) else "Any"))
    returns = tool.returns
    result = "Any" if returns is None else writer.text(returns, definitions_of(returns))
    return f"{tool.name}({', '.join(written)}) -> {result}"


def _lines(tool: Tool, writer: _Writer) -> Iterator[str]:
    yield _call(tool, writer)
    yield from (f"  {line}".rstrip() for line in tool.description.strip().splitlines() if line.strip())
    for name, schema in tool.parameters.get("properties", {}).items():
        yield from _notes(name, schema)
    returned = " ".join(tool.result_description.split())
    label = "返回" if _is_chinese(returned or tool.description) else "returns"
    if returned and returned not in tool.description:
        yield f"  {label}: {returned}"
    yield from _inner_notes(label, tool.returns)


def _notes(name: str, schema: Any) -> Iterator[str]:
    """Yield a line for a value, and one for each field of unnamed objects in it, that says more than its name."""
    if not is_object(schema):
        return
    text = " ".join(str(schema.get("description", "")).split())
    notes = [text] if _adds_to(name, text) else []
    notes += [f"({limits})"] if (limits := _limits(_unless_null(schema))) else []
    if notes:
        yield f"  {name}: {' '.join(notes)}"
    yield from _inner_notes(name, schema)


def _inner_notes(name: str, schema: Any) -> Iterator[str]:
    inner = _unless_null(schema)
    while is_object(inner) and "items" in inner:
        name, inner = f"{name}[]", _unless_null(inner["items"])
    if is_object(inner) and not inner.get("title"):
        for field, part in inner.get("properties", {}).items():
            yield from _notes(f"{name}.{field}", part)


def _unless_null(schema: Any) -> Any:
    """Return the one alternative besides null, or the schema itself."""
    branches: list[Any] = schema.get("anyOf", []) if is_object(schema) else []
    others = [branch for branch in branches if branch != {"type": "null"}]
    return others[0] if len(others) == 1 else schema


def _adds_to(name: str, text: str) -> bool:
    """Return whether a description says more than the name of what it describes."""
    words = [word for word in re.findall(r"\w+", text.casefold()) if word not in ("the", "a", "an", "of", "to")]
    return bool(words) and words != name.rpartition(".")[2].casefold().split("_")


def _is_chinese(text: str) -> bool:
    return any("\u4e00" <= character <= "\u9fff" for character in text)


def _limits(schema: Schema) -> str:
    """Return the constraints that a type in Python's style does not show."""
    found = [f"{sign} {schema[key]}" for key, sign in _SIGNS.items() if key in schema]
    for low, high in (("minLength", "maxLength"), ("minItems", "maxItems")):
        if low in schema or high in schema:
            found.append(f"length {schema.get(low, 0)}..{schema.get(high, '')}")
    if "pattern" in schema:
        found.append(f"matches {schema['pattern']}")
    if schema.get("format") not in (None, *_FORMATS, "path", "binary", "password"):
        found.append(str(schema["format"]))
    return ", ".join(found)


_SIGNS = {
    "minimum": ">=",
    "exclusiveMinimum": ">",
    "maximum": "<=",
    "exclusiveMaximum": "<",
    "multipleOf": "multiple of",
}


class _Writer:
    """Writes schemas as types; what a named type looks like at its mention is the `namer`'s choice."""

    def __init__(self, namer: _InPlace | _Declared) -> None:
        self._namer = namer
        self._open: set[str] = set()
        """Definitions that are no objects and are being written out."""
        self.formats: set[str] = set()

    def field(self, name: str, schema: Any, definitions: Schema, required: bool, taken: bool = True) -> str:
        """Return `name: type`, with its default if it is a `taken` one (an argument), else with `?` if it may miss."""
        text = self.text(schema, definitions, taken=taken)
        if required:
            return f"{name}: {text}"
        if not taken:
            return f"{name}?: {text}"
        default = _literal(schema["default"]) if is_object(schema) and "default" in schema else "..."
        return f"{name}: {text} = {default}"

    def text(self, schema: Any, definitions: Schema, *, taken: bool = False) -> str:
        """Return the type; `taken` says that it is an argument's, whose fields may have defaults."""
        if not is_object(schema):
            return "Any"
        if "$ref" in schema:
            name = str(schema["$ref"]).rpartition("/")[2]
            target = definitions.get(name)
            return self._named(name, target, definitions, taken) if is_object(target) else "Any"
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                return self._union(schema[keyword], definitions, taken)
        if "allOf" in schema and len(schema["allOf"]) == 1:
            return self.text(schema["allOf"][0], definitions, taken=taken)
        if schema.get("title") and (schema.get("properties") or "enum" in schema):
            own = {key: value for key, value in schema.items() if key != "$defs"}
            return self._named(str(schema["title"]), own, definitions, taken)
        return self._unnamed(schema, definitions, taken)

    def _named(self, name: str, target: dict[str, Any], definitions: Schema, taken: bool) -> str:
        kinds = target.get("type")
        if is_array(kinds) and "enum" not in target:
            whole: list[Any] = [{**target, "type": kind} for kind in kinds if kind == "object"]
            return self._union_of(
                [self._named(name, part, definitions, taken) for part in whole]
                + [self._unnamed({"type": kind}, definitions, taken) for kind in kinds if kind != "object"]
            )
        if "enum" in target and len(target["enum"]) <= _LONG_ENUM:
            return self._unnamed(target, definitions, taken)
        if "enum" not in target and not target.get("properties"):
            if name in self._open:  # it contains itself
                return name
            self._open.add(name)
            untitled = {key: value for key, value in target.items() if key != "title"}
            text = self.text(untitled, definitions, taken=taken)
            self._open.discard(name)
            return text
        plain = re.sub(r"\W", "_", name.rpartition("__")[2])
        return self._namer.mention(plain, target, definitions, taken, self)

    def _union(self, branches: list[Any], definitions: Schema, taken: bool) -> str:
        return self._union_of([self.text(branch, definitions, taken=taken) for branch in branches])

    def _union_of(self, texts: list[str]) -> str:
        texts.sort(key=lambda text: text == "None")
        return "Any" if "Any" in texts else " | ".join(dict.fromkeys(texts))

    def _unnamed(self, schema: dict[str, Any], definitions: Schema, taken: bool) -> str:
        if "enum" in schema:
            return " | ".join(_literal(option) for option in schema["enum"])
        if "const" in schema:
            return _literal(schema["const"])
        kinds = schema.get("type")
        if is_array(kinds):
            texts = [
                self._unnamed({**schema, "type": kind}, definitions, taken) for kind in typing.cast("list[str]", kinds)
            ]
            return self._union_of(texts)
        if kinds == "string" and schema.get("format") in _FORMATS:
            name = _FORMATS[schema["format"]]
            self.formats.add(name)
            return name
        if kinds in _SCALARS:
            return _SCALARS[kinds]
        if kinds == "array" or "items" in schema or "prefixItems" in schema:
            if schema.get("prefixItems"):
                return (
                    f"tuple[{', '.join(self.text(item, definitions, taken=taken) for item in schema['prefixItems'])}]"
                )
            return f"list[{self.text(schema.get('items'), definitions, taken=taken)}]"
        if schema.get("properties"):
            return "{" + ", ".join(self.fields(schema, definitions, taken)) + "}"
        if kinds == "object":
            extra = schema.get("additionalProperties")
            return f"dict[str, {self.text(extra, definitions, taken=taken)}]"
        return "Any"

    def fields(self, schema: Schema, definitions: Schema, taken: bool) -> list[str]:
        """Return the fields of an object, each as `name: type`."""
        required = set(schema.get("required", ()))
        return [
            self.field(name, inner, definitions, name in required, taken)
            for name, inner in schema["properties"].items()
        ]


class _InPlace:
    """Named types in a text of their own: mentioned by name, with their fields the first time if wanted."""

    def __init__(self, style: Style) -> None:
        self._style = style
        self._seen: set[str] = set()

    def mention(self, name: str, target: dict[str, Any], definitions: Schema, taken: bool, writer: _Writer) -> str:
        if "enum" in target:
            return " | ".join(_literal(option) for option in target["enum"])
        if self._style == "named" or name in self._seen:
            return name
        self._seen.add(name)
        return f"{name} {{{', '.join(writer.fields(target, definitions, taken))}}}"


class _Declared:
    """Named types of a whole set: mentioned by name, declared once. Different types of one name get different names."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._texts: dict[str, str] = {}

    def mention(self, name: str, target: dict[str, Any], definitions: Schema, taken: bool, writer: _Writer) -> str:
        looks = _fingerprint(target, definitions)
        if looks in self._names:
            return self._names[looks]
        chosen = name if name not in self._texts else f"{name}Input" if taken else f"{name}2"
        number = 2
        while chosen in self._texts:
            number += 1
            chosen = f"{name}{number}"
        self._names[looks] = chosen
        self._texts[chosen] = ""  # taken before its fields are written: they may mention it
        self._texts[chosen] = _declaration(chosen, target, definitions, taken, writer)
        return chosen

    def lines(self) -> list[str]:
        return list(self._texts.values())


def _declaration(name: str, target: dict[str, Any], definitions: Schema, taken: bool, writer: _Writer) -> str:
    text = " ".join(str(target.get("description", "")).split())
    note = f"  # {text}" if text else ""
    if "enum" in target:
        return f"{name} = {' | '.join(_literal(option) for option in target['enum'])}{note}"
    fields = writer.fields(target, definitions, taken)
    notes = [" ".join(str(inner.get("description", "")).split()) for inner in target["properties"].values()]
    described = [_adds_to(field, said) for field, said in zip(target["properties"], notes, strict=True)]
    if not any(described):
        return f"class {name}: {', '.join(fields)}{note}"
    lines = [f"class {name}:{note}"]
    for field, said, adds in zip(fields, notes, described, strict=True):
        lines.append(f"  {field}" + (f"  # {said}" if adds else ""))
    return "\n".join(lines)


def _fingerprint(target: Schema, definitions: Schema) -> str:
    """Return a text that is the same for two types when they, and all they refer to, are the same."""
    reached: dict[str, Any] = {}
    waiting = sorted(references(target))
    while waiting:
        name = waiting.pop().rpartition("/")[2]
        if name not in reached:
            reached[name] = definitions.get(name)
            waiting += sorted(references(reached[name]))
    shown = {key: value for key, value in target.items() if key != "title"}
    return json.dumps([shown, reached], sort_keys=True, ensure_ascii=False, default=str)


def _literal(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return repr(value)
    return json.dumps(value, ensure_ascii=False)
