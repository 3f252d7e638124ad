"""Secrets are found wherever the schema has them, so that a card hides what the journal leaves out."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any, NamedTuple

import pytest
from pydantic import BaseModel, Field, SecretBytes, SecretStr
from typing_extensions import TypedDict

from toolplan import Tool
from toolplan.errors import ArgumentsRefused
from toolplan.tools.secrets import secret_arguments, secret_part

SECRET = {"type": "string", "format": "password"}
TEXT = {"type": "string"}
HIDES = {"type": "object", "properties": {"key": SECRET}}
MARKED = (
    SECRET,
    {"type": "string", "writeOnly": True},
    HIDES,
    {"anyOf": [SECRET, {"type": "null"}]},
    {"oneOf": [TEXT, HIDES]},
    {"allOf": [{"type": "object"}, HIDES]},
    {"type": "array", "items": SECRET},
    {"type": "array", "prefixItems": [TEXT, HIDES]},
    {"type": "array", "contains": SECRET},
    {"type": "array", "items": {"type": "array", "items": HIDES}},
    {"type": "object", "additionalProperties": SECRET},
    {"type": "object", "additionalProperties": {"type": "array", "items": HIDES}},
    {"type": "object", "patternProperties": {"^k": SECRET}},
    {"type": "object", "unevaluatedProperties": SECRET},
    {"type": "object", "propertyNames": {"format": "password"}},
    {"type": "object", "dependentSchemas": {"a": HIDES}},
    {"if": {"type": "string"}, "then": SECRET},
    {"$ref": "#/$defs/Key"},
    {"$ref": "#/$defs/Plain", "writeOnly": True},
    {"$ref": "#/$defs/Tree"},
    {"$ref": "#/$defs/Group/properties/inner"},
)
DEFINITIONS = {
    "Key": SECRET,
    "Plain": TEXT,
    "Tree": {
        "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}, "it": {"$ref": "#/$defs/Key"}}
    },
    "Loop": {"properties": {"next": {"$ref": "#/$defs/Loop"}}},
    "Group": {"properties": {"inner": HIDES}},
}
PLAIN = (
    TEXT,
    {"$ref": "#/$defs/Plain"},
    {"$ref": "#/$defs/Loop"},
    {"$ref": "#/$defs/None"},
    {"$ref": "other.json"},
    True,
)


def tool_of(schema: Any, **more: Any) -> Tool:
    properties = {"it": schema, "name": TEXT}
    parameters = {"type": "object", "properties": properties, "$defs": {**DEFINITIONS, "None": {}}, **more}
    return Tool.from_schema("login", "", parameters, lambda **_: None)


@pytest.mark.parametrize("schema", MARKED, ids=str)
def test_an_argument_that_is_or_holds_a_secret_is_one(schema: dict[str, Any]) -> None:
    secret = secret_arguments(tool_of(schema))
    assert "it" in secret
    assert "name" not in secret
    assert secret_part({**schema, "$defs": DEFINITIONS}) is not None


@pytest.mark.parametrize("schema", [each for each in PLAIN if each != {"$ref": "other.json"}], ids=str)
def test_any_other_argument_is_none(schema: Any) -> None:
    secret = secret_arguments(tool_of(schema))
    assert not secret
    assert "it" not in secret


@pytest.mark.parametrize("schema", [each for each in PLAIN if isinstance(each, dict)], ids=str)
def test_any_other_result_is_none(schema: dict[str, Any]) -> None:
    assert secret_part({**schema, "$defs": DEFINITIONS}) is None


def test_deep_schemas_are_walked_to_the_end() -> None:
    schema: dict[str, Any] = SECRET
    for _ in range(60):
        schema = {"type": "array", "items": schema}
    assert "it" in secret_arguments(tool_of(schema))


def test_where_there_are_secrets_an_argument_that_nobody_knows_is_one_too() -> None:
    assert "ti" in secret_arguments(tool_of(SECRET))
    assert "ti" not in secret_arguments(tool_of(TEXT))


def test_marks_of_the_arguments_object_itself() -> None:
    others = secret_arguments(tool_of(TEXT, additionalProperties=SECRET))
    assert "any" in others
    assert "name" not in others
    parts = secret_arguments(tool_of(TEXT, allOf=[{"properties": {"it": SECRET}}]))
    assert "it" in parts


@pytest.mark.parametrize(
    ("schema", "part"),
    [
        (HIDES, {"key"}),
        ({"$ref": "#/$defs/Group/properties/inner"}, {"key"}),
        ({**HIDES, "additionalProperties": SECRET}, set()),
        ({"properties": {"a": TEXT}, "allOf": [HIDES]}, set()),
        ({"anyOf": [HIDES, {"type": "null"}]}, set()),
        ({"type": "array", "items": [TEXT, SECRET]}, set()),
    ],
    ids=str,
)
def test_a_result_is_secret_in_its_fields_or_as_a_whole(schema: dict[str, Any], part: set[str]) -> None:
    assert secret_part({**schema, "$defs": DEFINITIONS}) == part


class Login(BaseModel):
    user: str
    password: SecretStr


class Tree(BaseModel):
    leaf: SecretStr | None = None
    kids: list[Tree] = []


class Typed(TypedDict):
    password: SecretStr


class Named(NamedTuple):
    password: SecretStr


@dataclasses.dataclass
class Data:
    logins: dict[str, list[Login]]


@pytest.mark.parametrize(
    "kind",
    [
        SecretStr,
        SecretBytes,
        SecretStr | None,
        Annotated[Login, Field(json_schema_extra={"writeOnly": True})],
        Login,
        Tree,
        Typed,
        Named,
        Data,
        int | Login,
        list[SecretStr],
        set[SecretStr],
        tuple[int, Login],
        tuple[SecretStr, ...],
        dict[str, SecretStr],
        dict[str, Login],
        dict[SecretStr, int],
        list[dict[str, tuple[int, Login]]],
    ],
    ids=str,
)
def test_the_types_of_pydantic_are_secret_in_any_container(kind: Any) -> None:
    def login(it: Any) -> Any:
        return it

    login.__annotations__ = {"it": kind, "return": kind}
    made = Tool.of(login)
    assert "it" in made.secret_arguments
    assert made.secret_result is not None


def test_passwords_by_any_name() -> None:
    def login(user: str, **passwords: SecretStr) -> str:
        return user

    made = Tool.of(login)
    assert "mine" in made.secret_arguments
    assert "user" not in made.secret_arguments


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"it": {"key": 12345678}}, "`it.key` must be text, but is number"),
        ({"it": "hunter2222"}, "`it` must be an object, but is text"),
        ({"it": {"hunter2222": 1, "key": "a"}}, "`it` has a field that is unknown"),
        ({"it": {}}, "`key` is required and missing in `it`"),
        ({"it": {"key": "a"}, "name": 12}, "`name` must be text, but is 12 (number)"),
    ],
)
def test_what_is_wrong_with_a_secret_is_said_without_it(arguments: dict[str, Any], said: str) -> None:
    made = tool_of({**HIDES, "required": ["key"], "additionalProperties": False})
    assert [fault.message for fault in made.faults(arguments)] == [said]
    with pytest.raises(ArgumentsRefused) as caught:
        made.bind(arguments)
    assert str(caught.value) == f"`login` was not called: {said}"
