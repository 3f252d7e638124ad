"""The weights are Robertson's, and a choice serves every part of a request."""

from __future__ import annotations

import math

import pytest

from toolplan.route.bm25 import EXPLAINED, Index, Term, diverse

DOCUMENTS = [{"weather": 2.0, "city": 1.0}, {"mail": 3.0}, {"weather": 1.0, "mail": 1.0, "day": 1.0}, {}]


def test_the_weight_of_a_word_is_robertsons() -> None:
    index = Index(DOCUMENTS, [[]] * 4)
    found = index.matches(["weather", "none"], [])
    assert set(found) == {0, 2}
    rarity = math.log(1 + (4 - 2 + 0.5) / (2 + 0.5))
    mean = (3 + 3 + 3 + 0) / 4
    expected = rarity * 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 3 / mean))
    assert found[0] == {Term("weather"): pytest.approx(expected)}
    assert found[0][Term("weather")] > found[2][Term("weather")]


def test_rare_words_and_keywords_count_more() -> None:
    index = Index(DOCUMENTS, [["天气", "wet"], ["wet"], ["wet"], []])
    once = Index([{"weather": 1.0, "city": 1.0}, {"weather": 1.0}], [[], []]).matches(["city", "weather"], [])[0]
    assert once[Term("city")] > once[Term("weather")] > 0
    claims = index.matches([], ["天气", "wet"])
    assert claims[0][Term("天气", True)] > claims[0][Term("wet", True)] > 0
    assert set(claims) == {0, 1, 2}


def test_nothing_to_choose_from() -> None:
    assert Index([], []).matches(["a"], ["b"]) == {}
    assert Index([{}], [[]]).matches(["a"], []) == {}
    assert diverse({}, 3) == []


def test_what_is_explained_counts_less() -> None:
    a, b = Term("a"), Term("b")
    matches = {0: {a: 3.0}, 1: {a: 2.9}, 2: {a: 2.8}, 3: {b: 2.0}}
    assert diverse(matches, 4) == [0, 1, 3, 2]
    assert 2.8 * EXPLAINED**2 < 2.0 < 2.9 * EXPLAINED


def test_equals_stay_in_order() -> None:
    assert diverse({n: {Term(str(n)): 1.0} for n in (2, 0, 1)}, 2) == [0, 1]
