"""The clock: what time and what day it is, here or in another time zone."""

from __future__ import annotations

import datetime as dt
import difflib
import zoneinfo
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from toolplan.errors import ToolFailed
from toolplan.tools import Tool, ToolSet, tool

__all__ = ["Day", "Moment", "clock"]

_WEEKDAYS = {
    "en": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "zh": ("星期一", "星期二", "星期三", "星期四", "星期五", "星期六", "星期日"),
}


@dataclass(frozen=True)
class Moment:
    """A point in time. `iso` is the whole of it, with the offset from UTC."""

    iso: str
    date: str
    time: str
    weekday: str
    timezone: str


@dataclass(frozen=True)
class Day:
    """A day of the calendar. `week` is the ISO week of the year."""

    date: str
    weekday: str
    week: int


def clock(
    now: dt.datetime | Callable[[], dt.datetime] | None = None, *, language: Literal["en", "zh"] = "en"
) -> list[Tool]:
    """Return the tools `current_time` and `current_date`.

    `now` stands in for the computer's clock: a fixed time, or a function that returns one. A time without a zone is
    local time. `language` is that of the weekdays' names.
    """

    def read(timezone: str | None) -> dt.datetime:
        moment = dt.datetime.now() if now is None else now() if callable(now) else now
        return moment.astimezone(_zone(timezone) if timezone else moment.tzinfo)

    @tool(reads="clock")
    def current_time(timezone: str | None = None) -> Moment:
        """Tells what time it is.

        Args:
            timezone: An IANA name such as "Asia/Shanghai"; local time without it.
        """
        moment = read(timezone)
        return Moment(
            iso=moment.isoformat(timespec="seconds"),
            date=moment.date().isoformat(),
            time=moment.strftime("%H:%M"),
            weekday=_WEEKDAYS[language][moment.weekday()],
            timezone=timezone or str(moment.tzinfo),
        )

    @tool(reads="clock")
    def current_date(timezone: str | None = None) -> Day:
        """Tells what day it is today.

        Args:
            timezone: An IANA name such as "Asia/Shanghai"; local time without it.
        """
        day = read(timezone).date()
        return Day(day.isoformat(), _WEEKDAYS[language][day.weekday()], day.isocalendar().week)

    return list(ToolSet.of([current_time, current_date]))


def _zone(name: str) -> zoneinfo.ZoneInfo:
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        known = zoneinfo.available_timezones()
        near = (
            difflib.get_close_matches(name, sorted(known), n=3)
            or [zone for zone in sorted(known) if name.casefold().replace(" ", "_") in zone.casefold()][:3]
        )
        hint = f"; near names: {', '.join(near)}" if near else "; write an IANA name such as Asia/Shanghai"
        raise ToolFailed(f"no time zone is named `{name}`{hint}", effect_happened=False) from None
