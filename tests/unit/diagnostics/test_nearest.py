"""Did you mean: one name or none."""

from __future__ import annotations

import pytest

from toolplan.diagnostics import nearest

KNOWN = ["get_weather", "send_email", "search_email", "list_files", "to", "北京天气"]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("get_wether", "get_weather"),
        ("getWeather", "get_weather"),
        ("GET-WEATHER", "get_weather"),
        ("get_waether", "get_weather"),
        ("send_mail", "send_email"),
        ("list_file", "list_files"),
        ("北京气温", None),
        ("北京天汽", "北京天气"),
        ("teleport", None),
        ("ot", None),
        ("TO", "to"),
        ("t_o", "to"),
        ("s", None),
        ("", None),
    ],
)
def test_the_name_that_was_probably_meant(name: str, meant: str | None) -> None:
    assert nearest(name, KNOWN) == meant


def test_two_equally_near_names_are_none() -> None:
    assert nearest("file_c", ["file_a", "file_b"]) is None
    assert nearest("file_a", ["file_a", "file_b"]) == "file_b"


def test_about_a_third_of_the_letters_may_differ() -> None:
    assert nearest("abcdef", ["abcdxy"]) == "abcdxy"
    assert nearest("abcdef", ["abcxyz"]) is None


def test_a_longer_name_than_any_is_looked_at_quickly() -> None:
    assert nearest("x" * 10_000, ["y" * 10]) is None


def test_a_name_of_one_or_two_letters_is_suggested_only_when_spelt_alike() -> None:
    assert nearest("w", ["y"]) is None
    assert nearest("s0", ["s1"]) is None
    assert nearest("W", ["w", "v"]) == "w"
    assert nearest("wat", ["way"]) == "way"


def test_a_chinese_character_says_as_much_as_two_letters() -> None:
    assert nearest("可接", ["可借", "书名"]) == "可借"
    assert nearest("价", ["借"]) is None
