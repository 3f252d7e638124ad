"""The clock, fixed and running."""

import datetime as dt

import pytest

from toolplan.errors import ToolFailed
from toolplan.toolkits import clock
from toolplan.toolkits.clock import Day, Moment
from toolplan.tools import ToolSet

SHANGHAI = dt.timezone(dt.timedelta(hours=8))
NINE = dt.datetime(2026, 3, 18, 9, 0, tzinfo=SHANGHAI)


def test_a_fixed_time_is_told_whole_and_in_parts() -> None:
    tools = ToolSet.of(clock(NINE))
    assert tools["current_time"]() == Moment(
        "2026-03-18T09:00:00+08:00", "2026-03-18", "09:00", "Wednesday", "UTC+08:00"
    )
    assert tools["current_date"]() == Day("2026-03-18", "Wednesday", 12)


def test_another_zone_may_have_another_day() -> None:
    tools = ToolSet.of(clock(NINE, language="zh"))
    moment = tools["current_time"](timezone="America/New_York")
    assert (moment.date, moment.time, moment.weekday) == ("2026-03-17", "21:00", "星期二")
    assert moment.timezone == "America/New_York"
    assert tools["current_date"](timezone="America/New_York").date == "2026-03-17"


def test_without_a_time_the_computers_clock_is_read() -> None:
    before = dt.datetime.now().astimezone()
    told = dt.datetime.fromisoformat(ToolSet.of(clock())["current_time"]().iso)
    assert before.replace(microsecond=0) <= told <= dt.datetime.now().astimezone()


def test_a_function_is_asked_at_every_call() -> None:
    moments = iter([NINE, NINE + dt.timedelta(hours=20)])
    tools = ToolSet.of(clock(lambda: next(moments)))
    assert [tools["current_time"]().date for _ in range(2)] == ["2026-03-18", "2026-03-19"]


@pytest.mark.parametrize(
    ("name", "hint"), [("Asia/Shangai", "Asia/Shanghai"), ("london", "Europe/London"), ("../x", "")]
)
def test_an_unknown_zone_fails_and_names_near_ones(name: str, hint: str) -> None:
    with pytest.raises(ToolFailed, match=f"no time zone is named .*{hint}"):
        ToolSet.of(clock(NINE))["current_time"](timezone=name)
