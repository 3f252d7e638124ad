"""Signature and hints -> JSON Schema of the arguments, and JSON arguments -> a call of the function.

Plain hints (`str`, `int`, `float`, `bool`, `None`, `Any`, `list`, `dict`, `Literal` and `X | None` of these) are
described here, without pydantic; the others in `adapters`. Whoever calls `Arguments.bound` has checked the arguments
against the schema; converting is only about types that JSON does not have, and about 3.0 being an integer in JSON.

Tools get copies of lists and objects: what a plan holds is a value and does not change under it.
"""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from toolplan.errors import ArgumentsRefused, ResultRefused, UsageError
from toolplan.tools.callee import MISSING, Callee, Kind, Parameter, typed_dict_fields
from toolplan.tools.context import ToolContext
from toolplan.tools.conversion import to_json
from toolplan.tools.json_schema import Schema, admits_null, is_array, is_object
from toolplan.values import Json

if typing.TYPE_CHECKING:
    from toolplan.tools.adapters import Adapter

__all__ = ["Argument", "Arguments", "copied", "describe_arguments", "plain"]

Convert: TypeAlias = "Callable[[Any], Any]"


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument as a plan gives it (`name`), and the parameter it becomes."""

    name: str
    parameter: str
    kind: Kind
    schema: Schema
    required: bool
    convert: Convert | None = None
    supply: Callable[[], Any] | None = None
    """What to pass when the plan gives nothing; None leaves it to the function's own default."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """All arguments of a tool: their JSON Schema, and how they become a call."""

    items: tuple[Argument, ...]
    schema: Schema
    extra: Convert | None = None
    """How a value for the function's `**kwargs` is converted."""
    contexts: tuple[Parameter, ...] = ()
    order: tuple[str, ...] = ()
    """Parameters that have to be passed by position, in order; context parameters among them."""
    direct: bool = field(init=False)
    """Whether the arguments can be passed on as they are."""

    def __post_init__(self) -> None:
        untouched = all(
            a.convert is None and a.supply is None and a.name == a.parameter and a.kind in ("plain", "keyword")
            for a in self.items
        )
        object.__setattr__(self, "direct", untouched and not (self.contexts or self.order or self.extra))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the arguments as a plan gives them."""
        return tuple(argument.name for argument in self.items)

    def without(self, name: str) -> Arguments:
        """Return the arguments without one of them, which somebody else gives."""
        schema = {**self.schema, "properties": {k: v for k, v in self.schema["properties"].items() if k != name}}
        if "required" in schema:
            schema["required"] = [required for required in schema["required"] if required != name]
        return replace(self, items=tuple(item for item in self.items if item.name != name), schema=schema)

    def bound(
        self, function: Callable[..., Any], arguments: Mapping[str, Json], context: ToolContext | None
    ) -> functools.partial[Any]:
        """Return the call of `function` with these arguments, which fit the schema. Raises `ArgumentsRefused`."""
        if self.direct:
            return functools.partial(function, **arguments)
        passed: dict[str, Any] = {}
        rest: list[Any] = []
        known = 0
        for argument in self.items:
            if argument.name in arguments:
                known += 1
                value: Any = arguments[argument.name]
                if argument.convert is not None:
                    value = argument.convert(value)
            elif argument.supply is not None:
                value = argument.supply()
            else:
                continue
            if argument.kind == "rest":
                rest = value
            else:
                passed[argument.parameter] = value
        if not (self.contexts or self.order or self.extra or rest):
            return functools.partial(function, **passed)
        for parameter in self.contexts:
            passed[parameter.name] = context if context is not None else ToolContext()
        positional = [passed.pop(name) for name in self.order if name in passed]
        if self.extra is not None and known < len(arguments):
            names = set(self.names)
            passed.update((name, self.extra(value)) for name, value in arguments.items() if name not in names)
        return functools.partial(function, *positional, *rest, **passed)


def describe_arguments(callee: Callee) -> Arguments:
    """Return how the callable takes JSON arguments. Raises `UsageError` for a hint that JSON cannot express."""
    drafts = [draft for parameter in callee.parameters if not parameter.hidden for draft in _drafts(parameter)]
    described, definitions = _described(drafts, callee)
    rest = next((p for p in callee.parameters if p.kind == "rest"), None)
    by_position = [p for p in callee.parameters if p.kind == "positional" or (rest and p.kind == "plain")]
    order = tuple(p.name for p in by_position)
    items: list[Argument] = []
    extra: Convert | None = None
    properties: dict[str, Schema] = {}
    closed: Any = False
    for draft in drafts:
        schema, convert, written = described[draft.parameter.name]
        if draft.parameter.kind == "extra":
            extra, closed = convert or (lambda value: value), schema or True
            continue
        default = draft.parameter.default
        required = default is MISSING and draft.parameter.kind != "rest" and not draft.optional
        supply = draft.supply
        if supply is None and not required and draft.parameter.name in order:
            supply = functools.partial(_same, default)
        items.append(
            Argument(draft.name, draft.parameter.name, draft.parameter.kind, schema, required, convert, supply)
        )
        shown = dict(schema)
        if draft.description:
            shown["description"] = draft.description
        if default is not MISSING:
            shown.pop("default", None)
            shown |= _json_default(default, schema, definitions, written)
        if draft.name in properties:
            raise UsageError(f"`{callee.name}` ({callee.place}) has two arguments named `{draft.name}`")
        properties[draft.name] = shown
    whole: Schema = {
        "type": "object",
        "properties": properties,
        "required": [argument.name for argument in items if argument.required],
        "additionalProperties": closed,
    }
    hidden = sorted(
        {p.name for p in callee.parameters if p.hidden} | callee.bound | ({a.parameter for a in items} - {*properties})
    )
    if closed is not False and hidden:
        whole["propertyNames"] = {"not": {"enum": hidden}}
    if definitions:
        whole["$defs"] = definitions
    contexts = tuple(p for p in callee.parameters if p.hidden)
    return Arguments(tuple(items), whole, extra, contexts, order)


@dataclass(frozen=True, slots=True)
class _Draft:
    """A parameter on its way to becoming an argument."""

    parameter: Parameter
    name: str
    annotation: Any
    description: str
    optional: bool = False
    supply: Callable[[], Any] | None = None


def _drafts(parameter: Parameter, optional: bool = False) -> Iterator[_Draft]:
    if parameter.kind == "extra" and typing.get_origin(parameter.annotation) is typing.Unpack:
        (typed,) = typing.get_args(parameter.annotation)
        for name, (hint, required) in typed_dict_fields(typed).items():
            yield from _drafts(Parameter(name, "keyword", hint), optional=not required)
        return
    annotation, texts, fields = _unwrapped(parameter.annotation)
    if parameter.kind == "rest":
        annotation = list[Any] if annotation is MISSING else list[annotation]
    name = parameter.name
    supply: Callable[[], Any] | None = None
    if _is_field(parameter.default):
        fields = [*fields, parameter.default]
        annotation = typing.Annotated[Any if annotation is MISSING else annotation, parameter.default]
    for given in fields:
        alias = given.validation_alias or given.alias
        name = alias if isinstance(alias, str) else name
        if not given.is_required():
            optional = True
            supply = functools.partial(given.get_default, call_default_factory=True)
    if _is_field(parameter.default):
        default = parameter.default.default if optional and parameter.default.default_factory is None else MISSING
        parameter = Parameter(parameter.name, parameter.kind, annotation, default)
    elif parameter.default is not MISSING:
        supply = None
    yield _Draft(parameter, name, annotation, " ".join(texts), optional, supply)


def _unwrapped(annotation: Any) -> tuple[Any, list[str], list[Any]]:
    """Return the hint without texts in `Annotated`, these texts, and the metadata made with pydantic's `Field`."""
    if typing.get_origin(annotation) is not typing.Annotated:
        return annotation, [], []
    inner, *metadata = typing.get_args(annotation)
    texts = [m if isinstance(m, str) else m.documentation for m in metadata if isinstance(m, str) or _is_doc(m)]
    others = [m for m in metadata if not (isinstance(m, str) or _is_doc(m))]
    fields = [m for m in others if _is_field(m)]
    return (typing.Annotated[(inner, *others)] if others else inner), texts, fields


def _is_doc(metadata: Any) -> bool:
    return type(metadata).__name__ == "Doc" and isinstance(getattr(metadata, "documentation", None), str)


def _is_field(value: Any) -> bool:
    """Return whether this was made with pydantic's `Field`, without importing pydantic to ask."""
    return type(value).__name__ == "FieldInfo" and type(value).__module__.startswith("pydantic")


_Described: TypeAlias = "tuple[Schema, Convert | None, Adapter | None]"


def _described(drafts: list[_Draft], callee: Callee) -> tuple[dict[str, _Described], dict[str, Any]]:
    found: dict[str, _Described] = {}
    others: dict[str, _Draft] = {}
    for draft in drafts:
        known = plain(draft.annotation)
        if known is None:
            others[draft.parameter.name] = draft
        else:
            found[draft.parameter.name] = (known[0], known[1], None)
    if not others:
        return found, {}
    from toolplan.tools.adapters import Undescribable, adapter_for, json_schemas  # imports pydantic

    adapters: dict[str, Adapter] = {}
    offender = ""
    try:
        for name, draft in others.items():
            offender = name
            adapters[name] = adapter_for(draft.annotation, callee.names)
        schemas, definitions = json_schemas(adapters, "validation")
    except Undescribable as error:
        offender = error.key or offender
        raise UsageError(
            f"parameter `{offender}` of `{callee.name}` ({callee.place}) has a type that JSON cannot express: "
            f"{error}; use plain types or a model, or describe the tool with `Tool.from_schema(...)`"
        ) from error
    for name, adapter in adapters.items():
        found[name] = (schemas[name], functools.partial(adapter.read, argument=others[name].name), adapter)
    return found, definitions


def plain(annotation: Any) -> tuple[Schema, Convert | None] | None:
    """Return the JSON Schema of a plain hint and how its values are converted; None for other hints."""
    if annotation is None or isinstance(annotation, type):
        scalar = _SCALARS.get(annotation)
        if scalar:
            return {"type": scalar[0]}, scalar[1]
    if annotation is MISSING or annotation is Any or annotation is object:
        return {}, copied
    if annotation is list or annotation is typing.List:  # noqa: UP006 - what a user may have written
        return {"type": "array", "items": {}}, copied
    if annotation is dict or annotation is typing.Dict:  # noqa: UP006
        return {"type": "object", "additionalProperties": True}, copied
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Literal:
        return _plain_literal(arguments)
    if origin is list and (item := plain(arguments[0])):
        return {"type": "array", "items": item[0]}, _of_list(item[1])
    if origin is dict and arguments[0] is str and (item := plain(arguments[1])):
        return {"type": "object", "additionalProperties": item[0] or True}, _of_dict(item[1])
    if origin is typing.Union or origin is types.UnionType:
        return _plain_union(arguments)
    return None


def _integer(value: Any) -> int:
    return value if type(value) is int else int(value)


def _number(value: Any) -> float:
    if type(value) is float:
        return value
    try:
        return float(value)
    except OverflowError as error:
        raise ArgumentsRefused(f"a whole number of {len(str(value))} digits is too large for a float") from error


_SCALARS: dict[Any, tuple[str, Convert | None]] = {
    str: ("string", None),
    bool: ("boolean", None),
    int: ("integer", _integer),
    float: ("number", _number),
    None: ("null", None),
    type(None): ("null", None),
}


def _plain_literal(options: tuple[Any, ...]) -> tuple[Schema, Convert | None] | None:
    kinds: set[type] = {type(option) for option in options}
    if not kinds <= {str, int, bool, type(None)}:
        return None
    schema: Schema = {"enum": list(options)}
    if len(kinds) == 1:
        schema = {"type": _SCALARS[next(iter(kinds))][0], **schema}
    return schema, (_whole if int in kinds else None)


def _whole(value: Any) -> Any:
    return int(value) if type(value) is float else value


def _plain_union(members: tuple[Any, ...]) -> tuple[Schema, Convert | None] | None:
    parts = [plain(member) for member in members]
    if any(part is None or part[0] == {} for part in parts):
        return None
    known = [part for part in parts if part is not None]
    converts = [convert for _, convert in known if convert is not None]
    whole: Schema = {"anyOf": [schema for schema, _ in known]}
    if not converts:
        return whole, None
    if sum(schema != {"type": "null"} for schema, _ in known) > 1:
        return None  # which member a value belongs to decides how it is converted
    return whole, functools.partial(_unless_null, converts[0])


def _unless_null(convert: Convert, value: Any) -> Any:
    return None if value is None else convert(value)


def _of_list(convert: Convert | None) -> Convert:
    if convert is None:
        return list
    return lambda values: [convert(value) for value in values]


def _of_dict(convert: Convert | None) -> Convert:
    if convert is None:
        return dict
    return lambda values: {name: convert(value) for name, value in values.items()}


def copied(value: Any) -> Any:
    """Return a JSON value that shares no list or object with `value`."""
    if is_object(value):
        return {name: copied(item) if type(item) in (dict, list) else item for name, item in value.items()}
    if is_array(value):
        return [copied(item) if type(item) in (dict, list) else item for item in value]
    return value


def _same(value: Any) -> Any:
    return value


def _json_default(default: Any, schema: Schema, definitions: Mapping[str, Any], adapter: Adapter | None) -> Schema:
    """Return `{"default": ...}`, or nothing for a default that JSON cannot express or the schema forbids."""
    if default is None and not admits_null(schema, definitions):
        return {}
    try:
        written = to_json(adapter.write(default) if adapter else default, "default")
    except (ResultRefused, ValueError, TypeError, AttributeError, RecursionError):
        return {}
    return {"default": written}
