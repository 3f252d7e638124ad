"""JSON Schema -> static types: reading, recursion, words, joining, fitting."""

from __future__ import annotations

from typing import Any

import pytest

from toolplan.expressions.types import (
    NEVER,
    NULL,
    NUMBER,
    TEXT,
    UNKNOWN,
    ListType,
    ObjectType,
    Type,
    Union,
    Verdict,
    from_schema,
    is_assignable,
    is_same,
    join,
    join_all,
    kind_word,
    may_be_null,
    surely_fits,
    type_of,
    without_null,
)

ROW = {"type": "object", "title": "Row", "properties": {"id": {"type": "integer"}}, "required": ["id"]}


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (None, "Any"),
        ({}, "Any"),
        (True, "Any"),
        ({"type": "string"}, "str"),
        ({"type": "integer"}, "int"),
        ({"type": "number"}, "float"),
        ({"type": "boolean"}, "bool"),
        ({"type": "null"}, "None"),
        ({"type": "array", "items": {"type": "string"}}, "list[str]"),
        ({"type": "array"}, "list"),
        ({"type": "object"}, "dict"),
        (ROW, "Row"),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "dict[str, float]"),
        ({"type": "array", "items": ROW}, "list[Row]"),
        ({"type": ["null", "string"]}, "str | None"),
        ({"anyOf": [{"type": "number"}, {"type": "null"}]}, "float | None"),
        ({"oneOf": [ROW, {"type": "string"}]}, "Row | str"),
        ({"allOf": [ROW]}, "Row"),
        ({"allOf": [{"type": "number"}, {"type": "integer", "minimum": 1}]}, "int"),
        ({"enum": ["a", "b"]}, "str"),
        ({"enum": ["a", None]}, "str | None"),
        ({"const": 5}, "int"),
        ({"type": "string", "nullable": True}, "str | None"),
        ({"$ref": "#/$defs/Row", "$defs": {"Row": ROW}}, "Row"),
        ({"$ref": "#/definitions/a~1b", "definitions": {"a/b": {"type": "string"}}}, "str"),
        ({"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]}, "list"),
        (
            {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False},
            "list[str | int]",
        ),
        ({"properties": {"a": {}}}, "dict"),
        ({"items": {"type": "string"}}, "list[str]"),
    ],
)
def test_a_schema_reads_as(schema: Any, text: str) -> None:
    assert str(from_schema(schema)) == text


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "https://example.org/schema"},
        {"$ref": "#/$defs/gone"},
        {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}},
        {"$ref": "#"},
        {"type": "strnig"},
        {"not": {"type": "string"}},
        {"if": {"type": "string"}},
        {"anyOf": [{}, {"type": "string"}]},
        {"allOf": [{"type": "string"}, {"type": "null"}]},
        {"type": 5},
    ],
)
def test_what_is_not_understood_is_unknown(schema: dict[str, Any]) -> None:
    assert from_schema(schema) is UNKNOWN


def test_recursive_schemas_are_read_as_far_as_they_are_asked() -> None:
    tree = from_schema(
        {
            "$ref": "#/$defs/Tree",
            "$defs": {
                "Tree": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string"},
                        "children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
                        "parent": {"anyOf": [{"$ref": "#/$defs/Tree"}, {"type": "null"}]},
                    },
                    "required": ["name", "children"],
                }
            },
        }
    )
    assert isinstance(tree, ObjectType)
    children = tree.field("children")
    assert isinstance(children, ListType)
    assert children.element is tree
    assert str(tree.field("parent")) == "Tree | None"
    assert is_assignable(tree, tree) is not Verdict.NO
    assert is_same(join(tree, tree), tree)


def test_two_recursive_types_are_compared_without_end() -> None:
    def json_type(leaf: str) -> Type:
        choices = [{"type": leaf}, {"type": "array", "items": {"$ref": "#/$defs/J"}}]
        choices.append({"type": "object", "additionalProperties": {"$ref": "#/$defs/J"}})
        return from_schema({"$ref": "#/$defs/J", "$defs": {"J": {"anyOf": choices}}})

    texts, numbers = json_type("string"), json_type("number")
    assert is_assignable(texts, numbers) is Verdict.MAYBE
    assert str(join(texts, numbers))
    assert is_same(texts, json_type("string"))


def test_fields_and_what_is_known_of_others() -> None:
    row = from_schema(ROW)
    assert isinstance(row, ObjectType)
    assert (list(row.names), row.required, row.knows_all_fields) == (["id"], frozenset({"id"}), True)
    assert row.field("name") is None
    for schema in ({**ROW, "additionalProperties": True}, {**ROW, "patternProperties": {"^x": {}}}, {"type": "object"}):
        found = from_schema(schema)
        assert isinstance(found, ObjectType)
        assert not found.knows_all_fields


def test_parts_of_allof_are_put_together() -> None:
    other = {"type": "object", "properties": {"name": {"type": "string"}, "id": {"minimum": 1}}, "required": ["name"]}
    both = from_schema({"allOf": [ROW, other]})
    assert isinstance(both, ObjectType)
    assert (list(both.names), both.required) == (["id", "name"], frozenset({"id", "name"}))
    assert str(both.field("id")) == "int"


# --- joining --------------------------------------------------------------------------------------------------------


def test_joining() -> None:
    assert str(join(from_schema({"type": "integer"}), NUMBER)) == "float"
    assert str(join(TEXT, NULL)) == "str | None"
    assert join(TEXT, UNKNOWN) is UNKNOWN
    assert join(NEVER, TEXT) is TEXT
    assert join_all([]) is NEVER
    assert str(join(type_of([]), type_of(["a"]))) == "list[str]"
    assert str(join(type_of([1]), type_of(["a"]))) == "list[int | str]"
    assert str(without_null(join(TEXT, NULL))) == "str"
    assert without_null(NULL) is NEVER
    assert not may_be_null(UNKNOWN)


def test_objects_of_one_shape_become_one_unless_a_constant_tells_them_apart() -> None:
    same = join(type_of({"a": 1, "b": "x"}), type_of({"a": 2, "b": "x"}))
    assert isinstance(same, ObjectType)
    apart = join(type_of({"ok": True, "b": "x"}), type_of({"ok": False, "b": None}))
    assert isinstance(apart, Union)


def test_known_values_are_forgotten_when_there_are_too_many() -> None:
    assert str(join_all(type_of(n) for n in range(100))) == "int"
    assert join_all(type_of(n) for n in range(100)) == from_schema({"type": "integer"})


def test_many_different_objects_are_unknown() -> None:
    assert join_all(type_of({f"field{n}": n}) for n in range(30)) is UNKNOWN


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "string"}, "text"),
        ({"type": "integer"}, "a whole number"),
        ({"type": ["string", "null"]}, "text or null"),
        ({"enum": ["b", "a", None]}, "'a', 'b' or null"),
        ({"type": ["array", "object", "boolean"]}, "a list, an object or true or false"),
        ({}, "anything"),
    ],
)
def test_everyday_words(schema: dict[str, Any], words: str) -> None:
    assert kind_word(from_schema(schema)) == words


# --- fitting --------------------------------------------------------------------------------------------------------

YES, MAYBE, NO = Verdict.YES, Verdict.MAYBE, Verdict.NO


@pytest.mark.parametrize(
    ("value", "target", "verdict"),
    [
        ({"type": "integer"}, {"type": "number"}, YES),
        ({"type": "number"}, {"type": "integer"}, MAYBE),
        ({"type": "string"}, {"type": "number"}, NO),
        ({"type": "boolean"}, {"type": "number"}, NO),
        ({"type": "string"}, {"type": "string", "format": "date"}, MAYBE),
        ({"type": ["string", "null"]}, {"type": "string"}, MAYBE),
        ({"type": ["string", "null"]}, {"type": "number"}, NO),
        ({"type": "string"}, {"type": ["string", "null"]}, YES),
        ({"enum": ["a"]}, {"enum": ["a", "b"]}, YES),
        ({"enum": ["a", "c"]}, {"enum": ["a", "b"]}, MAYBE),
        ({"enum": ["c"]}, {"enum": ["a", "b"]}, NO),
        ({"type": "string"}, {"enum": ["a", "b"]}, MAYBE),
        ({"type": "array", "items": {"type": "string"}}, {"type": "array", "items": {"type": "number"}}, NO),
        ({"type": "array"}, {"type": "array", "items": {"type": "number"}}, MAYBE),
        (ROW, {"type": "object"}, YES),
        (ROW, {**ROW, "required": ["id", "at"], "properties": {"id": {}, "at": {}}}, NO),
        ({**ROW, "additionalProperties": True}, {**ROW, "required": ["at"], "properties": {"at": {}}}, MAYBE),
        (ROW, {"type": "object", "properties": {"id": {"type": "string"}}}, NO),
        (ROW, {"type": "object", "properties": {}, "additionalProperties": False}, NO),
        (ROW, {"type": "array"}, NO),
        ({}, {"type": "string"}, MAYBE),
        ({"type": "string"}, {}, MAYBE),
    ],
)
def test_a_value_fits(value: dict[str, Any], target: dict[str, Any], verdict: Verdict) -> None:
    assert is_assignable(from_schema(value), from_schema(target)) is verdict


@pytest.mark.parametrize(
    ("value", "schema", "sure"),
    [
        ("a", {"type": "string"}, True),
        ("a", {"type": "string", "maxLength": 5}, False),
        (1, {"type": "number"}, True),
        (True, {"type": "integer"}, False),
        (1.0, {"type": "integer"}, False),
        (None, {"type": ["string", "null"]}, True),
        ("c", {"enum": ["a", "b"]}, False),
        (["a"], {"type": "array", "items": {"type": "string"}}, True),
        (["a"], {"type": "array", "items": {"type": "string"}, "maxItems": 3}, False),
        ({}, {"type": "object"}, False),
        ([], {"enum": ["a"]}, False),
    ],
)
def test_a_constant_that_needs_no_look_at_the_schema(value: Any, schema: dict[str, Any], sure: bool) -> None:
    assert surely_fits(value, from_schema(schema)) is sure


def test_an_empty_list_fits_any_list() -> None:
    assert is_assignable(type_of([]), from_schema({"type": "array", "items": {"type": "number"}})) is YES
