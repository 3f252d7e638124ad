"""Faults say where, what was expected and what was found; one for each thing that is wrong."""

from typing import Any

import pytest

from toolplan.tools import Tool


def faults(schema: dict[str, Any], arguments: dict[str, Any]):
    return Tool.from_schema("f", "", {"type": "object", **schema}, dict).faults(arguments)


def of(schema: dict[str, Any], value: Any):
    """The only fault of a value."""
    (fault,) = faults({"properties": {"a": schema}}, {"a": value})
    return fault


def test_missing_and_unknown():
    schema = {"properties": {"to": {}, "subject": {}, "body": {}}, "required": ["to", "body"]}
    unknown, missing = faults(schema, {"recipient": 1, "to": 2})
    assert (unknown.kind, unknown.path, unknown.argument, unknown.found) == (
        "unknown",
        ("recipient",),
        "recipient",
        "`recipient`",
    )
    assert unknown.message == "`recipient` is unknown; known: `to`, `subject`, `body`"
    assert unknown.suggestion is None
    assert (missing.kind, missing.path, missing.argument, missing.message) == (
        "missing",
        ("body",),
        "body",
        "`body` is required and missing",
    )
    assert [f.suggestion for f in faults(schema, {"to": 1, "body": 2, "Subject": 3})] == ["subject"]
    assert [f.suggestion for f in faults(schema, {"to": 1, "body": 2, "subject": 3, "subjet": 3})] == [None], (
        "`subject` is there already, so it cannot be what was meant"
    )


def test_where_it_is():
    schema = {
        "properties": {
            "mail": {
                "type": "object",
                "properties": {"to": {"type": "array", "items": {"type": "string"}}},
                "required": ["cc"],
                "additionalProperties": False,
            }
        }
    }
    found = faults(schema, {"mail": {"to": ["a", 3], "bcc": 1}})
    assert {(f.kind, f.path, f.argument) for f in found} == {
        ("type", ("mail", "to", 1), "mail"),
        ("unknown", ("mail", "bcc"), "mail"),
        ("missing", ("mail", "cc"), "mail"),
    }
    assert found[-1].kind == "missing"
    assert {f.message for f in found} == {
        "`mail.to[1]` must be text, but is 3 (number)",
        "`bcc` is unknown in `mail`; known: `to`",
        "`cc` is required and missing in `mail`",
    }


@pytest.mark.parametrize(
    ("schema", "value", "kind", "expected"),
    [
        ({"type": "string"}, 3, "type", "text"),
        ({"type": ["null", "integer"]}, "x", "type", "a whole number or null"),
        ({"type": "array"}, {}, "type", "a list"),
        ({"enum": ["a", "b", 3]}, "c", "enum", '"a", "b" or 3'),
        ({"type": "string", "enum": ["a", "b"]}, 3, "enum", '"a" or "b"'),
        ({"const": "a"}, "b", "enum", '"a"'),
        ({"minimum": 3}, 2, "range", "at least 3"),
        ({"exclusiveMaximum": 3}, 3, "range", "less than 3"),
        ({"multipleOf": 5}, 3, "range", "a multiple of 5"),
        ({"minLength": 2}, "a", "length", "at least 2 characters long"),
        ({"maxItems": 1}, [1, 2], "length", "a list of at most 1"),
        ({"pattern": "^a"}, "b", "pattern", "text of the form `^a`"),
        ({"format": "date"}, "soon", "format", "a date such as 2026-03-18"),
        ({"format": "email"}, "nobody", "format", "a mail address"),
        ({"format": "ipv4"}, "nowhere", "format", "text in the format `ipv4`"),
        ({"uniqueItems": True}, [1, 1], "unique", "a list without repetitions"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, 3, "type", "text or null"),
        ({"anyOf": [{"enum": ["a"]}, {"enum": ["b"]}]}, "c", "enum", '"a" or "b"'),
        ({"anyOf": [{"minimum": 5}, {"type": "string"}]}, 3, "range", "at least 5"),
        ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, 3, "union", "of exactly one of the declared forms"),
        ({"not": {"type": "string"}}, "x", "other", "a value that satisfies `not`"),
        (False, 1, "other", "a value that satisfies"),
    ],
)
def test_kinds(schema, value, kind, expected):
    fault = of(schema, value)
    assert fault.kind == kind
    assert fault.expected.startswith(expected)
    assert fault.path == ("a",)
    assert fault.message.startswith("`a` must be ")


def test_enumerations_list_and_suggest():
    fault = of({"type": "string", "enum": ["draft", "final"]}, "Final")
    assert fault.allowed == ("draft", "final")
    assert fault.suggestion == "final"
    assert fault.message == '`a` must be "draft" or "final", but is \'Final\' (text)'


def test_formats_of_dates_are_lenient_about_zones_only():
    for text in (
        "2026-03-18T09:30",
        "2026-03-18 09:30:15",
        "2026-03-18T09:30:15.25Z",
        "2026-03-18T09:30+08:00",
        "2026-03-18",
    ):
        assert faults({"properties": {"a": {"format": "date-time"}}}, {"a": text}) == [], text
    for text in ("18.03.2026", "2026-3-18", "2026-W12-3", "2026-13-01T00:00", "2026-03-18T25:00", "now", ""):
        assert of({"format": "date-time"}, text).kind == "format", text
    for text in ("09:30", "09:30:15", "09:30Z"):
        assert faults({"properties": {"a": {"format": "time"}}}, {"a": text}) == [], text
    assert of({"format": "time"}, "9 am").kind == "format"


def test_alternatives_of_objects():
    cat = {"type": "object", "properties": {"lives": {"type": "integer"}}, "required": ["lives"]}
    dog = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    assert of({"anyOf": [cat, {"type": "string"}]}, {"lives": "nine"}).path == ("a", "lives")
    assert of({"anyOf": [cat, dog]}, {}).message == (
        "`a` must be an object with `lives` or an object with `name`, but is object with no fields"
    )


def test_everything_that_is_wrong_is_said_once():
    schema = {"properties": {"a": {"type": "string", "minLength": 3, "pattern": "^x"}, "b": {"type": "integer"}}}
    assert [(f.argument, f.kind) for f in faults(schema, {"b": "1", "a": 3})] == [("b", "type"), ("a", "type")]
    assert {f.kind for f in faults(schema, {"a": "y"})} == {"length", "pattern"}
    assert faults(schema, {"a": "xyz", "b": 1}) == []
