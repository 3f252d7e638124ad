"""What expressions will be, and what in them can never work. Each line is an expression, its type, what is found."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from toolplan.diagnostics import Place
from toolplan.expressions import Expression, parse_expression
from toolplan.expressions.functions import FUNCTIONS
from toolplan.expressions.infer import infer, infer_template
from toolplan.expressions.methods import METHODS
from toolplan.expressions.results import FUNCTION_RULES, METHOD_RULES
from toolplan.expressions.templates import parse_template
from toolplan.expressions.types import INTEGER, TEXT, UNKNOWN, Type, from_schema

KID = {
    "type": "object",
    "title": "Kid",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
}
WORLD = {
    "type": "object",
    "title": "World",
    "properties": {
        "text": {"type": "string"},
        "low": {"type": "number"},
        "note": {"type": ["string", "null"]},
        "status": {"enum": ["open", "closed"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "kids": {"type": "array", "items": KID},
        "prices": {"type": "object", "additionalProperties": {"type": "number"}},
        "maybe": {"anyOf": [KID, {"type": "null"}]},
        "either": {"type": ["string", "array"], "items": {"type": "string"}},
    },
}
ENV: dict[str, Type] = {
    "w": from_schema(WORLD),
    "n": INTEGER,
    "now": TEXT,
    "u": UNKNOWN,
    "none": from_schema({"type": "null"}),
}


def look(text: str) -> tuple[str, list[str]]:
    found, findings = infer(parse_expression(text), ENV)
    return str(found), [each.code for each in findings]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("w.kids", "list[Kid]"),
        ("w['kids'][0]['name']", "str"),
        ("w.kids[-1].age", "int"),
        ("w.kids[1:]", "list[Kid]"),
        ("w.text[0]", "str"),
        ("w.prices['oslo']", "float"),
        ("w.prices[w.text] * 2", "float"),
        ("n + 1", "int"),
        ("n / 2", "float"),
        ("n // 2 + 1.5", "float"),
        ("-n", "int"),
        ("-w.low", "float"),
        ("w.text + 'x'", "str"),
        ("w.tags + [n]", "list[str | int]"),
        ("w.text * 3", "str"),
        ("n > 1 and w.text", "bool | str"),
        ("w.note or 'none'", "str"),
        ("w.note and 1", "str | int | None"),
        ("not w.text", "bool"),
        ("n < 2 < w.low", "bool"),
        ("w.text if n else None", "str | None"),
        ("w.note if w.note is not None else n", "str | int"),
        ("[k.name for k in w.kids]", "list[str]"),
        ("{k.name: k.age for k in w.kids}", "dict[str, int]"),
        ("[[a, b] for a, b in zip(w.tags, w.kids)][0][1].age", "int"),
        ("[i for i, k in enumerate(w.kids)]", "list[int]"),
        ("[v for _, v in w.prices.items()]", "list[float]"),
        ("(1, 'a')[1]", "str"),
        ("{'a': n}.a", "int"),
        ("{**w.kids[0], 'x': 'y'}.age", "int"),
        ("f'{n} of {w.low:.1f}'", "str"),
        ("u.a[0].get('b') if u.c else 1", "Any"),
        ("len(w.kids)", "int"),
        ("sum(k.age for k in w.kids)", "int"),
        ("sum([w.low, 1])", "float"),
        ("max(w.kids, key='age').name", "str"),
        ("min(w.kids, key=lambda k: k.age).name", "str"),
        ("max(1, w.low)", "float"),
        ("sorted(w.tags, reverse=True)", "list[str]"),
        ("reversed(w.kids)[0].age", "int"),
        ("next([k.age for k in w.kids], None)", "int | None"),
        ("any(k.age > 1 for k in w.kids)", "bool"),
        ("round(w.low)", "int"),
        ("round(w.low, 2)", "float"),
        ("abs(n)", "int"),
        ("int('5')", "int"),
        ("number(w.text)", "float"),
        ("number(w.note, 0)", "float"),
        ("number(w.text, None)", "float | None"),
        ("default(w.note, 0)", "str | int"),
        ("str(n)", "str"),
        ("list(w.text)", "list[str]"),
        ("set(w.tags)", "list[str]"),
        ("dict(w.prices)", "dict[str, float]"),
        ("dict([[k.name, k.age] for k in w.kids])", "dict[str, int]"),
        ("range(n)", "list[int]"),
        ("divmod(n, 2)[0]", "float"),
        ("set_item({}, 'a', n).a", "int"),
        ("set_item(w.tags, 0, n)", "list[str | int]"),
        ("days_between(now, '2026-01-01')", "int"),
        ("add(now, days=n)", "str"),
        ("find_numbers(w.text)", "list[float]"),
        ("isinstance(w.note, str)", "bool"),
        ("w.text.split(',')", "list[str]"),
        ("w.text.partition(':')[2]", "str"),
        ("w.text.find('x')", "int"),
        ("', '.join(w.tags)", "str"),
        ("w.tags.index('a')", "int"),
        ("w.prices.get('a')", "float | None"),
        ("w.prices.get('a', 0)", "float"),
        ("w.kids[0].get('age')", "int"),
        ("w.kids[0].keys()", "list[str]"),
        ("w.kids[0].values()", "list"),
        ("w.tags.union(w.kids)", "list[str | Kid]"),
        ("w.either[0]", "str"),
        ("u + 'a'", "str"),
        ("u + 1", "Any"),
        ("[]", "list"),
    ],
)
def test_the_type_of(text: str, found: str) -> None:
    assert look(text) == (found, [])


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("w.txt", "TP306"),
        ("w['txt']", "TP306"),
        ("w.kids[0].nam", "TP306"),
        ("[k.nam for k in w.kids]", "TP306"),
        ("sorted(w.kids, key='nam')", "TP306"),
        ("max(w.kids, key=lambda k: k.nam)", "TP306"),
        ("w.kids.name", "TP307"),
        ("w.text.length", "TP307"),
        ("none.a", "TP307"),
        ("w.low['a']", "TP307"),
        ("w.low[0]", "TP308"),
        ("w.tags[w.text]", "TP308"),
        ("w.kids[0][n]", "TP308"),
        ("w.low[1:]", "TP308"),
        ("w.text < 5", "TP309"),
        ("n >= w.text", "TP309"),
        ("w.tags > 1", "TP309"),
        ("w.kids[0] < w.kids[1]", "TP309"),
        ("none < 1", "TP309"),
        ("max(w.text, 1)", "TP309"),
        ("w.status == 'opne'", "TP310"),
        ("w.text == 5", "TP310"),
        ("w.tags != 'a'", "TP310"),
        ("w.text + 1", "TP311"),
        ("1 + w.tags", "TP311"),
        ("w.tags + w.text", "TP311"),
        ("w.text - 'a'", "TP311"),
        ("w.kids[0] * 2", "TP311"),
        ("none + 1", "TP311"),
        ("w.tags.lower()", "TP312"),
        ("n.split()", "TP312"),
        ("w.text.keys()", "TP312"),
        ("len(n)", "TP313"),
        ("sum(w.tags)", "TP313"),
        ("', '.join(w.kids)", "TP313"),
        ("[x for x in n]", "TP313"),
        ("[*n]", "TP313"),
        ("1 in n", "TP313"),
        ("n in w.text", "TP313"),
        ("-w.text", "TP313"),
        ("abs(w.text)", "TP313"),
        ("days_between(n, now)", "TP313"),
        ("w.text.replace(1, 'a')", "TP313"),
        ("{n: 1}", "TP313"),
        ("{k.age: k for k in w.kids}", "TP313"),
        ("w.note.lower()", "TP314"),
        ("w.note + 'x'", "TP314"),
        ("w.note < 'x'", "TP314"),
        ("len(w.note)", "TP314"),
        ("w.maybe.name", "TP314"),
        ("'a' in w.note", "TP314"),
        ("f'{w.note:>5}'", "TP314"),
        ("f'{w.text:.2f}'", "TP317"),
        ("w.kids.nam if n else w.kids[0].name", "TP307"),
    ],
)
def test_what_cannot_work(text: str, code: str) -> None:
    assert look(text)[1] == [code]


@pytest.mark.parametrize(
    "text",
    [
        "w.note.lower() if w.note else ''",
        "w.note and w.note.lower()",
        "w.note is not None and w.note < 'x'",
        "'' if w.note is None else w.note.lower()",
        "not w.note or w.note.lower() == 'x'",
        "default(w.note, '').lower()",
        "(w.note or '').lower()",
        "default(w.txt, 1)",
        "default(w.kids[0].nam.x, 1)",
        "[k for k in [w.maybe] if k is not None][0].name",
        "[k.name for k in [w.maybe] if k]",
        "w.maybe.name if w.maybe else w.text",
        "w.either.lower() if isinstance(w.either, str) else w.either[0]",
        "w.either[0].lower()",
        "w.prices.get('a') * 2 if w.prices.get('a') else 0",
        "w.prices[w.text] if w.text in w.prices else 0",
        "w.note == None",
        "w.status == 'open'",
        "w.status in ['open', 'x']",
        "n == 2.5",
        "n == True",
        "w.txt if 'txt' in w else ''",
        "f'{w.note}'",
        "f'{now:%Y}'",
        "u.a.b < 5",
        "u.a + w.text",
        "sum([[1], [2]], [])",
        "'%s' % w.text",
        "u['a']['b'][0]",
        "set(w.tags) - set(['a'])",
        "{'a': 1} | {'b': 2}",
        "max(*w.kids, key=lambda k: k.age)",
        "min(*w.kids, key='age')",
        "max(0, *[k.age for k in w.kids])",
        "min(n, *w.prices.values(), 3)",
    ],
)
def test_what_works(text: str) -> None:
    assert look(text)[1] == []


def test_a_mistake_is_not_told_twice_and_what_follows_is_unknown() -> None:
    assert look("w.txt.lower() + 1 < 'a'") == ("bool", ["TP306"])
    assert look("w.txt") == ("Any", ["TP306"])


def test_independent_mistakes_are_all_told() -> None:
    assert look("[w.txt, w.text < 5, w.kids.name]")[1] == ["TP306", "TP309", "TP307"]


def test_the_smallest_place_is_marked() -> None:
    def marked(text: str) -> str:
        _, (found,) = infer(parse_expression(text, Place(("x",))), ENV)
        return text[found.place.start : found.place.end]

    assert marked("1 + w.kids[0].nam") == "nam"
    assert marked("w['txt']") == "'txt'"
    assert marked("n and (w.text < 5)") == "w.text < 5"
    assert marked("len(w.text) + len(n)") == "n"
    assert marked("w.tags.lower()") == "lower"
    assert marked("'气温' + w.天气") == "天气"


def test_every_function_and_method_has_a_typing_rule() -> None:
    assert set(FUNCTION_RULES) == set(FUNCTIONS) - {"default", "isinstance"}
    kinds = {str: "text", list: "list", dict: "object"}
    assert set(METHOD_RULES) == {(kinds[kind], name) for name, methods in METHODS.items() for kind in methods}


def test_every_rule_holds_for_arguments_of_which_nothing_is_known() -> None:
    for function in FUNCTIONS.values():
        given = ["u"] * max(1, function.required)
        if function.name in ("isinstance", "add"):
            given = ["u", "str"] if function.name == "isinstance" else ["u"]
        assert look(f"{function.name}({', '.join(given)})")[1] == [], function.name
    for name, methods in METHODS.items():
        for method in methods.values():
            assert look(f"u.{name}({', '.join(['u'] * method.required)})")[1] == [], name


def test_a_tree_that_no_reader_has_seen_is_harmless() -> None:
    for text in (
        "foo(w.txt)",
        "u.nothing(1)",
        "(lambda: 1)()",
        "u[::2]",
        "await_",
        "w.kids[0](1)",
        "x @ y",
        "[*a, *b]",
    ):
        tree = ast.parse(text, mode="eval").body
        infer(Expression(text, tree, frozenset()), ENV)


def test_very_deep_trees_are_unknown() -> None:
    tree: Any = ast.parse("u", mode="eval").body
    for _ in range(5000):
        tree = ast.Attribute(tree, "a", ast.Load(), lineno=1, col_offset=0, end_lineno=1, end_col_offset=1)
    assert infer(Expression("u", tree, frozenset("u")), ENV) == (UNKNOWN, [])


def test_templates() -> None:
    def of(value: Any) -> tuple[str, list[str]]:
        found, findings = infer_template(parse_template(value), ENV)
        return str(found), [each.code for each in findings]

    assert of("{w.kids}") == ("list[Kid]", [])
    assert of("{n} kids") == ("str", [])
    assert of("{w.text:.2f} kids") == ("str", ["TP317"])
    assert of({"a": ["{n}", "{w.text}"], "b": 1}) == ("dict", [])
    assert of(["{n}", "x"]) == ("list[int | str]", [])
    assert of({"a": {"b": "{w.txt}"}}) == ("dict", ["TP306"])
    assert of(5) == ("int", [])
