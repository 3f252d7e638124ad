"""The numbers and lengths of time that a request says."""

from __future__ import annotations

import time

import pytest

from toolplan.policy.quantities import durations_said, numbers_said, seconds_of


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("one ticket please", [1]),
        ("delete the red one", []),
        ("one of them", []),
        ("which one is it", []),
        ("one is enough", []),
        ("a dozen eggs", [12]),
        ("half a dozen", [6]),
        ("two dozen eggs", [24]),
        ("2 dozen", [2, 24]),
        ("dozens of eggs", []),
        ("fifteen", [15]),
        ("twenty-five", [25]),
        ("pay one hundred and five", [105]),
        ("a hundred", [100]),
        ("hundreds of people", []),
        ("some hundred people", []),
        ("a few hundred", []),
        ("two thousand and twenty-six", [2026]),
        ("half a million", [500_000]),
        ("two and a half million", [0.5, 2_500_000]),
        ("twenty twenty", []),
        ("one two three", []),
        ("two or three", [2, 3]),
        ("twenty or so", []),
        ("thirty-odd", []),
        ("at five o'clock", []),
        ("half past two", []),
        ("half the amount", [0.5]),
        ("a half-day", []),
        ("someone", []),
        ("fifteen percent", [0.15, 15]),
        ("15 %", [0.15, 15]),
        ("19.5%", [0.195, 19.5]),
        ("1½ hours", [1.5]),
        ("½", [0.5]),
        ("10² m", [10]),
        ("1.5k", [1500]),
        ("5M", [5_000_000]),
        ("$1,200.50", [1200.5]),
        ("¥300", [300]),
        ("the second invoice", []),
    ],
)
def test_numbers_are_said_in_digits_and_in_words(text: str, numbers: list[float]) -> None:
    assert sorted(numbers_said(text)) == numbers


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("转两百块", [200]),
        ("一百二十万元", [1_200_000]),
        ("三个人", [3]),
        ("一元", [1]),
        ("十分钟", [10]),
        ("百分之十五", [0.15, 15]),
        ("打三点五折", [3.5]),
        ("一千零一夜", [1001]),
        ("3千块", [3000]),
        ("1.5万", [15_000]),
        ("两百", [200]),
        ("三", [3]),
        ("一般来说", []),
        ("万一", []),
        ("三明治", []),
        ("几百块", []),
        ("几十万", []),
        ("好几十个", []),
        ("二十来个", []),
        ("三十多人", []),
        ("两三个", []),
        ("一万二", []),
        ("发一封邮件", []),
        ("十分好", []),
        ("第十二页", []),
        ("星期三", []),
        ("十二月三十号", []),
        ("三点五十分", []),
        ("八点三十分", []),
        ("两点半", []),
        ("千万别付款", []),
        ("百万富翁", []),
        ("一下", []),
        ("三元和五个", [3, 5]),
        ("两百块三百元", [200, 300]),
        ("一起", []),
    ],
)
def test_chinese_numerals_are_read_where_they_can_be_nothing_else(text: str, numbers: list[float]) -> None:
    assert sorted(numbers_said(text)) == numbers


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("an hour", [60]),
        ("1 hour 30 minutes", [90]),
        ("half an hour", [30]),
        ("an hour and a half", [90]),
        ("one and a half hours", [90]),
        ("1.5h", [90]),
        ("1½ hours", [90]),
        ("90 min", [90]),
        ("a four-hour meeting", [240]),
        ("twenty-five minutes", [25]),
        ("30 minutes later, for 2 hours", [30, 120]),
        ("a few hours", []),
        ("hours", []),
        ("一个半小时", [90]),
        ("半小时", [30]),
        ("半个小时", [30]),
        ("两个小时", [120]),
        ("一小时三十分钟", [90]),
        ("45分钟", [45]),
        ("两个半小时", [150]),
        ("几个小时", []),
        ("1天", [1440]),
        ("20 euros an hour", []),
        ("twice a day", []),
        ("give me a second", []),
        ("half a day", []),
        ("几十分钟", []),
        ("十几分钟", []),
        ("三十多分钟", []),
        ("第三天", []),
        ("周三天气", []),
        ("三周年", []),
        ("等了半天", []),
        ("两天半", [3600]),
    ],
)
def test_lengths_of_time(text: str, minutes: list[int]) -> None:
    assert sorted(length / 60 for length in durations_said(text)) == minutes


@pytest.mark.parametrize(
    ("name", "schema", "seconds"),
    [
        ("duration_minutes", {}, 60),
        ("durationMinutes", {}, 60),
        ("duration", {"description": "in minutes"}, 60),
        ("length", {"description": "minutes, at most 24 hours"}, None),
        ("时长", {"description": "单位：分钟"}, 60),
        ("amount", {"description": "money"}, None),
        ("timeout_s", {}, None),
        ("hours", {}, 3600),
        ("minimum", {}, None),
        ("duration_minutes", {"description": "at most 24 hours"}, 60),
    ],
)
def test_what_an_argument_counts_time_in(name: str, schema: dict[str, str], seconds: int | None) -> None:
    assert seconds_of(name, schema) == seconds


@pytest.mark.parametrize(
    "piece", ["one ", "1", "一", "十", "½", "1.", "a hundred and ", "half a ", "点五", "1 hour ", "几", "%"]
)
def test_long_texts_take_no_time(piece: str) -> None:
    text = piece * (60_000 // len(piece))
    began = time.perf_counter()
    numbers_said(text)
    durations_said(text)
    assert time.perf_counter() - began < 5  # a tenth of that on an idle machine; hours if it were quadratic
