"""Damaged JSON: mended where it has one reading, left alone where it has several."""

from __future__ import annotations

import json

import pytest

from toolplan.parse.mend import Damage, Mended, mend


@pytest.mark.parametrize(
    ("text", "value", "word"),
    [
        ("[1, 2,]", [1, 2], "comma before a closing"),
        ('{"a": 1,}', {"a": 1}, "comma before a closing"),
        ('[{"a": 1},\n]', [{"a": 1}], "comma before a closing"),
        ("[1, // one\n2, /* two */ # three\n3]", [1, 2, 3], "comment"),
        ('{"url": "http://x/#y", "a": 1 // b\n}', {"url": "http://x/#y", "a": 1}, "comment"),
        ("{'a': 'b'}", {"a": "b"}, "other quotes"),
        ("{'a': 'it\\'s \"so\"'}", {"a": 'it\'s "so"'}, "other quotes"),
        ('{"a": """x\n"y" z"""}', {"a": 'x\n"y" z'}, "other quotes"),
        ('{“a”: “b "c" d”}', {"a": 'b "c" d'}, "typographic"),
        ("{“收件人”：“小王”，“主题”：“你好”}", {"收件人": "小王", "主题": "你好"}, "full-width"),
        ("[True, False, None]", [True, False, None], "Python"),
        ("{a: 1, b_2: 2, 中文: 3}", {"a": 1, "b_2": 2, "中文": 3}, "quotes around a key"),
        ("{1: 'a'}", {"1": "a"}, "quotes around a key"),
        ('{"a": "x\ny\tz"}', {"a": "x\ny\tz"}, "line break"),
        ('{"a": "it\\\'s"}', {"a": "it's"}, "apostrophe"),
        ('{"a": "he said "no" twice"}', {"a": 'he said "no" twice'}, "quotes inside"),
        ('["x. "y z" w", "c"]', ['x. "y z" w', "c"], "quotes inside"),
        ('{"a": "他说"好"。", "b": 1}', {"a": '他说"好"。', "b": 1}, "quotes inside"),
        ('[{"a": 1} {"b": 2}]', [{"a": 1}, {"b": 2}], "comma between"),
        ('{"a": 1 "b": 2}', {"a": 1, "b": 2}, "comma between"),
        ('{"a": "x"\n "b": "y"}', {"a": "x", "b": "y"}, "comma between"),
        ("[\u00a01,\u30002]", [1, 2], "unusual space"),
        ('{"a": [], "b": {},}', {"a": [], "b": {}}, "comma before"),
    ],
)
def test_one_reading(text: str, value: object, word: str):
    mended = mend(f"see: {text} end", 5)
    assert isinstance(mended, Mended), mended
    assert json.loads(mended.text) == value
    assert mended.end == 5 + len(text)
    assert any(word in repair for repair in mended.repairs), mended.repairs


def test_sound_text_stays_as_it_is():
    text = '{"a": [1, -2.5e3, true, null, "x\\n\\u00e9\\\\"], "b": {"c": {}}}'
    assert mend(text, 0) == Mended(text, len(text), ())


def test_lines_stay_where_they_were():
    text = "[\n  {'a': 1}, // one\n  /* two\n  lines */ {'a': 2},\n]"
    mended = mend(text, 0)
    assert isinstance(mended, Mended)
    assert mended.text.count("\n") == text.count("\n")
    assert mended.text.index("2") - mended.text.rindex("\n", 0, mended.text.index("2")) == text.index(
        "2"
    ) - text.rindex("\n", 0, text.index("2"))


def test_a_repair_says_where_and_how_often():
    mended = mend("[1,\n{'a': 'b'},\n]", 0)
    assert isinstance(mended, Mended)
    assert mended.repairs == (
        "read other quotes as double quotes (line 2 and 1 more place)",
        "left out a comma before a closing bracket (line 2)",
    )


@pytest.mark.parametrize(
    ("text", "at", "problem"),
    [
        ("[1,,2]", 3, "found `,`"),
        ("[,1]", 1, "found `,`"),
        ('{"a":}', 5, "expected a value"),
        ('{"a" 1}', 5, "expected `:`"),
        ('{"a", "b"}', 4, "expected `:`"),
        ('["a" "b"]', 5, "expected `,` or `]`"),
        ('{"a": "x" "b": "y"}', 10, "expected `,` or `}`"),
        ('{"a": "x, "b": "y"}', 11, "expected `,` or `}`"),
        ('{"a": "say "x", then y"}', 12, "expected `,` or `}`"),
        ('[{"a": {"b": 1, "c": 2}]', 23, "found `]` where `}`"),
        ('{"a": [1, 2}', 11, "found `}` where `]`"),
        ('{"a": "use "x": 1"}', 12, "expected `,` or `}`"),
        ('{"a": "s": {"n": "x"}}', 9, "expected `,` or `}`"),
        ("[city]", 1, "neither a value nor quoted"),
        ("[007]", 1, "neither a value nor quoted"),
        ("[0x1F]", 1, "neither a value nor quoted"),
        ('{"a": "\\d+"}', 7, "`\\d` is not an escape"),
        ('{"a": "\\u12"}', 7, "is not an escape"),
        ("[1 2]", 3, "expected `,` or `]`"),
    ],
)
def test_several_readings_are_left_alone(text: str, at: int, problem: str):
    damage = mend(text, 0)
    assert isinstance(damage, Damage), damage
    assert damage.kind == "broken"
    assert damage.at == at
    assert problem in damage.problem


@pytest.mark.parametrize(
    ("text", "open_marks"),
    [
        ('[{"a": "x', '[{"'),
        ('[{"a": 1}', "["),
        ('[{"a": 1', "[{"),
        ('[{"a":', "[{"),
        ('{"a": [1, 2', "{["),
        ('[{"a": 1}\n```\nmore', "["),
        ("{'a': 'x", '{"'),
    ],
)
def test_a_text_that_was_cut_off_is_never_closed(text: str, open_marks: str):
    damage = mend(text, 0)
    assert isinstance(damage, Damage)
    assert damage.kind == "cut"
    assert "".join(mark for mark, _ in damage.open) == open_marks


def test_every_prefix_of_a_sound_text_is_cut_off():
    text = '{"steps": [{"tool_name": "a", "arguments": {"x": [1, true, "y\\n"], "z": null}}], "answer": "ok"}'
    for end in range(1, len(text)):
        damage = mend(text[:end], 0)
        assert isinstance(damage, Damage), text[:end]
        # A literal cut in the middle (`tru`) is a word that is no value; everything else is open.
        assert damage.kind == "cut" or damage.at < end


def test_an_ellipsis_is_a_gap():
    for text in ("[1, ...]", '{"a": …}', "[\n  ...\n]"):
        damage = mend(text, 0)
        assert isinstance(damage, Damage)
        assert damage.kind == "gap"


def test_an_unescaped_quote_is_explained():
    damage = mend('{"a": "say "x", then y"}', 0)
    assert isinstance(damage, Damage)
    assert damage.help == 'write a quote inside text as \\"'
