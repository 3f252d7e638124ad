"""Weather of some cities from a small table that ships: what is typical for the day, not a forecast.

`weather.csv` holds, for each city, its names and approximate monthly means of temperature (°C) and of rain (tenths of
the days). A day's weather lies around the mean of its season, moved by a few degrees that depend on nothing but city
and date, so the same question always has the same answer, winter is cold, and two days differ.
"""

from __future__ import annotations

import asyncio
import csv
import datetime as dt
import difflib
import functools
import hashlib
import importlib.resources
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from toolplan.errors import ToolFailed
from toolplan.tools import Tool, ToolSet, tool

__all__ = ["City", "Weather", "cities", "weather"]

_DAYS_AHEAD = 14
_SPREAD = 4.0
"""How far a day's temperature may lie from the mean of its season, in degrees."""

_WORDS = {"today": 0, "tomorrow": 1, "今天": 0, "今日": 0, "明天": 1, "明日": 1, "后天": 2, "大后天": 3}

_CONDITIONS = {
    "snow": ("snow", "雪"),
    "sleet": ("sleet", "雨夹雪"),
    "rain": ("rain", "雨"),
    "drizzle": ("light rain", "小雨"),
    "storm": ("thunderstorm", "雷阵雨"),
    "clear": ("clear", "晴"),
    "fair": ("partly cloudy", "多云"),
    "overcast": ("overcast", "阴"),
}


@dataclass(frozen=True)
class Weather:
    """The weather of a city on one day. Temperatures are in °C; `temperature` is the day's mean."""

    city: str
    date: str
    condition: str
    temperature: float
    low: float
    high: float


@dataclass(frozen=True)
class City:
    """One line of the table: monthly means of temperature, and of the share of days with rain or snow."""

    english: str
    chinese: str
    other_names: tuple[str, ...]
    temperatures: tuple[float, ...]
    wet: tuple[float, ...]


def weather(
    today: dt.date | Callable[[], dt.date] | None = None,
    *,
    language: Literal["auto", "en", "zh"] = "auto",
    seconds_per_call: float = 0.0,
) -> list[Tool]:
    """Return the tool `get_weather`.

    `today` is the day that "tomorrow" is counted from: the computer's date, a fixed one, or a function that returns
    one. `language` is that of the answers; `auto` means the one in which the city was named. `seconds_per_call` makes
    a call take as long as a remote service would.
    """

    @tool(reads="weather")
    async def get_weather(city: str, date: str = "today") -> Weather:
        """Gets the weather of a city on a day, from today to 14 days ahead.

        Args:
            city: Name of the city, in English or Chinese.
            date: ISO date such as "2026-03-19", or "today" or "tomorrow".
        """
        if seconds_per_call > 0:
            await asyncio.sleep(seconds_per_call)
        start = dt.date.today() if today is None else today() if callable(today) else today
        day = _day(date, start)
        found = _find(city)
        chinese = language == "zh" or (language == "auto" and not city.isascii() and _is_han(city))
        return _weather_of(found, day, chinese=chinese)

    return list(ToolSet.of([get_weather]))


@functools.cache
def cities() -> tuple[City, ...]:
    """Return the table, one entry a city."""
    text = importlib.resources.files("toolplan.toolkits").joinpath("weather.csv").read_text(encoding="utf-8")
    return tuple(
        City(
            english=row["english"],
            chinese=row["chinese"],
            other_names=tuple(row["other_names"].split("/")) if row["other_names"] else (),
            temperatures=tuple(float(value) for value in row["temperatures"].split()),
            wet=tuple(int(value) / 10 for value in row["wet_tenths"].split()),
        )
        for row in csv.DictReader(text.splitlines())
    )


@functools.cache
def _by_name() -> dict[str, City]:
    return {_fold(name): city for city in cities() for name in (city.english, city.chinese, *city.other_names)}


def _find(name: str) -> City:
    known = _by_name()
    folded = _fold(name)
    for candidate in (folded, folded.removesuffix("市"), folded.split(",")[0]):
        if candidate in known:
            return known[candidate]
    near = difflib.get_close_matches(folded, known, n=3, cutoff=0.5)
    chinese = _is_han(name)
    if near:
        names = dict.fromkeys(_name(known[other], chinese=chinese) for other in near)
        hint = f"near names: {', '.join(names)}"
    else:
        hint = f"known are: {', '.join(_name(city, chinese=chinese) for city in cities())}"
    raise ToolFailed(f"no weather for a city named `{name}`; {hint}", effect_happened=False)


def _name(city: City, *, chinese: bool) -> str:
    return city.chinese if chinese else city.english


def _fold(name: str) -> str:
    plain = unicodedata.normalize("NFKD", name.strip().casefold())
    letters = "".join(c for c in plain if not unicodedata.combining(c))
    return letters.replace("'", "").replace("’", "").replace(" ", "")


def _is_han(name: str) -> bool:
    return any("\u3400" <= c <= "\u9fff" for c in name)


def _day(text: str, today: dt.date) -> dt.date:
    word = text.strip().casefold()
    try:
        day = today + dt.timedelta(days=_WORDS[word]) if word in _WORDS else dt.date.fromisoformat(word[:10])
    except ValueError:
        raise ToolFailed(
            f"`{text}` is no date; write an ISO date such as {today.isoformat()}", effect_happened=False
        ) from None
    if not 0 <= (day - today).days <= _DAYS_AHEAD:
        last = today + dt.timedelta(days=_DAYS_AHEAD)
        raise ToolFailed(
            f"no weather for {day.isoformat()}; it is known from {today.isoformat()} to {last.isoformat()}",
            effect_happened=False,
        )
    return day


def _weather_of(city: City, day: dt.date, *, chinese: bool) -> Weather:
    # Four numbers from 0 to 1 that depend on nothing but the city and the day.
    digest = hashlib.sha256(f"{city.english} {day.isoformat()}".encode()).digest()
    chances = [int.from_bytes(digest[i : i + 4]) / 2**32 for i in range(0, 16, 4)]
    mean = round(_of_season(city.temperatures, day) + (chances[0] + chances[1] - 1) * _SPREAD, 1)
    half = 2.5 + 3 * chances[2]
    wet = _of_season(city.wet, day)
    kind = _condition(chances[3], wet, mean)
    return Weather(
        city=_name(city, chinese=chinese),
        date=day.isoformat(),
        condition=_CONDITIONS[kind][1 if chinese else 0],
        temperature=mean,
        low=round(mean - half, 1),
        high=round(mean + half, 1),
    )


def _condition(chance: float, wet: float, temperature: float) -> str:
    if chance < wet:
        if temperature <= 0:
            return "snow"
        if temperature <= 2:
            return "sleet"
        if temperature >= 26 and chance < wet / 2:
            return "storm"
        return "rain" if chance < wet / 2 else "drizzle"
    dry = (chance - wet) / (1 - wet)
    return "clear" if dry < 0.45 else "fair" if dry < 0.8 else "overcast"


def _of_season(monthly: tuple[float, ...], day: dt.date) -> float:
    """Return the mean for a day, on the straight line between the middles of its month and the next one."""
    distance = (day.day - 15) / 30
    other = monthly[(day.month - 1 + (1 if distance > 0 else -1)) % 12]
    return monthly[day.month - 1] * (1 - abs(distance)) + other * abs(distance)
