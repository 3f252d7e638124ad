"""The calendar, on real SQLite files."""

import datetime as dt
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from toolplan.errors import ToolFailed, UsageError
from toolplan.toolkits import calendar
from toolplan.tools import Tool, ToolContext, ToolSet


@pytest.fixture
def tools(tmp_path: Path) -> ToolSet:
    return ToolSet.of(calendar(tmp_path / "calendar.db", timezone=dt.timezone(dt.timedelta(hours=8))))


def call(tool: Tool, **arguments: Any) -> Any:
    """Call a tool as the engine does, with JSON arguments and a context that the caller does not see."""
    return tool.bind(arguments)()


def test_what_was_added_is_listed_in_order_of_time(tools: ToolSet) -> None:
    late = call(
        tools["add_event"],
        title="评审会",
        start="2026-03-18T15:00",
        end="2026-03-18T16:30",
        attendees=["李雷", "han@example.com"],
    )
    early = call(tools["add_event"], title="Stand-up", start="2026-03-18 09:30")
    call(tools["add_event"], title="Next day", start="2026-03-19T00:00")
    assert call(tools["list_events"], first_day="2026-03-18") == [early, late]
    assert (early.start, early.end) == ("2026-03-18T09:30", "2026-03-18T10:30")
    assert late.attendees == ["李雷", "han@example.com"]
    assert [e.title for e in call(tools["list_events"], first_day="2026-03-18", last_day="2026-03-19")][
        -1
    ] == "Next day"


def test_an_event_belongs_to_every_day_it_touches(tools: ToolSet) -> None:
    trip = call(tools["add_event"], title="Trip", start="2026-03-18T22:00", end="2026-03-20T01:00")
    whole_day = call(tools["add_event"], title="Holiday", start="2026-03-19")
    assert whole_day.end == "2026-03-20T00:00"
    days = {day: call(tools["list_events"], first_day=f"2026-03-{day}") for day in (17, 18, 19, 20, 21)}
    assert days == {17: [], 18: [trip], 19: [trip, whole_day], 20: [trip], 21: []}


def test_finding_needs_every_word_somewhere_whatever_case_and_width(tools: ToolSet) -> None:
    kick_off = call(
        tools["add_event"], title="“项目启动”会议", start="2026-03-20T10:00", location="Ｒｏｏｍ 5", notes="100%_sure"
    )
    call(tools["add_event"], title="项目复盘", start="2026-03-21T10:00")

    def find(**arguments: str) -> Any:
        return call(tools["find_events"], **arguments)

    assert find(text="项目启动") == [kick_off]
    assert find(text="room 项目") == [kick_off]
    assert find(text="100%_sure") == [kick_off]
    assert find(text="%") == [kick_off]
    assert find(text="100Xsure") == []
    assert [e.title for e in find(text="项目")] == ["“项目启动”会议", "项目复盘"]
    assert [e.title for e in find(text="项目", first_day="2026-03-21")] == ["项目复盘"]
    assert find(text="项目", last_day="2026-03-20") == [kick_off]


def test_changing_keeps_what_is_not_given_and_the_length(tools: ToolSet) -> None:
    event = call(
        tools["add_event"], title="Lunch", start="2026-03-18T12:00", end="2026-03-18T13:30", location="Canteen"
    )
    moved = call(tools["update_event"], event_id=event.id, start="2026-03-19T11:30")
    assert (moved.start, moved.end) == ("2026-03-19T11:30", "2026-03-19T13:00")
    assert (moved.title, moved.location) == ("Lunch", "Canteen")
    longer = call(tools["update_event"], event_id=event.id, end="2026-03-19T14:00", attendees=["Bo"], location="")
    assert (longer.start, longer.end, longer.attendees, longer.location) == (
        "2026-03-19T11:30", "2026-03-19T14:00", ["Bo"], ""
    )  # fmt: skip
    assert call(tools["list_events"], first_day="2026-03-19") == [longer]


def test_a_cancelled_event_is_kept_but_not_listed_and_not_changed(tools: ToolSet, tmp_path: Path) -> None:
    event = call(tools["add_event"], title="Lunch", start="2026-03-18T12:00")
    assert call(tools["cancel_event"], event_id=event.id).status == "cancelled"
    assert call(tools["cancel_event"], event_id=event.id).status == "cancelled"  # safe to repeat
    assert call(tools["list_events"], first_day="2026-03-18") == call(tools["find_events"], text="lunch") == []
    with pytest.raises(ToolFailed, match="is cancelled"):
        call(tools["update_event"], event_id=event.id, title="Dinner")
    database = sqlite3.connect(tmp_path / "calendar.db")
    assert database.execute("select title, status from events").fetchall() == [("Lunch", "cancelled")]
    database.close()


def test_one_idempotency_key_adds_one_event(tools: ToolSet) -> None:
    context = ToolContext(run_id="r", step_id="s1", idempotency_key="r/s1")
    arguments = {"title": "Once", "start": "2026-03-18T12:00"}
    first, second = (tools["add_event"].bind(arguments, context)() for _ in range(2))
    other = tools["add_event"].bind(arguments, ToolContext(idempotency_key="r/s2"))()
    assert first == second
    assert call(tools["find_events"], text="once") == [first, other]


def test_times_with_an_offset_are_converted_to_the_calendars_zone(tools: ToolSet) -> None:
    event = call(tools["add_event"], title="Call", start="2026-03-18T09:00Z", end="2026-03-18T18:00+08:00")
    assert (event.start, event.end) == ("2026-03-18T17:00", "2026-03-18T18:00")


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("add_event", {"title": " ", "start": "2026-03-18T12:00"}, "needs a title"),
        ("add_event", {"title": "x", "start": "tomorrow"}, "`tomorrow` is no date or time"),
        ("add_event", {"title": "x", "start": "2026-03-18T12:00", "end": "2026-03-18T12:00"}, "before it begins"),
        ("list_events", {"first_day": "18.3."}, "is no date"),
        ("update_event", {"event_id": 99, "title": "x"}, "no event 99"),
        ("cancel_event", {"event_id": 99}, "no event 99"),
    ],
)
def test_what_cannot_be_done_says_why_and_changes_nothing(
    tools: ToolSet, tool: str, arguments: dict[str, object], message: str
) -> None:
    with pytest.raises(ToolFailed, match=message) as failure:
        call(tools[tool], **arguments)
    assert failure.value.effect_happened is False
    assert call(tools["list_events"], first_day="0001-01-01", last_day="9999-12-30") == []


def test_sql_in_an_argument_is_text(tools: ToolSet) -> None:
    title = "x'); drop table events; --"
    event = call(tools["add_event"], title=title, start="2026-03-18T12:00")
    assert call(tools["find_events"], text="drop table") == [event]


def test_many_threads_may_use_it_at_once(tools: ToolSet) -> None:
    def add_some(n: int) -> None:
        for i in range(5):
            call(tools["add_event"], title=f"{n}-{i}", start="2026-03-18T12:00")

    threads = [threading.Thread(target=add_some, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({e.title for e in call(tools["list_events"], first_day="2026-03-18")}) == 40


def test_a_second_toolkit_on_the_same_file_sees_the_same_events(tools: ToolSet, tmp_path: Path) -> None:
    event = call(tools["add_event"], title="Lunch", start="2026-03-18T12:00")
    again = ToolSet.of(calendar(tmp_path / "calendar.db"))
    assert call(again["list_events"], first_day="2026-03-18") == [event]


def test_a_file_that_is_no_calendar_is_refused_at_once(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("not a database, and long enough to be sure about it" * 20)
    with pytest.raises(UsageError, match="cannot be opened as a calendar"):
        calendar(text)
    with pytest.raises(UsageError, match="needs a file"):
        calendar(":memory:")
    with pytest.raises(UsageError, match="cannot be opened"):
        calendar(tmp_path / "no such folder" / "calendar.db")


def test_the_declared_effects_keep_changes_and_looks_in_order(tools: ToolSet) -> None:
    assert tools["list_events"].effects.reads == ("calendar",)
    assert not tools["find_events"].effects.has_effects
    assert tools["cancel_event"].effects.accesses({"event_id": 7})[0].resource == ("calendar", "7")
    assert tools["add_event"].effects.accesses({})[0].resource == ("calendar",)
    assert "ctx" not in tools["add_event"].parameters["properties"]
