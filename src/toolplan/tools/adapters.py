"""What pydantic does for us: any type hint -> JSON Schema, JSON -> that type, that type -> JSON.

Imported only when a tool uses a hint that `schema.plain` does not know, because pydantic costs 40 ms to import.
Our own choices, where pydantic would do something else:

- `typing.TypedDict` works on Python 3.11 too: it is rebuilt as `typing_extensions.TypedDict`.
- A named tuple is an object with named fields, not a list, and a set in a result is sorted. As a field of a model or
  dataclass that is a *result*, both stay as the class writes them.
- A `Literal` of enum members takes their values.
- `bytes` are base64 text in both directions, so that one tool's bytes can be handed to another. Inside a model or
  dataclass the configuration of that class decides.
- A parameter that is an `Iterable[T]` gets a list; pydantic would hand over an iterator that can be read once.
- A list for a set may repeat an element: what that means is plain.
- A field of a result that has a default is always there, so it is required.
"""

from __future__ import annotations

import base64
import binascii
import collections.abc
import dataclasses
import enum
import functools
import sys
import types
import typing
import warnings
from collections.abc import Mapping
from typing import Any

import pydantic_core
import typing_extensions
from pydantic import BeforeValidator, PlainSerializer, TypeAdapter, ValidationError, WithJsonSchema
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from toolplan.errors import ArgumentsRefused
from toolplan.tools.callee import typed_dict_fields
from toolplan.values import Json, shorten

__all__ = ["Adapter", "Undescribable", "adapter_for", "json_schemas"]

_DECIMAL = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)$"


class Undescribable(Exception):
    """A type hint for which there is no JSON Schema; the text says why, `key` which of several hints it is."""

    def __init__(self, reason: str, key: str | None = None) -> None:
        super().__init__(reason)
        self.key = key


class _Schemas(GenerateJsonSchema):
    """JSON Schema without the titles that only repeat field names, in the order in which fields were written."""

    def sort(self, value: JsonSchemaValue, parent_key: str | None = None) -> JsonSchemaValue:
        return value

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def field_is_required(self, field: Any, total: bool) -> bool:
        if self.mode == "serialization" and field["type"] != "typed-dict-field":
            return field.get("serialization_exclude_if") is None
        return super().field_is_required(field, total)

    def named_tuple_schema(self, schema: Any) -> JsonSchemaValue:
        if self.mode == "serialization":
            return super().named_tuple_schema(schema)
        return self._object(schema["cls"].__name__, {field["name"]: field["schema"] for field in schema["fields"]})

    def call_schema(self, schema: Any) -> JsonSchemaValue:
        """Describe a named tuple, as pydantic did before 2.14."""
        arguments = schema["arguments_schema"]
        if self.mode == "serialization" or arguments["type"] != "arguments":
            return super().call_schema(schema)
        fields = {field["name"]: field["schema"] for field in arguments["arguments_schema"]}
        return self._object(schema["function"].__name__, fields)

    def _object(self, name: str, fields: dict[str, Any]) -> JsonSchemaValue:
        return {
            "title": name,
            "type": "object",
            "properties": {field: self.generate_inner(inner) for field, inner in fields.items()},
            "required": [field for field, inner in fields.items() if inner["type"] != "default"],
            "additionalProperties": False,
        }

    def set_schema(self, schema: Any) -> JsonSchemaValue:
        return self._repeatable(super().set_schema(schema))

    def frozenset_schema(self, schema: Any) -> JsonSchemaValue:
        return self._repeatable(super().frozenset_schema(schema))

    def _repeatable(self, described: JsonSchemaValue) -> JsonSchemaValue:
        if self.mode == "validation":
            described.pop("uniqueItems", None)
        return described

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        described = super().decimal_schema(schema)
        for branch in described.get("anyOf", ()):
            if branch.get("type") == "string":
                branch.setdefault("pattern", _DECIMAL)
        return described


@dataclasses.dataclass(frozen=True, slots=True)
class Adapter:
    """A type hint that pydantic understands."""

    core: TypeAdapter[Any]
    arranged: bool
    """Whether the hint has named tuples or sets outside of any model, which are arranged before they are written."""

    def read(self, value: Json, argument: str) -> Any:
        """Return the Python object that the JSON value stands for. Raises `ArgumentsRefused`."""
        try:
            # As JSON text, because that is what it means: a strict model takes a date from JSON text, not from a str.
            return self.core.validate_json(pydantic_core.to_json(value))
        except pydantic_core.PydanticSerializationError as error:
            raise ArgumentsRefused(f"`{argument}` is no JSON value: {error}") from error
        except ValidationError as error:
            problems = error.errors(include_url=False, include_context=False)
            raise ArgumentsRefused("; ".join(_problem(argument, problem) for problem in problems[:5])) from error

    def write(self, value: Any) -> Json:
        """Return the JSON value of a Python object, also of one that does not fit. Raises pydantic's error if none."""
        given = _arranged(value) if self.arranged else value
        return self.core.dump_python(given, mode="json", by_alias=True, warnings=False)

    def unfold(self, value: Any) -> Any:
        """Return the value as plain containers, its numbers as they are."""
        return self.core.dump_python(value, mode="python", warnings=False)


def _problem(argument: str, problem: Any) -> str:
    path = argument + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in problem["loc"])
    message = str(problem["msg"])
    message = message[:1].lower() + message[1:]
    return f"`{path}` does not fit: {message} (found {shorten(problem['input'])})"


def adapter_for(annotation: Any, names: Mapping[str, Any], *, result: bool = False) -> Adapter:
    """Return the adapter of a resolved hint, of an argument or of a result.

    `names` are for texts in the types it mentions. Raises `Undescribable`.
    """
    try:
        portable = _portable(annotation, result)
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # an alias given to a parameter is read by us, and means nothing to pydantic
            core: TypeAdapter[Any] = TypeAdapter(portable)
            if not core.pydantic_complete:
                core.rebuild(raise_errors=True, _types_namespace=dict(names))
    except Exception as error:
        raise Undescribable(_reason(error)) from error
    return Adapter(core, arranged=result and _needs_arranging(annotation))


def json_schemas(
    adapters: Mapping[str, Adapter], mode: typing.Literal["validation", "serialization"]
) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """Return the JSON Schema of each adapter and the definitions they share.

    Raises `Undescribable` with the key of the adapter.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found, shared = TypeAdapter.json_schemas(
                [(key, mode, adapter.core) for key, adapter in adapters.items()], schema_generator=_Schemas
            )
    except Exception as error:
        if len(adapters) > 1:
            for key, adapter in adapters.items():
                json_schemas({key: adapter}, mode)
        raise Undescribable(_reason(error), next(iter(adapters))) from error
    definitions: dict[str, Any] = shared.get("$defs", {})
    for name, definition in definitions.items():
        if definition.get("title") == name:
            del definition["title"]
    return {key: schema for (key, _), schema in found.items()}, definitions


def _reason(error: Exception) -> str:
    return str(error).split("\n")[0].split(". ")[0].rstrip(".")


def _from_base64(value: Any) -> Any:
    if not isinstance(value, str | bytes):
        return value
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError("expected base64 text") from error


def _member(options: tuple[Any, ...], value: Any) -> Any:
    """Return the enum member among the options of a `Literal` that a JSON value stands for."""
    return next((o for o in options if isinstance(o, enum.Enum) and o.value == value), value)


_Base64 = typing.Annotated[
    bytes,
    BeforeValidator(_from_base64),
    PlainSerializer(lambda value: base64.b64encode(value).decode("ascii"), return_type=str),
    WithJsonSchema({"type": "string", "format": "base64"}),
]


_OPAQUE: tuple[Any, ...] = (typing.Literal, getattr(collections.abc, "Callable"))  # noqa: B009 - hides its type
"""Hints whose arguments are not hints themselves."""


def _portable(annotation: Any, result: bool) -> Any:
    """Return the hint with those parts replaced that pydantic refuses or reads in another way than we want."""
    if annotation is bytes:
        return _Base64
    if _is_old_typed_dict(annotation):
        return _typed_dict(annotation, typed_dict_fields(annotation), result)
    if result and _is_named_tuple(annotation):
        hints = typing.get_type_hints(annotation, include_extras=True)
        return _typed_dict(annotation, {name: (hints.get(name, Any), True) for name in annotation._fields}, result)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Literal and any(isinstance(option, enum.Enum) for option in arguments):
        return typing.Annotated[annotation, BeforeValidator(functools.partial(_member, arguments))]
    if origin is None or origin in _OPAQUE:
        return annotation
    if origin is typing.Annotated:
        inner, *metadata = arguments
        return typing.Annotated[(_portable(inner, result), *metadata)]
    if origin is collections.abc.Iterable:
        return list[_portable(arguments[0], result)]
    replaced = tuple(_portable(argument, result) for argument in arguments)
    if replaced == arguments:
        return annotation
    if origin is types.UnionType or origin is typing.Union:
        return typing.Union[replaced]  # noqa: UP007 - built from values
    return origin[replaced]


def _is_old_typed_dict(annotation: Any) -> bool:
    return sys.version_info < (3, 12) and type(annotation).__module__ == "typing" and typing.is_typeddict(annotation)


def _is_named_tuple(annotation: Any) -> bool:
    return (
        isinstance(annotation, type)
        and issubclass(annotation, tuple)
        and hasattr(typing.cast("Any", annotation), "_fields")
    )


def _typed_dict(old: Any, fields: dict[str, tuple[Any, bool]], result: bool) -> Any:
    """Return a `TypedDict` of the same name and fields that pydantic accepts."""
    hints: dict[str, Any] = {
        name: (typing_extensions.Required if required else typing_extensions.NotRequired)[_portable(hint, result)]
        for name, (hint, required) in fields.items()
    }
    make: Any = typing_extensions.TypedDict  # as a function: the fields are known only now
    new = make(old.__name__, hints)
    new.__module__, new.__qualname__ = old.__module__, old.__qualname__
    if not (old.__doc__ or "").startswith(f"{old.__name__}("):  # what a named tuple says about itself when nobody does
        new.__doc__ = old.__doc__
    return new


def _needs_arranging(annotation: Any) -> bool:
    origin = typing.get_origin(annotation) or annotation
    if origin in (set, frozenset, collections.abc.Set) or _is_named_tuple(annotation):
        return True
    return any(_needs_arranging(argument) for argument in typing.get_args(annotation))


def _arranged(value: Any) -> Any:
    """Return the value with named tuples as dicts and sets as sorted lists, as deep as plain containers go."""
    if _is_named_tuple(type(value)):
        named = value
        return {name: _arranged(item) for name, item in zip(named._fields, named, strict=True)}
    if isinstance(value, dict):
        return {key: _arranged(item) for key, item in typing.cast("dict[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_arranged(item) for item in typing.cast("list[Any]", value)]
    if isinstance(value, set | frozenset):
        members = [_arranged(item) for item in typing.cast("set[Any]", value)]
        try:
            return sorted(members)
        except TypeError:
            return sorted(members, key=repr)
    return value
