"""Which fields a schema describes."""

from __future__ import annotations

from typing import Any

import pytest

from toolplan import Tool, ToolSet, UsageError
from toolplan.tools.fields import field_names, fields_around, is_closed

NODE: dict[str, Any] = {
    "$defs": {
        "Node": {
            "type": "object",
            "properties": {
                "body": {"type": "string"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
            },
        }
    },
    "type": "object",
    "properties": {"n": {"type": "integer"}, "top": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}},
}


def test_fields_are_found_through_references_that_go_round() -> None:
    assert field_names(NODE) == {"n", "top", "body", "children"}
    assert fields_around(NODE, frozenset(["body"])) == {"top", "children"}
    assert fields_around(None, frozenset(["body"])) == frozenset()


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (NODE, True),
        ({"type": "object"}, False),
        ({}, False),
        ({"type": "object", "properties": {"a": {}}}, False),
        ({"type": "object", "properties": {"a": {"type": "string"}}}, True),
        ({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": True}, False),
        ({"type": "array"}, False),
        ({"type": "string"}, True),
    ],
)
def test_a_schema_is_closed_when_it_names_all_fields(schema: dict[str, Any], expected: bool) -> None:
    assert is_closed(schema) is expected


def test_an_untrusted_field_that_the_result_cannot_have_is_refused() -> None:
    def read(returns: dict[str, Any], field: str) -> ToolSet:
        schema = {"type": "object"}
        return ToolSet.of(
            [Tool.from_schema("read", "", schema, lambda **_: None, returns, reads="x", untrusted=(field,))]
        )

    with pytest.raises(UsageError, match=r"`untrusted` names `boddy`.*did you mean `body`"):
        read(NODE, "boddy")
    assert read(NODE, "body").names == read({"type": "object"}, "boddy").names
