"""Reading: what is an expression, what is not, how that is said, and where things stand."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from toolplan.diagnostics import Place
from toolplan.expressions import ExpressionError, expression_from_node, parse_expression, parse_operand
from toolplan.expressions.functions import FUNCTIONS

DATA = Path(__file__).parents[4] / "shared" / "data"
if not DATA.exists():
    DATA = Path(__file__).parents[2] / "data"


# --- names and spellings ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a", "a"),
        (" a.b ", "a"),
        ("a.b[0]['c d'][-1].e", "a"),
        ("a[i].b", "a i"),
        ("len(xs) + n", "xs n"),
        ("[x.a + n for x in xs if x.ok]", "xs n"),
        ("[x for x in x]", "x"),
        ("[y for x in xs for y in x]", "xs"),
        ("[x for x in xs] + [x]", "xs x"),
        ("{k: v for k, v in d.items()}", "d"),
        ("sum(x for x in xs)", "xs"),
        ("sorted(xs, key=lambda x: x.a + y)", "xs y"),
        ("sorted(xs, key=len)", "xs"),
        ("sorted(xs, key=field)", "xs field"),
        ("f'{a} {b:>{w}} {c!r}'", "a b c w"),
        ("lines(lines)", "lines"),
        ("now", "now"),
        ("now()", "now"),
        ("today()", "now"),
        ("true and false or null", ""),
        ("[true for true in xs]", "xs"),
        ("isinstance(x, str)", "x"),
        ("isinstance(x, (int, float))", "x"),
        ("date", "date"),
        ("date(date)", "date"),
        ("天气.温度 > 阈值", "天气 阈值"),
        ("max(*xs, *ys)", "xs ys"),
        ("{**a, 'b': c}", "a c"),
        ("[*a, b]", "a b"),
        ("1 + 2", ""),
        ("a if b else c", "a b c"),
        ("a[b:c:d]", "a b c d"),
    ],
)
def test_names_are_those_needed_from_outside(text: str, names: str) -> None:
    assert parse_expression(text).names == frozenset(names.split())


def test_a_path_has_the_tree_that_python_gives_it() -> None:
    for text in ["a", "a.b", "a[0].b", "a['k'][-3].c", "  数据.字段[12].x", 'é["中"].b', "a.b.c.d.e.f[0][1][2]"]:
        ours, pythons = parse_expression(text), ast.parse(text.strip(), mode="eval").body
        assert ast.dump(ours.tree) == ast.dump(pythons)
        start = len(text) - len(text.lstrip())
        for mine, theirs in zip(ast.walk(ours.tree), ast.walk(pythons), strict=True):
            if isinstance(theirs, ast.expr):
                place = ours.place_of(mine)
                segment = ast.get_source_segment(text.strip(), theirs)
                assert place.start is not None
                assert place.start >= start
                assert text[place.start : place.end] == segment


def test_blanks_and_line_ends_around_and_inside_do_not_matter() -> None:
    for text in ["  a + 1  ", "\n a\n  + 1\n", "a +\n 1", "\ta\t+\t1", "a\u3000+\u30001", "\u00a0a + 1", "a\r\n+ 1"]:
        assert parse_expression(text).evaluate({"a": 2}) == 3


def test_a_line_end_inside_does_not_let_brackets_be_closed_twice() -> None:
    for text in ["a) + (b\n", "\na) or (b", "1\n), (2"]:
        with pytest.raises(ExpressionError, match=r"closed that was not opened|unmatched"):
            parse_expression(text)


def test_a_field_may_be_a_keyword_of_python() -> None:
    scope = {"mail": {"from": "ann", "class": {"is": 1}, "import": [5]}}
    assert parse_expression("mail.from").evaluate(scope) == "ann"
    assert parse_expression("mail.class.is + mail.import[0]").evaluate(scope) == 6
    assert parse_expression("'.from' + mail.from + f'{1}.is'").evaluate(scope) == ".fromann1.is"


def test_names_and_fields_keep_their_spelling() -> None:
    # Python folds ｘ to x and ﬁ to fi; the keys of a JSON object are not folded.
    scope = {"ｘ": {"ﬁle": 1, "１": 2}, "x": {"file": 3}}
    assert parse_expression("ｘ.ﬁle").evaluate(scope) == 1
    assert parse_expression("ｘ.ﬁle + 0").evaluate(scope) == 1
    assert parse_expression("x.file + 0").evaluate(scope) == 3
    assert parse_expression("ｘ.ﬁle + 0").names == {"ｘ"}
    assert parse_expression("[ﬁ.ａ for ﬁ in ﬁs]").evaluate({"ﬁs": [{"ａ": 7}]}) == [7]


def test_a_name_is_found_under_the_spelling_that_python_gives_it() -> None:
    assert parse_expression("ｘ.ﬁle").evaluate({"x": {"file": 3}}) == 3
    assert parse_expression("ｘ.ﬁle * 2").evaluate({"x": {"file": 3}}) == 6


def test_expressions_of_one_text_share_their_tree() -> None:
    one, other = parse_expression("a.b + 1", Place(("x",))), parse_expression("a.b + 1", Place(("y",)))
    assert one.tree is other.tree
    assert one.place != other.place


PEP_701 = [
    ("f'{', '.join(xs)}'", "a, b"),
    ('f"{", ".join(xs)}!"', "a, b!"),
    (r"f'{'\n'.join(xs)}'", "a\nb"),
    (r'f"{"\n".join(xs)}" + f"{"；".join(xs)}"', "a\nba；b"),
    ("f'{d['k']:>{d['w']}}|{d['k']!r}'", "   v|'v'"),
    ("[f'{x}{','}' for x in xs]", ["a,", "b,"]),
    ("f'{''.join(xs)}{'{'}{'}'}'", "ab{}"),
    ("f'''{'''x'''}{'a'}'''", "xa"),
    ("f'{d['k'] if d['k'] == 'v' else 'no'}' + 'x'", "vx"),
    ("f'{{{', '.join(xs)}}}'", "{a, b}"),
    ("f'文{d['键']}字{'：'.join(xs)}'", "文值字a：b"),
    ("'f' + f'{'f'}' + 'it\\'s'", "ffit's"),
    ("f'{mail.from + 'x'}'", "mex"),
    ("f'{mail.from}' + '.from'", "me.from"),
]


@pytest.mark.parametrize(("text", "expected"), PEP_701)
def test_f_strings_may_hold_their_own_quotes_on_every_python(text: str, expected: object) -> None:
    scope = {"xs": ["a", "b"], "d": {"k": "v", "w": 4, "键": "值"}, "mail": {"from": "me"}}
    expression = parse_expression(text)
    assert expression.evaluate(scope) == expected
    for node in ast.walk(expression.tree):
        if isinstance(node, ast.Name):
            assert expression.text_of(node) == node.id


def test_a_refusal_in_an_f_string_with_its_own_quotes_points_at_the_text() -> None:
    text = "f'文{', '.join(xs)}{lenn('x')}'"
    with pytest.raises(ExpressionError) as refusal:
        parse_expression(text)
    assert text[refusal.value.start : refusal.value.end] == "lenn"


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message", "help"),
    [
        ("", "no expression", None),
        ("   ", "no expression", None),
        ("a && b", "`&&`", "`and`"),
        ("a || b", "`||`", "`or`"),
        ("!a", "`!`", "`not x`"),
        ("a === b", "`===`", "`==`"),
        ("a !== b", "`!==`", "`!=`"),
        ("a <> b", "`<>`", "`!=`"),
        ("a ? b : c", "`? :`", "`a if test else b`"),
        ("a?.b", "`?.`", "default(a.b, None)"),
        ("a ?? b", "`??`", "default(a, b)"),
        ("a = 5", "gives a name a value", "`==`"),
        ("x => x + 1", "`=>`", None),
        ("$a.b", "`$`", "the name alone"),
        ("${a.b}", "`$`", "the name alone"),
        ("`a`", "backticks", None),
        ("a;", "`;`", None),
        ("a，b", "`，`", "`,`"),
        ("len（a）", "`（`", "`(`"),
        ("a ＞ 5", "`＞`", "`>`"),
        ("“a” + b", "`“`", '`"`'),
        ("a ≥ 5", "`≥`", "`>=`"),
        ("a > 5。", "`。`", None),
        ("return a", "`return` begins a statement", None),
        ("import os", "`import` begins a statement", None),
        ("for x in xs: x", "`for` begins a statement", None),
        ("if a: b", "`if` begins a statement", None),
        ("a b", "cannot be read as an expression", None),
        ("(a", "never closed", None),
        ("a)", "unmatched", None),
        ("'a", "unterminated", None),
        ("a +", "cannot be read", None),
        ("1abc", "", None),
        ("lambda x: x", "lambda", "comprehension"),
        ("(y := 1)", "assign", "step"),
        ("[await x]", "`await`", None),
        ("a is b", "`is`", "`==`"),
        ("a > 1 AND b < 2", "`AND` is not an operator", "`and`"),
        ("a > 1 OR b < 2", "`OR` is not an operator", "`or`"),
        ("NOT a.b", "`NOT` is not an operator", "`not`"),
        ("a.b contains 'x'", "`contains` is not an operator", "`y in x`"),
        ("a.b startsWith 'x'", "`startsWith` is not an operator", "`x.startswith(y)`"),
        ("a.b eq 'x'", "`eq` is not an operator", "`==`"),
        ("a > 1 或 b < 2", "`或` is not an operator", "`or`"),
        ("a > 1 且 b < 2", "`且` is not an operator", "`and`"),
        ("a.b 并且 c.d", "`并且` is not an operator", "`and`"),
        ("a.b 大于 5", "`大于` is not an operator", "`>`"),
        ("气温 低于 5", "`低于` is not an operator", "`<`"),
        ("a.b 大于等于 5", "`大于等于` is not an operator", "`>=`"),
        ("a.b 不包含 'x'", "`不包含` is not an operator", "`y not in x`"),
        ("a BETWEEN 3 AND 5", "`BETWEEN` is not an operator", "`a <= x <= b`"),
        ("this contains text", "cannot be read", None),
        ("a + 'x AND y' 5", "cannot be read", None),
        ("a.b IS NULL", "`IS` is not an operator", "`x is None`"),
        ("a is not 'b'", "`is not`", "`!=`"),
        ("~a", "`~`", "`not`"),
        ("a << 2", "`<<`", None),
        ("a @ b", "`@`", None),
        ("xs[0, 1]", "one value", "a[i][j]"),
        ("{1: 'a'}", "keys of an object are text", '`"1"`'),
        ("{None: 'a'}", "keys of an object are text", None),
        ("b'a'", "bytes", None),
        ("1j", "complex", None),
        ("...", "not a value", None),
        ("a.__class__", "__class__", None),
        ("__a", "__a", None),
        ("xs[0](1)", "by name", None),
        # functions
        ("get_weather('x')", "no function is named `get_weather`", "step of its own"),
        ("lenn(xs)", "no function is named `lenn`", "did you mean `len`?"),
        ("map(get_weather, xs)", "no function is named `map`", "comprehension"),
        ("map(lambda x, y: x, xs, ys)", "no function is named `map`", "comprehension"),
        ("dict.fromkeys(xs, 0)", "no method is named `fromkeys`", "`{x: value for x in xs}`"),
        ("type(x)", "no function is named `type`", "isinstance"),
        ("datetime.now()", "no method is named `now`", None),
        ("[x(1) for x in xs]", "`x` is a value and cannot be called", None),
        ("len()", "`len` needs `x`", "len(x)"),
        ("len(a, b)", "`len` takes 1 argument, but is given 2", "len(x)"),
        ("round(a, digits=2)", "`round` takes no argument `digits`", "did you mean `ndigits`?"),
        ("round(a, 1, ndigits=2)", "`round` is given `ndigits` twice", None),
        ("add(d, 3)", "`add` takes 1 argument, but is given 2", "days=1"),
        ("max()", "`max` needs `values`", None),
        ("sorted(xs, key=lambda a, b: a)", "takes one argument", "lambda x: x.price"),
        ("sorted(xs, key=str.lower)", "field's name or a lambda", "lambda x: x.lower()"),
        ("len(**d)", "`**`", None),
        ("default(*xs)", "one by one", None),
        ("isinstance(x, text)", "a kind is", None),
        ("isinstance(x)", "`isinstance` needs", None),
        ("default(a)", "`default` needs `fallback`", None),
        # methods
        ("xs.append(1)", "`append` would change a value", "xs + [x]"),
        ("xs.sort()", "`sort` would change a value", "sorted(xs)"),
        ("d.update(a=1)", "`update` would change a value", "{**a, **b}"),
        ("t.lowr()", "no method is named `lowr`", "did you mean `lower`?"),
        ("t.toLowerCase()", "no method is named `toLowerCase`", "lower()"),
        ("xs.len()", "no method is named `len`", "len(xs)"),
        ("t.split(1, 2, 3)", "`split` is not called like this", "split(sep?, maxsplit=-1)"),
        ("t.replace('a')", "`replace` is not called like this", "replace(old, new, count=-1)"),
        ("d.get(k=1)", "`get` is not called like this", None),
        ("json.dumps(x)", "no method is named `dumps`", "json(value)"),
        ("t.join(*xs)", "one by one", None),
    ],
)
def test_what_is_no_expression_is_refused_with_help(text: str, message: str, help: str | None) -> None:
    with pytest.raises(ExpressionError) as refusal:
        parse_expression(text)
    error = refusal.value
    assert message in error.message
    if help:
        assert error.help is not None
        assert help in error.help
    assert 0 <= error.start <= error.end <= len(text)


def test_messages_are_one_short_line_in_lower_case() -> None:
    for text in [
        "a b",
        "(a",
        "a && b",
        "'a",
        "f'{'",
        "f'{a'",
        "f'{}'",
        "a.",
        "[a for]",
        "1__0",
        "0777",
        "a if b",
        "*a",
        "f'{a!x}'",
    ]:
        with pytest.raises(ExpressionError) as refusal:
            parse_expression(text)
        message = refusal.value.message
        assert "\n" not in message
        assert not message.endswith(".")
        assert message[0] in "`'\"" or message[0].islower() or message.startswith("f-string"), message
        assert "<unknown>" not in message


def test_a_refusal_points_at_the_smallest_text() -> None:
    for text, wanted in [
        ("len(xs) + getit(3)", "getit"),
        ("阈值 > 0 and lenn(数据)", "lenn"),
        ("'文' + round(a, digits=2)", "digits=2"),
        ("[x for x in xs if x is 'a']", "x is 'a'"),
        ("f'{a} {b.__c__}'", "b.__c__"),
        ("(a +\n  lenn(b))", "lenn"),
        ("  a && b", "&&"),
    ]:
        with pytest.raises(ExpressionError) as refusal:
            parse_expression(text, Place(("steps", 0), 10, 10 + len(text)))
        error = refusal.value
        assert text[error.start : error.end] == wanted
        assert error.place == Place(("steps", 0), 10 + error.start, 10 + error.end)


# --- places ----------------------------------------------------------------------------------------------------------


def test_places_are_in_characters() -> None:
    text = "[城市.温度 for 城市 in 结果 if 城市.名称 != '北京' and len(城市.备注) > 0]"
    expression = parse_expression(text, Place(("steps", 1, "if"), 5, 5 + len(text)))
    calls = [node for node in ast.walk(expression.tree) if isinstance(node, ast.Call)]
    place = expression.place_of(calls[0])
    assert place.path == ("steps", 1, "if")
    assert place.start is not None
    assert place.end is not None
    assert text[place.start - 5 : place.end - 5] == "len(城市.备注)"
    assert expression.text_of(calls[0]) == "len(城市.备注)"


def test_places_of_expressions_over_several_lines() -> None:
    text = "\n  a.b +\n  '文' + c.d"
    expression = parse_expression(text)
    found = {expression.text_of(node) for node in ast.walk(expression.tree) if isinstance(node, ast.Attribute)}
    assert found == {"a.b", "c.d"}


def test_an_expression_cut_from_a_program_keeps_its_places() -> None:
    source = "温度 = 1\nif (温度 + len(列表)) > 5:\n    pass\n"
    test = ast.parse(source).body[1].test  # type: ignore[attr-defined]
    expression = expression_from_node(test, source, Place(start=100, end=100 + len(source)))
    assert expression.text == "(温度 + len(列表)) > 5"
    assert expression.names == {"温度", "列表"}
    assert expression.evaluate({"温度": 3, "列表": [1, 2, 3]}) is True
    for node in ast.walk(test):
        if isinstance(node, ast.expr):
            place = expression.place_of(node)
            assert place.start is not None
            assert source[place.start - 100 : (place.end or 0) - 100] == ast.get_source_segment(source, node)
    with pytest.raises(ExpressionError) as error:
        expression_from_node(ast.parse("x = 1\ny = foo(x)").body[1].value, "x = 1\ny = foo(x)")  # type: ignore[attr-defined]
    assert "foo" in error.value.message
    assert "x = 1\ny = foo(x)"[error.value.start : error.value.end] == "foo"


# --- renaming --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("t + 1", 6),
        ("[t for t in xs]", [1, 2]),
        ("[t + x for x in xs]", [6, 7]),
        ("[x for x in t.ys]", None),
        ("sorted(xs, key=lambda t: -t)", [2, 1]),
        ("sorted(xs, key=lambda x: x * t)", [1, 2]),
        ("f'{t}'", "5"),
        ("max(t, 3) + len(xs)", 7),
        ("{k: t for k in ['a']}", {"a": 5}),
        ("{t: 1 for t in ['a']}", {"a": 1}),
    ],
)
def test_a_name_can_be_replaced_by_a_path(text: str, value: object) -> None:
    expression = parse_expression(text)
    renamed = expression.renamed({"t": "w.temp"})
    assert renamed.text == text
    if "t" in expression.names:
        assert renamed.names == expression.names - {"t"} | {"w"}
    if value is not None:
        assert renamed.evaluate({"w": {"temp": 5}, "xs": [1, 2]}) == value
    assert parse_expression(text).names == expression.names, "the shared tree stays as it was"


# --- what models really write ----------------------------------------------------------------------------------------

PYTHON_REPLIES = ["agentdojo_python.jsonl", "zh_python.jsonl"]


def program(reply: str) -> str:
    fenced = re.search(r"```(?:python)?\n(.*?)```", reply, re.DOTALL)
    return fenced[1] if fenced else reply


def is_step(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name):
            return node.func.id not in FUNCTIONS
        return isinstance(node.func, ast.Attribute) and node.func.attr == "append"
    return False


def largest_expressions(node: ast.AST) -> list[ast.expr]:
    """Return the largest parts of a program that hold no call of a tool."""
    is_value = isinstance(node, ast.expr) and not isinstance(getattr(node, "ctx", None), ast.Store)
    if is_value and not any(is_step(part) for part in ast.walk(node)):
        return [node]
    return [found for child in ast.iter_child_nodes(node) for found in largest_expressions(child)]


@pytest.mark.parametrize("file", PYTHON_REPLIES)
def test_every_expression_of_the_recorded_programs_is_read(file: str) -> None:
    path = DATA / "model_replies" / file
    if not path.exists():
        pytest.skip(f"not run: {path} is absent")
    count = 0
    for line in path.read_text(encoding="utf-8").splitlines():
        source = program(json.loads(line)["reply"])
        for node in largest_expressions(ast.parse(source)):
            if isinstance(node, ast.Name) and node.id in ("ToolError", "Exception"):
                continue
            expression = expression_from_node(node, source)
            assert expression.text == ast.get_source_segment(source, node)
            count += 1
    assert count > 500


def test_every_expression_of_the_recorded_json_plans_is_read() -> None:
    path = DATA / "model_replies" / "agentdojo_json.jsonl"
    if not path.exists():
        pytest.skip(f"not run: {path} is absent")
    count = 0
    for line in path.read_text(encoding="utf-8").splitlines():
        reply = json.loads(line)["reply"]
        fenced = re.search(r"```(?:json)?\n(.*?)```", reply, re.DOTALL)
        stack = [json.loads(fenced[1] if fenced else reply)]
        while stack:
            value = stack.pop()
            if isinstance(value, list):
                stack += value
            elif isinstance(value, dict):
                for key, item in value.items():
                    if key in ("if", "for_each", "data", "collect", "while") and isinstance(item, str):
                        parse_operand(item)
                        count += 1
                    elif key == "let":
                        for operand in item.values():
                            parse_operand(operand)
                            count += 1
                    else:
                        stack.append(item)
    assert count > 80


def test_reading_does_not_need_the_interpreter_to_be_fresh() -> None:
    # Nothing is compiled or executed: reading works where compiling is forbidden.
    code = (
        "import builtins\n"
        "from toolplan.expressions import parse_expression\n"
        "real = compile\n"
        "def guarded(source, name, mode, flags=0, *a, **k):\n"
        "    assert flags & 1024, 'only parsing to a tree is allowed'\n"
        "    return real(source, name, mode, flags, *a, **k)\n"
        "builtins.compile = guarded\n"
        "builtins.eval = builtins.exec = None\n"
        "print(parse_expression('[x.a + 1 for x in xs if x.a > 1]').evaluate({'xs': [{'a': 1}, {'a': 2}]}))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[3]", done.stderr
