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

__all__ = ["SCENARIOS", "Scenario", "Tongue"]

Tongue: TypeAlias = Literal["en", "zh"]

WINTER = "2026-01-15T09:00:00"
SUMMER = "2026-07-15T09:00:00"
CALL_SECONDS = 0.2
"""How long a look-up of the weather takes, as if it came from a remote service."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One demo. `prepare` lays out its tools in an empty folder; `home` is the language it is shown in by default."""

    name: str
    shows: str
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
    return mail(sender="assistant@example.com", outbox=folder / "outbox", approval="allow")


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
        tools = ToolSet.of(calendar(folder / "calendar.sqlite"))
        for number, event in enumerate(_EVENTS[language]):
            tools["add_event"](ToolContext(idempotency_key=f"demo-{number}"), **event)
        return [tool for tool in [*tools, *_mail(folder)] if tool.name not in without]

    return prepare


def _project_folder(folder: Path, language: Tongue) -> Sequence[Tool]:
    root = folder / "project"
    texts = {
        "app/main.py": '"""Entry point of the shop."""\n\nfrom app import orders\n\n\ndef main():\n    orders.run()\n'
        * 3,
        "app/orders.py": '"""Orders: placing, changing and cancelling them."""\n\nimport sqlite3\n\n\ndef run():\n'
        + "    pass\n" * 200,
        "app/mailer.py": '"""Mails to customers."""\n' + "# text\n" * 80,
        "tests/test_orders.py": "def test_run():\n    assert True\n" * 40,
        "README.md": "A shop.\n" * 500,
    }
    for name, text in texts.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return files(root, writable=False)


SCENARIOS: dict[str, Scenario] = {
    scenario.name: scenario
    for scenario in (
        Scenario(
            "weather-cold",
            "a condition: below 5 degrees a mail goes out",
            {
                "zh": "查明天北京的天气，如果气温低于5度，就给 me@example.com 发一封主题为“低温预警”的邮件，正文写上气温和天气状况",
                "en": "Check tomorrow's weather in Beijing. If it is below 5 degrees, mail me@example.com a cold weather "
                "warning that names temperature and condition.",
            },
            _weather_and_mail(WINTER),
            home="zh",
            mails=1,
        ),
        Scenario(
            "weather-warm",
            "the same plan on a warm day: no mail",
            {
                "zh": "查明天北京的天气，如果气温低于5度，就给 me@example.com 发一封主题为“低温预警”的邮件，正文写上气温和天气状况",
                "en": "Check tomorrow's weather in Beijing. If it is below 5 degrees, mail me@example.com a cold weather "
                "warning that names temperature and condition.",
            },
            _weather_and_mail(SUMMER),
            now=SUMMER,
            home="zh",
        ),
        Scenario(
            "kickoff",
            "results in a template: all meetings found, in one mail",
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
            "something that no tool can do: said, not invented",
            {"zh": "取消明天的午餐", "en": "Cancel tomorrow's lunch."},
            _calendar_and_mail(without=("cancel_event", "update_event")),
            expected="rejected",
        ),
        Scenario(
            "largest-files",
            "a chain: list, sort, read the beginning of the largest",
            {
                "zh": "找出这个文件夹里最大的三个 Python 文件，并显示最大的那个的前几行",
                "en": "Which are the three largest Python files of this folder, and how does the largest begin?",
            },
            _project_folder,
        ),
        Scenario(
            "ten-cities",
            "a loop whose rounds run at once",
            {
                "zh": "比较十个城市明天的天气：北京、上海、广州、成都、哈尔滨、昆明、东京、新加坡、伦敦、纽约",
                "en": "Compare tomorrow's weather in Beijing, Shanghai, Guangzhou, Chengdu, Harbin, Kunming, Tokyo, "
                "Singapore, London and New York.",
            },
            _weather_and_mail(WINTER),
        ),
    )
}
