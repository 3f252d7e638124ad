"""A calendar in one SQLite file: add, find, list, change and cancel events.

Times are local time in ISO text to the minute (`2026-03-18T10:00`), which sorts as it reads; a time that comes with an
offset from UTC is converted. A day's date alone stands for the whole day. Each call has a connection of its own, so
calls may come from any thread.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import sqlite3
import unicodedata
import uuid
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, cast

from toolplan.errors import ToolFailed, UsageError
from toolplan.tools import Tool, ToolContext, ToolSet, tool

__all__ = ["CalendarEvent", "calendar"]

_SCHEMA = """
create table if not exists events (
    id integer primary key,
    title text not null,
    start text not null,
    end text not null,
    location text not null,
    attendees text not null,
    notes text not null,
    status text not null default 'confirmed',
    key text unique
)
"""

_Save: TypeAlias = "Callable[[dict[str, object]], CalendarEvent]"

_ROW = "id, title, start, end, location, attendees, notes, status"


@dataclass(frozen=True)
class CalendarEvent:
    """An event. `start` and `end` are local times such as "2026-03-18T10:00"."""

    id: int
    title: str
    start: str
    end: str
    location: str
    attendees: list[str]
    notes: str
    status: Literal["confirmed", "cancelled"]


def calendar(path: str | Path, *, timezone: dt.tzinfo | None = None) -> list[Tool]:
    """Return the tools `list_events`, `find_events`, `add_event`, `update_event` and `cancel_event`.

    `path` is the SQLite file, made if it is missing. `timezone` is that of the calendar, the computer's without it; it
    matters only for times given with an offset. Adding, changing and cancelling are safe to repeat: an event is added
    once for each idempotency key. Raises `UsageError` when the file cannot be opened as a calendar.
    """
    store = _Store(Path(path))

    def moment(text: str) -> dt.datetime:
        return _moment(text, timezone)

    @tool(reads="calendar")
    def list_events(first_day: str, last_day: str | None = None) -> list[CalendarEvent]:
        """Lists the events of a day, or of several days, in order of time. Cancelled events are left out.

        Args:
            first_day: ISO date.
            last_day: ISO date, included; the first day alone without it.
        """
        return store.between(_day(first_day), _day(last_day or first_day))

    @tool(reads="calendar")
    def find_events(text: str, first_day: str | None = None, last_day: str | None = None) -> list[CalendarEvent]:
        """Finds the events that contain some text, in order of time. Cancelled events are left out.

        Args:
            text: Words that must all appear in title, location, attendees or notes.
            first_day: ISO date to search from.
            last_day: ISO date to search to, included.
        """
        words = _fold(text).split()
        found = store.between(_day(first_day or "0001-01-01"), _day(last_day or "9999-12-30"))
        return [event for event in found if all(word in _searched(event) for word in words)]

    @tool(writes="calendar", idempotent=True)
    def add_event(  # noqa: D417 - the docstring is for the model, which does not see `ctx`
        ctx: ToolContext,
        title: str,
        start: str,
        end: str | None = None,
        location: str = "",
        attendees: list[str] | None = None,
        notes: str = "",
    ) -> CalendarEvent:
        """Adds an event to the calendar.

        Args:
            title: The title.
            start: ISO date and time such as "2026-03-18T10:00", or a date alone for a whole day.
            end: The same; without it one hour, or one day, after the start.
            location: The location.
            attendees: Names or mail addresses.
            notes: The notes.
        """
        begin = moment(start)
        whole_day = len(start.strip()) == 10
        finish = moment(end) if end else begin + (dt.timedelta(days=1) if whole_day else dt.timedelta(hours=1))
        values = _checked(title, begin, finish)
        values |= {"location": location, "attendees": attendees or [], "notes": notes}
        return store.add(values, ctx.idempotency_key or uuid.uuid4().hex)

    @tool(writes="calendar:{event_id}", idempotent=True)
    def update_event(
        event_id: int,
        title: str | None = None,
        start: str | None = None,
        end: str | None = None,
        location: str | None = None,
        attendees: list[str] | None = None,
        notes: str | None = None,
    ) -> CalendarEvent:
        """Changes an event; what is not given stays as it is. With a new start alone, the event keeps its length."""
        with store.changing(event_id) as (event, save):
            begin = moment(start) if start else moment(event.start)
            length = moment(event.end) - moment(event.start)
            finish = moment(end) if end else begin + length if start else moment(event.end)
            values = _checked(event.title if title is None else title, begin, finish)
            return save({**values, **_given(location=location, attendees=attendees, notes=notes)})

    @tool(writes="calendar:{event_id}", idempotent=True)
    def cancel_event(event_id: int) -> CalendarEvent:
        """Cancels an event."""
        with store.changing(event_id, cancelled_too=True) as (_, save):
            return save({"status": "cancelled"})

    return list(ToolSet.of([list_events, find_events, add_event, update_event, cancel_event]))


class _Store:
    """The events of one file. Every method is one transaction on a connection of its own."""

    def __init__(self, path: Path) -> None:
        if str(path) == ":memory:":
            raise UsageError("a calendar needs a file, as every call opens it anew; write calendar('calendar.db')")
        self._path = path
        try:
            with contextlib.closing(sqlite3.connect(path)) as database:
                database.execute("pragma journal_mode = wal")
                database.execute(_SCHEMA)
                database.execute(f"select {_ROW}, key from events limit 0")
        except sqlite3.Error as error:
            raise UsageError(f"{path} cannot be opened as a calendar: {error}") from None

    @contextlib.contextmanager
    def _transaction(self, *, writing: bool) -> Generator[sqlite3.Connection]:
        try:
            with contextlib.closing(sqlite3.connect(self._path, timeout=10, isolation_level=None)) as database:
                database.execute("begin immediate" if writing else "begin")
                try:
                    yield database
                except BaseException:
                    database.execute("rollback")
                    raise
                database.execute("commit")
        except sqlite3.Error as error:
            raise ToolFailed(f"the calendar could not be used: {error}") from error

    def between(self, first: dt.date, last: dt.date) -> list[CalendarEvent]:
        """Return the events that touch the days from `first` to `last`, both included, in order of time."""
        after = _text(dt.datetime.combine(last + dt.timedelta(days=1), dt.time()))
        before = _text(dt.datetime.combine(first, dt.time()))
        with self._transaction(writing=False) as database:
            rows = database.execute(
                f"select {_ROW} from events where status = 'confirmed' and start < ? and end > ? order by start, id",
                (after, before),
            )
            return [_event(row) for row in rows]

    def add(self, values: dict[str, object], key: str) -> CalendarEvent:
        """Return the event that was added with this key, now or before."""
        with self._transaction(writing=True) as database:
            columns = {**_stored(values), "key": key}
            database.execute(
                f"insert into events ({', '.join(columns)}) values ({', '.join('?' * len(columns))})"
                " on conflict (key) do nothing",
                tuple(columns.values()),
            )
            return _event(database.execute(f"select {_ROW} from events where key = ?", (key,)).fetchone())

    @contextlib.contextmanager
    def changing(self, event_id: int, *, cancelled_too: bool = False) -> Generator[tuple[CalendarEvent, _Save]]:
        """Give the event and a function that saves new values of it, in one transaction."""
        with self._transaction(writing=True) as database:
            query = f"select {_ROW} from events where id = ?"
            row = database.execute(query, (event_id,)).fetchone()
            if row is None:
                raise ToolFailed(f"the calendar has no event {event_id}", effect_happened=False)
            event = _event(row)
            if event.status == "cancelled" and not cancelled_too:
                raise ToolFailed(f"event {event_id}, `{event.title}`, is cancelled", effect_happened=False)

            def save(values: dict[str, object]) -> CalendarEvent:
                columns = _stored(values)
                database.execute(
                    f"update events set {', '.join(f'{name} = ?' for name in columns)} where id = ?",
                    (*columns.values(), event_id),
                )
                return _event(database.execute(query, (event_id,)).fetchone())

            yield event, save


def _event(row: tuple[object, ...]) -> CalendarEvent:
    id_, title, start, end, location, attendees, notes, status = cast(
        "tuple[int, str, str, str, str, str, str, str]", row
    )
    cancelled = status == "cancelled"
    return CalendarEvent(
        id_, title, start, end, location, json.loads(attendees), notes, "cancelled" if cancelled else "confirmed"
    )


def _stored(values: dict[str, object]) -> dict[str, object]:
    return {name: json.dumps(v, ensure_ascii=False) if isinstance(v, list) else v for name, v in values.items()}


def _given(**values: object) -> dict[str, object]:
    return {name: value for name, value in values.items() if value is not None}


def _checked(title: str, start: dt.datetime, end: dt.datetime) -> dict[str, object]:
    if not title.strip():
        raise ToolFailed("an event needs a title", effect_happened=False)
    if end <= start:
        raise ToolFailed(f"the event would end ({_text(end)}) before it begins ({_text(start)})", effect_happened=False)
    return {"title": title.strip(), "start": _text(start), "end": _text(end)}


def _text(moment: dt.datetime) -> str:
    return moment.isoformat(timespec="minutes")


def _moment(text: str, timezone: dt.tzinfo | None) -> dt.datetime:
    try:
        moment = dt.datetime.fromisoformat(text.strip())
    except ValueError:
        message = f"`{text}` is no date or time; write ISO text such as 2026-03-18T10:00"
        raise ToolFailed(message, effect_happened=False) from None
    if moment.tzinfo is not None:
        moment = moment.astimezone(timezone).replace(tzinfo=None)
    return moment


def _day(text: str) -> dt.date:
    try:
        return dt.datetime.fromisoformat(text.strip()).date()
    except ValueError:
        raise ToolFailed(f"`{text}` is no date; write ISO text such as 2026-03-18", effect_happened=False) from None


def _searched(event: CalendarEvent) -> str:
    return _fold("\n".join([event.title, event.location, event.notes, *event.attendees]))


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
