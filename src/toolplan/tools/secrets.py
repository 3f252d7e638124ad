"""What a schema marks as secret, with `"format": "password"` or `"writeOnly": true`, is not shown to anybody."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from toolplan.expressions import Fields, Literal

if TYPE_CHECKING:
    from toolplan.tools.tool import Tool

__all__ = ["HIDDEN", "is_secret", "secret_arguments", "secret_names", "secret_part", "without_secrets"]

HIDDEN = "(secret)"


def secret_arguments(tool: Tool) -> frozenset[str]:
    """Return the names of the arguments that are, or hold, what the schema marks as secret."""
    return tool.secret_arguments


def without_secrets(arguments: Fields, tool: Tool) -> Fields:
    """Return the arguments with `HIDDEN` in place of the secret ones."""
    secret = secret_arguments(tool)
    if not secret:
        return arguments
    hidden = Literal(HIDDEN)
    return Fields(tuple((name, hidden if name in secret else value) for name, value in arguments.fields))


def secret_names(schema: Mapping[str, Any] | None) -> frozenset[str]:
    """Return the names of the properties that a schema of an object calls secret, through `$ref` and `anyOf` too."""
    if not schema:
        return frozenset()
    definitions = {**schema.get("definitions", {}), **schema.get("$defs", {})}
    properties = _resolved(schema, definitions).get("properties", {})
    return frozenset(name for name, inner in properties.items() if is_secret(inner, definitions, 0))


def secret_part(schema: Mapping[str, Any] | None) -> frozenset[str] | None:
    """Return the secret fields of a value; none of them for one that is secret as a whole; None for any other."""
    if schema is None:
        return None
    return secret_names(schema) or (frozenset() if is_secret(schema, schema.get("$defs", {}), 0) else None)


def _resolved(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = str(schema.get("$ref", ""))
    return definitions.get(reference.rpartition("/")[2], schema) if reference else schema


def is_secret(schema: Any, definitions: Mapping[str, Any], depth: int) -> bool:
    """Return whether a value of this schema is secret, or holds something that is: then it is left out as a whole."""
    if not isinstance(schema, Mapping) or depth > 12:
        return False
    known = _resolved(cast("Mapping[str, Any]", schema), definitions)
    if known.get("format") == "password" or known.get("writeOnly") is True:
        return True
    inside: list[Any] = [*known.get("properties", {}).values(), known.get("items")]
    for keyword in ("anyOf", "oneOf", "allOf"):
        inside += known.get(keyword, [])
    return any(is_secret(inner, definitions, depth + 1) for inner in inside)
