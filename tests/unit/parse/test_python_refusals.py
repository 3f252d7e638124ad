"""Programs that are not read as plans: what is said, and where."""

from __future__ import annotations

import ast

import pytest

from toolplan.diagnostics import Source, load_catalogue, render
from toolplan.parse.python_notation import read_program
from toolplan.plan import walk
from unit.parse.python_programs import PROGRAMS
from unit.parse.python_reading import marked, read, refused

# --- what is refused ------------------------------------------------------------------------------------------------

CATALOGUE = load_catalogue()
CODES = sorted(code for code in CATALOGUE if "TP150" <= code < "TP200")
KNOWN = {"len_of": ["text"]}


@pytest.mark.parametrize("code", CODES)
def test_the_examples_of_every_code(code):
    parameters = KNOWN if code == "TP162" else None
    problems = refused(CATALOGUE[code].wrong, None, parameters)
    assert [problem.code for problem in problems] == [code]
    assert problems[0].help
    read_program(Source(CATALOGUE[code].right), None, parameters)


@pytest.mark.parametrize(
    ("text", "help"),
    [
        ("with open('a') as f:\n    g()", "one after the other"),
        ("raise ValueError('x')", "cannot(reason)"),
        ("assert x > 1", "if not ok"),
        ("global x", "one scope"),
        ("match x:\n    case 1:\n        f()", "elif"),
        ("import json\nx = json.dumps(y)", "json(value)"),
        ("import re\nx = re.findall('a', y)", "find_urls"),
        ("from datetime import datetime, timedelta\nx = datetime.now() + timedelta(days=1)", "add(d, days=1)"),
        ("x = 5\ndel x", "leave it out"),
        ("x = yield 5", None),
        ("xs[1:2] = y", "new list"),
        ("f(*args)", "by name"),
        ("f(**args)", "by name"),
        ("x = map(f, xs)", "comprehension"),
        ("x = [f() for x.y in z]", "a name"),
        ("x @= 3", "numbers"),
        ("asyncio.as_completed(x)", "overlap"),
        ("__x = f()", "write `x`"),
        ("for __x in xs:\n    f()", "write `x`"),
        ("[] = f()", "give it a name"),
        ("x = f(（1）)", "write `(`"),
        ('x = "abc\ny = 1', "three quotes"),
        ("x = f(a=1, 2)", "name every argument"),
        ("x = 007", "text"),
    ],
)
def test_a_refusal_says_what_to_write(text, help):
    problems = refused(text)
    assert len(problems) == 1, problems
    if help:
        assert help in (problems[0].help or "")
    assert problems[0].place.start is not None


def test_all_problems_are_told_at_once_in_source_order():
    text = "import json\nx = json.dumps(1)\nwhile y:\n    f(1)\nfor z in w:\n    raise E\nelse:\n    g()\nbreak"
    assert [d.code for d in refused(text)] == ["TP152", "TP153", "TP161", "TP151", "TP154", "TP121"]


def test_what_follows_from_a_reported_problem_is_silent():
    assert [d.code for d in refused("import re\nif re.match('a', x):\n    y = re.sub('a', 'b', x)\n    f(a=re.X)")] == [
        "TP152"
    ]


def test_imports_that_nothing_uses_are_ignored():
    read(
        "from __future__ import annotations\nimport json, os\nfrom typing import Any\nfrom tools import f\nx: Any = f()"
    )


def test_break_belongs_to_a_loop():
    assert [d.code for d in refused("if x:\n    break")] == ["TP121"]
    assert [d.code for d in refused("continue")] == ["TP121"]


# --- places ---------------------------------------------------------------------------------------------------------


def test_places_count_characters_of_wide_text():
    text = '天气 = f(城="北京")\nx = 天气.温度 + number("３°C") + (lambda: 1)'
    (problem,) = refused(text)
    assert marked(text, problem) == "lambda: 1"
    assert "2 | x = 天气" in render(problem, Source(text))


def test_places_inside_f_strings():
    text = 'x = f"é {a.b} {c["d"]:>{w}} {(lambda: 1)}"\ny = f"""\n{1 +\n (lambda: 2)}"""'
    assert [marked(text, d) for d in refused(text)] == ["lambda: 1", "lambda: 2"]


def test_parts_of_an_expression_with_calls_keep_their_places():
    text = "x = get(a=1).total + 费用.b * get(a=2)[k].c"
    (_first, _second, let) = read(text).steps
    expression = let.values[0][1].expression
    assert expression.text == "_1.total + 费用.b * _2[k].c"
    places = {text[p.start : p.end] for node in walk_expression(expression) if (p := expression.place_of(node))}
    assert {"get(a=1).total", "费用.b", "k", "get(a=2)", "get(a=2)[k].c"} <= places


def walk_expression(expression):
    return [node for node in ast.walk(expression.tree) if isinstance(node, ast.expr)]


def test_every_step_and_template_has_a_place():
    text = PROGRAMS["try with else"]
    for step in walk(read(text).steps):
        assert step.place.start is not None
        assert 0 <= step.place.start < step.place.end <= len(text)


def test_a_program_indented_as_a_whole():
    text = "    x = f(a=1)\n    if x:\n        g(1)\n"
    (problem,) = refused(text)
    assert marked(text, problem) == "1"
    assert refused("    x = f()\ny = g()")[0].code == "TP150"


# --- shared values --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "b = a\nb.append(1)\nreturn a",
        "b = a\na.append(1)\nreturn b",
        "row = rows[0]\nrow.total = 1\nreturn rows",
        'for r in rows:\n    r["x"] = 1\nreturn rows',
        "for i, r in enumerate(rows):\n    r.x = i\nreturn rows",
        "for k, v in d.items():\n    v.append(1)\nreturn d",
        "row = {}\nout.append(row)\nrow.x = 1\nreturn out",
        "best = None\nfor r in rows:\n    best = r\nbest.x = 1\nreturn rows",
        'd = {"xs": xs}\nxs.append(1)\nreturn d',
        "xs = d.rows\nd.rows.append(1)\nreturn xs",
        "x = a if c else b\nx.y = 1\nreturn b",
        "b = a\nb += [1]\nreturn a",
    ],
)
def test_a_change_that_python_would_show_under_another_name_is_refused(text):
    assert [d.code for d in refused(text)] == ["TP177"]


@pytest.mark.parametrize(
    "text",
    [
        "b = list(a)\nb.append(1)\nreturn a",
        "b = a\nb.append(1)\nreturn b",
        "b = a\na = f()\na.append(1)\nreturn b",
        "b = a\nb = f()\nb.append(1)\nreturn a",
        "row = rows[0]\nrow.total = 1\nsave(row=row)",
        'for r in rows:\n    r["x"] = 1\n    out.append(r)\nreturn out',
        "row = {}\nrow.x = 1\nout.append(row)\nreturn out",
        "for x in xs:\n    row = {}\n    row.x = x\n    out.append(row)\nreturn out",
        'r = d["k"]\nr.append(1)\nd["k"] = r\nreturn d',
        "n = d.count\nn += 1\nreturn d",
        "total = prices[0]\nfor p in prices:\n    total += p\nreturn prices",
        "ys = xs[:2]\nys.append(1)\nreturn xs",
        "for k in d:\n    d[k] = d[k] + 1\nreturn d",
        "rows = f()\nfor r in rows:\n    r.x = 1\nrows = g()\nreturn rows",
    ],
)
def test_a_change_that_nobody_else_sees_is_fine(text):
    read(text)


def test_a_list_that_changes_while_a_loop_goes_through_it():
    for change in ("xs.append(x)", "xs.remove(x)", "xs.pop()"):
        assert [d.code for d in refused(f"for x in xs:\n    {change}\nreturn 1")] == ["TP179"]
    read("for x in xs:\n    ys.append(x)\nreturn ys")
