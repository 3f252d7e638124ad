"""Every text that the command line and the demos say is there in both languages, with the same holes."""

from __future__ import annotations

import string

import pytest

from toolplan.cli.words import PURPOSES, WORDS, count
from toolplan.demo.words import WORDS as DEMO_WORDS


def holes(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("words", [WORDS, PURPOSES, DEMO_WORDS])
def test_both_languages_say_the_same_things(words) -> None:
    assert words["en"].keys() == words["zh"].keys()
    for key, text in words["en"].items():
        assert holes(text) == holes(words["zh"][key]), key


@pytest.mark.parametrize("words", [WORDS, PURPOSES, DEMO_WORDS])
def test_chinese_is_chinese(words) -> None:
    for key, text in words["zh"].items():
        assert any("\u3400" <= ch <= "\u9fff" for ch in text) or not any(ch.isalpha() for ch in text), key


def test_counting() -> None:
    assert [count(n, "step", "en") for n in (0, 1, 2)] == ["0 steps", "1 step", "2 steps"]
    assert count(2, "step", "zh") == "2 个步骤"
