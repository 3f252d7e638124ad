"""Dates and times as ISO text."""

from __future__ import annotations

from toolplan.expressions.dates import find_date, format_moment, move
from toolplan.expressions.faults import Fault
from toolplan.expressions.functions.registry import as_moment, as_number, as_text, as_whole, function
from toolplan.expressions.limits import Budget
from toolplan.values import Json

__all__: list[str] = []


@function("date")
def _date(budget: Budget, text: Json) -> str:
    """The day as ISO text (`2026-03-18`) of a date with or without time, or the first date in a text."""
    found = find_date(as_text(text))
    return f"{found.when.year:04}-{found.when.month:02}-{found.when.day:02}"


@function("add")
def _add(
    budget: Budget,
    d: Json,
    *,
    years: Json = 0,
    months: Json = 0,
    weeks: Json = 0,
    days: Json = 0,
    hours: Json = 0,
    minutes: Json = 0,
    seconds: Json = 0,
) -> str:
    """The date or time moved, in its own shape: `add("2026-01-31", months=1)` is `2026-02-28`; negative goes back."""
    moved = move(
        as_moment(d),
        years=as_whole(years, "years"),
        months=as_whole(months, "months"),
        weeks=as_number(weeks, "weeks"),
        days=as_number(days, "days"),
        hours=as_number(hours, "hours"),
        minutes=as_number(minutes, "minutes"),
        seconds=as_number(seconds, "seconds"),
    )
    return moved.text()


@function("days_between")
def _days_between(budget: Budget, start: Json, end: Json) -> int:
    """The number of days from `start` to `end`, whatever the times of day; negative when `end` is earlier."""
    first, last = as_moment(start, 0), as_moment(end, 1)
    if not (first.has_date and last.has_date):
        raise Fault("`days_between` takes dates, not times of day", help="`minutes_between` takes times of day")
    return (last.when.date() - first.when.date()).days


@function("minutes_between")
def _minutes_between(budget: Budget, start: Json, end: Json) -> int | float:
    """The minutes from `start` to `end`, two dates with times or two times of day; negative when `end` is earlier."""
    first, last = as_moment(start, 0), as_moment(end, 1)
    if first.has_date != last.has_date:
        raise Fault("`minutes_between` takes two dates or two times of day, not one of each")
    both_have_zones = bool(first.zone) and bool(last.zone)
    between = last.universal() - first.universal() if both_have_zones else last.when - first.when
    seconds = between.total_seconds()
    return int(seconds // 60) if seconds % 60 == 0 else seconds / 60


@function("weekday")
def _weekday(budget: Budget, d: Json) -> int:
    """The day of the week as a number: Monday is 0, Sunday is 6. Its name is `format_date(d, "%A")`."""
    found = as_moment(d)
    if not found.has_date:
        raise Fault("`weekday` takes a date, not a time of day")
    return found.when.weekday()


@function("format_date")
def _format_date(budget: Budget, d: Json, pattern: Json = "%Y-%m-%d") -> str:
    """The date written after a pattern such as `%d.%m.%Y`, `%-d %B %Y`, `%Y年%m月%d日 %A`, or `YYYY-MM-DD HH:mm`."""
    return format_moment(as_moment(d, 0), as_text(pattern, 1))
