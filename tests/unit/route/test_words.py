"""Texts as words: seams of names, plurals, pairs of Chinese characters; keywords; parts of a request."""

from __future__ import annotations

import pytest

from toolplan.route.words import holds, parts_of, words_of


def forms(text: str) -> list[str]:
    return [word for word, _ in words_of(text)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("get_weather", ["get", "weather"]),
        ("getHTTPServerStatus", ["get", "http", "server", "status"]),
        ("the bus is news", ["bus", "new"]),  # `news` is taken for a plural, here and in every tool
        ("查天气", ["查天", "天气"]),
        ("车", ["车"]),
        ("用Python写的API文档", ["用", "python", "写的", "api", "文档"]),
        ("ＡＰＩ２号", ["api", "号"]),  # full width; a single digit says nothing
        ("ID 42, 3x", ["id", "42"]),
        ("Prüfung Überweisung", ["prüfung", "überweisung"]),
        ("отправить письмо", ["отправить", "письмо"]),
        ("", []),
        ("?!", []),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert forms(text) == words


@pytest.mark.parametrize(
    ("one", "many"),
    [
        *(("city", "cities"), ("movie", "movies"), ("key", "keys"), ("box", "boxes"), ("size", "sizes")),
        *(("class", "classes"), ("house", "houses"), ("bus", "buses"), ("match", "matches"), ("cache", "caches")),
        *(("dish", "dishes"), ("email", "emails"), ("address", "addresses"), ("analysis", "analysis")),
    ],
)
def test_a_word_and_its_plural_are_one(one: str, many: str) -> None:
    assert forms(one) == forms(many)


def test_other_words_stay_apart() -> None:
    text = "car care plan plane rate rat note notice new weather whether mail male status state"
    assert len(set(forms(text))) == len(text.split())


def test_a_word_is_shown_as_it_stands() -> None:
    assert list(words_of("Sends Emails")) == [("send", "Sends"), ("email", "Emails")]


@pytest.mark.parametrize(
    ("request_text", "keyword", "is_held"),
    [
        ("明天北京天气怎么样", "天气", True),
        ("明天 天 气 怎么样", "天气", True),
        ("明天北京怎么样", "天气", False),
        ("What is the weather like?", "weather", True),
        ("What is the WEATHERman like?", "weather", False),
        ("two flights to Oslo", "flight", True),
        ("a flight to Oslo", "flights", True),
        ("show the to do list", "to do", True),
        ("to me do it", "to do", False),
        ("帮我查weather", "weather", True),
        ("打开AI助手", "ai助手", True),
        ("anything", "!", False),
    ],
)
def test_keywords(request_text: str, keyword: str, is_held: bool) -> None:
    assert holds(request_text, keyword) is is_held


@pytest.mark.parametrize(
    ("request_text", "parts"),
    [
        ("Find the hotel, then book it and mail me.", ["Find the hotel", "book it", "mail me"]),
        ("查一下天气；然后，给王明发邮件。", ["查一下天气", "给王明发邮件"]),
        ("Pay 3.50 to a@b.example", ["Pay 3.50 to a@b.example"]),
        ("a, b", ["a, b"]),
    ],
)
def test_parts(request_text: str, parts: list[str]) -> None:
    assert parts_of(request_text) == parts
