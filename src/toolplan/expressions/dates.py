"""Dates as ISO text: reading them, moving them, writing them.

Results of tools are JSON, so a date is text. What is read keeps its shape: `2026-03-18` stays a day, `2026-03-18 09:00`
keeps its blank and its minutes, a zone stays as written. Reading also knows `2026/3/18`, `2026年3月18日 下午3点`,
`18 March 2026` and `March 18, 2026`; these become ISO text. `03/04/2026` could be two days and is refused.

Formatting has its own small interpreter, because the C library's `strftime` depends on the machine and its locale.
"""

from __future__ import annotations

import datetime as dt
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, replace

from toolplan.expressions.faults import Fault
from toolplan.patterns import late_pattern

__all__ = ["Moment", "find_date", "format_moment", "is_date_pattern", "move", "read_moment"]


@dataclass(frozen=True, slots=True)
class Moment:
    """A day, a time of day, or both, with the shape it was written in."""

    when: dt.datetime
    has_date: bool = True
    has_time: bool = False
    separator: str = "T"
    seconds: bool = False
    fraction: int = 0
    """Digits after the seconds."""
    zone: str = ""
    """The zone as written: ``, `Z`, `+08:00`."""

    def text(self) -> str:
        """Return the ISO text in this moment's shape."""
        date = f"{self.when.year:04}-{self.when.month:02}-{self.when.day:02}"
        if not self.has_time:
            return date
        time = f"{self.when.hour:02}:{self.when.minute:02}"
        if self.seconds:
            time += f":{self.when.second:02}"
        if self.fraction:
            time += "." + f"{self.when.microsecond:06}"[: self.fraction]
        time += self.zone
        return date + self.separator + time if self.has_date else time

    def universal(self) -> dt.datetime:
        """Return the time in UTC, or the time as it stands when it has no zone."""
        if self.zone in ("", "Z", "z"):
            return self.when
        digits = self.zone.replace(":", "")
        shift = dt.timedelta(hours=int(digits[1:3]), minutes=int(digits[3:5] or 0))
        return self.when - shift if self.zone[0] == "+" else self.when + shift


_CLOCK = r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:\.(?P<fraction>\d{1,9}))?)?"
_TAIL = rf"(?:(?P<separator>[Tt]|[ ]{{1,3}}){_CLOCK}[ ]?(?P<zone>[Zz]|[+-]\d{{2}}(?::?\d{{2}})?)?)?"
_ISO = late_pattern(r"(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})" + _TAIL)
_SLASHED = late_pattern(r"(?P<year>\d{4})(?P<cut>[/.])(?P<month>\d{1,2})(?P=cut)(?P<day>\d{1,2})" + _TAIL)
_CHINESE = late_pattern(
    r"(?P<year>\d{4})[ ]?年[ ]?(?P<month>\d{1,2})[ ]?月[ ]?(?P<day>\d{1,2})[ ]?[日号]?"
    r"(?:[ ]?(?P<half>上午|下午|晚上|早上|中午|凌晨)?[ ]?(?P<hour>\d{1,2})"
    r"(?::(?P<minute>\d{2})|[点时](?P<late>\d{1,2})?分?))?"
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = r"(?P<word>(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6})\.?"
_ENGLISH = late_pattern(
    rf"(?:(?P<day>\d{{1,2}})(?:st|nd|rd|th)?[ ](?:of[ ])?{_MONTH},?[ ](?P<year>\d{{4}}))" + _TAIL, re.IGNORECASE
)
_AMERICAN = late_pattern(rf"{_MONTH}[ ](?P<day>\d{{1,2}})(?:st|nd|rd|th)?,?[ ](?P<year>\d{{4}})" + _TAIL, re.IGNORECASE)
_COMPACT = late_pattern(r"(?P<year>(?:19|20)\d{2})(?P<month>\d{2})(?P<day>\d{2})(?!\d)")
_TIME = late_pattern(_CLOCK)
_FORMS = (_ISO, _SLASHED, _CHINESE, _ENGLISH, _AMERICAN)
_HELP = 'dates are ISO text such as "2026-03-18" or "2026-03-18T09:00"'


def read_moment(text: str) -> Moment:
    """Return the moment that the whole `text` is. Raises `Fault`."""
    plain = unicodedata.normalize("NFKC", text[:100]).strip()
    if len(text) <= 100:
        for form in (*_FORMS, _COMPACT, _TIME):
            if match := form.fullmatch(plain):
                return _moment(match, text)
    raise Fault(f"{_quoted(text)} is not a date", help=_HELP)


def find_date(text: str) -> Moment:
    """Return the first day that is written anywhere in `text`. Raises `Fault` when there is none."""
    try:
        found = read_moment(text)
    except Fault:
        plain = unicodedata.normalize("NFKC", text[:10_000])
        matches = [
            match for form in _FORMS if (match := re.search(rf"(?<!\d)(?:{form.pattern})(?!\d)", plain, form.flags))
        ]
        if not matches:
            raise
        found = _moment(min(matches, key=lambda match: match.start()), text)
    if not found.has_date:
        raise Fault(f"{_quoted(text)} is a time of day without a date", help=_HELP)
    return found


def _moment(match: re.Match[str], text: str) -> Moment:
    part = match.groupdict()
    has_date = bool(part.get("year"))
    has_time = bool(part.get("hour"))
    month = part.get("month")
    if word := part.get("word"):
        month = str(_MONTHS.index(word[:3].lower()) + 1)
    hour = int(part.get("hour") or 0)
    half = part.get("half")
    if (half in ("下午", "晚上") and hour < 12) or (half == "中午" and hour < 3):
        hour += 12
    fraction = part.get("fraction") or ""
    separator = part.get("separator") or "T"
    try:
        when = dt.datetime(
            int(part["year"]) if has_date else 1,
            int(month or 1),
            int(part.get("day") or 1),
            hour,
            int(part.get("minute") or part.get("late") or 0),
            int(part.get("second") or 0),
            int(fraction[:6].ljust(6, "0")) if fraction else 0,
        )
    except ValueError as error:
        raise Fault(f"{_quoted(text)} is not a date: {error}", help=_HELP) from None
    return Moment(
        when,
        has_date,
        has_time,
        " " if separator.isspace() else "T",
        bool(part.get("second")),
        min(len(fraction), 6),
        part.get("zone") or "",
    )


def move(
    moment: Moment,
    *,
    years: int = 0,
    months: int = 0,
    weeks: float = 0,
    days: float = 0,
    hours: float = 0,
    minutes: float = 0,
    seconds: float = 0,
) -> Moment:
    """Return `moment` moved by all of these.

    Years and months keep the day where the month has it, else they end at its last day. A day that is moved by hours
    or less becomes a day with a time; a time of day goes round at midnight. Raises `Fault` outside the years 1 to 9999.
    """
    if not moment.has_date and (years or months or weeks or days):
        raise Fault(f"`{moment.text()}` is a time of day, so only hours and minutes can be added to it", help=_HELP)
    when = moment.when
    has_time = moment.has_time or bool(hours or minutes or seconds)
    try:
        if years or months:
            count = when.year * 12 + when.month - 1 + years * 12 + months
            year, month = divmod(count, 12)
            first_of_next = (
                dt.date(year + (month == 11), (month + 1) % 12 + 1, 1) if year < 9999 else dt.date(year, 12, 31)
            )
            last = 31 if month == 11 else (first_of_next - dt.timedelta(days=1)).day
            when = when.replace(year=year, month=month + 1, day=min(when.day, last))
        shift = dt.timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
        if not moment.has_date:
            shift = dt.timedelta(seconds=shift.total_seconds() % 86_400)
            when = dt.datetime.combine(dt.date(1, 1, 1), (when + shift).time())
        else:
            when += shift
    except (ValueError, OverflowError):
        raise Fault(f"the date `{moment.text()}` would leave the years 1 to 9999") from None
    if not has_time and when.time() != dt.time():
        has_time = True
    return replace(moment, when=when, has_time=has_time, seconds=moment.seconds or (has_time and bool(when.second)))


_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTH_NAMES = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_CHINESE_DAYS = "一二三四五六日"
_CHINESE_MONTHS = ("一", "二", "三", "四", "五", "六", "七", "八", "九", "十", "十一", "十二")

_FIELDS: dict[str, Callable[[Moment, bool], str]] = {
    "Y": lambda m, _: f"{m.when.year:04}",
    "y": lambda m, _: f"{m.when.year % 100:02}",
    "m": lambda m, _: f"{m.when.month:02}",
    "d": lambda m, _: f"{m.when.day:02}",
    "e": lambda m, _: str(m.when.day),
    "H": lambda m, _: f"{m.when.hour:02}",
    "I": lambda m, _: f"{(m.when.hour + 11) % 12 + 1:02}",
    "M": lambda m, _: f"{m.when.minute:02}",
    "S": lambda m, _: f"{m.when.second:02}",
    "f": lambda m, _: f"{m.when.microsecond:06}",
    "j": lambda m, _: f"{m.when.timetuple().tm_yday:03}",
    "u": lambda m, _: str(m.when.isoweekday()),
    "w": lambda m, _: str(m.when.isoweekday() % 7),
    "V": lambda m, _: f"{m.when.isocalendar().week:02}",
    "G": lambda m, _: f"{m.when.isocalendar().year:04}",
    "A": lambda m, zh: "星期" + _CHINESE_DAYS[m.when.weekday()] if zh else _DAYS[m.when.weekday()],
    "a": lambda m, zh: "周" + _CHINESE_DAYS[m.when.weekday()] if zh else _DAYS[m.when.weekday()][:3],
    "B": lambda m, zh: _CHINESE_MONTHS[m.when.month - 1] + "月" if zh else _MONTH_NAMES[m.when.month - 1],
    "b": lambda m, zh: f"{m.when.month}月" if zh else _MONTH_NAMES[m.when.month - 1][:3],
    "p": lambda m, zh: ("上午" if m.when.hour < 12 else "下午") if zh else ("AM" if m.when.hour < 12 else "PM"),
    "F": lambda m, _: f"{m.when.year:04}-{m.when.month:02}-{m.when.day:02}",
    "T": lambda m, _: f"{m.when.hour:02}:{m.when.minute:02}:{m.when.second:02}",
    "R": lambda m, _: f"{m.when.hour:02}:{m.when.minute:02}",
    "z": lambda m, _: m.zone,
    "%": lambda m, _: "%",
}
_DIRECTIVE = late_pattern(r"%([-#]?)(.?)", re.DOTALL)
_LETTERED = late_pattern(r"YYYY|yyyy|MM|DD|dd|HH|mm|ss|M(?=月)|[Dd](?=[日号])|H(?=[时点])")
_LETTERS = {
    "YYYY": "%Y", "yyyy": "%Y", "MM": "%m", "DD": "%d", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S",
    "M": "%-m", "D": "%-d", "d": "%-d", "H": "%-H",
}  # fmt: skip
_HAN = late_pattern(r"[\u4e00-\u9fff]")


def format_moment(moment: Moment, pattern: str) -> str:
    """Return `moment` written after `pattern`: `%Y-%m-%d`, `%-d %B %Y`, `%Y年%m月%d日 %A`, or `YYYY-MM-DD HH:mm`.

    Names of days, months and halves of the day are Chinese where the pattern holds a Chinese character, else English.
    Raises `Fault` for a pattern longer than 200 characters or with an unknown field.
    """
    if len(pattern) > 200:
        raise Fault("a date format may be at most 200 characters long")
    if "%" not in pattern:
        pattern, found = _LETTERED.subn(lambda match: _LETTERS[match.group()], pattern)
        if not found:
            raise Fault(f"the date format {_quoted(pattern)} holds no field", help="write for example `%Y-%m-%d %H:%M`")
    chinese = bool(_HAN.search(pattern))

    def field(match: re.Match[str]) -> str:
        plain, letter = match.groups()
        write = _FIELDS.get(letter)
        if write is None:
            known = " ".join("%" + name for name in sorted(_FIELDS, key=str.lower))
            raise Fault(f"`{match.group()}` is not a field of a date format", help=f"these are: {known}")
        text = write(moment, chinese)
        return (text.lstrip("0") or "0") if plain and text.isdigit() else text

    return _DIRECTIVE.sub(field, pattern)


def is_date_pattern(pattern: str) -> bool:
    """Return whether `pattern` is made of known fields with `%` and holds at least one."""
    found = _DIRECTIVE.findall(pattern)
    return bool(found) and len(pattern) <= 200 and all(letter in _FIELDS for _, letter in found)


def _quoted(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:40] + "…")
