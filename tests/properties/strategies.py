"""Random plans, for the properties of reading and printing.

`plans` are built as the parser builds them, from expressions and templates that use a few names; whether the names are
defined is of no concern here. `mutations` damages texts the way replies get damaged.
"""

from __future__ import annotations

import ast
import dataclasses
from typing import Any

from hypothesis import strategies as st

from toolplan.expressions import Expression, Fields, Hole, Items, Literal, Reference, Template, Text, parse_expression
from toolplan.parse.naming import give_names
from toolplan.plan import (
    Answer,
    AskModel,
    AskUser,
    Break,
    Call,
    Cannot,
    Continue,
    ForEach,
    If,
    Let,
    Note,
    OnError,
    Parallel,
    Plan,
    Replan,
    Retry,
    Step,
    Try,
    While,
    walk,
)

NAMES = ["a", "mail", "x1", "天气", "result_2"]
TOOLS = ["get_weather", "send", "calendar.find", "查天气"]

names = st.sampled_from(NAMES)
texts = st.lists(
    st.sampled_from([*"ab {}$#\"'\\\n:.!é天1E,[]()`", "{{", "}}", "${", "#E1", "{a}", "$a$", "{x: 1}"]), max_size=8
).map("".join)
scalars = st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.floats(-1e6, 1e6) | texts
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=6
)
expressions = st.one_of(
    names,
    names.map(lambda name: f"{name}.total"),
    names.map(lambda name: f"{name}[0]['k']"),
    names.map(lambda name: f"len({name}) + 1"),
    st.tuples(names, names).map(lambda pair: f"{pair[0]} if {pair[1]} else None"),
    names.map(lambda name: f"[y for y in {name} if y.ok]"),
    names.map(lambda name: f"{{'k': {name}}}"),
    names.map(lambda name: f"{{k: v for k, v in {name}.items()}}"),
    names.map(lambda name: f"', '.join({name})"),
    names.map(lambda name: f"'\\n'.join({name}) + '{{}}'"),
    names.map(lambda name: f"f'{{{name}}} $'"),
    names.map(lambda name: f"{name} in {{'a', 'b'}}"),
    names.map(lambda name: f'{name}["a b"] == "$x$"'),
).map(parse_expression)


def _merged(parts: list[str | Hole]) -> tuple[str | Hole, ...]:
    merged: list[str | Hole] = []
    for part in parts:
        if isinstance(part, str) and merged and isinstance(merged[-1], str):
            merged[-1] += part
        elif part:
            merged.append(part)
    return tuple(merged)


holes = st.builds(
    lambda expression, spec, conversion: Hole(expression, f"{{{expression.text}}}", spec, False, conversion),
    expressions,
    st.sampled_from([None, None, ".2f", ">8"]),
    st.sampled_from([None, None, "r"]),
)
text_templates = (
    st.lists(texts | holes, min_size=2, max_size=4)
    .map(_merged)
    .filter(lambda parts: len(parts) > 1 and any(isinstance(part, Hole) for part in parts))
    .map(Text)
)
leaves = values.map(Literal) | expressions.map(Reference) | text_templates
templates = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3).map(lambda items: Items(tuple(items)))
        | st.dictionaries(st.sampled_from(["k", "to", "标题"]), inner, min_size=1, max_size=3).map(
            lambda fields: Fields(tuple(fields.items()))
        )
    ),
    max_leaves=4,
)
arguments = st.dictionaries(st.sampled_from(["x", "to", "城市", "a-b"]), templates, max_size=3).map(
    lambda fields: Fields(tuple(fields.items()))
)
optional_names = st.none() | names
on_errors = st.one_of(
    st.just(OnError()), st.sampled_from(["skip", "replan"]).map(OnError), templates.map(lambda t: OnError("value", t))
)
schemas = st.sampled_from([{"type": "string"}, {"type": "object", "properties": {"n": {"type": "number"}}}, {}])


def _simple_steps(inside: bool) -> st.SearchStrategy[Step]:
    kinds: list[st.SearchStrategy[Step]] = [
        st.builds(
            lambda tool, args, result, waits, on_error, retry, timeout: Call(
                "", tool, args, result, (), waits, on_error, retry, timeout
            ),
            st.sampled_from(TOOLS),
            arguments,
            optional_names,
            st.lists(names, unique=True, max_size=2).map(tuple),
            on_errors,
            st.none() | st.just(Retry(3)) | st.just(Retry(2, 1.5, 60)),
            st.none() | st.sampled_from([1, 2.5]),
        ),
        st.dictionaries(names, templates, min_size=1, max_size=3).map(lambda values: Let("", tuple(values.items()))),
        st.builds(lambda question, result: AskUser("", question, result), templates, optional_names),
        st.builds(
            lambda question, data, returns, result, on_error: AskModel(
                "", question, data, returns, result, (), on_error
            ),
            *(templates, templates, schemas, optional_names, on_errors),
        ),
        templates.map(lambda t: Replan("", t)),
        templates.map(lambda t: Answer("", t)),
        templates.map(lambda t: Note("", t)),
        st.builds(lambda t, missing: Cannot("", t, tuple(missing)), templates, st.lists(templates, max_size=2)),
    ]
    if inside:
        kinds += [st.just(Break("")), st.just(Continue(""))]
    return st.one_of(kinds)


def _blocks(depth: int, inside: bool, minimum: int = 0) -> st.SearchStrategy[tuple[Step, ...]]:
    return st.lists(_steps(depth, inside), min_size=minimum, max_size=3).map(tuple)


def _steps(depth: int, inside: bool) -> st.SearchStrategy[Step]:
    simple = _simple_steps(inside)
    if depth == 0:
        return simple
    block, loop = _blocks(depth - 1, inside), _blocks(depth - 1, True)
    return simple | st.one_of(
        st.builds(lambda test, then, other: If("", test, then, other), expressions, block, block),
        st.builds(lambda items, name, body: ForEach("", items, name, body), templates, names, loop),
        st.builds(
            lambda items, name, body, collect, keep, result: ForEach("", items, name, body, collect, keep, result),
            *(templates, names, loop, templates, st.none() | expressions, optional_names),
        ),
        st.builds(lambda test, body, bound: While("", test, body, bound), expressions, loop, st.integers(1, 99)),
        block.map(lambda members: Parallel("", members)),
        st.builds(lambda body, handler, error: Try("", body, handler, error), block, block, optional_names),
        st.builds(
            lambda tool, args, do: Call("", tool, args, None, (), (), OnError("do", None, do)),
            *(st.sampled_from(TOOLS), arguments, _blocks(depth - 1, inside, 1)),
        ),
    )


def _finished(steps: tuple[Step, ...], answer: Template | None, thought: str | None, inputs: dict[str, Any]) -> Plan:
    for number, step in enumerate(walk(steps), 1):
        object.__setattr__(step, "id", f"s{number}")
    give_names(steps, inputs)
    return Plan(steps, answer, thought, inputs)


def _fresh(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Copies of the steps: Hypothesis may hand out one object twice, and each step needs an id of its own."""

    def copy(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(copy(item) for item in value)
        if isinstance(value, (*Step.__args__, OnError)):  # type: ignore[attr-defined]
            return dataclasses.replace(
                value, **{f.name: copy(getattr(value, f.name)) for f in dataclasses.fields(value)}
            )
        return value

    return copy(steps)


plans = st.builds(
    lambda steps, answer, thought, inputs: _finished(_fresh(steps), answer, thought, inputs),
    _blocks(2, False, 1),
    st.none() | templates,
    st.none() | texts,
    st.dictionaries(names, values, max_size=2),
)


def shape(value: Any) -> Any:
    """What a plan means, without its places: two plans are the same when their shapes are equal."""
    match value:
        case Literal():
            return ("literal", repr(value.value))
        case Expression():
            return ast.dump(value.tree)
        case Reference():
            return ("reference", shape(value.expression))
        case Text():
            return ("text", tuple(shape(part) for part in value.parts))
        case Hole():
            return (shape(value.expression), value.spec, value.conversion)
        case Items():
            items = [shape(item) for item in value.items]
            constant = _constant(value)
            return ("literal", repr(constant[0])) if constant else ("items", items)
        case Fields():
            constant = _constant(value)
            return ("literal", repr(constant[0])) if constant else ("fields", [(k, shape(v)) for k, v in value.fields])
        case tuple():
            return tuple(shape(item) for item in value)
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = [f.name for f in dataclasses.fields(value) if f.name not in _IGNORED]
            if isinstance(value, Call):  # arguments are an object however constant they are
                given = [(name, shape(item)) for name, item in value.arguments.fields]
                fields.remove("arguments")
                return (type(value).__name__, given, *(shape(getattr(value, name)) for name in fields))
            return (type(value).__name__, *(shape(getattr(value, name)) for name in fields))
        case _:
            return repr(value)


_IGNORED = {"place", "tool_place", "source", "notation", "repairs"}


def _constant(template: Template) -> tuple[Any] | None:
    match template:
        case Literal():
            return (template.value,)
        case Items():
            items = [_constant(item) for item in template.items]
            return None if None in items else ([item[0] for item in items if item is not None],)
        case Fields():
            fields = {key: _constant(item) for key, item in template.fields}
            return None if None in fields.values() else ({k: v[0] for k, v in fields.items() if v is not None},)
        case _:
            return None


@st.composite
def mutations(draw: st.DrawFn, corpus: list[str]) -> str:
    """A text of the corpus with a few pieces cut out, doubled, replaced or moved."""
    text = draw(st.sampled_from(corpus))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 40)))
        piece = draw(
            st.sampled_from(
                ["", '"', "{", "}", "[", "]", ",", ":", "\\", "```", "</think>", "<think>", "'", "//", "\n"]
            )
            | st.sampled_from(
                ['"tool_name":', '"if":', "null", "1e999", "NaN", "${a}", "#E1", "\ud800", "\x00", "…", "“"]
            )
            | st.text(max_size=5)
            | st.just(text[start:end] * 2)
            | st.sampled_from(corpus).map(lambda other: other[:30])
        )
        text = text[:start] + piece + text[end:]
    return text
