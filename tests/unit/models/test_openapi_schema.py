import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from integration.servers import _problem_with_schema as problem_with
from toolplan.models.openapi_schema import openapi_schema


def one(schema):
    return openapi_schema({"type": "object", "properties": {"a": schema}})["properties"]["a"]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"const": "insert"}, {"type": "string", "enum": ["insert"]}),
        ({"const": 3}, {"type": "integer", "description": "always 3"}),
        ({"enum": [1, 2]}, {"type": "integer", "description": "one of: 1, 2"}),
        ({"enum": ["a", None]}, {"type": "string", "nullable": True, "enum": ["a"]}),
        ({"type": ["string", "null"]}, {"type": "string", "nullable": True}),
        ({"type": "integer", "exclusiveMinimum": 0}, {"type": "integer", "minimum": 1}),
        ({"type": "integer", "exclusiveMaximum": 9}, {"type": "integer", "maximum": 8}),
        (
            {"type": "number", "exclusiveMinimum": 0, "description": "kg"},
            {"type": "number", "minimum": 0, "description": "kg (more than 0)"},
        ),
        (
            {"anyOf": [{"type": "string"}, {"type": "null"}], "description": "a note"},
            {"type": "string", "description": "a note", "nullable": True},
        ),
        (
            {"oneOf": [{"type": "string"}, {"type": "integer"}]},
            {"type": "string", "anyOf": [{"type": "string"}, {"type": "integer"}]},
        ),
        ({"type": "string", "format": "uri"}, {"type": "string", "description": "format: uri"}),
        ({"type": "string", "format": "date-time"}, {"type": "string", "format": "date-time"}),
        ({"type": "array"}, {"type": "array", "items": {"type": "string"}}),
        (
            {"allOf": [{"properties": {"x": {"type": "string"}}, "required": ["x"]}, {"required": ["y"]}]},
            {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]},
        ),
        (
            {"type": "object", "additionalProperties": {"type": "integer"}},
            {
                "type": "string",
                "description": 'a JSON object, written as text; each of its values fits {"type": "integer"}',
            },
        ),
        ({"type": "object"}, {"type": "string", "description": "a JSON object, written as text"}),
        ({"type": "null"}, {"type": "string"}),
        (True, {"type": "string"}),
    ],
)
def test_each_keyword_is_said_in_the_subset(schema, expected):
    assert one(schema) == expected


def test_references_are_written_out_and_end():
    node = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "next": {"$ref": "#/$defs/Node"}},
        "required": ["name"],
    }
    sent = openapi_schema({"type": "object", "properties": {"head": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": node}})
    assert problem_with(sent) is None
    text = json.dumps(sent)
    assert text.count('"name": {"type": "string"}') == 3
    assert "$" not in text


def test_no_parameters_are_an_empty_object():
    for schema in ({}, {"type": "object"}, {"type": "object", "properties": {}, "additionalProperties": True}):
        assert openapi_schema(schema) == {"type": "object", "properties": {}}


schemas = st.recursive(
    st.sampled_from(
        [
            {},
            {"type": "string"},
            {"type": ["integer", "null"]},
            {"const": "x"},
            {"enum": [1, "a", None]},
            {"$ref": "#/$defs/T"},
            {"$ref": "#/$defs/missing"},
            {"type": "number", "exclusiveMinimum": 0, "multipleOf": 2},
        ]
    ),
    lambda inner: st.one_of(
        inner.map(lambda each: {"type": "array", "items": each, "uniqueItems": True}),
        st.lists(inner, min_size=1, max_size=3).map(lambda many: {"anyOf": many}),
        st.lists(inner, min_size=1, max_size=3).map(lambda many: {"allOf": many}),
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3).map(
            lambda many: {"type": "object", "properties": many, "required": [*many], "additionalProperties": False}
        ),
    ),
    max_leaves=12,
)


@given(schemas, schemas)
def test_whatever_goes_in_the_subset_comes_out(schema, shared):
    given_schema = {"type": "object", "properties": {"a": schema}, "$defs": {"T": shared}}
    before = json.dumps(given_schema)
    assert problem_with(openapi_schema(given_schema)) is None
    assert json.dumps(given_schema) == before
