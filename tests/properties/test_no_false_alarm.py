"""A plan that runs properly is not rejected for its types.

Random plans with tools of known schemas are run by the plainest interpreter there can be, one step after the other,
whatever the checker says. When the run ends well, an error of the checker about a step that was run is a false alarm.
Two rules are named in the spec and left out here: a nullable value for a required argument (TP305), and a name that
not every path defines (TP202).
"""

from __future__ import annotations

import os
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from toolplan.check import check
from toolplan.check.names import resolve
from toolplan.diagnostics import Diagnostic, Severity
from toolplan.errors import EvaluationError, PlanRejected
from toolplan.expressions.templates import fill
from toolplan.parse import parse
from toolplan.plan import Block, Call, ForEach, If, Let, Note, Plan, Try, While
from toolplan.tools import Tool, ToolSet
from toolplan.values import Json

EXAMPLES = int(os.environ.get("TOOLPLAN_EXAMPLES", "200"))
ITEM = {
    "type": "object",
    "title": "Item",
    "properties": {"name": {"type": "string"}, "size": {"type": "integer"}, "note": {"type": ["string", "null"]}},
    "required": ["name", "size", "note"],
}
RESULTS: dict[str, dict[str, Any]] = {
    "text": {"type": "string"},
    "count": {"type": "integer"},
    "price": {"type": "number"},
    "maybe": {"type": ["string", "null"]},
    "item": ITEM,
    "items": {"type": "array", "items": ITEM},
    "tags": {"type": "array", "items": {"type": "string"}},
    "unknown": {},
}
ARGUMENTS: dict[str, dict[str, Any]] = {
    **RESULTS,
    "few": {"enum": ["x", "yy"]},
    "counts": {"type": "array", "items": {"type": "integer"}},
    "object": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
}


def _tools() -> ToolSet:
    nothing: dict[str, Any] = {"type": "object", "properties": {}}
    reading = [Tool.from_schema(f"read_{name}", "", nothing, lambda: None, schema) for name, schema in RESULTS.items()]
    using = [
        Tool.from_schema(
            f"use_{name}", "", {**nothing, "properties": {"x": schema}, "required": ["x"]}, lambda x: x, schema
        )
        for name, schema in ARGUMENTS.items()
    ]
    return ToolSet([*reading, *using])


TOOLS = _tools()
TEXTS = st.sampled_from(["x", "yy", "12", "3°C"])
ITEMS = st.fixed_dictionaries({"name": TEXTS, "size": st.integers(-2, 3), "note": st.none() | TEXTS})
VALUES: dict[str, st.SearchStrategy[Json]] = {
    "text": TEXTS,
    "count": st.integers(-2, 3),
    "price": st.sampled_from([0.5, 2, -1.5]),
    "maybe": st.none() | TEXTS,
    "item": ITEMS,
    "items": st.lists(ITEMS, min_size=1, max_size=2),
    "tags": st.lists(TEXTS, min_size=1, max_size=2),
    "unknown": st.none() | TEXTS | st.integers(-2, 2) | st.lists(st.integers(0, 2), min_size=1, max_size=2),
}
SHAPES = (
    *("{0}", "{0}.name", "{0}.size", "{0}.note", "{0}[0]", "{0}['name']", "{0}[:1]", "len({0})", "str({0})"),
    *("number({0}, 0)", "{0} + {1}", "{0} + 1", "{0} + 'x'", "{0} + ['x']", "[{0}]", "[{0}, {1}]", "{{'a': {0}}}"),
    *("{0}.lower()", "{0}.split('x')", "{0}.get('name')", "default({0}.note, 'x')", "default({0}, {1})", "{0} == {1}"),
    *("[each for each in {0}]", "max({0}, key='size')", "sum({0})", "{0} * 2", "{0} / 2", "sorted({0})"),
    *("{0} is None", "not {0}", "', '.join({0})", "set_item({0}, 'name', {1})"),
)
TESTS = (
    *("{0} is None", "{0} is not None", "{0}", "not {0}", "{0} == 'x'", "{0} != {1}", "len({0}) > 1", "{0} in {1}"),
    *("{0} is None or {1} is None", "{0} is not None and {1}", "{0}.note is None", "{0}.note", "isinstance({0}, str)"),
    *("{0} > 1", "{0} < 'x'", "{0}.get('note')", "{0} in ['x', 'yy']"),
)
NAMES = ("a", "b", "c")


@st.composite
def plans(draw: st.DrawFn) -> list[Any]:
    budget = [draw(st.integers(2, 9))]
    return _block(draw, budget, [], 0)


def _block(draw: st.DrawFn, budget: list[int], known: list[str], depth: int) -> list[Any]:
    known = list(known)
    steps: list[Any] = []
    while budget[0] > 0 and len(steps) < 6:
        budget[0] -= 1
        kind = draw(st.sampled_from(["read", "read", "let", "let", "use", "use", "if", "for", "while", "try"]))
        if not known or kind == "read":
            name = draw(st.sampled_from(NAMES))
            steps.append({"tool_name": f"read_{draw(st.sampled_from(list(RESULTS)))}", "result_variable": name})
            known.append(name)
        elif kind == "let":
            name = draw(st.sampled_from(NAMES))
            steps.append({"let": {name: _written(draw, SHAPES, known)}})
            known.append(name)
        elif kind == "use":
            tool = f"use_{draw(st.sampled_from(list(ARGUMENTS)))}"
            shape = draw(st.sampled_from(["{{{0}}}", "{{{0}}}", "text {{{0}}}", None]))
            value = _written(draw, SHAPES, known)
            given: Any = [f"{{{value}}}", "x"] if shape is None else shape.format(value)
            given = {"a": given} if draw(st.integers(0, 4)) == 0 else given
            steps.append({"tool_name": tool, "arguments": {"x": given}, "result_variable": "u"})
        elif depth < 2:
            steps.append(_nested(draw, kind, budget, known, depth))
        known = list(dict.fromkeys(known))
    return steps or [{"note": "-"}]


def _nested(draw: st.DrawFn, kind: str, budget: list[int], known: list[str], depth: int) -> Any:
    test = _written(draw, TESTS, known)
    body = _block(draw, budget, [*known, "e"] if kind == "for" else known, depth + 1)
    if kind == "if":
        other = _block(draw, budget, known, depth + 1) if draw(st.booleans()) else [{"note": "-"}]
        return {"if": test, "then": body, "else": other}
    if kind == "for":
        return {"for_each": _written(draw, SHAPES, known), "as": "e", "do": body}
    if kind == "while":
        return {"while": test, "do": body, "max_iterations": 3}
    return {"try": body, "except": _block(draw, budget, known, depth + 1)}


def _written(draw: st.DrawFn, shapes: tuple[str, ...], known: list[str]) -> str:
    return draw(st.sampled_from(shapes)).format(draw(st.sampled_from(known)), draw(st.sampled_from(known)))


class Failed(Exception):
    pass


class Interpreter:
    """Runs steps one after the other; remembers which were run."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data
        self.ran: set[tuple[str | int, ...]] = set()

    def block(self, steps: Block, scope: dict[str, Json]) -> None:
        for step in steps:
            self.ran.add(step.place.path)
            match step:
                case Call():
                    value = self.call(step, scope)
                    scope.update(dict.fromkeys(step.defines, value))
                case Let():
                    for name, template in step.values:
                        scope[name] = fill(template, scope)
                case If():
                    self.block(step.then if step.test.evaluate(scope) else step.otherwise, scope)
                case ForEach():
                    items = fill(step.items, scope)
                    if not isinstance(items, list):
                        raise Failed
                    for item in items:
                        self.round(step.body, scope, {step.name: item})
                case While():
                    for _ in range(step.max_iterations):
                        if not step.test.evaluate(scope):
                            break
                        self.round(step.body, scope, {})
                    else:
                        if step.test.evaluate(scope):
                            raise Failed
                case Try():
                    self.tried(step, scope)
                case Note():
                    pass
                case _:
                    raise AssertionError(step)

    def round(self, body: Block, scope: dict[str, Json], own: dict[str, Json]) -> None:
        inner = {**scope, **own}
        self.block(body, inner)
        scope.update({name: inner[name] for name in scope if name not in own})

    def tried(self, step: Try, scope: dict[str, Json]) -> None:
        inner = dict(scope)
        before = set(self.ran)
        try:
            self.block(step.body, inner)
        except (EvaluationError, Failed):
            self.ran = before
            self.block(step.handler, scope)
        else:
            scope.update(inner)

    def call(self, step: Call, scope: dict[str, Json]) -> Json:
        arguments = fill(step.arguments, scope)
        assert isinstance(arguments, dict)
        if not TOOLS[step.tool].accepts(arguments):
            raise Failed
        name = step.tool.removeprefix("read_")
        return self.data.draw(VALUES[name]) if step.tool.startswith("read_") else arguments["x"]


def _errors(plan: Plan) -> list[Diagnostic]:
    try:
        check(plan, TOOLS)
    except PlanRejected as rejected:
        return [each for each in rejected.diagnostics if each.severity is Severity.ERROR]
    return []


@given(plans(), st.data())
@settings(max_examples=EXAMPLES, deadline=None)
def test_a_plan_that_runs_properly_is_not_rejected_for_its_types(steps: list[Any], data: st.DataObject) -> None:
    plan = parse({"steps": steps}, tools=TOOLS)
    assert isinstance(plan, Plan)
    errors = _errors(plan)
    if not errors or any(each.code.startswith("TP2") for each in errors):
        return
    interpreter = Interpreter(data)
    try:
        interpreter.block(resolve(plan, TOOLS)[0].steps, {"now": "2026-03-18T09:00"})
    except (EvaluationError, Failed):
        return
    for error in errors:
        place = error.place.path
        in_step = max((path for path in interpreter.ran if place[: len(path)] == path), key=len, default=None)
        assert error.code == "TP305" or in_step is None or _is_in_a_body(place, in_step), error.message


def _is_in_a_body(place: tuple[str | int, ...], step: tuple[str | int, ...]) -> bool:
    """Return whether the place is in a step of the body that was not run itself."""
    return bool({"then", "else", "do", "try", "except"} & set(place[len(step) :]))
