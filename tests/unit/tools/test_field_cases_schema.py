"""The schema cases of `tests/data/field_cases`: ways in which turning a function into a schema breaks in practice."""

import json
import pathlib
import sys
import types
from functools import partial

import pytest

from toolplan.tools import Tool, ToolSet

CASES = pathlib.Path(__file__).parents[2] / "data" / "field_cases" / "cases.jsonl"
SCHEMA_CASES = [case for case in map(json.loads, CASES.read_text("utf-8").splitlines()) if case["kind"] == "schema"]

CHECKED = {
    "required", "accepts", "rejects", "call_returns", "names", "descriptions_contain", "properties", "schema_type",
    "properties_is", "strict_request",
}  # fmt: skip


@pytest.fixture
def module(request):
    """The case's module, importable while the test runs, as a real one would be."""
    case = request.param
    found = types.ModuleType("case_" + case["id"])
    sys.modules[found.__name__] = found
    exec(compile(case["input"]["python"], found.__name__, "exec"), found.__dict__)
    yield found
    del sys.modules[found.__name__]


def tools_of(case, module) -> ToolSet:
    given = case["input"]
    if "tools" in given:
        return ToolSet.of(getattr(module, given["tools"]))
    return ToolSet.of([getattr(module, given["function"])])


def call(tools: ToolSet, name, arguments):
    tool = tools[name] if name else next(iter(tools))
    return tool.to_value(tool.bind(arguments)())


def test_there_are_schema_cases():
    assert {"B01", "B02", "B04", "B05", "B07", "B08", "B11", "B12", "B14"} <= {case["id"] for case in SCHEMA_CASES}


@pytest.mark.parametrize(
    ("case", "module"), [(c, c) for c in SCHEMA_CASES], indirect=["module"], ids=[c["id"] for c in SCHEMA_CASES]
)
def test_case(case, module):
    detail = case["expect"]["detail"]
    assert set(detail) <= CHECKED, "a demand that this test does not look at"
    tools = tools_of(case, module)
    first: Tool = next(iter(tools))
    schema = first.parameters

    assert schema["type"] == detail.get("schema_type", "object")
    assert isinstance(schema["properties"], dict)
    if "required" in detail:
        assert sorted(schema["required"]) == sorted(detail["required"])
    for arguments in detail.get("accepts", ()):
        assert first.accepts(arguments), arguments
        assert first.faults(arguments) == []
        if "call" not in case["input"]:
            continue
        first.bind(arguments)
    for arguments in detail.get("rejects", ()):
        assert not first.accepts(arguments), arguments
        assert first.faults(arguments), arguments
    if "names" in detail:
        assert list(tools.names) == detail["names"]
    for tool, text in zip(tools, detail.get("descriptions_contain", ()), strict=False):
        assert text in tool.description
    for tool, properties in zip(tools, detail.get("properties", ()), strict=False):
        assert list(tool.parameters["properties"]) == properties
    if "strict_request" in detail:
        assert not first.strict_compatible
        for name in ("fields", "labels"):
            assert schema["properties"][name]["additionalProperties"] is not False
    if "call_returns" in detail:
        given = case["input"]["call"]
        name, arguments = given if isinstance(given, list) else (None, given)
        assert call(tools, name, arguments) == detail["call_returns"]


def test_bound_secret_is_nowhere():
    case = next(c for c in SCHEMA_CASES if c["id"] == "B05")
    space: dict = {}
    exec(case["input"]["python"], space)
    for tool in ToolSet.of(space["TOOLS"]):
        assert "token" not in json.dumps(tool.to_json())
        assert "token" not in tool.signature


def test_what_a_partial_binds_by_keyword_cannot_be_overridden():
    def fetch(token: str, url: str, **options: str) -> str:
        return token + url + "".join(options.values())

    tool = Tool.of(partial(fetch, token="secret"))
    assert list(tool.parameters["properties"]) == ["url"]
    assert not tool.accepts({"url": "u", "token": "mine"})
    assert tool.accepts({"url": "u", "lang": "en"})
    assert tool.bind({"url": "u", "lang": "en"})() == "secretuen"
