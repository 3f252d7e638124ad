"""Values against a JSON Schema: a fast yes or no, and every reason for a no in our own words.

`jsonschema-rs` does the checking. Its own list of errors is no message: it reports the same value twice (wrong type,
and not one of the allowed ones) and a union as "not valid under any of the schemas". `Checker.faults` merges these.

Dates. JSON Schema's `date-time` demands a time zone, which neither models nor calendars write. Here a date, or a date
with a time, is enough; what else Python could be talked into reading as a date (week dates, plain numbers) is not.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import re
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from toolplan.diagnostics import nearest
from toolplan.errors import UsageError
from toolplan.tools.json_schema import is_array, is_object
from toolplan.values import Json, kind_of, shorten, value_at

if typing.TYPE_CHECKING:
    from jsonschema_rs import ValidationError, Validator

__all__ = ["ArgumentFault", "Checker", "FaultKind", "fault_text", "without_value"]

FaultKind: TypeAlias = Literal[
    "missing", "unknown", "type", "enum", "range", "length", "pattern", "format", "unique", "union", "other"
]


@dataclass(frozen=True, slots=True)
class ArgumentFault:
    """One thing that is wrong with a value. `path` leads to it; for `missing`, to where it should be.

    `argument` is the first step of the path. `expected` and `found` are a few words each ("a whole number",
    "'abc' (text)"), `allowed` the values of an enumeration, `suggestion` the known name that an unknown one probably
    means, or the allowed value that was nearly hit. `message` says all of it, and stands alone.
    """

    path: tuple[str | int, ...]
    kind: FaultKind
    argument: str | None
    message: str
    expected: str = ""
    found: str = ""
    suggestion: str | None = None
    allowed: tuple[Json, ...] = ()


def fault_text(fault: ArgumentFault) -> str:
    """Return the message with its suggestion, for places that have no room for a diagnostic."""
    return fault.message + (f"; did you mean `{fault.suggestion}`?" if fault.suggestion else "")


def without_value(fault: ArgumentFault, root: Any) -> ArgumentFault:
    """Return what is wrong with a secret value, without the value: only of what kind it is.

    The names of the fields inside of it stay, but for one that its schema does not know.
    """
    if fault.kind == "missing":
        return fault
    if fault.kind == "unknown":
        around = fault.path[:-1]
        message = f"{_spoken(around, 'it')} has a field that is unknown"
        return replace(fault, path=(*around, "?"), message=message, found="", suggestion=None)
    found = kind_of(value_at(root, fault.path))
    message = f"{_spoken(fault.path, 'it')} must be {fault.expected}, but is {found}"
    return replace(fault, message=message, found=found, suggestion=None, allowed=())


class Checker:
    """A compiled JSON Schema. Raises `UsageError` when the schema is none, or leads outside of itself."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        import jsonschema_rs  # 40 ms to import

        try:
            self._validator: Validator = jsonschema_rs.validator_for(
                dict(schema), validate_formats=True, formats=_FORMATS, offline=True
            )
        except (ValueError, jsonschema_rs.ReferencingError) as error:
            raise UsageError(f"this is no JSON Schema: {_first_line(error)}") from error
        self._schema = schema

    def fits(self, value: Any) -> bool:
        """Return whether the value fits; false for what is not a JSON value."""
        try:
            return self._validator.is_valid(value)
        except ValueError:
            return False

    def faults(self, value: Any, whole: str = "the value") -> list[ArgumentFault]:
        """Return everything that is wrong with the value, in the order of its fields, missing ones last.

        `whole` is what the value itself is called.
        """
        try:
            errors = list(self._validator.iter_errors(value))
        except ValueError as error:
            return [ArgumentFault((), "other", None, f"{whole} is not a JSON value: {_first_line(error)}")]
        found = [fault for error in _leading(errors) for fault in _reported(error, value, whole, self._schema)]
        order = {name: place for place, name in enumerate(value)} if is_object(value) else {}
        found.sort(key=lambda fault: (fault.kind == "missing", order.get(fault.argument or "", len(order))))
        return list(dict.fromkeys(found))


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0]


def _leading(errors: Iterable[ValidationError]) -> list[ValidationError]:
    """Return the errors without those that only follow from another one about the same value."""
    by_path: dict[tuple[str | int, ...], list[ValidationError]] = {}
    for error in errors:
        by_path.setdefault(tuple(error.instance_path), []).append(error)
    leading: list[ValidationError] = []
    for group in by_path.values():
        listed = [error for error in group if error.kind.name in ("enum", "const")]
        wrong = [error for error in group if error.kind.name in ("type", "anyOf", "oneOf")]
        leading += listed[:1] or wrong[:1] or group
    return leading


def _reported(error: ValidationError, root: Any, whole: str, schema: Mapping[str, Any]) -> list[ArgumentFault]:
    path = tuple(error.instance_path)
    kind: Any = error.kind
    name = kind.name
    if name == "required":
        return [_missing(path, kind.property, whole)]
    if name in ("additionalProperties", "unevaluatedProperties"):
        return [_unknown((*path, unknown), root, whole, error, schema) for unknown in kind.unexpected]
    if name in ("anyOf", "oneOf") and hasattr(kind, "context"):
        return _union(error, root, whole, schema)
    if name == "propertyNames":
        return [_unknown((*path, str(kind.error.instance)), root, whole, error, schema)]
    return [_wrong(path, name, kind, value_at(root, path), whole)]


def _missing(parent: tuple[str | int, ...], name: str, whole: str) -> ArgumentFault:
    message = f"`{name}` is required and missing" + (f" in {_spoken(parent, whole)}" if parent else "")
    path = (*parent, name)
    return ArgumentFault(path, "missing", _top(path), message, expected=f"`{name}`")


def _unknown(
    path: tuple[str | int, ...], root: Any, whole: str, error: ValidationError, schema: Mapping[str, Any]
) -> ArgumentFault:
    name = str(path[-1])
    known = list(value_at(schema, (*error.schema_path[:-1], "properties")) or ())
    taken = value_at(root, path[:-1])
    free = [candidate for candidate in known if candidate not in taken] if is_object(taken) else known
    where = f" in {_spoken(path[:-1], whole)}" if len(path) > 1 else ""
    message = f"`{name}` is unknown{where}" + (f"; known: {', '.join(f'`{k}`' for k in known)}" if known else "")
    return ArgumentFault(path, "unknown", _top(path), message, found=f"`{name}`", suggestion=nearest(name, free))


def _wrong(path: tuple[str | int, ...], keyword: str, kind: Any, value: Any, whole: str) -> ArgumentFault:
    if keyword in ("enum", "const"):
        return _not_allowed(path, kind.options if keyword == "enum" else [kind.expected_value], value, whole)
    category, expected = _expectation(keyword, kind)
    return _must_be(path, category, expected, value, whole)


def _not_allowed(path: tuple[str | int, ...], allowed: list[Json], value: Any, whole: str) -> ArgumentFault:
    expected = _alternatives(_quoted(option) for option in allowed)
    return _must_be(path, "enum", expected, value, whole, tuple(allowed))


def _must_be(
    path: tuple[str | int, ...], kind: FaultKind, expected: str, value: Any, whole: str, allowed: tuple[Json, ...] = ()
) -> ArgumentFault:
    found = _described(value)
    texts = [option for option in allowed if isinstance(option, str)]
    suggestion = nearest(value, texts) if isinstance(value, str) and texts else None
    message = f"{_spoken(path, whole)} must be {expected}, but is {found}"
    return ArgumentFault(path, kind, _top(path), message, expected, found, suggestion, allowed)


_TYPES = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_FORMAT_WORDS = {
    "date": "a date such as 2026-03-18",
    "date-time": "a date and time such as 2026-03-18T09:30",
    "time": "a time such as 09:30",
    "duration": "a duration such as PT1H30M",
    "uuid": "a UUID",
    "email": "a mail address",
    "uri": "a URL",
    "base64": "base64 text",
}
_SIZES: dict[str, str] = {
    "minLength": "at least {} characters long",
    "maxLength": "at most {} characters long",
    "minItems": "a list of at least {}",
    "maxItems": "a list of at most {}",
    "minProperties": "an object of at least {} fields",
    "maxProperties": "an object of at most {} fields",
}
_RANGES: dict[str, str] = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
}


def _expectation(keyword: str, kind: Any) -> tuple[FaultKind, str]:
    if keyword == "type":
        return "type", _alternatives(_TYPES.get(name, name) for name in _ordered(kind.types))
    if keyword in _RANGES:
        return "range", _RANGES[keyword].format(kind.limit)
    if keyword == "multipleOf":
        return "range", f"a multiple of {kind.multiple_of}"
    if keyword in _SIZES:
        return "length", _SIZES[keyword].format(kind.limit)
    if keyword == "pattern":
        return "pattern", f"text of the form `{kind.pattern}`"
    if keyword == "format":
        return "format", _FORMAT_WORDS.get(kind.format, f"text in the format `{kind.format}`")
    if keyword == "uniqueItems":
        return "unique", "a list without repetitions"
    if keyword == "oneOf":
        return "union", "of exactly one of the declared forms (it fits several)"
    return "other", f"a value that satisfies `{keyword}`"


def _ordered(kinds: Sequence[str]) -> list[str]:
    return sorted(kinds, key=lambda kind: (kind == "null", list(_TYPES).index(kind) if kind in _TYPES else 99))


def _union(error: ValidationError, root: Any, whole: str, schema: Mapping[str, Any]) -> list[ArgumentFault]:
    """Return the faults of the alternative that was probably meant, or say all alternatives in one fault.

    An alternative was meant when its own type fits and, of those, when it is the only one, or the one with the fewest
    faults. A constant that does not match (a discriminator) speaks against it.
    """
    path = tuple(error.instance_path)
    context: list[list[ValidationError]] = typing.cast("Any", error.kind).context
    if not any(context):
        return [_wrong(path, "oneOf", error.kind, value_at(root, path), whole)]
    here = [[e for e in branch if tuple(e.instance_path) == path and e.kind.name in _SHALLOW] for branch in context]
    meant = [branch for branch, shallow in zip(context, here, strict=True) if not shallow]
    meant = [branch for branch in meant if not any(e.kind.name == "const" for e in branch)] or meant
    if meant:
        best = min(meant, key=len)
        if len(meant) == 1 or sum(len(branch) == len(best) for branch in meant) == 1:
            return [fault for e in _leading(best) for fault in _reported(e, root, whole, schema)]
    tags = [_tag(branch, path) for branch in context]
    if all(tags):
        (place, *others) = {tag[0] for tag in tags if tag}
        if not others:
            options = [option for tag in tags if tag for option in tag[1]]
            return [_not_allowed(place, options, value_at(root, place), whole)]
    value = value_at(root, path)
    expected: list[str] = []
    allowed: list[Json] = []
    for branch in context:
        for fault in [fault for e in _leading(branch)[:1] for fault in _reported(e, root, whole, schema)]:
            expected.append(fault.expected if fault.path == path else f"an object with `{_relative(fault.path, path)}`")
            allowed += fault.allowed
    expected.sort(key=lambda text: text == "null")
    return [_must_be(path, "enum" if allowed else "type", _alternatives(expected), value, whole, tuple(allowed))]


def _tag(branch: list[ValidationError], path: tuple[str | int, ...]) -> tuple[tuple[str | int, ...], list[Json]] | None:
    """Return the field that tells this alternative from the others, and what it should have been."""
    for error in branch:
        kind: Any = error.kind
        place = tuple(error.instance_path)
        if len(place) == len(path) + 1 and kind.name in ("const", "enum"):
            return place, [kind.expected_value] if kind.name == "const" else list(kind.options)
    return None


_SHALLOW = frozenset({"type", "enum", "const", "format", "pattern"})


def _relative(path: tuple[str | int, ...], base: tuple[str | int, ...]) -> str:
    return ".".join(str(step) for step in path[len(base) :])


def _alternatives(words: Iterable[str]) -> str:
    known = list(dict.fromkeys(words))
    return known[0] if len(known) == 1 else ", ".join(known[:-1]) + " or " + known[-1]


def _quoted(value: Json) -> str:
    return f'"{value}"' if isinstance(value, str) else shorten(value)


def _described(value: Any) -> str:
    if value is None or is_array(value) or is_object(value):
        return shorten(value)
    return f"{shorten(value)} ({kind_of(value)})"


def _spoken(path: tuple[str | int, ...], whole: str) -> str:
    if not path:
        return whole
    first, *others = path
    text = f"[{first}]" if isinstance(first, int) else first
    return "`" + text + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in others) + "`"


def _top(path: tuple[str | int, ...]) -> str | None:
    return path[0] if path and isinstance(path[0], str) else None


_DATE = r"\d{4}-\d{2}-\d{2}"
_TIME = r"\d{2}:\d{2}(:\d{2}([.,]\d{1,9})?)?"
_ZONE = r"(Z|z|[+-]\d{2}:?\d{2})?"


def _dated(pattern: str, read: Callable[[str], object]) -> Callable[[str], bool]:
    whole = re.compile(pattern)

    def fits(text: str) -> bool:
        if not whole.fullmatch(text):
            return False
        try:
            read(text)
        except ValueError:
            return False
        return True

    return fits


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


_FORMATS: dict[str, Callable[[str], bool]] = {
    "date": _dated(_DATE, dt.date.fromisoformat),
    "date-time": _dated(rf"{_DATE}([Tt ]{_TIME}{_ZONE})?", lambda text: dt.datetime.fromisoformat(text.upper())),
    "time": _dated(_TIME + _ZONE, lambda text: dt.time.fromisoformat(text.upper())),
    "base64": _is_base64,
}
