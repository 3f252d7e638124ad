"""The vocabulary: numbers in text, dates, readers of text, and what the reference says of each word."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolplan.errors import EvaluationError
from toolplan.expressions import parse_expression
from toolplan.expressions.functions import FUNCTIONS
from toolplan.expressions.methods import METHODS

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "expressions.md"


def value(text: str, **scope: Any) -> Any:
    return parse_expression(text).evaluate(scope)


# --- numbers in text -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3°C", 3),
        ("-7°C", -7),
        ("气温 -7°C", -7),
        ("气温-7", -7),
        ("−4", -4),
        ("－4", -4),
        ("+1.25%", 1.25),
        ("12%", 12),
        ("34.5 ppt", 34.5),
        ("￥3,280.00", 3280),
        ("¥3280", 3280),
        ("￥1.2万", 12000),
        ("128.6万", 1286000),
        ("1.5亿", 150000000),
        ("1.82万亿", 1820000000000),
        ("3千", 3000),
        ("5百万", 5000000),
        ("1亿2000万", 120000000),
        ("2万5千", 25000),
        ("5千克", 5),
        ("3千米", 3),
        ("１２３", 123),
        ("１，２３４．５", 1234.5),
        ("1,234,567.89", 1234567.89),
        ("1,234", 1234),
        ("1,23", 1),
        ("1,2345", 1),
        ("有3，200人", 3),
        ("-￥5", -5),
        ("$-5", -5),
        ("$2.1B", 2100000000),
        ("$3.2M", 3200000),
        ("12.5k followers", 12500),
        ("5km", 5),
        ("512B", 512),
        ("5GB", 5),
        ("4.5 million", 4500000),
        ("2 billion users", 2000000000),
        ("10-20", 10),
        ("A-7", 7),
        ("(3) -2", 3),
        ("零下3度", -3),
        ("零下 3.5", -3.5),
        ("今天零下约3度", -3),
        ("零下摄氏 3 度", -3),
        ("零上3度", 3),
        ("负3", -3),
        ("負 3", -3),
        ("正负3", 3),
        ("住宿自负300元", 300),
        ("2胜3负4平", 2),
        ("minus 3 degrees", -3),
        ("3°C below zero", -3),
        ("3 degrees Celsius below zero", -3),
        ("-3 below the mean", -3),
        ("–3°C", -3),
        ("三", 3),
        ("负三", -3),
        ("零下十二度", -12),
        ("三点五", 3.5),
        ("三百零五", 305),
        ("三千五百", 3500),
        ("一亿二千万", 120000000),
        ("二〇二六", 2026),
        ("十", 10),
        ("一百一十", 110),
        ("1.234,56", 1234.56),
        ("1.234.567,8 EUR", 1234567.8),
        ("-1.234,56 €", -1234.56),
        ("1.234.567.890,5", 1234567890.5),
        ("12,50 €", 12.5),
        ("€ 12,50", 12.5),
        ("€12,500", 12500),
        ("1'234.50", 1234.5),
        ("1\u00a0234\u202f567", 1234567),
        ("0.123,45", 0.123),
        ("2026-01-02: 7°C", 7),
        ("1月2日气温零下5度", -5),
        ("at 09:30 it had 4°C", 4),
        ("python 3.11.2 has 5 bugs", 5),
        ("2026年", 2026),
        (".5", 0.5),
        ("0.1", 0.1),
        ("1e3", 1000),
        ("1e30", 1e30),
        ("6.02e23", 6.02e23),
        ("007", 7),
        ("3.0", 3),
        ("no 3 of 5", 3),
        ("12345678901234567890123", 12345678901234567890123),
    ],
)
def test_the_first_number_in_a_text(text: str, expected: float) -> None:
    found = value("number(t)", t=text)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-02",
        "2026/1/2",
        "02.01.2026",
        "2026年1月2日",
        "2026-01-02T09:30:00+08:00",
        "2026-01-02 09:30",
        "12:30",
        "v1.2.3",
        "192.168.1.1",
        "138-0013-8000",
        "010-12345678",
        "+86 138 0013 8000",
    ],
)
def test_dates_versions_and_telephone_numbers_are_no_numbers(text: str) -> None:
    with pytest.raises(EvaluationError, match="there is no number") as raised:
        value("number(t)", t=text)
    assert "is a date, a time, a version" in (raised.value.help or "")
    assert value("number(t, None)", t=text) is None
    assert value("find_numbers(t)", t=text + ", 5") == [5]


@pytest.mark.parametrize(
    "text", ["一般", "万一", "十分", "一万二", "百三", "三千万亿千", "一二十", "气温三度", "零下", "点五"]
)
def test_words_with_chinese_numerals_are_no_numbers(text: str) -> None:
    assert value("number(t, None)", t=text) is None


def test_a_comma_with_two_readings_is_refused() -> None:
    with pytest.raises(EvaluationError, match="one number or two"):
        value("number('1.234,567')")


def test_a_number_in_two_kinds_of_numerals_is_refused() -> None:
    with pytest.raises(EvaluationError, match="`三万5` begins in Chinese numerals"):
        value("number('共三万5千元')")
    assert value("number('3万5千')") == 35000


def test_number_of_other_values() -> None:
    assert value("number(5)") == 5
    assert value("number(2.5)") == 2.5
    assert value("number('none', 0)") == 0
    assert value("number('none', None)") is None
    assert value("number(z, 1)", z=None) == 1
    for text in ["number('none')", "number(z)", "number(True)", "number([1])"]:
        with pytest.raises(EvaluationError):
            value(text, z=None)


@given(st.integers(-(10**12), 10**12))
def test_number_reads_back_what_was_written(n: int) -> None:
    for written in [str(n), f"{n:,}", f" {n} 元", f"约{n}", f"{n}°C", f"￥{n}"]:
        assert value("number(t)", t=written) == n


@given(st.floats(-1e9, 1e9, allow_nan=False).map(lambda x: round(x, 3)))
def test_number_reads_back_fractions(x: float) -> None:
    for written in [f"{x:.3f}", f"{x:,.3f} kg"]:
        assert value("number(t)", t=written) == x


@given(st.text())
def test_number_never_fails_otherwise(text: str) -> None:
    value("number(t, 0)", t=text)
    value("find_numbers(t)", t=text)


def test_find_numbers() -> None:
    assert value("find_numbers('3 apples, -2.5 and 1.2万; A-7, 10-20')") == [3, -2.5, 12000, 7, 10, 20]
    assert value("find_numbers('none')") == []
    assert value("find_numbers('3 - 5; 3 -5; 零下3到-5度; 3,5,7')") == [3, 5, 3, -5, -3, -5, 3, 5, 7]
    assert value("sum(find_numbers('￥1,200 + ￥300.50'))") == 1500.5


# --- readers of text -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see https://a.org/x?y=1&z=2.", ["https://a.org/x?y=1&z=2"]),
        ("（https://a.example/路径）、http://b.cn。", ["https://a.example/路径", "http://b.cn"]),
        ("[link](https://a.org/b_(c)) and <https://d.org>", ["https://a.org/b_(c)", "https://d.org"]),
        ("HTTP://UP.ORG!!", ["HTTP://UP.ORG"]),
        ("ftp://a.org nothing.org", []),
    ],
)
def test_find_urls(text: str, expected: list[str]) -> None:
    assert value("find_urls(t)", t=text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("write to ann.b+c@mail.example.org, or bob@x.cn.", ["ann.b+c@mail.example.org", "bob@x.cn"]),
        ("邮箱是me@example.com，抄送you@example.com。", ["me@example.com", "you@example.com"]),
        ("<a@b.co>;c@d", ["a@b.co"]),
        ("@handle and a@b", []),
    ],
)
def test_find_emails(text: str, expected: list[str]) -> None:
    assert value("find_emails(t)", t=text) == expected


def test_lines() -> None:
    assert value("lines(t)", t="a\n\n  b\r\nc") == ["a", "", "  b", "c"]
    assert value("lines('')") == []


# --- dates -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-03-18", "2026-03-18"),
        ("2026-3-8", "2026-03-08"),
        ("2026-03-18T09:00:00+08:00", "2026-03-18"),
        ("2026-03-18 09:00", "2026-03-18"),
        ("2026/3/18", "2026-03-18"),
        ("2026.03.18", "2026-03-18"),
        ("2026年3月18日", "2026-03-18"),
        ("２０２６年３月１８日", "2026-03-18"),
        ("2026年3月18日 下午3点半", "2026-03-18"),
        ("会议在2026年3月18日下午举行", "2026-03-18"),
        ("18 March 2026", "2026-03-18"),
        ("March 18, 2026", "2026-03-18"),
        ("Mar. 18th, 2026", "2026-03-18"),
        ("due on 2026-03-18, or later", "2026-03-18"),
        ("20260318", "2026-03-18"),
    ],
)
def test_the_day_of_a_text(text: str, expected: str) -> None:
    assert value("date(t)", t=text) == expected


@pytest.mark.parametrize("text", ["03/04/2026", "tomorrow", "2026-13-01", "2026-02-30", "09:00", "", "12345678901"])
def test_what_is_no_date_is_refused(text: str) -> None:
    with pytest.raises(EvaluationError, match=r"is not a date|without a date"):
        value("date(t)", t=text)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("add('2026-03-18', days=2)", "2026-03-20"),
        ("add('2026-03-18', days=-2)", "2026-03-16"),
        ("add('2026-03-18', weeks=1, days=1)", "2026-03-26"),
        ("add('2026-01-31', months=1)", "2026-02-28"),
        ("add('2024-02-29', years=1)", "2025-02-28"),
        ("add('2026-12-31', months=2)", "2027-02-28"),
        ("add('2026-03-31', months=-13)", "2025-02-28"),
        ("add('2026-11-15', months=1)", "2026-12-15"),
        ("add('9999-12-01', days=30)", "9999-12-31"),
        ("add('2026-03-18T09:00', minutes=90)", "2026-03-18T10:30"),
        ("add('2026-03-18 09:00', hours=15)", "2026-03-19 00:00"),
        ("add('2026-03-18T09:00:30', minutes=1)", "2026-03-18T09:01:30"),
        ("add('2026-03-18T09:00:00.250', seconds=1)", "2026-03-18T09:00:01.250"),
        ("add('2026-03-18T09:00:00+08:00', days=1)", "2026-03-19T09:00:00+08:00"),
        ("add('2026-03-18T09:00Z', hours=1)", "2026-03-18T10:00Z"),
        ("add('2026-03-18', hours=3)", "2026-03-18T03:00"),
        ("add('23:30', minutes=45)", "00:15"),
        ("add('00:15', minutes=-30)", "23:45"),
        ("add('2026年3月18日', days=1)", "2026-03-19"),
        ("add(date(now), days=14)", "2026-04-01"),
    ],
)
def test_moving_a_date_keeps_its_shape(call: str, expected: str) -> None:
    assert value(call, now="2026-03-18T09:00:00+08:00") == expected


@pytest.mark.parametrize(
    "call", ["add('9999-12-31', days=1)", "add('2026-03-18', months=1.5)", "add('09:00', days=1)", "add('x', days=1)"]
)
def test_moving_what_cannot_be_moved(call: str) -> None:
    with pytest.raises(EvaluationError):
        value(call)


@given(st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1)), st.integers(-5000, 5000))
def test_days_are_counted_as_the_calendar_does(day: dt.date, count: int) -> None:
    later = day + dt.timedelta(days=count)
    scope = {"a": day.isoformat(), "b": later.isoformat(), "n": count}
    assert value("add(a, days=n)", **scope) == later.isoformat()
    assert value("days_between(a, b)", **scope) == count
    assert value("weekday(a)", **scope) == day.weekday()


@given(st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)), st.integers(-100_000, 100_000))
def test_minutes_are_counted_as_the_clock_does(moment: dt.datetime, count: int) -> None:
    moment = moment.replace(second=0, microsecond=0)
    later = moment + dt.timedelta(minutes=count)
    scope = {"a": moment.isoformat(timespec="minutes"), "b": later.isoformat(timespec="minutes"), "n": count}
    assert value("add(a, minutes=n)", **scope) == scope["b"]
    assert value("minutes_between(a, b)", **scope) == count


def test_minutes_between() -> None:
    assert value("minutes_between('09:00', '10:30')") == 90
    assert value("minutes_between('10:30', '09:00')") == -90
    assert value("minutes_between('2026-03-18T09:00+08:00', '2026-03-18T02:00Z')") == 60
    assert value("minutes_between('2026-03-18T09:00:00', '2026-03-18T09:00:30')") == 0.5
    assert value("days_between('2026-03-18T23:00', '2026-03-19T01:00')") == 1
    with pytest.raises(EvaluationError, match="two dates or two times of day"):
        value("minutes_between('2026-03-18', '09:00')")


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("%Y-%m-%d", "2026-03-08"),
        ("%d.%m.%Y", "08.03.2026"),
        ("%-d/%-m/%y", "8/3/26"),
        ("%B %-d, %Y", "March 8, 2026"),
        ("%a %d %b", "Sun 08 Mar"),
        ("%Y年%m月%d日", "2026年03月08日"),
        ("%Y年%-m月%-d日 %A", "2026年3月8日 星期日"),
        ("%m月%d日（%a）%p%I:%M", "03月08日（周日）下午02:05"),
        ("%H:%M:%S", "14:05:00"),
        ("%I:%M %p", "02:05 PM"),
        ("%j %u %w %V %G", "067 7 0 10 2026"),
        ("100%% %F %T %R", "100% 2026-03-08 14:05:00 14:05"),
        ("YYYY-MM-DD HH:mm", "2026-03-08 14:05"),
        ("YYYY年M月D日", "2026年3月8日"),
        ("DD.MM.YYYY", "08.03.2026"),
    ],
)
def test_formatting_a_date(pattern: str, expected: str) -> None:
    assert value("format_date(d, p)", d="2026-03-08T14:05", p=pattern) == expected
    if "%" in pattern and "%%" not in pattern:
        assert value("format(d, p)", d="2026-03-08T14:05", p=pattern) == expected


@given(st.datetimes(dt.datetime(1000, 1, 1), dt.datetime(9000, 1, 1)))
def test_formatting_agrees_with_the_c_library(moment: dt.datetime) -> None:
    moment = moment.replace(microsecond=0)
    for letter in "YymdHIMSjuwVGABabpF":
        ours = value("format_date(d, p)", d=moment.isoformat(), p="%" + letter)
        assert ours == moment.strftime("%" + letter), letter


@pytest.mark.parametrize("pattern", ["%Q", "%", "plain", "%c", "%x", "%s", "%" + "Y" * 300, "%-"])
def test_a_pattern_that_is_not_one_is_refused(pattern: str) -> None:
    with pytest.raises(EvaluationError):
        value("format_date('2026-03-08', p)", p=pattern)


def test_weekdays_begin_with_monday() -> None:
    assert [value("weekday(add('2026-03-16', days=n))", n=n) for n in range(7)] == list(range(7))
    assert value("format_date('2026-03-18', '%A')") == "Wednesday"


# --- methods that differ from Python's -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("'a-b_c'.split('-')", ["a", "b_c"]),
        ("'a b  c'.split(maxsplit=1)", ["a", "b  c"]),
        ("'abc'.startswith(('x', 'a'))", True),
        ("'abc'.endswith(['c'])", True),
        ("'{:>5}|{!r}'.format(3, 'x')", "    3|'x'"),
        ("'{{}} {a}'.format(a=1)", "{} 1"),
        ("{'a': 1}.get('b', 2)", 2),
        ("{'a': 1}.copy()", {"a": 1}),
        ("[1].copy()", [1]),
        ("'一二'.isnumeric()", True),
    ],
)
def test_methods(call: str, expected: Any) -> None:
    assert value(call) == expected


# --- the reference ---------------------------------------------------------------------------------------------------


def rows(kind: str) -> list[str]:
    """Return the rows of the reference's table of functions, or of one kind's methods, as the code has them."""
    words: list[Any] = list(FUNCTIONS.values())
    if kind != "functions":
        words = [m for by_kind in METHODS.values() for m in by_kind.values() if m.kind.__name__ == kind]
    return [f"| `{word.signature}` | {word.summary} |" for word in sorted(words, key=lambda word: word.name)]


@pytest.mark.parametrize("kind", ["functions", "str", "list", "dict"])
def test_the_reference_says_what_the_code_says(kind: str, request: pytest.FixtureRequest) -> None:
    page = PAGE.read_text(encoding="utf-8")
    table = re.search(rf"(<!-- words: {kind} -->\n\| [^\n]*\n\| [^\n]*\n)((?:\|[^\n]*\n)*)", page)
    assert table is not None
    if request.config.getoption("--update-golden"):
        page = page[: table.start(2)] + "\n".join(rows(kind)) + "\n" + page[table.end(2) :]
        PAGE.write_text(page, encoding="utf-8")
        return
    assert table[2].splitlines() == rows(kind)


def test_every_word_has_a_summary_on_one_line() -> None:
    for kind in ["functions", "str", "list", "dict"]:
        for row in rows(kind):
            assert re.fullmatch(r"\| `[^|`]+` \| [A-Z`(][^|]*[.)] \|", row), row
