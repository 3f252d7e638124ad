"""What the type system promises: NO means never, YES means always, and an expression that works is no mistake.

Schemas, values of them and expressions over them are made at random. The oracle for schemas is jsonschema-rs, the
oracle for expressions is evaluating them.
"""

from __future__ import annotations

import os
from typing import Any

import jsonschema_rs
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from toolplan.diagnostics import Severity
from toolplan.errors import EvaluationError
from toolplan.expressions import parse_expression
from toolplan.expressions.infer import infer
from toolplan.expressions.types import Verdict, from_schema, is_assignable, join, surely_fits, type_of

EXAMPLES = int(os.environ.get("TOOLPLAN_EXAMPLES", "300"))
Schema = dict[str, Any]
NAMES = st.sampled_from(["a", "b", "name", "size"])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([0.5, 2.0, -1.5]),
    st.sampled_from(["", "x", "yy", "3°C"]),
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=8
)


def _objects(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    def build(properties: dict[str, Any], required: list[str], additional: Any) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": "object", "properties": properties}
        if required:
            schema["required"] = sorted(set(required) & properties.keys())
        if additional is not None:
            schema["additionalProperties"] = additional
        return schema

    return st.builds(
        build,
        st.dictionaries(NAMES, inner, max_size=3),
        st.lists(NAMES, max_size=2),
        st.none() | st.booleans() | inner,
    )


SCALAR_SCHEMAS = st.sampled_from(
    [
        {"type": "string"},
        {"type": "integer"},
        {"type": "number"},
        {"type": "boolean"},
        {"type": "null"},
        {"type": ["string", "null"]},
        {"type": ["integer", "string"]},
        {"type": "string", "enum": ["x", "yy"]},
        {"enum": ["x", 2, None]},
        {"const": "x"},
        {"const": 2},
        {"type": "string", "minLength": 1},
        {"type": "integer", "minimum": 0},
        {},
    ]
)
SCHEMAS = st.recursive(
    SCALAR_SCHEMAS,
    lambda inner: st.one_of(
        st.builds(lambda items: {"type": "array", "items": items}, inner),
        st.builds(
            lambda first, rest: {"type": "array", "prefixItems": first, "items": rest},
            st.lists(inner, min_size=1, max_size=2),
            inner,
        ),
        _objects(inner),
        st.builds(lambda choices: {"anyOf": choices}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda choices: {"oneOf": choices}, st.lists(inner, min_size=1, max_size=2)),
        st.builds(lambda parts: {"allOf": parts}, st.lists(inner, min_size=1, max_size=2)),
    ),
    max_leaves=6,
)


def value_for(draw: st.DrawFn, schema: Schema) -> Any:
    """Draw a value that probably satisfies the schema."""
    for keyword in ("anyOf", "oneOf", "allOf"):
        if keyword in schema:
            return value_for(draw, draw(st.sampled_from(schema[keyword])))
    if "enum" in schema or "const" in schema:
        return draw(st.sampled_from(schema.get("enum", [schema.get("const")])))
    kind = schema.get("type")
    if kind == "object":
        fields = {name: value_for(draw, inner) for name, inner in schema["properties"].items()}
        return {
            name: value for name, value in fields.items() if name in schema.get("required", ()) or draw(st.booleans())
        }
    if kind == "array":
        first = [value_for(draw, inner) for inner in schema.get("prefixItems", [])]
        return first + [value_for(draw, schema["items"]) for _ in range(draw(st.integers(0, 2)))]
    kinds = kind if isinstance(kind, list) else [kind]
    return draw(
        VALUES.filter(lambda value: jsonschema_rs.validator_for({"type": kinds}).is_valid(value)) if kind else VALUES
    )


@st.composite
def schemas_with_values(draw: st.DrawFn) -> tuple[Schema, Any]:
    schema = draw(SCHEMAS)
    return schema, draw(VALUES) if draw(st.integers(0, 3)) == 0 else value_for(draw, schema)


@given(schemas_with_values())
@settings(max_examples=EXAMPLES, deadline=None)
def test_a_constant_is_judged_as_its_schema_judges_it(case: tuple[Schema, Any]) -> None:
    schema, value = case
    accepted = jsonschema_rs.validator_for(schema).is_valid(value)
    target = from_schema(schema)
    verdict = is_assignable(type_of(value), target)
    if accepted:
        assert verdict is not Verdict.NO
    else:
        assert verdict is not Verdict.YES
        assert not surely_fits(value, target)


@given(schemas_with_values(), SCHEMAS)
@settings(max_examples=EXAMPLES, deadline=None)
def test_a_value_of_one_schema_fits_another_as_their_types_do(case: tuple[Schema, Any], other: Schema) -> None:
    one, value = case
    assume(jsonschema_rs.validator_for(one).is_valid(value))
    verdict = is_assignable(from_schema(one), from_schema(other))
    accepted = jsonschema_rs.validator_for(other).is_valid(value)
    if verdict is Verdict.YES:
        assert accepted
    if verdict is Verdict.NO and not _has_an_empty_list(value) and not _has_undeclared_fields(value):
        assert not accepted


@given(schemas_with_values(), SCHEMAS)
@settings(max_examples=EXAMPLES, deadline=None)
def test_what_is_of_one_type_is_of_its_join_with_another(case: tuple[Schema, Any], other: Schema) -> None:
    one, value = case
    assume(jsonschema_rs.validator_for(one).is_valid(value))
    assert is_assignable(type_of(value), join(from_schema(one), from_schema(other))) is not Verdict.NO


def _has_an_empty_list(value: Any) -> bool:
    """A list counts as if there were something in it."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return value == [] or any(_has_an_empty_list(each) for each in inner)


def _has_undeclared_fields(value: Any) -> bool:
    """Declared fields are taken to be all there are, so objects are judged by them alone."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return isinstance(value, dict) or any(_has_undeclared_fields(each) for each in inner)


# --- expressions ----------------------------------------------------------------------------------------------------

WORLD = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "word": {"enum": ["x", "yy"]},
        "count": {"type": "integer"},
        "price": {"type": "number"},
        "flag": {"type": "boolean"},
        "maybe": {"type": ["string", "null"]},
        "few": {"type": ["integer", "null"]},
        "either": {"type": ["string", "integer"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "counts": {"type": "array", "items": {"type": "integer"}},
        "prices": {"type": "object", "additionalProperties": {"type": "number"}},
        "item": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "size": {"type": "integer"}},
            "required": ["name", "size"],
        },
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "size": {"type": "integer"}},
                "required": ["name", "size"],
            },
        },
        "open": {"type": "object"},
    },
}
FIELDS = list(WORLD["properties"])
WORLD["required"] = FIELDS
TEXTS = st.sampled_from(["x", "yy", "3°C", "12"])
ITEMS = st.fixed_dictionaries({"name": TEXTS, "size": st.integers(-2, 3)})
WORLDS = st.fixed_dictionaries(
    {
        "text": TEXTS,
        "word": st.sampled_from(["x", "yy"]),
        "count": st.integers(-2, 3),
        "price": st.sampled_from([0.5, 2.0, 3, -1]),
        "flag": st.booleans(),
        "maybe": st.none() | TEXTS,
        "few": st.none() | st.integers(-2, 3),
        "either": TEXTS | st.integers(-2, 3),
        "tags": st.lists(TEXTS, min_size=1, max_size=3),
        "counts": st.lists(st.integers(-2, 3), min_size=1, max_size=3),
        "prices": st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from([0.5, 2]), min_size=1, max_size=2),
        "item": ITEMS,
        "items": st.lists(ITEMS, min_size=1, max_size=3),
        "open": st.dictionaries(NAMES, SCALARS, max_size=2),
    }
)
LEAVES = st.one_of(
    st.sampled_from([f"w.{name}" for name in FIELDS]),
    st.sampled_from(["w.item.name", "w.items[0]", "w.items[0].size", "w['text']", "w.open.a", "w.prices['a']"]),
    st.sampled_from(["(1)", "2.5", "'x'", "'3°C'", "True", "None", "[]", "{}", "now"]),
)
ONE = (
    *("len", "sum", "max", "min", "sorted", "any", "all", "abs", "round", "int", "float", "str", "bool", "list"),
    *("set", "reversed", "number", "enumerate", "json", "lines", "find_numbers", "date", "floor"),
)
METHODS = (
    *("lower()", "strip()", "split()", "keys()", "values()", "items()", "get('a')", "get('name', 0)", "count('x')"),
    *("replace('x', 'y')", "startswith('x')", "join(w.tags)", "index(1)", "copy()"),
)
SHAPES = [
    *[f"({{0}} {operator} {{1}})" for operator in ("+", "-", "*", "/", "//", "%", "|", "&")],
    *[f"({{0}} {operator} {{1}})" for operator in ("<", "<=", ">", "==", "!=", "in", "not in")],
    *[f"{name}({{0}})" for name in ONE],
    *[f"{{0}}.{method}" for method in METHODS],
    *[f"{{0}}.{name}" for name in ("name", "size", "a", "text")],
    *("{0}[{1}]", "{0}[0]", "{0}[-1]", "{0}[1:]", "(-{0})", "(not {0})", "[{0}, {1}]"),
    *("default({0}, 0)", "set_item({0}, 'a', {1})", "zip({0}, {1})", "max({0}, {1})", "sum({0}, {1})"),
    *("sorted({0}, key='size')", "max({0}, key=lambda each: each.size)", "format({0}, '.1f')"),
    "{{'a': {0}, 'name': {1}}}",
    "[each for each in {0}]",
]
"""Larger expressions, all parts of which are evaluated: no short cut, no loop that may be empty."""


@st.composite
def expressions(draw: st.DrawFn) -> str:
    parts = [draw(LEAVES), draw(LEAVES)]
    for _ in range(draw(st.integers(0, 4))):
        larger = draw(st.sampled_from(SHAPES)).format(*parts)
        parts = draw(st.sampled_from([[larger, draw(LEAVES)], [draw(LEAVES), larger], [larger, larger]]))
    return parts[0]


@given(expressions(), WORLDS)
@settings(max_examples=EXAMPLES, deadline=None)
def test_an_expression_that_works_is_no_mistake(text: str, world: dict[str, Any]) -> None:
    expression = parse_expression(text)
    found, findings = infer(expression, {"w": from_schema(WORLD), "now": type_of("2026-03-18T09:00")})
    try:
        value = expression.evaluate({"w": world, "now": "2026-03-18T09:00"})
    except EvaluationError:
        return
    errors = [each for each in findings if each.severity is Severity.ERROR]
    assert not errors, f"{text} is {value!r}, but: {errors[0].message}"
    assert is_assignable(type_of(value), found) is not Verdict.NO, f"{text} is {value!r}, not {found}"


CHOOSING = st.one_of(
    st.builds(lambda t, p: f"({p[0]} if {t} else {p[1]})", LEAVES, st.tuples(LEAVES, LEAVES)),
    st.builds(lambda p: f"({p[0]} or {p[1]})", st.tuples(LEAVES, LEAVES)),
    st.builds(lambda p: f"({p[0]} and {p[1]})", st.tuples(LEAVES, LEAVES)),
    st.builds(lambda x: f"({x} if {x} is not None else 0)", LEAVES),
    st.builds(lambda x: f"[each for each in [{x}, 1] if each]", LEAVES),
    st.builds(lambda x: f"[each for each in [{x}, None] if each is not None]", LEAVES),
    st.builds(lambda x: f"({x} if isinstance({x}, str) else '')", LEAVES),
)


@given(CHOOSING, WORLDS)
@settings(max_examples=EXAMPLES, deadline=None)
def test_a_choice_has_the_type_of_what_is_chosen(text: str, world: dict[str, Any]) -> None:
    expression = parse_expression(text)
    found, _ = infer(expression, {"w": from_schema(WORLD), "now": type_of("2026-03-18T09:00")})
    try:
        value = expression.evaluate({"w": world, "now": "2026-03-18T09:00"})
    except EvaluationError:
        return
    assert is_assignable(type_of(value), found) is not Verdict.NO, f"{text} is {value!r}, not {found}"
