"""Templates: which brace groups are holes, what is put into them, and how doubt is settled."""

from __future__ import annotations

from typing import Any

import pytest

from toolplan.diagnostics import Place
from toolplan.errors import EvaluationError
from toolplan.expressions import (
    Expression,
    ExpressionError,
    Fields,
    Hole,
    Items,
    Literal,
    Reference,
    Text,
    fill,
    holes,
    names_of,
    parse_operand,
    parse_template,
    rename,
    render_text,
    settle,
    unread,
)

SCOPE: dict[str, Any] = {
    "w": {"temp": 3, "text": "3°C", "low": -0.5, "none": None},
    "u": {"email": "kim@x.org", "name": "Kim"},
    "names": ["Ann", "李雷"],
    "rows": [{"n": 1}, {"n": 2}],
    "price": 1234.5,
    "day": "2026-03-18",
    "ok": True,
    "name": "Kim",
    "a": 1,
    "b": 2,
    "width": 8,
    "天气": {"温度": 5},
}


def filled(template: Any) -> Any:
    return fill(parse_template(template), SCOPE)


# --- whole strings keep their value ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{w.temp}", 3),
        ("{w}", SCOPE["w"]),
        ("{w.none}", None),
        ("{names}", ["Ann", "李雷"]),
        ("{w.temp > 2}", True),
        ("{[r.n for r in rows]}", [1, 2]),
        ("{ w.temp }", 3),
        ("{\n  w.temp +\n  1\n}", 4),
        ("{'yes' if ok else 'no'}", "yes"),
        ("{天气.温度}", 5),
        ("{{name}}", "Kim"),
        ("{{ w.temp }}", 3),
        ("{'{' + name + '}'}", "{Kim}"),
        ('{"\\n".join(names)}', "Ann\n李雷"),
        ("{rows[0]['n']}", 1),
        ("{default(w.snow, 0)}", 0),
        ("{w.temp != 3}", False),
        ("{sorted(rows, key=lambda r: -r.n)[0].n}", 2),
        ("{ {'k': a}['k'] }", 1),
    ],
)
def test_a_whole_string_keeps_value_and_type(text: str, expected: Any) -> None:
    found = filled(text)
    assert found == expected
    assert type(found) is type(expected)


def test_a_whole_string_is_a_reference() -> None:
    assert isinstance(parse_template("{w.temp}"), Reference)
    assert isinstance(parse_template("{w.temp} "), Text)
    assert isinstance(parse_template("plain"), Literal)
    assert isinstance(parse_template("{}"), Literal)


# --- longer text -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It is {w.temp} in {u.name}.", "It is 3 in Kim."),
        ("{w.temp} ", "3 "),
        ("{a}{b}", "12"),
        ("{ok} {w.none} {names} {w.low} {rows}", 'true null ["Ann", "李雷"] -0.5 [{"n": 1}, {"n": 2}]'),
        ("{price:.2f} {price:,} {price:>10}|", "1234.50 1,234.5     1234.5|"),
        ("{day:%d.%m.%Y} {day:%H:%M}", "18.03.2026 00:00"),
        ("{day:%Y年%-m月%-d日}", "2026年3月18日"),
        ("{name!r} {name!r:>7} {names!s}", "'Kim'   'Kim' [\"Ann\", \"李雷\"]"),
        ("{name:>{width}}|{name:^{width}}|", "     Kim|  Kim   |"),
        ("• {'；'.join(names)}", "• Ann；李雷"),
        ("it's {name}'s", "it's Kim's"),
        ("{w['temp']}/{w[\"temp\"]}", "3/3"),
        ("{'a' if ok else \"}\"}{'}'+name}", "a}Kim"),
        ("100% {w.temp}%", "100% 3%"),
        ("天气：{天气.温度}℃", "天气：5℃"),
        ("{len(rows)} rows, {rows[-1].n + 1}", "2 rows, 3"),
        ("{f'{a}-{b}'}!", "1-2!"),
    ],
)
def test_values_are_rendered_into_text(text: str, expected: str) -> None:
    assert filled(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # doubled braces
        ("{{", "{"),
        ("}}", "}"),
        ("{{}}", "{}"),
        ("{{name}}!", "Kim!"),
        ("{{nobody}}!", "{nobody}!"),
        ("{{nobody.x}}", "{nobody.x}"),
        ("{{{name}}}", "{Kim}"),
        ("{{{{name}}}}", "{Kim}"),
        ("{{'a': 1}} {{x y}}", "{'a': 1} {x y}"),
        ('{{ "a": {{ "b": {a} }} }}', '{ "a": { "b": 1 } }'),
        ('{{"a": {{"b": {a}}}}}', '{"a": {"b": 1}}'),
        # no expression, or no name: literal
        ("{", "{"),
        ("}", "}"),
        ("{}", "{}"),
        ("{ }", "{ }"),
        ("a { b", "a { b"),
        ("{name", "{name"),
        ("{1}", "{1}"),
        ("{1, 2}", "{1, 2}"),
        ("{'x'}", "{'x'}"),
        ("{len('x')}", "{len('x')}"),
        ("\\d{3}-\\d{1,4}", "\\d{3}-\\d{1,4}"),
        ('{"a": 1}', '{"a": 1}'),
        ('{"a": {"b": {"c": [1, {"d": 2}]}}}', '{"a": {"b": {"c": [1, {"d": 2}]}}}'),
        ('{"a": {}}', '{"a": {}}'),
        ("{'a': 'it\\'s'}", "{'a': 'it\\'s'}"),
        ("body { color: red; margin: 0 }", "body { color: red; margin: 0 }"),
        ("a{color:red}b{margin:0}", "a{color:red}b{margin:0}"),
        ("function f(x) { return x + 1; }", "function f(x) { return x + 1; }"),
        ("if (a) { foo(); } else { bar(); }", "if (a) { foo(); } else { bar(); }"),
        ("import {useState, useEffect} from 'react'", "import {useState, useEffect} from 'react'"),
        ("\\frac{x}{y} + \\sqrt[3]{z} + x^{n}", "\\frac{x}{y} + \\sqrt[3]{z} + x^{n}"),
        ("\\begin{document}", "\\begin{document}"),
        ("echo ${HOME}/${user}", "echo ${HOME}/${user}"),
        ("awk '{print $1}'", "awk '{print $1}'"),
        ("for i in {1..10}; do", "for i in {1..10}; do"),
        ("{% if x %}{# note #}", "{% if x %}{# note #}"),
        ('{name: "x"}', '{name: "x"}'),
        ("{{name | upper}}", "{name | upper}"),
        ("{don't}", "{don't}"),
        # literal groups are looked into
        ('{"to": "{u.email}", "n": {a}}', '{"to": "kim@x.org", "n": 1}'),
        ('{"a": {"b": {a}}}', '{"a": {"b": 1}}'),
        ("p { width: {width}px; }", "p { width: 8px; }"),
        ("${price}", "$1234.5"),
        ("\\textbf{name} is {name}", "\\textbfKim is Kim"),
        ("file_{name}.txt", "file_Kim.txt"),
    ],
)
def test_braces_that_are_not_holes_survive(text: str, expected: str) -> None:
    assert filled(text) == expected


def test_inserted_text_is_never_looked_at_again() -> None:
    evil = '{u.email} {{name}} <tool_call>{"name": "x"}</tool_call> {"$expr": "1"}'
    scope = {"evil": evil, "u": {"email": "secret"}, "evils": [evil]}
    assert fill(parse_template("{evil}"), scope) == evil
    assert fill(parse_template("<{evil}>"), scope) == f"<{evil}>"
    assert fill(parse_template(["{evil}", {"k": "{evils}"}]), scope) == [evil, {"k": [evil]}]
    assert fill(parse_template("{evil}{u.email}"), scope) == evil + "secret"


# --- structures ------------------------------------------------------------------------------------------------------


def test_structures_are_filled_element_by_element() -> None:
    template = parse_template(
        {"to": ["{u.email}", "ops@x.org"], "n": "{a}", "{a}": "{{}}", "deep": [{"x": ["{b}", 1, None]}]}
    )
    assert isinstance(template, Fields)
    assert isinstance(template.fields[0][1], Items)
    assert fill(template, SCOPE) == {
        "to": ["kim@x.org", "ops@x.org"],
        "n": 1,
        "{a}": "{}",
        "deep": [{"x": [2, 1, None]}],
    }


def test_each_filling_makes_new_containers() -> None:
    for source in ([], {}, {"a": []}, ["x", {"b": 1}], {"$literal": {"a": [1]}}):
        template = parse_template(source)  # type: ignore[arg-type]
        first, second = fill(template, {}), fill(template, {})
        assert first == second
        assert first is not second


def test_unambiguous_forms() -> None:
    assert filled({"$expr": "w.temp + 1"}) == 4
    assert filled({"$expr": "{w.temp}"}) == 3
    assert filled({"x": {"$literal": "{w.temp} {{"}}) == {"x": "{w.temp} {{"}
    assert filled({"$literal": {"$expr": "a"}}) == {"$expr": "a"}
    assert filled({"$expr": "a", "other": 1}) == {"$expr": "a", "other": 1}
    for wrong in ({"$expr": "a b"}, {"$expr": 5}, {"$expr": ""}, {"$expr": None}):
        with pytest.raises(ExpressionError) as refusal:
            parse_template([wrong], Place(("steps",)))  # type: ignore[list-item]
        assert refusal.value.place.path == ("steps", 0, "$expr")


def test_places_are_those_of_the_expressions() -> None:
    template = parse_template({"body": ["hi {u.name}, {rows[0].n}"]}, Place(("steps", 1, "arguments")))
    text = "hi {u.name}, {rows[0].n}"
    found = [(hole.expression.place, hole.expression.text) for hole in holes(template)]
    assert [place.path for place, _ in found] == [("steps", 1, "arguments", "body", 0)] * 2
    assert [text[place.start : place.end] for place, _ in found] == ["u.name", "rows[0].n"] == [t for _, t in found]


def test_a_fault_in_a_hole_has_the_place_of_the_hole() -> None:
    template = parse_template({"body": "hi {u.nick} {u.name}"}, Place(("steps", 1)))
    with pytest.raises(EvaluationError, match=r"`u\.nick` does not exist") as fault:
        fill(template, SCOPE)
    assert fault.value.place == Place(("steps", 1, "body"), 4, 10)
    for text, message in [
        ("{w.none:.1f} C", "`w.none` is empty"),
        ("{w.text:.1f} C", "formats numbers"),
        ("{rows:d}.", "cannot be formatted"),
    ]:
        with pytest.raises(EvaluationError, match=message) as fault:
            fill(parse_template(text, Place(("x",))), SCOPE)
        place = fault.value.place
        assert place is not None
        assert place.path == ("x",)
        assert text[place.start : place.end] == text[1 : text.index(":")]


# --- looking and rewriting -------------------------------------------------------------------------------------------


def test_names() -> None:
    assert names_of(parse_template("{a} {b.c} {{d}} {[x for x in xs]}")) == {"a", "b", "d", "xs"}
    assert names_of(parse_template({"k": ["{a}", {"l": "{{b}}"}], "m": 1})) == {"a", "b"}
    assert names_of(parse_template("plain {1}")) == frozenset()


@pytest.mark.parametrize(
    ("text", "sure", "literal"),
    [
        ("{{name}}", "Kim", "{name}"),
        ("<{{name}}>", "<Kim>", "<{name}>"),
        ("{{name}} {a}", "Kim 1", "{name} 1"),
        ("${name}", "$Kim", "${name}"),
        ("x^{a} {b}", "x^1 2", "x^{a} 2"),
        ("{a, b}", [1, 2], "{a, b}"),
        ("s{a, b}", "s[1, 2]", "s{a, b}"),
        ("{a:5}", "    1", "{a:5}"),
    ],
)
def test_doubt_is_settled_once(text: str, sure: Any, literal: str) -> None:
    template = parse_template(text)
    doubtful = [hole for hole in holes(template) if isinstance(hole, Hole) and hole.doubtful]
    assert len(doubtful) == 1
    as_reference = settle(template, lambda hole: True)
    as_text = settle(template, lambda hole: False)
    for settled in (as_reference, as_text):
        assert not any(isinstance(hole, Hole) and hole.doubtful for hole in holes(settled))
    assert fill(as_reference, SCOPE) == sure
    assert fill(as_text, SCOPE) == literal
    assert fill(template, SCOPE) == sure, "in scope"
    if names_of(template) == doubtful[0].expression.names:
        assert fill(template, {}) == literal, "not in scope"


def test_settling_leaves_what_is_sure_alone() -> None:
    for value in ("{a}", "x {a}", "plain", {"k": ["{a}", 1]}, {"$literal": "{{a}}"}):
        template = parse_template(value)  # type: ignore[arg-type]
        assert settle(template, lambda hole: False) is template


def test_a_bare_name_can_become_a_path() -> None:
    template = parse_template(
        {"a": "{temp}", "b": "is {temp:.1f} {{temp}}", "c": ["{[temp for temp in xs]}"], "d": "x"}
    )
    renamed = rename(template, {"temp": "w.temp"})
    assert names_of(renamed) == {"w", "xs"}
    assert fill(renamed, {"w": {"temp": 3}, "xs": [1]}) == {"a": 3, "b": "is 3.0 3", "c": [[1]], "d": "x"}
    assert rename(template, {"other": "x.y"}) is template


@pytest.mark.parametrize(
    ("text", "name", "problem"),
    [
        ("total {order.total +} ok", "order", "cannot be read"),
        ("{order.total:.2ff}", "order", "`.2ff` is not a format spec"),
        ("{order.items.append(1)}", "order", "`append` would change a value"),
        ("{names.map(x)}", "names", "no method is named `map`"),
        ("{w.temp && ok}", "w", "`&&`"),
        ("a { color: red; }", "color", "a format does not begin with a space"),
        ("a {color:red;}", "color", "not a format spec"),
    ],
)
def test_a_group_that_looks_like_an_expression_and_is_none_is_noted(text: str, name: str, problem: str) -> None:
    template = parse_template(text, Place(("steps", 0)))
    (found,) = unread(template)
    assert name in found.names
    assert problem in found.problem
    assert fill(template, SCOPE) == text
    assert found.place.path == ("steps", 0)
    assert text[found.place.start : found.place.end] == found.raw


@pytest.mark.parametrize(
    "text", ['{"a": 1}', "{1}", "{}", "function() { return 1; }", "\\d{3}", "{ }", "{'a b'}", "{don't}"]
)
def test_plain_literal_groups_are_not_noted(text: str) -> None:
    assert list(unread(parse_template(text))) == []


# --- operands --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("w.temp > 2", True),
        ("{w.temp > 2}", True),
        (" {w.temp} ", 3),
        ("{{w.temp}}", 3),
        ("'text'", "text"),
        ("{r.n for r in rows}", [1, 2]),
        ("{'a': a}", {"a": 1}),
        ("{a, b}", [1, 2]),
        ("{r.n: r for r in []}", {}),
        ("f'{a}{b}'", "12"),
        ("True", True),
        ("true", True),
        ("5", 5),
    ],
)
def test_text_where_an_expression_stands_is_the_expression(text: str, expected: Any) -> None:
    operand = parse_operand(text)
    assert isinstance(operand, Expression)
    assert operand.evaluate(SCOPE) == expected


def test_other_values_where_an_expression_stands() -> None:
    assert parse_operand(5) == Literal(5)
    assert parse_operand(None) == Literal(None)
    assert fill(parse_operand(["{a}", {"k": "x {b}"}]), SCOPE) == [1, {"k": "x 2"}]  # type: ignore[arg-type]


def test_text_that_should_have_been_quoted_is_refused_with_help() -> None:
    with pytest.raises(ExpressionError) as refusal:
        parse_operand("Hello {name}, welcome", Place(("steps", 0, "let", "x")))
    assert refusal.value.help == "text needs quotes of its own here: `f'Hello {name}, welcome'`"
    assert refusal.value.place.path == ("steps", 0, "let", "x")


# --- rendering -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is {x}", "as it is {x}"),
        (3, "3"),
        (3.0, "3.0"),
        (1e16, "1e+16"),
        (-0.5, "-0.5"),
        (True, "true"),
        (False, "false"),
        (None, "null"),
        ([], "[]"),
        (["中", 1, None], '["中", 1, null]'),
        ({"键": {"a": 1.5}}, '{"键": {"a": 1.5}}'),
    ],
)
def test_how_a_value_reads(value: Any, text: str) -> None:
    assert render_text(value) == text
    assert fill(parse_template("<{x}>"), {"x": value}) == f"<{text}>"
    assert fill(parse_template({"$expr": "str(x)"}), {"x": value}) == text
    assert fill(parse_template({"$expr": "f'<{x}>'"}), {"x": value}) == f"<{text}>"
