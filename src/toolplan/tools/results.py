"""Return annotation -> JSON Schema of the result, and what a tool returned -> the JSON value that a plan works with."""

from __future__ import annotations

import collections.abc
import functools
import math
import typing
from collections.abc import Mapping
from typing import Any

from toolplan.errors import ResultRefused
from toolplan.tools.callee import MISSING, Callee
from toolplan.tools.conversion import to_json
from toolplan.tools.faults import Checker, fault_text
from toolplan.tools.json_schema import has_open_part, references
from toolplan.tools.schema import plain
from toolplan.values import MAX_INTEGER, Json, is_text

if typing.TYPE_CHECKING:
    from toolplan.tools.adapters import Adapter

__all__ = ["Results", "results_of"]

_LISTED = (
    collections.abc.Iterator,
    collections.abc.Iterable,
    collections.abc.Generator,
    collections.abc.AsyncIterator,
    collections.abc.AsyncIterable,
    collections.abc.AsyncGenerator,
)


class Results:
    """What a tool returns: its JSON Schema (None for unknown), and the way from a Python object to a JSON value."""

    def __init__(self, schema: dict[str, Any] | None, adapter: Adapter | None = None) -> None:
        self.schema = schema
        self._adapter = adapter
        self._scalar = _scalar_type(schema)

    def value(self, raw: Any, tool: str) -> Json:
        """Return the JSON value, which shares nothing that can change with `raw`.

        Raises `ResultRefused`, naming `tool`, when there is none, or when it is not what the tool declares.
        """
        kind = typing.cast("type[object]", type(raw))
        if kind is self._scalar and (
            (raw.isascii() or is_text(raw))
            if kind is str
            else (kind is not float and kind is not int) or -MAX_INTEGER < raw < MAX_INTEGER
        ):
            return raw  # NaN is not less than anything
        written = self._written(raw, tool)
        if self.schema is not None and not self._checker.fits(written):
            faults = self._checker.faults(written, "the result")
            raise ResultRefused(
                f"`{tool}` returned something else than it declares: "
                + "; ".join(fault_text(fault) for fault in faults[:5])
            )
        return written

    def _written(self, raw: Any, tool: str) -> Json:
        where = f"the result of `{tool}`"
        if self._adapter is None:
            return to_json(raw, where)
        try:
            written = self._adapter.write(raw)
            unfolded = self._adapter.unfold(raw) if self._may_hold_anything else None
        except Exception:  # what pydantic cannot write as declared may still have a plain form; the schema judges it
            return to_json(raw, where)
        _refuse_endless(unfolded, where)
        return written

    @functools.cached_property
    def _checker(self) -> Checker:
        return Checker(self.schema or {})

    @functools.cached_property
    def _may_hold_anything(self) -> bool:
        """Whether some part of the schema admits everything; in such a part pydantic writes NaN as null."""
        return has_open_part(self.schema)


def results_of(callee: Callee) -> Results:
    """Return what the callable returns, as far as its return annotation says. Never fails: unknown stays unknown."""
    annotation = _value_annotation(callee.returns)
    if annotation is MISSING or annotation is Any or annotation is object:
        return Results(None)
    known = plain(annotation)
    if known is not None:
        return Results(known[0])
    from toolplan.tools.adapters import Undescribable, adapter_for, json_schemas  # imports pydantic

    try:
        adapter = adapter_for(annotation, callee.names, result=True)
        schemas, definitions = json_schemas({"": adapter}, "serialization")
    except Undescribable:
        return Results(None)
    schema = _with_root(schemas[""], definitions)
    return Results(schema or None, adapter)


def _with_root(schema: dict[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Return one schema document: the definition of the result itself at its root, unless others refer to it."""
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    others = {key: value for key, value in definitions.items() if key != name}
    if name in definitions and len(schema) == 1 and f"#/$defs/{name}" not in references(definitions):
        schema = {"title": name.rpartition("__")[2], **definitions[name]}
        definitions = others
    return {**schema, "$defs": dict(definitions)} if definitions else schema


def _value_annotation(annotation: Any) -> Any:
    """Return the hint of the value that a plan gets: what is awaited, and a list for what is iterated over."""
    origin, arguments = typing.get_origin(annotation) or annotation, typing.get_args(annotation)
    if origin in (collections.abc.Awaitable, collections.abc.Coroutine):
        return _value_annotation(arguments[-1]) if arguments else MISSING
    if origin in _LISTED:
        return list[arguments[0]] if arguments else list[Any]
    if annotation in (typing.NoReturn, typing.Never):
        return MISSING
    return annotation


def _refuse_endless(value: Any, where: str) -> None:
    """Raise `ResultRefused` when a NaN or an infinity is somewhere in the value."""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ResultRefused(f"{where} is {value!r}, which JSON cannot express")
    elif isinstance(value, Mapping):
        for key, item in typing.cast("Mapping[Any, Any]", value).items():
            _refuse_endless(item, f"{where}.{key}")
    elif isinstance(value, list | tuple | set | frozenset):
        for index, item in enumerate(typing.cast("list[Any]", value)):
            _refuse_endless(item, f"{where}[{index}]")


def _scalar_type(schema: Mapping[str, Any] | None) -> type | None:
    """Return the Python type whose values are results as they are."""
    if not schema or set(schema) - {"type", "description", "title"}:
        return None
    kinds = {"string": str, "integer": int, "number": float, "boolean": bool, "null": type(None)}
    kind = schema.get("type")
    return kinds.get(kind) if isinstance(kind, str) else None
