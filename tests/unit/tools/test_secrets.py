"""Secrets are found wherever the schema has them, so that a card hides what the journal leaves out."""

from __future__ import annotations

from typing import Any

import pytest

from toolplan import Tool
from toolplan.tools.secrets import secret_arguments

SECRET = {"type": "string", "format": "password"}


@pytest.mark.parametrize(
    "schema",
    [
        SECRET,
        {"type": "string", "writeOnly": True},
        {"anyOf": [SECRET, {"type": "null"}]},
        {"type": "object", "properties": {"key": SECRET}},
        {"type": "array", "items": SECRET},
        {"$ref": "#/$defs/Key"},
    ],
)
def test_an_argument_that_is_or_holds_a_secret_is_one(schema: dict[str, Any]) -> None:
    parameters = {"type": "object", "properties": {"it": schema, "name": {"type": "string"}}, "$defs": {"Key": SECRET}}
    assert secret_arguments(Tool.from_schema("login", "", parameters, lambda **_: None)) == {"it"}
