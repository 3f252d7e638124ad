"""Weather from the table that ships."""

import datetime as dt
import time

import pytest

from toolplan.errors import ToolFailed
from toolplan.toolkits import weather
from toolplan.toolkits.weather import cities
from toolplan.tools import ToolSet

WINTER = dt.date(2026, 1, 15)
SPRING = dt.date(2026, 5, 15)


def test_the_table_has_twelve_months_for_many_cities() -> None:
    assert len(cities()) >= 25
    for city in cities():
        assert len(city.temperatures) == len(city.wet) == 12, city.english
        assert all(-40 < mean < 40 for mean in city.temperatures)
        assert all(0 <= share < 1 for share in city.wet)
    names = [name for city in cities() for name in (city.english, city.chinese, *city.other_names)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("name", "date"),
    [
        ("北京", "明天"),
        ("Beijing", "tomorrow"),
        ("beijing", "2026-01-16"),
        ("北京市", "2026-01-16T08:00"),
        ("Peking", " Tomorrow "),
    ],
)
async def test_names_and_dates_may_be_written_in_many_ways(name: str, date: str) -> None:
    get_weather = ToolSet.of(weather(WINTER, language="en"))["get_weather"]
    there = await get_weather(city=name, date=date)
    assert there == await get_weather(city="Beijing", date="2026-01-16")
    assert there.date == "2026-01-16"


async def test_winter_in_beijing_is_cold_and_spring_is_not() -> None:
    winter = [
        await ToolSet.of(weather(WINTER))["get_weather"](city="北京", date=day) for day in ("今天", "明天", "后天")
    ]
    spring = [
        await ToolSet.of(weather(SPRING))["get_weather"](city="北京", date=day) for day in ("今天", "明天", "后天")
    ]
    assert all(day.temperature < 5 for day in winter)
    assert all(day.temperature > 12 for day in spring)
    assert len({day.temperature for day in winter}) == 3
    assert all(day.low < day.temperature < day.high for day in winter + spring)


async def test_seasons_turn_round_south_of_the_equator() -> None:
    get_weather = ToolSet.of(weather(WINTER))["get_weather"]
    assert (await get_weather(city="Sydney")).temperature > (await get_weather(city="London")).temperature + 5


async def test_the_words_follow_the_language_of_the_name() -> None:
    get_weather = ToolSet.of(weather(WINTER))["get_weather"]
    chinese, english = await get_weather(city="哈尔滨"), await get_weather(city="Harbin")
    assert (chinese.city, english.city) == ("哈尔滨", "Harbin")
    assert chinese.condition in {"雪", "晴", "多云", "阴"}
    assert english.condition in {"snow", "clear", "partly cloudy", "overcast"}
    assert (await ToolSet.of(weather(WINTER, language="zh"))["get_weather"](city="Harbin")) == chinese


async def test_all_conditions_occur_in_a_year_and_snow_only_in_the_cold() -> None:
    seen: dict[str, list[float]] = {}
    for offset in range(0, 365, 3):
        day = dt.date(2026, 1, 1) + dt.timedelta(days=offset)
        get_weather = ToolSet.of(weather(day, language="en"))["get_weather"]
        for city in ("Moscow", "Singapore", "Tokyo"):
            found = await get_weather(city=city)
            seen.setdefault(found.condition, []).append(found.temperature)
    assert set(seen) == {
        "snow", "sleet", "rain", "light rain", "thunderstorm", "clear", "partly cloudy", "overcast"
    }  # fmt: skip
    assert max(seen["snow"]) <= 0
    assert min(seen["thunderstorm"]) >= 26


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("Bejing", "near names: Beijing"),
        ("Atlantis", "known are: Beijing, Shanghai"),
        ("重钦", "near names: 重庆"),
        ("", "known are"),
    ],
)
async def test_an_unknown_city_fails_and_lists_near_names(name: str, hint: str) -> None:
    with pytest.raises(ToolFailed, match=hint) as failure:
        await ToolSet.of(weather(WINTER))["get_weather"](city=name)
    assert failure.value.effect_happened is False


@pytest.mark.parametrize("date", ["2026-01-14", "2026-01-30", "2026-02-30", "soon", "15.01.2026"])
async def test_a_day_that_is_not_known_fails(date: str) -> None:
    with pytest.raises(ToolFailed, match="2026-01-15"):
        await ToolSet.of(weather(WINTER))["get_weather"](city="Paris", date=date)


async def test_a_call_can_take_as_long_as_a_service_would() -> None:
    started = time.perf_counter()
    await ToolSet.of(weather(WINTER, seconds_per_call=0.02))["get_weather"](city="Paris")
    assert time.perf_counter() - started >= 0.02
