"""What the demos do: one function a scenario that lays out its tools in a folder."""

from __future__ import annotations

import datetime as dt
import importlib.resources
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from toolplan.toolkits import calendar, files, mail, weather
from toolplan.tools import Tool, ToolContext, ToolSet

__all__ = ["CALENDAR", "CALL_SECONDS", "OUTBOX", "SCENARIOS", "SOURCE", "Scenario", "Tongue"]

Tongue: TypeAlias = Literal["en", "zh"]

WINTER = "2026-01-15T09:00:00"
SUMMER = "2026-07-15T09:00:00"
OUTBOX = "outbox"
CALENDAR = "calendar.sqlite"
SOURCE = Path(__file__).resolve().parent.parent
"""The folder of files that there is on every machine: toolplan's own source."""

CALL_SECONDS = 0.2
"""How long a look-up of the weather takes, as if it came from a remote service."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One demo. `prepare` lays out its tools in an empty folder; `home` is the language it is shown in by default."""

    name: str
    shows: dict[Tongue, str]
    requests: dict[Tongue, str]
    prepare: Callable[[Path, Tongue], Sequence[Tool]]
    now: str = WINTER
    home: Tongue = "en"
    expected: str = "succeeded"
    mails: int = 0
    """How many mails must be in the outbox afterwards."""

    def replies(self, language: Tongue) -> Path:
        """Return the file with the recorded replies."""
        folder = importlib.resources.files("toolplan.demo").joinpath("replies")
        return Path(str(folder.joinpath(f"{self.name}.{language}.jsonl")))


def _mail(folder: Path) -> list[Tool]:
    return mail(sender="assistant@example.com", outbox=folder / OUTBOX, approval="allow")


def _weather_and_mail(today: str) -> Callable[[Path, Tongue], Sequence[Tool]]:
    def prepare(folder: Path, language: Tongue) -> Sequence[Tool]:
        day = dt.datetime.fromisoformat(today).date()
        return [*weather(day, seconds_per_call=CALL_SECONDS), *_mail(folder)]

    return prepare


_EVENTS: dict[Tongue, list[dict[str, Any]]] = {
    "zh": [
        {
            "title": "海棠项目启动会议",
            "start": "2026-01-19T10:00",
            "location": "3 号会议室",
            "attendees": ["林晓雨", "王磊"],
        },
        {"title": "周例会", "start": "2026-01-19T14:00", "location": "线上", "attendees": ["王磊"]},
        {"title": "午餐", "start": "2026-01-16T12:00", "location": "食堂", "attendees": ["陆遥"]},
        {
            "title": "数据平台二期 项目启动",
            "start": "2026-01-21T15:30",
            "location": "",
            "attendees": ["陈思", "林晓雨"],
        },
    ],
    "en": [
        {
            "title": "Project kickoff: Heron",
            "start": "2026-01-19T10:00",
            "location": "Room 3",
            "attendees": ["Ann", "Raj"],
        },
        {"title": "Weekly meeting", "start": "2026-01-19T14:00", "location": "online", "attendees": ["Raj"]},
        {"title": "Lunch", "start": "2026-01-16T12:00", "location": "canteen", "attendees": ["Kim"]},
        {
            "title": "Data platform II, project kickoff",
            "start": "2026-01-21T15:30",
            "location": "",
            "attendees": ["Kim", "Ann"],
        },
    ],
}


def _calendar_and_mail(*, without: Sequence[str] = ()) -> Callable[[Path, Tongue], Sequence[Tool]]:
    def prepare(folder: Path, language: Tongue) -> Sequence[Tool]:
        tools = ToolSet.of(calendar(folder / CALENDAR))
        for number, event in enumerate(_EVENTS[language]):
            tools["add_event"](ToolContext(idempotency_key=f"demo-{number}"), **event)
        return [tool for tool in [*tools, *_mail(folder)] if tool.name not in without]

    return prepare


def _own_source(folder: Path, language: Tongue) -> Sequence[Tool]:
    return files(SOURCE, writable=False)


_WEATHER_REQUESTS: dict[Tongue, str] = {
    "zh": "查明天北京的天气，如果气温低于5度，就给 me@example.com 发一封主题为“低温预警”的邮件，正文写上气温和天气状况",
    "en": "Check tomorrow's weather in Beijing. If it is below 5 degrees, mail me@example.com a cold weather warning "
    "that names temperature and condition.",
}

SCENARIOS: dict[str, Scenario] = {
    scenario.name: scenario
    for scenario in (
        Scenario(
            "weather-cold",
            {"en": "a condition: below 5 degrees a mail goes out", "zh": "条件：低于 5 度才发邮件"},
            _WEATHER_REQUESTS,
            _weather_and_mail(WINTER),
            home="zh",
            mails=1,
        ),
        Scenario(
            "weather-warm",
            {"en": "the same request on a warm day: no mail", "zh": "同样的请求，天气暖和，不发邮件"},
            _WEATHER_REQUESTS,
            _weather_and_mail(SUMMER),
            now=SUMMER,
            home="zh",
        ),
        Scenario(
            "kickoff",
            {
                "en": "results in a template: all meetings found, in one mail",
                "zh": "把结果写进模板：找到的会议汇总成一封邮件",
            },
            {
                "zh": "找出日历里所有“项目启动”会议，把它们的详情汇总成一封邮件发给 team@example.com",
                "en": "Find all project kickoff meetings and mail their details to team@example.com in one message.",
            },
            _calendar_and_mail(without=("cancel_event", "update_event")),
            home="zh",
            mails=1,
        ),
        Scenario(
            "cancel-lunch",
            {"en": "something that no tool can do: said, not invented", "zh": "没有工具能做的事：说清缺什么，不编造"},
            {"zh": "取消明天的午餐", "en": "Cancel tomorrow's lunch."},
            _calendar_and_mail(without=("cancel_event", "update_event")),
            expected="rejected",
        ),
        Scenario(
            "largest-files",
            {
                "en": "a chain: list, sort, read the beginning of the largest",
                "zh": "一环扣一环：列出、排序、读最大文件的开头",
            },
            {
                "zh": "找出这个文件夹里最大的三个 Python 文件，并显示最大的那个的前几行",
                "en": "Which are the three largest Python files of this folder, and how does the largest begin?",
            },
            _own_source,
        ),
        Scenario(
            "ten-cities",
            {"en": "a loop whose rounds run at once", "zh": "循环：十次查询同时进行"},
            {
                "zh": "比较十个城市明天的天气：北京、上海、广州、成都、哈尔滨、昆明、东京、新加坡、伦敦、纽约",
                "en": "Compare tomorrow's weather in Beijing, Shanghai, Guangzhou, Chengdu, Harbin, Kunming, Tokyo, "
                "Singapore, London and New York.",
            },
            _weather_and_mail(WINTER),
        ),
    )
}
