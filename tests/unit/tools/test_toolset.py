"""Sets of tools, and tools whose schemas are given."""

import pytest

from toolplan.errors import ArgumentsRefused, ResultRefused, UsageError
from toolplan.tools import Tool, ToolContext, ToolSet, tool


def one(n: int) -> int:
    return n


def two(n: int) -> int:
    return n


def test_of_everything():
    tools = ToolSet.of([one, ToolSet.of([two]), Tool.of(one, name="three")])
    assert tools.names == ("one", "two", "three")
    assert [t.name for t in tools] == ["one", "two", "three"]
    assert "two" in tools
    assert "four" not in tools
    assert len(tools) == 3
    assert tools["one"].bind({"n": 1})() == 1
    assert tools.get("four") is None
    assert ToolSet.of(tools) is tools
    assert (ToolSet.of([one]) | ToolSet.of([two])).names == ("one", "two")
    with pytest.raises(KeyError):
        tools["four"]


def test_the_same_tool_twice_counts_once():
    made = Tool.of(two)
    assert ToolSet.of([one, one, made, ToolSet.of([made])]).names == ("one", "two")


def test_two_tools_of_one_name():
    def make():
        def one(x: str): ...

        return one

    with pytest.raises(UsageError, match=r"two tools are named `one`: one at .*:\d+, one at .*:\d+;.*name=") as caught:
        ToolSet.of([one, make()])
    assert str(caught.value).count("test_toolset.py:") == 2


def test_a_function_where_a_list_is_meant():
    with pytest.raises(UsageError, match=r"write `ToolSet.of\(\[one\]\)`"):
        ToolSet.of(one)  # type: ignore[arg-type]


SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer", "default": 1},
        "near": {"$ref": "#/$defs/Near"},
    },
    "required": ["city"],
    "$defs": {"Near": {"type": ["object", "null"], "properties": {"km": {"type": "number"}}}},
}


def test_from_schema():
    got = []

    def call(**arguments):
        got.append(arguments)
        return {"low": 3}

    returns = {"type": "object", "properties": {"low": {"type": "number"}}, "required": ["low"]}
    made = Tool.from_schema("forecast", "Weather.", SCHEMA, call, returns, reads="weather:{city}", untrusted=True)
    assert (made.name, made.description, made.untrusted) == ("forecast", "Weather.", True)
    assert made.effects.reads == ("weather:{city}",)
    assert (
        made.signature
        == "forecast(city: str, days: int = 1, near: Near {km: float = ...} | None = ...) -> {low: float}"
    )
    assert made.to_value(made.bind({"city": "Oslo", "days": None, "near": None})()) == {"low": 3}
    assert got == [{"city": "Oslo", "near": None}]
    assert [f.kind for f in made.faults({"town": "Oslo"})] == ["unknown", "missing"]
    with pytest.raises(ArgumentsRefused, match="`days` must be a whole number"):
        made.bind({"city": "a", "days": "1"})
    with pytest.raises(ResultRefused, match="`low` is required"):
        made.to_value({})
    assert SCHEMA["required"] == ["city"]
    assert "additionalProperties" not in SCHEMA, "the caller's schema is not changed"


def test_from_schema_arguments_are_copies():
    def spoil(tags):
        tags.append("x")

    given = {"tags": ["a"]}
    schema = {"type": "object", "properties": {"tags": {"type": "array"}}}
    Tool.from_schema("spoil", "", schema, spoil).bind(given)()
    assert given == {"tags": ["a"]}


def test_from_schema_open_and_empty():
    made = Tool.from_schema("any", "", {"type": "object", "additionalProperties": {"type": "integer"}}, dict)
    assert made.bind({"a": 1})() == {"a": 1}
    assert not made.accepts({"a": "x"})
    bare = Tool.from_schema("bare", "", {}, dict)
    assert bare.parameters["type"] == "object"
    assert bare.parameters["properties"] == {}
    assert bare.bind({"x": 1})() == {"x": 1}
    assert not bare.strict_compatible
    none = Tool.from_schema("none", "", {"type": "object", "properties": {}}, dict)
    assert not none.accepts({"x": 1})


def test_from_schema_context_async_and_generators():
    async def call(ctx: ToolContext, **arguments):
        return ctx.step_id, arguments

    made = Tool.from_schema("call", "", {"type": "object", "properties": {"ctx2": {}}}, call)
    assert made.is_async
    assert made.takes_context

    def many(*args, **kwargs):
        yield from kwargs

    assert Tool.from_schema("many", "", {"type": "object", "properties": {"a": {}}}, many).bind({"a": 1})() == ["a"]


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "dict", "properties": {}}, "the parameters of `f`: this is no JSON Schema: .*dict"),
        ({"type": "array"}, "the parameters of `f` must be a schema of an object"),
        (
            {"type": "object", "properties": {"a": {"$ref": "https://example.org/a.json"}}},
            "the parameters of `f` refer to `https://example.org/a.json`, which is outside of the schema",
        ),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}}, "this is no JSON Schema: .*A"),
        ({"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}, "this is no JSON Schema"),
    ],
)
def test_from_schema_refuses(schema, said):
    with pytest.raises(UsageError, match=said):
        Tool.from_schema("f", "", schema, dict)


def test_from_schema_needs_a_name_and_known_placeholders():
    with pytest.raises(UsageError, match="cannot be named ''"):
        Tool.from_schema("", "", {}, dict)
    with pytest.raises(UsageError, match=r"speaks of `{town}`"):
        Tool.from_schema("f", "", SCHEMA, dict, reads="weather:{town}")


def test_to_json_is_json():
    import json

    @tool(reads="weather:{city}", approval="ask")
    def get(city: str, days: int = 1) -> list[str]:
        """Get it.

        Args:
            city: the town

        Returns:
            what is there
        """
        return []

    shown = json.loads(json.dumps(Tool.of(get).to_json()))
    assert shown["name"] == "get"
    assert shown["description"] == "Get it."
    assert shown["parameters"]["properties"]["city"] == {"type": "string", "description": "the town"}
    assert shown["returns"] == {"type": "array", "items": {"type": "string"}}
    assert shown["result_description"] == "what is there"
    assert shown["effects"] == {"declared": True, "pure": False, "reads": ["weather:{city}"], "writes": []}
    assert (shown["approval"], shown["strict_compatible"], shown["async"]) == ("ask", True, False)
