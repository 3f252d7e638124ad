"""Arguments toward the schema: what is repaired, and what never is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolplan.parse.formats import BrokenCall, CallPart, read_calls
from toolplan.parse.formats.arguments import MAX_TRIES, Refused, by_position, fitted, object_of, typed, untyped
from toolplan.tools import Tool, ToolSet


def tool_of(properties: dict[str, Any], required: tuple[str, ...] = (), **more: Any) -> Tool:
    schema = {"type": "object", "properties": properties, "required": list(required), **more}
    return Tool.from_schema("t", "", schema, lambda **_: None)


INTEGER, STRING, LIST = {"type": "integer"}, {"type": "string"}, {"type": "array", "items": {"type": "integer"}}
EITHER = {"anyOf": [INTEGER, STRING]}


@pytest.mark.parametrize(
    ("schema", "written", "meant"),
    [
        (INTEGER, "3", 3),
        (INTEGER, "-3", -3),
        ({"type": "number"}, "2.50", 2.5),
        ({"type": "boolean"}, "True", True),
        ({"type": ["integer", "null"]}, "null", None),
        (LIST, "[1, 2]", [1, 2]),
        (LIST, "[1, 2,]", [1, 2]),
        (LIST, ["1", 2], [1, 2]),
        ({"type": "object", "properties": {"a": INTEGER}}, {"a": "1"}, {"a": 1}),
        ({"enum": ["csv", "pdf"]}, "PDF", "pdf"),
        ({"enum": [1, 2]}, "1", 1),
        ({"anyOf": [INTEGER, {"type": "boolean"}]}, "true", True),
    ],
)
def test_one_meaning(schema: dict[str, Any], written: Any, meant: Any) -> None:
    arguments, repairs, faults = fitted(tool_of({"a": schema}), {"a": written})
    assert (arguments, faults) == ({"a": meant}, [])
    assert len(repairs) == 1
    assert type(arguments["a"]) is type(meant)


@pytest.mark.parametrize(
    ("schema", "written"),
    [
        (STRING, "007"),
        (STRING, '["home"]'),
        (EITHER, "007"),
        (EITHER, "7"),
        ({}, "3"),
        ({"type": "string", "format": "date"}, "2026-03-01"),
    ],
)
def test_what_the_schema_takes_is_not_touched(schema: dict[str, Any], written: Any) -> None:
    assert fitted(tool_of({"a": schema}), {"a": written}) == ({"a": written}, (), [])


@pytest.mark.parametrize(
    ("schema", "written"),
    [
        (INTEGER, "007"),
        (INTEGER, "3 items"),
        (INTEGER, "3.5"),
        (INTEGER, ""),
        (STRING, 5),
        (LIST, "1, 2"),
        (LIST, 1),
        ({"type": "boolean"}, "yes"),
        ({"enum": ["Ab", "aB"]}, "AB"),
        ({"enum": ["csv"]}, "cvs"),
        (INTEGER, "[1]"),
    ],
)
def test_what_has_no_one_meaning_stays_wrong(schema: dict[str, Any], written: Any) -> None:
    arguments, repairs, faults = fitted(tool_of({"a": schema}), {"a": written})
    assert (arguments, repairs) == ({"a": written}, ())
    assert faults


def test_the_given_arguments_are_not_changed() -> None:
    given: dict[str, Any] = {"a": ["1"]}
    assert fitted(tool_of({"a": LIST}), given)[0] == {"a": [1]}
    assert given == {"a": ["1"]}


def test_text_inside_of_text() -> None:
    tool = tool_of({"a": {"type": "object", "properties": {"b": LIST}}})
    assert fitted(tool, {"a": '{"b": "[1, \\"2\\"]"}'})[0] == {"a": {"b": [1, 2]}}
    assert fitted(tool, {"a": '{"b": "[1, \\"two\\"]"}'})[:2] == ({"a": '{"b": "[1, \\"two\\"]"}'}, ())


def test_a_hostile_value_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each try looks at all of the arguments, so there is an end of trying, however the texts are nested."""
    inner: Any = "1"
    for _ in range(4):
        inner = json.dumps([inner] * 30)
    tool = tool_of({"a": {"$ref": "#/$defs/list"}}, **{"$defs": LISTS})
    looked = 0
    faults = Tool.faults

    def counting(self: Tool, arguments: Any) -> Any:
        nonlocal looked
        looked += 1
        return faults(self, arguments)

    monkeypatch.setattr(Tool, "faults", counting)
    assert fitted(tool, {"a": inner})[2]
    assert looked < 2 * MAX_TRIES + 3


LISTS = {"list": {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/list"}, {"type": "integer"}]}}}


# --- text without types -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        (None, "5", 5),
        (None, "Oslo", "Oslo"),
        (None, "True", True),
        (None, '{"a": 1}', {"a": 1}),
        (None, '"5"', "5"),
        (None, '"Oslo"', '"Oslo"'),
        (None, "{a}", "{a}"),
        (STRING, "5", "5"),
        (STRING, "007", "007"),
        (STRING, "true", "true"),
        (STRING, '{"a": 1}', '{"a": 1}'),
        (INTEGER, "5", 5),
        (INTEGER, "five", "five"),
        (EITHER, "5", 5),
        (EITHER, '"5"', "5"),
        (EITHER, "007", "007"),
        ({"enum": ["csv"]}, '"csv"', "csv"),
        (LIST, "[1]", [1]),
    ],
)
def test_bare_text_gets_its_type_from_the_tool(schema: dict[str, Any] | None, text: str, value: Any) -> None:
    tool = None if schema is None else tool_of({"a": schema})
    assert typed(tool, "a", text) == value


@pytest.mark.parametrize(
    "value", ["5", "true", " x", "", "<e>", '"x"', "[1]", "{", "null", "a\nb\n", 5, None, {"a": "<e>"}]
)
def test_bare_text_is_read_as_it_was_written(value: Any) -> None:
    marks = ("<e>",)
    written = untyped(value, marks)
    assert "<e>" not in written
    assert typed(None, "a", written, marks) == value
    if isinstance(value, str):
        assert typed(tool_of({"a": STRING}), "a", written, marks) == value


# --- objects, positions -----------------------------------------------------------------------------------------------


def test_json_text_is_decoded_and_said_to_be() -> None:
    assert object_of('{"a": 1}', as_text=True) == ({"a": 1}, ())
    assert object_of('"{\\"a\\": 1}"', as_text=True) == ({"a": 1}, ("read the arguments out of a JSON text",))
    assert object_of('{"a": 1}')[1] == ("read the arguments out of a JSON text",)
    assert object_of("") == object_of(None) == object_of({}) == ({}, ())


@pytest.mark.parametrize(
    ("given", "kind"),
    [("[1]", "object"), ("5", "object"), ('{"a": 1', "cut"), ("{year: >}", "broken"), ('{"a": 1} x', "broken")],
)
def test_what_is_no_object_is_refused(given: str, kind: str) -> None:
    with pytest.raises(Refused) as refused:
        object_of(given, as_text=True)
    assert refused.value.kind == kind


def test_values_without_names() -> None:
    tool = tool_of({"a": {}, "b": {}})
    assert by_position(tool, [1], {"b": 2}) == {"a": 1, "b": 2}
    assert by_position(None, ["x"], {}) == {"input": "x"}
    for values, named in (([1, 2, 3], {}), ([1], {"a": 2})):
        with pytest.raises(Refused) as refused:
            by_position(tool, values, named)
        assert refused.value.kind == "unnamed"
    with pytest.raises(Refused):
        by_position(None, [1, 2], {})


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("get_weather", "get_weather"),
        ("Get_Weather", "get_weather"),
        ("functions.get_weather", "get_weather"),
        ("find", "calendar.find"),
        ("get_wether", None),
        ("weather", None),
        ("getWeather", None),
    ],
)
def test_a_name_is_mended_by_case_or_prefix_only(written: str, meant: str | None) -> None:
    tools = ToolSet(
        Tool.from_schema(name, "", {"type": "object", "properties": {}}, lambda **_: None)
        for name in ("get_weather", "calendar.find")
    )
    (part,) = read_calls(f'<tool_call>{{"name": "{written}", "arguments": {{}}}}</tool_call>', "hermes", tools)
    if meant is None:
        assert isinstance(part, BrokenCall)
        assert part.diagnostic.code == "TP201"
    else:
        assert isinstance(part, CallPart)
        assert part.name == meant
        assert bool(part.repairs) == (written != meant)


def test_everything_that_does_not_fit_is_told() -> None:
    tools = ToolSet([tool_of({"a": INTEGER, "b": STRING}, ("a", "b"), additionalProperties=False)])
    (part,) = read_calls('<tool_call>{"name": "t", "arguments": {"A": 1, "a": "x"}}</tool_call>', "hermes", tools)
    assert isinstance(part, BrokenCall)
    told = (part.diagnostic.message, *part.diagnostic.notes)
    assert "takes no argument `A`" in told[0]
    assert any("`b` is required" in note for note in told)
    assert any("whole number" in note for note in told)
