"""Which language a request is in."""

import json
from pathlib import Path

import pytest

from toolplan.errors import UsageError
from toolplan.prompt import language_of
from toolplan.prompt.chinese import CHINESE
from toolplan.prompt.english import ENGLISH
from toolplan.prompt.language import wording_for

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"


@pytest.mark.parametrize(
    ("request_text", "language"),
    [
        ("查明天北京的天气，如果气温低于5度，就给 me@example.com 发一封主题为“低温预警”的邮件", "zh"),
        ("把 https://example.com/a/very/long/address 的内容发给 someone.with.a.long.name@example.com", "zh"),
        ("用 Python 写的最大的三个文件", "zh"),
        ("What is the weather in Beijing tomorrow?", "en"),
        ('Send a mail with the subject "项目启动会议通知" to the team', "en"),
        ("Find all 「项目启动」 meetings", "en"),
        ("“你好”", "zh"),
        ("明日の東京の天気を教えてください", "en"),
        ("내일 서울 날씨", "en"),
        ("2 + 2", "en"),
        ("", "en"),
    ],
)
def test_the_language_is_that_of_the_words_around_quotes(request_text: str, language: str) -> None:
    assert language_of(request_text) == language


@pytest.mark.parametrize(
    ("file", "field", "language"),
    [("zh_tasks/tasks.jsonl", "request", "zh"), ("agentdojo/user_plans.jsonl", "prompt", "en")],
)
def test_real_requests(file: str, field: str, language: str) -> None:
    if not (DATA / file).exists():
        pytest.skip(f"not run: {DATA / file} is absent")
    with open(DATA / file, encoding="utf-8") as records:
        requests = [json.loads(line)[field] for line in records]
    assert len(requests) > 40
    assert [request for request in requests if language_of(request) != language] == []


def test_the_language_can_be_chosen() -> None:
    assert wording_for("en", "你好") is ENGLISH
    assert wording_for("zh", "hello") is CHINESE
    assert wording_for("auto", "你好") is CHINESE
    with pytest.raises(UsageError, match="language 'fr'"):
        wording_for("fr", "bonjour")  # type: ignore[arg-type]
