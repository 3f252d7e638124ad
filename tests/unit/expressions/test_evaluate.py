"""Evaluating: where the language differs from Python, and what is said when a value does not fit."""

from __future__ import annotations

from typing import Any

import pytest

from toolplan.diagnostics import Place
from toolplan.errors import EvaluationError
from toolplan.expressions import parse_expression

SCOPE: dict[str, Any] = {
    "u": {"email": "kim@x.org", "name": "Kim", "items": [1, 2], "count": 3, "age": None},
    "w": {"temp": "3°C", "high": 5, "rain": None, "days": []},
    "rows": [{"n": 2, "t": "b"}, {"n": 1, "t": "a"}],
    "xs": [3, 1, 2],
    "e": [],
    "t": "text",
    "n": 5,
    "z": None,
    "ok": True,
    "mixed": [1, "a", None],
    "now": "2026-03-18T09:00:00+08:00",
}


def value(text: str, **more: Any) -> Any:
    return parse_expression(text).evaluate({**SCOPE, **more})


# --- differences from Python -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # objects: fields by either spelling; a call is a method, anything else a field
        ("u.name == u['name']", True),
        ("u.items", [1, 2]),
        ("u.count + 1", 4),
        ("len(u.items())", 5),
        ("[k for k, v in u.items()]", ["email", "name", "items", "count", "age"]),
        ("'name' in u", True),
        ("list(u)", ["email", "name", "items", "count", "age"]),
        # tuples are lists
        ("(1, 2)", [1, 2]),
        ("1, 2", [1, 2]),
        ("(1, 2) == [1, 2]", True),
        ("max([(r.n, r.t) for r in rows])", [2, "b"]),
        ("divmod(7, 2)", [3, 1]),
        ("list(enumerate(['a']))", [[0, "a"]]),
        ("zip([1, 2], 'ab')[1]", [2, "b"]),
        # sets are lists of different values, compared as sets where they are written as sets
        ("{3, 1, 3}", [3, 1]),
        ("list(dict.fromkeys([3, 1, 3]))", [3, 1]),
        # `map` and `filter` give lists
        ("map(str, xs)", ["3", "1", "2"]),
        ("', '.join(map(str.upper, 'ab'))", "A, B"),
        ("map(lambda r: r.n, rows)", [2, 1]),
        ("map(lambda x: map(lambda y: x * y, xs), [1, 2])", [[3, 1, 2], [6, 2, 4]]),
        ("filter(lambda x: x > 1, xs)", [3, 2]),
        ("filter(None, [0, 1, None, 'a'])", [1, "a"]),
        ("len(filter(bool, mixed))", 2),
        ("set([3, 1, 3])", [3, 1]),
        ("{x % 2 for x in xs}", [1, 0]),
        ("set([2, 1]) == set([1, 2, 1])", True),
        ("set([2, 1]) != {1, 2}", False),
        ("{1} < {1, 2}", True),
        ("set(xs) <= {1, 2, 3, 4}", True),
        ("{1, 2} >= {3}", False),
        ("[1, 2] == [2, 1]", False),
        ("[1, 2, 2, 3] - [2]", [1, 3]),
        ("[1, 2, 2] & [2, 3]", [2]),
        ("[1, 2] | [2, 3]", [1, 2, 3]),
        ("[1, 2] ^ [2, 3]", [1, 3]),
        ("set(xs) - {1}", [3, 2]),
        ("xs.union([4])", [3, 1, 2, 4]),
        ("xs.difference([1])", [3, 2]),
        ("xs.intersection([1, 9])", [1]),
        ("[1].issubset(xs)", True),
        ("xs.issuperset([1])", True),
        ("xs.isdisjoint([9])", True),
        ("set(rows + rows) == set(rows)", True),
        ("len(set([[1], [1], {'a': 1}, {'a': 1}]))", 2),
        # generators and views are lists
        ("(x for x in xs)", [3, 1, 2]),
        ("u.keys()[0]", "email"),
        ("reversed(xs)[0]", 2),
        ("range(3)", [0, 1, 2]),
        ("next([7, 8])", 7),
        ("next((x for x in xs if x > 9), 'none')", "none"),
        # any and all stop early
        ("any(x.n for x in rows + [z])", True),
        ("all(x > 2 for x in [1, 'a'])", False),
        # text of values
        ("str(True) + str(None) + str([1, 'ä', None]) + str({'a': 1.0})", 'truenull[1, "ä", null]{"a": 1.0}'),
        ("f'{ok} {z} {xs} {1.0} {t}'", "true null [3, 1, 2] 1.0 text"),
        ("f'{ok!r} {t!r} {xs!r} {z!s}'", "true 'text' [3, 1, 2] null"),
        ("'{} {x:.1f} {0}'.format(n, x=2.25)", "5 2.2 5"),
        ("f\"{'2026-03-18':%d.%m.%Y}\"", "18.03.2026"),
        # spellings of JSON
        ("true and not false and null is None", True),
        ("[true, false, null]", [True, False, None]),
        ("now()", "2026-03-18T09:00:00+08:00"),
        ("today()", "2026-03-18"),
        # sorting by the name of a field
        ("sorted(rows, key='n')[0].t", "a"),
        ("max(rows, key='t', default=0).n", 2),
        ("sorted([{'a': {'b': 2}}, {'a': {'b': 1}}], key='a.b')[0].a.b", 1),
        ("sorted(rows, key=lambda r: (-r.n, r.t))[0].n", 2),
        ("sorted(['bb', 'a'], key=len)", ["a", "bb"]),
        ("min('3 km', '12 km', key=number)", "3 km"),
        # default
        ("default(w.rain, 0)", 0),
        ("default(w.snow, 0)", 0),
        ("default(w.snow.deep[3].er, 'no')", "no"),
        ("default(w.days[0], 'no')", "no"),
        ("default(u.age + 1, 0)", 0),
        ("default(number(w.rain), 7)", 7),
        ("default(w.high, 1)", 5),
        ("default(value=z, fallback=2)", 2),
        ("default(e[0].x or 3, 4)", 4),
        ("z or 'x'", "x"),
        ("isinstance(n, int) and isinstance(t, (str, list)) and not isinstance(z, dict)", True),
        ("isinstance(n, int | float)", True),
        ("isinstance(z, (str, None))", True),
        ("set_item(xs, 0, 9)", [9, 1, 2]),
        ("set_item({'a': 1}, 'b', 2)", {"a": 1, "b": 2}),
        ("sum([[1], [2, 3]], [])", [1, 2, 3]),
        ("max(*xs, 9)", 9),
        ("max(9, *xs)", 9),
        ("max(*xs, key=lambda x: x % 2)", 3),
        ("zip(*[[1, 2], [3, 4]])", [[1, 3], [2, 4]]),
        ("[*xs, *'ab']", [3, 1, 2, "a", "b"]),
        ("{**u, 'name': 'Lee'}.name", "Lee"),
        ("[a + b for [a, b] in [[1, 2]]]", [3]),
        ("[a for a, (b, c) in [[1, [2, 3]]]]", [1]),
        ("floor(2.7) + ceil(2.1)", 5),
    ],
)
def test_differences_and_additions(text: str, expected: Any) -> None:
    assert value(text) == expected


def test_a_list_that_came_from_a_set_is_a_list() -> None:
    # Only what is written as a set is compared as one; see the list of differences.
    assert value("a == b", a=[1, 2], b=[2, 1]) is False


# --- faults ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message", "help", "marked"),
    [
        # nothing there: the message names what was empty
        ("w.rain + 1", "`w.rain` is empty (null), so `+` cannot be computed", "default(w.rain, ...)", "w.rain"),
        ("w.rain > 5", "`w.rain` is empty (null), so it cannot be compared with 5 (number)", "is not None", "w.rain"),
        ("0 < w.rain < 5", "`w.rain` is empty (null)", None, "w.rain"),
        ("w.rain.mm", "`w.rain` is empty (null), so it has no field `mm`", None, "w.rain"),
        ("w.rain[0]", "`w.rain` is empty (null), so it has no element 0", None, "w.rain"),
        ("w.rain[1:]", "`w.rain` is empty (null), so nothing can be cut out of it", None, "w.rain"),
        ("w.rain.lower()", "`w.rain` is empty (null), so it has no `lower()`", None, "w.rain"),
        ("len(w.rain)", "`w.rain` is empty (null), but `len` takes text, a list or an object", None, "w.rain"),
        ("number(w.rain)", "`w.rain` is empty (null), but `number` takes text or a number", None, "w.rain"),
        ("[x for x in w.rain]", "`w.rain` is empty (null), so there is nothing to go through", None, "w.rain"),
        ("{**z}", "`z` is empty (null)", None, "z"),
        ("-z", "`z` is empty (null), so `-` cannot be computed", None, "z"),
        ("'a' in z", "`z` is empty (null)", None, "z"),
        ("f'{w.rain:.1f}'", "`w.rain` is empty (null), so it cannot be formatted", None, "w.rain"),
        ("xs[z]", "`z` is empty (null)", None, "z"),
        ("t.replace('a', z)", "`z` is empty (null), but `replace` takes text", None, "z"),
        ("round(2.5, z.a)", "`z` is empty (null)", None, "z"),
        ("add(now, days=z)", "`z` is empty (null), but `add` takes a number", None, "z"),
        ("sum([1, z])", "`sum` adds numbers, but element 1 is null", None, None),
        ("', '.join(['a', z])", "`join` puts texts together, but element 1 is null", "is not None", None),
        # fields and elements that do not exist
        (
            "u.mail",
            "`u.mail` does not exist: `u` has no field `mail`; it has email, name",
            "did you mean `email`?",
            "u.mail",
        ),
        ("u['mail']", "`u['mail']` does not exist: `u` has no field `mail`", "did you mean `email`?", "u['mail']"),
        ("u.keys", "`u` has no field `keys`", "write `u.keys()` to call the method", "u.keys"),
        ("u['phone']", "`u` has no field `phone`", "u.get('phone')", "u['phone']"),
        ("{}.a", "it has no fields at all", None, None),
        ("rows.n", "`rows` is list of 2, which has no field `n`", "[x.n for x in rows]", "rows.n"),
        ("xs.length", "has no field `length`", "len(xs)", None),
        ("t.upper", "`t` is 'text' (text), which has no field `upper`", "t.upper()", None),
        ("n.x", "`n` is 5 (number), which has no field `x`", None, "n.x"),
        ("xs[3]", "`xs[3]` does not exist: the list `xs` has 3 elements", None, "xs[3]"),
        ("e[0].n", "`e[0]` does not exist: the list `e` is empty", "`e[0] if e else ...`", "e[0]"),
        ("t[9]", "the text `t` has 4 elements", None, "t[9]"),
        ("rows['n']", "the elements of `rows` are counted by whole numbers", "[x['n'] for x in rows]", "rows['n']"),
        ("xs[1.0]", "counted by whole numbers, but 1.0 (number) is not one", "int(...)", None),
        ("u[0]", "the fields of `u` have names", None, "u[0]"),
        ("n[0]", "`n` is 5 (number), which has no elements", None, "n[0]"),
        ("xs['a':]", "a slice goes by whole numbers", None, "'a'"),
        ("max(e)", "`max` of nothing: the list is empty", "default=0", "max(e)"),
        ("next(e)", "`next` found no element", "next(..., None)", None),
        ("xs.index(9)", "9 (number) is not in the list", None, None),
        # kinds that do not go together
        ("w.temp < 5", "'3°C' (text) cannot be ordered against 5 (number)", "number('3°C')", "w.temp < 5"),
        ("5 >= w.temp", "5 (number) cannot be ordered against '3°C' (text)", "number('3°C')", None),
        ("xs < 5", "list of 3 cannot be ordered against 5 (number)", None, None),
        ("[1, 'a'] < [1, 2]", "'a' (text) cannot be ordered against 2 (number)", None, None),
        ("u < u", "cannot be ordered", "key='name'", None),
        ("sorted(mixed)", "cannot be ordered", None, None),
        ("max(rows)", "cannot be ordered", "key='name'", None),
        ("sorted(rows, key='price')", "no field `price` to order by; it has n, t", None, None),
        ("sorted(rows, key=3)", "`key` is the name of a field or a lambda", None, None),
        ("t + 5", "`t + 5`: `+` cannot combine 'text' (text) and 5 (number)", "str(...)", "t + 5"),
        ("xs + 5", "cannot combine list of 3 and 5 (number)", "xs + [x]", "xs + 5"),
        ("t - 1", "`-` cannot combine", "number(...)", None),
        ("'%d' % n", "`%` cannot combine", "f-string", None),
        ("-t", "`-t`: `-` needs a number, found 'text' (text)", "number(t)", None),
        ("n / 0", "`n / 0`: division by zero", None, "n / 0"),
        ("5 in t", "in text only text can be looked for, not 5 (number)", "str(...)", None),
        ("'a' in n", "nothing can be looked for in 5 (number)", None, None),
        ("[x for x in n]", "`n` is 5 (number), and a loop goes through a list", "range(...)", "n"),
        ("[a for a, b in xs]", "`a, b` takes a list of 2, found 3 (number)", None, None),
        ("[a for a, b in [[1]]]", "takes 2 values, found 1", None, None),
        ("{n: 1}", "the keys of an object are text, but 5 (number) is not", "str(...)", "n"),
        ("{x: 1 for x in xs}", "the keys of an object are text", None, "x"),
        ("xs.upper()", "`xs` is list of 3, and `upper` is a method of text", "[x.upper(...) for x in xs]", None),
        ("n.zfill(3)", "`zfill` is a method of text", "str(n).zfill(...)", None),
        ("u.count(1)", "`count` is a method of text and lists", "the field is `u.count`", None),
        ("sum(['1'])", "`sum` adds numbers, but element 0 is '1' (text)", "number(x)", None),
        ("', '.join(xs)", "`join` puts texts together, but element 0 is 3 (number)", "str(x)", None),
        ("abs(t)", "`abs` takes a number, but `t` is 'text' (text)", "number(...)", "t"),
        ("abs('5')", "`abs` takes a number, but '5' (text)", None, "'5'"),
        ("int('3.5')", "'3.5' (text) is not a whole number", "number(...)", None),
        ("float('abc')", "'abc' (text) is not a number", "number(...)", None),
        ("number('abc')", "there is no number in 'abc' (text)", "number(text, 0)", None),
        ("number(xs)", "`number` takes text or a number, but `xs` is list of 3", None, "xs"),
        ("range(2.5)", "`range` takes a whole number", "int(...)", None),
        ("dict(xs)", "`dict` takes pairs", None, None),
        ("t.split('')", "cannot be split at nothing", "list(text)", None),
        ("f'{t:.2f}'", "`.2f` formats numbers, but 'text' (text) is not one", "number(...)", "t"),
        ("f'{xs:.2f}'", "list of 3 cannot be formatted with `.2f`", None, None),
        ("f'{n:abc}'", "`abc` is not a format spec", ".2f", None),
        ("(-8) ** 0.5", "the root of a negative number", None, None),
        ("'{a}'.format(b=1)", "was given nothing for `{a}`", "f-string", None),
        ("max(xs, n, default=0)", "`default` goes with one list", None, None),
        ("nothing + 1", "`nothing` has no value here", None, "nothing"),
        ("t.count(5)", "`count` takes text, but 5 (number)", None, "5"),
    ],
)
def test_a_fault_names_what_it_met_and_says_what_to_write(
    text: str, message: str, help: str | None, marked: str | None
) -> None:
    with pytest.raises(EvaluationError) as fault:
        value(text)
    error = fault.value
    assert message in error.message
    if help:
        assert error.help is not None
        assert help in error.help
    if marked:
        assert text[error.start : error.end] == marked
    assert "\n" not in error.message


def test_a_fault_knows_its_place_in_the_plan() -> None:
    expression = parse_expression("len(xs) + w.rain", Place(("steps", 2, "if"), 3, 19))
    with pytest.raises(EvaluationError) as fault:
        expression.evaluate(SCOPE)
    assert fault.value.place == Place(("steps", 2, "if"), 13, 19)


def test_equality_of_different_kinds_is_false_and_never_a_fault() -> None:
    for text in ["w.temp == 5", "z == 0", "xs == t", "u == xs", "ok == 'true'", "z == ''"]:
        assert value(text) is False
        assert value(text.replace("==", "!=")) is True
    assert value("ok == 1") is True


def test_the_meaning_of_a_word_called_and_not_called() -> None:
    scope = {"lines": ["a", "b"], "date": "2026-03-18", "json": {"get": 1}, "max": 3}
    for text, expected in [
        ("'+'.join(lines) + lines('c\\nd')[1]", "a+bd"),
        ("date(date)", "2026-03-18"),
        ("json(json)", '{"get": 1}'),
        ("max(max, 2)", 3),
        ("json.get", 1),
    ]:
        assert parse_expression(text).evaluate(scope) == expected


def test_nothing_that_is_evaluated_changes_a_value() -> None:
    before = repr(SCOPE)
    for text in [
        "xs + [1]",
        "sorted(xs)",
        "set_item(xs, 0, 1)",
        "u | {'a': 1}",
        "reversed(xs)",
        "list(xs)",
        "sum([xs], [])",
    ]:
        found = value(text)
        found.clear()
    assert repr(SCOPE) == before


def test_loop_names_do_not_leak_and_may_hide_outer_names() -> None:
    assert value("[n for n in xs] + [n]") == [3, 1, 2, 5]
    assert value("[n + m for n in xs for m in [n * 10] if n > 1] + [n]") == [33, 22, 5]
    assert value("sorted(xs, key=lambda n: -n) + [n]") == [3, 2, 1, 5]
    assert value("[[n for n in [m]] for m in xs] + [n]") == [[3], [1], [2], 5]


def test_a_shared_expression_can_be_evaluated_inside_another_evaluation() -> None:
    expression = parse_expression("[x + y for x in xs for y in [x]]")
    assert [expression.evaluate({"xs": [n]}) for n in range(3)] == [[0], [2], [4]]


@pytest.mark.parametrize("size", [1_000, 50_000])
def test_honest_work_on_many_rows_is_not_refused(size: int) -> None:
    rows = [{"id": n, "name": f"row {n}", "amount": n * 1.5, "tags": ["a", "b"]} for n in range(size)]
    scope = {"rows": rows}
    assert len(parse_expression("[r for r in rows if r.amount > 100]").evaluate(scope)) == size - 67
    assert parse_expression("sum(r.amount for r in rows)").evaluate(scope) == sum(n * 1.5 for n in range(size))
    assert parse_expression("max(rows, key='amount').id").evaluate(scope) == size - 1
    assert parse_expression("sorted(rows, key=lambda r: -r.id)[0].id").evaluate(scope) == size - 1
    assert len(parse_expression("', '.join(r.name for r in rows)").evaluate(scope)) > size
    assert len(parse_expression("{r.name: r.amount for r in rows}").evaluate(scope)) == size


def test_a_million_numbers_fit_in_one_list() -> None:
    assert len(parse_expression("range(1000000)").evaluate({})) == 1_000_000
