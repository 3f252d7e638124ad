"""Drawing: marks stand under what they mean, in wide characters, on long lines, over several lines."""

from __future__ import annotations

import json

import pytest

from toolplan.diagnostics import NOWHERE, Diagnostic, Mark, Place, Severity, Source, render, render_all


def marks(text: str, start: int, end: int) -> tuple[str, str]:
    """Return the drawn source line and the line of marks below it."""
    lines = render(Diagnostic("TP999", "message", Place(start=start, end=end), "label"), Source(text)).split("\n")
    return lines[3], lines[4]


def test_the_parts_in_order() -> None:
    diagnostic = Diagnostic(
        "TP999",
        "something is wrong",
        Place(start=11, end=14),
        "here",
        others=(Mark(Place(start=0, end=5), "and here"),),
        notes=("a fact", "two\nlines"),
        help="do this",
    )
    assert render(diagnostic, Source("first line\ntwo three", "plan.py")) == (
        "error[TP999]: something is wrong\n"
        " --> plan.py:2:1\n"
        "  |\n"
        "1 | first line\n"
        "  | ----- and here\n"
        "2 | two three\n"
        "  | ^^^ here\n"
        "  = note: a fact\n"
        "  = note: two\n"
        "          lines\n"
        "  = help: do this"
    )


def test_two_marks_on_one_line_show_it_once() -> None:
    text = "abc def"
    diagnostic = Diagnostic("TP999", "m", Place(start=4, end=7), "b", others=(Mark(Place(start=0, end=3), "a"),))
    assert render(diagnostic, Source(text)).count("1 | abc def") == 1


@pytest.mark.parametrize(
    ("text", "word", "below"),
    [
        ("w = get(城市)", "城市", "        ^^^^ label"),
        ("天气 = get(city)", "get", "       ^^^ label"),
        ("e\u0301 = x", "x", "    ^ label"),
        ("ｆｕｌｌ = x", "x", "           ^ label"),
        ("\tx = y", "y", "     ^ label"),
    ],
)
def test_marks_stand_under_wide_characters(text: str, word: str, below: str) -> None:
    start = text.index(word)
    assert marks(text, start, start + len(word))[1] == f"  | {below}"


def test_a_long_line_is_cut_around_the_mark() -> None:
    text = "a" * 500 + "MARKED" + "b" * 500
    line, below = marks(text, 500, 506)
    assert len(line) < 200
    assert line[below.index("^") : below.index("^") + 6] == "MARKED"
    assert line.count("…") == 2


def test_a_mark_over_several_lines_marks_the_first() -> None:
    line, below = marks("first\nsecond", 2, 9)
    assert (line, below) == ("1 | first", "  |   ^^^ label")


def test_an_empty_place_is_one_mark_wide() -> None:
    assert marks("abc", 3, 3)[1] == "  |    ^ label"


def test_gutters_fit_the_largest_line_number() -> None:
    text = "\n" * 99 + "x"
    assert render(Diagnostic("TP999", "m", Place(start=99, end=100)), Source(text)).split("\n")[1:3] == [
        "   --> plan:100:1",
        "    |",
    ]


def test_without_a_source_the_path_remains() -> None:
    assert render(Diagnostic("TP999", "m", Place(("steps", 1)))) == "error[TP999]: m\n--> plan  ($.steps[1])"
    assert render(Diagnostic("TP999", "m", NOWHERE, severity=Severity.WARNING)) == "warning[TP999]: m"


def test_all_of_them_with_a_blank_line_between() -> None:
    one = Diagnostic("TP999", "m")
    assert render_all([one, one], None) == "error[TP999]: m\n\nerror[TP999]: m"


# --- JSON plans -----------------------------------------------------------------------------------------------------

PLAN = '[\n {"tool_name": "send", "arguments": {"to": "a\\n\\u00fc{x.mail}", "城市": "北京"}}\n]'
SOURCE = Source(PLAN, json=True)


@pytest.mark.parametrize(
    ("place", "marked"),
    [
        (Place((0, "tool_name")), '"send"'),
        (Place((0, "arguments", "to"), key=True), '"to"'),
        (Place((0, "arguments", "to"), 4, 10), "x.mail"),
        (Place((0, "arguments", "to"), 1, 3), "\\n\\u00fc"),
        (Place((0, "arguments", "城市")), '"北京"'),
        (Place((0, "arguments", "城市"), 0, 2), "北京"),
        (Place((0, "arguments", "gone")), '"arguments"'),
        (Place((0, "result_variable")), PLAN[PLAN.index("{") : PLAN.rindex("}") + 1]),
    ],
)
def test_places_in_a_json_plan(place: Place, marked: str) -> None:
    found = SOURCE.locate(place)
    assert found is not None
    assert PLAN[slice(*found)] == marked


def test_paths_are_written_as_people_write_them() -> None:
    assert Place(("steps", 0, "arguments", "to")).json_path() == "$.steps[0].arguments.to"
    assert Place(("a b", "城市")).json_path() == "$['a b'].城市"
    assert Place(start=1, end=2).json_path() is None


# --- the same facts as data -----------------------------------------------------------------------------------------


def test_the_facts_without_drawing() -> None:
    diagnostic = Diagnostic(
        "TP203",
        "no such name",
        Place((0, "arguments", "to"), 4, 10),
        "not defined",
        others=(Mark(Place((0, "tool_name")), "another"),),
        notes=("fact",),
        help="do this",
    )
    assert diagnostic.to_dict(SOURCE) == {
        "code": "TP203",
        "severity": "error",
        "message": "no such name",
        "path": "$[0].arguments.to",
        "line": 2,
        "column": PLAN.split("\n")[1].index("x.mail") + 1,
        "text": "x.mail",
        "others": [{"path": "$[0].tool_name", "line": 2, "column": 16, "text": '"send"', "label": "another"}],
        "notes": ["fact"],
        "help": "do this",
    }


def test_the_facts_of_a_text_notation_have_no_path() -> None:
    facts = Diagnostic("TP201", "m", Place(start=0, end=1), severity=Severity.WARNING).to_dict(Source("x = 1"))
    assert facts == {"code": "TP201", "severity": "warning", "message": "m", "line": 1, "column": 1, "text": "x"}


def test_the_facts_are_json() -> None:
    json.dumps(Diagnostic("TP201", "m", NOWHERE).to_dict())
