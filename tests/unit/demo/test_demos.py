"""Every demo in both languages: what it claims is looked for on disk, in the calendar and in the recorded times."""

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolplan.agent import Agent, ModelAsked, ModelReplied, PlanAccepted, ReplyStreamed, Result
from toolplan.demo import SCENARIOS, Demo, Output, list_demos, play, run_demos
from toolplan.demo.scenarios import CALENDAR, CALL_SECONDS, OUTBOX, SOURCE
from toolplan.errors import ModelError, UsageError
from toolplan.models import ScriptedModel
from toolplan.run import StepFinished, StepStarted

LANGUAGES = ("en", "zh")
ALL = [(name, language) for name in SCENARIOS for language in LANGUAGES]


@pytest.fixture(autouse=True)
def temporary(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where demos lay their folders."""
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def demo(tmp_path: Path) -> Callable[[str, str], Demo]:
    def run(name: str, language: str) -> Demo:
        return play(SCENARIOS[name], language, tmp_path)  # type: ignore[arg-type]

    return run


def results(result: Result, tool: str) -> list[Any]:
    return [step.result for step in result.steps if step.tool == tool]


def test_there_are_six_in_two_languages() -> None:
    assert len(ALL) == 12
    for scenario in SCENARIOS.values():
        assert set(scenario.requests) == set(scenario.shows) == set(LANGUAGES)


@pytest.mark.parametrize(("name", "language"), ALL)
def test_each_ends_as_it_should_after_one_inference(demo, name, language) -> None:
    run = demo(name, language)
    assert run.is_as_expected
    assert run.result.inferences == 1
    assert run.result.diagnostics == ()
    assert run.result.usage.requests == 1
    assert {step.outcome for step in run.result.steps} <= {"succeeded"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_cold_day_sends_the_warning(demo, language, tmp_path: Path) -> None:
    run = demo("weather-cold", language)
    [weather] = results(run.result, "get_weather")
    assert weather["temperature"] < 5
    assert weather["date"] == "2026-01-16"
    [file] = (tmp_path / OUTBOX).iterdir()
    assert file.suffix == ".eml"
    [mail] = run.mails
    assert mail["To"] == "me@example.com"
    assert mail["Subject"] == {"en": "Cold weather warning", "zh": "低温预警"}[language]
    body = mail.get_content()
    assert str(weather["temperature"]) in body
    assert weather["condition"] in body
    assert "{" not in body
    assert str(weather["temperature"]) in run.result.answer
    assert "me@example.com" in run.result.answer


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_warm_day_sends_none_on_the_very_same_reply(demo, language, tmp_path: Path) -> None:
    run = demo("weather-warm", language)
    [weather] = results(run.result, "get_weather")
    assert weather["temperature"] >= 5
    assert [step.tool for step in run.result.steps] == ["get_weather"]
    assert not list(tmp_path.glob("**/*.eml"))
    assert str(weather["temperature"]) in run.result.answer
    replies = [
        SCENARIOS[name].replies(language).read_text().split("\n")[1] for name in ("weather-cold", "weather-warm")
    ]
    assert replies[0] == replies[1]


@pytest.mark.parametrize("language", LANGUAGES)
def test_one_mail_tells_the_team_of_every_kickoff_and_of_nothing_else(demo, language) -> None:
    run = demo("kickoff", language)
    [mail] = run.mails
    assert mail["To"] == "team@example.com"
    body = mail.get_content()
    words = {"en": "project kickoff", "zh": "项目启动"}[language]
    titles = {event["title"]: event for event in _events(run.folder)}
    kickoffs = {title: event for title, event in titles.items() if words in title.casefold()}
    assert 2 <= len(kickoffs) < len(titles)
    for title, event in kickoffs.items():
        assert title in body
        assert event["start"][11:16] in body
        assert event["location"] in body
        for name in json.loads(event["attendees"]):
            assert name in body
        assert title in run.result.answer
    for title in titles.keys() - kickoffs.keys():
        assert title not in body
    assert [step.tool for step in run.result.steps] == ["find_events", "send_email"]


def _events(folder: Path) -> list[dict[str, Any]]:
    with sqlite3.connect(folder / CALENDAR) as database:
        database.row_factory = sqlite3.Row
        return [dict(row) for row in database.execute("select * from events")]


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_no_tool_can_do_is_said_and_nothing_is_changed(demo, language, tmp_path: Path) -> None:
    run = demo("cancel-lunch", language)
    assert run.result.outcome == "rejected"
    assert run.result.steps == ()
    assert run.result.plan is None
    assert "cancel_event" in run.result.answer
    assert [("cancel_event" in thing) for thing in run.result.missing] == [True]
    lunch = {"en": "Lunch", "zh": "午餐"}[language]
    assert [(event["title"], event["status"]) for event in _events(tmp_path) if event["title"] == lunch] == [
        (lunch, "confirmed")
    ]
    assert run.events_before == run.events_after
    assert len(run.events_after) == 4
    assert not list(tmp_path.glob("**/*.eml"))


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_largest_files_are_those_on_disk(demo, language) -> None:
    run = demo("largest-files", language)
    files = sorted(SOURCE.rglob("*.py"), key=lambda file: file.stat().st_size, reverse=True)[:3]
    answer = run.result.answer
    for place, file in enumerate(files, 1):
        assert f"{place}. {file.relative_to(SOURCE).as_posix()}" in answer
        assert f"{file.stat().st_size:,}" in answer
    with files[0].open(encoding="utf-8") as text:
        beginning = "".join(next(text) for _ in range(6))
    assert answer.endswith(beginning)
    assert [step.tool for step in run.result.steps] == ["list_files", "read_file"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_ten_cities_are_asked_at_once(demo, language) -> None:
    run = demo("ten-cities", language)
    steps = run.result.steps
    assert [step.tool for step in steps] == ["get_weather"] * 10
    last_start = max(step.started_seconds or 0.0 for step in steps)
    first_end = min(step.finished_seconds or 0.0 for step in steps)
    assert last_start < first_end  # at one moment all ten were under way
    assert run.seconds_one_by_one >= 10 * CALL_SECONDS * 0.95
    assert run.seconds_together < run.seconds_one_by_one / 3
    found = results(run.result, "get_weather")
    assert len({weather["city"] for weather in found}) == 10
    ranked = sorted(found, key=lambda weather: weather["temperature"], reverse=True)
    places = [run.result.answer.index(f"{weather['city']}") for weather in ranked]
    assert places == sorted(places)


@pytest.mark.parametrize(("name", "language"), ALL)
def test_the_reply_goes_the_way_of_any_other(tmp_path: Path, name, language) -> None:
    seen: list[Any] = []
    scenario = SCENARIOS[name]
    run = play(scenario, language, tmp_path, seen.append)
    asked = next(event for event in seen if isinstance(event, ModelAsked))
    assert asked.model == f"recorded:{name}.{language}"
    assert asked.messages[-1].content == scenario.requests[language]
    assert "send_email" in asked.messages[0].content or "read_file" in asked.messages[0].content
    kinds = [type(event) for event in seen]
    assert kinds.index(ReplyStreamed) < kinds.index(ModelReplied)
    streamed = "".join(event.text for event in seen if isinstance(event, ReplyStreamed))
    recorded = json.loads(scenario.replies(language).read_text(encoding="utf-8").split("\n")[1])
    assert streamed == recorded.get("text") or json.loads(streamed) == recorded["tool_calls"][0]["arguments"]
    if run.result.steps:
        assert kinds.index(ModelReplied) < kinds.index(PlanAccepted) < kinds.index(StepStarted)
        assert kinds.count(StepFinished) == len(run.result.steps)


@pytest.mark.parametrize(("name", "language"), ALL)
def test_a_recording_answers_its_own_request_only(tmp_path: Path, name, language) -> None:
    agent = Agent(ScriptedModel(SCENARIOS[name].replies(language)), SCENARIOS[name].prepare(tmp_path, language))
    with pytest.raises(ModelError, match="expects"):
        agent.run_sync("Something else.")


def test_a_reply_can_take_its_time(tmp_path: Path) -> None:
    times: list[float] = []
    seen = lambda event: times.append(event.seconds) if isinstance(event, ModelReplied) else None  # noqa: E731
    play(SCENARIOS["cancel-lunch"], "en", tmp_path, seen, reply_seconds=0.2)
    assert times[0] >= 0.19


class Silent:
    """A view that shows nothing."""

    def __call__(self, *, language: str) -> Silent:
        return self

    def __enter__(self) -> Silent:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def see(self, event: object) -> None:
        pass


def told(name: str | None, language: str | None = None) -> tuple[int, str]:
    lines: list[str] = []
    code = run_demos(name, language, Output(lines.append), Silent())  # type: ignore[arg-type]
    return code, "\n".join(lines)


@pytest.mark.parametrize(
    ("language", "said"),
    [("en", "The model's replies in these demos are recordings."), ("zh", "模型的回复是事先录制的")],
)
def test_a_person_is_told_what_is_recorded_and_what_is_real(temporary, language, said) -> None:
    code, text = told("weather-cold", language)
    assert code == 0
    assert said in text
    assert f"weather-cold.{language}.jsonl" in text
    assert {"en": "in the outbox: a mail to me@example.com", "zh": "发件箱中：给 me@example.com 的邮件"}[
        language
    ] in text
    [mail] = temporary.glob("toolplan-demo-*/weather-cold/outbox/*.eml")
    assert str(mail.parent.parent.parent) in text


def test_the_time_one_by_one_is_told_where_it_matters() -> None:
    assert "one by one they would have taken 2." in told("ten-cities", "en")[1]
    assert "one by one they would" not in told("weather-warm", "en")[1]


def test_all_demos_make_one_document() -> None:
    documents: list[Any] = []
    code = run_demos(None, "en", Output(print, documents.append), Silent())  # type: ignore[arg-type]
    [document] = documents
    assert code == 0
    assert json.loads(json.dumps(document)) == document
    assert document["outcome"] == "succeeded"
    assert [demo["demo"] for demo in document["demos"]] == list(SCENARIOS)
    assert document["inferences"] == document["usage"]["requests"] == 6
    assert len(document["steps"]) == sum(len(demo["steps"]) for demo in document["demos"]) == 17
    assert all(demo["as_expected"] and demo["reply_is_recorded"] for demo in document["demos"])
    outcomes = {demo["demo"]: demo["outcome"] for demo in document["demos"]}
    assert outcomes.pop("cancel-lunch") == "rejected"
    assert set(outcomes.values()) == {"succeeded"}


def test_a_demo_that_ends_otherwise_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    import dataclasses

    wrong = dataclasses.replace(SCENARIOS["weather-warm"], mails=1)
    monkeypatch.setitem(SCENARIOS, "weather-warm", wrong)
    code, text = told("weather-warm", "en")
    assert code == 1
    assert "THIS IS NOT HOW IT SHOULD HAVE ENDED" in text


def test_an_unknown_demo_is_named_with_those_there_are() -> None:
    with pytest.raises(UsageError, match=r"no demo is named `x`; there are weather-cold, .*ten-cities"):
        told("x")


def test_the_list_names_what_each_shows() -> None:
    lines: list[str] = []
    assert list_demos(Output(lines.append)) == 0
    assert [line.split()[0] for line in lines] == list(SCENARIOS)
