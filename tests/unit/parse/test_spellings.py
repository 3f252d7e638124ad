"""The one table of spellings."""

from __future__ import annotations

import re

from toolplan.parse.spellings import ANNOTATIONS, PLAN, STEPS, find_kind, table


def test_every_first_key_tells_its_kind_alone():
    for kind in STEPS:
        kinds, sure = find_kind({kind.keys[0].name: "x"})
        assert kinds == [kind]
        assert sure


def test_case_underscores_hyphens_and_spaces_do_not_matter():
    for kind in (PLAN, *STEPS):
        for key in kind.keys:
            for spelling in (key.name, *key.also):
                for form in (
                    spelling.upper(),
                    spelling.replace("_", "-"),
                    spelling.replace("_", " "),
                    spelling.title(),
                ):
                    assert kind.canonical(form) == key.name


def test_a_key_without_a_value_is_not_given():
    kinds, _ = find_kind({"tool_name": "x", "if": None, "for_each": None, "answer": None})
    assert [kind.name for kind in kinds] == ["call"]


def test_the_table_names_every_spelling():
    text = table()
    for kind in (PLAN, *STEPS):
        for key in kind.keys:
            row = re.escape(f"| {kind.name} | `{key.name}` |")
            assert re.search(row, text)
            for spelling in key.also:
                assert f"`{spelling}`" in text
    for key in ANNOTATIONS:
        assert f"`{key}`" in text
