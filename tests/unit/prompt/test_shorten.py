"""Values cut to what there is room for."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolplan.prompt.chinese import CHINESE
from toolplan.prompt.english import ENGLISH
from toolplan.prompt.shorten import as_json, shortened
from toolplan.values import Json

ROWS: Json = [{"id": n, "title": f"row {n}"} for n in range(1_000)]


def test_what_fits_stays_as_it_is() -> None:
    value: Json = {"a": [1, 2, {"b": "text"}], "c": None}
    assert shortened(value, 200, ENGLISH) is value


def test_a_long_list_keeps_its_beginning_and_says_how_much_is_missing() -> None:
    kept = shortened(ROWS, 1_000, ENGLISH)
    assert isinstance(kept, list)
    assert kept[:3] == ROWS[:3]
    assert kept[-1] == f"[{1_000 - (len(kept) - 1)} of 1000 items left out]"
    assert 700 < len(as_json(kept)) < 1_100


def test_a_long_text_keeps_its_beginning() -> None:
    kept = shortened("啊" * 500 + "终" * 500, 500, CHINESE)
    assert kept == "啊" * 500 + " [省略 500 个字符，共 1000 个]"


def test_a_few_long_elements_share_the_room() -> None:
    kept = shortened(["a" * 5_000, "short", "b" * 5_000], 3_000, ENGLISH)
    assert isinstance(kept, list)
    assert [str(item)[0] for item in kept] == ["a", "s", "b"]
    assert kept[1] == "short"
    assert "characters left out" in str(kept[0])
    assert len(str(kept[2])) > 1_000


def test_the_small_fields_of_an_object_survive_a_large_one() -> None:
    kept = shortened({"body": "x" * 9_000, "id": 7, "tags": ["a", "b"]}, 600, ENGLISH)
    assert isinstance(kept, dict)
    assert (kept["id"], kept["tags"]) == (7, ["a", "b"])
    assert str(kept["body"]).endswith("characters left out]")


def test_an_object_of_very_many_fields_says_how_many_are_missing() -> None:
    kept = shortened({f"field {n}": n for n in range(1_000)}, 500, ENGLISH)
    assert isinstance(kept, dict)
    assert str(kept["…"]).endswith("of 1000 fields left out]")


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.text(max_size=20), inner, max_size=30),
    max_leaves=60,
)


@given(values, st.integers(200, 3_000))
def test_whatever_is_shortened_is_a_value_of_the_same_kind_and_not_much_too_long(value: Json, room: int) -> None:
    kept = shortened(value, room, ENGLISH)
    if len(as_json(value)) <= room:
        assert kept == value
    assert type(kept) is type(value)
    assert json.loads(as_json(kept)) == kept
    assert len(as_json(kept)) <= 3 * room + 300  # a few small elements and notes may go over; escapes double


@pytest.mark.parametrize("depth", [50, 150])
def test_deep_nesting_is_cut(depth: int) -> None:
    value: Json = "x" * 1_000
    for _ in range(depth):
        value = [value]
    assert len(as_json(shortened(value, 300, ENGLISH))) < 1_000
