"""Arguments that a schema marks as secret are not shown to anybody."""

from __future__ import annotations

from typing import Any, cast

from toolplan.expressions import Fields, Literal
from toolplan.tools.tool import Tool

__all__ = ["HIDDEN", "secret_arguments", "without_secrets"]

HIDDEN = "(secret)"


def secret_arguments(tool: Tool) -> frozenset[str]:
    """Return the names of the arguments that the schema marks with `format: password` or `writeOnly: true`."""
    properties = cast("dict[str, Any]", tool.parameters["properties"])
    return frozenset(name for name, schema in properties.items() if _is_secret(schema))


def without_secrets(arguments: Fields, tool: Tool) -> Fields:
    """Return the arguments with `HIDDEN` in place of the secret ones."""
    secret = secret_arguments(tool)
    if not secret:
        return arguments
    hidden = Literal(HIDDEN)
    return Fields(tuple((name, hidden if name in secret else value) for name, value in arguments.fields))


def _is_secret(schema: Any) -> bool:
    return isinstance(schema, dict) and (
        cast("dict[str, Any]", schema).get("format") == "password"
        or cast("dict[str, Any]", schema).get("writeOnly") is True
    )
