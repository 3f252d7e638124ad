"""The examples in the prompts are plans that the product accepts and runs."""

import dataclasses
from typing import Any

import pytest

from toolplan.check import check
from toolplan.parse import parse
from toolplan.plan import Plan
from toolplan.prompt.chinese import CHINESE
from toolplan.prompt.english import ENGLISH
from toolplan.prompt.wording import Wording
from toolplan.tools import ToolSet, signatures, tool


@dataclasses.dataclass
class Tank:
    id: str
    species: str
    salinity: str
    keeper: str | None
    cleaned_on: str


DESCRIPTIONS = {
    "en": {
        "inspect_tank": 'Measures one tank; salinity is text such as "34.5 ppt".',
        "book_cleaning": "Books a cleaning; returns the slot.",
    },
    "zh": {
        "inspect_tank": '测量一个水族缸；salinity 是文字，如 "34.5 ppt"',
        "book_cleaning": "预约清洗，返回时段",
    },
}


def aquarium(language: str) -> ToolSet:
    """The tools of the examples."""
    told = DESCRIPTIONS[language]

    @tool(reads="tanks", description=told["inspect_tank"])
    def inspect_tank(tank: str) -> Tank:
        return Tank(tank, "clownfish", "36.1 ppt", "Bo", "2026-01-01")

    @tool(reads="tanks")
    def list_tanks(hall: str) -> list[Tank]:
        return [Tank(hall, "clownfish", "36.1 ppt", "Bo", "2026-01-01")]

    @tool(writes="tanks")
    def add_fresh_water(tank: str, litres: float) -> str:
        return f"{tank}: {litres}"

    @tool(writes="pager")
    def page_keeper(name: str, text: str) -> str:
        return f"{name}: {text}"

    @tool(writes="cleanings", description=told["book_cleaning"])
    def book_cleaning(tank: str, day: str) -> str:
        return f"{tank}: {day}"

    return ToolSet.of([inspect_tank, list_tanks, add_fresh_water, page_keeper, book_cleaning])


WORDS: list[Any] = [pytest.param("en", ENGLISH, id="en"), pytest.param("zh", CHINESE, id="zh")]


@pytest.mark.parametrize(("language", "words"), WORDS)
def test_every_example_parses_and_checks_clean(language: str, words: Wording) -> None:
    for request, reply in words.example_plans:
        plan = parse(reply)
        assert isinstance(plan, Plan), request
        assert plan.repairs == (), request
        assert check(plan, aquarium(language)).warnings == (), request


@pytest.mark.parametrize(("language", "words"), WORDS)
def test_the_examples_tools_are_written_as_tools_are(language: str, words: Wording) -> None:
    assert words.example_tools.strip() == signatures(aquarium(language)).strip()


@pytest.mark.parametrize("words", [ENGLISH, CHINESE])
def test_the_rules_name_every_function_of_the_language(words: Wording) -> None:
    from toolplan.expressions.functions import FUNCTIONS

    spoken = set(words.json_rules.replace("(", " ").replace("、", " ").replace("；", " ").replace(",", " ").split())
    rare = {"floor", "ceil", "pow", "divmod", "repr", "format", "tuple", "isinstance", "next", "set_item", "ord", "chr"}
    missing = {name for name in FUNCTIONS if name not in spoken} - rare
    assert missing == set()
